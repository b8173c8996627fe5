"""DDP, constraints, batches of problems, controllers, products of Hessians."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import jaxsim
from jaxsim import optim
from jaxsim.engine.structure.checks import STATE
from jaxsim.native.jaxpr import nested
from jaxsim.optim.lqr import convex_part
from jaxsim.optim.rounds import verdict
from tests.optim.test_optimisers import COSTS, MASS, mass

N = 20
PENDULUM = """<mujoco><option timestep="0.04"/><worldbody><body><joint axis="0 1 0" damping=".01"/>
<geom type="capsule" fromto="0 0 0 0 0 -.5" size=".02" mass="1"/></body></worldbody>
<actuator><motor joint="j" ctrlrange="-2 2" ctrllimited="true"/></actuator></mujoco>""".replace(
    "<joint ", '<joint name="j" '
)
SWING = optim.Costs(
    (optim.Term(lambda d: d.ctrl, 0.02), optim.Term(lambda d: d.qvel, 0.01)),
    (optim.Term(lambda d: jnp.cos(d.qpos) + 1, 20.0), optim.Term(lambda d: d.qvel, 1.0)),
)
TIGHT = 1e-9


@functools.cache
def pendulum():
    m = jaxsim.load_model(PENDULUM)
    return m, jaxsim.make_data(m)


def start(seed=0, n=N):
    return 0.5 * jax.random.normal(jax.random.key(seed), (n, 1))


@pytest.mark.slow
def test_ddp_converges_quadratically_to_where_the_gradient_is_zero():
    """The Hessian of single steps has negative eigenvalues here, that of the whole path has none at the minimum."""
    m, d = pendulum()
    costs = optim.Costs((optim.Term(SWING.running[0].residual, 0.3), SWING.running[1]), SWING.final)
    one = optim.ilqr(m, d, costs, start(), optim.Ilqr(200, TIGHT))
    other = optim.ddp(m, d, costs, start(), optim.Ddp(200, TIGHT))
    free = np.abs(other.x) < 2 - 1e-6
    gradient = jax.jit(jax.grad(functools.partial(optim.trajectory_cost, m, d, costs)))(other.x)
    assert np.abs(np.where(free, gradient, 0)).max() < 1e-4
    assert other.iterations < 0.5 * one.iterations


@pytest.mark.slow
def test_the_first_iteration_of_ddp_is_no_worse_than_that_of_ilqr():
    """Here no Hessian is positive at the start; the law of Gauss-Newton is one of those that are rolled out."""
    m, d = pendulum()
    better = []
    for seed in range(4):
        costs = optim.Costs((optim.Term(SWING.running[0].residual, 0.3), SWING.running[1]), SWING.final)
        one = optim.ilqr(m, d, costs, start(seed), optim.Ilqr(200, TIGHT)).history[1]
        other = optim.ddp(m, d, costs, start(seed), optim.Ddp(200, TIGHT)).history[1]
        better.append(float(one - other) / float(one))
    assert min(better) > -1e-9 and max(better) > 1e-3


def test_the_convex_part_of_a_hessian_keeps_what_is_positive():
    root = np.random.default_rng(0).standard_normal((3, 4, 4))
    vectors = np.linalg.qr(root)[0]
    rows = np.asarray([[3.0, 2.0, -1.0, -4.0]] * 3)
    found = convex_part(jnp.asarray((vectors * rows[:, None]) @ vectors.transpose(0, 2, 1)))
    np.testing.assert_allclose(found, (vectors * np.maximum(rows, 0)[:, None]) @ vectors.transpose(0, 2, 1), atol=1e-12)


def test_limits_of_the_actuators_are_held():
    m, d = pendulum()
    assert np.abs(optim.ilqr(m, d, SWING, 10 * start(), optim.Ilqr(200, TIGHT)).x).max() <= 2


@pytest.mark.parametrize("solve", [optim.ilqr, pytest.param(optim.ddp, marks=pytest.mark.slow)])
def test_constraints_on_states_and_controls_hold_at_the_optimum(solve):
    """A mass that must stop at zero, never faster than 0.8 m/s, with forces below 1.2 N; against SLSQP."""
    m, d = mass()
    costs = optim.Costs(
        optim.Term(lambda d: d.ctrl, 0.1),
        constraints=(lambda d: -d.qvel - 0.8, lambda d: jnp.abs(d.ctrl) - 1.2),
        final_constraints=(optim.Constraint(lambda d: jnp.concatenate([d.qpos, d.qvel]), "equal"),),
    )
    found = solve(m, d, costs, jnp.zeros((30, 1)))
    assert found.converged and found.violation < 1e-4

    def speeds(u):
        return np.concatenate([[0], np.cumsum(0.1 * u / 2)])

    def ends(u):
        v = speeds(u)
        return np.array([1 + 0.1 * v[1:].sum(), v[-1]])

    expected = scipy.optimize.minimize(
        lambda u: 0.05 * np.sum(u**2),
        np.zeros(30),
        method="SLSQP",
        bounds=[(-1.2, 1.2)] * 30,
        constraints=[
            {"type": "eq", "fun": ends},
            {"type": "ineq", "fun": lambda u: speeds(u)[:-1] + 0.8},
        ],
    )
    np.testing.assert_allclose(np.sum(0.05 * found.x**2), expected.fun, rtol=1e-3)


@pytest.mark.slow
def test_a_batch_of_starts_models_and_weights_is_what_each_gives_alone():
    m, d = pendulum()
    angles, masses, weights = jnp.linspace(-0.5, 0.5, 6), jnp.linspace(0.8, 1.2, 6), jnp.linspace(10, 30, 6)

    def solve(angle, scale, weight):
        model = m.replace(body_mass=scale * m.body_mass)
        costs = optim.Costs(SWING.running, (optim.Term(SWING.final[0].residual, weight), SWING.final[1]))
        return optim.ilqr(model, d.replace(qpos=angle[None]), costs, start(), optim.Ilqr(30))

    batch = jax.jit(jax.vmap(solve))(angles, masses, weights)
    one = solve(angles[4], masses[4], weights[4])
    np.testing.assert_allclose(batch.cost[4], one.cost, rtol=1e-6)
    np.testing.assert_allclose(batch.x[4], one.x, atol=1e-3)
    assert batch.converged.shape == (6,)


METHODS = [
    optim.Ilqr(20),
    optim.Ddp(20),
    optim.Inverse(20),
    optim.Shooting(40, 0.1),
    optim.Mppi(20, sigma=0.5),
    optim.Cem(20, sigma=0.5),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda x: type(x).__name__)
def test_every_method_lowers_the_same_costs(method):
    m, d = mass()
    found = optim.plan(m, d, COSTS, jnp.zeros((N, 1)), method, key=jax.random.key(0), low=-2, high=2)
    assert found.cost < 0.8 * found.history[0] and found.history.shape == (method.iterations + 1,)
    cost = optim.trajectory_cost(m, d, COSTS, found.x)
    np.testing.assert_allclose(found.cost, cost, rtol=1e-6)


def test_methods_without_constraints_refuse_them():
    m, d = mass()
    costs = optim.Costs(lambda d: d.ctrl, constraints=lambda d: d.qpos)
    with pytest.raises(ValueError, match="constraints are met by ilqr and ddp alone"):
        optim.plan(m, d, costs, jnp.zeros((N, 1)), optim.Cem(sigma=1.0))


@pytest.mark.parametrize("solver", [None, optim.Mppi(1, 256, sigma=0.5, knots=5)], ids=["iLQR", "MPPI"])
def test_a_controller_brings_a_mass_to_rest_within_a_scan(solver):
    m, d = mass()
    controller = optim.mpc(m, COSTS, solver, horizon=N, low=-2, high=2)

    def tick(carry, _):
        d, memory = carry
        u, memory = controller(d, memory)
        return (jaxsim.step(m, d.replace(ctrl=u)), memory), u

    (end, _), u = jax.jit(lambda c: jax.lax.scan(tick, c, None, 60))((d, controller.start(d)))
    assert abs(end.qpos[0]) < 0.05 and abs(end.qvel[0]) < 0.1 and np.abs(u).max() <= 2


def test_hvp_has_one_program_for_a_step_and_its_derivative():
    """Two would each compute the step once more."""
    m, d = pendulum()

    def cost(u):
        return jnp.sum(jaxsim.rollout(m, d, u)[0].qpos ** 2)

    def stages(jaxpr):
        inner = [x for e in jaxpr.eqns if e.primitive.name != "stage" for x in nested(e.params)]
        return sum(e.primitive.name == "stage" for e in jaxpr.eqns) + sum(map(stages, inner))

    u = start(n=3)
    assert stages(jax.make_jaxpr(lambda u, v: optim.hvp(cost, u, v))(u, u).jaxpr) == 2
    assert stages(jax.make_jaxpr(jax.grad(cost))(u).jaxpr) == 2


@pytest.mark.slow
def test_hvp_of_a_rollout_is_the_difference_of_its_gradients():
    m = jaxsim.load_model(
        MASS.replace("</body>", "</body><geom type='plane' pos='0.7 0 0' zaxis='-1 0 0' size='1 1 1'/>")
    )
    d = jaxsim.make_data(m)

    def cost(u):
        end, _ = jaxsim.rollout(m, d, u)
        return jnp.sum(jnp.sin(end.qpos) + end.qvel**2)

    u, v, e = 3.0 + start(), start(1), 1e-5
    gradient = jax.jit(jax.grad(cost))
    assert float(jaxsim.rollout(m, d, u)[0].qpos[0]) > 0.6  # presses on the wall
    difference = (gradient(u + e * v) - gradient(u - e * v)) / (2 * e)
    found = jax.jit(lambda u, v: optim.hvp(cost, u, v))(u, v)
    np.testing.assert_allclose(found, difference, atol=1e-5 * np.abs(difference).max())


@pytest.mark.parametrize("own", [False, True], ids=["step", "a step that changes forces"])
def test_states_of_a_plan_are_those_of_a_rollout(own):
    """A step of jaxsim leaves forces as they are, one of the user may not."""
    m, d = mass()
    d = d.replace(xfrc_applied=d.xfrc_applied.at[1, 0].set(0.3))

    def grows(m, d):
        return jaxsim.step(m, d.replace(xfrc_applied=d.xfrc_applied.at[1, 0].add(0.01)))

    step = grows if own else jaxsim.step
    found = optim.ilqr(m, d, COSTS, jnp.zeros((N, 1)), step=step)
    fields = ("qpos", "qvel", "time", "ctrl", "xfrc_applied")
    _, rows = jaxsim.rollout(m, d, found.x, outputs=fields, step=step)
    assert set(found.states) == set(STATE)
    for name in fields:
        np.testing.assert_allclose(found.states[name][0], getattr(d, name), atol=1e-12)
        np.testing.assert_allclose(found.states[name][1:], rows[name], atol=1e-12)


WELLS = optim.Costs(
    (optim.Term(lambda d: d.ctrl, 1e-4),),
    (optim.Term(lambda d: d.qpos**2 - 1, 10.0), optim.Term(lambda d: d.qpos - 1, 0.1), optim.Term(lambda d: d.qvel)),
)


def in_wind(m, push):
    """A model in which controls that hold the mass of `WELLS` in one well carry the real one to the other."""
    return m.replace(opt=m.opt.replace(gravity=m.opt.gravity.at[0].add(push)))


def test_plans_of_softened_models_lead_to_a_lower_minimum_and_never_to_a_higher_one():
    """A mass that starts in the higher of two wells."""
    m, d = mass()
    home, controls = d.replace(qpos=jnp.asarray([-1.0])), jnp.zeros((N, 1))
    left, right = (functools.partial(in_wind, push=x) for x in (-1.0, 1.0))
    plain = optim.ilqr(m, home, WELLS, controls)
    found = optim.ilqr(m, home, WELLS, controls, soften=(left,))
    both = optim.ilqr(m, home, WELLS, controls, soften=(left, right))
    assert plain.states["qpos"][-1, 0] < 0 < found.states["qpos"][-1, 0] and found.cost < 0.5 * plain.cost
    np.testing.assert_allclose(both.cost, found.cost, rtol=1e-4)
    assert found.converged and found.iterations > plain.iterations

    batch = jax.vmap(lambda d: optim.ilqr(m, d, WELLS, controls, soften=(left,)))(jax.tree.map(lambda x: x[None], home))
    np.testing.assert_allclose(batch.cost[0], found.cost, rtol=1e-6)
    with pytest.raises(ValueError, match="Cem: soften is for Ilqr and Ddp"):
        optim.plan(m, home, WELLS, controls, optim.Cem(sigma=0.1), soften=(left,))


def test_a_plan_that_violates_a_constraint_is_not_the_best_one():
    """The lower well is forbidden, so that the plan of the plain model stays."""
    m, d = mass()
    home, controls = d.replace(qpos=jnp.asarray([-1.0])), jnp.zeros((N, 1))
    costs = optim.Costs(WELLS.running, WELLS.final, final_constraints=(lambda d: d.qpos,))
    found = optim.ilqr(m, home, costs, controls, soften=(functools.partial(in_wind, push=-1.0),))
    assert found.states["qpos"][-1, 0] < 0 and found.violation < 1e-4


def test_a_small_gain_where_derivatives_promise_more_is_no_minimum():
    """A search at a kink: its steps shorten until they gain nothing, and it must not be called converged."""
    state = types.SimpleNamespace(cost=jnp.asarray(5.0), weight=1e3, fresh=True, promised=jnp.asarray(3e-3))
    yes, tolerance = jnp.asarray(True), 1e-6
    done, gives_up, stuck = verdict(state, yes, jnp.asarray(1e-6), state.cost, tolerance)
    assert done and stuck and not gives_up
    state.promised = jnp.asarray(1e-5)
    assert not verdict(state, yes, jnp.asarray(1e-6), state.cost, tolerance)[2]
    state.promised = jnp.asarray(1.5e-2)  # twice the gain: the cost is smooth, the tolerance is coarse
    done, _, stuck = verdict(state, yes, jnp.asarray(8e-3), state.cost, 2e-3)
    assert done and not stuck
