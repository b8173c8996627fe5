"""Multiple shooting of a long record over which errors grow: windows whose gaps close step by step."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from jaxsim.identify.data import Recordings
from jaxsim.identify.problem import Initial, Point, Problem
from jaxsim.identify.states import memory, position_deviations

WINDOW, FEWEST, MOST = 30, 8, 500  # steps of a window, windows of a record; longer ones rather than more
GAPS = (1.0, 0.1, 0.01)  # deviations of windows' ends from the starts of the next, relative to measured states'
APART = 1.5  # residuals, relative to those of loose windows, above which gaps stay open
FAR = 100.0  # times their variation that measurements move along derivatives by parameters, if errors grow
SAME = 1.02  # cost of the whole record, relative to that of windows with closed gaps, up to which it is the same

Fitted = Callable[[Problem, Point], tuple[Point, np.ndarray]]


def has_windows(problem: Problem) -> bool:
    """Return whether trajectories can be cut: long enough, states measured by sensors, no state that is not."""
    late = any(p.kind in ("delay", "offset") for p in problem.parameters)
    if late or memory(problem.m) or not problem.m.nv or problem.data.ctrl.shape[1] < FEWEST * WINDOW:
        return False
    return position_deviations(problem.m, problem.data) is not None


def noise_scale(data: Recordings) -> float:
    """Estimate the white noise of measurements in units of `sigma`, from third differences if `sigma` was not given.

    `sigma` is 1 if it was not given; then the result is infinite where no four rows follow each other.
    """
    if (data.sigma != 1).any():
        return 1.0
    rows = data.measured[:, np.isfinite(data.measured).any((0, 2))]
    squares = np.diff(rows, 3, axis=1) ** 2 / 20  # 20 = 1 + 9 + 9 + 1
    return float(np.sqrt(np.nanmean(squares))) if np.isfinite(squares).any() else np.inf


def errors_grow(problem: Problem, point: Point) -> bool:
    """Return whether derivatives at the first point have outgrown the motion, as in a chaotic record.

    They have if a change of a parameter by its own size moves measurements, to first order, `FAR` times as much as they
    vary. Such rollouts have no common minimum with the record, or a narrow one among many.
    """
    jac = problem.linearised(point).jacobian(len(problem.first))
    moved = np.sqrt((jac**2).sum(0) / max(1, problem.known[: problem.chunk].sum())) * problem.scale
    measured = np.where(problem.known, problem.measured, np.nan) / problem.data.sigma
    varied = np.sqrt(np.nanmean((measured - np.nanmean(measured, axis=(0, 1))) ** 2))
    return not moved.max() <= FAR * varied


def linked(problem: Problem, share: float) -> Problem:
    """Set the deviations of windows' ends to this share of those of measured states, but not below rounding errors."""
    rounding = 4 * float(np.finfo(problem.first.dtype).eps)
    least = [rounding * np.abs(x).max() for x in (problem.qpos, problem.qvel)]
    ends = np.maximum(share * _near(problem, problem.window), np.repeat(least, problem.m.nv))
    return problem.replace(ends=ends, setting=problem.setting._replace(ends=jnp.asarray(ends)))


def through_windows(
    problem: Problem, free: np.ndarray, fitted: Fitted
) -> tuple[Problem, Point, float, tuple[str, ...]]:
    """Fit windows with ever smaller gaps from coordinates (s, p), then the whole record; return the last that holds.

    If errors grow over the whole record, or it has another minimum, that is windows with closed gaps. If residuals grow
    as gaps close, it is windows with gaps. Also returned: the point, the share of `linked`, zero for the whole record,
    and a sentence where the model does not hold.
    """
    windows = cut(problem)
    kept, point, costs = (windows, 0.0), windows.start(free), []
    for share in GAPS:
        part = linked(windows, share)
        found, history = fitted(part, point)
        costs.append(float(np.nanmin(history[:, -1])))
        if costs[-1] > APART**2 * min(costs):
            return kept[0], point, kept[1], (_broken(problem, windows, costs),)
        kept, point = (part, share), found
    whole = Point(point.free, point.shift[:, :, :1, problem.moved])
    if not errors_grow(problem, whole):
        whole, history = fitted(problem, whole)
        if np.nanmin(history[:, -1]) <= SAME * costs[-1]:
            return problem, whole, 0.0, ()
    return kept[0], point, kept[1], ()


def _broken(problem: Problem, windows: Problem, costs: list[float]) -> str:
    """Sentence on costs that grow as gaps close."""
    times, seconds = (costs[-1] / min(costs)) ** 0.5, windows.window * float(windows.m.opt.timestep)
    start = "" if problem.shifts else ", or the initial state is not as given (initial= makes it unknown)"
    return (
        f"the model does not hold over the whole record{start}: as gaps between windows of {seconds:.3g} s close, "
        f"residuals become {times:.3g} times as large; values are those of windows with gaps"
    )


def _near(problem: Problem, window: int) -> np.ndarray:
    """Deviations (2 nv,) of measured positions, and of velocities that move them so far within a window."""
    near = position_deviations(problem.m, problem.data)
    assert near is not None
    return np.concatenate([near, near / (window * float(problem.m.opt.timestep))])


def cut(problem: Problem) -> Problem:
    """Cut trajectories into windows with unknown starts, in units of measured states' deviations but the first."""
    m, rows = problem.m, problem.data.ctrl.shape[1]
    window = max(WINDOW, -(-rows // MOST))
    near = _near(problem, window)
    states = Initial(*np.split(near, 2))
    options = {"initial": states, "continuity": states, "loss": problem.loss, "controller": problem.controller}
    windows = Problem(m, problem.data, problem.parameters, problem.step, window=window, **options)
    deviations = np.tile(near, (windows.windows, 1))
    deviations[0] = 0
    deviations[0, problem.moved] = problem.deviations[0]
    return windows.replace(
        deviations=deviations, setting=windows.setting._replace(deviations=jnp.asarray(deviations)),
        chunk=min(windows.chunk, problem.chunk),
    )  # fmt: skip
