"""Batches of worlds: axes of batched model fields, compiled batched functions, and compilation ahead of time."""

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import CAPACITIES, FLOATS, SIZES, Model
from jaxsim.core.option import OPTION_FLOATS, STATISTICS
from jaxsim.engine.step import forward
from jaxsim.engine.step.initial import make_data
from jaxsim.xla.options import jit

Function = Callable[[Model, Data], Data]
MOST_NAMED = 5  # fields in a message


def batch_axes(m: Model, names: Sequence[str]) -> Model:
    """Return axes for `jax.vmap(..., in_axes=(axes, 0))`: 0 for the model's named float fields, None elsewhere.

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


def stack_models(models: Sequence[Model]) -> Model:
    """Stack models with an axis of worlds in every number: `jax.vmap(jaxsim.step)(stack_models(models), worlds)`.

    The axis comes first. The models have the same structure: bodies, joints, types of geoms, names, options and
    capacities. Raises ValueError that says which fields differ.
    """
    if not models:
        raise ValueError("stack_models needs at least one model")
    first = models[0]
    for i, other in enumerate(models[1:], start=1):
        if jax.tree.structure(other) != jax.tree.structure(first):
            raise ValueError(f"models 0 and {i} differ in {'; '.join(_differences(first, other)) or 'their kinds'}")
    return jax.tree.map(lambda *x: jnp.stack(x), *models)


def _differences(a: Model, b: Model) -> list[str]:
    """What differs in the structure of two models, in words; sizes first, without what follows from them."""
    ours, theirs = ({**m.structure.values(), **{f"opt.{n}": getattr(m.opt, n) for n in m.opt.STATIC}} for m in (a, b))
    sizes = [name for name in SIZES if ours[name] != theirs[name]]
    names = sizes or [name for name in ours if not _same(ours[name], theirs[name])]
    found = [_difference(name, ours[name], theirs[name]) for name in names if name != "bvh_aabb" or len(names) == 1]
    capacities = [n for n in CAPACITIES if n in names]
    if names and len(capacities) == len(names):
        found.append("load them with " + ", ".join(f"{n}={max(ours[n], theirs[n])}" for n in capacities))
    more = [f"and {len(found) - MOST_NAMED} more fields"] if len(found) > MOST_NAMED else []
    return found[:MOST_NAMED] + more


def _same(x: Any, y: Any) -> bool:
    return bool(np.array_equal(x, y)) if isinstance(x, np.ndarray) else x == y


def _difference(name: str, x: Any, y: Any) -> str:
    if isinstance(x, np.ndarray) and x.shape == y.shape:
        place = tuple(int(i) for i in np.argwhere(x != y)[0])
        return f"{name}[{', '.join(map(str, place))}] ({x[place]} and {y[place]})"
    short = isinstance(x, (int, float, str))
    return f"{name} ({x} and {y})" if short else name


@functools.cache
def batched(function: Function = forward.step) -> Function:
    """Compile `function(m, d)` for a batch of worlds that share the model; cached, so that all callers share it."""
    return jit(jax.vmap(function, in_axes=(None, 0)))


@functools.cache
def single(function: Function = forward.step) -> Function:
    """Compile `function(m, d)` for one world; cached, so that all callers share it."""
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
    d = make_data(m, nworld=nworld)
    ready = tuple((single if nworld is None else batched)(function) for function in functions)
    seconds = []
    for function in ready:
        start = time.perf_counter()
        jax.block_until_ready(function(m, d))
        seconds.append(time.perf_counter() - start)
    return CompiledFunctions(ready, tuple(seconds))
