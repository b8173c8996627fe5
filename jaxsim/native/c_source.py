"""C source of a jaxpr of scalars and small arrays, as one thread runs it.

Arrays of up to `SMALL` numbers become variables, so that a compiler keeps them in registers; larger ones are local
arrays. Where an array is not needed any more, an update of it happens in place. The source is C99 and CUDA alike, by
way of the macros in `PREAMBLE`.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaxsim.xla.batching import is_read
from jaxsim.xla.compat import scan_lengths
from jaxsim.native.expressions import (
    ELEMENTWISE,
    Index,
    UnsupportedPrimitive,
    bitwise,
    c_type,
    greater_of,
    linear,
    literal,
    plus,
    times,
)

SMALL = 18
UNROLLED = 9  # numbers of the last axes of a larger array that are written out, so that their indices are known


@dataclass(frozen=True)
class Small:
    """An array whose entries are expressions, in row-major order."""

    shape: tuple[int, ...]
    dtype: Any
    entries: tuple[str, ...]


@dataclass(frozen=True)
class Buffer:
    """An array in memory, in row-major order; one that is `owned` may be overwritten when its last use is over.

    Slices of one that is `given`, an argument, begin where they say: their number may be that of another model.
    """

    shape: tuple[int, ...]
    dtype: Any
    name: str
    owned: bool = True
    given: bool = False


Value = Small | Buffer


def entries_of(x: Value) -> tuple[str, ...]:
    """All entries as expressions."""
    return x.entries if isinstance(x, Small) else tuple(f"{x.name}[{i}]" for i in range(math.prod(x.shape)))


Entry = Callable[[Sequence[Index]], str]


def c_function(name: str, jaxpr: Any, consts: Sequence[Any]) -> str:
    """A function `name(in0, in1, ..., out)` of pointers that writes the only result of the jaxpr.

    Slices of arguments must lie inside (`math.arrays.row_at`): they are not moved there. Raises UnsupportedPrimitive.
    """
    writer = Writer(f"{name}_")
    pointers = [f"const {c_type(v.aval.dtype)}* in{i}" for i, v in enumerate(jaxpr.invars)]
    args = [
        Small((), v.aval.dtype, (f"in{i}[0]",))
        if v.aval.shape == ()
        else Buffer(*_kind(v), f"in{i}", owned=False, given=True)
        for i, v in enumerate(jaxpr.invars)
    ]
    (result,) = writer.inline(jaxpr, consts, args)
    flat = math.prod(result.shape)
    if isinstance(result, Buffer):
        writer.line(f"for (int i = 0; i < {flat}; ++i) out[i] = {result.name}[i];")
    else:
        for i, entry in enumerate(result.entries):
            writer.line(f"out[{i}] = {entry};")
    body = "\n".join(writer.lines)
    out = f"{c_type(result.dtype)}* out"
    tables = "\n".join(writer.tables)
    return f"{tables}\nFUNCTION void {name}({', '.join([*pointers, out])}) {{\n{body}\n}}\n"


def _kind(v: Any) -> tuple[tuple[int, ...], Any]:
    return tuple(v.aval.shape), v.aval.dtype


class Writer:
    """The lines of a function, and its tables of constants."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix  # of the names of tables, which the functions of a source share
        self.lines: list[str] = []
        self.tables: list[str] = []
        self.shared: set[str] = set()  # arrays that have two names, so that none may be overwritten
        self.names = (f"v{i}" for i in itertools.count())

    def line(self, text: str) -> None:
        self.lines.append(text)

    def variable(self, dtype: Any, expression: str) -> str:
        """A new constant with this value; the expression itself where it is a name or a literal."""
        if expression.isidentifier() or (expression[0] == "(" and expression[1:-1].isdigit()):
            return expression
        name = next(self.names)
        self.line(f"const {c_type(dtype)} {name} = {expression};")
        return name

    def array(self, shape: Sequence[int], dtype: Any) -> Buffer:
        """A new local array."""
        name = next(self.names)
        self.line(f"{c_type(dtype)} {name}[{max(math.prod(shape), 1)}];")
        return Buffer(tuple(shape), dtype, name)

    def constant(self, x: Any) -> Value:
        x = np.asarray(x)
        if x.size <= SMALL:
            return Small(x.shape, x.dtype, tuple(literal(e, x.dtype) for e in x.reshape(-1)))
        name = self.prefix + next(self.names)
        entries = ", ".join(literal(e, x.dtype) for e in x.reshape(-1))
        self.tables.append(f"TABLE {c_type(x.dtype)} {name}[{x.size}] = {{{entries}}};")
        return Buffer(x.shape, x.dtype, name, False)

    def in_memory(self, x: Value) -> Buffer:
        """The array in memory, for indices known at run time only."""
        if isinstance(x, Buffer):
            return x
        out = self.array(x.shape, x.dtype)
        for i, entry in enumerate(x.entries):
            self.line(f"{out.name}[{i}] = {entry};")
        return out

    def at(self, x: Value, index: Sequence[Index]) -> str:
        """The entry of an array."""
        i = linear(index, x.shape)
        if isinstance(x, Buffer):
            return f"{x.name}[{i}]"
        if isinstance(i, int):
            return x.entries[i]
        chain = x.entries[-1]
        for k in range(len(x.entries) - 2, -1, -1):
            chain = f"({i} == {k} ? {x.entries[k]} : {chain})"
        return chain

    def make(self, shape: Sequence[int], dtype: Any, entry: Entry) -> Value:
        """The array of these entries: variables if it is small, otherwise a loop that fills a local array."""
        shape = tuple(shape)
        if math.prod(shape) <= SMALL:
            indices = itertools.product(*map(range, shape))
            return Small(shape, dtype, tuple(self.variable(dtype, entry(i)) for i in indices))
        out = self.array(shape, dtype)
        self.fill(out, entry)
        return out

    def fill(self, out: Buffer, entry: Entry, at: Callable[[Sequence[Index]], Index] | None = None) -> None:
        """Write all entries, at `at(index)` if given: a loop for each axis but the last ones, which are written out."""
        shape, index, opened = out.shape, [], 0
        split = _looped(shape)
        for n in shape[:split]:
            if n == 1:
                index.append(0)
                continue
            name = next(self.names)
            self.line(f"for (int {name} = 0; {name} < {n}; ++{name}) {{")
            index.append(name)
            opened += 1
        for inner in itertools.product(*map(range, shape[split:])):
            value = entry([*index, *inner])
            place = at([*index, *inner]) if at else linear([*index, *inner], shape)
            self.line(f"{out.name}[{place}] = {value};")
        self.line("}" * opened)

    def copy(self, target: str, source: Buffer) -> None:
        size = math.prod(source.shape)
        self.line(f"for (int i = 0; i < {size}; ++i) {target}[i] = {source.name}[i];")

    def inline(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Value]) -> list[Value]:
        """Write the equations of a jaxpr for these arguments; its results."""
        env: dict[Any, Value] = {}
        last: dict[Any, int] = {}
        eqns = _needed(jaxpr)
        for k, eqn in enumerate(eqns):
            last |= {v: k for v in eqn.invars if not hasattr(v, "val")}
        last |= {v: len(eqns) for v in jaxpr.outvars if not hasattr(v, "val")}
        for v, c in zip(jaxpr.constvars, consts, strict=True):
            env[v] = c if isinstance(c, Small | Buffer) else self.constant(c)
        env |= dict(zip(jaxpr.invars, args, strict=True))

        def read(v: Any, k: int) -> Value:
            if hasattr(v, "val"):
                return self.constant(np.asarray(v.val, v.aval.dtype))
            x = env[v]
            if isinstance(x, Small):
                return x
            return replace(x, owned=x.owned and last[v] == k and x.name not in self.shared)

        for k, eqn in enumerate(eqns):
            operands = [read(v, k) for v in eqn.invars]
            if eqn.primitive.name != "cond":  # of whose branches each may use another one
                operands = _each_owned_once(operands)
            results = self.equation(eqn, operands)
            lent = {x.name for x in operands if isinstance(x, Buffer) and not x.owned}
            self.shared |= {x.name for x in results if isinstance(x, Buffer) and x.name in lent}
            env |= dict(zip(eqn.outvars, results, strict=True))
        out = [read(v, len(eqns)) for v in jaxpr.outvars]
        return _each_owned_once(out)

    def equation(self, eqn: Any, operands: list[Value]) -> list[Value]:
        name, params = eqn.primitive.name, eqn.params
        if name in ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "checkpoint"):
            inner = params.get("jaxpr", params.get("call_jaxpr"))
            return self.inline(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), operands)
        if name in CONTROL:
            return CONTROL[name](self, eqn, operands)
        out = eqn.outvars[0].aval
        if name in ELEMENTWISE:
            return [self.elementwise(ELEMENTWISE[name], operands, out, params)]
        if name not in STRUCTURAL:
            raise UnsupportedPrimitive(f"no C source for {name}")
        found = STRUCTURAL[name](self, eqn, operands)
        return found if isinstance(found, list) else [found]

    def elementwise(self, expression: Callable[..., str], operands: list[Value], out: Any, params: dict) -> Value:
        """An array of expressions of entries of the operands; one loop where those have the same shape."""
        shape, size = tuple(out.shape), math.prod(out.shape)
        if all(x.shape in ((), shape) for x in operands):
            shape = (size,) if size > SMALL else shape
            operands = [replace(x, shape=shape if x.shape else ()) for x in operands]
        operands = [self.in_memory(x) if any(n > 1 for n in x.shape[: _looped(shape)]) else x for x in operands]

        def entry(index: Sequence[Index]) -> str:
            parts = [self.at(x, index if x.shape else ()) for x in operands]
            return expression(*parts, dtype=operands[-1].dtype, out=out.dtype, **params)

        return replace(self.make(shape, out.dtype, entry), shape=tuple(out.shape))


