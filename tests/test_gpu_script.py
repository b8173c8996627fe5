"""The script of GPU checks, on a machine without a GPU."""

import json
import subprocess
import sys

import pytest

from tests.paths import CI

BALL = '<mujoco><worldbody><body><joint axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body></worldbody></mujoco>'


def test_it_measures_what_there_is_and_says_where(tmp_path):
    model, out = tmp_path / "ball.xml", tmp_path / "out.json"
    model.write_text(BALL)
    argv = ["--model", model, "--nworld", "2", "--nstep", "2", "--against", "", "--skip-tests", "--out", out]
    done = subprocess.run([sys.executable, CI / "gpu.py", *map(str, argv)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(out.read_text())
    assert report["failed"] == []
    assert report["bench"]["jaxsim"]["batches"][0]["nworld"] == 2
    assert report["bench"]["jaxsim"]["stages"]["collision"] >= 0
    if report["device"][0] != "gpu":
        assert "no GPU found" in done.stdout


def test_a_step_that_fails_is_named(tmp_path):
    argv = ["--model", "missing.xml", "--against", "", "--skip-tests", "--out", tmp_path / "out.json"]
    done = subprocess.run([sys.executable, CI / "gpu.py", *map(str, argv)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "failed: bench" in done.stdout


@pytest.mark.slow
def test_the_script_of_the_kernel_finds_the_same_answers(tmp_path):
    model, out = tmp_path / "ball.xml", tmp_path / "out.json"
    model.write_text(BALL.replace("<worldbody>", '<worldbody><geom type="plane" size="1 1 1" pos="0 0 -.05"/>'))
    argv = ["--model", model, "--nworld", "2", "--nstep", "2", "--settle", "2", "--warps", "1", "--out", out]
    script = CI / "solver_kernel.py"
    done = subprocess.run([sys.executable, script, *map(str, argv)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(out.read_text())
    assert report["qacc_difference"]["most"] < 1e-4 and report["iterations"]["plain"]["most"] > 0
    assert set(report["steps_per_s"]) == {"plain", "kernel, warps 1"}
