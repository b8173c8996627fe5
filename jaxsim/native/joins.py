"""Write arrays that are put together from others: concatenated, stacked, padded, with a block replaced."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jaxsim.native.expressions import Index, linear, plus
from jaxsim.native.jaxpr import BLOCKS, Flat, Operation, Term, Var
from jaxsim.native.operations import JOINS, starts_of
from jaxsim.native.writer import Buffer, Targets, Value, Writer, result_buffer

SAME_PLACE = ("reshape", "squeeze", "expand_dims")
LONGEST_ROW = 32  # numbers of a row that one lane concatenates
ENTRIES_AT_ONCE = 16  # of an array that are set at a place that differs between worlds


def join(
    w: Writer, op: Operation, operands: Sequence[Value], target: Buffer | None, used: tuple[int, str] | None
) -> Value:
    """Concatenate or stack arrays in memory; only a part of the result may be `used`."""
    out, axis = op.outputs[0], op.params["axis" if op.name == "stack" else "dimension"]
    buffer, begin = result_buffer(w, op, operands, target), 0
    if axis > 0 and math.prod(out.shape[axis:]) <= LONGEST_ROW and math.prod(out.shape) > 0:
        joined = replace(JOINS[op.name](op, operands)[0], used=used)
        w.fill(buffer, joined, out.shape, own=range(axis, len(out.shape)))  # one lane writes a row
        return w.stored(buffer, out.shape)
    for x in operands:
        if op.name == "stack":
            place = lambda i, k=begin: [*i[:axis], k, *i[axis:]]  # noqa: E731
        else:
            place = lambda i, k=begin: [plus(n, k) if d == axis else n for d, n in enumerate(i)]  # noqa: E731
        if x.buffer is None or x.buffer.part != (buffer, begin * math.prod(out.shape[1:])):
            w.fill(buffer, x, out.shape, place)
        begin += 1 if op.name == "stack" else x.shape[axis]
    return w.stored(buffer, out.shape)


def parts_of_results(flat: Flat, targets: Targets) -> Targets:
    """Return places within `targets` for arrays that results are or are joined from, so that they are not copied."""
    maker = {v: op for op in flat.operations for v in op.outputs}

    def source(v: Term) -> Term:
        while isinstance(v, Var) and v in maker and maker[v].name in SAME_PLACE:
            v = maker[v].inputs[0]
        return v

    found: Targets = {}
    for v, buffer in targets.items():
        own = source(v)
        if (
            own is not v
            and isinstance(own, Var)
            and own in maker
            and own not in targets
            and maker[own].name == "ffi_call"
        ):
            found[own] = buffer
        op = maker.get(v)
        if op is None or op.name != "concatenate" or op.params["dimension"]:
            continue
        begin = 0
        for x in op.inputs:
            size, own = math.prod(x.shape), source(x)
            if isinstance(own, Var) and own in maker and own not in targets and own not in found:
                place = Buffer(f"({buffer.name} + {begin})", buffer.dtype, size, 0, 0, given=True, part=(buffer, begin))
                found[own] = place
            begin += size
    return found


def padded(w: Writer, op: Operation, operands: Sequence[Value], target: Buffer | None) -> Value:
    """Pad an array in memory; entries that negative padding cuts off are not written."""
    (x, value), out = operands, op.outputs[0]
    low = [int(c[0]) for c in op.params["padding_config"]]
    high = [int(c[1]) for c in op.params["padding_config"]]
    buffer = result_buffer(w, op, operands, target)
    every = Value(out.shape, out.dtype, lambda body, _: body.at(value, ()), uniform=value.uniform)
    w.fill(buffer, every, out.shape)
    begin = [max(0, -n) for n in low]
    shape = [n - b - max(0, -h) for n, b, h in zip(x.shape, begin, high, strict=True)]
    inner = Value(
        tuple(shape), x.dtype, lambda body, i: body.at(x, [plus(k, b) for k, b in zip(i, begin, strict=True)])
    )
    if all(n > 0 for n in shape):
        start = [max(0, n) for n in low]
        w.fill(buffer, inner, out.shape, lambda i: [plus(k, b) for k, b in zip(i, start, strict=True)])
    return w.stored(buffer, out.shape)


def _set_entries(w: Writer, buffer: Buffer, update: Value, begin: Sequence[Index], shape: Sequence[int]) -> None:
    """Write a block at a place that differs between worlds, in those of the mask: one search of the place for many."""
    mask = w.mask if buffer in w.masked else "true"
    first = w.block.index(linear(begin, shape))
    entries = [(linear(i, shape), w.block.at(update, i)) for i in np.ndindex(update.shape)]
    w.note_reads()
    for k in range(0, len(entries), ENTRIES_AT_ONCE):
        listed = ", ".join(f"{at}, {value}" for at, value in entries[k : k + ENTRIES_AT_ONCE])
        w.line(f"SET({mask}, {buffer.name}, {first}, {listed});")
    w.written(buffer)
    w.epoch += 1


def updated(w: Writer, op: Operation, operands: Sequence[Value], claimed: bool, target: Buffer | None) -> Value:
    """Write a block of an array, in place if its buffer is `claimed`."""
    (x, update, *starts), out = operands, op.outputs[0]
    uniform = all(y.uniform for y in operands)
    if claimed and x.buffer is not None and x.buffer.uniform == uniform and (target is None or target is x.buffer):
        buffer = x.buffer
        update = w.memory(update) if buffer in update.reads else update
    else:
        buffer = result_buffer(w, op, operands, target)
        w.fill(buffer, x, out.shape)
    body = w.block
    begin = starts_of(body, starts, x.shape, update.shape)
    w.note_reads()
    if w.platform == BLOCKS and (buffer in w.masked or not all(s.uniform for s in starts)):
        _set_entries(w, buffer, update, begin, out.shape)
        return w.stored(buffer, out.shape)
    w.fill(buffer, update, out.shape, lambda i: [plus(k, b) for k, b in zip(i, begin, strict=True)])
    return w.stored(buffer, out.shape)
