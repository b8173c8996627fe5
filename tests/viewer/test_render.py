"""Pictures without a display: perspective, cameras, groups, tendons, files."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import jaxsim
from jaxsim.core.types import GeomType
from jaxsim.tools.cli import main
from jaxsim.viewer import render, shapes

SCENE = """<mujoco model="scene">
  <asset><mesh name="tetra" vertex="0 0 0 .3 0 0 0 .3 0 0 0 .3"/><hfield name="hill" nrow="3" ncol="3"
    size=".3 .3 .2 .1" elevation="0 0 0 0 1 0 0 0 0"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1" rgba="0 0 1 1"/>
    <camera name="front" pos="0 -2 .5" xyaxes="1 0 0 0 0 1" fovy="45"/>
    <body name="ball" pos="0 0 .5"><joint name="x" type="slide" axis="1 0 0"/><geom type="sphere" size=".2"
      rgba="1 0 0 1"/><site name="a"/></body>
    <geom type="capsule" pos="-.8 0 .5" size=".1 .2" rgba="0 1 0 1"/>
    <geom type="cylinder" pos=".8 0 .5" size=".1 .2" rgba="1 1 0 1"/>
    <geom type="ellipsoid" pos="-.5 1 1" size=".1 .2 .1"/><geom type="box" pos=".5 1 1" size=".1 .1 .1"/>
    <geom type="mesh" mesh="tetra" pos="0 1 1"/><geom type="hfield" hfield="hill" pos="1.5 1 0"/>
    <geom type="box" pos="0 -1 .5" size=".5 .1 .5" group="4"/><site name="b" pos="0 0 1"/>
  </worldbody>
  <tendon><spatial name="rope" width=".02" rgba="1 0 1 1"><site site="a"/><site site="b"/></spatial></tendon>
  <actuator><motor joint="x"/></actuator>
  <keyframe><key name="aside" qpos=".4"/></keyframe>
</mujoco>"""

SMALL = """<mujoco><worldbody><geom type="box" size=".3 .1 .1" pos="0 0 -.5"/>
  <body><joint name="x" type="slide" axis="1 0 0"/>
  <geom size=".2"/></body></worldbody><actuator><motor joint="x" gear="9000"/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(SCENE)


@pytest.fixture(scope="module")
def images(m):
    return render.render(m, {"qpos": np.array([[0.0], [0.4]])}, "front", width=160, height=120)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "scene.xml"
    path.write_text(SCENE)
    return str(path)


def reddish(image):
    red, green, blue = np.moveaxis(image.astype(float), -1, 0)
    return (red > 40) & (green < 0.6 * red) & (blue < 0.6 * red)


def test_a_ball_is_where_perspective_puts_it(images):
    for image, x in zip(images, (0.0, 0.4), strict=True):
        rows, columns = np.nonzero(reddish(image))
        focal = 60 / np.tan(np.deg2rad(45) / 2)
        assert np.isclose(columns.mean() + 0.5, 80 + focal * x / 2, atol=1.5)
        assert np.isclose(rows.mean() + 0.5, 60, atol=1.5)
        assert np.isclose(len(rows), np.pi * (focal * 0.2 / 2) ** 2, rtol=0.15)


def test_floor_fills_below_the_horizon_though_it_reaches_behind_the_camera(images):
    bottom = images[0][-1]
    assert np.all(bottom[:, 2] > 20) and np.all(bottom[:, 0] < 5)  # in the grazing light of the headlight


def test_groups_above_two_are_hidden(m):
    states = {"qpos": np.zeros((1, 1))}
    images = [render.render(m, states, "front", 160, 120, groups=groups)[0] for groups in ((0, 1, 2), (0, 1, 2, 4))]
    middle = [image[60, 80].astype(float) for image in images]
    assert middle[0][0] > 1.5 * middle[0][1] and np.ptp(middle[1]) < 20


def test_tendon_is_drawn_between_its_sites(images):
    focal = 60 / np.tan(np.deg2rad(45) / 2)
    row = round(60 - focal * 0.35 / 2)
    r, g, b = images[0][row, 80].astype(int)
    assert r > 100 and b > 100 and g < 80


