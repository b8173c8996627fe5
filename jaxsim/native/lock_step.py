"""Evaluate a function of one entry for many entries in lock step: the form of a search on a TPU.

The function is that of a scalar program (`pool`). Arrays that differ between entries have two more axes at the end, of
which the last one is as long as a TPU's vectors. So each operation of the function is one operation on whole vectors.
What the same function would become under `vmap` is slow there: an index that differs between entries is a gather or a
scatter, which a TPU does entry by entry. Here it is a comparison with all indices, or a product with a matrix of zeros
and ones. Loops end when no entry goes on; branches with loops are computed if some entry takes them.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math.safe import Array
from jaxsim.native.gathers import axes_of_rows
from jaxsim.native.jaxpr import TPU, Flat, Operation, Term, Var, flatten, holds
from jaxsim.native.uniform import carried_by_scan, carried_by_while, read_by
from jaxsim.xla.compat import scan_lengths

LANES = 128  # of a TPU's vectors
MOST_TURNS = 2  # of a loop that is written out
SMALL_TABLE = 32  # rows of a table that are compared one by one; larger ones are a product with zeros and ones
MIN_VECTOR_ROWS = 8  # vectors of a register

ELEMENTWISE = """abs acos acosh add and asin asinh atan atan2 atanh cbrt ceil clamp convert_element_type copy cos cosh
div eq erf exp exp2 expm1 floor ge gt integer_pow is_finite le log log1p log2 logistic lt max min mul ne neg nextafter
not one_minus_square or pow rem round rsqrt select_n shift_left shift_right_arithmetic shift_right_logical sign sin
sinh sqrt square sub tan tanh xor"""
ALONG_AXES = """reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor cumsum cumprod cummax
cummin transpose squeeze"""


class Each(NamedTuple):
    """An array of each entry (*shape, rows, LANES); what is not `Each` is the same for all entries."""

    x: Array


Operand = Each | Array


class _Lanes(NamedTuple):
    """How many entries there are: `rows` vectors of LANES."""

    rows: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, LANES

    def spread(self, v: Operand, shape: Sequence[int]) -> Array:
        """Return (*shape, rows, LANES) of an operand of this shape, or of a scalar."""
        x = v.x if isinstance(v, Each) else jnp.asarray(v)[..., None, None]
        own = x.ndim - 2
        lead = tuple(range(own)) if own == len(shape) else ()
        dims = (*lead, len(shape), len(shape) + 1)
        return lax.broadcast_in_dim(x, (*shape, *self.shape), dims)


def in_lock_step(closed: Any, operands: Sequence[Operand], real: Array) -> list[Array]:
    """Return the results (*shape, rows, LANES) of a closed jaxpr for each entry.

    `real` (rows, LANES) are the entries whose results are used. Tables, which all entries share, are finite.
    """
    lanes = _Lanes(real.shape[0])
    flat = flatten(closed, TPU)
    found = _evaluate(lanes, flat, operands, real)
    return [lanes.spread(v, out.shape) for v, out in zip(found, flat.outputs, strict=True)]


def rows_of(entries: int) -> int:
    """Return the number of vectors of so many entries, in whole registers where there are many."""
    rows = -(-entries // LANES)
    return rows if rows < MIN_VECTOR_ROWS else -(-rows // MIN_VECTOR_ROWS) * MIN_VECTOR_ROWS


def _evaluate(lanes: _Lanes, flat: Flat, operands: Sequence[Operand], active: Array) -> list[Operand]:
    env: dict[Term, Operand] = dict(zip(flat.inputs, operands, strict=True))
    read = read_by(flat)

    def value(v: Term) -> Operand:
        return env[v] if isinstance(v, Var) else v

    for op in flat.operations:
        own = [value(v) for v in op.inputs]
        used = [v in read for v in op.outputs]
        env |= dict(zip(op.outputs, _results(lanes, op, own, active, used), strict=True))
    return [value(v) for v in flat.outputs]


def _results(
    lanes: _Lanes, op: Operation, operands: list[Operand], active: Array, used: Sequence[bool]
) -> Sequence[Operand]:
    if op.name in _CONTROL:
        return _CONTROL[op.name](lanes, op, operands, active, used)
    if not any(isinstance(v, Each) for v in operands):
        found = op.primitive.bind(*operands, **op.params)
        return found if op.primitive.multiple_results else [found]
    if op.name in _ELEMENTWISE:
        return [Each(_elementwise(lanes, op, operands))]
    rule = _RULES.get(op.name)
    found = rule(lanes, op, operands) if rule else None
    return _by_vmap(lanes, op, operands) if found is None else [Each(found)]


def _elementwise(lanes: _Lanes, op: Operation, operands: list[Operand]) -> Array:
    shape = op.outputs[0].shape
    x = [lanes.spread(v, shape) for v in operands]
    if op.name == "clamp":
        return lax.min(lax.max(x[1], x[0]), x[2])
    return op.primitive.bind(*x, **op.params)


def _by_vmap(lanes: _Lanes, op: Operation, operands: list[Operand]) -> list[Operand]:
    """Return the results by JAX's batching rule of the operation, of any kind."""
    axes = [-1 if isinstance(v, Each) else None for v in operands]
    flat = [v.x.reshape(*v.x.shape[:-2], -1) if isinstance(v, Each) else v for v in operands]
    found = jax.vmap(partial(op.primitive.bind, **op.params), in_axes=axes, out_axes=-1)(*flat)
    found = found if op.primitive.multiple_results else [found]
    return [Each(x.reshape(*x.shape[:-1], *lanes.shape)) for x in found]


