"""Shooting, iLQR, MPPI and CEM on problems with known answers."""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

import jaxsim
from jaxsim import optim
from jaxsim.optim.box import box_newton

MASS = """<mujoco><option timestep="0.1" gravity="0 0 0"/><worldbody><body><joint name="x" type="slide" axis="1 0 0"/>
<geom size=".1" mass="2"/></body></worldbody><actuator><motor joint="x"/></actuator></mujoco>"""
N = 30
ONCE = optim.Ilqr(
    damping=0.0
)  # one step solves a linear problem; the usual number of rounds, so that tests share a program
COSTS = optim.Costs(
    (
        optim.Term(lambda d: d.qpos),
        optim.Term(lambda d: d.qvel, 0.1),
        optim.Term(lambda d: d.ctrl, 0.01),
    ),
    optim.Term(lambda d: d.qpos, 10.0),
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
    result = optim.ilqr(m, d, COSTS, jnp.zeros((N, 1)), ONCE)
    np.testing.assert_allclose(result.history[1], riccati(), rtol=1e-9)
    assert result.converged


def test_ilqr_holds_limits_and_finds_the_optimum_within_them():
    m, d = mass()
    result = optim.ilqr(m, d, COSTS, jnp.zeros((N, 1)), optim.Ilqr(tolerance=1e-9), low=-2, high=2)
    u = np.asarray(result.x)
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


@pytest.mark.slow  # compiles for more than 15 s
def test_ilqr_sees_costs_on_derived_fields():
    """Costs on a position of the world and on a sensor give the controls of the same costs on qpos and qvel."""
    xml = MASS.replace("</mujoco>", '<sensor><jointvel joint="x"/></sensor></mujoco>')
    m = jaxsim.load_model(xml)
    d = jaxsim.make_data(m).replace(qpos=jnp.asarray([1.0]))
    derived = optim.Costs(
        (
            optim.Term(lambda d: d.xpos[1, 0]),
            optim.Term(lambda d: d.sensordata, 0.1),
            optim.Term(lambda d: d.ctrl, 0.01),
        ),
        optim.Term(lambda d: d.geom_xpos[0, 0], 10.0),
    )
    options = ONCE
    one, other = (optim.ilqr(m, d, costs, jnp.zeros((N, 1)), options) for costs in (COSTS, derived))
    np.testing.assert_allclose(other.history[1], riccati(), rtol=1e-9)
    np.testing.assert_allclose(other.x, one.x, atol=1e-9)


def test_a_zero_gradient_at_the_start_is_no_convergence():
    m, d = mass()
    costs = optim.Costs(lambda d: d.ctrl, lambda d: jnp.sum(d.mocap_pos))
    with pytest.warns(RuntimeWarning, match="iLQR: the gradient of the cost is zero at the start"):
        result = optim.ilqr(m, d, costs, jnp.zeros((N, 1)))
    assert not result.converged and result.iterations == 0
    with pytest.warns(RuntimeWarning, match="shooting: the gradient"):
        optim.shoot(lambda x: jnp.sum(jnp.sign(x)), jnp.ones(2), optim.Shooting(2))


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
    found = optim.shoot(rollout_cost, jnp.zeros(N), optim.Shooting(60, 0.3), low=-2, high=2)
    assert found.cost < 0.5 * found.history[0] and found.cost == found.history.min()
    np.testing.assert_allclose(jax.jit(rollout_cost)(found.x), found.cost, rtol=1e-9)
    assert np.abs(found.x).max() <= 2


def test_shooting_survives_a_gradient_that_is_not_finite():
    with pytest.warns(RuntimeWarning, match=r"gradient was not finite, and taken as zero, for x\[0\] \(30\) \(of 30"):
        found = optim.shoot(
            lambda x: jnp.sum(jnp.sqrt(jnp.abs(x)) + (x - 1) ** 2), jnp.asarray([0.0, 2.0]), optim.Shooting(30, 0.1)
        )
    assert np.isfinite(found.x).all() and found.cost < found.history[0]


def test_sampling_finds_the_minimum_of_a_bowl():
    target = jnp.asarray([0.5, -0.3, 2.0])

    def bowl(x):
        return jnp.where(x[0] > 1.5, jnp.inf, jnp.sum((x - target) ** 2))

    best = jnp.asarray([0.5, -0.3, 1.0])  # the third is limited
    settings = {"sigma": 0.5, "samples": 200, "iterations": 40}
    for method, options in ((optim.mppi, optim.Mppi(**settings)), (optim.cem, optim.Cem(**settings, elites=10))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = method(bowl, jnp.zeros(3), jax.random.key(1), options, low=-1, high=1)
        np.testing.assert_allclose(found.x, best, atol=0.1)
        assert (np.diff(found.history) <= 0).all() and np.isfinite(found.history).all()


SAMPLERS = ((optim.mppi, optim.Mppi), (optim.cem, optim.Cem))


def test_samplers_without_limits_run_within_a_program_and_ask_for_sigma_there():
    cost = lambda x: jnp.sum((x - 1) ** 2)  # noqa: E731
    run = jax.jit(lambda key, options: optim.mppi(cost, jnp.zeros(2), key, options).cost)
    assert run(jax.random.key(0), optim.Mppi(samples=64, iterations=5, sigma=0.5)) < 0.5
    with pytest.raises(ValueError, match="give sigma"):
        jax.jit(lambda key: optim.mppi(cost, jnp.zeros(2), key).cost)(jax.random.key(0))


def boxed(x):
    """A bowl about zero, NaN outside of a box."""
    return jnp.where(jnp.abs(x).max() < 1, jnp.sum(x**2), jnp.nan)


@pytest.mark.parametrize("method, options", SAMPLERS)
def test_a_cost_of_nan_is_the_worst_and_its_sample_is_left_out(method, options):
    with pytest.warns(RuntimeWarning, match="the cost was NaN for [0-9]+ of 960 points; they count as the worst"):
        found = method(boxed, jnp.full(2, 0.9), jax.random.key(0), options(30, 32, sigma=0.5))
    assert found.cost < 0.2 * boxed(jnp.full(2, 0.9)) and np.isfinite(found.history).all()


@pytest.mark.parametrize("method, options", SAMPLERS)
def test_where_no_cost_is_finite_the_start_is_returned_and_said(method, options):
    with pytest.warns(RuntimeWarning, match="no cost was finite"):
        found = method(boxed, jnp.full(2, 5.0), jax.random.key(0), options(20, sigma=0.1))
    assert (found.x == 5).all() and found.cost == jnp.inf


@pytest.mark.parametrize("method, options", SAMPLERS)
def test_few_finite_costs_decide_alone(method, options):
    """One sample in a hundred is finite: the mean moves to those."""

    def narrow(x):
        return jnp.where(jnp.abs(x[0] - 2) < 0.2, (x[0] - 2) ** 2, jnp.inf)

    found = method(narrow, jnp.zeros(1), jax.random.key(0), options(10, 100, sigma=1.0))
    np.testing.assert_allclose(found.x, 2, atol=0.1)


def test_starts_of_integers_and_lists_are_floats():
    found = optim.shoot(lambda x: jnp.sum((x - 0.5) ** 2), np.zeros(2, int), optim.Shooting(100, 0.1))
    np.testing.assert_allclose(found.x, 0.5, atol=0.05)
    found = optim.cem(lambda x: jnp.sum((x - 0.5) ** 2), [0, 0], jax.random.key(0), optim.Cem(sigma=0.5))
    np.testing.assert_allclose(found.x, 0.5, atol=0.05)
    m, d = mass()
    result = optim.ilqr(m, d, COSTS, [[0]] * N, ONCE)
    np.testing.assert_allclose(result.history[1], riccati(), rtol=1e-9)


def test_limits_have_the_structure_of_the_start_or_one_for_all():
    start = {"a": jnp.zeros(2), "b": jnp.zeros(1)}

    def cost(x):
        return jnp.sum((x["a"] - 5) ** 2) + jnp.sum((x["b"] - 5) ** 2)

    found = optim.shoot(cost, start, optim.Shooting(60, 0.3), high={"a": jnp.asarray([1.0, 2.0]), "b": 3.0})
    np.testing.assert_allclose(np.concatenate([found.x["a"], found.x["b"]]), [1, 2, 3], atol=1e-9)
    np.testing.assert_allclose(optim.shoot(cost, start, optim.Shooting(60, 0.3), low=-1, high=1).x["b"], 1, atol=1e-9)


LIMITS = {
    "a dict": ({"a": 1.0}, "high is a dict, wanted a number or an array"),
    "a shape": (np.ones(3), r"high has shape \(3,\), which does not fit the start's \((2|1),\)"),
    "below": (-2.0, "low is above high"),
}


@pytest.mark.parametrize("high, words", LIMITS.values(), ids=LIMITS)
def test_limits_that_do_not_fit_are_refused(high, words):
    m, d = mass()
    for call in (
        lambda: optim.shoot(lambda x: jnp.sum(x**2), jnp.zeros(2), low=-1, high=high),
        lambda: optim.mppi(lambda x: jnp.sum(x**2), jnp.zeros(2), jax.random.key(0), low=-1, high=high),
        lambda: optim.ilqr(m, d, COSTS, jnp.zeros((N, 1)), low=-1, high=high),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_controls_of_wrong_shape_are_refused():
    m, d = mass()
    with pytest.raises(ValueError, match=r"controls have shape \(30,\), wanted \(steps, 1\)"):
        optim.ilqr(m, d, COSTS, jnp.zeros(N))


BAD_COSTS = {
    "gradient": (
        optim.Costs((lambda d: d.ctrl, lambda d: jnp.sqrt(d.qvel**2)), COSTS.final),
        "the gradient of the running cost is not finite in step 0, by the velocity of dof 0 \\(joint 'x'\\)",
    ),
    "Hessian": (
        optim.Costs(optim.Term(lambda d: d.ctrl, 1.0, lambda r: jnp.abs(r) ** 1.5), COSTS.final),
        "the Hessian of the cost is not finite in step 0: a root",
    ),
    "final": (optim.Costs(COSTS.running, lambda d: jnp.log(d.qpos - 1.5)), "the final term 0 is nan with the controls"),
    "running": (
        optim.Costs(lambda d: jnp.where(jnp.abs(d.time - 0.3) < 0.01, jnp.nan, d.ctrl)),
        "the running term 0 is nan in step 3",
    ),
}


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        pytest.param(*x, id=k, marks=[pytest.mark.slow] if k in ("gradient", "Hessian") else [])
        for k, x in BAD_COSTS.items()
    ],
)
def test_ilqr_names_the_cost_that_is_not_finite(costs, words):
    m, d = mass()
    with pytest.raises(FloatingPointError, match=words):
        optim.ilqr(m, d, costs, jnp.zeros((N, 1)))


# a pusher and a puck that it does not reach; the puck's joint is tilted by rounding
APART = """<mujoco><size nuserdata="1"/><option timestep="0.01" gravity="0 0 0"/><worldbody>
<body><joint type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body>
<body pos="5 0 0"><joint type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body></worldbody>
<actuator><motor joint="a"/></actuator></mujoco>""".replace("<joint type", '<joint name="a" type', 1)


def far_away(d):
    """Distance of the puck from its goal, and the share of the pusher's position that rounding lets through."""
    return d.qpos[1] + d.userdata[0] * d.qpos[0] - 1


PUCK_COSTS = optim.Costs(optim.Term(lambda d: d.ctrl, 2e-3), optim.Term(far_away, 2.0))


@pytest.mark.parametrize("leak", [1e-13, pytest.param(0.0, marks=pytest.mark.slow)])
def test_controls_without_effect_are_no_convergence(leak):
    m = jaxsim.load_model(APART)
    d = jaxsim.make_data(m).replace(userdata=jnp.array([leak]))
    with pytest.warns(RuntimeWarning, match="iLQR: the gradient of the cost is zero at the start, or no more than"):
        assert not optim.ilqr(m, d, PUCK_COSTS, jnp.zeros((N, 1))).converged

    def cost(u):
        return far_away(jaxsim.rollout(m, d, u)[0]) ** 2

    with pytest.warns(RuntimeWarning, match="shooting: the gradient of the cost is zero at the start, or no more than"):
        optim.shoot(cost, jnp.zeros((N, 1)), optim.Shooting(2))


def test_ilqr_refuses_a_straight_through_step_by_name():
    m = jaxsim.load_model(APART)
    step = optim.straight_through(functools.partial(optim.contacts_from_distance, width=5.0))
    with pytest.raises(ValueError, match="iLQR: a straight_through step"):
        optim.ilqr(m, jaxsim.make_data(m), COSTS, jnp.zeros((N, 1)), step=step)


def test_promises_that_no_step_length_keeps_are_no_convergence():
    """The derivatives of a step that is not that of its values."""
    m, d = mass()

    def odd(m, d):
        new = jaxsim.step(m, jax.lax.stop_gradient(d))
        return new.replace(qpos=new.qpos - 1e-2 * (d.ctrl - jax.lax.stop_gradient(d.ctrl)))

    still = d.replace(qpos=jnp.asarray([-1.0]))
    with pytest.warns(RuntimeWarning, match="derivatives promise a cost lower by"):
        found = optim.ilqr(m, still, COSTS, jnp.zeros((N, 1)), step=odd, low=-1, high=0)
    assert not found.converged


def count_compilations(function) -> int:
    """Number of programs that XLA compiles while the function runs."""
    names = []
    listener = lambda name, *_, **__: names.append(name)  # noqa: E731
    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        function()
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)
    return names.count("/jax/core/compile/backend_compile_duration")


