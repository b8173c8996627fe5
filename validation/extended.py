"""A jaxpr evaluated by NumPy with floats of 80 bits: what differences of a program are taken in.

Rounding is 2,000 times smaller than in float64, so that central differences may be narrow and still be exact. Structure
(loops, branches, indices) is evaluated as JAX defines it; whatever only moves numbers about is asked of JAX itself, of
positions in place of numbers.
"""

import functools
import itertools
import operator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.engine.solver.kernel import SOLVE
from jaxsim.engine.solver.sparse import SPARSE_SOLVE
from jaxsim.native.matrices import MATRICES
from jaxsim.native.pool import POOL
from jaxsim.native.rows import of_all_rows
from jaxsim.native.stage import STAGE
from jaxsim.native.world_program import WORLD_PROGRAM
from jaxsim.xla.compat import scan_lengths

WIDE = np.longdouble


def widened(x):
    """A NumPy array with floats of 80 bits, whatever else it holds unchanged."""
    x = np.asarray(x)
    return x.astype(WIDE) if np.issubdtype(x.dtype, np.floating) else x


def dtype_of(dtype):
    return WIDE if np.issubdtype(dtype, np.floating) else np.dtype(dtype)


def evaluated(function, *examples):
    """`function` as one of arguments like `examples`, traced once: its flat outputs in floats of 80 bits."""
    closed = jax.make_jaxpr(function)(*examples)
    return lambda *args: run(closed, *jax.tree.leaves(args))


def run(closed, *args):
    """Outputs of a closed jaxpr."""
    jaxpr, known = closed.jaxpr, {}

    def read(atom):
        return widened(atom.val) if hasattr(atom, "val") else known[atom]

    known.update(zip(jaxpr.constvars, map(widened, closed.consts), strict=True))
    known.update(zip(jaxpr.invars, map(widened, args), strict=True))
    last = {v: i for i, eqn in enumerate(jaxpr.eqns) for v in eqn.invars if not hasattr(v, "val")}
    kept = {v for v in jaxpr.outvars if not hasattr(v, "val")}
    for i, eqn in enumerate(jaxpr.eqns):
        name = eqn.primitive.name
        if name not in RULES:
            raise NotImplementedError(f"{name} in floats of 80 bits")
        out = RULES[name](*map(read, eqn.invars), **eqn.params)
        known.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else (out,), strict=True))
        for v in {v for v in eqn.invars if not hasattr(v, "val")}:
            if last[v] == i and v not in kept:
                known.pop(v, None)
    return [read(v) for v in jaxpr.outvars]


def elementwise(function):
    return lambda *x, **_: function(*x)


