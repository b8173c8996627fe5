"""Identification: true parameters are recovered from noisy data; report and warnings on identifiability."""

import dataclasses
import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import identify as ident
from jaxsim.identify.elimination import Linear
from jaxsim.identify.fit import levenberg
from jaxsim.identify.problem import Point
from jaxsim.identify.uncertainty import at_bounds, rough, uncertainty

ARM = """<mujoco><option timestep="0.01" integrator="implicitfast"><flag contact="disable"/></option><worldbody>
<body name="upper"><joint name="shoulder" axis="0 1 0" damping="{d}" frictionloss="{f}" armature=".05"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.4" size=".04" mass="{m1}"/>
  <body name="lower" pos="0 0 -.4"><joint name="elbow" axis="0 1 0" damping=".2" frictionloss="{f}" armature=".02"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03" mass="{m2}"/></body></body></worldbody>
<actuator><motor name="shoulder" joint="shoulder" gear="10"/><motor name="elbow" joint="elbow" gear="4"/></actuator>
<sensor><jointpos name="q1" joint="shoulder"/><jointpos name="q2" joint="elbow"/>
<jointvel name="v1" joint="shoulder"/><jointvel name="v2" joint="elbow"/></sensor></mujoco>"""
TRUE = {"d": 0.5, "f": 0.3, "m1": 2.0, "m2": 1.0}
GUESS = {"d": 0.8, "f": 0.2, "m1": 1.5, "m2": 1.4}
SIGMA = {"q1": 0.002, "q2": 0.002, "v1": 0.02, "v2": 0.02}
K, N = 3, 150


def parameters(m):
    return [
        ident.mass(m, "upper"),
        ident.mass(m, "lower"),
        ident.parameter(m, "dof_damping", "shoulder", log=True),
        ident.parameter(m, "dof_frictionloss", ["shoulder", "elbow"], log=True, tie=True),
        ident.signal("bias", "q2"),
    ]


EXPECTED = [TRUE["m1"], TRUE["m2"], TRUE["d"], TRUE["f"], 0.03]


@functools.cache
def measured(seed=0):
    """Recordings of the true arm with noise and a biased sensor, and a model with other numbers."""
    true, guess = (jaxsim.load_model(ARM.format(**x)) for x in (TRUE, GUESS))
    rng = np.random.default_rng(seed)
    t = np.arange(N) * 0.01
    ctrl = np.sin(rng.uniform(2, 9, (K, 1, 2)) * t[:, None] + rng.uniform(0, 6, (K, 1, 2)))
    run = jax.jit(jax.vmap(lambda u: jaxsim.rollout(true, jaxsim.make_data(true), u, outputs=("sensordata",))[1]))
    clean = np.asarray(run(jnp.asarray(ctrl))["sensordata"]) + np.array([0, 0.03, 0, 0])
    noisy = {n: clean[..., i] + s * rng.standard_normal((K, N)) for i, (n, s) in enumerate(SIGMA.items())}
    return guess, ident.recordings(guess, ctrl, noisy, sigma=SIGMA)


@functools.cache
def fitted():
    m, data = measured()
    return ident.identify(m, data, parameters(m), iterations=12)


def test_true_parameters_are_recovered_within_twice_the_cramer_rao_bound():
    fit = fitted()
    assert (np.abs(fit.values - EXPECTED) <= 2 * fit.std).all(), fit
    assert (np.abs(fit.values[[0, 1, 3]] / np.array(EXPECTED)[[0, 1, 3]] - 1) < 0.01).all(), fit
    assert 0.9 < fit.noise < 1.1 and not fit.unidentifiable
    np.testing.assert_allclose(fit.m.body_mass[1:], fit.values[:2], rtol=1e-12)


def test_report_holds_values_and_plots(tmp_path):
    _, data = measured()
    ident.save_report(fitted(), data, tmp_path / "fit.html", "Arm")
    text = (tmp_path / "fit.html").read_text(encoding="utf-8")
    assert text.count("<svg") == 3 and "mass[upper]" in text and f"{fitted().values[0]:.6g}" in text


