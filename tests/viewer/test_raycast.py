"""Camera images by ray casting: depth and segmentation against MuJoCo's rays, colours of simple scenes."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.core.types import ObjType
from jaxsim.native import launch as kernels
from jaxsim.native.function import choices_of
from jaxsim.native.pool_native import ENTRIES_OF_PART
from jaxsim.viewer.frames import place
from jaxsim.viewer.raycast import render, render_batch

XML = """
<mujoco>
  <statistic extent="4"/>
  <asset>
    <texture name="grid" type="2d" builtin="checker" rgb1="1 0 0" rgb2="0 1 0" width="64" height="64"/>
    <material name="grid" texture="grid" texrepeat="1 1" texuniform="true"/>
    <texture type="skybox" builtin="flat" rgb1="0 0 1" rgb2="0 0 1" width="8" height="48"/>
  </asset>
  <worldbody>
    <light type="directional" dir="0 0 -1" pos="0 0 5"/>
    <geom type="plane" size="3 3 1" material="grid"/>
    <geom type="box" size=".4 .4 .1" pos="1.2 0 1.5"/>
    <body pos="0 0 .5"><freejoint/><geom name="ball" size=".4" rgba="1 1 0 1"/></body>
    <geom size=".3" pos="0 -3 2"/>
    <camera name="wide" pos="0 -3 2" xyaxes="1 0 0 0 .55 1" resolution="20 14" fovy="50"/>
    <camera name="lens" pos="0 -3 2" xyaxes="1 0 0 0 .55 1" resolution="20 14" focal=".012 .02" sensorsize=".02 .015"
      principal=".002 .001"/>
    <camera name="parallel" pos="0 -3 2" xyaxes="1 0 0 0 .55 1" resolution="20 14" projection="orthographic" fovy="3"/>
    <camera name="down" pos="0 0 4" resolution="16 16" fovy="60"/>
  </worldbody>
