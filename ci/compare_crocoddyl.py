"""Time of an iteration of DDP on an arm of 7 dofs, 100 nodes, against `crocoddyl`, each on one thread.

    python -m venv peer && peer/bin/pip install crocoddyl==3.2.1 pin==4.0.0
    taskset -c 0 python ci/compare_crocoddyl.py peer/bin/python

Both minimise the same costs from the same start: torques, velocities, and the distance to a posture at the end.
Controls of the first guess hold the arm. Crocoddyl (`SolverFDDP`) has analytic derivatives of the free arm, ours is
`ilqr`. Both evaluate Gauss-Newton. Processor time in milliseconds, the least of some rounds: that of 10 iterations less
that of one, divided by nine. Costs are those after each iteration.

Crocoddyl must run with the version of `pin` it was built with, which its wheel does not name: with another it loads,
and reads fields of the model at wrong places. So its accelerations are compared with those of `pin` first.
"""

import argparse
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

JOINTS, LENGTH, MASS, RADIUS = 7, 0.15, 1.0, 0.05
AXES = ((0, 0, 1), (0, 1, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1))
NODES, STEP, ROUNDS, ITERATIONS = 100, 0.01, 10, (1, 10)
TARGET, TO_TARGET, EFFORT, SPEED = (0.8, 0.9, 0.4, -0.5, 0.6, -0.3, 0.5), 1e3, 1e-2, 1e-1
START = (0.3, 0.5, -0.2, 0.8, 0.1, 0.4, 0.0)
INERTIA = (MASS * LENGTH**2 / 12, MASS * LENGTH**2 / 12, MASS * RADIUS**2 / 2)


def mjcf() -> str:
    """The arm as MJCF."""
    body = ""
    for i in reversed(range(JOINTS)):
        axis = " ".join(map(str, AXES[i]))
        body = (
            f'<body pos="0 0 {LENGTH if i else 0}"><inertial pos="0 0 {LENGTH / 2}" mass="{MASS}" '
            f'diaginertia="{" ".join(map(str, INERTIA))}"/><joint name="j{i}" axis="{axis}"/>{body}</body>'
        )
    motors = "".join(f'<motor joint="j{i}"/>' for i in range(JOINTS))
    return f'<mujoco><option timestep="{STEP}"/><worldbody>{body}</worldbody><actuator>{motors}</actuator></mujoco>'


