"""HTML replay: its contents are those of the trajectory, and it loads nothing from outside."""

import base64
import json
import re

import mujoco
import numpy as np
import pytest

from jaxsim.io.mujoco import host_model
from jaxsim.viewer import html

TYPES = {"f32": "<f4", "i16": "<i2"}

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
    return np.frombuffer(base64.b64decode(blob["data"]), TYPES[blob["type"]]).astype(np.float64)


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
    hill, tetra = (array(scene["meshes"][g["mesh"]]).reshape(-1, 8) for g in scene["geoms"] if "mesh" in g)
    assert len(hill) == 2 * 3 * 6 and hill[:, 2].max() == pytest.approx(0.5) and hill[:, 0].min() == -2
    assert len(tetra) == 3 * m.nmeshface
    np.testing.assert_allclose(np.linalg.norm(np.r_[hill, tetra][:, 3:6], axis=1), 1, atol=1e-6)


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
    np.testing.assert_allclose(scene["sun"], [0, -np.sqrt(0.5), np.sqrt(0.5)], atol=1e-6)
    assert np.shape(scene["sky"]) == (2, 3)


def test_file_is_written(replay, tmp_path):
    m, frames = replay
    html.save_html(m, frames, tmp_path / "replay.html", title="mine")
    assert "<title>mine</title>" in (tmp_path / "replay.html").read_text()
