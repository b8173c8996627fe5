"""Checks of recordings: rows that cannot be right, and measurements in what looks like other units or signs."""

from collections.abc import Sequence

import numpy as np

from jaxsim.core.model import Model
from jaxsim.core.types import DataType, JointType, SensorType
from jaxsim.identify.sampling import RowError

POSITIONS = (SensorType.JOINTPOS, SensorType.ACTUATORPOS, SensorType.TENDONPOS, SensorType.FRAMEPOS)
FAR = 20.0  # standard deviations of the noise between a first row and the initial state
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
    """A sentence for each sensor with rows (k, n, ny) that look like another unit or sign, or another first state.

    `simulated` are those at the start of the fit. `is_known`: whether initial states are not fitted.
    """
    lines = []
    ids = [m.name2id("sensor", name) for name in names]
    ends = np.cumsum(m.sensor_dim[np.array(ids)])
    for name, i, columns in zip(names, ids, np.split(np.arange(ends[-1]), ends[:-1]), strict=True):
        kind = m.sensor_type[i]
        y, z = simulated[..., columns], measured[..., columns]
        known = np.isfinite(z) & np.isfinite(y)
        y, z = y[known], z[known]
        looks = _looks(y, z)
        if looks:
            lines.append(f"measurements of {name} look like {looks}")
            continue
        first = np.abs(measured[:, 0, columns] - simulated[:, 0, columns]) / sigma[columns]
        away = float(np.nanmedian(first)) if np.isfinite(first).any() else 0.0
        if is_known and kind in POSITIONS and away > FAR:
            lines.append(
                f"recordings begin away from their initial states: the first row of {name} by {away:.3g} standard "
                "deviations of its noise. Pass qpos= to recordings, or initial= to identify"
            )
    return lines


def _looks(y: np.ndarray, z: np.ndarray) -> str | None:
    """Name of the unit or sign in which measurements z (n,) are multiples of simulated ones y (n,), or None."""
    if len(y) < 8 or np.std(y) == 0 or np.std(z) == 0:
        return None
    y, z = y - y.mean(), z - z.mean()
    rho = float(y @ z) / float(np.sqrt((y @ y) * (z @ z)))
    ratio = float(y @ z) / float(y @ y)
    found = (text for unit, text in UNITS.items() if abs(rho) > ALIKE and 1 / NEAR < ratio / unit < NEAR)
    return next(found, None)
