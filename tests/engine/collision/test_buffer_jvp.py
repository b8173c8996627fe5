"""Derivatives of contacts by evaluating colliders again, against those of the whole narrow phase."""

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.collision import driver, narrow
from jaxsim.engine.collision.buffer_jvp import is_reevaluated
from tests.engine.collision.test_driver import everything
from tests.paths import HUMANOID


def contacts(d):
    return {name: getattr(d.contact, name) for name in ("dist", "pos", "frame")}


def derivatives(m, d, direction):
    """Derivatives of contacts by geom poses and sizes, forward mode along `direction` and reverse mode."""

    def found(pos, mat, size):
        return contacts(jaxsim.collision(m.replace(geom_size=size), d.replace(geom_xpos=pos, geom_xmat=mat)))

    at = d.geom_xpos, d.geom_xmat, m.geom_size
    weights = jax.tree.map(lambda x: np.cos(np.arange(x.size)).reshape(x.shape), contacts(d))

    def both(v, w):
        linear = jax.linearize(found, *at)[1]
        return linear(*v), jax.linear_transpose(linear, *at)(w)

    return jax.jit(both)(direction, weights)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_reevaluated_contacts_have_the_derivatives_of_the_whole_narrow_phase(seed, monkeypatch):
    m = jaxsim.from_mujoco(mujoco.MjModel.from_xml_string(everything(seed)), max_contacts=150)
    d = jax.jit(jaxsim.kinematics)(m, jaxsim.make_data(m))
    assert 100 < int(jax.jit(jaxsim.collision)(m, d).ncon) < 150
    rng = np.random.default_rng(seed)
    direction = tuple(rng.standard_normal(x.shape) for x in (d.geom_xpos, d.geom_xmat, m.geom_size))
    found = []
    for choice in (lambda collider, *_: collider.setup is None, lambda *_: False):
        monkeypatch.setattr(narrow, "is_reevaluated", choice)
        found.append(derivatives(m, d, direction))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9), *found)
    assert max(np.abs(x).max() for x in jax.tree.leaves(found)) > 0.1


def test_a_collider_is_reevaluated_where_its_pairs_outnumber_the_contact_buffer():
    model = jaxsim.load_model(HUMANOID)
    reevaluated = {
        g.collider.function.__name__: is_reevaluated(g.collider, g.capacity, model.max_contacts)
        for g in driver.groups(model)
    }
    assert reevaluated["capsule_capsule"] and not reevaluated["plane_sphere"]
