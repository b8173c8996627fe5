"""Rotations for macros and URDF, in NumPy float64; quaternions are (w, x, y, z)."""

from __future__ import annotations

import numpy as np

from jaxsim.core.errors import ModelError
from jaxsim.mjcf.spec import Element


def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the product of two quaternions, normalised."""
    w = a[0] * b[0] - a[1:] @ b[1:]
    out = np.concatenate([[w], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])])
    return unit(out)


def unit(vector: np.ndarray) -> np.ndarray:
    """Normalise a vector, unless it is nearly zero or nearly of unit length."""
    length = float(np.sqrt(vector @ vector))
    return vector if length**2 < 1e-14 or abs(length - 1) <= 1e-14 else vector / length


def matrix(quat: np.ndarray) -> np.ndarray:
    """Compute the 3x3 rotation matrix of a unit quaternion."""
    w, x, y, z = quat
    return np.array(
        [
            [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
        ]
    )


def rotate(quat: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Rotate the vector by a unit quaternion."""
    axis = quat[1:]
    return vector + 2 * np.cross(axis, quat[0] * vector + np.cross(axis, vector))


def z_to_quat(axis: np.ndarray) -> np.ndarray:
    """Compute the shortest rotation of the z axis to this direction."""
    turn = np.array([-axis[1], axis[0], 0.0])
    length = float(np.sqrt(turn @ turn))
    turn = np.array([1.0, 0.0, 0.0]) if length < 1e-10 else turn / length
    half = np.arctan2(length, axis[2]) / 2
    return np.concatenate([[np.cos(half)], np.sin(half) * turn])


def frame_to_quat(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Compute the quaternion of the rotation matrix with these columns, from its largest entry for accuracy."""
    m = np.stack([x, y, z], axis=1)
    d = np.diag(m)
    if d.sum() > 0:
        lead, rest = 0, [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]]
        first = 0.5 * np.sqrt(1 + d.sum())
    else:
        lead = 1 if d[0] > d[1] and d[0] > d[2] else 2 if d[1] > d[2] else 3
        first = 0.5 * np.sqrt(1 + 2 * d[lead - 1] - d.sum())
        rest = [
            [m[2, 1] - m[1, 2], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0]],
            [m[0, 2] - m[2, 0], m[0, 1] + m[1, 0], m[1, 2] + m[2, 1]],
            [m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1]],
        ][lead - 1]
    out = np.insert(0.25 * np.array(rest) / first, lead, first)
    return unit(out)


def euler_to_quat(euler: np.ndarray, degree: bool, sequence: str) -> np.ndarray:
    """Compute the quaternion of three consecutive rotations, about moving axes (xyz) or fixed ones (XYZ).

    Raises ModelError for letters other than x, y and z.
    """
    angles = np.asarray(euler, np.float64)
    if degree:
        angles = angles / 180.0 * np.pi
    quat = np.array([1.0, 0.0, 0.0, 0.0])
    for angle, letter in zip(angles, sequence, strict=True):
        axis = "xyz".find(letter.lower())
        if axis < 0:
            raise ModelError(f"eulerseq '{sequence}' may hold only x, y, z, X, Y, Z")
        turn = np.zeros(4)
        turn[0], turn[1 + axis] = np.cos(angle / 2), np.sin(angle / 2)
        quat = multiply(quat, turn) if letter.islower() else multiply(turn, quat)
    return unit(quat)


def orientation(element: Element, compiler: dict) -> np.ndarray:
    """Return the quaternion of an element's quat, axisangle, xyaxes, zaxis or euler; raise ModelError if invalid."""
    attrs, degree = element.attrs, compiler["angle"] == "degree"
    if "axisangle" in attrs:
        axis, angle = attrs["axisangle"][:3], float(attrs["axisangle"][3])
        angle = angle / 180.0 * np.pi if degree else angle
        return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * _direction(element, axis, "axisangle")])
    if "xyaxes" in attrs:
        x = _direction(element, attrs["xyaxes"][:3], "xyaxes")
        y = attrs["xyaxes"][3:] - x * (x @ attrs["xyaxes"][3:])
        y = _direction(element, y, "xyaxes")
        return frame_to_quat(x, y, _direction(element, np.cross(x, y), "xyaxes"))
    if "zaxis" in attrs:
        return z_to_quat(_direction(element, attrs["zaxis"], "zaxis"))
    if "euler" in attrs:
        return euler_to_quat(attrs["euler"], degree, compiler["eulerseq"])
    return attrs.get("quat", np.array([1.0, 0, 0, 0]))


def _direction(element: Element, vector: np.ndarray, name: str) -> np.ndarray:
    if vector @ vector < 1e-14:
        raise element.error(f"{name}: an axis is too short or parallel to the other")
    return unit(vector)
