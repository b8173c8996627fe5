"""Derivatives of the smooth forces by velocity, in the sparse form of `d.M`, for the implicit integrators."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.flags import disabled
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import DisableBit, DynType
from jaxsim.engine.actuation import dcmotor, laws
from jaxsim.engine.actuation.forces import disabled_actuators, next_activation
from jaxsim.engine.actuation.transmission import other_actuators, scalar_actuators, scalar_dofs
from jaxsim.engine.dynamics.fluid_derivative import fluid_force_derivative
from jaxsim.engine.dynamics.inertia import tendon_pairs
from jaxsim.engine.dynamics.rne import rne
from jaxsim.engine.flex.implicit import edge_damping_vel
from jaxsim.engine.kinematics.com import com_vel
from jaxsim.engine.structure import tables
from jaxsim.engine.structure.damping import dof_damping, poly_force_derivative, tendon_damping
from jaxsim.math.arrays import add_at, assemble, inner, matvec, matvec_t, take, take_or_zero
from jaxsim.math.safe import Array
from jaxsim.math.tree import subtree_sum


def smooth_vel(m: Model, d: Data) -> Array:
    """Compute the derivative of actuator and passive forces by qvel, without fluids: symmetric, (nC,) as in `d.M`.

    The derivative of lattices of flexes is not included: see `engine/flex/implicit.py`.
    """
    diagonal = jnp.zeros_like(d.qvel)
    derivative = jnp.zeros_like(d.M)
    if m.nu and not disabled(m, DisableBit.ACTUATION):
        by_actuator = actuator_force_derivative(m, d)
        scalar, other = scalar_actuators(m), other_actuators(m)
        gear = take(m.actuator_gear[:, 0], scalar)
        diagonal = diagonal + add_at(scalar_dofs(m), take(by_actuator, scalar) * gear * gear, m.nv)
        if len(other):
            row, col = tables.inertia_pattern(m)
            moment = take(d.actuator_moment, other).T
            derivative = derivative + inner(take(moment, row) * take(by_actuator, other), take(moment, col))
    if not disabled(m, DisableBit.DAMPER):
        if m.nflexedge:
            derivative = derivative + edge_damping_vel(m, d, lower=True)
        diagonal = diagonal - poly_force_derivative(*dof_damping(m), abs(d.qvel))
        tendon, a, b, k = tendon_pairs(m)
        if len(k):
            by_tendon = -poly_force_derivative(*tendon_damping(m), abs(d.ten_velocity))
            derivative = derivative + add_at(k, take(by_tendon, tendon) * take(d.ten_J, a) * take(d.ten_J, b), m.nC)
    return derivative + take_or_zero(diagonal, tables.diagonal(m))


def actuator_force_derivative(m: Model, d: Data) -> Array:
    """Compute the derivative of each actuator's force by its velocity; zero where the force is at its limit."""
    derivative = assemble(laws.by_velocity(laws.BIASES, m.actuator_biastype, m, d), m.nu, d.actuator_velocity)
    gains = laws.by_velocity(laws.GAINS, m.actuator_gaintype, m, d)
    if gains:
        derivative = derivative + assemble(gains, m.nu, d.actuator_velocity) * _input(m, d)
    if len(dcmotor.motors(m)):
        derivative = derivative + add_at(dcmotor.motors(m), dcmotor.force_derivative(m, dcmotor.read(m, d)), m.nu)
    limited = m.actuator_forcelimited.astype(bool)
    if limited.any():
        low, high = m.actuator_forcerange[:, 0], m.actuator_forcerange[:, 1]
        derivative = jnp.where(limited & ((d.actuator_force <= low) | (d.actuator_force >= high)), 0, derivative)
    off = disabled_actuators(m)
    return jnp.where(off, 0, derivative) if off.any() else derivative


def _input(m: Model, d: Data) -> Array:
    """Return the factor of the gain; the control is taken as set, without clamping."""
    last = laws.last_activation(m)
    act = take_or_zero(d.act, last)
    early = (last >= 0) & m.actuator_actearly
    if early.any():
        act = jnp.where(early, take_or_zero(next_activation(m, d, d.act_dot), last), act)
    return jnp.where(m.actuator_dyntype == DynType.NONE, d.ctrl, act)


def fluid_vel(m: Model, d: Data, row: np.ndarray, col: np.ndarray) -> Array:
    """Compute the derivative of the fluid's forces by qvel, for static pairs of dofs on one path.

    An entry is the derivative of the force of row by the speed of col.
    """
    if disabled(m, DisableBit.SPRING, DisableBit.DAMPER) or not m.opt.fluid:
        return jnp.zeros(len(row), d.qvel.dtype)
    # as in M, dofs i and j couple through the derivatives of all bodies that both move
    composite = subtree_sum(tables.tree(m), fluid_force_derivative(m, d).reshape(-1, 36)).reshape(-1, 6, 6)
    own = take(composite, m.dof_bodyid)
    left, right = matvec_t(own, d.cdof), matvec(own, d.cdof)
    below = (row >= col)[:, None]
    force = jnp.where(below, take(left, row), take(d.cdof, row))
    return inner(force, jnp.where(below, take(d.cdof, col), take(right, col)))


@per_structure
def _places(m) -> np.ndarray:
    """Return the mask of dofs (n, nv) that are the k-th of their trees, for each k."""
    place = np.arange(m.nv) - m.tree_dofadr[m.dof_treeid]
    return place == np.arange(place.max(initial=-1) + 1)[:, None]


def bias_vel(m: Model, d: Data) -> list[Array]:
    """Compute the derivative of qfrc_bias by qvel by trees: (k, n, n) for each of `tables.inertia_blocks`.

    Trees do not act on each other: one directional derivative covers the first dofs of all trees, the next the second.
    """

    def bias(qvel: Array) -> Array:
        return rne(m, com_vel(m, d.replace(qvel=qvel)))

    along = jnp.asarray(_places(m), d.qvel.dtype)
    by_place = jax.vmap(lambda v: jax.jvp(bias, (d.qvel,), (v,))[1])(along)
    return [jnp.moveaxis(by_place[: b.dofs.shape[1], b.dofs], 0, -1) for b in tables.inertia_blocks(m)]
