"""Shared set-up: float64, a fixture for single precision, and XLA flags that halve compile times on a CPU."""

import os
from importlib import metadata

import pytest

os.environ.setdefault("NPROC", "8")  # threads of XLA's pool: with as few as two, programs sometimes wait for ever
if metadata.version("jaxlib").startswith("0.10."):  # an XLA that does not know a flag ends the process
    flags = ("use_fusion_emitters=false", "experimental_ynn_fusion_type=", "multi_thread_eigen=false")
    os.environ.setdefault("XLA_FLAGS", " ".join(f"--xla_cpu_{flag}" for flag in flags))

import jax

jax.config.update("jax_enable_x64", True)


@pytest.fixture
def float32():
    """Run one test in single precision."""
    with jax.enable_x64(False):
        yield
