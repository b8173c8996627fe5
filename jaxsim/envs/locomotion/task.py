"""A legged robot that follows a commanded velocity: the task, for any robot that `read_robot` can read."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.engine.step.rollout import step_of_state
from jaxsim.envs.base import Config, Info, KinematicEnv, State
from jaxsim.envs.locomotion import edit
from jaxsim.envs.locomotion.randomize import NONE, USUAL, Randomization
from jaxsim.envs.locomotion.rewards import DEFAULT_WEIGHTS, Motion, reward_terms, weights_of
from jaxsim.envs.locomotion.robot import REACH, Robot, read_robot
from jaxsim.math.rotation import quat_conj, quat_rotate
from jaxsim.math.safe import Array, norm

CTRL_DT = 0.02
SENSOR_NOISE = {"velocity": 0.1, "gyro": 0.2, "gravity": 0.03, "joints": 0.02, "rates": 0.5}


@dataclasses.dataclass(frozen=True)
class LocomotionConfig(Config):
    """Settings of `Locomotion`. `feet`, `torso`, `gains`, `home`, `phase`: see `read_robot`; None: read from the model.

    `ctrl_dt`: seconds between actions; None for the multiple of the time step that is nearest to 0.02 s.
    `command`: greatest forward and sideways speeds (m/s) and yaw rate (rad/s). `hold`: mean seconds of a command.
    `still`: share of commands to stand. `action_scale`: change of a joint's target for an action of one, rad (of the
    actuator's length, over its gear). `action_filter`: share of the last target that a new one keeps, 0 for none.
    `action_rate`: greatest speed of a target, rad/s, None for no limit.
    `history`: past frames in the observation. `noise`: factor of the sensors' noise, 0 for none. `observe_velocity`:
    whether the policy sees the trunk's velocity, as from a state estimator. `spread`: standard deviation of joint
    angles (rad) and velocities at the start. `gait`: steps per second of each foot, 0 for no clock and no gait.
    `foot_height`: of a swinging foot, as a share of the torso's height. `sigma`: width of the tracking rewards, m/s.
    `rewards`: weights by name that replace the default ones. `randomization`: None for none.
    `collisions`: "all", or "feet" for feet and torso alone. `floor`: whether to add a plane. `terrain`: height of a
    random ground in m, 0 for the model's own floor; `terrain_size`: half of its side, m; `terrain_seed`: its shape.
    `levels`: of a curriculum of terrain, 0 for none; `level`: at which worlds begin (see `TerrainCurriculum`).
    `fail_up`: cosine of tilt, and `fail_height`: share of the torso's height at home, below which an episode ends.
    `fail_contact`: whether it ends where the torso touches something.
    """

    model: Any = ""
    ctrl_dt: float | None = None
    feet: Sequence[str] | None = None
    torso: str | None = None
    gains: tuple[float, float] | None = None
    home: Any = None
    phase: Sequence[float] | None = None
    command: tuple[float, float, float] = (1.0, 0.4, 1.0)
    hold: float = 5.0
    still: float = 0.1
    action_scale: float = 0.4
    action_filter: float = 0.0
    action_rate: float | None = None
    history: int = 1
    noise: float = 1.0
    observe_velocity: bool = True
    spread: float = 0.05
    gait: float = 2.0
    foot_height: float = 0.2
    sigma: float = 0.25
    rewards: Mapping[str, float] | None = None
    randomization: Randomization | None = USUAL
    collisions: str = "all"
    floor: bool = False
    terrain: float = 0.0
    terrain_size: float = 8.0
    terrain_seed: int = 0
    levels: int = 0
    level: int = 0
    fail_up: float = 0.5
    fail_height: float = 0.5
    fail_contact: bool = True


def compile_robot(config: LocomotionConfig) -> tuple[Model, Robot]:
    """Compile the model of a config, with its floor, terrain and collisions, and read its robot."""
    parts = (config.feet, config.torso, config.gains, config.home, config.phase)
    if config.collisions not in ("all", "feet"):
        raise ValueError(f'collisions={config.collisions!r}: expected "all" or "feet"')
    if isinstance(config.model, Model):
        if config.floor or config.terrain or config.collisions != "all":
            raise ValueError("floor, terrain and collisions change the model's text: give a path, text or Spec")
        return config.model, read_robot(config.model, *parts)
    spec = edit.spec_of(config.model)
    edit.without_sensors(spec)
    if config.floor:
        edit.add_floor(spec)
    if config.terrain:
        edit.add_terrain(spec, config.terrain, config.terrain_size, config.terrain_seed)
    capacity = config.max_contacts, config.max_constraints
    m = jaxsim.load_model(spec, *capacity)
    robot = read_robot(m, *parts)
    if config.collisions == "feet":
        edit.feet_collide_only(spec, m, robot.torso, robot.feet)
        m = jaxsim.load_model(spec, *capacity)
    return m, robot


def _middle_and_half(m: Model, robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Middle and half of the range of each joint, infinite where it has none."""
    owner = {int(a): j for j, a in enumerate(m.jnt_qposadr)}
    joints = np.array([owner[int(a)] for a in robot.joints], int)
    low, high = np.asarray(m.jnt_range, float)[joints].T
    limited = np.asarray(m.jnt_limited, bool)[joints]
    return np.where(limited, (low + high) / 2, 0), np.where(limited, (high - low) / 2, np.inf)


