"""`Scene`: the visible objects of a model at given poses. Renderers read only the scene, not the model.

Objects are geoms, sites, segments of tendons, slider-cranks, flexes and skins, with the colours and materials that
MuJoCo gives them. Lines of rangefinders and decorations (contacts, joints, frames) are not in it.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.types import LightType, ObjType, TextureRole
from jaxsim.math import safe
from jaxsim.math.arrays import gather, inner, matvec, take
from jaxsim.math.rotation import cross, quat_to_mat
from jaxsim.math.safe import Array
from jaxsim.viewer import scene_layout as layout
from jaxsim.viewer.scene_layout import CAPSULE, CYLINDER, LEAF, PLANE, RIGID, SOFT, SPHERE, Mesh

DEFAULT_RGBA = (0.5, 0.5, 0.5, 1.0)  # an object of this colour takes that of its material
NO_MATERIAL = (0.0, 0.5, 0.5, 0.0)  # emission, specular, shininess and reflectance without a material
GROUPS = (0, 1, 2)  # drawn by default
OPAQUE = 0.995  # what is less opaque is drawn as transparent, as by MuJoCo
UNBOUNDED = 1e10  # half size of infinite planes
NGROUP = 6
CURVE_BITS = 10  # of a coordinate along the curve that orders objects
CURVE_CELLS = (1 << CURVE_BITS) - 1
NOWHERE = 1e30  # where empty boxes lie
NOTHING = np.array([np.inf] * 3 + [-np.inf] * 3)  # an empty box


class Triangles(NamedTuple):
    """Corners and normals (n, 9) and texture coordinates (n, 6) of triangles, and boxes (nodes, 6) of their trees."""

    corner: Array
    normal: Array
    coordinate: Array
    box: Array


class Lights(NamedTuple):
    """Lights (n,) that are on, the headlight first. `headlight` ones shine along the camera's axis.

    `spot` marks lights with a cone, `shadow` lights that cast shadows.
    """

    headlight: Array
    spot: Array
    shadow: Array
    pos: Array
    dir: Array
    ambient: Array
    diffuse: Array
    specular: Array
    attenuation: Array
    cutoff: Array
    exponent: Array


class Scene(NamedTuple):
    """Objects (n,), their materials and triangles, lights and sky. Sizes are half sizes, mat (n, 9) global.

    `shine` (n, 4) is emission, specular, shininess, reflectance. `texture` (n,) is -1 without one; `explicit` says
    whether triangles have coordinates. `box` (nodes, 6) are lower and upper corners of a tree over the objects, as a
    heap whose leaves are objects in an `order` (n,) that is new at every pose. `shadow_reach` is half the width of
    shadows of directional lights, `shadow_cone` the part of a spot light's cone that casts shadows.
    """

    kind: Array
    pos: Array
    mat: Array
    size: Array
    rgba: Array
    shine: Array
    texture: Array
    repeat: Array
    uniform: Array
    explicit: Array
    base: Array
    leaves: Array
    triangle: Array
    count: Array
    order: Array
    box: Array
    next: Array
    rigid: Triangles
    soft: Triangles
    lights: Lights
    texel: Array
    level_first: Array
    level_width: Array
    level_height: Array
    levels: Array
    is_cube: Array
    extent: Array
    shadow_reach: Array
    shadow_cone: Array


def make_scene(m: Model, d: Data, rigid: Triangles, groups: tuple[int, ...] = GROUPS) -> Scene:
    """Make the scene at the poses in `d` (after `camlight`; `flex` and `tendon` where the model has them).

    `rigid` are the triangles of `rigid_triangles(m, dtype)`.
    """
    s, box = _objects(m, d, rigid, groups)
    return _with_tree(s, box, layout.next_nodes(m))


def make_scene_of_worlds(m: Model, d: Data, offset: Array, groups: tuple[int, ...] = GROUPS) -> Scene:
    """Make one scene of many worlds: `d` is a batch, `offset` (nworld, 3) moves each world.

    Static planes and lights are those of the first world, and do not move; everything else is there in every world.
    """
    nworld, o = len(offset), layout.objects(m)
    rigid = rigid_triangles(m, d.geom_xpos.dtype)
    worlds, box = jax.vmap(lambda d: _objects(m, d, rigid, groups))(d)
    first = jax.tree.map(lambda x: x[0], worlds)
    is_soft, world = o.kind == SOFT, np.arange(nworld)[:, None]
    move = jnp.asarray(offset, worlds.pos.dtype)
    box = box + jnp.tile(move, 2)[:, None]
    static = np.zeros(len(o.kind), bool)
    planes = (o.kind == PLANE) & (o.objtype == ObjType.GEOM)
    body = m.geom_bodyid[o.row[planes]]
    static[planes] = (m.body_weldid[body] == 0) & (m.body_mocapid[m.body_rootid[body]] < 0)
    box = jnp.where((static & (world > 0))[..., None], NOTHING.astype(box.dtype), box)
    nodes, triangles = len(first.soft.box), len(first.soft.corner)
    together = lambda x: x.reshape(-1, *x.shape[2:])  # noqa: E731
    each = ("kind", "mat", "size", "rgba", "shine", "texture", "repeat", "uniform", "explicit", "leaves", "count")
    shift_of_triangles = {"corner": jnp.tile(move, 3), "box": jnp.tile(move, 2)}
    soft = {k: getattr(worlds.soft, k) + x[:, None] for k, x in shift_of_triangles.items()}
    reach = jnp.max(jnp.linalg.norm(move, axis=1))  # of the grid: shadows end no earlier than it
    s = first._replace(
        **{name: together(getattr(worlds, name)) for name in each},
        pos=together(worlds.pos + move[:, None] * ~is_soft[:, None]),  # triangles of flexes and skins have moved
        base=together(worlds.base + (nodes * world * is_soft).astype(np.int32)),
        triangle=together(worlds.triangle + (triangles * world * is_soft).astype(np.int32)),
        soft=jax.tree.map(together, worlds.soft._replace(**soft)),
        shadow_reach=first.shadow_reach + reach,
    )
    heaps = (layout.power_of_two(len(s.kind)), *layout.heaps_of_rigid(m).leaves, *layout.heaps_of_soft(m).leaves)
    return _with_tree(s, together(box), layout.nodes_after(max(int(x) for x in heaps)))


def _with_tree(s: Scene, box: Array, after: np.ndarray) -> Scene:
    """A scene with a tree over the boxes (n, 6) of its objects."""
    order = _along_curve(box)
    tree = heap_of_boxes(box[order], layout.power_of_two(len(box)))
    s = s._replace(order=order, box=tree, next=jnp.asarray(after))
    if len(box):
        return s
    # nothing but the sky: tables have a row all the same
    return jax.tree.map(lambda x: jnp.zeros((1, *x.shape[1:]), x.dtype) if x.shape[:1] == (0,) else x, s)


def _objects(m: Model, d: Data, rigid: Triangles, groups: tuple[int, ...]) -> tuple[Scene, Array]:
    """A scene without the tree over its objects, and the boxes (n, 6) of these."""
    o, dtype = layout.objects(m), d.geom_xpos.dtype
    pos, mat, size, shown = _places(m, d, o)
    rgba, shine, repeat = _materials(m, o, dtype)
    seen = np.isin(np.clip(o.group, 0, NGROUP - 1), groups) | (o.objtype == ObjType.ACTUATOR)
    shown = shown & seen & (rgba[:, 3] != 0)
    heaps = layout.heaps_of_rigid(m), layout.heaps_of_soft(m)
    soft = _soft(m, d)
    index = np.maximum(o.shape, 0)

    def pick(k: int) -> np.ndarray:
        of_rigid, of_soft = (np.append(h[k], 0)[np.minimum(index, len(h[k]))] for h in heaps)
        return np.where(o.shape >= 0, np.where(o.kind == SOFT, of_soft, of_rigid), 0).astype(np.int32)

    base, leaves, triangle, count = (pick(k) for k in range(4))
    box = _boxes(o, pos, mat, size, shown, rigid, soft, base)
    later = jnp.zeros(0, jnp.int32), jnp.zeros((0, 6), dtype), jnp.zeros(0, jnp.int32)  # `_with_tree`
    images = layout.textures(m)
    mat_texid = np.append(m.mat_texid[:, TextureRole.RGB], -1)
    texture = mat_texid[o.matid]
    explicit = np.zeros(len(o.kind), bool)
    for i in np.flatnonzero((o.kind == RIGID) | (o.kind == SOFT)):
        explicit[i] = _has_coordinates(m, o, int(i))
    scene = Scene(
        jnp.asarray(o.kind), pos, mat, size, rgba, shine, jnp.asarray(texture), repeat,
        jnp.asarray(np.append(m.mat_texuniform, False)[o.matid]), jnp.asarray(explicit),
        jnp.asarray(base), jnp.asarray(leaves), jnp.asarray(triangle), jnp.asarray(count),
        *later, rigid, soft, _lights(m, d), jnp.asarray(images.texel),
        jnp.asarray(images.first), jnp.asarray(images.width), jnp.asarray(images.height), jnp.asarray(images.levels),
        jnp.asarray(images.is_cube), jnp.asarray(m.stat.extent, dtype),
        jnp.asarray(m.vis.map.shadowclip * m.stat.extent, dtype), jnp.asarray(m.vis.map.shadowscale, dtype),
    )  # fmt: skip
    return scene, box


def _has_coordinates(m: Any, o: layout.Objects, i: int) -> bool:
    if o.objtype[i] == ObjType.GEOM:
        is_field, data = layout.rigid_shapes(m)[o.shape[i]]
        return not is_field and m.mesh_texcoordadr[data] >= 0
    return (m.skin_texcoordadr if o.objtype[i] == ObjType.SKIN else m.flex_texcoordadr)[o.row[i]] >= 0


def _places(m: Model, d: Data, o: layout.Objects) -> tuple[Array, Array, Array, Array]:
    """Positions, rotations, sizes of objects, and whether they are there."""
    dtype = d.geom_xpos.dtype
    one = lambda k: jnp.broadcast_to(jnp.eye(3, dtype=dtype).reshape(9), (k, 9))  # noqa: E731
    # triangles of flexes and skins are in the world's frame
    in_world = jnp.zeros((1, 3), dtype), one(1), jnp.full((1, 3), 0.1, dtype), jnp.ones(1, bool)
    parts = []
    for i in range(m.nflex):
        if m.flex_dim[i] == 1:
            ends = m.flex_vertadr[i] + m.flex_edge[m.flex_edgeadr[i] :][: m.flex_edgenum[i]]
            parts.append(_connectors(take(d.flexvert_xpos, ends), m.flex_radius[i]))
        else:
            parts.append(in_world)
    parts += [in_world] * m.nskin
    if m.ngeom:
        size = _sizes(o.kind[o.objtype == ObjType.GEOM], m.geom_size)
        parts.append((d.geom_xpos, d.geom_xmat.reshape(-1, 9), size, jnp.ones(m.ngeom, bool)))
    if m.nsite:
        size = _sizes(o.kind[o.objtype == ObjType.SITE], m.site_size)
        parts.append((d.site_xpos, d.site_xmat.reshape(-1, 9), size, jnp.ones(m.nsite, bool)))
    tendon = o.objtype == ObjType.TENDON
    if tendon.any():
        parts.append(_tendon_segments(m, d, o.row[tendon], o.part[tendon]))
    cranks = np.unique(o.row[o.objtype == ObjType.ACTUATOR])
    if len(cranks):
        parts.append(_cranks(m, d, cranks))
    if not parts:
        return jnp.zeros((0, 3), dtype), jnp.zeros((0, 9), dtype), jnp.zeros((0, 3), dtype), jnp.zeros(0, bool)
    pos, mat, size, there = (jnp.concatenate(x) for x in zip(*parts, strict=True))
    return pos, mat, size, there


def _sizes(kind: np.ndarray, size: Array) -> Array:
    """Half sizes along the axes, as those of MuJoCo's scene: a capsule's third is half its straight part."""
    r = size[:, 0]
    round_ = np.isin(kind, (CAPSULE, CYLINDER))
    second = jnp.where(np.isin(kind, (SPHERE, CAPSULE, CYLINDER)), r, size[:, 1])
    third = jnp.where(kind == SPHERE, r, jnp.where(round_, size[:, 1], size[:, 2]))
    return jnp.stack([r, second, third], 1)


def _connectors(ends: Array, radius: Array) -> tuple[Array, Array, Array, Array]:
    """Capsules or cylinders (n,) between points (n, 2, 3)."""
    a, b = ends[:, 0], ends[:, 1]
    axis, length = safe.normalize(b - a, default=np.array([0.0, 0, 1]))
    radius = jnp.broadcast_to(radius, length.shape)
    size = jnp.stack([radius, radius, length / 2], 1)
    return (a + b) / 2, _rotation_to(axis), size, length > 0


def _rotation_to(axis: Array) -> Array:
    """The least rotations (n, 9) that turn z to unit vectors (n, 3)."""
    x, y, z = axis.T
    opposite = z < -1 + 1e-9
    k = 1 / jnp.where(opposite, 1, 1 + z)
    sign = jnp.where(opposite, -1, 1)
    rows = [1 - x * x * k, -x * y * k, x, -x * y * k, sign * (1 - y * y * k), y, -x, -y, z]
    return jnp.stack(rows, 1)


def _tendon_segments(m: Model, d: Data, tendon: np.ndarray, part: np.ndarray) -> tuple[Array, Array, Array, Array]:
    """Segments (n,) of tendons, thinner within wrapping geoms; those beyond the path's end are not there."""
    points, owner = d.wrap_xpos.reshape(-1, 3), d.wrap_obj.reshape(-1)
    row = jnp.asarray(d.ten_wrapadr)[tendon] + part
    row = jnp.clip(row, 0, max(len(points) - 2, 0))
    a, b = gather(owner, row), gather(owner, row + 1)
    width = take(m.tendon_width, tendon) * jnp.where((a >= 0) & (b >= 0), 0.5, 1)
    pos, mat, size, there = _connectors(jnp.stack([gather(points, row), gather(points, row + 1)], 1), width)
    return pos, mat, size, there & (part < jnp.asarray(d.ten_wrapnum)[tendon] - 1) & (a != -2) & (b != -2)