def _looped(shape: Sequence[int]) -> int:
    """The number of first axes over which `make` writes loops; indices of the others are known."""
    if math.prod(shape) <= SMALL:
        return 0
    return next(d for d in range(len(shape) + 1) if math.prod(shape[d:]) <= UNROLLED)


def _needed(jaxpr: Any) -> list[Any]:
    """The equations on which the results depend."""
    needed, kept = {v for v in jaxpr.outvars if not hasattr(v, "val")}, []
    for eqn in reversed(jaxpr.eqns):
        if not needed.isdisjoint(eqn.outvars):
            kept.append(eqn)
            needed |= {v for v in eqn.invars if not hasattr(v, "val")}
    return kept[::-1]


def _each_owned_once(values: list[Value]) -> list[Value]:
    names = [x.name for x in values if isinstance(x, Buffer)]
    return [replace(x, owned=False) if isinstance(x, Buffer) and names.count(x.name) > 1 else x for x in values]


def _reshape(w: Writer, eqn: Any, operands: list[Value]) -> Value:
    x, shape = operands[0], tuple(eqn.outvars[0].aval.shape)
    return replace(x, shape=shape)


def _broadcast(w: Writer, eqn: Any, operands: list[Value]) -> Value:
    x, out = operands[0], eqn.outvars[0].aval
    dims = eqn.params["broadcast_dimensions"]
    if not x.shape and math.prod(out.shape) > SMALL:
        return replace(w.make((math.prod(out.shape),), x.dtype, lambda _: entries_of(x)[0]), shape=tuple(out.shape))
    if any(n > 1 and d < _looped(out.shape) for d, n in zip(dims, x.shape, strict=True)):
        x = w.in_memory(x)
    return w.make(
        out.shape, x.dtype, lambda i: w.at(x, [0 if n == 1 else i[d] for d, n in zip(dims, x.shape, strict=True)])
    )


