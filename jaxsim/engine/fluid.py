"""Forces of the medium (density, viscosity, wind): the model of inertia boxes and that of ellipsoids."""

import numpy as np

from jaxsim.data import Data
from jaxsim.engine.support import apply_wrench, object_velocity
from jaxsim.math.arrays import add_at, matvec, matvec_t, take
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array, divide, norm, sqrt, xp_of
from jaxsim.math.spatial import join
from jaxsim.model import Model
from jaxsim.types import MINVAL, GeomType


def fluid_force(m: Model, d: Data) -> Array:
    """qfrc_fluid (nv,). A body with a geom that asks for the ellipsoid model takes that of its geoms, else its box."""
    xp = xp_of(m.geom_fluid, d.cvel)
    asks = m.geom_fluid[:, 0] > 0
    body = np.arange(m.nbody)
    by_geoms = add_at(m.geom_bodyid, asks.astype(d.cvel.dtype), m.nbody) > 0
    heavy = m.body_mass >= MINVAL
    mat = d.ximat.reshape(-1, 3, 3)
    box = _box_force(m, _relative_velocity(m, d, body, d.xipos, mat))
    box = xp.where((heavy & ~by_geoms)[:, None], box, 0)
    force = apply_wrench(m, d, matvec(mat, box[:, 3:]), matvec(mat, box[:, :3]), d.xipos)
    if m.ngeom == 0:
        return force
    mat = d.geom_xmat.reshape(-1, 3, 3)
    local = _ellipsoid_force(m, _relative_velocity(m, d, m.geom_bodyid, d.geom_xpos, mat))
    local = xp.where((asks & take(heavy, m.geom_bodyid))[:, None], local * m.geom_fluid[:, :1], 0)
    wrench = matvec(mat, local[:, 3:]), matvec(mat, local[:, :3])
    return force + apply_wrench(m, d, *wrench, d.geom_xpos, m.geom_bodyid)


def _relative_velocity(m: Model, d: Data, body: np.ndarray, pos: Array, mat: Array) -> Array:
    """Velocity against the wind at points of bodies, in local frames."""
    v = object_velocity(m, d, body, pos, mat)
    # bodies welded to the world do not move, wherever the wind blows: no force of theirs reaches a dof
    return join(v[:, :3], v[:, 3:] - matvec_t(mat, m.opt.wind))


def _box_force(m: Model, v: Array) -> Array:
    """Local wrench, torque first, on the box of equal inertia."""
    xp = xp_of(m.body_inertia, v)
    inertia = m.body_inertia
    moment = xp.maximum(inertia.sum(1, keepdims=True) - 2 * inertia, MINVAL)
    box = sqrt(divide(moment, m.body_mass[:, None]) * 6)
    diameter = box.mean(1, keepdims=True)
    w, u = v[:, :3], v[:, 3:]
    y, z = box[:, [1, 2, 0]], box[:, [2, 0, 1]]
    rho, mu = m.opt.density, m.opt.viscosity
    torque = -np.pi * diameter**3 * mu * w - rho * box * (y**4 + z**4) * abs(w) * w / 64
    force = -3 * np.pi * diameter * mu * u - 0.5 * rho * y * z * abs(u) * u
    return join(torque, force)


def _semiaxes(m: Model) -> Array:
    xp = xp_of(m.geom_size)
    x, y, z = m.geom_size[:, 0], m.geom_size[:, 1], m.geom_size[:, 2]
    kind = m.geom_type
    sphere, capsule, cylinder = (kind == k for k in (GeomType.SPHERE, GeomType.CAPSULE, GeomType.CYLINDER))
    second = xp.where(sphere | capsule | cylinder, x, y)
    third = xp.where(sphere, x, xp.where(capsule, x + y, xp.where(cylinder, y, z)))
    return xp.stack([x, second, third], axis=1)


def _ellipsoid_force(m: Model, v: Array) -> Array:
    """Local wrench, torque first, on the ellipsoid of each geom: added mass, Magnus and Kutta lift, drag."""
    xp = xp_of(m.geom_fluid, v)
    fluid, rho, mu = m.geom_fluid, m.opt.density, m.opt.viscosity
    blunt, slender, angular, kutta, magnus = (fluid[:, k : k + 1] for k in range(1, 6))
    w, u = v[:, :3], v[:, 3:]
    size = _semiaxes(m)
    y, z = size[:, [1, 2, 0]], size[:, [2, 0, 1]]

    momentum, spin = rho * fluid[:, 6:9] * u, rho * fluid[:, 9:12] * w
    torque = cross(momentum, u) + cross(spin, w)
    force = cross(momentum, w) + magnus * rho * (4 / 3 * np.pi) * size.prod(1, keepdims=True) * cross(w, u)

    largest, smallest = size.max(1, keepdims=True), size.min(1, keepdims=True)
    middle = size.sum(1, keepdims=True) - largest - smallest
    speed = norm(u, keepdims=True)
    area = (y * z) ** 2
    facing = ((y * z * u) ** 2).sum(1, keepdims=True)
    projection = ((area * u) ** 2).sum(1, keepdims=True)
    projected = np.pi * sqrt(projection / xp.maximum(facing, MINVAL))
    cosine = facing / xp.maximum(speed * projection, MINVAL)
    circulation = kutta * rho * cosine * projected * cross(area * u, u)
    force = force + cross(circulation, u)

    diameter = 2 / 3 * size.sum(1, keepdims=True)
    widest = np.pi * largest * middle
    drag = 3 * np.pi * diameter * mu + rho * speed * (projected * blunt + slender * (widest - projected))
    most = 8 / 15 * np.pi * middle * largest**4
    moment = 8 / 15 * np.pi * size * xp.maximum(y, z) ** 4
    resistance = w * (angular * moment + slender * (most - moment))
    twist = np.pi * diameter**3 * mu + rho * norm(resistance, keepdims=True)
    return join(torque - twist * w, force - drag * u)
