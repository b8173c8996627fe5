"""A trained quadruped in MuJoCo itself: the policy in NumPy, the physics in C, all collisions on.

    pip install mujoco
    python training_examples/walk_in_mujoco.py training_examples/policies/quadruped_locomotion.npz --out walk
    python training_examples/walk_in_mujoco.py runs/quadruped/policy.npz --command 0.8 0 0.5

What a policy learnt from a fault of one simulator, it loses in another. Prints the mean velocity for the command, how
far the feet sink into the ground, and how long each foot is in the air. Writes PNG pictures to `--out`.
"""

import argparse
from pathlib import Path

import mujoco
import numpy as np

import jaxsim
from jaxsim import envs


def observation(d: mujoco.MjData, home: np.ndarray, action: np.ndarray, command: np.ndarray, phase: float):
    """Observation "state" of `jaxsim.envs.Locomotion`, without noise: what a robot's own program computes."""
    frame = np.zeros(9)
    mujoco.mju_quat2Mat(frame, d.qpos[3:7])
    rotation = frame.reshape(3, 3)
    rates = np.clip(d.qvel[6:] / 10, -5, 5)
    parts = [rotation.T @ d.qvel[:3], d.qvel[3:6] / 2, rotation[2], d.qpos[7:] - home[7:], rates, action, command]
    return np.concatenate([*parts, [np.cos(phase), np.sin(phase)]])


def main() -> None:
    """Walk as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy")
    parser.add_argument("--command", type=float, nargs=3, default=[0.8, 0.0, 0.0], help="forward, left, yaw rate")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--out", type=Path, help="folder of pictures")
    args = parser.parse_args()
    policy, command = envs.load_policy(args.policy), np.array(args.command)
    task = envs.make("quadruped_locomotion", randomization=None).unwrapped
    robot, config = task.robot, task.config
    m = mujoco.MjModel.from_xml_path(str(envs.model_path("quadruped.xml")))
    m.opt.timestep = config.sim_dt
    d = mujoco.MjData(m)
    d.qpos[:] = robot.home
    action, phase = np.zeros(m.nu), 0.0
    floor = m.geom("floor").id
    rows, poses = [], []
    for _ in range(round(args.seconds / config.ctrl_dt)):
        action = policy(observation(d, robot.home, action, command, phase))
        d.ctrl[:] = robot.target + config.action_scale * action
        mujoco.mj_step(m, d, task.n_substeps)
        phase = (phase + 2 * np.pi * config.gait * config.ctrl_dt) % (2 * np.pi)
        touching = np.isin(robot.foot_geoms, d.contact.geom)
        velocity = observation(d, robot.home, action, command, phase)[:3]
        deepest = min([0.0, *d.contact.dist[np.isin(d.contact.geom, floor).any(1)]])
        clear = d.geom_xpos[robot.foot_geoms, 2] - robot.foot_level
        rows.append([*velocity[:2], d.qvel[5], d.qpos[2], deepest, *touching, *clear, np.abs(d.actuator_force).max()])
        poses.append(d.qpos.copy())
    rows = np.array(rows)[len(rows) // 5 :]
    mean, most, least = rows.mean(0).round(3), rows.max(0).round(3), rows.min(0).round(3)
    print(f"command {command}: mean velocity and yaw rate {mean[:3]}")
    print(f"height {least[3]} to {most[3]} m, feet at most {-least[4]} m under the ground, force at most {most[13]}")
    print(f"share of time each foot is in the air {1 - mean[5:9]}, highest clearance {most[9:13]} m")
    if args.out:
        pictures(task.model, np.array(poses), args.out)


def pictures(m: jaxsim.Model, poses: np.ndarray, out: Path, first: int = 200, count: int = 8, every: int = 3) -> None:
    """Write pictures of some poses, seen from the side of the robot."""
    from jaxsim.viewer.render import save_image

    out.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        qpos = poses[min(first + every * i, len(poses) - 1)].copy()
        qpos[:2] = 0.0, 0.0
        save_image(m, qpos, out / f"frame{i:02d}.png", camera="side", width=480, height=360)


if __name__ == "__main__":
    main()
