"""Find the axis of each array along which rows lie, in functions of rows (`rows.py`) that all lanes compute together.

Row i of each array depends on row i of the operands alone. Rows follow each other along some axis. If axes were merged,
a row has several entries there. If only the first rows are in use, loops over that axis end after them.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from jaxsim.native.expressions import ELEMENTWISE
from jaxsim.native.jaxpr import Flat, Operation, Var
from jaxsim.native.operations import CUMULATIVE, JOINS, REDUCTIONS, SCATTERS
from jaxsim.native.sums import LANES_OF_SUM

Rows = tuple[int, int]  # the axis, and its entries for each row
Places = Sequence[Rows | None]  # of operands


class _Unknown(Exception):
    """No rule says where the rows of an operation's result lie."""


def rows_in_use(flat: Flat, first: int, count: int) -> dict[Var, Rows] | None:
    """Return where rows lie in all arrays that have rows; None if that is not known.

    The inputs from `first` on have one of the `count` rows for each entry of their first axis.
    """
    known: dict[Var, Rows | None] = dict.fromkeys(flat.inputs[first:], (0, 1))
    try:
        for op in flat.operations:
            places = [known.get(v) if isinstance(v, Var) else None for v in op.inputs]
            if any(places):
                known |= dict(zip(op.outputs, _of_results(op, places, count), strict=True))
    except _Unknown:
        return None
    return {v: rows for v, rows in known.items() if rows is not None}


def _of_results(op: Operation, places: Places, count: int) -> Places:
    if op.name in ELEMENTWISE:
        return [_same(places)]
    if op.name in RULES:
        return RULES[op.name](op, places, count)
    raise _Unknown(op.name)


def _same(places: Places) -> Rows:
    (found, *others) = {p for p in places if p is not None}
    if others:
        raise _Unknown("rows along several axes")
    return found


def _each(op: Operation, places: Places, _: int) -> Places:
    return list(places)


def _broadcast(op: Operation, places: Places, _: int) -> Places:
    axis, many = _same(places)
    return [(op.params["broadcast_dimensions"][axis], many)]


def _transpose(op: Operation, places: Places, _: int) -> Places:
    axis, many = _same(places)
    return [(tuple(op.params["permutation"]).index(axis), many)]


def _reshape(op: Operation, places: Places, count: int) -> Places:
    axis, _many = _same(places)
    new, before = op.outputs[0].shape, math.prod(op.inputs[0].shape[:axis])
    for b, n in enumerate(new):
        if n > 1 and math.prod(new[:b]) == before and n % count == 0:
            return [(b, n // count)]
    raise _Unknown("a reshape across rows")


def _slice(op: Operation, places: Places, _: int) -> Places:
    (axis, many), strides = _same(places), op.params["strides"]
    stride, length = strides[axis] if strides else 1, op.inputs[0].shape[axis]
    if many % stride or op.outputs[0].shape[axis] != length // stride:
        raise _Unknown("a slice of rows")
    return [(axis, many // stride)]


def _parts(op: Operation, places: Places, _: int) -> Places:
    axis, many = _same(places)
    if op.params["axis"] == axis:
        raise _Unknown("parts of rows")
    return [(axis - (op.name == "unstack" and op.params["axis"] < axis), many)] * len(op.outputs)


def _join(op: Operation, places: Places, _: int) -> Places:
    axis, many = _same(places)
    if op.name == "stack":
        return [(axis + (op.params["axis"] <= axis), many)]
    if op.params["dimension"] == axis:
        raise _Unknown("rows after others")
    return [(axis, many)]


def _pad(op: Operation, places: Places, _: int) -> Places:
    axis, many = _same(places[:1])
    if any(places[1:]) or any(op.params["padding_config"][axis]):
        raise _Unknown("padded rows")
    return [(axis, many)]


def _reduction(op: Operation, places: Places, _: int) -> Places:
    (axis, many), axes = _same(places), op.params["axes"]
    return [None if axis in axes else (axis - sum(a < axis for a in axes), many)]


def _cumulative(op: Operation, places: Places, _: int) -> Places:
    axis, many = _same(places)
    if op.params["axis"] == axis or op.inputs[0].shape[op.params["axis"]] > LANES_OF_SUM:
        raise _Unknown("a sum over the rows before each, or in parts")
    return [(axis, many)]


def _product(op: Operation, places: Places, _: int) -> Places:
    contracted, batch = op.params["dimension_numbers"]
    found: set[Rows | None] = set()
    shapes = [len(v.shape) for v in op.inputs]
    for side, rows in enumerate(places):
        if rows is None:
            continue
        axis, many = rows
        if axis in contracted[side]:
            found.add(None)
        elif axis in batch[side]:
            found.add((tuple(batch[side]).index(axis), many))
        else:
            free = [[d for d in range(n) if d not in (*contracted[s], *batch[s])] for s, n in enumerate(shapes)]
            found.add((len(batch[0]) + (len(free[0]) if side else 0) + free[side].index(axis), many))
    if len(found) != 1:
        raise _Unknown("a product of rows with rows")
    return list(found)


def _gather(op: Operation, places: Places, _: int) -> Places:
    """Return where rows lie after a gather: of rows by indices of each row, or of the same columns of all rows."""
    of_array, of_indices = places
    d, x, indices = op.params["dimension_numbers"], *op.inputs
    batch = [k for k in range(len(op.outputs[0].shape)) if k not in d.offset_dims]
    if of_array is None and of_indices is not None and of_indices[0] < len(indices.shape) - 1:
        return [(batch[of_indices[0]], of_indices[1])]
    kept = [k for k in range(len(x.shape)) if k not in (*d.collapsed_slice_dims, *d.operand_batching_dims)]
    if of_indices is None and of_array is not None:
        axis, many = of_array
        if axis in kept and axis not in d.start_index_map and op.params["slice_sizes"][axis] == x.shape[axis]:
            return [(d.offset_dims[kept.index(axis)], many)]
    raise _Unknown("chosen rows")


def _scatter(op: Operation, places: Places, _: int) -> Places:
    """Return that a sum has no rows, if rows are added to it at places that each row computes."""
    (of_array, of_indices, of_updates), window = places, op.params["dimension_numbers"].update_window_dims
    first = next((k for k in range(len(op.inputs[2].shape)) if k not in window), None)
    known = isinstance(op.inputs[1], np.ndarray) or op.params["dimension_numbers"].operand_batching_dims
    at_first = of_updates is not None and of_updates[0] == first
    if SCATTERS[op.name][1] != "ADD" or of_array or known or not at_first or (of_indices and of_indices[0] != 0):
        raise _Unknown("scattered rows")
    return [None]


RULES: dict[str, Callable[[Operation, Places, int], Places]] = {
    "broadcast_in_dim": _broadcast,
    "transpose": _transpose,
    **dict.fromkeys(("reshape", "squeeze", "expand_dims"), _reshape),
    "slice": _slice,
    **dict.fromkeys(("split", "unstack"), _parts),
    **dict.fromkeys(JOINS, _join),
    "pad": _pad,
    **dict.fromkeys(REDUCTIONS, _reduction),
    **dict.fromkeys(CUMULATIVE, _cumulative),
    "dot_general": _product,
    "gather": _gather,
    **dict.fromkeys(SCATTERS, _scatter),
    **dict.fromkeys(("copy", "copy_p", "stop_gradient", "optimization_barrier", "symmetric_matrix", "name"), _each),
}
