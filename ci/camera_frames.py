"""Print the frames a second of pictures by ray casting, in a batch of worlds, as a Markdown table.

    taskset -c 0 python ci/camera_frames.py [--models NAME:CAMERA ...] [--nworld 1 64 256] [--size 64]

A frame is one picture of a state: kinematics, the camera's pose and the rays, compiled, without shadows. The best of
five runs counts, compilation never. Time is the processor's, of all threads, so that the figure is that of one core.
"""

import argparse
import time
from pathlib import Path

import jax

import jaxsim
from jaxsim import stages
from jaxsim.tools import bench
from jaxsim.viewer.raycast import render

MODELS = Path(__file__).resolve().parent.parent / "models"
SCENES = ("cartpole:near", "arm_gripper:front", "quadruped:0")


def frames_a_second(m: jaxsim.Model, camera: int | str, kind: str, nworld: int, size: int) -> float:
    """Frames a second of `nworld` worlds about the model's first state; `kind` is "depth" or "rgb"."""
    d = jaxsim.make_data(m)

    def look(qpos: jax.Array) -> jax.Array:
        posed = stages.camlight(m, stages.com_pos(m, stages.kinematics(m, d.replace(qpos=qpos))))
        return getattr(render(m, posed, camera, size, size, shadows=False), kind)

    qpos = d.qpos + 0.05 * jax.random.normal(jax.random.key(0), (nworld, m.nq))
    batch = jaxsim.jit(jax.vmap(look))
    jax.block_until_ready(batch(qpos))
    repeats = max(1, 256 // nworld)
    times = []
    for _ in range(5):
        begin = time.process_time()
        jax.block_until_ready([batch(qpos) for _ in range(repeats)])
        times.append(time.process_time() - begin)
    return repeats * nworld / min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(SCENES), help="name of a model and of a camera")
    parser.add_argument("--nworld", type=int, nargs="+", default=[1, 64, 256])
    parser.add_argument("--size", type=int, default=64, help="pixels of a side (default: 64)")
    args = parser.parse_args()
    machine = bench.describe_machine()
    print(f"frames a second of one core, {args.size} x {args.size}, {machine['precision']}, {machine['processor']}\n")
    print("| model, camera | geoms | picture | " + " | ".join(f"{n} worlds" for n in args.nworld) + " |")
    print("| --- |" + " --- |" * (2 + len(args.nworld)))
    for scene in args.models:
        name, camera = scene.split(":")
        m = jaxsim.load_model(MODELS / f"{name}.xml")
        which = int(camera) if camera.isdigit() else camera
        for kind in ("depth", "rgb"):
            rates = [frames_a_second(m, which, kind, n, args.size) for n in args.nworld]
            shown = " | ".join(f"{rate:,.0f}" for rate in rates)
            print(f"| `{name}`, {camera} | {m.ngeom} | {kind} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
