"""Recursive Newton-Euler: the bias force, and the accelerations and forces of bodies after the constraint solve."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.rows import contact_frame_force
from jaxsim.core.types import ConstraintType, DisableBit, EqType, ObjType
from jaxsim.engine.kinematics.contact_jacobian import contact_bodies, contacts_in_buffer
from jaxsim.engine.structure import tables
from jaxsim.engine.tendon.path import bias_rate
from jaxsim.engine.tendon.tendon import mul_jac_t, tendon_armature
from jaxsim.interface.public import public
from jaxsim.math.arrays import add_at, dot, inner, matvec, matvec_t, take
from jaxsim.math.safe import Array, xp_of
from jaxsim.math.spatial import cross_force, inertia_mul, join, shift_force
from jaxsim.math.tree import dof_path_sum, dof_subtree_sum, subtree_sum
from jaxsim.native.rows import over_rows


def body_forces(m: Model, d: Data, qacc: Array | None) -> tuple[Array, Array]:
    """Compute accelerations (nbody, 6), gravity included, and the forces needed for them.

    Both are about the trees' centres of mass.
    """
    xp = xp_of(d.cdof, d.qvel)
    rate = d.cdof_dot * d.qvel[:, None]
    if qacc is not None:
        rate = rate + d.cdof * qacc[:, None]
    acceleration = dof_path_sum(tables.tree(m), rate)
    if not m.opt.disableflags & DisableBit.GRAVITY:
        acceleration = acceleration - xp.concatenate([np.zeros(3, rate.dtype), m.opt.gravity])
    force = inertia_mul(d.cinert, acceleration) + cross_force(d.cvel, inertia_mul(d.cinert, d.cvel))
    return acceleration, force


@public
def rne(m: Model, d: Data, qacc: Array | None = None) -> Array:
    """Compute the joint-space force M qacc + qfrc_bias, (nv,); without `qacc` the bias force alone."""
    _, force = body_forces(m, d, qacc)
    return inner(d.cdof, dof_subtree_sum(tables.tree(m), force))


def tendon_bias(m: Model, d: Data) -> Array:
    """Compute the bias force of the armature of tendons whose Jacobians change: (nv,)."""
    rate = bias_rate(m, d)
    if rate is None:
        return xp_of(d.qvel).zeros_like(d.qvel)
    return mul_jac_t(m, d, tendon_armature(m) * rate)


def contact_forces(d: Data) -> Array:
    """Compute the force and torque of each contact in its frame (ncontact, 6), acting on the second geom."""
    layout = d.efc.layout
    force = contact_frame_force(layout, d.contact.friction, d.efc.force[layout.offsets[3] :])
    # a frictionless contact in a pyramidal model has one edge, tilted along an absent tangent
    present = np.arange(force.shape[1], dtype=np.int32) < d.contact.dim[:, None]
    return jnp.pad(jnp.where(present, force, 0), ((0, 0), (0, 6 - force.shape[1])))


@public
def contact_force(m: Model, d: Data, contact: Any) -> Array:
    """Compute the force and torque (6,) of a contact in its frame, zero without an active contact: mj_contactForce.

    `contact` may be traced; map over `jnp.arange(m.max_contacts)` for all of them.
    """
    if not d.efc.layout.ncontact:
        return jnp.zeros(6, d.qpos.dtype)
    active = (contact >= 0) & (contact < d.ncon) & (d.contact.efc_address[contact] >= 0)
    return jnp.where(active, contact_forces(d)[contact], 0)


@public
def rne_post_constraint(m: Model, d: Data) -> Data:
    """Compute cacc, cfrc_ext and cfrc_int: accelerations and forces of bodies.

    They include forces of contacts and equalities.
    """
    root = take(d.subtree_com, m.body_rootid)
    external = shift_force(join(d.xfrc_applied[:, 3:], d.xfrc_applied[:, :3]), d.xipos - root)
    if d.efc.layout.ncontact:
        external = external + _contact_wrenches(m, d)
    external = external + _equality_wrenches(m, d)
    moving = (np.arange(m.nbody) > 0)[:, None]
    external = jnp.where(moving, external, 0)
    acceleration, force = body_forces(m, d, d.qacc)
    internal = subtree_sum(tables.tree(m), jnp.where(moving, force - external, 0))
    return d.replace(cacc=acceleration, cfrc_ext=external, cfrc_int=internal)


def _contact_wrenches(m: Model, d: Data) -> Array:
    """Compute forces of contacts on bodies about the trees' centres of mass: (nbody, 6).

    They are summed by a 0/1 product about one common point, then moved to each tree's own: a scatter is slow in a
    batch.
    """
    bodies = contact_bodies(m, d)
    if d.efc.layout.flexes:  # as in MuJoCo, without contacts of flexes
        bodies = jnp.where((d.contact.flex >= 0).any(1, keepdims=True), 0, bodies)

    def of_contacts(common: Array, rows: tuple[Array, ...]) -> tuple[tuple[()], Array]:
        frame, pos, local, bodies = rows
        axes, everybody = frame.reshape(-1, 3, 3), np.arange(m.nbody, dtype=np.int32)[:, None]
        force, torque = matvec_t(axes, local[:, :3]), matvec_t(axes, local[:, 3:])
        side = (bodies[:, 1] == everybody).astype(pos.dtype) - (bodies[:, 0] == everybody).astype(pos.dtype)
        return (), dot(side, shift_force(join(torque, force), pos - common))

    common, rows = d.subtree_com[0], (d.contact.frame, d.contact.pos, contact_forces(d), bodies)
    total = over_rows(of_contacts, contacts_in_buffer(d), common, rows)[1]
    return shift_force(total, common - take(d.subtree_com, m.body_rootid))


def _equality_wrenches(m: Model, d: Data) -> Array | float:
    """Compute forces of connects and welds on bodies about the trees' centres of mass."""
    general = d.efc.layout.general
    first = (general.type == ConstraintType.EQUALITY) & (general.row == 0)
    slot = np.flatnonzero(first)
    slot = slot[np.isin(m.eq_type[general.id[slot]], (EqType.CONNECT, EqType.WELD))]
    if len(slot) == 0:
        return 0.0
    ids = general.id[slot]
    weld = m.eq_type[ids] == EqType.WELD
    force = take(d.efc.force, slot[:, None] + np.arange(3))
    turn = take(d.efc.force, np.where(weld, slot + 3, slot)[:, None] + np.arange(3))
    torque = jnp.where(weld[:, None], turn, 0)
    by_site = m.eq_objtype[ids] == ObjType.SITE
    data = take(m.eq_data, ids)
    total = 0.0
    for objects, own, sign in ((m.eq_obj1id[ids], weld, 1.0), (m.eq_obj2id[ids], ~weld, -1.0)):
        body = np.where(by_site, m.site_bodyid[np.where(by_site, objects, 0)] if m.nsite else 0, objects)
        local = jnp.where(own[:, None], data[:, 3:6], data[:, :3])
        if by_site.any():
            local = jnp.where(by_site[:, None], take(m.site_pos, np.where(by_site, objects, 0)), local)
        mat = take(d.xmat.reshape(-1, 3, 3), body)
        arm = take(d.xpos, body) + matvec(mat, local) - take(d.subtree_com, m.body_rootid[body])
        total = total + add_at(body, sign * shift_force(join(torque, force), arm), m.nbody)
    return total
