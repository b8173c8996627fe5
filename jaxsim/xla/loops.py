"""Loops whose length differs from world to world."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.math.safe import Array
from jaxsim.xla.batching import merged, without_constants
from jaxsim.xla.compat import custom_vmap, dce_jaxpr, eval_jaxpr

# Worlds per group of a round on a CPU; LLVM would unroll loops of up to 32 short iterations, not vectorise them.
GROUP = 40


def traced_once(function: Callable[..., Any], *args: Any) -> tuple[Callable[..., Any], Any]:
    """Return the function traced for `args`, and zeros like its results.

    If the shapes of results are needed before the call, `jax.eval_shape` would trace the function twice at each level
    of nesting.
    """
    run, constants, zeros = without_constants(function, args)
    return partial(run, constants), zeros


def without_unused(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function without operations whose results are not used.

    XLA removes those of its own. A native program computes all its results, unless the body of a loop leaves them out.
    """

    def run(*args: Any) -> Any:
        traced, shape = jax.make_jaxpr(function, return_shape=True)(*args)
        used, _ = dce_jaxpr(traced.jaxpr, [True] * len(traced.jaxpr.outvars), instantiate=True)
        found = eval_jaxpr(used, traced.consts, *jax.tree.leaves(args))
        return jax.tree.unflatten(jax.tree.structure(shape), found)

    return run


def when(needed: Array, function: Callable[[], Any]) -> Any:
    """Return `function()` where it is `needed`, else zeros."""
    run, zeros = traced_once(function)
    return lax.cond(needed, run, lambda: zeros)


def computed_anyway(needed: Array, function: Callable[[], Any]) -> Any:
    """Return the same result as `when`, with the function always computed.

    Use it if some worlds of a batch need the function: a branch in a batch is computed for all worlds too, and the
    values that it closes over, tables included, are repeated for each.
    """
    return jax.tree.map(lambda x: jnp.where(needed, x, jnp.zeros_like(x)), function())


class RowCopies(NamedTuple):
    """Functions that copy rows of arrays of a batch: `take(places, arrays)` returns the rows at these places, which end
    with the last, and `put(places, arrays, rows)` arrays with such rows, without those at places after the last."""

    take: Callable[[Array, Sequence[Array]], Sequence[Array]]
    put: Callable[[Array, Sequence[Array], Sequence[Array]], Sequence[Array]]


def _take(places: Array, arrays: Sequence[Array]) -> list[Array]:
    return [x.at[places].get(mode="clip") for x in arrays]


def _put(places: Array, arrays: Sequence[Array], rows: Sequence[Array]) -> list[Array]:
    return [x.at[places].set(r, mode="drop") for x, r in zip(arrays, rows, strict=True)]


COPIES = RowCopies(_take, _put)


def while_each(
    cond: Callable[[Any], Array],
    body: Callable[[Any], Any],
    state: Any,
    group: int = GROUP,
    copies: RowCopies = COPIES,
) -> Any:
    """Repeat `state = body(state)` while `cond(state)`; in a batch on a CPU, only for active worlds.

    Under `vmap` a plain loop computes every world in every round, until the last one has finished. On a CPU each round
    here gathers the active worlds, in groups of `group`, and scatters the results. The state keeps its dtypes. A loop
    within a group gathers again if its own group is smaller. `copies` gathers and scatters. Not differentiable.
    """
    start, tree = jax.tree.flatten(state)

    def typed(*s: Array) -> list[Array]:
        new = jax.tree.leaves(body(tree.unflatten(s)))
        return [jnp.asarray(y, x.dtype) for x, y in zip(s, new, strict=True)]

    step = jax.make_jaxpr(typed)(*start)
    test = jax.make_jaxpr(lambda *s: cond(tree.unflatten(s)))(*start)
    split = len(step.consts)  # constants of both functions, which a batch may batch

    def go(consts: list[Array], s: list[Array]) -> Array:
        return eval_jaxpr(test.jaxpr, consts[split:], *s)[0]

    def advance(consts: list[Array], s: list[Array]) -> list[Array]:
        return eval_jaxpr(step.jaxpr, consts[:split], *s)

    return tree.unflatten(_loop(go, advance, group, copies)([*step.consts, *test.consts], start))


def where_needed(needed: Array, function: Callable[[], Any], otherwise: Any, copies: RowCopies = COPIES) -> Any:
    """Return `function()` where it is `needed`, else `otherwise`; in a batch on a CPU, computed only for such worlds.

    Not differentiable.
    """
    start = needed, otherwise
    return while_each(lambda s: s[0], lambda s: (jnp.zeros_like(s[0]), function()), start, GROUP, copies)[1]


