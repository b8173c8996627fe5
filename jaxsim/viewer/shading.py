"""Colour of one ray: materials, textures, lights and sky, as in MuJoCo's renderer."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import MINVAL
from jaxsim.engine.ray.primitive import NORMALS, ray_points
from jaxsim.math import component as c
from jaxsim.math import safe
from jaxsim.math.arrays import row_at
from jaxsim.math.component import Vector
from jaxsim.math.safe import Array
from jaxsim.native.hints import any_of_vector, by_value
from jaxsim.viewer.scene import Scene, Triangles
from jaxsim.viewer.scene_layout import CAPSULE, PLANE, RIGID, SOFT, TEXEL_BITS, TEXEL_MAX
from jaxsim.viewer.trace import PRIMITIVES, distance, entries, search, shape_size, to_global, to_local

LAYERS = 4  # transparent surfaces in front of an opaque one that are drawn, the nearest ones
BEHIND = 0.3  # opacity of a plane from behind, of its own
LIGHT_LESS = 0.3  # ambient light of a scene without lights
SKY_RADIUS = 0.7  # of the cylinder that the sky is painted on, in distances of the far plane


class View(NamedTuple):
    """Data shared by the rays of a picture: the eye, the camera's axis, vectors to the next pixel at a distance of 1.

    `centre` (2,) is where the axis meets the picture, in pixels from its top left corner. `parallel`: whether rays are
    parallel, so that pixels have the same size everywhere. `near` and `far` are distances
    of planes; `plane` is the object of the haze, -1 for none; `haze` (4,) its colour and part of the horizon. `behind`
    marks planes seen from behind. `layers` is the number of surfaces of a ray that are searched, one without
    transparent objects. `box` (2 nodes, 6) are trees over the opaque objects and over the transparent ones.
    """

    eye: Array
    axis: Array
    right: Array
    up: Array
    centre: Array
    parallel: Array
    near: Array
    far: Array
    plane: Array
    haze: Array
    behind: Array
    layers: Array
    box: Array


class Ray(NamedTuple):
    """A ray (3,), from the near plane, with its direction of unit length."""

    start: Array
    way: Array


class Seen(NamedTuple):
    """Hits of a ray: (1 + LAYERS,) distances, objects, -1 for none, and triangles.

    The first is opaque; the others are transparent and before it, the nearest first.
    """

    dist: Array
    object: Array
    triangle: Array


class Surface(NamedTuple):
    """A point of a surface: position, normal, and coordinates of the texture there and at the next pixels.

    The normal is of unit length, but shorter within triangles whose corners have different normals.
    `coordinate` (3, 2) are those of the point and of the next pixels to the right and up; `face` is one of a cube's.
    """

    point: Vector
    normal: Vector
    coordinate: tuple[tuple[Array, Array], ...]
    face: Array


def pixel_ray(view: View, pixel: Array) -> Ray:
    """Compute the ray through a pixel's middle: column and row (2,) from the top left; differentiable in the view."""
    x, y = (pixel[i].astype(view.eye.dtype) + 0.5 - view.centre[i] for i in range(2))
    offset = x * view.right - y * view.up
    plane = view.axis + offset
    way = safe.normalize(plane)[0]
    start = view.eye + jnp.where(view.parallel, offset + view.near * view.axis, view.near * plane)
    return Ray(start, jnp.where(view.parallel, view.axis, way))


def far_end(view: View, ray: Ray) -> Array:
    """Compute the distance at which a ray ends: at the far plane."""
    slant = c.dot(entries(ray.way), entries(view.axis))
    return (view.far - view.near) / slant


def see(s: Scene, view: View, ray: Ray) -> Seen:
    """Find the hits of a ray: the first opaque surface, and transparent ones before it."""
    p, v, end = entries(ray.start), entries(ray.way), far_end(view, ray)
    n = 1 + LAYERS
    nothing = Seen(jnp.full(n, end), jnp.full(n, -1, jnp.int32), jnp.zeros(n, jnp.int32))
    place = np.arange(n, dtype=np.int32)

    def layer(state: tuple[Array, Array, Seen]) -> tuple[Array, Array, Seen]:
        i, more, seen = state
        last = jnp.where(i > 1, seen.dist[jnp.maximum(i - 1, 0)], 0)
        near = jnp.where(i > 1, last * (1 + 16 * jnp.finfo(last.dtype).eps), 0)
        tree = jnp.where(i > 0, len(s.box), 0).astype(jnp.int32)
        hit = search(s, view.box, tree, p, v, near, jnp.where(more, seen.dist[0], -1))
        at = more & (place == i)
        seen = Seen(
            jnp.where(at, hit.dist, seen.dist),
            jnp.where(at, hit.object, seen.object),
            jnp.where(at, hit.triangle, seen.triangle),
        )
        return i + 1, more & ((i == 0) | (hit.object >= 0)), seen

    start = jnp.int32(0), jnp.array(True), nothing
    return lax.while_loop(lambda x: (x[0] < view.layers) & any_of_vector(x[1]), layer, start)[2]