def test_every_type_of_geom_has_outward_unit_normals(m):
    for g in np.flatnonzero(m.geom_type != GeomType.MESH):  # normals of meshes are the model's own
        rows = shapes.geom_triangles(m, g, 5.0)
        corner, normal = rows[:, :3].reshape(-1, 3, 3), rows[:, 3:6]
        assert np.allclose(np.linalg.norm(normal, axis=1), 1, atol=1e-5)
        face = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
        assert np.all(np.einsum("ni,ni->n", face, normal.reshape(-1, 3, 3).mean(1)) >= -1e-9)


def test_trajectory_of_the_wrong_size_is_an_error(m):
    with pytest.raises(ValueError, match=r"qpos \(1,\), \(frames, 1\)"):
        render.render(m, {"qpos": np.zeros((3, 2))})


def test_command_writes_an_image(path, tmp_path, capsys):
    out = tmp_path / "frame.png"
    size = ["--width", "64", "--height", "48"]
    assert main(["render", path, "--camera", "front", "--keyframe", "aside", "--out", str(out), *size]) == 0
    assert Image.open(out).size == (64, 48) and "image" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["video.mp4", "video.gif"])
def test_command_writes_a_video(tmp_path, name):
    import imageio.v2 as imageio

    path = str(tmp_path / "small.xml")
    Path(path).write_text(SMALL, encoding="utf-8")

    out = tmp_path / name
    more = ["--seconds", "0.2", "--fps", "20", "--width", "64", "--height", "48", "--controls", "random", "--quiet"]
    assert main(["render", path, "--out", str(out), *more]) == 0
    assert len(imageio.mimread(out)) == 5


def test_command_renders_a_recorded_world(path, tmp_path):
    qpos = np.linspace(0, 0.4, 10)[:, None, None] * np.ones((1, 2, 1))
    np.savez(tmp_path / "worlds.npz", qpos=qpos, time=np.arange(10)[:, None] * np.ones((1, 2)) / 30)
    out = tmp_path / "last.png"
    more = ["--replay", str(tmp_path / "worlds.npz"), "--camera", "0", "--width", "160", "--height", "120"]
    assert main(["render", path, "--out", str(out), *more]) == 0
    assert np.nonzero(reddish(np.asarray(Image.open(out))))[1].mean() > 90


@pytest.mark.slow
def test_command_renders_all_recorded_worlds_in_one_scene(path, tmp_path):
    np.savez(tmp_path / "worlds.npz", qpos=np.zeros((2, 2, 1)), time=np.repeat([[0.0], [1 / 30]], 2, 1))
    out = tmp_path / "both.png"
    more = ["--replay", str(tmp_path / "worlds.npz"), "--together", "--width", "160", "--height", "120"]
    assert main(["render", path, "--out", str(out), *more]) == 0
    columns = reddish(np.asarray(Image.open(out))).any(0)
    assert len(columns) == 160 and np.count_nonzero(np.diff(columns.astype(int)) == 1) == 2  # two balls


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--camera", "back"], "no camera 'back'; the model has front"),
        (["--camera", "7"], "no camera '7'"),
        (["--seconds", "-1"], "negative"),
        (["--together"], "--together draws the worlds of a file"),
        (["--keyframe", "none"], "no keyframe 'none'"),
        (["--out", "missing/frame.png"], "does not exist"),
    ],
)
def test_mistakes_give_one_line(path, tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["render", path, *arguments]) == 1
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_a_cloth_and_a_skin_are_drawn_where_they_are():
    xml = """<mujoco><worldbody><camera name="top" pos="0 0 2" fovy="40"/>
      <flexcomp name="cloth" type="grid" dim="2" count="3 3 1" spacing=".1 .1 .1" mass="1" radius=".01" rgba="1 0 0 1"
        pos="-.3 0 0"><contact selfcollide="none"/><edge equality="true"/></flexcomp>
      <body name="bone" pos=".3 0 0"><joint/><geom size=".01" rgba="0 0 0 0"/></body></worldbody>
      <deformable><skin rgba="0 0 1 1" vertex=".2 -.1 0 .4 -.1 0 .4 .1 0 .2 .1 0" face="0 1 2 0 2 3">
        <bone body="bone" bindpos=".3 0 0" bindquat="1 0 0 0" vertid="0 1 2 3" vertweight="1 1 1 1"/></skin>
      </deformable></mujoco>"""
    m = jaxsim.load_model(xml)
    image = render.render(m, {"qpos": np.asarray(m.qpos0)[None]}, "top", 80, 60)[0].astype(int)
    red = (image[..., 0] > 2 * image[..., 2]) & (image[..., 0] > 60)
    blue = (image[..., 2] > 2 * image[..., 0]) & (image[..., 2] > 60)
    pixels = 60 / (2 * 2 * np.tan(np.deg2rad(20)))  # of a metre at the distance of the camera
    for mask, x in ((red, -0.3), (blue, 0.3)):
        row, column = (np.mean(i) for i in np.nonzero(mask))
        np.testing.assert_allclose([column, row], [39.5 + x * pixels, 29.5], atol=1.0)
        np.testing.assert_allclose(mask.sum(), (0.2 * pixels) ** 2, rtol=0.35)


