"""Vectors, quaternions and rotations as tuples of their components, each an array over many objects.

A formula in components is elementwise arithmetic on whole arrays, without slices or stacks between its steps. Programs
stay short to compile, and a CPU can vectorise over objects. `split` and `join` convert from and to the last axis.
"""

from collections.abc import Iterable

from jaxsim.math.safe import Array, components, xp_of

Vector = tuple[Array, Array, Array]
Quat = tuple[Array, Array, Array, Array]


def vector(parts: Iterable[Array]) -> Vector:
    """Return three components as a vector."""
    x, y, z = parts
    return x, y, z


def split(x: Array) -> tuple[Array, ...]:
    """Return the components of an array along its last axis."""
    return components(x, -1)


def join(parts: tuple[Array, ...]) -> Array:
    """Return the array with these components along a new last axis."""
    return xp_of(*parts).stack(parts, axis=-1)


def add(a: Vector, b: Vector) -> Vector:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def sub(a: Vector, b: Vector) -> Vector:
    return tuple(x - y for x, y in zip(a, b, strict=True))


def scale(s: Array, a: Vector) -> Vector:
    return tuple(s * x for x in a)


def mul(a: Vector, b: Vector) -> Vector:
    return tuple(x * y for x, y in zip(a, b, strict=True))


def neg(a: Vector) -> Vector:
    return tuple(-x for x in a)


def dot(a: Vector, b: Vector) -> Array:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def where(mask: Array, a: Vector, b: Vector) -> Vector:
    """Select one of two vectors."""
    xp = xp_of(mask)
    return tuple(xp.where(mask, x, y) for x, y in zip(a, b, strict=True))


def cross(a: Vector, b: Vector) -> Vector:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def quat_mul(p: Quat, q: Quat) -> Quat:
    """Compute the quaternion of the rotation q, then p."""
    pw, px, py, pz = p
    qw, qx, qy, qz = q
    return (
        pw * qw - px * qx - py * qy - pz * qz,
        pw * qx + px * qw + py * qz - pz * qy,
        pw * qy - px * qz + py * qw + pz * qx,
        pw * qz + px * qy - py * qx + pz * qw,
    )


def quat_conj(q: Quat) -> Quat:
    """Return the inverse of a unit quaternion."""
    return q[0], -q[1], -q[2], -q[3]


def quat_rotate(q: Quat, v: Vector) -> Vector:
    """Rotate v by the unit quaternion q."""
    u = q[1:]
    t = scale(2.0, cross(u, v))
    return add(v, add(scale(q[0], t), cross(u, t)))


def quat_to_mat(q: Quat) -> tuple[Array, ...]:
    """Compute the nine entries, row by row, of the rotation matrix of a unit quaternion."""
    w, x, y, z = q
    ww, xx, yy, zz = w * w, x * x, y * y, z * z
    xy, xz, yz, wx, wy, wz = x * y, x * z, y * z, w * x, w * y, w * z
    return (
        *(ww + xx - yy - zz, 2 * (xy - wz), 2 * (xz + wy)),
        *(2 * (xy + wz), ww - xx + yy - zz, 2 * (yz - wx)),
        *(2 * (xz - wy), 2 * (yz + wx), ww - xx - yy + zz),
    )


def mat_vec(r: tuple[Array, ...], v: Vector) -> Vector:
    """Multiply a matrix of nine entries by a vector."""
    return tuple(r[3 * i] * v[0] + r[3 * i + 1] * v[1] + r[3 * i + 2] * v[2] for i in range(3))


def mat_t_vec(r: tuple[Array, ...], v: Vector) -> Vector:
    """Multiply the transpose of a matrix of nine entries by a vector."""
    return tuple(r[i] * v[0] + r[3 + i] * v[1] + r[6 + i] * v[2] for i in range(3))