def test_what_is_compiled_already_is_compiled_once():
    mass()
    cost = jax.jit(rollout_cost)
    for method in (
        lambda: optim.shoot(cost, jnp.zeros(N), optim.Shooting(2, 0.3), low=-2, high=2),
        lambda: optim.shoot(cost, jnp.zeros(N), optim.Shooting(2, 0.3), value_and_grad=both, low=-2, high=2),
        lambda: optim.cem(cost, jnp.zeros(N), jax.random.key(0), optim.Cem(2, sigma=0.1)),
        lambda: optim.mppi(cost, jnp.zeros(N), jax.random.key(0), optim.Mppi(2, sigma=0.1)),
    ):
        method()
        assert count_compilations(method) == 0


def test_plans_from_other_states_with_other_weights_and_tolerances_compile_nothing():
    m, d = mass()

    def plan(x, scale, tolerance):
        costs = jax.tree.map(lambda w: scale * w, COSTS)
        return optim.ilqr(m, d.replace(qpos=jnp.array([x])), costs, jnp.zeros((N, 1)), optim.Ilqr(tolerance=tolerance))

    first, again = plan(1.0, 1.0, 1e-6), []
    assert count_compilations(lambda: again.append(plan(2.0, 3.0, 1e-7))) == 0
    np.testing.assert_allclose(first.cost, riccati(), rtol=1e-3)
    np.testing.assert_allclose(again[0].cost, 12 * riccati(), rtol=1e-3)


