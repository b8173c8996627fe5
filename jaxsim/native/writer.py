"""Values, buffers and statements of a loop program: write statements, and assign memory to arrays.

An array is an expression of its index until a loop needs it in memory, so that chains of operations are fused to one
loop. A program has LANES threads ("lanes") for a world. With one lane, small arrays are variables, which a compiler
keeps in registers. With several lanes, values pass between loops through shared memory, with a barrier before a lane
reads what another lane wrote.
"""

import hashlib
import itertools
import math
import re
from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from jaxsim.native.expressions import (
    ELEMENTWISE,
    Index,
    Part,
    TableIndex,
    c_type,
    chosen,
    in_table,
    linear,
    literal,
    table_index,
    unravelled,
)
from jaxsim.native.jaxpr import BLOCKS, CORE, GPU, THREAD, VECTORS, Operation, Var

WRITTEN_OUT = 9  # numbers of the last axes of an array that one lane writes by unrolled code
REGISTERS = 10  # numbers, or vectors, of an array that one lane keeps in variables: those of a spatial inertia
ALIGNED = 16  # bytes
OFTEN_COST = 3  # instructions of an entry that is read often
CYCLES_OF_LOAD, CYCLES_OF_INDEX, CYCLES_OF_STORE = 2, 2, 4  # cost of a load, of computing an index, of a store
RECOMPUTED = 8  # instructions: a value is recomputed up to this cost, and stored above it
SELECTED = 6  # variables among which a select chooses; a longer array is stored
CYCLES_OF_HEAD, CYCLES_OF_WAIT = 5, 10  # cost of beginning a loop, of a barrier
INDEX = "INDEX"  # the type of indices
CYCLES_OF_GATHER = 8  # of a number that a vector of entries gathers
NOT_VECTORIZED = "NOT_VECTORIZED();"  # in a loop of which no vectors are made
ONE = "if (lane == 0)"  # the head of statements that one lane executes for all
USUAL_LANES = 64  # of a world, to choose between rows and entries
MOST_UNROLLED = 60  # statements of a loop of lanes that is unrolled: more have loads to overlap without it
NAMES = re.compile(r"\b[A-Za-z_]\w*")
Entry = Callable[["Body", Sequence[Index]], str]


@dataclass(eq=False)
class Buffer:
    """An array in memory with a live range from epoch `first` to `last`; an epoch ends at a barrier of the lanes.

    `given` memory belongs to the program and is only read. Slices of an `unsized` array are not clamped, since source
    that many models share does not know its length. A `part` of another buffer begins at an entry of it.
    """

    name: str
    dtype: np.dtype
    size: int
    first: int
    last: int
    given: bool = False
    width: int = 0  # bytes of a number, if they are not those of its type
    unsized: bool = False
    uniform: bool = False  # in vectors of worlds: the same numbers for all worlds
    version: int = 0  # changes when its content changes
    part: "tuple[Buffer, int] | None" = None

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.size * (self.width or self.dtype.itemsize)

    @property
    def whole(self) -> "Buffer":
        """The buffer that this one is a part of, or itself."""
        return self.part[0].whole if self.part else self


Targets = dict[Var, Buffer]  # the buffers that results must be written to


@dataclass(frozen=True, eq=False)
class Value:
    """An array as an expression of its index; `cost` is that of an entry, in instructions.

    It may be stored in a `buffer`, or in variables with these `names`. `reads` are the buffers from which its entries
    are computed. `aligned` are those of which entry i reads entry i only. It is `uniform` if all worlds of a vector
    have the same numbers.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    entry: Entry
    cost: int = 0
    buffer: Buffer | None = None
    names: tuple[str, ...] | None = None
    reads: frozenset[Buffer] = frozenset()
    aligned: frozenset[Buffer] = frozenset()
    uniform: bool = False
    symmetric: bool = False  # a square matrix
    used: tuple[int, str] | None = None  # an axis, and an expression: how many of its first entries are in use
    unset: bool = False  # uninitialised: its numbers do not matter
    known: np.ndarray | None = None  # the numbers of a constant
    chosen: "Chosen | None" = None

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)


class Chosen(NamedTuple):
    """An array that is another one's `entries` at flat `places`, and a literal elsewhere."""

    places: np.ndarray
    entries: Value
    otherwise: str


def stored(buffer: Buffer, shape: Sequence[int]) -> Value:
    """Return a buffer as an array."""
    shape, own = tuple(shape), frozenset([buffer])
    entry = lambda b, i: b.load(buffer, b.index(linear(i, shape)))  # noqa: E731
    return Value(shape, buffer.dtype, entry, CYCLES_OF_LOAD, buffer, None, own, own, buffer.uniform)


