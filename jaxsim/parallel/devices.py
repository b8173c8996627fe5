"""Worlds spread over devices and hosts with JAX's own sharding: data parallel, nothing exchanged during a step."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxsim.xla.options import jit

AXIS = "worlds"


def use_cores(count: int | None = None) -> int:
    """Make each CPU core a device, so that `shard` and `over_devices` spread worlds over the cores; returns how many.

    XLA runs one program on one device with little of the other cores: its kernels are too small to share. `count` is
    by default all cores that this process may use. XLA's pool gets as many threads as there are devices, unless the
    environment says otherwise (`NPROC`): spare ones take kernels, and their data, from one core to another. Call it
    before JAX computes anything; raises RuntimeError after.
    """
    if count is None:
        count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    jax.config.update("jax_num_cpu_devices", count)
    os.environ.setdefault("NPROC", str(count))
    return count


def make_mesh(devices: Sequence[Any] | None = None) -> Mesh:
    """A mesh of one axis, over all devices of all processes unless devices are given."""
    return Mesh(np.array(jax.devices() if devices is None else devices), (AXIS,))


def shard(worlds: Any, mesh: Mesh | None = None) -> Any:
    """A batch of worlds (any PyTree with a leading axis of worlds) spread evenly over the devices of a mesh.

    With one process, `worlds` is the whole batch. With several (after `jax.distributed.initialize()`), each process
    passes the worlds of its own devices and gets the global batch. Raises ValueError where the devices do not divide
    the number of worlds.
    """
    mesh = make_mesh() if mesh is None else mesh
    sharding = NamedSharding(mesh, P(AXIS))
    local = [d for d in mesh.devices.flat if d.process_index == jax.process_index()]
    count = len(jax.tree.leaves(worlds)[0])
    if count % len(local):
        raise ValueError(f"{count} worlds cannot be spread evenly over {len(local)} devices")
    if jax.process_count() == 1:
        return jax.device_put(worlds, sharding)
    return jax.tree.map(lambda x: jax.make_array_from_process_local_data(sharding, np.asarray(x)), worlds)


def replicate(tree: Any, mesh: Mesh | None = None) -> Any:
    """A PyTree that all worlds share, such as a model, copied to every device of a mesh."""
    return jax.device_put(tree, NamedSharding(make_mesh() if mesh is None else mesh, P()))


def over_devices(function: Callable, mesh: Mesh | None = None, shared: int = 1) -> Callable:
    """Compile a function of a batch so that every device runs it on its own worlds.

    The first `shared` arguments (the model) are the same for all; all others, and all results, have a leading axis of
    worlds. Each device loops until its own worlds are done: a program for the whole batch would ask every device, at
    every iteration of the solver, whether any world anywhere goes on.

        step = jaxsim.over_devices(jax.vmap(jaxsim.step, in_axes=(None, 0)))
        worlds = step(jaxsim.replicate(m), jaxsim.shard(worlds))
    """
    mesh = make_mesh() if mesh is None else mesh

    def run(*args: Any) -> Any:
        specs = tuple(P() if i < shared else P(AXIS) for i in range(len(args)))
        return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=P(AXIS), check_vma=False)(*args)

    return jit(run, out_shardings=NamedSharding(mesh, P(AXIS)))  # arrays without entries would count as replicated
