"""Derivatives of Euler's method where damping begins."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim

XML = """<mujoco><option timestep="0.01"><flag invdiscrete="enable"/></option><worldbody><body pos="0 0 1">
<joint axis="0 1 0"/><geom size=".1" pos=".3 0 0"/><body pos=".3 0 0"><joint axis="0 1 .3"/>
<geom size=".1" pos=".2 0 .1"/></body></body></worldbody></mujoco>"""


FIELDS = ("dof_damping", "dof_dampingpoly")


@pytest.fixture(scope="module")
def model():
    return jaxsim.load_model(XML)


@pytest.fixture(scope="module")
def derivatives(model):
    """Velocity and inverse force at equal damping of all dofs, their derivative along it, and its transpose."""
    d = jaxsim.make_data(model).replace(qvel=np.array([2.0, -3.0]), qpos=np.array([0.3, 0.8]))

    def outcome(x):
        m = model.replace(**{field: x[field] * jnp.ones_like(getattr(model, field)) for field in FIELDS})
        return jnp.concatenate([jaxsim.step(m, d).qvel, jaxsim.inverse(m, d.replace(qacc=d.qvel)).qfrc_inverse])

    def both(x, v, w):
        value, linear = jax.linearize(outcome, x)
        return value, linear(v), jax.linear_transpose(linear, x)(w)[0]

    return jax.jit(both)


@pytest.mark.parametrize("field", FIELDS)
def test_velocity_and_inverse_force_have_the_derivative_by_damping_from_zero_on(derivatives, field):
    """Damping is implicit where any dof has some; without any it is the same step by another branch."""
    zero = dict.fromkeys(FIELDS, 0.0)
    both = lambda x: derivatives(zero | {field: x}, zero | {field: 1.0}, jnp.arange(4.0))  # noqa: E731
    value, slope, back = both(0.0)
    h = 1e-4
    one_sided = (4 * both(h)[0] - 3 * value - both(2 * h)[0]) / (2 * h)
    np.testing.assert_allclose(slope, one_sided, rtol=1e-6)
    np.testing.assert_allclose(back[field], jnp.arange(4.0) @ slope, rtol=1e-12)
    np.testing.assert_allclose(both(0.1)[1], (both(0.1 + h)[0] - both(0.1 - h)[0]) / (2 * h), rtol=1e-6)