class Known(ChainMap[Any, Any]):
    """Expressions that are known at a place, by what they compute: those of its own block, and of blocks around it."""

    def get(self, key: Any, default: Any = None) -> Any:
        for own in self.maps:
            if (found := own.get(key)) is not None:
                return found
        return default

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None


class Body:
    """Statements of one lane, with common subexpressions computed once."""

    def __init__(self, names: Iterator[str], known: Known | None = None, lines: Any = None) -> None:
        self.lines: list[str] = [] if lines is None else lines
        self.known = Known() if known is None else known.new_child()
        self.reads: set[Buffer] = set()
        self.names = names
        self.cost = 0.0
        self.times = 1.0
        self.gathered = 0.0  # numbers at indices that other arrays hold
        self.continues = False  # the lanes' last loop, whose expressions it uses

    def let(self, dtype: Any, expression: str) -> str:
        """Return the name of a constant with this value; the expression itself if it is a name or a literal."""
        if expression.isidentifier() or (expression[0] == "(" and expression[1:-1].replace(".", "").isalnum()):
            return expression
        return self._named(c_type(dtype), expression)

    def _named(self, kind: str, expression: str) -> str:
        key = (kind, expression)
        if (found := self.known.get(key)) is None:
            found = self.known[key] = next(self.names)
            self.lines.append(f"LET({kind}, {found}, {expression});")
        return found

    def index(self, i: Index) -> Index:
        """Return an index as a number or a name."""
        if isinstance(i, int):
            return i
        found = in_table(i) if isinstance(i, Part) and not i.isidentifier() else None
        text = i if found is None else found.with_numbers(found.numbers)
        if text.isidentifier():
            return i
        if (INDEX, text) not in self.known:
            self.cost += CYCLES_OF_INDEX * self.times
        name = self._named(INDEX, text)
        return i.named(name) if isinstance(i, (Part, TableIndex)) else name

    def load(self, buffer: Buffer, i: Index) -> str:
        """Return the entry of a buffer at a linear index."""
        key = (buffer, buffer.version, i)
        found = self.known.get(key)
        if found is None or not self.continues:  # else the lane has it in a register
            self.reads.add(buffer)
        if found is None:
            self.cost += CYCLES_OF_LOAD * self.times
            found = self.known[key] = self.fresh(buffer.dtype, f"AT({buffer.name}, {i})")
        return found

    def fresh(self, dtype: Any, expression: str) -> str:
        """Return a new constant, even if one with the same expression exists."""
        name = next(self.names)
        self.lines.append(f"LET({c_type(dtype)}, {name}, {expression});")
        return name

    def at(self, x: Value, index: Sequence[Index]) -> str:
        """Return the entry of an array."""
        key = (x, tuple(index), sum(b.version for b in x.reads))  # versions only grow
        if (found := self.known.get(key)) is None:
            found = x.entry(self, [0 if n == 1 else i for i, n in zip(index, x.shape, strict=True)])
            self.known[key] = found
        return found

    def variable(self, dtype: Any, expression: str, uniform: bool = False) -> str:
        """Return a new variable."""
        name, kind = next(self.names), c_type(dtype)
        self.lines.append(f"{kind} {name} = {expression};" if uniform else f"VARIABLE({kind}, {name}, {expression});")
        return name

    @contextmanager
    def turns(self, test: str, often: float) -> Iterator[None]:
        """Write a loop that runs while a test holds, on average `often` times."""
        outer, times = self.known, self.times
        self.lines.append(f"while ({test}) {{")
        self.known, self.times = self.known.new_child(), times * often
        yield
        self.known, self.times = outer, times
        self.lines.append("}")

    @contextmanager
    def loop(self, count: int, used: str | None = None, first: str = "0") -> Iterator[str]:
        """Write a loop from `first` on and yield its index; `used` is an expression of its end, if not `count`."""
        name, outer, times = next(self.names), self.known, self.times
        self.lines.append(f"for ({INDEX} {name} = {first}; {name} < {used or count}; ++{name}) {{")
        self.known, self.times = self.known.new_child(), times * (count / 2 if used else count)
        yield name
        self.known, self.times = outer, times
        self.lines.append("}")


def _itself(index: Sequence[Index]) -> Sequence[Index]:
    return index


@dataclass
class Loop:
    """Cost of a loop of the lanes: `rows` entries, `cost` instructions each, executed `times` in a run."""

    rows: int
    cost: float
    times: float


class LastLoop(NamedTuple):
    """The loop written last: its head, the lines in which it ends and where, its last body, arrays read and written.

    `written` is empty if it is not known.
    """

    head: str
    lines: list[str]
    end: int
    body: Body
    reads: frozenset[Buffer]
    written: frozenset[Buffer]
    epoch: int  # in which it began


