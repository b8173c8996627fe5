"""Derivative of fluid forces by velocity, in closed form, for the implicit integrators.

Denominators are at least MINVAL, each in its own place. For small or slow geoms the result is then not the derivative
of the force, but it is the matrix that MuJoCo uses.
"""

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.types import MINVAL
from jaxsim.engine.dynamics.fluid import box_sides, by_ellipsoids, local_velocity, semiaxes
from jaxsim.math.arrays import add_at, inner, matmul, take
from jaxsim.math.safe import Array, greatest, least, norm, sqrt, xp_of

EYE = np.eye(3)
# [v] x: component and sign at each entry
SKEW = np.array([[[0, 2, 1], [2, 0, 0], [1, 0, 0]], [[0, -1, 1], [1, 0, -1], [-1, 1, 0]]], np.int32)


def fluid_force_derivative(m: Model, d: Data) -> Array:
    """Compute the derivative of `fluid.fluid_wrench` by the body's own `cvel`: (nbody, 6, 6).

    The first index is that of the force.
    """
    xp = xp_of(m.body_mass, d.cvel)
    heavy = m.body_mass >= MINVAL
    mat = d.ximat.reshape(-1, 3, 3)
    arm = d.xipos - take(d.subtree_com, m.body_rootid)
    diagonal = _box_derivative(m, local_velocity(m, d.cvel, arm, mat))
    diagonal = xp.where((heavy & ~by_ellipsoids(m, diagonal.dtype))[:, None], diagonal, 0)
    derivative = _to_com(diagonal[..., None] * np.eye(6, dtype=diagonal.dtype), arm, mat)
    if m.ngeom == 0:
        return derivative
    body = m.geom_bodyid
    mat = d.geom_xmat.reshape(-1, 3, 3)
    arm = d.geom_xpos - take(d.subtree_com, m.body_rootid[body])
    local = _ellipsoid_derivative(m, local_velocity(m, take(d.cvel, body), arm, mat))
    share = xp.where(take(heavy, body), m.geom_fluid[:, 0], 0)
    return derivative + add_at(body, _to_com(local * share[:, None, None], arm, mat), m.nbody)


def _skew(v: Array) -> Array:
    place, sign = SKEW
    return v[..., place] * sign.astype(v.dtype)


def _blocks(a: Array, b: Array, c: Array, e: Array) -> Array:
    xp = xp_of(a, b, c, e)
    return xp.concatenate([xp.concatenate([a, b], -1), xp.concatenate([c, e], -1)], -2)


def _to_com(local: Array, arm: Array, mat: Array) -> Array:
    """Transform a local derivative to one of the wrench about the tree's centre of mass, by the velocity there."""
    turn = mat.swapaxes(-1, -2)
    motion = _blocks(turn, 0 * turn, -matmul(turn, _skew(arm)), turn)
    return matmul(motion.swapaxes(-1, -2), matmul(local, motion))


def _box_derivative(m: Model, v: Array) -> Array:
    box = box_sides(m)
    diameter = box.mean(1, keepdims=True)
    y, z = box[:, [1, 2, 0]], box[:, [2, 0, 1]]
    rho, mu = m.opt.density, m.opt.viscosity
    torque = -np.pi * diameter**3 * mu - rho * box * (y**4 + z**4) * abs(v[:, :3]) / 32
    force = -3 * np.pi * diameter * mu - rho * y * z * abs(v[:, 3:])
    return xp_of(torque, force).concatenate([torque, force], axis=-1)


def _ellipsoid_derivative(m: Model, v: Array) -> Array:
    """Compute the derivative of each geom's local wrench, torque first: (ngeom, 6, 6)."""
    w, u = v[:, :3], v[:, 3:]
    size = semiaxes(m)
    rho = m.opt.density
    mass, inertia = rho * m.geom_fluid[:, None, 6:9], rho * m.geom_fluid[:, None, 9:12]
    lift = (m.geom_fluid[:, 5] * rho * (4 / 3 * np.pi) * size.prod(1))[:, None, None]
    by_w, by_u = _skew(w), _skew(u)
    momentum, spin = _skew(mass[:, 0] * u), _skew(inertia[:, 0] * w)
    return _blocks(
        spin - by_w * inertia + _torque_derivative(m, w, size),
        momentum - by_u * mass,
        momentum - lift * by_u,
        lift * by_w - by_w * mass + _kutta_derivative(m, u, size) + _drag_derivative(m, u, size),
    )


