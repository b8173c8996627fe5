"""Batches of worlds, and worlds over devices and hosts."""

from jaxsim.parallel.batching import CompiledFunctions, batch_axes, batched, stack_models, warmup
from jaxsim.parallel.devices import make_mesh, over_devices, replicate, shard, shard_map, use_cores

__all__ = [
    "CompiledFunctions",
    "batch_axes",
    "batched",
    "make_mesh",
    "over_devices",
    "replicate",
    "shard",
    "shard_map",
    "stack_models",
    "use_cores",
    "warmup",
]