class LaneLoop(NamedTuple):
    """A loop of the lanes over rows of an array: their number, the statements, indices and values, and its head."""

    count: int
    body: Body
    entries: list[tuple[Index, str]]
    head: str


@dataclass
class Writer:
    """The lines of a function, its tables of constants and its arrays."""

    keeps_more: bool = False  # arrays that loops read often go to memory
    lanes: int = USUAL_LANES  # threads of a world, for estimates of cost
    vector: int = 0  # bytes of a vector of worlds, which take all branches together (`wide.h`); 0: none
    wide_platform: str = VECTORS  # or BLOCKS
    real: np.dtype | None = None  # the one type of real numbers, if there may be no other
    sequential: bool = False  # a program of one world or entry, which contains its searches
    calls: bool = False  # a program of one world on a core, which may call handlers of other libraries
    prefix: str = ""  # of the names of tables: functions of one source share a name space
    lines: list[str] = field(default_factory=list)
    ends: list[int] = field(default_factory=lambda: [0])  # of units (`units.py`): numbers of lines
    length: tuple[int, int, int] = (0, 0, 0)  # lines that were counted, characters of earlier units and of this one
    tables: list[str] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    epoch: int = 0
    syncs: float = 0
    times: float = 1  # how often the current statements run
    unread: set[Buffer] = field(default_factory=set)  # written since the last barrier
    last_loop: LastLoop | None = None
    known_tables: dict[tuple, str] = field(default_factory=dict)
    systems: set[int] = field(default_factory=set)  # rows of systems of equations, one function for each
    externals: dict[str, Any] = field(default_factory=dict)  # C functions of one world, by name: their sources
    mask: str = ""  # of the worlds that the current loop or branch computes, on a TPU
    masked: set[Buffer] = field(default_factory=set)  # arrays that keep their entries in other worlds
    names: Iterator[str] = field(default_factory=lambda: (f"v{i}" for i in itertools.count()))

    def __post_init__(self) -> None:
        self.block = Body(self.names, lines=self.lines)  # expressions that are known at the current place

    @property
    def platform(self) -> str:
        """Target of the program, as `flatten` names it."""
        return self.wide_platform if self.wide else CORE if self.calls else THREAD if self.sequential else GPU

    @property
    def wide(self) -> bool:
        """Whether each number is a vector of worlds."""
        return self.vector > 0

    @property
    def registers(self) -> int:
        """Most numbers of an array that is kept in variables."""
        return 1 if self.lanes > 1 else REGISTERS

    def line(self, text: str) -> None:
        """Append a line."""
        self.lines.append(text)

    def body(self, continues: bool = False) -> Body:
        """Return an empty list of statements, which may use the expressions known here.

        With `continues` it may use those of the lanes' last loop as well, if `every` finds the same head.
        """
        found = Body(self.names, self.block.known)
        found.continues = continues
        return found

    @contextmanager
    def scope(self, head: str) -> Iterator[None]:
        """Write a block of C with this head; expressions computed inside are not known after it."""
        self.line(f"{head} {{")
        outer = self.block.known
        self.block.known = outer.new_child()
        yield
        self.block.known = outer
        self.line("}")

    def is_unit_full(self, unit: float, done: float) -> bool:
        """Return whether this unit has at least `unit` characters and the rest, estimated by the part done, is long."""
        if unit == math.inf:
            return False
        lines, before, here = self.length
        here += sum(map(len, self.lines[lines:]))
        self.length = len(self.lines), before, here
        return here >= unit and (before + here) * (1 - done) > unit / 2 * done

    def begin_unit(self) -> None:
        """End a unit, before the next statement."""
        self.note_reads()
        self.ends.append(len(self.lines))
        self.length = len(self.lines), sum(self.length[1:]), 0
        self.block.known, self.last_loop = Known(), None

    def sync(self) -> None:
        """Write a barrier of the lanes of a world."""
        if self.lanes > 1:
            self.line("sync();")
            self.syncs += self.times
        self.epoch += 1
        self.unread.clear()

    def buffer(self, dtype: Any, size: int, name: str | None = None, uniform: bool = False) -> Buffer:
        """Return a new array in shared memory, or the program's array with this name."""
        given, width = name is not None, 0 if uniform else self.vector
        found = Buffer(name or next(self.names), np.dtype(dtype), size, self.epoch, self.epoch, given, width)
        found.uniform = uniform
        self.buffers.append(found)
        return found

    def stored(self, buffer: Buffer, shape: Sequence[int]) -> Value:
        """Return a buffer as an array."""
        return stored(buffer, shape)

    def table(self, x: np.ndarray) -> str:
        """Return the name of a table of constants."""
        key = (x.dtype, x.shape, x.tobytes())
        if key not in self.known_tables:
            name = self.known_tables[key] = f"{self.prefix}table{len(self.tables)}"
            entries = ", ".join(literal(e, x.dtype) for e in x.reshape(-1)) or "0"
            self.tables.append(f"TABLE {c_type(x.dtype)} {name}[{max(x.size, 1)}] = {{{entries}}};")
        return self.known_tables[key]

    def external(self, source: Any, inputs: Sequence[np.dtype], outputs: Sequence[np.dtype]) -> str:
        """Declare the C function of a `ProgramSource` and return its name."""
        name = f"jaxsim_{hashlib.sha256(source.world.encode()).hexdigest()[:24]}"
        if name not in self.externals:
            self.externals[name] = source
            types = [*(f"const {c_type(t)}*" for t in inputs), *(f"{c_type(t)}*" for t in outputs)]
            self.tables.append(f'extern "C" void {name}({", ".join(types)});')
        return name

    def atomic(self, join: str, dtype: Any) -> str:
        """Return the function that combines a number with one in memory atomically."""
        name = f"{join}_{dtype}".lower()
        line = f"{join}({name}, {c_type(dtype)}, {8 * np.dtype(dtype).itemsize})"
        if line not in self.tables:
            self.tables.append(line)
        return name

    def constant(self, x: np.ndarray) -> Value:
        """Return a constant: literals if the index is known or all entries are equal, an expression for ranges."""
        flat = x.reshape(-1)
        if x.size == 1:
            number = literal(flat[0], x.dtype)
            return Value(x.shape, x.dtype, lambda *_: number, uniform=True, known=x)
        same = _is_alike(flat, 0) or (x.size > 0 and flat[0] != flat[0] and bool((flat != flat).all()))
        steps = np.diff(flat) if x.ndim == 1 and np.issubdtype(x.dtype, np.signedinteger) else np.zeros(0)
        bits = None  # CUDA has no constants that are not finite
        if np.issubdtype(x.dtype, np.floating) and not np.isfinite(x).all():
            bits = np.ascontiguousarray(x).view(np.int32 if x.dtype.itemsize == 4 else np.int64)
        is_range = steps.size > 0 and bool((steps == steps[0]).all())
        alike = [_is_alike(x, axis) for axis in range(x.ndim)]

        def entry(body: Body, index: Sequence[Index]) -> str:
            i = linear([0 if a else k for a, k in zip(alike, index, strict=True)], x.shape)
            if isinstance(i, int):
                return literal(flat[i], x.dtype)
            if self.lanes == 1 and (found := in_table(i)) is not None:
                return self.constant(flat[np.clip(found.numbers, 0, x.size - 1)]).entry(body, [found.at])
            if same:
                return literal(flat[0], x.dtype)
            if is_range:
                return body.let(x.dtype, f"({flat[0]} + {int(steps[0])} * {i})")
            body.cost += CYCLES_OF_LOAD * body.times
            if bits is not None:
                return body.let(x.dtype, f"number_of_{8 * x.dtype.itemsize}_bits(AT({self.table(bits)}, {i}))")
            name = body.let(x.dtype, f"AT({self.table(x)}, {i})")
            return table_index(name, flat, i, self.table) if self.lanes == 1 and x.dtype == np.int32 else name

        return Value(x.shape, x.dtype, entry, 0 if same or is_range else 1, uniform=True, known=x)

    def in_registers(self, x: Value) -> Value:
        """Return an array as constants of this block; with several lanes, every lane has them."""
        if x.names is not None:
            return x
        if self.lanes > 1:
            (name,) = self.declared(x.dtype, 1, x.uniform)
            self.assign(name, x)
            return named(self, x.shape, x.dtype, (name,), x.uniform)
        every = itertools.product(*map(range, x.shape))
        names = tuple(self.block.let(x.dtype, self.block.at(x, i)) for i in every)
        self.note_reads()
        return named(self, x.shape, x.dtype, names, x.uniform)

    def name_of(self, x: Value) -> str:
        """Return the variable that holds an array of one number."""
        names = self.in_registers(x).names
        assert names is not None  # it is in variables
        return names[0]

    def declared(self, dtype: Any, count: int, uniform: bool) -> tuple[str, ...]:
        """Return new variables."""
        names = tuple(next(self.names) for _ in range(count))
        for name in names:
            self.line(f"{c_type(dtype)} {name};" if uniform else f"DECLARE({c_type(dtype)}, {name});")
        return names

    def assign(self, name: str, x: Value) -> None:
        """Assign the value of an array of one number to a variable, which every lane has."""
        if self.lanes == 1:
            self.line(f"ASSIGN({name}, {self.block.at(x, [0] * len(x.shape))});")
            self.note_reads()
            return
        body = self.body()
        value = body.at(x, [0] * len(x.shape))
        self.write(body, [f"ASSIGN({name}, {value});"], 1)

    def memory(self, x: Value, buffer: Buffer | None = None) -> Value:
        """Compute an array: into a buffer, which may be given, or into variables if it is small."""
        if buffer is None and 0 < x.size <= self.registers:
            return self.in_registers(x)
        buffer = buffer or self.buffer(x.dtype, x.size, uniform=x.uniform)
        if x.size and x.buffer is not buffer:
            self.fill(buffer, x, x.shape)
        return replace(stored(buffer, x.shape), used=x.used)

    def copy(self, x: Value, uniform: bool = False) -> Buffer:
        """Return a copy of an array in memory, which may be overwritten."""
        buffer = self.buffer(x.dtype, x.size, uniform=uniform and self.wide)
        self.fill(buffer, x, x.shape)
        return buffer

    def in_buffer(self, x: Value) -> Value:
        """Return the array in memory, for indices that are known only at run time."""
        return x if x.buffer else self.memory(x, self.buffer(x.dtype, x.size, uniform=x.uniform))

    def fill(
        self,
        buffer: Buffer,
        x: Value,
        shape: Sequence[int],
        place: Callable[[Sequence[Index]], Sequence[Index]] = _itself,
        own: Sequence[int] | None = None,
    ) -> None:
        """Write an array into a buffer of that shape, entry i at `place(i)`; one lane writes all entries of axes `own`.

        Without `own`, these are the axes that make the loop cheap: the last ones, a short one, or none.
        """
        if not x.size:
            return
        shape = tuple(shape)
        if x.symmetric and self.lanes == 1:
            return self._fill_symmetric(buffer, x)
        if x.chosen is not None and self.lanes == 1 and shape == x.shape and place is _itself and buffer not in x.reads:
            return self._fill_chosen(buffer, x.chosen, x.size)
        last = len(x.shape)
        every = {tuple(range(written_out(x.shape), last)) if own is None else tuple(own)}
        if own is None and self.lanes > 1:
            every |= {(), *((d,) for d, n in enumerate(x.shape) if 1 < n <= WRITTEN_OUT)}
        if x.used is not None:
            every = {axes for axes in every if x.used[0] not in axes} or {tuple(range(x.used[0] + 1, last))}
        if self.lanes == 1 and (joined := self._joined(buffer, x, shape, place, min(every))):
            return self._fill_by(joined, buffer)
        tried = [self._rows(self.body(), x, shape, place, axes) for axes in sorted(every)]
        if self.lanes > 1 and self.last_loop and self.is_next(self.last_loop.head):
            more = [self._rows(self.body(continues=True), x, shape, place, axes) for axes in sorted(every)]
            tried += [t for t in more if t[1].continues and self.unread.isdisjoint(t[1].reads)]
        self._fill_by(min(tried, key=self._cost_of_rows), buffer)

    def _fill_by(self, loop: LaneLoop, buffer: Buffer) -> None:
        rows, body, entries, head = loop
        self.write(body, [f"PUT({buffer.name}, {i}, {value});" for i, value in entries], rows, head, buffer)
        self.written(buffer)
        body.known |= {(buffer, buffer.version, i): value for i, value in entries}

    def _joined(
        self,
        buffer: Buffer,
        x: Value,
        shape: Sequence[int],
        place: Callable[[Sequence[Index]], Sequence[Index]],
        own: Sequence[int],
    ) -> LaneLoop | None:
        """Return a loop of one lane that can be joined with the one before it; None if there is none."""
        last = self.last_loop
        if self.platform == BLOCKS or last is None or not last.written or not self.is_next(last.head):
            return None
        if buffer.whole in last.reads | last.written:
            return None
        found = self._rows(self.body(continues=True), x, shape, place, own)
        body = found.body
        fits = body.continues and last.written.isdisjoint(b.whole for b in body.reads) and self.is_next(last.head)
        if not fits or _gathers(body) != _gathers(last.body):
            return None
        buffer.first = min(buffer.first, last.epoch)  # no array that the loop reads may lie in the same memory
        return found

    def _fill_symmetric(self, buffer: Buffer, x: Value) -> None:
        """Write a symmetric matrix from its lower triangle."""
        body, (n, _), i, j = self.body(), x.shape, next(self.names), next(self.names)
        value = body.at(x, [i, j])
        stores = [f"PUT({buffer.name}, {body.index(linear(at, x.shape))}, {value});" for at in ([i, j], [j, i])]
        self.write(body, stores, n * (n + 1) // 2, f"EACH({i}, {n}) UPTO({j}, {i})")
        self.written(buffer)

    def _fill_chosen(self, buffer: Buffer, x: Chosen, size: int) -> None:
        """Write an array that is a constant but at some places."""
        self.fill(buffer, Value((size,), buffer.dtype, lambda *_: x.otherwise), (size,))
        body = self.body()
        head, (t,) = self.every(body, (len(x.places),))
        at = body.at(self.constant(x.places.astype(np.int32)), [t])
        value = body.at(x.entries, unravelled(at, x.entries.shape))
        self.write(body, [f"PUT({buffer.name}, {at}, {value});"], len(x.places), head)
        self.written(buffer)

    def every(self, body: Body, lengths: Sequence[int], used: tuple[int, str] | None = None) -> tuple[str, list[Index]]:
        """Return the head of a loop over all entries of axes of these lengths, and their indices.

        `used` is an axis of which only the first entries are in use; it is the outermost axis of the loop.
        """
        if used is not None:
            axis, count = used
            rest = [*lengths[:axis], *lengths[axis + 1 :]]
            parts = unravelled("i", [lengths[axis], *rest])
            head = self._begun(body, f"ALL(i, {count} * {math.prod(rest)})")
            return head, [body.index(i) for i in (*parts[1 : axis + 1], parts[0], *parts[axis + 1 :])]
        if math.prod(lengths) == 1:
            return self._begun(body, ONE) if self.lanes > 1 else "", [0] * len(lengths)
        if self.lanes > 1:
            head = self._begun(body, f"ALL_OF(i, {math.prod(lengths)})")
            return head, [body.index(i) for i in unravelled("i", lengths)]
        if body.continues and (last := self._head_of_last(lengths)):
            return self._begun(body, last[0]), last[1]
        body.continues = False
        names = [next(self.names) for _ in lengths]
        loops = [f"EACH({i}, {n})" for i, n in zip(names, lengths, strict=True) if n != 1]
        return " ".join(loops), [0 if n == 1 else i for i, n in zip(names, lengths, strict=True)]

    def _head_of_last(self, lengths: Sequence[int]) -> tuple[str, list[Index]] | None:
        """Return head and indices of the last loop of one lane, if it is a loop over axes of these lengths."""
        found = re.fullmatch(r"EACH\((\w+), (\d+)\)", self.last_loop.head) if self.last_loop else None
        if found is None or [n for n in lengths if n != 1] != [int(found[2])]:
            return None
        return found[0], [0 if n == 1 else found[1] for n in lengths]

    def _begun(self, body: Body, head: str) -> str:
        """Return the head of a loop of the lanes; its body may continue the last one."""
        body.continues = body.continues and self.is_next(head)
        if body.continues and self.last_loop:
            body.known = self.last_loop.body.known.new_child()
        return head

    def _rows(
        self,
        body: Body,
        x: Value,
        shape: Sequence[int],
        place: Callable[[Sequence[Index]], Sequence[Index]],
        own: Sequence[int],
    ) -> LaneLoop:
        """Compute a row of an array, axes `own`."""
        others = [d for d in range(len(x.shape)) if d not in own]
        lengths = [x.shape[d] for d in others]
        head, outer = self.every(body, lengths, x.used and (others.index(x.used[0]), x.used[1]))
        entries = []
        for inner in itertools.product(*(range(x.shape[d]) for d in own)):
            at = dict(zip([*others, *own], [*outer, *inner], strict=True))
            index = [at[d] for d in range(len(x.shape))]
            value = body.at(x, index)
            entries.append((body.index(linear(place(index), shape)), value))
        return LaneLoop(math.prod(lengths), body, entries, head)

    def _cost_of_rows(self, x: LaneLoop) -> float:
        begin = 0 if x.body.continues else CYCLES_OF_HEAD
        begin += 0 if self.unread.isdisjoint(x.body.reads) else CYCLES_OF_WAIT
        return math.ceil(x.count / self.lanes) * (x.body.cost + len(x.entries)) + begin

    def written(self, buffer: Buffer) -> None:
        """Note that lanes wrote to a buffer."""
        buffer.last = max(buffer.last, self.epoch)
        buffer.version += 1
        self.unread.add(buffer)

    def write(self, body: Body, stores: Sequence[str], rows: int, head: str = "", target: Buffer | None = None) -> None:
        """Write statements, in a loop of the lanes if there is a `head`, after a barrier if they read new results.

        They continue the loop just before if that has the same head: without a barrier between them, lanes may run both
        in any order.
        """
        self.read(body.reads)
        reads, written = frozenset(b.whole for b in body.reads), frozenset([target.whole] if target else [])
        epoch = self.epoch
        if self.lanes == 1 and not self.wide and _gathers(body) and not body.continues:
            stores = [NOT_VECTORIZED, *stores]
        outer, inner = head.rsplit(" ", 2)[0] if len(head.split(") ")) > 1 else "", head
        if outer:  # a compiler cannot know that stores leave what an outer loop reads as it is
            inner = head[len(outer) + 1 :]
            before, lines = hoisted(body.lines, inner[5 : inner.index(",")])
            self.lines += [f"{outer} {{", *before, f"{inner} {{", *lines, *stores, "}", "}"]
        elif self.last_loop and (self.lanes > 1 or body.continues) and self.is_next(head):
            self.lines[-1:] = [*body.lines, *stores, "}"]
            reads, written, epoch = reads | self.last_loop.reads, written | self.last_loop.written, self.last_loop.epoch
            if not body.continues:
                body.known = Known(*body.known.maps, *self.last_loop.body.known.maps)
        else:
            self.lines += [f"{head} {{", *body.lines, *stores, "}"]
        self.last_loop = LastLoop(head, self.lines, len(self.lines), body, reads, written, epoch)
        self.loops.append(Loop(rows, body.cost + 2 * len(stores), self.times))
        if self.lanes == 1:
            self.epoch += 1

    def is_next(self, head: str) -> bool:
        """Return whether a loop with this head follows another one directly."""
        last = self.last_loop
        return last is not None and last.head == head and last.lines is self.lines and last.end == len(self.lines)

    def read(self, buffers: set[Buffer]) -> None:
        """Note that buffers are read now; write a barrier first if they are new results."""
        if self.lanes > 1 and not self.unread.isdisjoint(buffers):
            self.sync()
        for b in buffers:
            b.last = max(b.last, self.epoch)

    def note_reads(self) -> None:
        """Note the buffers that the statements of this block have read since the last call."""
        self.read(self.block.reads)
        self.block.reads = set()

    def leave_out_unread(self) -> None:
        """Leave out arrays and constants that no statement reads: loops pass entries on in constants."""
        own = {b.name for b in self.buffers if not b.given}
        words = list(map(NAMES.findall, self.lines))
        names = [_name_set(line, own) for line in self.lines]
        often, sets = Counter(itertools.chain.from_iterable(words)), Counter(names)
        kept, before = [True] * len(words), -1
        while before != (before := sum(kept)):  # again, for arrays that a later line alone reads, in a loop
            for k in reversed(range(len(words))):
                if kept[k] and (name := names[k]) is not None and often[name] == sets[name]:
                    kept[k] = False
                    often.subtract(words[k])
                    sets[name] -= 1
        unread = {name for name, k in zip(names, kept, strict=True) if not k and not often[name]}
        self.buffers = [b for b in self.buffers if b.name not in unread]
        place = [0, *itertools.accumulate(kept)]
        self.lines, self.ends = list(itertools.compress(self.lines, kept)), [place[end] for end in self.ends]
        self.tables = [t for t in self.tables if not t.startswith("TABLE") or often[t.split("[", 1)[0].split()[-1]]]

    def limit_unrolling(self) -> None:
        """Let loops of many statements have one copy of these: copies take compilers and a GPU's caches long."""
        open_at: list[int] = []
        for k, line in enumerate(self.lines):
            if line.startswith("}"):
                begin = open_at.pop()
                if k - begin > MOST_UNROLLED:
                    self.lines[begin] = re.sub(r"^ALL_OF\(", "ALL(", self.lines[begin])
            if line.endswith("{"):
                open_at.append(k)

    @contextmanager
    def within(self, mask: str, masked: Iterable[Buffer] = ()) -> Iterator[None]:
        """Enter statements for the worlds of a mask alone: updates leave `masked` arrays of others as they are."""
        before = self.mask, self.masked
        if mask and self.platform == BLOCKS:
            self.mask, self.masked = mask, self.masked.union(masked)
        yield
        self.mask, self.masked = before

    @contextmanager
    def repeated(self, times: float) -> Iterator[None]:
        """Enter statements that run `times` times; earlier buffers that they read stay live until their end."""
        begin, before, many = self.epoch, list(self.buffers), self.times
        self.times = many * times
        yield
        self.times = many
        self.note_reads()
        for b in before:
            if b.last >= begin:
                b.last = self.epoch


def _is_alike(x: np.ndarray, axis: int) -> bool:
    """Return whether all entries along an axis are equal; most arrays differ in the last one."""
    if not x.size:
        return False
    first = x.take([0], axis)
    return bool((first == x.take([-1], axis)).all()) and bool((x == first).all())


def _gathers(body: Body) -> bool:
    """Return whether a loop mostly gathers numbers, so that vectors of it are slower."""
    return body.gathered * CYCLES_OF_GATHER > body.cost


def _name_set(line: str, arrays: set[str]) -> str | None:
    """Return the constant that a line sets, or the array of which it sets an entry, if it is one of these."""
    if line.startswith("LET("):
        return line.split(", ", 2)[1]
    name = line[4 : line.index(",")] if line.startswith("PUT(") else None
    return name if name in arrays else None


def hoisted(lines: Sequence[str], index: str) -> tuple[list[str], list[str]]:
    """Split a loop's body: return statements that do not depend on its index, to hoist before it, and the others."""
    before, inside, changing = [], [], {index}
    for line in lines:
        words = NAMES.findall(line)
        if line.startswith("LET(") and changing.isdisjoint(words):
            before.append(line)
        else:
            inside.append(line)
            changing.update(words if not line.startswith("LET(") else [line.split(", ", 2)[1]])
    return before, inside


def named(w: Writer, shape: Sequence[int], dtype: Any, names: Sequence[str], uniform: bool = False) -> Value:
    """Return an array of variables, in row-major order."""
    shape, names = tuple(shape), tuple(names)

    def entry(body: Body, index: Sequence[Index]) -> str:
        i = linear(index, shape)
        if isinstance(i, int):
            return names[i]
        i = body.index(i)
        if len(names) <= SELECTED:
            return body.let(dtype, select(body, i, names))
        key = ("stored", names)
        if key not in w.block.known:
            buffer = w.buffer(dtype, len(names), uniform=uniform)
            w.lines += [f"PUT({buffer.name}, {k}, {name});" for k, name in enumerate(names)]
            w.block.known[key] = buffer
        buffer = w.block.known[key]
        return body.load(buffer, i)

    return Value(shape, np.dtype(dtype), entry, 0, names=names, uniform=uniform)


def reshaped(x: Value, shape: Sequence[int]) -> Value | None:
    """Return the same numbers in another shape, or None if they are not stored in order."""
    if x.buffer is not None:
        return stored(x.buffer, shape)
    if x.names is not None and x.size == math.prod(shape):
        return replace(x, shape=tuple(shape), entry=_renamed(x, tuple(shape)))
    return None


def _renamed(x: Value, shape: tuple[int, ...]) -> Entry:
    def entry(body: Body, index: Sequence[Index]) -> str:
        i = linear(index, shape)
        return x.entry(body, unravelled(body.index(i) if isinstance(i, str) else i, x.shape))

    return entry


def written_out(shape: Sequence[int]) -> int:
    """Return the number of leading axes that are distributed over lanes; one lane writes the others, unrolled."""
    return next(d for d in range(len(shape) + 1) if math.prod(shape[d:]) <= WRITTEN_OUT)


def select(body: Body, index: Index, entries: Sequence[str]) -> str:
    """Return the entry with this index."""
    if isinstance(index, int):
        return entries[index]
    chain = entries[-1]
    for k in range(len(entries) - 2, -1, -1):
        chain = chosen(f"{index} == {k}", entries[k], chain)
    return chain


def places(buffers: Sequence[Buffer], aligned: int = ALIGNED) -> tuple[dict[Buffer, int], int]:
    """Return byte offsets of arrays, and their total size: arrays that are live at the same time do not overlap."""
    placed: dict[Buffer, int] = {}
    for b in sorted(buffers, key=lambda b: (-b.nbytes, b.first)):
        others = sorted((at, at + o.nbytes) for o, at in placed.items() if o.first <= b.last and b.first <= o.last)
        at = 0
        for begin, end in others:
            if at + b.nbytes <= begin:
                break
            at = max(at, -(-end // aligned) * aligned)
        placed[b] = at
    total = max((at + b.nbytes for b, at in placed.items()), default=0)
    return placed, -(-total // ALIGNED) * ALIGNED


def with_reads(op: Operation, x: Value, operands: Sequence[Value]) -> Value:
    """Return a new expression with its `reads` and `aligned` buffers set."""
    if x.buffer is not None or x.names is not None or any(x is y for y in operands):
        return x
    reads = frozenset().union(*(y.reads for y in operands))
    aligned = frozenset()
    if op.name in ELEMENTWISE:
        same = [y for y in operands if y.shape == x.shape]
        shifted = frozenset().union(*(y.reads - (y.aligned if y in same else frozenset()) for y in operands))
        aligned = frozenset().union(*(y.aligned for y in same)) - shifted
    return replace(x, reads=reads, aligned=aligned, uniform=x.uniform or all(y.uniform for y in operands))


def result_buffer(w: Writer, op: Operation, operands: Sequence[Value], target: Buffer | None = None) -> Buffer:
    """Return memory for the result of an operation."""
    out = op.outputs[0]
    return target or w.buffer(out.dtype, math.prod(out.shape), uniform=all(x.uniform for x in operands))
