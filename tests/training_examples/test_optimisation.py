"""The optimisation examples run, and write their plot and their replay."""

import os
import subprocess
import sys

import pytest

from tests.paths import EXAMPLES, ROOT

TRAINERS = (
    "actor_critic",
    "common",
    "compare_gradients",
    "distil",
    "gallery",
    "learn",
    "plot_runs",
    "ppo",
    "sac",
    "shac",
    "training_loop",
    "tuned",
)
# recordings that are not part of the repository
WITH_DATA = ("identify_cube", "identify_cube_posterior", "identify_legs")
OTHERS = (*TRAINERS, *WITH_DATA, "watch", "in_mujoco", "walk_in_mujoco")
NAMES = sorted(p.stem for p in EXAMPLES.glob("*.py") if p.stem not in OTHERS)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_small_setting_runs_and_writes_plot_and_replay(name, tmp_path):
    command = [sys.executable, EXAMPLES / f"{name}.py", "--smoke", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr[-2000:]
    assert list(tmp_path.glob("*.svg")) and list(tmp_path.glob("*.html"))
    assert "reached:" in done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_an_example_says_what_to_expect_first(name):
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert "Expected:" in text[: text.index('"""', 3)]
