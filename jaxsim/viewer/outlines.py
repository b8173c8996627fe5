"""Derivatives of pictures at outlines: what pixels gain and lose where the edge of an object moves.

The derivative of the mean colour of a pixel is that inside of surfaces, and an integral along the edges within it: the
speed of the edge across itself, times the difference of the colours on its sides (Li et al. 2018, "Differentiable Monte
Carlo ray tracing through edge sampling"). Edges are found between neighbouring pixels that show different faces, by
bisection. There are two kinds. Where an object hides another one, the edge moves with the object's points. Where faces
meet, the edge is where their depths are equal. Edges of shadows and of transparent objects are left out.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxsim.engine.ray.primitive import ray_points
from jaxsim.math import component as c
from jaxsim.math import safe
from jaxsim.math.arrays import row_at
from jaxsim.math.component import Vector
from jaxsim.math.safe import Array
from jaxsim.viewer import scene_layout as layout
from jaxsim.viewer.scene import Scene, Triangles
from jaxsim.viewer.shading import Ray, View, far_end, surface_at
from jaxsim.viewer.trace import Hit, entries, search, to_global, to_local

HALVINGS = 12  # of the distance between two pixels
ASIDE = 0.05  # pixels between the two points that give the direction of an edge
WITHIN = 0.5  # pixels around the first point in which the second one lies
RIM = 1e-4  # part of a cylinder's half length within which a point is on its cap
JOINED = 1e-4  # difference of depths, relative, up to which two faces meet


class Edge(NamedTuple):
    """An edge between a pixel and its neighbour: the last points of either side, in pixels from the first pixel.

    `normal` (2,) are components across the edge, along the step to the neighbour and beside it. Hits are those at the
    two points.
    """

    before: Array
    after: Array
    normal: Array
    first: Hit
    second: Hit


def moved(view: View, ray: Ray, step: Array) -> Ray:
    """Move a ray by `step` (2,) pixels of the picture to the right and up; differentiable."""
    offset = step[0] * view.right + step[1] * view.up
    plane = ray.way / (ray.way @ view.axis) + offset
    way = safe.normalize(plane)[0]
    start = jnp.where(view.parallel, ray.start + offset, view.eye + view.near * plane)
    return Ray(start, jnp.where(view.parallel, ray.way, way))


def face(s: Scene, ray: Ray, hit: Hit) -> Array:
    """Identify the face (2,) that a ray meets: object, and part of its surface with a continuous normal."""
    k = jnp.maximum(hit.object, 0)
    kind, size = row_at(s.kind, k), entries(row_at(s.size, k))
    point = ray_points(entries(ray.start), entries(ray.way), hit.dist)
    q = to_local(row_at(s.mat, k), c.sub(point, entries(row_at(s.pos, k))))
    x, y, z = (jnp.abs(a) / jnp.maximum(b, 1e-9) for a, b in zip(q, size, strict=True))
    side = jnp.where((x >= y) & (x >= z), jnp.where(q[0] > 0, 1, 2), jnp.where(y >= z, jnp.where(q[1] > 0, 3, 4), 0))
    side = jnp.where(side == 0, jnp.where(q[2] > 0, 5, 6), side)
    cap = jnp.where(z >= 1 - RIM, jnp.where(q[2] > 0, 1, 2), 0)
    part = jnp.where(kind == layout.BOX, side, jnp.where(kind == layout.CYLINDER, cap, 0))
    part = jnp.where(kind >= layout.RIGID, hit.triangle, part)
    return jnp.stack([hit.object, jnp.where(hit.object >= 0, part, 0)]).astype(jnp.int32)


def find_edge(s: Scene, view: View, ray: Ray, step: Array, first: Hit, second: Hit, wanted: Array) -> Edge:
    """Find the edge between a pixel, with its ray, and that `step` (2,) away; `wanted` (2,) is the first one's face."""
    beside = jnp.stack([-step[1], step[0]])

    def cast(along: Array, aside: Array) -> tuple[Array, Hit]:
        mine = moved(view, ray, along * step + aside * beside)
        end = far_end(view, mine)
        hit = search(s, view.box, jnp.int32(0), entries(mine.start), entries(mine.way), jnp.zeros_like(end), end)
        found = face(s, mine, hit)
        return (found[0] == wanted[0]) & (found[1] == wanted[1]), hit

    def halve(aside: Array, low: Array, high: Array, first: Hit, second: Hit) -> tuple[Array, Array, Hit, Hit]:
        def body(state: tuple) -> tuple:
            i, low, high, first, second = state
            middle = 0.5 * (low + high)
            same, hit = cast(middle, aside)
            choose = lambda a, b: Hit(*(jnp.where(same, x, y) for x, y in zip(a, b, strict=True)))  # noqa: E731
            low, high = jnp.where(same, middle, low), jnp.where(same, high, middle)
            return i + 1, low, high, choose(hit, first), choose(second, hit)

        return lax.while_loop(lambda x: x[0] < HALVINGS, body, (jnp.int32(0), low, high, first, second))[1:]

    zero = jnp.zeros_like(ray.way[0])
    before, after, first, second = halve(zero, zero, zero + 1, first, second)
    middle = 0.5 * (before + after)
    low, high, *_ = halve(zero + ASIDE, middle - WITHIN, middle + WITHIN, first, second)
    across = 0.5 * (low + high) - middle
    length = jnp.sqrt(ASIDE**2 + across**2)
    return Edge(before, after, jnp.stack([ASIDE / length, -across / length]), first, second)


