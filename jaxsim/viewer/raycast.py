"""Images of a model's cameras by ray casting in JAX: depth, segmentation and colour, batched and differentiable.

Geoms are drawn as by MuJoCo's renderer: front faces between the near and far planes, lit by the model's lights and the
headlight, with shadows. Sites, tendons, flexes and skins are not drawn. A geom is opaque or invisible, there are no
reflections, haze or fog, and meshes have no textures.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.types import LightType
from jaxsim.engine.dynamics.camera import pixel_rays
from jaxsim.engine.ray.cast import RayHit, cast, visible
from jaxsim.math import safe
from jaxsim.math.arrays import gather, inner
from jaxsim.math.safe import Array
from jaxsim.viewer.raycast_texture import background, texture
from jaxsim.xla.batching import rows_in_turn
from jaxsim.xla.fusion import fusion_barrier

DEFAULT_RGBA = np.array([0.5, 0.5, 0.5, 1])  # a geom of this colour takes that of its material
RAYS = 1024  # of an image that a CPU casts together: some thirty numbers each stay in its cache
NO_MATERIAL = (0.0, 0.5, 0.5)  # emission, specular and shininess of a geom without a material


class Image(NamedTuple):
    """Image of a camera.

    `rgb` (h, w, 3) in [0, 1]. `depth` (h, w) in m along the camera's axis, that of the far plane in the background.
    `segmentation` (h, w): geom ids, -1 in the background.
    """

    rgb: Array
    depth: Array
    segmentation: Array


def render(
    m: Model,
    d: Data,
    camera: int | str = 0,
    width: int | None = None,
    height: int | None = None,
    groups: Sequence[int] = (0, 1, 2),
    shadows: bool = True,
) -> Image:
    """Image of one camera in one world, at the poses in `d` (after `camlight`); map over worlds with `jax.vmap`.

    Args:
        camera: static id or name.
        width, height: pixels; by default the camera's resolution.
        groups: groups of geoms that are drawn.
        shadows: whether to draw shadows of the lights that cast them.

    Depth is differentiable in poses, sizes and the camera. Under jit, parts of the image that are not used are not
    computed. Raises KeyError for an unknown camera, UnsupportedError for a geom type that rays do not support.
    """
    cam = m.name2id("camera", camera) if isinstance(camera, str) else int(camera)
    if not 0 <= cam < m.ncam:
        raise KeyError(f"camera {cam} is out of range: the model has {m.ncam}")
    size = np.array([[width or m.cam_resolution[cam, 0], height or m.cam_resolution[cam, 1]]], int)
    pnt, vec = pixel_rays(m, d, np.array([cam]), size, rendered=True)
    axis = -d.cam_xmat[cam].reshape(3, 3)[:, 2]
    geoms = visible(m, np.isin(np.arange(6), groups))

    def pixels(pnt: Array, vec: Array) -> Image:
        return _pixels(m, d, pnt, vec, axis, geoms, shadows)

    image = rows_in_turn(pixels, RAYS, pnt, vec)
    shape = (int(size[0, 1]), int(size[0, 0]))
    return Image(*(x.reshape(*shape, *x.shape[1:]) for x in image))


def _pixels(m: Model, d: Data, pnt: Array, vec: Array, axis: Array, geoms: np.ndarray, shadows: bool) -> Image:
    """What rays (n, 3) of a camera see: an image whose pixels have one axis (n,)."""
    near, far = m.vis.map.znear * m.stat.extent, m.vis.map.zfar * m.stat.extent
    slant = inner(vec, axis)
    start = pnt + vec * (near / slant)[:, None]

    def drawn(hit: RayHit) -> tuple[RayHit, Array]:
        seen = near + hit.dist * slant < far
        return hit._replace(dist=jnp.where(seen, hit.dist, 0)), seen

    met = cast(m, d, start, vec, geoms, front_only=True)
    hit, seen = drawn(met)
    painted, coloured = drawn(fusion_barrier(met))  # which computes normals: depth needs none
    rgb = _colours(m, d, painted, start, vec, axis, geoms, shadows)
    return Image(
        jnp.clip(jnp.where(coloured[:, None], rgb, background(m, vec)), 0, 1),
        jnp.where(seen, near + hit.dist * slant, far),
        jnp.where(seen, hit.geom, -1).astype(jnp.int32),
    )


def render_batch(m: Model, d: Data, camera: int | str = 0, **options) -> Image:
    """`render` for a batch of worlds: `d` has a leading axis, the model is shared; images have the axis too."""
    return jax.vmap(lambda d: render(m, d, camera, **options))(d)


def _colours(
    m: Model, d: Data, hit: RayHit, start: Array, vec: Array, axis: Array, geoms: np.ndarray, shadows: bool
) -> Array:
    """Colours (n, 3) of the points that rays hit."""
    material = jnp.asarray(m.geom_matid)[hit.geom]
    rgba, shine = gather(m.geom_rgba, hit.geom), jnp.broadcast_to(jnp.array(NO_MATERIAL, vec.dtype), vec.shape)
    if m.nmat:
        of = jnp.maximum(material, 0)
        shines = jnp.stack([m.mat_emission, m.mat_specular, m.mat_shininess], axis=1)
        shine = jnp.where(material[:, None] >= 0, shines[of], shine)
        plain = jnp.all(jnp.abs(rgba - DEFAULT_RGBA.astype(vec.dtype)) < 1e-6, axis=1) & (material >= 0)
        rgba = jnp.where(plain[:, None], m.mat_rgba[of], rgba)
    base, emission, specular = rgba[:, :3], shine[:, :1], shine[:, 1:2]
    point = start + hit.dist[:, None] * vec
    total = emission * base
    for way, ambient, diffuse, gloss in _lights(m, d, hit, point, axis, geoms, shadows):
        facing = inner(hit.normal, way)
        half = safe.normalize(way - vec)[0]
        polish = jnp.maximum(inner(hit.normal, half), 1e-6) ** (128 * shine[:, 2])
        lit = (facing > 0)[:, None]
        total = total + ambient * base + jnp.where(lit, diffuse * facing[:, None] * base, 0)
        total = total + jnp.where(lit, gloss * specular * polish[:, None], 0)
    if not m.nlight and not m.vis.headlight.active:
        total = total + 0.3 * base
    return jnp.clip(total, 0, 1) * texture(m, d, hit.geom, material, point)


def _lights(m: Model, d: Data, hit: RayHit, point: Array, axis: Array, geoms: np.ndarray, shadows: bool):
    """Unit vectors (n, 3) to each light, and its ambient, diffuse and specular colours at the points."""
    if m.vis.headlight.active:
        head = m.vis.headlight
        colours = [jnp.asarray(np.asarray(c), point.dtype) for c in (head.ambient, head.diffuse, head.specular)]
        yield jnp.broadcast_to(-axis, point.shape), *colours
    for i in range(m.nlight):
        if not m.light_active[i] or m.light_type[i] not in (LightType.SPOT, LightType.DIRECTIONAL):
            continue
        direction = d.light_xdir[i]
        if m.light_type[i] == LightType.DIRECTIONAL:
            way, distance = jnp.broadcast_to(-direction, point.shape), jnp.full(len(point), jnp.inf, point.dtype)
            strength = jnp.ones(len(point), point.dtype)
        else:
            way, distance = safe.normalize(d.light_xpos[i] - point)
            a = m.light_attenuation[i]
            cosine = jnp.maximum(-inner(way, direction), 1e-6)
            within = cosine >= jnp.cos(jnp.deg2rad(m.light_cutoff[i]))
            within |= m.light_cutoff[i] >= 90
            strength = jnp.where(within, cosine ** m.light_exponent[i], 0)
            strength = safe.divide(strength, a[0] + distance * (a[1] + distance * a[2]))
        shade = strength
        if shadows and m.light_castshadow[i]:
            away = point + hit.normal * (1e-4 * m.stat.extent)
            other = cast(m, *jax.lax.stop_gradient((d, away, way)), geoms)
            shade = jnp.where(fusion_barrier(other.dist) < distance, 0, strength)
        ambient, diffuse, gloss = m.light_ambient[i], m.light_diffuse[i], m.light_specular[i]
        yield way, ambient * strength[:, None], diffuse * shade[:, None], gloss * shade[:, None]
