"""Cells of lattices that hold nothing of a flex, and the nodes that only such cells have."""

import numpy as np

from jaxsim.mjcf.flexcomp.cells import empty_cells, lonely_nodes

_CUBE = np.array([[x, y, z] for x in (0.0, 1) for y in (0.0, 1) for z in (0.0, 1)])


def test_cells_without_elements_of_a_solid_are_empty():
    points = np.array(
        [[0, 0, 0], [0.2, 0, 0], [0, 0.2, 0], [0, 0, 0.2], [1, 1, 1], [0.9, 1, 1], [1, 0.9, 1], [1, 1, 0.9]]
    )
    empty = empty_cells(points, np.array([[0, 1, 2, 3], [4, 5, 6, 7]]), [3, 3, 3])
    assert np.count_nonzero(~empty) == 2 and not empty[0, 0, 0] and not empty[2, 2, 2]


def test_what_a_surface_encloses_is_not_empty():
    faces = [[0, 1, 3, 2], [4, 5, 7, 6], [0, 1, 5, 4], [2, 3, 7, 6], [0, 2, 6, 4], [1, 3, 7, 5]]
    triangles = np.array([t for a, b, c, d in faces for t in ([a, b, c], [a, c, d])])
    assert not empty_cells(_CUBE, triangles, [4, 4, 4]).any()


def test_a_flat_surface_does_not_fill_the_cells_above_it():
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 1]])
    empty = empty_cells(points, np.array([[0, 1, 2]]), [2, 2, 2], (np.zeros(3), np.ones(3)))
    np.testing.assert_array_equal(empty[..., 1], True)
    np.testing.assert_array_equal(empty[..., 0], False)


def test_lonely_nodes_belong_to_empty_cells_only():
    empty = np.array([[[False]], [[True]]])
    assert lonely_nodes(empty, 1).reshape(3, 2, 2)[:, 0, 0].tolist() == [False, False, True]
    assert lonely_nodes(empty, 2).reshape(5, 3, 3)[:, 0, 0].tolist() == [False, False, False, True, True]
