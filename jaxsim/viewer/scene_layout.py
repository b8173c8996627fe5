"""Static part of a scene, from the structure of a model: objects, their triangles, their textures."""

from typing import Any, NamedTuple

import numpy as np

from jaxsim.core.structure import per_structure
from jaxsim.core.types import ColorSpace, GeomType, ObjType, TextureRole, TextureType, TrnType, WrapType

PLANE, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, RIGID, SOFT = range(8)  # kinds of objects
KINDS = {
    GeomType.PLANE: PLANE,
    GeomType.SPHERE: SPHERE,
    GeomType.CAPSULE: CAPSULE,
    GeomType.ELLIPSOID: ELLIPSOID,
    GeomType.CYLINDER: CYLINDER,
    GeomType.BOX: BOX,
    GeomType.MESH: RIGID,
    GeomType.SDF: RIGID,
    GeomType.HFIELD: RIGID,
}
LEAF = 2  # triangles of a leaf
SRGB_LINEAR, SRGB_SCALE, SRGB_OFFSET, SRGB_POWER = 0.04045, 12.92, 0.055, 2.4  # IEC 61966-2-1
TEXEL_BITS = 10  # of a channel of a packed texel: linear colours of eight sRGB bits need more than eight
TEXEL_MAX = (1 << TEXEL_BITS) - 1


class Mesh(NamedTuple):
    """Triangles of a rigid shape: rows of `mesh_vert` (n, 3), normals and texture coordinates of corners."""

    vertex: np.ndarray
    normal: np.ndarray
    coordinate: np.ndarray
    smooth: bool  # whether all normals are those of the file; else those far from the triangle's are replaced


class Objects(NamedTuple):
    """Objects (n,) in the order in which MuJoCo draws them: of objects at the same depth the last is visible.

    `row` is the id of an object of type `objtype`. Tendons have one object for each segment, with index `part` along
    the path; slider-cranks have two. `shape` is the index of a rigid or soft shape, -1 without one.
    """

    kind: np.ndarray
    objtype: np.ndarray
    row: np.ndarray
    part: np.ndarray
    matid: np.ndarray
    group: np.ndarray
    shape: np.ndarray


class Heaps(NamedTuple):
    """Binary trees over the triangles of shapes, each a heap from 1 to twice its leaves, one after the other.

    `first` (k,) is the node before the root's, `leaves` the number of leaves, a power of two, `triangle` the first
    triangle, `count` the number of triangles.
    """

    first: np.ndarray
    leaves: np.ndarray
    triangle: np.ndarray
    count: np.ndarray


def power_of_two(n: int) -> int:
    """Return the smallest power of two that is at least `n`."""
    return 1 << max(n - 1, 0).bit_length()