def _anchored(s: Scene, k: Array, triangle: Array, point: Vector) -> Vector:
    """A point of an object's surface as a function of the object's pose, size and corners; its value is `point`."""
    kind, mat, pos, size = row_at(s.kind, k), row_at(s.mat, k), entries(row_at(s.pos, k)), entries(row_at(s.size, k))
    fixed = lax.stop_gradient
    old, q = c.vector(map(fixed, size)), to_local(fixed(mat), c.sub(point, c.vector(map(fixed, pos))))
    q = c.vector(map(fixed, q))
    ratio = c.vector(safe.divide(a, b, 1.0) for a, b in zip(size, old, strict=True))
    middle = jnp.where(kind == layout.CAPSULE, jnp.clip(q[2], -old[2], old[2]), 0)
    high = jnp.where(kind == layout.CAPSULE, middle * ratio[2] + (q[2] - middle) * ratio[0], q[2] * ratio[2])
    scaled = (q[0] * ratio[0], q[1] * ratio[1], high)

    def on_triangle(of: Triangles) -> Vector:
        x = row_at(of.corner, triangle)
        corner = [entries(x[3 * j : 3 * j + 3]) for j in range(3)]
        a, b, e = (c.vector(map(fixed, y)) for y in corner)
        ab, ae, ap = c.sub(b, a), c.sub(e, a), c.sub(q, a)
        flat = c.cross(ab, ae)
        square = sum(x * x for x in flat)
        w1 = safe.divide(sum(x * y for x, y in zip(c.cross(ap, ae), flat, strict=True)), square)
        w2 = safe.divide(sum(x * y for x, y in zip(c.cross(ab, ap), flat, strict=True)), square)
        return c.vector((1 - w1 - w2) * x + w1 * y + w2 * z for x, y, z in zip(*corner, strict=True))

    rigid = on_triangle(s.rigid) if len(s.rigid.corner) > 1 else q
    soft = on_triangle(s.soft) if len(s.soft.corner) > 1 else q
    q = c.vector(
        jnp.where(kind == layout.RIGID, r, jnp.where(kind == layout.SOFT, f, x))
        for x, r, f in zip(scaled, rigid, soft, strict=True)
    )
    return c.add(to_global(mat, q), pos)


def _place(view: View, ray: Ray, point: Array) -> Array:
    """Place (2,) of a point in the picture, in pixels from that of a ray, to the right and up."""
    seen = point - view.eye
    offset = safe.divide(seen, seen @ view.axis) - ray.way / (ray.way @ view.axis)
    offset = jnp.where(view.parallel, point - ray.start, offset)
    return jnp.stack([offset @ side / (side @ side) for side in (view.right, view.up)])


def shift(s: Scene, view: View, ray: Ray, step: Array, edge: Edge) -> Array:
    """Compute how far an edge moves to the neighbour, weighted so that steps of both directions add up to an edge.

    It is zero, but has the derivative of what is left of an edge by its movement, in pixels.
    """
    fixed = lax.stop_gradient
    beside = jnp.stack([-step[1], step[0]])
    sides, slopes, depths = [], [], []
    for along, hit in ((edge.before, edge.first), (edge.after, edge.second)):
        mine, k = moved(view, ray, along * step), jnp.maximum(hit.object, 0)
        surface = surface_at(s, view, mine, k, hit.triangle)
        point, normal = jnp.stack(surface.point), fixed(jnp.stack(surface.normal))
        depth = jnp.where(hit.object >= 0, view.near + (point - mine.start) @ view.axis, view.far)
        plane = mine.way / (mine.way @ view.axis)
        steep = -safe.divide(jnp.where(view.parallel, 1, depth), normal @ plane)
        slope = steep * jnp.stack([normal @ view.right, normal @ view.up])
        slopes.append(fixed(jnp.where(hit.object >= 0, slope, 0)))
        depths.append(depth)
        sides.append((point, k, hit.triangle))
    gap, slope = depths[1] - depths[0], slopes[1] - slopes[0]
    reach = jnp.abs(slopes[0]).max() + jnp.abs(slopes[1]).max()
    meet = fixed(jnp.abs(gap)) < 4 * reach * (edge.after - edge.before) + JOINED * jnp.abs(fixed(depths[0]))
    meet &= (edge.first.object >= 0) & (edge.second.object >= 0)
    is_first = fixed(depths[0]) < fixed(depths[1])
    point, k, triangle = (jnp.where(is_first, a, b) for a, b in zip(*sides, strict=True))
    place = _place(view, ray, jnp.stack(_anchored(s, k, triangle, entries(fixed(point)))))
    across = edge.normal[0] * step + edge.normal[1] * beside
    hidden = edge.normal[0] * (across @ place)
    joined = -safe.divide(gap * (slope @ step), slope @ slope)
    move = jnp.where(meet, joined, hidden)
    return move - fixed(move)