def _cranks(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array, Array, Array]:
    """Slider and rod of each slider-crank."""
    crank, slider = m.actuator_trnid[ids].T
    rod, axis = take(m.actuator_cranklength, ids), take(d.site_xmat, slider).reshape(-1, 3, 3)[:, :, 2]
    start, pin = take(d.site_xpos, slider), take(d.site_xpos, crank)
    along = inner(pin - start, axis)
    rest = along**2 + rod**2 - inner(pin - start, pin - start)
    end = start + axis * (along - safe.sqrt(jnp.maximum(rest, 0)))[:, None]
    ends = jnp.stack([jnp.stack([start, end], 1), jnp.stack([end, pin], 1)], 1).reshape(-1, 2, 3)
    width = m.stat.meansize * m.vis.scale.slidercrank
    return _connectors(ends, jnp.tile(jnp.stack([width, width / 2]), len(ids)).astype(end.dtype))


def _materials(m: Model, o: layout.Objects, dtype: Any) -> tuple[Array, Array, Array]:
    """Colours (n, 4), shine (n, 4) and repetitions of textures (n, 2) of objects."""
    own = {
        ObjType.FLEX: m.flex_rgba,
        ObjType.SKIN: m.skin_rgba,
        ObjType.GEOM: m.geom_rgba,
        ObjType.SITE: m.site_rgba,
        ObjType.TENDON: m.tendon_rgba,
        ObjType.ACTUATOR: np.broadcast_to(np.asarray(m.vis.rgba.slidercrank, np.float32), (m.nu, 4)),
    }
    parts = [take(jnp.asarray(x, dtype), o.row[o.objtype == t]) for t, x in own.items() if (o.objtype == t).any()]
    rgba = jnp.concatenate([jnp.zeros((0, 4), dtype), *parts])
    shine = jnp.broadcast_to(jnp.array(NO_MATERIAL, dtype), (len(o.kind), 4))
    repeat = jnp.ones((len(o.kind), 2), dtype)
    if m.nmat:
        of, has = np.maximum(o.matid, 0), (o.matid >= 0)[:, None]
        table = jnp.stack([m.mat_emission, m.mat_specular, m.mat_shininess, m.mat_reflectance], 1)
        plain = jnp.all(rgba == jnp.array(DEFAULT_RGBA, dtype), 1, keepdims=True)
        rgba = jnp.where(has & plain, take(m.mat_rgba, of), rgba)
        shine, repeat = jnp.where(has, take(table, of), shine), jnp.where(has, take(m.mat_texrepeat, of), repeat)
    return rgba, shine, repeat


