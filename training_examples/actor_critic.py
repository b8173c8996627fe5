"""Parts of the actor-critic examples, PPO and SHAC: network, moments of observations, export, devices.

An update is one function of its device's worlds, which `over_devices` runs on the devices of a run. `mean_over_devices`
averages over them, with one all-reduce for a whole PyTree; one device is a mesh of one.
"""

from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import jaxsim
from jaxsim import envs
from jaxsim.envs.wrappers import first_moments, merge_moments, normalize

Array = Any
AXIS = "worlds"  # the name of the mesh's axis


PATCH = 4  # pixels of a side of what one layer of an encoder makes one pixel of
PIXELS = "pixels/"  # the names of pictures in an observation begin so


class Network(nn.Module):
    """Mean and log standard deviation of an action, and the value of what a critic sees: two towers of layers.

    Where the actor sees pictures, its tower begins with convolutions of `encoder` channels. The critic sees none. A
    convolution's stride is its width, so it is a product of matrices. The derivative of an overlapping one (widths 8, 4
    and strides 4, 2) takes 3.0 ms a picture inside of a compiled loop on a CPU, and this one 0.08 ms.
    """

    action_size: int
    hidden: tuple[int, ...]
    first_std: float
    activation: str
    encoder: tuple[int, ...] = ()

    def setup(self) -> None:
        """Layers of both towers, and of the encoder."""
        start = nn.initializers.orthogonal(2**0.5)
        self.convolutions = [nn.Dense(channels, kernel_init=start) for channels in self.encoder]

        def tower(out: int, scale: float) -> list[nn.Dense]:
            wide = [nn.Dense(width, kernel_init=start) for width in self.hidden]
            return [*wide, nn.Dense(out, kernel_init=nn.initializers.orthogonal(scale))]

        self.actor, self.critic = tower(self.action_size, 0.01), tower(1, 1.0)
        self.log_std = self.param("log_std", nn.initializers.constant(np.log(self.first_std)), (self.action_size,))

    def _apply(self, layers: list[nn.Dense], x: Array) -> Array:
        for layer in layers[:-1]:
            x = getattr(nn, self.activation)(layer(x))
        return layers[-1](x)

    def act(self, obs: dict[str, Array]) -> tuple[Array, Array]:
        """Mean and log standard deviation of the action."""
        x = obs["actor"]
        if "pixels" in obs:
            pictures = obs["pixels"]
            for layer in self.convolutions:
                pictures = getattr(nn, self.activation)(layer(envs.patches(pictures, PATCH)))
            x = jnp.concatenate([x, pictures.reshape(*x.shape[:-1], -1)], -1)
        return self._apply(self.actor, x), self.log_std

    def value(self, obs: Array) -> Array:
        """Value of an observation."""
        return self._apply(self.critic, obs)[..., 0]

    def __call__(self, obs: dict[str, Array]) -> tuple[Array, Array, Array]:
        """Mean, log standard deviation and value."""
        return *self.act(obs), self.value(obs["critic"])


def seen(obs: Any) -> dict[str, Array]:
    """What actor and critic see of an observation; a mapping may have a `privileged_state` for the critic alone.

    Pictures, entries whose names begin with `PIXELS`, are "pixels" for the actor, one after the other as channels.
    """
    if not isinstance(obs, dict):
        return {"actor": obs, "critic": obs}
    pictures = [obs[name] for name in sorted(obs) if name.startswith(PIXELS)]
    numbers = {"actor": obs["state"], "critic": obs.get("privileged_state", obs["state"])}
    return {**numbers, "pixels": jnp.concatenate(pictures, -1)} if pictures else numbers


def normal(moments: dict[str, Any], obs: dict[str, Array]) -> dict[str, Array]:
    """What `seen` gives, or some entries of it, normalised; of pictures each pixel is."""
    mean, square = ({name: moments[k][name] for name in obs} for k in ("mean", "square"))
    return normalize({"count": moments["count"], "mean": mean, "square": square}, obs)


def devices(s: Any) -> list[Any]:
    """Devices of a run with the settings `s`: the first `s.devices` of JAX, or all.

    Raises SystemExit if there are fewer, or if worlds and minibatches cannot be split evenly over them.
    """
    found = jax.devices()
    if s.devices > len(found):
        raise SystemExit(f"--devices {s.devices}: JAX has {len(found)}")
    found = found[: s.devices or None]
    if s.worlds % len(found) or s.worlds // len(found) * s.unroll % s.minibatches:
        split = f"{len(found)} devices and {s.minibatches} minibatches"
        raise SystemExit(f"{s.worlds} worlds x {s.unroll} actions cannot be split over {split}")
    return found


