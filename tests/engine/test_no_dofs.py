"""Models in which nothing has a degree of freedom step as well."""

import jax
import pytest

import jaxsim

MODELS = {
    "nothing": "<worldbody/>",
    "a fixed geom": '<worldbody><geom size=".1"/></worldbody>',
    "a mocap body": '<worldbody><body mocap="true"><geom size=".1"/></body></worldbody>',
}


@pytest.mark.parametrize("body", MODELS.values(), ids=list(MODELS))
def test_model_without_dofs_steps(body):
    m = jaxsim.load_model(f"<mujoco>{body}</mujoco>")
    d = jax.jit(jaxsim.step)(m, jaxsim.make_data(m))
    assert float(d.time) == pytest.approx(0.002)
