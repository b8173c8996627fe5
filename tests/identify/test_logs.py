"""Logs of machines: unknown starts, windows, outliers, controllers in the loop, held-out records, saved models."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim import identify as ident
from jaxsim.core.errors import UnsupportedError
from jaxsim.identify.problem import Point
from jaxsim.identify.save import written
from jaxsim.identify.simulator import programs
from jaxsim.identify.whiteness import coloured

PENDULUM = """<mujoco><option timestep="0.01" integrator="implicitfast"><flag contact="disable"/></option><worldbody>
<body name="bob"><joint name="hinge" axis="0 1 0" damping="{d}" armature=".02"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.4" size=".04" mass="1"/></body></worldbody>
<actuator><motor name="motor" joint="hinge"/></actuator><sensor><jointpos name="q" joint="hinge"/></sensor></mujoco>"""
K, N, SIGMA = 4, 120, 0.002
PUSH = ident.Initial(qvel=1.0)


@functools.cache
def swings(outliers=0):
    """Recordings of a pendulum that was pushed: its first velocity is not recorded. Damping is 0.3, the model's 0.1."""
    true, guess = (jaxsim.load_model(PENDULUM.format(d=d)) for d in (0.3, 0.1))
    rng = np.random.default_rng(0)
    ctrl = 2 * np.sin(rng.uniform(2, 9, (K, 1, 1)) * 0.01 * np.arange(N)[:, None])
    start, push = rng.uniform(-0.5, 0.5, (K, 1)), rng.uniform(-2, 2, (K, 1))

    def run(u, q, v):
        d = jaxsim.make_data(true).replace(qpos=q, qvel=v)
        return jaxsim.rollout(true, d, u, outputs=("sensordata",))[1]["sensordata"]

    y = np.asarray(jax.jit(jax.vmap(run))(*(jnp.asarray(x) for x in (ctrl, start, push))))[..., 0]
    y = y + SIGMA * rng.standard_normal(y.shape)
    y[rng.random(y.shape) < 0.1] = np.nan
    y[:, 7 : 7 + outliers] += 0.3
    return guess, ident.recordings(guess, ctrl, {"q": y}, qpos=start, sigma=SIGMA)


def damping(m):
    return [ident.parameter(m, "dof_damping", "hinge", log=True)]


def shorter(data, rows):
    return dataclasses.replace(data, ctrl=data.ctrl[:, :rows], measured=data.measured[:, :rows])


@functools.cache
def fitted(**options):
    m, data = swings()
    return ident.identify(m, data, damping(m), iterations=10, horizons=(), initial=PUSH, held_out=data)


def test_first_velocities_are_unknowns_of_each_trajectory():
    fit = fitted()
    assert abs(fit.values[0] - 0.3) < 2.5 * fit.std[0] and fit.std[0] < 0.01 and 0.85 < fit.noise < 1.15
    assert (np.abs(fit.qvel) > 0.05).all() and fit.qvel.shape == (K, 1, 1)


def test_fits_of_other_lengths_values_and_horizons_share_their_programs():
    m, data = swings()
    fitted()
    sizes = [f._cache_size() for f in programs()]
    other = m.replace(body_mass=1.01 * m.body_mass)
    fit = ident.identify(other, shorter(data, 100), damping(other), iterations=10, horizons=(30, 60), initial=PUSH)
    assert [f._cache_size() for f in programs()] == sizes
    assert fit.simulated.shape == (K, 100, 1) and 0.1 < fit.values[0] < 0.5