def test_padded_controls_have_no_effect():
    """A plan of 20 steps within 30 rows is that of 20 rows."""
    m, d = mass()
    options = ONCE
    short = optim.ilqr(m, d, COSTS, jnp.zeros((20, 1)), options)
    padded = optim.ilqr(m, d, COSTS, jnp.zeros((N, 1)), options, length=20)
    np.testing.assert_allclose(padded.cost, short.cost, rtol=1e-9)
    np.testing.assert_allclose(padded.x[:20], short.x, atol=1e-7)


def test_callbacks_see_every_iteration():
    m, d = mass()
    seen = []
    found = optim.ilqr(m, d, COSTS, jnp.zeros((N, 1)), ONCE, callback=seen.append)
    np.testing.assert_allclose(min(s.cost for s in seen), found.cost)
    assert max(int(s.number) for s in seen) == found.iterations and seen[0].x.shape == (N, 1)


both = jax.jit(jax.value_and_grad(rollout_cost))


def test_costs_of_other_arguments_are_refused():
    with pytest.raises(TypeError, match=r"arguments \(d, u, i\), wanted a function of the data alone"):
        optim.Costs(lambda d, u, i: u)
    with pytest.raises(TypeError, match="function of the data alone"):
        optim.Costs(constraints=optim.Constraint(lambda d, u: u))