def lit(s: Scene, view: View, ray: Ray, seen: Seen) -> Array:
    """Mark lights (n,) that reach the opaque surface at a ray's hit with 1, those that are shadowed there with 0."""
    count = len(s.lights.shadow)
    place = np.arange(count, dtype=np.int32)

    def of_object(k: Array, s: Scene, view: View, ray: Ray, triangle: Array) -> tuple[Vector, Vector]:
        surface = surface_at(s, view, ray, k, triangle)
        return surface.point, surface.normal

    def reaches() -> Array:
        point, normal = by_value(of_object, seen.object[0], s, view, ray, seen.triangle[0])
        start = ray_points(point, normal, 1e-4 * s.extent)

        def light(i: Array, out: Array) -> Array:
            way, span, within = _shadow_ray(s, view, point, i)
            facing = c.dot(normal, way) > 0
            casts = row_at(s.lights.shadow, i) & within & facing & (seen.object[0] >= 0)
            end = jnp.where(casts, span, -1)
            hidden = lax.cond(
                any_of_vector(casts),
                lambda: search(s, s.box, 0, start, way, jnp.zeros_like(span), end, both_sides=True).object >= 0,
                lambda: jnp.array(False),
            )
            return jnp.where(place == i, jnp.where(hidden, 0, 1).astype(out.dtype), out)

        return lax.fori_loop(0, count, light, jnp.ones(count, s.pos.dtype))

    everything = lambda: jnp.ones(count, s.pos.dtype)  # noqa: E731
    return lax.cond(any_of_vector(seen.object[0] >= 0), reaches, everything)


def _shadow_ray(s: Scene, view: View, point: Vector, i: Array) -> tuple[Vector, Array, Array]:
    """Direction and length of the ray from a point to a light, and whether the light's shadow map holds the point."""
    pos, direction = entries(row_at(s.lights.pos, i)), entries(row_at(s.lights.dir, i))
    offset = c.sub(point, pos)
    depth = c.dot(offset, direction)
    across = c.sub(offset, c.vector(depth * x for x in direction))
    apart = jnp.sqrt(c.dot(across, across))
    is_spot = row_at(s.lights.spot, i)
    length = jnp.sqrt(c.dot(offset, offset))
    half = jnp.minimum(row_at(s.lights.cutoff, i) * s.shadow_cone, 80) * (np.pi / 180)
    within = jnp.where(is_spot, apart < depth * jnp.tan(half), apart < s.shadow_reach) & (depth > view.near)
    scale = 1 / jnp.maximum(length, MINVAL)
    way = c.vector(jnp.where(is_spot, -o * scale, -x) for o, x in zip(offset, direction, strict=True))
    span = jnp.where(is_spot, length, depth) - view.near
    return way, span, within & (depth < view.far)


