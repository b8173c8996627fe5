"""Derivatives of inverse dynamics by positions, velocities and accelerations: mjd_inverseFD's outputs, exact."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.core.data import Data
from jaxsim.core.describe import describe_struct
from jaxsim.core.model import Model
from jaxsim.engine.actuation.forces import fwd_actuation
from jaxsim.engine.kinematics.positions import integrate_pos
from jaxsim.engine.step.inverse import inverse
from jaxsim.interface.public import public
from jaxsim.math.safe import Array


class InverseDerivatives(NamedTuple):
    """Derivatives by rows of inputs, as in mjd_inverseFD: D*Dq by positions (tangents), D*Dv by qvel, D*Da by qacc.

    Df*: of qfrc_inverse (nv, nv); Ds*: of sensordata (nv, nsensordata); DmDq: of qM (nv, nM).
    """

    DfDq: Array
    DfDv: Array
    DfDa: Array
    DsDq: Array
    DsDv: Array
    DsDa: Array
    DmDq: Array

    __repr__ = describe_struct


@public
def inverse_derivatives(m: Model, d: Data, flg_actuation: bool = False) -> InverseDerivatives:
    """Return the exact derivatives of `inverse` at the state and acceleration of `d`; batch them with `jax.vmap`.

    With `flg_actuation` the force is qfrc_inverse less qfrc_actuator. Raises UnsupportedError where `inverse` does.
    """
    nv, one = m.nv, jnp.ones((), d.qpos.dtype)

    def outcome(z: Array) -> tuple[Array, Array, Array]:
        dq, dv, da = jnp.split(z, 3)
        qpos = integrate_pos(m, d.qpos, dq, one) if nv else d.qpos
        new = inverse(m, d.replace(qpos=qpos, qvel=d.qvel + dv, qacc=d.qacc + da))
        force = new.qfrc_inverse
        if flg_actuation:
            force = force - fwd_actuation(m, new).qfrc_actuator
        return force, new.sensordata, new.qM

    force, sensor, mass = (j.T for j in jax.jacfwd(outcome)(jnp.zeros(3 * nv, d.qpos.dtype)))
    return InverseDerivatives._make((*jnp.split(force, 3), *jnp.split(sensor, 3), mass[:nv]))
