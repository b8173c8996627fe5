"""Experiments by gradient: criteria, limits, and the covariance that a fit then has."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import identify as ident
from jaxsim.identify.excite import criterion_of

PENDULUM = """<mujoco><option timestep="0.02" integrator="implicitfast"><flag contact="disable"/></option><worldbody>
<body name="bob"><joint name="hinge" axis="0 1 0" damping=".1" armature=".02" range="-60 60"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.4" size=".04" mass="1"/></body></worldbody>
<actuator><motor name="motor" joint="hinge" ctrlrange="-3 3"/></actuator>
<sensor><jointpos name="q" joint="hinge"/></sensor></mujoco>"""
SIGMA = {"q": 0.01}


def parameters(m):
    return [ident.parameter(m, "dof_damping", "hinge", log=True), ident.parameter(m, "dof_armature", "hinge")]


@functools.cache
def excited():
    m = jaxsim.load_model(PENDULUM)
    return m, ident.excite(m, parameters(m), steps=60, sigma=SIGMA, speed=6.0, iterations=40, random=16)


@pytest.mark.slow
def test_controls_by_gradient_say_more_than_random_ones_within_the_limits():
    m, found = excited()
    assert found.ctrl.shape == (1, 60, 1) and np.abs(found.ctrl).max() <= 3
    assert np.exp(found.criterion - found.random.min()) < 0.7
    assert set(found.peaks) == {"position", "speed"} and max(found.peaks.values()) <= 1
    d = jaxsim.make_data(m)
    qpos = jaxsim.rollout(m, d, jnp.asarray(found.ctrl[0]))[1]["qpos"]
    assert np.abs(qpos).max() == pytest.approx(found.peaks["position"] * np.deg2rad(60), rel=1e-9)


@pytest.mark.slow
def test_the_covariance_is_that_of_a_fit_to_such_records():
    m, found = excited()
    nothing = ident.recordings(m, found.ctrl, {"q": np.zeros((1, 60))}, sigma=SIGMA)
    problem = ident.Problem(m, nothing, parameters(m))
    rows = problem.linear(problem.start(problem.first[None]))[0].marginal()[:, :-1]
    values = np.array([0.1, 1.0])  # derivatives of the values by the free coordinates
    np.testing.assert_allclose(found.covariance, np.linalg.inv(rows.T @ rows) * np.outer(values, values), rtol=1e-6)
    np.testing.assert_allclose(found.criterion, 0.5 * np.log(np.linalg.det(np.linalg.inv(rows.T @ rows))), rtol=1e-6)


@pytest.mark.parametrize("criterion", ["D", "A", "E"])
def test_criteria_are_logarithms_of_the_covariance(criterion):
    a = np.random.default_rng(0).standard_normal((8, 3))
    size = np.array([1.0, 0.1, 5.0])
    covariance = np.linalg.inv(a.T @ a)
    scaled = covariance / np.outer(size, size)
    expected = {"D": 0.5 * np.log(np.linalg.det(covariance)), "A": np.log(np.trace(scaled)),
                "E": np.log(np.linalg.eigvalsh(scaled)[-1])}  # fmt: skip
    np.testing.assert_allclose(criterion_of(jnp.asarray(a.T @ a), jnp.asarray(size), criterion), expected[criterion])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"criterion": "T"}, "expected one of D, A, E"),
        ({"ctrl": (1.0, -1.0)}, "lower limits are below"),
        ({"speed": -1.0}, "positive limits"),
        ({"steps": 0}, "are positive"),
        ({"sigma": {"q": 0.0}}, "not positive numbers"),
    ],
)
def test_limits_that_are_none_are_refused(options, match):
    m = jaxsim.load_model(PENDULUM)
    with pytest.raises(ValueError, match=match):
        ident.excite(m, parameters(m), **({"steps": 10, "sigma": SIGMA} | options))


@pytest.mark.slow
def test_geoms_keep_their_clearance():
    """A finger on a slide moves towards a wall 0.1 m away: the controls that say most stop before it."""
    m = jaxsim.load_model("""<mujoco><option timestep="0.02"/><worldbody>
    <geom type="plane" pos=".15 0 0" zaxis="-1 0 0" size="1 1 .1"/>
    <body><joint name="x" type="slide" axis="1 0 0" damping="1"/><geom size=".05" mass="2"/></body></worldbody>
    <actuator><motor joint="x" ctrlrange="0 2"/></actuator><sensor><jointpos name="x" joint="x"/></sensor></mujoco>""")
    damping = [ident.parameter(m, "dof_damping", "x", log=True)]
    found = ident.excite(m, damping, steps=30, sigma={"x": 0.01}, clearance=0.02, iterations=40, random=8)
    assert 0 < found.peaks["clearance"] <= 1
    qpos = jaxsim.rollout(m, jaxsim.make_data(m), jnp.asarray(found.ctrl[0]))[1]["qpos"]
    assert 0.07 < qpos[:-1].max() <= 0.08 + 1e-9  # the last is where no step begins
