"""Every primitive of the table x every type x values at the edges x every target of a CPU, against `jax.jit`."""

import itertools
import shutil
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsim.native import compiler
from jaxsim.native.compute import OWN_PRIMITIVES, is_known
from jaxsim.native.control import INNER
from jaxsim.native.jaxpr import flatten, trace
from jaxsim.native.operations import EXPRESSIONS
from jaxsim.native.stage import stage
from jaxsim.native.uniform import SYSTEMS_PRIMITIVES

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")

TYPES = ("float32", "float64", "int32", "uint32", "bool")
TARGETS = ("host", "wide", "blocks")
# Functions of libm differ from XLA's in the last digits; sums are in another order.
CLOSE = {"float32": 4e-6, "float64": 1e-13}
WORLDS = 3
# The kernels of a TPU, interpreted, are long programs of XLA that run once.
QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


@pytest.fixture(autouse=True, scope="module")
def doubles():
    with jax.enable_x64(True):
        yield


def is_real(kind):
    return np.issubdtype(kind, np.floating)


def edges(kind):
    """Values at the edges of a type."""
    if kind == "bool":
        return np.array([False, True])
    if not is_real(kind):
        info = np.iinfo(kind)
        low = [] if kind == "uint32" else [-1, -2, -7, info.min + 1]
        return np.array([0, 1, 2, 3, 31, 32, 40, info.max, info.min, *low]).astype(kind)
    info = np.finfo(kind)
    ordinary = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 7.25, 100.0, -3e9, 5e9]
    return np.array([*ordinary, np.inf, -np.inf, np.nan, info.max, info.min, info.tiny, info.eps], kind)


def pairs(kind):
    """All pairs of edges."""
    return [np.array(x) for x in zip(*itertools.product(edges(kind), edges(kind)), strict=True)]


def ordinary(kind, *shape, seed=0):
    """Numbers that are finite, of either sign where there is one."""
    x = np.random.default_rng(seed).uniform(-9, 9, shape)
    return x > 0 if kind == "bool" else np.abs(x).astype(kind) if kind == "uint32" else x.astype(kind)


