"""Run a function of one world for blocks of worlds on a TPU: one kernel, in which each number is a register of worlds.

The generator writes the same statements as for vectors of worlds on a CPU (`vectors.py`). Here they are evaluated while
a Pallas kernel is traced: an array of a world is (size, 8, 128) in the memory of a core, one register for each number
and 1,024 worlds. Indices of loops and numbers that all worlds share are scalars.
"""

import math
from collections import ChainMap
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math.safe import Array
from jaxsim.native.compute import compute
from jaxsim.native.expressions import C_TYPES, UnsupportedPrimitive
from jaxsim.native.jaxpr import BLOCKS, Flat, Var
from jaxsim.native.reading import Tree, functions, statements
from jaxsim.native.source_text import text
from jaxsim.native.tile_source import real_type
from jaxsim.native.writer import Buffer, Writer, places

REGISTER = (8, 128)  # worlds of a register
WORLDS = math.prod(REGISTER)
BYTES = 4 * WORLDS  # of a register; all numbers have 32 bits
MOST_BYTES = 100 << 20  # of arrays in the memory of a core
MOST_SHARED = 120_000  # numbers that all worlds share, in scalar memory
AT_ONCE = 4  # turns of a short loop, if they do not depend on each other
LONGEST = 12  # statements of such a loop
COLUMNS = 16  # of rows that are looked for at once
UNROLLED = 16  # entries among which a world's index chooses without a loop
TYPES = {name: dtype for dtype, name in C_TYPES.items()} | {"REAL": np.dtype(np.float32)}
DTYPES = tuple(map(np.dtype, (np.float32, np.int32, np.uint32, np.bool_)))
Number = Any  # a number of Python, a traced scalar, or a register of worlds


@dataclass(frozen=True)
class _Memory:
    """An array within a reference; `numbers` are its entries if they are constants."""

    ref: Any
    begin: int
    size: int
    dtype: np.dtype
    wide: bool = True
    numbers: np.ndarray | None = None


@dataclass
class _Variable:
    """A number that statements assign; truth is an integer, which loops can carry."""

    dtype: np.dtype
    value: Number

    def get(self) -> Number:
        return _is_not_zero(self.value) if self.dtype == np.bool_ else self.value

    def give(self, x: Number) -> None:
        self.value = _converted(x, _kept(self.dtype), is_wide(self.value))


def _kept(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.int32) if dtype == np.bool_ else dtype


def is_wide(x: Number) -> bool:
    """Return whether a number is a register of worlds."""
    return getattr(x, "shape", ()) == REGISTER


def _is_known(*x: Number) -> bool:
    return all(isinstance(v, int | float) for v in x)


def _is_bool(x: Number) -> bool:
    return isinstance(x, bool) or getattr(x, "dtype", None) == bool


def _is_not_zero(x: Number) -> Number:
    return bool(x) if _is_known(x) else x != 0


def _number(x: Number) -> Number:
    """Return truth as an integer, and other numbers as they are."""
    return int(x) if isinstance(x, bool) else lax.select(x, *_likes(x, 1, 0)) if _is_bool(x) else x


def _likes(x: Array, *values: int) -> Iterator[Array]:
    return (jnp.full(x.shape, v, jnp.int32) for v in values)


def _converted(x: Number, dtype: np.dtype, wide: bool) -> Number:
    """Return a number as one of a type, and as a register if it is to be `wide`."""
    if dtype == np.bool_:
        return _as_truth(x, wide)
    x = _number(x)
    x = jnp.asarray(x, dtype) if _is_known(x) else x.astype(dtype)
    return jnp.broadcast_to(x, REGISTER) if wide else x


def _as_truth(x: Number, wide: bool = False) -> Number:
    x = x if _is_bool(x) else _is_not_zero(x)
    if wide and not is_wide(x):
        never = (1 - _converted(x, np.dtype(np.int32), False)) * REGISTER[1]  # a compiler cannot make it a scalar again
        return lax.broadcasted_iota(jnp.int32, REGISTER, 1) >= jnp.broadcast_to(never, REGISTER)
    return x


def _common(*operands: Number) -> list[Number]:
    """Return operands of one type and one shape; numbers of Python stay as they are."""
    x = [_number(v) for v in operands]
    types = [v.dtype for v in x if not _is_known(v)]
    wide = any(map(is_wide, x))
    if not types:
        return x
    is_real = any(isinstance(v, float) for v in x) or any(np.issubdtype(t, np.floating) for t in types)
    dtype = np.dtype(np.float32) if is_real else types[0]
    return [_converted(v, dtype, wide) for v in x]


