"""Steps for PyTorch: tensors in, tensors out, and gradients by autograd. Needs `pip install 'jaxsim-mjcf[torch]'`.

```python
step = jaxsim.torch.step(m, outputs=("sensordata",))
state = step.initial(nworld=64)
for _ in range(100):
    state = step(state, policy(state["qpos"], state["qvel"]))
loss(state["sensordata"]).backward()
```

Tensors and JAX's arrays share memory (DLPack) if they are on the same device.
"""

import importlib
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.model import Model
from jaxsim.engine.step import forward
from jaxsim.engine.step.derived import carried, from_carried
from jaxsim.engine.step.initial import make_data
from jaxsim.interface.arguments import check_model
from jaxsim.math.safe import Array
from jaxsim.xla.options import jit

try:
    torch: Any = importlib.import_module("torch")  # by name: this module is called torch too
except ImportError as error:  # pragma: no cover - depends on the installation
    raise ImportError("jaxsim.torch needs PyTorch: pip install 'jaxsim-mjcf[torch]'") from error

Tensor = Any  # torch.Tensor
State = dict[str, Tensor]


def step(m: Model, outputs: Sequence[str] = ()) -> "TorchStep":
    """Make a step of a model a function of tensors, whose result is the state and the fields `outputs` of `Data`."""
    check_model(m, "jaxsim.torch.step", None)
    return TorchStep(m, tuple(outputs))


