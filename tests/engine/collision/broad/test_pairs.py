"""Static filters of candidate pairs, and their order."""

import mujoco
import numpy as np

import jaxsim
from jaxsim.engine.collision.broad.pairs import candidates


def model(xml):
    return jaxsim.from_mujoco(mujoco.MjModel.from_xml_string(xml))


def ball(name, body="", extra=""):
    return f'<body name="{name}"><joint/><geom name="g{name}" size=".1" {extra}/>{body}</body>'


def named(m):
    return [tuple(m.id2name("geom", g) for g in pair) for pair in candidates(m).geom]


def test_parents_and_children_do_not_collide_unless_asked():
    xml = f"<mujoco><option><flag {{}}/></option><worldbody>{ball('a', ball('b', ball('c')))}</worldbody></mujoco>"
    assert named(model(xml.format(""))) == [("ga", "gc")]
    assert named(model(xml.format('filterparent="disable"'))) == [("ga", "gb"), ("ga", "gc"), ("gb", "gc")]


def test_the_world_collides_with_its_children():
    xml = f'<mujoco><worldbody><geom name="w" size="1"/>{ball("a", ball("b"))}</worldbody></mujoco>'
    assert named(model(xml)) == [("w", "ga"), ("w", "gb")]


def test_contype_and_conaffinity_decide():
    one, two = 'contype="1" conaffinity="0"', 'contype="0" conaffinity="1"'
    xml = f"<mujoco><worldbody>{ball('a', '', one)}{ball('b', '', one)}{ball('c', '', two)}</worldbody></mujoco>"
    assert named(model(xml)) == [("ga", "gc"), ("gb", "gc")]


def test_excluded_bodies_do_not_collide_but_explicit_pairs_do():
    contact = '<exclude body1="a" body2="b"/><pair geom1="gc" geom2="ga"/>'
    xml = f"<mujoco><worldbody>{ball('a')}{ball('b')}{ball('c')}</worldbody><contact>{contact}</contact></mujoco>"
    m = model(xml)
    assert named(m) == [("gc", "ga"), ("gb", "gc")] or named(m) == [("ga", "gc"), ("gb", "gc")]
    assert candidates(m).pair.tolist() == [0, -1]


def test_planes_do_not_collide_with_planes():
    plane = '<geom type="plane" size="1 1 1"/>'
    xml = f"<mujoco><worldbody>{plane}<body>{plane}</body></worldbody></mujoco>"
    assert not named(model(xml))


def test_many_static_geoms_cost_nothing_quadratic():
    fixed = "".join(f'<body pos="{i} 0 0"><geom size=".1"/></body>' for i in range(3000))
    m = model(f"<mujoco><worldbody>{fixed}{ball('a')}{ball('b')}</worldbody></mujoco>")
    assert len(candidates(m).pair) == 2 * 3000 + 1


def test_candidates_are_found_once_for_one_structure():
    xml = f"<mujoco><worldbody>{ball('a')}{ball('b')}</worldbody></mujoco>"
    assert candidates(model(xml)).geom is candidates(model(xml)).geom


def test_geoms_are_ordered_by_type_in_a_pair():
    xml = """<mujoco><worldbody><body><freejoint/><geom type="box" size=".1 .1 .1"/></body>
      <body><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    m = model(xml)
    assert np.all(np.diff(m.geom_type[candidates(m).geom]) >= 0)
