"""Connectivity of flexes: laws that hold for any set of elements."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull, Delaunay

from jaxsim.compiler.flex.topology import LOCAL_EDGES, topology

_POINTS = np.random.default_rng(1).normal(size=(30, 3))
_TETRAHEDRA, _HULL = Delaunay(_POINTS).simplices, ConvexHull(_POINTS).simplices


@pytest.mark.parametrize("elem", [_TETRAHEDRA, _HULL])
def test_edges_are_those_of_the_elements_each_once(elem):
    t = topology(elem)
    assert len(np.unique(t.edge, axis=0)) == len(t.edge) and np.all(t.edge[:, 0] < t.edge[:, 1])
    np.testing.assert_array_equal(t.edge[t.elemedge], np.sort(elem[:, LOCAL_EDGES[elem.shape[1] - 1]], axis=2))


def test_a_closed_surface_has_no_shell_and_two_triangles_at_each_edge():
    t = topology(_HULL)
    assert len(t.shell) == 0 and np.all(t.flap[:, 3] >= 0)
    assert len(t.edge) == len(_HULL) * 3 // 2


def test_the_shell_of_a_solid_is_its_hull():
    t = topology(_TETRAHEDRA)
    assert {tuple(sorted(f)) for f in t.shell.tolist()} == {tuple(sorted(f)) for f in _HULL.tolist()}
    assert t.elemlayer.min() == 0 and len(t.evpair) == 0


def test_layers_of_neighbours_differ_by_one_at_most():
    t = topology(_TETRAHEDRA)
    sets = [set(e) for e in _TETRAHEDRA.tolist()]
    pairs = [(i, j) for i in range(len(sets)) for j in range(i) if len(sets[i] & sets[j]) == 3]
    assert all(abs(int(t.elemlayer[i]) - int(t.elemlayer[j])) <= 1 for i, j in pairs)