class Locomotion(KinematicEnv):
    """Follow `info["command"]`: forward and sideways speeds and the yaw rate, in the torso's frame.

    Action: targets of all actuators about the home pose; motors follow them by PD control at every physics step.
    Observation, a mapping. "state" (what the robot knows, with noise): velocity in the torso's frame (unless
    `observe_velocity` is off), angular velocity, gravity, joint angles minus home, joint velocities, last action, with
    `history` frames the newest first; then the command and the gait's clock. "privileged_state" (for a critic): the
    same without noise or history, velocity, height, contacts and heights of the feet, friction, mass of the torso,
    latency. Rewards: see `jaxsim.envs.locomotion.rewards`. `metrics["tracking"]` is the tracking reward divided by its
    maximum.
    """

    config: LocomotionConfig

    def __init__(self, config: LocomotionConfig):
        m, robot = compile_robot(config)
        if config.ctrl_dt is None:
            timestep = float(m.opt.timestep) if config.sim_dt is None else config.sim_dt
            config = dataclasses.replace(config, ctrl_dt=max(1, round(CTRL_DT / timestep)) * timestep)
        super().__init__(dataclasses.replace(config, model=m))
        self.config, self.robot = config, robot
        self.weights = weights_of({**DEFAULT_WEIGHTS, **(config.rewards or {})})
        self.model = self._with_gains(self.model)
        self._trunk = np.flatnonzero(np.asarray(m.geom_bodyid) == robot.torso)
        self._gear = np.abs(np.asarray(m.actuator_gear, float)[:, 0])
        self._strength = np.where(np.isfinite(robot.force), robot.force, robot.kp * REACH * self._gear)
        middle, half = _middle_and_half(m, robot)
        self._soft_range = middle - 0.95 * half, middle + 0.95 * half
        self._gain = np.asarray(m.actuator_gainprm, float)[:, 0]
        if config.history < 1:
            raise ValueError(f"history={config.history}: the observation has at least one frame")

    @property
    def ranges(self) -> Randomization:
        """Ranges of randomisation, all empty where there is none."""
        return self.config.randomization or NONE

    def _with_gains(self, m: Model) -> Model:
        if self.config.gains is None:
            return m
        servo, (kp, kd) = self.robot.servo, (self.robot.kp, self.robot.kd)
        gain, bias = np.array(m.actuator_gainprm), np.array(m.actuator_biasprm)
        gain[servo, 0], bias[servo, 1], bias[servo, 2] = kp[servo], -kp[servo], -kd[servo]
        return m.replace(actuator_gainprm=gain, actuator_biasprm=bias)

    def initial(self, rng: Array) -> tuple[Data, Info]:
        """Start from the home pose at a random heading, with a first command, latency and phase of the gait."""
        robot, config = self.robot, self.config
        d = jaxsim.make_data(self.model)
        real = d.qpos.dtype
        pose, speed, turn, place, command, late, phase, sensor = jax.random.split(rng, 8)
        qpos = jnp.asarray(robot.home, real)
        noise = config.spread * jax.random.normal(pose, (len(robot.joints),), real)
        yaw = jax.random.uniform(turn, (), real, -np.pi, np.pi) / 2
        level = jnp.stack([jnp.cos(yaw), 0 * yaw, 0 * yaw, jnp.sin(yaw)])
        half = 0.7 * config.terrain_size if config.terrain else 1.0
        xy = half * jax.random.uniform(place, (2,), real, -1, 1)
        adr = robot.qpos
        qpos = qpos.at[robot.joints].add(noise).at[adr : adr + 2].set(xy)
        if config.terrain:
            qpos = qpos.at[adr + 2].add(self.model.hfield_size[0, 2].astype(real))  # above its highest point
        qpos = qpos.at[adr + 3 : adr + 7].set(level)
        dofs = np.concatenate([robot.qvel + np.arange(6), robot.dofs])
        qvel = d.qvel.at[dofs].set(config.spread * jax.random.normal(speed, (len(dofs),), real))
        nothing = jnp.zeros(self.action_size, real)
        target = jnp.asarray(robot.target, real)
        low, high = self.ranges.latency
        d = d.replace(qpos=qpos, qvel=qvel)
        filtered = np.asarray(self.model.actuator_actadr) >= 0
        if filtered.any():  # a filter starts at its target
            d = d.replace(act=d.act.at[self.model.actuator_actadr[filtered]].set(robot.target[filtered].astype(real)))
        info = {
            "command": self._draw_command(command, real),
            "last_action": nothing,
            "change": nothing,
            "jerk": nothing,
            "target": target,
            "latency": jax.random.uniform(late, (), real, low, high),
            "phase": jax.random.uniform(phase, (), real, 0, 2 * np.pi),
            "air_time": jnp.zeros(len(robot.feet), real),
            "landed": jnp.zeros(len(robot.feet), real),
            "pushed": jnp.zeros(2, real),
        }
        frame = self._frame(d, info, sensor)
        return d, {**info, "frames": jnp.broadcast_to(frame, (config.history, *frame.shape))}

    def _draw_command(self, rng: Array, real: Any) -> Array:
        draw, stand = jax.random.split(rng)
        command = np.asarray(self.config.command, real) * jax.random.uniform(draw, (3,), real, -1, 1)
        return jnp.where(jax.random.bernoulli(stand, self.config.still), 0, command)

    def step(self, state: State, action: Array) -> State:
        """Advance the state by one action; at random times the torso is pushed first."""
        ranges = self.ranges
        if ranges.push_every <= 0 or ranges.push <= 0:
            return super().step(state, action)
        key = jax.random.fold_in(state.info["rng"], 1)
        when, draw = jax.random.split(key)
        real = state.data.qvel.dtype
        push = jax.random.bernoulli(when, self.dt / ranges.push_every)
        push = push * jax.random.uniform(draw, (2,), real, -ranges.push, ranges.push)
        adr = self.robot.qvel
        data = state.data.replace(qvel=state.data.qvel.at[adr : adr + 2].add(push))
        return super().step(state.replace(data=data, info={**state.info, "pushed": push}), action)

    def control(self, data: Data, action: Array, info: Info) -> Array:
        """Compute targets (nu,) of the actuators, in units of their length: filtered, and of limited speed."""
        config = self.config
        scale = (config.action_scale * self._gear).astype(action.dtype)
        target = self.robot.target.astype(action.dtype) + scale * jnp.clip(action, -1, 1)
        old = info["target"]
        target = config.action_filter * old + (1 - config.action_filter) * target
        if config.action_rate is not None:
            most = (config.action_rate * self.dt * self._gear).astype(action.dtype)
            target = old + jnp.clip(target - old, -most, most)
        return target

    def physics(self, data: Data, control: Array, info: Info) -> Data:
        """Run the physics steps of an action: targets take effect late, motors follow them by PD control."""
        robot, m = self.robot, self.model
        dt = self.dt / self.n_substeps
        real = data.qpos.dtype
        motors = ~robot.servo
        joint = np.asarray(m.actuator_trnid)[:, 0]
        adr, dof = np.asarray(m.jnt_qposadr)[joint], np.asarray(m.jnt_dofadr)[joint]
        gear, kp, kd = (x.astype(real) for x in (np.asarray(m.actuator_gear, float)[:, 0], robot.kp, robot.kd))
        gain = np.where(motors, self._gain, 1).astype(real)
        force = robot.force.astype(real)

        def one(i: Array, data: Data) -> Data:
            target = jnp.where(i * dt < info["latency"], info["target"], control)
            if motors.any():
                wanted = kp * (target - gear * data.qpos[adr]) - kd * gear * data.qvel[dof]
                target = jnp.where(motors, jnp.clip(wanted, -force, force) / gain, target)
            return step_of_state(m, data.replace(ctrl=target))

        return jax.lax.fori_loop(0, self.n_substeps, one, data)

    def update(self, data: Data, action: Array, info: Info, rng: Array) -> Info:
        """Update `info`: the action, new targets, phases and contacts of feet, and at random times a new command."""
        when, draw, noise = jax.random.split(rng, 3)
        new = jax.random.bernoulli(when, self.dt / self.config.hold)
        command = jnp.where(new, self._draw_command(draw, data.qpos.dtype), info["command"])
        action = jnp.clip(action, -1, 1)
        change = action - info["last_action"]
        touching = self.touching(data)
        air = info["air_time"] + self.dt
        phase = info["phase"] + 2 * np.pi * self.config.gait * self.dt
        info = {
            **info,
            "command": command,
            "jerk": change - info["change"],
            "last_action": action,
            "change": change,
            "target": self.control(data, action, info),
            "phase": jnp.where(phase > 2 * np.pi, phase - 2 * np.pi, phase),
            "landed": touching * (air > 1.5 * self.dt) * air,
            "air_time": jnp.where(touching > 0, 0, air),
        }
        frame = self._frame(data, info, noise)
        return {**info, "frames": jnp.concatenate([frame[None], info["frames"][:-1]])}

    def touching(self, data: Data) -> Array:
        """Mark each foot that touches something with one, the others with zero."""
        return jnp.stack([self._in_contact(data, geoms) for geoms in self.robot.feet]).astype(data.qpos.dtype)

    def _in_contact(self, data: Data, geoms: np.ndarray) -> Array:
        contact = data.contact
        real = (jnp.arange(contact.dist.shape[0]) < data.ncon) & (contact.dist < 0)
        return (real[:, None] & jnp.isin(contact.geom, geoms)).any()

    def body_motion(self, data: Data) -> tuple[Array, Array, Array]:
        """Compute velocity, angular velocity and the world's up axis in the torso's frame."""
        robot = self.robot
        to_torso = quat_conj(data.qpos[robot.qpos + 3 : robot.qpos + 7])
        up = jnp.array([0.0, 0.0, 1.0], data.qpos.dtype)
        velocity = quat_rotate(to_torso, data.qvel[robot.qvel : robot.qvel + 3])
        return velocity, data.qvel[robot.qvel + 3 : robot.qvel + 6], quat_rotate(to_torso, up)

    def _joints(self, data: Data) -> tuple[Array, Array]:
        """Joint angles less home, and joint velocities."""
        robot = self.robot
        return data.qpos[robot.joints] - robot.home[robot.joints].astype(data.qpos.dtype), data.qvel[robot.dofs]

    def _frame(self, data: Data, info: Info, rng: Array | None) -> Array:
        """Current sensor values of the robot, scaled to about one; without a key there is no noise."""
        velocity, gyro, up = self.body_motion(data)
        angles, rates = self._joints(data)
        true = {"velocity": velocity, "gyro": gyro, "gravity": up, "joints": angles, "rates": rates}
        if not self.config.observe_velocity:
            true.pop("velocity")
        if self.config.noise and rng is not None:
            keys = jax.random.split(rng, len(true))
            true = {
                name: x + self.config.noise * SENSOR_NOISE[name] * jax.random.uniform(k, x.shape, x.dtype, -1, 1)
                for (name, x), k in zip(true.items(), keys, strict=True)
            }
        true["rates"] = jnp.clip(true["rates"] / 10, -5, 5)
        true["gyro"] = true["gyro"] / 2
        return jnp.concatenate([*true.values(), info["last_action"]])

    def _clock(self, info: Info) -> Array:
        """Cosine and sine of the gait's phase; nothing without a gait."""
        if not self.config.gait:
            return jnp.zeros(0, info["phase"].dtype)
        return jnp.stack([jnp.cos(info["phase"]), jnp.sin(info["phase"])])

    def observe(self, data: Data, info: Info) -> dict[str, Array]:
        """Compute the observation described in the class."""
        velocity, _, _ = self.body_motion(data)
        known = [info["command"], self._clock(info)]
        exact = self._frame(data, info, None)
        m, robot = self.model, self.robot
        friction = m.geom_friction[robot.foot_geoms, 0]
        hidden = [velocity, data.qpos[robot.qpos + 2 : robot.qpos + 3], self._foot_height(data), info["air_time"]]
        hidden += [friction, m.body_mass[robot.torso][None], info["latency"][None], info["pushed"]]
        real = data.qpos.dtype
        return {
            "state": jnp.concatenate([info["frames"].ravel(), *known]).astype(real),
            "privileged_state": jnp.concatenate([exact, *known, *hidden]).astype(real),
        }

    def _foot_height(self, data: Data) -> Array:
        """Height of each foot above the ground, over the height of a swing."""
        z = data.geom_xpos[self.robot.foot_geoms, 2]
        ground = z.min() if self.config.terrain else self.robot.foot_level.astype(z.dtype)
        return (z - ground) / (self.config.foot_height * self.robot.height)

    def _motion(self, before: Data, data: Data, info: Info) -> Motion:
        robot = self.robot
        real = data.qpos.dtype
        velocity, gyro, up = self.body_motion(data)
        angles, rates = self._joints(data)
        low, high = self._soft_range
        q = data.qpos[robot.joints]
        moved = data.geom_xpos[robot.foot_geoms, :2] - before.geom_xpos[robot.foot_geoms, :2]
        height = data.qpos[robot.qpos + 2] - (robot.home[robot.qpos + 2] - robot.height)
        still = jnp.zeros(len(robot.feet), real)
        return Motion(
            velocity=velocity,
            gyro=gyro,
            up=up,
            command=info["command"],
            height=jnp.ones((), real) if self.config.terrain else height / robot.height,
            angles=angles,
            rates=rates,
            beyond=jnp.maximum(low.astype(real) - q, 0) + jnp.maximum(q - high.astype(real), 0),
            effort=data.actuator_force / self._strength.astype(real),
            action=info["last_action"],
            change=info["change"],
            jerk=info["jerk"],
            contact=(info["air_time"] <= 0).astype(real),
            foot_height=self._foot_height(data),
            foot_speed=norm(moved) / self.dt,
            lift=jnp.sin(info["phase"] + robot.phase.astype(real)) if self.config.gait else still,
            landed=info["landed"],
            moving=(jnp.abs(info["command"]).max() > 0.05).astype(real),
            failed=self.failed(data, info),
        )

    def score(self, before: Data, data: Data, action: Array, info: Info) -> tuple[Array, dict[str, Array]]:
        """Sum the weighted rewards, clipped below at 0 so that ending an episode is never a gain; also return terms."""
        terms = reward_terms(self._motion(before, data, info), self.config.sigma)
        total = sum(w * terms[name] for name, w in self.weights.items())
        linear, angular = self.weights["tracking_lin_vel"], self.weights["tracking_ang_vel"]
        tracking = linear * terms["tracking_lin_vel"] + angular * terms["tracking_ang_vel"]
        kept = {name: terms[name] for name in self.weights}
        return jnp.maximum(total, 0), {**kept, "tracking": tracking / (linear + angular)}

    def off_terrain(self, data: Data) -> Array:
        """Return whether the robot is at the edge of a terrain."""
        adr = self.robot.qpos
        return jnp.abs(data.qpos[adr : adr + 2]).max() > 0.95 * self.config.terrain_size

    def failed(self, data: Data, info: Info) -> Array:
        """Return whether the torso tilted over, sank, or touches something, or the robot left a terrain."""
        config, robot = self.config, self.robot
        _, _, up = self.body_motion(data)
        bad = up[2] < config.fail_up
        if config.terrain:
            bad |= self.off_terrain(data)
        else:
            above = data.qpos[robot.qpos + 2] - (robot.home[robot.qpos + 2] - robot.height)
            bad |= above < config.fail_height * robot.height
        if config.fail_contact and len(self._trunk):
            bad |= self._in_contact(data, self._trunk)
        return bad
