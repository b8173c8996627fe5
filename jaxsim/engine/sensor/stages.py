"""Stages `sensor_pos`, `sensor_vel`, `sensor_acc`: all sensors of a type are read at once, by the tables below.

Each entry of the tables is a function (m, d, ids) of the static ids of the sensors of its type. It returns their
values, one sensor after the other, in any shape.
"""

from functools import partial

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.flags import disabled
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import DataType, DisableBit, SensorType, Stage
from jaxsim.engine.dynamics.rne import rne_post_constraint
from jaxsim.engine.islands import sleep
from jaxsim.engine.sensor import acceleration as acc
from jaxsim.engine.sensor import position as pos
from jaxsim.engine.sensor import simple
from jaxsim.engine.sensor import velocity as vel
from jaxsim.engine.sensor.contact import contact
from jaxsim.engine.sensor.distance import distances
from jaxsim.engine.sensor.rangefinder import rangefinder
from jaxsim.engine.sensor.simple import field_of_object
from jaxsim.engine.sensor.tactile import tactile
from jaxsim.engine.sensor.touch_grid import plugin
from jaxsim.engine.structure import history
from jaxsim.interface.public import public
from jaxsim.math.arrays import merge, take
from jaxsim.math.safe import Array, xp_of

POSITION = {
    SensorType.MAGNETOMETER: pos.magnetometer,
    SensorType.CAMPROJECTION: pos.camprojection,
    SensorType.JOINTPOS: pos.jointpos,
    SensorType.TENDONPOS: field_of_object("ten_length"),
    SensorType.ACTUATORPOS: field_of_object("actuator_length"),
    SensorType.BALLQUAT: pos.ballquat,
    SensorType.JOINTLIMITPOS: simple.JOINT_LIMIT_POS,
    SensorType.TENDONLIMITPOS: simple.TENDON_LIMIT_POS,
    SensorType.FRAMEPOS: pos.framepos,
    SensorType.FRAMEQUAT: pos.framequat,
    SensorType.FRAMEXAXIS: partial(pos.frame_axis, k=0),
    SensorType.FRAMEYAXIS: partial(pos.frame_axis, k=1),
    SensorType.FRAMEZAXIS: partial(pos.frame_axis, k=2),
    SensorType.SUBTREECOM: field_of_object("subtree_com"),
    SensorType.INSIDESITE: pos.insidesite,
    SensorType.E_POTENTIAL: pos.e_potential,
    SensorType.E_KINETIC: pos.e_kinetic,
    SensorType.CLOCK: pos.clock,
    SensorType.RANGEFINDER: rangefinder,
    SensorType.GEOMDIST: distances,
}
VELOCITY = {
    SensorType.VELOCIMETER: vel.velocimeter,
    SensorType.GYRO: vel.gyro,
    SensorType.JOINTVEL: vel.jointvel,
    SensorType.TENDONVEL: field_of_object("ten_velocity"),
    SensorType.ACTUATORVEL: field_of_object("actuator_velocity"),
    SensorType.BALLANGVEL: vel.ballangvel,
    SensorType.JOINTLIMITVEL: simple.JOINT_LIMIT_VEL,
    SensorType.TENDONLIMITVEL: simple.TENDON_LIMIT_VEL,
    SensorType.FRAMELINVEL: vel.framelinvel,
    SensorType.FRAMEANGVEL: vel.frameangvel,
    SensorType.SUBTREELINVEL: field_of_object("subtree_linvel"),
    SensorType.SUBTREEANGMOM: field_of_object("subtree_angmom"),
}
ACCELERATION = {
    SensorType.TOUCH: acc.touch,
    SensorType.CONTACT: contact,
    SensorType.ACCELEROMETER: acc.accelerometer,
    SensorType.FORCE: acc.force,
    SensorType.TORQUE: acc.torque,
    SensorType.ACTUATORFRC: field_of_object("actuator_force"),
    SensorType.JOINTACTFRC: acc.jointactfrc,
    SensorType.TENDONACTFRC: acc.tendonactfrc,
    SensorType.JOINTLIMITFRC: simple.JOINT_LIMIT_FRC,
    SensorType.TENDONLIMITFRC: simple.TENDON_LIMIT_FRC,
    SensorType.FRAMELINACC: acc.framelinacc,
    SensorType.FRAMEANGACC: acc.frameangacc,
    SensorType.PLUGIN: plugin,
    SensorType.TACTILE: tactile,
}
# types that read the output of `rne_post_constraint`, and of `subtree_vel`
NEEDS_RNE_POST_CONSTRAINT = (
    SensorType.ACCELEROMETER,
    SensorType.FORCE,
    SensorType.TORQUE,
    SensorType.FRAMELINACC,
    SensorType.FRAMEANGACC,
    SensorType.USER,
)
NEEDS_SUBTREE_VEL = (SensorType.SUBTREELINVEL, SensorType.SUBTREEANGMOM, SensorType.USER)
WITHOUT_CUTOFF = (SensorType.CONTACT, SensorType.GEOMFROMTO)
# types that the function of another type reads
READ_WITH: dict[SensorType, SensorType] = dict.fromkeys(
    (SensorType.GEOMNORMAL, SensorType.GEOMFROMTO), SensorType.GEOMDIST
)


