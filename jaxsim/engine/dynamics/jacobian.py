"""Jacobians by MuJoCo's names: of points, bodies, geoms, sites and centres of mass, their rates, angular momentum.

All take the results of `com_pos` (rates those of `com_vel`), are pure, and work under jit, vmap and differentiation.
Ids may be numbers or traced. Jacobians are (3, nv): times qvel they give global velocities.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import moving_dofs, per_structure
from jaxsim.core.types import JointType
from jaxsim.engine import tables
from jaxsim.math.arrays import inner
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array
from jaxsim.math.spatial import cross_motion, inertia_mul, shift_force, shift_motion
from jaxsim.math.tree import subtree_sum


@per_structure
def _moves(m: Any) -> np.ndarray:
    """Whether each dof moves each body: (nbody, nv)."""
    return moving_dofs(m, np.arange(m.nbody))


@per_structure
def _shared(m: Any) -> np.ndarray:
    """The body whose subtree is what a dof moves of the subtree of another, -1 if nothing: (nbody, nv)."""
    below = np.eye(m.nbody, dtype=bool)
    for b in range(m.nbody - 1, 0, -1):
        below[m.body_parentid[b]] |= below[b]
    body = np.arange(m.nbody)[:, None]
    return np.where(_moves(m), body, np.where(below[:, m.dof_bodyid], m.dof_bodyid, -1))


def at(table: np.ndarray, index: Any) -> Array:
    """The row of a static table for an id that is a number or traced."""
    return table[index] if isinstance(index, (int, np.integer)) else jnp.asarray(table)[index]


def jac(m: Model, d: Data, point: Array, body: Any) -> tuple[Array, Array]:
    """Translational and rotational Jacobian of a global point (3,) fixed in a body: mj_jac."""
    moves = at(_moves(m), body)[:, None]
    arm = jnp.asarray(point, d.cdof.dtype) - d.subtree_com[at(m.body_rootid, body)]
    motion = jnp.where(moves, shift_motion(d.cdof, arm), 0)
    return motion[:, 3:].T, motion[:, :3].T


def jac_body(m: Model, d: Data, body: Any) -> tuple[Array, Array]:
    """Jacobians of a body's frame: mj_jacBody."""
    return jac(m, d, d.xpos[body], body)


def jac_body_com(m: Model, d: Data, body: Any) -> tuple[Array, Array]:
    """Jacobians of a body's centre of mass: mj_jacBodyCom."""
    return jac(m, d, d.xipos[body], body)


def jac_geom(m: Model, d: Data, geom: Any) -> tuple[Array, Array]:
    """Jacobians of a geom's frame: mj_jacGeom."""
    return jac(m, d, d.geom_xpos[geom], at(m.geom_bodyid, geom))


def jac_site(m: Model, d: Data, site: Any) -> tuple[Array, Array]:
    """Jacobians of a site's frame: mj_jacSite."""
    return jac(m, d, d.site_xpos[site], at(m.site_bodyid, site))


def jac_point_axis(m: Model, d: Data, point: Array, axis: Array, body: Any) -> tuple[Array, Array]:
    """Jacobians of a global point and of a global axis (3,) fixed in a body: mj_jacPointAxis."""
    jacp, jacr = jac(m, d, point, body)
    return jacp, cross(jacr.T, jnp.asarray(axis, jacr.dtype)).T


def jac_subtree_com(m: Model, d: Data, body: Any) -> Array:
    """Jacobian of the centre of mass of a body's subtree: mj_jacSubtreeCom."""
    part = at(_shared(m), body)
    mass = subtree_sum(tables.tree(m), m.body_mass[:, None])[:, 0][part]
    arm = d.subtree_com[part] - d.subtree_com[m.body_rootid[m.dof_bodyid]]
    weight = jnp.where(part >= 0, mass / m.body_subtreemass[body], 0)
    return (weight[:, None] * shift_motion(d.cdof, arm)[:, 3:]).T


def angmom_mat(m: Model, d: Data, body: Any) -> Array:
    """Matrix (3, nv) from qvel to the angular momentum of a body's subtree about its centre of mass: mj_angmomMat."""
    part = at(_shared(m), body)
    composite = subtree_sum(tables.tree(m), d.cinert)[part]
    arm = d.subtree_com[m.body_rootid[m.dof_bodyid]] - d.subtree_com[body]
    momentum = shift_force(inertia_mul(composite, d.cdof), arm)
    return jnp.where(part[:, None] >= 0, momentum[:, :3], 0).T


def jac_dot(m: Model, d: Data, point: Array, body: Any) -> tuple[Array, Array]:
    """Time derivatives of the Jacobians that `jac` gives, for a point that moves with the body: mj_jacDot."""
    kind, first = m.jnt_type[m.dof_jntid], m.jnt_dofadr[m.dof_jntid]
    turns = (kind == JointType.BALL) | ((kind == JointType.FREE) & (np.arange(m.nv) >= first + 3))
    carried = cross_motion(d.cvel[m.dof_bodyid], d.cdof)
    rate = jnp.where(turns[:, None], carried, d.cdof_dot)
    arm = jnp.asarray(point, d.cdof.dtype) - d.subtree_com[at(m.body_rootid, body)]
    velocity = shift_motion(d.cvel[body], arm)[3:]
    linear = shift_motion(rate, arm)[:, 3:] + cross(d.cdof[:, :3], velocity)
    moves = at(_moves(m), body)[:, None]
    return jnp.where(moves, linear, 0).T, jnp.where(moves, rate[:, :3], 0).T


def apply_ft(m: Model, d: Data, force: Array, torque: Array, point: Array, body: Any) -> Array:
    """The joint-space force (nv,) of a global force at a point of a body and a torque on it, all (3,): mj_applyFT.

    The reference adds it to an array; add it to what you have.
    """
    jacp, jacr = jac(m, d, point, body)
    return inner(jacp.T, jnp.asarray(force, jacp.dtype)) + inner(jacr.T, jnp.asarray(torque, jacr.dtype))
