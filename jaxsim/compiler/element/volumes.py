"""Mass, size and bounds of primitive geoms: volume, inertia, bounding sphere and box, fluid coefficients.

Sizes are MuJoCo's half sizes; inertias are diagonal, in the frame of the geom, for the mass given.
"""

import math

import numpy as np

from jaxsim.core.types import MAXVAL
from jaxsim.core.types import GeomType as G
from jaxsim.mjcf.pose import EPS

Vec = list[float]
_PI = math.pi

# number of sizes of a geom that must be positive
SIZES = {G.SPHERE: 1, G.CAPSULE: 2, G.ELLIPSOID: 3, G.CYLINDER: 2, G.BOX: 3}

# 15-point Gauss-Kronrod rule on [0, 1] for the substitution l = x^3 / (1 - x)^2: weights, l(x) and dl/dx
_WEIGHTS = (0.01146766, 0.03154605, 0.05239501, 0.07032663, 0.08450236, 0.09517529, 0.10221647, 0.10474107)
_KRONROD_W = np.array((*_WEIGHTS, *_WEIGHTS[6::-1]))
_KRONROD_L = np.array(
    (
        *(7.865151709349917e-08, 1.7347976913907274e-05, 0.0003548008144506193, 0.002846636252924549),
        *(0.014094260903596077, 0.053063261727396636, 0.17041978741317773, 0.5, 1.4036301548686991, 3.9353484827022642),
        *(11.644841677041734, 39.53187807410903, 177.5711362220801, 1429.4772912937397, 54087.416549217705),
    )
)
_KRONROD_D = np.array(
    (
        *(5.538677720489877e-05, 0.002080868285293228, 0.016514126520723166, 0.07261900344370877, 0.23985243401862602),
        *(0.6868318249020725, 1.8551129519182894, 5.0, 14.060031152313941, 43.28941239611009, 156.58546376397112),
        *(747.9826085305024, 5827.4042950027115, 116754.0197944512, 25482945.327264845),
    )
)


def volume(geomtype: G, size: Vec, shell: bool) -> float:
    """Compute the volume of a primitive, or the area of its surface for a shell; zero for planes."""
    r, h, c = size
    if geomtype == G.SPHERE:
        return 4 * _PI * r * r if shell else 4 * _PI * r * r * r / 3
    if geomtype == G.CAPSULE:
        return 4 * _PI * r * r + 4 * _PI * r * h if shell else _PI * (r * r * 2 * h + 4 * r * r * r / 3)
    if geomtype == G.CYLINDER:
        return 2 * _PI * r * r + 4 * _PI * r * h if shell else _PI * r * r * 2 * h
    if geomtype == G.ELLIPSOID:
        if not shell:
            return 4 * _PI * r * h * c / 3
        p = 1.6075  # Thomsen's approximation
        return 4 * _PI * (((r * h) ** p + (h * c) ** p + (c * r) ** p) / 3) ** (1 / p)
    if geomtype in (G.BOX, G.HFIELD):
        return 8 * (r * h + h * c + c * r) if shell else r * h * c * 8
    return 0.0


def box_inertia(mass: float, half: Vec) -> Vec:
    """Compute the diagonal inertia of a solid box with these half sizes."""
    return ellipsoid_inertia(mass, half, 3)


def ellipsoid_inertia(mass: float, size: Vec, divisor: float = 5) -> Vec:
    """Compute the diagonal inertia of a solid ellipsoid with these semi-axes."""
    xx, yy, zz = (s * s for s in size)
    return [mass * (yy + zz) / divisor, mass * (xx + zz) / divisor, mass * (xx + yy) / divisor]


def _sphere(mass: float, size: Vec, shell: bool) -> Vec:
    return [2 * mass * size[0] * size[0] / (3 if shell else 5)] * 3


def _capsule(mass: float, size: Vec, shell: bool) -> Vec:
    r, half = size[0], size[1]
    height = 2 * half
    if shell:
        sphere = mass * 4 * _PI * r * r / (4 * _PI * r * r + 2 * _PI * r * height)
        tube = mass - sphere
        ends = 2 * sphere * r * r / 3
        com = r / 2
        across = tube * (6 * r * r + height * height) / 12 + ends + sphere * ((half + com) ** 2 - com * com)
        return [across, across, tube * r * r + ends]
    sphere = mass * 4 * r / (4 * r + 3 * height)
    tube = mass - sphere
    ends = 2 * sphere * r * r / 5
    across = tube * (3 * r * r + height * height) / 12 + ends + sphere * height * (3 * r + 2 * height) / 8
    return [across, across, tube * r * r / 2 + ends]


def _cylinder(mass: float, size: Vec, shell: bool) -> Vec:
    r, half = size[0], size[1]
    height = 2 * half
    if not shell:
        across = mass * (3 * r * r + height * height) / 12
        return [across, across, mass * r * r / 2]
    disk = mass * r * r / (2 * r * r + 2 * r * height)
    tube = mass - 2 * disk
    across = tube * (6 * r * r + height * height) / 12 + 2 * (disk * r * r / 4 + disk * half * half)
    return [across, across, tube * r * r + disk * r * r]


