"""Poses of the compiler: quaternions and frames as plain lists of floats, composed in MuJoCo's order.

This is scalar Python: a model has a few hundred poses, each composed once, and arrays of three cost more than lists.
"""

import math
from collections.abc import Mapping, Sequence

from jaxsim.compiler.linalg import EPS, mul_quat, normalize, quat2mat
from jaxsim.core.errors import ModelError

IDENTITY = (1.0, 0.0, 0.0, 0.0)
FRAME_EPS = 1e-6  # frames closer than this are equal

Vec = Sequence[float]


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


def z_to_quat(vec: Vec) -> list[float]:
    """Compute the smallest rotation of the z axis to a unit vector."""
    axis, sine = normalize(cross((0.0, 0.0, 1.0), vec))
    if sine < 1e-10:
        axis = [1.0, 0.0, 0.0]
    angle = math.atan2(sine, vec[2])
    s = math.sin(angle / 2)
    return [math.cos(angle / 2), axis[0] * s, axis[1] * s, axis[2] * s]


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


def _finite(angle: float, name: str) -> float:
    if math.isinf(angle):
        raise ModelError(f"an angle of {name} is infinite")
    return angle


def _axisangle(value: Vec, degree: bool, sequence: str) -> list[float]:
    axis, length = normalize(list(value[:3]))
    if length < EPS:
        raise ModelError("the axis of axisangle is zero")
    angle = _finite(value[3] / 180.0 * math.pi if degree else value[3], "axisangle")
    s = math.sin(angle / 2)
    return [math.cos(angle / 2), s * axis[0], s * axis[1], s * axis[2]]


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


def _euler(value: Vec, degree: bool, sequence: str) -> list[float]:
    quat = list(IDENTITY)
    for letter, angle in zip(sequence, value, strict=True):
        if letter not in "xyzXYZ":
            raise ModelError(f"eulerseq may hold only x, y, z, X, Y and Z, not {letter!r}")
        angle = _finite(angle / 180.0 * math.pi if degree else angle, "euler")
        turn = [math.cos(angle / 2), 0.0, 0.0, 0.0]
        turn["xyz".index(letter.lower()) + 1] = math.sin(angle / 2)
        quat = mul_quat(quat, turn) if letter.islower() else mul_quat(turn, quat)
    return unit(quat)


_RESOLVERS = {"axisangle": _axisangle, "xyaxes": _xyaxes, "zaxis": _zaxis, "euler": _euler}


def orientation(attrs: Mapping, degree: bool, sequence: str) -> list[float]:
    """Return the quaternion of an element: its alternative orientation if it has one, else its `quat`, not normalised.

    Raises ModelError for axes that are too short or parallel, angles that are infinite, or a bad `eulerseq`.
    """
    for kind, rule in _RESOLVERS.items():
        if attrs.get(kind) is not None:
            return rule([float(x) for x in attrs[kind]], degree, sequence)
    return [float(x) for x in attrs["quat"]]


def same_vec(a: Vec, b: Vec) -> bool:
    """Return whether two positions are equal within FRAME_EPS."""
    return all(abs(x - y) < FRAME_EPS for x, y in zip(a, b, strict=True))


def same_quat(a: Vec, b: Vec) -> bool:
    """Return whether two orientations are equal within FRAME_EPS; a quaternion and its negative are equal."""
    return same_vec(a, b) or all(abs(x + y) < FRAME_EPS for x, y in zip(a, b, strict=True))