def _by(known: Callable[..., Any], traced: Callable[..., Any]) -> Callable[..., Number]:
    """Return an operation of numbers, which Python computes if it knows all."""
    return lambda *x: known(*x) if _is_known(*x) else traced(*_common(*x))


def _quotient(a: Number, b: Number) -> Number:
    if _is_known(a, b):
        return a / b if isinstance(a, float) or isinstance(b, float) else int(a / b)
    return _of_vectors(lax.div)(a, b)


def _of_vectors(function: Callable[..., Array]) -> Callable[..., Number]:
    """Return a function of reals that the scalar unit does not have."""

    def of(*operands: Number) -> Number:
        x = _common(*operands)
        x = [jnp.asarray(v, jnp.float32) if _is_known(v) else v for v in x]
        if any(map(is_wide, x)) or not jnp.issubdtype(x[0].dtype, jnp.floating):
            return function(*x)
        return jnp.max(function(*(jnp.broadcast_to(v, REGISTER) for v in x)))

    return of


def _logical(join: Callable[[Any, Any], Any], neutral: bool) -> Callable[[Number, Number], Number]:
    def of(a: Number, b: Number) -> Number:
        for x, y in ((a, b), (b, a)):
            if _is_known(x):
                return y if bool(x) == neutral else not neutral
        wide = is_wide(a) or is_wide(b)
        return join(_as_truth(a, wide), _as_truth(b, wide))

    return of


def _not(x: Number) -> Number:
    return not x if _is_known(x) else ~_as_truth(x)


def _selected(test: Number, a: Number, b: Number) -> Number:
    if _is_known(test):
        return a if test else b
    wide = any(map(is_wide, (test, a, b)))
    test = _as_truth(test, wide)
    if _is_bool(a) and _is_bool(b):
        return (test & _as_truth(a, wide)) | (~test & _as_truth(b, wide))
    x, y = _common(a, b)
    dtype = next((v.dtype for v in (x, y) if not _is_known(v)), _type_of(x, y))
    return lax.select(test, _converted(x, dtype, wide), _converted(y, dtype, wide))


def _type_of(*x: Number) -> np.dtype:
    return np.dtype(np.float32 if any(isinstance(v, float) for v in x) else np.int32)


def any_of(x: Number) -> Number:
    """Return whether a test holds in any world."""
    return jnp.max(lax.select(x, *(jnp.full(REGISTER, v, jnp.float32) for v in (1, 0)))) > 0 if is_wide(x) else x


def _inside(i: Number, most: Number) -> Number:
    return jnp.clip(i, 0, most) if is_wide(i) else i


def _wrapped(kind: str, x: Number) -> Number:
    if kind == "signed char":
        return (x << 24) >> 24
    return ((x + 2**31) % 2**32 - 2**31 if kind == "int" else x % 2**32) if _is_known(x) else x


def _fitted(x: Array, dtype: Any) -> Array:
    """Return the nearest integers that fit; NaN is zero."""
    info = jnp.iinfo(dtype)
    most = np.nextafter(np.float32(info.max), np.float32(0))
    found = jnp.clip(jnp.where(x != x, 0, x), np.float32(info.min), most).astype(dtype)
    return jnp.where(x >= np.float32(info.max), np.array(info.max, dtype), found)


def _of_scalar(function: Callable[..., Array]) -> Callable[..., Number]:
    return lambda *x: function(*(jnp.asarray(v) for v in _common(*x)))