def test_predictions_of_held_out_records_are_compared_with_the_nominal_model(tmp_path):
    fit = fitted()
    v = fit.validation
    np.testing.assert_allclose(v.horizons[:2], [0.1, 0.5])
    assert v.fitted.shape == v.nominal.shape == (len(v.horizons), 1)
    assert v.fitted[1, 0] < v.nominal[1, 0] and "held out" in str(fit)
    ident.save_report(fit, swings()[1], tmp_path / "fit.html")
    assert "Held-out records" in (tmp_path / "fit.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_windows_with_continuity_say_as_much_as_the_whole_trajectory():
    m, data = swings()
    close, start = ident.Initial(qpos=1e-4, qvel=1e-3), ident.Initial(qpos=1e-5, qvel=1.0)
    fit = ident.identify(m, data, damping(m), iterations=15, window=30, initial=start, continuity=close)
    whole = fitted()
    assert fit.qpos.shape == (K, 4, 1)
    np.testing.assert_allclose(fit.values, whole.values, atol=whole.std[0])
    np.testing.assert_allclose(fit.std, whole.std, rtol=0.3)


def test_a_robust_loss_withstands_outliers():
    m, data = swings(outliers=6)
    robust, plain = (
        ident.identify(m, data, damping(m), iterations=12, horizons=(), initial=PUSH, loss=loss)
        for loss in (ident.Loss("cauchy", 2.0), "squares")
    )
    assert abs(robust.values[0] - 0.3) < 5e-4 < abs(plain.values[0] - 0.3)


@pytest.mark.parametrize("name", ["huber", "cauchy"])
def test_a_loss_is_a_square_near_zero_and_its_derivative_agrees_with_differences(name):
    loss = ident.Loss(name, 2.0)
    r = np.array([-30.0, -2.5, -1e-3, 0.0, 1e-3, 0.7, 5.0])
    h = 1e-6
    difference = (loss.weighted(r + h).value - loss.weighted(r - h).value) / (2 * h)
    np.testing.assert_allclose(loss.weighted(r).derivative, difference, rtol=1e-6)
    np.testing.assert_allclose(loss.weighted(np.array([1e-3])).value, 1e-3, rtol=1e-6)
    exact = {"huber": 2.0 * 30 - 2.0, "cauchy": 2.0 * np.log(1 + 15.0**2)}[name]
    np.testing.assert_allclose(0.5 * loss.weighted(r).value[0] ** 2, exact, rtol=1e-12)


@pytest.mark.slow
def test_chunks_give_the_rows_of_the_whole():
    m, data = swings()
    rows = []
    for chunk in (3, 4):
        problem = ident.Problem(m, data, damping(m), initial=PUSH, chunk=chunk)
        point = problem.start(problem.first[None])
        point = Point(point.free, point.shift + 0.3)
        found = problem.linear(point)[0]
        rows.append((found.gradient()[0], float(abs(found.marginal()[0, 0])), found.cost(), problem.costs(point)[0]))
    np.testing.assert_allclose(*rows, rtol=1e-9)
    np.testing.assert_allclose(rows[0][2], rows[0][3], rtol=1e-9)


def test_a_fit_goes_on_from_its_file(tmp_path):
    m, data = swings()
    options = {"horizons": (), "initial": PUSH, "resume": tmp_path / "fit.npz"}
    with pytest.warns(UserWarning, match="times the noise"):
        ident.identify(m, data, damping(m), iterations=1, **options)
    fit = ident.identify(m, data, damping(m), iterations=9, **options)
    np.testing.assert_allclose(fit.values, fitted().values, rtol=1e-5)
    with pytest.raises(ValueError, match="other parameters"):
        ident.identify(m, data, [*damping(m), ident.signal("bias", "q")], **options)
    with pytest.raises(ValueError, match="other recordings"):
        ident.identify(m, dataclasses.replace(data, sigma=2 * data.sigma), damping(m), **options)
    (tmp_path / "fit.npz").write_text("nothing")
    with pytest.raises(ValueError, match="is no iterate of a fit"):
        ident.identify(m, data, damping(m), **options)


@pytest.mark.slow
def test_a_controller_in_the_loop_has_gains_and_a_delay():
    m, _ = swings()
    t = 0.01 * np.arange(N)
    wanted = (0.4 * np.sin(9 * t) + 0.2 * np.sin(23 * t))[None, :, None]

    def servo(d, row, gains):
        return jnp.clip(gains["kp"] * (row - d.qpos) - gains["kv"] * d.qvel, -8, 8)

    parameters = [
        ident.gain("kp", 20.0, log=True),
        ident.gain("kv", 1.0, log=True),
        ident.signal("ctrl_delay", "motor", 0.01, high=0.1),
    ]
    nothing = ident.recordings(m, wanted, {"q": np.zeros((1, N))})
    truth = jnp.array([np.log(25.0), np.log(0.8), 0.024])
    y = np.asarray(ident.Problem(m, nothing, parameters, controller=servo).simulate(truth))[..., 0]
    y = y + 1e-4 * np.random.default_rng(0).standard_normal(y.shape)
    data = ident.recordings(m, wanted, {"q": y}, sigma=1e-4)
    fit = ident.identify(m, data, parameters, iterations=20, horizons=(), controller=servo)
    np.testing.assert_allclose(fit.values, [25.0, 0.8, 0.024], rtol=0.02)
    with pytest.raises(UnsupportedError, match="kp"):
        ident.save_mjcf(fit, "none.xml")


def test_the_saved_model_is_the_fitted_one_in_mujoco_and_names_its_intervals(tmp_path):
    m, _data = swings()
    fit = fitted()
    text = ident.save_mjcf(fit, tmp_path / "fit.xml")
    found = mujoco.MjModel.from_xml_path(str(tmp_path / "fit.xml"))
    np.testing.assert_allclose(found.dof_damping, fit.m.dof_damping, rtol=1e-8)
    assert f"<!-- dof_damping[hinge] = {fit.values[0]:.6g}, 95 %: {fit.interval_text(0)} -->" in text
    changed = m.replace(body_ipos=m.body_ipos.at[1].add(0.01), opt=m.opt.replace(timestep=m.opt.timestep / 2))
    ident.save_mjcf(dataclasses.replace(fit, m=changed), tmp_path / "fit.xml")
    found = mujoco.MjModel.from_xml_path(str(tmp_path / "fit.xml"))
    np.testing.assert_allclose(found.body_ipos[1], changed.body_ipos[1], rtol=1e-8)
    assert found.opt.timestep == 0.005
    other = m.replace(jnt_range=m.jnt_range + 1.0)
    with pytest.raises(UnsupportedError, match="jnt_range"):
        ident.save_mjcf(dataclasses.replace(fit, m=other), tmp_path / "fit.xml")


def test_states_come_from_sensors_and_a_joint_without_one_is_named():
    m, data = swings()
    qpos, qvel = ident.measured_states(m, data)
    known = np.isfinite(data.measured[:, 1:, 0])
    np.testing.assert_array_equal(qpos[:, 1:, 0][known], data.measured[:, 1:, 0][known])
    rows = known[:, :-2] & known[:, 1:-1] & known[:, 2:]
    slope = (data.measured[:, 3:, 0] - data.measured[:, 1:-2, 0]) / 0.02
    np.testing.assert_allclose(qvel[:, 2:-1, 0][rows], slope[rows], rtol=1e-9)
    blind = jaxsim.load_model(PENDULUM.format(d=0.1).replace("jointpos", "jointvel"))
    bad = ident.recordings(blind, data.ctrl, {"q": data.measured})
    with pytest.raises(ValueError, match="position of joint hinge"):
        ident.Problem(blind, bad, damping(blind), window=30)


def test_velocities_are_those_of_a_sensor_whose_noise_is_less_than_that_of_differences():
    m = jaxsim.load_model(PENDULUM.format(d=0.1).replace("</sensor>", '<jointvel name="v" joint="hinge"/></sensor>'))
    time = 0.01 * np.arange(20)
    measured = {"q": np.sin(time), "v": 5 + time}
    measured["v"][4] = np.nan
    for deviation, found in ((0.09, np.where(np.isnan(measured["v"]), 5.03, measured["v"])), (0.11, np.cos(time))):
        data = ident.recordings(m, np.zeros((20, m.nu)), measured, sigma={"q": 1e-3 * 2**0.5, "v": deviation})
        np.testing.assert_allclose(ident.measured_states(m, data)[1][0, 1:-1, 0], found[1:-1], atol=1e-4)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"continuity": PUSH}, "needs initial"),
        ({"window": 0, "initial": PUSH}, "number of steps"),
        ({"initial": ident.Initial(qvel=-1.0)}, "not negative"),
        ({"loss": "tukey"}, "expected one of"),
        ({"method": "adam", "initial": PUSH}, "no initial states"),
        ({"window": 30, "horizons": (60,)}, "exclude each other"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(options, match):
    m, data = swings()
    with pytest.raises(ValueError, match=match):
        ident.identify(m, data, damping(m), **options)


def test_search_finds_the_minimum_of_an_ill_conditioned_bowl_within_bounds():
    axes = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    scales = np.logspace(0, 2, 5)
    middle = np.array([0.3, -0.2, 0.5, 0.1, -0.4])
    found = ident.search(lambda x: (((x - middle) @ axes * scales) ** 2).sum(1), np.zeros(5),
                         np.array([0.3, 0.1, 1.0, 0.3, 0.3]),
                         iterations=150, population=12)  # fmt: skip
    np.testing.assert_allclose(found.mean, middle, atol=1e-3)
    assert found.cost < 1e-3 * found.history[0] and len(found.history) == 150
    low = ident.search(lambda x: (x**2).sum(1), np.ones(3), np.full(3, 0.3), iterations=60, low=0.5)
    np.testing.assert_allclose(low.best, 0.5, atol=1e-3)


def test_noise_of_each_sensor_is_estimated():
    m, data = swings()
    wrong = dataclasses.replace(data, sigma=5 * data.sigma)
    fit = ident.identify(m, wrong, damping(m), iterations=10, horizons=(), initial=PUSH, noise="estimated")
    np.testing.assert_allclose(fit.sigma, SIGMA, rtol=0.1)
    np.testing.assert_allclose(fit.std, fitted().std, rtol=0.1)
    assert fit.noise == pytest.approx(1, abs=0.03)


def test_residuals_that_are_not_white_are_named_with_a_guess():
    rng = np.random.default_rng(0)
    y = np.sin(0.1 * np.arange(400))[None, :, None] * np.ones((2, 1, 1))
    rate = np.cos(0.1 * np.arange(400))[None, :, None] * np.ones((2, 1, 1))
    noise = rng.standard_normal(y.shape)
    assert coloured(noise, y, ["q"], [1]) == []
    for cause, found in ((2 * rate, "a delay"), (2 * np.sign(rate), "backlash"), (2.0, "a bias"), (2 * y, "a gain")):
        (line,) = coloured(noise + cause, y, ["q"], [1])
        assert line.startswith("residuals of q are not white") and found in line
    assert coloured(1e-8 * rate, y, ["q"], [1]) == []  # rounding of an exact fit
    shaken = 3 * np.sin(0.7 * np.arange(400))[None, :, None]
    (line,) = coloured(noise + shaken, y, ["q"], [1], 0.01)
    assert "an oscillation at 11.2 Hz" in line and "a missing dof" in line


def test_a_fifth_of_many_records_is_held_out_by_default():
    m, data = swings()
    many = data.chosen([0, 1, 2, 3, 0, 1])
    fit = ident.identify(m, many, damping(m), iterations=10, horizons=(), initial=PUSH)
    assert fit.residual.shape[0] == 5 and fit.validation is not None and "held out" in str(fit)
    few = fitted_to_all()
    assert few.validation is None and few.residual.shape[0] == K and "not validated" in str(few)
    with pytest.raises(ValueError, match="held_out is 2"):
        ident.identify(m, many, damping(m), held_out=2.0)
    with pytest.raises(TypeError, match="held_out is 'half'"):
        ident.identify(m, many, damping(m), held_out="half")


@functools.cache
def fitted_to_all():
    m, data = swings()
    return ident.identify(m, data, damping(m), iterations=10, horizons=(), initial=PUSH)


def test_models_are_drawn_from_the_posterior_of_a_fit():
    fit = fitted_to_all()
    draw = jax.jit(jax.vmap(lambda key: ident.model_randomizer(fit)(fit.m, key).dof_damping[0]))
    found = np.asarray(draw(jax.random.split(jax.random.key(0), 2000)))
    np.testing.assert_allclose(found.mean(), fit.values[0], atol=0.1 * fit.std[0])
    np.testing.assert_allclose(found.std(), fit.std[0], rtol=0.05)
    draws = np.array([[[0.25], [0.35]]])
    few = ident.Posterior(fit.labels, draws, np.zeros((1, 2)), np.ones(1), np.ones(1), 0, 1.0)
    picked = {
        round(float(ident.model_randomizer(fit, few)(fit.m, jax.random.key(i)).dof_damping[0]), 4) for i in range(9)
    }
    assert picked == {0.25, 0.35}
    with pytest.raises(ValueError, match="differs from the fitted one in nq, nv, nu"):
        ident.model_randomizer(fit)(jaxsim.load_model("<mujoco/>"), jax.random.key(0))


def test_other_units_signs_and_first_states_are_suspected():
    m, data = swings()
    rest = dataclasses.replace(data, qpos=0 * data.qpos)
    y = np.asarray(ident.Problem(m, rest, damping(m)).simulate(jnp.log(jnp.array([0.3]))))
    for factor, words in ((180 / np.pi, "degrees in place of rad"), (-1.0, "the other sign")):
        with pytest.warns(UserWarning, match=f"measurements of q look like {words}"):
            ident.identify(m, dataclasses.replace(rest, measured=factor * y), damping(m), iterations=1, horizons=())
    away = dataclasses.replace(rest, measured=y + 0.5)
    with pytest.warns(UserWarning, match="begin away from their initial states: the first row of q"):
        ident.identify(m, away, damping(m), iterations=1, horizons=())


def test_parameters_that_nothing_reads_are_refused():
    m, data = swings()
    with pytest.raises(ValueError, match="is given 2 times"):
        ident.Problem(m, data, [*damping(m), *damping(m)])
    with pytest.raises(ValueError, match="kp is a number of a controller"):
        ident.Problem(m, data, [ident.gain("kp", 1.0)])
    with pytest.raises(ValueError, match=r"reads the gain 'kd'; gain parameters are kp"):
        ident.Problem(m, data, [ident.gain("kp", 1.0)], controller=lambda d, row, gains: gains["kd"] * d.qpos)
    with pytest.raises(ValueError, match=r"shape \(2,\); expected \(1,\)"):
        ident.Problem(m, data, [ident.gain("kp", 1.0)], controller=lambda d, row, gains: jnp.ones(2))


SECOND = """<body pos="1 0 0"><joint name="other" axis="0 1 0" damping=".1"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.4" size=".04" mass="1"/></body></worldbody>"""
TWO = PENDULUM.replace("</worldbody>", SECOND)
TWO = TWO.replace("</actuator>", '<motor name="second" joint="other"/></actuator>')
TWO = TWO.replace("</sensor>", '<jointpos name="p" joint="other"/></sensor>')


@pytest.mark.parametrize("points", [1, 8])
def test_delays_of_several_actuators_and_sensors_are_those_of_each(points):
    m = jaxsim.load_model(TWO.format(d=0.1))
    rng = np.random.default_rng(0)
    ctrl = np.sin(rng.uniform(2, 9, (6, 1, 2)) * 0.01 * np.arange(N)[:, None])
    nothing = {"q": np.zeros((6, N)), "p": np.zeros((6, N))}
    late = [ident.signal("ctrl_delay", ["motor", "second"], 0.023), ident.signal("delay", ["q", "p"], 0.013)]
    problem = ident.Problem(m, ident.recordings(m, ctrl, nothing), late)
    y = problem.simulated(problem.start(np.tile(np.asarray(problem.first), (points, 1))))
    found = np.concatenate([part[0] for _, part, _ in y])

    def delayed(x, steps):
        at = np.clip(np.arange(N) - steps, 0, N - 1)
        return np.stack([[np.interp(at, np.arange(N), c) for c in row.T] for row in x]).swapaxes(1, 2)

    plain = ident.Problem(m, ident.recordings(m, delayed(ctrl, 2.3), nothing), damping(m))
    expected = delayed(np.asarray(plain.simulate(plain.first)), 1.3)
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_a_profile_of_a_quadratic_cost_is_the_interval_and_uses_no_other_program():
    fit = fitted()
    sizes = [f._cache_size() for f in programs()]
    found = ident.profile(fit, fit.labels[0])
    np.testing.assert_allclose(found.interval, fit.interval[0], atol=0.03 * fit.std[0])
    assert [f._cache_size() for f in programs()] == sizes
    with pytest.raises(KeyError, match="dof_damping"):
        ident.profile(fit, "mass")


@pytest.mark.slow
def test_a_posterior_agrees_with_the_interval_of_the_fit():
    pytest.importorskip("blackjax")
    fit = fitted()
    found = ident.posterior(fit, chains=2, draws=80, warmup=30)
    assert found.draws.shape == (2, 80, 1) and (found.rhat < 1.1).all() and found.divergences == 0
    np.testing.assert_allclose(found.draws.mean((0, 1)), fit.values, atol=fit.std[0])
    np.testing.assert_allclose(found.draws.std((0, 1)), fit.std, rtol=0.4)
    lost = dataclasses.replace(fit, identified=np.array([False]))
    with pytest.raises(ValueError, match="do not determine"):
        ident.posterior(lost)


@pytest.mark.slow
def test_the_offset_of_a_clock_is_found_with_either_sign():
    _m, data = swings()
    late = np.stack([np.interp(np.arange(N) + 1.5, np.arange(N), y) for y in fitted().simulated[..., 0]])
    early = dataclasses.replace(data, measured=late[..., None])
    offset = ident.signal("offset", "q", low=-0.04, high=0.04)
    fit = ident.identify(fitted().m, early, [offset], iterations=10, horizons=(), initial=PUSH)
    np.testing.assert_allclose(fit.values, -0.015, atol=1e-4)
    assert np.isnan(fit.residual[:, :4]).all() and np.isnan(fit.residual[:, -4:]).all()
    with pytest.raises(ValueError, match="finite low and high"):
        ident.signal("offset", "q")


def test_numbers_of_contact_pairs_are_written():
    m = jaxsim.load_model(
        '<mujoco><worldbody><geom name="table" type="plane" size="1 1 .1"/><body><freejoint/><geom name="ball" '
        'size=".1"/></body></worldbody><contact><pair geom1="table" geom2="ball"/></contact></mujoco>'
    )
    changed = m.replace(
        pair_friction=m.pair_friction.at[0, :2].set(0.3), pair_solreffriction=m.pair_solreffriction + 0.5
    )
    found = mujoco.MjModel.from_xml_string(jaxsim.save_mjcf(written(m, changed)))
    np.testing.assert_allclose(found.pair_friction, changed.pair_friction, rtol=1e-6)
    np.testing.assert_allclose(found.pair_solreffriction, changed.pair_solreffriction, rtol=1e-6)


def test_windows_begin_at_their_time_of_the_record():
    """A controller that reads the time drives exact windows as it drove the record."""

    def timed(d, u, _gains):
        return u + jnp.sin(6 * d.time)

    m = jaxsim.load_model(PENDULUM.format(d=0.3))
    ctrl = np.sin(0.07 * np.arange(N))[:, None]
    whole = ident.Problem(m, ident.recordings(m, ctrl, {"q": np.zeros(N)}), damping(m), controller=timed)
    u = jnp.asarray(ctrl)
    path = jaxsim.rollout(m, jaxsim.make_data(m), lambda i, d: timed(d, u[i], {}), N)[1]
    states = tuple(np.concatenate([np.zeros((1, 1)), path[x][:-1]])[None] for x in ("qpos", "qvel"))
    data = ident.recordings(m, ctrl, {"q": np.zeros(N)}, states=states)
    parts = ident.Problem(m, data, damping(m), controller=timed, window=40)
    expected = whole.simulate(whole.first)
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(parts.simulate(parts.first), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("actuator", "match"),
    [
        ('<general name="motor" joint="hinge" dyntype="filter" dynprm=".3"/>', "wrong activations of actuators"),
        ('<motor name="motor" joint="hinge" delay=".05" nsample="8"/>', "wrong delays of actuators or sensors"),
    ],
)
def test_windows_of_a_model_with_memory_are_refused_and_validation_takes_whole_records(actuator, match):
    _m, data = swings()
    m = jaxsim.load_model(PENDULUM.format(d=0.1).replace('<motor name="motor" joint="hinge"/>', actuator))
    with pytest.raises(ValueError, match=match):
        ident.Problem(m, data, damping(m), window=30)
    problem = ident.Problem(m, data, damping(m))
    found = ident.validate(problem, problem.first, data)
    errors = np.asarray(problem.simulate(problem.first)) - problem.measured
    np.testing.assert_allclose(
        found.fitted[-1, 0], np.sqrt(np.nanmean(errors[:, : round(found.horizons[-1] * 100) + 1] ** 2)), rtol=1e-5
    )
