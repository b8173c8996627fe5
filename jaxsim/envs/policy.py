"""Policies as plain NumPy: a network and the statistics of its observations, in one small file."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

ACTIVATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "tanh": lambda xp, x: xp.tanh(x),
    "elu": lambda xp, x: xp.where(x > 0, x, xp.expm1(xp.minimum(x, 0))),
    "swish": lambda xp, x: x / (1 + xp.exp(-xp.clip(x, -60, 60))),
}
FORMAT = 1


class Policy:
    """Function of an observation (..., n) that returns an action (..., action_size) in [-1, 1], in NumPy.

    It needs neither JAX nor the environment; inside of a traced function it is traced too. A mapping of observations is
    read at `key`; a policy with pictures also reads all names that begin with "pixels/". `sizes` are the widths of its
    layers, `encoder` the convolutions of pictures, `pixels` their mean and divisor, `env` the name of the task on which
    it was trained.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        if int(arrays.get("format", -1)) != FORMAT:
            raise ValueError(f"not a policy of format {FORMAT}: its arrays are {', '.join(arrays)}")
        self.env, self.key = str(arrays["env"]), str(arrays["key"])
        self.mean, self.std, self.limit = arrays["mean"], arrays["std"], float(arrays["limit"])
        count = sum(name.startswith("weight") for name in arrays)
        self.layers = [(arrays[f"weight{i}"], arrays[f"bias{i}"]) for i in range(count)]
        count = sum(name.startswith("kernel") for name in arrays)
        self.encoder = [(arrays[f"kernel{i}"], arrays[f"offset{i}"]) for i in range(count)]
        self.pixels = arrays.get("pixel_mean", np.zeros(())), arrays.get("pixel_std", np.ones(()))
        self._activation = ACTIVATIONS[str(arrays["activation"])]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Widths of the layers, the observation's first and the action's last."""
        return (self.layers[0][0].shape[0], *(w.shape[1] for w, _ in self.layers))

    def __call__(self, obs: Any) -> Any:
        """Action of an observation, without exploration noise."""
        action = self.unclipped(obs)
        return (jnp if isinstance(action, Tracer) else np).clip(action, -1, 1)

    def unclipped(self, obs: Any) -> Any:
        """Compute the action before it is clipped to [-1, 1]: this has derivatives everywhere."""
        x = obs[self.key] if isinstance(obs, Mapping) else obs
        xp = jnp if isinstance(x, Tracer) else np
        x = xp.asarray(x)
        taken = len(self.mean) if self.encoder else self.sizes[0]
        if x.shape[-1] != taken:
            raise ValueError(f"the policy of {self.env!r} takes {taken} observations, got {x.shape[-1]}")
        x = xp.clip((x - self.mean) / self.std, -self.limit, self.limit)
        if self.encoder:
            x = xp.concatenate([x, self._features(xp, obs).reshape(*x.shape[:-1], -1)], -1)
        for weight, bias in self.layers[:-1]:
            x = self._activation(xp, x @ weight + bias)
        weight, bias = self.layers[-1]
        return x @ weight + bias

    def _features(self, xp: Any, obs: Mapping[str, Any]) -> Any:
        """Last layer (..., height, width, channels) of the convolutions of an observation's pictures."""
        x = xp.concatenate([xp.asarray(obs[name]) for name in sorted(obs) if name.startswith("pixels/")], -1)
        x = xp.clip((x - self.pixels[0]) / self.pixels[1], -self.limit, self.limit)
        for kernel, bias in self.encoder:
            width = math.isqrt(kernel.shape[0] // x.shape[-1])
            x = self._activation(xp, patches(x, width) @ kernel + bias)
        return x


def patches(pictures: Any, width: int) -> Any:
    """Cut pictures (..., h, w, c) into squares of `width` pixels, as (..., h / width, w / width, width * width * c).

    Rows and columns that do not fill a square are left out.
    """
    *lead, height, across, channels = pictures.shape
    h, w = height // width, across // width
    x = pictures[..., : h * width, : w * width, :].reshape(*lead, h, width, w, width, channels)
    return x.swapaxes(-4, -3).reshape(*lead, h, w, width * width * channels)


def save_policy(
    path: str | os.PathLike,
    layers: Sequence[tuple[Any, Any]],
    mean: Any,
    std: Any,
    *,
    activation: str,
    env: str = "",
    key: str = "state",
    limit: float = 10.0,
    encoder: Sequence[tuple[Any, Any]] = (),
    pixels: tuple[Any, Any] | None = None,
) -> None:
    """Write a policy as an .npz file of float32 arrays.

    Args:
        path: of the file.
        layers: weight (inputs, outputs) and bias (outputs,) of each layer, the last without activation.
        mean: subtracted from an observation.
        std: divisor of an observation, after the mean is subtracted.
        activation: "tanh", "elu" or "swish".
        env: name of the task.
        key: where an observation that is a mapping is read.
        limit: to which normalised observations are clipped.
        encoder: weight (width * width * inputs, outputs) and bias of each convolution of pictures, which maps squares
            to pixels of the next (`patches`); the last follows the other observations as inputs of the first layer.
        pixels: mean and divisor of each pixel, as `mean` and `std`; without, pictures are taken as they are.
    """
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation={activation!r}: expected one of {', '.join(ACTIVATIONS)}")
    arrays: dict[str, Any] = {"mean": mean, "std": std, "limit": limit}
    for i, (weight, bias) in enumerate(layers):
        arrays |= {f"weight{i}": weight, f"bias{i}": bias}
    for i, (kernel, bias) in enumerate(encoder):
        arrays |= {f"kernel{i}": kernel, f"offset{i}": bias}
    if pixels is not None:
        arrays |= {"pixel_mean": pixels[0], "pixel_std": pixels[1]}
    small = {name: np.asarray(x, np.float32) for name, x in arrays.items()}
    text = {"format": np.asarray(FORMAT), "env": env, "key": key, "activation": activation}
    np.savez(path, allow_pickle=False, **small, **text)


def load_policy(path: str | os.PathLike) -> Policy:
    """Load the policy of a file of `save_policy`, such as `policy.npz` of a training run: `action = policy(obs)`."""
    with np.load(path, allow_pickle=False) as file:
        return Policy(dict(file))
