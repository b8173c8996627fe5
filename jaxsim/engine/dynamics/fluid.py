"""Forces of the fluid (density, viscosity, wind): the inertia-box model and the ellipsoid model."""

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.types import MINVAL, GeomType
from jaxsim.engine.structure import tables
from jaxsim.math.arrays import add_at, inner, matvec, matvec_t, take
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array, divide, greatest, least, norm, sqrt, xp_of
from jaxsim.math.spatial import join, shift_force, shift_motion
from jaxsim.math.tree import dof_subtree_sum


def fluid_force(m: Model, d: Data) -> Array:
    """Compute qfrc_fluid (nv,).

    The ellipsoid model acts on bodies with a geom that enables it, the box model on all others.
    """
    return inner(d.cdof, dof_subtree_sum(tables.tree(m), fluid_wrench(m, d, d.cvel)))


def fluid_wrench(m: Model, d: Data, cvel: Array) -> Array:
    """Compute forces of the fluid on bodies that move with `cvel`, about the trees' centres of mass: (nbody, 6)."""
    xp = xp_of(m.geom_fluid, cvel)
    heavy = m.body_mass >= MINVAL
    mat = d.ximat.reshape(-1, 3, 3)
    arm = d.xipos - take(d.subtree_com, m.body_rootid)
    box = _box_force(m, local_velocity(m, cvel, arm, mat))
    wrench = _to_com(xp.where((heavy & ~by_ellipsoids(m, cvel.dtype))[:, None], box, 0), arm, mat)
    if m.ngeom == 0:
        return wrench
    body = m.geom_bodyid
    mat = d.geom_xmat.reshape(-1, 3, 3)
    arm = d.geom_xpos - take(d.subtree_com, m.body_rootid[body])
    local = _ellipsoid_force(m, local_velocity(m, take(cvel, body), arm, mat))
    local = xp.where(take(heavy, body)[:, None], local * m.geom_fluid[:, :1], 0)
    return wrench + add_at(body, _to_com(local, arm, mat), m.nbody)


def by_ellipsoids(m: Model, dtype: np.dtype) -> Array:
    """Return the mask of bodies (nbody,) with the ellipsoid model, which one of their geoms enables."""
    return add_at(m.geom_bodyid, (m.geom_fluid[:, 0] > 0).astype(dtype), m.nbody) > 0


def local_velocity(m: Model, cvel: Array, arm: Array, mat: Array) -> Array:
    """Compute the velocity relative to the wind, at `arm` from the tree's centre of mass, in local frames."""
    v = shift_motion(cvel, arm)
    # forces of the wind on bodies welded to the world act on no dof
    return join(matvec_t(mat, v[:, :3]), matvec_t(mat, v[:, 3:] - m.opt.wind))


def _to_com(local: Array, arm: Array, mat: Array) -> Array:
    return shift_force(join(matvec(mat, local[:, :3]), matvec(mat, local[:, 3:])), arm)


def box_sides(m: Model) -> Array:
    """Compute the sides of the boxes that have the bodies' inertias: (nbody, 3)."""
    inertia = m.body_inertia
    moment = xp_of(inertia).maximum(inertia.sum(1, keepdims=True) - 2 * inertia, MINVAL)
    return sqrt(divide(moment, m.body_mass[:, None]) * 6)


def _box_force(m: Model, v: Array) -> Array:
    """Compute the local wrench, torque first, on the box of equal inertia."""
    box = box_sides(m)
    diameter = box.mean(1, keepdims=True)
    w, u = v[:, :3], v[:, 3:]
    y, z = box[:, [1, 2, 0]], box[:, [2, 0, 1]]
    rho, mu = m.opt.density, m.opt.viscosity
    torque = -np.pi * diameter**3 * mu * w - rho * box * (y**4 + z**4) * abs(w) * w / 64
    force = -3 * np.pi * diameter * mu * u - 0.5 * rho * y * z * abs(u) * u
    return join(torque, force)


def semiaxes(m: Model) -> Array:
    """Return the semiaxes of the ellipsoids that replace the geoms: (ngeom, 3)."""
    xp = xp_of(m.geom_size)
    x, y, z = m.geom_size[:, 0], m.geom_size[:, 1], m.geom_size[:, 2]
    kind = m.geom_type
    sphere, capsule, cylinder = (kind == k for k in (GeomType.SPHERE, GeomType.CAPSULE, GeomType.CYLINDER))
    second = xp.where(sphere | capsule | cylinder, x, y)
    third = xp.where(sphere, x, xp.where(capsule, x + y, xp.where(cylinder, y, z)))
    return xp.stack([x, second, third], axis=1)


def _ellipsoid_force(m: Model, v: Array) -> Array:
    """Compute the local wrench, torque first, on the ellipsoid of each geom.

    It has added mass, Magnus and Kutta lift, and drag.
    """
    xp = xp_of(m.geom_fluid, v)
    fluid, rho, mu = m.geom_fluid, m.opt.density, m.opt.viscosity
    blunt, slender, angular, kutta, magnus = (fluid[:, k : k + 1] for k in range(1, 6))
    w, u = v[:, :3], v[:, 3:]
    size = semiaxes(m)
    y, z = size[:, [1, 2, 0]], size[:, [2, 0, 1]]

    momentum, spin = rho * fluid[:, 6:9] * u, rho * fluid[:, 9:12] * w
    torque = cross(momentum, u) + cross(spin, w)
    force = cross(momentum, w) + magnus * rho * (4 / 3 * np.pi) * size.prod(1, keepdims=True) * cross(w, u)

    largest, smallest = greatest(size, keepdims=True), least(size, keepdims=True)
    middle = size.sum(1, keepdims=True) - largest - smallest
    speed = norm(u, keepdims=True)
    square = (y * z) ** 2
    facing = ((y * z * u) ** 2).sum(1, keepdims=True)
    projection = ((square * u) ** 2).sum(1, keepdims=True)
    projected = np.pi * sqrt(projection / xp.maximum(facing, MINVAL))
    cosine = facing / xp.maximum(speed * projection, MINVAL)
    circulation = kutta * rho * cosine * projected * cross(square * u, u)
    force = force + cross(circulation, u)

    diameter = 2 / 3 * size.sum(1, keepdims=True)
    widest = np.pi * largest * middle
    drag = 3 * np.pi * diameter * mu + rho * speed * (projected * blunt + slender * (widest - projected))
    most = 8 / 15 * np.pi * middle * largest**4
    moment = 8 / 15 * np.pi * size * xp.maximum(y, z) ** 4
    resistance = w * (angular * moment + slender * (most - moment))
    twist = np.pi * diameter**3 * mu + rho * norm(resistance, keepdims=True)
    return join(torque - twist * w, force - drag * u)
