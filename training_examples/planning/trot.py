"""A quadruped trots 2 m, turns left and trots on, by receding-horizon control, with MuJoCo as the robot.

    python training_examples/planning/trot.py --seconds 20
    python training_examples/planning/trot.py --seconds 10 --starts 5

Every 20 ms one iteration of iLQR plans the joint angles of the next 0.5 s. The planner's model collides with the floor
only, with trunk, shins and toes; the robot is `models/quadruped.xml` in MuJoCo, with a trunk that is a box, collisions
with itself and friction in its joints. Residuals are those that MJPC's quadruped has: heights of the feet from a gait,
velocity, height, orientation, posture. Prints the processor time of a control.
Expected: it does not fall, trots along the path within 0.5 m, and turns by 90 degrees.
"""

import argparse
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from tasks import MODELS, OWN, POSE

import jaxsim
from jaxsim import optim
from jaxsim.optim import Costs, Term
from jaxsim.xla.cache import use_compile_cache

SPEED, CADENCE, LIFT = 0.4, 2.0, 0.06  # m/s, steps of a foot a second, and height of a step (m)
TURN = 5.0, 9.0  # from when until when it turns (s)
PHASES = jnp.asarray([0.0, 0.5, 0.5, 0.0])  # of the feet: front right, front left, rear right, rear left
TOE = 0.024  # radius (m)
PERIOD, STEP = 0.02, 0.01  # of controls and of the planner's model (s)


def heading(time: jax.Array) -> jax.Array:
    """Direction (2,) in which it should walk."""
    angle = 0.5 * jnp.pi * jnp.clip((time - TURN[0]) / (TURN[1] - TURN[0]), 0, 1)
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)])


def gait(d: jaxsim.Data) -> jax.Array:
    """Heights of the toes less those of a trot."""
    lift = LIFT * jnp.maximum(0, jnp.sin(2 * jnp.pi * (CADENCE * d.time + PHASES)))
    return d.site_xpos[:, 2] - TOE - lift * jnp.clip(d.time / 0.5, 0, 1)


def velocity(d: jaxsim.Data) -> jax.Array:
    return d.qvel[:2] - SPEED * heading(d.time) * jnp.clip(d.time, 0, 1)


def height(d: jaxsim.Data) -> jax.Array:
    return d.qpos[2] - 0.3


def orientation(d: jaxsim.Data) -> jax.Array:
    """Horizontal parts of the trunk's z-axis, and the part of its x-axis across the heading."""
    x, _, z = d.xmat[1].reshape(3, 3).T
    c, s = heading(d.time)
    return jnp.stack([z[0], z[1], c * x[1] - s * x[0]])


def balance(d: jaxsim.Data) -> jax.Array:
    """Centre of the toes less the point above which the trunk comes to rest."""
    return jnp.mean(d.site_xpos[:, :2], 0) - d.qpos[:2] - 0.1 * d.qvel[:2]


def posture(d: jaxsim.Data) -> jax.Array:
    return d.qpos[7:] - POSE


def effort(d: jaxsim.Data) -> jax.Array:
    return d.ctrl - d.qpos[7:]


def spin(d: jaxsim.Data) -> jax.Array:
    return d.qvel[2:6]


COSTS = Costs(
    running=(
        Term(gait, 400.0),
        Term(velocity, 20.0),
        Term(height, 400.0),
        Term(orientation, 200.0),
        Term(balance, 100.0),
        Term(posture, 6.0),
        Term(effort, 1.0),
        Term(spin, 0.3),
    ),
    final=(
        Term(gait, 400.0),
        Term(velocity, 60.0),
        Term(height, 400.0),
        Term(orientation, 200.0),
        Term(balance, 100.0),
    ),
)


def film(path: Path, robot: mujoco.MjModel, rows: np.ndarray) -> None:
    """Write pictures of positions, of which there are 5 a second, to a file that Pillow can write: WebP, GIF."""
    from PIL import Image

    data, frames = mujoco.MjData(robot), []
    with mujoco.Renderer(robot, 180, 320) as renderer:
        for qpos in rows:
            data.qpos[:] = qpos
            mujoco.mj_forward(robot, data)
            renderer.update_scene(data, "follow")
            frames.append(Image.fromarray(renderer.render()))
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=200, quality=30)


def walk(controller: optim.Controller, d: jaxsim.Data, robot: mujoco.MjModel, seed: int, seconds: float) -> tuple:
    """Close the loop from the keyframe, with joints displaced by 0.01 rad unless the seed is 0.

    Returns positions after each control, and seconds by the clock and of processor time of each.
    """
    memory, world = controller.start(d), mujoco.MjData(robot)
    mujoco.mj_resetDataKeyframe(robot, world, robot.key("stand").id)
    if seed:
        world.qpos[7:] += 0.01 * np.random.default_rng(seed).normal(size=robot.nq - 7)
    times, rows = [], []
    for _ in range(round(seconds / PERIOD)):
        begin = time.perf_counter(), time.process_time()
        now = {"qpos": jnp.asarray(world.qpos), "qvel": jnp.asarray(world.qvel), "time": jnp.asarray(world.time)}
        u, memory = controller(d.replace(**now), memory)
        world.ctrl[:] = np.asarray(u)
        times.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
        mujoco.mj_step(robot, world, round(PERIOD / robot.opt.timestep))
        rows.append(world.qpos.copy())
    return np.array(rows), np.array(times)


def main() -> None:
    """Close the loop from each start."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--starts", type=int, default=1, help="the keyframe, and such with displaced joints")
    parser.add_argument("--film", type=Path, help="where to write an animation of the last one, e.g. trot.webp")
    args = parser.parse_args()
    use_compile_cache()
    m = jaxsim.load_model(OWN / "quadruped.xml")
    m = m.replace(opt=m.opt.replace(timestep=jnp.asarray(STEP)))
    d = jaxsim.make_data(m, keyframe="stand")
    controller = optim.mpc(m, COSTS, horizon=25, substeps=round(PERIOD / STEP), controls=POSE)
    robot = mujoco.MjModel.from_xml_path(str(MODELS / "quadruped.xml"))
    for seed in range(args.starts):
        path, times = walk(controller, d, robot, seed, args.seconds)
        if not seed:
            print(
                f"first call: {times[0, 0]:.0f} s by the clock, {times[0, 1]:.0f} s of this process, C++ compiler apart"
            )
        by_clock, median = 1e3 * np.median(times[1:], 0)
        most = 1e3 * np.quantile(times[1:, 1], 0.99)
        print(f"a control: {median:.1f} ms of processor time, {most:.1f} in 99 of 100; {by_clock:.1f} by the clock")
        low, up = path[:, 2].min(), (1 - 2 * (path[:, 4] ** 2 + path[:, 5] ** 2)).min()
        yaw = np.degrees(2 * np.arctan2(path[:, 6], path[:, 3]))
        print(f"trunk: at least {low:.2f} m high, cosine to the vertical at least {up:.2f}")
        for second in range(1, round(args.seconds) + 1, 2):
            i = min(round(second / PERIOD), len(path)) - 1
            print(f"  {second:3} s: x {path[i, 0]:.2f} y {path[i, 1]:.2f} m, heading {yaw[i]:.0f} degrees")
        print("walks" if low > 0.2 and up > 0.8 else "falls", flush=True)
    if args.film:
        film(args.film, robot, path[::10])


if __name__ == "__main__":
    main()
