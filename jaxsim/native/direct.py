"""Call a program that is one C function without JAX: for loops in Python, where JAX's call takes longer than a part."""

import ctypes
import itertools
import math
from collections.abc import Sequence
from operator import is_not
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxsim.native import compiler

_SOURCE = """
/* the handler without XLA: a frame whose only services are errors, without text, and the number of threads, one */
static XLA_FFI_Error* some_error(XLA_FFI_Error_Create_Args* args) { return (XLA_FFI_Error*)args; }
static XLA_FFI_Error* one_thread(XLA_FFI_ThreadPool_NumThreads_Args* args) {
  *args->num_threads = 1;
  return 0;
}
static const XLA_FFI_Api services = {
  .XLA_FFI_Error_Create = some_error, .XLA_FFI_ThreadPool_NumThreads = one_thread};
/* layout: place of the pointers to results, their number, that of copies; offsets of results in memory; and copies that
   are made after the call: source, target, bytes */
int direct(void** arrays, char* memory, const int64_t* layout) {
  XLA_FFI_CallFrame frame = {sizeof frame, 0, &services};
  XLA_FFI_Error* failed = 0;
  const int64_t *offsets = layout + 3, *copies = offsets + layout[1];
  for (int64_t i = 0; i < layout[1]; i++) arrays[layout[0] + i] = memory + offsets[i];
  world(&frame, &failed, ARGUMENTS);
  for (int64_t i = 0; i < layout[2]; i++, copies += 3) memcpy(arrays[copies[1]], arrays[copies[0]], copies[2]);
  return failed != 0;
}
"""
ALIGNMENT = 64  # bytes, of each result within the memory of all

Kind = tuple[tuple[int, ...], str]  # shape and type


class Given(NamedTuple):
    """An argument of the program."""

    index: int


class Computed(NamedTuple):
    """A result of the C function."""

    index: int


class DirectCall(NamedTuple):
    """A program that is one C function.

    target: name of its library, as `compiler.target_of` returns it.
    given: shapes and types of the program's arguments, and of the results of `prepare`, which follow them.
    operands: for each operand of the function an argument, or a table.
    made: shapes and types of the function's results.
    results: for each result of the program a result of the function, an argument, or a constant.
    prepare: the call that computes what depends on fixed arguments only, as those of a model.
    """

    target: str
    given: tuple[Kind, ...]
    operands: tuple[Given | np.ndarray, ...]
    made: tuple[Kind, ...]
    results: tuple[Computed | Given | np.ndarray, ...]
    prepare: "DirectCall | None" = None

    def load(self) -> "DirectProgram":
        """Return the program as a function."""
        return DirectProgram(self)


class DirectProgram:
    """A function of NumPy or JAX arrays of a CPU that calls a C function.

    Its results are read-only NumPy arrays, in new memory that they share. It recognises results of its last call, and
    arguments that are given again, by identity. Raises TypeError for other shapes or types, and MemoryError.
    """

    def __init__(self, call: DirectCall):
        self._function = compiler.function_of(call.target, "direct")
        self._function.argtypes = (ctypes.c_void_p,) * 3
        self._prepare = _Prepare(call.prepare) if call.prepare else None
        self._table = table = _Table(call)
        self._read = list(table.given)  # indices of the arguments that are read
        self._places = list(table.given.values())
        self._guess = _Guess(list(range(len(self._read))), np.arange(table.size))
        self._last = _Last([None] * len(self._read), [], table.constant_pointers(), {})

    def __call__(self, *args: Any) -> list[np.ndarray]:
        table, last, guess = self._table, self._last, self._guess
        if self._prepare:
            args = (*args, *self._prepare(args))
        given, known = [args[i] for i in self._read], last.given + last.results
        pointers: Any = last.pointers[guess.places]
        converted = {i: x for i, x in last.converted.items() if given[i] is last.given[i]}
        remembered = given[:]
        for i in itertools.compress(itertools.count(), map(is_not, given, [known[k] for k in guess.expected])):
            x, place = given[i], self._places[i]
            if x is last.given[i]:
                pointers[place] = last.pointers[place]
                continue
            if getattr(x, "base", None) is not None:
                self._look_for(i, x, last)
            array = self._checked(i, x)
            pointers[place] = _address(array)
            if array is not x:
                converted[i] = array
                if not isinstance(x, jax.Array):  # its owner may change it
                    remembered[i] = None
        memory: Any = np.empty(table.bytes, np.uint8)
        if self._function(table.pointers.from_buffer(pointers), table.memory.from_buffer(memory), table.layout):
            raise MemoryError("a program has no memory")
        results = table.views(memory)
        self._last = _Last(remembered, results, pointers, converted)
        return results

    def _look_for(self, i: int, x: np.ndarray, last: "_Last") -> None:
        """Expect an argument among the results of the last call from now on, if it is one of them."""
        for k, result in enumerate(last.results):
            if x is result:
                expected, places = self._guess.expected[:], self._guess.places.copy()
                expected[i], places[self._places[i]] = len(last.given) + k, self._table.places[k]
                self._guess = _Guess(expected, places)  # at once: other threads may call

    def _checked(self, i: int, x: Any) -> np.ndarray:
        """Return a contiguous array of the right type. Raises TypeError."""
        shape, dtype = self._table.kinds[i]
        array = np.asarray(x)
        if array.shape == shape and array.dtype == dtype and array.flags.c_contiguous:
            return array
        if array.shape != shape or jax.dtypes.canonicalize_dtype(array.dtype) != dtype:
            raise TypeError(f"an argument is {array.dtype}{array.shape}, wanted {dtype}{shape}, as compiled")
        return np.array(array, dtype, order="C")


