"""The persistent cache: switched on where nothing was chosen, and left alone where something was."""

import os
import subprocess
import sys
import time
from pathlib import Path

from jaxsim.xla.cache import evict

ROOT = Path(__file__).resolve().parents[2]
CODE = """import jax
from jaxsim.xla.cache import use_compile_cache
print(use_compile_cache(), jax.config.jax_compilation_cache_dir)"""


def run(tmp_path, **variables):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_COMP", "XDG"))}
    env |= {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "JAX_PLATFORMS": "cpu", **variables}
    done = subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True, encoding="utf-8", check=True)
    return done.stdout.split()


def test_programs_are_kept_in_the_users_cache(tmp_path):
    folder = str(tmp_path / ".cache" / "jaxsim")
    assert run(tmp_path) == [folder, folder] and Path(folder).is_dir()
    other = str(tmp_path / "other")
    assert run(tmp_path, XDG_CACHE_HOME=other) == [f"{other}/jaxsim"] * 2


def test_a_choice_of_the_user_stays(tmp_path):
    assert run(tmp_path, JAX_COMPILATION_CACHE_DIR=str(tmp_path / "mine")) == ["None", str(tmp_path / "mine")]
    assert run(tmp_path, JAX_COMPILATION_CACHE_DIR="")[0] == "None" and not (tmp_path / ".cache").exists()
    (tmp_path / "file").write_text("")
    assert run(tmp_path, XDG_CACHE_HOME=str(tmp_path / "file"))[0] == "None"


def test_files_are_removed_by_age_and_by_size_the_longest_unused_first(tmp_path, monkeypatch):
    now = time.time()
    for name, days in (("new", 0), ("used", 1), ("unused", 5), ("old", 70)):
        for suffix in (".program", ".sum"):
            file = tmp_path / f"{name}{suffix}"
            file.write_bytes(bytes(100))
            os.utime(file, (now, now - 86400 * days))
    (tmp_path / "compiling").mkdir()
    evict(tmp_path)
    assert {x.stem for x in tmp_path.iterdir()} == {"new", "used", "unused", "compiling"}
    (tmp_path / "compiling").rmdir()
    monkeypatch.setenv("JAXSIM_KEPT_BYTES", "250")
    evict(tmp_path)
    assert sorted(x.name for x in tmp_path.iterdir()) == ["new.program", "new.sum", "used.program", "used.sum"]
    monkeypatch.setenv("JAXSIM_KEPT_DAYS", "0.5")
    evict(tmp_path)
    assert {x.stem for x in tmp_path.iterdir()} == {"new"}
