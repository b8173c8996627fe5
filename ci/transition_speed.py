"""Time of A and B of a step of the humanoid in contact, a batch of states on one core, against MuJoCo's differences.

    taskset -c 0 python ci/transition_speed.py [--batch 48] [--x64]

Processor time in microseconds a state, the least of some rounds in which all parts take turns. The step alone and
with one direction say what the Jacobians' directions cost.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

import jaxsim

MODEL = "models/humanoid.xml"
EPS = 1e-6  # of MuJoCo's differences
ROUNDS = 10


def states_in_contact(mj: mujoco.MjModel, n: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """States and controls of a humanoid that falls and is moved by random controls, where it touches something."""
    data, rng, found = mujoco.MjData(mj), np.random.default_rng(0), []
    mujoco.mj_resetDataKeyframe(mj, data, 0)
    while len(found) < n:
        data.ctrl[:] = rng.uniform(-0.3, 0.3, mj.nu)
        mujoco.mj_step(mj, data, 25)
        if data.ncon:
            found.append((data.qpos.copy(), data.qvel.copy(), data.ctrl.copy()))
    return found


def mujoco_differences(mj: mujoco.MjModel, states: list) -> None:
    """One-sided differences of MuJoCo at every state."""
    data, n = mujoco.MjData(mj), 2 * mj.nv + mj.na
    a, b = np.zeros((n, n)), np.zeros((n, mj.nu))
    for qpos, qvel, ctrl in states:
        data.qpos[:], data.qvel[:], data.ctrl[:] = qpos, qvel, ctrl
        mujoco.mjd_transitionFD(mj, data, EPS, 0, a, b, None, None)


def main() -> None:
    """Print one line for each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=48)
    parser.add_argument("--x64", action="store_true")
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", args.x64)
    m, mj = jaxsim.load_model(MODEL), mujoco.MjModel.from_xml_path(MODEL)
    d, states = jaxsim.make_data(m), states_in_contact(mj, args.batch)
    at = [jnp.asarray(np.stack(x), d.qpos.dtype) for x in zip(*states, strict=True)]

    def over(f):
        one = lambda q, v, u: f(d.replace(qpos=q, qvel=v, ctrl=u))  # noqa: E731
        return jax.jit(jax.vmap(one)).lower(*at).compile()

    def moved(d):
        return jax.jvp(lambda v: jaxsim.step(m, d.replace(qvel=v)).qvel, (d.qvel,), (jnp.ones_like(d.qvel),))[1]

    parts = {
        "step": over(lambda d: jaxsim.step(m, d).qvel),
        "step and one direction": over(moved),
        "A and B": over(lambda d: jaxsim.transition_derivatives(m, d)[:2]),
    }
    calls = {name: lambda f=f: jax.block_until_ready(f(*at)) for name, f in parts.items()}
    calls["MuJoCo, one-sided"] = lambda: mujoco_differences(mj, states)
    best = dict.fromkeys(calls, np.inf)
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.process_time()
            call()
            best[name] = min(best[name], (time.process_time() - start) / args.batch * 1e6)
    for name, us in best.items():
        print(f"{name:24} {us:8.1f} us a state")
    print(f"MuJoCo's differences take {best['MuJoCo, one-sided'] / best['A and B']:.2f} times as long as A and B")


if __name__ == "__main__":
    main()
