"""Write calls of C functions: programs of one world, and handlers of other libraries."""

import math

import numpy as np

from jaxsim.native.expressions import c_type
from jaxsim.native.jaxpr import Operation
from jaxsim.native.writer import Targets, Value, Writer


def world_program(w: Writer, op: Operation, operands: list[Value], _: Targets) -> list[Value]:
    """Write calls of a C function of one world, one for each world of the vector, with arrays of its own."""
    source = op.params["plan"].source()
    name = w.external(source, [v.dtype for v in op.inputs], [v.dtype for v in op.outputs])
    operands = [x if x.known is not None else w.in_buffer(x) for x in operands]
    w.note_reads()
    arguments, own = [], []  # arrays in which each world is contiguous
    for x in operands:
        if x.known is not None:
            arguments.append(w.table(x.known))
            continue
        assert x.buffer is not None  # as asked for
        x.buffer.last = max(x.buffer.last, w.epoch)
        if x.buffer.uniform:
            arguments.append(x.buffer.name)
            continue
        own.append(w.buffer(x.dtype, x.size))
        w.line(f"unpack({x.buffer.name}, ({c_type(x.dtype)}*){own[-1].name}, {x.size}, WORLDS);")
        arguments.append(f"({c_type(x.dtype)}*){own[-1].name} + w * {x.size}")
    results = [w.buffer(v.dtype, math.prod(v.shape)) for v in op.outputs]
    for space, v in zip(results, op.outputs, strict=True):
        arguments.append(f"({c_type(v.dtype)}*){space.name} + w * {math.prod(v.shape)}")
        w.line(f"memset({space.name}, 0, WORLDS * {math.prod(v.shape) * v.dtype.itemsize});")
    w.line(f"for (int w = 0; w < worlds; ++w) {name}({', '.join(arguments)});")
    found = []
    for space, v in zip(results, op.outputs, strict=True):
        buffer = w.buffer(v.dtype, math.prod(v.shape))
        w.line(f"pack({buffer.name}, ({c_type(v.dtype)}*){space.name}, {math.prod(v.shape)}, WORLDS);")
        found.append(w.stored(buffer, v.shape))
    w.epoch += 1
    for b in (*own, *results, *(x.buffer for x in found)):
        b.last = w.epoch
        b.version += 1
    return found


def handler_call(w: Writer, op: Operation, operands: list[Value], targets: Targets) -> list[Value]:
    """Write a call of another library's handler, which reads data and extents of its buffers, but not their types."""
    name = op.params["target_name"]
    declaration = f"XLA_FFI_Error* {name}(XLA_FFI_CallFrame*);"
    if declaration not in w.tables:
        w.tables.append(declaration)
    operands = [x if x.known is not None else w.in_buffer(x) for x in operands]
    w.note_reads()
    given = [x.buffer for x in operands if x.buffer is not None]
    names = [x.buffer.name if x.buffer else w.table(np.asarray(x.known)) for x in operands]
    results = [targets.get(v) or w.buffer(v.dtype, math.prod(v.shape)) for v in op.outputs]
    with w.scope(""):
        for label, arrays, values in (("a", names, operands), ("r", [b.name for b in results], op.outputs)):
            for i, (array, x) in enumerate(zip(arrays, values, strict=True)):
                extents = ", ".join(map(str, x.shape)) or "0"
                w.line(f"int64_t {label}d{i}[] = {{{extents}}};")
                form = f"{{sizeof(XLA_FFI_Buffer), 0, 0, (void*){array}, {len(x.shape)}, {label}d{i}}}"
                w.line(f"XLA_FFI_Buffer {label}{i} = {form};")
            pointers = ", ".join(f"&{label}{i}" for i in range(len(arrays))) or "0"
            w.line(f"void* {label}s[] = {{{pointers}}};")
        w.line(f"call(failed, {name}, frame, as, {len(operands)}, rs, {len(results)});")
    w.epoch += 1
    for b in (*given, *results):
        b.last = max(b.last, w.epoch)
    for b in results:
        b.version += 1
    return [w.stored(b, v.shape) for b, v in zip(results, op.outputs, strict=True)]
