"""Stage `passive`: springs, dampers, gravity compensation and fluid forces."""

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.flags import disabled
from jaxsim.core.model import Model
from jaxsim.core.types import DisableBit
from jaxsim.engine.dynamics.cable import cable_force, cables
from jaxsim.engine.dynamics.fluid import fluid_force
from jaxsim.engine.flex.passive import flex_force
from jaxsim.engine.kinematics.wrench import apply_wrench
from jaxsim.engine.structure import tables
from jaxsim.engine.structure.damping import dof_damping, poly_force, tendon_damping
from jaxsim.engine.tendon.tendon import mul_jac_t, spring_displacement
from jaxsim.interface.public import public
from jaxsim.math.arrays import assemble, take
from jaxsim.math.rotation import quat_conj, quat_mul, quat_normalize, quat_to_rotvec
from jaxsim.math.safe import Array, norm, xp_of


@public
def passive(m: Model, d: Data) -> Data:
    """Compute qfrc_spring, qfrc_damper, qfrc_gravcomp, qfrc_fluid and their sum qfrc_passive."""
    zero = xp_of(d.qvel).zeros_like(d.qvel)
    if disabled(m, DisableBit.SPRING, DisableBit.DAMPER):
        return d.replace(qfrc_spring=zero, qfrc_damper=zero, qfrc_gravcomp=zero, qfrc_fluid=zero, qfrc_passive=zero)
    spring = zero if disabled(m, DisableBit.SPRING) else _springs(m, d)
    damper = zero if disabled(m, DisableBit.DAMPER) else _dampers(m, d)
    if m.nflex:
        pulled, damped = flex_force(m, d)
        spring, damper = spring + pulled, damper + damped
    gravcomp = _gravcomp(m, d) if m.ngravcomp and not disabled(m, DisableBit.GRAVITY) else zero
    fluid = fluid_force(m, d) if m.opt.fluid else zero
    by_actuators = m.jnt_actgravcomp[m.dof_jntid]
    compensated = xp_of(gravcomp).where(by_actuators, 0, gravcomp) if by_actuators.any() else gravcomp
    d = d.replace(
        qfrc_spring=spring,
        qfrc_damper=damper,
        qfrc_gravcomp=gravcomp,
        qfrc_fluid=fluid,
        qfrc_passive=spring + damper + fluid + compensated,
    )
    if m.callbacks.passive is not None:
        d = d.replace(qfrc_passive=d.qfrc_passive + m.callbacks.numbers("passive", m.nv, d.qvel, m, d))
    if m.nplugin and len(cables(m).body):
        d = d.replace(qfrc_passive=d.qfrc_passive + cable_force(m, d))
    return d


def _springs(m: Model, d: Data) -> Array:
    parts, c = [], tables.joint_coordinates(m)
    if len(c.scalar):
        x = take(d.qpos, c.scalar_qpos) - take(m.qpos_spring, c.scalar_qpos)
        k = poly_force(take(m.jnt_stiffness, c.scalar), take(m.jnt_stiffnesspoly, c.scalar), x)
        parts.append((c.scalar_dof, -k * x))
    if len(c.free):
        x = take(d.qpos, c.free_qpos) - take(m.qpos_spring, c.free_qpos)
        parts.append((c.free_dof, _pull(m, c.free, x)))
    if len(c.turning):
        quat = quat_normalize(take(d.qpos, c.quat))
        x = quat_to_rotvec(quat_mul(quat_conj(take(m.qpos_spring, c.quat)), quat))
        parts.append((c.omega, _pull(m, c.turning, x)))
    force = assemble([(index, rows.reshape(-1)) for index, rows in parts], m.nv, d.qvel)
    if m.ntendon:
        force = force + mul_jac_t(m, d, _tendon_springs(m, d))
    return force


def _pull(m: Model, joint: np.ndarray, x: Array) -> Array:
    return -x * poly_force(take(m.jnt_stiffness, joint), take(m.jnt_stiffnesspoly, joint), norm(x))[:, None]


def _tendon_springs(m: Model, d: Data) -> Array:
    x = spring_displacement(m, d)
    return -x * poly_force(m.tendon_stiffness, m.tendon_stiffnesspoly, x)


def _dampers(m: Model, d: Data) -> Array:
    force = -d.qvel * poly_force(*dof_damping(m), abs(d.qvel))
    if m.ntendon:
        v = d.ten_velocity
        force = force + mul_jac_t(m, d, -v * poly_force(*tendon_damping(m), abs(v)))
    return force


def _gravcomp(m: Model, d: Data) -> Array:
    force = -m.opt.gravity * (m.body_mass * m.body_gravcomp)[:, None]
    return apply_wrench(m, d, force, xp_of(force).zeros_like(force), d.xipos)