_OPERATORS: dict[str, Callable[..., Number]] = {
    "+": _by(lambda a, b: a + b, lax.add),
    "-": _by(lambda a, b: a - b, lax.sub),
    "*": _by(lambda a, b: a * b, lax.mul),
    "/": _quotient,
    "%": _by(lambda a, b: int(math.fmod(a, b)), lax.rem),
    "<": _by(lambda a, b: a < b, lax.lt),
    "<=": _by(lambda a, b: a <= b, lax.le),
    ">": _by(lambda a, b: a > b, lax.gt),
    ">=": _by(lambda a, b: a >= b, lax.ge),
    "==": _by(lambda a, b: a == b, lax.eq),
    "!=": _by(lambda a, b: a != b, lax.ne),
    "<<": _by(lambda a, b: a << b, lax.shift_left),
    ">>": _by(lambda a, b: a >> b, lax.shift_right_arithmetic),
    "&": _by(lambda a, b: a & b, lax.bitwise_and),
    "|": _by(lambda a, b: a | b, lax.bitwise_or),
    "^": _by(lambda a, b: a ^ b, lax.bitwise_xor),
    "&&": _logical(lambda a, b: a & b, True),
    "||": _logical(lambda a, b: a | b, False),
    "unary-": _by(lambda a: -a, lax.neg),
    "unary+": lambda a: a,
    "unary!": _not,
    "unary~": _by(lambda a: ~a, lax.bitwise_not),
}
# cbrt, expm1, hyperbolic functions and their inverses do not exist there
_MATH = "sqrt floor ceil exp log sin cos tan tanh log1p exp2 erf atan2 pow abs"
_NAMES = {"abs": "fabs"}
_INTEGERS = {
    "quotient": lax.div,
    "remainder": lax.rem,
    "left": lax.shift_left,
    "right": lax.shift_right_arithmetic,
    "right_logical": lax.shift_right_logical,
}
_FUNCTIONS: dict[str, Callable[..., Number]] = {
    **{f"{_NAMES.get(n, n)}f": _of_vectors(getattr(jnp, n, None) or getattr(lax, n)) for n in _MATH.split()},
    "asinf": _of_vectors(lambda x: lax.atan2(x, lax.sqrt((1 - x) * (1 + x)))),
    "acosf": _of_vectors(lambda x: lax.atan2(lax.sqrt((1 - x) * (1 + x)), x)),
    "atanf": _of_vectors(lambda x: lax.atan2(x, jnp.ones_like(x))),
    "SQRT": _of_vectors(jnp.sqrt),
    "rintf": _of_vectors(jnp.rint),
    "roundf": _of_vectors(partial(lax.round, rounding_method=lax.RoundingMethod.AWAY_FROM_ZERO)),
    "fmodf": _of_vectors(lax.rem),
    "sigmoidf": _of_vectors(lax.logistic),
    "SELECT": _selected,
    "ANY": any_of,
    "INSIDE": _inside,
    "IS_FINITE": lambda x: abs(x) < jnp.inf,
    "number_of_32_bits": lambda x: lax.bitcast_convert_type(jnp.asarray(x, jnp.int32), jnp.float32),
    **{f"{k}_{t}": _of_scalar(f) for k, f in _INTEGERS.items() for t in ("int32", "uint32")},
    **{f"bits_of_{t}": _of_scalar(lax.population_count) for t in ("int32", "uint32")},
    **{f"zeros_of_{t}": _of_scalar(lax.clz) for t in ("int32", "uint32")},
    **{f"{t}_of_float32": partial(_fitted, dtype=np.dtype(t)) for t in ("int32", "uint32")},
}
_JOINS: dict[str, Callable[[Number, Number], Number]] = {
    "set": lambda _, x: x,
    "add": _OPERATORS["+"],
    "times": _OPERATORS["*"],
    "greatest": _of_scalar(lax.max),
    "least": _of_scalar(lax.min),
}


def _load(m: _Memory, i: Number) -> Number:
    """Return the entry of an array, of each world its own if the index is a register."""
    if is_wide(i):
        return _loaded_by_world(m, i)
    if m.numbers is not None and _is_known(i):
        return m.numbers[i].item()
    x = m.ref[m.begin + i]
    if m.wide and m.dtype != np.float32:
        x = lax.bitcast_convert_type(x, _kept(m.dtype))
    return _is_not_zero(x) if m.dtype == np.bool_ else x


def _repeat(begin: Number, end: Number, turn: Callable[[Array, Any], Any], start: Any) -> Any:
    """`fori_loop` with an index of 32 bits."""
    begin, end = (np.int32(x) if _is_known(x) else x for x in (begin, end))
    return lax.fori_loop(begin, end, turn, start)


def _loaded_by_world(m: _Memory, i: Array) -> Array:
    def better(k: Number, found: Array) -> Array:
        return lax.select(i == k, _converted(_load(m, k), kept, True), found)

    kept = _kept(m.dtype)
    found = _converted(_load(m, 0), kept, True)
    if m.size <= UNROLLED:
        for k in range(1, m.size):
            found = better(k, found)
    else:
        lowest, last = _extent(i)
        found = _repeat(lowest + 1, last + 1, better, _converted(_load(m, lowest), kept, True))
    return _is_not_zero(found) if m.dtype == np.bool_ else found


