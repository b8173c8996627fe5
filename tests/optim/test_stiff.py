"""Toss, billiard shot and slide: gradients by the initial velocity against differences of many short steps.

Their contact forces are continuous at touch (`smooth_impedance`): where a force jumps, no step is short enough, as
one test shows. The motions do not interact, so that one JVP along all starts gives the derivative of each.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import optim

H = 0.01
SPRING = 'solref="-200000 -5" solimp=".95 .95 .001" condim="1"'
SCENE = f"""<mujoco><option timestep="{H}" gravity="0 0 -9.81" iterations="50" tolerance="1e-12">
<flag refsafe="disable"/></option>
<default><geom contype="0" conaffinity="0"/></default><worldbody>
<geom type="plane" size="9 9 1" {SPRING} contype="1" conaffinity="1" friction=".4"/>
<body pos="0 0 .6"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
  <geom size=".1" mass="1" contype="1" {SPRING}/></body>
<body pos="5 0 1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
  <geom size=".1" mass="1" contype="2" {SPRING}/></body>
<body pos="5.5 0.06 1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
  <geom size=".1" mass="1" conaffinity="2" {SPRING}/></body>
<body pos="-3 0 .0999"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
  <geom size=".1" mass="1" contype="1" condim="3" friction=".4" solref=".01 1" priority="1"/></body>
</worldbody></mujoco>"""
NSTEP = 40
START = np.array([1.0, -1.0, 2.0, 0.0, 0.0, 0.0, 1.5, 0.0])
SEED = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0])  # down for the toss, sideways for the shot, along the slide


def results(d):
    """Height of the tossed ball, sideways position of the ball that was hit, position of the block that slides."""
    return jnp.stack([d.qpos[1], d.qpos[5], d.qpos[6]])


@functools.cache
def model():
    m = jaxsim.load_model(SCENE)
    return m, optim.smooth_impedance(m), jaxsim.make_data(m)


@functools.cache
def compiled():
    """Derivative of the results by the starts, with any number of steps of any length, in one program."""
    _, _, d = model()

    def run(m, qvel, h, count):
        fine = m.replace(opt=m.opt.replace(timestep=h))
        return results(jax.lax.fori_loop(0, count, lambda _, d: jaxsim.step(fine, d), d.replace(qvel=qvel)))

    tangent = jnp.asarray(SEED)
    return jax.jit(lambda m, v, h, n: jax.jvp(lambda v: run(m, v, h, n), (v,), (tangent,)))


@functools.cache
def fixed(divide, smooth=True, offset=0.0):
    """Results and their derivatives by steps of H / divide."""
    hard, soft, _ = model()
    m = soft if smooth else hard
    return [np.asarray(x) for x in compiled()(m, jnp.asarray(START + offset * SEED), H / divide, NSTEP * divide)]


def reference(divide=400, width=1e-3):
    """Central differences over many steps' motion, wide enough that it does not matter where a step touches."""
    return (fixed(divide, offset=width)[0] - fixed(divide, offset=-width)[0]) / (2 * width)


def errors(gradient):
    return np.abs(gradient - reference()) / np.abs(reference())


def test_reference_has_converged():
    assert (errors(reference(800, 5e-4)) < 0.005).all()


def test_plain_gradient_of_stiff_contact_is_wrong():
    assert (errors(fixed(1)[1]) > 1).all()


def test_sub_steps_make_the_gradient_right():
    assert (errors(fixed(400)[1]) < 0.04).all()


def test_where_the_force_jumps_sub_steps_do_not_help():
    toss = [fixed(divide, smooth=False)[1][0] for divide in (200, 400, 800)]
    assert np.ptp(toss) > 0.3 * np.abs(toss).max()


@pytest.mark.slow
def test_adaptive_steps_make_the_gradient_right_in_reverse_mode():
    _, m, d = model()
    step = optim.adaptive(rtol=0, atol=2e-7, max_steps=1000)

    def final(qvel):
        out, _ = jaxsim.rollout(m, d.replace(qvel=qvel), nstep=NSTEP, step=step, outputs=())
        return results(out)

    value, vjp = jax.vjp(jax.jit(final), jnp.asarray(START))
    rows = np.stack([vjp(jnp.eye(3)[i])[0] for i in range(3)])
    np.testing.assert_allclose(value, fixed(800)[0], atol=1e-3)
    assert (errors(rows @ SEED) < 0.1).all()


def test_adaptive_sees_a_touch_that_begins_in_the_second_half_of_a_step():
    m = jaxsim.load_model(f"""<mujoco><option timestep="{H}" gravity="0 0 0"><flag refsafe="disable"/></option>
    <worldbody><geom type="plane" size="1 1 1" {SPRING}/>
    <body><joint type="slide" axis="0 0 1"/><geom size=".1" mass="1" {SPRING}/></body></worldbody></mujoco>""")
    m = optim.smooth_impedance(m)
    d = jaxsim.make_data(m).replace(qpos=jnp.array([0.1 + H / 2]), qvel=-jnp.ones(1))
    out = jax.jit(optim.adaptive(rtol=0, atol=1e-6, max_steps=300))(m, d)
    np.testing.assert_allclose(out.qvel, jax.jit(optim.substepped(400))(m, d).qvel, rtol=0.02)
    assert np.isnan(out.xpos).all()  # not computed


def test_adaptive_without_enough_trials_warns_and_is_not_a_number():
    m = jaxsim.load_model("""<mujoco><worldbody><body><joint type="slide" axis="0 0 1"/>
    <geom size=".1"/></body></worldbody></mujoco>""")
    d = jaxsim.make_data(m)
    step = optim.adaptive(rtol=0, atol=1e-9, max_steps=12)
    with pytest.warns(UserWarning, match="12 trials did not reach the end of the time step"):
        out = step(m, d)
    assert np.isnan(out.qpos).all() and np.isnan(out.qvel).all() and 0 < out.time < m.opt.timestep
    tangent = jax.jit(lambda d: jax.jvp(lambda v: step(m, d.replace(qvel=v)).qvel, (d.qvel,), (d.qvel + 1,)))
    assert np.isnan(tangent(d)).all() and np.isnan(tangent(out.replace(qpos=d.qpos))).all()


def test_substepped_is_that_many_short_steps():
    _, m, d = model()
    d = d.replace(qvel=jnp.asarray(START))
    out = jax.jit(optim.substepped(3))(m, d)
    fine = m.replace(opt=m.opt.replace(timestep=H / 3))
    step = jax.jit(jaxsim.step)
    np.testing.assert_allclose(out.qpos, step(fine, step(fine, step(fine, d))).qpos, atol=1e-14)
