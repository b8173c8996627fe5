"""Compare default capacities with the contacts that MuJoCo makes: models rolled with random controls and dropped.

`python ci/capacities.py [FOLDER or FILE ...]`: every model of these (by default `models/`, and those of dm_control's
suite and of gymnasium where they are installed) and the scenes of `validation/crowded.py`, `STEPS` steps from its first
pose and as many from a random one. Prints a line for each model and ends with status 1 if a default is too small.
"""

import glob
import importlib.util
import os
import sys
import warnings

import mujoco
import numpy as np

import jaxsim
from validation.crowded import SCENES

STEPS = 1000
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def default_files() -> list[str]:
    """Models of this repository, of dm_control's suite and of gymnasium."""
    files = glob.glob(os.path.join(ROOT, "models", "*.xml"))
    for package, folder in (("dm_control", "suite"), ("gymnasium", "envs/mujoco/assets")):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            files += glob.glob(os.path.join(os.path.dirname(spec.origin), folder, "*.xml"))
    return sorted(files)


def random_pose(model: mujoco.MjModel, data: mujoco.MjData, rng: np.random.Generator) -> None:
    """Joints anywhere in their ranges, free bodies turned at random and lifted a little."""
    mujoco.mj_resetData(model, data)
    for j in range(model.njnt):
        at, kind = model.jnt_qposadr[j], model.jnt_type[j]
        if kind == mujoco.mjtJoint.mjJNT_FREE:
            data.qpos[at + 2] += 0.1
            data.qpos[at + 3 : at + 7] = rng.normal(size=4)
        elif kind == mujoco.mjtJoint.mjJNT_BALL:
            data.qpos[at : at + 4] = rng.normal(size=4)
        else:
            limited = model.jnt_limited[j]
            low, high = model.jnt_range[j] if limited else data.qpos[at] + np.array([-0.5, 0.5])
            data.qpos[at] = rng.uniform(low, high)
    mujoco.mj_normalizeQuat(model, data.qpos)


def most_contacts(model: mujoco.MjModel, steps: int) -> int:
    """The most contacts of MuJoCo in `steps` steps with random controls, from the first pose and from a random one."""
    rng, data, most = np.random.default_rng(0), mujoco.MjData(model), 0
    limited = model.actuator_ctrllimited.astype(bool)
    low = np.where(limited, model.actuator_ctrlrange[:, 0], -1)
    high = np.where(limited, model.actuator_ctrlrange[:, 1], 1)
    for start in range(2):
        if start:
            random_pose(model, data, rng)
        for step in range(steps):
            if step % 20 == 0:
                data.ctrl[:] = rng.uniform(low, high)
            mujoco.mj_step(model, data)
            most = max(most, data.ncon)
    return most


def report(name: str, model: mujoco.MjModel, capacity: int, steps: int) -> bool:
    """Print what a model uses and has; whether that is too little."""
    most = most_contacts(model, steps)
    print(f"{name:32s} capacity {capacity:6d}  used {most:6d}  {'TOO SMALL' if most > capacity else ''}", flush=True)
    return most > capacity


def main(paths: list[str]) -> int:
    """Exit status: 1 if a default is too small."""
    files = [f for p in paths for f in (sorted(glob.glob(os.path.join(p, "*.xml"))) if os.path.isdir(p) else [p])]
    small = []
    warnings.simplefilter("ignore")
    for name, xml in {} if paths else SCENES.items():
        small += [report(name, mujoco.MjModel.from_xml_string(xml), jaxsim.load_model(xml).max_contacts, STEPS)]
    for file in files if paths else default_files():
        try:
            model = mujoco.MjModel.from_xml_path(file)
        except ValueError:  # a part of a model
            continue
        small += [report(os.path.basename(file), model, jaxsim.load_model(file).max_contacts, STEPS)]
    print(f"{len(small)} models, {sum(small)} with too little")
    return int(any(small))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