def several(*places):
    """A floor, a camera from above, and at each place a box that slides, a cloth and a skin."""
    bodies, skins = "", ""
    for i, x in enumerate(places):
        bodies += f"""<body name="box{i}" pos="{x} 0 .1"><joint type="slide" axis="0 1 0"/>
          <geom type="box" size=".05 .08 .05" rgba="1 0 0 1"/></body>
          <flexcomp name="cloth{i}" type="grid" dim="2" count="3 3 1" spacing=".05 .05 .1" mass="1" radius=".01"
            rgba="0 1 0 1" pos="{x} -.2 .1"><contact selfcollide="none"/><edge equality="true"/></flexcomp>"""
        skins += f"""<skin rgba="0 0 1 1" vertex="-.05 .2 0 .05 .2 0 .05 .3 0 -.05 .3 0" face="0 1 2 0 2 3">
          <bone body="box{i}" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2 3" vertweight="1 1 1 1"/></skin>"""
    return jaxsim.load_model(f"""<mujoco><statistic extent=".5" center="0 0 0"/><worldbody>
      <camera name="top" pos=".3 0 2" fovy="40"/><light type="directional" pos="0 0 3" dir=".2 .1 -1"/>
      <geom type="plane" size="2 2 1" rgba=".5 .6 .7 1"/>{bodies}</worldbody>
      <deformable>{skins}</deformable></mujoco>""")


@pytest.mark.slow
def test_worlds_together_are_drawn_as_one_model_of_them_all():
    apart, one = several(0.0), several(0.0, 0.6)
    states = np.stack([apart.qpos0, apart.qpos0])
    states[1, 0] = 0.1
    both = render.render(apart, {"qpos": states[None]}, "top", 80, 48, together=True)
    wanted = render.render(one, {"qpos": states.reshape(1, -1)}, "top", 80, 48)
    assert (np.abs(both.astype(int) - wanted).max(-1) <= 2).mean() > 0.995
    assert len(np.unique(wanted.reshape(-1, 3), axis=0)) > 20


def test_a_camera_that_orbits_turns_from_frame_to_frame():
    xml = "<mujoco><visual><global azimuth='{}'/></visual>" + SMALL.removeprefix("<mujoco>")
    still = {"qpos": np.zeros((2, 1))}
    turning = render.render(jaxsim.load_model(xml.format(90)), still, None, 40, 30, orbit=30.0)
    for azimuth, picture in zip((90, 120), turning, strict=True):
        wanted = render.render(jaxsim.load_model(xml.format(azimuth)), np.zeros(1), None, 40, 30)[0]
        assert np.abs(picture.astype(int) - wanted).mean() < 0.5
    assert np.abs(turning[0].astype(int) - turning[1]).mean() > 1