@public
def sensor_pos(m: Model, d: Data) -> Data:
    """Compute the sensors of the position stage. Raises UnsupportedError for a type that is not supported."""
    return _set_sensordata(m, d, Stage.POS, POSITION)


@public
def sensor_vel(m: Model, d: Data) -> Data:
    """Compute the sensors of the velocity stage; set subtree_linvel and subtree_angmom if a sensor reads them."""
    if _has_type(m, Stage.VEL, NEEDS_SUBTREE_VEL):
        d = vel.subtree_vel(m, d)
    return _set_sensordata(m, d, Stage.VEL, VELOCITY)


@public
def sensor_acc(m: Model, d: Data) -> Data:
    """Compute the sensors of the acceleration stage; set cacc, cfrc_int and cfrc_ext if a sensor reads them."""
    if _has_type(m, Stage.ACC, NEEDS_RNE_POST_CONSTRAINT):
        d = rne_post_constraint(m, d)
    return _set_sensordata(m, d, Stage.ACC, ACCELERATION)


def _has_type(m: Model, stage: Stage, types: tuple[SensorType, ...]) -> bool:
    """Return whether a stage has sensors of these types and sensors are enabled."""
    if disabled(m, DisableBit.SENSOR):
        return False
    return bool((np.isin(m.sensor_type, types) & (m.sensor_needstage == stage)).any())


@per_structure
def _sensors_by_type(m) -> dict[tuple[Stage, SensorType], np.ndarray]:
    """Return the static ids of the sensors of each stage and type."""
    groups: dict[tuple[Stage, SensorType], list[int]] = {}
    for i, key in enumerate(zip(m.sensor_needstage.tolist(), m.sensor_type.tolist(), strict=True)):
        sensor_type = SensorType(key[1])
        groups.setdefault((Stage(key[0]), READ_WITH.get(sensor_type, sensor_type)), []).append(i)
    return {key: np.array(ids) for key, ids in groups.items()}


def _set_sensordata(m: Model, d: Data, stage: Stage, table: dict) -> Data:
    """Set the sensors of a stage: delayed where they have a history, unchanged where their trees sleep."""
    if disabled(m, DisableBit.SENSOR):
        return d
    index, values = _compute(m, d, stage, table)
    if len(index):
        if m.nhistory:
            values = history.delayed_sensors(m, d, index, values)
        if sleep.sleeps(m):
            awake = take(sleep.awake_sensors(m, d), _sensor_of_entry(m)[index])
            values = xp_of(values).where(awake, values, take(d.sensordata, index))
        d = d.replace(sensordata=merge(d.sensordata, index, values))
    users = _sensors_by_type(m).get((stage, SensorType.USER))
    return d if users is None else _set_user_sensors(m, d, stage, users)