def _transpose(w: Writer, eqn: Any, operands: list[Value]) -> Value:
    (x,), order = operands, eqn.params["permutation"]

    def entry(i: Sequence[Index]) -> str:
        index: list[Index] = [0] * len(order)
        for to, source in enumerate(order):
            index[source] = i[to]
        return w.at(x, index)

    return w.make(eqn.outvars[0].aval.shape, x.dtype, entry)


def _slice(w: Writer, eqn: Any, operands: list[Value]) -> Value:
    (x,), p = operands, eqn.params
    strides = p["strides"] or (1,) * len(x.shape)
    return w.make(
        eqn.outvars[0].aval.shape,
        x.dtype,
        lambda i: w.at(x, [plus(times(k, s), b) for k, s, b in zip(i, strides, p["start_indices"], strict=True)]),
    )


def _split(w: Writer, eqn: Any, operands: list[Value]) -> list[Value]:
    (x,), axis, begin, out = operands, eqn.params["axis"], 0, []
    for v in eqn.outvars:
        shift = [begin if d == axis else 0 for d in range(len(x.shape))]
        entry = lambda i, shift=shift: w.at(x, [plus(k, s) for k, s in zip(i, shift, strict=True)])  # noqa: E731
        out.append(w.make(v.aval.shape, x.dtype, entry))
        begin += v.aval.shape[axis]
    return out


