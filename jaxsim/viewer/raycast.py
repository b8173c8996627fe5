"""Pictures of a model by casting rays in JAX: colours, depth and segmentation, in batches, with derivatives.

The scene is that of `viewer.scene`, drawn as by MuJoCo's renderer: front faces between the near and the far plane, the
model's lights with shadows, materials and textures, transparency, sky and haze. There are no reflections and no fog,
lines of rangefinders are not drawn, and light is computed for pixels, not for vertices.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.types import ObjType
from jaxsim.engine.kinematics.camera import ORTHOGRAPHIC, intrinsics, pixel_rays
from jaxsim.math.arrays import inner
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array, normalize
from jaxsim.native.pool import for_each
from jaxsim.viewer import scene_layout as layout
from jaxsim.viewer.outlines import face, find_edge, moved, shift
from jaxsim.viewer.scene import GROUPS, OPAQUE, Scene, make_scene, make_scene_of_worlds, tree_of
from jaxsim.viewer.shading import LAYERS, Ray, Seen, View, lit, paint, see, surface_at
from jaxsim.viewer.trace import Hit

FREE_DISTANCE = 1.5  # of the free camera, in extents


class Image(NamedTuple):
    """Picture of a camera.

    `rgb` (h, w, 3) in [0, 1]. `depth` (h, w) in m along the camera's axis to the first opaque surface, that of the far
    plane in the background. `segmentation` (h, w, 2): id and type (mjtObj) of the first object, -1 in the background.
    """

    rgb: Array
    depth: Array
    segmentation: Array


class Eye(NamedTuple):
    """A camera (3,) and (3, 3), pixels a unit of the picture at distance 1 (fx, fy), and its rays (n, 3)."""

    pos: Array
    mat: Array
    scale: Array
    parallel: bool
    origin: Array
    way: Array


def free_camera(
    m: Model, width: int, height: int, lookat: Array | None = None, turn: Array | float = 0.0, back: Array | float = 0.0
) -> Eye:
    """MuJoCo's free camera in its initial pose: it looks at the model's centre, or at `lookat`.

    It is turned about the vertical by `turn` degrees, and stands farther away by `back`.
    """
    g, dtype = m.vis.global_, m.stat.center.dtype
    turn, lift = jnp.deg2rad(g.azimuth + jnp.asarray(turn, dtype)), np.deg2rad(g.elevation)
    across, zero = jnp.stack([jnp.cos(turn), jnp.sin(turn), jnp.zeros_like(turn)]), jnp.zeros_like(turn)
    ahead = np.cos(lift) * across + np.array([0, 0, np.sin(lift)])
    right = jnp.stack([jnp.sin(turn), -jnp.cos(turn), zero])
    up = cross(right, ahead)
    pos = (m.stat.center if lookat is None else lookat) - (FREE_DISTANCE * m.stat.extent + back) * ahead
    parallel = bool(g.orthographic)
    scale = height / g.fovy if parallel else height / (2 * np.tan(np.deg2rad(g.fovy) / 2))
    x, y = np.meshgrid(np.arange(width) + 0.5 - width / 2, height / 2 - 0.5 - np.arange(height))
    offset = (x.reshape(-1, 1) * right + y.reshape(-1, 1) * up) / scale
    way = jnp.broadcast_to(ahead, offset.shape) if parallel else normalize(ahead + offset)[0]
    origin = jnp.broadcast_to(pos, offset.shape) + (offset if parallel else 0)
    mat = jnp.stack([right, up, -ahead], 1)
    cast = lambda x: jnp.asarray(x, dtype)  # noqa: E731
    return Eye(cast(pos), cast(mat), jnp.full(2, scale, dtype), parallel, cast(origin), cast(way))


def model_camera(m: Model, d: Data, cam: int, width: int, height: int) -> Eye:
    """A camera of the model."""
    size = np.array([[width, height]])
    origin, way = pixel_rays(m, d, np.array([cam]), size, rendered=True)
    parallel = bool(m.cam_projection[cam] == ORTHOGRAPHIC)
    scale = jnp.full(2, height / m.cam_fovy[cam]) if parallel else intrinsics(m, np.array([cam]), size)[0, :2]
    return Eye(d.cam_xpos[cam], d.cam_xmat[cam].reshape(3, 3), jnp.asarray(scale), parallel, origin, way)


def camera_id(m: Model, camera: int | str | None) -> int:
    """Id of a camera, -1 for the free one. Raises KeyError for an unknown camera."""
    cam = -1 if camera is None else m.name2id("camera", camera) if isinstance(camera, str) else int(camera)
    if not -1 <= cam < m.ncam:
        raise KeyError(f"camera {cam} is out of range: the model has {m.ncam}")
    return cam


def render(
    m: Model,
    d: Data,
    camera: int | str | None = 0,
    width: int | None = None,
    height: int | None = None,
    groups: Sequence[int] = GROUPS,
    shadows: bool = True,
    lookat: Array | None = None,
    draw: Array | bool = True,
    samples: int = 1,
    edges: bool = False,
    turn: Array | float = 0.0,
) -> Image:
    """Picture of one camera in one world, at the poses in `d`; map over worlds with `jax.vmap`.

    Args:
        d: after `camlight`; after `flex` and `tendon` too where the model has them.
        camera: static id or name; None or -1 is the free camera.
        width, height: pixels; by default the camera's resolution, and 640 x 480 for the free one.
        groups: groups of geoms, sites, tendons, flexes and skins that are drawn.
        shadows: whether to draw shadows of the lights that cast them.
        lookat: point at which the free camera looks; by default the centre of the model.
        draw: if false, no ray is cast: colours are zero, depth is that of the far plane, there are no objects.
        samples: rays along each side of a pixel; colours and depths are means, the segmentation is that of one ray.
        edges: whether derivatives include what moving edges of objects show and hide (`viewer.outlines`).
        turn: degrees by which the free camera is turned about the vertical.

    Depth and colours are differentiable in poses, sizes, materials, lights and the camera: inside of surfaces, and with
    `edges` as means over pixels, where edges of shadows and of transparent objects do not move. Under jit, unused parts
    of the image are not computed. Raises KeyError for an unknown camera.
    """
    return render_many(m, d, [camera], width, height, groups, shadows, lookat, draw, samples, edges, turn)[0]


def render_many(
    m: Model,
    d: Data,
    cameras: Sequence[int | str | None],
    width: int | Sequence[int] | None = None,
    height: int | Sequence[int] | None = None,
    groups: Sequence[int] = GROUPS,
    shadows: bool = True,
    lookat: Array | None = None,
    draw: Array | bool = True,
    samples: int = 1,
    edges: bool = False,
    turn: Array | float = 0.0,
) -> list[Image]:
    """Pictures of several cameras in one world, of one scene; arguments as in `render`, sizes also for each camera."""
    ids = [camera_id(m, camera) for camera in cameras]
    scene = make_scene(m, d, tuple(int(g) for g in groups))
    images = []
    sizes = zip(*(x if isinstance(x, Sequence) else [x] * len(ids) for x in (width, height)), strict=True)
    for cam, (wide, high) in zip(ids, sizes, strict=True):
        w, h = m.cam_resolution[cam] if cam >= 0 else (640, 480)
        w, h = samples * int(wide or w), samples * int(high or h)
        eye = free_camera(m, w, h, lookat, turn) if cam < 0 else model_camera(m, d, cam, w, h)
        images.append(_fewer(_picture(m, scene, eye, w, h, shadows, draw, edges), samples))
    return images


def render_worlds(
    m: Model,
    d: Data,
    offset: Array,
    camera: int | str | None = None,
    width: int = 640,
    height: int = 480,
    groups: Sequence[int] = GROUPS,
    shadows: bool = True,
    samples: int = 1,
    turn: Array | float = 0.0,
) -> Image:
    """Picture of many worlds in one scene: `d` is a batch whose worlds are moved by `offset` (nworld, 3).

    Static planes, lights and cameras are those of the first world. The free camera stands back until the middles of all
    worlds are in view, turned by `turn` degrees about the vertical. Other arguments as in `render`.
    """
    cam = camera_id(m, camera)
    scene = make_scene_of_worlds(m, d, offset, tuple(int(g) for g in groups))
    w, h = samples * width, samples * height
    if cam < 0:
        middle = m.stat.center + (jnp.min(offset, 0) + jnp.max(offset, 0)) / 2
        back = FREE_DISTANCE / 2 * jnp.linalg.norm(jnp.max(offset, 0) - jnp.min(offset, 0))
        eye = free_camera(m, w, h, middle, turn, back)
    else:
        first = jax.tree.map(lambda x: x[0], d)
        eye = model_camera(m, first, cam, w, h)
        eye = eye._replace(pos=eye.pos + offset[0], origin=eye.origin + offset[0])
    return _fewer(_picture(m, scene, eye, w, h, shadows, True, False), samples)


def _fewer(image: Image, samples: int) -> Image:
    """The picture whose pixels have `samples` rays along each side."""
    if samples == 1:
        return image
    height, width = (n // samples for n in image.depth.shape)
    means = (x.reshape(height, samples, width, samples, -1).mean((1, 3)) for x in image[:2])
    rgb, depth = means
    return Image(rgb, depth[..., 0], image.segmentation[samples // 2 :: samples, samples // 2 :: samples])


def render_batch(m: Model, d: Data, camera: int | str | None = 0, **options: Any) -> Image:
    """`render` for a batch of worlds: `d` has a leading axis, the model is shared; images have the axis too."""
    return jax.vmap(lambda d: render(m, d, camera, **options))(d)


def _picture(
    m: Model, s: Scene, eye: Eye, width: int, height: int, shadows: bool, draw: Array | bool, edges: bool
) -> Image:
    view, rays = _view(m, s, eye)
    if not len(s.kind):  # nothing but the sky
        s = jax.tree.map(lambda x: jnp.zeros((1, *x.shape[1:]), x.dtype) if x.shape[:1] == (0,) else x, s)
    amount = jnp.where(draw, width * height, 0).astype(jnp.int32)
    of_ray = partial(paint, sky=next(iter(layout.sky(m)), -1))
    has_shadows = shadows and bool((m.light_active & m.light_castshadow).any())

    def lights_of(count: Array, s: Scene, view: View, rays: Ray, seen: Seen) -> Array:
        unlit = jnp.ones((len(rays.way), len(s.lights.spot)), s.pos.dtype)
        return _for_rays(lit, count, s, view, rays, seen) if has_shadows else unlit

    def colours(count: Array, s: Scene, view: View, rays: Ray, seen: Seen) -> Array:
        return _for_rays(of_ray, count, s, view, rays, seen, lights_of(count, s, view, rays, seen))

    def depths(_: Array, s: Scene, view: View, rays: Ray, seen: Seen) -> Array:
        return _known_depth(s, view, rays, seen)

    def smooth_rgb(s: Scene, view: View, rays: Ray, seen: Seen, reached: Array) -> Array:
        inside = jax.vmap(of_ray, (None, None, 0, 0, 0))(s, view, rays, seen, reached)
        return inside + _outlines(s, view, rays, seen, width, colours) if edges else inside

    def smooth_depth(s: Scene, view: View, rays: Ray, seen: Seen) -> Array:
        inside = jax.vmap(_depth, (None, None, 0, 0))(s, view, rays, seen)
        return inside + _outlines(s, view, rays, seen, width, depths) if edges else inside

    seen = _for_rays(see, amount, s, view, rays)
    seen = seen._replace(object=jnp.where(draw, seen.object, -1))  # zeros where no ray was cast
    reached = lights_of(amount, s, view, rays, seen)
    rgb = _with_derivatives(smooth_rgb, partial(_for_rays, of_ray, amount), s, view, rays, seen, reached)
    rgb = jnp.where(draw, rgb, 0)
    depth = _with_derivatives(smooth_depth, _known_depth, s, view, rays, seen)
    o = layout.objects(m)
    nearest = jnp.where(seen.object[:, 1] >= 0, seen.object[:, 1], seen.object[:, 0])
    table = np.stack([np.append(o.row, -1), np.append(o.objtype, -1)], 1).astype(np.int32)
    segmentation = jnp.asarray(table)[jnp.where(nearest < 0, -1, nearest % max(len(o.row), 1))]
    return Image(*(x.reshape(height, width, *x.shape[1:]) for x in (rgb, depth, segmentation)))


def _view(m: Model, s: Scene, eye: Eye) -> tuple[View, Ray]:
    """The view of a camera, and its rays, which start at the near plane."""
    dtype = s.pos.dtype
    near, far = (jnp.asarray(x * m.stat.extent, dtype) for x in (m.vis.map.znear, m.vis.map.zfar))
    axis = -eye.mat[:, 2]
    behind = (s.kind == layout.PLANE) & (inner(eye.pos - s.pos, s.mat.reshape(-1, 3, 3)[:, :, 2]) < 0)
    clear = (s.rgba[:, 3] < OPAQUE) | behind
    trees = jnp.concatenate([tree_of(s, ~clear), tree_of(s, clear)])
    layers = jnp.where(jnp.any(clear & (s.rgba[:, 3] > 0)), 1 + LAYERS, 1)
    o = layout.objects(m)
    planes = np.flatnonzero((o.kind == layout.PLANE) & (o.objtype == ObjType.GEOM))
    plane, haze = jnp.int32(-1), np.append(np.asarray(m.vis.rgba.haze)[:3], m.vis.map.haze)
    for k in planes[::-1]:
        plane = jnp.where(jnp.all(s.size[k, :2] == 0), jnp.int32(k), plane)
    view = View(
        eye.pos, axis, eye.mat[:, 0] / eye.scale[0], eye.mat[:, 1] / eye.scale[1], jnp.array(eye.parallel),
        near, far, plane, jnp.asarray(haze, dtype), behind, layers, trees,
    )  # fmt: skip
    start = eye.origin + eye.way * (near / inner(eye.way, axis))[:, None]
    return view, Ray(start.astype(dtype), eye.way.astype(dtype))


def _for_rays(function: Callable, count: Array, s: Scene, view: View, rays: Ray, *more: Any) -> Any:
    """`function(scene, view, ray, ...)` of rays (n,)."""
    return for_each(lambda shared, row, _: function(*shared, *row), (s, view), (rays, *more), count, by_vectors=True)


def _depth(s: Scene, view: View, ray: Ray, seen: Seen) -> Array:
    """Depth of the opaque surface of one ray, differentiable."""
    point = jnp.stack(surface_at(s, view, ray, jnp.maximum(seen.object[0], 0), seen.triangle[0]).point)
    return jnp.where(seen.object[0] >= 0, view.near + (point - ray.start) @ view.axis, view.far)


def _known_depth(_: Scene, view: View, rays: Ray, seen: Seen) -> Array:
    """The same of rays (n,), from the distances that were found."""
    return jnp.where(seen.object[:, 0] >= 0, view.near + seen.dist[:, 0] * inner(rays.way, view.axis), view.far)


def _outlines(s: Scene, view: View, rays: Ray, seen: Seen, width: int, colours: Callable) -> Array:
    """Zeros like `colours` (n, ...) with the derivatives of the part of pixels on either side of edges.

    `colours(count, scene, view, rays, seen)` are those of rays, of the first `count`.
    """
    shown = jax.tree.map(jax.lax.stop_gradient, (s, view))
    first = Hit(seen.dist[:, 0], seen.object[:, 0], seen.triangle[:, 0])
    faces = jax.vmap(face, (None, 0, 0))(s, rays, first)
    index = np.arange(len(rays.way)).reshape(-1, width)
    steps = (index[:, :-1], index[:, 1:], (1, 0)), (index[:-1], index[1:], (0, -1))
    table = np.concatenate([np.stack([a.ravel(), b.ravel()], 1) for a, b, _ in steps])
    step = np.concatenate([np.broadcast_to(x, (a.size, 2)) for a, _, x in steps])
    differ = jnp.any(faces[table[:, 0]] != faces[table[:, 1]], 1)
    count = jnp.sum(differ, dtype=jnp.int32)
    pairs = jnp.nonzero(differ, size=len(table), fill_value=0)[0]
    a, b = jnp.asarray(table)[pairs].T
    step = jnp.asarray(step, rays.way.dtype)[pairs]
    ray = Ray(rays.start[a], rays.way[a])
    hits = (Hit(*(x[k] for x in first)) for k in (a, b))
    edge = _for_rays(find_edge, count, *shown, jax.tree.map(jax.lax.stop_gradient, ray), step, *hits, faces[a])
    of_sides = []
    for along in (edge.before, edge.after):
        mine = jax.vmap(moved, (None, 0, 0))(shown[1], ray, along[:, None] * step)
        of_sides.append(colours(count, *shown, mine, _for_rays(see, count, *shown, mine)))
    move = jax.vmap(shift, (None, None, 0, 0, 0))(s, view, ray, step, edge)
    jump = jax.lax.stop_gradient(of_sides[0] - of_sides[1])
    move = jnp.where(np.arange(len(table)) < count, move, 0).reshape(-1, *[1] * (jump.ndim - 1))
    pixel = jnp.where(edge.before + edge.after < 1, a, b)
    return jnp.zeros((len(rays.way), *jump.shape[1:]), jump.dtype).at[pixel].add(move * jump)


def _with_derivatives(reference: Callable, native: Callable, *args: Any) -> Any:
    """`native(*args)`, with the derivatives of `reference`, which means the same."""

    @jax.custom_jvp
    def run(*args: Any) -> Any:
        return native(*args)

    @run.defjvp
    def _(primals: tuple, tangents: tuple) -> tuple:
        return jax.jvp(reference, primals, tangents)

    return run(*args)
