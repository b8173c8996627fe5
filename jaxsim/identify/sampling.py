"""Times of the rows of a recording: their check against the model's time step, and interpolation to it."""

import numpy as np

from jaxsim.core.model import Model
from jaxsim.core.types import DataType

LARGEST_SPREAD = 0.99  # of a time step, between the rows that are most early and most late: a clock's jitter, no gap
GAP = 1.5  # median steps between two rows, from which on rows are missing between them
NEAR_STEP = 0.01  # relative difference of the median step from the model's, below which a recording has its rate
NEAR = 1e-3  # of a time step, within which two times are one: clocks have a resolution of their own


class RowError(ValueError):
    """An invalid row of a recording: the cause, the step and the trajectory."""

    def __init__(self, what: str, row: int, trajectory: int = 0):
        super().__init__(f"step {row} of trajectory {trajectory}: {what}")
        self.what, self.row = what, row


def timestep(m: Model) -> float:
    """Time step of a model in decimal: in single precision 0.01 is 2e-10 less."""
    return float(str(np.asarray(m.opt.timestep)))


def sample_times(times: np.ndarray, timestep: float, resample: bool) -> np.ndarray | None:
    """Choose times to interpolate to, or None if the rows (n,) are the model's steps already.

    Raises RowError if times do not increase, or if they differ from the model's steps and `resample` is not set.
    """
    bad = np.flatnonzero(~np.isfinite(times))
    if len(bad):
        raise RowError("the time is missing", int(bad[0]))
    late = np.flatnonzero(np.diff(times) <= 0)
    if len(late):
        row = int(late[0]) + 1
        raise RowError(f"the time does not rise: {times[row]:g} after {times[row - 1]:g}", row)
    off = (times - times[0]) / timestep - np.arange(len(times))
    spread = np.maximum.accumulate(off) - np.minimum.accumulate(off)
    if spread[-1] <= LARGEST_SPREAD:
        return None
    if resample:
        return times[0] + timestep * np.arange(int((times[-1] - times[0]) / timestep + NEAR) + 1)
    step = float(np.median(np.diff(times)))
    row = int(np.argmax(spread > LARGEST_SPREAD))
    if abs(step / timestep - 1) < NEAR_STEP and times[row] - times[row - 1] > GAP * step:
        raise RowError(
            f"rows are missing before time {times[row]:g}, which is off by {abs(off[row]):.3g} steps. "
            "resample=True reads them as missing measurements, and holds the controls",
            row,
        )
    raise RowError(
        f"rows are {step:.6g} s apart (median) and the model's time step is {timestep:.6g} s, so that time "
        f"{times[row]:g} is off by {abs(off[row]):.3g} steps. Set the model's timestep, or pass resample=True",
        row,
    )


def resampled(
    m: Model, names: tuple[str, ...], times: np.ndarray, grid: np.ndarray, ctrl: np.ndarray, measured: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Resample controls (k, n, nu), held, and measurements (k, n, ny), linear in time, at the times of `grid`.

    A measurement next to a missing one is missing, and so is one within a gap. Quaternions are normalised, with signs
    that agree.
    """
    before = np.searchsorted(times, grid + NEAR * float(m.opt.timestep), side="right") - 1
    after = np.minimum(before + 1, len(times) - 1)
    share = np.clip((grid - times[before]) / np.where(after > before, times[after] - times[before], 1), 0, 1)[:, None]
    low, high = measured[:, before], measured[:, after]
    quaternions = _quaternions(m, names)
    for entries in quaternions:
        opposed = (low[..., entries] * high[..., entries]).sum(-1, keepdims=True) < 0
        high[..., entries] = np.where(opposed, -high[..., entries], high[..., entries])
    gap = (times[after] - times[before] > GAP * np.median(np.diff(times)))[:, None] if len(times) > 1 else False
    y = np.where(share < NEAR, low, np.where(gap & (share < 1 - NEAR), np.nan, low + share * (high - low)))
    for entries in quaternions:
        y[..., entries] /= np.linalg.norm(y[..., entries], axis=-1, keepdims=True)
    return ctrl[:, before], y


def _quaternions(m: Model, names: tuple[str, ...]) -> list[slice]:
    """Columns of the measurements of each quaternion."""
    ids = np.array([m.name2id("sensor", name) for name in names], int)
    ends = np.cumsum(m.sensor_dim[ids])
    kinds = m.sensor_datatype[ids]
    return [slice(end - 4, end) for end, kind in zip(ends, kinds, strict=True) if kind == DataType.QUATERNION]
