"""Evaluate the generator's statements for registers of worlds, while a kernel of a TPU is traced."""

import math
from collections import ChainMap
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math.safe import Array
from jaxsim.native.expressions import C_TYPES, UnsupportedPrimitive
from jaxsim.native.reading import Tree
from jaxsim.native.registers import (
    DTYPES,
    FUNCTIONS,
    JOINS,
    OPERATORS,
    Number,
    apart,
    as_truth,
    converted,
    is_known,
    is_not_zero,
    is_wide,
    kept_type,
    negated,
    selected,
    wrapped_to,
)

AT_ONCE = 4  # turns of a short loop, if they do not depend on each other
LONGEST = 12  # statements of such a loop
COLUMNS = 16  # of rows that are looked for at once
UNROLLED = 16  # entries among which a world's index chooses without a loop
TYPES = {name: dtype for dtype, name in C_TYPES.items()} | {"REAL": np.dtype(np.float32)}


@dataclass(frozen=True)
class Memory:
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
    is_same: bool  # for all worlds

    def get(self) -> Number:
        return is_not_zero(self.value) if self.dtype == np.bool_ else self.value

    def give(self, x: Number) -> None:
        self.value, self.is_same = converted(x, kept_type(self.dtype), is_wide(self.value)), not is_wide(x)


def _load(m: Memory, i: Number) -> Number:
    """Return the entry of an array, of each world its own if the index is a register."""
    if is_wide(i):
        return _loaded_by_world(m, i)
    if m.numbers is not None and is_known(i):
        return m.numbers[i].item()
    x = m.ref[m.begin + i]
    if m.wide and m.dtype != np.float32:
        x = lax.bitcast_convert_type(x, kept_type(m.dtype))
    return is_not_zero(x) if m.dtype == np.bool_ else x


def repeat(begin: Number, end: Number, turn: Callable[[Array, Any], Any], start: Any) -> Any:
    """Run `fori_loop` with an index of 32 bits."""
    begin, end = (np.int32(x) if is_known(x) else x for x in (begin, end))
    return lax.fori_loop(begin, end, turn, start)


def _loaded_by_world(m: Memory, i: Array) -> Array:
    def better(k: Number, found: Array) -> Array:
        return lax.select(i == k, converted(_load(m, k), kept, True), found)

    kept = kept_type(m.dtype)
    found = converted(_load(m, 0), kept, True)
    if m.size <= UNROLLED:
        for k in range(1, m.size):
            found = better(k, found)
    else:
        lowest, last = _extent(i)
        found = repeat(lowest + 1, last + 1, better, converted(_load(m, lowest), kept, True))
    return is_not_zero(found) if m.dtype == np.bool_ else found


def _store(m: Memory, i: Number, x: Number) -> None:
    if is_wide(i):
        _each_entry(m, i, lambda k: _store(m, k, selected(i == k, x, _load(m, k))))
        return
    x = converted(x, kept_type(m.dtype), m.wide)
    m.ref[m.begin + i] = lax.bitcast_convert_type(x, jnp.float32) if m.wide and m.dtype != np.float32 else x


def _each_entry(m: Memory, i: Array, do: Callable[[Number], None]) -> None:
    """Visit the entries of an array at which any world's index is."""
    if m.size <= UNROLLED:
        for k in range(m.size):
            do(k)
    else:
        lowest, last = _extent(jnp.clip(i, 0, m.size - 1))
        repeat(lowest, last + 1, lambda k, _: do(k), None)


def _extent(i: Array) -> tuple[Array, Array]:
    """Return the least and the greatest index of the worlds."""
    x = i.astype(jnp.float32)  # exact below 2**24
    return jnp.min(x).astype(jnp.int32), jnp.max(x).astype(jnp.int32)


Functions = dict[str, tuple[list[str], list[Tree]]]  # parameters and statements
Names = MutableMapping[str, Any]  # numbers, variables and arrays


class Scope(NamedTuple):
    """What is known where statements run: names, and functions that they call."""

    names: Names
    functions: Functions

    def within(self, **more: Any) -> "Scope":
        """Return the scope of a turn of a loop."""
        return Scope(ChainMap(more, self.names), self.functions)

    def value(self, tree: Tree) -> Number:
        """Return the value of an expression."""
        if not isinstance(tree, tuple):
            return tree
        kind, *rest = tree
        if kind == "name":
            found = self.names.get(rest[0], _CONSTANTS.get(rest[0]))
            return found.get() if isinstance(found, _Variable) else found
        if kind != "call":
            return OPERATORS[kind](*map(self.value, rest))
        name, arguments = rest
        if name == "AT":
            return _load(self.names[arguments[0][1]], self.value(arguments[1]))
        if name == "CONVERT":
            x = self.value(arguments[1])
            return x if is_known(x) else converted(x, TYPES[arguments[0][1]], is_wide(x))
        if name == "WRAP":
            return wrapped_to(arguments[0][1], self.value(arguments[1]))
        if name not in FUNCTIONS:
            raise UnsupportedPrimitive(f"the function {name} on a TPU")
        return FUNCTIONS[name](*map(self.value, arguments))


