"""Batches of worlds: which leaves of a model have an axis of worlds, compiled batches of a function, and warming up."""

import functools
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.core.data import Data
from jaxsim.core.model import FLOATS, OPTION_FLOATS, Model, Statistic
from jaxsim.engine import forward
from jaxsim.engine.initial import make_data
from jaxsim.xla.options import jit

Function = Callable[[Model, Data], Data]


def batch_axes(m: Model, names: Sequence[str]) -> Model:
    """Axes for `jax.vmap(..., in_axes=(axes, 0))`: an axis of worlds on the named numbers of the model, none elsewhere.

    What is not named is shared by all worlds and never copied. Names are those of floats of `Model`, with "opt." or
    "stat." before those of options and statistics: `batch_axes(m, ["body_mass", "opt.gravity"])`. Raises ValueError for
    a name that is not a number of the model (structure cannot differ between the worlds of a batch).
    """
    known = {*FLOATS, *(f"opt.{n}" for n in OPTION_FLOATS), *(f"stat.{n}" for n in Statistic._fields)}
    for name in names:
        if name not in known:
            raise ValueError(f"{name!r} is not a number of the model that can differ between worlds")
    axes = jax.tree.map(lambda _: None, m)
    parts = {part: {n.split(".")[1]: 0 for n in names if n.startswith(f"{part}.")} for part in ("opt", "stat")}
    opt, stat = axes.opt.replace(**parts["opt"]), axes.stat._replace(**parts["stat"])
    return axes.replace(opt=opt.replace(medium=m.opt.medium), stat=stat, **{n: 0 for n in names if "." not in n})


@functools.cache
def batched(function: Function = forward.step) -> Function:
    """`function(m, d)` for a batch of worlds that share the model, compiled; the same one for every caller."""
    return jit(jax.vmap(function, in_axes=(None, 0)))


@functools.cache
def single(function: Function = forward.step) -> Function:
    """`function(m, d)` for one world, compiled; the same one for every caller."""
    return jit(function)


class Warm(NamedTuple):
    """Compiled functions in the order in which they were asked for, and the seconds of the first call of each."""

    functions: tuple[Function, ...]
    seconds: tuple[float, ...]


def warmup(m: Model, nworld: int | None = None, functions: Sequence[Function] = (forward.step,)) -> Warm:
    """Compile ahead what a program will call, for one world (None) or a batch of `nworld`; each is called once.

    Calls of the functions returned compile nothing more. With JAX's persistent cache on
    (`jax.config.update("jax_compilation_cache_dir", folder)`), later processes load what this one compiled, whatever
    `jax.jit` they call it through.
    """
    d = make_data(m)
    if nworld is not None:
        d = jax.tree.map(lambda x: jnp.broadcast_to(x, (nworld, *x.shape)), d)
    ready = tuple((single if nworld is None else batched)(function) for function in functions)
    seconds = []
    for function in ready:
        start = time.perf_counter()
        jax.block_until_ready(function(m, d))
        seconds.append(time.perf_counter() - start)
    return Warm(ready, tuple(seconds))
