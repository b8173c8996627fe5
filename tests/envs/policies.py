"""Scripted policies, one for each task: (env, state of a batch, index of the step) -> actions, on the host."""

import numpy as np


def hold(env, state, k):
    """Zero action: servos hold the stance."""
    return np.zeros((len(state.reward), env.action_size))


def posture(gain, damping, keyframe="stand"):
    """PD control of every joint to its angle in a keyframe."""

    def policy(env, state, k):
        m = env.model
        joints = m.actuator_trnid[:, 0]
        qadr, vadr = m.jnt_qposadr[joints], m.jnt_dofadr[joints]
        goal = np.asarray(m.key_qpos[m.keyframe(keyframe).id])[qadr]
        qpos, qvel = np.asarray(state.data.qpos)[:, qadr], np.asarray(state.data.qvel)[:, vadr]
        torque = gain * (goal - qpos) - damping * qvel
        return np.clip(torque / np.asarray(m.actuator_gear)[:, 0], -1, 1)

    return policy


def balance(env, state, k):
    """Linear feedback about the upright pole."""
    x, angle = np.asarray(state.data.qpos).T
    v, rate = np.asarray(state.data.qvel).T
    angle = (angle + np.pi) % (2 * np.pi) - np.pi
    return np.clip(6 * angle + 1.2 * rate + 0.3 * x + 0.6 * v, -1, 1)[:, None]


def swing_up(env, state, k):
    """Pump the pole's energy up to that of the upright one, then balance."""
    angle, rate = np.asarray(state.data.qpos)[:, 1], np.asarray(state.data.qvel)[:, 1]
    near = np.cos(angle) > 0.9
    missing = 2 * 9.81 * (1 - np.cos(angle)) * 0.75 - rate**2 / 1.0
    pump = np.clip(-0.5 * np.sign(rate * np.cos(angle)) * np.sign(missing), -1, 1)
    pump = pump - 0.3 * np.asarray(state.data.qpos)[:, 0]
    return np.where(near[:, None], balance(env, state, k), np.clip(pump, -1, 1)[:, None])


def gallop(env, state, k):
    """Swing the legs of the runner alternately."""
    phase = 2 * np.pi * 2.5 * env.dt * k
    wave = [np.sin(phase + p) for p in (0.0, 1.5, 2.5, 2.2, 3.7, 4.7)]
    return np.tile(wave, (len(state.reward), 1))


def reach(env, state, k):
    """Damped Jacobian steps of the joints that bring the gripper to the goal."""
    axis, anchor = np.asarray(state.data.xaxis), np.asarray(state.data.xanchor)
    grip = np.asarray(state.data.site_xpos)[:, env.model.name2id("site", "grip")]
    error = np.asarray(state.info["goal"]) - grip
    jacobian = np.cross(axis[:, :6], grip[:, None] - anchor[:, :6]).swapaxes(1, 2)  # (world, 3, 6)
    damped = jacobian @ jacobian.swapaxes(1, 2) + 0.01 * np.eye(3)
    step = np.einsum("wij,wi->wj", jacobian, np.linalg.solve(damped, error[..., None])[..., 0])
    action = np.zeros((len(error), 8))
    action[:, :6] = np.clip(0.5 * step / env.config.step_size, -1, 1)
    return action


def to_ball(env, state, k):
    """Transposed Jacobian of the tip, times what is missing to the ball, with damping."""
    data = state.data
    tip = np.asarray(data.site_xpos)[:, env.model.name2id("site", "tip")]
    error, away = np.asarray(data.mocap_pos)[:, 0] - tip, tip[:, None] - np.asarray(data.xanchor)
    torque = np.cross(away, error[:, None])[..., 2]
    return np.clip(100 * torque - 0.3 * np.asarray(data.qvel), -1, 1)


def push(env, state, k):
    """Towards the can, and on towards the post where it is near."""
    can, post = np.split(np.asarray(state.obs["privileged_state"])[:, 4:] / 5, 2, axis=1)
    near = np.linalg.norm(can, axis=1, keepdims=True) < 0.03
    return np.clip(10 * can + 5 * near * post, -1, 1)


def pick(env, state, k):
    """Descend around the cube, close, lift: through the controls of two keyframes."""
    m = env.model
    above, around = (np.asarray(m.key_ctrl[m.keyframe(n).id]) for n in ("ready", "grasp"))
    goal = np.where(k < 60, around, above)
    goal[6:] = 0.035 if k < 35 else 0.0
    if k < 35:
        goal[:6] = around[:6]
    return np.clip((goal - np.asarray(state.info["target"])) / env._scale, -1, 1)


def twist(env, state, k):
    """Swing the cube towards the goal with half-closed fingers."""
    turn = np.asarray(state.obs)[:, 33 + 2]  # rotation to the goal about the vertical
    action = np.full((len(turn), 4, 3), 0.5)
    action[:, :, 0] = np.clip(-turn, -1, 1)[:, None]
    return action.reshape(len(turn), 12)


POLICIES = {
    "cartpole_balance": balance,
    "cartpole_balance_vision": balance,
    "cartpole_swingup": swing_up,
    "cartpole_swingup_vision": swing_up,
    "reacher_vision": to_ball,
    "push_vision": push,
    "hopper_stand": posture(200, 10),
    "hopper_hop": posture(200, 10),
    "walker_stand": posture(150, 8),
    "walker_walk": posture(150, 8),
    "walker_run": posture(150, 8),
    "runner_run": gallop,
    "ant_run": posture(60, 2),
    "quadruped_joystick": hold,
    "quadruped_joystick_rough": hold,
    "quadruped_locomotion": hold,
    "quadruped_locomotion_rough": hold,
    "humanoid_stand": posture(150, 8),
    "humanoid_walk": posture(150, 8),
    "humanoid_run": posture(150, 8),
    "arm_reach": reach,
    "cube_pick": pick,
    "hand_reorient": twist,
}