def _set_user_sensors(m: Model, d: Data, stage: Stage, ids: np.ndarray) -> Data:
    """Set the values of user sensors by the callback, or to zero."""
    index = _sensordata_indices(m, ids)
    if m.callbacks.sensor is None:
        values = xp_of(d.sensordata).zeros(len(index), d.sensordata.dtype)
    else:
        values = m.callbacks.numbers("sensor", len(index), d.sensordata, m, d, stage, ids)
    return d.replace(sensordata=merge(d.sensordata, index, _cut_off(m, index, values)))


def undelayed(m: Model, d: Data) -> Array:
    """Return sensordata (nsensordata,) without delays and intervals of sensors that have a history."""
    data, recorded = d.sensordata, m.sensor_history[:, 0] > 0
    for stage, table in ((Stage.POS, POSITION), (Stage.VEL, VELOCITY), (Stage.ACC, ACCELERATION)):
        of_stage = recorded & (m.sensor_needstage == stage)
        if not of_stage.any():
            continue
        if stage == Stage.VEL and np.isin(m.sensor_type[of_stage], NEEDS_SUBTREE_VEL).any():
            d = vel.subtree_vel(m, d)
        if stage == Stage.ACC and np.isin(m.sensor_type[of_stage], NEEDS_RNE_POST_CONSTRAINT).any():
            d = rne_post_constraint(m, d)
        data = merge(data, *_compute(m, d, stage, table, of_stage))
    return data


def _compute(
    m: Model, d: Data, stage: Stage, table: dict, subset: np.ndarray | None = None
) -> tuple[np.ndarray, Array]:
    """Return the static indices in sensordata of the sensors of a stage (in `subset`, if given), and their values."""
    xp = xp_of(d.sensordata)
    index, values = [], []
    for (needstage, sensor_type), ids in _sensors_by_type(m).items():
        if needstage != stage or sensor_type == SensorType.USER:
            continue
        ids = ids if subset is None else ids[subset[ids]]
        if not len(ids):
            continue
        if sensor_type not in table:
            raise UnsupportedError(f"sensors of type {sensor_type.name.lower()} are not supported")
        indices = _sensordata_indices(m, ids)
        value = table[sensor_type](m, d, ids)
        index.append(indices)
        values.append(value.reshape(-1))
    if not index:
        return np.zeros(0, int), xp.zeros(0, d.sensordata.dtype)
    index = np.concatenate(index)
    return index, _cut_off(m, index, xp.concatenate(values))


def _sensordata_indices(m: Model, ids: np.ndarray) -> np.ndarray:
    """Return the indices in sensordata of the values of sensors."""
    adr, dim = m.sensor_adr[ids].tolist(), m.sensor_dim[ids].tolist()
    return np.concatenate([np.arange(a, a + n) for a, n in zip(adr, dim, strict=True)])


@per_structure
def _sensor_of_entry(m) -> np.ndarray:
    """Return the sensor of each entry of sensordata."""
    every = np.arange(m.nsensor)
    return np.repeat(every, m.sensor_dim)[np.argsort(_sensordata_indices(m, every))]


def _cut_off(m: Model, index: np.ndarray, value: Array) -> Array:
    """Clip values to a positive cutoff: real numbers on both sides, positive ones on the upper side."""
    xp = xp_of(value)
    sensor = _sensor_of_entry(m)[index]
    datatype = m.sensor_datatype[sensor]
    without_cutoff = np.isin(m.sensor_type[sensor], WITHOUT_CUTOFF)
    real, positive = (datatype == DataType.REAL) & ~without_cutoff, (datatype == DataType.POSITIVE) & ~without_cutoff
    if not (real | positive).any():
        return value
    cutoff = take(m.sensor_cutoff, sensor)
    bound = xp.where(cutoff > 0, cutoff, np.inf)
    value = xp.where(real | positive, xp.minimum(value, bound), value)
    return xp.where(real, xp.maximum(value, -bound), value)
