"""The generated table of gradients: its method on a small model, and its page."""

import importlib
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxsim

CI = Path(__file__).parents[1] / "ci"
BEAD = """<mujoco><option tolerance="1e-14" iterations="50"/><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 .099"><joint name="x" type="slide" axis="1 0 0" damping=".5"/><joint type="slide" axis="0 0 1"/>
<geom size=".1" mass="1"/></body></worldbody><actuator><motor joint="x"/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def module():
    sys.path.insert(0, str(CI))
    yield importlib.import_module
    sys.path.remove(str(CI))


@pytest.mark.slow
def test_all_fields_of_a_bead_in_contact_are_right_and_a_wrong_derivative_is_seen(module):
    check = module("gradient_check")
    m = jaxsim.load_model(BEAD)
    d = jax.jit(jaxsim.step)(m, jaxsim.make_data(m))
    program = check.compiled(m, d, together=True)
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
def test_random_states_of_a_bead_have_finite_gradients(module):
    with jax.enable_x64(False):
        assert module("gradient_scan").scan(jaxsim.load_model(BEAD), 100, batch=50) == (0, 100)


def test_differences_tell_kinks_and_jumps_of_slope(module):
    check = module("gradient_check")
    x, v = np.array([0.0, 1.0]), np.ones(2)

    def f(x):
        return np.stack([abs(x[:, 0]), x[:, 1] ** 3, np.maximum(x[:, 1], 1 + 3e-5)], 1)

    dy = np.array([0.0, 3.0, 0.0])
    near = check.ends(f, x, v, check.STEPS[1:2])[0]
    error = check.compare(f, x, f(x[None])[0], v, dy, np.ones(3), check.STEPS, near)
    assert np.isnan(error[[0, 2]]).all() and error[1] < 1e-8


def test_doubtful_entries_are_measured_again_by_differences_of_eighth_order(module):
    check = module("gradient_check")

    def f(x):
        return np.stack([x[:, 0] ** 8, np.sin(30 * x[:, 1])], 1)

    x, v, dy = np.ones(2), np.ones(2), np.array([8.0, 30 * np.cos(30)])
    for slope in check.romberg(f, x, v, 8e-3):
        np.testing.assert_allclose(slope, dy, rtol=1e-11)
    wrong = dy * (1 + 2e-6)
    near = check.ends(f, x, v, check.STEPS[1:2])[0]
    error = check.compare(f, x, f(x[None])[0], v, wrong, np.abs(dy), check.STEPS, near)
    np.testing.assert_allclose(error, 2e-6, rtol=1e-4)


def test_entries_that_differences_cannot_tell_count_as_kinks(module):
    """A step narrower than all differences; values that are rounded to 1e-9; a wrong derivative beside them."""
    check = module("gradient_check")
    noise = np.random.default_rng(0)

    def f(x):
        step, rounded = x[:, 0] + 1e-9 * np.tanh((x[:, 0] - 1) * 1e7), x[:, 1] + 1e-9 * noise.standard_normal(len(x))
        return np.stack([step, rounded, x[:, 2]], 1)

    x, slope = np.ones(3), np.array([1.0, 1.0, 1.0])
    dy, width = np.array([1.01, 1 + 2e-6, 1 + 2e-6]), np.full(3, 1e-3)
    error = check.reconsidered(f, x, f(x[None])[0], x, dy, slope, np.abs(dy - slope), slope, width)
    assert np.isnan(error[:2]).all()
    np.testing.assert_allclose(error[2], 2e-6, rtol=1e-3)


def test_page_sorts_fields_into_checked_unused_and_zero_by_nature(module):
    table = module("gradient_table")
    zero = {"size": 0.0, "error": 0.0, "reverse": 0.0, "checked": 0, "kinks": 0, "finite": True, "output": ""}
    rows = {"body_mass": zero | {"error": 2e-8, "reverse": 1e-12, "checked": 9}, "geom_rgba": zero, "pair_gap": zero}
    page = table.render(
        [{"model": "cart", "function": "step", "rows": rows}], [{"model": "cart", "bad": 0, "states": 1024}]
    )
    assert "| `body_mass` | 2e-08 |  | 1e-12 | 9 | 0 | cart |" in page
    assert "starts of searches): `geom_rgba`." in page and "by these models: `pair_gap`." in page
    assert "0 of 1,024 random states" in page
