"""Contacts with useful gradients: contacts from a distance, smooth impedance, straight-through steps."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import optim

# A pusher on a rail and a puck in front of it, both on a frictionless line; they are 5 cm apart and never meet.
PUSH = """<mujoco><option timestep="0.01" gravity="0 0 0"/><worldbody>
<body><joint name="a" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body>
<body pos=".25 0 0"><joint name="b" type="slide" axis="1 0 0" damping=".1"/><geom size=".1" mass="1"/></body>
</worldbody><actuator><motor joint="a"/></actuator></mujoco>"""
WIDTH = 0.1
from_distance = functools.partial(optim.contacts_from_distance, width=WIDTH)


@pytest.fixture(scope="module")
def push():
    m = jaxsim.load_model(PUSH)
    return m, jaxsim.make_data(m)


def puck(u, m, d, step):
    return jaxsim.rollout(m, d, u, step=step, outputs=())[0].qpos[1]


def test_the_plain_gradient_of_a_contact_that_is_not_made_is_zero_and_that_from_a_distance_is_not(push):
    controls = jnp.full((20, 1), 0.1)
    plain = jax.jit(jax.value_and_grad(functools.partial(puck, step=jaxsim.step)))
    distant = jax.jit(jax.value_and_grad(functools.partial(puck, step=optim.straight_through(from_distance))))
    value, grad = plain(controls, *push)
    same, useful = distant(controls, *push)
    assert not np.any(grad) and value == same == 0  # the forward pass is the plain step
    assert (np.asarray(useful)[:-5] > 0).all()  # pushing harder moves the puck


def forces(m, d):
    """Force between the two as a function of their distance, and its derivative: hard, and from a distance."""

    def force(soften, gap):
        return jaxsim.forward(soften(m), d.replace(qpos=jnp.asarray([0.05, 0.0]) - gap * jnp.asarray([1.0, 0]))).qacc[1]

    gaps = jnp.asarray([-0.11, -0.01, -1e-6, 1e-6, 0.05, 0.08, 0.101])
    return gaps, [
        jax.jit(jax.vmap(jax.value_and_grad(functools.partial(force, law))))(gaps)
        for law in (lambda m: m, from_distance)
    ]


def test_contacts_from_a_distance_act_within_the_width_only_and_equal_plain_ones_in_the_depth(push):
    _, ((hard, _), (soft, derivative)) = forces(*push)
    assert (hard[3:] == 0).all() and (soft[3:6] > 0).all() and soft[6] == 0
    np.testing.assert_allclose(soft[0], hard[0], rtol=1e-9)
    np.testing.assert_allclose(soft[2], soft[3], rtol=1e-3)
    assert np.isfinite(derivative).all() and (derivative[3:6] < 0).all()


def test_smooth_impedance_is_near_zero_at_touch(push):
    m, d = push
    moving = d.replace(qvel=jnp.asarray([1.0, 0]), qpos=jnp.asarray([0.05 + 1e-6, 0]))
    hard, smooth = (
        jax.jit(lambda m: jaxsim.forward(m, moving).qacc[1])(x) for x in (m, optim.smooth_impedance(m, 0.02))
    )
    assert hard > 10 and 0 < smooth < 1e-3 * hard


def test_gradients_by_the_model_pass_through_the_softened_one(push):
    m, d = push
    near = d.replace(qpos=jnp.asarray([0.02, 0]), qvel=jnp.asarray([1.0, 0]))

    def puck_speed(mass):
        step = optim.straight_through(from_distance)
        return step(m.replace(body_mass=mass), near).qvel[1]

    grad = jax.jit(jax.grad(puck_speed))(m.body_mass)
    assert np.isfinite(grad).all() and grad[1] > 0 > grad[2]


def test_a_second_contact_callback_is_refused(push):
    m, _ = push
    with pytest.raises(ValueError, match="callback"):
        from_distance(from_distance(m))
