"""Colours beside those of MuJoCo 3.8.1's renderer: textures, transparency, lights, sky, cameras."""

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim.viewer import raycast
from jaxsim.viewer.frames import place

WIDTH, HEIGHT = 96, 72
AMBIENT = '<visual><headlight ambient="1 1 1" diffuse="0 0 0" specular="0 0 0"/></visual>'
CHECKER = """<texture name="k" type="2d" builtin="checker" width="64" height="64" rgb1="1 0 0" rgb2="0 1 0"/>
  <material name="k" texture="k" texrepeat="{}" texuniform="{}"/>"""
CUBE = """<texture name="k" type="cube" builtin="checker" width="64" height="64" rgb1="1 0 0" rgb2="0 1 0"/>
  <material name="k" texture="k"/>"""
FLAT = """<texture name="t" type="2d" builtin="flat" width="64" height="64" rgb1=".5 .5 .5" colorspace="sRGB"/>
  <material name="t" texture="t"/>"""
QUAD = """<mesh name="q" vertex="-1 0 -1 1 0 -1 1 0 1 -1 0 1 0 1 0" texcoord="0 0 1 0 1 1 0 1 .5 .5"
  face="0 1 2 0 2 3 0 4 1 1 4 2 2 4 3 3 4 0"/>"""
SKY = '<texture type="skybox" builtin="gradient" rgb1="0 0 1" rgb2="1 1 0" width="64" height="384"/>'
LENS = 'resolution="64 48" sensorsize=".036 .027" focal=".03 .03" principal=".004 .002"'


def world(inside, asset="", visual=AMBIENT, camera=""):
    camera = f'<camera name="c" {camera} pos="0 -3 1.5" xyaxes="1 0 0 0 .447 .894"/>'
    return f"<mujoco>{visual}<asset>{asset}</asset><worldbody>{camera}{inside}</worldbody></mujoco>"


def picture(xml):
    m = jaxsim.load_model(xml)
    draw = jax.jit(lambda m, d: raycast.render(m, place(m, d), 0, WIDTH, HEIGHT))
    return draw(m, jaxsim.make_data(m))


def test_of_two_boxes_at_one_place_the_later_is_seen_and_what_is_half_transparent_is_blended_twice():
    xml = world(
        """<geom type="box" size=".5 .5 .5" pos="0 -1.2 0" rgba="0 0 1 .5"/>
        <geom type="box" size="1 1 1" rgba="0 1 0 1"/><geom type="box" size="1 1 1" rgba="1 0 0 1"/>"""
    )
    image = picture(xml)
    np.testing.assert_allclose(image.rgb[50, 48], [0.25, 0, 0.75], atol=0.01)
    np.testing.assert_allclose(image.rgb[20, 48], [1, 0, 0], atol=0.01)
    assert image.segmentation[50, 48, 0] == 0 and image.segmentation[20, 48, 0] == 2
    assert image.depth[50, 48] > 2  # of the red box: what is transparent has no depth


CASES = {
    "sRGB texture": ('<geom type="box" size="1 1 1" material="t"/>', FLAT, AMBIENT, "", (36, 48), (0.21, 0.21, 0.21)),
    "coordinates of a mesh": (
        '<geom type="mesh" mesh="q" material="k"/>', CHECKER.format("1 1", "false") + QUAD, AMBIENT, "",
        (28, 40), (0, 1, 0)
    ),
    "cube": ('<geom type="box" size="1 1 1" material="k"/>', CUBE, AMBIENT, "", (44, 40), (1, 0, 0)),
    "capsule": (
        '<geom type="capsule" size=".5 .7" material="k" euler="20 30 0"/>', CHECKER.format("4 4", "false"), AMBIENT, "",
        (35, 50), (0, 1, 0),
    ),
    "many squares far away": (
        '<geom type="plane" size="0 0 1" material="k"/>', CHECKER.format("9 9", "true"), AMBIENT, "",
        (4, 48), (0.5, 0.5, 0)
    ),
    "plane from below": (
        '<geom type="plane" size="2 2 1" rgba="1 0 0 1" euler="180 0 0"/>', "", AMBIENT, "", (50, 48), (0.51, 0, 0)
    ),
    "point light": (
        '<geom type="plane" size="3 3 1"/><light type="point" pos="0 0 1" diffuse="1 1 1"/>', "", "", "", (40, 48),
        (0.36, 0.36, 0.36),
    ),
    "sky": ('<geom size=".4"/>', SKY, AMBIENT, "", (66, 8), (0.79, 0.79, 0.21)),
    "orthographic": (
        '<geom type="box" size=".5 .5 .5"/>', "", AMBIENT, 'projection="orthographic" fovy="3"', (5, 5), (0, 0, 0)
    ),
    "lens": ('<geom type="box" size=".5 .5 .5"/>', "", AMBIENT, LENS, (30, 28), (0.5, 0.5, 0.5)),
    "inside of a box": ('<geom type="box" size="4 4 4"/>', "", AMBIENT, "", (36, 20), (0, 0, 0)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_pixel_has_mujocos_colour(case):
    inside, asset, visual, camera, pixel, right = CASES[case]
    np.testing.assert_allclose(picture(world(inside, asset, visual, camera)).rgb[pixel], right, atol=0.06)


def test_a_world_that_holds_nothing_but_a_cloth_is_drawn():
    cloth = """<flexcomp name="f" type="grid" count="5 5 1" spacing=".3 .3 .3" radius=".02" dim="2" rgba="1 0 0 1">
      <edge equality="true"/></flexcomp>"""
    image = picture(world(cloth))
    np.testing.assert_allclose(image.rgb[36, 48], [1, 0, 0], atol=0.01)
    assert tuple(image.segmentation[36, 48]) == (0, jaxsim.core.types.ObjType.FLEX)


TILTED = world(
    """<light pos="1 -2 3" dir="-.3 .6 -1" diffuse=".6 .7 .8"/><geom type="plane" size="3 3 1" rgba=".4 .5 .6 1"/>
    <body name="b"><freejoint/><geom name="b" type="box" size=".5 .4 .3" rgba=".8 .4 .2 1"/></body>""", visual=""
)  # fmt: skip


@pytest.mark.slow
def test_derivatives_of_colours_and_depth_inside_of_an_outline_are_those_of_differences():
    m = jaxsim.load_model(TILTED)
    d = jaxsim.make_data(m).replace(qpos=np.array([0, 0, 0.5, 0.9, 0.2, 0.3, 0.1]))

    @jax.jit
    def look(t):
        qpos = d.qpos.at[:3].add(t * np.array([0.3, 0.5, 0.2])).at[4].add(0.4 * t)
        moved = m.replace(light_diffuse=m.light_diffuse * (1 + t), geom_rgba=m.geom_rgba * (1 - 0.1 * t))
        image = raycast.render(moved, place(moved, d.replace(qpos=qpos)), 0, 12, 9)
        return image.rgb[4, 6], image.depth[4, 6], image.segmentation[4, 6, 0]

    assert look(0.0)[2] == m.name2id("geom", "b")
    found = jax.jit(lambda t: jax.jvp(lambda t: look(t)[:2], (t,), (1.0,)))(0.0)[1]
    for slope, high, low in zip(found, look(1e-5), look(-1e-5), strict=False):
        np.testing.assert_allclose(slope, (high - low) / 2e-5, rtol=1e-6, atol=1e-8)
        assert np.abs(slope).max() > 0.01
