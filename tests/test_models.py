"""The models of this project: stable in the oracle, at rest where they say so, and accepted by us."""

import mujoco
import numpy as np
import pytest

from tests.paths import MODELS

FILES = sorted(MODELS.glob("*.xml"))
NAMES = [path.stem for path in FILES]
CONTACTS = {"humanoid": 8, "walker": 4, "hopper": 2, "quadruped": 4, "runner": 2}


@pytest.fixture(params=FILES, ids=NAMES)
def model(request):
    return mujoco.MjModel.from_xml_path(str(request.param))


def load(name):
    return mujoco.MjModel.from_xml_path(str(FILES[NAMES.index(name)]))


def test_all_of_them_are_there():
    assert {"humanoid", "quadruped", "runner", "hopper", "walker", "swimmer", "cartpole"} <= set(NAMES)
    assert {"double_pendulum", "arm_gripper", "box_pile", "thirty_boxes", "mesh_gripper", "rattleback"} <= set(NAMES)


@pytest.mark.parametrize("key", [False, True], ids=["qpos0", "keyframe"])
def test_random_controls_give_no_warning(model, key):
    data = mujoco.MjData(model)
    if key and model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    rng = np.random.default_rng(0)
    low, high = model.actuator_ctrlrange.T
    for _ in range(300):
        data.ctrl[:] = rng.uniform(low, high)
        mujoco.mj_step(model, data)
    assert not any(warning.number for warning in data.warning)


def test_humanoid_has_27_dofs_and_21_motors():
    model = load("humanoid")
    assert (model.nv, model.nu) == (27, 21)
    assert not model.neq and not model.ntendon and not model.nmesh


@pytest.mark.parametrize(("name", "count"), CONTACTS.items(), ids=list(CONTACTS))
def test_stand_is_at_rest_with_contacts(name, count):
    model = load(name)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("stand").id)
    mujoco.mj_forward(model, data)
    assert data.ncon == count
    start = data.qpos.copy()
    mujoco.mj_step(model, data, 50)
    assert np.abs(data.qpos - start).max() < 1e-3
    assert data.ncon == count


def test_gripper_holds_the_cube():
    model = load("arm_gripper")
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("grasp").id)
    mujoco.mj_step(model, data, 100)
    assert data.sensor("right_pad").data > 5 and data.sensor("left_pad").data > 5


def test_fingers_of_hulls_hold_the_stone():
    model = load("mesh_gripper")
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("hold").id)
    mujoco.mj_step(model, data, 500)
    assert data.body("stone").xpos[2] > 0.09 and data.ncon >= 6


def test_rattleback_turns_back():
    model = load("rattleback")
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_step(model, data, 3000)
    assert model.key_qvel[0][5] < -5 and data.qvel[5] > 2
