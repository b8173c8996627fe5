"""The fuzzer itself: its seeds are good, and its mutations are read or refused."""

import subprocess
import sys

from tests.paths import ROOT


def test_some_mutated_inputs_of_every_kind_pass(tmp_path):
    kinds = ["xml", "urdf", "stl", "obj", "msh", "png", "hfield", "skn"]
    command = [sys.executable, "ci/fuzz.py", "--plain", "--seconds", "60", "--runs", "150", "--keep", str(tmp_path)]
    done = subprocess.run([*command, "--kind", *kinds], cwd=ROOT, capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "mutated inputs without a fault" in done.stdout
