"""Manipulation: an arm that reaches a point or lifts a cube, and a hand that turns a cube."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.envs.base import Config, Info, KinematicEnv
from jaxsim.envs.tasks.rewards import ramp, within
from jaxsim.math.rotation import axis_angle_to_quat, quat_conj, quat_mul, quat_rotate, quat_to_rotvec
from jaxsim.math.safe import Array, norm

VERTICAL = np.array([0.0, 0.0, 1.0], np.float32)


@dataclasses.dataclass(frozen=True)
class ArmConfig(Config):
    """`step_size`: greatest change of a position target by one action in rad (fingers: 0.02 of it in m).

    `spread`: half the range of initial joint angles (rad) and cube positions (m). `low`, `high`: corners in m of the
    box from which goals of the reaching task are drawn. `lift`: height in m at which the cube counts as picked.
    `held`: share of episodes of picking that start with the cube between the fingers.
    """

    model: Any = "arm_gripper.xml"
    ctrl_dt: float = 0.04
    episode_length: int = 150
    step_size: float = 0.1
    spread: float = 0.03
    low: tuple[float, float, float] = (0.25, -0.25, 0.5)
    high: tuple[float, float, float] = (0.55, 0.25, 0.8)
    lift: float = 0.1
    held: float = 0.0


class Arm(KinematicEnv):
    """Base of the arm's tasks: an action moves the position targets of the servos by at most `step_size`.

    Action (8): six joints, then the two fingers, each in [-1, 1].
    """

    config: ArmConfig

    def __init__(self, config: ArmConfig):
        super().__init__(config)
        m = self.model
        key = m.keyframe("ready").id
        self._start, self._ctrl = m.key_qpos[key], m.key_ctrl[key]
        self._grip = m.name2id("site", "grip")
        self._scale = config.step_size * np.array([1, 1, 1, 1, 1, 1, 0.02, 0.02])
        self._cube_adr = int(m.jnt_qposadr[m.name2id("joint", "cube")])

    def initial(self, rng: Array) -> tuple[Data, Info]:
        """Place the arm near its keyframe "ready", the cube near the middle of the table."""
        d = jaxsim.make_data(self.model)
        joints, cube, goal = jax.random.split(rng, 3)
        spread, real = self.config.spread, d.qpos.dtype
        arm = spread * jax.random.uniform(joints, (6,), real, -1, 1)
        offset = spread * jax.random.uniform(cube, (2,), real, -1, 1)
        adr = np.arange(self._cube_adr, self._cube_adr + 2)
        qpos = self._start.at[:6].add(arm).at[adr].add(offset)
        info = {"target": self._ctrl.at[:6].add(arm), "goal": self._draw_goal(goal, real)}
        return d.replace(qpos=qpos, ctrl=info["target"]), info

    def _draw_goal(self, rng: Array, real: Any) -> Array:
        low, high = (np.asarray(x, real) for x in (self.config.low, self.config.high))
        return low + jax.random.uniform(rng, (3,), real) * (high - low)

    def control(self, data: Data, action: Array, info: Info) -> Array:
        """Move the position targets by the action, within the control ranges."""
        target = info["target"] + self._scale.astype(action.dtype) * jnp.clip(action, -1, 1)
        return jnp.clip(target, self._low.astype(action.dtype), self._high.astype(action.dtype))

    def update(self, data: Data, action: Array, info: Info, rng: Array) -> Info:
        """Store the position targets in `info`."""
        return {**info, "target": data.ctrl}

    def _observe_arm(self, data: Data, info: Info) -> list[Array]:
        joints = np.arange(8)
        return [data.qpos[joints], data.qvel[joints] / 3, info["target"] - data.qpos[joints]]


class Reach(Arm):
    """Bring the gripper to a point in the air.

    Observation (30): joint positions, velocities, targets less positions (8 each), the gripper's position, the goal
    less that. Reward, at most 1: 0.8 g(distance, 0.3 m) + 0.2 g(distance, 0.04 m), where g is a Gaussian that is 0.1 at
    the second argument.
    """

    def observe(self, data: Data, info: Info) -> Array:
        """Compute the observation described in the class."""
        grip = data.site_xpos[self._grip]
        return jnp.concatenate([*self._observe_arm(data, info), grip, info["goal"] - grip])

    def score(self, before: Data, data: Data, action: Array, info: Info) -> tuple[Array, dict[str, Array]]:
        """Compute the reward described in the class, and its terms."""
        distance = norm(data.site_xpos[self._grip] - info["goal"])
        reward = 0.8 * within(distance, margin=0.3) + 0.2 * within(distance, margin=0.04)
        return reward, {"distance": distance, "near": (distance < 0.05).astype(distance.dtype)}


class Pick(Arm):
    """Grasp the cube and lift it.

    Observation (36): the arm (24), the gripper's position, the cube's position less that, the cube's rotation vector,
    its height above the table, the opening of the fingers, and the cube's speed. Reward, at most 1: 0.15 near + 0.15
    grasped + 0.7 lifted, with near = (g(distance of gripper and cube, 0.3 m) + g(distance, 0.06 m)) / 2, where g is a
    Gaussian that is 0.1 at the second argument; grasped: both fingers touch the cube; lifted: the height of a grasped
    cube over 1.2 `lift`, at most 1. `metrics["picked"]` is one where a grasped cube is at least `lift` high. The
    episode ends where the cube falls off the table.

    A share `held` of the episodes starts in the keyframe "grasp", turned about the vertical, so that lifting can be
    learnt before grasping.
    """

    table = 0.40

    def __init__(self, config: ArmConfig):
        super().__init__(config)
        m = self.model
        key = m.keyframe("grasp").id
        self._grasp, self._grasp_ctrl = m.key_qpos[key], m.key_ctrl[key]
        self._fingers = [m.name2id("geom", name) for name in ("right_finger", "left_finger")]
        self._cube_geom = m.name2id("geom", "cube")

    def initial(self, rng: Array) -> tuple[Data, Info]:
        """Place the arm near its keyframe "ready", or with the cube in its gripper."""
        d, info = super().initial(rng)
        if not self.config.held:
            return d, info
        held, turn = jax.random.split(jax.random.fold_in(rng, 1))
        qpos, target = self._grasped(turn)
        held = jax.random.bernoulli(held, self.config.held)
        target = jnp.where(held, target, info["target"])
        return d.replace(qpos=jnp.where(held, qpos, d.qpos), ctrl=target), {**info, "target": target}

    def _grasped(self, rng: Array) -> tuple[Array, Array]:
        """Positions and targets of the keyframe "grasp", turned so that the cube moves by `spread` at most."""
        cube = np.arange(self._cube_adr, self._cube_adr + 7)
        far = self._grasp[self._cube_adr]
        angle = self.config.spread / far * jax.random.uniform(rng, (), far.dtype, -1, 1)
        where = jnp.stack([far * jnp.cos(angle), far * jnp.sin(angle), self._grasp[self._cube_adr + 2]])
        pose = jnp.concatenate([where, axis_angle_to_quat(VERTICAL, angle)])
        return self._grasp.at[0].add(angle).at[cube].set(pose), self._grasp_ctrl.at[0].add(angle)

    def _touches_cube(self, data: Data, geom: int) -> Array:
        """Whether a geom touches the cube."""
        contact = data.contact
        real = (jnp.arange(contact.dist.shape[0]) < data.ncon) & (contact.dist < 0)
        pair = np.sort([geom, self._cube_geom])
        return (real & (jnp.sort(contact.geom, -1) == pair).all(-1)).any()

    def _cube_height(self, data: Data) -> Array:
        return data.qpos[self._cube_adr + 2] - self.table - 0.025

    def observe(self, data: Data, info: Info) -> Array:
        """Compute the observation described in the class."""
        grip, cube = data.site_xpos[self._grip], data.qpos[self._cube_adr : self._cube_adr + 3]
        rotation = quat_to_rotvec(data.qpos[self._cube_adr + 3 : self._cube_adr + 7])
        scalars = jnp.stack([self._cube_height(data), data.qpos[6] + data.qpos[7], norm(data.qvel[8:11])])
        return jnp.concatenate([*self._observe_arm(data, info), grip, cube - grip, rotation, scalars])

    def score(self, before: Data, data: Data, action: Array, info: Info) -> tuple[Array, dict[str, Array]]:
        """Compute the reward described in the class, and its terms."""
        cube = data.qpos[self._cube_adr : self._cube_adr + 3]
        distance = norm(data.site_xpos[self._grip] - cube)
        grasped = self._touches_cube(data, self._fingers[0]) & self._touches_cube(data, self._fingers[1])
        near = (within(distance, margin=0.3) + within(distance, margin=0.06)) / 2
        height = self._cube_height(data)
        terms = {
            "near": near,
            "grasped": grasped.astype(near.dtype),
            "lifted": jnp.where(grasped, ramp(height, 0.0, 1.2 * self.config.lift), 0),
            "picked": (grasped & (height >= self.config.lift)).astype(near.dtype),
        }
        return 0.15 * terms["near"] + 0.15 * terms["grasped"] + 0.7 * terms["lifted"], terms

    def failed(self, data: Data, info: Info) -> Array:
        """Return whether the cube fell off the table."""
        return self._cube_height(data) < -0.1


@dataclasses.dataclass(frozen=True)
class HandConfig(Config):
    """`turn`: greatest angle in rad of a goal about the vertical. `reached`: angle in rad within which it is reached.

    `action_scale`: rad of joint angle about the keyframe "hold". `fail_height`: height in m below which the cube was
    dropped.
    """

    model: Any = "hand.xml"
    ctrl_dt: float = 0.05
    episode_length: int = 400
    action_scale: float = 0.6
    turn: float = np.pi
    reached: float = 0.2
    fail_height: float = 0.29


class Reorient(KinematicEnv):
    """Turn the cube in the hand to a goal about the vertical; a new goal is drawn whenever one is reached.

    Observation (51): joint angles and velocities (12 each), the cube's position about the palm's middle and its
    velocity (3 each), its up axis (3), the rotation vector to the goal (3), its angular velocity (3), the last action
    (12). Action (12): joint angles about the keyframe "hold".
    Reward: decrease of the angle to the goal in rad, + 2 where the goal is reached, + 0.05 of a Gaussian of the cube's
    distance from the palm's middle that is 0.1 at 3 cm, - 0.002 mean squared action, - 2 where the cube is dropped,
    which ends the episode.
    """

    config: HandConfig

    def __init__(self, config: HandConfig):
        super().__init__(config)
        m = self.model
        key = m.keyframe("hold").id
        self._start, self._hold = m.key_qpos[key], m.key_ctrl[key]
        self._middle = np.array([0.0, 0.0, 0.345])

    def initial(self, rng: Array) -> tuple[Data, Info]:
        """Start from the keyframe "hold", with the cube at a random angle of up to 22.5 degrees about the vertical."""
        d = jaxsim.make_data(self.model)
        joints, turn, goal = jax.random.split(rng, 3)
        real = d.qpos.dtype
        angle = jax.random.uniform(turn, (), real, -1, 1) * jnp.pi / 8
        qpos = self._start.at[:12].add(0.05 * jax.random.uniform(joints, (12,), real, -1, 1))
        qpos = qpos.at[15:19].set(axis_angle_to_quat(VERTICAL, angle))
        goal = self._draw_goal(goal, real)
        d = d.replace(qpos=qpos, ctrl=self._hold)
        zero, missing = jnp.zeros((), real), norm(self._rotation_to(goal, d))
        info = {"goal": goal, "angle": missing, "progress": zero, "reached": zero, "last_action": jnp.zeros(12, real)}
        return d, info

    def _draw_goal(self, rng: Array, real: Any) -> Array:
        return axis_angle_to_quat(VERTICAL, self.config.turn * jax.random.uniform(rng, (), real, -1, 1))

    def control(self, data: Data, action: Array, info: Info) -> Array:
        """Add the scaled action to the joint angles of the keyframe "hold"."""
        target = self._hold + self.config.action_scale * jnp.clip(action, -1, 1)
        return jnp.clip(target, self._low.astype(target.dtype), self._high.astype(target.dtype))

    def _rotation_to(self, goal: Array, data: Data) -> Array:
        return quat_to_rotvec(quat_mul(goal, quat_conj(data.qpos[15:19])))

    def update(self, data: Data, action: Array, info: Info, rng: Array) -> Info:
        """Update `info` with the progress, and with a new goal where the old one is reached."""
        angle = norm(self._rotation_to(info["goal"], data))
        reached = angle < self.config.reached
        goal = jnp.where(reached, self._draw_goal(rng, angle.dtype), info["goal"])
        new = {
            "goal": goal,
            "angle": norm(self._rotation_to(goal, data)),
            "progress": info["angle"] - angle,
            "reached": reached,
            "last_action": jnp.clip(action, -1, 1),
        }
        return {**info, **new}

    def observe(self, data: Data, info: Info) -> Array:
        """Compute the observation described in the class."""
        up = quat_rotate(data.qpos[15:19], jnp.array([0.0, 0.0, 1.0], data.qpos.dtype))
        cube = (data.qpos[12:15] - self._middle.astype(data.qpos.dtype)) * 20
        rates = jnp.clip(data.qvel[:12] / 10, -5, 5)
        angular = jnp.clip(data.qvel[15:18] / 5, -5, 5)
        missing = self._rotation_to(info["goal"], data)
        parts = [data.qpos[:12], rates, cube, data.qvel[12:15], up, missing, angular, info["last_action"]]
        return jnp.concatenate(parts)

    def score(self, before: Data, data: Data, action: Array, info: Info) -> tuple[Array, dict[str, Array]]:
        """Compute the reward described in the class, and its terms."""
        distance = norm(data.qpos[12:15] - self._middle.astype(data.qpos.dtype))
        terms = {
            "progress": info["progress"],
            "reached": 2.0 * info["reached"],
            "kept": 0.05 * within(distance, margin=0.03),
            "effort": -0.002 * jnp.mean(jnp.square(jnp.clip(action, -1, 1))),
            "dropped": -2.0 * self.failed(data, info),
        }
        return sum(terms.values()), terms

    def failed(self, data: Data, info: Info) -> Array:
        """Return whether the cube left the hand."""
        return data.qpos[14] < self.config.fail_height
