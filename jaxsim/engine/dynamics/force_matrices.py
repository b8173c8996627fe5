"""Derivatives of the forces of bodies by positions and velocities, as matrices that many directions share.

A derivative along one direction sends its tangent through every body. For a Jacobian these matrices are made once, from
sums over what each dof moves: inertia, Coriolis operator and force. Singh, Russell and Wensing, "Efficient Analytical
Derivatives of Rigid Body Dynamics Using Spatial Vector Algebra", RA-L 2022. Derivatives that involve numbers of the
model, those along a single direction, and models without masks of dofs (`Tree.prior`) keep tangents of bodies.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure, structure_of
from jaxsim.core.types import DisableBit
from jaxsim.engine.kinematics.twists import PLACING, displacement
from jaxsim.engine.kinematics.wrench import apply_wrench
from jaxsim.engine.structure import tables
from jaxsim.math.arrays import dot, inner, matvec, matvec_t, take
from jaxsim.math.jvp import all_zero, sum_of_tangents
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array
from jaxsim.math.spatial import SYMMETRIC, cross_force, cross_motion, inertia_mul, join, shift_force
from jaxsim.math.tree import dof_path_sum, dof_prior_sum, dof_subtree_sum
from jaxsim.native.stage import keeps_residuals

_current: ContextVar[bool] = ContextVar("current", default=False)


@contextmanager
def poses_are_current(yes: bool) -> Iterator[None]:
    """Say that poses and inertias in data follow from its positions, as within a step."""
    before = _current.set(yes)
    try:
        yield
    finally:
        _current.reset(before)


@partial(jax.tree_util.register_dataclass, data_fields=["numbers", "qpos"], meta_fields=["structure"])
@dataclasses.dataclass(frozen=True)
class Place:
    """Positions, and all other numbers from which poses and inertias of bodies follow."""

    numbers: dict[str, Any]
    qpos: Array
    structure: Any

    def moves_alone(self) -> bool:
        """Return whether, of the tangents in this place, only that of positions is not zero."""
        return all_zero(self.numbers)

    def displacement(self, tangent: Array) -> Array:
        """Return the displacement along motion axes (nv,) of a tangent of the positions."""
        return displacement(self.structure, self.numbers["jnt_axis"], self.qpos, tangent)


def place_of(m: Model, d: Data) -> Place | None:
    """Return the place of the bodies; None where it may be another than in `d`, and for large models."""
    if not _current.get() or tables.tree(m).prior is None or not m.nv:
        return None
    names = (*PLACING, "body_mass", "body_inertia", "body_subtreemass")
    numbers = {name: getattr(m, name) for name in names}
    return Place({**numbers, "gravity": m.opt.gravity, "mocap": (d.mocap_pos, d.mocap_quat)}, d.qpos, m.structure)


def _by_matrix(place: Place, operands: Any, value: Array, terms: Callable[..., tuple[Array, Sequence[Any]]]) -> Array:
    """Return a force (nv,), whose derivative by the place is a product with a matrix where there are many directions.

    `terms(place, operands, tangents)` are that matrix (nv, nv), and terms of `sum_of_tangents` for the operands.
    """

    @jax.custom_jvp
    def same(place: Place, operands: Any, value: Array) -> Array:
        return value

    def rule(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
        place, operands, value = primals
        moved, along, own = tangents
        out = same(*primals)
        if not keeps_residuals() or not moved.moves_alone():
            return out, sum_of_tangents(value, (lambda t: t, own))
        matrix, others = terms(place, operands, along)
        return out, sum_of_tangents(value, (lambda t: dot(matrix, place.displacement(t)), moved.qpos), *others)

    same.defjvp(rule, symbolic_zeros=True)
    return same(place, operands, value)


def with_bias_matrices(m: Model, d: Data, bias: Array) -> Array:
    """Return the bias force of the bodies; the columns of its Jacobian are those of two matrices."""
    place, structure = place_of(m, d), structure_of(m)
    if place is None:
        return bias
    up = 0 if m.opt.disableflags & DisableBit.GRAVITY else -1

    def terms(place: Place, operands: tuple, tangents: tuple) -> tuple[Array, Sequence[Any]]:
        qvel, bodies = operands
        by_place, by_velocity = bias_matrices(structure, up * place.numbers["gravity"], qvel, *bodies)
        return by_place, [(partial(dot, by_velocity), tangents[0])]

    return _by_matrix(place, (d.qvel, (d.cdof, d.cdof_dot, d.cinert, d.cvel)), bias, terms)


def force_of_wrenches(m: Model, d: Data, force: Array, torque: Array) -> Array:
    """Compute the joint-space force (nv,) of global forces and torques (nbody, 3) at the centres of mass of bodies.

    Derivatives are as in `with_bias_matrices`.
    """
    place, structure = place_of(m, d), structure_of(m)
    value = apply_wrench(m, d, force, torque, d.xipos)
    if place is None:
        return value

    def terms(_: Place, operands: tuple, tangents: tuple) -> tuple[Array, Sequence[Any]]:
        cdof, arm, force, torque = operands
        tree = tables.tree(structure)

        def plain(force: Array, torque: Array) -> Array:
            return inner(cdof, dof_subtree_sum(tree, shift_force(join(torque, force), arm)))

        by_force, by_torque = (lambda t: plain(t, 0 * torque)), (lambda t: plain(0 * force, t))
        return wrench_matrix(structure, cdof, arm, force, torque), [(by_force, tangents[2]), (by_torque, tangents[3])]

    arm = d.xipos - take(d.subtree_com, m.body_rootid)
    return _by_matrix(place, (d.cdof, arm, force, torque), value, terms)


def force_at(structure: Any, place: Place | None, cdof: Array, cinert: Array, x: Array) -> Array:
    """Compute the force of the bodies (nv,) at accelerations x of the dofs, without velocities and gravity.

    Derivatives by a place are columns of a matrix, as in `with_bias_matrices`.
    """
    tree = tables.tree(structure)

    def plain(cdof: Array, cinert: Array, x: Array) -> Array:
        force = inertia_mul(cinert, dof_path_sum(tree, cdof * x[:, None]))
        return inner(cdof, dof_subtree_sum(tree, force))

    def terms(_: Place, operands: tuple, tangents: tuple) -> tuple[Array, Sequence[Any]]:
        cdof, cinert, x = operands
        return inertia_matrix(structure, cdof, cinert, x), [(lambda t: plain(cdof, cinert, t), tangents[2])]

    value = plain(cdof, cinert, x)
    return value if place is None else _by_matrix(place, (cdof, cinert, x), value, terms)


@per_structure
def _masks(m) -> tuple[np.ndarray, np.ndarray]:
    """Return which dofs move the frame of each dof (nv, nv), and the same with dofs of its own joint."""
    prior, joint, free = tables.tree(m).prior, m.dof_jntid, ~tables.in_world(m)
    own = (joint[:, None] == joint) & free[:, None] & free
    return prior, prior | own | np.eye(m.nv, dtype=bool)


def bias_matrices(
    structure: Any, rise: Array, qvel: Array, cdof: Array, cdof_dot: Array, cinert: Array, cvel: Array
) -> tuple[Array, Array]:
    """Compute the derivatives (nv, nv) of the bias force by displacements along motion axes and by velocities.

    `rise` (3,) is the acceleration of the world that gravity is like.
    """
    tree = tables.tree(structure)
    motion, rate = cdof * qvel[:, None], cdof_dot * qvel[:, None]
    world = jnp.concatenate([jnp.zeros(3, rate.dtype), rise])
    momentum = inertia_mul(cinert, cvel)
    force = inertia_mul(cinert, dof_path_sum(tree, rate) + world) + cross_force(cvel, momentum)
    velocity, after = dof_prior_sum(tree, motion), dot(_masks(structure)[1].astype(motion.dtype), motion)
    bent = cross_motion(dof_prior_sum(tree, rate) + world, cdof) + cross_motion(velocity, cdof_dot)
    inertia, twice = dof_subtree_sum(tree, cinert), dof_subtree_sum(tree, coriolis(cinert, cvel))
    turned = cross_force(cdof, dof_subtree_sum(tree, force))
    matrix = partial(_matrix, structure, cdof, inertia)
    return matrix((twice, cdof_dot), bent, turned), matrix((twice, cdof), cdof_dot + cross_motion(after, cdof), 0)


def inertia_matrix(structure: Any, cdof: Array, cinert: Array, x: Array) -> Array:
    """Compute the derivative (nv, nv) of M x by displacements along motion axes, without armature."""
    tree, acceleration = tables.tree(structure), cdof * x[:, None]
    force = inertia_mul(cinert, dof_path_sum(tree, acceleration))
    turned = cross_force(cdof, dof_subtree_sum(tree, force))
    bent = cross_motion(dof_prior_sum(tree, acceleration), cdof)
    return _matrix(structure, cdof, dof_subtree_sum(tree, cinert), None, bent, turned)


def wrench_matrix(structure: Any, cdof: Array, arm: Array, force: Array, torque: Array) -> Array:
    """Compute the derivative (nv, nv) of the force of wrenches by displacements along motion axes.

    Forces and torques keep their directions, and move with points of bodies at `arm` (nbody, 3).
    """
    tree, eye = tables.tree(structure), np.eye(3, dtype=arm.dtype)
    outer = arm[:, :, None] * force[:, None]  # r f'
    power = inner(arm, force)[:, None, None] * eye
    sums = [(outer - power).reshape(-1, 9), (outer.mT - power).reshape(-1, 9), force, torque]
    sums = dof_subtree_sum(tree, jnp.concatenate(sums, axis=1))
    caused, felt = sums[:, :9].reshape(-1, 3, 3), sums[:, 9:18].reshape(-1, 3, 3)
    force, torque = sums[:, 18:21], sums[:, 21:]
    angular, linear = cdof[:, :3], cdof[:, 3:]
    caused = matvec(caused, angular) + cross(linear, force)  # the points of what a dof moves go with it
    # seen from a body that moves, forces turn back
    felt = matvec_t(felt, angular) + cross(angular, torque) + cross(linear, force)
    prior, above = _masks(structure)
    return jnp.where(above, dot(felt, angular.T), 0) + jnp.where(prior, dot(caused, angular.T), 0).T


def coriolis(cinert: Array, cvel: Array) -> Array:
    """Compute twice the Coriolis operators of bodies, 12 numbers, at their velocities.

    An operator maps an angular velocity w to the torque A w and the force w x b: A, row by row, then b.
    """
    w, u = cvel[:, :3], cvel[:, 3:]
    moment, mass = cinert[:, 6:9], cinert[:, 9:]
    inertia = cinert[:, SYMMETRIC].reshape(-1, 3, 3)
    eye = np.eye(3, dtype=cinert.dtype)
    second = 0.5 * cinert[:, :3].sum(1)[:, None, None] * eye - inertia  # sum of m r r' over particles
    flow = u[:, :, None] * moment[:, None] + cross(w[:, None], second).mT  # sum of m v r'
    torque = inner(u, moment)[:, None, None] * eye - flow
    return 2 * jnp.concatenate([torque.reshape(-1, 9), mass * u + cross(w, moment)], axis=1)


def _matrix(
    structure: Any, cdof: Array, inertia: Array, flow: tuple[Array, Array] | None, bent: Array, turned: Any
) -> Array:
    """Return forces (nv, nv) on dofs, by rows, due to each dof that changes the motion of all that it moves.

    These accelerate by `bent`, and turn their force by `turned`. `flow` are the Coriolis operators of what dofs move,
    and changes of velocity. All are of dofs.
    """
    caused, felt = inertia_mul(inertia, bent) + turned, dot(inertia_mul(inertia, cdof), bent.T)
    if flow is not None:
        twice, turning = flow[0], flow[1][:, :3]
        torque, push = twice[:, :9].reshape(-1, 3, 3), twice[:, 9:]
        caused = caused + join(matvec(torque, turning), cross(turning, push))
        felt = felt + dot(matvec_t(torque, cdof[:, :3]) + cross(push, cdof[:, 3:]), turning.T)
    prior, above = _masks(structure)
    return jnp.where(above, felt, 0) + jnp.where(prior, dot(caused, cdof.T), 0).T
