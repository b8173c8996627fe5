"""Manipulation: an arm that reaches a point and picks up a cube, and a hand that turns a cube."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.envs.base import Config, Env, Info
from jaxsim.envs.rewards import ramp, within
from jaxsim.math.rotation import quat_conj, quat_mul, quat_rotate, quat_to_rotvec
from jaxsim.math.safe import Array, norm


@dataclasses.dataclass(frozen=True)
class ArmConfig(Config):
    """`step_size`: rad (fingers: 0.02 of it in m) by which one action moves a target. `spread`: of cubes and joints.

    `low`, `high`: the box from which goals of the reaching task are drawn, m. `lift`: height that counts as picked, m.
    """

    model: Any = "arm_gripper.xml"
    ctrl_dt: float = 0.04
    episode_length: int = 150
    step_size: float = 0.1
    spread: float = 0.03
    low: tuple[float, float, float] = (0.25, -0.25, 0.5)
    high: tuple[float, float, float] = (0.55, 0.25, 0.8)
    lift: float = 0.1


class Arm(Env):
    """What both tasks of the arm share: actions move the servos' targets by at most `step_size` a step.

    Action (8): six joints, then the two fingers, each in [-1, 1].
    """

    def __init__(self, config: ArmConfig):
        super().__init__(config)
        m = self.model
        key = m.keyframe("ready")
        self._start, self._ctrl = m.key_qpos[key], m.key_ctrl[key]
        self._grip, self._cube = m.name2id("site", "grip"), m.name2id("body", "cube")
        self._scale = config.step_size * np.array([1, 1, 1, 1, 1, 1, 0.02, 0.02])
        self._cube_adr = int(m.jnt_qposadr[m.name2id("joint", "cube")])

    def initial(self, rng: Array) -> tuple[Data, Info]:
        """The arm about its ready pose, the cube about the middle of the table."""
        d = jaxsim.make_data(self.model)
        joints, cube, goal = jax.random.split(rng, 3)
        spread, real = self.config.spread, d.qpos.dtype
        arm = spread * jax.random.uniform(joints, (6,), real, -1, 1)
        where = spread * jax.random.uniform(cube, (2,), real, -1, 1)
        adr = np.arange(self._cube_adr, self._cube_adr + 2)
        qpos = self._start.at[:6].add(arm).at[adr].add(where)
        info = {"target": self._ctrl.at[:6].add(arm), "goal": self._draw_goal(goal, real)}
        return d.replace(qpos=qpos, ctrl=info["target"]), info

    def prepare(self, data: Data) -> Data:
        """Positions are all that is read."""
        return jaxsim.kinematics(self.model, data)

    def _draw_goal(self, rng: Array, real: Any) -> Array:
        low, high = (np.asarray(x, real) for x in (self.config.low, self.config.high))
        return low + jax.random.uniform(rng, (3,), real) * (high - low)

    def _moved(self, action: Array, target: Array) -> Array:
        step = self._scale.astype(action.dtype) * jnp.clip(action, -1, 1)
        return jnp.clip(target + step, self._low.astype(action.dtype), self._high.astype(action.dtype))

    def control(self, data: Data, action: Array, info: Info) -> Array:
        """The targets, moved by the action."""
        return self._moved(action, info["target"])

    def update(self, data: Data, action: Array, info: Info, rng: Array) -> Info:
        """The targets, as the servos got them."""
        return {**info, "target": data.ctrl}

    def _arm(self, data: Data, info: Info) -> list[Array]:
        joints = np.arange(8)
        return [data.qpos[joints], data.qvel[joints] / 3, info["target"] - data.qpos[joints]]


class Reach(Arm):
    """Bring the grip to a point in the air.

    Observation (30): joint positions, velocities, targets less positions (8 each), the grip's position, the goal less
    that. Reward, at most 1: 0.8 bell(distance, 0.3 m) + 0.2 bell(distance, 0.04 m).
    """

    def observe(self, data: Data, info: Info) -> Array:
        """See the class."""
        grip = data.site_xpos[self._grip]
        return jnp.concatenate([*self._arm(data, info), grip, info["goal"] - grip])

    def score(self, before: Data, data: Data, action: Array, info: Info) -> tuple[Array, dict[str, Array]]:
        """See the class."""
        distance = norm(data.site_xpos[self._grip] - info["goal"])
        reward = 0.8 * within(distance, margin=0.3) + 0.2 * within(distance, margin=0.04)
        return reward, {"distance": distance, "near": (distance < 0.05).astype(distance.dtype)}


class Pick(Arm):
    """Grasp the cube and lift it.

    Observation (36): the arm (24), the grip's position, the cube's position less that, its rotation vector, its height
    above the table, the openings' sum, and its speed. Reward, at most 1: 0.25 bell(grip to cube, 0.2 m) + 0.15 closed
    around it + 0.6 lifted / `lift`, the last only with the grip within 5 cm of the cube. The episode ends where the
    cube falls off the table.
    """

    table = 0.40

    def _cube_height(self, data: Data) -> Array:
        return data.qpos[self._cube_adr + 2] - self.table - 0.025

    def observe(self, data: Data, info: Info) -> Array:
        """See the class."""
        grip, cube = data.site_xpos[self._grip], data.qpos[self._cube_adr : self._cube_adr + 3]
        turn = quat_to_rotvec(data.qpos[self._cube_adr + 3 : self._cube_adr + 7])
        more = jnp.stack([self._cube_height(data), data.qpos[6] + data.qpos[7], norm(data.qvel[8:11])])
        return jnp.concatenate([*self._arm(data, info), grip, cube - grip, turn, more])

    def score(self, before: Data, data: Data, action: Array, info: Info) -> tuple[Array, dict[str, Array]]:
        """See the class."""
        cube = data.qpos[self._cube_adr : self._cube_adr + 3]
        distance = norm(data.site_xpos[self._grip] - cube)
        held = distance < 0.05
        near = within(distance, margin=0.2)
        closed = jnp.where(held, 1 - ramp(data.qpos[6] + data.qpos[7], 0.035, 0.06), 0)
        lifted = jnp.where(held, ramp(self._cube_height(data), 0.005, self.config.lift), 0)
        terms = {"near": near, "closed": closed, "lifted": lifted}
        return 0.25 * near + 0.15 * closed + 0.6 * lifted, terms

    def failed(self, data: Data, info: Info) -> Array:
        """The cube fell."""
        return self._cube_height(data) < -0.1


@dataclasses.dataclass(frozen=True)
class HandConfig(Config):
    """`turn`: greatest angle in rad of a goal about the vertical. `reached`: angle within which a goal is met.

    `action_scale`: rad of joint angle about the keyframe "hold".
    """

    model: Any = "hand.xml"
    ctrl_dt: float = 0.05
    episode_length: int = 400
    action_scale: float = 0.6
    turn: float = np.pi
    reached: float = 0.2
    fail_height: float = 0.29


class Reorient(Env):
    """Turn the cube in the hand to a goal about the vertical; a new goal is drawn whenever one is met.

    Observation (51): joint angles and velocities (12 each), the cube's position about the palm's middle and its
    velocity (3 each), its up axis (3), the missing rotation as a rotation vector (3), its turning rates (3), the last
    action (12). Action (12): joint angles about the hold.
    Reward: progress of the angle towards the goal in rad, + 2 where the goal is met, + 0.05 bell(cube from the middle,
    3 cm), - 0.002 mean squared action, - 2 where the cube is dropped, which ends the episode.
    """

    def __init__(self, config: HandConfig):
        super().__init__(config)
        m = self.model
        key = m.keyframe("hold")
        self._start, self._hold = m.key_qpos[key], m.key_ctrl[key]
        self._middle = np.array([0.0, 0.0, 0.345])

    def initial(self, rng: Array) -> tuple[Data, Info]:
        """The hold, the cube turned at random about the vertical by up to a quarter of a right angle."""
        d = jaxsim.make_data(self.model)
        joints, turn, goal = jax.random.split(rng, 3)
        real = d.qpos.dtype
        angle = jax.random.uniform(turn, (), real, -1, 1) * jnp.pi / 8
        qpos = self._start.at[:12].add(0.05 * jax.random.uniform(joints, (12,), real, -1, 1))
        qpos = qpos.at[15:19].set(_about_vertical(angle))
        goal = self._draw_goal(goal, real)
        left = norm(quat_to_rotvec(quat_mul(goal, quat_conj(qpos[15:19]))))
        zero = jnp.zeros((), real)
        info = {"goal": goal, "left": left, "progress": zero, "met": zero, "last_action": jnp.zeros(12, real)}
        return d.replace(qpos=qpos, ctrl=self._hold), info

    def prepare(self, data: Data) -> Data:
        """Positions are all that is read."""
        return jaxsim.kinematics(self.model, data)

    def _draw_goal(self, rng: Array, real: Any) -> Array:
        return _about_vertical(self.config.turn * jax.random.uniform(rng, (), real, -1, 1))

    def control(self, data: Data, action: Array, info: Info) -> Array:
        """Joint angles about the hold."""
        target = self._hold + self.config.action_scale * jnp.clip(action, -1, 1)
        return jnp.clip(target, self._low.astype(target.dtype), self._high.astype(target.dtype))

    def _missing(self, data: Data, goal: Array) -> Array:
        return quat_to_rotvec(quat_mul(goal, quat_conj(data.qpos[15:19])))

    def update(self, data: Data, action: Array, info: Info, rng: Array) -> Info:
        """Progress, and a new goal where the old one is met."""
        left = norm(self._missing(data, info["goal"]))
        met = left < self.config.reached
        goal = jnp.where(met, self._draw_goal(rng, left.dtype), info["goal"])
        new = {
            "goal": goal,
            "left": norm(self._missing(data, goal)),
            "progress": info["left"] - left,
            "met": met,
            "last_action": jnp.clip(action, -1, 1),
        }
        return {**info, **new}

    def observe(self, data: Data, info: Info) -> Array:
        """See the class."""
        up = quat_rotate(data.qpos[15:19], jnp.array([0.0, 0.0, 1.0], data.qpos.dtype))
        cube = (data.qpos[12:15] - self._middle.astype(data.qpos.dtype)) * 20
        rates = jnp.clip(data.qvel[:12] / 10, -5, 5)
        turning = jnp.clip(data.qvel[15:18] / 5, -5, 5)
        missing = self._missing(data, info["goal"])
        parts = [data.qpos[:12], rates, cube, data.qvel[12:15], up, missing, turning, info["last_action"]]
        return jnp.concatenate(parts)

    def score(self, before: Data, data: Data, action: Array, info: Info) -> tuple[Array, dict[str, Array]]:
        """See the class."""
        away = norm(data.qpos[12:15] - self._middle.astype(data.qpos.dtype))
        terms = {
            "progress": info["progress"],
            "met": 2.0 * info["met"],
            "kept": 0.05 * within(away, margin=0.03),
            "effort": -0.002 * jnp.mean(jnp.square(jnp.clip(action, -1, 1))),
            "dropped": -2.0 * self.failed(data, info),
        }
        return sum(terms.values()), terms

    def failed(self, data: Data, info: Info) -> Array:
        """The cube left the hand."""
        return data.qpos[14] < self.config.fail_height


def _about_vertical(angle: Array) -> Array:
    zero = jnp.zeros_like(angle)
    return jnp.stack([jnp.cos(angle / 2), zero, zero, jnp.sin(angle / 2)])
