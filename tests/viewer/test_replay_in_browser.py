"""The replay page in headless Chromium: what is drawn, with and without textures, shadows and sites."""

import io
import re
import shutil
import subprocess

import mujoco
import numpy as np
import pytest
from PIL import Image

from jaxsim.io.mujoco import host_model
from jaxsim.viewer import html

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--headless", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
FLAGS += ["--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update"]
FLAGS += ["--disable-sync", "--window-size=640,480", "--virtual-time-budget=3000", "--enable-logging=stderr"]
NAMES = ("time", "geom_xpos", "geom_xmat", "xpos", "site_xpos", "site_xmat")
SCENE = """<mujoco><asset>
  <texture name="grid" type="2d" builtin="flat" rgb1="0 .6 0" rgb2="0 .6 0" width="8" height="8"/>
  <material name="grid" texture="grid"/>
  <mesh name="block" vertex="-.3 -.3 -.3 .3 -.3 -.3 -.3 .3 -.3 .3 .3 -.3 -.3 -.3 .3 .3 -.3 .3 -.3 .3 .3 .3 .3 .3"/>
</asset><worldbody><light directional="true" dir="0 0 -1"/><geom type="plane" size="3 3 .1" {plane}/>
<body pos="0 0 .5"><freejoint/><geom {ball} rgba="1 0 0 1"/>
<site pos="0 0 .6" size=".1" rgba="0 0 1 1"/></body></worldbody></mujoco>"""
PLAIN, TEXTURED = 'rgba="0 .6 0 1"', 'material="grid"'
SPHERE, MESH = 'size=".3"', 'type="mesh" mesh="block"'

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="draws in a browser: needs Chromium, which no package of Python brings"
)


def shot(tmp_path, plane=PLAIN, ball=SPHERE, options="", sites=True):
    """The page's pixels above its controls (380, 640, 3), and what WebGL and the page complained of."""
    m = mujoco.MjModel.from_xml_string(SCENE.format(plane=plane, ball=ball))
    d, frames = mujoco.MjData(m), {name: [] for name in NAMES}
    for _ in range(3):
        mujoco.mj_step(m, d)
        for name in NAMES:
            frames[name].append(np.copy(getattr(d, name)))
    frames = {name: np.array(x) for name, x in frames.items() if sites or not name.startswith("site")}
    html.save_html(host_model(m), frames, tmp_path / "page.html")
    url = f"{(tmp_path / 'page.html').as_uri()}#t=0{options}"
    picture = tmp_path / "shot.png"
    done = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", f"--screenshot={picture}", url],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    complaints = re.findall(r"GL_INVALID\w+.*|Uncaught.*|Mismatch between.*", done.stderr)
    return np.asarray(Image.open(io.BytesIO(picture.read_bytes())).convert("RGB"), float)[:380], complaints


def shares(pixels):
    """Parts of the picture that are red (the body), green (the plane) and blue (the site)."""
    others = [np.maximum(pixels[..., (k + 1) % 3], pixels[..., (k + 2) % 3]) for k in range(3)]
    return [float(np.mean(pixels[..., k] > 1.5 * others[k] + 10)) for k in range(3)]


@pytest.mark.parametrize("options", ["", "&shadows=0"], ids=["shadows", "no-shadows"])
@pytest.mark.parametrize("plane", [PLAIN, TEXTURED], ids=["plain", "textured"])
@pytest.mark.parametrize("ball", [SPHERE, MESH], ids=["sphere", "mesh"])
def test_body_plane_and_site_are_drawn(tmp_path, plane, ball, options):
    pixels, complaints = shot(tmp_path, plane, ball, options)
    red, green, blue = shares(pixels)
    assert not complaints
    assert 0.05 < red < 0.3 and green > 0.3 and 0.005 < blue < 0.05


def test_shadows_darken_the_plane_and_can_be_switched_off(tmp_path):
    pictures = []
    for name, options in (("off", "&shadows=0"), ("on", "")):
        (tmp_path / name).mkdir()
        pictures.append(shot(tmp_path / name, options=options)[0][..., 1])
    darker = pictures[0] - pictures[1] > 20
    assert darker.mean() > 0.01


def test_trajectories_without_sites_are_drawn_without(tmp_path):
    pixels, complaints = shot(tmp_path, sites=False)
    red, _, blue = shares(pixels)
    assert not complaints and red > 0.05 and blue == 0
