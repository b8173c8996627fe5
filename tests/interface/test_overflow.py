"""Warnings of capacities: estimates when a model is loaded, and what was dropped, each once in a process."""

import warnings

import jax
import pytest

import jaxsim
from jaxsim.engine.collision.broad import capacity
from jaxsim.interface import overflow
from tests.paths import MODELS

BOXES = "".join(f'<body pos="0 {i} .099"><freejoint/><geom type="box" size=".1 .1 .1"/></body>' for i in range(20))
XML = f'<mujoco><worldbody><geom type="plane" size="1 1 1"/>{BOXES}</worldbody></mujoco>'


@pytest.fixture(autouse=True)
def fresh():
    """A process that has not warned."""
    capacity.warn_once_of_estimate.cache_clear()
    overflow.reported.clear()


def capacity_warnings(record):
    return [str(w.message) for w in record if w.category is jaxsim.CapacityWarning]


def test_loading_warns_once_of_an_estimate():
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        m = jaxsim.load_model(XML)
        jaxsim.load_model(XML)
    (text,) = capacity_warnings(record)
    assert f"max_contacts={m.max_contacts} is an estimate" in text
    assert "suggest_capacity" in text


@pytest.mark.parametrize(("name", "speaks"), [("humanoid", False), ("arm_gripper", False), ("thirty_boxes", True)])
def test_loading_warns_of_estimates_of_heaps_and_not_of_a_robot_with_an_object(name, speaks):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        m = jaxsim.load_model(MODELS / f"{name}.xml")
    assert m.max_contacts < capacity.contact_bound(m)
    assert bool(capacity_warnings(record)) == speaks


@pytest.mark.parametrize("given", [{"max_contacts": 9}, {}])
def test_loading_is_silent_about_a_capacity_that_was_given_or_is_the_bound(given):
    xml = XML if given else XML.replace(BOXES, BOXES[: len(BOXES) // 20])
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        jaxsim.load_model(xml, **given)
    assert not capacity_warnings(record)


def test_the_first_overflow_of_an_eager_call_warns_with_counts_and_remedy():
    m = jaxsim.load_model(XML, max_contacts=9)
    d = jaxsim.make_data(m)
    with pytest.warns(jaxsim.CapacityWarning) as record:
        d, _ = jaxsim.rollout(m, d, nstep=2)
        jaxsim.rollout(m, d, nstep=1)
    (text,) = capacity_warnings(record)
    assert f"{2 * (80 - 9)} contacts were dropped in 1 of 1 worlds" in text
    assert "the capacity is 9, 80 were needed at a time; load with max_contacts=100" in text


def test_an_eager_step_warns_of_what_the_step_before_has_dropped():
    m = jaxsim.load_model(XML, max_contacts=9)
    d = jax.block_until_ready(jax.jit(jaxsim.step)(m, jaxsim.make_data(m)))
    with pytest.warns(jaxsim.CapacityWarning, match="71 contacts were dropped"):
        jaxsim.step(m, d)


def test_traced_data_and_enough_capacity_are_silent():
    m = jaxsim.load_model(XML, max_contacts=80)
    with warnings.catch_warnings():
        warnings.simplefilter("error", jaxsim.CapacityWarning)
        jaxsim.rollout(m, jaxsim.make_data(m), nstep=2)
        jax.jit(lambda d: jaxsim.rollout(m, d, nstep=2))(jaxsim.make_data(m))
