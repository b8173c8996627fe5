"""Small meshes, their files, and the comparison of a compiled mesh with MuJoCo's."""

import struct

import mujoco
import numpy as np

from jaxsim.compiler.asset.mesh import MeshArrays, MeshInput, compile_mesh

CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
TETRAHEDRON = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])


def l_shape():
    """Vertices and faces of an L, extruded: not convex, with merged faces on its hull."""
    outline = [(0, 0), (2, 0), (2, 1), (1, 1), (1, 3), (0, 3)]
    vertex = np.array([(x, y, z) for z in (0, 1) for x, y in outline], dtype=float)
    cap = [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]
    face = [(a, c, b) for a, b, c in cap] + [(a + 6, b + 6, c + 6) for a, b, c in cap]
    for i in range(6):
        j = (i + 1) % 6
        face += [(i, j, j + 6), (i, j + 6, i + 6)]
    return vertex, np.array(face)


def random_points(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32).astype(float)


def stl(triangles, count=None):
    out = b"binary".ljust(80) + struct.pack("<I", len(triangles) if count is None else count)
    for triangle in triangles:
        out += struct.pack("<12fH", 0, 0, 0, *np.ravel(triangle), 0)
    return out


def obj(vertex, polygons):
    text = "".join("v {!r} {!r} {!r}\n".format(*map(float, p)) for p in vertex)
    return (text + "".join("f " + " ".join(str(i + 1) for i in p) + "\n" for p in polygons)).encode()


def msh(vertex, face, normal=(), texcoord=()):
    out = struct.pack("<4i", len(vertex), len(normal), len(texcoord), len(face))
    for values in (vertex, normal, texcoord):
        out += np.asarray(values, "<f4").tobytes()
    return out + np.asarray(face, "<i4").tobytes()


def _text(key, value):
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    kind = int if key in ("face", "maxhullvert") else float
    return " ".join(repr(kind(x)) for x in np.ravel(value))


def mujoco_model(geom="mesh", geom_attributes="", file=None, filename="", compiler="", **mesh):
    """MuJoCo's model with this mesh alone."""
    attributes = "".join(f' {k}="{_text(k, v)}"' for k, v in mesh.items())
    if file is not None:
        attributes += f' file="{filename}"'
    xml = (
        f'<mujoco><compiler {compiler}/><asset><mesh name="m"{attributes}/></asset>'
        f'<worldbody><geom type="{geom}" mesh="m" {geom_attributes}/></worldbody></mujoco>'
    )
    return mujoco.MjModel.from_xml_string(xml, {filename: file} if file is not None else {})


def compile_both(geom="mesh", geom_attributes="", **mesh):
    """MuJoCo's model and our arrays."""
    m = mujoco_model(geom, geom_attributes, **mesh)
    mine = {k: np.fromstring(v, sep=" ") if k == "params" else v for k, v in mesh.items()}
    needhull = 'contype="0"' not in geom_attributes
    return m, compile_mesh(MeshInput(name="m", needhull=needhull, needsdf=geom == "sdf", **mine))


def assert_same_mesh(m, a: MeshArrays, graph=True):
    """Every mesh field equals MuJoCo's. graph=False leaves out the order of the edges in the hull's graph."""
    for name in ("vert", "normal", "texcoord"):
        _close(getattr(a, name), getattr(m, f"mesh_{name}"), 1e-7, name)
    for name in ("face", "facenormal", "facetexcoord", "polyvert", "polyvertadr", "polyvertnum"):
        np.testing.assert_array_equal(getattr(a, name), getattr(m, f"mesh_{name}"), err_msg=name)
    for name in ("polymap", "polymapadr", "polymapnum"):
        np.testing.assert_array_equal(getattr(a, name), getattr(m, f"mesh_{name}"), err_msg=name)
    for name in ("scale", "pos", "quat"):
        _close(getattr(a, name), getattr(m, f"mesh_{name}")[0], 1e-9, name)
    _close(a.polynormal, m.mesh_polynormal, 1e-9, "polynormal")
    assert a.has_texcoord == (m.mesh_texcoordadr[0] >= 0)
    _same_graph(a.graph, m.mesh_graph, graph)
    nodes = slice(m.mesh_bvhadr[0], m.mesh_bvhadr[0] + m.mesh_bvhnum[0])
    _close(a.bvh.aabb, m.bvh_aabb[nodes], 1e-9, "bvh_aabb")
    for name in ("child", "nodeid", "depth"):
        np.testing.assert_array_equal(getattr(a.bvh, name), getattr(m, f"bvh_{name}")[nodes], err_msg=f"bvh_{name}")
    if m.geom_type[0] in (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_SDF):
        low, high = a.aamm[:3], a.aamm[3:]
        _close(np.r_[(high + low) / 2, (high - low) / 2], m.geom_aabb[0], 1e-9, "aabb")


def _close(mine, expected, tolerance, name):
    assert mine.shape == expected.shape, name
    np.testing.assert_allclose(mine, expected, rtol=1e-6, atol=tolerance, err_msg=name)


def _same_graph(mine, expected, exact):
    assert mine.shape == expected.shape
    if exact or mine.size == 0:
        np.testing.assert_array_equal(mine, expected)
        return
    nface = mine[1]
    np.testing.assert_array_equal(mine[:2], expected[:2])
    np.testing.assert_array_equal(mine[-3 * nface :], expected[-3 * nface :])
    assert neighbours(mine) == neighbours(expected)


def neighbours(graph):
    """{vertex: set of its neighbours} of a hull's graph."""
    nvert = graph[0]
    adr, ids, edges = graph[2 : 2 + nvert], graph[2 + nvert : 2 + 2 * nvert], graph[2 + 2 * nvert :]
    out = {}
    for k in range(nvert):
        end = adr[k] + int(np.argmax(edges[adr[k] :] == -1))
        out[int(ids[k])] = {int(ids[e]) for e in edges[adr[k] : end]}
    return out
