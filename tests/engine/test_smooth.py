"""The smooth stages against the reference, on the host: nothing is compiled, every field is compared in order."""

import mujoco
import numpy as np
import pytest

from jaxsim.engine.actuation.forces import fwd_actuation
from jaxsim.engine.actuation.transmission import actuator_velocities, transmission
from jaxsim.engine.dynamics.energy import kinetic, potential
from jaxsim.engine.dynamics.inertia import crb, factor_m, full_m, mul_m, solve_m
from jaxsim.engine.dynamics.passive import passive
from jaxsim.engine.dynamics.rne import rne, tendon_bias
from jaxsim.engine.kinematics.com import com_pos, com_vel
from jaxsim.engine.kinematics.jacobian import jac
from jaxsim.engine.kinematics.kinematics import camlight, kinematics
from jaxsim.engine.kinematics.wrench import apply_wrench
from jaxsim.engine.sensor.velocity import subtree_vel
from jaxsim.engine.tendon.tendon import mul_jac, tendon
from validation.models import dynamics as models
from validation.stages import assert_fields, host, host_data, load, states

CASES = {name: getattr(models, name) for name in ("ACTUATED", "TENDONS", "FLUID", "FREE", "MOTORS")}
POSITION = [
    "xpos",
    "xquat",
    "xmat",
    "xanchor",
    "xaxis",
    "xipos",
    "ximat",
    "geom_xpos",
    "geom_xmat",
    "site_xpos",
    "site_xmat",
    "subtree_com",
    "cinert",
    "cdof",
    "cam_xpos",
    "cam_xmat",
    "light_xpos",
    "light_xdir",
    "ten_length",
    "ten_J",
    "ten_wrapadr",
    "ten_wrapnum",
    "crb",
    "M",
    "qM",
    "qLD",
    "qLDiagInv",
    "actuator_length",
    "actuator_moment",
]
VELOCITY = [
    "ten_velocity",
    "actuator_velocity",
    "cvel",
    "cdof_dot",
    "qfrc_spring",
    "qfrc_damper",
    "qfrc_gravcomp",
    "qfrc_fluid",
    "qfrc_passive",
    "qfrc_bias",
    "act_dot",
    "actuator_force",
    "qfrc_actuator",
]


def smooth(m, d):
    """The stages up to the actuators' forces, without contacts."""
    d = com_pos(m, kinematics(m, d))
    d = tendon(m, camlight(m, d))
    d = transmission(m, factor_m(m, crb(m, d)))
    d = d.replace(ten_velocity=mul_jac(m, d, d.qvel), actuator_velocity=actuator_velocities(m, d))
    d = passive(m, com_vel(m, d))
    d = d.replace(qfrc_bias=rne(m, d) + tendon_bias(m, d))
    return fwd_actuation(m, d)


@pytest.fixture(scope="module", params=list(CASES))
def pairs(request):
    """A model with states of the reference and ours after the smooth stages."""
    mj_model = load(CASES[request.param])
    m = host(mj_model)
    out = []
    for mj_data in states(mj_model, count=4, noise=1.0):
        d = smooth(m, host_data(m, mj_data))
        mujoco.mj_forward(mj_model, mj_data)
        out.append((mj_data, d))
    return mj_model, m, out


def test_position_stages_equal_the_reference(pairs):
    mj_model, _, states_ = pairs
    for mj_data, d in states_:
        assert_fields(POSITION, mj_model, mj_data, d, 1e-9)


def test_velocity_stages_equal_the_reference(pairs):
    mj_model, _, states_ = pairs
    for mj_data, d in states_:
        assert_fields(VELOCITY, mj_model, mj_data, d, 1e-9)


def test_points_of_tendons_equal_the_reference(pairs):
    _, _, states_ = pairs
    for mj_data, d in states_:
        n = int(mj_data.ten_wrapnum.sum())
        np.testing.assert_array_equal(np.reshape(d.wrap_obj, -1)[:n], mj_data.wrap_obj.reshape(-1)[:n])
        points, want = np.reshape(d.wrap_xpos, (-1, 3))[:n], mj_data.wrap_xpos.reshape(-1, 3)[:n]
        np.testing.assert_allclose(points, want, atol=1e-9)