def quotient(a, b, **_):
    if np.issubdtype(a.dtype, np.floating):
        return a / b
    return (np.sign(a) * np.sign(b) * (np.abs(a) // np.maximum(np.abs(b), 1))).astype(a.dtype)


def select(which, *cases, **_):
    if len(cases) == 2:
        return np.where(which, cases[1], cases[0])
    return np.choose(which, cases)


def converted(x, *, new_dtype, **_):
    return x if dtype_of(new_dtype) == x.dtype else x.astype(dtype_of(new_dtype))


def spread(x, *_, shape, broadcast_dimensions, **__):
    full = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, x.shape, strict=True):
        full[axis] = size
    return np.broadcast_to(x.reshape(full), shape)


def part(x, *, start_indices, limit_indices, strides, **_):
    ends = zip(start_indices, limit_indices, strides or (1,) * x.ndim, strict=True)
    return x[tuple(slice(*e) for e in ends)]


def counted(*_, dtype, shape, dimension, **__):
    full = [1] * len(shape)
    full[dimension] = shape[dimension]
    return np.broadcast_to(np.arange(shape[dimension]).astype(dtype_of(dtype)).reshape(full), shape)


def positions(x, start=0):
    return jnp.arange(start, start + x.size, dtype=jnp.int32).reshape(x.shape)


def gathered(x, indices, *, fill_value, **params):
    if fill_value is None:
        fill_value = np.nan if np.issubdtype(x.dtype, np.floating) else 0
    at = lax.gather_p.bind(positions(x), indices, fill_value=-1, **params)
    return np.append(x.ravel(), np.asarray(fill_value, x.dtype))[np.asarray(at)]  # -1 is the last


def sliced(x, *starts, **params):
    return x.ravel()[np.asarray(lax.dynamic_slice_p.bind(positions(x), *starts, **params))]


def replaced(x, update, *starts, **_):
    at = lax.dynamic_update_slice_p.bind(positions(x), positions(update, x.size), *starts)
    return np.append(x.ravel(), update.ravel())[np.asarray(at)]


def scattered(x, indices, update, **params):
    at = lax.scatter_p.bind(positions(x), indices, positions(update, x.size), **params)
    return np.append(x.ravel(), update.ravel())[np.asarray(at)]


def combined(x, indices, update, *, combine, dimension_numbers, mode, **_):
    """x with numbers of `update` combined in; where each of them goes is what the transposed sum reads."""

    def total(numbers):
        return lax.scatter_add(jnp.zeros(x.shape), indices, numbers, dimension_numbers, mode=mode)

    back = jax.vjp(total, jnp.zeros(update.shape))[1]
    at = np.asarray(back(1.0 + positions(x))[0]).astype(int).ravel() - 1  # -1: nowhere
    out = x.flatten()
    combine.at(out, at[at >= 0], update.ravel()[at >= 0])
    return out.reshape(x.shape)


def padded(x, value, *, padding_config, **_):
    at = lax.pad_p.bind(positions(x), jnp.int32(-1), padding_config=padding_config)
    return np.append(x.ravel(), value)[np.asarray(at)]


def reduced(function):
    return lambda x, *, axes, **_: function(x, axis=tuple(axes))


def folded(*x, jaxpr, dimensions, **_):
    """Several arrays reduced together by an associative function: the halves of what is left, until one is left."""
    n = len(x) // 2
    kept = [i for i in range(x[0].ndim) if i not in dimensions]
    shape = [x[0].shape[i] for i in kept]
    parts = [a.transpose(*kept, *dimensions).reshape(*shape, -1) for a in x[:n]]
    while (length := parts[0].shape[-1]) > 1:
        half = length // 2
        joined = run(jaxpr, *(a[..., :half] for a in parts), *(a[..., half : 2 * half] for a in parts))
        parts = [np.concatenate([a, b[..., 2 * half :]], -1) for a, b in zip(joined, parts, strict=True)]
    return run(jaxpr, *x[n:], *(a[..., 0] for a in parts))


def located(function):
    return lambda x, *, axes, index_dtype, **_: function(x, axis=axes[0]).astype(index_dtype)


def cumulated(function):
    def call(x, *, axis, reverse, **_):
        return np.flip(function.accumulate(np.flip(x, axis), axis), axis) if reverse else function.accumulate(x, axis)

    return call


def ordered(*x, dimension, num_keys, **_):
    order = np.lexsort(x[:num_keys][::-1], axis=dimension)  # stable
    return [np.take_along_axis(a, order, dimension) for a in x]


def product(a, b, *, dimension_numbers, preferred_element_type=None, **_):
    (along_a, along_b), (batch_a, batch_b) = dimension_numbers
    free_a = [i for i in range(a.ndim) if i not in (*along_a, *batch_a)]
    free_b = [i for i in range(b.ndim) if i not in (*along_b, *batch_b)]
    shape = [a.shape[i] for i in batch_a] + [a.shape[i] for i in free_a] + [b.shape[i] for i in free_b]
    length = int(np.prod([a.shape[i] for i in along_a]))
    batch = int(np.prod([a.shape[i] for i in batch_a]))
    left = a.transpose(*batch_a, *free_a, *along_a).reshape(batch, -1 if a.size else 0, length)
    right = b.transpose(*batch_b, *along_b, *free_b).reshape(batch, length, -1 if b.size else 0)
    out = np.matmul(left, right) if a.size and b.size else np.zeros(shape, a.dtype)
    return out.reshape(shape).astype(dtype_of(preferred_element_type or out.dtype))


def cholesky(x, **_):
    """Lower factors of symmetric matrices; NaN where one is not positive definite, as JAX gives."""
    factor = np.zeros_like(x)
    with np.errstate(invalid="ignore", divide="ignore"):
        for j in range(x.shape[-1]):
            row = factor[..., j, :j]
            diagonal = np.sqrt(x[..., j, j] - (row * row).sum(-1))
            factor[..., j, j] = diagonal
            below = x[..., j + 1 :, j] - (factor[..., j + 1 :, :j] * row[..., None, :]).sum(-1)
            factor[..., j + 1 :, j] = below / diagonal[..., None]
    return factor


def triangular(a, b, *, left_side, lower, transpose_a, unit_diagonal, **_):
    """x with op(a) x = b, or x op(a) = b."""
    if not left_side:
        a, b, transpose_a = a, np.swapaxes(b, -1, -2), not transpose_a
    if transpose_a:
        a, lower = np.swapaxes(a, -1, -2), not lower
    n = a.shape[-1]
    x = np.zeros(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:], WIDE)
    for i in range(n) if lower else reversed(range(n)):
        done = slice(0, i) if lower else slice(i + 1, n)
        rest = b[..., i, :] - (a[..., i, done, None] * x[..., done, :]).sum(-2)
        x[..., i, :] = rest if unit_diagonal else rest / a[..., i, i, None]
    return x if left_side else np.swapaxes(x, -1, -2)


