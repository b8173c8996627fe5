"""Batching rules: functions of whole batches, bounds that a batch shares, batches in parts."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.math.safe import Array
from jaxsim.xla.compat import custom_vmap, eval_jaxpr


@custom_vmap
def batch_max(x: Array) -> Array:
    """The largest value of `x` in the whole batch that `vmap` makes, the same for all of it: a bound for loops.

    A loop whose bound differs between worlds computes every world in every round and selects; one bounded by this does
    not select, but what it computes must not change the result of a world that needed less. Not differentiable.
    """
    return x


@batch_max.def_vmap
def _batch_max(axis_size: int, in_batched: list[bool], x: Array) -> tuple[Array, bool]:
    return batch_max(jnp.max(x, axis=0) if in_batched[0] else x), False


def of_batches(
    function: Callable[..., Any],
    on_cpu: Callable[[int], Callable[..., Any]],
    elsewhere: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """A function of batches (size, ...) that a CPU computes as `on_cpu(size)`; a batch of batches is one larger.

    Other platforms compute it as `elsewhere`, if given. Derivatives are those of the function itself.
    """
    other = elsewhere or function

    @jax.custom_jvp
    def differentiable(*operands: Array) -> Any:
        return _batch(other, on_cpu(len(operands[0])), differentiable, operands)

    @differentiable.defjvp
    def _(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Any, Any]:
        return differentiable(*primals), jax.jvp(function, primals, tangents)[1]

    return differentiable


def _batch(
    function: Callable[..., Any], chosen: Callable[..., Any], larger: Callable[..., Any], operands: tuple[Array, ...]
) -> Any:
    # A branch that worlds take or not is computed for all of them, its constants as if each world had its own: so these
    # are operands here, which the rule for a larger batch does not look at.
    functions = (function,) if chosen is function else (function, chosen)
    run, constants = zip(*(without_constants(f, operands)[:2] for f in functions), strict=True)

    @custom_vmap
    def batch(constants: tuple[list[Array], ...], *operands: Array) -> Any:
        if chosen is function:
            return run[0](constants[0], *operands)
        return lax.platform_dependent(
            constants, *operands, cpu=lambda c, *x: run[1](c[1], *x), default=lambda c, *x: run[0](c[0], *x)
        )

    @batch.def_vmap
    def _(outer: int, batched: list[Any], _: Any, *operands: Array) -> tuple[Any, Any]:
        full = [x if b else jnp.broadcast_to(x, (outer, *x.shape)) for x, b in zip(operands, batched[1:], strict=True)]
        size = full[0].shape[1]
        out = larger(*[x.reshape(outer * size, *x.shape[2:]) for x in full])
        return jax.tree.map(lambda x: x.reshape(outer, size, *x.shape[1:]), out), jax.tree.map(lambda _: True, out)

    return batch(constants, *operands)


def without_constants(
    function: Callable[..., Any], args: tuple[Any, ...]
) -> tuple[Callable[..., Any], list[Array], Any]:
    """A function of constants and `args` that closes over none, the constants, and zeros like its results.

    It is traced here, and not again where it is called.
    """
    traced, shape = jax.make_jaxpr(function, return_shape=True)(*args)
    tree = jax.tree.structure(shape)

    def run(constants: list[Array], *args: Any) -> Any:
        return tree.unflatten(eval_jaxpr(traced.jaxpr, constants, *jax.tree.leaves(args)))

    return run, traced.consts, jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shape)


def is_read(jaxpr: Any) -> list[bool]:
    """Whether a jaxpr reads each of its arguments."""
    read = {v for vs in [jaxpr.outvars, *(e.invars for e in jaxpr.eqns)] for v in vs if not hasattr(v, "val")}
    return [v in read for v in jaxpr.invars]


def of_used(closed: Any, used: Sequence[int]) -> Any:
    """A closed jaxpr as one of the arguments `used` alone; it reads no others."""

    def of(*x: Array) -> list[Array]:
        given = dict(zip(used, x, strict=True))
        full = [given.get(i, jnp.zeros(v.aval.shape, v.aval.dtype)) for i, v in enumerate(closed.jaxpr.invars)]
        return eval_jaxpr(closed.jaxpr, closed.consts, *full)

    structs = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in closed.jaxpr.invars]
    return jax.make_jaxpr(of)(*(structs[i] for i in used))


def merged(x: Array, dim: int | None, axis: int | None, outer: int, size: int) -> Array:
    """An operand of `outer` batches of `size` as one of a batch of outer * size.

    `dim` is its axis of outer batches; `axis` is 0 if it has inner ones, which then come first in the rest. None: it
    has none, and is repeated.
    """
    x = jnp.broadcast_to(x, (outer, *x.shape)) if dim is None else jnp.moveaxis(x, dim, 0)
    x = x if axis == 0 else jnp.broadcast_to(x[:, None], (outer, size, *x.shape[1:]))
    return x.reshape(outer * size, *x.shape[2:])


def in_parts(function: Callable[..., Any], limit: int, *operands: Array) -> Any:
    """The function of a batch (size, ...), computed for no more than `limit` at a time."""
    size = len(operands[0])
    if size <= limit:
        return function(*operands)
    count = -(-size // limit)
    width = -(-size // count)
    shape = jax.eval_shape(function, *operands)

    def part(i: Array, out: Any) -> Any:
        start = jnp.minimum(i * width, size - width)  # the last part reaches back, and finds some again
        mine = function(*[lax.dynamic_slice_in_dim(x, start, width) for x in operands])
        return jax.tree.map(lambda x, y: lax.dynamic_update_slice_in_dim(x, y, start, 0), out, mine)

    return lax.fori_loop(0, count, part, jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shape))


def rows_in_turn(function: Callable[..., Any], limit: int, *operands: Array) -> Any:
    """The function of rows (n, ...), of which a CPU computes `limit` at a time, and worlds of a batch one by one.

    For a function with many results on the way, which of a few rows stay in the processor's cache. It may close over
    traced arrays. Its derivatives are those of all rows at once, as is what other platforms compute.
    """
    together, constants, _ = without_constants(function, operands)
    parts, own, _ = without_constants(partial(in_parts, function, limit), operands)

    @custom_vmap
    def in_turn(*inputs: Any) -> Any:
        return parts(*inputs)

    @in_turn.def_vmap
    def _(size: int, batched: list[Any], *inputs: Any) -> tuple[Any, Any]:
        leaves, tree = jax.tree.flatten(inputs)
        mapped = jax.tree.leaves(batched)

        def world(mine: list[Array]) -> Any:
            rest = iter(mine)
            return in_turn(*tree.unflatten([next(rest) if b else x for x, b in zip(leaves, mapped, strict=True)]))

        out = lax.map(world, [x for x, b in zip(leaves, mapped, strict=True) if b])
        return out, jax.tree.map(lambda _: True, out)

    @jax.custom_jvp
    def differentiable(constants: list[Array], own: list[Array], *operands: Array) -> Any:
        return lax.platform_dependent(
            constants, own, *operands, cpu=lambda _, c, *x: in_turn(c, *x), default=lambda c, _, *x: together(c, *x)
        )

    @differentiable.defjvp
    def _(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        (constants, _, *rows), (change, _, *changes) = primals, tangents
        return differentiable(*primals), jax.jvp(together, (constants, *rows), (change, *changes))[1]

    return differentiable(constants, own, *operands)