def _shape(u: Array, size: Array) -> tuple[Array, ...]:
    """Compute squared products of the other two semiaxes, their differences, and both sums of the projected area."""
    square = (size[:, [1, 2, 0]] * size[:, [2, 0, 1]]) ** 2
    facing = (square * u**2).sum(1, keepdims=True)
    projection = ((square * u) ** 2).sum(1, keepdims=True)
    return square, square[:, :, None] - square[:, None, :], facing, projection


def _kutta_derivative(m: Model, u: Array, size: Array) -> Array:
    xp = xp_of(m.geom_fluid, u)
    square, gap, facing, projection = _shape(u, size)
    speed = (u**2).sum(1, keepdims=True)
    least_root = xp.maximum(sqrt(projection * facing * speed), MINVAL)
    scale = np.pi * m.geom_fluid[:, 4:5] * m.opt.density / least_root
    turn = inner(gap, (u**2)[:, None, :])
    pull = square**2 * facing / xp.maximum(projection, MINVAL) - square + facing / xp.maximum(speed, MINVAL)
    full = turn[:, :, None] * pull[:, None, :] - 2 * facing[..., None] * gap
    return scale[..., None] * (u[:, :, None] * u[:, None, :] * full - (turn * facing)[..., None] * EYE.astype(u.dtype))


def _drag_derivative(m: Model, u: Array, size: Array) -> Array:
    xp = xp_of(m.geom_fluid, u)
    rho, mu = m.opt.density, m.opt.viscosity
    blunt, slender = m.geom_fluid[:, 1:2], m.geom_fluid[:, 2:3]
    square, gap, facing, projection = _shape(u, size)
    largest, smallest = greatest(size, keepdims=True), least(size, keepdims=True)
    widest = np.pi * largest * (size.sum(1, keepdims=True) - largest - smallest)
    projected = np.pi * sqrt(projection / xp.maximum(facing, MINVAL))
    by_u = np.pi / xp.maximum(sqrt(facing**3 * projection), MINVAL) * square * u
    by_u = by_u * inner(gap, (square * u**2)[:, None, :])
    speed = norm(u, keepdims=True)
    quadratic = rho * (projected * blunt + slender * (widest - projected)) / xp.maximum(speed, MINVAL)
    linear = 2 * np.pi * mu * size.sum(1, keepdims=True)
    straight = linear + quadratic * (u**2).sum(1, keepdims=True)
    across = quadratic * u + rho * speed * (blunt - slender) * by_u
    return -straight[..., None] * EYE.astype(u.dtype) - u[:, :, None] * across[:, None, :]


def _torque_derivative(m: Model, w: Array, size: Array) -> Array:
    xp = xp_of(m.geom_fluid, w)
    largest, smallest = greatest(size, keepdims=True), least(size, keepdims=True)
    middle = size.sum(1, keepdims=True) - largest - smallest
    most = 8 / 15 * np.pi * middle * largest**4
    moment = 8 / 15 * np.pi * size * xp.maximum(size[:, [1, 2, 0]], size[:, [2, 0, 1]]) ** 4
    slender, angular = m.geom_fluid[:, 2:3], m.geom_fluid[:, 3:4]
    coefficient = angular * moment + slender * (most - moment)
    scale = m.opt.density / xp.maximum(norm(coefficient * w, keepdims=True), MINVAL)
    across = scale * coefficient**2 * w
    linear = np.pi * (2 / 3 * size.sum(1, keepdims=True)) ** 3 * m.opt.viscosity
    straight = linear + inner(w, across)[:, None]
    return -straight[..., None] * EYE.astype(w.dtype) - w[:, :, None] * across[:, None, :]
