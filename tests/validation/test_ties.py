"""Ties: a difference counts as one only where MuJoCo's own answer changes beside the pose."""

import copy
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

from validation import ties

SCENE = """<mujoco><worldbody><geom type="box" size="1 1 .1"/>
<body pos="0 0 {}"><freejoint/><geom type="box" size=".1 .2 .1" euler="0 0 {}"/></body></worldbody></mujoco>"""


def ours_of(data, index):
    """The contacts of these indices as those of a `Data`."""
    names = ("dist", "pos", "frame", *ties.PAIR)
    fields = {name: np.array(getattr(data.contact, name))[index] for name in names}
    return SimpleNamespace(ncon=len(index), contact=SimpleNamespace(**fields))


def moved(model, start, index, by):
    """Steps from moved poses, of which ours has the contacts of these indices."""
    out, rng = [], np.random.default_rng(0)
    for _ in range(8):
        data = copy.copy(start)
        mujoco.mj_integratePos(model, data.qpos, by * rng.standard_normal(model.nv), 1)
        mujoco.mj_step(model, data)
        out.append(ties.Moved(by, ours_of(data, index[: data.ncon]), data))
    return out


def test_contacts_in_another_order_are_the_same_set():
    model = mujoco.MjModel.from_xml_string(SCENE.format(0.199, 20))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    order = ties.contact_order(ours_of(data, [2, 0, 1, 3]), data, 1e-6)
    np.testing.assert_array_equal(order, [2, 0, 1, 3])
    rows = np.concatenate([np.arange(4 * i, 4 * i + 4) for i in order])
    np.testing.assert_array_equal(ties.row_order(data, order), rows)
    assert ties.contact_order(ours_of(data, [2, 0, 1]), data, 1e-6) is None


@pytest.mark.parametrize(("height", "tie"), [(0.2 - 1e-12, True), (0.199, False)])
def test_a_missing_contact_is_a_tie_only_where_geoms_just_touch(height, tie):
    model = mujoco.MjModel.from_xml_string(SCENE.format(height, 20))
    start = mujoco.MjData(model)
    data = copy.copy(start)
    mujoco.mj_step(model, data)
    index = list(range(data.ncon))
    near = moved(model, start, index, 1e-9)
    assert len(index) > 1 and ties.contacts_are_ties(model, start, ours_of(data, index[1:]), data, near, 1e-6) == tie
