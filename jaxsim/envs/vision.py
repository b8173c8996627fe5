"""Tasks with camera observations: pictures by ray casting, in JAX, instead of exact numbers."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.envs.base import Config, Info, State, first_state, observation_size, raw_key
from jaxsim.envs.wrappers import ModelDraw, Wrapper
from jaxsim.math.rotation import quat_mul, rotvec_to_quat
from jaxsim.math.safe import Array
from jaxsim.viewer.frames import place
from jaxsim.viewer.raycast import camera_id, render_many
from jaxsim.viewer.scene import DEFAULT_RGBA

PICTURES = {"depth": 1, "rgb": 3, "rgbd": 4}  # kinds, and their channels
Noise = Callable[[Array, Array], Array]


class Vision(Wrapper):
    """Environment of one world whose policy sees pictures of cameras of the model.

    Observation, a mapping. "pixels/view_0", "pixels/view_1", ...: of each camera the last `frames` pictures in [0, 1],
    (height, width, frames * channels), the newest first. "state": the last action. "privileged_state": the observation
    of the inner environment, for the critic only. If that observation is a mapping, its entries are added to the
    pictures instead.

    Derivatives do not pass through the pictures of an observation; those of `look` do.

    A picture shows the positions of the state in which it was taken. Depth is encoded as 1 - depth / `reach`, zero
    beyond `reach` (m): near objects are bright. `info["vision"]` holds the pictures that were taken.

    Args:
        env: an environment of one world.
        camera: id or name of a camera of its model, or a sequence of them.
        picture: "depth", "rgb", or "rgbd": colours, then depth.
        size: width and height in pixels, of all cameras, or one pair for each.
        frames: pictures in an observation, so that it contains velocities.
        reach: distance in m from which depth is zero.
        samples: rays along each side of a pixel, which shows their mean.
        shadows: whether to draw shadows.
        every: actions from one picture to the next; in between the observation keeps its pictures.
        delay: actions by which pictures arrive late, or a range `(least, most)` to draw from for each episode.
        noise: standard deviation of the noise of pixels, or a function `(rng, picture) -> picture`; the result is
            clipped to [0, 1].
        randomize: `(model, rng) -> model`, drawn for each episode, such as `random_look`. It changes what is seen,
            not the physics. What it draws is in `info["vision"]["model"]`, by path.

    Raises:
        ValueError: an argument has no meaning.
        KeyError: the model has no such camera.
    """

    def __init__(
        self,
        env: Any,
        camera: int | str | Sequence[int | str] = 0,
        picture: str = "depth",
        size: tuple[int, int] | Sequence[tuple[int, int]] = (64, 64),
        frames: int = 3,
        reach: float = 5.0,
        *,
        samples: int = 1,
        shadows: bool = False,
        every: int = 1,
        delay: int | tuple[int, int] = 0,
        noise: float | Noise = 0.0,
        randomize: Callable[[Model, Array], Model] | None = None,
    ):
        super().__init__(env)
        if picture not in PICTURES:
            raise ValueError(f"picture={picture!r}: expected one of {', '.join(PICTURES)}")
        if frames < 1:
            raise ValueError(f"frames={frames}: an observation has at least one picture")
        if every < 1 or samples < 1:
            raise ValueError(f"every={every}, samples={samples}: both are at least 1")
        self.least, self.most = (delay, delay) if isinstance(delay, int) else delay
        if not 0 <= self.least <= self.most:
            raise ValueError(f"delay={delay}: expected 0 <= least <= most")
        self.cameras = [camera] if isinstance(camera, int | str) else list(camera)
        pairs = np.asarray(size, int)
        if pairs.shape not in ((2,), (len(self.cameras), 2)) or (pairs < 1).any():
            raise ValueError(
                f"size={size}: expected (width, height), or a pair for each of {len(self.cameras)} cameras"
            )
        self.sizes = np.broadcast_to(pairs, (len(self.cameras), 2)).tolist()
        self.picture, self.frames, self.reach = picture, frames, reach
        self.samples, self.shadows, self.every, self.noise = samples, shadows, every, noise
        self._looks = None if randomize is None else ModelDraw(env.model, randomize, derive=False)
        for one in self.cameras:
            camera_id(env.model, one)  # an unknown camera is an error here

    @property
    def views(self) -> tuple[str, ...]:
        """Names of the pictures in an observation, one for each camera."""
        return tuple(f"pixels/view_{i}" for i in range(len(self.cameras)))

    @property
    def observation_size(self) -> dict[str, tuple[int, ...]]:
        """Shapes of an observation's entries by name."""
        return observation_size(self)

    @property
    def observation_bounds(self) -> dict[str, tuple[float, float]]:
        """Least and greatest values of an observation's entries by name, where there are bounds."""
        return {**getattr(self.env, "observation_bounds", {}), **dict.fromkeys(self.views, (0.0, 1.0))}

    def look(self, data: Data, model: Model | None = None, draw: Array | bool = True) -> dict[str, Array]:
        """Render pictures (height, width, channels) of a state by name, without noise.

        `model`: what is seen, by default the environment's. `draw`: if false, no ray is cast and pictures are zero.
        """
        m = self.env.model if model is None else model
        width, height = (self.samples * np.array(self.sizes)).T.tolist()
        options = {"shadows": self.shadows, "draw": draw, "one_search": self.picture == "rgbd"}
        images = render_many(m, place(m, data), self.cameras, width, height, **options)
        found = {}
        for name, image in zip(self.views, images, strict=True):
            near = jnp.clip(1 - image.depth / self.reach, 0, 1)[..., None]
            parts = {"depth": [near], "rgb": [image.rgb], "rgbd": [image.rgb, near]}[self.picture]
            pixels = jnp.concatenate(parts, -1).astype(data.qpos.dtype)
            h, w, channels = pixels.shape
            fine = pixels.reshape(h // self.samples, self.samples, w // self.samples, self.samples, channels)
            found[name] = fine.mean((1, 3))
        return found

    def reset(self, rng: Array, last: Info | None = None) -> State:
        """Reset the environment; all pictures of the first observation are the same."""
        rng, look, late, noise = jax.random.split(rng, 4)
        state = first_state(self.env, rng, last)
        own = {"age": jnp.int32(0), "delay": jax.random.randint(late, (), self.least, self.most + 1)}
        if self._looks is not None:
            own["model"] = self._looks.numbers(self.env.model, look)
        noise, draw = jax.random.split(noise)
        if self.noise:
            own["rng"] = raw_key(noise)
        taken = self.frames - (-self.most // self.every)  # pictures that an observation can be made of
        first = self._take(state.data, own, draw, True)
        own["pictures"] = {k: jnp.broadcast_to(x, (taken, *x.shape)) for k, x in first.items()}
        return self._seen(state, own, jnp.zeros(self.action_size, state.reward.dtype))

    def step(self, state: State, action: Array) -> State:
        """Advance the state by one action, with a new picture where one is due."""
        own = state.info["vision"]
        state = self.env.step(state, action)
        own = {**own, "age": own["age"] + 1}
        due, noise = own["age"] % self.every == 0, None
        if self.noise:
            rng, noise = jax.random.split(own["rng"])
            own["rng"] = rng
        new = self._take(state.data, own, noise, due)
        later = {k: jnp.concatenate([new[k][None], x[:-1]]) for k, x in own["pictures"].items()}
        own["pictures"] = jax.tree.map(lambda new, old: jnp.where(due, new, old), later, own["pictures"])
        return self._seen(state, own, jnp.clip(jnp.asarray(action, state.reward.dtype), -1, 1))

    def _take(self, data: Data, own: Info, rng: Array | None, due: Array | bool) -> dict[str, Array]:
        """Pictures with noise, of a state as this episode sees it."""
        model = self.env.model if self._looks is None else self._looks.model(self.env.model, own["model"])
        pictures = self.look(jax.lax.stop_gradient(data), model, due)
        if not self.noise:
            return pictures
        assert rng is not None  # the caller has split one off
        noisy = {}
        for i, (name, x) in enumerate(pictures.items()):
            key = jax.random.fold_in(rng, i)
            x = (
                self.noise(key, x)
                if callable(self.noise)
                else x + self.noise * jax.random.normal(key, x.shape, x.dtype)
            )
            noisy[name] = jnp.clip(x, 0, 1)
        return noisy

    def _seen(self, state: State, own: Info, action: Array) -> State:
        exact = state.obs
        rest = exact if isinstance(exact, Mapping) else {"state": action, "privileged_state": exact}
        behind = own["age"] // self.every - (own["age"] - own["delay"]) // self.every  # pictures under way
        views = {}
        for name, taken in own["pictures"].items():
            arrived = jax.lax.dynamic_slice_in_dim(taken, behind, self.frames)
            views[name] = jnp.moveaxis(arrived, 0, 2).reshape(*taken.shape[1:3], -1)
        return state.replace(obs={**rest, **views}, info={**state.info, "vision": own})


@dataclasses.dataclass(frozen=True)
class VisionConfig(Config):
    """Config of a task that is seen: `camera`, `picture`, `size`, `frames`, `reach`, `samples` of `Vision`."""

    camera: int | str = 0
    picture: str = "depth"
    size: tuple[int, int] = (64, 64)
    frames: int = 3
    reach: float = 5.0
    samples: int = 1


def make_vision(task: Callable[[Any], Any], config: VisionConfig) -> Vision:
    """Make a task whose policy observes only the last pictures of a camera and its last action."""
    view = (config.camera, config.picture, config.size, config.frames, config.reach)
    return Vision(task(config), *view, samples=config.samples)


def random_look(
    colours: float = 0.0, light: float = 0.0, position: float = 0.0, angle: float = 0.0, lens: float = 0.0
) -> Callable[[Model, Array], Model]:
    """Make a function `(model, rng) -> model` that draws colours, lights and cameras, for `Vision`.

    All amounts are half the range of a uniform distribution. The headlight stays as it is.

    Args:
        colours: of each channel of geoms and materials; textures are multiplied by their material's colour.
        light: of the brightness of each light, relative to the model's.
        position: of each coordinate of a camera relative to its body, in m.
        angle: of the angle by which a camera turns about each of its axes, in rad.
        lens: of the focal length, or of the field of view, relative to the model's.
    """

    def look(m: Model, rng: Array) -> Model:
        keys = jax.random.split(rng, 6)

        def some(i: int, shape: tuple[int, ...], amount: float, x: Array) -> Array:
            return jax.random.uniform(keys[i], shape, x.dtype, -amount, amount)

        # a geom of the default colour takes that of its material
        own = (m.geom_matid < 0)[:, None] | jnp.any(m.geom_rgba != jnp.array(DEFAULT_RGBA, m.geom_rgba.dtype), 1)[
            :, None
        ]
        geom = jnp.clip(m.geom_rgba[:, :3] + some(0, (m.ngeom, 3), colours, m.geom_rgba), 0, 1)
        material = jnp.clip(m.mat_rgba[:, :3] + some(1, (m.nmat, 3), colours, m.mat_rgba), 0, 1)
        bright = 1 + some(2, (m.nlight, 1), light, m.light_diffuse)
        turn = some(3, (m.ncam, 3), angle, m.cam_quat)
        scale = 1 + some(4, (m.ncam, 1), lens, m.cam_fovy)
        return m.replace(
            geom_rgba=m.geom_rgba.at[:, :3].set(jnp.where(own, geom, m.geom_rgba[:, :3])),
            mat_rgba=m.mat_rgba.at[:, :3].set(material),
            light_diffuse=m.light_diffuse * bright,
            light_ambient=m.light_ambient * bright,
            cam_pos=m.cam_pos + some(5, (m.ncam, 3), position, m.cam_pos),
            cam_quat=quat_mul(m.cam_quat, rotvec_to_quat(turn)),
            cam_fovy=m.cam_fovy * scale[:, 0],
            cam_intrinsic=m.cam_intrinsic.at[:, :2].multiply(scale),
        )

    return look
