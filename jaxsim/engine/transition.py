"""Derivatives of a step by the state, the activations and the controls: the linearised system."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.data import Data
from jaxsim.engine import forward
from jaxsim.engine.integrate import integrate_pos
from jaxsim.engine.support import assemble
from jaxsim.math.arrays import take
from jaxsim.math.rotation import quat_conj, quat_mul, quat_normalize, quat_to_rotvec
from jaxsim.math.safe import Array
from jaxsim.model import Model
from jaxsim.types import JointType


class Transition(NamedTuple):
    """dx' = A dx + B du and dy = C dx + D du, where x = (displacement, qvel, act) and y is sensordata.

    A (n, n), B (n, nu), C (nsensordata, n), D (nsensordata, nu) with n = 2 nv + na; mjd_transitionFD's layout.
    """

    A: Array
    B: Array
    C: Array
    D: Array


def differentiate_pos(m: Model, qpos1: Array, qpos2: Array, dt: Array | float = 1.0) -> Array:
    """The velocity (nv,) that moves qpos1 to qpos2 in the time dt: mj_differentiatePos. Inverse of `integrate_pos`."""
    scalar = np.flatnonzero(np.isin(m.jnt_type, (JointType.HINGE, JointType.SLIDE)))
    free = np.flatnonzero(m.jnt_type == JointType.FREE)
    turning = np.flatnonzero(np.isin(m.jnt_type, (JointType.FREE, JointType.BALL)))
    three = np.arange(3)
    flat = np.concatenate([m.jnt_qposadr[scalar], (m.jnt_qposadr[free][:, None] + three).reshape(-1)])
    dofs = np.concatenate([m.jnt_dofadr[scalar], (m.jnt_dofadr[free][:, None] + three).reshape(-1)])
    parts = [(dofs, take(qpos2, flat) - take(qpos1, flat))]
    if len(turning):
        lead = np.where(m.jnt_type[turning] == JointType.FREE, 3, 0)
        at = (m.jnt_qposadr[turning] + lead)[:, None] + np.arange(4)
        q1, q2 = (quat_normalize(take(q, at)) for q in (qpos1, qpos2))
        rotation = quat_to_rotvec(quat_mul(quat_conj(q1), q2))
        parts.append((((m.jnt_dofadr[turning] + lead)[:, None] + three).reshape(-1), rotation.reshape(-1)))
    return assemble(parts, m.nv, qpos1) / dt


def transition_derivatives(
    m: Model, d: Data, step: Callable[[Model, Data], Data] | None = None, mode: str = "forward"
) -> Transition:
    """Exact derivatives of one step at the state and controls of `d`; batch them with `jax.vmap`.

    Positions move along `integrate_pos`, so quaternions count three numbers. `mode` "forward" propagates 2 nv + na + nu
    directions in one vectorised pass, "reverse" one for each output. `step` is the function that makes the step, by
    default `jaxsim.step`.
    """
    step = step or forward.step
    nv, na, nu = m.nv, m.na, m.nu
    one = jnp.ones((), d.qpos.dtype)

    def outcome(z: Array) -> tuple[Array, Array]:
        dq, dv, da, du = jnp.split(z, (nv, 2 * nv, 2 * nv + na))
        qpos = integrate_pos(m, d.qpos, dq, one) if nv else d.qpos
        new = step(m, d.replace(qpos=qpos, qvel=d.qvel + dv, act=d.act + da, ctrl=d.ctrl + du))
        moved = differentiate_pos(m, jax.lax.stop_gradient(new.qpos), new.qpos)
        return jnp.concatenate([moved, new.qvel, new.act]), new.sensordata

    jacobian = {"forward": jax.jacfwd, "reverse": jax.jacrev}[mode]
    state, sensor = jacobian(outcome)(jnp.zeros(2 * nv + na + nu, d.qpos.dtype))
    n = 2 * nv + na
    return Transition(state[:, :n], state[:, n:], sensor[:, :n], sensor[:, n:])
