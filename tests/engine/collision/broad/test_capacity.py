"""Default capacities, and those suggested from a simulation."""

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.collision.broad.capacity import contact_bound, is_affordable, suggest_capacity
from jaxsim.engine.collision.broad.neighbours import group_pairs
from jaxsim.engine.collision.broad.overlap import max_overlapping_weight
from jaxsim.engine.collision.broad.pairs import candidates
from validation.crowded import SCENES


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


FOLDED = """<mujoco><default><geom size=".1 .1 .1"/></default><worldbody><body><freejoint/><geom type="box"/>
  <body pos=".05 0 0"><joint axis="0 0 1"/><geom type="box" size=".02 .02 .02"/>
  <body pos=".05 0 0"><joint axis="0 0 1"/><geom type="{kind}"/>
  <body pos="{x} 0 0"><joint axis="0 1 0"/><geom type="box"/>
  <body pos=".02 0 0"><joint axis="1 0 0"/><geom type="box"/>
  <body pos="-.02 0 0"><joint axis="0 1 0"/><geom type="box"/>
  <body pos=".01 0 0"><joint axis="1 0 0"/><geom type="{kind}"/></body></body></body></body></body></body></body>
  </worldbody><keyframe>{key}</keyframe></mujoco>"""


@pytest.mark.parametrize("kind", ["box", "capsule", "ellipsoid", "cylinder"])
def test_capacity_suffices_for_a_chain_that_overlaps_itself_at_the_start(kind):
    mj = mujoco.MjModel.from_xml_string(FOLDED.format(kind=kind, x="0", key=""))
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    assert jaxsim.from_mujoco(mj).max_contacts >= data.ncon > 20


def overlapping(xml):
    """Contacts of the pairs that overlap in some pose of the model, a contact each."""
    m = jax.device_get(model(xml, max_contacts=0, max_constraints=0))
    pairs = candidates(m)
    return max_overlapping_weight(m, pairs, np.ones(len(pairs.pair)), 0)


def test_pairs_with_a_separating_plane_do_not_count():
    sizes = [overlapping(FOLDED.format(kind="capsule", x=x, key="")) for x in ("0", "2")]
    assert sizes[0] > sizes[1]


def test_keyframes_count():
    straight = " ".join(["0 0 0 1 0 0 0", *["0"] * 6])
    tall = FOLDED.replace('axis="0 1 0"/><geom type="box"/>', 'type="slide" axis="1 0 0"/><geom type="box"/>', 1)
    key = '<key qpos="0 0 0 1 0 0 0 0 0 -2 0 0 0"/>'
    far = overlapping(tall.format(kind="box", x="2", key=f'<key qpos="{straight}"/>'))
    assert overlapping(tall.format(kind="box", x="2", key=key)) > far


@pytest.mark.parametrize(
    ("kind", "least"), [('size=".1"', 3), ('type="capsule" size=".1 .1"', 6), ('type="box" size=".1 .1 .1"', 14)]
)
def test_capacity_suffices_for_a_heap(kind, least):
    assert model(pile(60, kind)).max_contacts >= 60 * least


def test_a_body_may_touch_a_prism_of_the_ground_with_each_part():
    field = '<asset><hfield name="f" nrow="60" ncol="60" size="1 1 .1 .1"/></asset>'
    xml = f"""<mujoco>{field}<worldbody><geom type="hfield" hfield="f"/><geom type="plane" size="1 1 .1"/>
      {{}}</worldbody></mujoco>"""
    body = '<body pos="{} 0 1"><freejoint/><geom type="ellipsoid" contype="0" size="{}"/></body>'
    small, large = ("".join(body.format(i, size) for i in range(6)) for size in (".02 .02 .02", ".5 .5 .1"))
    assert model(xml.format(large)).max_contacts >= 6 * 51
    assert model(xml.format(small)).max_contacts <= 6 * 5


def test_given_capacities_are_kept():
    m = model(pile(3), max_contacts=5, max_constraints=7)
    assert (m.max_contacts, m.max_constraints) == (5, 7)


def test_suggestion_takes_the_worst_world_and_a_quarter_more():
    m = model(pile(10))
    d = jaxsim.make_data(m)
    d = d.replace(maxuse_con=np.array([3, 8, 2]), maxuse_efc=np.array([12, 32, 8]))
    assert suggest_capacity(m, d) == (10, 40)


def test_suggestion_suffices_to_search_prisms_of_a_height_field():
    xml = """<mujoco><asset><hfield name="f" nrow="20" ncol="20" size="1 1 .1 .1"/></asset><worldbody>
      <geom type="hfield" hfield="f"/>
      <body><freejoint/><geom type="box" size=".9 .9 .1"/></body></worldbody></mujoco>"""
    m = model(xml)
    assert m.max_contacts == 50
    d = jaxsim.make_data(m)
    assert suggest_capacity(m, d.replace(maxuse_con=np.array(400))).max_contacts == 500


@pytest.mark.parametrize("name", SCENES)
def test_default_suffices_where_bodies_touch_many_geoms(name):
    mj = mujoco.MjModel.from_xml_string(SCENES[name])
    data, most = mujoco.MjData(mj), 0
    for _ in range(300):
        mujoco.mj_step(mj, data)
        most = max(most, data.ncon)
    assert jaxsim.from_mujoco(mj).max_contacts >= most > 0


def test_a_geom_covers_as_many_of_one_shape_as_fit_its_width():
    floor = "".join(f'<geom type="box" size=".5 .5 .1" pos="{i} {j} 0"/>' for i in range(6) for j in range(6))
    xml = "<mujoco><worldbody>{}{}</worldbody></mujoco>"
    ball = '<body pos="0 0 {}"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    m = jax.device_get(model(xml.format(floor, ball.format(1)), max_contacts=0, max_constraints=0))
    pairs = candidates(m)
    near = group_pairs(m, pairs, np.full(len(pairs.pair), 4.0))
    assert near.contacts.tolist() == [16, 16]


def test_a_capacity_is_the_bound_where_that_is_affordable():
    m = model(pile(3))
    assert (m.max_contacts, is_affordable(m, m.max_contacts)) == (contact_bound(m), True)
    assert model(pile(60)).max_contacts < contact_bound(model(pile(60)))
