"""Options of the methods, one class each, and the result that all of them give."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, NamedTuple, TypeVar, get_args

import jax

from jaxsim.core.describe import describe_struct
from jaxsim.interface.arguments import unknown_argument
from jaxsim.math.safe import Array

Class = TypeVar("Class", bound=type)
Function = TypeVar("Function", bound=Callable[..., Any])


def _register(*static: str) -> Callable[[Class], Class]:
    """Decorator that makes a PyTree of a class of options: all but the `static` ones are numbers of a program."""

    def register(cls: Class) -> Class:
        data = [f.name for f in fields(cls) if f.name not in static]
        jax.tree_util.register_dataclass(cls, data_fields=data, meta_fields=list(static))
        return cls

    return register


@_register("iterations", "second_order")
@dataclass(frozen=True)
class Ilqr:
    """Options of `ilqr`: Gauss-Newton, with first derivatives of the dynamics.

    `tolerance`: fraction of the cost; the search stops after an iteration that decreases the cost by less. `damping`:
    initial regularisation of the control Hessian. `penalty`: initial weight of squared constraints. `violation`:
    largest allowed violation of a constraint. `rough`: the `tolerance` of searches before the last, where models are
    softened.
    """

    iterations: int = 100
    tolerance: float = 1e-6
    damping: float = 1e-3
    penalty: float = 10.0
    violation: float = 1e-4
    second_order: bool = False
    rough: float = 1e-3


@_register("iterations", "second_order")
@dataclass(frozen=True)
class Ddp(Ilqr):
    """Options of `ddp`: those of `Ilqr`, with second derivatives of dynamics and running residuals."""

    second_order: bool = True


@_register("iterations", "optimizer")
@dataclass(frozen=True)
class Shooting:
    """Options of `shoot`.

    `optimizer` is an optax gradient transformation; None is Adam with this `rate`, after the gradient's norm is
    clipped to `clip`.
    """

    iterations: int = 100
    rate: float = 1e-2
    clip: float = 1.0
    optimizer: Any = None


@_register("iterations", "samples", "knots")
@dataclass(frozen=True)
class Mppi:
    """Options of `mppi`.

    `sigma`: standard deviation of samples; None is 0.3 of half the range of controls. `temperature` has no unit: costs
    are scaled to [0, 1] within a batch. `knots`: controls of a plan are interpolated between so many; None: all are
    free.
    """

    iterations: int = 50
    samples: int = 64
    sigma: Any = None
    temperature: float = 0.1
    knots: int | None = 16


@_register("iterations", "samples", "knots")
@dataclass(frozen=True)
class Cem:
    """Options of `cem`, those of `Mppi` but for `elites`: the samples that are kept, and `floor`, the least
    deviation."""

    iterations: int = 50
    samples: int = 64
    sigma: Any = None
    elites: int = 8
    floor: float = 1e-3
    knots: int | None = 16


@_register("iterations")
@dataclass(frozen=True)
class Inverse:
    """Options of `inverse_trajectory`.

    `tolerance`: fraction of the cost; the search stops after an iteration that decreases the cost by less. `damping`:
    initial regularisation of the Gauss-Newton matrix. `penalty`: initial weight of squared forces that no actuator
    gives. `violation`: largest allowed one (N, N m).
    """

    iterations: int = 100
    tolerance: float = 1e-6
    damping: float = 1e-9
    penalty: float = 1.0
    violation: float = 1e-3


Method = Ilqr | Ddp | Inverse | Shooting | Mppi | Cem


def takes_options(function: Function) -> Function:
    """Return the function with errors that name the class of its options.

    Raises TypeError for another thing in the place of the options, for a field of theirs that is given as an argument
    of the function, and for unknown arguments.
    """
    signature, name = inspect.signature(function), function.__name__
    own = {key: [c for c in get_args(p.annotation) if c in get_args(Method)] for key, p in signature.parameters.items()}
    place, classes = next((key, tuple(found)) for key, found in own.items() if found)
    words = ", ".join(f"{c.__name__}(...)" for c in classes) + " of jaxsim.optim"
    owners = {f.name: c.__name__ for c in reversed(classes) for f in fields(c)}

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for key in kwargs:
            if key in owners and key not in signature.parameters:
                raise TypeError(f"{name}: {key} is a field of the options: give {place}={owners[key]}({key}=...)")
        if answer := unknown_argument(name, signature, kwargs):
            raise TypeError(answer)
        given = {**dict(zip(signature.parameters, args, strict=False)), **kwargs}.get(place)
        if given is not None and not isinstance(given, classes):
            what = f"the class {given.__name__}" if isinstance(given, type) else f"of class {type(given).__name__}"
            raise TypeError(f"{name}: {place} is {what}, wanted {words}")
        return function(*args, **kwargs)

    return checked  # pyright: ignore[reportReturnType]


class Result(NamedTuple):
    """Result of an optimiser.

    `x`: the best point; of a trajectory its controls (n, nu). `cost` is its cost. `history` (iterations + 1,) is the
    cost after every iteration, with the last value repeated after the end. `converged`: no further decrease is
    expected, and constraints hold; methods with a fixed number of iterations do not set it. `violation`: the
    largest violation of a constraint. `gains` (n, nu, 2 nv + na) and `states`, fields of the state at every step
    (n + 1, ...), if the method computes them.
    """

    x: Any
    cost: Array
    history: Array
    converged: Array | bool = False
    iterations: Array | int = 0
    violation: Array | float = 0.0
    gains: Any = None
    states: Any = None

    __repr__ = describe_struct


class Iteration(NamedTuple):
    """Argument of a callback after every iteration: numbers, and the point."""

    number: Any
    cost: Any
    violation: Any
    x: Any