def eliminated(x, **_):
    """Both triangular factors in one matrix, the pivots, and the order of rows that they make."""
    rows, columns = x.shape[-2:]
    x = x.copy().reshape(-1, rows, columns)
    each = np.arange(len(x))
    order = np.tile(np.arange(rows, dtype=np.int32), (len(x), 1))
    pivots = np.zeros((len(x), min(rows, columns)), np.int32)
    for j in range(pivots.shape[1]):
        best = j + np.abs(x[:, j:, j]).argmax(1)
        pivots[:, j] = best
        for table in (x, order):
            table[each, best], table[:, j] = table[:, j].copy(), table[each, best].copy()
        x[:, j + 1 :, j] /= x[:, j, j, None]
        x[:, j + 1 :, j + 1 :] -= x[:, j + 1 :, j, None] * x[:, None, j, j + 1 :]
    return x, pivots, order


def eigenvectors(x, **_):
    """Eigenvectors and ascending eigenvalues of symmetric matrices, by cyclic Jacobi rotations."""
    n = x.shape[-1]
    x, v = x.copy(), np.broadcast_to(np.eye(n, dtype=WIDE), x.shape).copy()
    for p, q in 12 * list(itertools.combinations(range(n), 2)):
        angle = np.arctan2(2 * x[..., p, q], x[..., q, q] - x[..., p, p]) / 2
        c, s = np.cos(angle)[..., None], np.sin(angle)[..., None]
        x[..., p, :], x[..., q, :] = c * x[..., p, :] - s * x[..., q, :], s * x[..., p, :] + c * x[..., q, :]
        for a in (x, v):
            a[..., :, p], a[..., :, q] = c * a[..., :, p] - s * a[..., :, q], s * a[..., :, p] + c * a[..., :, q]
    values = np.diagonal(x, axis1=-2, axis2=-1)
    order = np.argsort(values, -1)
    return np.take_along_axis(v, order[..., None, :], -1), np.take_along_axis(values, order, -1)


def factored(x, **_):
    lead = x.shape[:-2]
    return [a.reshape(*lead, *a.shape[1:]) for a in eliminated(x)]


def loop(*x, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts, **_):
    asked, used, carry = np.split(np.arange(len(x)), [cond_nconsts, cond_nconsts + body_nconsts])
    asked, used, carry = ([x[i] for i in part] for part in (asked, used, carry))
    goes_on = run(cond_jaxpr, *asked, *carry)[0]  # of a batch: what is done stays
    while goes_on.any():
        new = run(body_jaxpr, *used, *carry)
        carry = [
            np.where(goes_on.reshape(goes_on.shape + (1,) * (b.ndim - goes_on.ndim)), b, a)
            for a, b in zip(carry, new, strict=True)
        ]
        goes_on = run(cond_jaxpr, *asked, *carry)[0]
    return carry


def scan(*x, jaxpr, length, reverse, **params):
    num_consts, num_carry = scan_lengths(params, len(x))
    consts, carry, xs = x[:num_consts], x[num_consts : num_consts + num_carry], x[num_consts + num_carry :]
    out = []
    for i in reversed(range(length)) if reverse else range(length):
        done = run(jaxpr, *consts, *carry, *(a[i] for a in xs))
        carry, ys = done[:num_carry], done[num_carry:]
        out.append(ys)
    out = out[::-1] if reverse else out
    shaped = [(v.aval.shape, dtype_of(v.aval.dtype)) for v in jaxpr.jaxpr.outvars[num_carry:]]
    stacked = [np.stack([ys[k] for ys in out]) if out else np.zeros((0, *s), t) for k, (s, t) in enumerate(shaped)]
    return [*carry, *stacked]


def branch(index, *x, branches, **_):
    return run(branches[int(np.clip(int(index), 0, len(branches) - 1))], *x)


def solved(*x, const_lengths, jaxprs, **_):
    first = const_lengths.matvec + const_lengths.vecmat
    lengths = (*const_lengths,)
    return run(jaxprs.solve, *x[first : first + const_lengths.solve], *x[sum(lengths) :])


def called(key):
    def call(*x, **params):
        inner = params[key]
        return run(inner if hasattr(inner, "consts") else jax.extend.core.ClosedJaxpr(inner, ()), *x)

    return call


def platform(*_, platforms, **__):
    """The index of the case for a CPU: the one that names it, or the last, which names none."""
    return np.int32(
        next((i for i, names in enumerate(platforms) if names is None or "cpu" in names), len(platforms) - 1)
    )


def defined(function):
    """The rule of a primitive that this function of operands and parameters defines."""

    def rule(*x, **params):
        like = [jax.ShapeDtypeStruct(y.shape, float if y.dtype == WIDE else y.dtype) for y in x]
        return run(jax.make_jaxpr(functools.partial(function, **params))(*like), *x)

    return rule


