"""Time of `collision` for random pairs of convex hulls of 8 to 6,000 vertices, beside MuJoCo in C.

    python ci/hull_pairs.py [--pairs 10000] [--vertices 8,32,100,300,1600,6000]

One core. Hulls are ellipsoids of points; about half of the pairs touch. Each world holds one pair. MuJoCo's time is
that of mj_collision over the first 2,000 of the same poses.
"""

import argparse
import os
import time

os.environ["NPROC"] = "1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import jax
import mujoco
import numpy as np

import jaxsim
from jaxsim.tools.timing import best_time

AXES = np.array([0.1, 0.08, 0.06])
DISTANCES = (0.08, 0.2)
MUJOCO_PAIRS = 2000


def scene(vertices: int, rng: np.random.Generator) -> str:
    """Two free bodies, each a hull of so many vertices."""
    text = ""
    for name in "ab":
        at = rng.normal(size=(vertices, 3))
        at *= AXES / np.linalg.norm(at, axis=1, keepdims=True)
        text += f'<mesh name="{name}" vertex="{" ".join(map("{:.6f}".format, at.ravel()))}"/>'
    bodies = "".join(f'<body><freejoint/><geom type="mesh" mesh="{name}"/></body>' for name in "ab")
    return f"<mujoco><asset>{text}</asset><worldbody>{bodies}</worldbody></mujoco>"


def poses(count: int, rng: np.random.Generator) -> np.ndarray:
    """qpos (count, 14): random orientations, and random distances of the centres."""
    q = rng.normal(size=(count, 14))
    q[:, :3] = 0
    q[:, 7:10] *= rng.uniform(*DISTANCES, size=(count, 1)) / np.linalg.norm(q[:, 7:10], axis=1, keepdims=True)
    for first in (3, 10):
        q[:, first : first + 4] /= np.linalg.norm(q[:, first : first + 4], axis=1, keepdims=True)
    return q


def ours(xml: str, q: np.ndarray) -> tuple[float, float]:
    """Microseconds a pair, and mean contacts."""
    m = jaxsim.load_model(xml)
    place = jax.jit(jax.vmap(lambda q: jaxsim.kinematics(m, jaxsim.make_data(m).replace(qpos=q))))
    d = place(q.astype(np.float32))
    collide = jax.jit(jax.vmap(lambda d: jaxsim.collision(m, d).ncon))
    contacts = float(collide(d).mean())
    return 1e6 * best_time(lambda: collide(d)) / len(q), contacts


def mujocos(xml: str, q: np.ndarray) -> float:
    """Microseconds a pair of MuJoCo in C."""
    m = mujoco.MjModel.from_xml_string(xml)
    d, total = mujoco.MjData(m), 0.0
    for pose in q[:MUJOCO_PAIRS]:
        d.qpos[:] = pose
        mujoco.mj_kinematics(m, d)
        begin = time.perf_counter()
        mujoco.mj_collision(m, d)
        total += time.perf_counter() - begin
    return 1e6 * total / min(len(q), MUJOCO_PAIRS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--vertices", default="8,32,100,300,1600,6000")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    q = poses(args.pairs, rng)
    print("| vertices | contacts a pair | us a pair | MuJoCo in C |\n| --- | --- | --- | --- |")
    for vertices in map(int, args.vertices.split(",")):
        xml = scene(vertices, rng)
        time_us, contacts = ours(xml, q)
        print(f"| {vertices:,} | {contacts:.2f} | {time_us:.1f} | {mujocos(xml, q):.1f} |", flush=True)


if __name__ == "__main__":
    main()
