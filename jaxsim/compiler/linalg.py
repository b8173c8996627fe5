"""Small linear algebra of the compiler: float64, scalar, host side.

Compiled frames of bodies and meshes depend on the order and signs of principal axes, and these on the steps of the
eigenvalue iteration. `eig3` therefore repeats MuJoCo's iteration operation by operation.
"""

from __future__ import annotations

import math

import numpy as np

from jaxsim.core.errors import ModelError
from jaxsim.mjcf.pose import EPS, mul_quat, normalize, quat2mat

_EIG_EPS = 1e-12
_EIG_MAX_ITER = 500


def _mul_mat(a: list[float], b: list[float]) -> list[float]:
    return [a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j] for i in range(3) for j in range(3)]


def eig3(mat) -> tuple[np.ndarray, np.ndarray]:
    """Compute eigenvalues and principal frame of a symmetric 3x3 matrix, ordered and signed as in MuJoCo.

    Args:
        mat: (3, 3) or 9 numbers, symmetric.

    Returns:
        eigval: (3,) in decreasing order.
        quat: (4,) unit quaternion whose rotation matrix has the eigenvectors as columns.
    """
    m = [float(x) for x in np.asarray(mat, dtype=np.float64).reshape(9)]
    quat = [1.0, 0.0, 0.0, 0.0]
    diag = [m[0], m[4], m[8]]
    for _ in range(_EIG_MAX_ITER):
        r = quat2mat(quat)
        rt = [r[0], r[3], r[6], r[1], r[4], r[7], r[2], r[5], r[8]]
        d = _mul_mat(_mul_mat(rt, m), r)
        diag = [d[0], d[4], d[8]]
        turn = _jacobi_rotation(d)
        if turn is None:
            break
        quat = mul_quat(quat, turn)
    quat = _sort_axes(diag, quat)
    return np.array(diag), np.array(quat)


def _jacobi_rotation(d: list[float]) -> list[float] | None:
    """Return the quaternion that zeroes the largest off-diagonal element of `d`, or None if that is small already."""
    if abs(d[1]) > abs(d[2]) and abs(d[1]) > abs(d[5]):
        row, col, axis = 0, 1, 2
    elif abs(d[2]) > abs(d[5]):
        row, col, axis = 0, 2, 1
    else:
        row, col, axis = 1, 2, 0
    off = d[3 * row + col]
    if not abs(off) >= _EIG_EPS:
        return None
    tau = (d[4 * col] - d[4 * row]) / (2 * off)
    t = 1.0 / (tau + math.sqrt(1 + tau * tau)) if tau >= 0 else -1.0 / (-tau + math.sqrt(1 + tau * tau))
    cosine = 1.0 / math.sqrt(1 + t * t)
    if cosine > 1.0 - _EIG_EPS:
        return None
    half = math.sqrt(0.5 - 0.5 * cosine)
    if (tau >= 0) != (axis == 1):
        half = -half
    turn = [math.sqrt(1.0 - half * half), 0.0, 0.0, 0.0]
    turn[axis + 1] = half
    return normalize(turn)[0]


def _sort_axes(diag: list[float], quat: list[float]) -> list[float]:
    """Sort `diag` decreasing, in place; return `quat` rotated a quarter about the third axis for every swap."""
    for j in (0, 1, 0):
        if diag[j] + _EIG_EPS < diag[j + 1]:
            diag[j], diag[j + 1] = diag[j + 1], diag[j]
            turn = [0.707106781186548, 0.0, 0.0, 0.0]
            turn[(j + 2) % 3 + 1] = 0.707106781186548
            quat = mul_quat(quat, turn)
    return quat


def full_inertia(fullinertia) -> tuple[np.ndarray, np.ndarray]:
    """Compute the diagonal inertia (3,) and frame quaternion (4,) of (xx, yy, zz, xy, xz, yz).

    ModelError unless positive.
    """
    xx, yy, zz, xy, xz, yz = (float(x) for x in fullinertia)
    eigval, quat = eig3([xx, xy, xz, xy, yy, yz, xz, yz, zz])
    if not eigval[2] >= EPS:
        raise ModelError("the three principal inertias must be positive")
    return eigval, quat