def _same(_: _Lanes, op: Operation, operands: list[Operand]) -> Array:
    """An operation along the axes that it names; the others only get more at the end."""
    (v,) = operands
    assert isinstance(v, Each)
    params = dict(op.params)
    if op.name == "transpose":
        n = v.x.ndim - 2
        params["permutation"] = (*params["permutation"], n, n + 1)
    return op.primitive.bind(v.x, **params)


def _extreme(_: _Lanes, op: Operation, operands: list[Operand]) -> Array:
    """The first index of the greatest or least entry, or of the first NaN.

    XLA for a TPU makes the numbers of its own form bfloat16, since they are no result, and may then choose another. It
    may also compute the entries twice: should rounding differ then, one that is as good except for rounding is chosen.
    """
    x, (axis,) = _each(operands[0]), op.params["axes"]
    best = (jnp.max if op.name == "argmax" else jnp.min)(x, axis, keepdims=True)
    n, index = x.shape[axis], lax.broadcasted_iota(jnp.int32, x.shape, axis)
    first = lambda mask: jnp.min(jnp.where(mask, index, n), axis)  # noqa: E731
    found = first((x == best) | (x != x))
    if jnp.issubdtype(x.dtype, jnp.floating):
        near = first(jnp.abs(x - best) <= 8 * jnp.finfo(x.dtype).eps * jnp.abs(best))
        found = jnp.where(found < n, found, near)
    return jnp.minimum(found, n - 1).astype(op.params["index_dtype"])


def _broadcast(lanes: _Lanes, op: Operation, operands: list[Operand]) -> Array:
    shape, n = op.params["shape"], len(op.params["shape"])
    return lax.broadcast_in_dim(
        _each(operands[0]), (*shape, *lanes.shape), (*op.params["broadcast_dimensions"], n, n + 1)
    )


def _reshape(lanes: _Lanes, op: Operation, operands: list[Operand]) -> Array:
    return _each(operands[0]).reshape(*op.outputs[0].shape, *lanes.shape)


def _concatenate(lanes: _Lanes, op: Operation, operands: list[Operand]) -> Array:
    parts = [lanes.spread(v, t.shape) for v, t in zip(operands, op.inputs, strict=True)]
    return lax.concatenate(parts, op.params["dimension"])


def _slice(lanes: _Lanes, op: Operation, operands: list[Operand]) -> Array:
    p = op.params
    strides = (*p["strides"], 1, 1) if p["strides"] else None
    return lax.slice(_each(operands[0]), (*p["start_indices"], 0, 0), (*p["limit_indices"], *lanes.shape), strides)


def _pad(_: _Lanes, op: Operation, operands: list[Operand]) -> Array | None:
    if isinstance(operands[1], Each):
        return None
    return lax.pad(_each(operands[0]), operands[1], (*op.params["padding_config"], (0, 0, 0), (0, 0, 0)))


def _rev(_: _Lanes, op: Operation, operands: list[Operand]) -> Array:
    return lax.rev(_each(operands[0]), op.params["dimensions"])


