"""Batching rules: functions of whole batches, bounds shared by a batch, batches in parts."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.math.safe import Array
from jaxsim.xla.compat import custom_vmap, eval_jaxpr


@custom_vmap
def batch_max(x: Array) -> Array:
    """Return the largest value of `x` in the whole batch of `vmap`, equal in all worlds: a bound for loops.

    A loop whose bound differs between worlds computes every world in every round and selects. A loop with this bound
    does not select, but must not change the result of a world that needs fewer rounds. Not differentiable.
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
    """Return a function of batches (size, ...) that a CPU computes by `on_cpu(size)`.

    Nested `vmap` is flattened into one larger batch. Other platforms use `elsewhere`, if given. Derivatives are those
    of the function itself.
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
    # A branch whose condition differs between worlds is computed for all of them, its constants repeated per world.
    # So constants are operands here, which the rule for a larger batch does not touch.
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
        size = operands[0].shape[1 if batched[1] else 0]
        out = larger(*(merged(x, 0 if b else None, 0, outer, size) for x, b in zip(operands, batched[1:], strict=True)))
        return jax.tree.map(lambda x: x.reshape(outer, size, *x.shape[1:]), out), jax.tree.map(lambda _: True, out)

    return batch(constants, *operands)


def without_constants(
    function: Callable[..., Any], args: tuple[Any, ...]
) -> tuple[Callable[..., Any], list[Array], Any]:
    """Return a function of constants and `args` that closes over none, the constants, and zeros like its results.

    The function is traced here, and not again when it is called.
    """
    traced, shape = jax.make_jaxpr(function, return_shape=True)(*args)
    tree = jax.tree.structure(shape)

    def run(constants: list[Array], *args: Any) -> Any:
        return tree.unflatten(eval_jaxpr(traced.jaxpr, constants, *jax.tree.leaves(args)))

    return run, traced.consts, jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shape)


def is_read(jaxpr: Any) -> list[bool]:
    """Return whether a jaxpr reads each of its arguments."""
    read = {v for vs in [jaxpr.outvars, *(e.invars for e in jaxpr.eqns)] for v in vs if not hasattr(v, "val")}
    return [v in read for v in jaxpr.invars]


def depends(jaxpr: Any, on: Sequence[bool]) -> list[bool]:
    """Return whether each result depends on the arguments that `on` marks."""
    touched = {v for v, o in zip(jaxpr.invars, on, strict=True) if o}
    for eqn in jaxpr.eqns:
        if any(not hasattr(v, "val") and v in touched for v in eqn.invars):
            touched |= set(eqn.outvars)
    return [not hasattr(v, "val") and v in touched for v in jaxpr.outvars]


def of_used(closed: Any, used: Sequence[int]) -> Any:
    """Return a closed jaxpr as a function of the arguments `used`, the only ones that it reads."""
    return closed.replace(jaxpr=closed.jaxpr.replace(invars=[closed.jaxpr.invars[i] for i in used]))


def with_results(closed: Any, which: Sequence[int]) -> Any:
    """Return a closed jaxpr with only these results, without the equations that they do not need."""
    results = [closed.jaxpr.outvars[k] for k in which]
    live, needed = {v for v in results if not hasattr(v, "val")}, []
    for eqn in reversed(closed.jaxpr.eqns):
        if eqn.effects or not live.isdisjoint(eqn.outvars):
            needed.append(eqn)
            live |= {v for v in eqn.invars if not hasattr(v, "val")}
    return closed.replace(jaxpr=closed.jaxpr.replace(outvars=results, eqns=needed[::-1]))


def merged(x: Array, dim: int | None, axis: int | None, outer: int, size: int) -> Array:
    """Merge an operand of `outer` batches of `size` to a batch of outer * size.

    `dim` is its axis of outer batches; `axis` is 0 if it has inner batches, which then come first among the other axes.
    It is repeated where these are None.
    """
    x = jnp.broadcast_to(x, (outer, *x.shape)) if dim is None else jnp.moveaxis(x, dim, 0)
    x = x if axis == 0 else jnp.broadcast_to(x[:, None], (outer, size, *x.shape[1:]))
    return x.reshape(outer * size, *x.shape[2:])


def in_parts(function: Callable[..., Any], limit: int, *operands: Array) -> Any:
    """Return the function of a batch (size, ...), computed for at most `limit` entries at a time."""
    size = len(operands[0])
    if size <= limit:
        return function(*operands)
    count = -(-size // limit)
    width = -(-size // count)
    shape = jax.eval_shape(function, *operands)

    def part(i: Array, out: Any) -> Any:
        start = jnp.minimum(i * width, size - width)  # the last part overlaps the one before
        mine = function(*[lax.dynamic_slice_in_dim(x, start, width) for x in operands])
        return jax.tree.map(lambda x, y: lax.dynamic_update_slice_in_dim(x, y, start, 0), out, mine)

    return lax.fori_loop(0, count, part, jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shape))
