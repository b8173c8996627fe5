"""The recipes of CONTRIBUTING.md: applied to a copy of the package, the new things load, run, and give their values."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

PLACE = re.compile(
    r"# (?P<file>[\w/]+\.py)(?:, in (?P<inside>.*?))?(?:, (?P<how>after|before|instead of): (?P<line>.*))?$"
)

TRY = """
import json
import sys

import numpy as np

import jaxsim


contact, drive = sys.argv[1:]
found = {"package": jaxsim.__file__}
m = jaxsim.load_model(contact)
found["types"] = [int(m.opt.integrator), int(m.opt.solver), int(m.sensor_type[0])]
start = jaxsim.make_data(m)
start = start.replace(qvel=np.array([-0.5, 0.2]))
d = jaxsim.step(m, start)
newton = jaxsim.forward(m.replace(opt=m.opt.replace(solver="Newton")), start)
found["contact"] = {"dist": float(d.contact.dist[0]), "ncon": int(d.ncon), "capacity": len(d.contact.dist)}
found["qacc"] = [d.qacc.tolist(), newton.qacc.tolist()]
found["iterations"] = [int(d.solver_niter[0]), int(newton.solver_niter[0])]
found["positions"] = [start.qpos.tolist(), d.qpos.tolist()]
found["sensor"] = d.sensordata.tolist()

m = jaxsim.load_model(drive)
found["gain"] = int(m.actuator_gaintype[0])
d = jaxsim.make_data(m).replace(qvel=np.array([2.0]), ctrl=np.array([0.5]))
d = jaxsim.step(m, d)
found["force"], found["speed"] = float(d.actuator_force[0]), float(d.qvel[0])
print(json.dumps(found))
"""

CONTACT = """<mujoco><option integrator="forward" solver="steepest" gravity="0 0 -1" timestep=".01" iterations="500"
tolerance="1e-12" ls_iterations="100"/><worldbody><geom name="e" type="ellipsoid" size=".5 .4 .2"/>
<body pos="0 0 .29"><joint name="z" type="slide" axis="0 0 1"/><joint type="slide" axis="1 0 0"/>
<geom size=".1" mass="1"/></body></worldbody><sensor><jointacc joint="z"/></sensor></mujoco>"""
# inertia 1 about the hinge; gain 3 / (1 + (v / 2)^2)
DRIVE = """<mujoco><option integrator="implicitfast" timestep=".1" gravity="0 0 0"/><worldbody><body>
<joint name="h"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody>
<actuator><general joint="h" gaintype="tired" gainprm="3 2"/></actuator></mujoco>"""


def recipes(text):
    """Blocks of each recipe by its heading: the place of each, and its lines."""
    found = {}
    for part in text.split("\n## ")[1:]:
        title, blocks = part.partition("\n")[0], re.findall(r"^```python\n(.*?)^```", part, re.MULTILINE | re.DOTALL)
        if title.startswith("Add "):
            found[title] = [(block.partition("\n")[0], block.partition("\n")[2]) for block in blocks]
    return found


def only(lines, wanted, begin=0):
    """The index of the only line with this text, or of the first one from `begin` on."""
    places = [i for i, line in enumerate(lines) if i >= begin and line.strip() == wanted]
    assert places and (begin or len(places) == 1), f"{len(places)} lines are {wanted!r}"
    return places[0]


def apply(root, place, new):
    """Put the lines of a block where its first line says."""
    where = PLACE.match(place)
    assert where, place
    path = root / where["file"]
    if not path.exists():
        assert not where["inside"] and not where["how"], f"no file {where['file']}"
        path.write_text(new, encoding="utf-8")
        return
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    begin = only(lines, where["inside"]) + 1 if where["inside"] else 0
    if where["how"]:
        at = only(lines, where["line"], begin)
        cut = {"before": (at, at), "after": (at + 1, at + 1), "instead of": (at, at + 1)}[where["how"]]
    else:
        cut = (begin, begin) if begin else (len(lines), len(lines))
    path.write_text("".join([*lines[: cut[0]], new, *lines[cut[1] :]]), encoding="utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A folder with a copy of the package, changed by all recipes."""
    root = tmp_path_factory.mktemp("recipes")
    shutil.copytree(ROOT / "jaxsim", root / "jaxsim", ignore=shutil.ignore_patterns("__pycache__"))
    for blocks in recipes((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")).values():
        for place, new in blocks:
            apply(root, place, new)
    return root


@pytest.fixture(scope="module")
def found(copy):
    """What the changed package gives."""
    argv = [sys.executable, "-c", TRY, CONTACT, DRIVE]
    env = os.environ | {"PYTHONPATH": str(copy), "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(argv, cwd=copy, env=env, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert Path(found["package"]).is_relative_to(copy)
    return found


def test_there_are_five_recipes():
    assert len(recipes((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))) == 5


def test_the_words_of_the_recipes_are_read(found):
    assert found["types"] == [4, 3, 49] and found["gain"] == 5


def test_the_sensor_of_the_recipe_reads_the_acceleration(found):
    assert abs(found["qacc"][0][0]) > 1
    assert found["sensor"] == pytest.approx(found["qacc"][0][:1], rel=1e-12)


def test_the_collider_of_the_recipe_meets_the_core_of_the_ellipsoid(found):
    assert found["contact"] == {"dist": pytest.approx(0.29 - 0.1 - 0.2, abs=1e-12), "ncon": 1, "capacity": 1}


def test_the_law_of_the_recipe_is_computed_and_differentiated(found):
    v, u, h = 2.0, 0.5, 0.1
    gain, derivative = 3 / (1 + (v / 2) ** 2), -3 * v / 2 / (1 + (v / 2) ** 2) ** 2
    assert found["force"] == pytest.approx(gain * u, rel=1e-12)
    assert found["speed"] == pytest.approx(v + h * gain * u / (1 - h * derivative * u), rel=1e-12)


def test_the_integrator_of_the_recipe_moves_along_old_velocities(found):
    before, after = found["positions"]
    assert after == pytest.approx([before[0] - 0.5 * 0.01, before[1] + 0.2 * 0.01], rel=1e-12)


def test_the_solver_of_the_recipe_finds_the_minimum_in_its_own_way(found):
    steepest, newton = found["qacc"]
    assert steepest == pytest.approx(newton, abs=1e-4)
    assert found["iterations"][0] > found["iterations"][1] > 0


def test_a_recipe_that_names_a_missing_line_fails(tmp_path):
    (tmp_path / "jaxsim").mkdir()
    (tmp_path / "jaxsim/a.py").write_text("X = {\n}\n")
    for place in ("in Y = {", "after: Y", "instead of: Y"):
        with pytest.raises(AssertionError, match="0 lines are 'Y"):
            apply(tmp_path, f"# jaxsim/a.py, {place}", "    1: 2,\n")
    apply(tmp_path, "# jaxsim/a.py, in X = {", "    1: 2,\n")
    assert (tmp_path / "jaxsim/a.py").read_text() == "X = {\n    1: 2,\n}\n"
