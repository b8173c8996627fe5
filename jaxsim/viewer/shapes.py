"""Triangles and materials of geoms, and poses of all drawn objects at given joint positions. Host-side."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from jaxsim.core.model import Model
from jaxsim.core.types import GeomType, JointType, TextureRole, TextureType
from jaxsim.viewer.html import TRIANGLES, geom_appearance, hfield_triangles, mesh_triangles
from jaxsim.viewer.scene_layout import texture_pixels

CIRCLE_SEGMENTS = 24


class GeomMaterial(NamedTuple):
    """Colour of a geom, its texture image (height, width, 3) or None, and the number of repetitions."""

    rgba: np.ndarray
    image: np.ndarray | None
    repeat: tuple[float, float]


def geom_triangles(m: Model, g: int, reach: float) -> np.ndarray:
    """Triangulate a geom in its own frame: corners (3 n, 8) with position, normal, texture coordinate.

    Infinite planes extend `reach` metres from their centre.
    """
    kind, size = GeomType(m.geom_type[g]), np.asarray(m.geom_size[g], np.float64)
    if kind in TRIANGLES:
        if kind == GeomType.HFIELD:
            return hfield_triangles(m, int(m.geom_dataid[g]))
        return mesh_triangles(m, int(m.geom_dataid[g]))
    if kind == GeomType.PLANE:
        x, y = (s if s > 0 else reach for s in size[:2])
        corner = np.array([[-x, -y, 0], [x, -y, 0], [x, y, 0], [-x, -y, 0], [x, y, 0], [-x, y, 0]])
        return np.concatenate([corner, np.tile([0.0, 0, 1], (6, 1)), corner[:, :2]], 1)
    position = _solid(kind, size).reshape(-1, 3)
    if kind in (GeomType.BOX, GeomType.CYLINDER):  # flat faces
        a, b, c = position.reshape(-1, 3, 3).swapaxes(0, 1)
        normal = np.repeat(np.cross(b - a, c - a), 3, 0)
    elif kind == GeomType.CAPSULE:  # away from the segment on the axis
        axis = np.clip(position[:, 2:], -size[1], size[1]) * np.array([0, 0, 1.0])
        normal = position - axis
    else:
        normal = position / np.square(size if kind == GeomType.ELLIPSOID else size[0])
    normal = normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
    return np.concatenate([position, normal, _box_coordinates(position, normal, size)], 1)


def _solid(kind: GeomType, size: np.ndarray) -> np.ndarray:
    """Triangles (n, 3, 3) of a box, cylinder, capsule, sphere or ellipsoid, counter-clockwise seen from outside."""
    if kind == GeomType.BOX:
        square = np.array([[-1.0, -1, 1], [1, -1, 1], [1, 1, 1], [-1, -1, 1], [1, 1, 1], [-1, 1, 1]])
        sides = [np.roll(square * s, k, 1) for k in range(3) for s in (1, [-1, 1, -1])]
        return size * np.concatenate(sides).reshape(-1, 3, 3)
    if kind == GeomType.CYLINDER:
        return _revolved(np.array([0, size[0], size[0], 0]), size[1] * np.array([-1, -1, 1, 1]))
    angle = np.linspace(-np.pi / 2, np.pi / 2, CIRCLE_SEGMENTS // 2 + 2)  # even: none at the equator
    if kind == GeomType.CAPSULE:
        return _revolved(size[0] * np.cos(angle), size[0] * np.sin(angle) + size[1] * np.sign(angle))
    return _revolved(np.cos(angle), np.sin(angle)) * (size if kind == GeomType.ELLIPSOID else size[0])


def _revolved(radius: np.ndarray, height: np.ndarray) -> np.ndarray:
    """Triangles (n, 3, 3) of the surface of revolution about z of a profile from the lower pole to the upper."""
    turn = np.linspace(0, 2 * np.pi, CIRCLE_SEGMENTS + 1)
    circle = np.stack([np.cos(turn), np.sin(turn)], -1)
    flat = radius[:, None, None] * circle
    points = np.concatenate([flat, np.broadcast_to(height[:, None, None], (*flat.shape[:2], 1))], -1)
    a, b, c, d = points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]
    lower, upper = np.stack([a, b, c], -2), np.stack([a, c, d], -2)
    return np.concatenate([lower[1:].reshape(-1, 3, 3), upper[:-1].reshape(-1, 3, 3)])  # no empty ones at the poles


def _box_coordinates(position: np.ndarray, normal: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Texture coordinates (n, 2) of points of a box, each of whose faces shows the whole image."""
    unit = position / np.maximum(np.abs(position).max(0), 1e-9) / 2 + 0.5
    axis = np.abs(normal).argmax(1)
    first, second = np.array([1, 0, 0])[axis], np.array([2, 2, 1])[axis]
    rows = np.arange(len(unit))
    return np.stack([unit[rows, first], unit[rows, second]], 1)


def geom_material(m: Model, g: int) -> GeomMaterial:
    """Find colour and texture of a geom, by the same rules as in the HTML replay."""
    kind, mat = GeomType(m.geom_type[g]), int(m.geom_matid[g])
    tex = int(m.mat_texid[mat, TextureRole.RGB]) if mat >= 0 else -1
    flat = tex >= 0 and m.tex_type[tex] == TextureType.TEXTURE_2D
    material = geom_appearance(m, g, kind, {tex: 0} if flat else {})
    image = texture_pixels(m, tex) if material["image"] >= 0 else None
    return GeomMaterial(np.asarray(material["rgba"]), image, tuple(material["repeat"]))


def visible(m: Model, g: int, groups: tuple[int, ...] = (0, 1, 2)) -> bool:
    """Return whether a geom is drawn: its group is shown and it is not fully transparent."""
    return int(m.geom_group[g]) in groups and geom_material(m, g).rgba[3] > 0


def tendon_segments(m: Model, frame: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Collect segments (n, 2, 3) of each spatial tendon, without those between branches of a pulley."""
    if not m.ntendon:
        return []
    points, obj = np.reshape(frame["wrap_xpos"], (-1, 3)), np.reshape(frame["wrap_obj"], -1)
    out = []
    for start, count in zip(frame["ten_wrapadr"], frame["ten_wrapnum"], strict=True):
        rows = np.arange(start, start + max(int(count) - 1, 0))
        rows = rows[(obj[rows] != -2) & (obj[rows + 1] != -2)] if len(rows) else rows.astype(int)
        out.append(np.stack([points[rows], points[rows + 1]], 1).reshape(-1, 2, 3))
    return out


def joint_axes(m: Model, frame: Mapping[str, np.ndarray], length: float) -> np.ndarray:
    """Compute segments (n, 2, 3) along the axes of hinge and slide joints."""
    which = np.flatnonzero(np.isin(m.jnt_type, (JointType.HINGE, JointType.SLIDE)))
    anchor, axis = np.asarray(frame["xanchor"])[which], np.asarray(frame["xaxis"])[which]
    return np.stack([anchor - axis * length / 2, anchor + axis * length / 2], 1).reshape(-1, 2, 3)