</mujoco>
"""
MODEL = mujoco.MjModel.from_xml_string(XML)
DATA = mujoco.MjData(MODEL)
mujoco.mj_forward(MODEL, DATA)
EYE = 2  # the geom around the cameras, seen from inside by rays but never by a camera


@jax.jit
def images(m, d):
    d = jaxsim.camlight(m, jaxsim.com_pos(m, jaxsim.kinematics(m, d)))
    return [render(m, d, cam)[1:] for cam in ("wide", "lens", "parallel")]


def test_depth_and_segmentation_are_those_of_mujocos_rays():
    m = jaxsim.load_model(XML)
    found = images(m, jaxsim.make_data(m))
    group = np.ones(6, np.uint8)
    MODEL.geom_rgba[EYE, 3] = 0
    width, height = 20, 14
    mat = DATA.cam_xmat[0].reshape(3, 3)
    size, lens = MODEL.cam_sensorsize[1].astype(float), MODEL.cam_intrinsic[1].astype(float)
    scale = np.array([width, height]) / size
    focal = {0: (7 / np.tan(np.deg2rad(25)),) * 2, 1: lens[:2] * scale}
    middle = {0: (10, 7), 1: np.array([10, 7]) - lens[2:] * scale}
    for cam, (depth, segmentation) in enumerate(jax.device_get(found)):
        for row in range(height):
            for col in range(width):
                if cam == 2:
                    start = DATA.cam_xpos[0] + mat @ [(col + 0.5 - 10) * 3 / 14, -(row + 0.5 - 7) * 3 / 14, 0]
                    way = -mat[:, 2]
                else:
                    (fx, fy), (cx, cy) = focal[cam], middle[cam]
                    start, way = DATA.cam_xpos[0], mat @ [(col + 0.5 - cx) / fx, -(row + 0.5 - cy) / fy, -1]
                geom = np.zeros(1, np.int32)
                dist = mujoco.mj_ray(MODEL, DATA, start, way, group, 1, -1, geom, None)
                far = MODEL.vis.map.zfar * 4
                shown = (geom[0], ObjType.GEOM) if geom[0] >= 0 else (-1, -1)
                assert tuple(segmentation[row, col]) == shown, (cam, row, col)
                assert depth[row, col] == pytest.approx(dist if dist >= 0 else far, rel=1e-9)


@jax.jit
def seen(m, d):
    d = jaxsim.camlight(m, jaxsim.com_pos(m, jaxsim.kinematics(m, d)))
    return render_batch(m, jax.tree.map(lambda x: x[None], d), "down")


def test_colours_come_from_textures_lights_shadows_and_the_sky():
    m = jaxsim.load_model(XML)
    d = jaxsim.make_data(m)
    image = jax.tree.map(lambda x: x[0], seen(m, d))
    assert image.rgb.shape == (16, 16, 3) and image.segmentation.dtype == jnp.int32
    assert tuple(image.segmentation[8, 8]) == (m.name2id("geom", "ball"), ObjType.GEOM)
    ball = image.rgb[8, 8]
    assert ball[0] > 0.5 and ball[1] > 0.5 and ball[2] < 0.45 * ball[0] + 0.3
    floor = image.rgb[np.asarray(image.segmentation)[..., 0] == 0]
    assert ((floor[:, 0] > 2 * floor[:, 1]) | (floor[:, 1] > 2 * floor[:, 0])).mean() > 0.7  # others are mixed
    # the floor beside the box is darker in the shadow of the box
    assert np.ptp(np.asarray(floor.max(1))) > 0.3


def test_the_depth_is_differentiable_in_the_pose_of_a_body():
    m = jaxsim.load_model(XML)
    d = jaxsim.make_data(m)

    @jax.jit
    def depth(z):
        moved = jaxsim.camlight(m, jaxsim.com_pos(m, jaxsim.kinematics(m, d.replace(qpos=d.qpos.at[2].set(z)))))
        return render(m, moved, "down", 9, 9).depth[4, 4]

    assert depth(0.5) == pytest.approx(4 - 0.9)
    assert jax.grad(depth)(0.5) == pytest.approx(-1)


@pytest.mark.slow
def test_images_of_a_batch_and_their_derivatives_are_those_of_each_world():
    m = jaxsim.load_model(XML)
    d = jaxsim.make_data(m)
    width, height = 41, 31  # more pixels than a thread takes, and no multiple of that or of a vector's length
    assert width * height > ENTRIES_OF_PART and width * height % 2

    def image(z, radius):
        moved = jaxsim.camlight(m, jaxsim.com_pos(m, jaxsim.kinematics(m, d.replace(qpos=d.qpos.at[2].set(z)))))
        wider = m.replace(geom_size=m.geom_size.at[m.name2id("geom", "ball"), 0].set(radius))
        return render(wider, moved, "down", width, height)

    def middle(z, radius):
        return image(z, radius).depth[height // 2 - 2 :, width // 2 - 2 :].mean()

    heights, radii = jnp.array([0.5, 0.9]), jnp.array([[0.4, 0.2, 0.3]] * 2)
    worlds = jax.jit(jax.vmap(jax.vmap(image, (None, 0))))(heights, radii)
    slopes = jax.jit(jax.vmap(jax.grad(middle, (0, 1))))(heights, radii[:, 0])
    apart = []
    for i, z in enumerate(heights):
        apart.append([jax.jit(image)(z, r) for r in radii[0]])
        for j, alone in enumerate(apart[-1]):
            for batched, single in zip(worlds, alone, strict=True):
                np.testing.assert_allclose(batched[i, j], single, rtol=1e-9, atol=1e-9)
        for slope, alone in zip(slopes, jax.grad(middle, (0, 1))(z, radii[i, 0]), strict=True):
            assert slope[i] == pytest.approx(float(alone), rel=1e-6) and abs(alone) > 0.01
    assert abs(apart[0][0].depth - apart[0][1].depth).max() > 0.1


def test_a_world_without_objects_shows_the_sky():
    m = jaxsim.load_model(XML[: XML.index("<geom")] + "</worldbody></mujoco>")
    image = jax.jit(lambda d: render(m, d, None, 4, 2))(jaxsim.make_data(m))
    np.testing.assert_allclose(image.rgb, np.broadcast_to([0, 0, 1], (2, 4, 3)), atol=1e-3)
    assert (np.asarray(image.segmentation) == -1).all()


def test_colours_of_a_batch_are_two_kernels_for_cuda(monkeypatch):
    monkeypatch.setattr(kernels, "ptx_of", lambda _: "// of this test")
    m = jaxsim.load_model(XML)
    worlds = jax.tree.map(lambda x: jax.ShapeDtypeStruct((3, *jnp.shape(x)), x.dtype), jaxsim.make_data(m))
    colours = jax.jit(lambda d: render_batch(m, d, "down").rgb).trace(worlds)
    chosen = choices_of(lambda: colours.lower(lowering_platforms=("cuda",)))
    assert len(chosen) == 2
    assert not any(choice.cause for choice in chosen)


def test_colours_and_depth_come_from_one_search_or_from_two():
    m = jaxsim.load_model(XML)
    d = jax.jit(place)(m, jaxsim.make_data(m))
    look = lambda one: jax.jit(lambda d: render(m, d, "down", 8, 6, one_search=one))  # noqa: E731
    jax.tree.map(np.testing.assert_array_equal, look(True)(d), look(False)(d))
    searches = [str(look(one).trace(d).jaxpr).count("pool[") for one in (True, False)]
    assert 2 * searches[0] == searches[1] > 0


def test_a_batch_without_vmap_is_an_error():
    m = jaxsim.load_model(XML)
    d = jax.vmap(lambda _: jaxsim.make_data(m))(jnp.arange(2))
    with pytest.raises(ValueError, match="batch of worlds: use render_batch"):
        render(m, d, "down")


def test_an_unknown_camera_is_an_error():
    m = jaxsim.load_model(XML)
    with pytest.raises(KeyError, match="camera 9"):
        render(m, jaxsim.make_data(m), 9)