Scopes = Sequence[Scope]  # of turns of a loop that run at once, statement by statement


def run_statements(scopes: Scopes, trees: Sequence[Tree]) -> None:
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
            run_statements([Scope(given, s.functions)], body)
        elif name != "sync":
            join, _, dtype = name.partition("_")
            if join not in JOINS or dtype not in map(str, DTYPES):
                raise UnsupportedPrimitive(f"the statement {name} on a TPU")
            test, array, place, x = arguments
            _join(JOINS[join], s.value(test), s.names[array[1]], s.value(place), s.value(x))


def _join(how: Callable[..., Number], test: Number, m: Memory, place: Number, x: Number) -> None:
    """Join a number with one in memory in worlds where the test holds."""
    if is_wide(place):
        _each_entry(m, place, lambda k: _join(how, OPERATORS["&&"](test, place == k), m, k, x))
        return
    now = _load(m, place)
    _store(m, place, selected(test, how(now, x), now))


def _branch(scopes: Scopes, test: Tree, body: Sequence[Tree], other: Sequence[Tree]) -> None:
    go = scopes[0].value(test)
    if is_known(go):
        run_statements(scopes, body if go else other)
        return
    assert len(scopes) == 1  # `_may_run_at_once`
    go = converted(go, np.dtype(np.int32), False)
    # loops of one turn or none: MLIR makes of a conditional a selection, which Mosaic refuses for registers
    for turns, part in ((go, body), (1 - go, other)):
        if part:
            _turns(scopes, 0, turns, part, lambda _: [{}])


def _each(scopes: Scopes, name: str, first: Tree, end: Tree, body: Sequence[Tree]) -> None:
    """Run a loop whose turns may run at once: some at a time, so that they wait for memory together."""
    begin, last = (scopes[0].value(x) for x in (first, end))
    at_once = AT_ONCE if _may_run_at_once(name, body) else 1
    if is_known(begin, last) and last - begin <= at_once:
        run_statements([s.within(**{name: i}) for i in range(begin, last) for s in scopes], body)
        return
    count = OPERATORS["/"](OPERATORS["-"](last, begin), at_once)
    if at_once > 1:
        _turns(scopes, 0, count, body, lambda t: [{name: begin + t * at_once + k} for k in range(at_once)])
    done = begin + count * at_once if at_once > 1 else begin
    if is_known(done, last) and at_once > 1:
        run_statements([s.within(**{name: i}) for i in range(done, last) for s in scopes], body)
    else:
        _turns(scopes, done, last, body, lambda i: [{name: i}])


def _turns(
    scopes: Scopes, begin: Number, end: Number, body: Sequence[Tree], names: Callable[[Number], list[Names]]
) -> None:
    """Run the turns of a loop, each with some names for every scope."""
    carried = _carried(scopes, body)
    turn = carried.after(lambda i: run_statements([s.within(**n) for n in names(i) for s in scopes], body))
    carried.give(repeat(begin, end, lambda i, x: turn(x, i), carried.starts()))


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
        last = OPERATORS["+"](scopes[0].value(end), int(op == "<="))
        if is_known(begin, last) and last - begin <= 1:
            for i in range(begin, last):
                run_statements([s.within(**{name: i}) for s in scopes], body)
        else:
            _turns(scopes, begin, last, body, lambda i: [{name: i}])
        return
    index = _Variable(np.dtype(np.int32), jnp.asarray(begin, jnp.int32), True)
    _while(
        [s.within(**{name: index}) for s in scopes], test, [("block", body), ("call", "ASSIGN", [("name", name), step])]
    )


