"""Sparse structures of small trees, written out by hand."""

import numpy as np

from jaxsim.compiler import sparsity

# a chain of two dofs with a branch: 0 - 1, 0 - 2
PARENT = np.array([-1, 0, 0])


def test_rows_of_m_are_ancestors_then_the_dof():
    t = sparsity.dof_tables(PARENT, np.zeros(3, int))
    assert t["M_colind"].tolist() == [0, 0, 1, 0, 2]
    assert t["M_rownnz"].tolist() == [1, 2, 2]
    assert t["mapM2M"].tolist() == [0, 2, 1, 4, 3]


def test_rows_of_d_hold_descendants_as_well():
    t = sparsity.dof_tables(PARENT, np.zeros(3, int))
    assert t["D_colind"].tolist() == [0, 1, 2, 0, 1, 0, 2]
    assert t["D_diag"].tolist() == [0, 1, 1]
    assert t["mapM2D"].tolist() == [0, 1, 3, 1, 2, 3, 4]


def test_simple_dofs_keep_their_diagonal_only():
    t = sparsity.dof_tables(np.array([-1, 0]), np.array([2, 1]))
    assert t["M_colind"].tolist() == [0, 1]
    assert t["mapM2D"].tolist() == [0, -1, -1, 1]


def test_rows_of_b_are_dofs_above_and_below():
    t = sparsity.body_table(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 2]), np.array([0, 1, 1, 1]))
    rows = np.split(t["B_colind"], t["B_rowadr"][1:])
    assert [r.tolist() for r in rows] == [[0, 1, 2], [0, 1, 2], [0, 1], [0, 2]]