def repeat(count: Array | int, body: Callable[[Array, Any], Any], state: Any) -> Any:
    """Repeat `state = body(i, state)` for i from 0 to `count` - 1, an int32 in either precision."""
    return lax.fori_loop(0, count, lambda i, s: body(jnp.asarray(i, jnp.int32), s), state)


def _loop(cond: Callable[..., Array], body: Callable[..., Any], group: int, copies: RowCopies) -> Callable[..., Any]:
    @custom_vmap
    def loop(consts: list[Array], state: Any) -> Any:
        return lax.while_loop(lambda s: cond(consts, s), lambda s: body(consts, s), state)

    @loop.def_vmap
    def _(size: int, batched: list[Any], consts: list[Array], state: Any) -> tuple[Any, Any]:
        axes = [0 if b else None for b in batched[0]]
        state = jax.tree.map(lambda x, b: x if b else jnp.broadcast_to(x, (size, *jnp.shape(x))), state, batched[1])
        return _batch(cond, body, size, axes, group, copies)(consts, state), jax.tree.map(lambda _: True, state)

    return loop


def _batch(
    cond: Callable[..., Array],
    body: Callable[..., Any],
    size: int,
    axes: list[int | None],
    group: int,
    copies: RowCopies,
) -> Callable[..., Any]:
    """Run the loop of a whole batch; nested `vmap` is flattened into one batch."""

    def together(consts: list[Array], state: Any) -> Any:
        one = lambda c, s: lax.while_loop(lambda s: cond(c, s), lambda s: body(c, s), s)  # noqa: E731
        return jax.vmap(one, in_axes=(axes, 0))(consts, state)

    def in_groups(consts: list[Array], state: Any) -> Any:
        going, advance = (jax.vmap(f, in_axes=(axes, 0)) for f in (cond, body))
        return _in_groups(size, axes, group, copies, going, advance, consts, state)

    @custom_vmap
    def batch(consts: list[Array], state: Any) -> Any:
        if size <= group:
            return together(consts, state)
        return lax.platform_dependent(consts, state, cpu=in_groups, default=together)

    @batch.def_vmap
    def _(outer: int, batched: list[Any], consts: list[Array], state: Any) -> tuple[Any, Any]:
        def flat(x: Array, out: bool, inside: bool) -> Array:
            return merged(x, 0 if out else None, 0 if inside else None, outer, size)

        of = [(x, b, a == 0) for x, b, a in zip(consts, batched[0], axes, strict=True)]
        consts = [flat(*c) if c[1] or c[2] else c[0] for c in of]
        state = jax.tree.map(lambda x, b: flat(x, b, True), state, batched[1])
        new = jax.vmap(_loop(cond, body, group, copies), in_axes=([0 if b or a else None for _, b, a in of], 0))(
            consts, state
        )
        return jax.tree.map(lambda x: x.reshape(outer, size, *x.shape[1:]), new), jax.tree.map(lambda _: True, new)

    return batch


def _in_groups(
    size: int,
    axes: list[int | None],
    group: int,
    copies: RowCopies,
    going: Callable[..., Array],
    advance: Callable[..., Any],
    consts: list[Array],
    state: Any,
) -> Any:
    """Compute rounds of active worlds only, `group` at a time; they come first in `order`."""
    pad = jnp.full(-size % group, size, jnp.int32)

    def rounds(carry: tuple[list[Array], Array]) -> tuple[list[Array], Array]:
        state, active = carry
        order = lax.sort(jnp.where(active, lax.iota(jnp.int32, size), size))  # `size` is no world's place
        order = jnp.concatenate([order, pad])

        def some(i: Array, state: list[Array]) -> list[Array]:
            place = lax.dynamic_slice_in_dim(order, i * group, group)
            own = [x for x, a in zip(consts, axes, strict=True) if a == 0]
            rows = iter(copies.take(place, [*own, *state]))
            mine = [next(rows) if a == 0 else x for x, a in zip(consts, axes, strict=True)]
            return list(copies.put(place, state, advance(mine, list(rows))))

        state = lax.fori_loop(0, (jnp.sum(active) + group - 1) // group, some, state)
        return state, going(consts, state)

    return lax.while_loop(lambda carry: carry[1].any(), rounds, (state, going(consts, state)))[0]