def _store(m: _Memory, i: Number, x: Number) -> None:
    if is_wide(i):
        _each_entry(m, i, lambda k: _store(m, k, _selected(i == k, x, _load(m, k))))
        return
    x = _converted(x, _kept(m.dtype), m.wide)
    m.ref[m.begin + i] = lax.bitcast_convert_type(x, jnp.float32) if m.wide and m.dtype != np.float32 else x


def _each_entry(m: _Memory, i: Array, do: Callable[[Number], None]) -> None:
    """Visit the entries of an array at which any world's index is."""
    if m.size <= UNROLLED:
        for k in range(m.size):
            do(k)
    else:
        lowest, last = _extent(jnp.clip(i, 0, m.size - 1))
        _repeat(lowest, last + 1, lambda k, _: do(k), None)


def _extent(i: Array) -> tuple[Array, Array]:
    """Return the least and the greatest index of the worlds."""
    x = i.astype(jnp.float32)  # exact below 2**24
    return jnp.min(x).astype(jnp.int32), jnp.max(x).astype(jnp.int32)


Functions = dict[str, tuple[list[str], list[Tree]]]  # parameters and statements
Names = MutableMapping[str, Any]  # numbers, variables and arrays


class _Scope(NamedTuple):
    """What is known where statements run: names, and functions that they call."""

    names: Names
    functions: Functions

    def within(self, **more: Any) -> "_Scope":
        """Return the scope of a turn of a loop."""
        return _Scope(ChainMap(more, self.names), self.functions)

    def value(self, tree: Tree) -> Number:
        """Return the value of an expression."""
        if not isinstance(tree, tuple):
            return tree
        kind, *rest = tree
        if kind == "name":
            found = self.names.get(rest[0], _CONSTANTS.get(rest[0]))
            return found.get() if isinstance(found, _Variable) else found
        if kind != "call":
            return _OPERATORS[kind](*map(self.value, rest))
        name, arguments = rest
        if name == "AT":
            return _load(self.names[arguments[0][1]], self.value(arguments[1]))
        if name == "CONVERT":
            x = self.value(arguments[1])
            return x if _is_known(x) else _converted(x, TYPES[arguments[0][1]], is_wide(x))
        if name == "WRAP":
            return _wrapped(arguments[0][1], self.value(arguments[1]))
        if name not in _FUNCTIONS:
            raise UnsupportedPrimitive(f"the function {name} on a TPU")
        return _FUNCTIONS[name](*map(self.value, arguments))


Scopes = Sequence[_Scope]  # of turns of a loop that run at once, statement by statement


def _run(scopes: Scopes, trees: Sequence[Tree]) -> None:
    """Execute statements."""
    if not scopes:
        return
    for k, tree in enumerate(trees):
        kind, *rest = tree
        if kind == "if" and rest[1] == [("continue",)]:
            _branch(scopes, ("unary!", rest[0]), trees[k + 1 :], [])
            return
        _KINDS[kind](scopes, *rest)


def _call(scopes: Scopes, name: str, arguments: Sequence[Tree]) -> None:
    for s in scopes:
        if name in _MACROS:
            _MACROS[name](s, *arguments)
        elif name in s.functions:
            parameters, body = s.functions[name]
            given = dict(zip(parameters, map(s.value, arguments), strict=True))
            _run([_Scope(given, s.functions)], body)
        elif name != "sync":
            join, _, dtype = name.partition("_")
            if join not in _JOINS or dtype not in map(str, DTYPES):
                raise UnsupportedPrimitive(f"the statement {name} on a TPU")
            test, array, place, x = arguments
            _join(_JOINS[join], s.value(test), s.names[array[1]], s.value(place), s.value(x))


def _join(how: Callable[..., Number], test: Number, m: _Memory, place: Number, x: Number) -> None:
    """Join a number with one in memory in worlds where the test holds."""
    if is_wide(place):
        _each_entry(m, place, lambda k: _join(how, _OPERATORS["&&"](test, place == k), m, k, x))
        return
    now = _load(m, place)
    _store(m, place, _selected(test, how(now, x), now))


