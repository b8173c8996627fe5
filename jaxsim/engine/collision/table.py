"""The collider of each pair of geom types, with its largest number of contacts."""

from collections.abc import Callable
from typing import NamedTuple

from jaxsim.core.types import GeomType as G
from jaxsim.engine.collision.convex.convex import convex_context, convex_convex, for_all_types
from jaxsim.engine.collision.convex.hull import plane_mesh_setup
from jaxsim.engine.collision.convex.prism import hfield_convex, hfield_setup
from jaxsim.engine.collision.primitive.box import box_box
from jaxsim.engine.collision.primitive.capsule import capsule_box, capsule_capsule
from jaxsim.engine.collision.primitive.plane import (
    plane_box,
    plane_capsule,
    plane_cylinder,
    plane_ellipsoid,
    plane_mesh,
    plane_sphere,
)
from jaxsim.engine.collision.primitive.sphere import sphere_box, sphere_capsule, sphere_cylinder, sphere_sphere
from jaxsim.engine.collision.sdf.mesh_pairs import mesh_sdf, mesh_sdf_setup
from jaxsim.engine.collision.sdf.sdf import sdf_any, sdf_setup


class Collider(NamedTuple):
    """A collider `function(a, b, margin) -> PairContacts` (see `shapes`), the most contacts of a pair, and its cost.

    The run time of a collider that `searches` grows with the number of pairs (`native.pool`): it also takes `count`,
    the number of real pairs, which come first. An `expensive` collider is called through `sequential`, which takes
    `count` too.

    `cost` is roughly the number of floating-point operations for one pair. It decides whether a group of pairs gets a
    bound test and compaction before the narrow phase. `setup(m, g1, g2)`, if given, makes the function's first
    argument, and `general(context)` one of the same arrays that serves more models. With `tangent` its contacts have a
    preferred second axis. It is called `in_sequence` on a CPU unless its searches take other numbers of steps with
    other rounding.
    """

    function: Callable
    ncon: int
    cost: int
    setup: Callable | None = None
    searches: bool = False
    expensive: bool = False
    tangent: bool = False
    in_sequence: bool = True
    general: Callable | None = None


COLLIDERS: dict[tuple[int, int], Collider] = {
    (G.PLANE, G.SPHERE): Collider(plane_sphere, 1, 20),
    (G.PLANE, G.CAPSULE): Collider(plane_capsule, 2, 50, tangent=True),
    (G.PLANE, G.ELLIPSOID): Collider(plane_ellipsoid, 1, 50),
    (G.PLANE, G.CYLINDER): Collider(plane_cylinder, 4, 150),
    (G.PLANE, G.BOX): Collider(plane_box, 4, 200),
    (G.PLANE, G.MESH): Collider(plane_mesh, 3, 2000, plane_mesh_setup, True),
    (G.PLANE, G.SDF): Collider(plane_mesh, 3, 2000, plane_mesh_setup, True),
    (G.SPHERE, G.SPHERE): Collider(sphere_sphere, 1, 30),
    (G.SPHERE, G.CAPSULE): Collider(sphere_capsule, 1, 50),
    (G.SPHERE, G.CYLINDER): Collider(sphere_cylinder, 1, 100),
    (G.SPHERE, G.BOX): Collider(sphere_box, 1, 100),
    (G.CAPSULE, G.CAPSULE): Collider(capsule_capsule, 2, 200),
    (G.CAPSULE, G.BOX): Collider(capsule_box, 2, 1000, expensive=True),
    (G.BOX, G.BOX): Collider(box_box, 8, 4000, expensive=True),
}
for _pair, _ncon in {
    (G.SPHERE, G.ELLIPSOID): 1,
    (G.SPHERE, G.MESH): 1,
    (G.CAPSULE, G.ELLIPSOID): 1,
    (G.CAPSULE, G.CYLINDER): 5,
    (G.CAPSULE, G.MESH): 5,
    (G.ELLIPSOID, G.ELLIPSOID): 1,
    (G.ELLIPSOID, G.CYLINDER): 1,
    (G.ELLIPSOID, G.BOX): 1,
    (G.ELLIPSOID, G.MESH): 1,
    (G.CYLINDER, G.CYLINDER): 5,
    (G.CYLINDER, G.BOX): 5,
    (G.CYLINDER, G.MESH): 5,
    (G.BOX, G.MESH): 5,
    (G.MESH, G.MESH): 5,
}.items():
    COLLIDERS[_pair] = Collider(convex_convex, _ncon, 100_000, convex_context, True, general=for_all_types)
for _type in (G.SPHERE, G.CAPSULE, G.ELLIPSOID, G.CYLINDER, G.BOX, G.MESH):
    COLLIDERS[G.HFIELD, _type] = Collider(hfield_convex, 50, 100_000, hfield_setup, True)
for _type in (G.SPHERE, G.CAPSULE, G.ELLIPSOID, G.CYLINDER, G.BOX, G.SDF):
    COLLIDERS[_type, G.SDF] = Collider(
        sdf_any, 50, 100_000, sdf_setup, in_sequence=False
    )  # one contact for each of sdf_initpoints
COLLIDERS[G.MESH, G.SDF] = Collider(mesh_sdf, 50, 1_000_000, mesh_sdf_setup, in_sequence=False)