def urdf() -> str:
    """The same arm as URDF."""
    x, y, z = INERTIA
    links, joints = '<link name="base"/>', ""
    for i in range(JOINTS):
        links += (
            f'<link name="l{i}"><inertial><origin xyz="0 0 {LENGTH / 2}"/><mass value="{MASS}"/>'
            f'<inertia ixx="{x}" iyy="{y}" izz="{z}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        )
        joints += (
            f'<joint name="j{i}" type="revolute"><parent link="{f"l{i - 1}" if i else "base"}"/><child link="l{i}"/>'
            '<limit lower="-100" upper="100" effort="1e4" velocity="1e4"/>'
            f'<origin xyz="0 0 {LENGTH if i else 0}"/><axis xyz="{" ".join(map(str, AXES[i]))}"/></joint>'
        )
    return f'<robot name="arm">{links}{joints}</robot>'


def least(times: dict[int, list[float]]) -> float:
    """Return milliseconds of an iteration, from those of runs of different lengths."""
    few, many = ITERATIONS
    return 1e3 * (min(times[many]) - min(times[few])) / (many - few)


def peer(path: str) -> None:
    """Print the time of an iteration of crocoddyl, and the costs."""
    import crocoddyl
    import pinocchio

    model = pinocchio.buildModelFromUrdf(path)
    state = crocoddyl.StateMultibody(model)
    drive = crocoddyl.ActuationModelFull(state)
    to_target = crocoddyl.ResidualModelState(state, np.array([*TARGET, *[0.0] * JOINTS]), drive.nu)
    effort = crocoddyl.ResidualModelControl(state, drive.nu)
    speed = crocoddyl.ResidualModelState(state, np.zeros(2 * JOINTS), drive.nu)
    moving = crocoddyl.ActivationModelWeightedQuad(np.repeat([0.0, 1.0], JOINTS))
    placed = crocoddyl.ActivationModelWeightedQuad(np.repeat([1.0, 0.0], JOINTS))
    running, final = crocoddyl.CostModelSum(state, drive.nu), crocoddyl.CostModelSum(state, drive.nu)
    running.addCost("effort", crocoddyl.CostModelResidual(state, effort), EFFORT / STEP)
    running.addCost("speed", crocoddyl.CostModelResidual(state, moving, speed), SPEED / STEP)
    final.addCost("target", crocoddyl.CostModelResidual(state, placed, to_target), TO_TARGET)
    free = crocoddyl.DifferentialActionModelFreeFwdDynamics
    first = crocoddyl.IntegratedActionModelEuler(free(state, drive, running), STEP)
    last = crocoddyl.IntegratedActionModelEuler(free(state, drive, final), 0.0)
    problem = crocoddyl.ShootingProblem(np.array([*START, *[0.0] * JOINTS]), [first] * NODES, last)
    problem.nthreads = 1
    check_dynamics(pinocchio, model, first.differential)
    times: dict[int, list[float]] = {k: [] for k in ITERATIONS}
    for _ in range(ROUNDS):
        for k in ITERATIONS:
            solver = crocoddyl.SolverFDDP(problem)
            solver.th_stop = 1e-30
            xs = [problem.x0] * (NODES + 1)
            us = list(problem.quasiStatic(xs[:-1]))
            begin = time.process_time()
            solver.solve(xs, us, k, True)
            times[k].append(time.process_time() - begin)
    log = crocoddyl.CallbackLogger()
    solver.setCallbacks([log])
    solver.solve(xs, us, ITERATIONS[1], True)
    print(f"crocoddyl: {least(times):.3f} ms; costs {listed([problem.calc(xs, us), *log.costs])}", flush=True)


def check_dynamics(pinocchio: Any, model: Any, dynamics: Any) -> None:
    """Raise unless accelerations of crocoddyl are those of pinocchio."""
    q, v, u = np.array(START), np.linspace(-1, 1, JOINTS), np.linspace(2, -2, JOINTS)
    data = dynamics.createData()
    dynamics.calc(data, np.concatenate([q, v]), u)
    wanted = pinocchio.aba(model, model.createData(), q, v, u)
    if not np.allclose(data.xout, wanted, rtol=1e-9, atol=1e-9):
        version = pinocchio.__version__
        raise SystemExit(f"crocoddyl was not built for pin {version}: accelerations {data.xout}, pin's are {wanted}")


def listed(costs: Any) -> str:
    """Return costs as text."""
    return " ".join(f"{float(c):.2f}" for c in costs)


def ours(x64: bool) -> None:
    """Print the time of our iteration, and the costs."""
    import jax
    import jax.numpy as jnp

    import jaxsim
    from jaxsim import optim
    from jaxsim.optim import Costs, Term

    jax.config.update("jax_enable_x64", x64)
    m = jaxsim.load_model(mjcf())
    d = jaxsim.make_data(m)
    d = d.replace(qpos=jnp.asarray(START, d.qpos.dtype))
    costs = Costs(
        (Term(lambda d: d.ctrl, EFFORT), Term(lambda d: d.qvel, SPEED)),
        (Term(lambda d: d.qpos - jnp.asarray(TARGET, d.qpos.dtype), TO_TARGET),),
    )
    solves = {k: jaxsim.jit(lambda d, u, k=k: optim.ilqr(m, d, costs, u, optim.Ilqr(k, 0.0))) for k in ITERATIONS}
    u = jnp.tile(jax.jit(jaxsim.forward)(m, d).qfrc_bias, (NODES, 1))
    found = {k: jax.block_until_ready(f(d, u)) for k, f in solves.items()}
    times: dict[int, list[float]] = {k: [] for k in ITERATIONS}
    for _ in range(ROUNDS):
        for k, f in solves.items():
            begin = time.process_time()
            jax.block_until_ready(f(d, u))
            times[k].append(time.process_time() - begin)
    end, name = found[ITERATIONS[1]], "double" if x64 else "single"
    print(f"ours, {name}: {least(times):.3f} ms; costs {listed(end.history)}")


def main() -> None:
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="of the environment that has crocoddyl; with --peer the path of the URDF")
    parser.add_argument("--peer", action="store_true")
    args = parser.parse_args()
    if args.peer:
        peer(args.python)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arm.urdf"
        path.write_text(urdf())
        subprocess.run([args.python, __file__, "--peer", str(path)], check=True)
    for x64 in (True, False):
        ours(x64)


if __name__ == "__main__":
    main()
