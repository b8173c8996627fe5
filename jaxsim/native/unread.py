"""Leave out rows of arrays that no operation reads, as the poses of geoms in a rollout without contacts.

The engine computes bodies, geoms and sites together, as rows of one array, and the world as a body. Removal of unused
results removes whole operations only. Here an operation computes only those rows, along the first axis, that are read.
"""

from collections.abc import Callable, Sequence
from functools import partial

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.native.expressions import ELEMENTWISE
from jaxsim.native.gathers import axes_of_rows
from jaxsim.native.jaxpr import Flat, Operation, Term, Var, inlined, trace
from jaxsim.native.operations import CUMULATIVE, REDUCTIONS

Places = np.ndarray  # of rows along the first axis
Needs = list[Places | None]  # rows of each operand that are read; None: all


def without_unread_rows(flat: Flat, platform: str) -> Flat:
    """Return a function whose operations compute no row, along the first axis, that is not read."""
    read = _rows_read(flat)
    if all(rows.all() for rows in read.values()):
        return flat
    operations: list[Operation] = []
    made: dict[Var, Term] = {}  # the rows that are read, of arrays that are made anew

    def with_rows(v: Term, places: Places | None) -> Term:
        if places is None:
            return made.get(v, v) if isinstance(v, Var) else v
        if not len(places):
            return np.zeros((0, *v.shape[1:]), v.dtype)
        if isinstance(v, np.ndarray):
            return v[places]
        own = np.searchsorted(np.flatnonzero(read[v]), places) if v in made else places
        return _picked(made.get(v, v), own, operations, platform)

    for op in flat.operations:
        if not any(read[v].any() for v in op.outputs):
            continue
        if not _has_rule(op) or (read[op.outputs[0]].all() and made.keys().isdisjoint(_arrays(op))):
            operations.append(op._replace(inputs=[with_rows(v, None) for v in op.inputs]))
            continue
        rows = np.flatnonzero(read[op.outputs[0]])
        operands = [with_rows(v, n) for v, n in zip(op.inputs, _needs(op, rows), strict=True)]
        found = NARROWED.get(op.name, _same)(op, rows, operands)
        results = [found] if not isinstance(found, Operation) else [_rows_like(v, len(rows)) for v in op.outputs]
        operations += [found._replace(outputs=results)] if isinstance(found, Operation) else []
        made |= dict(zip(op.outputs, results, strict=True))
    return Flat(flat.inputs, operations, [with_rows(v, None) for v in flat.outputs])


def _rows_like(v: Term, count: int) -> Var:
    return Var((count, *v.shape[1:]), v.dtype)


def _arrays(op: Operation) -> list[Var]:
    return [v for v in op.inputs if isinstance(v, Var)]


def _rows_read(flat: Flat) -> dict[Var, np.ndarray]:
    """Return which rows of each array that an operation makes are read: one for a number."""
    read = {v: np.zeros(max(1, (*v.shape, 1)[0]), bool) for op in flat.operations for v in op.outputs}

    def note(v: Term, places: Places | None) -> None:
        if isinstance(v, Var) and v in read:
            read[v][slice(None) if places is None or 0 in v.shape[:1] else places] = True

    for v in flat.outputs:
        note(v, None)
    for op in reversed(flat.operations):
        if not any(read[v].any() for v in op.outputs):
            continue
        rows = np.flatnonzero(np.logical_or.reduce([read[v] for v in op.outputs])) if _has_rule(op) else None
        for v in op.outputs:  # several are parts of one array
            note(v, rows)
        for v, places in zip(op.inputs, [None] * len(op.inputs) if rows is None else _needs(op, rows), strict=True):
            note(v, places)
    return read


def _has_rule(op: Operation) -> bool:
    """Return whether an operation can compute some rows of its results alone."""
    if op.name not in NEEDS or len({v.shape[:1] for v in op.outputs}) > 1 or op.outputs[0].shape[:1] in ((), (0,)):
        return False
    return NEEDS[op.name](op, np.zeros(0, int)) is not None


def _needs(op: Operation, rows: Places) -> Needs:
    """Return the rows of operands that an operation with a rule reads for these rows of its results."""
    needs = NEEDS[op.name](op, rows)
    assert needs is not None  # as `_has_rule` has found
    return needs


def _picked(v: Term, places: Places, operations: list[Operation], platform: str) -> Term:
    """Return rows of an array, by an operation that is appended if there are others."""
    if np.array_equal(places, np.arange(v.shape[0])):
        return v
    if isinstance(v, np.ndarray):
        return v[places]
    if (np.diff(places) == 1).all():
        begin = (int(places[0]), *(0 for _ in v.shape[1:]))
        params = {"start_indices": begin, "limit_indices": (int(places[-1]) + 1, *v.shape[1:]), "strides": None}
        made = _rows_like(v, len(places))
        operations.append(Operation(lax.slice_p, params, [v], [made]))
        return made
    index = places.astype(np.int32)
    gather = trace(lambda x: jnp.asarray(x).at[index].get(mode="promise_in_bounds"), [v])
    return inlined(gather, [v], operations, platform)[0]


def _each(op: Operation, rows: Places) -> Needs:
    """Return the same rows of all operands that have as many as the results."""
    return [rows if v.shape[:1] == op.outputs[0].shape[:1] else None for v in op.inputs]