def _ellipsoid(mass: float, size: Vec, shell: bool) -> Vec:
    if not shell:
        return ellipsoid_inertia(mass, size)
    eps = 1e-6  # the shell is the growth of an ellipsoid whose semi-axes grow by this
    grown = [s + eps for s in size]
    inner, outer = (4 * _PI * s[0] * s[1] * s[2] / 3 for s in (size, grown))
    density = mass / (outer - inner)
    small, large = ellipsoid_inertia(inner * density, size), ellipsoid_inertia(outer * density, grown)
    return [b - a for a, b in zip(small, large, strict=True)]


def _box(mass: float, size: Vec, shell: bool) -> Vec:
    if not shell:
        return box_inertia(mass, size)
    x, y, z = (2 * s for s in size)
    total = 2 * (x * y + y * z + z * x)
    mz, mx, my = mass * x * y / total, mass * y * z / total, mass * z * x / total  # by the normal of the side
    sx, sy, sz = (s * s for s in size)
    return [
        2 * (mz * sz + my * sy + mz * y * y / 12 + mx * (y * y + z * z) / 12 + my * z * z / 12),
        2 * (mz * sz + mx * sx + mz * x * x / 12 + mx * z * z / 12 + my * (x * x + z * z) / 12),
        2 * (mx * sx + my * sy + mz * (x * x + y * y) / 12 + mx * y * y / 12 + my * x * x / 12),
    ]


_INERTIA = {
    G.SPHERE: _sphere,
    G.CAPSULE: _capsule,
    G.CYLINDER: _cylinder,
    G.ELLIPSOID: _ellipsoid,
    G.BOX: _box,
    G.HFIELD: _box,
}


def inertia(geomtype: G, size: Vec, mass: float, shell: bool) -> Vec:
    """Compute the diagonal inertia of a primitive; zeros for planes."""
    rule = _INERTIA.get(geomtype)
    return rule(mass, size, shell) if rule else [0.0, 0.0, 0.0]


def rbound(geomtype: G, size: Vec) -> float:
    """Return the radius of the bounding sphere about the geom's centre; zero for planes."""
    x, y, z = size
    if geomtype == G.SPHERE:
        return x
    if geomtype == G.CAPSULE:
        return x + y
    if geomtype == G.CYLINDER:
        return math.sqrt(x * x + y * y)
    if geomtype == G.ELLIPSOID:
        return max(size)
    if geomtype in (G.BOX, G.MESH, G.SDF):
        return math.sqrt(x * x + y * y + z * z)
    return 0.0


def aabb(geomtype: G, size: Vec) -> Vec:
    """Return the bounding box of a primitive in its own frame: centre, half sizes."""
    if geomtype == G.PLANE:
        return [0.0, 0.0, -MAXVAL / 2, MAXVAL, MAXVAL, MAXVAL / 2]
    return [0.0, 0.0, 0.0, *semiaxes(geomtype, size)]


def semiaxes(geomtype: G, size: Vec) -> Vec:
    """Return half the extents of a primitive: the semi-axes of the ellipsoid that replaces it in the fluid model."""
    x, y, z = size
    return {G.SPHERE: [x, x, x], G.CAPSULE: [x, x, y + x], G.CYLINDER: [x, x, y]}.get(geomtype, [x, y, z])


def _added_mass(d: np.ndarray) -> np.ndarray:
    """Compute the shape factors of added mass along the three axes of an ellipsoid with semi-axes `d`."""
    out = []
    for axes in (d, np.roll(d, -1), np.roll(d, -2)):
        inv = 1 / (axes * axes)
        scale = (axes[0] ** 3 * axes[1] * axes[2]) ** 0.4
        a, b, c = (1 + scale * _KRONROD_L * i for i in inv)
        out.append(np.sum(scale * _KRONROD_D / (a * np.sqrt(a * b * c)) * _KRONROD_W) * inv[0])
    return np.array(out)


def fluid(geomtype: G, size: Vec, coefs: Vec) -> Vec:
    """Compute the 12 numbers of geom_fluid: switch, five drag and lift coefficients, virtual mass and virtual inertia.

    They are not finite for a shape without volume, as in MuJoCo.
    """
    d = np.array(semiaxes(geomtype, size), np.float64)
    vol = 4.0 / 3.0 * _PI * d[0] * d[1] * d[2]
    with np.errstate(all="ignore"):
        k = _added_mass(d)
        mass = vol * k / _at_least(2 - k)
        a, b = np.array([1, 2, 0]), np.array([2, 0, 1])
        dif, tot = d[a] ** 2 - d[b] ** 2, d[a] ** 2 + d[b] ** 2
        turn = vol / 5 * dif * dif * np.abs(k[b] - k[a]) / _at_least(np.abs(2 * dif + tot * (k[a] - k[b])))
    return [1.0, *coefs, *mass.tolist(), *turn.tolist()]


def _at_least(x: np.ndarray) -> np.ndarray:
    return np.where(x > EPS, x, EPS)
