"""Shared set-up: float64, a fixture for single precision, and XLA flags that cut compile times on a CPU."""

import gc
import itertools
import os
from importlib import metadata
from pathlib import Path

import pytest

os.environ.setdefault("NPROC", "8")  # threads of XLA's pool: with as few as two, programs sometimes wait for ever
flags = ["backend_optimization_level=0"]  # most tests run a program a few times: compiling it is what costs
if metadata.version("jaxlib").startswith("0.10."):  # an XLA that does not know a flag ends the process
    flags += ["cpu_use_fusion_emitters=false", "cpu_experimental_ynn_fusion_type=", "cpu_multi_thread_eigen=false"]
os.environ.setdefault("XLA_FLAGS", " ".join(f"--xla_{flag}" for flag in flags))
os.environ.setdefault("JAXSIM_CFLAGS", "-O0")  # `tests/native/conftest.py`: there as users compile

import jax  # noqa: E402

jax.config.update("jax_enable_x64", True)
gc.set_threshold(100_000, 20, 20)  # most objects of traced programs live on: passes over them took a tenth of the time


MAPS = Path("/proc/self/maps")
MOST_MAPS = 20_000  # at the end of a module; Linux allows a process 65,530, and ends one that needs more
MOST_MAPS_WITHIN = 35_000  # a module
TESTS = itertools.count()


def forget_programs(most):
    """Forget compiled programs when they are many: each function of each has memory maps of its own."""
    if MAPS.exists() and MAPS.read_bytes().count(b"\n") > most:
        jax.clear_caches()
        gc.collect()


@pytest.fixture(autouse=True, scope="module")
def few_programs():
    """Modules begin with few programs."""
    yield
    forget_programs(MOST_MAPS)


@pytest.fixture(autouse=True)
def few_programs_within_a_module():
    """Newer versions of JAX make more maps of a program. Reading them takes milliseconds: after every fourth test."""
    yield
    if next(TESTS) % 4 == 3:
        forget_programs(MOST_MAPS_WITHIN)


@pytest.fixture
def float32():
    """Run one test in single precision."""
    with jax.enable_x64(False):
        yield
