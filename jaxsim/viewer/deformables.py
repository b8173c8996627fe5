"""Triangles of flexes and skins: their vertex indices, and positions of vertices in a frame. Host-side.

A cloth is drawn as its elements, a solid as its surface, both offset outwards by the radius of the flex; a rope as a
prism around each edge. A skin follows its bones.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.core.model import Model
from jaxsim.core.types import TextureRole, TextureType
from jaxsim.math.safe import Array
from jaxsim.viewer.scene import DEFAULT_RGBA, skin_points

SIDES = 6  # of the prism that is drawn for an edge


class Surface(NamedTuple):
    """A flex (`skin` false) or a skin: its id, triangles (n, 3) of its own vertices, texture coordinates (3 n, 2).

    `rgba` (4,) is its colour, `texture` the id of its texture or -1, `smooth` whether normals are those of vertices.
    A rope has edges (n, 2) for triangles.
    """

    skin: bool
    id: int
    face: np.ndarray
    coordinate: np.ndarray
    rgba: np.ndarray
    texture: int
    smooth: bool


def surfaces(m: Model, groups: tuple[int, ...] = (0, 1, 2)) -> list[Surface]:
    """List the flexes and skins of a model that are drawn."""
    flexes = [_flex_surface(m, f) for f in range(m.nflex) if int(m.flex_group[f]) in groups]
    skins = [_skin_surface(m, s) for s in range(m.nskin) if int(m.skin_group[s]) in groups]
    return [s for s in (*flexes, *skins) if s.rgba[3] > 0 and len(s.face)]


def look(m: Model, material: int, rgba: Array) -> tuple[np.ndarray, int]:
    """Find colour and texture of a flex or a skin; its own rgba overrides the material's unless it is the default."""
    rgba = np.asarray(rgba, np.float32)
    if material < 0:
        return rgba, -1
    rgba = np.asarray(m.mat_rgba[material], np.float32) if np.array_equal(rgba, DEFAULT_RGBA) else rgba
    texture = int(m.mat_texid[material, TextureRole.RGB])
    return rgba, texture if texture >= 0 and m.tex_type[texture] == TextureType.TEXTURE_2D else -1


def _flex_surface(m: Model, f: int) -> Surface:
    dim, count = int(m.flex_dim[f]), int(m.flex_elemnum[f])
    data = slice(m.flex_elemdataadr[f], m.flex_elemdataadr[f] + count * (dim + 1))
    face = m.flex_elem[data].reshape(count, dim + 1)
    rgba, texture = look(m, int(m.flex_matid[f]), np.asarray(m.flex_rgba[f]))
    coordinate = np.zeros((3 * len(face), 2))
    if dim == 3:
        face = m.flex_shell[m.flex_shelldataadr[f] :][: 3 * m.flex_shellnum[f]].reshape(-1, 3)
        coordinate, texture = np.zeros((3 * len(face), 2)), -1
    elif dim == 2 and m.flex_texcoordadr[f] >= 0:
        coordinate = m.flex_texcoord[m.flex_texcoordadr[f] + m.flex_elemtexcoord[data]]
    return Surface(False, f, face, coordinate, rgba, texture, not m.flex_flatskin[f])


def _skin_surface(m: Model, s: int) -> Surface:
    face = m.skin_face[m.skin_faceadr[s] :][: m.skin_facenum[s]]
    rgba, texture = look(m, int(m.skin_matid[s]), m.skin_rgba[s])
    coordinate = np.zeros((3 * len(face), 2))
    if m.skin_texcoordadr[s] >= 0:
        coordinate = m.skin_texcoord[m.skin_texcoordadr[s] + face.reshape(-1)]
    return Surface(True, s, face, coordinate, rgba, texture, True)


def surface_triangles(m: Model, s: Surface, frame: Mapping[str, np.ndarray]) -> np.ndarray:
    """Compute the corners (3 n, 8) of a surface's triangles in a frame: position, normal, texture coordinate."""
    point = surface_points(m, s, frame)
    if s.face.shape[1] == 2:
        return _prisms(point[s.face], float(m.flex_radius[s.id]))
    normal, grown = vertex_normals(point, s.face), thickness(m, s)
    flat = np.repeat(_face_normals(point, s.face), 3, 0)
    if is_sheet(m, s):
        sides = [_corners(point + k * grown * normal, s, k * normal, k * flat) for k in (1, -1)]
        return np.concatenate(sides)
    return _corners(point + grown * normal, s, normal, flat)


def surface_points(m: Model, s: Surface, frame: Mapping[str, np.ndarray]) -> np.ndarray:
    """Compute vertices (n, 3) of a flex or a skin in a frame, which has `flexvert_xpos`, or `xpos` and `xmat`."""
    if s.skin:
        return np.asarray(skin_points(m, jnp.asarray(frame["xpos"]), jnp.asarray(frame["xmat"]), s.id))
    return np.asarray(frame["flexvert_xpos"], np.float64)[m.flex_vertadr[s.id] :][: m.flex_vertnum[s.id]]


def thickness(m: Model, s: Surface) -> float:
    """Return the distance by which a surface is drawn outside of its vertices."""
    return float(m.skin_inflate[s.id]) if s.skin else float(m.flex_radius[s.id])


def is_sheet(m: Model, s: Surface) -> bool:
    """Return whether a surface is a cloth, drawn from both sides."""
    return not s.skin and m.flex_dim[s.id] == 2


def _corners(point: np.ndarray, s: Surface, normal: np.ndarray, flat: np.ndarray) -> np.ndarray:
    corner = s.face.reshape(-1)
    return np.concatenate([point[corner], normal[corner] if s.smooth else flat, s.coordinate], 1)


def _face_normals(point: np.ndarray, face: np.ndarray) -> np.ndarray:
    a, b, c = point[face].swapaxes(0, 1)
    normal = np.cross(b - a, c - a)
    return normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)


def vertex_normals(point: np.ndarray, face: np.ndarray) -> np.ndarray:
    """Compute unit normals (n, 3) of vertices: the mean normal of their triangles, weighted by area."""
    a, b, c = point[face].swapaxes(0, 1)
    normal = np.zeros_like(point)
    np.add.at(normal, face.reshape(-1), np.repeat(np.cross(b - a, c - a), 3, 0))
    return normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)


def _prisms(ends: np.ndarray, radius: float) -> np.ndarray:
    """Corners (3 n, 8) of the sides of prisms around edges (k, 2, 3)."""
    axis = ends[:, 1] - ends[:, 0]
    axis = axis / np.maximum(np.linalg.norm(axis, axis=1, keepdims=True), 1e-12)
    side = np.cross(axis, np.eye(3)[np.abs(axis).argmin(1)])
    side /= np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12)
    angle = np.linspace(0, 2 * np.pi, SIDES + 1)
    ring = np.cos(angle)[:, None] * side[:, None] + np.sin(angle)[:, None] * np.cross(axis, side)[:, None]
    low, high = (np.concatenate([ends[:, i, None] + radius * ring, ring], -1) for i in (0, 1))
    quads = (low[:, :-1], low[:, 1:], high[:, 1:], low[:, :-1], high[:, 1:], high[:, :-1])
    rows = np.stack(quads, 2).reshape(-1, 6)
    return np.concatenate([rows, np.zeros((len(rows), 2))], 1)
