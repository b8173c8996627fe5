"""The generated table of gradients: its method on a small model, and its page."""

import jax
import numpy as np
import pytest

import jaxsim
from validation import gradient_page, gradient_scan
from validation import gradients as check

BEAD = """<mujoco><option tolerance="1e-14" iterations="50"/><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 .099"><joint name="x" type="slide" axis="1 0 0" damping=".5"/><joint type="slide" axis="0 0 1"/>
<geom size=".1" mass="1"/></body></worldbody><actuator><motor joint="x"/></actuator></mujoco>"""


@pytest.mark.slow
def test_all_fields_of_a_bead_in_contact_are_right_and_a_wrong_derivative_is_seen():
    m = jaxsim.load_model(BEAD)
    d = jax.jit(jaxsim.step)(m, jaxsim.make_data(m))
    program = check.compiled(m, d)
    rows = check.check(program, m, d)
    assert all(r.error < 1e-6 and r.reverse < 1e-9 and r.finite for r in rows.values())
    moving = ("body_mass", "geom_solref", "geom_friction", "d.ctrl", "opt.gravity")
    assert all(rows[n].size > 0 and rows[n].checked > 10 for n in moving)

    def wrong(*args):
        y, dy, back = program.run(*args)
        return y, 1.001 * dy, back

    bad = check.check(program._replace(run=wrong), m, d)
    assert bad["body_mass"].error > 1e-4 and bad["body_mass"].reverse > 1e-6


@pytest.mark.slow
def test_random_states_of_a_bead_have_finite_gradients():
    with jax.enable_x64(False):
        assert gradient_scan.scan(jaxsim.load_model(BEAD), 100, batch=50) == (0, 100)


def test_differences_tell_kinks_and_jumps_from_smooth_stretches():
    h, x = 1e-3, np.longdouble([0, 1, 1, 2])

    def f(t):
        t = x + t
        return np.stack([abs(t[0]), np.exp(t[1]), np.maximum(t[2], 1 + h / 3), np.where(t[3] > 2 + h / 6, 1, 0)])

    values = [f(k * part * h) for part in check.PARTS for k in (1, -1)]
    wide, slope, kink = check.slopes(values, f(0), h)
    assert kink(np.ones(4)).tolist() == [True, False, True, True]
    assert abs(slope[1] - np.exp(x[1])) < 1e-15 < abs(wide[1] - np.exp(x[1]))


def test_force_of_constraints_is_measured_beside_the_force_it_is_a_difference_of():
    parts = {"qfrc_smooth": slice(0, 2), "qfrc_constraint": slice(2, 4), "qpos": slice(4, 5)}
    scale = check.scales(parts, np.array([5.0, 1, 0, 1e-15, 2]), np.array([9.0, 9, 0, 0, 1e4]))
    np.testing.assert_allclose(scale, [5, 5, 9e-6, 9e-6, 10])


def test_page_sorts_fields_into_checked_unused_and_zero_by_nature():
    zero = {"size": 0.0, "error": 0.0, "reverse": 0.0, "checked": 0, "kinks": 0, "finite": True, "output": ""}
    rows = {"body_mass": zero | {"error": 2e-8, "reverse": 1e-12, "checked": 9}, "geom_rgba": zero, "pair_gap": zero}
    page = gradient_page.render(
        [{"model": "cart", "function": "step", "rows": rows}], [{"model": "cart", "bad": 0, "states": 1024}]
    )
    assert "| `body_mass` | 2e-08 |  | 1e-12 | 9 | 0 | cart |" in page
    assert "starts of searches): `geom_rgba`." in page and "by these models: `pair_gap`." in page
    assert "0 of 1,024 random states" in page
