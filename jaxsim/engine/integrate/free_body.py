"""Free bodies without constraints: rotation by the implicit midpoint rule, which conserves energy and momentum."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.data import Data
from jaxsim.core.flags import disabled
from jaxsim.core.layout import Layout
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import DisableBit
from jaxsim.engine.integrate.explicit import advance
from jaxsim.engine.kinematics.contact_jacobian import contact_bodies
from jaxsim.engine.kinematics.sparse_contact import make_operator, touched_dofs
from jaxsim.engine.structure import tables
from jaxsim.math.arrays import add_at, assemble, inner, take
from jaxsim.math.rotation import cross, quat_conj, quat_mul, quat_rotate, rotvec_to_quat
from jaxsim.math.safe import Array, divide, norm

ITERATIONS = 12
STEPS = 0.5 ** np.arange(6)  # lengths that the line search tries, the longest first


@per_structure
def _lone_joints(m) -> np.ndarray:
    """Return the free joints whose trees have no other dof."""
    free = tables.joint_coordinates(m).free
    return free[m.tree_dofnum[m.dof_treeid[m.jnt_dofadr[free]]] == 6]


def _pulled(layout: Layout, efc: Any, dofs: np.ndarray, nv: int) -> Array:
    """Return the mask of dofs (nv,) on which active general rows of a sparse layout act; false for all others."""
    row, column = np.nonzero(np.isin(layout.columns, dofs))
    acts = efc.active[row] & (efc.J_general[row, column] != 0)
    return add_at(layout.columns[row, column], acts.astype(efc.J_general.dtype), nv) > 0


def _constrained(m: Model, d: Data, joint: np.ndarray) -> Array:
    """Return the mask of dofs of free joints (k, 6) on which an active constraint acts."""
    efc, dofs = d.efc, m.jnt_dofadr[joint][:, None] + np.arange(6)
    layout = efc.layout
    _, friction, limit, _, _ = layout.offsets
    touched = jnp.zeros(m.nv, bool)
    if layout.ngeneral and layout.sparse:
        touched = touched | _pulled(layout, efc, dofs, m.nv)
    elif layout.ngeneral:
        touched = touched | (efc.active[:friction, None] & (efc.J_general != 0)).any(0)
    if not disabled(m, DisableBit.ISLAND):
        touched = touched | efc.active[friction:limit]
    if layout.ncontact:
        real = d.contact.efc_address >= 0
        if layout.sparse:
            touched = touched | touched_dofs(layout, make_operator(d, layout), real)
        elif layout.flexes:
            touched = touched | (real[:, None, None] & (efc.J_contact != 0)).any((0, 1))
        else:
            sides = jnp.where(real[:, None], contact_bodies(m, d), 0)
            return take(touched, dofs) | (sides == m.jnt_bodyid[joint][:, None, None]).any((1, 2))[:, None]
    return take(touched, dofs)


def midpoint(m: Model, d: Data, force: Array, qacc: Array) -> Data:
    """Advance with `qacc`, except for eligible free bodies, which use the midpoint rule.

    A body is eligible without children, in vacuum, and without an active constraint.
    """
    joint = _lone_joints(m)
    new = advance(m, d, d.act_dot, qacc)
    if len(joint) == 0:
        return new
    body = m.jnt_bodyid[joint]
    dofs = m.jnt_dofadr[joint][:, None] + np.arange(6)
    vacuum = (m.opt.density == 0) & (m.opt.viscosity == 0)
    alone = take(m.body_subtreemass, body) == take(m.body_mass, body)
    eligible = vacuum & alone & ~_constrained(m, d, joint).any(1)
    aligned = (take(m.body_ipos, body) == 0).all(1)
    old = take(d.qvel, dofs)
    fresh = _next_velocity(m, d, body, old, take(force + d.qfrc_bias, dofs), eligible)
    # with the centre of mass at the joint's origin, the translation has the usual update
    applies = eligible[:, None] & (~aligned[:, None] | (np.arange(6) >= 3))

    def overwrite(x: Array, value: Array) -> Array:
        return _replace(m, x, dofs, jnp.where(applies, value, take(x, dofs)))

    middle = overwrite(new.qvel, 0.5 * (fresh + old))
    out = advance(m, d, d.act_dot, qacc, middle)
    return out.replace(
        qvel=overwrite(out.qvel, fresh),
        qacc=overwrite(d.qacc, (fresh - old) / m.opt.timestep),
    )


def _replace(m: Model, x: Array, dofs: np.ndarray, value: Array) -> Array:
    others = np.setdiff1d(np.arange(m.nv), dofs)
    return assemble([(others, take(x, others)), (dofs.reshape(-1), value.reshape(-1))], m.nv, x)


def _next_velocity(m: Model, d: Data, body: np.ndarray, qvel: Array, force: Array, needed: Array) -> Array:
    """Compute new velocities (k, 6), linear global then angular local, of rigid bodies under constant forces (k, 6).

    Where not `needed` (k,), they have no meaning.
    """
    h, mass = m.opt.timestep, take(m.body_mass, body)[:, None]
    iquat, xquat, offset = take(m.body_iquat, body), take(d.xquat, body), take(m.body_ipos, body)
    to_inertial = quat_conj(iquat)
    from_world = quat_mul(to_inertial, quat_conj(xquat))
    w, torque = quat_rotate(to_inertial, qvel[:, 3:]), quat_rotate(to_inertial, force[:, 3:])
    push, arm = quat_rotate(from_world, force[:, :3]), quat_rotate(to_inertial, offset)
    torque = torque - cross(arm, push)
    w_mid = _middle_spin(take(m.body_inertia, body), w, torque, h, needed)
    w_new = quat_rotate(iquat, 2 * w_mid - w)

    v = quat_rotate(from_world, qvel[:, :3])
    rate = 2 / h
    drive = divide(push, mass) + rate * (v + cross(w, arm))
    if not disabled(m, DisableBit.GRAVITY):
        drive = drive + quat_rotate(from_world, jnp.broadcast_to(m.opt.gravity, drive.shape))
    # (rate + w_mid x) v_com = drive, solved in closed form
    along = inner(w_mid, drive)[:, None] / rate * w_mid
    v_com = (rate * drive + along - cross(w_mid, drive)) / (rate * rate + (w_mid * w_mid).sum(1, keepdims=True))
    v_new = 2 * (v_com - cross(w_mid, arm)) - v
    turned = quat_mul(xquat, rotvec_to_quat(quat_rotate(iquat, w_mid) * h))
    return jnp.concatenate([quat_rotate(turned, quat_rotate(iquat, v_new)), w_new], axis=1)


def _middle_spin(inertia: Array, w: Array, torque: Array, h: Array, needed: Array) -> Array:
    """Solve for the angular velocity at the midpoint: 2/h I (x - w) + x cross I x = torque, (k, 3) in principal axes.

    Newton's method with a line search runs without derivatives, where `needed` (k,), until no step improves. One more
    step, differentiated, gives the derivatives of the solution.
    """

    def residual(x: Array, inertia: Array, w: Array, torque: Array, h: Array) -> Array:
        return 2 / h * inertia * (x - w) + cross(x, inertia * x) - torque

    def newton(x: Array, args: tuple[Array, ...], f: Array) -> Array:
        inertia, _, _, h = lax.stop_gradient(args)
        a, b, c = inertia[:, 0], inertia[:, 1], inertia[:, 2]
        x0, x1, x2 = x[:, 0], x[:, 1], x[:, 2]
        rows = [
            jnp.stack([2 / h * a, x2 * (c - b), x1 * (c - b)], axis=1),
            jnp.stack([x2 * (a - c), 2 / h * b, x0 * (a - c)], axis=1),
            jnp.stack([x1 * (b - a), x0 * (b - a), 2 / h * c], axis=1),
        ]
        return -_solve3(rows, f)

    def iterate(state: tuple[Array, Array, Array], fixed: tuple[Array, ...]) -> tuple[Array, Array, Array]:
        k, x, going = state
        f = residual(x, *fixed)
        delta = newton(x, fixed, f)
        steps = jnp.asarray(STEPS, x.dtype)[:, None, None]
        tries = x + steps * delta
        worth = norm(residual(tries, *fixed)) < norm(f)
        first = jnp.argmax(worth, axis=0)
        best = jnp.take_along_axis(tries, first[None, :, None], axis=0)[0]
        better = going & worth.any(0)
        return k + 1, jnp.where(better[:, None], best, x), better

    fixed = lax.stop_gradient((inertia, w, torque, h))
    start = jnp.int32(0), fixed[1], needed
    on = lambda s: (s[0] < ITERATIONS) & s[2].any()  # noqa: E731
    x = lax.while_loop(on, lambda s: iterate(s, fixed), start)[1]
    return x + newton(x, (inertia, w, torque, h), residual(x, inertia, w, torque, h))


def _solve3(rows: list[Array], b: Array) -> Array:
    """Solve 3x3 systems given by their rows (k, 3), by cofactors; zero where singular."""
    r0, r1, r2 = rows
    c0, c1, c2 = cross(r1, r2), cross(r2, r0), cross(r0, r1)
    det = inner(r0, c0)[:, None]
    return divide(c0 * b[:, :1] + c1 * b[:, 1:2] + c2 * b[:, 2:], det)
