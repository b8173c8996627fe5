"""Evaluate the kernels of a TPU by NumPy: true numbers of turns, and results of whole models, on a CPU.

The statements of a kernel are those that a TPU executes (`native/blocks.py`). Their evaluation is the same source, read
with NumPy in the place of JAX, so that registers are arrays of 8 x 128 worlds and loops are loops of Python.
"""

import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxsim.native import blocks, pool, stage
from jaxsim.native.jaxpr import Flat, Var

counts: Counter[str] = Counter()  # operations on registers and scalars since `counts.clear()`


class _Reference:
    """An array in the memory of a core: entries are copied when they are read."""

    def __init__(self, x: np.ndarray) -> None:
        self.x, self.kind = x, "registers" if x.ndim > 1 else "scalars"

    def __getitem__(self, i: Any) -> np.ndarray:
        counts[f"loads of {self.kind}"] += 1
        return self.x[i].copy()

    def __setitem__(self, i: Any, value: Any) -> None:
        counts[f"stores of {self.kind}"] += 1
        self.x[i] = value


def _counted(function: Callable[..., Any]) -> Callable[..., Any]:
    def of(*x: Any, **more: Any) -> Any:
        wide = any(getattr(v, "ndim", 0) == 2 for v in x)
        counts["operations on registers" if wide else "operations on scalars"] += 1
        return function(*x, **more)

    return of


def _reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    def of(*x: Any) -> Any:
        counts["reductions of registers"] += 1
        return function(*x)

    return of


def _select(test: Any, x: Any, y: Any) -> Any:
    return np.where(test, x, y).astype(np.asarray(x).dtype)


def _fori_loop(begin: Any, end: Any, turn: Callable[[Any, Any], Any], state: Any) -> Any:
    for i in range(int(begin), int(end)):
        counts["turns"] += 1
        state = turn(np.int32(i), state)
    return state


def _while_loop(test: Callable[[Any], Any], turn: Callable[[Any], Any], state: Any) -> Any:
    while test(state):
        counts["turns"] += 1
        state = turn(state)
    return state


def _quotient(a: Any, b: Any) -> Any:
    if np.issubdtype(np.asarray(a).dtype, np.floating):
        return a / b
    some = np.where(b == 0, 1, b)
    found = np.abs(a.astype(np.int64)) // np.abs(some.astype(np.int64)) * np.sign(a) * np.sign(some)
    return np.where(b == 0, -1, found).astype(a.dtype)


def _bits(x: Any, dtype: Any) -> Any:
    return np.asarray(x).view(dtype)


def _by_jax(name: str) -> Callable[..., Any]:
    return lambda *x: np.asarray(getattr(jax.lax, name)(*x))


