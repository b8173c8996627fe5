"""Passive forces and energy of flexes against MuJoCo's, from the same states."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.flex.kinematics import edge_velocities
from tests.compiler.flex_cases import EXPLICIT, MACROS
from tests.engine.flex.cases import CASES
from tests.engine.flex.test_kinematics import moved
from validation.stages import assert_fields, host, host_data, load

# passive contacts are another stage's, and a plugin is refused on bodies that are no cable
LEFT_OUT = ("contact 1d", "contact 2d", "contact 3d", "a plugin")
ALL = {**CASES, **{f"compiled: {k}": v for k, v in {**EXPLICIT, **MACROS}.items() if k not in LEFT_OUT}}
TOLERANCE = 1e-8  # rotations of cells are found to 1e-9 there and here
FIELDS = ("energy", "qfrc_spring", "qfrc_damper", "qfrc_passive")


def passive(m, data):
    d = jaxsim.stages.flex(m, jaxsim.com_pos(m, jaxsim.kinematics(m, host_data(m, data))))
    d = jaxsim.tendon(m, d)
    d = d.replace(flexedge_velocity=edge_velocities(m, d, d.qvel))
    return jaxsim.energy_pos(m, jaxsim.passive(m, jaxsim.com_vel(m, d)))


@pytest.mark.parametrize("case", ALL)
def test_forces_and_energy_are_those_of_mujoco(case):
    model = load(ALL[case])
    m = host(model)
    for seed, scale in ((0, 1), (1, 0.1)):
        data = moved(model, seed, scale)
        mujoco.mj_energyPos(model, data)
        assert_fields(FIELDS[1:], model, data, passive(m, data), TOLERANCE)
        d = passive(m, data)
        if model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_ENERGY:
            np.testing.assert_allclose(d.energy[0], data.energy[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_there_is_something_to_compare(case):
    model = load(CASES[case])
    data = moved(model, 0)
    still = case in ("rigid", "ball in cells")  # a lattice whose first cell is empty has no stiffness, as there
    assert still or np.abs(data.qfrc_spring).max() + np.abs(data.qfrc_damper).max() > 1e-3
    assert np.isfinite(data.qfrc_passive).all()


FLAGS = mujoco.mjtDisableBit


@pytest.mark.parametrize("flag", [FLAGS.mjDSBL_SPRING, FLAGS.mjDSBL_DAMPER])
@pytest.mark.parametrize("case", ["both", "rope on a moving body", "trilinear pinned", "shell"])
def test_flags_switch_off_what_they_do_in_mujoco(case, flag):
    model = load(CASES[case])
    model.opt.disableflags |= int(flag)
    data = moved(model, 0)
    assert_fields(FIELDS[1:], model, data, passive(host(model), data), TOLERANCE)


@pytest.mark.parametrize("case", ["solid", "stretching", "radial ball"])
def test_small_strains_far_from_the_origin_keep_their_digits_in_single_precision(case):
    model = load(ALL[case].replace('pos="0 0 1"', 'pos="3 2 5"'))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    slide = model.jnt_qposadr[model.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE]
    data.qpos[slide] = (0.7 + 1e-5 * rng.normal(size=len(slide))).astype(np.float32)  # all moved, strained by 1e-4
    mujoco.mj_forward(model, data)
    with jax.enable_x64(False):
        m = jaxsim.from_mujoco(model)
        d = jax.jit(jaxsim.forward)(m, jaxsim.make_data(m).replace(qpos=jnp.asarray(data.qpos)))
        assert d.qfrc_spring.dtype == np.float32
    wanted = data.qfrc_spring[slide]
    np.testing.assert_allclose(d.qfrc_spring[slide], wanted, atol=1e-5 * np.abs(wanted).max(), rtol=0)