RULES = {
    **{
        name: elementwise(getattr(np, name))
        for name in ("sign", "sqrt", "exp", "log", "log1p", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh")
    },
    **{name: elementwise(getattr(np, name)) for name in ("floor", "ceil", "square", "nextafter", "exp2")},
    **{
        name: elementwise(getattr(operator, name))
        for name in ("add", "sub", "mul", "neg", "abs", "lt", "le", "gt", "ge", "eq", "ne", "xor")
    },
    "add_any": elementwise(np.add),
    "le_to": elementwise(np.less_equal),
    "lt_to": elementwise(np.less),
    "and": elementwise(np.bitwise_and),
    "or": elementwise(np.bitwise_or),
    "not": elementwise(np.bitwise_not),
    "max": elementwise(np.maximum),
    "min": elementwise(np.minimum),
    "div": quotient,
    "rem": elementwise(np.fmod),
    "pow": elementwise(np.power),
    "integer_pow": lambda x, *, y, **_: x**y if y >= 0 else 1 / x**-y,
    "rsqrt": elementwise(lambda x: 1 / np.sqrt(x)),
    "asin": elementwise(np.arcsin),
    "acos": elementwise(np.arccos),
    "atan": elementwise(np.arctan),
    "atan2": elementwise(np.arctan2),
    "is_finite": elementwise(np.isfinite),
    "round": elementwise(np.rint),
    "shift_left": elementwise(np.left_shift),
    "shift_right_logical": elementwise(np.right_shift),
    "shift_right_arithmetic": elementwise(np.right_shift),
    "clamp": elementwise(lambda low, x, high: np.minimum(np.maximum(x, low), high)),
    "select_n": select,
    "convert_element_type": converted,
    "stop_gradient": elementwise(lambda x: x),
    "copy": elementwise(lambda x: x),
    "copy_p": elementwise(lambda x: x),
    "xla_metadata_value": elementwise(lambda x: x),
    "name": elementwise(lambda x: x),
    "reduce_precision": elementwise(lambda x: x),
    "optimization_barrier": lambda *x, **_: x,
    "device_put": lambda *x, **_: x,
    "broadcast_in_dim": spread,
    "reshape": lambda x, *_, new_sizes, dimensions, **__: x.transpose(dimensions or range(x.ndim)).reshape(new_sizes),
    "transpose": lambda x, *, permutation, **_: x.transpose(permutation),
    "squeeze": lambda x, *, dimensions, **_: x.squeeze(tuple(dimensions)),
    "expand_dims": lambda x, *, dimensions, **_: np.expand_dims(x, tuple(dimensions)),
    "slice": part,
    "rev": lambda x, *, dimensions, **_: np.flip(x, dimensions),
    "concatenate": lambda *x, dimension, **_: np.concatenate(x, dimension),
    "stack": lambda *x, axis=0, **_: np.stack(x, axis),
    "unstack": lambda x, *, axis, **_: list(np.moveaxis(x, axis, 0)),
    "tile": lambda x, *, reps, **_: np.tile(x, reps),
    "split": lambda x, *, sizes, axis, **_: np.split(x, np.cumsum(sizes)[:-1], axis),
    "pad": padded,
    "iota": counted,
    "gather": gathered,
    "dynamic_slice": sliced,
    "dynamic_update_slice": replaced,
    "scatter": scattered,
    "scatter-add": functools.partial(combined, combine=np.add),
    "scatter-max": functools.partial(combined, combine=np.maximum),
    "scatter-min": functools.partial(combined, combine=np.minimum),
    "reduce_sum": reduced(np.sum),
    "reduce_prod": reduced(np.prod),
    "reduce_max": reduced(np.max),
    "reduce_min": reduced(np.min),
    "reduce_and": reduced(np.all),
    "reduce_or": reduced(np.any),
    "reduce": folded,
    "argmax": located(np.argmax),
    "argmin": located(np.argmin),
    "cumsum": cumulated(np.add),
    "cumprod": cumulated(np.multiply),
    "cummax": cumulated(np.maximum),
    "cummin": cumulated(np.minimum),
    "sort": ordered,
    "dot_general": product,
    "cholesky": cholesky,
    "triangular_solve": triangular,
    "lu": factored,
    "eigh": eigenvectors,
    "while": loop,
    "scan": scan,
    "cond": branch,
    "custom_linear_solve": solved,
    "platform_index": platform,
    "over_rows": defined(of_all_rows),
    **{f.name: defined(f.by_jax) for f in (SOLVE, SPARSE_SOLVE, WORLD_PROGRAM, POOL, MATRICES, STAGE)},
    **{name: called("jaxpr") for name in ("jit", "pjit", "remat", "remat2", "checkpoint", "closed_call")},
    "custom_jvp_call": called("call_jaxpr"),
    "custom_vjp_call": called("call_jaxpr"),
    "custom_vmap_call": called("call"),
}
