"""Poses: composition, inversion, and the alternatives for an orientation."""

import re

import numpy as np
import pytest

from jaxsim.core.errors import ModelError
from jaxsim.mjcf import pose

QUAT = pose.unit([0.3, -0.5, 0.2, 0.7])
POS = [1.0, -2.0, 0.5]


def test_inverse_composes_to_the_identity():
    pos, quat = pose.compose(POS, QUAT, *pose.invert(POS, QUAT))
    np.testing.assert_allclose([*pos, *quat], [0, 0, 0, 1, 0, 0, 0], atol=1e-15)


def test_z_axis_is_taken_to_the_vector():
    z = pose.unit([0.1, -0.4, -0.8])
    np.testing.assert_allclose(pose.rotate(pose.z_to_quat(z), [0, 0, 1]), z, atol=1e-15)


@pytest.mark.parametrize(
    "axes",
    [
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[1, 0, 0], [0, -1, 0], [0, 0, -1]],
        [[-1, 0, 0], [0, 1, 0], [0, 0, -1]],
        [[-1, 0, 0], [0, -1, 0], [0, 0, 1]],
    ],
)
def test_axes_are_recovered_from_their_quaternion(axes):
    quat = pose.axes_to_quat(*axes)
    for axis, image in zip(np.eye(3).tolist(), axes, strict=True):
        np.testing.assert_allclose(pose.rotate(quat, axis), image, atol=1e-15)


def test_fixed_euler_axes_turn_in_the_other_order():
    angles = {"euler": [10, 20, 30]}
    moving = pose.orientation(angles, True, "xyz")
    fixed = pose.orientation({"euler": [30, 20, 10]}, True, "ZYX")
    np.testing.assert_allclose(moving, fixed, atol=1e-15)


@pytest.mark.parametrize(
    "attrs, words",
    [
        ({"axisangle": [0, 0, 0, 1]}, "the axis of axisangle is zero"),
        ({"xyaxes": [1, 0, 0, 2, 0, 0]}, "the y axis of xyaxes is zero or parallel to the x axis"),
        ({"xyaxes": [0] * 6}, "the x axis of xyaxes is zero"),
        ({"zaxis": [0, 0, 0]}, "zaxis is zero"),
    ],
)
def test_orientation_that_is_none_is_an_error(attrs, words):
    with pytest.raises(ModelError, match=re.escape(words)):
        pose.orientation(attrs, True, "xyz")


def test_a_quaternion_and_its_negative_are_the_same():
    assert pose.same_quat(QUAT, [-x for x in QUAT])
    assert not pose.same_quat(QUAT, pose.conjugate(QUAT))
