"""Write gathers of rows for a TPU, whose indices differ between the worlds of a register."""

import math

from jaxsim.native.expressions import linear, plus, times, unravelled
from jaxsim.native.jaxpr import Operation
from jaxsim.native.writer import Buffer, Value, Writer, result_buffer


def axes_of_rows(op: Operation) -> int | None:
    """Return of how many leading axes a gather takes entries, or None if it does anything else, or fills."""
    dims, shape, of = op.params["dimension_numbers"], op.inputs[0].shape, op.inputs[1].shape
    k = of[-1]
    lead, rest = tuple(range(k)), len(shape) - k
    ordinary = dims.collapsed_slice_dims == lead == dims.start_index_map and not dims.operand_batching_dims
    last = tuple(range(len(of) - 1, len(of) - 1 + rest))
    if not ordinary or dims.offset_dims != last or "fill" in str(op.params["mode"]).lower():
        return None
    return k if tuple(op.params["slice_sizes"]) == (*(1,) * k, *shape[k:]) else None


def rows_of_worlds(w: Writer, op: Operation, operands: list[Value], target: Buffer | None) -> Value | None:
    """Write a gather of rows as one statement for each row, which looks for it among those that any world takes."""
    if not math.prod(op.outputs[0].shape):
        return None
    return (_of_slice if op.name == "dynamic_slice" else _of_gather)(w, op, operands, target)


def _of_slice(w: Writer, op: Operation, operands: list[Value], target: Buffer | None) -> Value | None:
    """A slice of the first axis alone, whose rows follow each other."""
    (x, start, *_), (length, *rest) = operands, op.params["slice_sizes"]
    if start.uniform or tuple(rest) != x.shape[1:]:
        return None
    table, width = w.in_buffer(x).buffer, math.prod(rest)
    found = result_buffer(w, op, [x, start], target)
    assert table is not None  # as asked for
    first = w.block.index(f"INSIDE({w.name_of(start)}, {x.shape[0] - length})")
    for r in range(length):
        row = w.block.index(plus(first, r))
        w.line(f"ROW({found.name}, {r * width}, {table.name}, {row}, {width});")
    return _written(w, op, table, found)


def _of_gather(w: Writer, op: Operation, operands: list[Value], target: Buffer | None) -> Value | None:
    x, indices = operands
    if indices.uniform or (k := axes_of_rows(op)) is None:
        return None
    lead, width = x.shape[:k], math.prod(x.shape[k:])
    table = w.in_buffer(x).buffer
    found = result_buffer(w, op, [x, indices], target)
    assert table is not None  # as asked for
    *of, _ = indices.shape
    i, count = next(w.names), math.prod(of)
    with w.repeated(count), w.scope(f"EACH({i}, {count})"):
        at = unravelled(i, of)
        starts = [w.block.at(indices, [*at, d]) for d in range(k)]
        inside = [f"INSIDE({s}, {n - 1})" for s, n in zip(starts, lead, strict=True)]
        row = w.block.index(linear(inside, lead))
        w.line(f"ROW({found.name}, {times(i, width)}, {table.name}, {row}, {width});")
        w.note_reads()
    return _written(w, op, table, found)


def _written(w: Writer, op: Operation, table: Buffer, found: Buffer) -> Value:
    """Note that rows of a table were read and copied, and return the result."""
    w.read({table})
    w.note_reads()
    w.written(found)
    w.epoch += 1
    return w.stored(found, op.outputs[0].shape)
