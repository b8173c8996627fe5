"""Data parallelism over devices and hosts with JAX's sharding: worlds are split, and a step needs no communication."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxsim.native.compiler import cores
from jaxsim.xla.compat import eval_jaxpr
from jaxsim.xla.options import jit

AXIS = "worlds"


def use_cores(count: int | None = None) -> int:
    """Make each CPU core a JAX device, so that `shard` and `over_devices` use all cores; returns their number.

    A program on one CPU device makes little use of the other cores, since its kernels are too small to be split.
    `count` is by default the number of cores that this process may use. XLA's thread pool gets as many threads as
    there are devices unless the environment variable `NPROC` is set: with more, kernels and their data move between
    cores. Call it before JAX computes anything; raises RuntimeError afterwards.
    """
    if count is None:
        count = cores()
    jax.config.update("jax_num_cpu_devices", count)
    os.environ.setdefault("NPROC", str(count))
    return count


def make_mesh(devices: Sequence[Any] | None = None) -> Mesh:
    """Make a mesh of one axis, over all devices of all processes unless devices are given."""
    return Mesh(np.array(jax.devices() if devices is None else devices), (AXIS,))


def shard(worlds: Any, mesh: Mesh | None = None) -> Any:
    """Batch of worlds (any PyTree with a leading axis of worlds) split evenly over the devices of a mesh.

    With one process, `worlds` is the whole batch. With several (after `jax.distributed.initialize()`), each process
    passes the worlds of its own devices and gets the global batch. Raises ValueError where the devices do not divide
    the number of worlds.
    """
    mesh = make_mesh() if mesh is None else mesh
    sharding = NamedSharding(mesh, P(AXIS))
    local = [d for d in mesh.devices.flat if d.process_index == jax.process_index()]
    count = len(jax.tree.leaves(worlds)[0])
    if count % len(local):
        raise ValueError(f"{count} worlds cannot be split evenly over {len(local)} devices")
    if jax.process_count() == 1:
        return jax.device_put(worlds, sharding)
    return jax.tree.map(lambda x: jax.make_array_from_process_local_data(sharding, np.asarray(x)), worlds)


def replicate(tree: Any, mesh: Mesh | None = None) -> Any:
    """Copy a PyTree that all worlds share, such as a model, to every device of a mesh."""
    return jax.device_put(tree, NamedSharding(make_mesh() if mesh is None else mesh, P()))


def shard_map(function: Callable, mesh: Mesh, in_specs: Any, out_specs: Any) -> Callable:
    """Call `jax.shard_map` without its check, which loops of a step fail, and without empty arrays as operands.

    Arguments of `function` that have no entries, and such constants that it refers to, are made on each device.
    """

    # XLA of jaxlib 0.11.2 ends the process when an operand of a shard_map has no entries: it replaces the operand by a
    # constant without a sharding. Model and Data have many. Operands that are not used are removed by JAX.
    def body(*args: Any) -> Any:
        args = jax.tree.map(_with_entries, args)
        closed, out = jax.make_jaxpr(function, return_shape=True)(*args)
        found = eval_jaxpr(closed.jaxpr, [_with_entries(x) for x in closed.consts], *jax.tree.leaves(args))
        return jax.tree.unflatten(jax.tree.structure(out), found)

    return jax.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)


def _with_entries(x: Any) -> Any:
    return x if x.size else jnp.zeros_like(x)


def over_devices(function: Callable, mesh: Mesh | None = None, shared: int = 1) -> Callable:
    """Compile a function of a batch so that every device runs it on its own worlds.

    The first `shared` arguments (the model) are replicated; all others, and all results, have a leading axis of
    worlds. The loops of a device end when its own worlds have converged. A program for the whole batch would
    synchronise all devices at every iteration of the solver.

        step = jaxsim.over_devices(jax.vmap(jaxsim.step, in_axes=(None, 0)))
        worlds = step(jaxsim.replicate(m), jaxsim.shard(worlds))
    """
    mesh = make_mesh() if mesh is None else mesh

    def run(*args: Any) -> Any:
        specs = tuple(P() if i < shared else P(AXIS) for i in range(len(args)))
        return shard_map(function, mesh, specs, P(AXIS))(*args)

    return jit(run, out_shardings=NamedSharding(mesh, P(AXIS)))  # explicit, since empty arrays count as replicated
