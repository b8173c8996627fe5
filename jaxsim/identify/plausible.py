"""Checks of recordings: rows that cannot be right, and measurements in what looks like other units or signs."""

from collections.abc import Sequence

import numpy as np

from jaxsim.core.model import Model
from jaxsim.core.types import DataType, JointType, SensorType
from jaxsim.identify.sampling import RowError

POSITIONS = (SensorType.JOINTPOS, SensorType.ACTUATORPOS, SensorType.TENDONPOS, SensorType.FRAMEPOS)
FAR = 20.0  # standard deviations of the noise between a first row and the initial state
FEWEST = 8  # rows from which on a correlation says something
ALIKE = 0.9  # correlation of measured and simulated rows, from which on their ratio says something
NEAR = 2.0  # ratio to that of another unit
OFF = 0.1  # of a quaternion's norm
UNITS = {180 / np.pi: "degrees in place of rad", 1e3: "mm in place of m", -1.0: "the other sign"}


def check_rows(m: Model, name: str, values: np.ndarray) -> None:
    """Raise RowError for measurements (k, n, dim) of a sensor that cannot be: norms of quaternions, jumps by a turn."""
    i = m.name2id("sensor", name)
    if m.sensor_datatype[i] == DataType.QUATERNION:
        norms = np.linalg.norm(values, axis=-1)
        bad = np.argwhere(np.abs(norms - 1) > OFF)  # not of what is missing
        if len(bad):
            text = (
                f"sensor {name!r} has a quaternion of norm {norms[tuple(bad[0])]:.3g}; expected w, x, y, z, of norm 1"
            )
            raise RowError(text, int(bad[0][1]), int(bad[0][0]))
    hinge = m.sensor_type[i] == SensorType.JOINTPOS and m.jnt_type[m.sensor_objid[i]] == JointType.HINGE
    jumps = np.argwhere(np.abs(np.abs(np.diff(values[..., 0], axis=1)) - 2 * np.pi) < 0.5) if hinge else []
    if len(jumps):
        text = f"sensor {name!r} jumps by a turn: an angle of a hinge is not wrapped, use np.unwrap"
        raise RowError(text, int(jumps[0][1]) + 1, int(jumps[0][0]))


def suspicious(
    m: Model, names: Sequence[str], simulated: np.ndarray, measured: np.ndarray, sigma: np.ndarray, is_known: bool
) -> list[str]:
    """Return a sentence for each sensor whose rows (k, n, ny) look like another unit or sign, or one on first states.

    `simulated` are those at the start of the fit. `is_known`: whether initial states are not fitted.
    """
    ids = np.array([m.name2id("sensor", name) for name in names])
    begins = np.cumsum(m.sensor_dim[ids]) - m.sensor_dim[ids]
    known = np.isfinite(measured) & np.isfinite(simulated)
    rows = np.maximum(known.sum((0, 1)), 1)
    y, z = (np.where(known, x, 0) for x in (simulated, measured))
    y, z = (np.where(known, x - x.sum((0, 1)) / rows, 0) for x in (y, z))
    yy, yz, zz = (np.add.reduceat(np.einsum("kni,kni->i", a, b), begins) for a, b in ((y, y), (y, z), (z, z)))
    alike = (yz**2 > ALIKE**2 * yy * zz) & (np.add.reduceat(rows, begins) >= FEWEST)
    ratio = yz / np.where(alike, yy, 1)
    lines = [
        f"measurements of {name} look like {text}"
        for name, is_alike, x in zip(names, alike, ratio, strict=True)
        for unit, text in UNITS.items()
        if is_alike and 1 / NEAR < x / unit < NEAR
    ]
    first = np.where(known[:, 0], np.abs(measured[:, 0] - simulated[:, 0]) / sigma, 0).max(0)
    away = np.maximum.reduceat(first, begins) * np.isin(m.sensor_type[ids], POSITIONS)
    worst = int(np.argmax(away))
    if is_known and away[worst] > FAR and not lines:
        lines.append(
            f"recordings begin away from their initial states: the first row of {names[worst]} by {away[worst]:.3g} "
            "standard deviations of its noise. Pass qpos= to recordings, or initial= to identify"
        )
    return lines