def test_undetermined_directions_are_named():
    information = np.array([[4.0, 2.0, 0, 0], [2.0, 1.0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    joint, without_effect = sorted(ident.unidentifiable(information, ("a", "b", "c", "d")), key=len, reverse=True)
    assert without_effect == "d has no effect on the measurements"
    assert "a" in joint and "b" in joint and "(c" not in joint and joint.startswith("the data cannot tell apart")
    assert ident.unidentifiable(np.eye(3), "abc") == ()


@pytest.mark.slow
def test_several_starts_and_adam_agree_and_priors_are_used():
    m, data = measured()
    many = ident.identify(m, data, parameters(m), iterations=12, starts=3, spread=0.3)
    np.testing.assert_allclose(many.values, fitted().values, rtol=1e-3, atol=1e-4)
    assert many.cost.shape[0] == 3
    held = [ident.mass(m, "upper", prior=(1.5, 1e-6)), *parameters(m)[1:]]
    np.testing.assert_allclose(ident.identify(m, data, held, iterations=12).values[0], 1.5, rtol=1e-3)
    slow = ident.identify(m, data, parameters(m), method="adam", iterations=300, learning_rate=0.02)
    np.testing.assert_allclose(slow.values, fitted().values, rtol=0.05, atol=0.01)


def test_a_step_that_fails_is_followed_by_shorter_ones():
    """Slow progress lowers the damping; then comes a steep residual, where undamped steps increase the cost."""
    residual = lambda x: np.concatenate([x**4, 1e3 * np.maximum(0.5 - x, 0)])  # noqa: E731

    def linear(point):
        (x,) = point.free
        rows = np.stack([np.concatenate([4 * x**3, -1e3 * (x < 0.5)]), residual(x)], 1)
        return [Linear(None, None, point.shift[0], rows)]

    costs = lambda point: np.array([0.5 * np.sum(residual(x) ** 2) for x in point.free])  # noqa: E731
    problem = SimpleNamespace(linear=linear, costs=costs, low=np.array([-np.inf]), high=np.array([np.inf]))
    first = Point(np.array([[2.0]]), np.zeros((1, 1, 1, 0)))
    point, history = levenberg(problem, first, 40, False)
    np.testing.assert_allclose(point.free, 0.5, atol=0.01)
    near = levenberg(problem, first, 40, False, enough=1.0)[1]
    assert near[0, -1] <= 1.0 < near[0, -2] and near.shape[1] < history.shape[1]


@pytest.mark.slow
def test_gain_and_delay_are_recovered_and_an_unidentifiable_inertia_warns():
    m, data = measured()
    fit = fitted()
    known = fit.m
    late = ident.recordings(
        m,
        data.ctrl,
        {
            "q1": 1.1
            * np.asarray(jax.vmap(lambda y: jnp.interp(jnp.arange(N) - 2.5, jnp.arange(N), y))(fit.simulated[..., 0]))
        },
        sigma=1e-3,
    )
    found = ident.identify(
        known, late, [ident.signal("gain", "q1"), ident.signal("delay", "q1", 0.01, high=0.1)], iterations=15
    )
    np.testing.assert_allclose(found.values, [1.1, 0.025], rtol=0.02)
    with pytest.warns(UserWarning, match="tell apart|no effect"):
        ident.identify(known, data, [ident.inertia(known, "lower")], iterations=2)


def test_what_is_not_identified_has_no_interval():
    """The inertia of the last body of a planar arm about the other axes; and a damping of which nothing depends."""
    m, data = measured()
    with pytest.warns(UserWarning, match="tell apart|no effect"):
        fit = ident.identify(m, data, [ident.mass(m, "lower"), ident.signal("gain", "q1"), *twins(m)], iterations=3)
    assert fit.identified[:2].all() and not fit.identified[2:].any()
    assert np.isinf(fit.std[2:]).all() and str(fit).count("not identified") == 2 and np.isfinite(fit.std[:2]).all()


def twins(m):
    """Two biases of one sensor: the data know their sum."""
    return [ident.signal("bias", "q2"), ident.signal("bias", "q2")]


def test_intervals_see_the_rank_of_the_jacobian_in_its_own_precision():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(60, 3))
    jac = np.concatenate([a, a[:, :1] + a[:, 1:2]], axis=1)
    noisy = (jac * (1 + 1e-7 * rng.normal(size=jac.shape))).astype(np.float32)
    for x in (jac, noisy):
        found = uncertainty(x)
        assert found.identified.tolist() == [False, False, True, False]
    full = uncertainty(a)
    assert full.identified.all()
    np.testing.assert_allclose(full.covariance, np.linalg.inv(a.T @ a), rtol=1e-9)


def test_a_failed_fit_says_so():
    m, data = measured()
    with pytest.warns(UserWarning, match="times the noise that was given"):
        fit = ident.identify(m, data, [ident.signal("bias", "q1")], iterations=3, horizons=())
    assert not fit.converged and fit.noise > 3 and "NOT converged" in str(fit)
    sigma = 1 / np.sqrt(data.measured[..., 0].size) * SIGMA["q1"]
    np.testing.assert_allclose(fit.std[0], fit.noise * sigma, rtol=1e-3)


def test_a_parameter_at_a_bound_without_a_derivative_is_named():
    lines = at_bounds(np.array([0.0, 1.0]), np.zeros(2), np.full(2, 5.0), np.array([[0.0, 0.0]]), ("a", "b"))
    assert lines == ["a stands at its bound, where its derivative is zero: start it inside the bounds"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_residuals_that_are_not_as_their_derivative_says_are_named(dtype):
    """The first coordinate is smooth, the second a staircase, the third has no derivative and an effect."""

    def residuals(points):
        x = points.T
        stairs = 100 * np.floor(x[1] / 0.004)
        return np.stack([np.sin(x[0]), x[1] + stairs, 50 * np.sign(x[2] - 1), 0 * x[0]], 1).astype(dtype)

    free = np.array([0.3, 1.002, 1.0], dtype)
    jac = np.zeros((4, 3), dtype)
    jac[0, 0], jac[1, 1] = np.cos(0.3), 1
    bounds = np.full(3, -np.inf), np.full(3, np.inf)
    lines = rough(residuals, free, *bounds, jac, np.full(3, 1e-3), np.abs(free), ("a", "b", "c"))
    assert [line[:2] for line in lines] == ["b:", "c:"] and "times as much as their derivative" in lines[0]
    inside = rough(residuals, free, *bounds, jac, np.full(3, 1e-3), np.array([1.0, 0.0, 0.0]), ("a", "b", "c"))
    assert [line[:2] for line in inside] == ["c:"]


def test_a_perfect_fit_has_converged():
    _m, data = measured()
    exact = dataclasses.replace(data, measured=fitted().simulated)
    fit = ident.identify(fitted().m, exact, [ident.signal("bias", "q2", 0.1)], iterations=4, horizons=())
    assert fit.converged and fit.noise < 1e-6 and "NOT" not in str(fit)
