"""Derivatives of inverse dynamics against the reference's finite differences."""

import jax
import mujoco
import numpy as np

import jaxsim
from tests.test_support import model
from validation.stages import states, to_data

NAMES = ("DfDq", "DfDv", "DfDa", "DsDq", "DsDv", "DsDa", "DmDq")


def test_they_are_those_of_finite_differences():
    mj_model = model()
    m = jaxsim.from_mujoco(mj_model)
    data = states(mj_model, 1)[0]
    mujoco.mj_forward(mj_model, data)
    got = jax.jit(lambda m, d: jaxsim.inverse_derivatives(m, d, True))(m, to_data(m, data).replace(qacc=data.qacc))
    nv, ns, nM = m.nv, m.nsensordata, m.nM
    want = [np.zeros((nv, n)) for n in (nv, nv, nv, ns, ns, ns, nM)]
    mujoco.mjd_inverseFD(mj_model, data, 1e-7, 1, *want)
    for name, theirs in zip(NAMES, want, strict=True):
        scale = max(1, np.abs(theirs).max())
        np.testing.assert_allclose(getattr(got, name), theirs, atol=1e-5 * scale, err_msg=name)