def heap_of_boxes(box: Array, leaves: int) -> Array:
    """Build boxes (2 * leaves, 6), lower and upper corners, of a binary tree over boxes (n, 6); node 1 is the root."""
    nothing = NOTHING.astype(box.dtype)
    level = jnp.concatenate([box, jnp.broadcast_to(nothing, (leaves - len(box), 6))])
    levels = [level]
    while len(level) > 1:
        pair = level.reshape(-1, 2, 6)
        level = jnp.concatenate([jnp.min(pair[:, :, :3], 1), jnp.max(pair[:, :, 3:], 1)], 1)
        levels.append(level)
    heap = jnp.concatenate([nothing[None], *levels[::-1]])
    return jax.lax.stop_gradient(jnp.where(heap[:, :1] > heap[:, 3:4], NOWHERE, heap))


def tree_of(s: Scene, which: Array) -> Array:
    """Restrict the tree `s.box` to some of the objects (n,)."""
    leaves, n = len(s.box) // 2, len(s.kind)
    box = s.box[leaves : leaves + n]
    real = which[s.order] & (box[:, 0] < NOWHERE)
    return heap_of_boxes(jnp.where(real[:, None], box, NOTHING.astype(box.dtype)), leaves)


def _boxes(
    o: layout.Objects,
    pos: Array,
    mat: Array,
    size: Array,
    shown: Array,
    rigid: Triangles,
    soft: Triangles,
    base: np.ndarray,
) -> Array:
    """Boxes (n, 6) of objects in the world; empty for those that are not shown."""
    kind = o.kind
    plane = jnp.where(size > 0, size, UNBOUNDED) * np.array([1.0, 1, 0])
    capsule = size + jnp.concatenate([jnp.zeros_like(size[:, :2]), size[:, :1]], 1)
    half = jnp.where((kind == PLANE)[:, None], plane, jnp.where((kind == CAPSULE)[:, None], capsule, size))
    middle = jnp.zeros_like(half)
    if (kind == RIGID).any():
        root = take(rigid.box, np.where(kind == RIGID, base + 1, 1))
        is_rigid = (kind == RIGID)[:, None]
        middle = jnp.where(is_rigid, (root[:, :3] + root[:, 3:]) / 2, middle)
        half = jnp.where(is_rigid, (root[:, 3:] - root[:, :3]) / 2, half)
    turn = mat.reshape(-1, 3, 3)
    centre, reach = pos + matvec(turn, middle), matvec(jnp.abs(turn), half)
    slack = 1e-6 * (jnp.abs(centre) + reach)
    box = jnp.concatenate([centre - reach - slack, centre + reach + slack], 1)
    if (kind == SOFT).any():
        box = jnp.where((kind == SOFT)[:, None], take(soft.box, np.where(kind == SOFT, base + 1, 1)), box)
    return jnp.where(shown[:, None], box, NOTHING.astype(box.dtype))


