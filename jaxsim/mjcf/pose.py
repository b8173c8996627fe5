"""Poses of the front end and the compiler: quaternions (w, x, y, z) and frames as lists of floats, in MuJoCo's order.

This is scalar Python: a model has a few hundred poses, each composed once, and arrays of three cost more than lists.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from jaxsim.core.errors import ModelError

IDENTITY = (1.0, 0.0, 0.0, 0.0)
EPS = 1e-14  # vectors whose square is smaller have no direction
FRAME_EPS = 1e-6  # frames closer than this are equal

Vec = Sequence[float] | np.ndarray


def normalize(vec: Vec) -> tuple[list[float], float]:
    """Normalise `vec`; return it with its former length (0 and unchanged if it is too short)."""
    square = 0.0
    for x in vec:
        square += x * x
    if square < EPS:
        return list(vec), 0.0
    norm = math.sqrt(square)
    if abs(norm - 1) <= EPS:
        return list(vec), norm
    return [x / norm for x in vec], norm


def mul_quat(a: Vec, b: Vec) -> list[float]:
    """Compute the product of two unit quaternions, normalised."""
    out = [
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    ]
    return normalize(out)[0]


def quat2mat(quat: Vec) -> list[float]:
    """Compute the rotation matrix (row-major, 9 numbers) of a unit quaternion."""
    w, x, y, z = quat
    if w == 1 and x == 0 and y == 0 and z == 0:
        return [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    ww, wx, wy, wz, xx, xy, xz, yy, yz, zz = w * w, w * x, w * y, w * z, x * x, x * y, x * z, y * y, y * z, z * z
    return [
        ww + xx - yy - zz,
        2 * (xy - wz),
        2 * (xz + wy),
        2 * (xy + wz),
        ww - xx + yy - zz,
        2 * (yz - wx),
        2 * (xz - wy),
        2 * (yz + wx),
        ww - xx - yy + zz,
    ]


def cross(a: Vec, b: Vec) -> list[float]:
    """Compute the cross product of two 3-vectors."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def add(a: Vec, b: Vec) -> list[float]:
    """Return the sum of two vectors."""
    return [x + y for x, y in zip(a, b, strict=True)]


def rotate(quat: Vec, vec: Vec) -> list[float]:
    """Rotate the vector by a unit quaternion."""
    if quat[0] == 1 and not any(quat[1:]):
        return list(vec)
    u, w = quat[1:], quat[0]
    t = [w * v + c for v, c in zip(vec, cross(u, vec), strict=True)]
    return [v + 2 * c for v, c in zip(vec, cross(u, t), strict=True)]


def conjugate(quat: Vec) -> list[float]:
    """Return the inverse of a unit quaternion."""
    return [quat[0], -quat[1], -quat[2], -quat[3]]


def compose(pos: Vec, quat: Vec, childpos: Vec, childquat: Vec) -> tuple[list[float], list[float]]:
    """Compose the frame (pos, quat) of a parent with the pose of a child in it."""
    r = quat2mat(quat)
    moved = [r[3 * i] * childpos[0] + r[3 * i + 1] * childpos[1] + r[3 * i + 2] * childpos[2] for i in range(3)]
    return add(pos, moved), mul_quat(quat, childquat)


def invert(pos: Vec, quat: Vec) -> tuple[list[float], list[float]]:
    """Return the inverse of a pose."""
    back = conjugate(quat)
    return [-x for x in rotate(back, pos)], back


def unit(vec: Vec) -> list[float]:
    """Normalise a vector, unless it is too short."""
    return normalize(list(vec))[0]


def turn(axis: Vec, angle: float) -> list[float]:
    """Compute the quaternion of a rotation by an angle, in radians, about a unit axis."""
    s = math.sin(angle / 2)
    return [math.cos(angle / 2), axis[0] * s, axis[1] * s, axis[2] * s]


def z_to_quat(vec: Vec) -> list[float]:
    """Compute the smallest rotation of the z axis to a unit vector."""
    axis, sine = normalize(cross((0.0, 0.0, 1.0), vec))
    if sine < 1e-10:
        axis = [1.0, 0.0, 0.0]
    return turn(axis, math.atan2(sine, vec[2]))