def _unstack(w: Writer, eqn: Any, operands: list[Value]) -> list[Value]:
    (x,), axis = operands, eqn.params["axis"]
    entry = lambda k: lambda i: w.at(x, [*i[:axis], k, *i[axis:]])  # noqa: E731
    return [w.make(v.aval.shape, x.dtype, entry(k)) for k, v in enumerate(eqn.outvars)]


def _reverse(w: Writer, eqn: Any, operands: list[Value]) -> Value:
    (x,), dims = operands, eqn.params["dimensions"]

    def entry(i: Sequence[Index]) -> str:
        turned = [n - 1 - k if isinstance(k, int) else f"({n - 1} - {k})" for k, n in zip(i, x.shape, strict=True)]
        return w.at(x, [t if d in dims else k for d, (k, t) in enumerate(zip(i, turned, strict=True))])

    return w.make(x.shape, x.dtype, entry)


def _pad(w: Writer, eqn: Any, operands: list[Value]) -> Value:
    x, value = operands
    config = eqn.params["padding_config"]
    if any(low < 0 or high < 0 or inside for low, high, inside in config):
        raise UnsupportedPrimitive("pad that cuts or spreads")
    out = eqn.outvars[0].aval
    start = [low for low, _, _ in config]
    if math.prod(out.shape) <= SMALL:

        def entry(i: Sequence[Index]) -> str:
            index = [int(k) - s for k, s in zip(i, start, strict=True)]
            inside = all(0 <= k < n for k, n in zip(index, x.shape, strict=True))
            return w.at(x, index) if inside else entries_of(value)[0]

        return w.make(out.shape, x.dtype, entry)
    found = w.array(out.shape, x.dtype)
    w.fill(found, lambda _: entries_of(value)[0])
    source = w.in_memory(x)
    write_block(w, found, source, start)
    return found


def write_block(w: Writer, target: Buffer, source: Value, start: Sequence[Index]) -> None:
    """Write an array into another one, from index `start` on."""
    place = lambda i: linear([plus(k, s) for k, s in zip(i, start, strict=True)], target.shape)  # noqa: E731
    if isinstance(source, Small):
        for i in itertools.product(*map(range, source.shape)):
            w.line(f"{target.name}[{place(i)}] = {w.at(source, i)};")
    else:
        w.fill(replace(source, name=target.name), lambda i: w.at(source, i), place)


def _concatenate(w: Writer, eqn: Any, operands: list[Value]) -> Value:
    axis, out = eqn.params["dimension"], eqn.outvars[0].aval
    ends = list(itertools.accumulate(x.shape[axis] for x in operands))
    if math.prod(out.shape) <= SMALL:

        def entry(i: Sequence[Index]) -> str:
            part = next(k for k, end in enumerate(ends) if i[axis] < end)
            begin = ends[part] - operands[part].shape[axis]
            return w.at(operands[part], [k - begin if d == axis else k for d, k in enumerate(i)])

        return w.make(out.shape, out.dtype, entry)
    found = w.array(out.shape, out.dtype)
    for x, end in zip(operands, ends, strict=True):
        write_block(w, found, x, [end - x.shape[axis] if d == axis else 0 for d in range(len(out.shape))])
    return found


def _stack(w: Writer, eqn: Any, operands: list[Value]) -> Value:
    axis, out = eqn.params["axis"], eqn.outvars[0].aval
    if math.prod(out.shape) <= SMALL:
        return w.make(
            out.shape, out.dtype, lambda i: w.at(operands[i[axis]], [k for d, k in enumerate(i) if d != axis])
        )
    found = w.array(out.shape, out.dtype)
    for k, x in enumerate(operands):
        shape = [1 if d == axis else n for d, n in enumerate(out.shape)]
        write_block(w, found, replace(x, shape=tuple(shape)), [k if d == axis else 0 for d in range(len(shape))])
    return found


def _iota(w: Writer, eqn: Any, operands: list[Value]) -> Value:
    out, axis = eqn.outvars[0].aval, eqn.params["dimension"]
    as_entry = lambda k: literal(k, out.dtype) if isinstance(k, int) else f"(({c_type(out.dtype)}){k})"  # noqa: E731
    return w.make(out.shape, out.dtype, lambda i: as_entry(i[axis]))


