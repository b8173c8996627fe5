"""Accelerations under joint limits, tendon limits and joint couplings, in NumPy, for many motions of one model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxsim.core.model import Model
from jaxsim.engine.constraint import impedance as imp

_ITERATIONS = 100


class ConstraintRows(NamedTuple):
    """Constraint rows: lower, then upper limits of joints and of tendons, then couplings of joints.

    Attributes:
        joint, tendon: the limited objects: joints by dof, tendons by index among the limited ones.
        first, second: dofs of each coupling; `second` is -1 if the first joint is held at a constant.
        polynomial: (neq, 5) coefficients of the couplings. qpos0: (nv,) reference positions by dof.
        sign, bound: a limit's position is `sign * (length - bound)`.
        margin: a row can act if its position is below it; infinite for couplings.
        solimp: (k, 5) impedance. gains: (k, 2) stiffness and damping. diag: (k,) approximate inverse inertia.
    """

    joint: np.ndarray
    tendon: np.ndarray
    first: np.ndarray
    second: np.ndarray
    polynomial: np.ndarray
    qpos0: np.ndarray
    sign: np.ndarray
    bound: np.ndarray
    margin: np.ndarray
    solimp: np.ndarray
    gains: np.ndarray
    diag: np.ndarray


def make_constraint_rows(m: Model, tendons: np.ndarray) -> ConstraintRows:
    """Return the constraint rows of a model with these limited tendons."""
    joint, eq = np.flatnonzero(m.jnt_limited), np.flatnonzero(m.eq_active0)
    first = m.jnt_dofadr[m.eq_obj1id[eq]]
    second = np.where(m.eq_obj2id[eq] >= 0, m.jnt_dofadr[m.eq_obj2id[eq]], -1)
    both, pairs = np.tile(joint, 2), np.tile(tendons, 2)
    weight, dofs = m.dof_invweight0, m.jnt_dofadr[both]
    coupling = weight[first] + np.where(second >= 0, weight[second], 0)
    solimp = np.concatenate([m.jnt_solimp[both], m.tendon_solimp_lim[pairs], m.eq_solimp[eq]])
    solref = np.concatenate([m.jnt_solref[both], m.tendon_solref_lim[pairs], m.eq_solref[eq]])
    dmax = imp.impedance(solimp, solref[:, 0])[2]
    solref = imp.safe_reference(m.opt.timestep, imp.is_safe(m), solref, imp.DEFAULT_SOLREF)
    return ConstraintRows(
        joint=dofs,
        tendon=np.tile(np.arange(len(tendons)), 2),
        first=first,
        second=second,
        polynomial=np.asarray(m.eq_data)[eq, :5],
        qpos0=np.asarray(m.qpos0)[m.jnt_qposadr[m.dof_jntid]],
        sign=np.concatenate([np.repeat([1.0, -1.0], len(x)) for x in (joint, tendons)]),
        bound=np.concatenate([m.jnt_range[joint].T.reshape(-1), m.tendon_range[tendons].T.reshape(-1)]),
        margin=np.concatenate([m.jnt_margin[both], m.tendon_margin[pairs], np.full(len(eq), np.inf)]),
        solimp=solimp,
        gains=np.stack(imp.stiffness_damping(solref, dmax), axis=1),
        diag=np.concatenate([weight[dofs], m.tendon_invweight0[pairs], coupling]),
    )


def constrained_acceleration(
    rows: ConstraintRows,
    mass: np.ndarray,
    free: np.ndarray,
    q: np.ndarray,
    v: np.ndarray,
    length: np.ndarray,
    moment: np.ndarray,
) -> np.ndarray:
    """Compute accelerations (n, nv) that minimise the constraint cost.

    Args:
        rows: limits and couplings.
        mass, free: inertia matrices (n, nv, nv), and accelerations (n, nv) without constraints.
        q, v: positions of hinges and slides by dof, and velocities, (n, nv).
        length, moment: of the limited tendons, (n, k) and (n, k, nv).
    """
    pos, jac = _positions(rows, q, length, moment)
    near = (pos < rows.margin) & (jac != 0).any(-1)
    some = np.flatnonzero(near.any(1))
    if not len(some):
        return free
    a = free.copy()
    a[some] = _minimize(rows, mass[some], free[some], pos[some], jac[some], near[some], v[some])
    return a


def _positions(
    rows: ConstraintRows, q: np.ndarray, length: np.ndarray, moment: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the position (n, k) and Jacobian (n, k, nv) of all rows."""
    n, nv = q.shape
    one = np.eye(nv)
    limit = rows.sign * (np.concatenate([q[:, rows.joint], length[:, rows.tendon]], axis=1) - rows.bound)
    unit = np.broadcast_to(one[rows.joint], (n, len(rows.joint), nv))
    limit_jac = np.concatenate([unit, moment[:, rows.tendon]], axis=1) * rows.sign[:, None]
    if not len(rows.first):
        return limit, limit_jac
    c0, c1, c2, c3, c4 = rows.polynomial.T
    move = q - rows.qpos0
    x = np.where(rows.second >= 0, move[:, rows.second], 0)
    gap = move[:, rows.first] - c0 - x * (c1 + x * (c2 + x * (c3 + x * c4)))
    rate = np.where(rows.second >= 0, c1 + x * (2 * c2 + x * (3 * c3 + x * 4 * c4)), 0)
    coupling = one[rows.first] - rate[..., None] * one[rows.second]
    return np.concatenate([limit, gap], axis=1), np.concatenate([limit_jac, coupling], axis=1)


def _minimize(
    rows: ConstraintRows,
    mass: np.ndarray,
    free: np.ndarray,
    pos: np.ndarray,
    jac: np.ndarray,
    near: np.ndarray,
    v: np.ndarray,
) -> np.ndarray:
    """Find accelerations at the minimum of the convex constraint cost, by Newton's method from `free`."""
    n, k = pos.shape
    limits = len(rows.sign)
    depth = pos - np.where(np.isinf(rows.margin), 0, rows.margin)
    imped = imp.impedance(np.tile(rows.solimp, (n, 1)), depth.reshape(-1))[0].reshape(n, k)
    weight = np.where(near, 1 / imp.regularizer(imped, rows.diag), 0)
    aref = -rows.gains[:, 1] * (jac @ v[..., None])[..., 0] - rows.gains[:, 0] * imped * depth
    two_sided = np.arange(k) >= limits
    force = (mass @ free[..., None])[..., 0]

    def acting(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the residuals of the rows, and the weights of the active ones."""
        residual = (jac @ a[..., None])[..., 0] - aref
        return residual, np.where(two_sided | (residual < 0), weight, 0)

    def cost(a: np.ndarray, residual: np.ndarray, active: np.ndarray) -> np.ndarray:
        change = a - free
        return (change * (mass @ change[..., None])[..., 0]).sum(-1) + (active * residual * residual).sum(-1)

    a = free
    residual, active = acting(a)
    value = cost(a, residual, active)
    for _ in range(_ITERATIONS):
        hessian = mass + (jac * active[..., None]).swapaxes(1, 2) @ jac
        right = force + ((active * aref)[:, None] @ jac)[:, 0]
        step = np.linalg.solve(hessian, right[..., None])[..., 0] - a
        before = active
        while True:
            residual, active = acting(a + step)
            after = cost(a + step, residual, active)
            worse = after > value * (1 + 1e-12)
            if not worse.any() or not step[worse].any():
                break
            step = np.where(worse[:, None], 0.5 * step, step)
        a, value = a + step, after
        if (active == before).all():
            break
    return a
