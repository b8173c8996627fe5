"""Tasks with camera observations: pictures by ray casting, in JAX, instead of exact numbers."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.core.data import Data
from jaxsim.envs.base import Info, State, first_state
from jaxsim.envs.wrappers import Wrapper
from jaxsim.math.safe import Array
from jaxsim.viewer.frames import place
from jaxsim.viewer.raycast import render

PICTURES = {"depth": 1, "rgb": 3}  # kinds, and their channels


class Vision(Wrapper):
    """Environment of one world whose policy sees pictures of a camera of the model.

    Observation, a mapping. "pixels/view_0": the last `frames` pictures in [0, 1], (height, width, frames * channels),
    the newest first. "state": the last action. "privileged_state": the observation of the inner environment, for the
    critic only. If that observation is a mapping, its entries are added to the pictures instead.

    A picture shows the current positions of the state. Depth is encoded as 1 - depth / `reach`, zero beyond `reach`
    (m): near objects are bright. Colours are without shadows.

    Args:
        env: an environment of one world.
        camera: id or name of a camera of its model.
        picture: "depth" or "rgb".
        size: width and height in pixels.
        frames: pictures in an observation, so that it contains velocities.
        reach: distance in m from which depth is zero.

    Raises:
        ValueError: there is no such kind of picture, or no frame.
        KeyError: the model has no such camera.
    """

    def __init__(
        self,
        env: Any,
        camera: int | str = 0,
        picture: str = "depth",
        size: tuple[int, int] = (64, 64),
        frames: int = 3,
        reach: float = 5.0,
    ):
        super().__init__(env)
        if picture not in PICTURES:
            raise ValueError(f"picture={picture!r}: expected one of {', '.join(PICTURES)}")
        if frames < 1:
            raise ValueError(f"frames={frames}: an observation has at least one picture")
        self.camera, self.picture, self.size = camera, picture, size
        self.frames, self.reach = frames, reach
        jax.eval_shape(self.reset, jax.random.PRNGKey(0))  # an unknown camera is an error here

    @property
    def observation_size(self) -> dict[str, tuple[int, ...]]:
        """Shapes of an observation's entries by name."""
        return {k: v.shape for k, v in jax.eval_shape(self.reset, jax.random.PRNGKey(0)).obs.items()}

    def look(self, data: Data) -> Array:
        """One picture (height, width, channels) of a state."""
        m = self.env.model
        image = render(m, place(m, data), self.camera, *self.size, shadows=False)
        if self.picture == "rgb":
            return image.rgb.astype(data.qpos.dtype)
        return jnp.clip(1 - image.depth / self.reach, 0, 1)[..., None].astype(data.qpos.dtype)

    def reset(self, rng: Array, last: Info | None = None) -> State:
        """First state; all pictures of its observation are the same."""
        state = first_state(self.env, rng, last)
        pictures = jnp.tile(self.look(state.data), self.frames)
        return self._seen(state, pictures, jnp.zeros(self.action_size, pictures.dtype))

    def step(self, state: State, action: Array) -> State:
        """State after one action, with a new picture."""
        state = self.env.step(state, action)
        old = state.info["pictures"]
        new = self.look(state.data)
        pictures = jnp.concatenate([new, old[..., : old.shape[-1] - new.shape[-1]]], -1)
        return self._seen(state, pictures, jnp.clip(jnp.asarray(action, pictures.dtype), -1, 1))

    def _seen(self, state: State, pictures: Array, action: Array) -> State:
        exact = state.obs
        rest = exact if isinstance(exact, Mapping) else {"state": action, "privileged_state": exact}
        info = {**state.info, "pictures": pictures}
        return state.replace(obs={**rest, "pixels/view_0": pictures}, info=info)