def _branch(scopes: Scopes, test: Tree, body: Sequence[Tree], other: Sequence[Tree]) -> None:
    go = scopes[0].value(test)
    if _is_known(go):
        _run(scopes, body if go else other)
        return
    assert len(scopes) == 1  # `_may_run_at_once`
    go = _converted(go, np.dtype(np.int32), False)
    # loops of one turn or none: MLIR makes of a conditional a selection, which Mosaic refuses for registers
    for turns, part in ((go, body), (1 - go, other)):
        if part:
            _turns(scopes, 0, turns, part, lambda _: [{}])


def _each(scopes: Scopes, name: str, first: Tree, end: Tree, body: Sequence[Tree]) -> None:
    """Run a loop whose turns may run at once: some at a time, so that they wait for memory together."""
    begin, last = (scopes[0].value(x) for x in (first, end))
    at_once = AT_ONCE if _may_run_at_once(name, body) else 1
    if _is_known(begin, last) and last - begin <= at_once:
        _run([s.within(**{name: i}) for i in range(begin, last) for s in scopes], body)
        return
    count = _OPERATORS["/"](_OPERATORS["-"](last, begin), at_once)
    if at_once > 1:
        _turns(scopes, 0, count, body, lambda t: [{name: begin + t * at_once + k} for k in range(at_once)])
    done = begin + count * at_once if at_once > 1 else begin
    if _is_known(done, last) and at_once > 1:
        _run([s.within(**{name: i}) for i in range(done, last) for s in scopes], body)
    else:
        _turns(scopes, done, last, body, lambda i: [{name: i}])


def _turns(
    scopes: Scopes, begin: Number, end: Number, body: Sequence[Tree], names: Callable[[Number], list[Names]]
) -> None:
    """Run the turns of a loop, each with some names for every scope."""
    carried = _carried(scopes, body)
    turn = carried.after(lambda i: _run([s.within(**n) for n in names(i) for s in scopes], body))
    carried.give(_repeat(begin, end, lambda i, x: turn(x, i), carried.values()))


def _may_run_at_once(name: str, body: Sequence[Tree]) -> bool:
    """Return whether several turns of a loop over `name` can run statement by statement, and are short."""
    changing, count = {name}, 0

    def allows(trees: Sequence[Tree]) -> bool:
        nonlocal count
        count += len(trees)
        for kind, *rest in trees:
            if kind == "call" and rest[0] in ("LET", "VARIABLE"):
                if not changing.isdisjoint(_names(rest[1])):
                    changing.add(rest[1][1][1])
            elif kind in ("for", "each"):
                if not changing.isdisjoint(_names(list(rest[1:-1]))) or not allows(rest[-1]):
                    return False
            elif kind != "call" or rest[0] not in ("PUT", "ASSIGN", "DECLARE"):
                return False
        return True

    return allows(body) and count <= LONGEST


def _names(tree: Any) -> Iterator[str]:
    """Return the names in expressions."""
    if isinstance(tree, tuple) and tree[0] == "name":
        yield tree[1]
    elif isinstance(tree, tuple | list):
        for x in tree:
            yield from _names(x)


def _for(scopes: Scopes, name: str, first: Tree, test: Tree, step: Tree, body: Sequence[Tree]) -> None:
    begin, (op, own, end) = scopes[0].value(first), test
    if own == ("name", name) and op in ("<", "<=") and step == ("+", own, 1):
        last = _OPERATORS["+"](scopes[0].value(end), int(op == "<="))
        if _is_known(begin, last) and last - begin <= 1:
            for i in range(begin, last):
                _run([s.within(**{name: i}) for s in scopes], body)
        else:
            _turns(scopes, begin, last, body, lambda i: [{name: i}])
        return
    index = _Variable(np.dtype(np.int32), jnp.asarray(begin, jnp.int32))
    _while([s.within(**{name: index}) for s in scopes], test, [*body, ("call", "ASSIGN", [("name", name), step])])


def _while(scopes: Scopes, test: Tree, body: Sequence[Tree]) -> None:
    """Repeat statements while a test holds, which is a statement of the body if `test` is true."""
    at = next((k for k, t in enumerate(body) if t[0] == "if" and t[2] == [("break",)]), None)
    carried = _carried(scopes, body)
    if at is None:
        step = carried.after(lambda _: _run(scopes, body))
        carried.give(lax.while_loop(carried.test(lambda: scopes[0].value(test)), step, carried.values()))
        return
    (scope,) = scopes

    def turn(state: tuple[Number, list[Number]]) -> tuple[Number, list[Number]]:
        carried.give(state[1])
        _run(scopes, body[:at])
        go = _converted(_not(scope.value(body[at][1])), np.dtype(np.int32), False)
        scope.names["goes on"] = go
        _branch(scopes, ("!=", ("name", "goes on"), 0), body[at + 1 :], [])
        return go, carried.values()

    carried.give(lax.while_loop(lambda s: s[0] != 0, turn, (jnp.int32(1), carried.values()))[1])


