"""Shared set-up: float64, and a fixture for single precision."""

import jax
import pytest

jax.config.update("jax_enable_x64", True)


@pytest.fixture
def float32():
    """Run one test in single precision."""
    with jax.enable_x64(False):
        yield
