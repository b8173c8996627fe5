"""One step of models with flexes against MuJoCo's, from states along its trajectory."""

import jax
import mujoco
import pytest

import jaxsim
from jaxsim.core.types import IntegratorType
from jaxsim.engine.flex import implicit
from tests.engine.flex.cases import CASES
from validation.stages import assert_fields, exact, load, states, to_data

STEPS = [
    ("rope on a moving body", IntegratorType.EULER),
    ("both", IntegratorType.IMPLICIT),
    ("cloth on a moving body", IntegratorType.IMPLICITFAST),
    ("solid", IntegratorType.RK4),
    ("radial ball", IntegratorType.IMPLICITFAST),
    ("trilinear in a turned body", IntegratorType.IMPLICIT),
    ("trilinear on a moving body", IntegratorType.IMPLICITFAST),
    ("quadratic cells", IntegratorType.IMPLICITFAST),
    ("shell", IntegratorType.EULER),
    ("quadratic shell", IntegratorType.IMPLICITFAST),
]
FIELDS = ("flexvert_xpos", "flexedge_velocity", "qfrc_spring", "qfrc_damper", "qacc", "energy", "qvel", "qpos")


@pytest.mark.parametrize(("case", "integrator"), STEPS)
def test_a_step_is_that_of_mujoco(case, integrator):
    model = exact(load(CASES[case], integrator=int(integrator)))
    m = jaxsim.from_mujoco(model)
    step = jax.jit(jaxsim.step)
    for data in states(model, 3, 3, noise=0.3):
        d = step(m, to_data(m, data))
        mujoco.mj_step(model, data)
        assert_fields(FIELDS, model, data, d, 1e-6)


@pytest.mark.parametrize("case", ["trilinear on a moving body", "quadratic cells"])
def test_many_nodes_are_solved_for_by_a_search(case, monkeypatch):
    monkeypatch.setattr(implicit, "DENSE_DOFS", 0)
    model = exact(load(CASES[case], integrator=int(IntegratorType.IMPLICITFAST)))
    m = jaxsim.from_mujoco(model)
    step = jax.jit(lambda m, d: jaxsim.step(m, d))
    for data in states(model, 2, 3, noise=0.3):
        d = step(m, to_data(m, data))
        mujoco.mj_step(model, data)
        assert_fields(FIELDS, model, data, d, 1e-6)