def _shift(function: Callable[..., Any], beyond: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda x, n: np.where((n >= 0) & (n < 32), function(x, np.clip(n, 0, 31)), beyond(x)).astype(x.dtype)


def _logical(x: Any, n: Any) -> Any:
    return (x.view(np.uint32) >> n.astype(np.uint32)).view(x.dtype)


_none = lambda x: x * 0  # noqa: E731
_NAMES = """add:add sub:subtract mul:multiply max:maximum min:minimum lt:less le:less_equal gt:greater
ge:greater_equal eq:equal ne:not_equal neg:negative rem:fmod pow:power atan2:arctan2 abs:abs sqrt:sqrt floor:floor
ceil:ceil exp:exp log:log sin:sin cos:cos tan:tan tanh:tanh log1p:log1p exp2:exp2"""
_LAX = {
    **{name: getattr(np, own) for name, own in (pair.split(":") for pair in _NAMES.split())},
    **{f"bitwise_{name}": getattr(np, f"bitwise_{name}") for name in ("and", "or", "xor", "not")},
    **{name: _by_jax(name) for name in ("erf", "logistic", "population_count", "clz", "round")},
    "div": _quotient,
    "select": _select,
    "shift_left": _shift(np.left_shift, _none),
    "shift_right_arithmetic": _shift(np.right_shift, lambda x: x >> 31),
    "shift_right_logical": _shift(_logical, _none),
}


def _lax() -> types.ModuleType:
    """Return what stands for `jax.lax`."""
    m = types.ModuleType("numpy_lax")
    vars(m).update({name: _counted(f) for name, f in _LAX.items()})
    m.bitcast_convert_type, m.fori_loop, m.while_loop = _bits, _fori_loop, _while_loop
    m.broadcasted_iota = lambda dtype, shape, axis: np.indices(shape, dtype)[axis]
    m.RoundingMethod = jax.lax.RoundingMethod
    m.round = lambda x, rounding_method: np.asarray(jax.lax.round(x, rounding_method))
    return m


def _jnp() -> types.ModuleType:
    """Return what stands for `jax.numpy`."""
    m = types.ModuleType("numpy_jnp")
    vars(m).update(vars(np))
    for name in ("sqrt", "floor", "ceil", "exp", "log", "sin", "cos", "tan", "tanh", "log1p", "exp2", "rint", "where"):
        setattr(m, name, _counted(getattr(np, name)))
    m.pow, m.atan2, m.abs = _counted(np.power), _counted(np.arctan2), _counted(np.abs)
    m.min, m.max = _reduced(np.min), _reduced(np.max)
    m.clip = _counted(lambda x, low, high: np.clip(x, low, high).astype(np.asarray(x).dtype))
    return m


def _evaluator() -> types.ModuleType:
    """Return `blocks`, with `evaluate` and `registers`, read with NumPy in the place of JAX."""
    folder, named = Path(blocks.__file__).parent, {"numpy_lax": _lax(), "numpy_jnp": _jnp()}
    instead = {"import jax.numpy as jnp\n": "import numpy_jnp as jnp\n"}
    instead |= {"from jax import lax\n": "import numpy_lax as lax\n"}
    instead |= {f"jaxsim.native.{name} import": f"numpy_{name} import" for name in ("registers", "evaluate")}
    before = dict(sys.modules)
    try:
        sys.modules |= named
        for name in ("registers", "evaluate", "blocks"):
            source = (folder / f"{name}.py").read_text(encoding="utf-8")
            for old, new in instead.items():
                source = source.replace(old, new)
            m = sys.modules[f"numpy_{name}"] = types.ModuleType(f"numpy_{name}")
            vars(m).update(__file__=blocks.__file__)
            exec(compile(source, m.__name__, "exec"), vars(m))
        return m
    finally:
        for name in sys.modules.keys() - before.keys():
            if name.startswith("numpy_"):
                del sys.modules[name]


_NUMPY: list[types.ModuleType] = []


def evaluated(p: blocks.Program, shapes: Sequence[tuple], count: int, operands: Sequence[np.ndarray]) -> list[Any]:
    """Return the results of a kernel, by NumPy."""
    if not _NUMPY:
        _NUMPY.append(_evaluator())
    (m,) = _NUMPY
    with np.errstate(all="ignore"):
        reals, whole, own = m.laid_out(p, count, [np.asarray(x) for x in operands])
        out = np.zeros((len(own), max(1, sum(b.size for b in p.outputs)), *blocks.REGISTER), np.float32)
        for given, found in zip(own, out, strict=True):
            memory = np.zeros((max(1, p.size), *blocks.REGISTER), np.float32)
            scalars = (np.zeros(max(1, n), t) for n, t in zip(p.shared_sizes, (np.float32, np.int32), strict=True))
            m.execute(p, *map(_Reference, (reals, whole, given, found, memory, *scalars)))
        return m.as_results(p, shapes, count, out)


def run(flat: Flat, has_worlds: Sequence[bool], count: int, operands: Sequence[Any], _: bool = False) -> list[Any]:
    """Return what `blocks.run` returns, by a call of NumPy from a program."""
    p = blocks.program(flat, has_worlds)
    outputs = [v for v in flat.outputs if isinstance(v, Var)]
    shapes = [jax.ShapeDtypeStruct((count, *v.shape), v.dtype) for v in outputs]
    of = lambda *x: evaluated(p, [v.shape for v in outputs], count, x)  # noqa: E731
    return list(jax.pure_callback(of, shapes, *operands))


@contextmanager
def by_numpy() -> Iterator[Counter[str]]:
    """Let programs for a CPU that are lowered within be those of a TPU, whose kernels NumPy evaluates."""
    functions = stage.STAGE.programs, pool.POOL.programs
    before, own = [dict(f) for f in functions], blocks.run
    for f in functions:
        f["cpu"] = f["tpu"]
    blocks.run = run
    counts.clear()
    try:
        yield counts
    finally:
        blocks.run = own
        for f, old in zip(functions, before, strict=True):
            f.update(old)
