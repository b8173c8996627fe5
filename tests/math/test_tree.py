"""Sums over trees: both implementations of each operator against sums written out."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.math import tree as t

PARENT = np.array([0, 0, 1, 2, 2, 1, 0, 6, 7, 8, 9, 0])
DOFS = np.array([1, 1, 1, 1, 1, 1, 2, 3, 3, 3, 4, 5, 5, 7, 9, 9, 9, 9, 10])
GROUP = np.array([-1, -1, -1, 0, 0, 0, 1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 8, 8, 9])
N, NV = len(PARENT), len(DOFS)


def path(body):
    out = [body]
    while body:
        body = PARENT[body]
        out.append(body)
    return out


@pytest.fixture(
    params=[(way, kind) for way in ("dense", "bunches", "mixed", "doubling") for kind in ("numpy", "jax")], ids=str
)
def case(request, monkeypatch):
    way, kind = request.param
    monkeypatch.setattr(t, "DENSE_BODIES", {"mixed": 5, "doubling": 0}.get(way, 96))
    tree = t.make_tree(PARENT, DOFS, GROUP, dense=way == "dense")
    rng = np.random.default_rng(0)
    bodies, dofs = rng.standard_normal((N, 3)), rng.standard_normal((NV, 3))
    make = np.asarray if kind == "numpy" else jnp.asarray
    return tree, bodies, dofs, make


def test_path_sum(case):
    tree, x, _, make = case
    want = [sum(x[a] for a in path(b)) for b in range(N)]
    np.testing.assert_allclose(t.path_sum(tree, make(x)), want, atol=1e-12)


def test_subtree_sum(case):
    tree, x, _, make = case
    want = [sum(x[b] for b in range(N) if a in path(b)) for a in range(N)]
    np.testing.assert_allclose(t.subtree_sum(tree, make(x)), want, atol=1e-12)


def test_dof_path_sum(case):
    tree, _, x, make = case
    want = [sum((x[i] for i in range(NV) if DOFS[i] in path(b)), np.zeros(3)) for b in range(N)]
    np.testing.assert_allclose(t.dof_path_sum(tree, make(x)), want, atol=1e-12)


def test_dof_subtree_sum(case):
    tree, x, _, make = case
    want = [sum(x[b] for b in range(N) if DOFS[i] in path(b)) for i in range(NV)]
    np.testing.assert_allclose(t.dof_subtree_sum(tree, make(x)), want, atol=1e-12)


def test_dof_prior_sum(case):
    tree, _, x, make = case

    def moves(j, i):
        if GROUP[i] < 0:
            return False
        if DOFS[j] == DOFS[i]:
            return j < i and GROUP[j] != GROUP[i]
        return DOFS[j] in path(DOFS[i])

    want = [sum((x[j] for j in range(NV) if moves(j, i)), np.zeros(3)) for i in range(NV)]
    np.testing.assert_allclose(t.dof_prior_sum(tree, make(x)), want, atol=1e-12)
