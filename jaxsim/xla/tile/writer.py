"""The source of a kernel in which LANES threads compute a world: what is written, and where arrays lie.

An array is an expression of its index until a loop needs it in memory; then the lanes fill it, an entry or a row each.
So chains of operations are one loop, as in XLA's fusions, but what loops hand on stays in the memory that the lanes of
a world share. Lanes wait for each other only where one reads what another one wrote.
"""

import itertools
import math
from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxsim.xla.machine_code.c_expressions import Index, c_type, chosen, linear, literal, unravelled

WRITTEN_OUT = 9  # numbers of the last axes of an array that one lane writes, with indices that are known
ALIGNED = 16  # bytes
VECTOR = 64  # bytes of a number of several worlds (`wide.h`)
CYCLES_OF_LOAD, CYCLES_OF_INDEX = 2, 2  # instructions that a load, and finding a place, count as
ONE = "if (lane == 0)"  # the head of what one lane does for all
USUAL_LANES = 64  # of a world, to choose between rows and entries
Entry = Callable[["Body", Sequence[Index]], str]


@dataclass(frozen=True, eq=False)
class Value:
    """An array as an expression of its index; `cost` is that of an entry, in instructions."""

    shape: tuple[int, ...]
    dtype: np.dtype
    entry: Entry
    cost: int = 0
    buffer: "Buffer | None" = None  # in which it lies

    @property
    def size(self) -> int:
        """Numbers in it."""
        return math.prod(self.shape)


@dataclass(eq=False)
class Buffer:
    """An array in memory, used from epoch `first` to `last`: epochs end where lanes wait for each other."""

    name: str
    dtype: np.dtype
    size: int
    first: int
    last: int
    given: bool = False  # memory of the program, not of the kernel
    width: int = 0  # bytes of a number, if they are not those of its type

    @property
    def nbytes(self) -> int:
        """Bytes in it."""
        return self.size * (self.width or self.dtype.itemsize)