def _dot(lanes: _Lanes, op: Operation, operands: list[Operand]) -> Array:
    """A product of small arrays, written as a sum."""
    (of_a, of_b), (both_a, both_b) = op.params["dimension_numbers"]
    a, b = (lanes.spread(v, t.shape) for v, t in zip(operands, op.inputs, strict=True))
    free_a = [i for i in range(a.ndim - 2) if i not in (*of_a, *both_a)]
    free_b = [i for i in range(b.ndim - 2) if i not in (*of_b, *both_b)]
    a = a.transpose(*both_a, *free_a, *of_a, a.ndim - 2, a.ndim - 1)
    b = b.transpose(*both_b, *free_b, *of_b, b.ndim - 2, b.ndim - 1)
    k, n = len(both_a), len(of_a)
    a = lax.expand_dims(a, range(k + len(free_a), k + len(free_a) + len(free_b)))
    b = lax.expand_dims(b, range(k, k + len(free_a)))
    end = k + len(free_a) + len(free_b)
    return jnp.sum(a * b, axis=tuple(range(end, end + n)))


def _dynamic_slice(lanes: _Lanes, op: Operation, operands: list[Operand]) -> Array:
    x, *starts = operands
    sizes = op.params["slice_sizes"]
    shape = op.inputs[0].shape
    for axis, (start, size, n) in enumerate(zip(starts, sizes, shape, strict=True)):
        if size == n:
            continue
        if isinstance(start, Each):
            at = jnp.clip(start.x, 0, n - size)
            x = Each(_taken(lanes, x, axis, [at + k for k in range(size)]))
        elif isinstance(x, Each):
            x = Each(lax.dynamic_slice_in_dim(x.x, start, size, axis))
        else:
            x = lax.dynamic_slice_in_dim(x, start, size, axis)
    return lanes.spread(x, op.outputs[0].shape)


def _taken(lanes: _Lanes, x: Operand, axis: int, at: list[Array]) -> Array:
    """Return the entries `at` (rows, LANES), which lie inside, of an axis."""
    if isinstance(x, Each):
        n = x.x.shape[axis]
        return jnp.concatenate([_chosen(x.x, axis, n, i) for i in at], axis)
    x = jnp.asarray(x)
    n, others = x.shape[axis], np.delete(x.shape, axis)
    if n <= SMALL_TABLE:
        wide = jnp.broadcast_to(x[..., None, None], (*x.shape, *lanes.shape))
        return jnp.concatenate([_chosen(wide, axis, n, i) for i in at], axis)
    table = jnp.moveaxis(x, axis, 0).reshape(n, -1)
    found = [_product(lanes, table, i).reshape(*others, *lanes.shape) for i in at]
    return jnp.stack(found, axis)


def _chosen(x: Array, axis: int, n: int, at: Array) -> Array:
    """Return entry `at` (rows, LANES) of an axis of x (..., rows, LANES), which is kept."""
    here = _is_at(x.ndim, axis, n, at)
    if x.dtype == bool:
        return jnp.any(x & here, axis=axis, keepdims=True)
    return jnp.sum(jnp.where(here, x, 0), axis=axis, keepdims=True, dtype=x.dtype)


def _is_at(ndim: int, axis: int, n: int, at: Array) -> Array:
    """Whether each index of an axis of an array (..., rows, LANES) is `at`."""
    index = lax.broadcasted_iota(jnp.int32, (n, 1, 1), 0)
    here = index == at[None]
    return lax.expand_dims(here, (*range(axis), *range(axis + 1, ndim - 2)))


