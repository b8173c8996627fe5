"""Gathers of rows whose indices differ between the worlds of a register of a TPU, where each world loads in turn."""

import math

from jaxsim.native.expressions import linear, times, unravelled
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


def rows_of_worlds(
    w: Writer, op: Operation, operands: list[Value], target: Buffer | None
) -> Value | None:
    """Write a gather of rows as one statement for each row, which looks for it among those that any world takes."""
    (x, indices), out = operands, op.outputs[0]
    if indices.uniform or not out.shape or not math.prod(out.shape) or (k := axes_of_rows(op)) is None:
        return None
    lead, width = x.shape[:k], math.prod(x.shape[k:])
    table = w.in_buffer(w.memory(x)).buffer
    found = result_buffer(w, op, [x, indices], target)
    assert table is not None  # as asked for
    *of, _ = indices.shape
    i, count = next(w.names), math.prod(of)
    with w.repeated(count), w.scope(f"EACH({i}, {count})"):
        at = unravelled(i, of)
        starts = [w.block.at(indices, [*at, d]) for d in range(k)]
        inside = [f"INSIDE({s}, {n - 1})" for s, n in zip(starts, lead, strict=True)]
        row = w.block.index(linear(inside, lead))
        w.line(f"ROW({found.name}, {times(i, width)}, {table.name}, {row}, {width}, {math.prod(lead)});")
        w.read({table})
        w.note_reads()
    w.written(found)
    w.epoch += 1
    return w.stored(found, out.shape)
