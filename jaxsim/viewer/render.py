"""Images and videos without a display or a graphics driver: a software rasteriser with a depth buffer, in NumPy.

Meant for looking at a model or a policy. For camera images as observations, in batches, use `jaxsim.viewer.raycast`.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxsim.core.extras import require
from jaxsim.core.model import Model
from jaxsim.core.types import GeomType
from jaxsim.viewer.deformables import surface_triangles, surfaces
from jaxsim.viewer.frames import poses, split_worlds, tiles
from jaxsim.viewer.html import sky_colours, sun_direction
from jaxsim.viewer.png import png_bytes
from jaxsim.viewer.shadow import ShadowMap, lit, shadow_map
from jaxsim.viewer.shapes import geom_material, geom_triangles, surface_material, tendon_segments, visible

NEAR = 1e-3  # distance of the near plane, m
GROUND_LIGHT, SKY_LIGHT = np.array([0.20, 0.19, 0.18]), np.array([0.36, 0.39, 0.44])  # from below, from above
SUN_LIGHT = 0.62 * np.array([1.0, 0.97, 0.92])
TENDON_SIDES = 6  # of the prism that is drawn for a segment of a tendon


class Camera(NamedTuple):
    """Position, rotation matrix with the axes right, up, backward as columns, vertical field of view in degrees."""

    position: np.ndarray
    rotation: np.ndarray
    fovy: float


class Scene:
    """Triangles of a model, made once; `draw` renders the image of one frame.

    Args:
        m: the model.
        width, height: of the image in pixels.
        groups: groups of geoms that are drawn.
        shadows: whether geoms, flexes and skins cast shadows of the sun.
    """

    def __init__(
        self,
        m: Model,
        width: int = 640,
        height: int = 480,
        groups: tuple[int, ...] = (0, 1, 2),
        shadows: bool = True,
    ):
        self.m, self.width, self.height, self.shadows = m, width, height, shadows
        reach = 20 * float(m.stat.extent) + 10
        shown = [g for g in range(m.ngeom) if visible(m, g, groups)]
        parts = [geom_triangles(m, g, reach) for g in shown]
        self.materials = [geom_material(m, g) for g in shown]
        self.corners = np.concatenate(parts) if parts else np.zeros((0, 8))
        self.surfaces = surfaces(m, groups)
        self.materials += [surface_material(m, s) for s in self.surfaces]
        self.material_of = np.repeat(np.arange(len(shown)), [len(p) // 3 for p in parts])
        self.geom_of = np.repeat(np.array(shown, int), [len(p) for p in parts])
        flat = [m.geom_type[g] == GeomType.PLANE for g in shown] + [False] * len(self.surfaces)
        opaque = [material.rgba[3] > 0.5 for material in self.materials]
        self.casts = np.array(opaque, bool) & ~np.array(flat, bool)
        sun = np.array(sun_direction(m))
        self.sun = sun / np.linalg.norm(sun)
        self.sky = np.array(sky_colours(m))

    def camera(self, frame: Mapping[str, np.ndarray], name: str | int | None = None) -> Camera:
        """Camera of the model by name or number, or the free camera, which looks at the model's moving bodies."""
        m = self.m
        if name is not None:
            i = m.name2id("camera", name) if isinstance(name, str) else name
            if not 0 <= i < m.ncam:
                raise KeyError(f"camera {i} is out of range: the model has {m.ncam}")
            return Camera(frame["cam_xpos"][i], np.reshape(frame["cam_xmat"][i], (3, 3)), float(m.cam_fovy[i]))
        view = m.vis.global_
        turn, lift = np.deg2rad([float(view.azimuth), float(view.elevation)])
        ahead = np.array([np.cos(lift) * np.cos(turn), np.cos(lift) * np.sin(turn), np.sin(lift)])
        right = np.array([np.sin(turn), -np.cos(turn), 0])
        center = np.asarray(m.stat.center, np.float64).copy()
        roots = np.flatnonzero((m.body_parentid == 0) & (m.body_weldid != 0))
        if len(roots) == 1:
            center[:2] = np.asarray(frame["xpos"])[roots[0], :2]
        position = center - 1.5 * float(m.stat.extent) * ahead
        return Camera(position, np.stack([right, np.cross(right, ahead), -ahead], 1), float(view.fovy))

    def draw(self, frame: Mapping[str, np.ndarray], camera: Camera) -> np.ndarray:
        """Image (height, width, 3), uint8, of one frame."""
        rotation = np.reshape(frame["geom_xmat"], (-1, 3, 3))[self.geom_of]
        world = np.einsum("nij,nj->ni", rotation, self.corners[:, :3]) + np.asarray(frame["geom_xpos"])[self.geom_of]
        normal = np.einsum("nij,nj->ni", rotation, self.corners[:, 3:6])
        attributes, material_of = np.concatenate([normal, self.corners[:, 6:], world], 1), self.material_of
        soft, soft_of = self._deformables(frame)
        attributes = np.concatenate([attributes, soft])
        material_of = np.concatenate([material_of, len(self.materials) - len(self.surfaces) + soft_of])
        casters = attributes[np.repeat(self.casts[material_of], 3), 5:]
        shadows = shadow_map(casters, self.sun, cover, Camera) if self.shadows else None
        tendons, tendon_of = self._tendons(frame)
        if len(tendons):
            attributes = np.concatenate([attributes, tendons])
            material_of = np.concatenate([material_of, len(self.materials) + tendon_of])
        pixel, triangle, weight = cover(attributes[:, 5:], camera, self.width, self.height)
        mixed = np.einsum("nk,nki->ni", weight, attributes.reshape(-1, 3, 8)[triangle])
        image = self._background(camera)
        colour = self._colours(material_of[triangle], mixed[:, 3:5])
        image[pixel] = shade(colour, mixed[:, :3], mixed[:, 5:], camera.position, self.sun, shadows)
        return np.round(255 * np.clip(image, 0, 1)).astype(np.uint8).reshape(self.height, self.width, 3)

    def _deformables(self, frame: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Corners (3 n, 8) of flexes and skins, and the surface of each triangle."""
        parts = [surface_triangles(self.m, s, frame) for s in self.surfaces]
        owner = np.repeat(np.arange(len(parts)), [len(p) // 3 for p in parts])
        rows = np.concatenate([np.zeros((0, 8)), *parts])
        return np.concatenate([rows[:, 3:], rows[:, :3]], 1), owner

    def _tendons(self, frame: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Corners (3 n, 8) of prisms along the tendons, and the tendon of each triangle."""
        parts, owner = [], []
        for t, segments in enumerate(tendon_segments(self.m, frame)):
            for a, b in segments:
                prism = _prism(a, b, max(float(self.m.tendon_width[t]), 1e-3))
                parts.append(prism)
                owner += [t] * (len(prism) // 3)
        return (np.concatenate(parts), np.array(owner)) if parts else (np.zeros((0, 8)), np.zeros(0, int))

    def _colours(self, material_of: np.ndarray, coordinate: np.ndarray) -> np.ndarray:
        tendons = np.asarray(self.m.tendon_rgba).reshape(-1, 4)[:, :3]
        own = np.array([material.rgba[:3] for material in self.materials]).reshape(-1, 3)
        colour = np.concatenate([own, tendons])[material_of]
        for i, material in enumerate(self.materials):
            if material.image is None:
                continue
            mine = material_of == i
            height, width = material.image.shape[:2]
            u, v = (coordinate[mine] * material.repeat % 1.0).T
            texel = material.image[((1 - v) * height).astype(int) % height, (u * width).astype(int) % width]
            colour[mine] = colour[mine] * texel / 255
        return colour

    def _background(self, camera: Camera) -> np.ndarray:
        """Pixels (height * width, 3) of the sky: the colour of the horizon below, that of the zenith at the top."""
        rows = (
            (self.height / 2 - np.arange(self.height) - 0.5) / (self.height / 2) * np.tan(np.deg2rad(camera.fovy) / 2)
        )
        up = (rows * camera.rotation[2, 1] - camera.rotation[2, 2]) / np.sqrt(1 + rows**2)
        mix = np.clip(up, 0, 1)[:, None] ** 0.5
        row = self.sky[0] * mix + self.sky[1] * (1 - mix)
        return np.repeat(row, self.width, 0)


def cover(world: np.ndarray, camera: Camera, width: int, height: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pixels (n,) covered by triangles, the nearest triangle (n,) of each, and the weights of its corners (n, 3).

    `world` holds corners (3 ntriangle, 3). Triangles are rasterised in homogeneous coordinates, so that those that
    extend behind the camera need no clipping.
    """
    focal = height / 2 / np.tan(np.deg2rad(camera.fovy) / 2)
    local = (world - camera.position) @ camera.rotation
    depth = -local[:, 2]
    corner = np.stack([focal * local[:, 0] + width / 2 * depth, height / 2 * depth - focal * local[:, 1], depth], 1)
    corner = corner.reshape(-1, 3, 3)
    front = corner[..., 2] > NEAR
    volume = np.linalg.det(corner)
    alive = front.any(1) & (np.abs(volume) > 1e-12)
    number, corner, front = np.flatnonzero(alive), corner[alive], front[alive]
    low, high = _bounds(corner, front, width, height)
    span = high - low
    count = span.prod(1)
    inverse = np.linalg.inv(corner)
    nearest = np.full(width * height, -np.inf)
    best = np.full(width * height, -1)
    weights = np.zeros((width * height, 3))
    for first, last in _slices(count):
        owner = np.repeat(np.arange(first, last), count[first:last])
        index = np.arange(len(owner)) - np.repeat(np.cumsum(count[first:last]) - count[first:last], count[first:last])
        x = low[owner, 0] + index % span[owner, 0]
        y = low[owner, 1] + index // span[owner, 0]
        point = np.stack([x + 0.5, y + 0.5, np.ones(len(x))], 1)
        weight = np.einsum("ni,nij->nj", point, inverse[owner])
        inverse_depth = weight.sum(1)
        inside = (weight >= 0).all(1) & (inverse_depth > 0) & (inverse_depth < 1 / NEAR)
        owner, weight, pixel = owner[inside], weight[inside], (y * width + x)[inside]
        inverse_depth = inverse_depth[inside]
        order = np.argsort(inverse_depth, kind="stable")  # the nearest is written last
        owner, weight, inverse_depth, pixel = owner[order], weight[order], inverse_depth[order], pixel[order]
        better = inverse_depth > nearest[pixel]
        pixel = pixel[better]
        nearest[pixel], best[pixel] = inverse_depth[better], number[owner[better]]
        weights[pixel] = weight[better] / inverse_depth[better][:, None]
    seen = np.flatnonzero(best >= 0)
    return seen, best[seen], weights[seen]


def _bounds(corner: np.ndarray, front: np.ndarray, width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounding boxes in pixels (n, 2), (n, 2) of the parts of triangles in front of the camera."""
    after, after_front = np.roll(corner, -1, 1), np.roll(front, -1, 1)
    fall = after[..., 2] - corner[..., 2]
    fraction = (NEAR - corner[..., 2]) / np.where(front == after_front, 1, fall)
    cut = corner + fraction[..., None] * (after - corner)  # where an edge crosses the near plane
    points, real = np.concatenate([corner, cut], 1), np.concatenate([front, front != after_front], 1)
    flat = points[..., :2] / np.where(real, points[..., 2], 1)[..., None]
    limit = np.array([width, height])
    low = np.where(real[..., None], flat, np.inf).min(1)
    high = np.where(real[..., None], flat, -np.inf).max(1)
    return np.clip(np.floor(low - 0.5), 0, limit).astype(int), np.clip(np.ceil(high + 0.5), 0, limit).astype(int)


def _slices(count: np.ndarray, most: int = 1_000_000) -> list[tuple[int, int]]:
    """Ranges of triangles whose boxes have about `most` pixels together, which bounds the memory used."""
    bounds, total, first = [], 0, 0
    for i, n in enumerate(count):
        if total and total + n > most:
            bounds.append((first, i))
            first, total = i, 0
        total += int(n)
    return [*bounds, (first, len(count))] if len(count) else []


def shade(
    colour: np.ndarray,
    normal: np.ndarray,
    point: np.ndarray,
    eye: np.ndarray,
    sun: np.ndarray,
    shadows: ShadowMap | None = None,
) -> np.ndarray:
    """Colours of two-sided surfaces lit by the sky, the sun where it is seen and a headlight, as in the replay page."""
    normal = normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
    view = eye - point
    view /= np.maximum(np.linalg.norm(view, axis=1, keepdims=True), 1e-12)
    facing = np.einsum("ni,ni->n", normal, view)
    normal = normal * np.where(facing < 0, -1, 1)[:, None]
    sunlight = np.maximum(normal @ sun, 0)
    sunlight[sunlight > 0] *= lit(shadows, point[sunlight > 0], normal[sunlight > 0])
    sky = (0.5 + 0.5 * normal[:, 2])[:, None]
    light = GROUND_LIGHT * (1 - sky) + SKY_LIGHT * sky + SUN_LIGHT * sunlight[:, None]
    half = view + sun
    half /= np.maximum(np.linalg.norm(half, axis=1, keepdims=True), 1e-12)
    gloss = 0.12 * np.maximum(np.einsum("ni,ni->n", normal, half), 0) ** 24 * sunlight
    return colour * (light + 0.18 * np.abs(facing)[:, None]) + gloss[:, None]


def _prism(a: np.ndarray, b: np.ndarray, radius: float) -> np.ndarray:
    """Corners (3 n, 8) of the sides of a prism around the segment from `a` to `b`."""
    axis = (b - a) / max(float(np.linalg.norm(b - a)), 1e-9)
    side = np.cross(axis, np.eye(3)[np.abs(axis).argmin()])
    side /= np.linalg.norm(side)
    angle = np.linspace(0, 2 * np.pi, TENDON_SIDES + 1)
    ring = np.cos(angle)[:, None] * side + np.sin(angle)[:, None] * np.cross(axis, side)
    low, high = np.concatenate([a + radius * ring, ring], 1), np.concatenate([b + radius * ring, ring], 1)
    quads = [low[:-1], low[1:], high[1:], low[:-1], high[1:], high[:-1]]
    rows = np.stack(quads, 1).reshape(-1, 6)
    return np.concatenate([rows[:, 3:], np.zeros((len(rows), 2)), rows[:, :3]], 1)


def _frame(all_poses: Mapping[str, np.ndarray], i: int) -> dict[str, np.ndarray]:
    """Poses of one frame."""
    return {name: x[i] for name, x in all_poses.items()}


def render(m: Model, states: Any, camera: str | int | None = None, width: int = 640, height: int = 480) -> np.ndarray:
    """Images (frames, height, width, 3), uint8, of a state, a batch or a trajectory; many worlds are side by side.

    `states` is a `Data`, a mapping with `qpos`, or an array of qpos: (nq,), (frames, nq) or (frames, worlds, nq). A
    batch, whose states have one time, is one frame of many worlds. `camera` is one of the model's, by name or number;
    None is the free camera. Raises KeyError when there is no such camera, ValueError for other shapes.
    """
    scene, worlds = Scene(m, width, height), [poses(m, world) for world in split_worlds(m, states)]
    return np.stack([_picture(scene, worlds, i, camera) for i in range(len(worlds[0]["time"]))])


def _picture(scene: Scene, worlds: list[dict[str, np.ndarray]], i: int, camera: str | int | None) -> np.ndarray:
    """Image of frame i of all worlds."""
    frames = [_frame(world, i) for world in worlds]
    images = [scene.draw(frame, scene.camera(frame, camera)) for frame in frames]
    return tiles(images) if len(images) > 1 else images[0]


def save_image(m: Model, states: Any, path: str | Path, camera: str | int | None = None, **size: Any) -> None:
    """Write an image in the format of the file's suffix: PNG, or others with Pillow.

    `states` is as in `render`; of a trajectory the last frame is drawn, of a batch all worlds side by side.

    Raises ImportError that names the extra where Pillow is needed and not installed.
    """
    last = [{name: x[-1:] for name, x in world.items()} for world in split_worlds(m, states)]
    scene = Scene(m, **size)
    pixels = _picture(scene, [poses(m, world) for world in last], 0, camera)
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
    **size: Any,
) -> None:
    """Write a video (.mp4, .gif, ...) of a trajectory as in `render`, one image for each frame.

    Raises ImportError, which says how to install it, when imageio is missing.
    """
    imageio = require("imageio.v2", "videos need imageio", "viewer")
    scene, worlds = Scene(m, **size), [poses(m, world) for world in split_worlds(m, states)]
    gif = str(path).endswith(".gif")
    options = {"duration": 1000 / fps, "loop": 0} if gif else {"fps": fps, "macro_block_size": 2}
    with warnings.catch_warnings(), imageio.get_writer(path, **options) as writer:
        # imageio forks to start ffmpeg, which at once replaces the copy of this process: JAX's threads are not used
        warnings.filterwarnings("ignore", message=r".*fork\(\)", category=RuntimeWarning)
        warnings.filterwarnings("ignore", message=r".*fork\(\)", category=DeprecationWarning)
        for i in progress(range(len(worlds[0]["time"]))):
            writer.append_data(_picture(scene, worlds, i, camera))
