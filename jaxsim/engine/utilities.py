"""Small utilities by MuJoCo's names: velocities and accelerations of objects, products and solves with M, and more."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.data import Data, reset_to_keyframe
from jaxsim.core.model import Model
from jaxsim.core.types import MINVAL, JointType
from jaxsim.engine import tables
from jaxsim.engine.collision.distance import distance
from jaxsim.engine.dynamics import objects
from jaxsim.engine.dynamics.factor import factor, strict_lower
from jaxsim.engine.dynamics.inertia import full_m, mul_m, solve_m
from jaxsim.engine.dynamics.rne import contact_forces
from jaxsim.engine.initial import reset_data
from jaxsim.engine.integrate.explicit import integrate_pos
from jaxsim.math.arrays import dot, einsum, matvec, merge, take, take_or_zero
from jaxsim.math.rotation import quat_mul, quat_normalize, quat_to_mat
from jaxsim.math.safe import Array


def objectVelocity(m: Model, d: Data, objtype: int, objid: int, flg_local: bool = False) -> Array:
    """Velocity (6,), angular first, of a body, geom, site or camera, in the global or its own frame.

    `objtype` is an mjtObj and `objid` an id, both known while tracing. Source: mj_objectVelocity; needs `com_vel`.
    """
    return objects.velocities(m, d, np.array([objtype]), np.array([objid]), bool(flg_local))[0]


def objectAcceleration(m: Model, d: Data, objtype: int, objid: int, flg_local: bool = False) -> Array:
    """The same for the acceleration, gravity included: mj_objectAcceleration; needs `rne_post_constraint`."""
    return objects.accelerations(m, d, np.array([objtype]), np.array([objid]), bool(flg_local))[0]


def contactForce(m: Model, d: Data, contact: Any) -> Array:
    """Force and torque (6,) of a contact in its frame, zero for what is no active contact: mj_contactForce.

    `contact` may be traced; map over `jnp.arange(m.max_contacts)` for all.
    """
    if not d.efc.layout.ncontact:
        return jnp.zeros(6, d.qpos.dtype)
    there = (contact >= 0) & (contact < d.ncon) & (d.contact.efc_address[contact] >= 0)
    return jnp.where(there, contact_forces(d)[contact], 0)


def geomDistance(m: Model, d: Data, geom1: Any, geom2: Any, distmax: Any) -> tuple[Array, Array]:
    """Smallest distance between geoms, at most `distmax`, and the segment (6,) between them: mj_geomDistance.

    Ids are known while tracing: two numbers, or arrays (n,) for n pairs at once.
    """
    return distance(m, d, geom1, geom2, distmax)


def fullM(m: Model, d: Data) -> Array:
    """The inertia matrix, dense (nv, nv): mj_fullM."""
    return full_m(m, d)


def mulM(m: Model, d: Data, vec: Array) -> Array:
    """Product of the inertia matrix with vectors (..., nv): mj_mulM."""
    return _columns(lambda x: mul_m(m, d, x), vec)


def solveM(m: Model, d: Data, vec: Array) -> Array:
    """Solution x of M x = vec for vectors (..., nv): mj_solveM."""
    return _columns(lambda x: solve_m(m, d, x), vec)


def mulM2(m: Model, d: Data, vec: Array) -> Array:
    """Product with the root of M, sqrt(D) L where M = L' D L, of vectors (..., nv): mj_mulM2."""

    def blocks(lower: Array, x: Array) -> Array:
        return x + einsum("kij,kjc->kic", lower, x)

    return _with_root(m, d, vec, blocks, 0.5)


def solveM2(m: Model, d: Data, vec: Array) -> Array:
    """Half of a solve, inverse(sqrt(D)) inverse(L') vec, for vectors (..., nv): mj_solveM2."""

    def blocks(lower: Array, x: Array) -> Array:
        return lax.linalg.triangular_solve(lower, x, left_side=True, lower=True, transpose_a=True, unit_diagonal=True)

    return _with_root(m, d, vec, blocks, -0.5)


