"""Integrators: each advances the state by one time step from the results of `forward`."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.data import Data
from jaxsim.core.flags import disabled
from jaxsim.core.model import Model
from jaxsim.core.structure import Structure
from jaxsim.core.types import DisableBit
from jaxsim.engine.actuation.forces import advance_activation
from jaxsim.engine.dynamics.inertia import solve_positive, solve_spd
from jaxsim.engine.dynamics.inertia_jvp import inertia_parts
from jaxsim.engine.kinematics.positions import integrate_pos
from jaxsim.engine.sensor.stages import undelayed
from jaxsim.engine.solver.implicit_diff import SOLUTION
from jaxsim.engine.structure import tables
from jaxsim.engine.structure.damping import dof_damping, is_damped, poly_force_derivative
from jaxsim.engine.structure.history import record
from jaxsim.interface.public import public
from jaxsim.math.arrays import take_or_zero
from jaxsim.math.safe import Array
from jaxsim.native.stage import KEPT

# Values that reverse mode saves of an evaluation besides the state before it, to avoid a second solve and kernels.
SAVED = jax.checkpoint_policies.save_only_these_names(SOLUTION, KEPT)


def advance(m: Model, d: Data, act_dot: Array, qacc: Array, qvel: Array | None = None) -> Data:
    """Advance the state by one time step: activations, velocities, positions, time.

    Positions move along `qvel`, if given, else along the new velocity.
    """
    h = m.opt.timestep
    new_qvel = d.qvel + h * qacc
    if m.nhistory:
        d = d.replace(history=record(m, d, undelayed(m, d)))
    return d.replace(
        act=advance_activation(m, d, act_dot),
        qvel=new_qvel,
        qpos=integrate_pos(m, d.qpos, new_qvel if qvel is None else qvel, h),
        time=d.time + h,
        qacc_warmstart=d.qacc,
    )


@public
def euler(m: Model, d: Data) -> Data:
    """Advance by semi-implicit Euler: new velocities move the positions; damping of dofs is implicit."""
    if disabled(m, DisableBit.EULERDAMP) or disabled(m, DisableBit.DAMPER) or not m.nv:
        return advance(m, d, d.act_dot, d.qacc)
    damping, poly = dof_damping(m)
    derivative = m.opt.timestep * poly_force_derivative(damping, poly, abs(d.qvel))

    @partial(jax.checkpoint, prevent_cse=False)  # else a derivative's condition returns all arrays that it needs
    def implicit_qacc() -> Array:
        matrix = d.M + take_or_zero(derivative, tables.diagonal(m))
        return solve_positive(m, matrix, d.qfrc_smooth + d.qfrc_constraint, inertia_parts(m, d, derivative))

    def explicit_qacc() -> Array:
        return _undamped(m.structure, d.qacc, derivative, d.M, d.qLD, d.qLDiagInv)

    return advance(m, d, d.act_dot, lax.cond(is_damped(m, damping, poly), implicit_qacc, explicit_qacc))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _undamped(structure: Structure, qacc: Array, derivative: Array, *inertia: Array) -> Array:
    """Return accelerations without damping, with derivatives by the damping that hold at the onset of damping."""
    return qacc


@_undamped.defjvp
def _undamped_jvp(structure: Structure, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    qacc, derivative, matrix, ld, inverse = primals
    begins = jnp.where(derivative == 0, tangents[1] * qacc, 0)
    return qacc, tangents[0] - solve_spd(structure, matrix, ld, inverse, begins)


# weight of the last derivatives in the state, time, and weight in the sum, of each evaluation
RK4 = ((0, 0, 1 / 6), (0.5, 0.5, 1 / 3), (0.5, 0.5, 1 / 3), (1, 1, 1 / 6))


def integrate_rk4(m: Model, d: Data, evaluate: Callable[[Model, Data], Data]) -> Data:
    """Advance from the results of `forward` by the classical fourth-order method.

    `evaluate(m, d)` is the forward dynamics without sensors.
    """
    sums = _accumulate(tuple(jnp.zeros_like(x) for x in _slopes(d)), d, jnp.asarray(RK4[0][2], m.opt.timestep.dtype))
    last, _, sums = _evaluations(m, d, evaluate, sums, None)
    return advance(m, last, sums[2], sums[1], sums[0])


def rk4_step(
    m: Model,
    d: Data,
    evaluate: Callable[[Model, Data], Data],
    complete: Callable[[Data], Data],
    check: Callable[[Model, Data], tuple[Data, Array]],
) -> tuple[Data, Data, Array]:
    """Advance by a whole step from a state; all four evaluations share one body, so that it is compiled once.

    Args:
        complete: further computations of the first evaluation.
        check: function that returns data, reset if the acceleration of the first evaluation has diverged, and the
            flag whether it was reset.

    Returns:
        The data after the step, that before it with the results of the step, and the flag of `check`.
    """
    last, qacc, sums = _evaluations(m, d, evaluate, tuple(jnp.zeros_like(x) for x in _slopes(d)), complete)
    before, flag = check(m, last.replace(qacc=qacc))
    before = before.replace(qacc=jnp.where(flag, before.qacc, last.qacc))
    return advance(m, before, sums[2], sums[1], sums[0]), before, flag


def _evaluations(
    m: Model, start: Data, evaluate: Callable, sums: tuple[Array, ...], complete: Callable[[Data], Data] | None
) -> tuple[Data, Array, tuple[Array, ...]]:
    """Return the last evaluation, at the state of `start`, the acceleration of the first, and sums of derivatives."""
    h = m.opt.timestep

    def one(carry: Any, row: tuple[Array, ...]) -> tuple[Any, None]:
        d, qacc, sums = carry
        is_first, weight, ahead, share = row
        slopes = _slopes(d)
        if complete:  # in the first evaluation, derivatives may be NaN
            slopes = tuple(jnp.where(is_first, 0, x) for x in slopes)
        d = d.replace(
            qpos=integrate_pos(m, start.qpos, weight * slopes[0], h),
            qvel=start.qvel + h * weight * slopes[1],
            act=start.act + h * weight * slopes[2],
            time=start.time + ahead * h,
        )
        d = evaluate(m, d)
        if complete:
            qacc = jnp.where(is_first, d.qacc, qacc)
            d = lax.cond(is_first, complete, lambda d: d, d)
        return (d, qacc, _accumulate(sums, d, share)), None

    rows = RK4 if complete else RK4[1:]
    table = np.array(rows).astype(h.dtype).T
    body = jax.checkpoint(one, policy=SAVED, prevent_cse=False)  # reverse mode keeps one state for each evaluation
    xs = tuple(map(jnp.asarray, (np.arange(len(rows)) == 0, *table)))
    (last, qacc, sums), _ = lax.scan(body, (start, start.qacc, sums), xs)
    state = {name: getattr(start, name) for name in ("qpos", "qvel", "act", "time")}
    return last.replace(**state), qacc, sums


def _slopes(d: Data) -> tuple[Array, ...]:
    return d.qvel, d.qacc, d.act_dot


def _accumulate(sums: tuple[Array, ...], d: Data, share: Array) -> tuple[Array, ...]:
    return tuple(s + share * x for s, x in zip(sums, _slopes(d), strict=True))