class Body:
    """Statements of one lane, each expression computed once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.known: ChainMap[Any, str] = ChainMap()
        self.reads: set[Buffer] = set()
        self.names = (f"t{i}" for i in itertools.count())
        self.cost = 0.0
        self.times = 1.0

    def let(self, dtype: Any, expression: str) -> str:
        """A constant with this value; the expression itself where it is a name or a literal."""
        if expression.isidentifier() or (expression[0] == "(" and expression[1:-1].replace(".", "").isalnum()):
            return expression
        key = (str(dtype), expression)
        if key not in self.known:
            name = next(self.names)
            self.lines.append(f"LET({c_type(dtype)}, {name}, {expression});")
            self.known[key] = name
        return self.known[key]

    def index(self, i: Index) -> Index:
        """An index as a number or a name."""
        if isinstance(i, int):
            return i
        if not i.isidentifier() and ("int32", i) not in self.known:
            self.cost += CYCLES_OF_INDEX * self.times
        return self.let(np.dtype(np.int32), i)

    def load(self, buffer: Buffer, i: Index) -> str:
        """The entry of a buffer at a linear index."""
        self.reads.add(buffer)
        key = (buffer, i)
        if key not in self.known:
            self.cost += CYCLES_OF_LOAD * self.times
            self.known[key] = self.let(buffer.dtype, f"AT({buffer.name}, {i})")
        return self.known[key]

    def at(self, x: Value, index: Sequence[Index]) -> str:
        """The entry of an array."""
        key = (x, tuple(index))
        if key not in self.known:
            self.known[key] = x.entry(self, [0 if n == 1 else i for i, n in zip(index, x.shape, strict=True)])
        return self.known[key]

    def variable(self, dtype: Any, expression: str) -> str:
        """A new variable."""
        name = next(self.names)
        self.lines.append(f"VARIABLE({c_type(dtype)}, {name}, {expression});")
        return name

    @contextmanager
    def loop(self, count: int) -> Iterator[str]:
        """Statements that are repeated, for the index that this gives."""
        name, outer, times = next(self.names), self.known, self.times
        self.lines.append(f"for (int {name} = 0; {name} < {count}; ++{name}) {{")
        self.known, self.times = self.known.new_child(), times * count
        yield name
        self.known, self.times = outer, times
        self.lines.append("}")


@dataclass
class Loop:
    """What a loop of the lanes costs: `rows` entries, `cost` instructions each, `times` in a run of the kernel."""

    rows: int
    cost: float
    times: float


@dataclass
class Writer:
    """The lines of a kernel's function, its tables of constants and its arrays."""

    keeps_more: bool = False  # arrays that loops read often go to memory
    wide: bool = False  # a number is that of several worlds, which take all branches together
    lines: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    epoch: int = 0
    syncs: float = 0
    times: float = 1  # that what is written runs
    unread: set[Buffer] = field(default_factory=set)  # written, and no wait since
    known_tables: dict[tuple, str] = field(default_factory=dict)
    names: Iterator[str] = field(default_factory=lambda: (f"v{i}" for i in itertools.count()))

    @property
    def lanes(self) -> int:
        """Threads of a world, by which work is weighed."""
        return 1 if self.wide else USUAL_LANES

    def line(self, text: str) -> None:
        """Append a line."""
        self.lines.append(text)

    def sync(self) -> None:
        """Let the lanes of a world wait for each other."""
        self.line("sync();")
        self.epoch += 1
        self.syncs += self.times
        self.unread.clear()

    def buffer(self, dtype: Any, size: int, name: str | None = None) -> Buffer:
        """A new array in the lanes' memory, or one of the program's with that name."""
        given, width = name is not None, VECTOR if self.wide else 0
        found = Buffer(name or next(self.names), np.dtype(dtype), size, self.epoch, self.epoch, given, width)
        self.buffers.append(found)
        return found

    def stored(self, buffer: Buffer, shape: Sequence[int]) -> Value:
        """A buffer as an array."""
        shape = tuple(shape)
        entry = lambda b, i: b.load(buffer, b.index(linear(i, shape)))  # noqa: E731
        return Value(shape, buffer.dtype, entry, CYCLES_OF_LOAD, buffer)

    def table(self, x: np.ndarray) -> str:
        """The name of a table of constants."""
        key = (str(x.dtype), x.shape, x.tobytes())
        if key not in self.known_tables:
            name = self.known_tables[key] = f"table{len(self.tables)}"
            entries = ", ".join(literal(e, x.dtype) for e in x.reshape(-1))
            self.tables.append(f"TABLE {c_type(x.dtype)} {name}[{max(x.size, 1)}] = {{{entries}}};")
        return self.known_tables[key]

    def atomic(self, join: str, dtype: Any) -> str:
        """The function that joins a number with one in memory, whatever other lanes do."""
        name = f"{join}_{dtype}".lower()
        line = f"{join}({name}, {c_type(dtype)}, {8 * np.dtype(dtype).itemsize})"
        if line not in self.tables:
            self.tables.append(line)
        return name

    def constant(self, x: np.ndarray) -> Value:
        """A constant: a literal where its index is known or it is the same everywhere, an expression for a range."""
        flat = x.reshape(-1)
        same = x.size > 0 and bool(((flat == flat[0]) | ((flat != flat) & (flat[0] != flat[0]))).all())
        steps = np.diff(flat) if x.ndim == 1 and np.issubdtype(x.dtype, np.integer) else np.zeros(0)
        bits = None  # CUDA has no constants that are not finite
        if np.issubdtype(x.dtype, np.floating) and not np.isfinite(x).all():
            bits = np.ascontiguousarray(x).view(np.int32 if x.dtype.itemsize == 4 else np.int64)
        is_range = steps.size > 0 and bool((steps == steps[0]).all())

        def entry(body: Body, index: Sequence[Index]) -> str:
            i = linear(index, x.shape)
            if isinstance(i, int):
                return literal(flat[i], x.dtype)
            if same:
                return literal(flat[0], x.dtype)
            if is_range:
                return body.let(x.dtype, f"({flat[0]} + {int(steps[0])} * {i})")
            body.cost += CYCLES_OF_LOAD * body.times
            if bits is not None:
                return body.let(x.dtype, f"number_of_{8 * x.dtype.itemsize}_bits(AT({self.table(bits)}, {i}))")
            return body.let(x.dtype, f"AT({self.table(x)}, {i})")

        return Value(x.shape, x.dtype, entry, 0 if same or is_range else 1)

    def scalar(self, x: Value) -> Value:
        """An array of one number as a variable that every lane has."""
        name = next(self.names)
        self.line(f"DECLARE({c_type(x.dtype)}, {name});")
        self.assign(name, x)
        return Value(x.shape, x.dtype, lambda _body, _index: name)

    def assign(self, name: str, x: Value) -> None:
        """Give a variable that every lane has the value of an array of one number."""
        body = Body()
        value = body.at(x, [0] * len(x.shape))
        self.write(body, [f"ASSIGN({name}, {value});"], 1)

    def memory(self, x: Value, buffer: Buffer | None = None) -> Value:
        """The array, computed: in a buffer, which may be given, or in a variable if it is one number."""
        if x.size == 1 and buffer is None:
            return self.scalar(x)
        buffer = buffer or self.buffer(x.dtype, x.size)
        if x.size:
            self.fill(buffer, x, x.shape)
        return self.stored(buffer, x.shape)

    def fill(
        self,
        buffer: Buffer,
        x: Value,
        shape: Sequence[int],
        place: Callable[[Sequence[Index]], Sequence[Index]] = lambda i: i,
        split: int | None = None,
    ) -> None:
        """Write an array into a buffer of that shape, entry i at `place(i)`; a lane writes axes from `split` on.

        Or those that make the loop cheap: the last ones, or a short one, or none.
        """
        shape, last = tuple(shape), len(x.shape)
        own = {tuple(range(written_out(x.shape) if split is None else split, last))}
        if split is None:
            own |= {(), *((d,) for d, n in enumerate(x.shape) if 1 < n <= WRITTEN_OUT)}
        tried = [self._rows(buffer, x, shape, place, axes) for axes in sorted(own)]
        rows, body, stores, head = min(tried, key=lambda t: math.ceil(t[0] / self.lanes) * (t[1].cost + len(t[2])))
        self.write(body, stores, rows, head)
        self.written(buffer)

    def every(self, body: Body, lengths: Sequence[int]) -> tuple[str, list[Index]]:
        """The head of a loop over all entries of axes of these lengths, and their indices."""
        if math.prod(lengths) == 1:
            return ONE, [0] * len(lengths)
        if not self.wide:
            return f"ALL(i, {math.prod(lengths)})", [body.index(i) for i in unravelled("i", lengths)]
        names = [f"i{d}" for d in range(len(lengths))]
        loops = [f"EACH({i}, {n})" for i, n in zip(names, lengths, strict=True) if n != 1]
        return " ".join(loops), [0 if n == 1 else i for i, n in zip(names, lengths, strict=True)]

    def _rows(
        self,
        buffer: Buffer,
        x: Value,
        shape: Sequence[int],
        place: Callable[[Sequence[Index]], Sequence[Index]],
        own: Sequence[int],
    ) -> tuple[int, Body, list[str], str]:
        """Statements that write a row of an array, the axes `own`; the number of rows, and the head of their loop."""
        others = [d for d in range(len(x.shape)) if d not in own]
        body, lengths = Body(), [x.shape[d] for d in others]
        head, outer = self.every(body, lengths)
        stores = []
        for inner in itertools.product(*(range(x.shape[d]) for d in own)):
            at = dict(zip([*others, *own], [*outer, *inner], strict=True))
            index = [at[d] for d in range(len(x.shape))]
            value = body.at(x, index)
            stores.append(f"PUT({buffer.name}, {body.index(linear(place(index), shape))}, {value});")
        return math.prod(lengths), body, stores, head

    def written(self, buffer: Buffer) -> None:
        """Note that lanes wrote to a buffer."""
        buffer.last = max(buffer.last, self.epoch)
        self.unread.add(buffer)

    def write(self, body: Body, stores: Sequence[str], rows: int, head: str = "") -> None:
        """Write statements, in a loop of the lanes if there is a `head`, after a wait if they read what is new."""
        self.read(body.reads)
        self.line(f"{head} {{")
        self.lines += [*body.lines, *stores, "}"]
        self.loops.append(Loop(rows, body.cost + 2 * len(stores), self.times))

    def read(self, buffers: set[Buffer]) -> None:
        """Note that buffers are read now, after a wait if they are new."""
        if not self.unread.isdisjoint(buffers):
            self.sync()
        for b in buffers:
            b.last = max(b.last, self.epoch)

    @contextmanager
    def repeated(self, times: float) -> Iterator[None]:
        """What is written within runs `times` times: arrays of before that it reads are kept to its end."""
        begin, before, many = self.epoch, list(self.buffers), self.times
        self.times = many * times
        yield
        self.times = many
        for b in before:
            if b.last >= begin:
                b.last = self.epoch


