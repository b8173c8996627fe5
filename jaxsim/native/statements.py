"""Primitives that are written as statements, without inner functions."""

from collections.abc import Callable

from jaxsim.native.calls import handler_call, world_program
from jaxsim.native.jaxpr import Operation
from jaxsim.native.sorting import sort
from jaxsim.native.systems import cholesky, small_matrices, triangular_solve
from jaxsim.native.writer import Targets, Value, Writer

STATEMENTS: dict[str, Callable[[Writer, Operation, list[Value], Targets], list[Value]]] = {
    "cholesky": cholesky,
    "triangular_solve": triangular_solve,
    "sort": sort,
    "small_matrices": small_matrices,
    "world_program": world_program,
    "ffi_call": handler_call,
}
