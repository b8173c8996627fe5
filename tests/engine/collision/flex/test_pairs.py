"""Pairs of elements whose boxes overlap: in sequence on a CPU as by operations of JAX."""

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.collision.flex import pairs, selves
from jaxsim.math import component
from jaxsim.math.component import split
from jaxsim.native import compiler as native
from jaxsim.native.world_program import WORLD_PROGRAM
from tests.engine.collision.flex.cases import CLOTH, flexcomp, scene

pytestmark = pytest.mark.skipif(native.c_compiler() is None, reason="no C compiler (cc) to compare with XLA")
CONTACT = 'selfcollide="sap" internal="false"'
XML = scene(
    flexcomp('dim="2" count="9 9 1"', CLOTH, CONTACT)
    + flexcomp('dim="2" count="5 9 1"', CLOTH, CONTACT, name="g", pos="0 0 .02")
)


def found(m, aabb, relation):
    """The pairs of a relation as a set, how many were dropped, and the ranks of elements."""
    d = jaxsim.make_data(m)
    near = jax.jit(jax.vmap(lambda x: pairs.near_elements(m, d.replace(flexelem_aabb=x), relation)))(aabb)
    sets = [
        set(map(tuple, e[r].tolist())) for e, r in zip(np.asarray(near.element), np.asarray(near.real), strict=True)
    ]
    return sets, near.dropped.tolist(), near.rank.tolist()


@pytest.mark.parametrize("most", [0, pairs.TABLE_MAX_PAIRS], ids=["grid", "table"])
def test_the_program_in_c_finds_the_pairs_of_the_plain_form(most, monkeypatch):
    m = jaxsim.load_model(XML)
    rng = np.random.default_rng(0)
    aabb = np.concatenate(
        [rng.uniform(-0.3, 0.3, (3, m.nflexelem, 3)), rng.uniform(0.01, 0.05, (3, m.nflexelem, 3))], 2
    )
    lost = aabb.copy()
    lost[:, 5, :3] = np.nan
    relations = pairs.relations(m)
    assert {r.flex for r in relations} == {(0, 0), (0, 1), (1, 1)}
    for relation in relations:
        ours, (of_lost, *_) = found(m, aabb, relation), found(m, lost, relation)
        with monkeypatch.context() as patched:
            patched.delitem(WORLD_PROGRAM.programs, "cpu")
            patched.setattr(pairs, "TABLE_MAX_PAIRS", most)
            assert ours == found(m, aabb, relation)
            assert of_lost == found(m, lost, relation)[0]
        assert min(map(len, ours[0])) > 5
        assert (len(set(ours[2][0])) > 1) == (relation.flex[0] == relation.flex[1])
        assert not any(5 in pair for pairs_of_world in of_lost for pair in pairs_of_world)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_elements_beside_each_other_are_told_from_those_that_may_touch(dtype):
    triangle = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0]], dtype)
    other = triangle + np.array([0.1, 0.1, 0], dtype)

    @jax.jit
    def apart(a, b, reach):
        corners = tuple(tuple(split(x) for x in v) for v in (a, b))
        return selves.far_along(component.sub(split(b.mean(0)), split(a.mean(0))), corners, reach), (
            selves.far_along_normals(corners, reach)
        )

    above, beside = (other + np.array(x, dtype) for x in ([0, 0, 0.3], [3, 0, 0]))
    assert not apart(triangle, other, 0.1)[1]
    assert apart(triangle, above, 0.29)[1] and not apart(triangle, above, 0.31)[1]
    assert apart(triangle, beside, 1)[0] and not apart(triangle, beside, 1)[1]
    assert not apart(triangle, beside, 2.2)[0]


def test_pairs_beyond_the_capacity_are_counted(monkeypatch):
    m = jaxsim.load_model(XML)
    aabb = np.broadcast_to([0, 0, 0, 1.0, 1, 1], (1, m.nflexelem, 6))
    relation = pairs.relations(m)[0]
    (every,), none, _ = found(m, aabb, relation)
    monkeypatch.setattr(pairs, "NEAR_MIN", 10)
    monkeypatch.setattr(pairs, "NEAR_PER_ELEMENT", 1)
    (few,), dropped, _ = found(m, aabb, relation)
    assert len(few) + dropped[0] == len(every) + none[0]
    assert few < every
