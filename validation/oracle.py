"""Copy what the oracle computed into our `Data`, so that one stage can be tested apart from all others."""

import mujoco
import numpy as np

import jaxsim
from jaxsim.core.contact import CONTACT_FIELDS
from jaxsim.core.data import DATA_FIELDS

SKIPPED = {"solver_niter", "actuator_moment", "maxuse_con", "maxuse_efc", "overflow_contacts", "overflow_constraints"}


def oracle_data(m: jaxsim.Model, d: jaxsim.Data, mj_data: mujoco.MjData) -> jaxsim.Data:
    """`d` with every field that the oracle has too, contacts included."""
    names = [name for name, *_ in DATA_FIELDS if name not in SKIPPED and hasattr(mj_data, name)]
    fields = {name: np.reshape(getattr(mj_data, name), np.shape(getattr(d, name))) for name in names}
    n = mj_data.ncon
    contact = {}
    for name, _, shape, *_ in CONTACT_FIELDS:
        value = np.array(getattr(d.contact, name))
        value[:n] = np.reshape(getattr(mj_data.contact, name), (n, *shape))
        contact[name] = value
    contact["exclude"][:n] = np.where(contact["exclude"][:n] == 3, 0, contact["exclude"][:n])
    return d.replace(**fields, contact=d.contact.replace(**contact))


def settled(xml: str, steps: int, seed: int = 0, noise: float = 0.0) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """The oracle's model and data after some steps with random controls, then one `mj_forward`."""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    data.qvel[:] = noise * rng.standard_normal(model.nv)
    for _ in range(steps):
        data.ctrl[:] = rng.uniform(-1, 1, model.nu)
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    return model, data


def dense_jacobian(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """The oracle's efc_J as (nefc, nv)."""
    if not mujoco.mj_isSparse(model):
        return data.efc_J[: data.nefc * model.nv].reshape(data.nefc, model.nv)  # with sleep, more is allocated
    out = np.zeros((data.nefc, model.nv))
    mujoco.mju_sparse2dense(out, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
    return out