CONSTANTS = (np.inf, -np.inf), (0.5, -np.inf), (np.nan, np.inf), (0.5, np.nan), (0.5, 2)
UNARY = {
    "real": {
        **{n: getattr(lax, n) for n in ("sqrt", "rsqrt", "cbrt", "floor", "ceil", "exp", "log", "sin", "cos", "tan")},
        **{n: getattr(lax, n) for n in ("tanh", "asin", "acos", "atan", "log1p", "expm1", "sinh", "cosh", "exp2")},
        **{n: getattr(lax, n) for n in ("asinh", "acosh", "atanh", "logistic", "erf", "is_finite")},
        "constants": lambda x: [jnp.where(x > 1, *x.dtype.type(pair)) for pair in CONSTANTS],
        "log2": jnp.log2,  # primitives of newer versions of JAX
        "one_minus_square": getattr(lax, "one_minus_square", lambda x: 1 - x * x),
        "round": lambda x: (lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), lax.round(x)),
        "reduce_precision": lambda x: lax.reduce_precision(x, jnp.finfo(x.dtype).nexp, jnp.finfo(x.dtype).nmant),
    },
    "number": {"neg": lax.neg, "abs": lax.abs, "sign": lax.sign, "square": lax.square,
               "integer_pow": lambda x: [lax.integer_pow(x, k) for k in (0, 1, 2, 3, 7)]},
    "bits": {"not": lax.bitwise_not, "population_count": lax.population_count, "clz": lax.clz},
    "any": {"convert_element_type": lambda x: [x.astype(t) for t in (*TYPES, "int64", "int8")],
            "copy": lambda x: lax.copy_p.bind(x), "stop_gradient": lax.stop_gradient,
            "optimization_barrier": lax.optimization_barrier},
}  # fmt: skip
BINARY = {
    "real": {"div": lax.div, "rem": lax.rem, "atan2": lax.atan2, "pow": lax.pow, "nextafter": lax.nextafter},
    "number": {"add": lax.add, "sub": lax.sub, "mul": lax.mul, "max": lax.max, "min": lax.min},
    "whole": {"div": lax.div, "rem": lax.rem, "shift_left": lax.shift_left,
              "shift_right_logical": lax.shift_right_logical, "shift_right_arithmetic": lax.shift_right_arithmetic,
              "lt_to": lax.lt_to_p.bind, "le_to": lax.le_to_p.bind},
    "bits": {"and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor},
    "bool": {"max": lax.max, "min": lax.min},
    "any": {"eq": lax.eq, "ne": lax.ne, "lt": lax.lt, "le": lax.le, "gt": lax.gt, "ge": lax.ge,
            "select_n": lambda x, y: lax.select_n(x > y if x.dtype != bool else x, x, y),
            "add_any": lambda x, y: add_any(x, y)},
}  # fmt: skip
UNARY["real"] = {n: f for n, f in UNARY["real"].items()}
BINARY["real"].pop("nextafter")


def add_any(x, y):
    from jax.interpreters import ad

    return ad.add_jaxvals(x, y) if is_real(x.dtype) else x


def kinds(kind):
    """The families of a type."""
    found = {"any"}
    found |= {"real", "number"} if is_real(kind) else {"bits"}
    if kind in ("int32", "uint32"):
        found |= {"number", "whole"}
    return found | ({"bool"} if kind == "bool" else set())


def of(table, kind, target):
    """The functions of a type; vectors of worlds have one type of real numbers, and integers of its width at most."""
    found = {}
    for family in sorted(kinds(kind)):
        found |= table.get(family, {})
    if kind == "uint32":
        found.pop("neg", None), found.pop("abs", None)
    if kind == "bool":
        found.pop("population_count", None), found.pop("clz", None)
    if target == "blocks":
        found = {n: f for n, f in found.items() if n not in NOT_ON_TPU}
    if target != "host" and "convert_element_type" in found:
        others = {"float32": ("float64", "int64"), "float64": ("float32",)}.get(kind, ("float64", "int64"))
        others += ("int8",) if target == "blocks" else ()
        types = [t for t in (*TYPES, "int64", "int8") if t not in others]
        found["convert_element_type"] = lambda x: [x.astype(t) for t in types]
    return found


STARTS = np.array([-40, -1, 0, 2, 3, 4, 2**31 - 1], np.int32)  # of slices, of an axis of five


def gathers(x, i):
    row = partial(lax.GatherDimensionNumbers, (1,), (0,), (0,))
    modes = ("clip", "fill")
    found = [x.at[i].get(mode=mode) for mode in modes]
    found += [x.at[i].get(mode="fill", fill_value=x.dtype.type(0)), x[:, 1][jnp.clip(i, 0, 4)]]
    found += [lax.gather(x, i[:, None], row(), (1, 3), mode=m) for m in modes]
    found += [x.at[jnp.clip(i, 0, 4)].get(mode="promise_in_bounds"), x[jnp.clip(i, 0, 4), jnp.clip(i, 0, 2)]]
    return found


def scatters(x, i, u):
    found = []
    for mode in ("drop", "clip", "promise_in_bounds"):
        at = x.at[jnp.clip(i, 0, 4) if mode == "promise_in_bounds" else i]
        one = x.at[jnp.arange(5, dtype=jnp.int32)[::-1][:3] + (0 if mode == "promise_in_bounds" else 3)]
        found += [one.set(u[:3], mode=mode, unique_indices=True)]
        if x.dtype == bool:
            found += [at.max(u, mode=mode), at.min(u, mode=mode)]
        else:
            found += [at.add(u, mode=mode), at.subtract(u, mode=mode), at.mul(u, mode=mode)]
            found += [at.max(u, mode=mode), at.min(u, mode=mode)]
    return found


def scatter_derivatives(x, i, u):
    """JAX promises, wrongly, that a gather with the scatter's indices is within bounds."""
    if not is_real(x.dtype):
        return [x]
    at = lambda x: x.at[i[2:]]  # noqa: E731
    both = lambda x, u: (at(x).set(u, mode="drop"), at(x).max(u, mode="drop"))  # noqa: E731
    return jax.jvp(both, (x, u[2:]), (2 * x, 3 * u[2:]))


def reductions(x):
    none = x[:, :0]
    if x.dtype == bool:
        return [[jnp.all(y, 1), jnp.any(y, 1)] for y in (x, none)]
    found = [[jnp.sum(y, 1, dtype=x.dtype), jnp.prod(y, 1, dtype=x.dtype)] for y in (x, none)]
    least = x.dtype.type(-np.inf) if is_real(x.dtype) else np.iinfo(x.dtype).min
    most = x.dtype.type(np.inf) if is_real(x.dtype) else np.iinfo(x.dtype).max
    found += [[jnp.max(y, 1, initial=least), jnp.min(y, 1, initial=most)] for y in (x, none)]
    return [*found, [lax.reduce_max_p.bind(x, axes=(a,), **EXTRA) for a in (0, 1)]]


EXTRA = {"out_sharding": None} if "out_sharding" in str(jax.make_jaxpr(lambda x: x.max())(np.zeros(3))) else {}


def bit_reductions(x):
    """Of a short and of a long axis, with bits that all entries have."""
    if is_real(x.dtype):
        return []
    some = x if x.dtype == bool else x | 0x50
    both = some, jnp.tile(some, (9, 1))
    return [p.bind(y, axes=(a,), **EXTRA) for p in (lax.reduce_and_p, lax.reduce_or_p) for y in both for a in (0, 1)]


def extremes(x):
    return [lax.argmax(x, 1, np.int32), lax.argmin(x, 1, np.int32), lax.argmax(x, 0, np.int32)]


def cumulative(x):
    return [
        f(x, axis=a, reverse=r)
        for f in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin)
        for a, r in ((1, False), (0, True))
    ]


