"""Equalities on edges, vertices and strain of flexes: rows, forces and accelerations against MuJoCo's."""

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from tests.engine.flex.cases import CONSTRAINED
from validation.oracle import dense_jacobian
from validation.stages import assert_fields, exact, load, states, to_data

ROWS = ("type", "id", "pos", "diagApprox", "D", "vel", "aref", "force")
SOLVER = mujoco.mjtSolver


def compare(case, **options):
    """One `forward` of both from two states."""
    model = exact(load(CONSTRAINED[case], **options))
    m = jaxsim.from_mujoco(model)
    forward = jax.jit(jaxsim.forward)
    for data in states(model, 2, 1, noise=0.2):
        d = forward(m, to_data(m, data))
        mujoco.mj_forward(model, data)
        assert int(d.nefc) == data.nefc > 0
        for name in ROWS:
            want = getattr(data, f"efc_{name}")
            scale = max(1, np.abs(want).max())
            got = np.asarray(getattr(d, f"efc_{name}"))[: data.nefc]
            np.testing.assert_allclose(got, want, atol=1e-6 * scale, rtol=0, err_msg=name)
        jacobian = dense_jacobian(model, data)
        np.testing.assert_allclose(d.efc_J[: data.nefc], jacobian, atol=1e-9 * max(1, np.abs(jacobian).max()), rtol=0)
        assert_fields(("qfrc_constraint", "qacc"), model, data, d, 1e-6)


@pytest.mark.parametrize("case", CONSTRAINED)
def test_rows_and_their_forces_are_those_of_mujoco(case):
    compare(case)


@pytest.mark.parametrize(
    "options",
    [{"solver": SOLVER.mjSOL_CG}, {"solver": SOLVER.mjSOL_PGS}, {"jacobian": mujoco.mjtJacobian.mjJAC_SPARSE}],
)
def test_the_answer_does_not_depend_on_the_solver(options):
    compare("cloth of held edges", **{name: int(value) for name, value in options.items()})


def test_equalities_can_be_switched_off():
    m = jaxsim.load_model(CONSTRAINED["cloth of held edges"])
    d = jaxsim.make_data(m)
    assert int(jaxsim.forward(m, d).nefc) == int(m.flex_edgenum[0]) - int(m.flexedge_rigid.sum())
    assert int(jaxsim.forward(m, d.replace(eq_active=d.eq_active & False)).nefc) == 0


def test_sleep_is_refused_as_in_mujoco():
    xml = CONSTRAINED["cloth of held edges"].replace('energy="enable"', 'sleep="enable"')
    m = jaxsim.load_model(xml)
    with pytest.raises(jaxsim.UnsupportedError, match="sleep with equalities of tendons or flexes"):
        jaxsim.forward(m, jaxsim.make_data(m))
