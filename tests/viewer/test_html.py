"""HTML replay: its contents are those of the trajectory, and it loads nothing from outside."""

import base64
import json
import re
import zlib

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.io.mujoco import host_model
from jaxsim.viewer import html

TYPES = {"f32": "<f4", "i16": "<i2", "i8": "i1", "u32": "<u4"}

SCENE = """
<mujoco model="a &lt;script&gt; b">
  <asset>
    <mesh name="tetra" vertex="0 0 0 .3 0 0 0 .3 0 0 0 .3"/>
    <hfield name="hill" nrow="3" ncol="4" size="2 1 .5 .1" elevation="0 0 0 0 0 1 2 0 0 0 0 0"/>
    <texture name="c" type="2d" builtin="checker" rgb1="1 0 0" rgb2="1 1 0" width="8" height="8"/>
    <material name="c" texture="c" texrepeat="2 3" texuniform="true"/>
    <material name="blue" rgba="0 0 1 1" specular="1" shininess="0.25" emission="0.5"/>
  </asset>
  <worldbody>
    <light directional="true" dir="0 1 -1"/>
    <geom type="plane" size="0 0 .1" material="c"/>
    <geom type="hfield" hfield="hill" pos="0 5 0"/>
    <body name="a" pos="0 0 1"><freejoint/>
      <geom type="sphere" size=".1" material="blue"/>
      <geom type="capsule" size=".1 .2" rgba="1 0 0 .5" material="blue" group="4"/>
      <geom type="ellipsoid" size=".1 .2 .3"/>
    </body>
    <body name="b" pos="1 0 1"><freejoint/>
      <geom type="cylinder" size=".1 .2"/><geom type="box" size=".1 .2 .3" material="c"/>
      <geom type="mesh" mesh="tetra"/>
      <body name="tip"><geom size=".05"/></body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def replay():
    """The model and a trajectory of forty frames in which everything falls and turns."""
    mj_model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(mj_model)
    data.qvel[:] = np.random.default_rng(0).normal(size=mj_model.nv)
    names = ("time", "geom_xpos", "geom_xmat", "xpos", "ncon")
    frames = {name: [] for name in (*names, "contact_pos", "contact_frame")}
    for _ in range(40):
        mujoco.mj_step(mj_model, data, 10)
        for name in names:
            frames[name].append(np.copy(getattr(data, name)))
        for name in ("pos", "frame"):
            buffer = np.full((50, 9 if name == "frame" else 3), np.nan)
            buffer[: data.ncon] = getattr(data.contact, name)
            frames[f"contact_{name}"].append(buffer)
    return host_model(mj_model), {name: np.array(values) for name, values in frames.items()}


def array(blob):
    data = base64.b64decode(blob["data"])
    return np.frombuffer(zlib.decompress(data) if blob["deflate"] else data, TYPES[blob["type"]]).astype(np.float64)


def corners(mesh):
    """Corners (3 n, 8) of the triangles of a mesh, as the page decodes them."""
    index = array(mesh["index"]).astype(int)
    position = mesh["centre"] + np.array(mesh["half"]) * array(mesh["position"]).reshape(-1, 3) / 32767
    rows = [position, array(mesh["normal"]).reshape(-1, 3) / 127, array(mesh["coord"]).reshape(-1, 2)]
    return np.concatenate(rows, 1)[index]


def rotate(q):
    w, x, y, z = np.moveaxis(q, -1, 0)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (
            2 * (x * y + w * z),
            1 - 2 * (x * x + z * z),
            2 * (y * z - w * x),
        ),
    )
    third = np.cross(np.stack(rows[0], -1), np.stack(rows[1], -1))
    return np.concatenate([np.stack(rows[0], -1), np.stack(rows[1], -1), third], -1)


def test_embedded_poses_are_those_of_the_trajectory(replay):
    m, frames = replay
    scene = html.make_scene(m, frames)
    moving = np.flatnonzero(m.geom_bodyid > 0)
    assert scene["nmoving"] == len(moving)
    position = array(scene["position"]).reshape(40, -1, 3)
    np.testing.assert_allclose(position, frames["geom_xpos"][:, moving], atol=1e-6)
    quat = array(scene["rotation"]).reshape(40, -1, 4) / 32767
    quat /= np.linalg.norm(quat, axis=-1, keepdims=True)
    np.testing.assert_allclose(rotate(quat), frames["geom_xmat"][:, moving], atol=2e-4)


@pytest.mark.parametrize("axis", range(3))
def test_quaternions_of_half_turns_are_not_degenerate(axis):
    q = np.eye(4)[axis + 1]
    np.testing.assert_allclose(np.abs(html.quaternions(rotate(q))), q, atol=1e-12)


def test_contacts_are_packed_frame_by_frame(replay):
    m, frames = replay
    scene = html.make_scene(m, frames)
    count = array(scene["ncontact"]).astype(int)
    rows = array(scene["contact"]).reshape(-1, 6)
    assert count.sum() == len(rows) > 0
    last = frames["contact_pos"][-1][: count[-1]]
    np.testing.assert_allclose(rows[len(rows) - count[-1] :, :3], last, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(rows[:, 3:], axis=1), 1, atol=1e-6)


def test_colour_and_gloss_follow_the_material_unless_the_geom_has_its_own(replay):
    m, frames = replay
    geoms = html.make_scene(m, frames)["geoms"]
    sphere, capsule, ellipsoid = geoms[2:5]
    assert sphere["rgba"] == [0, 0, 1, 1] and sphere["emission"] == 0.5 and sphere["shininess"] == 0.25
    assert capsule["rgba"] == [1, 0, 0, 0.5] and capsule["group"] == 4
    assert ellipsoid["rgba"] == [0.5, 0.5, 0.5, 1]


def test_textures_are_embedded_once_and_repeat_per_metre_on_planes(replay):
    m, frames = replay
    scene = html.make_scene(m, frames)
    plane, box = scene["geoms"][0], scene["geoms"][6]
    assert len(scene["images"]) == 1 and scene["images"][0].startswith("data:image/png;base64,")
    assert plane["image"] == box["image"] == 0 and plane["repeat"] == [1.0, 1.5]
    assert plane["endless"] and min(plane["size"]) > 20


def test_height_field_and_mesh_become_triangles_of_the_model(replay):
    m, frames = replay
    scene = html.make_scene(m, frames)
    hill, tetra = (corners(scene["meshes"][g["mesh"]]) for g in scene["geoms"] if "mesh" in g)
    # positions are rounded to 1/32767 of half the box, normals to 1/127
    np.testing.assert_allclose(hill[:, :3], html.hfield_triangles(m, 0)[:, :3], atol=1e-4)
    np.testing.assert_allclose(tetra[:, :3], html.mesh_triangles(m, 0)[:, :3], atol=1e-4)
    np.testing.assert_allclose(tetra[:, 3:6], html.mesh_triangles(m, 0)[:, 3:6], atol=5e-3)
    assert len(hill) == 2 * 3 * 6 and len(tetra) == 3 * m.nmeshface


def sphere_triangles(rows, columns):
    """Corners (3 n, 8) of the triangles of a unit sphere."""
    polar, turn = np.meshgrid(np.linspace(0, np.pi, rows + 1), np.linspace(0, 2 * np.pi, columns + 1), indexing="ij")
    p = np.stack([np.sin(polar) * np.cos(turn), np.sin(polar) * np.sin(turn), np.cos(polar)], -1)
    a, b, c, d = p[:-1, :-1], p[1:, :-1], p[1:, 1:], p[:-1, 1:]
    corner = np.stack([a, b, c, a, c, d], 2).reshape(-1, 3)
    return np.concatenate([corner, corner, np.zeros((len(corner), 2))], 1).astype(np.float32)


def test_large_meshes_are_simplified_and_keep_their_shape():
    fine = sphere_triangles(300, 300)
    out = html.simplified(fine, 20_000)
    assert len(fine) == 3 * 180_000 and 3 * 5_000 < len(out) <= 3 * 20_000
    np.testing.assert_allclose(np.linalg.norm(out[:, :3], axis=1), 1, atol=0.01)
    small = sphere_triangles(10, 10)
    assert html.simplified(small, 20_000) is small


def test_large_robots_make_small_pages():
    """Fifteen different meshes of 18,000 triangles: 26 MB if every corner were written out."""
    triangles = sphere_triangles(95, 95)
    parts = [html.make_mesh(triangles * (1 + 0.1 * i), textured=False) for i in range(15)]
    assert len(json.dumps(parts)) < 4e6


def test_sites_are_drawn_where_the_trajectory_has_their_poses():
    xml = """<mujoco><worldbody><site name="goal" pos="1 2 3" size=".2" rgba="0 1 0 1"/><body><joint/>
      <geom size=".1"/><site type="box" pos="0 0 1" size=".1 .2 .3" group="3"/></body></worldbody></mujoco>"""
    mj_model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(mj_model)
    mujoco.mj_forward(mj_model, data)
    names = ("geom_xpos", "geom_xmat", "site_xpos", "site_xmat")
    frames = {"time": np.zeros(1), **{n: getattr(data, n)[None] for n in names}}
    m = host_model(mj_model)
    _, goal, box = html.make_scene(m, frames)["geoms"]
    assert goal["shape"] == "sphere" and goal["pos"] == [1, 2, 3] and goal["moving"] == -1 and goal["site"]
    assert box["shape"] == "box" and box["moving"] == 1 and box["group"] == 3
    del frames["site_xpos"]
    assert len(html.make_scene(m, frames)["geoms"]) == 1
    with pytest.raises(ValueError, match="site_xpos has shape"):
        html.make_scene(m, {**frames, "site_xpos": np.zeros((1, 3, 3))})


def test_page_loads_nothing_from_outside_and_escapes_names(replay):
    m, frames = replay
    page = html.render(m, frames)
    assert "a &lt;script&gt; b" in page and "a <script> b" not in page
    assert not re.search(r"(src|href)\s*=|https?://|@[A-Z]+@|import\s", page.replace("image.src =", ""))
    text = re.search(r'type="application/json">(.*?)</script>', page, re.S).group(1)
    assert json.loads(text)["geoms"]


def test_numbers_that_are_not_finite_do_not_break_the_page(replay):
    m, frames = replay
    bad = {**frames, "geom_xpos": np.full_like(frames["geom_xpos"], np.nan)}
    assert np.isfinite(array(html.make_scene(m, bad)["position"])).all()


def test_wrong_shape_is_refused_by_name(replay):
    m, frames = replay
    with pytest.raises(ValueError, match="geom_xmat has shape"):
        html.make_scene(m, {**frames, "geom_xmat": frames["geom_xmat"][:, :-1]})


@pytest.mark.parametrize(("follow", "index"), [("a", 0), ("tip", 1), (None, -1), ("auto", -1)])
def test_camera_follows_the_tree_of_the_named_body(replay, follow, index):
    m, frames = replay
    scene = html.make_scene(m, frames, follow)
    assert scene["defaultFollow"] == index and scene["follow"] == ["a", "b"]


def test_body_that_does_not_move_cannot_be_followed(replay):
    m, frames = replay
    with pytest.raises(KeyError, match="does not move"):
        html.make_scene(m, frames, "world")


def test_light_and_sky_come_from_the_model(replay):
    m, frames = replay
    scene = html.make_scene(m, frames)
    (light,) = scene["lights"]
    assert light["kind"] == "directional" and light["diffuse"] == pytest.approx(np.asarray(m.light_diffuse[0]))
    np.testing.assert_allclose(array(light["direction"])[:3], [0, np.sqrt(0.5), -np.sqrt(0.5)], atol=1e-6)
    assert scene["headlight"]["ambient"] == pytest.approx(m.vis.headlight.ambient)
    assert np.shape(scene["sky"]) == (2, 3)


def test_file_is_written(replay, tmp_path):
    m, frames = replay
    html.save_html(m, frames, tmp_path / "replay.html", title="mine")
    assert "<title>mine</title>" in (tmp_path / "replay.html").read_text()


SOFT = """<mujoco><asset><texture name="c" type="2d" builtin="checker" rgb1="1 0 0" rgb2="1 1 0" width="8" height="8"/>
  <material name="c" texture="c"/></asset><worldbody>
  <flexcomp name="cloth" type="grid" dim="2" count="3 3 1" spacing=".1 .1 .1" mass="1" radius=".01" material="c"
    pos="0 0 1"><contact selfcollide="none"/><edge equality="true"/></flexcomp>
  <flexcomp name="rope" type="grid" dim="1" count="4 1 1" spacing=".1 .1 .1" mass="1" radius=".02" rgba="0 1 0 1"
    pos="0 .5 1"><edge equality="true"/></flexcomp></worldbody></mujoco>"""


def test_flexes_are_vertices_by_frame_and_the_triangles_that_join_them():
    m = jaxsim.load_model(SOFT)
    d = jax.vmap(lambda t: jaxsim.stages.flex(m, jaxsim.kinematics(m, jaxsim.make_data(m).replace(time=t))))
    frames = d(np.array([0.0, 0.1]))
    scene = html.make_scene(m, frames)
    cloth, rope = scene["surfaces"]
    assert (cloth["first"], cloth["count"], cloth["corners"], cloth["sheet"]) == (0, 9, 3, True)
    assert (rope["first"], rope["count"], rope["corners"], rope["sheet"]) == (9, 4, 2, False)
    assert cloth["image"] == 0 and rope["rgba"] == [0, 1, 0, 1]
    points = np.frombuffer(base64.b64decode(scene["points"]["data"]), "<f4").reshape(2, 13, 3)
    np.testing.assert_allclose(points, frames.flexvert_xpos, atol=1e-6)
    face = np.frombuffer(base64.b64decode(cloth["face"]["data"]), "<f4").reshape(-1, 3)
    np.testing.assert_array_equal(face, m.flex_elem[:24].reshape(-1, 3))


def test_tendons_follow_their_paths_from_frame_to_frame():
    m = jaxsim.load_model(
        """<mujoco><worldbody><site name="a" pos="0 0 1"/><body><joint name="x" type="slide" axis="1 0 0"/>
        <geom size=".1"/><site name="b"/></body></worldbody>
        <tendon><spatial width=".02" rgba="1 0 0 1"><site site="a"/><site site="b"/></spatial></tendon></mujoco>"""
    )
    scene = html.make_scene(m, {"qpos": np.array([[0.0], [0.5]]), "time": np.arange(2.0)})
    (rope,) = scene["surfaces"]
    points = array(scene["points"]).reshape(2, -1, 3)
    assert rope["corners"] == 2 and rope["thickness"] == pytest.approx(0.02)
    np.testing.assert_allclose(points, [[[0, 0, 1], [0, 0, 0]], [[0, 0, 1], [0.5, 0, 0]]], atol=1e-6)