def views(x):
    none = x.dtype.type(0)
    found = [x.reshape(-1), x.reshape(3, 5), x.T, x[1:4:2], x[::-1], x[:, None], jnp.broadcast_to(x[0], (4, 3))]
    found += [
        lax.reshape(x, (5, 3), (1, 0)),  # as in derivatives of products
        jnp.tile(x, (2, 3)),
        jax.device_put(x),
        jnp.concatenate([x, x[:2]]),
        jnp.stack([x, x], 1),
        lax.expand_dims(x, (1,)),
        x[:0],
        jnp.concatenate([x[:0], x]),
    ]
    return [*found, lax.split(x, (1, 2), 1), lax.squeeze(x[:1], (0,)), lax.empty((2, 3), x.dtype) * none == none]


def pads(x):
    one = jnp.ones((), x.dtype)
    configs = [((1, 2, 0), (0, 0, 1)), ((-1, 3, 0), (-1, -1, 0)), ((0, 0, 2), (2, -1, 1))]
    return [lax.pad(x, one, c) for c in configs] + [lax.pad(x[:0], one, ((1, 1, 0), (0, 0, 0)))]


def slices(x, i):
    return [[lax.dynamic_slice(x, (k, k), (2, 2)), lax.dynamic_slice(x, (k, np.int32(0)), (5, 3))] for k in i]


def slice_updates(x, i, u):
    return [lax.dynamic_update_slice(x, u[:2, :2], (k, k)) for k in i]


def products(x):
    y = x if x.dtype != bool else x.astype(np.int32)
    batch = jnp.einsum("ij,ik->ijk", y, y)
    return [y @ y.T, y.T @ y[:, 0], batch, jnp.einsum("ijk,ik->ij", batch, y), y[:, :0] @ y.T[:0]]


def sorts(x):
    rank = jnp.arange(x.shape[-1], dtype=np.int32)[::-1]
    found = [lax.sort(x, dimension=1), *lax.sort((x[0], rank), num_keys=1), lax.sort((x[0], rank), num_keys=2)]
    return [*found, lax.sort(x[:, :1], dimension=1)]


def clamps(x, y, z):
    return [lax.clamp(x, y, z), jnp.clip(x, y[0], z[0])]


