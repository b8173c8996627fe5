"""Costs and constraints of trajectories: residuals of `Data` with weights and norms, the same for every method."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.core.data import Data
from jaxsim.engine.step.derived import fields_read
from jaxsim.math.safe import Array

Residual = Callable[[Data], Array]
Norm = Callable[[Array], Array]


def quadratic(r: Array) -> Array:
    """Return half the squares of the residuals."""
    return 0.5 * r * r


def linear(r: Array) -> Array:
    """Return the residuals themselves, for costs that are not squares; Gauss-Newton uses no curvature for them."""
    return r


@dataclass(frozen=True)
class SmoothAbs:
    """Norm sqrt(r^2 + width^2) - width, entry by entry: quadratic near zero, the absolute value far from it."""

    width: float = 0.1

    def __call__(self, r: Array) -> Array:
        return jnp.sqrt(r * r + self.width**2) - self.width


@dataclass(frozen=True)
class SmoothLength:
    """Norm sqrt(|r|^2 + width^2) - width of the whole residual."""

    width: float = 0.1

    def __call__(self, r: Array) -> Array:
        return jnp.sqrt(jnp.sum(r * r) + self.width**2) - self.width


def _check_function(function: Callable) -> None:
    """Raise TypeError for a function that cannot be called with the data alone."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # of a function without one
        return
    try:
        signature.bind(None)
    except TypeError:
        raise TypeError(
            f"Costs: a term has the arguments {signature}, wanted a function of the data alone: controls are d.ctrl, "
            "the time is d.time, and a term of the final state belongs to final="
        ) from None


@partial(jax.tree_util.register_dataclass, data_fields=["weight"], meta_fields=["residual", "norm"])
@dataclass(frozen=True)
class Term:
    """Cost `sum(weight * norm(residual(d)))` of a state.

    `residual` is a function of the data: its state, its controls `d.ctrl`, its time, and all fields that `forward`
    computes from them (sites, sensors). For a moving target use a mocap body, `d.userdata` or a function of `d.time`.
    `norm` is convex.
    """

    residual: Residual
    weight: Any = 1.0
    norm: Norm = quadratic

    def __post_init__(self) -> None:
        _check_function(self.residual)


