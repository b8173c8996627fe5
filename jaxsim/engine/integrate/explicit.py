"""Integrators: each advances the state by one time step from the results of `forward`."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.data import Data
from jaxsim.core.flags import disabled
from jaxsim.core.model import Model
from jaxsim.core.structure import Structure
from jaxsim.core.types import DisableBit
from jaxsim.engine import tables
from jaxsim.engine.actuation.forces import advance_activation
from jaxsim.engine.actuation.history import record
from jaxsim.engine.damping import dof_damping, is_damped, poly_force_derivative
from jaxsim.engine.dynamics.inertia import solve_positive, solve_spd
from jaxsim.engine.dynamics.inertia_jvp import inertia_parts
from jaxsim.engine.integrate.positions import integrate_pos
from jaxsim.engine.sensor.stages import undelayed
from jaxsim.interface.public import public
from jaxsim.math.arrays import take_or_zero
from jaxsim.math.safe import Array


def advance(m: Model, d: Data, act_dot: Array, qacc: Array, qvel: Array | None = None) -> Data:
    """The state one time step on: activations, velocities, positions (along `qvel`, else the new velocity), time."""
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
    """Semi-implicit Euler: new velocities move the positions; damping of dofs is implicit."""
    if disabled(m, DisableBit.EULERDAMP) or disabled(m, DisableBit.DAMPER) or not m.nv:
        return advance(m, d, d.act_dot, d.qacc)
    damping, poly = dof_damping(m)
    derivative = m.opt.timestep * poly_force_derivative(damping, poly, abs(d.qvel))

    def implicit_qacc() -> Array:
        matrix = d.M + take_or_zero(derivative, tables.diagonal(m))
        return solve_positive(m, matrix, d.qfrc_smooth + d.qfrc_constraint, inertia_parts(m, d, derivative))

    def explicit_qacc() -> Array:
        return _undamped(m.structure, d.qacc, derivative, d.M, d.qLD, d.qLDiagInv)

    return advance(m, d, d.act_dot, lax.cond(is_damped(m, damping, poly), implicit_qacc, explicit_qacc))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _undamped(structure: Structure, qacc: Array, derivative: Array, *inertia: Array) -> Array:
    """Accelerations without damping, with derivatives by the damping that hold where damping begins."""
    return qacc


@_undamped.defjvp
def _undamped_jvp(structure: Structure, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    qacc, derivative, matrix, ld, inverse = primals
    begins = jnp.where(derivative == 0, tangents[1] * qacc, 0)
    return qacc, tangents[0] - solve_spd(structure, matrix, ld, inverse, begins)


RK4_A = ((0.5,), (0.0, 0.5), (0.0, 0.0, 1.0))
RK4_B = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
RK4_C = (0.5, 0.5, 1.0)


def integrate_rk4(m: Model, d: Data, evaluate: Callable[[Model, Data], Data]) -> Data:
    """The classical fourth-order method; `evaluate(m, d)` is the forward dynamics without sensors.

    The three further evaluations share one compiled body: a loop over the tableau, so that the program holds the
    dynamics twice, not four times.
    """
    h = m.opt.timestep
    start = d

    def stage(carry, row):
        d, sums = carry
        weight, ahead, share = row
        moved = start.replace(
            qpos=integrate_pos(m, start.qpos, weight * d.qvel, h),
            qvel=start.qvel + h * weight * d.qacc,
            act=start.act + h * weight * d.act_dot,
            time=start.time + ahead * h,
        )
        # what else the evaluation leaves in `moved` is the same for every stage
        new = evaluate(m, _with_results(moved, d))
        return (new, _accumulate(sums, new, share)), None

    sums = _accumulate(tuple(jnp.zeros_like(x) for x in (d.qvel, d.qacc, d.act_dot)), d, jnp.asarray(RK4_B[0], h.dtype))
    table = np.array([[row[-1] for row in RK4_A], RK4_C, RK4_B[1:]]).astype(h.dtype)
    (last, sums), _ = lax.scan(stage, (d, sums), tuple(jnp.asarray(x) for x in table))
    final = last.replace(time=start.time, qpos=start.qpos, qvel=start.qvel, act=start.act)
    return advance(m, final, sums[2], sums[1], sums[0])


def _accumulate(sums: tuple[Array, ...], d: Data, share: Array) -> tuple[Array, ...]:
    return tuple(s + share * x for s, x in zip(sums, (d.qvel, d.qacc, d.act_dot), strict=True))


def _with_results(moved: Data, d: Data) -> Data:
    return d.replace(qpos=moved.qpos, qvel=moved.qvel, act=moved.act, time=moved.time)