def loops(x):
    def turn(s):
        k, y, total = s
        return k + 1, jnp.where(y > x[0], y, x[1]), jnp.roll(total, 1)

    def scan(c, row):
        return jnp.where(row[0] > c, row[0], c), (row[::-1], c)

    found = lax.while_loop(lambda s: s[0] < 3 + x[0].astype(np.int32) % 3, turn, (jnp.int32(0), x[0], x))
    pick = lambda k: lax.switch(k, [lambda: x[0], lambda: x[1], lambda: x[2]])  # noqa: E731
    rows = jnp.stack([x, x[::-1]], 1)
    return [found, lax.scan(scan, x[0], rows), lax.scan(scan, x[0], rows, reverse=True)] + [
        pick(jnp.int32(k)) for k in (-1, 0, 1, 5)
    ]


def calls(x):
    return [jax.jit(lambda x: x)(x), jax.checkpoint(lambda x: x)(x), jax.vmap(lambda x: x)(x)]


def columns(*values):
    """All combinations, as arrays."""
    return tuple(np.array(x) for x in zip(*itertools.product(*values), strict=True))


def numbered(x):
    return [x if x.dtype == bool else lax.broadcasted_iota(x.dtype, (3, 4), 1), x]


def rows(kind, seed=0, where=()):
    """Rows (5, 3) of finite numbers, with values at the edges in some places."""
    x = ordinary(kind, 5, 3, seed=seed)
    for place, value in zip(where, edges(kind)[::-1], strict=False):
        x[place] = value
    return x


SOME = ((0, 0), (1, 2), (3, 1), (4, 0))
# name: (the primitives that it tests, its function, operands by type)
GROUPS = {
    "gather": (["gather"], gathers, lambda k: (rows(k), STARTS)),
    "scatter": (["scatter", "scatter-add", "scatter-max", "scatter-min", "scatter-mul"], scatters,
                lambda k: (rows(k, where=SOME), STARTS, np.concatenate([rows(k, 1), rows(k, 2)])[:7])),
    "derivative": (["scatter", "gather", "scatter-add"], scatter_derivatives,
                   lambda k: (rows(k), STARTS, np.concatenate([rows(k, 1), rows(k, 2)])[:7])),
    "reduce": (["reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or"], reductions,
               lambda k: (rows(k),)),
    "bits": (["reduce_and", "reduce_or"], bit_reductions, lambda k: (rows(k),)),
    "reduce edges": (["reduce_max", "reduce_min"], lambda x: [x.max(1), x.min(1), x.max(0), x.min(0)],
                     lambda k: (rows(k, where=SOME),)),
    "arg": (["argmax", "argmin"], extremes, lambda k: (rows(k, where=SOME),)),
    "cumulative": (["cumsum", "cumprod", "cummax", "cummin"], cumulative, lambda k: (rows(k),)),
    "views": (["reshape", "transpose", "slice", "rev", "broadcast_in_dim", "concatenate", "stack", "expand_dims",
               "split", "squeeze", "unstack", "empty", "empty2", "copy_p", "name", "reshard",
               "sharding_constraint"], views,
              lambda k: (rows(k, where=SOME),)),
    "pad": (["pad"], pads, lambda k: (rows(k, where=SOME),)),
    "slice": (["dynamic_slice"], slices, lambda k: (rows(k), STARTS)),
    "update": (["dynamic_update_slice"], slice_updates, lambda k: (rows(k), STARTS, rows(k, 3))),
    "product": (["dot_general"], products, lambda k: (rows(k),)),
    "sort": (["sort"], sorts, lambda k: (rows(k, where=SOME),)),
    "clamp": (["clamp"], clamps, lambda k: columns(edges(k)[::2], edges(k), edges(k)[1::2])),
    "loops": (["while", "scan", "cond"], loops, lambda k: (rows(k)[:, 0],)),
    "calls": ([], calls, lambda k: (rows(k),)),
    "iota": (["iota"], numbered, lambda k: (rows(k),)),
}  # fmt: skip
NOT_ON_TPU = {"cbrt", "expm1", "sinh", "cosh", "asinh", "acosh", "atanh"}
NOT_OF_BOOL = {"cumulative", "clamp", "sort"}