def _while(scopes: Scopes, test: Tree, body: Sequence[Tree]) -> None:
    """Repeat statements while a test holds, which is a statement of the body if `test` is true."""
    at = next((k for k, t in enumerate(body) if t[0] == "if" and t[2] == [("break",)]), None)
    carried = _carried(scopes, body)
    if at is None:
        step = carried.after(lambda _: run_statements(scopes, body))
        carried.give(lax.while_loop(carried.test(lambda: scopes[0].value(test)), step, carried.starts()))
        return
    (scope,) = scopes

    def turn(state: tuple[Number, list[Number]]) -> tuple[Number, list[Number]]:
        carried.give(state[1])
        run_statements(scopes, body[:at])
        go = converted(negated(scope.value(body[at][1])), np.dtype(np.int32), False)
        scope.names["goes on"] = go
        _branch(scopes, ("!=", ("name", "goes on"), 0), body[at + 1 :], [])
        return go, carried.values()

    carried.give(lax.while_loop(lambda s: s[0] != 0, turn, (jnp.int32(1), carried.starts()))[1])


_KINDS: dict[str, Callable[..., None]] = {
    "block": run_statements,
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

    def starts(self) -> list[Number]:
        """Return the present values where a loop begins, of several as registers that differ between worlds.

        Mosaic infers once how a loop keeps its registers. If one takes the value of another, it must not begin as
        a number that is known to be the same in all worlds when the other one does not stay so.
        """
        if len(self.variables) == 1:
            return self.values()
        return [apart(v.value) if v.is_same and is_wide(v.value) else v.value for v in self.variables]

    def give(self, values: Sequence[Number]) -> None:
        """Assign new values."""
        for v, x in zip(self.variables, values, strict=True):
            v.value, v.is_same = x, False

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
            found = as_truth(of())
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


def _let(b: Scope, _: Tree, name: Tree, value: Tree) -> None:
    b.names[name[1]] = b.value(value)


def _variable(b: Scope, kind: Tree, name: Tree, value: Tree = 0, wide: bool = True) -> None:
    dtype = TYPES[kind[1]]
    x = b.value(value)
    b.names[name[1]] = _Variable(dtype, converted(x, kept_type(dtype), wide), not is_wide(x))


def _assign(b: Scope, name: Tree, value: Tree) -> None:
    b.names[name[1]].give(b.value(value))


def _put(b: Scope, name: Tree, i: Tree, value: Tree) -> None:
    _store(b.names[name[1]], b.value(i), b.value(value))


def _row(b: Scope, to: Tree, place: Tree, table: Tree, row: Tree, width: int) -> None:
    """Copy a row of a table, of each world its own: look for it among the rows that any world takes."""
    found, m, first, k = b.names[to[1]], b.names[table[1]], b.value(place), b.value(row)
    wide, kept = is_wide(k), kept_type(m.dtype)
    lowest, last = _extent(k) if wide else (k, k)
    for begin in range(0, width, COLUMNS):
        columns = range(begin, min(width, begin + COLUMNS))
        entries = lambda r: [converted(_load(m, r * width + c), kept, True) for c in columns]  # noqa: B023, E731

        def better(r: Number, now: list[Array]) -> list[Array]:
            return [lax.select(k == r, x, y) for x, y in zip(entries(r), now, strict=True)]  # noqa: B023

        if wide:
            taken = repeat(lowest + 1, last + 1, better, entries(lowest))
        else:
            taken = entries(k)
        for c, x in zip(columns, taken, strict=True):
            _store(found, OPERATORS["+"](first, c), x)


def _set(b: Scope, mask: Tree, name: Tree, first: Tree, *entries: Tree) -> None:
    """Set entries at fixed distances from a place, in worlds where a mask holds."""
    m, test, k = b.names[name[1]], b.value(mask), b.value(first)
    distances, values = entries[::2], [b.value(x) for x in entries[1::2]]

    def at(place: Number, here: Number) -> None:
        for d, x in zip(distances, values, strict=True):
            i = OPERATORS["+"](place, d)
            _store(m, i, x if is_known(here) and here else selected(here, x, _load(m, i)))

    places = m.size - max(distances)
    if not is_wide(k):
        at(k, test)
    elif places <= UNROLLED:
        for i in range(places):
            at(i, OPERATORS["&&"](test, k == i))
    else:
        lowest, last = jnp.min(_as_real(test, k, places)), jnp.max(_as_real(test, k, -1))
        lowest, last = (x.astype(jnp.int32) for x in (lowest, last))
        repeat(lowest, last + 1, lambda i, _: at(i, OPERATORS["&&"](test, k == i)), None)


def _as_real(test: Number, i: Array, other: int) -> Array:
    """Return an index as a number of floating point, which the units for reductions take; `other` where not `test`."""
    return selected(test, i, other).astype(jnp.float32)


_MACROS: dict[str, Callable[..., None]] = {
    "ROW": _row,
    "SET": _set,
    "LET": _let,
    "VARIABLE": _variable,
    "DECLARE": _variable,
    "SHARED": partial(_variable, wide=False),
    "ASSIGN": _assign,
    "PUT": _put,
}
