"""Readers of mesh files: what they give and what they refuse, compared with MuJoCo."""

import re
import struct
from contextlib import nullcontext

import mujoco
import numpy as np
import pytest

from jaxsim.compiler.asset.mesh import MeshInput, compile_mesh
from jaxsim.core.errors import ModelError, ModelWarning
from jaxsim.mjcf.mesh_file import MAX_CORNERS, STL_MAX_FACES, deduplicate, read_mesh, read_obj
from tests.compiler.mesh_cases import assert_same_mesh, compile_both, l_shape, msh, mujoco_model, obj, stl

VERTEX, FACE = l_shape()
POINTS = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nv 1 1 0\n"
SOLID = "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
TEXTURED = "f 1/1/1 3/2/2 2/3/1\nf 1/1/1 2/1/1 4/1/1\nf 1/1/1 4/1/1 3/1/1\nf 2/1/1 3/1/1 4/1/1\n"
COORDINATES = "vt 0 0\nvt 1 0.25\nvt 0 1\nvn 0 0 1\nvn 1 0 0\n"

OBJ = {
    "plain": POINTS + SOLID,
    "negative indices": POINTS + "f -5 -3 -4\nf 1 2 4\nf 1 4 3\nf 2 3 4\n",
    "first of two groups": POINTS + "g a\n" + SOLID + "g b\nf 2 5 3\n",
    "empty object first": POINTS + "o a\no b\n" + SOLID + "o c\nf 2 5 3\n",
    "object of lines first": POINTS + "o a\nl 1 2\no b\n" + SOLID,
    "group of lines first": POINTS + "g a\nl 1 2\ng b\n" + SOLID,
    "materials": "mtllib x.mtl\n" + POINTS + "usemtl a\nf 1 3 2\nf 1 2 4\nusemtl b\nf 1 4 3\nf 2 3 4\n",
    "smoothing, lines, points": POINTS + "s 1\nf 1 3 2\nf 1 2 4\ns off\nf 1 4 3\nf 2 3 4\nl 1 2\np 1\n",
    "texture coordinates and normals": POINTS + COORDINATES + TEXTURED,
    "some without them": POINTS + COORDINATES + TEXTURED.replace("3/2/2 2/3/1", "3 2/3"),
    "one texture coordinate": POINTS + "vt 0.3\nf 1/1 3/1 2/1\nf 1/1 2/1 4/1\nf 1/1 4/1 3/1\nf 2/1 3/1 4/1\n",
    "three texture coordinates": POINTS
    + "vt 0.3 0.2 0.1\nf 1/1 3/1 2/1\nf 1/1 2/1 4/1\nf 1/1 4/1 3/1\nf 2/1 3/1 4/1\n",
    "face of two corners": POINTS + "f 1 2\n" + SOLID,
    "no faces": POINTS,
    "unknown words": "hello\nfoo 1 2\n" + POINTS + SOLID + "vp 1 2\ncurv 1\n",
    "colours": "".join(line + " 1 0 0\n" for line in POINTS.splitlines()) + SOLID,
    "carriage returns": (POINTS + SOLID).replace("\n", "\r\n"),
    "carriage returns alone": (POINTS + SOLID).replace("\n", "\r"),
    "comments": "# a\n" + POINTS + "  # b\n\t" + SOLID + "v 1 2 3 # c\n",
    "exponents": "v 0 0 0\nv 1e0 0 0\nv 0 1.0E+0 .0\nv 0 0 +1\n" + SOLID,
}


@pytest.mark.parametrize("what", OBJ)
def test_obj(what):
    assert_same_mesh(*compile_both(file=OBJ[what].encode(), filename=f"{what}.obj"), graph=False)


@pytest.mark.parametrize("n", [4, 5, 6, 9])
@pytest.mark.parametrize("kind", ["star", "any", "grid"])
def test_obj_polygons_are_cut_as_mujoco_does(n, kind):
    rng = np.random.default_rng(n)
    angle = np.sort(rng.random(n)) * 2 * np.pi
    radius = rng.uniform(0.2, 1, n)
    points = {
        "star": np.stack([radius * np.cos(angle), rng.normal(size=n) * 0.01, radius * np.sin(angle)], axis=1),
        "any": rng.normal(size=(n, 3)),
        "grid": np.c_[rng.integers(0, 3, size=(n, 2)), np.zeros(n)],
    }[kind]
    points = np.concatenate([points, [[0, 0, 1], [1, 0, 2], [0, 1, 2]]]).astype(np.float32)
    data = obj(points, [range(n), (n, n + 1, n + 2)])
    m = mujoco_model(geom_attributes='contype="0" conaffinity="0"', file=data, filename="p.obj", inertia="shell")
    np.testing.assert_array_equal(read_obj(data).face.reshape(-1, 3), m.mesh_face)


