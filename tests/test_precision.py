"""Both precisions in one process: what was traced in one does not come back in the other."""

import importlib
import pkgutil

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim import engine, math

SWINGER = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .2"><joint axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 .2 0 -.2" size=".02"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("room", [engine, math], ids=lambda room: room.__name__)
def test_tables_of_indices_have_32_bits(room):
    """JAX keeps the type of an index array by identity: a 64-bit table fails after a change of precision."""
    wide = []
    for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
        values = vars(importlib.import_module(found.name)).items()
        wide += [f"{found.name}.{k}" for k, x in values if isinstance(x, np.ndarray) and x.dtype == np.int64]
    assert wide == []


def test_a_step_can_be_traced_in_single_precision_after_double():
    m = jaxsim.load_model(SWINGER)
    jax.make_jaxpr(jaxsim.step)(m, jaxsim.make_data(m))
    with jax.enable_x64(False):
        m = jaxsim.load_model(SWINGER)
        new = jax.eval_shape(jaxsim.step, m, jaxsim.make_data(m))
    assert new.qpos.dtype == np.float32