def _starts(
    w: Writer, starts: Sequence[Value], shape: Sequence[int], sizes: Sequence[int], inside: bool = False
) -> list[Index]:
    """Where a slice begins, moved inside unless it is known to be there."""
    out: list[Index] = []
    for s, n, size in zip(starts, shape, sizes, strict=True):
        text = entries_of(s)[0]
        if n == size:
            out.append(0)
        elif text.strip("()").isdigit():
            out.append(min(int(text.strip("()")), n - size))
        elif inside:
            out.append(text)
        else:
            high = n - size
            out.append(w.variable(np.dtype(np.int32), f"({text} < 0 ? 0 : ({text} > {high} ? {high} : {text}))"))
    return out


def _dynamic_slice(w: Writer, eqn: Any, operands: list[Value]) -> Value:
    x, *starts = operands
    sizes = eqn.params["slice_sizes"]
    begin = _starts(w, starts, x.shape, sizes, isinstance(x, Buffer) and x.given)
    return w.make(sizes, x.dtype, lambda i: w.at(x, [plus(b, k) for b, k in zip(begin, i, strict=True)]))


def _dynamic_update_slice(w: Writer, eqn: Any, operands: list[Value]) -> Value:
    x, update, *starts = operands
    begin = _starts(w, starts, x.shape, update.shape)
    if isinstance(x, Small):

        def entry(i: Sequence[Index]) -> str:
            old, chain = w.at(x, i), None
            tests, index = [], []
            for k, b, n, size in zip(i, begin, update.shape, x.shape, strict=True):
                if n == size:
                    index.append(k)
                elif n == 1:
                    tests.append(f"{b} == {k}")
                    index.append(0)
                else:
                    raise UnsupportedPrimitive("update of part of a small array")
            chain = w.at(update, index)
            return f"({' && '.join(tests)} ? {chain} : {old})" if tests else chain

        return w.make(x.shape, x.dtype, entry)
    out = x
    if not x.owned:
        out = w.array(x.shape, x.dtype)
        w.copy(out.name, x)
    if isinstance(update, Buffer) and update.name == x.name:
        raise UnsupportedPrimitive("update of an array by itself")
    write_block(w, out, update, begin)
    return out


def _gather(w: Writer, eqn: Any, operands: list[Value]) -> Value:
    x, index = operands
    p, out = eqn.params, eqn.outvars[0].aval
    d, sizes, mode = p["dimension_numbers"], p["slice_sizes"], str(p["mode"])
    if getattr(d, "operand_batching_dims", ()):
        raise UnsupportedPrimitive("gather with batches of operands")
    batch = [k for k in range(len(out.shape)) if k not in d.offset_dims]
    kept = [k for k in range(len(x.shape)) if k not in d.collapsed_slice_dims]
    if math.prod(out.shape) > SMALL:
        x, index = w.in_memory(x), w.in_memory(index)

    def entry(i: Sequence[Index]) -> str:
        place: list[Index] = [0] * len(x.shape)
        inside = []
        for k, dim in enumerate(d.start_index_map):
            start, high = w.at(index, [*(i[b] for b in batch), k]), x.shape[dim] - sizes[dim]
            if "PROMISE" in mode:
                place[dim] = start
            else:
                place[dim] = f"({start} < 0 ? 0 : ({start} > {high} ? {high} : {start}))"
                inside.append(f"{start} >= 0 && {start} <= {high}")
        for dim, o in zip(kept, d.offset_dims, strict=True):
            place[dim] = plus(place[dim], i[o])
        value = w.at(x, place)
        if "FILL" not in mode or not inside:
            return value
        fill = (
            np.nan if np.issubdtype(x.dtype, np.floating) else np.iinfo(x.dtype).min if x.dtype != np.bool_ else False
        )
        return f"(({' && '.join(inside)}) ? {value} : {literal(fill, x.dtype)})"

    return w.make(out.shape, x.dtype, entry)