def test_options_are_objects_and_errors_name_their_class():
    m, d = mass()
    u, key = jnp.zeros((N, 1)), jax.random.key(0)
    trajectory, samples = (m, d, COSTS, u), (jnp.sum, u, key)
    calls = [
        (optim.ilqr, trajectory, {}, "options", optim.Ilqr),
        (optim.ddp, trajectory, {}, "options", optim.Ddp),
        (optim.inverse_trajectory, trajectory, {}, "options", optim.Inverse),
        (optim.shoot, samples[:2], {}, "options", optim.Shooting),
        (optim.mppi, samples, {}, "options", optim.Mppi),
        (optim.cem, samples, {}, "options", optim.Cem),
        (optim.plan, trajectory, {}, "method", optim.Ilqr),
        (optim.mpc, (m, COSTS), {"horizon": 3}, "solver", optim.Ilqr),
    ]
    for function, args, rest, place, options in calls:
        with pytest.raises(TypeError, match=rf"{place} is of class int, wanted {options.__name__}\(\.\.\.\)"):
            function(*args, 100, **rest)
        with pytest.raises(TypeError, match=rf"give {place}={options.__name__}\(iterations=\.\.\.\)"):
            function(*args, iterations=100, **rest)
    with pytest.raises(TypeError, match="wanted Ddp"):
        optim.ddp(*trajectory, optim.Ilqr())
    with pytest.raises(TypeError, match=r"method=Mppi\(sigma"):
        optim.plan(*trajectory, sigma=0.1)


def test_a_warning_names_the_line_of_the_call():
    with pytest.warns(RuntimeWarning, match="gradient of the cost is zero") as caught:
        optim.shoot(lambda u: 0 * u.sum(), jnp.zeros((3, 1)), optim.Shooting(2))
    assert caught[0].filename == __file__
