"""Time of a step by its stages, from JAX's profiler and the stack frames in the compiled program.

A batch is rolled out under the profiler. Every kernel counts for the engine's stage in which it was traced. The
profiler adds an overhead to each launch, estimated by the time of the cheapest kernel; shares are computed without it.
"""

import collections
import math
import re
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import jax

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.tools.timing import best_time

STEPS = 8
FRAMES = "jax_traceback_in_locations_limit"
GROUPS = {
    "positions": ("kinematics", "com_pos", "camlight", "tendon", "crb", "factor_m", "transmission"),
    "collision": ("collision",),
    "rows": ("make_constraint", "reference_constraint"),
    "velocities": ("com_vel", "passive", "rne", "tendon_bias", "actuator_velocities"),
    "smooth dynamics": ("fwd_actuation", "fwd_acceleration"),
    "solver": ("fwd_constraint",),
    "sensors": ("sensor_pos", "sensor_vel", "sensor_acc", "energy_pos", "energy_vel"),
    "integration, checks": ("_integrate", "check_state", "check_acc", "hold"),
}
REST = "rollout"  # what belongs to no stage
BYTES = {"f32": 4, "s32": 4, "u32": 4, "pred": 1, "s8": 1, "u8": 1, "s64": 8, "f64": 8, "u64": 8}
NO_KERNEL = ("parameter", "get-tuple-element", "tuple", "constant", "bitcast", "while", "conditional")


class StageTimes(NamedTuple):
    """Microseconds of a world's step, the share of each of `GROUPS` and of the rest, bytes written and launches."""

    us: float
    shares: dict[str, float]
    written: float
    launches: float


def time_stages(m: Model, d: Data) -> StageTimes:
    """Time the stages of a batch `d` on one device. Compiles a separate program that records the origin of kernels."""
    m, d = jax.device_put((m, d), jax.devices()[0])
    nworld = d.time.size
    frames = getattr(jax.config, FRAMES)
    jax.config.update(FRAMES, 100)  # all frames, since the stage is an outer one
    try:
        jax.clear_caches()  # what was traced before has fewer
        run = jaxsim.jit(jax.vmap(_advance, in_axes=(None, 0)))
        compiled = run.lower(m, d).compile()
    finally:
        jax.config.update(FRAMES, frames)
    jax.block_until_ready(compiled(m, d))
    best = best_time(lambda: compiled(m, d))
    time, launches = profile(compiled, m, d)
    kernels = {k: v for k, v in instructions(compiled.as_text()).items() if k in time}
    spent, written = dict.fromkeys((*GROUPS, REST), 0.0), 0
    empty = min(time[k] / launches[k] for k in kernels)
    for kernel, (stage, size) in kernels.items():
        spent[stage] += time[kernel] - empty * launches[kernel]
        written += size * launches[kernel]
    total = sum(spent.values())
    shares = {k: v / total for k, v in spent.items()}
    count = sum(launches[k] for k in kernels) / STEPS
    return StageTimes(1e6 * best / nworld / STEPS, shares, written / nworld / STEPS, count)


def _advance(m: Model, d: Data) -> Data:
    return jaxsim.rollout(m, d, nstep=STEPS, checkpoint="none")[0]


def profile(compiled: Any, m: jaxsim.Model, d: jaxsim.Data) -> tuple[dict[str, float], dict[str, int]]:
    """Nanoseconds and launches of each kernel of one run."""
    time: dict[str, float] = collections.defaultdict(float)
    launches: dict[str, int] = collections.defaultdict(int)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.block_until_ready(compiled(m, d))
        for file in Path(folder).rglob("*.xplane.pb"):
            for plane in jax.profiler.ProfileData.from_file(str(file)).planes:
                for event in (e for line in plane.lines for e in line.events):
                    time[event.name] += event.duration_ns
                    launches[event.name] += 1
    return time, launches


def instructions(text: str) -> dict[str, tuple[str, int]]:
    """Stage and bytes of the result of every instruction of a compiled program that is a kernel.

    Kernels that XLA adds (copies, rows of a scatter) have no stack frame. They count for the stage of the kernel before
    them, and at the beginning of a loop for the stage of the loop.
    """
    frames, found, outside = _frames(text), {}, {}
    for computation in reversed(re.split(r"\n(?=(?:ENTRY )?%)", text)):  # callers come last
        name = re.match(r"(?:ENTRY )?%([\w.-]+) ", computation)
        stage = outside.get(name[1], REST) if name else REST
        for line in computation.splitlines():
            parts = re.match(r"\s+(?:ROOT )?%?([\w.-]+) = (\(.*?\)|\S+) ([\w-]+)\(", line)
            if not parts:
                continue
            frame = re.search(r"stack_frame_id=(\d+)", line)
            own = _stage(frames, int(frame[1])) if frame else REST
            stage = stage if own == REST else own
            for called in re.findall(r"(?:body|condition|to_apply|branch_computations)={?(%[^})]+)", line):
                outside |= dict.fromkeys(re.findall(r"%([\w.-]+)", called), stage)
            if parts[3] not in NO_KERNEL:
                found[parts[1]] = stage, _size(parts[2])
    return found


def _size(shape: str) -> int:
    """Bytes of the arrays in the text of a shape."""
    arrays = re.findall(r"(\w+)\[([\d,]*)\]", shape)
    return sum(BYTES.get(kind, 4) * math.prod(int(n) for n in dims.split(",") if n) for kind, dims in arrays)


def _frames(text: str) -> dict[int, tuple[str, int]]:
    """Function and parent of each stack frame; in XLA's text, parents are numbered from two, and one is no parent."""
    tables: dict[str, dict[int, str]] = {}
    current = None
    for line in text.splitlines():
        if line in ("FileNames", "FunctionNames", "FileLocations", "StackFrames"):
            current = tables.setdefault(line, {})
        elif current is not None and (entry := re.match(r"(\d+) (.*)", line)):
            current[int(entry[1])] = entry[2]
        elif not line.strip():
            current = None

    def number(text: str, key: str) -> int:
        match = re.search(rf"{key}=(\d+)", text)
        return int(match[1]) if match else 0

    functions = {
        k: tables["FunctionNames"].get(number(v, "function_name_id"), "") for k, v in tables["FileLocations"].items()
    }
    return {
        k: (functions[number(v, "file_location_id")].strip('"').split(".")[-1], number(v, "parent_frame_id") - 1)
        for k, v in tables["StackFrames"].items()
    }


def _stage(frames: dict[int, tuple[str, int]], frame: int) -> str:
    """Group of the outermost function of a stack that is a stage."""
    stage = REST
    while frame in frames:
        name, frame = frames[frame]
        stage = next((g for g, names in GROUPS.items() if name in names), stage)
    return stage