def heaps(counts: list[int]) -> Heaps:
    """Lay out trees over shapes with the given numbers of triangles."""
    leaves = np.array([power_of_two(-(-n // LEAF)) for n in counts], np.int32).reshape(-1)
    first = np.cumsum(np.append(0, 2 * leaves))[:-1]
    triangle = np.cumsum([0, *counts])[:-1]
    return Heaps(first.astype(np.int32), leaves, triangle.astype(np.int32), np.array(counts, np.int32).reshape(-1))


def nodes_after(leaves: int) -> np.ndarray:
    """Find, for nodes of heaps of at most `leaves` leaves, the next after their subtree, depth first; 0 at the end."""
    node = np.arange(1, 2 * leaves + 1)
    while (even := node % 2 == 0).any():
        node = np.where(even, node // 2, node)
    return np.where(node == 1, 0, node).astype(np.int32)


@per_structure
def next_nodes(m: Any) -> np.ndarray:
    """Call `nodes_after` for the trees of a model."""
    shapes = [heaps_of_rigid(m), heaps_of_soft(m)]
    return nodes_after(max([power_of_two(len(objects(m).kind)), *(int(x) for h in shapes for x in h.leaves)]))


@per_structure
def objects(m: Any) -> Objects:
    """List all objects of the model, of all groups."""
    rows: list[tuple[Any, ...]] = []
    soft = iter(range(m.nflex + m.nskin))
    for i in range(m.nflex):
        look = (int(m.flex_matid[i]) if m.flex_texcoordadr[i] >= 0 else -1, int(m.flex_group[i]))
        if m.flex_dim[i] == 1:
            rows += [(CYLINDER, ObjType.FLEX, i, k, *look, -1) for k in range(m.flex_edgenum[i])]
        else:
            rows.append((SOFT, ObjType.FLEX, i, 0, *look, next(soft)))
    rows += [(SOFT, ObjType.SKIN, i, 0, m.skin_matid[i], m.skin_group[i], next(soft)) for i in range(m.nskin)]
    keys = rigid_shapes(m)
    for i in range(m.ngeom):
        kind, data = GeomType(m.geom_type[i]), int(m.geom_dataid[i])
        shape = keys.index((kind == GeomType.HFIELD, data)) if KINDS[kind] == RIGID else -1
        rows.append((KINDS[kind], ObjType.GEOM, i, 0, m.geom_matid[i], m.geom_group[i], shape))
    rows += [
        (KINDS[GeomType(m.site_type[i])], ObjType.SITE, i, 0, m.site_matid[i], m.site_group[i], -1)
        for i in range(m.nsite)
    ]
    for i in range(m.ntendon):
        look = (ObjType.TENDON, i), (m.tendon_matid[i], m.tendon_group[i], -1)
        rows += [(CAPSULE, *look[0], k, *look[1]) for k in range(path_points(m, i) - 1)]
    cranks = np.flatnonzero(m.actuator_trntype == TrnType.SLIDERCRANK)
    rows += [((CYLINDER, CAPSULE)[k], ObjType.ACTUATOR, i, k, -1, 0, -1) for i in cranks for k in (0, 1)]
    return Objects(*np.array(rows, np.int32).reshape(-1, 7).T)


def path_points(m: Any, tendon: int) -> int:
    """Count the points of a spatial tendon's path, at most; 0 for a fixed one."""
    kinds = m.wrap_type[m.tendon_adr[tendon] :][: m.tendon_num[tendon]]
    return (
        0
        if (kinds == WrapType.JOINT).any()
        else int(np.isin(kinds, (WrapType.SPHERE, WrapType.CYLINDER)).sum() + len(kinds))
    )


@per_structure
def rigid_shapes(m: Any) -> list[tuple[bool, int]]:
    """List the meshes and height fields of geoms: whether each is a height field, and its id."""
    keys = [
        (m.geom_type[i] == GeomType.HFIELD, int(m.geom_dataid[i]))
        for i in range(m.ngeom)
        if KINDS[GeomType(m.geom_type[i])] == RIGID
    ]
    return sorted(set(keys))


@per_structure
def rigid_meshes(m: Any) -> list[Mesh | np.ndarray]:
    """Collect the triangles of the rigid shapes; of a height field its cells in the order of a Morton curve."""
    return [cells(m, i) if is_field else mesh(m, i) for is_field, i in rigid_shapes(m)]


def mesh(m: Any, i: int) -> Mesh:
    """Return the triangles of a mesh in the order of its bounding volume hierarchy, so that neighbours are near."""
    nodes = m.bvh_nodeid[m.mesh_bvhadr[i] :][: m.mesh_bvhnum[i]]
    face = nodes[nodes >= 0]
    if not np.array_equal(np.sort(face), np.arange(m.mesh_facenum[i])):
        face = np.arange(m.mesh_facenum[i])
    face = face + m.mesh_faceadr[i]
    vertex = m.mesh_face[face] + m.mesh_vertadr[i]
    normal = m.mesh_normal[m.mesh_facenormal[face] + m.mesh_normaladr[i]]
    textured = m.mesh_texcoordadr[i] >= 0
    coordinate = np.zeros((len(face), 3, 2))
    if textured:
        coordinate = m.mesh_texcoord[m.mesh_facetexcoord[face] + m.mesh_texcoordadr[i]]
    return Mesh(vertex, normal, coordinate, bool(textured))


def cells(m: Any, i: int) -> np.ndarray:
    """List rows and columns (n, 2) of the cells of a height field, along a Morton curve."""
    row, col = np.divmod(np.arange((m.hfield_nrow[i] - 1) * (m.hfield_ncol[i] - 1)), m.hfield_ncol[i] - 1)
    return np.stack([row, col], 1)[np.argsort(morton(np.stack([row, col], 1)), kind="stable")]


def morton(index: np.ndarray) -> np.ndarray:
    """Compute the codes (n,) of integer coordinates (n, k) along a Morton curve."""
    bits = max(int(index.max(initial=0)).bit_length(), 1)
    code = np.zeros(len(index), np.int64)
    for bit in range(bits):
        for axis, x in enumerate(index.T):
            code |= ((x >> bit) & 1).astype(np.int64) << (bit * index.shape[1] + axis)
    return code


def triangle_count(m: Any, is_field: bool, i: int) -> int:
    """Number of triangles of a rigid shape; a height field has walls and a floor."""
    if not is_field:
        return int(m.mesh_facenum[i])
    r, c = int(m.hfield_nrow[i]) - 1, int(m.hfield_ncol[i]) - 1
    return 2 * r * c + 4 * (r + c) + 2


@per_structure
def heaps_of_rigid(m: Any) -> Heaps:
    """Lay out trees over the rigid shapes."""
    return heaps([triangle_count(m, *key) for key in rigid_shapes(m)])


class Soft(NamedTuple):
    """Triangles of a flex or a skin: corners (n, 3) as vertices and sides, 1 above and -1 below; texture coordinates.

    `wall` marks triangles that close the edge of a cloth: their normals lie in the cloth.
    """

    vertex: np.ndarray
    side: np.ndarray
    wall: np.ndarray
    coordinate: np.ndarray


@per_structure
def soft_shapes(m: Any) -> list[tuple[int, int, Soft]]:
    """List flexes of more than one dimension and skins: kind, id, triangles."""
    found = [(int(ObjType.FLEX), i, _flex(m, i)) for i in range(m.nflex) if m.flex_dim[i] > 1]
    return found + [(int(ObjType.SKIN), i, _skin(m, i)) for i in range(m.nskin)]


def _flex(m: Any, i: int) -> Soft:
    dim = int(m.flex_dim[i])
    shell = m.flex_shell[m.flex_shelldataadr[i] :][: dim * m.flex_shellnum[i]].reshape(-1, dim)
    table = m.flex_texcoord[m.flex_texcoordadr[i] :] if m.flex_texcoordadr[i] >= 0 else np.zeros((m.flex_vertnum[i], 2))
    if dim == 3:
        side = np.ones(shell.shape, int)
        return Soft(shell, side, np.zeros(len(shell), bool), table[shell])
    data = slice(m.flex_elemdataadr[i], m.flex_elemdataadr[i] + 3 * m.flex_elemnum[i])
    face, corner = m.flex_elem[data].reshape(-1, 3), m.flex_elemtexcoord[data].reshape(-1, 3)
    corner = corner if m.flex_texcoordadr[i] >= 0 else np.zeros_like(face)
    flip = [0, 2, 1]
    a, b = shell.T
    vertex = np.concatenate(
        [np.stack([face, face[:, flip]], 1).reshape(-1, 3), np.stack([a, b, b], 1), np.stack([b, a, a], 1)]
    )
    wall = np.arange(len(vertex)) >= 2 * len(face)
    side = np.where(np.arange(2 * len(face)) % 2, -1, 1)[:, None] * np.ones(3, int)
    side = np.concatenate([side, np.tile([1, -1, 1], (len(shell), 1)), np.tile([-1, 1, -1], (len(shell), 1))])
    own = [np.stack([table[corner], table[corner[:, flip]]], 1).reshape(-1, 3, 2)]
    own += [table[np.minimum(x, len(table) - 1)] for x in (np.stack([a, b, b], 1), np.stack([b, a, a], 1))]
    return Soft(vertex, side, wall, np.concatenate(own))


def _skin(m: Any, i: int) -> Soft:
    face = m.skin_face[m.skin_faceadr[i] :][: m.skin_facenum[i]]
    middle = m.skin_vert[m.skin_vertadr[i] + face].mean(1)
    low, high = middle.min(0), middle.max(0)
    face = face[np.argsort(morton((1023 * (middle - low) / np.maximum(high - low, 1e-9)).astype(int)), kind="stable")]
    coordinate = np.zeros((len(face), 3, 2))
    if m.skin_texcoordadr[i] >= 0:
        coordinate = m.skin_texcoord[m.skin_texcoordadr[i] + face]
    return Soft(face, np.ones(face.shape, int), np.zeros(len(face), bool), coordinate)


@per_structure
def heaps_of_soft(m: Any) -> Heaps:
    """Lay out trees over the flexes and skins."""
    return heaps([len(s.vertex) for _, _, s in soft_shapes(m)])


class Textures(NamedTuple):
    """Images of the model with their mipmaps, concatenated.

    `texel` (n,) are colours packed in 10 bits a channel, linear. `first`, `width`, `height` (ntex, nlevel) are of each
    level of one face; `faces` is 6 of cubes, 1 of others; `levels` (ntex,) counts them.
    """

    texel: np.ndarray
    first: np.ndarray
    width: np.ndarray
    height: np.ndarray
    levels: np.ndarray
    is_cube: np.ndarray


@per_structure
def textures(m: Any) -> Textures:
    """Collect the images of materials and of the sky."""
    used = {int(t) for t in m.mat_texid[:, TextureRole.RGB] if t >= 0} if m.nmat else set()
    used |= set(sky(m))
    parts: list[np.ndarray] = []
    most = max([1, *(int(max(m.tex_width[i], m.tex_height[i])).bit_length() for i in used)])
    first, width, height = (np.zeros((max(m.ntex, 1), most), np.int32) for _ in range(3))
    levels, total = np.ones(max(m.ntex, 1), np.int32), 0
    for i in sorted(used):
        image = linear_image(m, i)
        for level in range(most):
            first[i, level], width[i, level], height[i, level] = total, image.shape[2], image.shape[1]
            parts.append(_packed(image))
            total += len(parts[-1])
            levels[i] = level + 1
            if max(image.shape[1:3]) == 1:
                break
            image = _halved(image)
    cube = np.append(m.tex_type != TextureType.TEXTURE_2D, False)[: max(m.ntex, 1)]
    return Textures(
        np.concatenate([np.zeros(1, np.int32), *parts])[1 if parts else 0 :], first, width, height, levels, cube
    )


def texture_pixels(m: Any, i: int) -> np.ndarray:
    """Read the pixels (height, width, 3) of a texture, uint8; a single channel is repeated."""
    w, h, n = int(m.tex_width[i]), int(m.tex_height[i]), int(m.tex_nchannel[i])
    data = m.tex_data[m.tex_adr[i] : m.tex_adr[i] + w * h * n].reshape(h, w, n)
    return np.repeat(data[..., :1], 3, -1) if n < 3 else data[..., :3]


def linear_image(m: Any, i: int) -> np.ndarray:
    """Convert an image to linear faces (1 or 6, height, width, 3) from 0 to 1; a cube of one image has it six times."""
    x = texture_pixels(m, i).astype(np.float32) / 255
    if m.tex_type[i] == TextureType.TEXTURE_2D:
        if m.tex_colorspace[i] == ColorSpace.SRGB:
            bright = ((x + SRGB_OFFSET) / (1 + SRGB_OFFSET)) ** SRGB_POWER
            x = np.where(x <= SRGB_LINEAR, x / SRGB_SCALE, bright)
        return x[None]
    h, w, _ = x.shape
    return np.repeat(x[None], 6, 0) if w == h else x.reshape(6, w, w, 3)


def _halved(image: np.ndarray) -> np.ndarray:
    """An image of half the size: means of squares of pixels."""
    _, h, w, _ = image.shape
    if h > 1:
        image = (image[:, : h // 2 * 2 : 2] + image[:, 1 : h // 2 * 2 : 2]) / 2
    if w > 1:
        image = (image[:, :, : w // 2 * 2 : 2] + image[:, :, 1 : w // 2 * 2 : 2]) / 2
    return image


def _packed(image: np.ndarray) -> np.ndarray:
    channel = np.round(image.reshape(-1, 3) * TEXEL_MAX).astype(np.int32)
    return channel[:, 0] | channel[:, 1] << TEXEL_BITS | channel[:, 2] << (2 * TEXEL_BITS)


def sky(m: Any) -> list[int]:
    """Find the texture of the sky, as a list of one, or none."""
    return [int(i) for i in np.flatnonzero(m.tex_type == TextureType.SKYBOX)[:1]]
