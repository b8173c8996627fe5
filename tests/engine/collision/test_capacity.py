"""Default capacities, and those read off a simulation."""

import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.collision.capacity import suggest_capacity


def pile(n, kind='type="box" size=".1 .1 .1"'):
    bodies = "".join(f'<body pos="0 0 {i}"><freejoint/><geom {kind}/></body>' for i in range(n))
    return f'<mujoco><worldbody><geom type="plane" size="1 1 1"/>{bodies}</worldbody></mujoco>'


def model(xml, **kwargs):
    return jaxsim.from_mujoco(mujoco.MjModel.from_xml_string(xml), **kwargs)


@pytest.mark.parametrize(("xml", "most"), [(pile(1), 4), (pile(1, 'size=".1"'), 1), (pile(2), 16), (pile(0), 0)])
def test_never_more_than_the_pairs_can_make(xml, most):
    assert model(xml).max_contacts == most


def test_grows_with_free_bodies_not_with_their_pairs():
    small, large = model(pile(40)).max_contacts, model(pile(80)).max_contacts
    assert small >= 8 * 40
    assert large == 2 * small


def test_given_capacities_are_kept():
    m = model(pile(3), max_contacts=5, max_constraints=7)
    assert (m.max_contacts, m.max_constraints) == (5, 7)


def test_suggestion_takes_the_worst_world_with_room_to_spare():
    m = model(pile(10))
    d = jaxsim.make_data(m)
    d = d.replace(maxuse_con=np.array([3, 8, 2]), maxuse_efc=np.array([12, 32, 8]))
    assert suggest_capacity(m, d) == (10, 40)
