"""Derivatives of a step of a user's model against central differences: `jaxsim gradcheck MODEL`.

Each leaf is moved along one random direction. Both modes are compared with differences of two widths, extrapolated.
If the two widths disagree, the step has a kink within them, and there is no derivative to compare with.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.model import FLOATS, Model
from jaxsim.core.option import OPTION_FLOATS
from jaxsim.engine.kinematics.positions import differentiate_pos, integrate_pos
from jaxsim.math.safe import Array

WIDTH = 2e-5  # half width of the wider difference, of a direction of the size of the numbers
GOOD = 1e-4  # relative error up to which a derivative is right
GOOD_SINGLE = 1e-2  # the same in single precision
KINK = 1e-3  # relative difference of the two widths, from which on differences say nothing
FLOOR = 1e-6  # derivatives below this part of the largest of their kind are not told from rounding
STATE = ("qpos", "qvel", "act", "ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos")

NOTES = """\
forward, reverse: relative error of the mode against central differences, along one random direction of the leaf.
kink: differences of two widths disagree: an impact, a limit or a switch lies within them. Move the state (--steps).
Contacts that are not made have no derivative; see docs/gradients.md for ways around it."""


class Row(NamedTuple):
    """One leaf: its size, size of its derivative, relative errors of both modes, and the result of the differences."""

    leaf: str
    entries: int
    size: float
    forward: float
    reverse: float
    kink: bool
    bound: float = GOOD

    @property
    def right(self) -> bool:
        """Whether both modes agree with the differences."""
        return max(self.forward, self.reverse) <= self.bound

    @property
    def verdict(self) -> str:
        """Verdict in words."""
        return "right" if self.right else "kink" if self.kink else "DIFFERS"


def exact(m: Model) -> Model:
    """Return the model with tight solver tolerances, so that they do not affect the differences."""
    return m.replace(
        opt=m.opt.replace(tolerance=jnp.zeros_like(m.opt.tolerance), iterations=max(100, m.opt.iterations))
    )


def leaves(m: Model, d: Data) -> dict[str, Array]:
    """Collect the float leaves of state, control and model by name; positions as displacements (nv,)."""
    state = {name: getattr(d, name) for name in STATE}
    state["qpos"] = jnp.zeros(m.nv, d.qpos.dtype)
    model = {f"m.{name}": getattr(m, name) for name in FLOATS}
    model |= {f"m.opt.{name}": getattr(m.opt, name) for name in OPTION_FLOATS}
    return {name: x for name, x in (state | model).items() if np.size(x)}


def moved(m: Model, d: Data, delta: dict[str, Array]) -> tuple[Model, Data]:
    """Add changes of leaves to model and data."""
    state = {name: getattr(d, name) + x for name, x in delta.items() if name in STATE and name != "qpos"}
    if "qpos" in delta:
        state["qpos"] = integrate_pos(m, d.qpos, delta["qpos"], jnp.ones((), d.qpos.dtype))
    option = {n.removeprefix("m.opt."): x for n, x in delta.items() if n.startswith("m.opt.")}
    model = {n.removeprefix("m."): x for n, x in delta.items() if n.startswith("m.") and not n.startswith("m.opt.")}
    opt = m.opt.replace(**{name: getattr(m.opt, name) + x for name, x in option.items()})
    return m.replace(opt=opt, **{name: getattr(m, name) + x for name, x in model.items()}), d.replace(**state)


def outcome(m: Model, d: Data, delta: dict[str, Array]) -> Array:
    """Compute displacement, velocity, activation and sensor values after a step from a changed state and model."""
    new = jaxsim.step(*moved(m, d, delta))
    travel = differentiate_pos(m, jax.lax.stop_gradient(d.qpos), new.qpos)
    return jnp.concatenate([travel, new.qvel, new.act, new.sensordata])


def direction(name: str, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a random direction, for the model relative to its numbers: zeros, which are switches, do not change."""
    draw = rng.standard_normal(x.shape)
    return draw * np.abs(x) if name.startswith("m.") else draw


def single_precision(tree: Any) -> Any:
    """Convert the leaves of a PyTree to NumPy, floats in single precision."""
    arrays = jax.tree.map(np.asarray, tree)
    return jax.tree.map(lambda x: x.astype(np.float32) if x.dtype == np.float64 else x, arrays)


