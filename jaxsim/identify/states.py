"""States at every row of recordings, from their sensors: where windows of a long record begin."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.model import Model
from jaxsim.core.types import JointType, ObjType, SensorType
from jaxsim.engine.kinematics.positions import differentiate_pos
from jaxsim.identify.data import Recordings, columns_of


def measured_states(m: Model, data: Recordings) -> tuple[np.ndarray, np.ndarray]:
    """Estimate positions (k, n, nq) and velocities (k, n, nv) of all rows from the sensors.

    Positions are those of `jointpos` and `ballquat`, of a free joint `framepos` and `framequat` of its body. Velocities
    are their central differences, or `jointvel` where its noise by `sigma` is less than theirs. Missing rows take the
    nearest row. The first row is the recording's initial state.

    Raises ValueError for a joint whose position no sensor of the recording measures.
    """
    qpos = np.tile(data.qpos[:, None], (1, data.ctrl.shape[1], 1))
    columns = columns_of(m, data.names)
    for joint, found in enumerate(_measured_positions(m, data)):
        if found is None:
            name = m.id2name("joint", joint) or joint
            raise ValueError(
                f"no sensor of the recordings measures the position of joint {name}: windows need the states at which "
                "they begin; pass states=(qpos, qvel) to recordings"
            )
        address = m.jnt_qposadr[joint]
        qpos[..., address : address + len(found)] = _filled(data.measured[..., found])
    qpos[:, 0] = data.qpos
    h = float(m.opt.timestep)
    difference = jaxsim.jit(jax.vmap(jax.vmap(lambda a, b: differentiate_pos(m, a, b, h))))
    steps = np.asarray(difference(jnp.asarray(qpos[:, :-1]), jnp.asarray(qpos[:, 1:])))
    qvel = np.concatenate([steps[:, :1], 0.5 * (steps[:, 1:] + steps[:, :-1]), steps[:, -1:]], 1)
    for joint in map(int, np.flatnonzero(np.isin(m.jnt_type, (JointType.HINGE, JointType.SLIDE)))):
        place, speed = (_column(m, joint, kind, columns) for kind in (SensorType.JOINTPOS, SensorType.JOINTVEL))
        if place is None or speed is None:
            continue
        if data.sigma[speed[0]] < data.sigma[place[0]] / (2**0.5 * h):
            qvel[..., m.jnt_dofadr[joint]] = _filled(data.measured[..., speed])[..., 0]
    qvel[:, 0] = data.qvel
    return qpos, qvel


def memory(m: Model) -> list[str]:
    """Name the state of a model besides positions and velocities, which no window of a recording can begin in."""
    sizes = {
        "activations of actuators": m.na,
        "delays of actuators or sensors (nsample)": m.nhistory,
        "states of plugins": m.npluginstate,
    }
    return [name for name, size in sizes.items() if size]


def measures_states(m: Model, data: Recordings) -> bool:
    """Return whether windows can begin in measured states.

    Recordings have states, or sensors that measure the positions of all joints, and the model has no other state.
    """
    if memory(m):
        return False
    return data.states is not None or all(found is not None for found in _measured_positions(m, data))


def position_deviations(m: Model, data: Recordings) -> np.ndarray | None:
    """Return standard deviations (nv,) of measured positions by `sigma`, or None if one is not measured."""
    places, found = _measured_positions(m, data), []
    for joint, columns in enumerate(places):
        if columns is None:
            return None
        rotates = m.jnt_type[joint] in (JointType.FREE, JointType.BALL)
        sigma = data.sigma[columns]
        # a small rotation is twice the change of its quaternion
        found.append(np.concatenate([sigma[:-4], 2 * sigma[-4:-1]]) if rotates else sigma)
    return np.concatenate([np.zeros(0), *found])


def _measured_positions(m: Model, data: Recordings) -> list[np.ndarray | None]:
    """Columns of the measurements of each joint's position, None where sensors do not measure it."""
    columns = columns_of(m, data.names)
    parts = ([_column(m, joint, kind, columns) for kind in _sensors(m, joint)] for joint in range(m.njnt))
    found = [([x for x in part if x is not None], len(part)) for part in parts]
    return [np.concatenate(part) if len(part) == count else None for part, count in found]


def _sensors(m: Model, joint: int) -> tuple[SensorType, ...]:
    kind = m.jnt_type[joint]
    if kind == JointType.FREE:
        return SensorType.FRAMEPOS, SensorType.FRAMEQUAT
    return (SensorType.BALLQUAT,) if kind == JointType.BALL else (SensorType.JOINTPOS,)


def _column(m: Model, joint: int, kind: SensorType, columns: dict[str, np.ndarray]) -> np.ndarray | None:
    """Columns of the measurements of a joint's position or velocity by a type of sensor, or None."""
    for name, found in columns.items():
        i = m.name2id("sensor", name)
        if m.sensor_type[i] != kind:
            continue
        of_body = kind in (SensorType.FRAMEPOS, SensorType.FRAMEQUAT)
        if of_body and m.sensor_objtype[i] == ObjType.XBODY and m.sensor_objid[i] == m.jnt_bodyid[joint]:
            return found
        if not of_body and m.sensor_objid[i] == joint:
            return found
    return None


def _filled(values: np.ndarray) -> np.ndarray:
    """Values (k, n, dim) in which a missing row is the last known one, or else the next."""
    known = np.isfinite(values).all(-1)
    rows = np.arange(values.shape[1])
    last = np.maximum.accumulate(np.where(known, rows, -1), 1)
    following = np.minimum.accumulate(np.where(known, rows, len(rows))[:, ::-1], 1)[:, ::-1]
    index = np.where(last >= 0, last, np.minimum(following, len(rows) - 1))
    return np.take_along_axis(values, index[..., None], 1)
