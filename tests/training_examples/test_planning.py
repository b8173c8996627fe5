"""The planning tasks: their models in both engines, their costs, and that nothing is a success at the start."""

import sys

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.optim.costs import rows_of
from tests.paths import EXAMPLES

sys.path.insert(0, str(EXAMPLES / "planning"))
from tasks import TASKS


@pytest.mark.parametrize("name", TASKS)
def test_a_task_has_models_costs_and_a_start_that_is_no_success(name):
    task = TASKS[name]
    m = jaxsim.load_model(task.model)
    of = mujoco.MjModel.from_xml_string if isinstance(task.model, str) else mujoco.MjModel.from_xml_path
    assert of(str(task.model)).nq == m.nq
    d = jaxsim.make_data(m, keyframe=task.keyframe) if task.keyframe else jaxsim.make_data(m)
    d = task.start(jax.random.key(0), d)
    rows = rows_of(task.costs, d)
    assert all(np.isfinite(r).all() for r in jax.tree.leaves(rows)) and len(rows.running) and len(rows.final)
    assert not task.success(np.asarray(d.qpos)[None], np.asarray(d.qvel)[None])
