"""Solve planning tasks by each method from random starts, and play the controls in MuJoCo.

    python training_examples/planning/run.py --tasks cartpole push --methods ilqr ddp cem --starts 5

Prints a row for each task and method: successes here and in MuJoCo, processor seconds of a start once compiled (the
median), seconds of the first call, and iterations. A task that needs contacts from a distance is solved with those
first by methods with derivatives, then without. Options are those of the classes, but for the number of iterations of
`Shooting` and the samplers, which `--iterations` sets.
"""

import argparse
import functools
import time
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from tasks import TASKS, Task

import jaxsim
from jaxsim import optim
from jaxsim.xla.cache import use_compile_cache


def methods(iterations: int) -> dict[str, Any]:
    """Methods by name, with default options but for the number of iterations."""
    return {
        "shooting": optim.Shooting(iterations, 0.05),
        "ilqr": optim.Ilqr(),
        "ddp": optim.Ddp(),
        "mppi": optim.Mppi(iterations),
        "cem": optim.Cem(iterations),
    }


def load(task: Task) -> tuple[jaxsim.Model, mujoco.MjModel]:
    """The model here and in MuJoCo."""
    m = jaxsim.load_model(task.model)
    text = task.model if isinstance(task.model, str) else None
    return m, mujoco.MjModel.from_xml_string(text) if text else mujoco.MjModel.from_xml_path(str(task.model))


def soften(reach: float, m: jaxsim.Model, d: jaxsim.Data) -> jaxsim.Data:
    """A step with contacts from a distance."""
    return jaxsim.step(optim.contacts_from_distance(m, reach), d)


@functools.cache
def softened(reach: float):
    """The same step for the same reach, so that it is compiled once."""
    return functools.partial(soften, reach)


def solve(task: Task, m: jaxsim.Model, d: jaxsim.Data, controls: jax.Array, method, key: jax.Array) -> optim.Result:
    """Plan; with contacts from a distance first where the task and the method need them."""
    shared = {"key": key, "substeps": task.substeps}
    if task.reach and not isinstance(method, (optim.Mppi, optim.Cem)):
        first = optim.plan(m, d, task.costs, controls, method, step=softened(task.reach), **shared)
        controls = first.x
    return optim.plan(m, d, task.costs, controls, method, **shared)


def play(task: Task, mj: mujoco.MjModel, d: jaxsim.Data, controls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities of all steps in MuJoCo, open loop."""
    data = mujoco.MjData(mj)
    data.qpos[:], data.qvel[:] = d.qpos, d.qvel
    rows = []
    for u in np.repeat(controls, task.substeps, axis=0):
        data.ctrl[:] = u
        mujoco.mj_step(mj, data)
        rows.append((data.qpos.copy(), data.qvel.copy()))
    q, v = zip(*rows, strict=True)
    return np.array(q), np.array(v)


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--methods", nargs="+", choices=methods(1), default=list(methods(1)))
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=100, help="of shooting, MPPI and CEM")
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    use_compile_cache()
    print("| task | method | success | in MuJoCo | s a start | s of the first | iterations |\n|" + " --- |" * 7)
    for name in args.tasks:
        task = TASKS[name]
        m, mj = load(task)
        home = jaxsim.make_data(m, keyframe=task.keyframe) if task.keyframe else jaxsim.make_data(m)
        roll = jaxsim.jit(lambda d, u, m=m, task=task: jaxsim.rollout(m, d, jnp.repeat(u, task.substeps, axis=0))[1])
        for label in args.methods:
            method = methods(args.iterations)[label]
            here = there = 0
            times, counts = [], []
            for seed in range(args.starts):
                keys = jax.random.split(jax.random.key(seed), 3)
                d = task.start(keys[0], home)
                guess = jnp.asarray(task.guess) if task.guess else home.ctrl
                controls = guess + task.noise * jax.random.normal(keys[1], (task.horizon, m.nu))
                begin = time.process_time()
                found = solve(task, m, d, controls, method, keys[2])
                u = np.asarray(found.x)
                times.append(time.process_time() - begin)
                counts.append(int(found.iterations))
                out = roll(d, u)
                here += bool(task.success(np.asarray(out["qpos"]), np.asarray(out["qvel"])))
                there += bool(task.success(*play(task, mj, d, u)))
            median = np.median(times[1:] or times)
            row = (task.name, label, f"{here} of {args.starts}", f"{there} of {args.starts}", f"{median:.2f}")
            print("| " + " | ".join((*row, f"{times[0]:.1f}", str(int(np.median(counts))))) + " |", flush=True)


if __name__ == "__main__":
    main()
