"""Stages `energy_pos` and `energy_vel`: potential and kinetic energy."""

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.flags import disabled, enabled
from jaxsim.core.model import Model
from jaxsim.core.types import DisableBit, EnableBit, SensorType
from jaxsim.engine.dynamics.inertia import mul_m
from jaxsim.engine.flex.elastic import edge_energy
from jaxsim.engine.islands import sleep
from jaxsim.engine.structure import tables
from jaxsim.engine.tendon.tendon import spring_displacement
from jaxsim.interface.public import public
from jaxsim.math.arrays import inner, take
from jaxsim.math.rotation import quat_conj, quat_mul, quat_normalize, quat_to_rotvec
from jaxsim.math.safe import Array, norm, xp_of


@public
def energy_pos(m: Model, d: Data) -> Data:
    """Set `energy[0]`, and `energy[1]` to zero until `energy_vel`; both are zero unless the flag energy is set."""
    xp = xp_of(d.energy)
    zero = xp.zeros_like(d.energy)
    if not enabled(m, EnableBit.ENERGY):
        return d.replace(energy=zero)
    return d.replace(energy=xp.stack([potential(m, d), d.energy[1]]))


def energy_of_sensors(m: Model, d: Data) -> Data:
    """Set `energy` after the sensors of positions: as `energy_pos`, or to what sensors have computed without the flag.

    As in MuJoCo, a sensor of the potential energy leaves its value in `energy`, and with it one of the kinetic energy.
    """
    if enabled(m, EnableBit.ENERGY) or disabled(m, DisableBit.SENSOR) or SensorType.E_POTENTIAL not in m.sensor_type:
        return energy_pos(m, d)
    moving = kinetic(m, d) if SensorType.E_KINETIC in m.sensor_type else d.energy[1]
    return d.replace(energy=xp_of(d.energy).stack([potential(m, d), moving]))


@public
def energy_vel(m: Model, d: Data) -> Data:
    """Set `energy[1]`, if the flag energy is set."""
    if not enabled(m, EnableBit.ENERGY):
        return d
    return d.replace(energy=xp_of(d.energy).stack([d.energy[0], kinetic(m, d)]))


def kinetic(m: Model, d: Data) -> Array:
    """Compute the kinetic energy of all bodies, armature included."""
    return 0.5 * inner(d.qvel, mul_m(m, d, d.qvel))


def potential(m: Model, d: Data) -> Array:
    """Compute the potential energy of gravity and of the springs in joints and tendons that do not sleep."""
    energy = xp_of(d.qpos).zeros((), d.qpos.dtype)
    if not disabled(m, DisableBit.GRAVITY):
        energy = energy - (m.body_mass[1:, None] * d.xipos[1:] * m.opt.gravity).sum()
    if disabled(m, DisableBit.SPRING):
        return energy
    for joint, x in _displacements(m, d):
        of_joints = _spring(take(m.jnt_stiffness, joint), take(m.jnt_stiffnesspoly, joint), x)
        if sleep.sleeps(m):
            of_joints = xp_of(x).where(take(d.tree_asleep < 0, m.body_treeid[m.jnt_bodyid[joint]]), of_joints, 0)
        energy = energy + of_joints.sum()
    if m.ntendon:
        of_tendons = _spring(m.tendon_stiffness, m.tendon_stiffnesspoly, spring_displacement(m, d))
        if sleep.sleeps(m):
            awake = sleep.awake_tendons(m, d) | (d.tree_asleep < 0).all()
            of_tendons = xp_of(awake).where(awake, of_tendons, 0)
        energy = energy + of_tendons.sum()
    return energy + edge_energy(m, d) if (m.flex_dim == 1).any() else energy


def _spring(linear: Array, poly: Array, x: Array) -> Array:
    return x * x * (linear / 2 + x * (poly[:, 0] / 3 + x * poly[:, 1] / 4))


def _displacements(m: Model, d: Data) -> list[tuple[np.ndarray, Array]]:
    """Return joints and the stretch of their springs; the two springs of a free joint are separate."""
    out, c = [], tables.joint_coordinates(m)
    if len(c.scalar):
        out.append((c.scalar, take(d.qpos, c.scalar_qpos) - take(m.qpos_spring, c.scalar_qpos)))
    if len(c.free):
        out.append((c.free, norm(take(d.qpos, c.free_qpos) - take(m.qpos_spring, c.free_qpos))))
    if len(c.turning):
        turn = quat_mul(quat_conj(take(m.qpos_spring, c.quat)), quat_normalize(take(d.qpos, c.quat)))
        out.append((c.turning, norm(quat_to_rotvec(turn))))
    return out