def worlds(x):
    """The same numbers for some worlds, in other orders, so that their branches differ."""
    x = np.asarray(x)
    return np.stack([x, *[np.roll(x, k, axis=0) for k in range(1, WORLDS)]])


def differences(found, want, kind, name):
    """What is wrong, in lines."""
    lines = []
    found, want = jax.tree.leaves(found), jax.tree.leaves(want)
    for k, (x, y) in enumerate(zip(found, want, strict=True)):
        x, y = np.asarray(x), np.asarray(y)
        assert x.dtype == y.dtype and x.shape == y.shape
        if is_real(x.dtype):
            rtol = CLOSE.get(str(x.dtype))
            same = np.isclose(
                x,
                y,
                rtol=rtol,
                atol=rtol if name in ("tan", "sin", "cos", "product", "cumulative") else 4 * np.finfo(x.dtype).tiny,
                equal_nan=True,
            )
        else:
            same = x == y
        if not same.all():
            i = tuple(a[0] for a in np.nonzero(~same))
            lines.append(f"{name}, {kind}, result {k} at {i}: {x[i]}, not {y[i]}")
    return lines


def check(target, cases, kind):
    """Run functions of worlds by a target in one program, and by `jax.jit`; `cases` are (name, function, operands)."""
    operands = [tuple(map(worlds, c[2])) for c in cases]

    def all_of(*x):
        return [f(*y) for (_, f, _), y in zip(cases, x, strict=True)]

    options = QUICKLY if target == "blocks" else {}
    found = jax.jit(jax.vmap(stage(all_of, target)), compiler_options=options)(*operands)
    want = jax.jit(jax.vmap(all_of))(*operands)
    lines = [d for (name, *_), x, y in zip(cases, found, want, strict=True) for d in differences(x, y, kind, name)]
    assert not lines, "\n".join(lines)


@pytest.fixture(autouse=True)
def seen(monkeypatch):
    """What a target refuses is an error, not JAX's operations, and what the compiler warns of as well."""
    monkeypatch.setattr("jaxsim.native.compiler.FLAGS", (*compiler.FLAGS, "-Werror"))
    monkeypatch.setattr("jaxsim.native.function.CompilerMissing", KeyError)
    monkeypatch.setattr("jaxsim.native.stage.UnsupportedPrimitive", KeyError)
    monkeypatch.setattr("jaxsim.native.function.UnsupportedPrimitive", KeyError)


def each(*slow):
    """Types and targets; a TPU's numbers have 32 bits. Some of its types are slow: Pallas interprets long programs."""
    every = [(kind, target) for kind in TYPES for target in TARGETS if (kind, target) != ("float64", "blocks")]
    marks = [[pytest.mark.slow] if k in slow and t == "blocks" else [] for k, t in every]
    cases = [pytest.param(*case, marks=m) for case, m in zip(every, marks, strict=True)]
    return pytest.mark.parametrize(("kind", "target"), cases)


@each()
def test_functions_of_entries(kind, target):
    unary = [(n, f, (edges(kind),)) for n, f in of(UNARY, kind, target).items()]
    binary = [(n, f, tuple(pairs(kind))) for n, f in of(BINARY, kind, target).items()]
    check(target, unary + binary, kind)


@each("int32", "uint32", "bool")
def test_operations_of_arrays(kind, target):
    groups = {n: g for n, g in GROUPS.items() if kind != "bool" or n not in NOT_OF_BOOL}
    cases = [(name, function, operands(kind)) for name, (_, function, operands) in groups.items()]
    for name, function, operands in cases:
        operations = flatten(trace(function, operands), "cpu").operations
        assert not [op.name for op in operations if not is_known(op)], name
    check(target, cases, kind)


def test_every_primitive_of_the_table_is_tested():
    tested = {n for table in (UNARY, BINARY) for family in table.values() for n in family}
    tested |= {n for names, *_ in GROUPS.values() for n in names} | {
        "scatter_add",
        "scatter_max",
        "scatter_min",
        "scatter_mul",
    }
    assert set(EXPRESSIONS) | set(INNER) - tested <= tested | {*SYSTEMS_PRIMITIVES, *OWN_PRIMITIVES}
