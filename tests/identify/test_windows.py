"""Long records over which errors grow: windows whose gaps close, chosen only where they are needed."""

import dataclasses
import functools

import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import identify as ident
from jaxsim.identify.states import position_deviations
from jaxsim.identify.windows import cut, errors_grow, has_windows, linked, noise_scale

DRIVEN = """<mujoco><option timestep="0.02" integrator="implicitfast"><flag contact="disable"/></option><worldbody>
<body name="bob"><joint name="hinge" axis="0 1 0" damping="{d}" armature="{a}"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.4" size=".04" mass="1"/></body></worldbody>
<actuator><motor name="motor" joint="hinge"/></actuator><sensor><jointpos name="q" joint="hinge"/></sensor></mujoco>"""
TRUE, GUESS, SIGMA, N = (0.1, 0.02), (0.2, 0.01), 0.005, 1000
CHAOTIC, TAME = 1.9, 0.5  # N m


@functools.cache
def driven(torque, push=0.0):
    """Record with noise of a pendulum that is driven, and by a torque that comes and goes and is not recorded."""
    true, guess = (jaxsim.load_model(DRIVEN.format(d=d, a=a)) for d, a in (TRUE, GUESS))
    ctrl = torque * np.cos(3.43 * 0.02 * np.arange(N))[:, None]
    pushed = ctrl + push * (np.arange(N) // 50 % 2)[:, None]
    y = jaxsim.rollout(true, jaxsim.make_data(true), jnp.asarray(pushed), outputs=("sensordata",))[1]["sensordata"]
    noisy = np.asarray(y)[:, 0] + SIGMA * np.random.default_rng(0).standard_normal(N)
    return guess, ident.recordings(guess, ctrl, {"q": noisy}, sigma=SIGMA)


def parameters(m):
    return [ident.parameter(m, field, "hinge", log=True) for field in ("dof_damping", "dof_armature")]


@functools.cache
def fitted(torque, **options):
    m, data = driven(torque)
    return ident.identify(m, data, parameters(m), **options)


def test_a_chaotic_record_is_fitted_in_windows_with_closed_gaps():
    with pytest.warns(UserWarning, match="times the noise"):
        whole = fitted(CHAOTIC, horizons=(60, 200, 600))
    fit = fitted(CHAOTIC)
    assert whole.noise > 100 and not whole.converged
    assert fit.converged and 0.9 < fit.noise < 1.1 and fit.qpos.shape == (1, 34, 1)
    assert (np.abs(fit.values - TRUE) < 2.5 * fit.std).all() and (fit.std < 1e-3 * np.array(TRUE)).all()
    np.testing.assert_array_equal(fit.qpos[0, 0], 0.0)  # of the recording
    assert not fit.unidentifiable


def test_a_record_over_which_errors_do_not_grow_is_fitted_as_with_its_horizons():
    fit, expected = fitted(TAME), fitted(TAME, horizons=(60, 200, 600))
    np.testing.assert_array_equal(fit.cost, expected.cost)
    np.testing.assert_array_equal(fit.values, expected.values)
    assert fit.qpos.shape == (1, 1, 1) and fit.converged
    for torque, grow in ((TAME, False), (CHAOTIC, True)):
        m, data = driven(torque)
        problem = ident.Problem(m, data, parameters(m))
        assert errors_grow(problem, problem.start(np.log([TRUE]))) == grow


def test_gaps_stay_open_where_the_model_does_not_hold():
    m, data = driven(CHAOTIC, push=0.01)
    with pytest.warns(UserWarning, match="does not hold over the whole record, or the initial state is not as given"):
        fit = ident.identify(m, data, parameters(m))
    assert fit.qpos.shape == (1, 34, 1) and fit.noise < 2 and "does not hold" in str(fit)
    np.testing.assert_allclose(fit.values, TRUE, rtol=0.1)


def test_noise_that_was_not_given_is_estimated():
    m, data = driven(CHAOTIC)
    free = dataclasses.replace(data, sigma=np.ones(1))
    assert noise_scale(data) == 1.0 and noise_scale(free) == pytest.approx(SIGMA, rel=0.2)
    fit = ident.identify(m, free, parameters(m), noise="estimated")
    np.testing.assert_allclose(fit.sigma, SIGMA, rtol=0.05)
    np.testing.assert_allclose(fit.values, fitted(CHAOTIC).values, atol=0.3 * fitted(CHAOTIC).std.min())


def test_a_posterior_of_windows_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"horizons=\(\) fits the whole record"):
        ident.posterior(fitted(CHAOTIC))


def test_starts_of_windows_have_deviations_of_their_own():
    m, data = driven(TAME)
    problem = ident.Problem(m, data, parameters(m), initial=ident.Initial(qvel=0.3))
    windows = cut(problem)
    near = SIGMA / (windows.window * 0.02)
    np.testing.assert_allclose(windows.deviations, [[0, 0.3], *[[SIGMA, near]] * 33])
    np.testing.assert_allclose(linked(windows, 0.1).ends, [0.1 * SIGMA, 0.1 * near])
    qpos, qvel = (np.asarray(x)[0, :, 0] for x in windows.started(np.ones((1, 34, 2))))
    np.testing.assert_allclose(qpos - windows.qpos[0, :, 0], [0, *[SIGMA] * 33], atol=1e-6)
    np.testing.assert_allclose(qvel - windows.qvel[0, :, 0], [0.3, *[near] * 33], atol=1e-5)


def test_deviations_of_measured_positions_are_those_of_sensors():
    m = jaxsim.load_model("""<mujoco><worldbody><body name="b"><freejoint/><geom size=".1"/><body><joint name="h"/>
    <geom size=".1"/><body name="c"><joint name="j" type="ball"/><geom size=".1"/></body></body></body></worldbody>
    <sensor><jointpos name="h" joint="h"/><ballquat name="j" joint="j"/>
    <framequat name="r" objtype="xbody" objname="b"/><framepos name="p" objtype="xbody" objname="b"/></sensor>
    </mujoco>""")
    turn = np.tile([1.0, 0, 0, 0], (5, 1))
    measured = {"h": np.zeros(5), "j": turn, "r": turn, "p": np.zeros((5, 3))}
    data = ident.recordings(m, np.zeros((5, 0)), measured, sigma={"h": 1.0, "j": 2.0, "r": 3.0, "p": 4.0})
    np.testing.assert_array_equal(position_deviations(m, data), [4, 4, 4, 6, 6, 6, 1, 4, 4, 4])
    part = ident.recordings(m, np.zeros((5, 0)), {"h": np.zeros(5)})
    assert position_deviations(m, part) is None


def test_records_without_states_or_too_short_have_no_windows():
    m, data = driven(TAME)
    short = dataclasses.replace(data, ctrl=data.ctrl[:, :200], measured=data.measured[:, :200])
    late = [*parameters(m), ident.signal("delay", "q", 0.01, high=0.1)]
    assert has_windows(ident.Problem(m, data, parameters(m)))
    assert not has_windows(ident.Problem(m, short, parameters(m)))
    assert not has_windows(ident.Problem(m, data, late))
    blind = jaxsim.load_model(DRIVEN.format(d=0.1, a=0.02).replace("jointpos", "jointvel"))
    assert not has_windows(ident.Problem(blind, ident.recordings(blind, data.ctrl, {"q": data.measured}), late[:2]))