def axes_to_quat(x: Vec, y: Vec, z: Vec) -> list[float]:
    """Compute the quaternion of the frame with these orthonormal axes, from its largest component."""
    if x[0] + y[1] + z[2] > 0:
        w = 0.5 * math.sqrt(1 + x[0] + y[1] + z[2])
        quat = [w, 0.25 * (y[2] - z[1]) / w, 0.25 * (z[0] - x[2]) / w, 0.25 * (x[1] - y[0]) / w]
    elif x[0] > y[1] and x[0] > z[2]:
        i = 0.5 * math.sqrt(1 + x[0] - y[1] - z[2])
        quat = [0.25 * (y[2] - z[1]) / i, i, 0.25 * (y[0] + x[1]) / i, 0.25 * (z[0] + x[2]) / i]
    elif y[1] > z[2]:
        j = 0.5 * math.sqrt(1 - x[0] + y[1] - z[2])
        quat = [0.25 * (z[0] - x[2]) / j, 0.25 * (y[0] + x[1]) / j, j, 0.25 * (z[1] + y[2]) / j]
    else:
        k = 0.5 * math.sqrt(1 - x[0] - y[1] + z[2])
        quat = [0.25 * (x[1] - y[0]) / k, 0.25 * (z[0] + x[2]) / k, 0.25 * (z[1] + y[2]) / k, k]
    return unit(quat)


def _radians(angle: float, degree: bool, name: str) -> float:
    if math.isinf(angle):
        raise ModelError(f"an angle of {name} is infinite")
    return angle / 180.0 * math.pi if degree else angle


def _axisangle(value: Vec, degree: bool, sequence: str) -> list[float]:
    axis, length = normalize(list(value[:3]))
    if length < EPS:
        raise ModelError("the axis of axisangle is zero")
    return turn(axis, _radians(value[3], degree, "axisangle"))


def _xyaxes(value: Vec, degree: bool, sequence: str) -> list[float]:
    x, length = normalize(list(value[:3]))
    if length < EPS:
        raise ModelError("the x axis of xyaxes is zero")
    along = sum(a * b for a, b in zip(x, value[3:], strict=True))
    y, length = normalize([b - a * along for a, b in zip(x, value[3:], strict=True)])
    if length < EPS:
        raise ModelError("the y axis of xyaxes is zero or parallel to the x axis")
    z, length = normalize(cross(x, y))
    if length < EPS:
        raise ModelError("the axes of xyaxes are parallel")
    return axes_to_quat(x, y, z)


def _zaxis(value: Vec, degree: bool, sequence: str) -> list[float]:
    z, length = normalize(list(value))
    if length < EPS:
        raise ModelError("zaxis is zero")
    return z_to_quat(z)


def euler_to_quat(value: Vec, degree: bool, sequence: str) -> list[float]:
    """Compute the quaternion of three consecutive rotations, about moving axes (xyz) or fixed ones (XYZ).

    Raises ModelError for other letters and for infinite angles.
    """
    quat = list(IDENTITY)
    for letter, angle in zip(sequence, value, strict=True):
        if letter not in "xyzXYZ":
            raise ModelError(f"eulerseq may hold only x, y, z, X, Y and Z, not {letter!r}")
        axis = [float(letter.lower() == name) for name in "xyz"]
        one = turn(axis, _radians(angle, degree, "euler"))
        quat = mul_quat(quat, one) if letter.islower() else mul_quat(one, quat)
    return unit(quat)


_RESOLVERS = {"axisangle": _axisangle, "xyaxes": _xyaxes, "zaxis": _zaxis, "euler": euler_to_quat}


def orientation(attrs: Mapping, degree: bool, sequence: str) -> list[float]:
    """Return the quaternion of an element: its alternative orientation if it has one, else its `quat`, not normalised.

    Raises ModelError for axes that are too short or parallel, angles that are infinite, or a bad `eulerseq`.
    """
    for kind, rule in _RESOLVERS.items():
        if attrs.get(kind) is not None:
            return rule([float(x) for x in attrs[kind]], degree, sequence)
    return [float(x) for x in attrs.get("quat", IDENTITY)]


def same_vec(a: Vec, b: Vec) -> bool:
    """Return whether two positions are equal within FRAME_EPS."""
    return all(abs(x - y) < FRAME_EPS for x, y in zip(a, b, strict=True))


def same_quat(a: Vec, b: Vec) -> bool:
    """Return whether two orientations are equal within FRAME_EPS; a quaternion and its negative are equal."""
    return same_vec(a, b) or all(abs(x + y) < FRAME_EPS for x, y in zip(a, b, strict=True))
