"""What an import may do: follow the direction of the packages, and nothing else."""

import subprocess
import sys

import pytest

from tests.paths import CI, ROOT


def test_imports_point_one_way():
    check = subprocess.run([sys.executable, CI / "imports.py"], capture_output=True, encoding="utf-8")
    assert check.returncode == 0, check.stdout


FAULTS = {
    "a package above": (
        "jaxsim/math/a.py",
        "def f():\n    import jaxsim.engine.step.forward\n",
        "jaxsim.math must not import",
    ),
    "a sub-package above": (
        "jaxsim/engine/solver/a.py",
        "import jaxsim.engine.step.forward\n",
        "solver must not import",
    ),
    "no package": ("jaxsim/attic/a.py", "", "jaxsim.attic.a has no place in PACKAGES"),
    "text in the engine": (
        "jaxsim/engine/islands/sleep.py",
        "import jaxsim.mjcf\n",
        "jaxsim.engine.islands must not import jaxsim.mjcf",
    ),
    "an optional package": ("jaxsim/io/a.py", "import mujoco\n", "jaxsim must work without mujoco"),
    "a private name": (
        "jaxsim/engine/islands/sleep.py",
        "from jaxsim.math.b import _x\n",
        "jaxsim.math.b._x is private",
    ),
    "a private attribute": ("ci/a.py", "from jaxsim.math import b\nb._x()\n", "ci/a.py:2: jaxsim.math.b._x is private"),
    "a missing module": ("ci/a.py", "from jaxsim.math import d\n", "ci/a.py:1: there is no jaxsim.math.d"),
    "a missing name": ("ci/a.py", "from jaxsim.math.b import x\n", "ci/a.py:1: there is no jaxsim.math.b.x"),
    "a circle": (
        "jaxsim/math/b.py",
        "def f():\n    import jaxsim.math.c\n",
        "circle of imports: jaxsim.math.b, jaxsim.math.c",
    ),
    "a circle of packages": (
        "jaxsim/compiler/a.py",
        "import jaxsim.io.a\n",
        "a circle of packages: jaxsim.compiler, jaxsim.io",
    ),
    "tests in ci": ("ci/a.py", "from tests.a import x\n", "ci must not import tests.a.x"),
    "ci in tests": ("tests/a.py", "import ci.a\n", "tests must not import ci.a"),
    "tests in validation": ("validation/a.py", "import tests.a\n", "validation must not import tests.a"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_kind_of_fault_is_named(fault, tmp_path):
    path, text, words = FAULTS[fault]
    sound = {
        "jaxsim/mjcf/__init__.py": "",
        "jaxsim/engine/step/forward.py": "",
        "jaxsim/math/b.py": "_x = 1\n",
        "tests/a.py": "x = 1\n",
    }
    sound |= {"jaxsim/io/a.py": "import jaxsim.compiler.b\n", "jaxsim/compiler/b.py": ""}
    sound |= {"jaxsim/math/c.py": "import jaxsim.math.b\n", "ci/a.py": ""}
    for name, content in (sound | {path: text}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    check = subprocess.run([sys.executable, CI / "imports.py", tmp_path], capture_output=True, encoding="utf-8")
    assert check.returncode == 1 and words in check.stdout, check.stdout + check.stderr
    assert len(check.stdout.splitlines()) == 1, check.stdout


def test_importing_jaxsim_needs_no_mujoco_and_changes_no_setting():
    code = (
        "import sys, jax\n"
        "before = dict(jax.config.values)\n"
        "import jaxsim, jaxsim.tools.cli\n"
        "assert 'mujoco' not in sys.modules\n"
        "assert before == dict(jax.config.values)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", cwd=ROOT)
    assert done.returncode == 0, done.stderr