def _along_curve(box: Array) -> Array:
    """Order (n,) of boxes along a Morton curve through their middles; unbounded ones first, empty ones last."""
    box = jax.lax.stop_gradient(box)
    low, high = box[:, :3], box[:, 3:]
    unbounded, empty = jnp.any(high - low > UNBOUNDED / 2, 1), box[:, 0] > box[:, 3]
    plain = ~(unbounded | empty)[:, None]
    middle = jnp.where(plain, low + high, 0) / 2
    first = jnp.min(jnp.where(plain, middle, jnp.inf), 0, initial=jnp.inf)
    last = jnp.max(jnp.where(plain, middle, -jnp.inf), 0, initial=-jnp.inf)
    scale = CURVE_CELLS * safe.divide(jnp.ones_like(first), jnp.maximum(jnp.max(last - first), 1e-9))
    cell = jnp.where(plain, (middle - first) * scale, 0).astype(jnp.int32)
    code = jnp.zeros(len(box), jnp.int32)
    for bit in range(CURVE_BITS):
        for axis in range(3):
            code |= ((cell[:, axis] >> bit) & 1) << (3 * bit + axis)
    code = jnp.where(unbounded, -1, jnp.where(empty, jnp.iinfo(jnp.int32).max, code))
    return jnp.argsort(code).astype(jnp.int32)