def written_out(shape: Sequence[int]) -> int:
    """The number of first axes over which lanes go; one lane writes out the others."""
    return next(d for d in range(len(shape) + 1) if math.prod(shape[d:]) <= WRITTEN_OUT)


def select(body: Body, index: Index, entries: Sequence[str]) -> str:
    """The entry of that index."""
    if isinstance(index, int):
        return entries[index]
    chain = entries[-1]
    for k in range(len(entries) - 2, -1, -1):
        chain = chosen(f"{index} == {k}", entries[k], chain)
    return chain


def places(buffers: Sequence[Buffer]) -> tuple[dict[Buffer, int], int]:
    """Where arrays lie in a memory, in bytes, and the bytes in all: no two that are in use at once overlap."""
    placed: dict[Buffer, int] = {}
    for b in sorted(buffers, key=lambda b: (-b.nbytes, b.first)):
        others = sorted((at, at + o.nbytes) for o, at in placed.items() if o.first <= b.last and b.first <= o.last)
        at = 0
        for begin, end in others:
            if at + b.nbytes <= begin:
                break
            at = max(at, -(-end // ALIGNED) * ALIGNED)
        placed[b] = at
    total = max((at + b.nbytes for b, at in placed.items()), default=0)
    return placed, -(-total // ALIGNED) * ALIGNED
