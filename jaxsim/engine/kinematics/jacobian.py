"""Jacobians by MuJoCo's names: of points, bodies, geoms, sites and centres of mass, their rates, angular momentum.

All take the results of `com_pos` (rates those of `com_vel`), are pure, and work under jit, vmap and differentiation.
Ids are static or traced. Jacobians are (3, nv): times qvel they give global velocities.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import moving_dofs, per_structure
from jaxsim.core.types import JointType
from jaxsim.engine.structure import tables
from jaxsim.interface.public import public
from jaxsim.math.arrays import inner, take
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array, xp_of
from jaxsim.math.spatial import cross_motion, inertia_mul, shift_force, shift_motion
from jaxsim.math.tree import subtree_sum


@per_structure
def _shared(m: Any) -> np.ndarray:
    """Return the body whose subtree a dof moves within the subtree of another body, -1 for none: (nbody, nv)."""
    below = np.eye(m.nbody, dtype=bool)
    for b in range(m.nbody - 1, 0, -1):
        below[m.body_parentid[b]] |= below[b]
    body = np.arange(m.nbody)
    moves = moving_dofs(m, body)
    return np.where(moves, body[:, None], np.where(below[:, m.dof_bodyid], m.dof_bodyid, -1))


def _rows(table: Array, ids: Any) -> Array:
    """Return the rows of a table of the model or of the data for static or traced ids."""
    if isinstance(ids, np.ndarray) and ids.ndim:
        return take(table, ids)
    return table[ids] if isinstance(ids, (int, np.integer, np.ndarray)) else jnp.asarray(table)[ids]


@public
def jac(m: Model, d: Data, point: Array, body: Any) -> tuple[Array, Array]:
    """Compute the translational and rotational Jacobians of global points fixed in bodies: mj_jac.

    Args:
        point: (..., 3), global.
        body: the body of each point (...), static or traced ids.

    Returns:
        Both (..., 3, nv): times qvel they give global velocities.
    """
    xp = xp_of(point, d.cdof)
    moves = moving_dofs(m, body)[..., None]
    arm = xp.asarray(point, d.cdof.dtype) - _rows(d.subtree_com, _rows(m.body_rootid, body))
    linear = d.cdof[:, 3:] + cross(d.cdof[:, :3], arm[..., None, :])
    jacp, jacr = xp.where(moves, linear, 0), xp.where(moves, d.cdof[:, :3], 0)
    return xp.swapaxes(jacp, -1, -2), xp.swapaxes(jacr, -1, -2)


@public
def jac_body(m: Model, d: Data, body: Any) -> tuple[Array, Array]:
    """Compute the Jacobians of a body's frame: mj_jacBody."""
    return jac(m, d, d.xpos[body], body)


@public
def jac_body_com(m: Model, d: Data, body: Any) -> tuple[Array, Array]:
    """Compute the Jacobians of a body's centre of mass: mj_jacBodyCom."""
    return jac(m, d, d.xipos[body], body)


@public
def jac_geom(m: Model, d: Data, geom: Any) -> tuple[Array, Array]:
    """Compute the Jacobians of a geom's frame: mj_jacGeom."""
    return jac(m, d, d.geom_xpos[geom], _rows(m.geom_bodyid, geom))


@public
def jac_site(m: Model, d: Data, site: Any) -> tuple[Array, Array]:
    """Compute the Jacobians of a site's frame: mj_jacSite."""
    return jac(m, d, d.site_xpos[site], _rows(m.site_bodyid, site))


@public
def jac_point_axis(m: Model, d: Data, point: Array, axis: Array, body: Any) -> tuple[Array, Array]:
    """Compute the Jacobians of a global point and of a global axis (3,) fixed in a body: mj_jacPointAxis."""
    jacp, jacr = jac(m, d, point, body)
    return jacp, cross(jacr.T, jnp.asarray(axis, jacr.dtype)).T


@public
def jac_subtree_com(m: Model, d: Data, body: Any) -> Array:
    """Compute the Jacobian of the centre of mass of a body's subtree: mj_jacSubtreeCom."""
    part = _rows(_shared(m), body)
    mass = subtree_sum(tables.tree(m), m.body_mass[:, None])[:, 0][part]
    arm = d.subtree_com[part] - d.subtree_com[m.body_rootid[m.dof_bodyid]]
    weight = jnp.where(part >= 0, mass / m.body_subtreemass[body], 0)
    return (weight[:, None] * shift_motion(d.cdof, arm)[:, 3:]).T


@public
def angmom_mat(m: Model, d: Data, body: Any) -> Array:
    """Compute the matrix (3, nv) from qvel to the angular momentum of a body's subtree: mj_angmomMat.

    The momentum is about the subtree's centre of mass.
    """
    part = _rows(_shared(m), body)
    composite = subtree_sum(tables.tree(m), d.cinert)[part]
    arm = d.subtree_com[m.body_rootid[m.dof_bodyid]] - d.subtree_com[body]
    momentum = shift_force(inertia_mul(composite, d.cdof), arm)
    return jnp.where(part[:, None] >= 0, momentum[:, :3], 0).T


@public
def jac_dot(m: Model, d: Data, point: Array, body: Any) -> tuple[Array, Array]:
    """Compute the time derivatives of the Jacobians of `jac`, for a point that moves with the body: mj_jacDot."""
    turns = np.isin(m.jnt_type[m.dof_jntid], (JointType.BALL, JointType.FREE)) & ~tables.in_world(m)
    carried = cross_motion(d.cvel[m.dof_bodyid], d.cdof)
    rate = jnp.where(turns[:, None], carried, d.cdof_dot)
    arm = jnp.asarray(point, d.cdof.dtype) - d.subtree_com[_rows(m.body_rootid, body)]
    velocity = shift_motion(d.cvel[body], arm)[3:]
    linear = shift_motion(rate, arm)[:, 3:] + cross(d.cdof[:, :3], velocity)
    moves = moving_dofs(m, body)[:, None]
    return jnp.where(moves, linear, 0).T, jnp.where(moves, rate[:, :3], 0).T


@public
def apply_ft(m: Model, d: Data, force: Array, torque: Array, point: Array, body: Any) -> Array:
    """Compute the joint-space force (nv,) of a global force and torque on a body at a point, all (3,): mj_applyFT.

    MuJoCo adds it to an array; here the caller adds it.
    """
    jacp, jacr = jac(m, d, point, body)
    return inner(jacp.T, jnp.asarray(force, jacp.dtype)) + inner(jacr.T, jnp.asarray(torque, jacr.dtype))