@partial(jax.tree_util.register_dataclass, data_fields=["scale"], meta_fields=["function", "kind"])
@dataclass(frozen=True)
class Constraint:
    """Constraint function(d) = 0 (`kind` "equal") or function(d) <= 0 ("below"), entry by entry.

    Values are multiplied by `scale` before they are compared with the tolerance and penalised.
    """

    function: Residual
    kind: str = "below"
    scale: Any = 1.0

    def __post_init__(self) -> None:
        _check_function(self.function)
        if self.kind not in ("equal", "below"):
            raise ValueError(f'kind of a constraint is {self.kind!r}; expected "equal" or "below"')


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["running", "final", "constraints", "final_constraints"],
    meta_fields=[],
)
@dataclass(frozen=True)
class Costs:
    """Terms of every step and of the state after the last one, and constraints on them.

    A plain function of the data is a `Term` or a `Constraint` with the defaults. Terms of the final state read the
    controls of the initial data.
    """

    running: tuple[Term, ...] = ()
    final: tuple[Term, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    final_constraints: tuple[Constraint, ...] = ()

    def __post_init__(self) -> None:
        for name, kind in zip(("running", "final", "constraints", "final_constraints"), _KINDS, strict=True):
            object.__setattr__(self, name, _as_tuple(getattr(self, name), kind))


_KINDS = (Term, Term, Constraint, Constraint)


def _as_tuple(given: Any, kind: type) -> tuple:
    items = given if isinstance(given, Sequence) else (given,)
    return tuple(kind(x) if callable(x) and not isinstance(x, (Term, Constraint)) else x for x in items)


def check_costs(costs: Any, name: str) -> None:
    """Raise TypeError where an argument is not `Costs`; `name` is that of the method."""
    if not isinstance(costs, Costs):
        raise TypeError(f"{name}: costs are of type {type(costs).__name__}, wanted jaxsim.optim.Costs(running, final)")


class Rows(NamedTuple):
    """Values of all terms and constraints in a state, each a vector."""

    running: tuple[Array, ...]
    final: tuple[Array, ...]
    constraints: tuple[Array, ...]
    final_constraints: tuple[Array, ...]


class Multipliers(NamedTuple):
    """Multipliers of the constraints, in their order, of one step or all, and the penalty of their squares."""

    constraints: tuple[Array, ...]
    final_constraints: tuple[Array, ...]
    penalty: Array


def rows_of(costs: Costs, d: Data) -> Rows:
    """Compute all residuals and constraints in a state whose derived fields are known."""

    def of(f: Residual) -> Array:
        return jnp.atleast_1d(jnp.asarray(f(d))).ravel().astype(d.qpos.dtype)

    terms = (tuple(of(t.residual) for t in group) for group in (costs.running, costs.final))
    limits = (tuple(of(c.function) * c.scale for c in group) for group in (costs.constraints, costs.final_constraints))
    return Rows(*terms, *limits)


def reads_of(costs: Costs, d: Data) -> frozenset[str]:
    """Find the names of the fields of the data that terms and constraints read."""
    return fields_read(partial(rows_of, costs), d)


def active(rows: Rows, last: Array, beyond: Array) -> Rows:
    """Zero the rows of inactive terms: final terms before the last state, running terms at it."""
    after, end = jnp.logical_or(last, beyond), jnp.logical_and(last, ~beyond)
    running = partial(jax.tree.map, lambda r: jnp.where(after, 0, r))
    final = partial(jax.tree.map, lambda r: jnp.where(end, r, 0))
    return Rows(running(rows.running), final(rows.final), running(rows.constraints), final(rows.final_constraints))


def value_of(costs: Costs, rows: Rows, last: Array, beyond: Array, multipliers: Multipliers) -> Array:
    """Compute a state's cost, with the augmented Lagrangian of its constraints; norms need not be zero at zero."""

    def terms(group: tuple[Term, ...], values: tuple[Array, ...]) -> Array:
        return sum((jnp.sum(t.weight * t.norm(r)) for t, r in zip(group, values, strict=True)), jnp.zeros(()))

    def penalties(group: tuple[Constraint, ...], values: tuple[Array, ...], mu: tuple[Array, ...]) -> Array:
        each = zip(group, values, mu, strict=True)
        return sum((augmented(c.kind, r, x, multipliers.penalty) for c, r, x in each), jnp.zeros(()))

    rows = active(rows, last, beyond)
    running = terms(costs.running, rows.running)
    running += penalties(costs.constraints, rows.constraints, multipliers.constraints)
    final = terms(costs.final, rows.final)
    final += penalties(costs.final_constraints, rows.final_constraints, multipliers.final_constraints)
    after, end = jnp.logical_or(last, beyond), jnp.logical_and(last, ~beyond)
    return jnp.where(after, 0, running) + jnp.where(end, final, 0)


def augmented(kind: str, c: Array, mu: Array, penalty: Array) -> Array:
    """Compute mu c + penalty c^2 / 2 of an equality, or of an inequality its minimum over a slack of at least zero."""
    if kind == "equal":
        return jnp.sum(mu * c + 0.5 * penalty * c * c)
    return jnp.sum(jnp.maximum(0, mu + penalty * c) ** 2 - mu * mu) / (2 * penalty)


def no_multipliers(rows: Rows, penalty: Any) -> Multipliers:
    """Make multipliers of zero for the rows of one state or of many."""
    zero = partial(jax.tree.map, jnp.zeros_like)
    return Multipliers(zero(rows.constraints), zero(rows.final_constraints), jnp.asarray(penalty))


def updated(costs: Costs, rows: Rows, old: Multipliers, penalty: Array) -> Multipliers:
    """Update multipliers after a minimisation: mu + penalty c, and not below zero for inequalities."""

    def new(group: tuple[Constraint, ...], values: tuple[Array, ...], mu: tuple[Array, ...]) -> tuple[Array, ...]:
        moved = [x + old.penalty * c for c, x in zip(values, mu, strict=True)]
        return tuple(jnp.clip(x, 0 if c.kind == "below" else -MOST, MOST) for c, x in zip(group, moved, strict=True))

    return Multipliers(
        new(costs.constraints, rows.constraints, old.constraints),
        new(costs.final_constraints, rows.final_constraints, old.final_constraints),
        penalty,
    )


MOST = 1e8  # size of a multiplier


def violation_of(costs: Costs, rows: Rows) -> Array:
    """Find the largest violation of a constraint, from rows in which inactive constraints are zero."""

    def worst(group: tuple[Constraint, ...], values: tuple[Array, ...]) -> list[Array]:
        each = zip(group, values, strict=True)
        return [jnp.max(jnp.abs(r) if c.kind == "equal" else r, initial=0) for c, r in each]

    found = worst(costs.constraints, rows.constraints)
    found += worst(costs.final_constraints, rows.final_constraints)
    return jnp.max(jnp.stack(found)) if found else jnp.zeros(())
