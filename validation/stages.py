"""Compare stages with the reference engine: states along its trajectory are copied over, one step is made by both."""

import jax.numpy as jnp
import mujoco
import numpy as np

import jaxsim
from jaxsim.engine.collision.broad.capacity import default_capacities
from jaxsim.io.mujoco import host_model

STATE = ("time", "qpos", "qvel", "act", "ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat")
INPUTS = (*STATE, "qacc_warmstart", "eq_active")


def load(xml: str, **options) -> mujoco.MjModel:
    """The reference's model of an XML string, with options set."""
    mj_model = mujoco.MjModel.from_xml_string(xml)
    for name, value in options.items():
        setattr(mj_model.opt, name, value)
    return mj_model


def states(mj_model: mujoco.MjModel, count: int = 3, skip: int = 7, seed: int = 0, noise: float = 0.5):
    """Data of the reference along a trajectory with random velocities, controls and applied forces."""
    rng = np.random.default_rng(seed)
    mj_data = mujoco.MjData(mj_model)
    if mj_model.nkey:
        mujoco.mj_resetDataKeyframe(mj_model, mj_data, 0)
    mj_data.qvel += noise * rng.standard_normal(mj_model.nv)
    out = []
    for _ in range(count):
        for _ in range(skip):
            mj_data.ctrl[:] = noise * rng.standard_normal(mj_model.nu)
            mujoco.mj_step(mj_model, mj_data)
        mj_data.qfrc_applied[:] = noise * rng.standard_normal(mj_model.nv)
        mj_data.xfrc_applied[1:] = noise * rng.standard_normal((mj_model.nbody - 1, 6))
        if mj_model.nmocap:
            mj_data.mocap_quat += 0.1 * rng.standard_normal((mj_model.nmocap, 4))
        state = mujoco.MjData(mj_model)
        for name in INPUTS:
            copy_field(state, mj_data, name)
        out.append(state)
    return out


def copy_field(to, source, name: str):
    """Assign one field of mjData."""
    value = getattr(source, name)
    if np.ndim(value):
        getattr(to, name)[:] = value
    else:
        setattr(to, name, value)


def to_data(m: jaxsim.Model, mj_data: mujoco.MjData) -> jaxsim.Data:
    """Our data at the state of the reference's."""
    return jaxsim.make_data(m).replace(**{n: jnp.asarray(getattr(mj_data, n)) for n in INPUTS})


def field(mj_model: mujoco.MjModel, mj_data: mujoco.MjData, name: str) -> np.ndarray:
    """A field of the reference's data in the form that ours has (dense moments)."""
    value = np.asarray(getattr(mj_data, name))
    if name == "actuator_moment":
        dense = np.zeros((mj_model.nu, mj_model.nv))
        mujoco.mju_sparse2dense(
            dense, value.reshape(-1), mj_data.moment_rownnz, mj_data.moment_rowadr, mj_data.moment_colind.reshape(-1)
        )
        return dense
    return value


def assert_fields(names, mj_model, mj_data, d, tolerance: float = 1e-9):
    """Compare fields one by one, in order; the first that differs is named. Scale is the field's largest entry."""
    for name in names:
        want = field(mj_model, mj_data, name)
        got = np.asarray(getattr(d, name)).reshape(want.shape)
        scale = max(1.0, np.abs(want).max(initial=0))
        worst = np.abs(got - want).max(initial=0) / scale
        assert np.isfinite(worst) and worst <= tolerance, f"{name} differs by {worst:.3g}\n{got - want}"


def host(mj_model: mujoco.MjModel) -> jaxsim.Model:
    """Our model on the host: its stages run on numpy, with nothing to compile."""
    return default_capacities(host_model(mj_model))


def host_data(m: jaxsim.Model, mj_data: mujoco.MjData) -> jaxsim.Data:
    """Our data on the host at the state of the reference's."""
    return jaxsim.make_data(m).replace(**{n: getattr(mj_data, n) for n in INPUTS})


def exact(mj_model: mujoco.MjModel) -> mujoco.MjModel:
    """The same model with a solver that goes on until nothing changes."""
    mj_model.opt.tolerance, mj_model.opt.ls_tolerance = 1e-15, 1e-12
    mj_model.opt.iterations = mj_model.opt.ls_iterations = 200
    return mj_model
