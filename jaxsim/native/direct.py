"""Call a program that is one C function without JAX: for loops in Python, where JAX's call takes longer than a part."""

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from operator import is_
from typing import Any, NamedTuple

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
int direct(PARAMETERS) {
  XLA_FFI_CallFrame frame = {sizeof frame, 0, &services};
  XLA_FFI_Error* failed = 0;
  world(&frame, &failed, ARGUMENTS);
  return failed != 0;
}
"""


class Given(NamedTuple):
    """An argument of the program."""

    index: int


class Prepared(NamedTuple):
    """A result of the C function that computes what depends on fixed arguments only."""

    index: int


class Computed(NamedTuple):
    """A result of the C function."""

    index: int


class CFunction(NamedTuple):
    """A C function of pointers.

    target: name of its library, as `compiler.target_of` returns it.
    operands: for each operand an argument of the program, a prepared result, or a table.
    operand_kinds: shapes and types of the operands; `result_kinds`: of the results.
    """

    target: str
    operands: tuple[Given | Prepared | np.ndarray, ...]
    operand_kinds: tuple[tuple[tuple[int, ...], str], ...]
    result_kinds: tuple[tuple[tuple[int, ...], str], ...]

    def load(self) -> Callable[..., int]:
        """Return the function, by ctypes; it returns whether memory was missing."""
        function = compiler.function_of(self.target, "direct")
        function.argtypes = [ctypes.c_void_p] * (len(self.operands) + len(self.result_kinds))
        return function


class DirectCall(NamedTuple):
    """A program that is one C function.

    prepare: the function that computes what depends on fixed arguments only. It runs when one of them is another array.
    results: for each result of the program a result of the function, an argument, or a constant.
    """

    function: CFunction
    prepare: CFunction | None
    results: tuple[Computed | Given | np.ndarray, ...]

    def load(self) -> Callable[..., list[Any]]:
        """Return the program as a function of NumPy or JAX arrays of a CPU; results are new NumPy arrays, or
        arguments.

        Raises TypeError for arguments of other shapes or types, and MemoryError.
        """
        call = _Call(self.function, self.prepare)
        own = [x.index if isinstance(x, Computed) else -1 for x in self.results]
        return call if own == list(range(len(self.function.result_kinds))) else partial(_chosen, call, self.results)


def _chosen(call: Callable[..., list[Any]], results: Sequence[Any], *args: Any) -> list[Any]:
    found = call(*args)
    return [
        found[x.index] if isinstance(x, Computed) else args[x.index] if isinstance(x, Given) else x.copy()
        for x in results
    ]


class _Call:
    """A C function of the arguments of a program; results are new arrays."""

    def __init__(self, of: CFunction, prepare: CFunction | None):
        self._function, self._prepare = of.load(), prepare and _Call(prepare, None)
        self._given: list[tuple[int, int, _Operand]] = []  # position, argument
        self._prepared: list[tuple[int, int]] = []  # position, result of `prepare`
        self._fixed: list[int] = [x.index for x in prepare.operands if isinstance(x, Given)] if prepare else []
        pointers: list[Any] = [None] * len(of.operands)
        for k, (x, kind) in enumerate(zip(of.operands, of.operand_kinds, strict=True)):
            if isinstance(x, Given):
                self._given.append((k, x.index, _Operand(*kind)))
            elif isinstance(x, Prepared):
                self._prepared.append((k, x.index))
            else:
                pointers[k] = _pointer(x)
        self._made = [_Operand(*kind) for kind in of.result_kinds]
        self._last: tuple[list[Any] | None, list[Any]] = None, pointers  # fixed arguments, and pointers with theirs

    def __call__(self, *args: Any) -> list[Any]:
        pointers = (self._with_prepared(args) if self._prepare else self._last[1]).copy()
        for k, i, operand in self._given:
            pointers[k] = operand.pointer(args[i])
        found: list[Any] = [np.empty(x.shape, x.dtype) for x in self._made]
        if self._function(*pointers, *[of.memory.from_buffer(x) for of, x in zip(self._made, found, strict=True)]):
            raise MemoryError("a program has no memory")
        return found

    def _with_prepared(self, args: Sequence[Any]) -> list[Any]:
        """Return pointers to tables and to what fixed arguments determine."""
        known, pointers = self._last
        fixed = [args[i] for i in self._fixed]
        if known is None or not all(map(is_, known, fixed)):
            found, pointers = self._prepare(*args), pointers.copy()
            for k, i in self._prepared:
                pointers[k] = _pointer(found[i])
            self._last = fixed, pointers
        return pointers


class _Operand:
    """An array that the function reads or writes; pointers to it keep its memory."""

    def __init__(self, shape: tuple[int, ...], dtype: str):
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.memory = ctypes.c_char * int(np.prod(shape) * self.dtype.itemsize)
        self.last: tuple[Any, Any] = None, None  # a JAX array and its pointer: a model is the same in each step

    def pointer(self, x: Any) -> Any:
        if x.__class__ is np.ndarray:
            self._check(x)
            try:
                return self.memory.from_buffer(x)
            except (TypeError, ValueError):  # read-only, or not contiguous
                return _pointer(x)
        last = self.last
        if x is not last[0]:
            array = np.asarray(x)
            self._check(array)
            self.last = last = x, _pointer(array)
        return last[1]

    def _check(self, x: np.ndarray) -> None:
        if x.shape != self.shape or x.dtype != self.dtype:
            raise TypeError(f"an argument is {x.dtype}{x.shape}, wanted {self.dtype}{self.shape}, as compiled")


def _pointer(x: np.ndarray) -> Any:
    return np.ascontiguousarray(x).ctypes.data_as(ctypes.c_void_p)


def direct_source(kinds: Sequence[str]) -> str:
    """Return C source of `direct`, a function of pointers to these types, which calls `world`."""
    parameters = ", ".join(f"void* a{i}" for i in range(len(kinds)))
    arguments = ", ".join(f"({kind}*)a{i}" for i, kind in enumerate(kinds))
    return _SOURCE.replace("PARAMETERS", parameters).replace("ARGUMENTS", arguments)