_KINDS: dict[str, Callable[..., None]] = {
    "block": _run,
    "if": _branch,
    "each": _each,
    "for": _for,
    "while": _while,
    "call": _call,
}


class _Carried(NamedTuple):
    """Variables that traced control flow carries."""

    variables: list[_Variable]

    def values(self) -> list[Number]:
        """Return the present values."""
        return [v.value for v in self.variables]

    def give(self, values: Sequence[Number]) -> None:
        """Assign new values."""
        for v, x in zip(self.variables, values, strict=True):
            v.value = x

    def after(self, run: Callable[..., Any]) -> Callable[..., list[Number]]:
        """Return a function of values that runs statements and returns the new values."""

        def of(values: Sequence[Number], i: Number = None) -> list[Number]:
            before = self.values()
            self.give(values)
            run(i)
            found = self.values()
            self.give(before)
            return found

        return of

    def test(self, of: Callable[[], Number]) -> Callable[[Sequence[Number]], Number]:
        """Return a function of values that says whether a test holds."""

        def go(values: Sequence[Number]) -> Number:
            before = self.values()
            self.give(values)
            found = _as_truth(of())
            self.give(before)
            return found

        return go


def _carried(scopes: Scopes, trees: Sequence[Tree]) -> _Carried:
    """Return the variables of these scopes that statements assign."""
    found = {id(v): v for s in scopes for n in _assigned(trees) if isinstance(v := s.names.get(n), _Variable)}
    return _Carried(list(found.values()))


def _assigned(trees: Sequence[Tree]) -> list[str]:
    """Return the names that statements assign."""
    found: list[str] = []
    for tree in trees:
        if tree[0] == "call" and tree[1] == "ASSIGN":
            found.append(tree[2][0][1])
        elif tree[0] != "call":
            for part in tree[1:]:
                if isinstance(part, list):
                    found += _assigned(part)
    return list(dict.fromkeys(found))


_CONSTANTS = {"NAN": math.nan, "INFINITY": math.inf, "lane": 0}


def _let(b: _Scope, _: Tree, name: Tree, value: Tree) -> None:
    b.names[name[1]] = b.value(value)


def _variable(b: _Scope, kind: Tree, name: Tree, value: Tree = 0, wide: bool = True) -> None:
    dtype = TYPES[kind[1]]
    b.names[name[1]] = _Variable(dtype, _converted(b.value(value), _kept(dtype), wide))


def _assign(b: _Scope, name: Tree, value: Tree) -> None:
    b.names[name[1]].give(b.value(value))


def _put(b: _Scope, name: Tree, i: Tree, value: Tree) -> None:
    _store(b.names[name[1]], b.value(i), b.value(value))


def _row(b: _Scope, to: Tree, place: Tree, table: Tree, row: Tree, width: int, length: int) -> None:
    """Copy a row of a table, of each world its own: look for it among the rows that any world takes."""
    found, m, first, k = b.names[to[1]], b.names[table[1]], b.value(place), b.value(row)
    wide, kept = is_wide(k), _kept(m.dtype)
    lowest, last = _extent(k) if wide else (k, k)
    for begin in range(0, width, COLUMNS):
        columns = range(begin, min(width, begin + COLUMNS))
        entries = lambda r: [_converted(_load(m, r * width + c), kept, True) for c in columns]  # noqa: B023, E731

        def better(r: Number, now: list[Array]) -> list[Array]:
            return [lax.select(k == r, x, y) for x, y in zip(entries(r), now, strict=True)]  # noqa: B023

        if wide:
            taken = _repeat(lowest + 1, last + 1, better, entries(lowest))
        else:
            taken = entries(k)
        for c, x in zip(columns, taken, strict=True):
            _store(found, _OPERATORS["+"](first, c), x)


_MACROS: dict[str, Callable[..., None]] = {
    "ROW": _row,
    "LET": _let,
    "VARIABLE": _variable,
    "DECLARE": _variable,
    "SHARED": partial(_variable, wide=False),
    "ASSIGN": _assign,
    "PUT": _put,
}


