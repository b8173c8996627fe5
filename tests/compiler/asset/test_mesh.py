"""Mesh assets against MuJoCo, field by field."""

import re

import numpy as np
import pytest

from jaxsim.compiler.asset.mesh import MeshInput, compile_mesh, fit_geom
from jaxsim.core.errors import ModelError
from tests.compiler.mesh_cases import (
    CUBE,
    TETRAHEDRON,
    assert_same_mesh,
    compile_both,
    l_shape,
    msh,
    mujoco_model,
    obj,
    random_points,
    stl,
)

VERTEX, FACE = l_shape()
RNG = np.random.default_rng(0)
NO_COLLISION = 'contype="0" conaffinity="0"'


@pytest.mark.parametrize("inertia", ["convex", "legacy", "exact", "shell"])
def test_inertia_modes(inertia):
    assert_same_mesh(*compile_both(vertex=VERTEX, face=FACE, inertia=inertia))


@pytest.mark.parametrize("vertex", [CUBE, CUBE * [1, 2, 3], TETRAHEDRON, random_points(40), random_points(5, 3)])
def test_points_without_faces_become_their_hull(vertex):
    assert_same_mesh(*compile_both(vertex=vertex))


@pytest.mark.parametrize("scale", [(2, 1, 0.3), (-1, 2, 0.5), (-1, -1, 1), (-1, -1, -1)])
def test_reference_frame_and_scale(scale):
    both = compile_both(vertex=VERTEX, face=FACE, refpos=(0.1, 0.2, 0.3), refquat=(0.5, 0.4, 0.3, 0.2), scale=scale)
    assert_same_mesh(*both)


@pytest.mark.parametrize("smoothnormal", [False, True])
def test_normals(smoothnormal):
    assert_same_mesh(*compile_both(vertex=VERTEX, face=FACE, smoothnormal=smoothnormal))


def test_given_normals_and_texture_coordinates():
    normal, texcoord = RNG.normal(size=(12, 3)), RNG.random((12, 2))
    assert_same_mesh(*compile_both(vertex=VERTEX, face=FACE, normal=normal, texcoord=texcoord, scale=(1, 2, 3)))


def test_mesh_that_does_not_collide_has_no_hull():
    m, mesh = compile_both(vertex=VERTEX, face=FACE, geom_attributes=NO_COLLISION)
    assert mesh.graph.size == 0
    assert_same_mesh(m, mesh)


@pytest.mark.parametrize("maxhullvert", [4, 10, 30])
def test_bound_on_hull_vertices(maxhullvert):
    assert_same_mesh(*compile_both(vertex=random_points(60), maxhullvert=maxhullvert))


def test_vertices_that_are_repeated_or_unused_stay():
    vertex = np.concatenate([VERTEX, VERTEX + 5, VERTEX])
    m, mesh = compile_both(vertex=vertex, face=FACE)
    assert mesh.vert.shape == (36, 3)
    assert_same_mesh(m, mesh, graph=False)


def test_misoriented_face_changes_the_legacy_inertia_only():
    face = FACE.copy()
    face[3] = face[3, ::-1]
    assert_same_mesh(*compile_both(vertex=VERTEX, face=face))


@pytest.mark.parametrize("scale", [(1, 1, 1), (-1, 1, 2)])
@pytest.mark.parametrize("kind", ["stl", "obj", "msh"])
def test_files(kind, scale):
    data = {"stl": stl(VERTEX[FACE]), "obj": obj(VERTEX, FACE), "msh": msh(VERTEX, FACE)}[kind]
    assert_same_mesh(*compile_both(file=data, filename=f"{kind}{scale[0]}.{kind}", scale=scale))


@pytest.mark.parametrize("scale", [(1, 1, 1), (-1, 1, 2)])
def test_legacy_file_with_normals_and_texture_coordinates(scale):
    data = msh(VERTEX, FACE, RNG.normal(size=(12, 3)), RNG.random((12, 2)))
    assert_same_mesh(*compile_both(file=data, filename=f"full{scale[0]}.msh", scale=scale))


def test_attributes_complete_a_file():
    data = obj(VERTEX, FACE)
    texcoord, normal = RNG.random((12, 2)), RNG.normal(size=(12, 3))
    assert_same_mesh(*compile_both(file=data, filename="t.obj", texcoord=texcoord, normal=normal))


@pytest.mark.parametrize("what", ["vertex", "face"])
def test_attributes_that_repeat_a_file_are_refused(what):
    with pytest.raises(ModelError, match=f"repeated {what}"):
        compile_mesh(MeshInput(file=obj(VERTEX, FACE), filename="t.obj", **{what: [0, 1, 2]}))


