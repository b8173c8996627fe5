"""Parts of a legged robot, found in a model on the host: torso, home pose, feet, servos and gains, floor."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

import jaxsim
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.model import Model
from jaxsim.core.types import BiasType, DynType, GainType, GeomType, JointType, TrnType

FOOT_TOLERANCE = 0.1  # feet are bodies that reach within this share of the robot's height of the lowest point
SOLE_TOLERANCE = 0.02  # and their geoms those that reach within this share of the body's lowest point
REACH = 0.6  # rad (or m) of error at which a default gain gives the actuator's greatest force
HOME_KEYS = ("home", "stand")


@dataclasses.dataclass(frozen=True)
class Robot:
    """A legged robot's parts, as addresses into a model.

    `torso`: body with the free joint, whose coordinates start at `qpos` and whose velocities start at `qvel`. `joints`,
    `dofs`: addresses of the other coordinates of its tree. `feet`: geoms of each foot. `home`: qpos (nq,) of standing.
    `target`: actuator lengths (nu,) at home. `servo`: whether an actuator is a position servo (nu,). `kp`, `kd`: gains
    of all actuators, in units of their length (nu,). `force`: greatest actuator force (nu,), infinite if unlimited.
    `phase`: of each foot in a gait, rad. `height`: of the torso's origin above the ground at home, m. `foot_level`:
    height of each foot's first geom at home, m.
    """

    torso: int
    qpos: int
    qvel: int
    joints: np.ndarray
    dofs: np.ndarray
    feet: tuple[np.ndarray, ...]
    home: np.ndarray
    target: np.ndarray
    servo: np.ndarray
    kp: np.ndarray
    kd: np.ndarray
    force: np.ndarray
    phase: np.ndarray
    height: float
    foot_level: np.ndarray

    @property
    def foot_geoms(self) -> np.ndarray:
        """One geom of each foot, its first."""
        return np.array([geoms[0] for geoms in self.feet])


def read_robot(
    m: Model,
    feet: Sequence[str] | None = None,
    torso: str | None = None,
    gains: tuple[float, float] | None = None,
    home: Any = None,
    phase: Sequence[float] | None = None,
) -> Robot:
    """Read the parts of the robot of a model; arguments that are None are found in the model.

    Args:
        m: a model with a robot on a free joint, and a floor.
        feet: names of geoms, or of bodies whose geoms collide. By default the lowest geoms in the home pose.
        torso: name of the body with the free joint. By default the only one, or the one with most actuators.
        gains: position and velocity gain of all actuators, in actuator force per unit of its length and speed.
        home: name or number of a keyframe, or qpos (nq,). By default the keyframe "home" or "stand", else the first,
            else qpos0 with joints inside their ranges. The robot is placed on the floor.
        phase: of each foot in the gait, rad.

    Raises:
        ValueError: the model lacks a part; the message names it.
        UnsupportedError: an actuator is of a kind that cannot follow a target.
    """
    body = _torso(m, torso)
    joint = int(m.body_jntadr[body])
    qpos, qvel = int(m.jnt_qposadr[joint]), int(m.jnt_dofadr[joint])
    tree = np.flatnonzero(np.asarray(m.body_rootid) == m.body_rootid[body])
    joints, dofs = _coordinates(m, tree, joint)
    pose = _home(m, home)
    if not 0.9 < np.linalg.norm(pose[qpos + 3 : qpos + 7]) < 1.1:
        raise ValueError(f"home: the torso's quaternion qpos[{qpos + 3}:{qpos + 7}] is not of length one")
    data = jaxsim.stages.transmission(m, jaxsim.kinematics(m, _at(m, pose)))
    low = lowest_points(m, np.asarray(data.geom_xpos), np.asarray(data.geom_xmat))
    colliding = _colliding(m, tree)
    ground = _ground(m, np.asarray(data.geom_xpos))
    found = _feet(m, feet, body, colliding, low)
    place = np.asarray(data.geom_xpos)[[g[0] for g in found]] - pose[qpos : qpos + 3]
    height = float(pose[qpos + 2] - low[np.concatenate(found)].min())
    pose[qpos + 2] = ground + height
    servo, kp, kd, force = _servos(m, gains)
    if phase is not None and len(phase) != len(found):
        raise ValueError(f"phase has {len(phase)} entries for {len(found)} feet: {foot_names(m, found)}")
    return Robot(
        body,
        qpos,
        qvel,
        joints,
        dofs,
        found,
        pose,
        np.asarray(data.actuator_length, float),
        servo,
        kp,
        kd,
        force,
        _phases(place) if phase is None else np.asarray(phase, float),
        height,
        place[:, 2] + pose[qpos + 2],
    )


def foot_names(m: Model, feet: Sequence[np.ndarray]) -> str:
    """Name feet for a message: by their geoms, or by the bodies of geoms without names."""
    return ", ".join(_geom_name(m, int(g[0])) for g in feet)


def _geom_name(m: Model, geom: int) -> str:
    body = int(m.geom_bodyid[geom])
    return m.id2name("geom", geom) or f"geom {geom} of body {m.id2name('body', body) or body!r}"


def _at(m: Model, qpos: np.ndarray) -> Any:
    data = jaxsim.make_data(m)
    return data.replace(qpos=data.qpos.at[:].set(qpos.astype(data.qpos.dtype)))


def _torso(m: Model, name: str | None) -> int:
    free = np.flatnonzero(np.asarray(m.jnt_type) == JointType.FREE)
    bodies = np.asarray(m.jnt_bodyid)[free]
    known = ", ".join(repr(m.id2name("body", int(b)) or int(b)) for b in bodies)
    if not len(bodies):
        raise ValueError("the model has no free joint: a robot that walks needs <freejoint/> in its torso")
    if name is not None:
        body = m.name2id("body", name)
        if body not in bodies:
            raise ValueError(f"torso: body {name!r} has no free joint; those that have one: {known}")
        return int(body)
    if len(bodies) == 1:
        return int(bodies[0])
    roots = np.asarray(m.body_rootid)
    moved = [roots[m.jnt_bodyid[int(j)]] for j, t in zip(m.actuator_trnid[:, 0], m.actuator_trntype, strict=True)
             if t == TrnType.JOINT]  # fmt: skip
    counts = [int(np.sum(np.asarray(moved) == b)) for b in bodies]
    if sorted(counts)[-1] == sorted(counts)[-2]:
        raise ValueError(f"several bodies have free joints: name the torso, torso=...: one of {known}")
    return int(bodies[int(np.argmax(counts))])


def _coordinates(m: Model, tree: np.ndarray, root: int) -> tuple[np.ndarray, np.ndarray]:
    """Addresses in qpos and qvel of the hinges and slides of a tree."""
    mine = [j for j in range(m.njnt) if m.jnt_bodyid[j] in tree and j != root]
    ball = [j for j in mine if m.jnt_type[j] not in (JointType.HINGE, JointType.SLIDE)]
    if ball:
        name = m.id2name("joint", ball[0]) or ball[0]
        raise UnsupportedError(f"locomotion with a ball joint ({name!r}) in the robot; hinges and slides work")
    return np.asarray(m.jnt_qposadr)[mine], np.asarray(m.jnt_dofadr)[mine]


def _home(m: Model, home: Any) -> np.ndarray:
    """Home pose qpos (nq,) as `read_robot` says."""
    if home is None:
        names = [m.id2name("key", i) for i in range(m.nkey)]
        home = next((n for n in HOME_KEYS if n in names), 0 if m.nkey else None)
    if home is None:
        return _inside_ranges(m)
    if isinstance(home, (str, int)):
        return np.array(m.key_qpos[m.keyframe(home).id], float)
    pose = np.array(home, float)
    if pose.shape != (m.nq,):
        raise ValueError(f"home: expected a keyframe or qpos of shape ({m.nq},), got shape {pose.shape}")
    return pose


def _inside_ranges(m: Model) -> np.ndarray:
    """qpos0, with joints that lie outside of their range or on its end moved to its middle."""
    pose = np.array(m.qpos0, float)
    simple = np.isin(np.asarray(m.jnt_type), (JointType.HINGE, JointType.SLIDE))
    for j in np.flatnonzero(simple & np.asarray(m.jnt_limited, bool)):
        low, high = np.asarray(m.jnt_range[j], float)
        adr = int(m.jnt_qposadr[j])
        if not low < pose[adr] < high:
            pose[adr] = (low + high) / 2
    return pose


def _colliding(m: Model, tree: np.ndarray) -> np.ndarray:
    """Geoms of a tree that can touch what is fixed to the world."""
    contype, affinity = np.asarray(m.geom_contype), np.asarray(m.geom_conaffinity)
    owner = np.asarray(m.geom_bodyid)
    fixed = np.flatnonzero(np.asarray(m.body_weldid)[owner] == 0)
    mine = np.flatnonzero(np.isin(owner, tree))
    meets = ((contype[mine, None] & affinity[fixed]) | (affinity[mine, None] & contype[fixed])).any(1)
    return mine[meets]


def _ground(m: Model, position: np.ndarray) -> float:
    """Height of the floor: of the highest plane, or height field, that is fixed to the world."""
    kind = np.asarray(m.geom_type)
    fixed = np.asarray(m.body_weldid)[np.asarray(m.geom_bodyid)] == 0
    floors = np.flatnonzero(fixed & np.isin(kind, (GeomType.PLANE, GeomType.HFIELD)))
    if not len(floors):
        raise ValueError('the model has no floor: add <geom type="plane" size="0 0 1"/> to the world, or floor=True')
    return float(position[floors, 2].max())


def _feet(
    m: Model, names: Sequence[str] | None, torso: int, colliding: np.ndarray, low: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Geoms of each foot."""
    if names is not None:
        if isinstance(names, str) or not len(names):
            raise ValueError(f"feet={names!r}: expected a list of names of geoms or bodies")
        return tuple(_named_foot(m, name, colliding) for name in names)
    if not len(colliding):
        raise ValueError("no geom of the robot can touch the floor: see contype and conaffinity of its geoms")
    owner = np.asarray(m.geom_bodyid)
    tall = low[colliding].max() - low[colliding].min() + 1e-3
    reach = {b: low[colliding[owner[colliding] == b]].min() for b in dict.fromkeys(owner[colliding].tolist())}
    bodies = [b for b, lowest in reach.items() if lowest <= min(reach.values()) + FOOT_TOLERANCE * tall]
    if torso in bodies:
        raise ValueError(
            f"in the home pose the torso {m.id2name('body', torso)!r} touches the ground: give home=..., a pose in "
            "which the robot stands, or feet=[...]"
        )
    above = {p for b in bodies for p in _ancestors(m, b)}  # a shin is no foot where the foot below it is one
    bodies = [b for b in bodies if b not in above]
    return tuple(_sole(colliding[owner[colliding] == b], low, SOLE_TOLERANCE * tall) for b in bodies)


