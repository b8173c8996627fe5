"""The script of GPU checks, on a machine without a GPU."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.paths import CI, MODELS

BALL = """<mujoco><worldbody><geom type="plane" size="1 1 1" pos="0 0 -.05"/>
<body><joint axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body></worldbody></mujoco>"""


def run(folder, *argv):
    """The finished process and the report of small pieces for one model."""
    model, out = folder / "ball.xml", folder / "out.json"
    model.write_text(BALL)
    argv = [*argv, "--small", "--models", model, "--against", "", "--out", out]
    done = subprocess.run([sys.executable, CI / "gpu.py", *map(str, argv)], capture_output=True, encoding="utf-8")
    return done, json.loads(out.read_text()) if out.exists() else None


def test_a_piece_replaces_its_old_result_and_keeps_the_others(tmp_path):
    kept = {"status": 0, "output": "", "figures": {"most": 1.0}}
    (tmp_path / "out.json").write_text(json.dumps({"pieces": {"parity:other": kept, f"bench:{tmp_path}/ball.xml": {}}}))
    done, report = run(tmp_path, "bench")
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["pieces"]["parity:other"] == kept
    figures = report["pieces"][f"bench:{tmp_path}/ball.xml"]["figures"]
    assert figures["jaxsim"]["batches"][0]["nworld"] == 2
    assert "| parity:other | passed |  | most 1 |" in done.stdout
    if not report["device"].startswith("gpu"):
        assert "no GPU found" in done.stdout


@pytest.mark.slow
def test_all_pieces_of_a_model_run_two_at_a_time(tmp_path):
    kinds = ("parity", "step", "grad", "plain", "plaingrad")
    done, report = run(tmp_path, *kinds, "--jobs", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    found = {kind: report["pieces"][f"{kind}:{tmp_path}/ball.xml"]["figures"] for kind in kinds}
    assert all(found[kind]["most"] <= found[kind]["wanted"] for kind in ("parity", "plain", "plaingrad"))
    assert all(found[kind]["bitwise"] and found[kind]["ms"] > 0 for kind in ("step", "grad"))


def test_a_piece_that_fails_is_named(tmp_path):
    out = tmp_path / "out.json"
    argv = ["bench", "--models", "missing.xml", "--small", "--against", "", "--out", out]
    done = subprocess.run([sys.executable, CI / "gpu.py", *map(str, argv)], capture_output=True, encoding="utf-8")
    assert done.returncode == 1
    assert "failed: bench:missing.xml" in done.stdout


def test_all_tests_and_models_that_the_script_names_exist():
    done = subprocess.run([sys.executable, CI / "gpu.py", "--list"], capture_output=True, encoding="utf-8")
    assert done.returncode == 0 and "tests:native/test_pool" in done.stdout, done.stderr


def test_a_test_that_moved_is_named(tmp_path):
    (tmp_path / "ci").mkdir()
    shutil.copy(CI / "gpu.py", tmp_path / "ci")
    shutil.copytree(MODELS, tmp_path / "models")
    done = subprocess.run([sys.executable, tmp_path / "ci" / "gpu.py", "--list"], capture_output=True, encoding="utf-8")
    assert done.returncode == 1 and "does not exist: tests/engine/solver/test_kernel.py, tests/" in done.stderr
    assert "models/" not in done.stderr


def test_unknown_pieces_are_refused():
    done = subprocess.run([sys.executable, CI / "gpu.py", "speed"], capture_output=True, encoding="utf-8")
    assert done.returncode == 1 and "no such piece: speed" in done.stderr