def test_stages_stay_on_the_host(pairs):
    _, _, states_ = pairs
    for name in ("xpos", "ten_J", "M", "qLD", "actuator_moment", "qfrc_passive", "qfrc_bias", "actuator_force"):
        assert isinstance(getattr(states_[0][1], name), np.ndarray), name


def test_solve_undoes_multiplication(pairs):
    _, m, states_ = pairs
    d = states_[0][1]
    x = np.random.default_rng(0).standard_normal((2, m.nv))
    np.testing.assert_allclose(solve_m(m, d, mul_m(m, d, x)), x, atol=1e-8)
    np.testing.assert_allclose(x @ full_m(m, d), mul_m(m, d, x), atol=1e-10)


def test_jacobians_and_applied_wrenches_equal_the_reference(pairs):
    mj_model, m, states_ = pairs
    rng = np.random.default_rng(1)
    mj_data, d = states_[0]
    points, body = rng.standard_normal((m.nbody, 3)), np.arange(m.nbody)
    jacp, jacr = jac(m, d, points, body)
    force, torque = rng.standard_normal((2, m.nbody, 3))
    total = np.zeros(m.nv)
    for b in body:
        want_p, want_r = np.zeros((2, 3, m.nv))
        mujoco.mj_jac(mj_model, mj_data, want_p, want_r, points[b], b)
        np.testing.assert_allclose(jacp[b], want_p, atol=1e-10)
        np.testing.assert_allclose(jacr[b], want_r, atol=1e-10)
        mujoco.mj_applyFT(mj_model, mj_data, force[b], torque[b], points[b], b, total)
    np.testing.assert_allclose(apply_wrench(m, d, force, torque, points), total, atol=1e-9)


def test_energy_and_momenta_equal_the_reference(pairs):
    mj_model, m, states_ = pairs
    for mj_data, d in states_:
        mujoco.mj_energyPos(mj_model, mj_data)
        mujoco.mj_energyVel(mj_model, mj_data)
        mujoco.mj_subtreeVel(mj_model, mj_data)
        np.testing.assert_allclose([potential(m, d), kinetic(m, d)], mj_data.energy, rtol=1e-9)
        assert_fields(("subtree_linvel", "subtree_angmom"), mj_model, mj_data, subtree_vel(m, d))


def test_rne_with_accelerations_equals_the_reference(pairs):
    mj_model, m, states_ = pairs
    mj_data, d = states_[1]
    mj_data.qacc[:] = np.random.default_rng(2).standard_normal(m.nv)
    want = np.zeros(m.nv)
    mujoco.mj_rne(mj_model, mj_data, 1, want)
    np.testing.assert_allclose(rne(m, d, np.array(mj_data.qacc)), want, atol=1e-8)


@pytest.mark.parametrize(
    "flags",
    [
        mujoco.mjtDisableBit.mjDSBL_SPRING,
        mujoco.mjtDisableBit.mjDSBL_DAMPER,
        mujoco.mjtDisableBit.mjDSBL_SPRING | mujoco.mjtDisableBit.mjDSBL_DAMPER,
        mujoco.mjtDisableBit.mjDSBL_GRAVITY,
        mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL,
        mujoco.mjtDisableBit.mjDSBL_ACTUATION,
    ],
)
@pytest.mark.parametrize("case", ["ACTUATED", "FLUID"])
def test_flags_switch_forces_off(flags, case):
    mj_model = load(CASES[case], disableflags=int(flags))
    m = host(mj_model)
    for mj_data in states(mj_model, count=2):
        d = smooth(m, host_data(m, mj_data))
        mujoco.mj_forward(mj_model, mj_data)
        assert_fields([n for n in VELOCITY if n != "act_dot"], mj_model, mj_data, d)


def test_a_control_that_is_not_a_number_zeroes_all_controls():
    mj_model = load(models.ACTUATED, disableflags=int(mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL))
    m = host(mj_model)
    mj_data = states(mj_model, count=1)[0]
    mj_data.ctrl[2] = np.nan
    d = smooth(m, host_data(m, mj_data))
    mujoco.mj_forward(mj_model, mj_data)
    assert_fields(("act_dot", "actuator_force", "qfrc_actuator"), mj_model, mj_data, d)
