"""Derivatives of a user's model against differences, as a table."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.tools import cli, gradcheck

PENDULUM = """<mujoco><worldbody><body><joint name="j" axis="0 1 0" damping=".1" ref="10"/>
<geom type="capsule" fromto="0 0 0 .4 0 0" size=".02"/></body></worldbody>
<actuator><motor joint="j"/></actuator></mujoco>"""


def test_rows_tell_what_is_right_from_kinks_and_errors():
    slope = np.array([1.0, 2.0])
    weight = np.array([1.0, -1.0])
    back = float(weight @ slope)
    rows = gradcheck.judged(
        [
            ("right", 1, slope, back, slope, slope),
            ("forward", 1, slope * 1.01, back, slope, slope),
            ("reverse", 1, slope, back + 0.1, slope, slope),
            ("kink", 1, slope, back, slope * 3, slope * 2),
            ("nothing", 1, 0 * slope, 0.0, 1e-9 * slope, -1e-9 * slope),
        ],
        weight,
    )
    assert {row.leaf: row.verdict for row in rows} == {
        "right": "right",
        "forward": "DIFFERS",
        "reverse": "DIFFERS",
        "kink": "kink",
    }


def test_a_model_of_the_user_is_checked_leaf_by_leaf(tmp_path, capsys):
    (tmp_path / "m.xml").write_text(PENDULUM)
    assert cli.main(["gradcheck", str(tmp_path / "m.xml"), "--steps", "20", "--quiet"]) == 0
    printed = capsys.readouterr().out
    found = {line.split()[0]: line.split()[-1] for line in printed.splitlines() if line.endswith("right")}
    assert {"qpos", "qvel", "ctrl", "m.body_mass", "m.dof_damping", "m.opt.gravity"} <= set(found)
    assert "DIFFERS" not in printed and "0 contacts" in printed


def test_a_wrong_derivative_is_found(monkeypatch):
    m = jaxsim.load_model(PENDULUM)
    d = jaxsim.make_data(m)

    def outcome(m, d, delta):
        hidden = jnp.sin(jnp.float64(1.0) + delta["qvel"]) - delta["qvel"] * 0
        return jnp.concatenate([hidden, jnp.round(1e9 * delta["ctrl"]) / 1e9])  # a value without a derivative

    monkeypatch.setattr(gradcheck, "outcome", outcome)
    verdicts = {row.leaf: row.verdict for row in gradcheck.check(m, d)}
    assert verdicts == {"qvel": "right", "ctrl": "DIFFERS"}


def test_single_precision_is_refused(float32):
    m = jaxsim.load_model(PENDULUM)
    with pytest.raises(ValueError, match="double precision"):
        gradcheck.check(m, jaxsim.make_data(m))


@pytest.mark.slow
def test_derivatives_in_single_precision_are_checked_against_double(monkeypatch):
    m = jaxsim.load_model(PENDULUM)
    kinds, outcome = set(), gradcheck.outcome
    monkeypatch.setattr(gradcheck, "outcome", lambda m, d, x: kinds.add(str(d.qpos.dtype)) or outcome(m, d, x))
    rows = gradcheck.check(m, jaxsim.make_data(m).replace(qvel=np.ones(1)), single=True)
    assert kinds == {"float32", "float64"} and all(row.right for row in rows)
    assert 1e-10 < max(row.forward for row in rows) < 1e-4
