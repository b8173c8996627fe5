"""Print the share of each stage in the time of a step, for several models, as a Markdown table.

Runs on one core of a CPU. What the shares are says `jaxsim/tools/stage_times.py`; the time per world is measured
without the profiler. Bytes are those that kernels write; kernels are launches, counted in every iteration of a loop.
"""

import argparse
import os
from pathlib import Path

os.environ["NPROC"] = "1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import jaxsim
from jaxsim.mjcf import read
from jaxsim.tools import bench
from jaxsim.tools.stage_times import GROUPS, REST, STEPS, time_stages

ROOT = Path(__file__).resolve().parent.parent
HUMANOID = ROOT / "models/humanoid.xml"
BATCHES = {
    "humanoid": 256,
    "three humanoids": 64,
    "humanoid_CMU": 64,
    "quadruped": 256,
    "mesh_gripper": 64,
    "hand": 128,
    "thirty_boxes": 16,
    "arm_hulls": 64,
    "arm_table": 16,
    "hand_hulls": 16,
    "quadruped_hulls": 16,
}
SETTLE = {"thirty_boxes": 1000}  # steps until the boxes rest on each other
POSED = ("arm_hulls", "arm_table", "hand_hulls", "quadruped_hulls")  # start from their keyframe


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=list(BATCHES), choices=list(BATCHES))
    args = parser.parse_args()
    print("| model | worlds | us a world | " + " | ".join([*GROUPS, REST]) + " | KB written | kernels |")
    print("| --- |" + " --- |" * (len(GROUPS) + 5))
    for name in args.models:
        print(row(name), flush=True)


def row(name: str) -> str:
    """One line of the table: shares of the time in percent, kilobytes and kernel launches of a step of the batch."""
    nworld, m = BATCHES[name], model(name)
    posed = name in POSED
    settle = 0 if posed else SETTLE.get(name, 200)
    settings = bench.BenchSettings(path="", settle=settle, nstep=STEPS, keyframe=0 if posed else None)
    found = time_stages(m, bench.prepare(m, settings, nworld))
    shares = " | ".join(f"{100 * found.shares[g]:.0f}" for g in (*GROUPS, REST))
    return f"| {name} | {nworld} | {found.us:,.0f} | {shares} | {found.written / 1e3:,.0f} | {found.launches:,.0f} |"


def model(name: str) -> jaxsim.Model:
    """Model of a row of the table."""
    if name == "three humanoids":
        spec, child = read(HUMANOID), read(HUMANOID)
        for one in (spec, child):
            one.delete("key", "stand")  # it sets the pose of one humanoid only
        for i in (1, 2):
            frame = spec.worldbody.add("frame", pos=[0, 1.5 * i, 0])
            spec.attach(child, frame, prefix=f"{i}_", body="pelvis")
        return jaxsim.load_model(spec)
    if name == "humanoid_CMU":
        from dm_control import suite

        return jaxsim.load_model(Path(suite.__file__).parent / "humanoid_CMU.xml")
    return jaxsim.load_model(ROOT / f"models/{name}.xml")


if __name__ == "__main__":
    main()
