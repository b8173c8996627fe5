"""Time of one iteration of iLQR of the quadruped in contact, horizon 50, against the same work by MuJoCo.

    python ci/planning_speed.py [--x64]

Both roll out the first controls, differentiate 50 steps, and roll out a line search. MuJoCo uses `mjd_transitionFD`
with one-sided differences and `mj_step`, tries one step length, and has no feedback and no backward pass. Processor
time in milliseconds, the least of some rounds in which both take turns: the number of threads does not matter.
"""

import argparse
import sys
import time
from pathlib import Path

import jax
import mujoco
import numpy as np

sys.path.append("training_examples/planning")
from trot import COSTS, OWN, POSE

import jaxsim
from jaxsim import optim

HORIZON, ROUNDS, ROLLOUTS, EPS = 50, 10, 2, 1e-6


def by_mujoco(mj: mujoco.MjModel, qpos: np.ndarray, qvel: np.ndarray, controls: np.ndarray) -> tuple[float, float]:
    """Return processor seconds of the derivatives along a path, and of both rollouts."""
    data, n = mujoco.MjData(mj), 2 * mj.nv
    a, b = np.zeros((n, n)), np.zeros((n, mj.nu))
    begin = time.process_time()
    for q, v, u in zip(qpos, qvel, controls, strict=False):
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mjd_transitionFD(mj, data, EPS, 0, a, b, None, None)
    middle = time.process_time()
    for _ in range(ROLLOUTS):
        data.qpos[:], data.qvel[:] = qpos[0], qvel[0]
        for u in controls:
            data.ctrl[:] = u
            mujoco.mj_step(mj, data)
    return middle - begin, time.process_time() - middle


def main() -> None:
    """Print the times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--x64", action="store_true")
    jax.config.update("jax_enable_x64", parser.parse_args().x64)
    path = str(Path(OWN / "quadruped.xml"))
    m, mj = jaxsim.load_model(path), mujoco.MjModel.from_xml_path(path)
    d = jaxsim.make_data(m, keyframe="stand")
    controls = POSE + 0.03 * jax.random.normal(jax.random.key(0), (HORIZON, m.nu))
    controls = controls.astype(d.qpos.dtype)
    solve = jaxsim.jit(lambda d, u: optim.ilqr(m, d, COSTS, u, optim.Ilqr(1, 0.0)))
    found = jax.block_until_ready(solve(d, controls))
    qpos, qvel = (np.asarray(found.states[k], float) for k in ("qpos", "qvel"))
    own, theirs = [], []
    for _ in range(ROUNDS):
        begin = time.process_time()
        jax.block_until_ready(solve(d, controls))
        own.append(time.process_time() - begin)
        theirs.append(by_mujoco(mj, qpos, qvel, np.asarray(controls, float)))
    ours, (slopes, rollouts) = 1e3 * min(own), 1e3 * np.min(theirs, axis=0)
    print(f"iLQR {ours:.1f} ms; MuJoCo {slopes + rollouts:.1f}: differences {slopes:.1f}, rollouts {rollouts:.1f}")
    print(f"MuJoCo takes {(slopes + rollouts) / ours:.2f} times as long; the cost falls: {np.asarray(found.history)}")


if __name__ == "__main__":
    main()
