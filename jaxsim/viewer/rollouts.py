"""Rollouts of many worlds driven by the host: batches, controls, records, diagnostics.

The loop is compiled: a chunk of frames runs in one call, so that a progress bar has almost no cost.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.describe import describe_struct
from jaxsim.core.model import Model
from jaxsim.core.types import DIVERGED, WarningType
from jaxsim.engine.actuation.forces import control_range
from jaxsim.engine.collision.broad.capacity import suggest_capacity
from jaxsim.engine.step.rollout import select
from jaxsim.math.safe import Array
from jaxsim.viewer.frames import FLEX, PLACES, TENDON

RECORDED = ("time", "qpos", "qvel", "act", "ctrl", "sensordata")  # of every world
POSE = ("time", "sensordata", "ncon", "contact.pos", "contact.frame", *PLACES, *FLEX, *TENDON)  # of the world shown


@dataclasses.dataclass(frozen=True)
class RolloutPlan:
    """Settings of a rollout: `nstep` steps of `nworld` worlds, with a frame recorded every `every` steps.

    `states`: whether to record `RECORDED` of every world. `poses`: whether to record `POSE` of world `world`, for a
    replay. `hold`: number of steps for which a random control is constant.
    """

    nworld: int = 64
    nstep: int = 1000
    every: int = 1
    hold: int = 10
    world: int = 0
    states: bool = False
    poses: bool = False

    @property
    def nframe(self) -> int:
        """Number of frames recorded; the last one may cover fewer steps."""
        return -(-self.nstep // self.every)


@dataclasses.dataclass(frozen=True, repr=False)
class RolloutResult:
    """Last data of all worlds, records (frames first), means over steps and worlds, and seconds."""

    data: Data
    states: dict[str, np.ndarray]
    poses: dict[str, np.ndarray]
    mean_ncon: float
    mean_niter: float
    compile_s: float
    run_s: float

    __repr__ = describe_struct


def random_controls(m: Model, plan: RolloutPlan, seed: int) -> Callable[[Array, Array], Array]:
    """Make a function (step, ctrl) -> ctrl that draws controls uniformly from their ranges every `plan.hold` steps."""
    low, high = control_range(m)
    key = jax.random.key(seed)

    def controls(step: Array, ctrl: Array) -> Array:
        draw = jax.random.uniform(jax.random.fold_in(key, step // plan.hold), ctrl.shape, ctrl.dtype)
        return jnp.asarray(low, ctrl.dtype) + draw * jnp.asarray(high - low, ctrl.dtype)

    return controls


def given_controls(values: np.ndarray) -> Callable[[Array, Array], Array]:
    """Make a function (step, ctrl) -> ctrl of an array (nstep, nu), the same for all worlds, or (nstep, nworld, nu)."""
    rows = jnp.asarray(values)

    def controls(step: Array, ctrl: Array) -> Array:
        row = jax.lax.dynamic_index_in_dim(rows, step, keepdims=False)
        return jnp.broadcast_to(row, ctrl.shape).astype(ctrl.dtype)

    return controls


def held_controls(step: Array, ctrl: Array) -> Array:
    """Leave the controls of `Data` unchanged: those of the keyframe, or zero."""
    del step
    return ctrl


def load_controls(path: str | Path, m: Model, nworld: int) -> np.ndarray:
    """Load the array `ctrl` of an .npz file, or the array of an .npy file: (nstep, nu) or (nstep, nworld, nu).

    Raises ValueError that says what is wrong with the file, FileNotFoundError when there is none.
    """
    try:
        loaded = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is not a NumPy file of controls: {error}") from None
    if isinstance(loaded, Mapping):
        if "ctrl" not in loaded:
            raise ValueError(f"{path} holds no array 'ctrl', only {', '.join(loaded) or 'nothing'}")
        loaded = loaded["ctrl"]
    if loaded.ndim not in (2, 3) or loaded.shape[-1] != m.nu or (loaded.ndim == 3 and loaded.shape[1] != nworld):
        raise ValueError(
            f"{path}: controls have shape {loaded.shape}; expected (nstep, {m.nu}) or (nstep, {nworld}, {m.nu})"
        )
    if not np.issubdtype(loaded.dtype, np.number) or not np.all(np.isfinite(loaded)):
        raise ValueError(f"{path}: controls are not all finite numbers")
    return loaded


def simulate(
    m: Model,
    d: Data,
    plan: RolloutPlan,
    controls: Callable[[Array, Array], Array],
    progress: Callable[[int], None] = lambda steps: None,
    chunk: int = 32,
    compiler_options: Mapping[str, Any] | None = None,
) -> RolloutResult:
    """Simulate a rollout from the batch `d`.

    `progress` is called with 0 when the program is compiled, then with the steps of each chunk of frames.
    `compiler_options` are XLA's, beside those of `jaxsim.jit`.
    """
    chunk_of = partial(_chunk, plan=plan, controls=controls, size=min(chunk, plan.nframe))
    run = jaxsim.jit(chunk_of, compiler_options=compiler_options)
    start = time.perf_counter()
    run = run.lower(m, d, 0).compile()
    compile_s = time.perf_counter() - start
    progress(0)

    states: list[dict[str, np.ndarray]] = []
    poses: list[dict[str, np.ndarray]] = []
    ncon = niter = 0.0
    start = time.perf_counter()
    for first in range(0, plan.nframe, chunk):
        d, records, sums = run(m, d, first)
        count = min(chunk, plan.nframe - first)
        kept = jax.tree.map(lambda x, count=count: np.asarray(x)[:count], records)
        states.append(kept["states"])
        poses.append(kept["poses"])
        ncon, niter = ncon + float(sums[0]), niter + float(sums[1])
        steps = min((first + count) * plan.every, plan.nstep) - first * plan.every
        progress(steps * plan.nworld)
    jax.block_until_ready(d)
    total = plan.nstep * plan.nworld
    return RolloutResult(
        d, _join(states), _join(poses), ncon / total, niter / total, compile_s, time.perf_counter() - start
    )


def _join(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}


def _record(d: Data, plan: RolloutPlan) -> dict[str, dict[str, Array]]:
    """Records of one frame."""
    poses = {}
    if plan.poses:
        poses = {name.replace(".", "_"): x[plan.world] for name, x in select(d, POSE).items()}
    return {"states": select(d, RECORDED) if plan.states else {}, "poses": poses}


def _chunk(m: Model, d: Data, first: Array, *, plan: RolloutPlan, controls: Callable, size: int) -> tuple:
    """Data after frames `first`, `first + 1`, ..., at most `size`, their records, and sums of ncon and solver_niter."""
    step = jax.vmap(jaxsim.step, in_axes=(None, 0))

    def one_step(i: Array, carry: tuple) -> tuple:
        d, sums = carry
        d = step(m, d.replace(ctrl=controls(i, d.ctrl)))
        return d, sums + jnp.stack([jnp.sum(d.ncon), jnp.sum(d.solver_niter)]).astype(sums.dtype)

    def one_frame(k: Array, carry: tuple) -> tuple:
        d, records, sums = carry
        begin = (first + k) * plan.every
        end = jnp.minimum(begin + plan.every, plan.nstep)
        d, sums = jax.lax.fori_loop(begin, end, one_step, (d, sums))
        records = jax.tree.map(lambda all, x: all.at[k].set(x), records, _record(d, plan))
        return d, records, sums

    records = jax.tree.map(lambda x: jnp.zeros((size, *x.shape), x.dtype), _record(d, plan))
    count = jnp.minimum(size, plan.nframe - first)
    return jax.lax.fori_loop(0, count, one_frame, (d, records, jnp.zeros(2, d.qpos.dtype)))


def diagnostics(m: Model, d: Data) -> list[str]:
    """Report overflow, divergence and invalid controls in a batch, a sentence with its remedy for each."""
    worlds = np.asarray(d.time).size
    found = []
    capacity = suggest_capacity(m, d)
    for what in ("contacts", "constraints"):
        option = f"max_{what}"
        dropped = np.atleast_1d(np.asarray(getattr(d, f"overflow_{what}")))
        if dropped.any():
            found.append(
                f"{int(dropped.sum())} {what} were dropped in {int((dropped > 0).sum())} of {worlds} worlds: the "
                f"capacity is {getattr(m, option)}; load with {option}={getattr(capacity, option)} "
                f"(--{option.replace('_', '-')} {getattr(capacity, option)})"
            )
    warnings = np.asarray(d.warning.number).reshape(worlds, -1)
    state = np.concatenate([np.asarray(d.qpos).reshape(worlds, -1), np.asarray(d.qvel).reshape(worlds, -1)], axis=1)
    bad = (warnings[:, list(DIVERGED)].sum(-1) > 0) | ~np.isfinite(state).all(-1)
    if bad.any():
        found.append(
            f"{int(bad.sum())} of {worlds} worlds diverged (first: world {int(np.argmax(bad))}) and were reset where "
            "autoreset is on; use a smaller timestep, lower gains, or more damping"
        )
    bad_ctrl = warnings[:, WarningType.BADCTRL]
    if bad_ctrl.any():
        found.append(f"{int((bad_ctrl > 0).sum())} of {worlds} worlds had a control that is not finite; it was zeroed")
    return found
