"""The tasks: shapes, documented rewards, and scripted policies that beat random ones."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import envs, stages
from jaxsim.envs.tasks.rewards import ramp
from tests.envs.policies import POLICIES

NAMES = envs.names()  # before the pages' examples register theirs
TASKS = [name for name in NAMES if name in POLICIES]
# with the class and the model of another task: shapes are the same
ALIKE = ("walker_stand", "walker_run", "humanoid_stand", "humanoid_run", "hopper_stand", "cartpole_swingup_vision")
ALIKE += ("quadruped_joystick_rough",)


def test_every_task_has_a_policy():
    assert {n for n in NAMES if not n.startswith("test_")} - {"stub"} == set(POLICIES)


@pytest.mark.parametrize("name", [pytest.param(x, marks=[pytest.mark.slow] if x in ALIKE else []) for x in TASKS])
def test_shapes_and_types_of_a_task(name):
    env = envs.make(name)
    first = jax.eval_shape(env.reset, jax.random.key(0))
    action = jax.ShapeDtypeStruct((env.action_size,), first.reward.dtype)
    second = jax.eval_shape(env.step, first, action)
    assert jax.tree.structure(first) == jax.tree.structure(second)
    kinds = ([(x.shape, x.dtype) for x in jax.tree.leaves(state)] for state in (first, second))
    assert next(kinds) == next(kinds)
    sizes = env.observation_size
    assert sizes == ({k: x.shape for k, x in first.obs.items()} if isinstance(sizes, dict) else first.obs.shape[0])
    assert first.reward.shape == ()


@pytest.mark.parametrize("name", TASKS)
def test_documented_sizes_are_those_of_the_environment(name):
    """A page that gives a size gives the right one; one that serves several models counts actuators."""
    env = envs.make(name)
    text = " ".join(f"{type(env).__doc__} {type(env.unwrapped).__doc__}".split())
    if isinstance(env.observation_size, dict):
        assert "Observation, a mapping." in text
        return
    observation = re.search(r"Observation(?: \((\d+)\))?: ", text)
    assert observation and int(observation[1] or env.observation_size) == env.observation_size
    action = re.search(r"Action(?: \((\d+)\): |: one entry for each (?:actuator|motor))", text)
    assert int(action[1] or env.model.nu) == env.action_size if action else observation[1]
    assert re.search(r"Reward(, at most 1)?: .{30}", text)


def returns(env, policy, nworld=8, nstep=100):
    """Mean return of first episodes, cut off after `nstep` actions."""
    batch = envs.wrap(env)
    step, state = jax.jit(batch.step), jax.jit(batch.reset)(jax.random.split(jax.random.key(3), nworld))
    alive, total = np.ones(nworld), np.zeros(nworld)
    most = 1 + 1e-6 if "Reward, at most 1:" in " ".join(type(env.unwrapped).__doc__.split()) else np.inf
    for k in range(nstep):
        state = step(state, jnp.asarray(policy(env, state, k), state.reward.dtype))
        total += alive * np.asarray(state.reward)
        alive *= 1 - np.asarray(state.done)
        assert all(np.isfinite(x).all() for x in jax.tree.leaves(state.obs)) and not np.any(state.info["diverged"])
        assert np.isfinite(state.reward).all() and np.max(state.reward) <= most
    return total.mean()


def random_policy(env, state, k):
    return np.random.default_rng(k).uniform(-1, 1, (len(state.reward), env.action_size))


@pytest.mark.usefixtures("float32")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n != "cartpole_balance" else []) for n in TASKS]
)
def test_scripted_policy_beats_a_random_one(name):
    env = envs.make(name, spread=0.005) if name == "cube_pick" else envs.make(name)
    nstep = 200 if "cartpole" in name else 100
    scripted, chance = (returns(env, p, nstep=nstep) for p in (POLICIES[name], random_policy))
    print(f"{name}: scripted {scripted:.2f}, random {chance:.2f}")
    assert scripted > 1.1 * chance and scripted > chance + 0.2


@pytest.mark.parametrize("name", ["ant_run", "humanoid_walk"])
def test_a_task_along_an_axis_of_the_world_shows_where_the_robot_faces(name):
    """Without it, running along x is a matter of luck as soon as the robot has turned."""
    env = envs.make(name)
    data, info = env.initial(jax.random.key(0))
    turned = data.replace(qpos=data.qpos.at[3:7].set(jnp.array([np.cos(0.6), 0, 0, np.sin(0.6)])))
    still = [d.replace(qvel=0 * d.qvel) for d in (data, turned)]
    before, after = (np.asarray(env.observe(d, info)) for d in still)
    np.testing.assert_allclose(after[1:4], [np.cos(1.2), -np.sin(1.2), 0], atol=1e-6)
    np.testing.assert_allclose(np.delete(after, slice(1, 4)), np.delete(before, slice(1, 4)), atol=0.2)


def test_a_ramp_has_a_derivative_below_its_foot_and_none_above_its_top():
    value, slope = jax.vmap(jax.value_and_grad(lambda x: ramp(x, 1.0, 3.0)))(jnp.array([0.0, 2.0, 4.0]))
    np.testing.assert_allclose(value, [0, 0.5, 1])
    np.testing.assert_allclose(slope, [0.5, 0.5, 0])


@pytest.fixture(scope="module")
def picking():
    """The task of picking, and its data at the keyframes "grasp" and "ready" with contacts."""
    env = envs.make("cube_pick", held=0.5)

    def at(name):
        data = jaxsim.make_data(env.model, keyframe=name)
        return stages.collision(env.model, stages.com_pos(env.model, stages.kinematics(env.model, data)))

    return env, at("grasp"), at("ready")


def test_a_cube_counts_as_lifted_while_both_fingers_hold_it(picking):
    env, held, free = picking
    adr = env.model.jnt_qposadr[env.model.name2id("joint", "cube")] + 2

    def terms(data, height):
        z = env.table + 0.025 + height
        return env.score(data, data.replace(qpos=data.qpos.at[adr].set(z)), jnp.zeros(8), {})

    for height, lifted, picked in ((0.03, 0.25, 0), (0.099, 0.825, 0), (0.101, 0.101 / 0.12, 1), (0.2, 1, 1)):
        reward, found = terms(held, height)
        assert found["grasped"] == 1 and found["picked"] == picked
        assert np.isclose(found["lifted"], lifted, rtol=1e-4)
        assert np.isclose(reward, 0.15 * found["near"] + 0.15 + 0.7 * lifted, rtol=1e-4)
        reward, found = terms(free, height)
        assert found["grasped"] == found["lifted"] == found["picked"] == 0 and np.isclose(reward, 0.15 * found["near"])


def test_a_share_of_episodes_starts_with_the_cube_in_the_gripper(picking):
    env = picking[0]
    data, info = jax.vmap(env.initial)(jax.random.split(jax.random.key(0), 200))
    poses = jax.vmap(env.prepare)(data)
    grip = poses.site_xpos[:, env.model.name2id("site", "grip")]
    cube = np.asarray(data.qpos[:, 8:11])
    held = np.linalg.norm(grip - cube, axis=1) < 0.02
    assert 0.35 < held.mean() < 0.65
    assert np.all(data.qpos[held][:, 6:8] < 0.02) and np.all(data.qpos[~held][:, 6:8] > 0.03)
    assert np.ptp(cube[held][:, 1]) > 0.03 and np.abs(cube[:, 1]).max() < 0.031
    assert np.array_equal(data.ctrl, info["target"])


@pytest.fixture(scope="module")
def joystick():
    """The task, a state in which all feet are on the ground, and the indices of its feet."""
    env = envs.make("quadruped_joystick")
    data, info = env.initial(jax.random.key(0))
    feet = np.array([env.model.name2id("geom", name) for name in env.config.feet])
    on_ground = data.replace(geom_xpos=data.geom_xpos.at[feet, 2].set(0.024))
    return env, on_ground, {**info, "phase": jnp.asarray(np.pi / 2)}, feet


@pytest.mark.parametrize(
    ("command", "raised", "step"),
    [
        (0.5, [0, 3], 1.0),  # the clock lifts these two by the height of a step
        (0.5, [], np.exp(-2)),  # half of the feet are a whole step too low
        (0.5, [1, 2], np.exp(-4)),
        (0.0, [], 1.0),
        (0.0, [0, 3], np.exp(-2)),
    ],
)
def test_a_step_counts_as_far_as_the_feet_follow_the_clock(joystick, command, raised, step):
    env, data, info, feet = joystick
    data = data.replace(geom_xpos=data.geom_xpos.at[feet[raised], 2].add(env.config.swing))
    info = {**info, "command": jnp.array([command, 0.0, 0.0])}
    _, terms = env.score(data, data, jnp.zeros(12), info)
    np.testing.assert_allclose(terms["step"], step, rtol=1e-5)


def test_a_robot_that_moves_as_commanded_has_the_highest_reward(joystick):
    env, data, info, feet = joystick
    velocity = jnp.zeros(18).at[:6].set(jnp.array([0.5, 0.2, 0.0, 0.0, 0.0, 0.3]))
    xpos = data.geom_xpos.at[feet[np.array([0, 3])], 2].add(env.config.swing)
    qpos = data.qpos.at[3:7].set(jnp.array([1.0, 0.0, 0.0, 0.0]))
    moving = data.replace(qpos=qpos, qvel=velocity, geom_xpos=xpos)
    command = {**info, "command": jnp.array([0.5, 0.2, 0.3])}
    reward, _ = env.score(data, moving, jnp.zeros(12), command)
    np.testing.assert_allclose(reward, 2.5, rtol=1e-6)
    slower, terms = env.score(data, moving.replace(qvel=velocity.at[0].add(0.4)), jnp.zeros(12), command)
    np.testing.assert_allclose(terms["follow"], np.exp(-1), rtol=1e-5)
    np.testing.assert_allclose(slower, 1.5 + np.exp(-1), rtol=1e-5)
