"""How well derivatives of the engine's functions are known: both modes against differences in floats of 80 bits.

One program a model and function: value, forward-mode and reverse-mode derivative by all float leaves of Model and Data,
of all float outputs. Inputs and outputs are flat vectors with named slices, so that one compilation serves all fields.
Differences are taken of the same function evaluated by `extended`, where rounding leaves room for narrow ones.
"""

import contextlib
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.model import FLOATS
from jaxsim.core.option import OPTION_FLOATS, STATISTICS
from jaxsim.core.types import IntegratorType, SolverType
from jaxsim.engine.collision.convex import convex
from jaxsim.engine.structure import history
from validation import extended

INPUTS = ("time", "qpos", "qvel", "act", "history", "plugin_state", "ctrl", "qfrc_applied", "xfrc_applied")
INPUTS += ("mocap_pos", "mocap_quat", "qacc_warmstart")
STEP = 4e-5  # half width of the widest differences
# a geom's frame within 1e-6 of its body's inertial frame is that frame: differences have to reach beyond
FRAMES = ("body_ipos", "body_iquat", "geom_pos", "geom_quat")
WIDE = 4e-4
LOOSE = 4e-3  # with conjugate gradients, whose answers end at 1e-11
# zero turns something off, so that zeros are not moved
SWITCHES = ("frictionloss", "geom_fluid", "sensor_cutoff", "actuator_dynprm", "cam_sensorsize")
PARTS = (1, 0.5, 0.25)  # of it, of the others
STABLE = 2e-7  # on a smooth stretch extrapolations from two of them and from all agree this well
BATCH = 60  # values that are asked for at once
FLOOR = 1e-3  # derivatives below this part of the output's own size are measured against that part
# M a - f, and what balances f: as precise as f is, so measured against a part of f too
DIFFERENCES = {"qfrc_constraint": "qfrc_smooth", "efc.force": "qfrc_smooth"}
ROUNDED = 1e-6  # that part
NUDGE = 1e-3  # of each number of qpos
TYPICAL = {"solref": 0.01, "margin": 1e-3, "gap": 1e-3, "timestep": 1e-3, "solimp": 0.01}


@contextlib.contextmanager
def exact_searches():
    """Within this context convex searches end at the solution of the equations whose derivative the engine takes.

    They end within a tolerance of it, on curved shapes some 1e-6 off along the surface, which ruins differences.
    Programs must be traced and evaluated inside.
    """
    search, for_each = convex.witness_search, convex.for_each

    def exact(settings, tables, a, b, active, cutoff):
        found = search(settings, tables, a, b, active, cutoff)
        known = active & jnp.isfinite(found.dist)
        z = convex.solved(settings, tables, a, b, found).solved.z
        answer = {"x1": z[:3], "x2": z[3:6], "normal": z[6:9], "dist": z[9]}
        return found._replace(**{n: jnp.where(known, x, getattr(found, n)) for n, x in answer.items()})

    def side_by_side(search, shared, rows, count):
        real = jnp.arange(len(jax.tree.leaves(rows)[0])) < count
        return jax.vmap(search, in_axes=(None, 0, 0))(*jax.lax.stop_gradient((shared, rows)), real)

    convex.witness_search, convex.for_each = exact, side_by_side
    try:
        yield
    finally:
        convex.witness_search, convex.for_each = search, for_each


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
        x |= {f"stat.{name}": getattr(m.stat, name) for name in STATISTICS}
        names = (*INPUTS, "qacc") if function == "inverse" else INPUTS
        x |= {f"d.{name}": getattr(d, name) for name in names}
    return {name: value for name, value in x.items() if np.size(value)}


def apply(m, d, x):
    """Model and data with inputs put in."""
    part = {p: {n[len(p) :]: v for n, v in x.items() if n.startswith(p)} for p in ("opt.", "stat.", "d.")}
    opt = m.opt.replace(**part["opt."]).replace(fluid=m.opt.fluid)
    model = {n: v for n, v in x.items() if "." not in n}
    return m.replace(**model, opt=opt, stat=m.stat.replace(**part["stat."])), d.replace(**part["d."])