def _trees(corner: Array, heaps: layout.Heaps, dtype: Any) -> Array:
    """Boxes of the trees over triangles with corners (n, 3, 3)."""
    low, high = jnp.min(corner, 1), jnp.max(corner, 1)
    slack = 1e-6 * (jnp.abs(low) + jnp.abs(high))
    each = jnp.concatenate([low - slack, high + slack], 1)
    parts = []
    for leaves, start, count in zip(heaps.leaves, heaps.triangle, heaps.count, strict=True):
        mine = each[int(start) : int(start + count)]
        if count % LEAF:
            mine = jnp.concatenate([mine, mine[-1:]])
        pair = mine.reshape(-1, LEAF, 6)
        box = jnp.concatenate([jnp.min(pair[:, :, :3], 1), jnp.max(pair[:, :, 3:], 1)], 1)
        parts.append(heap_of_boxes(box, int(leaves)))
    return jnp.concatenate([*parts, jnp.zeros((2, 6), dtype)])


def _triangles(shapes: list[tuple[Array, Array, np.ndarray]], heaps: layout.Heaps, dtype: Any) -> Triangles:
    """Triangles with trees, of shapes: corners and normals (n, 3, 3), coordinates (n, 3, 2).

    Every table has a row more than there are triangles.
    """
    last = (jnp.zeros((1, 3, k), dtype) for k in (3, 3, 2))
    tables = [jnp.concatenate([jnp.asarray(x, dtype) for x in parts]) for parts in zip(*shapes, last, strict=True)]
    corner, normal, coordinate = (x.reshape(len(x), -1) for x in tables)
    return Triangles(corner, normal, coordinate, _trees(tables[0][:-1], heaps, dtype))