def surface_at(s: Scene, view: View, ray: Ray, k: Array, triangle: Array) -> Surface:
    """Find the point where a ray hits an object's surface, differentiable in the ray, the object and its shape."""
    kind, mat, size = row_at(s.kind, k), row_at(s.mat, k), row_at(s.size, k)
    start, way = entries(ray.start), entries(ray.way)
    p, v = to_local(mat, c.sub(start, entries(row_at(s.pos, k)))), to_local(mat, way)
    is_cube = row_at(s.is_cube, jnp.maximum(row_at(s.texture, k), 0))

    def primitive(i: int) -> Callable[[], tuple]:
        def run() -> tuple:
            t = distance(i, size, p, v, True)
            t = jnp.where(jnp.isfinite(t), t, 0)
            q = ray_points(p, v, t)
            normal = safe.normalize(jnp.stack(NORMALS[PRIMITIVES[i]](shape_size(size, i), q)))[0]
            return t, *entries(normal), *(jnp.zeros_like(t) for _ in range(12))

        return run

    def triangles(of: Triangles, p: Vector, v: Vector) -> Callable[[], tuple]:
        def run() -> tuple:
            x, n, at = row_at(of.corner, triangle), row_at(of.normal, triangle), row_at(of.coordinate, triangle)
            a, b, e = (c.vector(x[3 * j + i] for i in range(3)) for j in range(3))
            ab, ae = c.sub(b, a), c.sub(e, a)
            flat = c.cross(ab, ae)
            t = safe.divide(c.dot(flat, c.sub(a, p)), c.dot(flat, v))
            square = safe.divide(jnp.ones_like(t), c.dot(flat, flat))
            # gradients of the two last barycentric coordinates
            grads = c.vector(square * y for y in c.cross(ae, flat)), c.vector(square * y for y in c.cross(flat, ab))
            q = c.sub(ray_points(p, v, t), a)
            w1, w2 = c.dot(grads[0], q), c.dot(grads[1], q)
            w = (1 - w1 - w2, w1, w2)
            # shorter than 1 between vertices: light is interpolated as MuJoCo does, which computes it at vertices
            normal = [sum(w[j] * n[3 * j + i] for j in range(3)) for i in range(3)]
            uv = [sum(w[j] * at[2 * j + i] for j in range(3)) for i in range(2)]
            slopes = [
                [grads[0][r] * (at[2 + i] - at[i]) + grads[1][r] * (at[4 + i] - at[i]) for r in range(3)]
                for i in range(2)
            ]
            extra = [*uv, *slopes[0], *slopes[1]]
            return t, *normal, *extra, *(jnp.zeros_like(t) for _ in range(4))

        return run

    cases = [primitive(i) for i in range(len(PRIMITIVES))]
    none = primitive(PLANE)
    cases += [triangles(s.rigid, p, v) if len(s.rigid.corner) > 1 else none]
    cases += [triangles(s.soft, p, v) if len(s.soft.corner) > 1 else none]
    t, nx, ny, nz, u0, v0, *slopes = lax.switch(kind, cases)[:12]
    normal, q = to_global(mat, (nx, ny, nz)), ray_points(p, v, t)
    point = ray_points(start, way, t)
    # where the rays of the next pixels meet the plane of the surface, from this point, in the object's frame
    depth = jnp.where(view.parallel, 1, view.near + t * c.dot(way, entries(view.axis)))
    steps = []
    for side in (view.right, view.up):
        side = c.vector(depth * x for x in entries(side))
        along = safe.divide(c.dot(normal, side), c.dot(normal, way))
        steps.append(to_local(mat, c.sub(side, c.vector(along * x for x in way))))
    points = [q, c.add(q, steps[0]), c.add(q, steps[1])]
    coordinate, face = _coordinates(s, k, kind, size, points, is_cube)
    explicit = row_at(s.explicit, k)
    slope_u, slope_v = c.vector(slopes[:3]), c.vector(slopes[3:])
    of_triangle = [(u0, v0)] + [(u0 + c.dot(slope_u, x), v0 + c.dot(slope_v, x)) for x in steps]
    coordinate = tuple(
        (jnp.where(explicit, a, x), jnp.where(explicit, b, y))
        for (a, b), (x, y) in zip(of_triangle, coordinate, strict=True)
    )
    return Surface(point, normal, coordinate, jnp.where(explicit, 0, face))


def _coordinates(
    s: Scene, k: Array, kind: Array, size: Array, points: list[Vector], is_cube: Array
) -> tuple[list[tuple[Array, Array]], Array]:
    """Coordinates of the texture at points in the object's frame, and the face of a cube, that of the first point."""
    repeat, uniform = row_at(s.repeat, k), row_at(s.uniform, k)
    is_rigid = (kind == RIGID) | (kind == SOFT)
    scale = [jnp.where(uniform | (size[i] <= 0), repeat[i], safe.divide(repeat[i], size[i])) for i in range(2)]
    flat = [(0.5 * scale[0] * q[0] - 0.5, -0.5 * scale[1] * q[1] - 0.5) for q in points]
    ways = []
    for q in points:
        over = jnp.abs(q[2]) - size[2]
        cap = jnp.where(q[2] < 0, -1, 1) * (1 + safe.divide(over, size[0]))
        unit = [jnp.where(is_rigid, x, safe.divide(x, size[i], 0.0)) for i, x in enumerate(q)]
        unit = [jnp.where((kind == PLANE) & (i < 2), q[i], x) for i, x in enumerate(unit)]
        unit[2] = jnp.where((kind == CAPSULE) & (over > 0), cap, unit[2])
        ways.append(c.vector(jnp.where(uniform, x * size[i], x) for i, x in enumerate(unit)))
    cube, face = cube_coordinates(ways)
    both = [(jnp.where(is_cube, a, x), jnp.where(is_cube, b, y)) for (a, b), (x, y) in zip(cube, flat, strict=True)]
    return both, jnp.where(is_cube, face, 0)


