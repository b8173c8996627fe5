"""Near pairs of large models: sweep and prune as machine code against the grid."""

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.collision.broad import broadphase
from jaxsim.native import compiler as native
from tests.engine.collision.test_driver import everything
from tests.engine.collision.test_in_sequence import in_plain_form, posed

pytestmark = pytest.mark.skipif(native.c_compiler() is None, reason="no C compiler (cc) to compare with XLA")
FLAGS = ("", 'filterparent="disable"', 'midphase="disable"', 'override="enable"')


def near(m, d, capacity):
    return jax.jit(jax.vmap(lambda d: broadphase.near_pairs(m, d, capacity)))(d)


def pairs_of(found, world):
    real = np.asarray(found.real[world])
    return [tuple(row) for row in np.column_stack([found.geom[world], found.pair[world]])[real].tolist()]


@pytest.mark.parametrize("flag", FLAGS)
def test_the_sweep_finds_pairs_of_the_grid_in_their_order_and_none_that_touch_is_missing(flag, monkeypatch):
    xml = everything(4, flag)
    m = jaxsim.load_model(xml)
    d = posed(m, mujoco.MjModel.from_xml_string(xml), 6)
    capacity = broadphase.near_capacity(m)
    ours = near(m, d, capacity)
    geoms = jax.jit(jax.vmap(jaxsim.collision, in_axes=(None, 0)))(m, d).contact.geom
    in_plain_form(monkeypatch)
    plain = near(m, d, capacity)
    missing = 0
    for world in range(6):
        mine, all_near = pairs_of(ours, world), pairs_of(plain, world)
        assert len(all_near) > 5
        assert mine == [p for p in all_near if p in set(mine)]
        touching = {tuple(sorted(g)) for g in np.asarray(geoms[world]).tolist()} - {(-1, -1)}
        assert touching and touching <= {tuple(sorted(p[:2])) for p in mine}
        missing += len(all_near) - len(mine)  # boxes along the axes of the world are apart
    assert missing <= 3


def test_geoms_that_are_far_or_no_numbers_meet_nothing_and_spoil_nothing():
    balls = "".join(f'<body pos="{0.15 * i} 0 0"><freejoint/><geom size=".1"/></body>' for i in range(40))
    m = jaxsim.load_model(f"<mujoco><worldbody>{balls}</worldbody></mujoco>")
    d = jax.jit(jaxsim.kinematics)(m, jaxsim.make_data(m))
    d = d.replace(geom_xpos=d.geom_xpos.at[7, 0].set(np.nan).at[9, 0].set(1e12).at[20, 1].set(-np.inf))
    found = near(m, jax.tree.map(lambda x: x[None], d), 256)
    pairs = {tuple(sorted(p)) for p in np.asarray(found.geom[0])[np.asarray(found.real[0])].tolist()}
    left = set(range(40)) - {7, 9, 20}
    assert pairs == {(i, i + 1) for i in range(39) if {i, i + 1} <= left}