def rigid_triangles(m: Model, dtype: Any) -> Triangles:
    """Collect the triangles of meshes and height fields, in their own frames."""
    shapes = []
    for shape, (_, i) in zip(layout.rigid_meshes(m), layout.rigid_shapes(m), strict=True):
        if isinstance(shape, Mesh):
            corner = take(m.mesh_vert, shape.vertex).astype(dtype)
            normal, coordinate = jnp.asarray(shape.normal, dtype), shape.coordinate
            if not shape.smooth:
                flat = _unit_normals(corner)[:, None]
                normal = jnp.where(inner(normal, flat)[..., None] < 0.8, flat, normal)
        else:
            corner = _field_triangles(m, i, shape).astype(dtype)
            normal = jnp.broadcast_to(_unit_normals(corner)[:, None], corner.shape)
            coordinate = np.zeros((len(corner), 3, 2))
        shapes.append((corner, normal, coordinate))
    return _triangles(shapes, layout.heaps_of_rigid(m), dtype)


def _unit_normals(corner: Array) -> Array:
    """Unit normals (n, 3) of triangles (n, 3, 3)."""
    return safe.normalize(cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]))[0]


def _field_triangles(m: Model, i: int, cells: np.ndarray) -> Array:
    """Triangles (n, 3, 3) of a height field: cells, walls, floor."""
    nr, nc, size = int(m.hfield_nrow[i]), int(m.hfield_ncol[i]), m.hfield_size[i]
    data = m.hfield_data[int(m.hfield_adr[i]) :][: nr * nc]

    def point(row: np.ndarray, col: np.ndarray, top: bool = True) -> Array:
        x, y = size[0] * (2 * col / (nc - 1) - 1), size[1] * (2 * row / (nr - 1) - 1)
        return jnp.stack(
            [x, y, take(data, row * nc + col) * size[2] if top else jnp.broadcast_to(-size[3], x.shape)], 1
        )

    r, c = cells.T
    a, b, e, f = point(r, c), point(r, c + 1), point(r + 1, c), point(r + 1, c + 1)
    parts = [jnp.stack([jnp.stack([e, a, f], 1), jnp.stack([a, b, f], 1)], 1).reshape(-1, 3, 3)]
    along_r, along_c = np.arange(nr - 1), np.arange(nc - 1)
    walls = [
        (along_r + 1, along_r, 0 * along_r, 0 * along_r),
        (along_r, along_r + 1, 0 * along_r + nc - 1, 0 * along_r + nc - 1),
    ]
    walls += [
        (0 * along_c, 0 * along_c, along_c, along_c + 1),
        (0 * along_c + nr - 1, 0 * along_c + nr - 1, along_c + 1, along_c),
    ]
    for r0, r1, c0, c1 in walls:
        low, top = (point(r0, c0, False), point(r1, c1, False)), (point(r1, c1), point(r0, c0))
        parts += [jnp.stack([*low, top[0]], 1), jnp.stack([low[0], *top], 1)]
    r, c = np.array([0, nr - 1, nr - 1, 0]), np.array([0, 0, nc - 1, nc - 1])
    floor = point(r, c, False)
    return jnp.concatenate([*parts, floor[None, [0, 1, 2]], floor[None, [0, 2, 3]]])


