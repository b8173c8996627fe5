"""What there is to draw, as frames of each world; pages of many worlds, cameras and plots."""

import numpy as np
import pytest

from jaxsim.compiler import compile_spec
from jaxsim.mjcf import read
from jaxsim.viewer import html
from jaxsim.viewer.frames import grid, split_worlds, tiles
from tests.viewer.test_html import array

MODEL = """<mujoco><worldbody><geom type="plane" size="0 0 1"/><geom type="box" size=".1 .1 .1" pos="1 0 0"/>
<camera name="top"/><body name="ball"><joint name="x" type="slide"/><geom size=".1"/></body></worldbody>
<sensor><jointpos name="place" joint="x"/></sensor></mujoco>"""


@pytest.fixture(scope="module")
def m():
    return compile_spec(read(MODEL))


def states(frames, worlds):
    """A trajectory of many worlds, in which only qpos and the ball's height differ."""
    shape = (frames, worlds)
    height = np.arange(frames * worlds, dtype=float).reshape(shape)
    pos = np.zeros((*shape, 3, 3))
    pos[:, :, 2, 2], pos[:, :, 1, 0] = height, 1
    eye = np.broadcast_to(np.eye(3).ravel(), (*shape, 3, 9))
    return {
        "time": 0.1 * np.arange(frames),
        "geom_xpos": pos,
        "geom_xmat": eye,
        "xpos": pos[:, :, 1:],
        "cam_xpos": np.zeros((*shape, 1, 3)),
        "cam_xmat": eye[:, :, :1],
        "sensordata": height[..., None],
        "reward": height,
    }


def test_states_batches_and_trajectories_are_told_apart(m):
    qpos = np.arange(6.0)[:, None]
    assert [len(w["qpos"]) for w in split_worlds(m, qpos[0])] == [1]
    assert [len(w["qpos"]) for w in split_worlds(m, qpos)] == [6]
    assert [len(w["qpos"]) for w in split_worlds(m, {"qpos": qpos, "time": np.zeros(6)})] == [1] * 6
    assert [len(w["qpos"]) for w in split_worlds(m, {"qpos": qpos, "time": np.arange(6)})] == [6]
    worlds = split_worlds(m, qpos.reshape(3, 2, 1))
    assert [w["qpos"].ravel().tolist() for w in worlds] == [[0, 2, 4], [1, 3, 5]]


@pytest.mark.parametrize("shape", [(2,), (3, 2), (2, 2, 2, 1), ()])
def test_other_shapes_are_refused(m, shape):
    with pytest.raises(ValueError, match=r"to be drawn is qpos \(1,\)"):
        split_worlds(m, np.zeros(shape))


def test_worlds_stand_side_by_side_in_one_page(m):
    one, four = (html.make_scene(m, states(5, n)) for n in (1, 4))
    assert [len(s["geoms"]) for s in (one, four)] == [3, 9]  # one plane, a box and a ball in every world
    assert four["nmoving"] == 4
    assert sorted(g["moving"] for g in four["geoms"]) == [-1] * 5 + [0, 1, 2, 3]
    position = array(four["position"]).reshape(5, 4, 3)
    np.testing.assert_allclose(position[..., 2], np.arange(20).reshape(5, 4))
    places = grid(4, html.WORLD_SPACING * float(m.stat.extent))
    np.testing.assert_allclose(position[0, :, :2], places[:, :2], atol=1e-6)
    assert four["camera"]["distance"] > one["camera"]["distance"]
    assert four["follow"] == [f"{i}: ball" for i in range(4)]


def test_cameras_sensors_and_rewards_are_in_the_page(m):
    scene = html.make_scene(m, states(5, 2))
    assert [c["name"] for c in scene["cameras"]] == ["top"]
    plots = {p["name"]: array(p["values"]).reshape(5, p["count"]) for p in scene["plots"]}
    np.testing.assert_allclose(plots["reward"], np.arange(10).reshape(5, 2))
    np.testing.assert_allclose(plots["place"][:, 0], np.arange(0, 10, 2))


def test_tiles_fill_a_square():
    images = [np.full((2, 3, 3), i, np.uint8) for i in range(3)]
    out = tiles(images)
    assert out.shape == (4, 6, 3)
    assert [out[0, 0, 0], out[0, 3, 0], out[2, 0, 0], out[2, 3, 0]] == [0, 1, 2, 255]
