"""The contacts of flexes that are kept of too many: in sequence on a CPU as by operations of JAX."""

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim.core.types import MAXCONPAIR
from jaxsim.engine.collision.flex import segments
from jaxsim.engine.collision.flex.choice import choose
from jaxsim.engine.collision.flex.found import ID_NAMES
from jaxsim.native import compiler as native
from jaxsim.native.stage import stage
from jaxsim.native.world_program import WORLD_PROGRAM
from tests.engine.collision.flex.cases import CLOTH, SPHERE, flexcomp, scene

pytestmark = pytest.mark.skipif(native.c_compiler() is None, reason="no C compiler (cc) to compare with XLA")
GRID = 'dim="2" count="9 9 1"'
XML = scene(SPHERE + flexcomp(GRID, CLOTH, pos="0 0 .152") + flexcomp(GRID, CLOTH, name="g", pos="0 0 .2"))


def contacts(m, seed, count=400):
    """Random contacts: numbers, keys, ids and segments, a quarter of them absent."""
    rng = np.random.default_rng(seed)
    nseg = len(segments.segments(m).kind)
    numbers = rng.normal(size=(count, 7))
    numbers[::5, 0] = numbers[0, 0]  # equal depths
    numbers[1::7, 1:4] = numbers[1, 1:4]  # equal places
    keys = np.stack([np.full(count, 2), rng.integers(0, 9, count), rng.integers(0, 9, count)], axis=1)
    ids = np.full((count, len(ID_NAMES)), -1)
    for k in ("flex1", "flex2"):
        ids[:, ID_NAMES.index(k)] = rng.integers(0, m.nflex, count)
    for k in ("elem1", "elem2"):
        ids[:, ID_NAMES.index(k)] = rng.integers(0, m.flex_elemnum[0], count)
    segment = np.where(rng.uniform(size=count) < 0.25, nseg, rng.integers(0, nseg, count))
    segment[segment == 0] = np.where(np.arange((segment == 0).sum()) < MAXCONPAIR, 0, nseg)  # one that is just full
    return numbers, keys.astype(np.int32), ids.astype(np.int32), segment.astype(np.int32)


@pytest.mark.parametrize("seed", range(4))
def test_the_program_in_c_keeps_what_the_plain_form_keeps(seed, monkeypatch):
    m = jaxsim.load_model(XML)
    d = jaxsim.make_data(m)
    given = contacts(m, seed)
    found = jax.jit(lambda *x: choose(m, d, *x))(*given)
    monkeypatch.delitem(WORLD_PROGRAM.programs, "cpu")  # no C
    plain = jax.jit(lambda *x: choose(m, d, *x) + 0)(*given)
    assert np.array_equal(found, plain)
    on_gpu = jax.jit(stage(lambda *x: choose(m, d, *x), form="host"))(*given)
    assert np.array_equal(found, on_gpu)
    segment = given[-1]
    assert max(np.bincount(segment[np.asarray(found) >= 0])[:-1]) == MAXCONPAIR
    assert min(np.asarray(found)) == -1
