"""How well derivatives of the engine's functions are known: both modes against extrapolated central differences.

One program a model and function: value, forward-mode and reverse-mode derivative by all float leaves of Model and Data,
of all float outputs. Inputs and outputs are flat vectors with named slices, so that one compilation serves all fields.
"""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.engine import history
from jaxsim.engine.collision import convex, sensitivity
from jaxsim.model import FLOATS, OPTION_FLOATS, Statistic
from jaxsim.types import IntegratorType

INPUTS = ("time", "qpos", "qvel", "act", "history", "plugin_state", "ctrl", "qfrc_applied", "xfrc_applied")
INPUTS += ("mocap_pos", "mocap_quat", "qacc_warmstart")
STEPS = (1e-3, 1e-4, 1e-5)  # half widths of differences, each extrapolated with half of it
# a geom's frame within 1e-6 of its body's inertial frame is that frame: differences have to reach beyond
FRAMES = ("body_ipos", "body_iquat", "geom_pos", "geom_quat")
WIDE = (3e-3, 1e-3, 3e-4)
# zero turns something off, so that zeros are not moved
SWITCHES = ("frictionloss", "geom_fluid", "sensor_cutoff", "actuator_dynprm", "cam_sensorsize")
STABLE = 2e-7  # extrapolations of a smooth stretch: two widths agree this well,
APART = 2e-6  # and all this well
BEND = 1e-2  # difference of one-sided slopes that tells a kink right at the point, where central ones agree
DOUBT = 5e-7  # errors above this are measured again, by wider differences of higher order
LONG = (8e-3, 8e-4)  # the widest of those
TINY = 1e-8  # width at which rounding shows, and what is finer than all differences
BATCH = 10  # values that are asked for at once
FLOOR = 1e-3  # derivatives below this part of the output's own size are measured against that part
TYPICAL = {"solref": 0.01, "margin": 1e-3, "gap": 1e-3, "timestep": 1e-3, "solimp": 0.01}


def exact_searches():
    """From now on let convex searches end at the solution of the equations whose derivative the engine takes.

    They end within a tolerance of it, on curved shapes some 1e-6 off along the surface, which ruins differences.
    """
    search = convex._penetrate
    if search.__module__ == __name__:
        return  # already so

    def solved(kinds, iterations, a, b, tolerance, active, cutoff):
        found, points, weight = search(kinds, iterations, a, b, tolerance, active, cutoff)
        known = active & jnp.isfinite(found.dist)
        touch = sensitivity.Touch(found.x1, found.x2, convex._way(a, b, found), found.dist)
        touch = sensitivity.Touch(*[jnp.where(known, x, 0) for x in touch])
        one = sensitivity.feature(a, points.a, weight, touch.x1, touch.normal)
        two = sensitivity.feature(b, points.b, weight, touch.x2, -touch.normal)
        z = jnp.where(known, sensitivity.polished(a, b, one, two, touch), 0)
        answer = {"x1": z[:3], "x2": z[3:6], "normal": z[6:9], "dist": z[9]}
        moved = {n: jnp.where(known, x, getattr(found, n)) for n, x in answer.items()}
        return found._replace(**moved), points, weight

    convex._penetrate = solved


class Slices:
    """Named arrays as slices of one flat vector."""

    def __init__(self, arrays):
        self.shapes = {name: np.shape(a) for name, a in arrays.items() if np.size(a)}
        ends = np.cumsum([0, *(int(np.prod(s)) for s in self.shapes.values())])
        self.at = {n: slice(a, b) for n, (a, b) in zip(self.shapes, itertools.pairwise(ends), strict=True)}
        self.size = int(ends[-1])

    def flat(self, arrays):
        return jnp.concatenate([jnp.ravel(arrays[name]) for name in self.shapes])

    def split(self, vector):
        return {name: vector[self.at[name]].reshape(shape) for name, shape in self.shapes.items()}


