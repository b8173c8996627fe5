"""Pairs of elements whose boxes overlap: in sequence on a CPU as by operations of JAX."""

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.collision.flex import pairs
from jaxsim.xla.machine_code import native, world_program
from tests.engine.collision.flex.cases import CLOTH, flexcomp, scene

pytestmark = pytest.mark.skipif(native.c_compiler() is None, reason="compares machine code of a C compiler with XLA's")
CONTACT = 'selfcollide="narrow" internal="false"'
XML = scene(
    flexcomp('dim="2" count="9 9 1"', CLOTH, CONTACT)
    + flexcomp('dim="2" count="5 9 1"', CLOTH, CONTACT, name="g", pos="0 0 .02")
)


def found(m, aabb, relation):
    """The pairs of a relation as a set, and how many were dropped."""
    d = jaxsim.make_data(m)
    near = jax.jit(jax.vmap(lambda x: pairs.near_elements(m, d.replace(flexelem_aabb=x), relation)))(aabb)
    sets = [
        set(map(tuple, e[r].tolist())) for e, r in zip(np.asarray(near.element), np.asarray(near.real), strict=True)
    ]
    return sets, near.dropped.tolist()


@pytest.mark.parametrize("most", [0, pairs.TABLE_MAX_PAIRS], ids=["grid", "table"])
def test_the_program_in_c_finds_the_pairs_of_the_plain_form(most, monkeypatch):
    m = jaxsim.load_model(XML)
    rng = np.random.default_rng(0)
    aabb = np.concatenate(
        [rng.uniform(-0.3, 0.3, (3, m.nflexelem, 3)), rng.uniform(0.01, 0.05, (3, m.nflexelem, 3))], 2
    )
    if not most:  # a box that is no number lies in the grid's first cell, and in no place of a table
        aabb[2, 5, :3] = np.nan
    relations = pairs.relations(m)
    assert {r.flex for r in relations} == {(0, 0), (0, 1), (1, 1)}
    for relation in relations:
        ours = found(m, aabb, relation)
        with monkeypatch.context() as patched:
            patched.setattr(world_program, "natively", world_program.by_jax)
            patched.setattr(pairs, "TABLE_MAX_PAIRS", most)
            plain = found(m, aabb, relation)
        assert ours == plain
        assert min(map(len, ours[0])) > 5


def test_pairs_beyond_the_capacity_are_counted(monkeypatch):
    m = jaxsim.load_model(XML)
    aabb = np.broadcast_to([0, 0, 0, 1.0, 1, 1], (1, m.nflexelem, 6))
    relation = pairs.relations(m)[0]
    (every,), none = found(m, aabb, relation)
    monkeypatch.setattr(pairs, "NEAR_MIN", 10)
    monkeypatch.setattr(pairs, "NEAR_PER_ELEMENT", 1)
    (few,), dropped = found(m, aabb, relation)
    assert len(few) + dropped[0] == len(every) + none[0]
    assert few < every