def _ancestors(m: Model, body: int) -> list[int]:
    """Bodies above a body, without the world."""
    found = []
    while (body := int(m.body_parentid[body])) > 0:
        found.append(body)
    return found


def _sole(geoms: np.ndarray, low: np.ndarray, tolerance: float) -> np.ndarray:
    """Those of a body's geoms that reach as low as its lowest, within a tolerance in m."""
    return geoms[low[geoms] <= low[geoms].min() + tolerance]


def _named_foot(m: Model, name: str, colliding: np.ndarray) -> np.ndarray:
    geoms = [m.id2name("geom", i) for i in range(m.ngeom)]
    if name in geoms:
        found = np.array([geoms.index(name)])
    else:
        bodies = [m.id2name("body", i) for i in range(m.nbody)]
        if name not in bodies:
            near = ", ".join(repr(geoms[g]) for g in colliding if geoms[g])
            raise ValueError(f"feet: there is no geom or body {name!r}; geoms that can touch the floor: {near}")
        found = np.flatnonzero(np.asarray(m.geom_bodyid) == bodies.index(name))
    found = found[np.isin(found, colliding)]
    if not len(found):
        raise ValueError(f"feet: {name!r} cannot touch the floor: see contype and conaffinity")
    return found


def lowest_points(m: Model, position: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """Find the height of each geom's lowest point (ngeom,), in its frame; of a box about it for less common kinds."""
    down = frame.reshape(-1, 3, 3)[:, 2]  # the world's z axis in the geom's frame
    size, kind = np.asarray(m.geom_size, float), np.asarray(m.geom_type)
    centre, half = np.split(np.asarray(m.geom_aabb, float).reshape(-1, 6), 2, axis=1)
    reach = (np.abs(down) * half).sum(1) - (down * centre).sum(1)
    sphere, capsule = kind == GeomType.SPHERE, kind == GeomType.CAPSULE
    reach = np.where(sphere, size[:, 0], reach)
    reach = np.where(capsule, size[:, 0] + np.abs(down[:, 2]) * size[:, 1], reach)
    return position[:, 2] - np.where(kind == GeomType.PLANE, 0, reach)


def _servos(m: Model, gains: tuple[float, float] | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Which actuators are position servos, gains, and greatest forces."""
    servo = (np.asarray(m.actuator_biastype) == BiasType.AFFINE) & (np.asarray(m.actuator_biasprm)[:, 1] < 0)
    motor = np.asarray(m.actuator_biastype) == BiasType.NONE
    plain = np.asarray(m.actuator_gaintype) == GainType.FIXED
    still = np.asarray(m.actuator_dyntype) == DynType.NONE
    filtered = np.isin(np.asarray(m.actuator_dyntype), (DynType.FILTER, DynType.FILTEREXACT))
    joint = np.asarray(m.actuator_trntype) == TrnType.JOINT
    for i in range(m.nu):
        follows = (servo[i] and (still[i] or filtered[i])) or (motor[i] and joint[i] and still[i])
        if not (plain[i] and follows):
            name = m.id2name("actuator", i) or i
            raise UnsupportedError(
                f"locomotion with the actuator {name!r}: position servos, and motors on joints without activation, work"
            )
    gain = np.asarray(m.actuator_gainprm, float)[:, 0]
    bias = np.asarray(m.actuator_biasprm, float)
    force = _greatest_force(m, gain, servo)
    if gains is not None:
        if len(gains) != 2 or min(gains) < 0:
            raise ValueError(f"gains={gains!r}: expected a position and a velocity gain, not negative")
        return servo, np.full(m.nu, float(gains[0])), np.full(m.nu, float(gains[1])), force
    if not np.isfinite(force[~servo]).all():
        names = [m.id2name("actuator", int(i)) or int(i) for i in np.flatnonzero(~servo & ~np.isfinite(force))]
        raise ValueError(f"gains: the motors {names} have no ctrlrange or forcerange to choose gains from; give gains=")
    gear = np.abs(np.asarray(m.actuator_gear, float)[:, 0])
    joints = np.where(joint, np.asarray(m.actuator_trnid)[:, 0], 0)
    inertia = np.asarray(m.dof_M0, float)[np.asarray(m.jnt_dofadr)[joints]]
    strong = np.where(servo, 1.0, force)
    kp = np.where(servo, gain, strong / (REACH * gear))
    kd = np.where(servo, -bias[:, 2], np.sqrt(kp * inertia) / gear)
    return servo, kp, kd, force


def _greatest_force(m: Model, gain: np.ndarray, servo: np.ndarray) -> np.ndarray:
    """Greatest actuator force (nu,): of its force range, or of the control range of a motor; infinite without."""
    limited = np.asarray(m.actuator_forcelimited, bool)
    force = np.where(limited, np.abs(np.asarray(m.actuator_forcerange, float)).max(1), np.inf)
    ranged = np.asarray(m.actuator_ctrllimited, bool) & ~servo
    control = np.where(ranged, np.abs(gain) * np.abs(np.asarray(m.actuator_ctrlrange, float)).max(1), np.inf)
    return np.minimum(force, control)


def _phases(place: np.ndarray) -> np.ndarray:
    """Phase of each foot (rad) from its place about the torso: diagonal pairs together, two feet in turn."""
    count = len(place)
    if count == 1:
        return np.zeros(1)
    side = place[:, 1] > np.median(place[:, 1])
    if count == 2:
        return np.pi * np.arange(2.0)
    # feet of one side alternate from front to back, and sides are opposite
    rank = np.zeros(count, int)
    for s in (False, True):
        mine = np.flatnonzero(side == s)
        rank[mine[np.argsort(-place[mine, 0])]] = np.arange(len(mine))
    return np.pi * ((rank + side) % 2)
