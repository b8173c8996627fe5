"""Random poses of pairs of geom types against the oracle, as `ci/parity_collision.py` runs them at length."""

import pytest

from validation import contacts

QUICK = [("plane", "cylinder"), ("sphere", "cylinder"), ("capsule", "box")]


@pytest.mark.parametrize("pair", QUICK, ids="-".join)
def test_contacts_and_distances_are_the_oracles_or_ties(pair):
    found, *_ = contacts.check(pair, 60, margin=0.02)
    assert found["contacts"] > 20 and not found["unexplained"]


@pytest.mark.slow
@pytest.mark.parametrize("pair", [p for p in contacts.PAIRS if p not in QUICK], ids="-".join)
def test_contacts_and_distances_of_other_pairs(pair):
    found, *_ = contacts.check(pair, 200)
    assert found["contacts"] > 50 and len(found["unexplained"]) <= 4
