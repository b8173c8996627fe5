"""Random poses of pairs of geom types against the oracle, as `ci/parity_collision.py` runs them at length."""

import importlib.util
import pathlib

import pytest

PATH = pathlib.Path(__file__).parents[3] / "ci" / "parity_collision.py"
SPEC = importlib.util.spec_from_file_location("parity_collision", PATH)
parity = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(parity)
QUICK = [("plane", "cylinder"), ("sphere", "cylinder"), ("capsule", "box")]


@pytest.mark.parametrize("pair", QUICK, ids="-".join)
def test_contacts_and_distances_are_the_oracles_or_ties(pair):
    found, *_ = parity.check(pair, 60, margin=0.02)
    assert found["contacts"] > 20 and not found["unexplained"]


@pytest.mark.slow
@pytest.mark.parametrize("pair", [p for p in parity.PAIRS if p not in QUICK], ids="-".join)
def test_contacts_and_distances_of_other_pairs(pair):
    found, *_ = parity.check(pair, 200)
    assert found["contacts"] > 50 and len(found["unexplained"]) <= 4