def _reduction(start: Callable[[Any], str], join: Callable[..., str]) -> Callable[..., Value]:
    def reduce(w: Writer, eqn: Any, operands: list[Value]) -> Value:
        (x,), axes, out = operands, eqn.params["axes"], eqn.outvars[0].aval
        kept = [d for d in range(len(x.shape)) if d not in axes]

        def full(i: Sequence[Index], inner: Sequence[Index]) -> list[Index]:
            index: list[Index] = [0] * len(x.shape)
            for d, k in zip([*kept, *axes], [*i, *inner], strict=True):
                index[d] = k
            return index

        if isinstance(x, Small):

            def entry(i: Sequence[Index]) -> str:
                terms = [w.at(x, full(i, inner)) for inner in itertools.product(*(range(x.shape[a]) for a in axes))]
                total = terms[0]
                for t in terms[1:]:
                    total = join(w.variable(out.dtype, total), t, out=out.dtype)
                return total

            return w.make(out.shape, out.dtype, entry)
        found = w.array(out.shape, out.dtype)
        w.fill(found, lambda _: start(out.dtype))
        place = lambda i: linear([i[d] for d in kept], out.shape)  # noqa: E731
        w.fill(
            replace(x, name=found.name),
            lambda i: join(f"{found.name}[{place(i)}]", w.at(x, i), out=out.dtype),
            place,
        )
        if math.prod(out.shape) <= SMALL:
            return w.make(out.shape, out.dtype, lambda i: f"{found.name}[{linear(i, out.shape)}]")
        return found

    return reduce


def _arg(symbol: str) -> Callable[..., Value]:
    def best(w: Writer, eqn: Any, operands: list[Value]) -> Value:
        (x,), (axis,), out = operands, eqn.params["axes"], eqn.outvars[0].aval
        if math.prod(out.shape) > SMALL:
            raise UnsupportedPrimitive("argmax of many rows")
        entries = []
        for i in itertools.product(*map(range, out.shape)):
            at = lambda k, i=i: w.at(x, [*i[:axis], k, *i[axis:]])  # noqa: E731
            value, place = at(0), "0"
            for k in range(1, x.shape[axis]):
                better = w.variable(np.dtype(bool), f"({at(k)} {symbol} {value})")
                value = w.variable(x.dtype, f"({better} ? {at(k)} : {value})")
                place = w.variable(out.dtype, f"({better} ? {k} : {place})")
            entries.append(place if place != "0" else "(0)")
        return Small(tuple(out.shape), out.dtype, tuple(entries))

    return best


def _cumsum(w: Writer, eqn: Any, operands: list[Value]) -> Value:
    (x,), axis = operands, eqn.params["axis"]
    if eqn.params["reverse"]:
        raise UnsupportedPrimitive("cumsum from the end")
    out = eqn.outvars[0].aval
    if isinstance(x, Buffer):
        found = w.array(out.shape, out.dtype)
        before = lambda i: [f"({k} - 1)" if d == axis else k for d, k in enumerate(i)]  # noqa: E731
        previous = lambda i: f"({i[axis]} > 0 ? {found.name}[{linear(before(i), out.shape)}] : 0)"  # noqa: E731
        w.fill(found, lambda i: f"({w.at(x, i)} + {previous(i)})")
        return found
    sums: dict[tuple, str] = {}
    for i in itertools.product(*map(range, x.shape)):
        before_i = tuple(k - 1 if d == axis else k for d, k in enumerate(i))
        term = w.at(x, i)
        sums[i] = w.variable(out.dtype, f"({sums[before_i]} + {term})" if before_i in sums else term)
    return Small(x.shape, out.dtype, tuple(sums[i] for i in itertools.product(*map(range, x.shape))))


def _dot(w: Writer, eqn: Any, operands: list[Value]) -> Value:
    (a, b), out = operands, eqn.outvars[0].aval
    (ca, cb), (ba, bb) = eqn.params["dimension_numbers"]
    if ba or bb:
        raise UnsupportedPrimitive("batched products")
    if math.prod(out.shape) > SMALL:
        a, b = w.in_memory(a), w.in_memory(b)
    free_a, free_b = ([d for d in range(len(x.shape)) if d not in c] for x, c in ((a, ca), (b, cb)))

    def entry(i: Sequence[Index]) -> str:
        terms = []
        for inner in itertools.product(*(range(a.shape[d]) for d in ca)):
            left = dict(zip([*free_a, *ca], [*i[: len(free_a)], *inner], strict=True))
            right = dict(zip([*free_b, *cb], [*i[len(free_a) :], *inner], strict=True))
            x, y = (w.at(z, [m[d] for d in range(len(z.shape))]) for z, m in ((a, left), (b, right)))
            terms.append(f"{x} * {y}")
        return "(" + " + ".join(terms) + ")"

    return w.make(out.shape, out.dtype, entry)


def _platform_index(w: Writer, eqn: Any, operands: list[Value]) -> Value:
    """The branch for platforms that are not named, which needs nothing of XLA."""
    platforms = eqn.params["platforms"]
    if None not in platforms:
        raise UnsupportedPrimitive(f"branches for {platforms} only")
    return Small((), np.dtype(np.int32), (literal(platforms.index(None), np.dtype(np.int32)),))


