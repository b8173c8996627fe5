"""Pictures and videos as files, drawn by `viewer.raycast` without a display or a graphics driver.

Use it to look at a model or a policy. For camera images as observations, in batches, use `jaxsim.viewer.raycast`.
"""

import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.extras import require
from jaxsim.core.model import Model
from jaxsim.core.types import JointType
from jaxsim.engine.step.initial import make_data
from jaxsim.math.safe import Array
from jaxsim.viewer import raycast
from jaxsim.viewer.frames import WORLD_SPACING, grid, place, split_worlds, tiles
from jaxsim.viewer.png import png_bytes
from jaxsim.viewer.scene import GROUPS

STATE = ("qpos", "mocap_pos", "mocap_quat")  # that poses follow from
FOLLOW_TRAVEL = 0.5  # extents that the only moving tree travels before the free camera follows it


def render(
    m: Model,
    states: Any,
    camera: str | int | None = None,
    width: int = 640,
    height: int = 480,
    groups: tuple[int, ...] = GROUPS,
    shadows: bool = True,
    samples: int = 1,
    follow: bool = False,
    together: bool = False,
    orbit: float = 0.0,
) -> np.ndarray:
    """Render pictures (frames, height, width, 3), uint8, of a state, batch or trajectory; worlds share one picture.

    Args:
        states: a `Data`, a mapping with `qpos` and, if there are mocap bodies, `mocap_pos` and `mocap_quat`, or an
            array of qpos: (nq,), (frames, nq) or (frames, worlds, nq). A batch, whose states have the same time, is one
            frame of many worlds.
        camera: one of the model's, by name or number; None is MuJoCo's free camera in its initial pose.
        width: of a world, in pixels.
        height: of a world, in pixels.
        groups: groups of geoms, sites, tendons, flexes and skins that are drawn.
        shadows: whether to draw shadows of the lights that cast them.
        samples: rays of a pixel along each side of it; the picture takes samples^2 times as long.
        follow: whether the free camera follows the moving tree, if there is only one.
        together: whether worlds stand in a grid in one scene, on one floor, which is not followed; else each has a
            picture of its own, and these are joined.
        orbit: angle in degrees by which the free camera turns about its centre from frame to frame.

    Raises KeyError when there is no such camera, ValueError for other shapes.
    """
    worlds = split_worlds(m, states)
    draw = Painter(m, worlds, camera, width, height, groups, shadows, samples, follow, together, orbit)
    return np.stack([draw(i) for i in range(draw.count)])


class Painter:
    """Draws one frame after the other; arguments as in `render`, `worlds` by `split_worlds`."""

    def __init__(
        self,
        m: Model,
        worlds: list[dict[str, np.ndarray]],
        camera: str | int | None = None,
        width: int = 640,
        height: int = 480,
        groups: tuple[int, ...] = GROUPS,
        shadows: bool = True,
        samples: int = 1,
        follow: bool = False,
        together: bool = False,
        orbit: float = 0.0,
    ):
        cam = raycast.camera_id(m, camera)
        self.m, self.worlds = m, [_states(m, world) for world in worlds]
        self.count = len(self.worlds[0]["qpos"])
        self.roots = np.flatnonzero((m.body_parentid == 0) & (m.body_weldid != 0))
        self.follow = follow and cam < 0 and len(self.roots) == 1
        self.orbit, self.together = orbit, together
        self.options = (cam, width, height, tuple(groups), shadows, samples)

    def __call__(self, i: int) -> np.ndarray:
        """Picture of frame i of all worlds."""
        frames = [{name: jnp.asarray(x[i]) for name, x in world.items()} for world in self.worlds]
        turn = jnp.asarray(i * self.orbit, self.m.stat.extent.dtype)
        if self.together:
            batch = jax.tree.map(lambda *x: jnp.stack(x), *frames)
            return np.asarray(_draw_together(self.m, batch, turn, *self.options))
        root = int(self.roots[0]) if self.follow else -1
        images = [np.asarray(_draw(self.m, frame, turn, root, *self.options)) for frame in frames]
        return tiles(images) if len(images) > 1 else images[0]


