"""Builtin meshes against MuJoCo."""

import re

import pytest

from jaxsim.compiler.asset.builtin import builtin_mesh
from jaxsim.core.errors import ModelError
from tests.compiler.mesh_cases import assert_same_mesh, compile_both

NO_COLLISION = 'contype="0" conaffinity="0"'
SHAPES = [
    *[("sphere", str(n)) for n in range(4)],
    *[("hemisphere", str(n)) for n in (0, 1, 4)],
    ("cone", "8 0.5"),
    ("cone", "7 0"),
    ("cone", "5 -1"),
    ("supersphere", "12 0.7 1.3"),
    ("supersphere", "3 0 2"),
    ("supertorus", "10 0.4 0.9 1.2"),
    ("wedge", "6 5 30 20 0.3"),
    ("wedge", "4 4 180 90 0"),
]


@pytest.mark.parametrize(("builtin", "params"), SHAPES)
def test_builtin_shapes(builtin, params):
    assert_same_mesh(*compile_both(builtin=builtin, params=params), graph=False)


def test_plate_is_a_shell():
    m, mesh = compile_both(builtin="plate", params="4 3", geom_attributes=NO_COLLISION, inertia="exact")
    assert_same_mesh(m, mesh)
    assert mesh.volume == pytest.approx(1.5 * 4 / 3)


@pytest.mark.parametrize(
    ("kind", "params", "words"),
    [
        ("globe", [1], "unknown builtin mesh 'globe'"),
        ("sphere", [], "builtin mesh 'sphere' requires 1 parameter(s), 0 given"),
        ("sphere", [5], "sphere subdivision must be between 0 and 4"),
        ("sphere", [-1], "sphere subdivision must be between 0 and 4"),
        ("sphere", [float("nan")], "builtin mesh 'sphere' has a parameter that is not finite or too large"),
        ("hemisphere", [11], "hemisphere resolution must be between 0 and 10"),
        ("cone", [1e9, 1], "builtin mesh 'cone' has a parameter that is not finite or too large"),
        ("cone", [-3, 1], "cone must have a number of edges that is not negative"),
        ("cone", [8e6, 1], "builtin mesh of 16000000 vertices is too large"),
        ("supersphere", [2, 1, 1], "supersphere resolution must be greater than 2"),
        ("supersphere", [1e5, 1, 1], "builtin mesh of 10000000000 vertices is too large"),
        ("supersphere", [5, -1, 1], "supersphere exponents cannot be negative"),
        ("supertorus", [5, 2, 1, 1], "supertorus radius must be in (0, 1]"),
        ("supertorus", [5, 0.5, 0, 1], "supertorus exponents must be greater than 0"),
        ("wedge", [4, 4, 200, 20, 0], "fov[0] must be in (0, 180] degrees"),
        ("wedge", [4, 4, 20, 100, 0], "fov[1] must be in (0, 90] degrees"),
        ("wedge", [0, 4, 20, 20, 0], "horizontal and vertical resolutions must be positive"),
        ("wedge", [4, 4, 20, 20, 2], "gamma must be in [0, 1]"),
        ("plate", [0, 1], "horizontal and vertical resolutions must be positive"),
    ],
)
def test_parameters_out_of_range_are_refused(kind, params, words):
    with pytest.raises(ModelError, match=re.escape(words)):
        builtin_mesh(kind, params)
