"""What an import may do: follow the direction of the rooms, and nothing else."""

import subprocess
import sys

from tests.paths import CI, ROOT


def test_imports_point_one_way():
    check = subprocess.run([sys.executable, CI / "imports.py"], capture_output=True, text=True)
    assert check.returncode == 0, check.stdout


def test_importing_jaxsim_needs_no_mujoco_and_changes_no_setting():
    code = (
        "import sys, jax\n"
        "before = dict(jax.config.values)\n"
        "import jaxsim, jaxsim.tools.cli\n"
        "assert 'mujoco' not in sys.modules\n"
        "assert before == dict(jax.config.values)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
