"""Builtin meshes against the reference."""

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
    ("kind", "params"),
    [
        ("globe", [1]),
        ("sphere", []),
        ("sphere", [5]),
        ("sphere", [-1]),
        ("sphere", [float("nan")]),
        ("hemisphere", [11]),
        ("cone", [1e9, 1]),
        ("cone", [-3, 1]),
        ("cone", [8e6, 1]),
        ("supersphere", [2, 1, 1]),
        ("supersphere", [1e5, 1, 1]),
        ("supersphere", [5, -1, 1]),
        ("supertorus", [5, 2, 1, 1]),
        ("supertorus", [5, 0.5, 0, 1]),
        ("wedge", [4, 4, 200, 20, 0]),
        ("wedge", [4, 4, 20, 100, 0]),
        ("wedge", [0, 4, 20, 20, 0]),
        ("wedge", [4, 4, 20, 20, 2]),
        ("plate", [0, 1]),
    ],
)
def test_parameters_out_of_range_are_refused(kind, params):
    with pytest.raises(ModelError):
        builtin_mesh(kind, params)