def _soft(m: Model, d: Data) -> Triangles:
    dtype = d.geom_xpos.dtype
    shapes = []
    for kind, i, s in layout.soft_shapes(m):
        is_flex = kind == ObjType.FLEX
        point = (
            d.flexvert_xpos[int(m.flex_vertadr[i]) :][: int(m.flex_vertnum[i])]
            if is_flex
            else skin_points(m, d.xpos, d.xmat, i)
        )
        thick = m.flex_radius[i] if is_flex else jnp.asarray(m.skin_inflate[i], dtype)
        front = s.vertex[(s.side > 0).all(1) & ~s.wall]
        vertex_normal = _vertex_normals(point, front, by_area=not is_flex)
        side = s.side[..., None].astype(dtype)
        corner = take(point, s.vertex) + side * thick * take(vertex_normal, s.vertex)
        if is_flex and m.flex_flatskin[i]:
            normal = jnp.broadcast_to(_unit_normals(take(point, s.vertex))[:, None], corner.shape)
        else:
            normal = side * take(vertex_normal, s.vertex)
        if s.wall.any():
            a, b = take(point, s.vertex[:, 0]), take(point, s.vertex[:, 1])
            across = safe.normalize(side[:, 0] * cross(b - a, take(vertex_normal, s.vertex[:, 1])))[0]
            normal = jnp.where(s.wall[:, None, None], across[:, None], normal)
        shapes.append((corner, normal, s.coordinate))
    return _triangles(shapes, layout.heaps_of_soft(m), dtype)


