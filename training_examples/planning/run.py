"""Solve planning tasks by each method from random starts, and play the controls in MuJoCo.

    python training_examples/planning/run.py --tasks cartpole push --methods ilqr ddp cem --starts 5

Prints a row for each task and method: successes here and in MuJoCo, processor seconds of a start once compiled (the
median), seconds of the first call, and iterations. iLQR and DDP plan with the softened models of a task as well.
Options are those of the classes, but for the number of iterations of `Shooting` and the samplers, which `--iterations`
sets. `mpc` and `mpc_ilqr` control the robot in closed loop: they plan
again for each control, by two iterations of CEM or of iLQR, until the task has been done for five controls in a row;
their iterations are controls.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from PIL import Image
from tasks import TASKS, Task

import jaxsim
from jaxsim import optim
from jaxsim.viewer.render import render
from jaxsim.xla.cache import use_compile_cache

HELD = 5  # controls for which a task is to be done in closed loop
CONTROLLERS = {
    "mpc": optim.Cem(iterations=2, samples=128, elites=16, knots=6),
    "mpc_ilqr": optim.Ilqr(iterations=2, tolerance=0.0),
}
Advance = Callable[[jaxsim.Data, jax.Array], jaxsim.Data]


class Run(NamedTuple):
    """A run in closed loop: positions at every control, and whether it succeeded."""

    qpos: np.ndarray
    success: bool


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


def solve(task: Task, m: jaxsim.Model, d: jaxsim.Data, controls: jax.Array, method, key: jax.Array) -> optim.Result:
    """Plan; by methods with derivatives with the softened models of the task as well, by shooting with one of them."""
    shared = {"key": key, "substeps": task.substeps}
    if isinstance(method, optim.Ilqr):
        return optim.plan(m, d, task.costs, controls, method, soften=task.soften, **shared)
    for softened in task.soften[:1] if isinstance(method, optim.Shooting) else ():
        controls = optim.plan(softened(m), d, task.costs, controls, method, **shared).x
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


def close_loop(task: Task, controller: optim.Controller, advance: Advance, d: jaxsim.Data, key: jax.Array) -> Run:
    """Control a robot until the task has been done for `HELD` controls in a row, or its time is over."""
    first = jax.random.randint(key, (), 0, 1 << 20)  # samples depend on the count of calls: other runs, other samples
    memory = controller.start(d)._replace(count=first)
    q, v, held = [np.asarray(d.qpos)], [np.asarray(d.qvel)], 0
    while float(d.time) < task.limit and held < HELD:
        control, memory = controller(d, memory)
        d = advance(d, control)
        q.append(np.asarray(d.qpos))
        v.append(np.asarray(d.qvel))
        held = held + 1 if task.success(np.stack(q), np.stack(v)) else 0
    return Run(np.stack(q), held == HELD)


def simulate(task: Task, m: jaxsim.Model) -> Advance:
    """The robot as simulated here: a function of a state and a control."""

    def advance(d: jaxsim.Data, control: jax.Array) -> jaxsim.Data:
        return jax.lax.fori_loop(0, task.substeps, lambda _, d: jaxsim.step(m, d), d.replace(ctrl=control))

    return jaxsim.jit(advance)


def simulate_in_mujoco(task: Task, mj: mujoco.MjModel) -> Advance:
    """The same in MuJoCo, whose state is that of the last call."""
    data = mujoco.MjData(mj)

    def advance(d: jaxsim.Data, control: jax.Array) -> jaxsim.Data:
        data.qpos[:], data.qvel[:], data.time, data.ctrl[:] = d.qpos, d.qvel, d.time, control
        mujoco.mj_step(mj, data, task.substeps)
        return d.replace(qpos=jnp.asarray(data.qpos), qvel=jnp.asarray(data.qvel), time=jnp.asarray(data.time))

    return advance


class Found(NamedTuple):
    """A start that was solved: success here and in MuJoCo, processor seconds, iterations (controls in closed loop)."""

    here: bool
    there: bool
    seconds: float
    count: int


def first_state(task: Task, m: jaxsim.Model, key: jax.Array) -> tuple[jaxsim.Data, jax.Array]:
    """A random start, and controls to begin with."""
    home = jaxsim.make_data(m, keyframe=task.keyframe) if task.keyframe else jaxsim.make_data(m)
    return task.start(key, home), jnp.asarray(task.guess, home.qpos.dtype) if task.guess else home.ctrl


def open_loop(task: Task, method: Any, starts: int) -> Iterator[Found]:
    """Plan from each start, and play the controls."""
    m, mj = load(task)
    roll = jaxsim.jit(lambda d, u: jaxsim.rollout(m, d, jnp.repeat(u, task.substeps, axis=0))[1])
    for seed in range(starts):
        keys = jax.random.split(jax.random.key(seed), 3)
        d, guess = first_state(task, m, keys[0])
        controls = guess + task.noise * jax.random.normal(keys[1], (task.horizon, m.nu))
        begin = time.process_time()
        found = solve(task, m, d, controls, method, keys[2])
        u = np.asarray(found.x)
        spent, out = time.process_time() - begin, roll(d, u)
        here = task.success(np.asarray(out["qpos"]), np.asarray(out["qvel"]))
        yield Found(bool(here), bool(task.success(*play(task, mj, d, u))), spent, int(found.iterations))


def film(path: Path, task: Task, m: jaxsim.Model, qpos: np.ndarray) -> None:
    """Write pictures of positions, of which one is of each control, to a file of WebP, with 10 pictures a second."""
    every = max(1, round(0.1 / (float(m.opt.timestep) * task.substeps)))
    camera, rows = (0 if m.ncam else None), np.concatenate([qpos[:-1:every], qpos[-1:]])
    pictures = [Image.fromarray(x) for x in render(m, rows, camera=camera, width=240, height=180, samples=2)]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=100, quality=40, loop=0)


def closed_loop(task: Task, solver: Any, starts: int, name: str, folder: Path | None) -> Iterator[Found]:
    """Control the robot from each start, here and in MuJoCo, in single precision; seconds are those in MuJoCo.

    Writes a film of the first run in MuJoCo to the folder.
    """
    m, mj = load(task)
    _, guess = first_state(task, m, jax.random.key(0))
    plans = {"horizon": task.ahead, "substeps": task.substeps, "controls": guess}
    controller = optim.mpc(m, task.costs, solver, **plans)
    robots = simulate(task, m), simulate_in_mujoco(task, mj)
    for seed in range(starts):
        keys = jax.random.split(jax.random.key(seed), 2)
        d, _ = first_state(task, m, keys[0])
        runs = []
        for robot in robots:
            begin = time.process_time()
            runs.append(close_loop(task, controller, robot, d, keys[1]))
            spent = time.process_time() - begin
        if folder and not seed:
            film(folder / f"{name}.webp", task, m, runs[1].qpos)
        yield Found(runs[0].success, runs[1].success, spent, len(runs[1].qpos) - 1)


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*methods(1), *CONTROLLERS]
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--methods", nargs="+", choices=names, default=names)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=100, help="of shooting, MPPI and CEM")
    parser.add_argument("--films", type=Path, help="a folder for films of the controlled robots, in WebP")
    args = parser.parse_args()
    if args.films:
        args.films.mkdir(parents=True, exist_ok=True)
    use_compile_cache()
    print("| task | method | success | in MuJoCo | s a start | s of the first | iterations |\n|" + " --- |" * 7)
    for name in args.tasks:
        for label in args.methods:
            solver, many = CONTROLLERS.get(label), args.starts
            with jax.enable_x64(solver is None):
                tries = closed_loop(TASKS[name], solver, many, name, args.films) if solver else None
                found = list(tries or open_loop(TASKS[name], methods(args.iterations)[label], many))
            here, there, times, counts = zip(*found, strict=True)
            row = (TASKS[name].name, label, f"{sum(here)} of {many}", f"{sum(there)} of {many}")
            row = (*row, f"{np.median(times[1:] or times):.2f}", f"{times[0]:.1f}", str(int(np.median(counts))))
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