class Program(NamedTuple):
    """Statements of a kernel, and where its arrays lie."""

    trees: list[Tree]
    inputs: list[Buffer]
    outputs: list[Buffer]
    own: dict[Buffer, int]  # first numbers of arrays of worlds
    size: int
    shared: dict[Buffer, int]  # of arrays that all worlds share
    shared_size: int
    tables: dict[str, np.ndarray]


def program(flat: Flat, has_worlds: Sequence[bool]) -> Program:
    """Return the kernel of a function. Raises UnsupportedPrimitive."""
    outputs = [v for v in flat.outputs if isinstance(v, Var)]
    made = {v for op in flat.operations for v in op.outputs}
    for v in (*flat.inputs, *made):
        if v.dtype not in DTYPES:
            raise UnsupportedPrimitive(f"numbers of type {v.dtype} on a TPU")
    w = Writer(keeps_more=True, lanes=1, vector=BYTES, real=real_type(flat, outputs), wide_platform=BLOCKS)
    inputs = [
        w.buffer(v.dtype, math.prod(v.shape), f"in{i}", uniform=not own)
        for i, (v, own) in enumerate(zip(flat.inputs, has_worlds, strict=True))
    ]
    results = [w.buffer(v.dtype, math.prod(v.shape), f"out{i}") for i, v in enumerate(outputs)]
    args = [w.stored(b, v.shape) for b, v in zip(inputs, flat.inputs, strict=True)]
    targets = {v: b for v, b in zip(outputs, results, strict=True) if v in made}
    found = compute(w, flat, args, targets)
    for v, b, x in zip(outputs, results, [y for y, o in zip(found, flat.outputs, strict=True) if isinstance(o, Var)], strict=True):
        if x.buffer is not b:
            w.fill(b, x, v.shape)
    free = [b for b in w.buffers if not b.given]
    own, nbytes = places([b for b in free if not b.uniform], BYTES)
    if nbytes > MOST_BYTES:
        raise UnsupportedPrimitive("so many numbers of a world at once")
    for b in free:
        b.width = 4
    shared, shared_bytes = places([b for b in free if b.uniform], 4)
    tables = dict(_table(t) for t in w.tables if t.startswith("TABLE "))
    every = sum(b.size for b in inputs if b.uniform) + sum(x.size for x in tables.values()) + shared_bytes // 4
    if every > MOST_SHARED:
        raise UnsupportedPrimitive("so many numbers that all worlds share")
    numbers = {b: at // BYTES for b, at in own.items()}
    return Program(
        statements(w.lines), inputs, results, numbers, nbytes // BYTES, {b: at // 4 for b, at in shared.items()},
        shared_bytes // 4, tables,
    )


def _table(line: str) -> tuple[str, np.ndarray]:
    """Return the name and the numbers of a table of constants."""
    head, body = line.removeprefix("TABLE ").split("[", 1)
    kind, name = head.rsplit(" ", 1)
    entries = body[body.index("{") + 1 : body.rindex("}")]
    b = _Scope({}, {})
    return name, np.array([b.value(t[2][1]) for t in _entries(entries)], TYPES[kind])


def _entries(text: str) -> list[Tree]:
    return statements([f"ASSIGN(x, {e});" for e in text.split(", ")])


@lru_cache(maxsize=1)
def _systems() -> dict[str, tuple[list[str], list[Tree]]]:
    return functions(text(Path(__file__).parent, "systems.h"))


def run(
    flat: Flat, has_worlds: Sequence[bool], count: int, operands: Sequence[Array], interpret: bool = False
) -> list[Array]:
    """Return results (count, ...) of a function of one world. Raises UnsupportedPrimitive."""
    return kernel(program(flat, has_worlds), [v.shape for v in flat.outputs if isinstance(v, Var)], count, operands, interpret)


def kernel(
    p: Program, shapes: Sequence[tuple[int, ...]], count: int, operands: Sequence[Array], interpret: bool
) -> list[Array]:
    """Return results (count, *shape) of a kernel."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    blocks = -(-count // WORLDS)
    given = [(b, x) for b, x in zip(p.inputs, operands, strict=True) if b.size]
    worlds = [_bits(x, jnp.float32).reshape(count, -1) for b, x in given if not b.uniform]
    own = jnp.concatenate(worlds, axis=1) if worlds else jnp.zeros((count, 1), jnp.float32)
    own = jnp.pad(own, [(0, blocks * WORLDS - count), (0, 0)], mode="edge")
    own = own.reshape(blocks, WORLDS, -1).swapaxes(1, 2).reshape(blocks, -1, *REGISTER)
    reals = [x.reshape(-1) for b, x in given if b.uniform and b.dtype == np.float32]
    whole = [_bits(x, jnp.int32).reshape(-1) for b, x in given if b.uniform and b.dtype != np.float32]
    reals += [jnp.asarray(x) for x in p.tables.values() if x.dtype == np.float32]
    whole += [jnp.asarray(x).astype(jnp.int32) for x in p.tables.values() if x.dtype != np.float32]
    reals, whole = (jnp.concatenate([jnp.zeros(1, t), *x]) for t, x in ((jnp.float32, reals), (jnp.int32, whole)))
    sizes = [b.size for b in p.outputs]

    def body(reals_: Any, whole_: Any, own_: Any, out: Any, memory: Any, real_memory: Any, whole_memory: Any) -> None:
        names: Names = {}
        at = {"own": 0, "out": 0, np.float32: 1, np.int32: 1}

        def shared(name: str, size: int, dtype: np.dtype, numbers: np.ndarray | None = None) -> None:
            key = np.float32 if dtype == np.float32 else np.int32
            names[name] = _Memory(reals_ if key == np.float32 else whole_, at[key], size, dtype, False, numbers)
            at[key] += size

        for b in p.inputs:
            if b.uniform:
                shared(b.name, b.size, b.dtype)
            else:
                names[b.name] = _Memory(own_, at["own"], b.size, b.dtype)
                at["own"] += b.size
        for name, x in p.tables.items():
            shared(name, x.size, x.dtype, x)
        for b in p.outputs:
            names[b.name] = _Memory(out, at["out"], b.size, b.dtype)
            at["out"] += b.size
        for b, begin in p.own.items():
            names[b.name] = _Memory(memory, begin, b.size, b.dtype)
        for b, begin in p.shared.items():
            mine = real_memory if b.dtype == np.float32 else whole_memory
            names[b.name] = _Memory(mine, begin, b.size, b.dtype, False)
        _run([_Scope(names, _systems())], p.trees)

    once = {"pipeline_mode": pl.Buffered(1)} if not interpret else {}
    block = lambda n: pl.BlockSpec((None, n, *REGISTER), lambda b: (b, 0, 0, 0), memory_space=pltpu.VMEM, **once)  # noqa: E731
    scalars = pl.BlockSpec(memory_space=pltpu.SMEM)
    total = max(1, sum(sizes))
    nbytes = BYTES * (own.shape[1] + total + p.size)
    if nbytes > MOST_BYTES:
        raise UnsupportedPrimitive("so many numbers of a world at once")
    out = pl.pallas_call(
        body,
        grid=(blocks,),
        in_specs=[scalars, scalars, block(own.shape[1])],
        out_specs=block(total),
        out_shape=jax.ShapeDtypeStruct((blocks, total, *REGISTER), jnp.float32),
        scratch_shapes=[
            pltpu.VMEM((max(1, p.size), *REGISTER), jnp.float32),
            pltpu.SMEM((max(1, p.shared_size),), jnp.float32),
            pltpu.SMEM((max(1, p.shared_size),), jnp.int32),
        ],
        compiler_params=pltpu.CompilerParams(vmem_limit_bytes=nbytes + (16 << 20)),
        interpret=interpret,
    )(reals, whole, own)
    rows = out.reshape(blocks, total, WORLDS).swapaxes(1, 2).reshape(-1, total)[:count]
    parts = jnp.split(rows, np.cumsum(sizes)[:-1], axis=1) if sizes else []
    return [_of_bits(x, b.dtype).reshape(count, *s) for x, b, s in zip(parts, p.outputs, shapes, strict=True)]


def _bits(x: Array, dtype: Any) -> Array:
    """Return numbers of 32 bits as those of another type with the same bits."""
    x = jnp.asarray(x)
    x = x.astype(jnp.int32) if x.dtype == bool else x
    return x if x.dtype == dtype else lax.bitcast_convert_type(x, dtype)


def _of_bits(x: Array, dtype: np.dtype) -> Array:
    return lax.bitcast_convert_type(x, jnp.int32) != 0 if dtype == np.bool_ else _bits(x, dtype)