def floats(tree):
    """The float leaves of a PyTree by their path."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    named = {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}
    return {n: x for n, x in named.items() if jnp.issubdtype(jnp.result_type(x), jnp.floating)}


def inputs_of(m, d, function="step"):
    """Everything that can be differentiated by: float fields of the model, its options, inputs of the state."""
    x = {name: getattr(m, name) for name in FLOATS}
    x |= {f"opt.{name}": getattr(m.opt, name) for name in OPTION_FLOATS}
    if function != "set_const":
        x |= {f"stat.{name}": getattr(m.stat, name) for name in Statistic._fields}
        names = (*INPUTS, "qacc") if function == "inverse" else INPUTS
        x |= {f"d.{name}": getattr(d, name) for name in names}
    return {name: value for name, value in x.items() if np.size(value)}


def apply(m, d, x):
    """Model and data with inputs put in."""
    part = {p: {n[len(p) :]: v for n, v in x.items() if n.startswith(p)} for p in ("opt.", "stat.", "d.")}
    opt = m.opt.replace(**part["opt."]).replace(medium=m.opt.medium)
    model = {n: v for n, v in x.items() if "." not in n}
    return m.replace(**model, opt=opt, stat=m.stat.replace(**part["stat."])), d.replace(**part["d."])


FUNCTIONS = {"step": jaxsim.step, "inverse": jaxsim.inverse, "set_const": lambda m, d: jaxsim.set_const(m)}


class Program(NamedTuple):
    """Compiled functions and the slices of their x and y.

    `run(m, d, x, v, w)`: value, derivative along v, pull-back of w; `values(m, d, points)` (n, x) -> (n, y).
    """

    run: object
    values: object
    x: Slices
    y: Slices


def compiled(m, d, function="step", together=False):
    """The program of one function ("step", "inverse", "set_const") at one structure of model and data.

    `together`: values come from a batch, which takes one more compilation; searches take long one by one.
    """
    call = FUNCTIONS[function]
    x = Slices(inputs_of(m, d, function))
    y = Slices(floats(jax.eval_shape(call, m, d)))

    def outputs(m, d, vector):
        return y.flat(floats(call(*apply(m, d, x.split(vector)))))

    def run(m, d, vector, v, w):
        value, push = jax.linearize(lambda vector: outputs(m, d, vector), vector)
        return value, push(v), jax.linear_transpose(push, vector)(w)[0]

    # a program is run some thousand times: two fifths less to compile is worth more than its speed
    quick = {"xla_backend_optimization_level": 0}
    run = jaxsim.jit(run, compiler_options=quick)
    batch = jaxsim.jit(jax.vmap(outputs, (None, None, 0)), compiler_options=quick)

    def values(m, d, points):
        if not together:
            none_x, none_y = np.zeros(x.size), np.zeros(y.size)
            return np.stack([np.asarray(run(m, d, point, none_x, none_y)[0]) for point in points])
        full = np.concatenate([points, np.repeat(points[-1:], max(BATCH - len(points), 0), axis=0)])
        return np.asarray(batch(m, d, full))[: len(points)]

    return Program(run, values, x, y)


class Row(NamedTuple):
    """By one field: largest derivative, worst error of both modes, entries checked and at kinks, worst output."""

    size: float
    error: float
    reverse: float
    checked: int
    kinks: int
    finite: bool
    output: str


def ends(f, x, v, widths):
    """The values at both ends of some differences: [(above, below)]."""
    sides = f(np.stack([x + side * h * v for h in widths for side in (1, -1)]))
    return list(zip(sides[::2], sides[1::2], strict=True))


def extrapolated(coarse, fine, h):
    """Central difference from values at both ends of h and of h / 2, free of the error in h^2."""
    return (4 * (fine[0] - fine[1]) / h - (coarse[0] - coarse[1]) / (2 * h)) / 3


def romberg(f, x, v, widest, levels=5):
    """Derivatives free of errors below h^8, twice: from the four widest differences and from the four narrowest.

    Rounding in them is that of the narrowest, a sixteenth of the widest: far less than what `extrapolated` ends with.
    """
    widths = [widest / 2**k for k in range(levels)]
    row = [(up - down) / (2 * h) for h, (up, down) in zip(widths, ends(f, x, v, widths), strict=True)]
    for order in range(1, levels - 1):
        row = [fine + (fine - coarse) / (4**order - 1) for coarse, fine in itertools.pairwise(row)]
    return row


def reconsidered(f, x, y, v, dy, scale, error, slope, width):
    """Errors above DOUBT, measured again. `slope` is what differences of `width` gave.

    Not a number where differences cannot tell: the slope close by is another, or rounding of the values explains it.
    """
    surest, again = np.full(len(dy), 0.5 * STABLE), error
    for widest in LONG:
        first, second = romberg(f, x, v, widest)
        gap = np.abs(first - second) / scale
        surer = gap < surest
        again, slope = np.where(surer, np.abs(second - dy) / scale, again), np.where(surer, second, slope)
        width, surest = np.where(surer, widest, width), np.minimum(gap, surest)
    k = np.arange(-5, 6)
    line = np.insert(f(x + TINY * k[k != 0, None] * v), 5, y, axis=0)
    rounding = np.abs(np.diff(line, 3, axis=0)).max(0) / 3 / scale
    close = k @ line / (k @ k * TINY)
    other = np.abs(close - slope) / scale > APART + 4 * rounding / TINY / np.sqrt(k @ k)
    unsure = 6 * rounding / width > DOUBT
    return np.where(error > DOUBT, np.where(other | unsure, np.nan, again), error)


def compare(f, x, y, v, dy, scale, steps, near):
    """By entry, relative to `scale`: the error, not a number where no two extrapolations agree or the slope jumps.

    `near` holds the values at both ends of the middle step.
    """
    wide, half, halved, narrow, least = ends(f, x, v, (steps[0], steps[0] / 2, steps[1] / 2, steps[2], steps[2] / 2))
    pairs = ((wide, half), (near, halved), (narrow, least))
    slopes = [extrapolated(*pair, h) for h, pair in zip(steps, pairs, strict=True)]
    best, far, error = np.full(len(dy), np.inf), np.zeros(len(dy)), np.full(len(dy), np.nan)
    slope, width = slopes[0], np.full(len(dy), steps[0])
    for h, (last, now) in zip(steps[1:], itertools.pairwise(slopes), strict=True):
        gap = np.abs(now - last) / scale
        closer = gap < best
        nearer = np.minimum(np.abs(now - dy), np.abs(last - dy)) / scale
        error, slope, width = np.where(closer, nearer, error), np.where(closer, now, slope), np.where(closer, h, width)
        far, best = np.maximum(far, gap), np.minimum(gap, best)
    bend = np.abs(narrow[0] - 2 * y + narrow[1]) / (steps[2] * scale)
    error = np.where((best < STABLE) & (far < APART) & (bend < BEND), error, np.nan)
    if (error > DOUBT).any():
        return reconsidered(f, x, y, v, dy, scale, error, slope, width)
    return error


def spread(parts, y):
    """The largest entry of each output, at all of its entries."""
    return np.concatenate([np.full(s.stop - s.start, np.abs(y[s]).max(initial=0)) for s in parts.values()])


def directions(name, value, rng):
    """Changes of a field: in proportion to its numbers, and of a typical size, which moves zeros too."""
    draw = rng.standard_normal(value.shape)
    if name.endswith(SWITCHES):
        return (0.1 * np.abs(value) * draw,)
    if name in FRAMES:
        return (0.1 * draw,)
    used = np.abs(value[value != 0])
    typical = 0.1 * used.min() if used.size else next((t for key, t in TYPICAL.items() if key in name), 0.1)
    return (0.1 * np.abs(value) * draw, typical * rng.standard_normal(value.shape))


def movable(m, name, size):
    """Which numbers of a field are not switches: of a history only its samples, not its cursors and times.

    Under implicitfast an offset of zero between a free body and its centre of mass is one, too.
    """
    if name == "body_ipos" and m.opt.integrator == IntegratorType.IMPLICITFAST:
        return np.asarray(m.body_ipos).reshape(-1) != 0
    if name != "d.history":
        return np.ones(size, bool)
    mask = np.zeros(size, bool)
    for group in history.groups(m):
        mask[group.places[:, 2 + group.n :]] = True
    return mask


def reach(m, name, size):
    """How far a field moves: loads, armature and damping by as much as the inertia they act on, which may be tiny."""
    if name in ("dof_armature", "dof_damping", "dof_dampingpoly", "d.qfrc_applied"):
        return np.repeat(np.asarray(m.dof_M0), size // m.nv)
    return np.repeat(np.asarray(m.body_mass), 6) if name == "d.xfrc_applied" else 1.0


def check(program, m, d, function="step", seed=0, report=None, fields=None):
    """{field: Row} at one state, of all inputs or of some."""
    rng = np.random.default_rng(seed)
    x = np.asarray(program.x.flat(inputs_of(m, d, function)))
    none_x, none_y = np.zeros(program.x.size), np.zeros(program.y.size)

    def f(points):
        return program.values(m, d, points)

    y = f(x[None])[0]
    assert np.allclose(y, program.run(m, d, x, none_x, none_y)[0], 1e-6, 1e-6), "values and derivatives of two answers"
    parts = program.y.at
    size = spread(parts, y)
    w = rng.standard_normal(len(y)) / np.maximum(size, 1e-3)
    back = np.asarray(program.run(m, d, x, none_x, w)[2])
    table = {}
    for name in fields or program.x.at:
        where, rows = program.x.at[name], []
        for change in directions(name, x[where], rng):
            v = none_x.copy()
            change = change * movable(m, name, len(change)) * reach(m, name, len(change))
            v[where] = change
            dy = np.asarray(program.run(m, d, x, v, none_y)[1])
            finite = np.isfinite(dy).all() and np.isfinite(back[where]).all()
            steps = WIDE if name in FRAMES else STEPS
            near = ends(f, x, v, steps[1:2])[0]
            rate = np.abs(near[0] - near[1]) / (2 * steps[1])
            scale = np.maximum(spread(parts, dy), np.maximum(FLOOR * size, 1e-9))
            moved = (dy != 0) | ~(rate <= FLOOR * size)
            if function == "set_const":  # a field that passes through says nothing
                moved[parts[name]] = False
            if not change.any() or (finite and not moved.any()):
                rows.append(Row(0.0, 0.0, 0.0, 0, 0, finite, ""))
                continue
            error = np.where(moved, compare(f, x, y, v, dy, scale, steps, near), 0)
            known = moved & ~np.isnan(error)
            most = int(np.argmax(np.where(known, error, -1)))
            output = next(n for n, s in parts.items() if s.start <= most < s.stop)
            terms = np.abs(w * dy).sum() + np.abs(back[where] * change).sum()
            reverse = abs(back[where] @ change - w @ dy) / max(terms, 1e-6)
            kinks = int((moved & ~known).sum())
            rows.append(
                Row(
                    np.abs(dy).max(),
                    error[most] if known.any() else 0.0,
                    reverse,
                    int(known.sum()),
                    kinks,
                    finite,
                    output,
                )
            )
            if report:
                report(name, rows[-1], np.where(known, error, 0), moved & ~known, change)
        table[name] = worst(rows)
    return table


def worst(rows):
    """One row for several of a field."""
    most = max(rows, key=lambda r: r.error)
    return Row(
        max(r.size for r in rows),
        most.error,
        max(r.reverse for r in rows),
        sum(r.checked for r in rows),
        sum(r.kinks for r in rows),
        all(r.finite for r in rows),
        most.output,
    )


def states(program, m, d, count, gap=20, seed=0):
    """States along a trajectory with random controls, by the program of a step itself."""
    rng = np.random.default_rng(seed)
    none_x, none_y = np.zeros(program.x.size), np.zeros(program.y.size)
    kept = set(floats(d))
    for i in range(gap * count):
        d = d.replace(ctrl=0.4 * rng.uniform(-1, 1, m.nu))
        x = program.x.flat(inputs_of(m, d))
        new = program.y.split(np.asarray(program.run(m, d, x, none_x, none_y)[0]))
        d = d.replace(**{n: v for n, v in new.items() if n in kept and "." not in n})
        if i % gap == gap - 1:
            yield d
