"""The core works without the packages of its extras, and says which extra brings what is missing."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jaxsim
from jaxsim.core.extras import require
from jaxsim.tools.cli import main
from jaxsim.viewer.png import png_bytes

ROOT = Path(__file__).resolve().parents[2]
OPTIONAL = ("PIL", "viser", "imageio", "optax", "matplotlib", "gymnasium", "brax", "flax", "mujoco")
SCENE = """<mujoco><asset><texture name="a" type="2d" {0}/><material name="a" texture="a"/></asset>
<worldbody><geom type="plane" size="1 1 1" material="a"/><geom type="capsule" size=".1 .1" pos="0 0 1"/>
<body pos="0 0 .5"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
CHECKER = 'builtin="checker" width="8" height="8"'


@pytest.fixture
def textured(tmp_path):
    (tmp_path / "a.png").write_bytes(png_bytes(np.zeros((4, 4, 3), np.uint8)))
    (tmp_path / "scene.xml").write_text(SCENE.format('file="a.png"'))
    return tmp_path / "scene.xml"


@pytest.fixture
def no_pillow(monkeypatch):
    for name in ("PIL", "PIL.Image"):
        monkeypatch.setitem(sys.modules, name, None)


def test_require_names_the_extra(no_pillow):
    with pytest.raises(ImportError, match=r"pictures need Pillow: pip install 'jaxsim-mjcf\[images\]'"):
        require("PIL.Image", "pictures need Pillow", "images")


def test_png_files_need_pillow_and_say_so(textured, no_pillow, capsys):
    with pytest.raises(ImportError, match=r"a\.png.*jaxsim-mjcf\[images\]"):
        jaxsim.load_model(textured)
    assert main(["info", str(textured)]) == 1
    assert "jaxsim-mjcf[images]" in capsys.readouterr().err


def test_rollout_replay_and_picture_without_any_extra(tmp_path):
    (tmp_path / "scene.xml").write_text(SCENE.format(CHECKER))
    code = f"""import sys
sys.modules.update(dict.fromkeys({OPTIONAL!r}))
from jaxsim.tools.cli import main
assert main(["rollout", "scene.xml", "--nworld", "2", "--nstep", "3", "--quiet", "--html", "replay.html"]) == 0
assert main(["render", "scene.xml", "--width", "32", "--height", "24", "--out", "frame.png"]) == 0
assert main(["render", "scene.xml", "--out", "frame.jpg"]) == 1
assert not any(name.partition(".")[0] in {OPTIONAL!r} for name, module in sys.modules.items() if module)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True,
        encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "jaxsim-mjcf[images]" in done.stderr
    assert (tmp_path / "frame.png").stat().st_size > 100 and "data:image/png" in (tmp_path / "replay.html").read_text()