def _least(dtype: Any) -> str:
    return literal(-np.inf if np.issubdtype(dtype, np.floating) else -(2**31) + 1, dtype)


def _greatest(dtype: Any) -> str:
    return literal(np.inf if np.issubdtype(dtype, np.floating) else 2**31 - 1, dtype)


def _plus_of(a: str, b: str, **_: Any) -> str:
    return f"({a} + {b})"


STRUCTURAL: dict[str, Callable[[Writer, Any, list[Value]], Value | list[Value]]] = {
    "reshape": _reshape,
    "squeeze": _reshape,
    "expand_dims": _reshape,
    "copy": _reshape,
    "stop_gradient": _reshape,
    "copy_p": _reshape,
    "reshard": _reshape,  # of programs for a mesh of devices: nothing to do within a thread
    "sharding_constraint": _reshape,
    "broadcast_in_dim": _broadcast,
    "transpose": _transpose,
    "slice": _slice,
    "split": _split,
    "rev": _reverse,
    "pad": _pad,
    "concatenate": _concatenate,
    "stack": _stack,
    "unstack": _unstack,
    "iota": _iota,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "reduce_sum": _reduction(lambda t: literal(0, t), _plus_of),
    "reduce_max": _reduction(
        lambda t: literal(-np.inf if np.issubdtype(t, np.floating) else -(2**31) + 1, t), greater_of(">")
    ),
    "reduce_min": _reduction(
        lambda t: literal(np.inf if np.issubdtype(t, np.floating) else 2**31 - 1, t), greater_of("<")
    ),
    "reduce_and": _reduction(lambda t: "true", bitwise("&", "&&")),
    "reduce_or": _reduction(lambda t: "false", bitwise("|", "||")),
    "argmax": _arg(">"),
    "argmin": _arg("<"),
    "cumsum": _cumsum,
    "dot_general": _dot,
    "platform_index": _platform_index,
}


def _carried(w: Writer, x: Value) -> Value:
    """Variables, or an array, that a loop changes, with the values of x."""
    if isinstance(x, Small):
        names = [next(w.names) for _ in x.entries]
        for n, entry in zip(names, x.entries, strict=True):
            w.line(f"{c_type(x.dtype)} {n} = {entry};")
        return replace(x, entries=tuple(names))
    if x.owned:
        return x
    out = w.array(x.shape, x.dtype)
    w.copy(out.name, x)
    return out


def lent(x: Value) -> Value:
    return replace(x, owned=False) if isinstance(x, Buffer) else x


def _assign(w: Writer, targets: list[Value], values: list[Value]) -> None:
    """Give carried variables and arrays new values, all at once."""
    moves = []
    for t, v in zip(targets, values, strict=True):
        if isinstance(t, Small):
            entries = entries_of(v)
            moves += [(t.dtype, a, b) for a, b in zip(t.entries, entries, strict=True) if a != b]
    changed = {a for _, a, _ in moves}
    final = []
    for dtype, a, b in moves:
        if b in changed:  # another one that changes too
            name = next(w.names)
            w.line(f"const {c_type(dtype)} {name} = {b};")
            b = name
        final.append((a, b))
    arrays = [(t, v) for t, v in zip(targets, values, strict=True) if isinstance(t, Buffer)]
    owners = {t.name for t, _ in arrays}
    staged = []
    for t, v in arrays:
        v = w.in_memory(v)
        if v.name != t.name and v.name in owners:  # another carried array
            copy = w.array(v.shape, v.dtype)
            w.copy(copy.name, v)
            v = copy
        staged.append((t, v))
    for t, v in staged:
        if v.name != t.name:
            w.copy(t.name, v)
    for a, b in final:
        w.line(f"{a} = {b};")


def _while(w: Writer, eqn: Any, operands: list[Value]) -> list[Value]:
    p = eqn.params
    nc, nb = p["cond_nconsts"], p["body_nconsts"]
    consts = [lent(x) for x in operands[: nc + nb]]
    carry = [_carried(w, x) for x in operands[nc + nb :]]
    w.line("while (true) {")
    (go,) = w.inline(p["cond_jaxpr"].jaxpr, p["cond_jaxpr"].consts, [*consts[:nc], *map(lent, carry)])
    w.line(f"if (!{entries_of(go)[0]}) break;")
    new = w.inline(p["body_jaxpr"].jaxpr, p["body_jaxpr"].consts, [*consts[nc:], *carry])
    _assign(w, carry, new)
    w.line("}")
    return carry


