"""Optimisation over positions by inverse dynamics, and starts with gaps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import optim
from jaxsim.optim.inverse import solve_pentadiagonal
from tests.optim.test_optimisers import COSTS, N, mass, riccati
from tests.optim.test_planning import SWING, pendulum

TWO_BALLS = """<mujoco><option timestep="0.02" gravity="0 0 0"/><worldbody>
<body><joint name="a" type="slide" axis="1 0 0"/><geom size=".05" mass="1"/></body>
<body pos=".2 0 0"><joint type="slide" axis="1 0 0" damping="2"/><geom size=".05" mass="1"/></body></worldbody>
<actuator><motor joint="a"/></actuator></mujoco>"""


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_five_diagonals_of_blocks_are_solved_as_the_dense_system(n):
    k, rng = 2, np.random.default_rng(n)
    rows = rng.normal(size=(n * k + 20, n * k))
    near = np.abs(np.arange(n * k)[:, None] // k - np.arange(n * k) // k) <= 2
    dense = rows.T @ rows * near + 50 * np.eye(n * k)
    right = rng.normal(size=(n, k))

    def diagonal(j):
        found = [dense[i * k : (i + 1) * k, (i - j) * k : (i - j + 1) * k] for i in range(j, n)]
        return jnp.asarray(np.stack([*np.zeros((min(j, n), k, k)), *found]))

    x = solve_pentadiagonal(diagonal(0), diagonal(1), diagonal(2), jnp.asarray(right))
    np.testing.assert_allclose(np.ravel(x), np.linalg.solve(dense, right.ravel()), rtol=1e-10, atol=1e-12)


def test_inverse_dynamics_solve_a_linear_problem_in_one_step():
    m, d = mass()
    found = optim.inverse_trajectory(m, d, COSTS, jnp.ones((N + 1, 1)), optim.Inverse(10, damping=0.0))
    np.testing.assert_allclose(found.history[1], riccati(), rtol=1e-8)
    assert found.converged and found.iterations == 1


@pytest.mark.slow
def test_a_batch_of_guesses_is_solved_as_each_of_them():
    m, d = mass()
    guesses = jnp.stack([jnp.ones((N + 1, 1)), jnp.linspace(1, 0, N + 1)[:, None]])
    solve = lambda x: optim.inverse_trajectory(m, d, COSTS, x, optim.Inverse(10))  # noqa: E731
    many = jax.jit(jax.vmap(solve))(guesses)
    assert many.converged.all()
    for k, guess in enumerate(guesses):
        one = solve(guess)
        np.testing.assert_allclose(many.cost[k], one.cost, rtol=1e-12)
        np.testing.assert_allclose(many.x[k], one.x, atol=1e-9)


def test_a_search_that_gives_up_says_so():
    """A term whose derivative has the wrong sign: no step lowers its cost."""
    m, d = mass()
    wrong = jax.custom_jvp(lambda x: x)
    wrong.defjvp(lambda x, t: (x[0], -t[0]))
    with pytest.warns(RuntimeWarning, match="gives up after iteration 0"):
        optim.inverse_trajectory(m, d, optim.Costs(lambda d: wrong(d.qpos) - 1), jnp.zeros((N + 1, 1)))


@pytest.mark.slow
def test_positions_within_limits_of_controls_are_an_optimum_of_ilqr_too():
    m, d = pendulum()
    guess = jnp.linspace(0, jnp.pi, 41)[:, None]
    found = optim.inverse_trajectory(m, d, SWING, guess)
    assert found.converged and np.abs(found.x).max() <= 2
    again = optim.ilqr(m, d, SWING, found.x, optim.Ilqr(20))
    np.testing.assert_allclose(again.cost, found.cost, rtol=1e-3)


@pytest.mark.slow
def test_a_push_is_found_through_contact_and_obeys_the_dynamics():
    """The second ball has no actuator: what moves it is the contact with the first, which does not touch it yet."""
    m = optim.contacts_from_distance(jaxsim.load_model(TWO_BALLS), 0.1)
    d = jaxsim.make_data(m)
    costs = optim.Costs(
        optim.Term(lambda d: d.ctrl, 1e-3),
        (optim.Term(lambda d: d.qpos[1] - 0.2, 100.0), optim.Term(lambda d: d.qvel, 0.1)),
    )
    guess = jnp.stack([jnp.linspace(0, 0.3, 51), jnp.linspace(0, 0.2, 51)], axis=1)
    found = optim.inverse_trajectory(m, d, costs, guess)
    assert found.converged and abs(found.states["qpos"][-1, 1] - 0.2) < 0.01
    played = jaxsim.rollout(m, d, found.x)[1]["qpos"]
    np.testing.assert_allclose(played, found.states["qpos"][1:], atol=1e-5)


def test_gaps_between_given_states_are_closed_at_the_optimum():
    m, d = mass()
    states = {"qpos": np.linspace(1, 0, N + 1)[:, None], "qvel": np.zeros((N + 1, 1))}
    found = optim.ilqr(m, d, COSTS, jnp.zeros((N, 1)), optim.Ilqr(5, damping=0.0), states=states)
    np.testing.assert_allclose(found.history[1], riccati(), rtol=1e-9)
    np.testing.assert_allclose(found.states["qpos"][1:, 0], jaxsim.rollout(m, d, found.x)[1]["qpos"][:, 0], atol=1e-12)
    assert found.converged and found.violation == 0


@pytest.mark.slow
@pytest.mark.parametrize("solve", [optim.ilqr, optim.ddp])
def test_a_swing_up_is_found_from_states_that_do_not_obey_the_dynamics(solve):
    m, d = pendulum()
    n = 40
    states = {"qpos": np.linspace(0, np.pi, n + 1)[:, None], "qvel": np.full((n + 1, 1), np.pi / (0.04 * n))}
    found = solve(m, d, SWING, jnp.zeros((n, 1)), states=states)
    assert found.violation < 1e-4
    np.testing.assert_allclose(found.cost, optim.trajectory_cost(m, d, SWING, found.x), rtol=1e-6)
    np.testing.assert_allclose(found.states["qpos"][-1], np.pi, atol=0.5)


@pytest.mark.parametrize(
    ("states", "message"), [({"qacc": np.zeros((N + 1, 1))}, "no field of the state"), ({"qpos": np.zeros(3)}, "shape")]
)
def test_states_that_do_not_fit_are_refused(states, message):
    m, d = mass()
    with pytest.raises(ValueError, match=message):
        optim.ilqr(m, d, COSTS, jnp.zeros((N, 1)), states=states)