def _unless(axes: Callable[[Operation], Sequence[int]], op: Operation, rows: Places) -> Needs | None:
    """Return the same rows, unless an operation acts along the first axis."""
    return None if 0 in axes(op) else _each(op, rows)


def _of_broadcast(op: Operation, rows: Places) -> Needs:
    (x, *rest), dims = op.inputs, op.params["broadcast_dimensions"]
    keeps = len(dims) and dims[0] == 0 and x.shape[0] == op.outputs[0].shape[0]
    return [rows if keeps else None, *(None for _ in rest)]


def _of_reshape(op: Operation, rows: Places) -> Needs | None:
    return [rows] if op.inputs[0].shape[:1] == op.outputs[0].shape[:1] else None


def _of_slice(op: Operation, rows: Places) -> Needs:
    return [op.params["start_indices"][0] + (op.params["strides"] or (1,))[0] * rows]


def _of_gather(op: Operation, rows: Places) -> Needs | None:
    x, indices = op.inputs
    if not isinstance(indices, np.ndarray) or indices.ndim != 2 or axes_of_rows(op) != 1:
        return None
    places = indices[:, 0].astype(int)
    return [places[rows], None] if ((places >= 0) & (places < x.shape[0])).all() else None


def _of_concatenation(op: Operation, rows: Places) -> Needs:
    if op.params["dimension"]:
        return _each(op, rows)
    ends = np.cumsum([v.shape[0] for v in op.inputs])
    begins = [0, *ends[:-1]]
    return [rows[(rows >= a) & (rows < b)] - a for a, b in zip(begins, ends, strict=True)]


def _of_product(op: Operation, rows: Places) -> Needs | None:
    """Return rows of the factor that has the result's first axis; of the other one those that a constant reads."""
    ((left, _), batch), a = op.params["dimension_numbers"], op.inputs[0]
    if batch[0]:
        return [rows, rows] if batch[0][0] == batch[1][0] == 0 else None
    if 0 in left:
        return None
    return [rows, _rows_of_sparse(a[rows]) if isinstance(a, np.ndarray) and _has_constant(op) else None]


def _has_constant(op: Operation) -> bool:
    """Return whether a product is that of a constant matrix (m, k) with an array (k, ...)."""
    ((left, right), (batch, _)), a = op.params["dimension_numbers"], op.inputs[0]
    return isinstance(a, np.ndarray) and a.ndim == 2 and not batch and tuple(left) == (1,) and tuple(right) == (0,)


def _rows_of_sparse(a: np.ndarray) -> Places:
    """Return the columns of a matrix that are not zero; the first if there is none."""
    places = np.flatnonzero((a != 0).any(0))
    return places if len(places) else np.zeros(1, int)


Made = Operation | Term


def _same(op: Operation, rows: Places, operands: list[Term]) -> Made:
    return op._replace(inputs=operands)


def _resized(name: str, op: Operation, rows: Places, operands: list[Term]) -> Made:
    """Return an operation with its parameter of the result's shape for fewer rows."""
    return op._replace(params=op.params | {name: (len(rows), *op.outputs[0].shape[1:])}, inputs=operands)


def _less_of_rows(op: Operation, rows: Places, operands: list[Term]) -> Made:
    """Return what a slice leaves of the other axes."""
    p, shape = op.params, op.inputs[0].shape
    if op.outputs[0].shape[1:] == shape[1:]:
        return operands[0]
    begin, end = (0, *p["start_indices"][1:]), (len(rows), *p["limit_indices"][1:])
    strides = p["strides"] and (1, *p["strides"][1:])
    return op._replace(params=p | {"start_indices": begin, "limit_indices": end, "strides": strides}, inputs=operands)


def _parts(op: Operation, rows: Places, operands: list[Term]) -> Made:
    kept = operands if op.params["dimension"] else [v for v in operands if v.shape[0]]
    return op._replace(inputs=kept) if len(kept) > 1 else kept[0]


def _product(op: Operation, rows: Places, operands: list[Term]) -> Made:
    a, b = operands
    if isinstance(a, np.ndarray) and _has_constant(op):
        return op._replace(inputs=[a[:, _rows_of_sparse(a)], b])
    return op._replace(inputs=operands)


NEEDS: dict[str, Callable[[Operation, Places], Needs | None]] = {
    **dict.fromkeys((*ELEMENTWISE, "copy", "copy_p", "stop_gradient"), _each),
    "broadcast_in_dim": _of_broadcast,
    **dict.fromkeys(("reshape", "squeeze", "expand_dims"), _of_reshape),
    "slice": _of_slice,
    "gather": _of_gather,
    "concatenate": _of_concatenation,
    "dot_general": _of_product,
    "transpose": lambda op, rows: [rows] if op.params["permutation"][0] == 0 else None,
    "rev": partial(_unless, lambda op: op.params["dimensions"]),
    **dict.fromkeys((*REDUCTIONS, "argmax", "argmin"), partial(_unless, lambda op: op.params["axes"])),
    **dict.fromkeys((*CUMULATIVE, "split", "unstack", "stack"), partial(_unless, lambda op: (op.params["axis"],))),
}
NARROWED: dict[str, Callable[[Operation, Places, list[Term]], Made]] = {
    "broadcast_in_dim": partial(_resized, "shape"),
    "reshape": partial(_resized, "new_sizes"),
    "slice": _less_of_rows,
    "gather": lambda op, rows, operands: operands[0],
    "concatenate": _parts,
    "dot_general": _product,
}
