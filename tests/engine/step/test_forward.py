"""One whole step against the reference, from states along its trajectory, in float64 with an exact solver."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.core.errors import UnsupportedError
from jaxsim.engine.step import forward
from validation.models import dynamics as models
from validation.stages import assert_fields, exact, load, states, to_data

EULER, RK4, IMPLICIT, FAST = range(4)
FORWARD = [
    "xpos",
    "subtree_com",
    "M",
    "ncon",
    "nefc",
    "actuator_length",
    "cvel",
    "qfrc_passive",
    "qfrc_bias",
    "actuator_force",
    "qfrc_smooth",
    "qacc_smooth",
    "qfrc_constraint",
    "qacc",
    "cacc",
    "cfrc_int",
    "cfrc_ext",
    "energy",
    "sensordata",
]
STATE = ["time", "qpos", "qvel", "act", "qacc_warmstart"]
CASES = [
    ("ACTUATED", EULER),
    pytest.param("ACTUATED", FAST, marks=pytest.mark.slow),
    ("TRANSMISSIONS", EULER),
    ("TENDONS", EULER),
    ("FLUID", IMPLICIT),
    ("FREE", FAST),
    ("MOTORS", FAST),
    ("CONTACT_SENSORS", EULER),
    pytest.param("FREE", IMPLICIT, marks=pytest.mark.slow),
]
WHOLE = jax.jit(jaxsim.step)


def same_step(mj_model, names, tolerance=1e-8, count=2, seed=0):
    """Compare the fields after one step of ours and of the reference from the same states."""
    m = jaxsim.from_mujoco(mj_model)
    for mj_data in states(mj_model, count, seed=seed):
        d = WHOLE(m, to_data(m, mj_data))
        mujoco.mj_step(mj_model, mj_data)
        if not mj_data.flg_rnepost:
            names = [n for n in names if n not in ("cacc", "cfrc_int", "cfrc_ext")]
        assert_fields(names, mj_model, mj_data, d, tolerance)


@pytest.mark.parametrize(("name", "integrator"), CASES)
def test_step_equals_the_reference(name, integrator):
    same_step(exact(load(getattr(models, name), integrator=integrator)), [*FORWARD, *STATE])


SMALL = """
<mujoco><option timestep="0.01"><flag energy="enable"/></option>
<worldbody><body pos="0 0 1"><joint name="h" axis="0 1 0" damping=".3"/>
<geom type="capsule" size=".05 .2" pos="0 0 -.2"/>
<body pos="0 0 -.4"><joint name="b" type="ball" damping=".01"/><geom type="box" size=".05 .1 .15" pos=".02 0 -.1"/>
<site name="s"/></body></body></worldbody>
<actuator><position joint="h" kp="3"/><general joint="h" dyntype="filter" dynprm=".1"/></actuator>
<sensor><accelerometer site="s"/></sensor></mujoco>
"""


def test_rk4_equals_the_reference():
    # derived fields are left by the last of four evaluations, sensors by the first
    same_step(exact(load(SMALL, integrator=RK4)), [*STATE, "qacc", "xpos", "sensordata", "energy"])


@pytest.mark.parametrize("sensors", ["<e_potential/>", "<e_kinetic/>", "<e_kinetic/><e_potential/>"])
def test_sensors_of_energy_leave_it_in_data_without_the_flag(sensors):
    xml = SMALL.replace('<flag energy="enable"/>', "").replace("<sensor>", f"<sensor>{sensors}")
    same_step(exact(load(xml)), [*STATE, "sensordata", "energy"])


def test_rk4_leaves_no_energy_without_the_flag():  # its last evaluation has no sensors
    xml = SMALL.replace('<flag energy="enable"/>', "").replace("<sensor>", "<sensor><e_potential/>")
    same_step(exact(load(xml, integrator=RK4)), [*STATE, "sensordata", "energy"], count=1)


def test_step1_and_step2_make_a_step():
    mj_model = exact(load(SMALL))
    m = jaxsim.from_mujoco(mj_model)
    mj_data = states(mj_model, 1)[0]
    d = jax.jit(jaxsim.step2)(m, jax.jit(jaxsim.step1)(m, to_data(m, mj_data)))
    mujoco.mj_step(mj_model, mj_data)
    assert_fields([*STATE, "qacc", "sensordata", "energy"], mj_model, mj_data, d)


@pytest.mark.parametrize(("field", "kind"), [("qpos", 3), ("qvel", 4)])
def test_a_diverged_world_starts_anew_and_leaves_its_neighbours_alone(field, kind):
    mj_model = load(SMALL)
    m = jaxsim.from_mujoco(mj_model)
    d = to_data(m, states(mj_model, 1)[0])
    bad = d.replace(**{field: getattr(d, field).at[0].set(jnp.nan)})
    batch = jax.tree.map(lambda *x: jnp.stack(x), d, bad)
    out = jax.jit(jax.vmap(jaxsim.step, in_axes=(None, 0)))(m, batch)
    fresh = WHOLE(m, jaxsim.make_data(m))
    np.testing.assert_allclose(out.qpos[0], WHOLE(m, d).qpos, atol=1e-12)
    np.testing.assert_allclose(out.qpos[1], fresh.qpos, atol=1e-12)
    np.testing.assert_array_equal(out.warning.number[:, kind], [0, 1])
    assert np.isfinite(np.asarray(out.qacc)).all()


@pytest.mark.parametrize("integrator", ["EULER", "RK4", "IMPLICITFAST"])
def test_an_acceleration_that_diverges_restarts_the_world(integrator):
    m = jaxsim.from_mujoco(load(SMALL, integrator=int(getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}"))))
    d = jaxsim.make_data(m).replace(qvel=jnp.ones(m.nv), qfrc_applied=jnp.full(m.nv, 1e30))
    out = WHOLE(m, d)
    np.testing.assert_array_equal(out.qpos, m.qpos0)
    np.testing.assert_array_equal(out.qvel, 0)
    np.testing.assert_array_equal(out.qacc_warmstart, 0)
    assert out.time == 0 and out.warning.number[5] == 1


def test_a_world_that_starts_anew_has_a_gradient_of_zero_and_not_nan():
    m = jaxsim.from_mujoco(load(SMALL))
    d = jaxsim.make_data(m).replace(qvel=jnp.ones(m.nv))

    def height(force):
        return jaxsim.step(m, d.replace(qfrc_applied=force)).qpos.sum()

    slope = jax.jit(jax.grad(height))
    np.testing.assert_array_equal(slope(jnp.full(m.nv, 1e30)), 0)
    assert np.abs(slope(jnp.ones(m.nv))).max() > 0


def test_without_autoreset_the_world_goes_on_and_is_counted_as_in_the_reference():
    mj_model = load(SMALL, disableflags=int(mujoco.mjtDisableBit.mjDSBL_AUTORESET))
    m = jaxsim.from_mujoco(mj_model)
    mj_data = mujoco.MjData(mj_model)
    mj_data.qvel[0] = 2e10
    d = jax.jit(jaxsim.step)(m, to_data(m, mj_data))
    mujoco.mj_step(mj_model, mj_data)
    for kind in (3, 4):
        assert d.warning.number[kind] == mj_data.warning[kind].number
    assert d.time > 0


@pytest.mark.parametrize(
    ("xml", "feature"),
    [
        (
            '<mujoco><option><flag sleep="enable"/></option><worldbody><body><joint name="j"/><geom size=".1"/></body>'
            '</worldbody><tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>'
            '<equality><tendon tendon1="t"/></equality></mujoco>',
            "sleep with equalities of tendons",
        ),
    ],
)
def test_what_is_not_built_is_refused_by_name(xml, feature):
    m = jaxsim.from_mujoco(load(xml))
    with pytest.raises(jaxsim.UnsupportedError, match=feature):
        jax.eval_shape(jaxsim.forward, m, jaxsim.make_data(m))


@pytest.mark.parametrize("name", ["step", "step2"])
def test_an_integrator_without_a_row_is_refused(name, monkeypatch):
    m = jaxsim.load_model("<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>")
    monkeypatch.delitem(forward.INTEGRATORS, m.opt.integrator)
    with pytest.raises(UnsupportedError, match="the integrator 0"):
        jax.eval_shape(lambda m, d: getattr(forward, name)(m, d), m, jaxsim.make_data(m))