class TorchStep:
    """A function (state, ctrl) -> state of tensors, for one world or a batch; `jaxsim.torch.step` makes it.

    A state is a dict, by name, of the fields that one step passes to the next, without empty ones. A result also
    contains the outputs that the step computed (at the state before it, as after `mj_step`); a step does not read them.

    Backward passes store the state before each step and recompute the step. Second derivatives are not available.
    """

    def __init__(self, m: Model, outputs: tuple[str, ...]):
        self.model, self.outputs = jax.tree.map(jnp.asarray, m), outputs
        self._blank = make_data(self.model)
        for name in outputs:
            attrgetter(name)(self._blank)  # raises AttributeError for one that is not there
        leaves, self._tree = jax.tree_util.tree_flatten_with_path(carried(self.model, self._blank))
        self._fields = {_name(path): x for path, x in leaves}
        self._run = {False: jit(self._advance), True: jit(self._of_worlds(self._advance))}
        self._pull = {False: jit(self._backward), True: jit(self._backward_of_worlds)}

    def initial(self, keyframe: str | int | None = None, nworld: int | None = None) -> State:
        """Return the state at qpos0 or a keyframe as tensors; with `nworld`, of equal worlds, with a leading axis."""
        state = carried(self.model, make_data(self.model, keyframe, nworld))
        named = {_name(path): x for path, x in jax.tree_util.tree_flatten_with_path(state)[0]}
        return {name: _to_torch(jnp.array(x)) for name, x in named.items() if x.size}

    def __call__(self, state: Mapping[str, Tensor], ctrl: Tensor | None = None, **model: Tensor) -> State:
        """State after one step, under new controls if they are given; gradients flow to all that are floats.

        Args:
            state: as `initial` or a step gave it, or with fields that you have changed.
            ctrl: controls (nu,), or (nworld, nu).
            model: numbers of the model by their names, shared by all worlds: `body_mass=mass`.
        """
        given = {name: x for name, x in state.items() if name in self._fields}
        if missing := [name for name, x in self._fields.items() if x.size and name not in given]:
            raise ValueError(f"the state has no {', '.join(map(repr, missing))}: begin with step.initial()")
        if ctrl is not None:
            given["ctrl"] = ctrl
        lead = given["time"].shape
        values = {name: _typed(name, x, self._fields[name], lead) for name, x in given.items()}
        numbers = {name: _typed(name, x, getattr(self.model, name), ()) for name, x in model.items()}
        names = (tuple(values), tuple(numbers))
        results = _Step.apply(self, names, bool(lead), *values.values(), *numbers.values())
        return dict(zip(self._results(values), results, strict=True))

    def _results(self, names: Any) -> list[str]:
        return [*names, *self.outputs]

    def _advance(self, values: dict[str, Array], numbers: dict[str, Array]) -> dict[str, Array]:
        """Fields after a step of one world."""
        leaves = [values.get(name, like) for name, like in self._fields.items()]
        d = from_carried(self._blank, self._tree.unflatten(leaves))
        new = forward.step(self.model.replace(**numbers), d)
        after = dict(zip(self._fields, jax.tree.leaves(carried(self.model, new)), strict=True))
        return {name: after[name] for name in values} | {name: attrgetter(name)(new) for name in self.outputs}

    def _of_worlds(self, function: Any) -> Any:
        return jax.vmap(function, in_axes=(0, None))

    def _backward(self, values: Any, numbers: Any, cotangents: dict[str, Array], run: Any = None) -> Any:
        """Cotangents of the floats among `values`, and of `numbers`, from those of the floats among the results."""
        floats = {name: x for name, x in values.items() if _is_float(x)}

        def of_floats(floats: Any, numbers: Any) -> dict[str, Array]:
            found = (run or self._advance)(values | floats, numbers)
            return {name: found[name] for name in cotangents}

        return jax.vjp(of_floats, floats, numbers)[1](cotangents)

    def _backward_of_worlds(self, values: Any, numbers: Any, cotangents: dict[str, Array]) -> Any:
        return self._backward(values, numbers, cotangents, self._of_worlds(self._advance))

    def forward(self, names: Any, batched: bool, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Compute tensors of the results from tensors of the arguments."""
        found = self._run[batched](*_named(names, tensors))
        return [_to_torch(found[name]) for name in self._results(names[0])]

    def backward(self, names: Any, batched: bool, tensors: Any, cotangents: Any) -> list[Tensor | None]:
        """Compute gradients by the arguments, None for those that are not floats."""
        given = dict(zip(self._results(names[0]), cotangents, strict=True))
        floats = {name: _to_jax(x) for name, x in given.items() if x is not None and x.dtype.is_floating_point}
        by_values, by_numbers = self._pull[batched](*_named(names, tensors), floats)
        found = [*(by_values.get(name) for name in names[0]), *(by_numbers[name] for name in names[1])]
        return [None if x is None else _to_torch(x) for x in found]


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, owner: TorchStep, names: Any, batched: bool, *tensors: Tensor) -> Any:
        ctx.owner, ctx.names, ctx.batched = owner, names, batched
        ctx.save_for_backward(*tensors)
        found = owner.forward(names, batched, tensors)
        ctx.mark_non_differentiable(*(x for x in found if not x.dtype.is_floating_point))
        return tuple(found)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *cotangents: Any) -> Any:
        return (None, None, None, *ctx.owner.backward(ctx.names, ctx.batched, ctx.saved_tensors, cotangents))


def _named(names: Any, tensors: Sequence[Tensor]) -> tuple[dict[str, Array], dict[str, Array]]:
    values, numbers = names
    arrays = [_to_jax(x) for x in tensors]
    split = len(values)
    return dict(zip(values, arrays[:split], strict=True)), dict(zip(numbers, arrays[split:], strict=True))


def _typed(name: str, x: Tensor, like: Array, lead: Any) -> Tensor:
    """A tensor with the type of the array that it stands for, whose shape it must have."""
    if tuple(x.shape) != (*lead, *like.shape):
        raise ValueError(f"{name} has shape {tuple(x.shape)}, wanted {(*lead, *like.shape)}")
    return x.to(getattr(torch, str(like.dtype)))


def _to_jax(x: Tensor) -> Array:
    return jax.dlpack.from_dlpack(x.detach().contiguous())


def _to_torch(x: Array) -> Tensor:
    """A tensor of an array, once it is computed: what it was computed from may be written over then."""
    return torch.from_dlpack(jax.block_until_ready(x))


def _is_float(x: Any) -> bool:
    return np.issubdtype(x.dtype, np.floating)


def _name(path: Any) -> str:
    return ".".join(str(getattr(key, "key", getattr(key, "name", ""))) for key in path)
