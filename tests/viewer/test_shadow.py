"""Shadows of the software rasteriser."""

import numpy as np

from jaxsim.viewer.render import Camera, cover
from jaxsim.viewer.shadow import lit, shadow_map

SUN = np.array([0.0, 0.0, 1.0])
ABOVE = np.array([[-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, -1, 1], [1, 1, 1], [-1, 1, 1]], float)


def test_what_lies_under_a_square_is_in_its_shadow_and_the_square_itself_is_not():
    shadows = shadow_map(ABOVE, SUN, cover, Camera)
    points = np.array([[0, 0, 0], [0.9, 0.9, -3], [1.2, 0, 0], [0, 0, 1], [0, 0, 2], [9, 9, 0]], float)
    np.testing.assert_allclose(lit(shadows, points, np.tile(SUN, (6, 1))), [0, 0, 1, 1, 1, 1])


def test_the_edge_of_a_shadow_is_where_the_sun_puts_it():
    sun = np.array([1.0, 0, 1]) / np.sqrt(2)
    shadows = shadow_map(ABOVE, sun, cover, Camera)
    x = np.linspace(-3, 1, 401)
    points = np.stack([x, 0 * x, 0 * x], 1)
    dark = x[lit(shadows, points, np.tile(SUN, (401, 1))) < 0.5]
    np.testing.assert_allclose([dark.min(), dark.max()], [-2, 0], atol=0.03)


def test_without_casters_everything_is_lit():
    assert shadow_map(np.zeros((0, 3)), SUN, cover, Camera) is None
    assert lit(None, np.zeros((2, 3)), np.zeros((2, 3))).tolist() == [1, 1]