class _Prepare:
    """A program that is called when one of the arguments that it reads is another array than before."""

    def __init__(self, call: DirectCall):
        self._program = call.load()
        self._read = [x.index for x in call.operands if isinstance(x, Given)]
        self._last: tuple[list[Any], list[np.ndarray]] | None = None

    def __call__(self, args: Sequence[Any]) -> list[np.ndarray]:
        given = [args[i] for i in self._read]
        if (last := self._last) is None or any(map(is_not, given, last[0])):
            self._last = last = given, self._program(*args)
        return last[1]


def _address(x: Any) -> int:
    if x.flags.writeable and x.size:
        return ctypes.addressof(ctypes.c_char.from_buffer(x))  # takes a third of the time of the next line
    return x.ctypes.data


class _Guess(NamedTuple):
    """Arrays that are expected as arguments, among those of the last call and then its results, and pointers to them.

    places: of each pointer of the table its place in the table of the last call.
    """

    expected: list[int]
    places: np.ndarray


class _Last(NamedTuple):
    """The last call: arguments, results, pointers, and arrays that stand for arguments of other types."""

    given: list[Any]
    results: list[np.ndarray]
    pointers: np.ndarray
    converted: dict[int, np.ndarray]


class _Table:
    """Order of the pointers of a call: operands, results in one memory, arguments and constants that are only copied.

    given: place of the pointer to each argument that is read, and in `kinds` its shape and type.
    places: places of the pointers to the results.
    layout: address of what the C function knows of the results.
    """

    def __init__(self, call: DirectCall):
        self.given: dict[int, int] = {}
        self.constants: dict[int, np.ndarray] = {}
        first, made, slots, copied = len(call.operands), list(call.made), [], []
        for x in call.results:
            if isinstance(x, Computed) and x.index not in slots:
                slots.append(x.index)
                continue
            slots.append(len(made))
            copied.append((x, len(made)))
            made.append(_kind(x, call))
        self.size = 0
        for x in call.operands:
            self._add(x)
        self.size += len(made)
        self.places = [first + slot for slot in slots]
        sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in made]
        copies = [(self._place(x, first), first + slot, sizes[slot]) for x, slot in copied if sizes[slot]]
        self.kinds = [(call.given[i][0], np.dtype(call.given[i][1])) for i in self.given]
        ends = np.cumsum([0, *(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes)]).tolist()
        self.bytes = max(ends.pop(), ALIGNMENT)
        self._layout = np.array([first, len(made), len(copies), *ends, *itertools.chain(*copies)], np.int64)
        self.layout = self._layout.ctypes.data
        self.memory, self.pointers = ctypes.c_char * self.bytes, ctypes.c_size_t * self.size
        fields = [(dtype, shape or (1,)) for shape, dtype in made]  # a field without a shape would be a Python number
        names = list(map(str, range(len(made))))
        self._record = np.dtype({"names": names, "formats": fields, "offsets": ends, "itemsize": self.bytes})
        self._slots = None if slots == list(range(len(made))) else slots
        self._scalars = [k for k, slot in enumerate(slots) if not made[slot][0]]

    def _place(self, x: Computed | Given | np.ndarray, first: int) -> int:
        if isinstance(x, Computed):
            return first + x.index
        return self.given[x.index] if isinstance(x, Given) and x.index in self.given else self._add(x)

    def _add(self, x: Given | np.ndarray) -> int:
        if isinstance(x, Given):
            self.given[x.index] = self.size
        else:
            self.constants[self.size] = np.ascontiguousarray(x)
        self.size += 1
        return self.size - 1

    def constant_pointers(self) -> np.ndarray:
        """Return a table of the addresses of constants, others zero."""
        pointers = np.zeros(self.size, np.uintp)
        for place, x in self.constants.items():
            pointers[place] = x.ctypes.data
        return pointers

    def views(self, memory: np.ndarray) -> list[np.ndarray]:
        """Return the results in this memory, which cannot be written to any more."""
        memory.flags.writeable = False
        found: Any = np.frombuffer(memory, self._record).item()  # a view of each field: all in 12 us for 120 fields
        views = list(found) if self._slots is None else [found[slot] for slot in self._slots]
        for k in self._scalars:
            views[k] = views[k].reshape(())
        return views


def _kind(x: Computed | Given | np.ndarray, call: DirectCall) -> Kind:
    """Return shape and type of a result."""
    if isinstance(x, np.ndarray):
        return x.shape, str(x.dtype)
    return (call.given if isinstance(x, Given) else call.made)[x.index]


def direct_source(kinds: Sequence[str]) -> str:
    """Return C source of `direct`, a function of a table of pointers to these types, which calls `world`."""
    return _SOURCE.replace("ARGUMENTS", ", ".join(f"({kind}*)arrays[{i}]" for i, kind in enumerate(kinds)))