def cube_coordinates(ways: list[Vector]) -> tuple[list[tuple[Array, Array]], Array]:
    """Project directions onto the cube face of the first one: coordinates in [0, 1], and that face."""
    x, y, z = (jnp.abs(q) for q in ways[0])
    axis = jnp.where((x >= y) & (x >= z), 0, jnp.where(y >= z, 1, 2))

    def chosen(q: Vector) -> Array:
        return jnp.where(axis == 0, q[0], jnp.where(axis == 1, q[1], q[2]))

    sign = jnp.where(chosen(ways[0]) >= 0, 1, -1)
    out = []
    for q in ways:
        across = jnp.where(axis == 0, -sign * q[2], jnp.where(axis == 1, q[0], sign * q[0]))
        down = jnp.where(axis == 1, sign * q[2], -q[1])
        most = jnp.maximum(sign * chosen(q), 1e-9)
        out.append((0.5 * across / most + 0.5, 0.5 * down / most + 0.5))
    return out, (2 * axis + jnp.where(sign > 0, 0, 1)).astype(jnp.int32)


def texel_at(s: Scene, tex: Array, coordinate: tuple[tuple[Array, Array], ...], face: Array) -> Vector:
    """Interpolate the colour of a texture between pixels and between the two nearest mipmap levels."""
    width, height = (row_at(x.reshape(-1), tex * x.shape[1]) for x in (s.level_width, s.level_height))
    (u, v), *others = coordinate
    spans = [((a - u) * width) ** 2 + ((b - v) * height) ** 2 for a, b in others]
    level = 0.5 * jnp.log2(jnp.maximum(jnp.maximum(*spans), 1e-12))
    most = row_at(s.levels, tex) - 1
    level = jnp.clip(lax.stop_gradient(level), 0, most.astype(u.dtype))
    lower = jnp.clip(jnp.floor(level).astype(jnp.int32), 0, most)  # also where a coordinate is NaN
    fraction = level - lower

    def add(j: Array, out: Vector) -> Vector:
        which = jnp.minimum(lower + j, most)
        found = _bilinear(s, tex, which, u, v, face)
        weight = jnp.where(j == 0, 1 - fraction, fraction)
        return c.vector(a + weight * b for a, b in zip(out, found, strict=True))

    zero = jnp.zeros_like(u)
    count = 2
    return lax.fori_loop(0, count, add, (zero, zero, zero))


def _bilinear(s: Scene, tex: Array, level: Array, u: Array, v: Array, face: Array) -> Vector:
    row = tex * s.level_first.shape[1] + level
    first, width, height = (row_at(x.reshape(-1), row) for x in (s.level_first, s.level_width, s.level_height))
    clamps = row_at(s.is_cube, tex)
    first = first + face * width * height
    wrapped = lambda x: jnp.where(clamps, x, x - lax.stop_gradient(jnp.floor(x)))  # noqa: E731
    x, y = wrapped(u) * width - 0.5, wrapped(v) * height - 0.5
    left, top = jnp.floor(x), jnp.floor(y)
    fx, fy = x - lax.stop_gradient(left), y - lax.stop_gradient(top)
    left, top = left.astype(jnp.int32), top.astype(jnp.int32)

    def inside(i: Array, n: Array) -> Array:
        round_ = jnp.where(i < 0, i + n, jnp.where(i >= n, i - n, i))
        return jnp.clip(jnp.where(clamps, i, round_), 0, n - 1)

    total = [jnp.zeros_like(u)] * 3
    for dy, wy in ((0, 1 - fy), (1, fy)):
        for dx, wx in ((0, 1 - fx), (1, fx)):
            packed = row_at(s.texel, first + inside(top + dy, height) * width + inside(left + dx, width))
            for i in range(3):
                total[i] = total[i] + wx * wy * ((packed >> (TEXEL_BITS * i)) & TEXEL_MAX).astype(u.dtype)
    return c.vector(x / TEXEL_MAX for x in total)