def check(
    m: Model, d: Data, seed: int = 0, progress: Callable[[int], Any] = lambda _: None, single: bool = False
) -> list[Row]:
    """Check derivatives, with a row for each leaf that has an effect; `progress` is called with 1 after each leaf.

    With `single`, derivatives are computed in single precision on JAX's first device, and differences in double
    precision on the device of `m` and `d`. Needs double precision (`jax_enable_x64`).
    """
    if d.qpos.dtype != jnp.float64:
        raise ValueError("gradcheck needs double precision: jax.config.update('jax_enable_x64', True)")
    rng = np.random.default_rng(seed)
    values = {name: np.asarray(x) for name, x in leaves(m, d).items()}
    zero = {name: np.zeros_like(x) for name, x in values.items()}
    tight = exact(m)
    run = jaxsim.jit(outcome)
    weight = rng.standard_normal(run(tight, d, zero).shape)
    push, pull = _single_derivatives(m, d) if single else _derivatives(tight, d)
    gradient = pull(zero, weight)
    found = []
    for name, x in values.items():
        v = direction(name, x, rng)
        if v.any():
            ahead = np.asarray(push(zero, zero | {name: v}))
            back = float(np.sum(np.asarray(gradient[name]) * v))
            wide, fine = (_difference(run, tight, d, zero, name, v, width) for width in (WIDTH, WIDTH / 2))
            found.append((name, x.size, ahead, back, wide, fine))
        progress(1)
    return judged(found, weight, GOOD_SINGLE if single else GOOD)


def _derivatives(m: Model, d: Data) -> tuple[Callable, Callable]:
    """Derivatives of the outcome: `push(at, direction)` in forward mode, `pull(at, weight)` in reverse mode."""
    push = jaxsim.jit(lambda m, d, at, v: jax.jvp(lambda x: outcome(m, d, x), (at,), (v,))[1])
    pull = jaxsim.jit(lambda m, d, at, w: jax.vjp(lambda x: outcome(m, d, x), at)[1](w)[0])
    return partial(push, m, d), partial(pull, m, d)


def _single_derivatives(m: Model, d: Data) -> tuple[Callable, Callable]:
    """The same in single precision, on JAX's first device."""

    def within(f: Callable) -> Callable:
        def call(*args: Any) -> Any:
            with jax.enable_x64(False), jax.default_device(jax.devices()[0]):
                return jax.tree.map(np.asarray, f(*single_precision(args)))

        return call

    push, pull = _derivatives(*single_precision((m, d)))
    return within(push), within(pull)


def _difference(run: Callable, m: Model, d: Data, zero: dict, name: str, v: np.ndarray, width: float) -> np.ndarray:
    """Central difference of the outcome along a direction of a leaf."""
    up, down = (np.asarray(run(m, d, zero | {name: jnp.asarray(sign * width * v)})) for sign in (1, -1))
    return (up - down) / (2 * width)


def judged(found: list[tuple], weight: np.ndarray, bound: float = GOOD) -> list[Row]:
    """Judge the leaves whose derivative or difference is larger than rounding error, a row each."""
    largest = max((np.abs(ahead).max(initial=0) for _, _, ahead, *_ in found), default=0.0)
    rows = []
    for name, entries, ahead, back, wide, fine in found:
        slope = fine + (fine - wide) / 3
        size = max(np.abs(ahead).max(initial=0), np.abs(slope).max(initial=0))
        if size <= FLOOR * largest:
            continue
        forward = np.abs(ahead - slope).max() / size
        reverse = abs(back - weight @ slope) / np.abs(weight * np.maximum(np.abs(slope), np.abs(ahead))).max()
        kink = np.abs(fine - wide).max() > KINK * size
        rows.append(Row(name, entries, float(size), float(forward), float(reverse), bool(kink), bound))
    return rows


def table(rows: list[Row]) -> str:
    """Format the rows as text, the worst of each part last."""
    head = f"{'leaf':28s} {'entries':>7s} {'derivative':>11s} {'forward':>9s} {'reverse':>9s}"
    lines = [f"{r.leaf:28s} {r.entries:7d} {r.size:11.3g} {r.forward:9.1e} {r.reverse:9.1e}  {r.verdict}" for r in rows]
    return "\n".join([head, *lines])
