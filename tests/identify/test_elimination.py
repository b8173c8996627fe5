"""Elimination of initial states: the same step as dense least squares, alone and along windows with gaps."""

import numpy as np
import pytest

from jaxsim.identify.elimination import BLOCK, Linear, compressed

K, W, P, Q, ROWS, GAP = 3, 4, 2, 2, 5, 4


def problem(linked, seed=0):
    """Random rows of windows, of gaps and of a prior, and the same as one dense system."""
    rng = np.random.default_rng(seed)
    own = rng.standard_normal((K, W, ROWS, Q + P + 1))
    edge = rng.standard_normal((K, W - 1, GAP, 2 * Q + P + 1)) if linked else None
    prior, shared = rng.standard_normal((K, W, Q)), rng.standard_normal((3, P + 1))
    size = P + K * W * Q
    rows = []

    def dense(parts, by, r):
        a = np.zeros((len(r), size + 1))
        for place, block in parts:
            a[:, P + place * Q : P + (place + 1) * Q] = block
        a[:, :P], a[:, -1] = by, r
        rows.append(a)

    for k in range(K):
        for w in range(W):
            x = own[k, w]
            dense([(k * W + w, x[:, :Q])], x[:, Q:-1], x[:, -1])
            if not linked or w == 0:
                dense([(k * W + w, np.eye(Q))], np.zeros((Q, P)), prior[k, w])
            if linked and w < W - 1:
                x = edge[k, w]
                dense([(k * W + w, x[:, :Q]), (k * W + w + 1, x[:, Q : 2 * Q])], x[:, 2 * Q : -1], x[:, -1])
    dense([], shared[:, :-1], shared[:, -1])
    return Linear.joined([compressed(own, edge, prior, Q)], shared), np.concatenate(rows)


@pytest.mark.parametrize("linked", [False, True], ids=["alone", "linked"])
def test_the_step_is_that_of_dense_least_squares(linked):
    linear, dense = problem(linked)
    a, r = dense[:, :-1], dense[:, -1]
    expected = np.linalg.lstsq(a, -r, rcond=None)[0]
    step = linear.step(1e-14, np.zeros(P, bool))
    np.testing.assert_allclose(step.free, expected[:P], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(step.shift.ravel(), expected[P:], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(linear.cost(), 0.5 * r @ r, rtol=1e-12)
    np.testing.assert_allclose(linear.gradient(), (a.T @ r)[:P], rtol=1e-9)
    left = a @ expected + r
    np.testing.assert_allclose(step.expected, 0.5 * (r @ r - left @ left), rtol=1e-6)


@pytest.mark.parametrize("linked", [False, True], ids=["alone", "linked"])
def test_the_marginal_information_is_the_schur_complement(linked):
    linear, dense = problem(linked, seed=1)
    h = dense[:, :-1].T @ dense[:, :-1]
    schur = h[:P, :P] - h[:P, P:] @ np.linalg.solve(h[P:, P:], h[P:, :P])
    rows = linear.marginal()[:, :-1]
    np.testing.assert_allclose(rows.T @ rows, schur, rtol=1e-6)


def test_parameters_that_are_fixed_do_not_move_and_damping_shortens_the_step():
    linear, _ = problem(True)
    step = linear.step(1e-14, np.array([True, False]))
    assert step.free[0] == 0 and step.free[1] != 0
    none = np.zeros(P, bool)
    assert np.linalg.norm(linear.step(100.0, none).free) < 0.1 * np.linalg.norm(linear.step(1e-14, none).free)


def test_steps_of_several_dampings_are_those_of_damped_least_squares():
    shared = np.random.default_rng(3).standard_normal((40, P + 1))
    linear = Linear.joined([compressed(shared[:, None], None, np.zeros((40, 1, 0)), 0)], np.zeros((0, P + 1)))
    fixed = np.array([True, *[False] * (P - 1)])
    a, r = shared[:, 1:-1], shared[:, -1]
    for damping, step in zip((1e-3, 1.0, 30.0), linear.steps((1e-3, 1.0, 30.0), fixed), strict=True):
        normal = a.T @ a
        move = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -a.T @ r)
        np.testing.assert_allclose(step.free, [0, *move], rtol=1e-9)
        left = a @ move + r
        decrease = r @ r - left @ left - damping * (np.diag(normal) * move**2).sum()
        np.testing.assert_allclose(step.expected, 0.5 * decrease, rtol=1e-9)


def test_many_rows_are_factorised_in_blocks():
    rows = np.random.default_rng(0).standard_normal((3, 1, BLOCK + 7, 4))
    factor = compressed(rows, None, np.zeros((3, 1, 0)), 0).shared
    flat = rows.reshape(-1, 4)
    assert factor.shape == (4, 4)
    np.testing.assert_allclose(factor.T @ factor, flat.T @ flat, rtol=1e-12)
