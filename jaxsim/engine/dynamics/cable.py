"""The plugin mujoco.elasticity.cable: torques that bend and twist a chain of bodies back to its reference curvature.

Bodies of one instance are consecutive, each a child of the one before, linked by ball (or free) joints. The link
between two neighbours resists the rotation of its joint from the reference pose, with the stiffness of a rod with the
section of the later body's first geom: twist about x, bending about y and z. Moduli and `flat` are read from the
plugin's configuration (structure); sections and lengths are leaves of the model.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from jaxsim.core import plugins
from jaxsim.core.data import Data
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import GeomType, JointType
from jaxsim.engine.kinematics.wrench import apply_wrench
from jaxsim.engine.structure import tables
from jaxsim.math.arrays import take, take_or_zero
from jaxsim.math.rotation import quat_conj, quat_mul, quat_rotate, quat_to_rotvec
from jaxsim.math.safe import Array, divide, norm, xp_of

NAME = "mujoco.elasticity.cable"
STIFF = (GeomType.CYLINDER, GeomType.CAPSULE, GeomType.BOX)


class Cable(NamedTuple):
    """Links of all cables, static: bodies (n,) in which they end, joints, moduli, and mask of links curved at rest."""

    body: np.ndarray
    qpos: np.ndarray  # (n, 4) places of the quaternions in qpos
    geom: np.ndarray
    twist: np.ndarray
    bend: np.ndarray
    curved: np.ndarray
    felt: np.ndarray  # (k,) bodies with torques: their own section is stiff
    ends: np.ndarray  # (k,) the link that ends in each of these, -1: none
    starts: np.ndarray  # (k,) the link that starts there


@per_structure
def cables(m) -> Cable:
    """Return the links of a model's cables. Raises UnsupportedError for bodies that are not a chain of ball joints."""
    rows, felt = [], []
    for instance in np.flatnonzero(m.plugin == plugins.PLUGINS[NAME].slot).tolist():
        settings = plugins.config(m, instance)
        twist, bend = (plugins.leading_number(settings[name]) or 0.0 for name in ("twist", "bend"))
        bodies = np.flatnonzero(m.body_plugin == instance)
        felt += [b for b in bodies if (twist or bend) and m.geom_type[m.body_geomadr[b]] in STIFF]
        for before, body in pairwise(bodies):
            joint = m.body_jntadr[body]
            turning = joint >= 0 and m.jnt_type[joint + m.body_jntnum[body] - 1] in (JointType.BALL, JointType.FREE)
            if body != before + 1 or m.body_parentid[body] != before or not turning or m.body_jntnum[body] != 1:
                raise UnsupportedError(f"plugin {NAME} on bodies that are not a chain of ball joints is not supported")
            rows.append((body, before, joint, m.body_geomadr[body], twist, bend, settings["flat"] != "true"))
    body, before, joint, geom, twist, bend, curved = np.array(rows, float).reshape(-1, 7).T
    ends, starts = np.full(m.nbody, -1), np.full(m.nbody, -1)
    ends[body.astype(int)] = starts[before.astype(int)] = np.arange(len(body))
    felt = np.array(felt, int)
    qpos = tables.joint_quat(m)[joint.astype(int)]
    return Cable(
        body.astype(int), qpos, geom.astype(int), twist, bend, curved.astype(bool), felt, ends[felt], starts[felt]
    )


def _section(m: Model, geom: np.ndarray) -> tuple[Array, Array, Array]:
    """Compute the torsion constant and second moments of area about y and z of geoms' sections (n,).

    They are zero for other shapes.
    """
    size = take_or_zero(m.geom_size, geom)
    xp = xp_of(size)
    kind = np.where(geom >= 0, m.geom_type[geom], -1)
    round_ = np.isin(kind, (GeomType.CYLINDER, GeomType.CAPSULE))
    fourth = np.pi * size[:, 0] ** 4 / 4
    long, short = xp.maximum(size[:, 1], size[:, 2]), xp.minimum(size[:, 1], size[:, 2])
    ratio = divide(short, long)
    torsion = long * short**3 * (16 / 3 - 3.36 * ratio * (1 - ratio**4 / 12))
    about_y, about_z = 4 / 3 * size[:, 2] ** 3 * size[:, 1], 4 / 3 * size[:, 1] ** 3 * size[:, 2]
    box = kind == GeomType.BOX
    pick = ((2 * fourth, torsion), (fourth, about_y), (fourth, about_z))
    return tuple(xp.where(round_, a, xp.where(box, b, 0)) for a, b in pick)


def cable_force(m: Model, d: Data) -> Array:
    """Compute the elastic forces of all cables: (nv,)."""
    c = cables(m)
    if not len(c.body):
        return xp_of(d.qvel).zeros_like(d.qvel)
    torsion, about_y, about_z = _section(m, c.geom)
    xp = xp_of(torsion, d.qpos)
    stiffness = xp.stack([torsion * c.twist, about_y * c.bend, about_z * c.bend], axis=1)
    length = norm(take(m.body_pos, c.body))
    at_rest = quat_to_rotvec(quat_mul(quat_conj(take(m.qpos0, c.qpos)), take(m.body_quat, c.body)))
    turned = quat_mul(take(m.body_quat, c.body), take(d.qpos, c.qpos))
    bent = quat_to_rotvec(turned) - xp.where(c.curved[:, None], at_rest, 0)
    stress = -divide(stiffness * bent, length[:, None])
    torque = take_or_zero(quat_rotate(quat_conj(turned), stress), c.ends) - take_or_zero(stress, c.starts)
    torque = quat_rotate(take(d.xquat, c.felt), torque)
    return apply_wrench(m, d, xp.zeros_like(torque), torque, take(d.xpos, c.felt), c.felt)
