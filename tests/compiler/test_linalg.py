"""Principal axes against MuJoCo's own, through the inertial frames that it compiles."""

import mujoco
import numpy as np
import pytest

from jaxsim.compiler import linalg
from jaxsim.core.errors import ModelError


def _reference(full):
    text = " ".join(repr(float(x)) for x in full)
    xml = (
        '<mujoco><compiler balanceinertia="true"/><worldbody><body>'
        f'<inertial pos="0 0 0" mass="1" fullinertia="{text}"/><freejoint/></body></worldbody></mujoco>'
    )
    m = mujoco.MjModel.from_xml_string(xml)
    return m.body_inertia[1], m.body_iquat[1]


def _random_inertia(rng, degenerate):
    a = rng.normal(size=(3, 3))
    if degenerate:
        q, _ = np.linalg.qr(a)
        a = q @ np.diag([1.0, 1.0, 1.3]) @ q.T
    else:
        a = a @ a.T + np.eye(3)
    diag = np.trace(a) * np.eye(3) - a
    return diag[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]


@pytest.mark.parametrize("degenerate", [False, True])
def test_principal_axes_equal_mujoco(degenerate):
    rng = np.random.default_rng(3)
    for _ in range(20):
        full = _random_inertia(rng, degenerate)
        inertia, quat = linalg.full_inertia(full)
        ref_inertia, ref_quat = _reference(full)
        np.testing.assert_allclose(inertia, ref_inertia, rtol=1e-12)
        np.testing.assert_allclose(quat, ref_quat, atol=1e-12)


@pytest.mark.parametrize("diag", [(1, 2, 2.5), (2.5, 2, 1), (1, 2.5, 2), (2, 2, 2), (2, 1, 2)])
def test_diagonal_inertia_is_sorted_as_mujoco_does(diag):
    inertia, quat = linalg.full_inertia([*diag, 0, 0, 0])
    ref_inertia, ref_quat = _reference([*diag, 0, 0, 0])
    np.testing.assert_allclose(inertia, ref_inertia, rtol=1e-12)
    np.testing.assert_allclose(quat, ref_quat, atol=1e-12)


def test_inertia_that_is_not_positive_is_refused():
    with pytest.raises(ModelError, match="principal inertias must be positive"):
        linalg.full_inertia([1, 1, -1, 0, 0, 0])


def test_eig3_ends_at_once_on_values_that_are_not_finite():
    for entry in ((0, 0), (0, 1), (1, 2)):
        full = np.eye(3)
        full[entry] = full[entry[::-1]] = np.nan
        values, quat = linalg.eig3(full)
        assert np.isnan(values).all()
        np.testing.assert_array_equal(quat, [1, 0, 0, 0])