def shade(
    s: Scene, view: View, ray: Ray, k: Array, triangle: Array, reached: Array, clear: Array
) -> tuple[Vector, Array]:
    """Compute colour and opacity of an object where a ray hits it.

    `reached` (nlight,) marks lights that are not shadowed; `clear`: whether the object is drawn as transparent, without
    shadows on it.
    """
    surface = surface_at(s, view, ray, k, triangle)
    rgba, shine = row_at(s.rgba, k), row_at(s.shine, k)
    colour = entries(rgba)[:3]
    lights = s.lights
    normal, way = surface.normal, entries(ray.way)
    zero = jnp.zeros_like(rgba[0])
    start = [shine[0] * x for x in colour]
    if not len(lights.spot):
        start = [x + LIGHT_LESS * y for x, y in zip(start, colour, strict=True)]

    def light(i: Array, sums: tuple[Vector, Vector]) -> tuple[Vector, Vector]:
        plain, shadowed = sums
        to_light, strength = _towards(s, view, surface.point, i)
        facing = c.dot(normal, to_light)
        half = safe.normalize(jnp.stack([a - b for a, b in zip(to_light, way, strict=True)]))[0]
        polish = jnp.maximum(c.dot(normal, entries(half)), 1e-6) ** (128 * shine[2])
        ambient, diffuse, gloss = (entries(row_at(x, i)) for x in (lights.ambient, lights.diffuse, lights.specular))
        front = facing > 0
        mine = [
            strength
            * (
                ambient[j] * colour[j]
                + jnp.where(front, diffuse[j] * facing * colour[j] + gloss[j] * shine[1] * polish, 0)
            )
            for j in range(3)
        ]
        apart = row_at(lights.shadow, i) & ~clear
        shown = row_at(reached, i)
        plain = c.vector(jnp.where(apart, x, x + y) for x, y in zip(plain, mine, strict=True))
        # each light with shadows is a picture of its own, which is added
        shadowed = c.vector(
            x + jnp.where(apart, shown * jnp.clip(y, 0, 1), 0) for x, y in zip(shadowed, mine, strict=True)
        )
        return plain, shadowed

    sums = (c.vector(start), (zero, zero, zero))
    if len(lights.spot):
        sums = lax.fori_loop(0, len(lights.spot), light, sums)
    tex = row_at(s.texture, k)
    # the sum of pictures is bounded after the texture
    total = [jnp.clip(a, 0, 1) + b for a, b in zip(*sums, strict=True)]
    ones = (zero + 1, zero + 1, zero + 1)
    if len(s.texel) > 1:
        find = lambda: texel_at(s, jnp.maximum(tex, 0), surface.coordinate, surface.face)  # noqa: E731
        ones = lax.cond(tex >= 0, find, lambda: ones)
    opacity = rgba[3] * jnp.where(row_at(view.behind, k), BEHIND, 1)
    return c.vector(jnp.clip(x * y, 0, 1) for x, y in zip(total, ones, strict=True)), opacity


def _towards(s: Scene, view: View, point: Vector, i: Array) -> tuple[Vector, Array]:
    """Unit vector to a light, and its strength."""
    lights = s.lights
    offset = jnp.stack([a - b for a, b in zip(entries(row_at(lights.pos, i)), point, strict=True)])
    to_pos, length = safe.normalize(offset)
    direction, axis = entries(row_at(lights.dir, i)), entries(view.axis)
    is_spot, is_head = row_at(lights.spot, i), row_at(lights.headlight, i)
    far = [jnp.where(is_head, -a, -b) for a, b in zip(axis, direction, strict=True)]
    way = c.vector(jnp.where(is_spot, to_pos[j], far[j]) for j in range(3))
    a, cutoff = row_at(lights.attenuation, i), row_at(lights.cutoff, i)
    cosine = jnp.maximum(-c.dot(way, direction), 1e-6)
    within = (cosine >= jnp.cos(cutoff * (np.pi / 180))) | (cutoff > 90)
    fade = safe.divide(cosine ** row_at(lights.exponent, i), a[0] + length * (a[1] + length * a[2]))
    return way, jnp.where(is_spot, jnp.where(within, fade, 0), 1)


def sky_colour(s: Scene, view: View, ray: Ray, sky: int) -> Vector:
    """Compute the colour of the sky along a ray; black without one (`sky` -1)."""
    zero = jnp.zeros_like(ray.way[0])
    if sky < 0:
        return zero, zero, zero
    ways = []
    way = entries(ray.way)
    for side in (None, view.right, view.up):
        x, y, z = way if side is None else c.add(way, entries(side))
        ways.append((x, z, -y))
    coordinate, face = cube_coordinates(ways)
    return texel_at(s, jnp.int32(sky), tuple(coordinate), face)


