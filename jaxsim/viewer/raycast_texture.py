"""Textures of the ray-caster: 2-D textures, cube textures and the skybox."""

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import GeomType, TextureRole, TextureType
from jaxsim.math.arrays import gather, matvec_t
from jaxsim.math.safe import Array


@per_structure
def _used(m) -> np.ndarray:
    """Texture (ngeom,) of each geom's material, -1 for none; meshes have none."""
    of_material = np.append(m.mat_texid[:, TextureRole.RGB], -1)
    texture = of_material[m.geom_matid]
    return np.where(np.isin(m.geom_type, (GeomType.MESH, GeomType.SDF)), -1, texture)


@per_structure
def _pixels(m) -> np.ndarray:
    """Pixels (n, 3) of all textures, uint8, one texture after the other."""
    parts = []
    for i in range(m.ntex):
        count = int(m.tex_height[i]) * int(m.tex_width[i])
        n = int(m.tex_nchannel[i])
        data = m.tex_data[m.tex_adr[i] : m.tex_adr[i] + count * n].reshape(count, n)
        parts.append(np.repeat(data[:, :1], 3, axis=1) if n < 3 else data[:, :3])
    return np.concatenate([np.zeros((0, 3), np.uint8), *parts])


def texture(m: Model, d: Data, geom: Array, material: Array, point: Array) -> Array:
    """Factors (n, 3) by which textures scale the colours of points (n, 3) of geoms (n,)."""
    used = _used(m)
    one = jnp.ones_like(point)
    if not (used >= 0).any():
        return one
    tex, mat = jnp.asarray(used)[geom], jnp.maximum(material, 0)
    size = gather(m.geom_size, geom)
    local = matvec_t(gather(d.geom_xmat, geom).reshape(-1, 3, 3), point - gather(d.geom_xpos, geom))
    kinds = m.tex_type[used[used >= 0]]
    out = one
    uniform = jnp.asarray(m.mat_texuniform)[mat][:, None]
    if (kinds == TextureType.TEXTURE_2D).any():
        flat = (tex >= 0) & (jnp.asarray(m.tex_type)[tex] == TextureType.TEXTURE_2D)
        scale = m.mat_texrepeat[mat]
        bounded = size[:, :2] > 0
        scale = jnp.where(bounded & ~uniform, scale / jnp.where(bounded, size[:, :2], 1), scale)
        at = local[:, :2] * scale * np.array([0.5, -0.5], point.dtype) - 0.5
        out = jnp.where(flat[:, None], _look_up(m, jnp.maximum(tex, 0), at, jnp.zeros_like(tex)), out)
    if (kinds != TextureType.TEXTURE_2D).any():
        cube = (tex >= 0) & (jnp.asarray(m.tex_type)[tex] != TextureType.TEXTURE_2D)
        shape = jnp.where(size > 0, size, 1)
        way = jnp.where(uniform, local, local / shape)
        out = jnp.where(cube[:, None], _look_up(m, jnp.maximum(tex, 0), *_face(way)), out)
    return out


def background(m: Model, vec: Array) -> Array:
    """Colours (n, 3) of the sky in directions (n, 3), black without a sky."""
    sky = np.flatnonzero(m.tex_type == TextureType.SKYBOX)
    if not len(sky):
        return jnp.zeros_like(vec)
    turned = jnp.stack([vec[:, 0], vec[:, 2], -vec[:, 1]], axis=1)
    return _look_up(m, jnp.full(len(vec), int(sky[0])), *_face(turned))


def _face(way: Array) -> tuple[Array, Array]:
    """Coordinates (n, 2) in [0, 1] on the faces of a cube that directions (n, 3) point at, and the faces (n,)."""
    size = jnp.abs(way)
    axis = jnp.argmax(size, axis=1)
    x, y, z = way.T
    positive = jnp.take_along_axis(way, axis[:, None], axis=1)[:, 0] >= 0
    sign = jnp.where(positive, 1, -1)
    across = jnp.where(axis == 0, -sign * z, jnp.where(axis == 1, x, sign * x))
    down = jnp.where(axis == 1, sign * z, -y)
    most = jnp.maximum(jnp.max(size, axis=1), 1e-9)
    at = jnp.stack([across, down], axis=1) / most[:, None] * 0.5 + 0.5
    return at, 2 * axis + jnp.where(positive, 0, 1)


def _look_up(m: Model, tex: Array, at: Array, face: Array) -> Array:
    """Colours (n, 3) of textures (n,) at coordinates (n, 2), interpolated between the four nearest pixels of a face."""
    first = np.cumsum([0, *(m.tex_height * m.tex_width)])[:-1]
    width = jnp.asarray(m.tex_width)[tex]
    cube = m.tex_type != TextureType.TEXTURE_2D
    height = jnp.asarray(np.where(cube, m.tex_height // 6, m.tex_height))[tex]
    start = jnp.asarray(first)[tex] + face * width * height
    pixels = jnp.asarray(_pixels(m))
    x, y = at[:, 0] * width - 0.5, at[:, 1] * height - 0.5
    wraps = ~jnp.asarray(cube)[tex]

    def pixel(i: Array, j: Array) -> Array:
        col = jnp.where(wraps, j % width, jnp.clip(j, 0, width - 1))
        row = jnp.where(wraps, i % height, jnp.clip(i, 0, height - 1))
        return pixels[start + row * width + col].astype(at.dtype) / 255

    left, top = jnp.floor(x).astype(jnp.int32), jnp.floor(y).astype(jnp.int32)
    fx, fy = (x - left)[:, None], (y - top)[:, None]
    upper = pixel(top, left) * (1 - fx) + pixel(top, left + 1) * fx
    lower = pixel(top + 1, left) * (1 - fx) + pixel(top + 1, left + 1) * fx
    return upper * (1 - fy) + lower * fy
