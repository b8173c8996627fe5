"""Swing a cart-pole up and hold it by receding-horizon control, with MuJoCo as the robot.

    python training_examples/planning/mpc_in_mujoco.py --method ilqr --seconds 6

The controller plans 50 controls of 20 ms anew at every tick, by one iteration from the plan of the tick before. MuJoCo
makes two steps of 10 ms with the first of them. Prints the latency: seconds from the state to the control, by the
clock, and processor time.
Expected: within 4 seconds the pole is within 0.1 rad of upright, and stays there.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from tasks import MODELS, lean, wrapped

import jaxsim
from jaxsim import optim
from jaxsim.optim import Term
from jaxsim.xla.cache import use_compile_cache

METHODS = {"ilqr": optim.Ilqr(1, 0.0), "ddp": optim.Ddp(1, 0.0), "mppi": optim.Mppi(1, 128), "cem": optim.Cem(2, 128)}
COSTS = optim.Costs(
    (Term(lean, 2.0), Term(lambda d: d.ctrl, 0.02), Term(lambda d: d.qpos[0], 0.2), Term(lambda d: d.qvel, 0.01)),
    (Term(lean, 40.0), Term(lambda d: d.qpos[0], 2.0), Term(lambda d: d.qvel, 1.0)),
)


def main() -> None:
    """Close the loop."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", choices=METHODS, default="ilqr")
    parser.add_argument("--seconds", type=float, default=6.0)
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    use_compile_cache()
    m = jaxsim.load_model(MODELS / "cartpole.xml")
    d = jaxsim.make_data(m, keyframe="hanging")
    controller = optim.mpc(m, COSTS, METHODS[args.method], horizon=50, substeps=2)
    memory = controller.start(d)
    memory = memory._replace(controls=memory.controls + 0.3)  # off the rest, where the pole hangs in balance
    robot = mujoco.MjModel.from_xml_path(str(MODELS / "cartpole.xml"))
    world = mujoco.MjData(robot)
    mujoco.mj_resetDataKeyframe(robot, world, robot.key("hanging").id)
    angles, clock, processor = [], [], []
    for _ in range(round(args.seconds / 0.02)):
        begin = time.perf_counter(), time.process_time()
        now = d.replace(qpos=jnp.asarray(world.qpos), qvel=jnp.asarray(world.qvel), time=jnp.asarray(world.time))
        u, memory = controller(now, memory)
        world.ctrl[:] = np.asarray(u)
        clock.append(time.perf_counter() - begin[0])
        processor.append(time.process_time() - begin[1])
        mujoco.mj_step(robot, world, 2)
        angles.append(abs(wrapped(world.qpos[1])))
    latency = [1e3 * np.quantile(x[1:], q) for x in (clock, processor) for q in (0.5, 0.99)]
    print("latency (ms): {:.1f} in the median, {:.1f} in 99 of 100; processor time {:.1f} and {:.1f}".format(*latency))
    print(f"first call, with compilation: {processor[0]:.1f} s of processor time")
    held = np.max(angles[round(4 / 0.02) :], initial=0)
    print(f"{'reached' if held < 0.1 else 'not reached'}: after 4 s at most {held:.3f} rad from upright")


if __name__ == "__main__":
    main()