def _with_root(m: Model, d: Data, vec: Array, blocks: Any, power: float) -> Array:
    ld, inverse = factor(m, d.M)  # made again: the factor in `d` carries no derivative

    def product(x: Array) -> Array:
        parts = [
            blocks(take_or_zero(ld, lower), take(x, block.dofs)).reshape(-1, x.shape[-1])
            for block, lower in zip(tables.inertia_blocks(m), strict_lower(m), strict=True)
        ]
        return take(jnp.concatenate(parts), tables.dof_order(m)) * inverse[:, None] ** -power

    return _columns(product, vec) if m.nv else vec


def _columns(function: Any, vec: Array) -> Array:
    """A function of columns (nv, k) applied to rows (..., nv)."""
    vec = jnp.asarray(vec)
    return function(vec.reshape(-1, vec.shape[-1]).T).T.reshape(vec.shape)


def mulJacVec(m: Model, d: Data, vec: Array) -> Array:
    """Product of the constraint Jacobian with a vector (nv,): (max_constraints,), zero beyond nefc: mj_mulJacVec."""
    return dot(d.efc_J, jnp.asarray(vec, d.qpos.dtype))


def mulJacTVec(m: Model, d: Data, vec: Array) -> Array:
    """Product of the transposed constraint Jacobian with a vector (max_constraints,): (nv,): mj_mulJacTVec."""
    return dot(d.efc_J.T, jnp.asarray(vec, d.qpos.dtype))


def integratePos(m: Model, qpos: Array, qvel: Array, dt: Array | float) -> Array:
    """Positions moved along velocities for a time: mj_integratePos."""
    return integrate_pos(m, jnp.asarray(qpos), jnp.asarray(qvel), dt)


def normalizeQuat(m: Model, qpos: Array) -> Array:
    """Positions (nq,) with all quaternions of unit length: mj_normalizeQuat."""
    turning = np.isin(m.jnt_type, (JointType.FREE, JointType.BALL))
    first = m.jnt_qposadr[turning] + np.where(m.jnt_type[turning] == JointType.FREE, 3, 0)
    places = first[:, None] + np.arange(4)
    if not len(places):
        return qpos
    return merge(jnp.asarray(qpos), places.reshape(-1), quat_normalize(take(qpos, places)).reshape(-1))


def local2Global(m: Model, d: Data, pos: Array, quat: Array, body: Any) -> tuple[Array, Array]:
    """Position (3,) and rotation matrix (3, 3), global, of a pose in a body's frame: mj_local2Global."""
    xpos = d.xpos[body] + matvec(d.xmat[body].reshape(3, 3), jnp.asarray(pos, d.qpos.dtype))
    return xpos, quat_to_mat(quat_mul(d.xquat[body], jnp.asarray(quat, d.qpos.dtype)))


def getTotalmass(m: Model) -> Array:
    """The mass of all bodies but the world: mj_getTotalmass."""
    return m.body_mass[1:].sum()


def set_total_mass(m: Model, newmass: Array | float) -> Model:
    """`m` with all masses and inertias scaled to a total mass: mj_setTotalmass.

    What follows from masses is as it was: `set_const` recomputes it.
    """
    scale = jnp.maximum(MINVAL, newmass / jnp.maximum(MINVAL, getTotalmass(m)))
    scale = jnp.where(np.arange(m.nbody) > 0, scale, 1)
    return m.replace(body_mass=m.body_mass * scale, body_inertia=m.body_inertia * scale[:, None])


def resetDataKeyframe(m: Model, d: Data, key: int | str) -> Data:
    """`d` reset to a keyframe given by index or name: mj_resetDataKeyframe. Raises KeyError where there is none."""
    return reset_to_keyframe(m, reset_data(m, d), m.keyframe(key))
