"""Locomotion of any robot: what is read from a model, its rewards, its randomisation, and messages for bad input."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import envs
from jaxsim.envs.locomotion import randomize, rewards
from jaxsim.envs.locomotion.robot import read_robot

LEG = """<body name="{0}_leg" pos="{1} {2} 0"><joint name="{0}" axis="0 1 0" range="-60 60"/>
  <geom name="{0}_shin" type="capsule" fromto="0 0 0 0 0 -.2" size=".02"/>
  <geom name="{0}_foot" pos="0 0 -.2" size=".03"/></body>"""
PLACES = {"fl": (0.2, 0.1), "fr": (0.2, -0.1), "rl": (-0.2, 0.1), "rr": (-0.2, -0.1)}
FLOOR = '<geom name="floor" type="plane" size="0 0 1"/>'


def robot_text(floor=FLOOR, root="<freejoint/>", extra="", leg=LEG, actuator='<motor joint="{0}" gear="5" {1}/>'):
    legs = "".join(leg.format(name, *place) for name, place in PLACES.items())
    limits = 'ctrllimited="true" ctrlrange="-2 2"'
    motors = "".join(actuator.format(name, limits) for name in PLACES)
    return f"""<mujoco><worldbody>{floor}<body name="trunk" pos="0 0 .5">{root}
      <geom name="trunk" type="box" size=".25 .1 .05"/>{legs}</body></worldbody>
      <actuator>{motors}</actuator>{extra}</mujoco>"""


@pytest.fixture(scope="module")
def four_legs():
    return jaxsim.load_model(robot_text())


@pytest.fixture(scope="module")
def env():
    return envs.locomotion(robot_text(), randomization=envs.Randomization(push_every=0), noise=0.0)


def names(m, robot):
    return [[m.id2name("geom", int(g)) for g in geoms] for geoms in robot.feet]


def test_feet_are_what_reaches_lowest_and_the_robot_stands_on_the_floor(four_legs):
    robot = read_robot(four_legs)
    assert names(four_legs, robot) == [["fl_foot"], ["fr_foot"], ["rl_foot"], ["rr_foot"]]
    assert np.allclose(robot.height, 0.23) and np.allclose(robot.home[2], 0.23)
    assert np.allclose(robot.foot_level, 0.03)


def test_feet_are_found_by_names_of_geoms_and_bodies(four_legs):
    robot = read_robot(four_legs, feet=["fl_foot", "rr_leg"])
    assert names(four_legs, robot) == [["fl_foot"], ["rr_shin", "rr_foot"]]


def test_diagonal_feet_step_together(four_legs):
    fl, fr, rl, rr = read_robot(four_legs).phase
    assert fl == rr and fr == rl and abs(fl - fr) == np.pi


def test_gains_of_motors_come_from_their_limits(four_legs):
    robot = read_robot(four_legs)
    assert not robot.servo.any() and np.all(robot.force == 2)
    # an error of 0.6 rad gives the greatest force: kp * gear * 0.6 = 2
    assert np.allclose(robot.kp * 5 * 0.6, 2)
    assert np.all(robot.kd > 0)


def test_home_is_a_keyframe_if_there_is_one():
    key = '<keyframe><key name="other"/><key name="home" qpos="0 0 .4 1 0 0 0 .3 .3 .3 .3"/></keyframe>'
    robot = read_robot(jaxsim.load_model(robot_text(extra=key)))
    assert np.allclose(robot.home[7:], 0.3)


def test_joints_outside_of_their_range_start_in_its_middle():
    robot = read_robot(jaxsim.load_model(robot_text(leg=LEG.replace("-60 60", "10 50"))))
    assert np.allclose(robot.home[7:], np.deg2rad(30))


BAD = {
    "no free joint": (robot_text(root=""), {}, "no free joint"),
    "no floor": (robot_text(floor=""), {}, "no floor.*floor=True"),
    "no such foot": (robot_text(), {"feet": ["toe"]}, "no geom or body 'toe'.*'fl_foot'"),
    "one text of feet": (robot_text(), {"feet": "fl_foot"}, "expected a list of names"),
    "a foot that is the floor": (robot_text(), {"feet": ["floor"]}, "'floor' cannot touch the floor"),
    "torso without free joint": (robot_text(), {"torso": "fl_leg"}, "'fl_leg' has no free joint.*'trunk'"),
    "negative gains": (robot_text(), {"gains": (-1, 0)}, "not negative"),
    "home of another size": (robot_text(), {"home": [0, 0, 1]}, r"shape \(11,\), got shape \(3,\)"),
    "phases for two feet": (robot_text(), {"phase": [0, 1]}, "2 entries for 4 feet"),
    "lies on its trunk": (robot_text(leg=LEG.replace("0 0 -.2", ".2 0 0")), {}, "torso 'trunk' touches the ground"),
    "motors without limits": (
        robot_text(actuator='<motor joint="{0}"/>'),
        {},
        "no ctrlrange or forcerange",
    ),
    "unknown reward": (robot_text(), {"rewards": {"feet_airtime": 1}}, "did you mean 'feet_air_time'"),
    "tracking switched off": (robot_text(), {"rewards": {"tracking_lin_vel": 0}}, "are positive"),
    "no history": (robot_text(), {"history": 0}, "at least one frame"),
    "collisions": (robot_text(), {"collisions": "toes"}, 'expected "all" or "feet"'),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_named(case):
    text, settings, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        envs.locomotion(text, **settings)


def test_actuators_that_cannot_follow_a_target_are_refused():
    text = robot_text(actuator='<velocity joint="{0}" kv="1" {1}/>')
    with pytest.raises(jaxsim.UnsupportedError, match="position servos, and motors on joints"):
        envs.locomotion(text)


def test_a_floor_is_added_where_asked_and_a_terrain_takes_its_place():
    flat = envs.locomotion(robot_text(floor=""), floor=True, randomization=None)
    rough = envs.locomotion(robot_text(), terrain=0.1, randomization=None)
    assert flat.model.geom_type.tolist().count(0) == 1
    assert rough.model.geom_type.tolist().count(1) == 1 and not rough.model.geom_type.tolist().count(0)
    assert np.isclose(np.ptp(rough.model.hfield_data) * rough.model.hfield_size[0, 2], 0.1)


def test_only_feet_and_torso_collide_where_asked():
    m = envs.locomotion(robot_text(), collisions="feet", randomization=None).model
    able = [m.id2name("geom", g) for g in range(m.ngeom) if m.geom_contype[g]]
    assert able == ["floor", "trunk", "fl_foot", "fr_foot", "rl_foot", "rr_foot"]


def test_sizes_of_observations_follow_velocity_and_history():
    def size(**settings):
        return envs.locomotion(robot_text(), randomization=None, **settings).observation_size["state"]

    one = 3 + 3 + 3 + 4 + 4 + 4  # velocity, gyro, gravity, angles, rates, action
    assert size() == (one + 5,)
    assert size(history=3) == (3 * one + 5,)
    assert size(observe_velocity=False, gait=0.0) == (one - 3 + 3,)


def perfect(n=4):
    """Motion that follows its command in the home pose."""
    zero, still = jnp.zeros(3), jnp.zeros(n)
    command = jnp.array([0.5, -0.2, 0.3])
    none = dict.fromkeys(("angles", "rates", "beyond", "effort", "action", "change", "jerk", "foot_speed", "landed"))
    fields = {name: still for name in none}
    one = jnp.ones(())
    return rewards.Motion(
        **fields,
        velocity=command.at[2].set(0),
        gyro=zero.at[2].set(0.3),
        up=zero.at[2].set(1),
        command=command,
        height=one,
        contact=jnp.ones(n),
        foot_height=still,
        lift=still,
        moving=one,
        failed=jnp.zeros((), bool),
    )


def test_perfect_tracking_has_the_highest_reward_and_no_penalty():
    terms = rewards.reward_terms(perfect(), 0.25)
    for name in ("tracking_lin_vel", "tracking_ang_vel", "feet_phase", "alive"):
        assert np.isclose(terms.pop(name), 1)
    assert all(float(x) == 0 for x in terms.values())


@pytest.mark.parametrize(
    ("change", "name", "value"),
    [
        ({"velocity": jnp.array([0.5, 0.3, 0.0])}, "tracking_lin_vel", np.exp(-1.0)),
        ({"gyro": jnp.array([0, 0, 0.8])}, "tracking_ang_vel", np.exp(-1.0)),
        ({"velocity": jnp.array([0.5, -0.2, 0.4])}, "lin_vel_z", 0.16),
        ({"up": jnp.array([0.6, 0.0, 0.8])}, "orientation", 0.36),
        ({"height": jnp.array(0.5)}, "base_height", 0.25),
        ({"effort": jnp.full(4, 0.5)}, "torques", 0.25),
        ({"change": jnp.full(4, 2.0)}, "action_rate", 4.0),
        ({"foot_speed": jnp.full(4, 2.0), "contact": jnp.array([1.0, 0, 0, 0])}, "feet_slip", 1.0),
        ({"landed": jnp.array([0.5, 0, 0, 0])}, "feet_air_time", 0.3),
        ({"lift": jnp.array([1.0, 1, -1, -1])}, "feet_phase", np.exp(-2.0)),
        ({"failed": jnp.ones((), bool)}, "termination", 1.0),
    ],
)
def test_a_reward_of_a_recorded_motion(change, name, value):
    assert np.isclose(rewards.reward_terms(perfect()._replace(**change), 0.25)[name], value)


def test_randomised_models_stay_within_their_ranges(four_legs):
    ranges = dataclasses.replace(randomize.NONE, friction=(0.5, 1.5), mass=(0.8, 1.2), centre=0.01, gains=(0.7, 1.3))
    draw = randomize.model_randomizer(read_robot(four_legs), ranges)
    drawn = jax.vmap(lambda k: draw(four_legs, k))(jax.random.split(jax.random.key(0), 64))

    def ratio(name):
        old = np.asarray(getattr(four_legs, name))
        return np.asarray(getattr(drawn, name))[:, old != 0] / old[old != 0]

    for name, low, high in (("body_mass", 0.8, 1.2), ("actuator_gainprm", 0.7, 1.3)):
        assert low <= ratio(name).min() < 0.9 and 1.1 < ratio(name).max() <= high
    friction = np.asarray(drawn.geom_friction / four_legs.geom_friction)
    assert np.all(friction[..., 1:] == 1) and np.ptp(friction[..., 0]) > 0.8
    moved = np.asarray(drawn.body_ipos - four_legs.body_ipos)
    assert np.abs(moved[:, 1]).max() <= 0.01 and not moved[:, 2:].any()


def test_no_randomisation_leaves_the_model_alone():
    assert not randomize.changes_model(randomize.NONE) and randomize.changes_model(envs.Randomization())


def test_the_robot_stands_under_zero_actions(env):
    state = jax.jit(env.reset)(jax.random.key(0))
    state = state.replace(info={**state.info, "command": jnp.zeros(3)})
    step = jax.jit(env.step)
    for _ in range(25):
        state = step(state, jnp.zeros(4))
        assert not state.done
    assert float(state.metrics["tracking"]) > 0.9
    assert np.all(state.info["air_time"] == 0)  # all feet touch the floor
    assert np.allclose(state.obs["state"][3 + 6 : 3 + 10], state.data.qpos[7:] - env.robot.home[7:], atol=1e-6)


def test_targets_are_filtered_and_of_limited_speed(env):
    slow = envs.locomotion(env.model, action_rate=2.0, randomization=None)
    soft = envs.locomotion(env.model, action_filter=0.75, randomization=None)
    data = jaxsim.make_data(env.model)
    info = {"target": jnp.asarray(env.robot.target)}
    moved = [np.asarray(e.control(data, jnp.ones(4), info) - info["target"]) / 5 for e in (env, slow, soft)]
    assert np.allclose(moved[0], 0.4) and np.allclose(moved[1], 2.0 * 0.02) and np.allclose(moved[2], 0.1)
