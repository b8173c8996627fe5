"""What a person sees of Option, Data, Contact and Warning; options by MJCF's words."""

import jax
import jax.numpy as jnp
import pytest

import jaxsim
from jaxsim.core.types import ConeType, IntegratorType, SolverType, WarningType

XML = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .09"><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>"""


@pytest.fixture(scope="module")
def simulated():
    m = jaxsim.load_model(XML)
    return m, jaxsim.step(m, jaxsim.make_data(m))


def test_data_shows_time_state_and_counts(simulated):
    _, d = simulated
    text = repr(d)
    assert text.startswith("Data(time=0.002, qpos=[0, 0, 0.09") and "ncon=1, nefc=4" in text and "warning" not in text
    batch = jax.tree.map(lambda x: jnp.stack([x] * 3), d)
    assert repr(batch).startswith("Data(3 worlds, time=[0.002, 0.002, 0.002], qpos=float64[3, 7]")


def test_contacts_in_use_are_listed(simulated):
    _, d = simulated
    head, line = repr(d.contact).splitlines()
    assert head == f"Contact(1 of {len(d.contact.dist)} in use)" and line.startswith("  geoms [0, 1]: dist -0.0")
    batch = jax.tree.map(lambda x: jnp.stack([x] * 3), d.contact)
    assert repr(batch) == f"Contact(3 worlds, in use [1 1 1] of {len(d.contact.dist)})"


def test_warnings_are_named(simulated):
    m, d = simulated
    assert repr(d.warning) == "Warning(none)"
    bad = jaxsim.step(m, d.replace(qvel=d.qvel.at[2].set(jnp.nan)))
    assert repr(bad.warning) == "Warning(BADQVEL: 1 (last at 2))"
    assert "warning=Warning(BADQVEL" in repr(bad) and WarningType.BADQVEL.name in repr(bad)


def test_options_are_shown_by_words(simulated):
    m, _ = simulated
    text = repr(m.opt.replace(integrator=1, enableflags=3))
    assert "timestep=0.002," in text and "integrator='rk4'," in text and "enableflags=OVERRIDE | ENERGY," in text
    assert "tolerance=1e-08," in text


def test_what_is_traced_or_a_tree_of_axes_can_be_shown(simulated):
    m, d = simulated
    seen = []
    jax.eval_shape(lambda d: seen.append([repr(d), repr(d.contact), repr(d.warning)]) or d.qpos, d)
    assert seen[0][0].startswith("Data(qpos=float64[7]") and "float64" in seen[0][1] and "int32" in seen[0][2]
    axes = jax.tree.map(lambda _: 0, d)
    assert repr(axes) and repr(axes.contact) and repr(axes.warning) and repr(jax.tree.map(lambda _: None, m).opt)


@pytest.mark.parametrize(
    ("name", "word", "value"),
    [
        ("integrator", "RK4", IntegratorType.RK4),
        ("integrator", "implicitfast", IntegratorType.IMPLICITFAST),
        ("cone", "elliptic", ConeType.ELLIPTIC),
        ("solver", "CG", SolverType.CG),
        ("solver", SolverType.NEWTON, SolverType.NEWTON),
    ],
)
def test_options_take_mjcfs_words(simulated, name, word, value):
    m, _ = simulated
    assert getattr(m.opt.replace(**{name: word}), name) == value


def test_missing_attributes_stay_attribute_errors(simulated):
    m, d = simulated
    for thing in (m, d, m.opt, d.contact, d.warning, d.efc):
        assert not hasattr(thing, "__jax_array__") and not hasattr(thing, "nothing_like_it")
        assert getattr(thing, "nothing_like_it", 3) == 3