def row_of(w: Writer, x: Value, i: Index) -> Value:
    """`x[i]` along the first axis."""
    x, size = w.in_memory(x), math.prod(x.shape[1:])
    part = Buffer(x.shape[1:], x.dtype, f"({x.name} + {i} * {size})", False)
    return w.make(part.shape, x.dtype, lambda j: w.at(part, j)) if size <= SMALL else part


def _scan(w: Writer, eqn: Any, operands: list[Value]) -> list[Value]:
    p = eqn.params
    (nc, nk), length = scan_lengths(p, len(operands)), p["length"]
    consts = [lent(x) for x in operands[:nc]]
    carry = [_carried(w, x) for x in operands[nc : nc + nk]]
    rows = [w.in_memory(x) for x in operands[nc + nk :]]
    outs = [w.array(v.aval.shape, v.aval.dtype) for v in eqn.outvars[nk:]]
    k = next(w.names)
    i = f"({length - 1} - {k})" if p["reverse"] else k
    w.line(f"for (int {k} = 0; {k} < {length}; ++{k}) {{")

    new = w.inline(p["jaxpr"].jaxpr, p["jaxpr"].consts, [*consts, *carry, *(row_of(w, x, i) for x in rows)])
    for out, y in zip(outs, new[nk:], strict=True):
        write_block(w, out, replace(y, shape=(1, *y.shape)), [i] + [0] * len(y.shape))
    _assign(w, carry, new[:nk])
    w.line("}")
    found = [w.make(y.shape, y.dtype, lambda j, y=y: w.at(y, j)) if math.prod(y.shape) <= SMALL else y for y in outs]
    return [*carry, *found]


def _cond(w: Writer, eqn: Any, operands: list[Value]) -> list[Value]:
    which, *args = operands
    known = entries_of(which)[0].strip("()")
    if known.isdigit():
        branch = eqn.params["branches"][min(int(known), len(eqn.params["branches"]) - 1)]
        return w.inline(branch.jaxpr, branch.consts, args)
    results: list[Value] = []
    for v in eqn.outvars:
        if math.prod(v.aval.shape) <= SMALL:
            names = tuple(next(w.names) for _ in range(math.prod(v.aval.shape)))
            for n in names:
                w.line(f"{c_type(v.aval.dtype)} {n};")
            results.append(Small(*_kind(v), names))
        else:
            results.append(Buffer(*_kind(v), ""))
    outer, written, found = w.lines, [], []
    for branch in eqn.params["branches"]:
        w.lines = []
        read = is_read(branch.jaxpr)
        own = iter(_each_owned_once([x for x, r in zip(args, read, strict=True) if r]))
        mine = [next(own) if r else lent(x) for x, r in zip(args, read, strict=True)]
        found.append(w.inline(branch.jaxpr, branch.consts, mine))
        written.append(w.lines)
    known = {x.name: x for x in args if isinstance(x, Buffer)}
    w.lines = outer
    for k, r in enumerate(results):
        if isinstance(r, Buffer):
            names = {x[k].name if isinstance(x[k], Buffer) else "" for x in found}
            (name,) = names if len(names) == 1 else ("",)
            if name in known:
                results[k] = replace(r, name=name, owned=all(x[k].owned for x in found))
            else:
                results[k] = w.array(r.shape, r.dtype)
    last = len(found) - 1
    for b, (lines, values) in enumerate(zip(written, found, strict=True)):
        if last == 0:
            w.line("{")
        elif b == 0:
            w.line(f"if ({entries_of(which)[0]} <= 0) {{")
        else:
            w.line("else {" if b == last else f"else if ({entries_of(which)[0]} == {b}) {{")
        w.lines += lines
        for r, v in zip(results, values, strict=True):
            if isinstance(r, Small):
                for n, entry in zip(r.entries, entries_of(v), strict=True):
                    w.line(f"{n} = {entry};")
            elif w.in_memory(v).name != r.name:
                w.copy(r.name, w.in_memory(v))
        w.line("}")
    return _each_owned_once(results)


CONTROL: dict[str, Callable[[Writer, Any, list[Value]], list[Value]]] = {
    "while": _while,
    "scan": _scan,
    "cond": _cond,
}
