"""Signed distance fields of MuJoCo's first-party plugins, for NumPy and JAX alike: negative inside.

A field is a function `(x, y, z, *attributes) -> distance` of arrays that broadcast; the attributes are those of
`jaxsim.core.plugins`, in that order. Finite in value and in derivative everywhere.
"""

import numpy as np

from jaxsim.math import safe
from jaxsim.math.safe import Array, xp_of

HALF_ROOT = np.sqrt(2.0) / 2
PITCH = 12  # turns of a thread per unit of length


def torus(x: Array, y: Array, z: Array, radius1: Array, radius2: Array) -> Array:
    """Compute the distance of a torus about the z axis."""
    ring = safe.sqrt(x * x + y * y) - radius1
    return safe.sqrt(ring * ring + z * z) - radius2


def bowl(x: Array, y: Array, z: Array, height: Array, radius: Array, thickness: Array) -> Array:
    """Compute the distance of a spherical shell, cut off at a height."""
    width = safe.sqrt(radius * radius - height * height)
    rho = safe.sqrt(x * x + y * y)
    rim = safe.sqrt((rho - width) ** 2 + (z - height) ** 2)
    shell = abs(safe.sqrt(rho * rho + z * z) - radius)
    return xp_of(x).where(height * rho < width * z, rim, shell) - thickness


def bolt(x: Array, y: Array, z: Array, radius: Array) -> Array:
    """Compute the distance of a threaded shaft with a hexagonal head."""
    xp = xp_of(x)
    rho, thread = _thread(x, y, z, radius)
    shaft = xp.maximum(thread, -(0.5 - abs(z + 0.5)))
    shaft = xp.maximum(shaft, -((z - rho) * HALF_ROOT + HALF_ROOT))
    return xp.minimum(shaft, _hexagon(x, y, z, rho))


def nut(x: Array, y: Array, z: Array, radius: Array) -> Array:
    """Compute the distance of a hexagon with a threaded hole."""
    xp = xp_of(x)
    rho, thread = _thread(x, y, z, radius)
    cone = (z - rho) * HALF_ROOT
    hole = xp.maximum(thread, -(cone + 0.5 * HALF_ROOT))
    hole = xp.minimum(hole, -cone - 0.05 * HALF_ROOT)
    return xp.maximum(_hexagon(x, y, z, rho), -hole)


def gear(x: Array, y: Array, z: Array, *attributes: Array) -> Array:
    """Compute the distance of a gear with involute teeth: alpha, diameter, teeth, thickness, innerdiameter."""
    alpha, diameter, teeth, thickness, innerdiameter = attributes
    xp = xp_of(x)
    flat = _gear_profile(x, y, alpha, diameter, teeth, innerdiameter)
    high = abs(z) - thickness / 2
    outer = safe.sqrt(xp.maximum(flat, 0) ** 2 + xp.maximum(high, 0) ** 2)
    return xp.minimum(xp.maximum(flat, high), 0.0) + outer


def _thread(x: Array, y: Array, z: Array, radius: Array) -> tuple[Array, Array]:
    """Compute the distance from the axis less the radius, and the distance to the thread."""
    rho = safe.sqrt(x * x + y * y) - radius
    turn = z * PITCH - safe.arctan2(y, x) / np.pi / 2
    wave = abs(turn - xp_of(x).floor(turn) - 0.5)
    return rho, (rho - wave / PITCH) * HALF_ROOT


def _hexagon(x: Array, y: Array, z: Array, rho: Array) -> Array:
    """Compute the distance of the head of a bolt or nut: a hexagon with rounded top."""
    xp, k = xp_of(x), 6.0 / np.pi / 2
    angle = -xp.floor(safe.arctan2(y, x) * k + 0.5) / k
    side = xp.sin(angle + np.pi * 0.5) * x - xp.sin(angle) * y - 0.5
    return xp.maximum(xp.maximum(side, abs(z + 0.25) - 0.25), (z + rho - 0.22) * HALF_ROOT)


def _smooth_union(a: Array, b: Array, k: Array) -> Array:
    h = xp_of(a).clip(0.5 + 0.5 * (b - a) / k, 0.0, 1.0)
    return b * (1 - h) + a * h - k * h * (1 - h)


def _gear_profile(x: Array, y: Array, alpha: Array, diameter: Array, teeth: Array, innerdiameter: Array) -> Array:
    """Compute the distance of a gear with involute teeth in the plane."""
    xp = xp_of(x)
    pressure = 3.096e-5 * teeth * teeth - 6.557e-3 * teeth + 0.551
    pitch = teeth / diameter
    outer = (diameter + 2.0 * (1.0 / pitch)) / 2
    depth = 2.2 / pitch
    inner = xp.where(innerdiameter >= 0, innerdiameter / 2.0, outer - depth - 0.14 * diameter)
    base = diameter * xp.cos(pressure) / 2.0
    rho = safe.sqrt(x * x + y * y)

    phi = safe.arctan2(y, x) + alpha
    stride = np.pi / pitch / (diameter / 2)
    angle = xp.arccos(base / (diameter / 2))
    shift = stride / 2.0 - 2.0 * (xp.tan(angle) - angle)
    sides = [_modulo(phi + shift / 2.0, stride) - shift / 2.0]
    sides.append(_modulo(-phi - shift + shift / 2.0, stride) - shift / 2.0)
    beyond = base < rho
    tangent = xp.sqrt(xp.where(beyond, rho * rho - base * base, 1.0))
    turned = safe.arccos(xp.where(beyond, base / xp.where(beyond, rho, 1.0), 0.5))
    flanks = [xp.where(beyond, tangent - base * (side + turned), -1.0e6) for side in sides]

    walls = xp.maximum(*(side - (stride - shift) for side in sides))
    teeth_only = xp.maximum(walls, xp.maximum(*flanks))
    tip = rho - outer
    both = _smooth_union(xp.maximum(tip, -teeth_only), xp.maximum(teeth_only, -tip), 0.0035 * diameter)
    teeth_only = xp.maximum(xp.maximum(tip, teeth_only), -both)
    low = _smooth_union(rho - (outer - depth), teeth_only, base - outer + depth)
    profile = xp.maximum(low, -(rho - inner))
    far = xp.where(outer - rho < -0.2, rho - outer, profile)
    return xp.where(inner - rho > 0.0, inner - rho, far)


def _modulo(x: Array, y: Array) -> Array:
    return x - y * xp_of(x).floor(x / y)


FIELDS = {
    "mujoco.sdf.bolt": bolt,
    "mujoco.sdf.bowl": bowl,
    "mujoco.sdf.gear": gear,
    "mujoco.sdf.nut": nut,
    "mujoco.sdf.torus": torus,
}
"""The fields by the names of their plugins."""