def _product(lanes: _Lanes, table: Array, at: Array) -> Array:
    """Return rows `at` of a table (n, k) as (k, rows, LANES).

    Rows lie in blocks, of which there are no more than a matrix unit has columns. The block is a product with a matrix
    of zeros and ones, which is exact, and the row in it is found by comparing.
    """
    dtype, k = table.dtype, table.shape[1]
    width = -(-len(table) // LANES)
    table = jnp.pad(table, ((0, -len(table) % width), (0, 0))).reshape(-1, width * k)
    found = _block(lanes, table, at // width).reshape(width, k, *lanes.shape)
    return _chosen(found, 0, width, at % width)[0].astype(dtype)


def _block(lanes: _Lanes, table: Array, at: Array) -> Array:
    real = jnp.issubdtype(table.dtype, jnp.floating)
    if not real:  # halves of 16 bits are exact in single precision
        table = jnp.concatenate([table >> 16, table & 0xFFFF], axis=1)
    number = table.dtype if real else jnp.float32
    ones = (lax.broadcasted_iota(jnp.int32, (len(table), *lanes.shape), 0) == at[None]).astype(number)
    found = jnp.einsum("nk,nrl->krl", table.astype(number), ones, precision=lax.Precision.HIGHEST)
    if real:
        return found
    high, low = jnp.split(found.astype(jnp.int32), 2)
    return (high << 16) + low


def _dynamic_update_slice(lanes: _Lanes, op: Operation, operands: list[Operand]) -> Array:
    x, new, *starts = operands
    shape, size = op.inputs[0].shape, op.inputs[1].shape
    x, new = lanes.spread(x, shape), lanes.spread(new, size)
    if not any(isinstance(s, Each) for s in starts):
        return lax.dynamic_update_slice(x, new, (*map(_value, starts), 0, 0))
    mine = [d for d, s in enumerate(starts) if isinstance(s, Each) or size[d] != shape[d]]
    first = {d: jnp.clip(_value(starts[d]), 0, shape[d] - size[d]) for d in mine}
    for offset in np.ndindex(*(size[d] for d in mine)):
        here = True
        part = new
        for d, k in zip(mine, offset, strict=True):
            part = lax.slice_in_dim(part, k, k + 1, axis=d)
            here &= _is_at(x.ndim, d, shape[d], jnp.broadcast_to(first[d] + k, lanes.shape))
        x = jnp.where(here, part, x)
    return x


def _value(v: Operand) -> Array:
    return v.x if isinstance(v, Each) else jnp.asarray(v)


def _each(v: Operand) -> Array:
    assert isinstance(v, Each)
    return v.x


def _gather(lanes: _Lanes, op: Operation, operands: list[Operand]) -> Array | None:
    """Rows of an array, or numbers of one, at indices of its first axes."""
    if (k := axes_of_rows(op)) is None:
        return None
    (x, index), shape, of = operands, op.inputs[0].shape, op.inputs[1].shape
    count, n = math.prod(of[:-1]), math.prod(shape[:k])
    if isinstance(index, np.ndarray):
        at = np.clip(index, 0, np.array(shape[:k]) - 1).reshape(count, k)
        rows = jnp.concatenate([_each(x)[tuple(slice(i, i + 1) for i in row)] for row in at])
        return rows.reshape(*op.outputs[0].shape, *lanes.shape)
    index = lanes.spread(index, of).reshape(count, k, *lanes.shape)
    at = jnp.zeros((count, *lanes.shape), jnp.int32)
    for i in range(k):
        at += jnp.clip(index[:, i], 0, shape[i] - 1).astype(jnp.int32) * np.int32(math.prod(shape[i + 1 : k]))
    flat = (n, *shape[k:])
    x = Each(x.x.reshape(*flat, *lanes.shape)) if isinstance(x, Each) else jnp.asarray(x).reshape(flat)
    return _taken(lanes, x, 0, [at[i] for i in range(count)]).reshape(*op.outputs[0].shape, *lanes.shape)


def _while(
    lanes: _Lanes, op: Operation, operands: list[Operand], active: Array, used: Sequence[bool]
) -> Sequence[Operand]:
    p, nc = op.params, op.params["cond_nconsts"]
    nb = p["body_nconsts"]
    test, body = flatten(p["cond_jaxpr"], TPU), flatten(p["body_jaxpr"], TPU)
    of_test, of_body, start = operands[:nc], operands[nc : nc + nb], operands[nc + nb :]
    uniform = carried_by_while(op, [not isinstance(v, Each) for v in operands], TPU, used)
    shapes = [v.shape for v in op.outputs]

    def packed(values: Sequence[Operand]) -> list[Array]:
        return [_value(v) if u else lanes.spread(v, s) for v, u, s in zip(values, uniform, shapes, strict=True)]

    def unpacked(x: Sequence[Array]) -> list[Operand]:
        return [v if u else Each(v) for v, u in zip(x, uniform, strict=True)]

    def goes_on(x: Sequence[Array], active: Array) -> Operand:
        return _evaluate(lanes, test, [*of_test, *unpacked(x)], active)[0]

    def after(x: Sequence[Array], active: Array) -> list[Array]:
        return packed(_evaluate(lanes, body, [*of_body, *unpacked(x)], active))

    first = packed(start)
    if not isinstance(jax.eval_shape(lambda *x: goes_on(x, active), *first), Each):
        found = lax.while_loop(lambda x: goes_on(x, active), lambda x: after(x, active), first)
        return unpacked(found)

    def step(state: tuple[Array, list[Array]]) -> tuple[Array, list[Array]]:
        going, x = state
        new = after(x, going)
        x = [n if u else jnp.where(going, n, o) for n, o, u in zip(new, x, uniform, strict=True)]
        return going & _each(goes_on(x, going)), x

    going = active & _each(goes_on(first, active))
    return unpacked(lax.while_loop(lambda s: jnp.any(s[0]), step, (going, first))[1])


def _scan(
    lanes: _Lanes, op: Operation, operands: list[Operand], active: Array, used: Sequence[bool]
) -> Sequence[Operand]:
    p, (nc, nk) = op.params, scan_lengths(op.params, len(op.inputs))
    body = flatten(p["jaxpr"], TPU)
    carried = carried_by_scan(op, [not isinstance(v, Each) for v in operands], TPU)
    shapes = [v.shape for v in op.outputs[:nk]]
    each = [isinstance(v, Each) for v in operands[nc + nk :]]
    kinds: list[bool] = []

    def packed(values: Sequence[Operand]) -> list[Array]:
        return [_value(v) if u else lanes.spread(v, s) for v, u, s in zip(values, carried, shapes, strict=True)]

    def step(carry: list[Array], rows: list[Array]) -> tuple[list[Array], list[Array]]:
        mine = [x if u else Each(x) for x, u in zip(carry, carried, strict=True)]
        given = [Each(x) if e else x for x, e in zip(rows, each, strict=True)]
        found = _evaluate(lanes, body, [*operands[:nc], *mine, *given], active)
        kinds[:] = [isinstance(v, Each) for v in found[nk:]]
        return packed(found[:nk]), [_value(v) for v in found[nk:]]

    rows = [_value(v) for v in operands[nc + nk :]]
    whole = p["length"] <= MOST_TURNS
    carry, out = lax.scan(step, packed(operands[nc : nc + nk]), rows, p["length"], p["reverse"], unroll=whole or 1)
    kept = [x if u else Each(x) for x, u in zip(carry, carried, strict=True)]
    return [*kept, *(Each(x) if e else x for x, e in zip(out, kinds, strict=True))]


def _cond(
    lanes: _Lanes, op: Operation, operands: list[Operand], active: Array, used: Sequence[bool]
) -> Sequence[Operand]:
    index, *own = operands
    branches = [flatten(b, TPU) for b in op.params["branches"]]
    shapes = [v.shape for v in op.outputs]

    def run(branch: Flat, active: Array) -> list[Array]:
        found = _evaluate(lanes, branch, own, active)
        return [lanes.spread(v, s) for v, s in zip(found, shapes, strict=True)]

    if not isinstance(index, Each):
        return [Each(x) for x in lax.switch(index, [partial(run, b, active) for b in branches])]
    number = index.x if index.x.dtype != bool else index.x.astype(jnp.int32)
    number = jnp.clip(number, 0, len(branches) - 1)
    out: list[Array] | None = None
    for k, branch in enumerate(branches):
        here = active & (number == k)
        found = partial(run, branch, here)
        if any(holds(_LOOPS, o.primitive, o.params) for o in branch.operations):
            none = lambda: [jnp.zeros((*v.shape, *lanes.shape), v.dtype) for v in op.outputs]  # noqa: E731
            values = lax.cond(jnp.any(here), found, none)
        else:
            values = found()
        out = values if out is None else [jnp.where(number == k, x, y) for x, y in zip(values, out, strict=True)]
    assert out is not None
    return [Each(x) for x in out]


_ELEMENTWISE = frozenset(ELEMENTWISE.split())
_LOOPS = ("while", "scan")
_CONTROL: dict[str, Callable[..., Sequence[Operand]]] = {"while": _while, "scan": _scan, "cond": _cond}
_RULES: dict[str, Callable[[_Lanes, Operation, list[Operand]], Array | None]] = {
    **dict.fromkeys(ALONG_AXES.split(), _same),
    **dict.fromkeys(("argmax", "argmin"), _extreme),
    "broadcast_in_dim": _broadcast,
    **dict.fromkeys(("reshape", "expand_dims"), _reshape),
    "concatenate": _concatenate,
    "slice": _slice,
    "pad": _pad,
    "rev": _rev,
    "dot_general": _dot,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
}