def _states(m: Model, world: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Frames of what poses follow from."""
    qpos = world.get("qpos")
    shape = () if qpos is None else np.shape(qpos)
    if qpos is None or len(shape) != 2 or shape[1] != m.nq:
        raise ValueError(f"a trajectory to draw has qpos (frames, {m.nq}), not {shape}")
    return {name: np.asarray(world[name]) for name in STATE if name in world}


@partial(jax.jit, static_argnums=(3, 4, 5, 6, 7, 8, 9))
def _draw(m: Model, state: Mapping[str, Array], turn: Array, follow: int, *options: Any) -> Array:
    """Picture (height, width, 3), uint8, of a state; the free camera follows the body `follow`, -1 for none."""
    camera, width, height, groups, shadows, samples = options
    d = place(m, make_data(m).replace(**state))
    lookat = None
    if follow >= 0:
        lookat = m.stat.center.at[:2].set(d.xpos[follow, :2].astype(m.stat.center.dtype))
    picture = raycast.render(m, d, camera, width, height, groups, shadows, lookat, samples=samples, turn=turn)
    return _bytes(picture.rgb)


@partial(jax.jit, static_argnums=(3, 4, 5, 6, 7, 8))
def _draw_together(m: Model, states: Mapping[str, Array], turn: Array, *options: Any) -> Array:
    """Picture (height, width, 3), uint8, of states with a leading axis of worlds, in one scene."""
    camera, width, height, groups, shadows, samples = options
    d = jax.vmap(lambda state: place(m, make_data(m).replace(**state)))(states)
    offset = grid(len(states["qpos"]), 1.0) * WORLD_SPACING * m.stat.extent
    picture = raycast.render_worlds(m, d, offset, camera, width, height, groups, shadows, samples, turn)
    return _bytes(picture.rgb)


def _bytes(rgb: Array) -> Array:
    return jnp.round(255 * rgb).astype(jnp.uint8)


def save_image(
    m: Model, states: Any, path: str | Path, camera: str | int | None = None, samples: int = 2, **options: Any
) -> None:
    """Write a picture in the format of the file's suffix: PNG, or others with Pillow.

    Arguments as in `render`; draws the last frame of a trajectory, or all worlds of a batch in one picture.

    Raises ImportError that names the extra if Pillow is needed and not installed.
    """
    last = [{name: x[-1:] for name, x in world.items()} for world in split_worlds(m, states)]
    pixels = Painter(m, last, camera, samples=samples, **options)(0)
    if Path(path).suffix.lower() == ".png":
        Path(path).write_bytes(png_bytes(pixels))
    else:
        images = require("PIL.Image", f"writing {Path(path).suffix or 'this'} files needs Pillow", "images")
        images.fromarray(pixels).save(path)


def save_video(
    m: Model,
    states: Any,
    path: str | Path,
    camera: str | int | None = None,
    fps: float = 30.0,
    progress: Any = iter,
    **options: Any,
) -> None:
    """Write a video (.mp4, .gif, ...) of a trajectory, one picture for each frame; arguments as in `render`.

    If the only moving tree travels far, the free camera follows it, unless `follow` is set.

    Raises ImportError, which says how to install it, when imageio is missing.
    """
    imageio = require("imageio.v2", "videos need imageio", "viewer")
    worlds = split_worlds(m, states)
    options.setdefault("follow", any(_travels(m, world) for world in worlds))
    draw = Painter(m, worlds, camera, **options)
    gif = str(path).endswith(".gif")
    writing = {"duration": 1000 / fps, "loop": 0} if gif else {"fps": fps, "macro_block_size": 2}
    with warnings.catch_warnings(), imageio.get_writer(path, **writing) as writer:
        # imageio forks to start ffmpeg, which at once replaces the copy of this process: JAX's threads are not used
        warnings.filterwarnings("ignore", message=r".*fork\(\)", category=RuntimeWarning)
        warnings.filterwarnings("ignore", message=r".*fork\(\)", category=DeprecationWarning)
        for i in progress(range(draw.count)):
            writer.append_data(draw(i))


def _travels(m: Model, world: dict[str, np.ndarray]) -> bool:
    """Whether the first joint's coordinates, if it is a free one, change by more than a part of the model's extent."""
    qpos = np.asarray(world.get("qpos", np.zeros((1, m.nq))))
    free = m.njnt > 0 and m.jnt_type[0] == JointType.FREE and qpos.ndim == 2 and qpos.shape[1] == m.nq
    return bool(free and np.abs(qpos[:, :2] - qpos[:1, :2]).max() > FOLLOW_TRAVEL * float(m.stat.extent))
