"""Shooting, iLQR, MPPI and CEM on problems with known answers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

import jaxsim
from jaxsim import optim
from jaxsim.optim.ilqr import box_newton

MASS = """<mujoco><option timestep="0.1" gravity="0 0 0"/><worldbody><body><joint name="x" type="slide" axis="1 0 0"/>
<geom size=".1" mass="2"/></body></worldbody><actuator><motor joint="x"/></actuator></mujoco>"""
N = 30
COSTS = optim.Costs(
    lambda d, u, i: 0.5 * (d.qpos[0] ** 2 + 0.1 * d.qvel[0] ** 2 + 0.01 * u[0] ** 2), lambda d: 5 * d.qpos[0] ** 2
)


@functools.cache
def mass():
    m = jaxsim.load_model(MASS)
    return m, jaxsim.make_data(m).replace(qpos=jnp.asarray([1.0]))


def riccati():
    """Optimal cost of the linear problem without limits, by the Riccati recursion."""
    a, b = np.array([[1, 0.1], [0, 1]]), np.array([[0.1 * 0.1 / 2], [0.1 / 2]])
    p = np.diag([10.0, 0.0])
    for _ in range(N):
        gain = np.linalg.solve(0.01 + b.T @ p @ b, b.T @ p @ a)
        p = np.diag([1, 0.1]) + a.T @ p @ (a - b @ gain)
    return 0.5 * p[0, 0]


def test_ilqr_solves_a_linear_problem_in_one_step():
    m, d = mass()
    result = optim.ilqr(m, d, jnp.zeros((N, 1)), COSTS, iterations=5, damping=0.0)
    np.testing.assert_allclose(result.history[1], riccati(), rtol=1e-9)
    assert result.converged


def test_ilqr_holds_limits_and_finds_the_optimum_within_them():
    m, d = mass()
    result = optim.ilqr(m, d, jnp.zeros((N, 1)), COSTS, low=-2, high=2, iterations=60, tolerance=1e-9)
    u = np.asarray(result.controls)
    assert np.abs(u).max() <= 2 and (np.abs(u) > 2 - 1e-9).sum() >= 3

    def cost(u):
        x, v, total = 1.0, 0.0, 0.0
        for f in u:
            total += 0.5 * (x * x + 0.1 * v * v + 0.01 * f * f)
            v += 0.1 * f / 2
            x += 0.1 * v
        return total + 5 * x * x

    expected = scipy.optimize.minimize(cost, u[:, 0], bounds=[(-2, 2)] * N, tol=1e-12).fun
    np.testing.assert_allclose(result.history[-1], expected, rtol=1e-5)


def test_ilqr_sees_costs_on_derived_fields():
    """Costs on a position of the world and on a sensor give the controls of the same costs on qpos and qvel."""
    xml = MASS.replace("</mujoco>", '<sensor><jointvel joint="x"/></sensor></mujoco>')
    m = jaxsim.load_model(xml)
    d = jaxsim.make_data(m).replace(qpos=jnp.asarray([1.0]))
    derived = optim.Costs(
        lambda d, u, i: 0.5 * (d.xpos[1, 0] ** 2 + 0.1 * d.sensordata[0] ** 2 + 0.01 * u[0] ** 2),
        lambda d: 5 * d.geom_xpos[0, 0] ** 2,
    )
    one, other = (optim.ilqr(m, d, jnp.zeros((N, 1)), costs, iterations=5, damping=0.0) for costs in (COSTS, derived))
    np.testing.assert_allclose(other.history[1], riccati(), rtol=1e-9)
    np.testing.assert_allclose(other.controls, one.controls, atol=1e-9)


def test_a_zero_gradient_at_the_start_is_no_convergence():
    m, d = mass()
    costs = optim.Costs(lambda d, u, i: u[0] ** 2, lambda d: jnp.sum(d.mocap_pos))
    with pytest.warns(RuntimeWarning, match="iLQR: the gradient of the cost is exactly zero at the start"):
        result = optim.ilqr(m, d, jnp.zeros((N, 1)), costs)
    assert not result.converged and len(result.history) == 1
    with pytest.warns(RuntimeWarning, match="shooting: the gradient"):
        optim.shoot(lambda x: jnp.sum(jnp.sign(x)), jnp.ones(2), iterations=2)


def test_box_newton_finds_the_constrained_minimum():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((4, 4))
    h, g = root @ root.T + 0.1 * np.eye(4), 3 * rng.standard_normal(4)
    x, free = jax.jit(box_newton)(jnp.asarray(h), jnp.asarray(g), -0.3 * jnp.ones(4), 0.5 * jnp.ones(4))
    factor = np.linalg.cholesky(h)
    expected = scipy.optimize.lsq_linear(factor.T, -np.linalg.solve(factor, g), bounds=(-0.3, 0.5)).x
    np.testing.assert_allclose(x, expected, atol=1e-5)
    assert np.array_equal(free, (expected > -0.3 + 1e-6) & (expected < 0.5 - 1e-6))


def rollout_cost(u):
    m, d = mass()
    _, out = jaxsim.rollout(m, d, u[:, None])
    return jnp.sum(out["qpos"] ** 2) + 0.01 * jnp.sum(u**2)


def test_shooting_lowers_the_cost_and_returns_the_best():
    mass()
    found = optim.shoot(rollout_cost, jnp.zeros(N), 60, 0.3, low=-2, high=2)
    assert found.cost < 0.5 * found.history[0] and found.cost == found.history.min()
    np.testing.assert_allclose(jax.jit(rollout_cost)(found.x), found.cost, rtol=1e-9)
    assert np.abs(found.x).max() <= 2


def test_shooting_survives_a_gradient_that_is_not_finite():
    found = optim.shoot(lambda x: jnp.sum(jnp.sqrt(jnp.abs(x)) + (x - 1) ** 2), jnp.asarray([0.0, 2.0]), 30, 0.1)
    assert np.isfinite(found.x).all() and found.cost < found.history[0]


def test_sampling_finds_the_minimum_of_a_bowl():
    target = jnp.asarray([0.5, -0.3, 2.0])

    def bowl(x):
        return jnp.where(x[0] > 1.5, jnp.nan, jnp.sum((x - target) ** 2))

    best = jnp.asarray([0.5, -0.3, 1.0])  # the third is limited
    for method in (optim.mppi, functools.partial(optim.cem, elites=10)):
        found = method(bowl, jnp.zeros(3), jax.random.key(1), sigma=0.5, n=200, iterations=40, low=-1, high=1)
        np.testing.assert_allclose(found.x, best, atol=0.1)
        assert (np.diff(found.history) <= 0).all() and np.isfinite(found.history).all()
