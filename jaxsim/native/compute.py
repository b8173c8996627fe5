"""Write operations as statements of a program: choose which arrays to store, and the statements of each."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from jaxsim.native.control import CONTROL, INNER, inner_functions, over_rows
from jaxsim.native.expressions import C_TYPES, ELEMENTWISE, UnsupportedPrimitive, is_real
from jaxsim.native.gathers import rows_of_worlds
from jaxsim.native.jaxpr import BLOCKS, CALLS, CORE, GPU, OUTLINE, VECTORS, Flat, Operation, Term, Var
from jaxsim.native.joins import SAME_PLACE, join, padded, parts_of_results, updated
from jaxsim.native.operations import CUMULATIVE, EXPRESSIONS, JOINS, OFTEN, REDUCTIONS, SCATTERS, VIEWS, is_cheap
from jaxsim.native.scatters import along_lists, is_searched, rows_to_look_for, scatter, update_lists
from jaxsim.native.statements import STATEMENTS
from jaxsim.native.storage import arrays_to_store, limit_of_operand, limit_of_spread, picks_few
from jaxsim.native.sums import (
    LANES_OF_SUM,
    groups_of_totals,
    has_sparse_factor,
    long_cumsum,
    product_of_matrices,
    reduced_in_parts,
    running,
    write_totals,
)
from jaxsim.native.uniform import SYSTEMS_PRIMITIVES
from jaxsim.native.writer import OFTEN_COST, RECOMPUTED, Buffer, Targets, Value, Writer, reshaped, with_reads

# Rules of primitives that only programs of one world or entry support: `pool` adds its own.
SEQUENTIAL: dict[str, Callable[[Writer, Operation, list[Value]], list[Value]]] = {}
# Primitives that programs of vectors compute by a call for each world: `pool` adds its own.
OF_EACH_WORLD: dict[str, Callable[[Writer, Operation, list[Value]], list[Value]]] = {}
# Primitives that `flatten` removes.
TRANSPARENT = ("custom_vmap_call", "custom_linear_solve", "xla_metadata_value", "platform_index", "world_program")
TRANSPARENT += ("reduce",)
OWN_PRIMITIVES = ("over_rows", "symmetric_matrix", "any_of_vector", "by_value")  # tested by `test_rows`, `test_pool`
# Matrices that a library multiplies (sums of so many terms) or factorises (rows) faster than a program of one core.
LARGE_PRODUCT, LARGE_SYSTEM = 100_000_000, 256
SYSTEMS = ("solve_positive", "cholesky", "solve_ltdl", "solve_any")


class _Scope:
    """Arrays of a function while its operations are written, and the buffers that may be overwritten."""

    def __init__(self, w: Writer, flat: Flat, args: Sequence[Value], owned: Sequence[bool]) -> None:
        self.w = w
        self.env: dict[Var, Value] = dict(zip(flat.inputs, args, strict=True))
        self.last: dict[Var, int] = {}
        for k, op in enumerate(flat.operations):
            self.last |= {v: k for v in op.inputs if isinstance(v, Var)}
        self.last |= {v: len(flat.operations) for v in flat.outputs if isinstance(v, Var)}
        self.used: dict[Var, tuple[int, str]] = {}
        self.foreign = {b for x, own in zip(args, owned, strict=True) if not own for b in x.reads}

    def read(self, v: Term) -> Value:
        return self.w.constant(v) if isinstance(v, np.ndarray) else self.env[v]

    def in_memory(self, v: Term, limit: int) -> Value:
        x = self.read(v)
        if x.cost > limit:
            x = self.w.memory(x)
            if isinstance(v, Var):
                self.env[v] = x
        return x

    def pass_on(self, operations: Sequence[Operation], k: int) -> None:
        """Store all arrays that operations from k on read, so that no name passes between two units."""
        maker = {v: op for op in operations[:k] for v in op.outputs}

        def store(v: Term) -> None:
            if not isinstance(v, Var) or (op := maker.get(v)) is None or self.env[v].buffer is not None:
                return
            if not is_cheap(op):
                self.env[v] = self.w.in_buffer(self.env[v])
                return
            for x in op.inputs:
                store(x)
            self.env |= dict(zip(op.outputs, _results(self.w, op, self, k, {}), strict=True))

        for v in [v for v in self.env if self.last.get(v, -1) >= k]:
            store(v)

    def is_last(self, v: Term, k: int) -> bool:
        return isinstance(v, Var) and self.last.get(v, -1) == k

    def claim(self, v: Term, k: int) -> bool:
        """Return whether operation k may overwrite the buffer of its operand v; compute other readers first."""
        x = self.read(v)
        if not self.is_last(v, k) or x.buffer is None or x.buffer in self.foreign:
            return False
        for other, y in list(self.env.items()):
            if other is v or self.last.get(other, -1) < k or x.buffer not in y.reads:
                continue
            if y.buffer is x.buffer:
                return False  # an alias of the whole buffer
            self.env[other] = self.w.memory(y)
        return True


def compute(
    w: Writer,
    flat: Flat,
    args: Sequence[Value],
    targets: Targets | None = None,
    owned: Sequence[bool] | None = None,
    made: Callable[[Buffer], None] = lambda _: None,
    used: dict[Var, tuple[int, str]] | None = None,
    unit: float = math.inf,
) -> list[Value]:
    """Write the operations of a function for these arguments, and return its results.

    `targets` are buffers for some of the results; `made` is called when one holds its result. Buffers of `owned`
    arguments may be overwritten. Of arrays with an axis of rows in use, only the `used` part is computed. After each
    `unit` characters, or half as many before a call of another library, the writer begins a new unit (`units.py`): what
    a call reads is in memory, so that little is stored for later units.
    """
    targets, used, totals = targets or {}, used or {}, {}
    if w.lanes == 1 and not w.wide:
        targets = targets | parts_of_results(flat, targets)
    groups = groups_of_totals(flat) if w.lanes > 1 else {}
    kept = arrays_to_store(flat, w.keeps_more, w.lanes, groups) | set(targets)
    scope = _Scope(w, flat, args, owned or [False] * len(args))
    scope.used = used
    for k, op in enumerate(flat.operations):
        if w.is_unit_full(unit / 2 if op.name == "ffi_call" else unit, k / len(flat.operations)):
            scope.pass_on(flat.operations, k)
            w.begin_unit()
        for v in op.outputs:
            if v in targets and not targets[v].version:
                targets[v].first = w.epoch
        if k in groups:
            totals |= write_totals(w, flat, groups[k], scope.read)
        found = [totals.pop(k)] if k in totals else _results(w, op, scope, k, targets)
        for v, x in zip(op.outputs, found, strict=True):
            x = replace(x, used=used[v]) if v in used else x
            is_small = w.lanes == 1 and 0 < x.size <= w.registers and op.name not in VIEWS
            if v in targets and x.buffer is not targets[v]:
                x = w.memory(x, targets[v])
            elif x.buffer is None and x.names is None and (v in kept or is_small):
                x = w.memory(x)
            scope.env[v] = x
            if v in targets:
                made(targets[v])
    return [scope.read(v) for v in flat.outputs]


def _results(w: Writer, op: Operation, scope: _Scope, k: int, targets: Targets) -> list[Value]:
    """Write an operation and return its results."""
    if w.real and (other := {v.dtype for v in op.outputs if is_real(v.dtype)} - {w.real}):
        raise UnsupportedPrimitive(f"numbers of type {other.pop()} beside {w.real}")
    if op.name in SEQUENTIAL and w.sequential:
        return SEQUENTIAL[op.name](w, op, [scope.in_memory(v, RECOMPUTED) for v in op.inputs])
    if op.name in OF_EACH_WORLD and w.wide:
        return OF_EACH_WORLD[op.name](w, op, [scope.in_memory(v, RECOMPUTED) for v in op.inputs])
    if not is_written(op.name):
        raise UnsupportedPrimitive(f"no source for {op.name}")
    if op.name in STATEMENTS or op.name in INNER:
        operands = [scope.in_memory(v, RECOMPUTED) for v in op.inputs]
        if op.name in CONTROL:
            return CONTROL[op.name](w, op, operands, _owned(op, scope, k), targets, compute)
        if op.name == "over_rows":
            return over_rows(w, op, operands, targets, compute)
        return STATEMENTS[op.name](w, op, operands, targets)
    limit = OFTEN_COST if op.name in OFTEN and not picks_few(op, w.lanes) else limit_of_operand(op, w.lanes)
    limits = [limit] * len(op.inputs)
    if op.name in ELEMENTWISE and w.lanes == 1:
        limits = [limit_of_spread(v.shape, op.outputs[0].shape) if v.shape else limit for v in op.inputs]
    operands = [scope.in_memory(v, n) for v, n in zip(op.inputs, limits, strict=True)]
    target = targets.get(op.outputs[0])
    small = w.lanes == 1 and target is None and math.prod(op.outputs[0].shape) <= w.registers
    if op.name in SAME_PLACE and (same := reshaped(operands[0], op.outputs[0].shape)) is not None:
        return [same]
    if op.name in JOINS and not small:
        return [join(w, op, operands, target, scope.used.get(op.outputs[0]))]
    if op.name == "pad" and w.lanes == 1 and not small and all(c[2] == 0 for c in op.params["padding_config"]):
        return [padded(w, op, operands, target)]
    if op.name == "dynamic_update_slice" and w.lanes == 1 and not small:
        return [updated(w, op, operands, scope.claim(op.inputs[0], k), target)]
    if op.name in SCATTERS and w.lanes > 1 and (rows := rows_to_look_for(op)) is not None:
        operands.append(w.constant(rows))
    elif (
        op.name in SCATTERS
        and w.lanes > 1
        and not is_searched(op)
        and (lists := update_lists(w, op, operands)) is not None
    ):
        return [along_lists(op, operands, *lists)]
    elif op.name in SCATTERS and (w.lanes == 1 or not is_searched(op)):
        return [scatter(w, op, operands, scope.claim(op.inputs[0], k), target)]
    if (
        op.name in ("gather", "dynamic_slice")
        and w.platform == BLOCKS
        and (rows := rows_of_worlds(w, op, operands, target)) is not None
    ):
        return [rows]
    if op.name in REDUCTIONS:
        operands = [reduced_in_parts(w, op, operands[0])]
    if op.name in CUMULATIVE and w.lanes == 1 and op.inputs[0].shape[op.params["axis"]] > 1:
        return [running(w, op, operands[0], target)]
    if op.name == "cumsum" and op.inputs[0].shape[op.params["axis"]] > LANES_OF_SUM:
        return [long_cumsum(w, op, operands[0], target)]
    if op.name == "dot_general" and (product := product_of_matrices(w, op, operands, target)) is not None:
        return [product]
    return [with_reads(op, x, operands) for x in EXPRESSIONS[op.name](op, operands)]


def _owned(op: Operation, scope: _Scope, k: int) -> list[bool]:
    """Return which operands a loop or a branch may overwrite."""
    claimed = [scope.claim(v, k) for v in op.inputs]
    buffers = [scope.read(v).buffer for v in op.inputs]
    return [c and buffers.count(b) == 1 for c, b in zip(claimed, buffers, strict=True)]


def is_known(op: Operation, platform: str = GPU) -> bool:
    """Return whether the generator supports an operation and every nested jaxpr on a platform."""
    types = [v.dtype for v in (*op.inputs, *op.outputs)]
    if any(t not in C_TYPES for t in types):
        return False
    if op.name in INNER:
        return all(is_known(inner, platform) for f in inner_functions(op, platform) for inner in f.operations)
    if op.name == "world_program" or op.name in OF_EACH_WORLD:
        return platform in (VECTORS, OUTLINE)
    if op.name == "ffi_call":
        return platform == CORE and op.params["target_name"].startswith("jaxsim_") and not op.params["attributes"]
    if op.name == "small_matrices":
        return op.params["plan"].name in SYSTEMS
    if op.name == "sort":
        return op.params["dimension"] == len(op.inputs[0].shape) - 1
    if op.name in ("lt_to", "le_to"):
        return not np.issubdtype(op.inputs[0].dtype, np.floating)
    return op.name in EXPRESSIONS or op.name in STATEMENTS


def has_large_matrices(operations: Sequence[Operation]) -> bool:
    """Return whether operations on one core multiply or factorise matrices that a library handles faster."""
    return any(map(_is_of_large_matrices, operations))


def _is_of_large_matrices(op: Operation) -> bool:
    if op.name in INNER:
        return any(has_large_matrices(f.operations) for f in inner_functions(op, CORE))
    if op.name == "dot_general" and not has_sparse_factor(op):
        (axes, _), _ = op.params["dimension_numbers"]
        terms = math.prod(op.inputs[0].shape[d] for d in axes)
        return terms * math.prod(op.outputs[0].shape) > LARGE_PRODUCT
    return op.name in SYSTEMS_PRIMITIVES and op.inputs[0].shape[-1] > LARGE_SYSTEM


def is_written(name: str) -> bool:
    """Return whether the generator supports a primitive."""
    return any(name in known for known in (EXPRESSIONS, STATEMENTS, INNER, CALLS, TRANSPARENT))