FUNCTIONS = {"step": jaxsim.step, "inverse": jaxsim.inverse, "set_const": lambda m, d: jaxsim.set_const(m)}


class Program(NamedTuple):
    """A compiled function, one in floats of 80 bits, and the slices of their x and y.

    `run(m, d, x, v, w)`: value, derivative along v, pull-back of w; `values(m, d, points)` (n, x) -> (n, y).
    """

    run: object
    values: object
    x: Slices
    y: Slices


def compiled(m, d, function="step"):
    """The program of one function ("step", "inverse", "set_const") at one structure of model and data."""
    if np.finfo(extended.WIDE).eps > 1e-18:
        raise RuntimeError("differences need a machine whose long double is wider than a double, such as x86")
    call = FUNCTIONS[function]
    x = Slices(inputs_of(m, d, function))
    y = Slices(floats(jax.eval_shape(call, m, d)))

    def outputs(m, d, vector):
        return y.flat(floats(call(*apply(m, d, x.split(vector)))))

    def run(m, d, vector, v, w):
        value, push = jax.linearize(lambda vector: outputs(m, d, vector), vector)
        return value, push(v), jax.linear_transpose(push, vector)(w)[0]

    # a program is run some hundred times: two fifths less to compile is worth more than its speed
    run = jaxsim.jit(run, compiler_options={"xla_backend_optimization_level": 0})
    batch = extended.evaluated(jax.vmap(outputs, (None, None, 0)), m, d, jnp.zeros((BATCH, x.size)))

    def values(m, d, points):
        full = np.concatenate([points, np.repeat(points[-1:], -len(points) % BATCH, axis=0)])
        return np.concatenate([batch(m, d, part)[0] for part in np.split(full, len(full) // BATCH)])[: len(points)]

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


def slopes(values, y, h):
    """Derivatives, free of errors below h^6, and where they are none, from values at x + h v, x - h v, x + h v / 2, ...

    At kinks, (n) bool by a scale (n) of each entry's derivatives, differences of several widths or of two sides differ.
    """
    row = [(up - down) / (2 * h * k) for up, down, k in zip(values[::2], values[1::2], PARTS, strict=True)]
    wide = row[0]
    for order in (4, 16):
        rough, row = row, [fine + (fine - coarse) / (order - 1) for coarse, fine in itertools.pairwise(row)]
    slope, gap = row[0], np.abs(row[0] - rough[1])
    bends = [(up - 2 * y + down) / (h * k) for up, down, k in zip(values[::2], values[1::2], PARTS, strict=True)]
    bend = np.abs(2 * bends[-1] - bends[-2])  # what stays of the difference of both sides' slopes as h shrinks
    return wide, slope, lambda scale: ~(np.maximum(gap, bend) < STABLE * scale)


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


def changes(program, m, x, rng, fields):
    """(field, direction (x), half width of its differences) of some fields."""
    loose = LOOSE if m.opt.solver == SolverType.CG else 0.0
    for name in fields:
        where = program.x.at[name]
        for change in directions(name, x[where], rng):
            v = np.zeros(len(x))
            v[where] = change * movable(m, name, len(change)) * reach(m, name, len(change))
            yield name, v, loose or (WIDE if name in FRAMES else STEP)


def check(program, m, d, function="step", seed=0, report=None, fields=None):
    """{field: Row} at one state, of all inputs or of some."""
    rng = np.random.default_rng(seed)
    x = np.asarray(program.x.flat(inputs_of(m, d, function)))
    none_x, none_y = np.zeros(program.x.size), np.zeros(program.y.size)
    y = program.values(m, d, x[None])[0]
    # where contacts are tied, rounding decides which are kept, and what hangs on it is no function of the inputs
    decided = np.isclose(y, program.run(m, d, x, none_x, none_y)[0], 1e-6, 1e-6)
    assert decided.mean() > 0.9, "values and derivatives of two answers"
    size = spread(program.y.at, y)
    w = rng.standard_normal(len(y)) / np.maximum(size, 1e-3).astype(float)
    back = np.asarray(program.run(m, d, x, none_x, w)[2])
    table = {}
    for name, v, h, ends in moved_ends(program, m, d, x, changes(program, m, x, rng, fields or program.x.at)):
        dy = np.asarray(program.run(m, d, x, v, none_y)[1])
        wide, slope, kink = slopes(ends, y, h)
        moved = (dy != 0) | ~(np.abs(wide) <= FLOOR * size)
        if function == "set_const":  # a field that passes through says nothing
            moved[program.y.at[name]] = False
        scale = scales(program.y.at, dy, size)
        error = np.where(moved, np.where(kink(scale) | ~decided, np.nan, np.abs(slope - dy) / scale), 0).astype(float)
        row = summary(program, name, v, dy, (w, back), moved, error)
        table.setdefault(name, []).append(row)
        if report and row.checked:
            report(name, row, error, v)
    return {name: worst(rows) for name, rows in table.items()}


def moved_ends(program, m, d, x, asked):
    """For each direction that is asked, (field, direction, half width, values at both ends of its differences)."""
    sides = [k for part in PARTS for k in (part, -part)]
    while some := list(itertools.islice(asked, BATCH // len(sides))):
        points = np.stack([x + np.longdouble(k * h) * v for _, v, h in some for k in sides])
        values = program.values(m, d, points)
        for i, (name, v, h) in enumerate(some):
            yield name, v, h, values[len(sides) * i : len(sides) * (i + 1)]


def scales(parts, dy, size):
    """What the derivative of each entry is measured against."""
    scale = np.maximum(spread(parts, dy), np.maximum(FLOOR * size, 1e-9))
    for one, of in DIFFERENCES.items():
        if one in parts and of in parts:
            beside = max(scale[parts[of]].max(), size[parts[of]].max())
            scale[parts[one]] = np.maximum(scale[parts[one]], ROUNDED * beside)
    return scale


def summary(program, name, v, dy, pulled, moved, error):
    """The row of one direction; `pulled`: a vector of the output and its pull-back."""
    w, back = pulled
    finite = bool(np.isfinite(dy).all() and np.isfinite(back[program.x.at[name]]).all())
    if not v.any() or (finite and not moved.any()):
        return Row(0.0, 0.0, 0.0, 0, 0, finite, "")
    known = moved & ~np.isnan(error)
    most = int(np.argmax(np.where(known, error, -1)))
    output = next(n for n, s in program.y.at.items() if s.start <= most < s.stop)
    terms = np.abs(w * dy).sum() + np.abs(back * v).sum()
    reverse = abs(back @ v - w @ dy) / max(terms, 1e-6)
    checked, kinks = int(known.sum()), int((moved & ~known).sum())
    return Row(np.abs(dy).max(), error[most] if checked else 0.0, reverse, checked, kinks, finite, output)


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
    """States near a trajectory with random controls: nudged off what a body at rest or flat on another is tied in."""
    rng = np.random.default_rng(seed)
    none_x, none_y = np.zeros(program.x.size), np.zeros(program.y.size)
    kept = set(floats(d))
    for i in range(gap * count):
        d = d.replace(ctrl=0.4 * rng.uniform(-1, 1, m.nu))
        x = program.x.flat(inputs_of(m, d))
        new = program.y.split(np.asarray(program.run(m, d, x, none_x, none_y)[0]))
        d = d.replace(**{n: v for n, v in new.items() if n in kept and "." not in n})
        if i % gap == gap - 1:
            yield d.replace(qpos=d.qpos + NUDGE * rng.standard_normal(m.nq))
