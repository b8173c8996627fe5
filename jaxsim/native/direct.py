"""Call a program that is one C function without JAX: for loops in Python, where JAX's call takes longer than a part."""

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
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


class Computed(NamedTuple):
    """A result of the C function."""

    index: int


class DirectCall(NamedTuple):
    """A program that is one C function.

    target: name of its library, as `compiler.target_of` returns it.
    operands: for each operand of the function an argument, or a table.
    operand_kinds: shapes and types of the operands; `result_kinds`: of the function's results.
    results: for each result of the program a result of the function, an argument, or a constant.
    """

    target: str
    operands: tuple[Given | np.ndarray, ...]
    operand_kinds: tuple[tuple[tuple[int, ...], str], ...]
    result_kinds: tuple[tuple[tuple[int, ...], str], ...]
    results: tuple[Computed | Given | np.ndarray, ...]

    def load(self) -> Callable[..., list[Any]]:
        """Return the program as a function of NumPy or JAX arrays of a CPU; results are new NumPy arrays, or
        arguments.

        Raises TypeError for arguments of other shapes or types, and MemoryError.
        """
        function = compiler.function_of(self.target, "direct")
        function.argtypes = [ctypes.c_void_p] * (len(self.operands) + len(self.result_kinds))
        operands = [
            (x.index, _Operand(shape, dtype)) if isinstance(x, Given) else (-1, _pointer(x))
            for x, (shape, dtype) in zip(self.operands, self.operand_kinds, strict=True)
        ]
        made = [_Operand(shape, dtype) for shape, dtype in self.result_kinds]
        is_same = [x.index if isinstance(x, Computed) else -1 for x in self.results] == list(range(len(made)))
        return partial(_call, function, operands, made, None if is_same else self.results)


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


def _call(
    function: Any, operands: Sequence[Any], made: Sequence[_Operand], results: Sequence[Any] | None, *args: Any
) -> list[Any]:
    found: list[Any] = [np.empty(x.shape, x.dtype) for x in made]
    pointers = [of if i < 0 else of.pointer(args[i]) for i, of in operands]
    if function(*pointers, *[of.memory.from_buffer(x) for of, x in zip(made, found, strict=True)]):
        raise MemoryError("a program has no memory")
    if results is None:
        return found
    return [
        found[x.index] if isinstance(x, Computed) else args[x.index] if isinstance(x, Given) else x.copy()
        for x in results
    ]


def direct_source(kinds: Sequence[str]) -> str:
    """Return C source of `direct`, a function of pointers to these types, which calls `world`."""
    parameters = ", ".join(f"void* a{i}" for i in range(len(kinds)))
    arguments = ", ".join(f"({kind}*)a{i}" for i, kind in enumerate(kinds))
    return _SOURCE.replace("PARAMETERS", parameters).replace("ARGUMENTS", arguments)