BAD_OBJ = {
    "empty": ("", "mesh '': at least 4 vertices required"),
    "index too large": (POINTS + "f 1 3 9\n" + SOLID, "mesh '': in face 0, vertex index 8 does not exist"),
    "index zero": (POINTS + "f 0 3 2\n" + SOLID, "could not parse OBJ file 'a.obj' at 'f 0 3 2'"),
    "index before the start": ("f -1 -2 -3\n" + POINTS, "could not parse OBJ file 'a.obj' at 'f -1 -2 -3'"),
    "texture index zero": (
        POINTS + "vt 0 0\nf 1/0 3/1 2/1\n" + SOLID,
        "could not parse OBJ file 'a.obj' at 'f 1/0 3/1 2/1'",
    ),
    "four indices of a corner": (POINTS + "f 1/// 3 2\n" + SOLID, "could not parse OBJ file 'a.obj' at 'f 1/// 3 2'"),
    "words for numbers": ("v a b c\n" + POINTS + SOLID, "could not parse OBJ file 'a.obj' at 'v a b c'"),
    "two numbers": ("v 0 0\n" + POINTS + SOLID, "could not parse OBJ file 'a.obj' at 'v 0 0'"),
    "index of many digits": (POINTS + "f 1 3 7777777777\n" + SOLID, "could not parse OBJ file 'a.obj' at 'f 1 3 77"),
    "continuation": (POINTS + "f 1 3 \\\n2\n" + SOLID, "could not parse OBJ file 'a.obj' at 'f 1 3 \\'"),
    "not finite": (POINTS + "v nan 0 0\n" + SOLID, "mesh '': vertex 5 is not finite"),
}


@pytest.mark.parametrize("what", BAD_OBJ)
def test_obj_that_is_wrong_is_refused_by_both(what):
    given, words = BAD_OBJ[what]
    data = given.encode()
    with pytest.raises(ModelError, match=re.escape(words)):
        compile_mesh(MeshInput(file=data, filename="a.obj"))
    with pytest.raises(ValueError, match="Error"):
        mujoco_model(file=data, filename=f"{what}.obj")


@pytest.mark.parametrize("face", [f"f 1 3 2//{'7' * 99}", f"f 1 3 {'7' * 99}"])
def test_obj_with_an_index_of_very_many_digits_is_refused(face):
    """Found by the fuzzer; MuJoCo takes what is left of such a number in 32 bits."""
    with pytest.raises(ModelError, match="could not parse OBJ file"):
        read_obj((POINTS + "vn 0 0 1\n" + face).encode())


def test_obj_with_a_normal_index_out_of_range_is_refused():
    with pytest.raises(ModelError, match="normal index 7"):
        read_obj((POINTS + "vn 0 0 1\nf 1//1 3//7 2//1\n").encode())


@pytest.mark.parametrize("n", [MAX_CORNERS, MAX_CORNERS + 1])
def test_obj_polygon_of_very_many_corners_is_left_out_as_in_mujoco(n):
    angle = 2 * np.pi * np.arange(n) / n
    points = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    sides = [(i, (i + 1) % n, n) for i in range(n)]
    data = obj(np.concatenate([points, [[0, 0, 1]]]), [range(n)[::-1], *sides])
    m = mujoco_model(file=data, filename=f"corners{n}.obj", inertia="shell")
    with pytest.warns(ModelWarning, match="1 polygon of more than 100 corners") if n > MAX_CORNERS else nullcontext():
        found = read_obj(data).face.reshape(-1, 3)
    np.testing.assert_array_equal(found, m.mesh_face)


def test_stl_keeps_vertices_with_different_bits_apart():
    corner = VERTEX[FACE]
    corner[::2] = np.where(corner[::2] == 0, -0.0, corner[::2])
    m, mesh = compile_both(file=stl(corner), filename="zeros.stl")
    assert len(mesh.vert) > len(VERTEX)
    assert_same_mesh(m, mesh, graph=False)


