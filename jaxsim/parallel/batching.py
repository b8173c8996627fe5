"""Batches of worlds: axes of batched model fields, compiled batched functions, and compilation ahead of time."""

import functools
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.core.data import Data
from jaxsim.core.model import FLOATS, Model
from jaxsim.core.option import OPTION_FLOATS, STATISTICS
from jaxsim.engine import forward
from jaxsim.engine.initial import make_data
from jaxsim.xla.options import jit

Function = Callable[[Model, Data], Data]


def batch_axes(m: Model, names: Sequence[str]) -> Model:
    """Axes for `jax.vmap(..., in_axes=(axes, 0))`: 0 for the named float fields of the model, None elsewhere.

    Fields that are not named are shared by all worlds and not copied. Names of options and statistics are prefixed by
    "opt." or "stat.": `batch_axes(m, ["body_mass", "opt.gravity"])`. Raises ValueError for a name that is not a float
    field, since structure cannot differ between the worlds of a batch.
    """
    known = {*FLOATS, *(f"opt.{n}" for n in OPTION_FLOATS), *(f"stat.{n}" for n in STATISTICS)}
    for name in names:
        if name not in known:
            raise ValueError(f"{name!r} is not a float field of the model; only these can differ between worlds")
    axes = jax.tree.map(lambda _: None, m)
    parts = {part: {n.split(".")[1]: 0 for n in names if n.startswith(f"{part}.")} for part in ("opt", "stat")}
    opt, stat = axes.opt.replace(**parts["opt"]), axes.stat.replace(**parts["stat"])
    return axes.replace(opt=opt.replace(fluid=m.opt.fluid), stat=stat, **{n: 0 for n in names if "." not in n})


@functools.cache
def batched(function: Function = forward.step) -> Function:
    """Compiled `function(m, d)` for a batch of worlds that share the model; cached, so that all callers share it."""
    return jit(jax.vmap(function, in_axes=(None, 0)))


@functools.cache
def single(function: Function = forward.step) -> Function:
    """Compiled `function(m, d)` for one world; cached, so that all callers share it."""
    return jit(function)


class CompiledFunctions(NamedTuple):
    """Compiled functions in the order of the arguments, and the seconds of the first call of each."""

    functions: tuple[Function, ...]
    seconds: tuple[float, ...]


def warmup(m: Model, nworld: int | None = None, functions: Sequence[Function] = (forward.step,)) -> CompiledFunctions:
    """Compile functions ahead of time, for one world (None) or a batch of `nworld`, by calling each once.

    Calls of the returned functions do not compile again. With JAX's persistent cache
    (`jax.config.update("jax_compilation_cache_dir", folder)`), later processes load what this one compiled, whichever
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
    return CompiledFunctions(ready, tuple(seconds))