def first_run(trainer: Any, make: Any) -> Any:
    """`make(network_key, worlds, key)`, a run before its first update, on the devices of its trainer."""
    net, world, key = jax.random.split(jax.random.PRNGKey(trainer.s.seed), 3)
    return jax.device_put(make(net, trainer.worlds(world), key), trainer.sharding)


def over_devices(update: Any, spec: Any, used: list[Any]) -> tuple[Any, Any]:
    """Compiled `update(run) -> (run, log)` on the devices `used`, which donates `run`, and the sharding of a run.

    `spec` is a run of PartitionSpecs: worlds are split over the axis `AXIS`, the rest is the same on all devices.
    """
    mesh = jaxsim.parallel.make_mesh(used)
    body = jaxsim.parallel.shard_map(update, mesh, in_specs=(spec,), out_specs=(spec, P()))
    sharding = jax.tree.map(lambda p: NamedSharding(mesh, p), spec)
    return jaxsim.jit(body, donate_argnums=0, out_shardings=(sharding, NamedSharding(mesh, P()))), sharding


def own_key(key: Array) -> tuple[Array, Array]:
    """The next key of a run, and a key of this device."""
    key, own = jax.random.split(key)
    return key, jax.random.fold_in(own, jax.lax.axis_index(AXIS))


def mean_over_devices(tree: Any) -> Any:
    """Mean over devices, inside of an update: one all-reduce of all leaves as one vector."""
    flat, as_tree = ravel_pytree(tree)
    return as_tree(jax.lax.pmean(flat, AXIS))


def normalized(minibatches: Array) -> Array:
    """Minibatches (minibatches, entries) with mean 0 and deviation 1 over all devices: one all-gather."""
    own = minibatches.mean(1)
    parts = jax.lax.all_gather(jnp.stack([own, jnp.square(minibatches - own[:, None]).mean(1)]), AXIS)
    mean = parts[:, 0].mean(0)
    variance = (parts[:, 1] + jnp.square(parts[:, 0] - mean)).mean(0)
    return (minibatches - mean[:, None]) / (jnp.sqrt(variance)[:, None] + 1e-8)


def kl_divergence(mean: Array, log_std: Array, new: Array, new_log_std: Array) -> Array:
    """KL divergence of a diagonal normal distribution from a new one."""
    moved = jnp.exp(2 * log_std) + jnp.square(mean - new)
    return (new_log_std - log_std + moved / (2 * jnp.exp(2 * new_log_std)) - 0.5).sum(-1)


def next_rate(rate: Array, kl: Array, target: float) -> Array:
    """Learning rate after an update that changed the policy by the KL divergence `kl`; the same without a target."""
    if not target:
        return rate
    factor = jnp.where(kl > 2 * target, 1 / 1.5, jnp.where(kl < target / 2, 1.5, 1))
    return jnp.clip(rate * factor, 1e-5, 5e-3)


def new_moments(moments: dict[str, Any], obs: dict[str, Array]) -> dict[str, Any]:
    """Running moments of observations with those of all devices, inside of an update."""
    flat, as_tree = ravel_pytree(first_moments(obs))
    for own in jax.lax.all_gather(flat, AXIS):
        moments = merge_moments(moments, as_tree(own))
    return moments


def export(s: Any, params: Any, moments: dict[str, Any], path: Path) -> None:
    """Write the actor of a `Network` for `jaxsim.envs.load_policy`; `s` are the settings of a run."""
    layers = [params["params"][f"actor_{i}"] for i in range(len(s.hidden) + 1)]
    count, mean, square = (moments[k] for k in ("count", "mean", "square"))
    std = jax.tree.map(lambda x: jnp.sqrt(x / jnp.maximum(count, 1) + 1e-6), square)
    pairs = [(layer["kernel"], layer["bias"]) for layer in layers]
    encoder = [params["params"][name] for name in sorted(params["params"]) if name.startswith("convolutions_")]
    pictures = [(layer["kernel"], layer["bias"]) for layer in encoder]
    own = {"activation": s.activation, "env": s.env, "encoder": pictures}
    if "pixels" in mean:
        own["pixels"] = mean["pixels"], std["pixels"]
    envs.save_policy(path, pairs, mean["actor"], std["actor"], **own)