def test_stl_with_degenerate_triangles():
    extra = [[[0, 0, 0], [0, 0, 0], [1, 0, 0]]]
    data = stl(np.concatenate([VERTEX[FACE], extra]))
    m, mesh = compile_both(file=data, filename="degenerate.stl", inertia="exact")
    np.testing.assert_array_equal(mesh.face, m.mesh_face)
    np.testing.assert_allclose(mesh.pos, m.mesh_pos[0], atol=1e-12)


def test_deduplicate_numbers_by_first_appearance():
    vertex = np.array([[1, 0, 0], [0, 0, 0], [1, 0, 0], [2, 0, 0]], np.float32)
    unique, face = deduplicate(vertex, np.array([3, 2, 1]))
    np.testing.assert_array_equal(unique[:, 0], [1, 0, 2])
    np.testing.assert_array_equal(face, [2, 0, 1])


TRIANGLES = VERTEX[FACE]
BAD_STL = {
    "empty": (b"", "STL file 'a.stl' is empty"),
    "no header": (stl(TRIANGLES)[:50], "STL file 'a.stl' is too short for its header"),
    "no faces": (stl([]), "number of faces should be between 1 and 200000 in STL file 'a.stl'"),
    "too many faces": (
        stl(TRIANGLES, STL_MAX_FACES + 1),
        "number of faces should be between 1 and 200000 in STL file 'a.stl'",
    ),
    "count that lies": (
        stl(TRIANGLES, 2**31 - 1),
        "number of faces should be between 1 and 200000 in STL file 'a.stl'",
    ),
    "negative count": (stl(TRIANGLES, 2**32 - 1), "number of faces should be between 1 and 200000 in STL file 'a.stl'"),
    "truncated": (stl(TRIANGLES)[:-3], "STL file 'a.stl' has wrong size"),
    "ascii": (
        b"solid a\nfacet normal 0 0 0\nouter loop\nvertex 0 0 0\n" * 9,
        "number of faces should be between 1 and 200000 in STL file 'a.stl'",
    ),
    "not finite": (stl(TRIANGLES + np.nan), "mesh '': vertex 0 is not finite"),
    "too large": (stl(TRIANGLES * 2.0**31), "STL file 'a.stl' has a vertex further than"),
}


@pytest.mark.parametrize("what", BAD_STL)
def test_stl_that_is_wrong_is_refused_by_both(what):
    given, words = BAD_STL[what]
    with pytest.raises(ModelError, match=re.escape(words)):
        compile_mesh(MeshInput(file=given, filename="a.stl"))
    with pytest.raises(ValueError, match="Error"):
        mujoco_model(file=given, filename=f"{what}.stl")


BAD_MSH = {
    "empty": (b"", "MSH file 'a.msh' is empty"),
    "no header": (b"abc", "MSH file 'a.msh' is too short for its header"),
    "three vertices": (msh(VERTEX[:3], []), "MSH file 'a.msh' has a header with wrong numbers"),
    "negative count": (
        struct.pack("<4i", 12, -1, 0, 20) + bytes(500),
        "MSH file 'a.msh' has a header with wrong numbers",
    ),
    "other number of normals": (msh(VERTEX, FACE, VERTEX[:5]), "MSH file 'a.msh' has a header with wrong numbers"),
    "count that lies": (
        struct.pack("<4i", 2**31 - 1, 0, 0, 0),
        "MSH file 'a.msh' has another size than its header says",
    ),
    "truncated": (msh(VERTEX, FACE)[:-1], "MSH file 'a.msh' has another size than its header says"),
    "too long": (msh(VERTEX, FACE) + b"1", "MSH file 'a.msh' has another size than its header says"),
    "index out of range": (msh(VERTEX, FACE + 1), "mesh '': in face 7, vertex index 12 does not exist"),
}


@pytest.mark.parametrize("what", BAD_MSH)
def test_msh_that_is_wrong_is_refused_by_both(what):
    given, words = BAD_MSH[what]
    with pytest.raises(ModelError, match=re.escape(words)):
        compile_mesh(MeshInput(file=given, filename="a.msh"))
    with pytest.raises((ValueError, mujoco.FatalError)):
        mujoco_model(file=given, filename=f"{what}.msh")


def test_the_extension_tells_the_format_in_any_case():
    assert read_mesh(stl(TRIANGLES), "A.STL").kind == "stl"
    assert read_mesh(msh(VERTEX, FACE), "a.bin", "model/vnd.mujoco.msh").kind == "msh"
    for filename in ("a.ply", "a", "stl"):
        with pytest.raises(ModelError, match="unknown ending"):
            read_mesh(b"abc", filename)
