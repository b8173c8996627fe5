"""Colours beside those of MuJoCo 3.8.1's renderer: textures, transparency, lights, sky, cameras."""

import jax
import jax.numpy as jnp
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
BENT = """<mesh name="b" vertex="-1 0 -1 1 0 -1 1 0 1 -1 0 1 0 1 0" normal="-.37 -.85 -.37 .37 -.85 -.37 .37 -.85 .37
  -.37 -.85 .37 0 1 0" face="0 1 2 0 2 3 0 4 1 1 4 2 2 4 3 3 4 0"/>"""
HEADLIGHT = '<visual><headlight ambient="0 0 0" diffuse=".8 .8 .8" specular="0 0 0"/></visual>'
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
    "light of a mesh is that of its vertices": (
        '<geom type="mesh" mesh="b" rgba="1 1 1 1"/>', BENT, HEADLIGHT, "", (36, 48), (0.608, 0.608, 0.608)
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


SMOOTH = """<mujoco>
  <asset><material name="gloss" rgba=".7 .6 .3 1" specular=".6" shininess=".3" emission=".1"/></asset>
  <worldbody>
    <camera name="lens" pos="0 -3 1.5" xyaxes="1 0 0 0 .447 .894" resolution="16 12" sensorsize=".036 .027"
      focal=".03 .031" principal=".002 .001"/>
    <camera name="angle" pos=".2 -3 1.4" xyaxes="1 0 0 0 .447 .894" fovy="50"/>
    <light type="directional" dir="-.3 .6 -1" diffuse=".4 .3 .5" ambient=".05 .1 .05" castshadow="false"/>
    <light type="spot" pos="-1 -2 3" dir=".3 .7 -1" diffuse=".4 .5 .3" attenuation=".5 .1 .05" cutoff="60"
      exponent="3"/>
    <geom type="plane" size="3 3 1" rgba=".4 .5 .6 1"/>
    <body><freejoint/>
      <geom name="box" type="box" size=".3 .3 .3" pos="-.7 0 0" euler="20 30 10" material="gloss"/>
      <geom name="ball" type="sphere" size=".35" pos=".7 0 0" material="gloss"/>
      <geom name="capsule" type="capsule" size=".2 .3" pos="0 0 .5" euler="0 70 0" material="gloss"/>
    </body>
  </worldbody>
</mujoco>"""
CHANGES = ("pose", "size", "camera", "lens", "light", "material")


@pytest.mark.slow
def test_derivatives_of_colours_and_depth_inside_of_outlines_are_those_of_differences():
    m = jaxsim.load_model(SMOOTH)
    d = jaxsim.make_data(m).replace(qpos=np.array([0, 0, 0.6, 0.9, 0.2, 0.3, 0.1]))
    rng = np.random.default_rng(0)
    some = lambda x: rng.uniform(0.3, 1, x.shape) * rng.choice([-1, 1], x.shape)  # noqa: E731
    names = {
        "size": ("geom_size",),
        "camera": ("cam_pos", "cam_quat"),
        "lens": ("cam_intrinsic", "cam_fovy"),
        "light": ("light_pos", "light_dir", "light_ambient", "light_diffuse", "light_specular", "light_attenuation",
                  "light_cutoff", "light_exponent"),
        "material": ("mat_rgba", "mat_emission", "mat_specular", "mat_shininess", "geom_rgba"),
    }  # fmt: skip
    opaque = {"mat_rgba": np.array([1, 1, 1, 0]), "geom_rgba": np.array([1, 1, 1, 0])}
    ways = {n: some(getattr(m, n)) * opaque.get(n, 1) for of in names.values() for n in of}
    own = np.any(np.asarray(m.geom_rgba)[:, :3] != 0.5, 1)[:, None]  # colours of the others are their material's
    ways["geom_rgba"] = ways["geom_rgba"] * own
    push = some(d.qpos)

    @jax.jit
    def look(t):
        """Colours and depth of both cameras, changed by `t`, one number for each of `CHANGES`."""
        amount = dict(zip(CHANGES, t, strict=True))
        moved = m.replace(**{
            n: getattr(m, n) * (1 + amount[kind] * ways[n]) if n != "cam_pos" else m.cam_pos + amount[kind] * ways[n]
            for kind, of in names.items() for n in of
        })  # fmt: skip
        placed = place(moved, d.replace(qpos=d.qpos + amount["pose"] * push))
        images = raycast.render_many(moved, placed, ["lens", "angle"], 16, 12)
        return [(x.rgb, x.depth) for x in images], [x.segmentation[..., 0] for x in images]

    _, shown = look(jnp.zeros(len(CHANGES)))
    found = jax.jit(jax.jacfwd(lambda t: look(t)[0]))(jnp.zeros(len(CHANGES)))
    h = 1e-5
    sides = [[look(s * h * np.eye(len(CHANGES))[k])[0] for s in (1, -1)] for k in range(len(CHANGES))]
    for camera, objects in enumerate(np.asarray(shown)):
        for name in ("box", "ball", "capsule"):
            row, column = np.median(np.argwhere(objects == m.name2id("geom", name)), axis=0).astype(int)
            assert objects[row, column] == m.name2id("geom", name)
            for part in (0, 1):  # colours and depth
                for k in range(len(CHANGES)):
                    high, low = (sides[k][s][camera][part][row, column] for s in (0, 1))
                    slope = found[camera][part][row, column, ..., k]
                    np.testing.assert_allclose(slope, (high - low) / (2 * h), rtol=1e-6, atol=1e-8)
                    if not (part and CHANGES[k] in ("light", "material")):
                        assert np.abs(slope).max() > 1e-3, (name, CHANGES[k])
