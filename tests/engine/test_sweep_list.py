"""The list behind the sweep: the whole language, from its schema; what is neither shown nor excused fails."""

import fnmatch

from tests.engine import sweep_list


def test_every_attribute_and_word_is_compared_after_a_step_or_cannot_change_one():
    shown = sweep_list.shown()
    open_ = [name for name in sweep_list.asked() if name not in shown and not sweep_list.why_not(name)]
    assert not open_, f"no case shows {open_}"


def test_no_excuse_outlives_its_reason():
    shown = sweep_list.shown()
    hidden = [name for name in sweep_list.asked() if name not in shown]
    patterns = [p for line in sweep_list.FREE for p in line.split("|")]
    stale = [p for p in patterns if "=" not in p and not any(fnmatch.fnmatchcase(n, p) for n in hidden)]
    assert not stale, f"these excuse nothing: {stale}"


def test_an_attribute_that_is_new_in_the_schema_would_be_missed():
    assert "joint/damping" in sweep_list.asked() and not sweep_list.why_not("joint/damping")
    assert "option/integrator=RK4" in sweep_list.asked() and not sweep_list.why_not("option/integrator=RK4")
    without = sweep_list.written('<joint damping="1"/>')
    assert "joint/damping" in without and "joint/stiffness" not in without
