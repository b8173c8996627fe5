"""Pick the cube in MuJoCo with a policy that was trained here: NumPy and MuJoCo alone do what a robot's program would.

    python training_examples/pick_in_mujoco.py training_examples/policies/cube_pick.npz --trials 100

Prints in how many trials the cube is at least `lift` high between both fingers at the end of an episode, and the
deepest contact. The starts are those of the task; the time step is the model's own.
"""

import argparse
from pathlib import Path

import jax
import mujoco
import numpy as np

from jaxsim import envs
from jaxsim.envs.tasks import Pick


def observation(m: mujoco.MjModel, d: mujoco.MjData, target: np.ndarray) -> np.ndarray:
    """Observation (36,) of the task, put together from MuJoCo's data."""
    grip, cube = d.site("grip").xpos, d.joint("cube").qpos
    turn = np.zeros(3)
    mujoco.mju_quat2Vel(turn, cube[3:], 1.0)
    numbers = [cube[2] - Pick.table - 0.025, d.qpos[6] + d.qpos[7], np.linalg.norm(d.joint("cube").qvel[:3])]
    return np.concatenate([d.qpos[:8], d.qvel[:8] / 3, target - d.qpos[:8], grip, cube[:3] - grip, turn, numbers])


def held(m: mujoco.MjModel, d: mujoco.MjData) -> bool:
    """Whether both fingers touch the cube."""
    cube = m.geom("cube").id
    touching = {int(g) for pair in d.contact.geom for g in pair if cube in pair}
    return {m.geom("left_finger").id, m.geom("right_finger").id} <= touching


def trial(env: Pick, policy: envs.Policy, m: mujoco.MjModel, seed: int) -> tuple[bool, float]:
    """Whether the cube is lifted at the end of an episode, and the depth of its deepest contact in m."""
    start, info = env.initial(jax.random.key(seed))
    d, target, deepest = mujoco.MjData(m), np.array(info["target"], float), 0.0
    d.qpos[:] = start.qpos
    mujoco.mj_kinematics(m, d)
    low, high = m.actuator_ctrlrange.T
    limit = env.config.step_size * np.array([1, 1, 1, 1, 1, 1, 0.02, 0.02])
    for _ in range(env.config.episode_length):
        target = np.clip(target + limit * policy(observation(m, d, target)), low, high)
        d.ctrl[:] = target
        mujoco.mj_step(m, d, round(env.dt / m.opt.timestep))
        deepest = max([deepest, *-d.contact.dist])
    height = d.joint("cube").qpos[2] - Pick.table - 0.025
    return bool(held(m, d) and height >= env.config.lift), float(deepest)


def main() -> None:
    """Pick as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy", type=Path)
    parser.add_argument("--trials", type=int, default=100)
    args = parser.parse_args()
    policy, env = envs.load_policy(args.policy), envs.make("cube_pick", held=0.0)
    m = mujoco.MjModel.from_xml_path(str(envs.model_path("arm_gripper.xml")))
    results = [trial(env, policy, m, seed) for seed in range(args.trials)]
    lifted, depth = zip(*results, strict=True)
    print(f"picked in {sum(lifted)} of {args.trials} trials; contacts are {1e3 * max(depth):.1f} mm deep at most")


if __name__ == "__main__":
    main()
