"""Test of residuals for white noise: sensors with correlated residuals, and a likely cause."""

from collections.abc import Sequence

import numpy as np

LEVEL = 4.0  # standard deviations of a correlation of white noise, from which on one is named
LEAST = 0.05  # correlation of neighbours, below which it changes no interval by more than some percent
ROUNDING = 1e-6  # of a measurement's variation, below which residuals are rounding
FEWEST_ROWS, LOWEST = 64, 8  # of a record, and periods within it, from which on an oscillation is one
NARROW = 0.5  # of the residuals' power in one band, from which on they are an oscillation
SHARE = 0.2  # of the residual's variation that a cause explains, from which on it is guessed
SHAPES = {
    "bias": 'a bias (signal("bias", ...))',
    "gain": 'a gain (signal("gain", ...))',
    "delay": 'a delay or a time offset (signal("delay" or "offset", ...), or "ctrl_delay" of its actuator)',
    "side": "backlash, which is not modelled: the residual follows the direction of motion",
    "oscillation": "an oscillation at {:.3g} Hz that the model lacks: a missing dof, a flexible part",
    "speed": "damping or dry friction that is missing: the residual grows where the motion reverses",
}


def coloured(
    residual: np.ndarray, y: np.ndarray, names: Sequence[str], sizes: Sequence[int], timestep: float = 1.0
) -> list[str]:
    """Guess why residuals (k, n, ny) of sensors, in their units, correlate between rows; a sentence for each sensor.

    The guess is the regressor that explains most of the residuals: the simulated signal y (k, n, ny) itself (a gain), a
    constant (a bias), its rate (a delay), the sign of its rate (backlash), the double integral of that sign
    (friction), or a narrow band of frequencies in which the signal has little (a missing dof).
    """
    lines, at = [], 0
    for name, size in zip(names, sizes, strict=True):
        columns = range(at, at + size)
        at += size
        found = [_correlation(residual[..., i]) for i in columns]
        worst = int(np.argmax([abs(rho) / deviation for rho, deviation in found]))
        rho, deviation = found[worst]
        r = residual[..., columns[worst]]
        if abs(rho) < max(LEVEL * deviation, LEAST) or np.nanstd(r) < ROUNDING * np.std(y[..., columns[worst]]):
            continue
        shares = _explained(r, y[..., columns[worst]])
        shares["oscillation"], frequency = _oscillation(r, y[..., columns[worst]])
        best = max(shares, key=lambda shape: shares[shape])
        looks = SHAPES[best].format(frequency / timestep)
        guess = f"; {100 * shares[best]:.0f} % look like {looks}" if shares[best] > SHARE else ""
        lines.append(f"residuals of {name} are not white (correlation of neighbours {rho:+.2f}): {_CAUSE}{guess}")
    return lines


_CAUSE = "the model lacks something, and intervals are too narrow"


def _correlation(r: np.ndarray) -> tuple[float, float]:
    """Correlation of neighbours in rows (k, n), and its standard deviation for white noise."""
    known = np.isfinite(r)
    both = known[:, 1:] & known[:, :-1]
    x = np.where(known, r, 0)
    power = (x**2).sum() / max(1, known.sum())
    count = max(1, int(both.sum()))
    return float((x[:, 1:] * x[:, :-1] * both).sum() / count / max(power, 1e-300)), count**-0.5


def _explained(r: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Share of the residuals (k, n) beyond white noise that is a multiple of each shape of a signal (k, n)."""
    known = np.isfinite(r)
    y = y[:, : r.shape[1]]
    rate = np.gradient(y, axis=1) if y.shape[1] > 1 else np.zeros_like(y)
    size = np.abs(rate).max(initial=0) + 1e-300
    direction = np.tanh(20 * rate / size)
    shapes = {"bias": np.ones_like(y), "gain": y, "delay": rate, "side": direction,
              "speed": np.cumsum(np.cumsum(direction, 1), 1)}  # fmt: skip
    x = np.where(known, r, 0)
    smooth = float((x[:, 1:] * x[:, :-1]).sum())  # white noise adds nothing to it
    shares = {}
    for name, shape in shapes.items():
        s = np.where(known, shape, 0)
        s = s - (s.sum() / max(1, known.sum()) * known if name != "bias" else 0)
        power = float((s**2).sum())
        shares[name] = min(1.0, float((s * x).sum()) ** 2 / max(power, 1e-300) / max(smooth, 1e-300)) if power else 0.0
    return shares


def _oscillation(r: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Share of the residuals (k, n) in the band around their strongest frequency, and that frequency times a step.

    The share is zero if the signal (k, n) has as much of it there: other causes explain that.
    """
    n = r.shape[1]
    if n < FEWEST_ROWS:
        return 0.0, 0.0
    known, taper = np.isfinite(r), np.hanning(n)
    y = np.where(known, y[:, :n], 0)
    x, y = (np.where(known, a - a.sum() / max(1, known.sum()), 0) * taper for a in (np.where(known, r, 0), y))
    power, own = ((np.abs(np.fft.rfft(a, axis=1)) ** 2).sum(0) for a in (x, y))
    peak = LOWEST + int(np.argmax(power[LOWEST:-1]))
    band = slice(peak - 2, peak + 3)
    share = float(power[band].sum() / max(power.sum(), 1e-300))
    has = float(own[band].sum() / max(own.sum(), 1e-300))
    return (share if share > NARROW and has < 0.5 * share else 0.0), peak / n