@pytest.mark.parametrize("geom", ["sphere", "capsule", "cylinder", "ellipsoid", "box"])
@pytest.mark.parametrize("fitaabb", [False, True])
@pytest.mark.parametrize("inertia", ["legacy", "shell"])
def test_primitives_fitted_to_a_mesh(geom, fitaabb, inertia):
    m = mujoco_model(
        geom,
        'size="0.1 0.2 0.3" fitscale="1.5"',
        compiler=f'fitaabb="{str(fitaabb).lower()}"',
        vertex=VERTEX,
        face=FACE,
        inertia=inertia,
    )
    mesh = compile_mesh(MeshInput(vertex=VERTEX, face=FACE, inertia=inertia))
    size, center = fit_geom(mesh, geom, (0.1, 0.2, 0.3), 1.5, fitaabb)
    np.testing.assert_allclose(size, m.geom_size[0], rtol=1e-9)
    if not fitaabb:
        np.testing.assert_array_equal(center, 0)


def test_convex_inertia_without_faces_uses_the_hull():
    assert_same_mesh(*compile_both(vertex=random_points(20), inertia="convex"))


BAD = {
    "nothing": ({}, "mesh 'm': at least 4 vertices required"),
    "three vertices": ({"vertex": TETRAHEDRON[:3]}, "mesh 'm': at least 4 vertices required"),
    "vertex count": ({"vertex": [0.0] * 13}, "mesh 'm': vertex data must be a multiple of 3"),
    "normal count": ({"vertex": CUBE, "normal": [1.0]}, "mesh 'm': normal data must be a multiple of 3"),
    "texcoord count": (
        {"vertex": CUBE, "texcoord": [1.0, 2.0]},
        "mesh 'm': 'texcoord' needs two numbers for each of the",
    ),
    "face count": ({"vertex": CUBE, "face": [0, 1]}, "mesh 'm': face data must be a multiple of 3"),
    "face index": ({"vertex": VERTEX, "face": FACE + 1}, "mesh 'm': in face 7, vertex index 12 does not exist"),
    "negative face index": (
        {"vertex": VERTEX, "face": FACE - 1},
        "mesh 'm': in face 0, vertex index -1 does not exist",
    ),
    "not finite": ({"vertex": CUBE * np.nan}, "mesh 'm': vertex 0 is not finite"),
    "infinite": ({"vertex": CUBE * np.inf}, "mesh 'm': vertex 0 is not finite"),
    "too large": ({"vertex": CUBE * 1e300}, "mesh 'm': vertex 0 is not finite"),
    "colocated": ({"vertex": np.ones((5, 3))}, "mesh 'm' has colocated vertices, cannot compute convex hull"),
    "collinear": (
        {"vertex": np.arange(5.0)[:, None] * [1, 2, 3]},
        "mesh 'm' has collinear vertices, cannot compute convex hull",
    ),
    "coplanar": ({"vertex": CUBE * [1, 1, 0]}, "mesh 'm' has coplanar vertices, cannot compute convex hull"),
    "misoriented": (
        {"vertex": VERTEX, "face": np.concatenate([FACE[:-1], FACE[-1:, ::-1]]), "inertia": "exact"},
        "faces of mesh 'm' have inconsistent orientation",
    ),
    "inside out": (
        {"vertex": VERTEX, "face": FACE[:, ::-1], "inertia": "exact"},
        "mesh volume is negative (misoriented triangles): m",
    ),
    "mirrored hull": (
        {"vertex": VERTEX, "face": FACE, "scale": (-1, 1, 1), "inertia": "convex"},
        "mesh volume is negative (misoriented triangles): m",
    ),
    "no surface": ({"vertex": VERTEX, "face": np.zeros((2, 3), int)}, "mesh 'm' has a surface without area"),
    "no volume": ({"vertex": VERTEX, "face": FACE[:4]}, "mesh volume is too small: m"),
    "scale zero": ({"vertex": VERTEX, "face": FACE, "scale": (1, 1, 0)}, "mesh volume is too small: m"),
    "scale not finite": (
        {"vertex": VERTEX, "face": FACE, "scale": (1, 1, np.nan)},
        "mesh scale must be 3 finite numbers",
    ),
    "unknown inertia": ({"vertex": VERTEX, "face": FACE, "inertia": "solid"}, "unknown mesh inertia 'solid'"),
    "unknown file": (
        {"file": b"abc", "filename": "a.ply"},
        "mesh file 'a.ply' has an unknown ending: STL, OBJ and MSH files are read",
    ),
    "builtin and file": (
        {"file": b"abc", "filename": "a.stl", "builtin": "sphere", "params": [1]},
        "builtin cannot be used with a mesh file",
    ),
    "builtin and vertices": (
        {"vertex": CUBE, "builtin": "sphere", "params": [1]},
        "builtin mesh cannot be used with user vertex data",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_is_refused(what):
    given, words = BAD[what]
    with pytest.raises(ModelError, match=re.escape(words)):
        compile_mesh(MeshInput(name="m", **given))
