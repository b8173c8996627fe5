"""The models of this project: stable in the oracle, at rest where they say so, and accepted by us."""

import mujoco
import numpy as np
import pytest

from tests.paths import MODELS

FILES = sorted(MODELS.glob("*.xml"))
NAMES = [path.stem for path in FILES]
CONTACTS = {"humanoid": 8, "walker": 4, "hopper": 2, "quadruped": 4, "runner": 2, "quadruped_hulls": 8}


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


def start(name):
    """Model and data at its first keyframe."""
    model = load(name)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    return model, data


def touching(model, data):
    """Names of the geoms in contact, as pairs."""
    return {tuple(model.geom(g).name for g in pair) for pair in data.contact.geom}


@pytest.mark.parametrize("name", ["arm_hulls", "arm_capsules"])
def test_arm_stands_still_and_touches_nothing(name):
    model, data = start(name)
    for _ in range(500):
        mujoco.mj_step(model, data)
        assert data.ncon == 0
    assert np.abs(data.qpos - model.key_qpos[0]).max() < 1e-5


def test_arms_of_hulls_and_of_capsules_differ_in_shapes_only():
    hulls, capsules = load("arm_hulls"), load("arm_capsules")
    for field in ("body_mass", "body_inertia", "body_pos", "jnt_axis", "jnt_range", "dof_damping", "actuator_gainprm"):
        assert np.array_equal(getattr(hulls, field), getattr(capsules, field)), field
    for field in ("geom_bodyid", "geom_contype", "geom_conaffinity", "geom_condim", "exclude_signature"):
        assert np.array_equal(getattr(hulls, field), getattr(capsules, field)), field


def test_hulls_of_the_arm_have_58_to_1894_vertices():
    model = load("arm_hulls")
    counts = {model.mesh(i).name: model.mesh_graph[model.mesh_graphadr[i]] for i in range(model.nmesh)}
    assert min(counts.values()) == 58 and max(counts.values()) == 1894
    assert counts["elbow"] == 1600 and model.mesh("elbow").vertnum == 6084


def test_ten_objects_lie_on_the_table():
    model, data = start("arm_table")
    before = data.xpos.copy()
    mujoco.mj_step(model, data, 250)
    assert {first for first, _ in touching(model, data)} == {"table"} and len(touching(model, data)) == 10
    assert np.abs(data.xpos - before).max() < 1e-3


def test_hand_of_hulls_holds_the_roller():
    model, data = start("hand_hulls")
    fingers = {f"{name}_far" for name in ("index", "middle", "ring", "little", "thumb")}
    for _ in range(10):
        assert fingers <= {first for first, second in touching(model, data) if second == "roller"}
        mujoco.mj_step(model, data, 50)
    model.opt.gravity[2] = 9.81  # the palm upside down
    mujoco.mj_step(model, data, 500)
    assert np.linalg.norm(data.body("roller").xpos - data.body("palm").xpos) < 0.08


def test_kettle_stands_on_the_stove_and_doors_stay_shut():
    model, data = start("kitchen")
    assert model.ngeom == 332 and model.nv == 40
    mujoco.mj_step(model, data, 500)
    assert {second for _, second in touching(model, data)} == {"pot"} and data.ncon == 8
    assert np.abs(data.qpos - model.key_qpos[0]).max() < 1e-3


def test_rattleback_turns_back():
    model = load("rattleback")
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_step(model, data, 3000)
    assert model.key_qvel[0][5] < -5 and data.qvel[5] > 2
