"""Sensor readings here and in the reference, from the same states."""

import jax
import mujoco
import numpy as np

import jaxsim
from validation.stages import exact, states, to_data


def sensordata(mj_model: mujoco.MjModel, m: jaxsim.Model, count: int = 3, **how) -> tuple[np.ndarray, np.ndarray]:
    """sensordata (count, nsensordata) of `forward` from states along a trajectory: ours and the reference's."""
    exact(mj_model)
    m = m.replace(opt=m.opt.replace(tolerance=1e-15, iterations=200, ls_iterations=200, ls_tolerance=1e-12))
    forward = jax.jit(jaxsim.forward)
    ours, theirs = [], []
    for state in states(mj_model, count, **how):
        ours.append(forward(m, to_data(m, state)).sensordata)
        mujoco.mj_forward(mj_model, state)
        theirs.append(state.sensordata.copy())
    return np.array(ours), np.array(theirs)
