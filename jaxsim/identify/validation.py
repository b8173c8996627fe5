"""Prediction errors on held-out records, over several horizons, compared with the nominal model and the noise."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxsim.core.describe import describe_struct
from jaxsim.identify.data import Recordings, columns_of
from jaxsim.identify.states import measured_states, measures_states

HORIZONS = (0.1, 0.5, 2.0)  # s


@dataclasses.dataclass(frozen=True, repr=False)
class Validation:
    """Root mean squares of predicted less measured values over the first `horizons` (h,) seconds of windows.

    Windows begin in measured states, one after the other. `fitted` and `nominal` (h, sensors) are in the sensors'
    units, as `noise` (sensors,), the standard deviation that was given. `rest` (h,) holds the fitted model's root mean
    square over all sensors in units of the noise.
    """

    names: tuple[str, ...]
    horizons: np.ndarray
    fitted: np.ndarray
    nominal: np.ndarray
    noise: np.ndarray
    rest: np.ndarray

    __repr__ = describe_struct

    def __str__(self) -> str:
        head = f"{'held out, root mean square':28s} {'noise':>10s}"
        head += "".join(f" {f'nominal {h:g} s':>16s} {f'fitted {h:g} s':>16s}" for h in self.horizons)
        lines = [head]
        for i, name in enumerate(self.names):
            pairs = zip(self.nominal[:, i], self.fitted[:, i], strict=True)
            lines.append(f"{name:28s} {self.noise[i]:10.4g}" + "".join(f" {a:16.4g} {b:16.4g}" for a, b in pairs))
        return "\n".join(lines)


def validate(problem: Any, free: np.ndarray, data: Recordings, horizons: Sequence[float] = HORIZONS) -> Validation:
    """Compute prediction errors of a problem's values `free` (p,), and of its nominal model, on other recordings.

    Horizons longer than the recordings are left out. If all are longer, the shortest is used. If sensors do not measure
    the states, or have a delay, windows are whole recordings, which begin in their initial states.
    """
    m, n = problem.m, data.ctrl.shape[1]
    steps = {max(2, min(round(h / float(m.opt.timestep)) + 1, n)): h for h in sorted(horizons, reverse=True)}
    lengths = np.array(sorted(steps))
    is_late = any(p.kind in ("delay", "offset") for p in problem.parameters)
    longest = int(lengths[-1]) if measures_states(m, data) and not is_late else n
    states = data.states if data.states is not None or longest == n else measured_states(m, data)
    whole = dataclasses.replace(data, states=states)
    other = type(problem)(
        m, whole, problem.parameters, problem.step, window=longest, controller=problem.controller, chunk=problem.chunk
    )
    shape = (len(data.ctrl), other.windows, longest, -1)
    both = other.start(np.stack([np.asarray(free), np.asarray(problem.first)]))
    y = np.concatenate([y for _, y, _ in other.simulated(both)], 1)
    errors = (y - other.measured).reshape(2, *shape)
    sensors = columns_of(m, data.names).values()
    size = np.array([[[_rms(e[:, :, :h, i]) for i in sensors] for h in lengths] for e in errors])
    scaled = np.array([_rms(errors[0, :, :, :h] / data.sigma) for h in lengths])
    noise = np.array([data.sigma[i[0]] for i in sensors])
    seconds = np.array([min(steps[h], (n - 1) * float(m.opt.timestep)) for h in lengths])
    return Validation(data.names, seconds, size[0], size[1], noise, scaled)


def _rms(errors: np.ndarray) -> float:
    """Root mean square of what is known."""
    return float(np.sqrt(np.nanmean(errors**2)))