def _vertex_normals(point: Array, face: np.ndarray, by_area: bool) -> Array:
    """Unit normals (n, 3) of vertices: means of those of their triangles."""
    a, b, c = (take(point, face[:, k]) for k in range(3))
    normal = cross(b - a, c - a)
    normal = normal if by_area else safe.normalize(normal)[0]
    total = jnp.zeros_like(point).at[face.reshape(-1)].add(jnp.repeat(normal, 3, 0))
    return safe.normalize(total)[0]


def skin_points(m: Model, xpos: Array, xmat: Array, i: int) -> Array:
    """Average the positions that the bones of a skin give to its vertices (n, 3). Source: mjv_updateActiveSkin."""
    bones = m.skin_boneadr[i] + np.arange(m.skin_bonenum[i])
    counts = m.skin_bonevertnum[bones]
    rows = np.concatenate([m.skin_bonevertadr[b] + np.arange(int(m.skin_bonevertnum[b])) for b in bones])
    bone = np.repeat(bones, counts)
    vertex, weight = m.skin_bonevertid[rows], m.skin_bonevertweight[rows]
    bind = m.skin_vert[m.skin_vertadr[i] + vertex] - m.skin_bonebindpos[bone]
    local = np.einsum("nji,nj->ni", np.asarray(quat_to_mat(m.skin_bonebindquat[bone])), bind)
    body = m.skin_bonebodyid[bone]
    moved = matvec(take(xmat, body).reshape(-1, 3, 3), jnp.asarray(local, xpos.dtype)) + take(xpos, body)
    empty = jnp.zeros((int(m.skin_vertnum[i]), 3), xpos.dtype)
    return empty.at[vertex].add(moved * jnp.asarray(weight, xpos.dtype)[:, None])


def _lights(m: Model, d: Data) -> Lights:
    """Lights that are on. A point light shines from the camera: so does MuJoCo's renderer, which has no such lights."""
    dtype, head = d.geom_xpos.dtype, m.vis.headlight
    on = np.flatnonzero(m.light_active)
    lone = int(bool(head.active))
    kind = m.light_type[on]
    none, first = np.zeros(lone, bool), jnp.zeros((lone, 3), dtype)
    spot, point = kind == LightType.SPOT, ~np.isin(kind, (LightType.SPOT, LightType.DIRECTIONAL))

    def with_head(x: Array, of_head: Any) -> Array:
        mine = jnp.broadcast_to(jnp.asarray(of_head, dtype), (lone, *x.shape[1:]))
        return jnp.concatenate([mine, take(x, on).astype(dtype)])

    return Lights(
        jnp.asarray(np.concatenate([~none, point])),
        jnp.asarray(np.concatenate([none, spot])),
        jnp.asarray(np.concatenate([none, m.light_castshadow[on] & ~point])),
        with_head(d.light_xpos, first[:1]) if m.nlight else first,
        with_head(d.light_xdir, first[:1]) if m.nlight else first,
        with_head(m.light_ambient, np.asarray(head.ambient)),
        with_head(m.light_diffuse, np.asarray(head.diffuse)),
        with_head(m.light_specular, np.asarray(head.specular)),
        with_head(m.light_attenuation, np.array([1.0, 0, 0])),
        with_head(m.light_cutoff, 180.0),
        with_head(m.light_exponent, 0.0),
    )
