"""Large models: near pairs from the grid give the contacts of the full list in its order; dropped pairs are counted."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.collision import driver
from jaxsim.engine.collision.broad import broadphase

KINDS = ('type="box" size=".1 .08 .06"', 'size=".09"', 'type="capsule" size=".05 .07"')
FIELDS = ("geom", "dim", "dist", "pos", "frame", "friction", "solref", "solimp", "includemargin", "exclude")


def scene(n=24):
    """Free bodies of mixed types, some with two geoms, a wall, a plane, an exclusion, an explicit pair, margins."""
    bodies = ""
    for i in range(n):
        two = f'<geom name="h{i}" size=".04" pos=".1 0 0" margin=".02" priority="1"/>' if i % 3 == 0 else ""
        place = f"{0.17 * (i % 4)} {0.17 * (i // 4 % 3)} {0.1 + 0.15 * (i // 12)}"
        bodies += f'<body name="b{i}" pos="{place}"><freejoint/><geom name="g{i}" {KINDS[i % 3]}/>{two}</body>'
    return f"""<mujoco><option><flag nativeccd="enable"/></option><worldbody>
    <geom type="plane" size="3 3 .1" condim="4"/><geom type="box" size=".05 3 1" pos="-.15 0 0"/>{bodies}</worldbody>
    <contact><exclude body1="b0" body2="b1"/><pair geom1="g4" geom2="g5" margin=".05" condim="1"/></contact></mujoco>"""


@functools.cache
def listed():
    m = jaxsim.load_model(scene())
    d = jax.jit(jaxsim.kinematics)(m, jaxsim.make_data(m))
    return m, d, jax.jit(jaxsim.collision)(m, d)


@functools.cache
def found():
    m, d, _ = listed()
    max_pairs, broadphase.LIST_MAX_PAIRS = broadphase.LIST_MAX_PAIRS, 0
    try:
        return jax.jit(lambda m, d: driver.collision(m, d))(m, d)
    finally:
        broadphase.LIST_MAX_PAIRS = max_pairs


def test_scene_has_contacts_of_many_types():
    m, _, want = listed()
    assert want.ncon > 20 and not broadphase.is_large(m)
    assert len(np.unique(m.geom_type[np.asarray(want.contact.geom)[: int(want.ncon)]], axis=0)) >= 5


@pytest.mark.parametrize("name", FIELDS)
def test_contacts_are_those_of_the_full_list(name):
    _, _, want = listed()
    got = found()
    assert got.ncon == want.ncon
    n = int(want.ncon)
    np.testing.assert_allclose(getattr(got.contact, name)[:n], getattr(want.contact, name)[:n], rtol=1e-12, atol=1e-12)


def test_the_grid_holds_the_small_geoms():
    m, _, _ = listed()
    grid = broadphase.grid_geoms(m.structure)
    assert not {0, 1} & set(grid.tolist())  # plane and wall
    assert len(grid) == m.ngeom - 2


def test_near_pairs_beyond_the_capacity_are_counted(monkeypatch):
    monkeypatch.setattr(broadphase, "LIST_MAX_PAIRS", 0)
    m, d, _ = listed()
    capacity = 10
    near = jax.jit(lambda m, d: broadphase.near_pairs(m, d, capacity))(m, d)
    every = jax.jit(lambda m, d: broadphase.near_pairs(m, d, broadphase.near_capacity(m)))(m, d)
    assert every.dropped == 0
    assert near.dropped == jnp.sum(every.real) - capacity > 0


def test_worlds_of_a_batch_are_independent(monkeypatch):
    monkeypatch.setattr(broadphase, "LIST_MAX_PAIRS", 0)
    m, d, want = listed()
    far = d.replace(geom_xpos=d.geom_xpos * jnp.linspace(1, 50, m.ngeom)[:, None])
    both = jax.tree.map(lambda *x: jnp.stack(x), d, far)
    got = jax.jit(jax.vmap(lambda d: driver.collision(m, d)))(both)
    assert got.ncon[0] == want.ncon > got.ncon[1]


def test_number_of_pairs_is_counted_without_listing_them():
    m, _, _ = listed()
    full = len(jaxsim.engine.collision.broad.pairs.candidates(m).pair)
    assert full <= sum(n for *_, n in broadphase.class_pairs(m.structure)) < 2 * full