def sky_distance(view: View, ray: Ray) -> Array:
    """Compute the distance along a ray to the cylinder with the sky's texture, which hides all objects beyond it."""
    radius = SKY_RADIUS * view.far
    p, v = c.sub(entries(ray.start), entries(view.eye)), entries(ray.way)
    a, b, e = v[0] ** 2 + v[1] ** 2, p[0] * v[0] + p[1] * v[1], p[0] ** 2 + p[1] ** 2 - radius**2
    side = safe.divide(-b + safe.sqrt(jnp.maximum(b * b - a * e, 0)), a, jnp.inf)
    cap = safe.divide(radius - jnp.sign(v[2]) * p[2], jnp.abs(v[2]), jnp.inf)
    return jnp.minimum(jnp.where(side > 0, side, jnp.inf), jnp.where(cap > 0, cap, jnp.inf))


def haze(s: Scene, view: View, ray: Ray) -> tuple[Array, Array]:
    """Compute opacity of the haze over the horizon of the first infinite plane, and its distance along a ray.

    It is a truncated cone around the eye, from the plane up to the eye's height.
    """
    k, r = jnp.maximum(view.plane, 0), view.haze[3]
    mat, radius = row_at(s.mat, k), SKY_RADIUS * view.far
    eye = to_local(mat, c.sub(entries(view.eye), entries(row_at(s.pos, k))))
    v = to_local(mat, entries(ray.way))
    level = jnp.sqrt(v[0] ** 2 + v[1] ** 2)
    height = eye[2] / radius
    drop = safe.divide(-v[2], level)
    at = safe.divide(height - drop * (1 - r), height + drop * r)
    alpha, beta = jnp.arctan2(jnp.ones_like(r), r), 0.75 * np.pi
    bend = np.sqrt(0.5) * r * jnp.sin(alpha) / jnp.sin(beta - alpha)
    opacity = jnp.where(at < bend, safe.divide(at, bend), safe.divide(1 - at, 1 - bend))
    real = (view.plane >= 0) & (at > 0) & (at < 1) & (height > 0) & (drop > 0)
    return jnp.where(real, opacity, 0), safe.divide(radius * (1 - r + r * at), level, jnp.inf)


def paint(s: Scene, view: View, ray: Ray, seen: Seen, reached: Array, sky: int) -> Array:
    """Compute a pixel's colour (3,): the opaque surface or the sky, the haze, and transparent surfaces before them."""
    beyond = sky_distance(view, ray) if sky >= 0 else jnp.full_like(ray.way[0], jnp.inf)
    solid = (seen.object[0] >= 0) & (lax.stop_gradient(seen.dist[0]) < beyond)
    n = len(seen.object)
    place = np.arange(n, dtype=np.int32)
    one = jnp.ones_like(ray.way[0])

    def surface(k: Array, s: Scene, view: View, ray: Ray, triangle: Array, reached: Array, clear: Array) -> Array:
        colour, opacity = shade(s, view, ray, k, triangle, reached, clear)
        return jnp.stack([*colour, opacity])

    def fill(i: Array, table: Array) -> Array:
        there = (seen.object[i] >= 0) & ((i > 0) | solid)
        key = jnp.where(there, seen.object[i], -1)
        find = lambda: by_value(surface, key, s, view, ray, seen.triangle[i], reached, i > 0)  # noqa: E731
        mine = lax.cond(any_of_vector(there), find, lambda: jnp.zeros(4, ray.way.dtype))
        return jnp.where((place[:, None] == i) & there, mine, table)

    table = lax.fori_loop(0, n, fill, jnp.zeros((n, 4), ray.way.dtype))
    back = lambda: jnp.stack([*sky_colour(s, view, ray, sky), one])  # noqa: E731
    out = lax.cond(solid, lambda: table[0], back)[:3]
    if sky >= 0:
        opacity, dist = haze(s, view, ray)
        opacity = jnp.where(solid & (lax.stop_gradient(seen.dist[0]) < dist), 0, opacity)
        out = (1 - opacity) * out + opacity * view.haze[:3]
    for i in (*range(1, n), *range(n - 1, 0, -1)):  # MuJoCo blends what is transparent twice, in both orders
        out = (1 - table[i, 3]) * out + table[i, 3] * table[i, :3]
    return jnp.clip(out, 0, 1)
