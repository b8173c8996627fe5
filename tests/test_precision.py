"""Both precisions in one process: what was traced in one does not come back in the other."""

import importlib
import pkgutil

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim import engine, math
from jaxsim.viewer.render import render

SWINGER = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .2"><joint axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 .2 0 -.2" size=".02"/></body></worldbody></mujoco>"""


def _tables(value):
    """The NumPy arrays in tuples, lists and dictionaries, whose keys may be of any types."""
    if isinstance(value, np.ndarray):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [x for part in parts for x in _tables(part)]


@pytest.mark.parametrize("room", [engine, math], ids=lambda room: room.__name__)
def test_tables_of_indices_have_32_bits(room):
    """JAX keeps the type of an index array by identity: a 64-bit table fails after a change of precision."""
    wide = []
    for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
        for name, value in vars(importlib.import_module(found.name)).items():
            wide += [f"{found.name}.{name}" for x in _tables(value) if x.dtype == np.int64]
    assert wide == []


def test_a_step_can_be_traced_in_single_precision_after_double():
    m = jaxsim.load_model(SWINGER)
    jax.make_jaxpr(jaxsim.step)(m, jaxsim.make_data(m))
    with jax.enable_x64(False):
        m = jaxsim.load_model(SWINGER)
        new = jax.eval_shape(jaxsim.step, m, jaxsim.make_data(m))
    assert new.qpos.dtype == np.float32


def test_a_picture_can_be_drawn_in_double_precision_after_single():
    """JAX keeps the type of a table of reals by identity too."""
    pictures = []
    for x64 in (False, True):
        with jax.enable_x64(x64):
            m = jaxsim.load_model(SWINGER)
            pictures.append(render(m, jaxsim.forward(m, jaxsim.make_data(m)), width=16, height=12)[0])
    assert np.abs(np.subtract(*np.int32(pictures))).mean() < 1  # of 255: pixels at edges may differ
