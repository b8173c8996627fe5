"""A policy in MuJoCo itself: MuJoCo makes the physics steps, the task observes and rewards what they led to.

    pip install mujoco
    python training_examples/in_mujoco.py training_examples/policies/hopper_hop.npz
    python training_examples/in_mujoco.py training_examples/policies/cube_pick.npz --episodes 100 --change held=0.0

What a policy learnt from a fault of one simulator, it loses in another. The model is the task's file as MuJoCo reads
it, with the file's time step and all its collisions. Prints the length of the episodes, the mean of every metric of the
task and its mean at the end, the deepest contact, how far joints left their ranges, and the highest kinetic energy.
"""

import copy
from functools import partial

import jax
import mujoco
import numpy as np
from watch import policy_and_task, policy_parser

import jaxsim
from jaxsim import envs
from jaxsim.xla.cache import use_compile_cache

Array = jax.Array


@partial(jax.jit, static_argnums=0)
def reset(env: envs.Env, key: Array) -> envs.State:
    """First state of an episode."""
    return env.reset(key)


@partial(jax.jit, static_argnums=0)
def controls(env: envs.Env, state: envs.State, action: Array) -> Array:
    """What the actuators are told for an action."""
    return env.control(state.data, action, state.info)


@partial(jax.jit, static_argnums=0)
def judge(env: envs.Env, state: envs.State, action: Array, qpos: Array, qvel: Array, act: Array) -> envs.State:
    """State after an action that led to these positions and velocities."""
    data = jaxsim.forward(env.model, state.data.replace(qpos=qpos, qvel=qvel, act=act))
    task = copy.copy(env)
    task.physics = lambda *_: data
    return task.step(state, action)


def beyond(m: mujoco.MjModel, d: mujoco.MjData) -> float:
    """How far joints are outside of their ranges at most, in rad or m."""
    joints = np.flatnonzero(m.jnt_limited & (m.jnt_type >= int(mujoco.mjtJoint.mjJNT_SLIDE)))
    q, (low, high) = d.qpos[m.jnt_qposadr[joints]], m.jnt_range[joints].T
    return float(np.maximum(low - q, q - high).max(initial=0.0))


def episode(env: envs.Env, policy: envs.Policy, m: mujoco.MjModel, seed: int) -> tuple[dict, dict]:
    """Metrics (actions,) of an episode until it ends, and the extremes of its physics."""
    state, d = reset(env, jax.random.key(seed)), mujoco.MjData(m)
    d.qpos[:], d.qvel[:], d.act[:] = state.data.qpos, state.data.qvel, state.data.act
    rows, extremes = [], {"depth": 0.0, "beyond": 0.0, "energy": 0.0}
    for _ in range(env.config.episode_length):
        action = policy(jax.device_get(state.obs))
        d.ctrl[:] = controls(env, state, action)
        mujoco.mj_step(m, d, round(env.dt / m.opt.timestep))
        state = judge(env, state, action, *(np.asarray(x, np.float32) for x in (d.qpos, d.qvel, d.act)))
        rows.append(jax.device_get(state.metrics))
        mujoco.mj_energyVel(m, d)
        now = {"depth": -d.contact.dist.min(initial=0.0), "beyond": beyond(m, d), "energy": d.energy[1]}
        extremes = {name: max(extremes[name], float(x)) for name, x in now.items()}
        if state.done:
            break
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}, extremes


def main() -> None:
    """Judge as the command line says."""
    parser = policy_parser(__doc__)
    parser.add_argument("--episodes", type=int, default=8)
    args = parser.parse_args()
    use_compile_cache()
    policy, env = policy_and_task(args)
    if type(env).physics is not envs.Env.physics:
        raise SystemExit(f"{policy.env} changes controls within an action: see walk_in_mujoco.py")
    m = mujoco.MjModel.from_xml_path(str(envs.model_path(env.config.model)))
    metrics, extremes = zip(*(episode(env, policy, m, seed) for seed in range(args.episodes)), strict=True)
    lengths = [len(x["diverged"]) for x in metrics]
    print(f"{policy.env} in MuJoCo {mujoco.__version__}: {args.episodes} episodes")
    print(f"  length: {np.mean(lengths):.4g} of {env.config.episode_length}, least {min(lengths)}")
    for name in metrics[0]:
        mean, last = np.concatenate([x[name] for x in metrics]).mean(), np.mean([x[name][-1] for x in metrics])
        print(f"  {name}: {mean:.3g}, at the end {last:.3g}")
    most = {name: max(x[name] for x in extremes) for name in extremes[0]}
    print(f"  contacts {1e3 * most['depth']:.1f} mm deep at most")
    print(f"  joints {most['beyond']:.2g} rad or m beyond their ranges at most")
    print(f"  highest kinetic energy {most['energy']:.3g} J")


if __name__ == "__main__":
    main()
