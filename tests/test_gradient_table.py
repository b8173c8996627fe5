"""The generated table of gradients: its method on a small model, and its page."""

import importlib.util
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxsim

PATH = Path(__file__).parents[1] / "ci" / "gradient_table.py"
BEAD = """<mujoco><option tolerance="1e-14" iterations="50"/><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 .099"><joint name="x" type="slide" axis="1 0 0" damping=".5"/><joint type="slide" axis="0 0 1"/>
<geom size=".1" mass="1"/></body></worldbody><actuator><motor joint="x"/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def table():
    spec = importlib.util.spec_from_file_location("gradient_table", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_all_fields_of_a_bead_in_contact_are_right_and_a_wrong_derivative_is_seen(table):
    m = jaxsim.load_model(BEAD)
    forward, backward = table.compiled(m)
    d = jax.jit(jaxsim.step)(m, jaxsim.make_data(m))
    x = table.inputs_of(m, d)
    rows = table.check(forward, backward, d, x, np.random.default_rng(0))
    assert all(error < 1e-6 and reverse < 1e-9 and finite for _, error, reverse, finite in rows.values())
    assert all(rows[n][0] > 0 for n in ("body_mass", "geom_solref", "geom_friction", "d.ctrl", "opt.gravity"))

    def wrong(d, x, v):
        y, dy = forward(d, x, v)
        return y, 1.001 * dy

    bad = table.check(wrong, backward, d, {"body_mass": x["body_mass"]} | x, np.random.default_rng(0))
    assert bad["body_mass"][1] > 1e-4


def test_page_sorts_fields_into_checked_unused_and_zero_by_nature(table):
    found = {
        "body_mass": (1.0, 2e-8, 1e-12, True, "cart"),
        "geom_rgba": (0, 0, 0, True, "cart"),
        "pair_gap": (0, 0, 0, True, "cart"),
    }
    page = table.render(found, {"cart": (0, 1024)}, ["cart"])
    assert "| `body_mass` | 2.0e-08 | 1.0e-12 | cart |" in page
    assert "bounds, tolerances): `geom_rgba`." in page and "to its value):\n`pair_gap`." in page
    assert "cart: 0 of 1,024 random states" in page
