"""Paths of spatial tendons: straight pieces between sites, and pieces that may wrap around a geom."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import moving_dofs, per_structure
from jaxsim.core.types import MINVAL, WrapType
from jaxsim.engine.kinematics.objects import point_velocities
from jaxsim.engine.structure import tables
from jaxsim.engine.tendon.wrap import wrap
from jaxsim.math.arrays import add_at, inner, is_numpy, merge, take
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array, divide, norm, normalize, xp_of
from jaxsim.math.spatial import shift_motion
from jaxsim.math.tree import dof_path_sum

PULLEY = -2  # value of `wrap_obj` for a pulley
SITE = -1


class Pieces(NamedTuple):
    """Consecutive pairs of sites of all spatial tendons, in order.

    `geom` and `side` (entry of wrap_prm with the side site) are -1 for straight pieces; `pulley` is the entry of
    wrap_prm with the divisor, -1 before the first pulley. `closes` marks the last piece before a pulley or the end.
    """

    tendon: np.ndarray
    site0: np.ndarray
    site1: np.ndarray
    geom: np.ndarray
    side: np.ndarray
    pulley: np.ndarray
    closes: np.ndarray
    after_pulley: np.ndarray  # number of pulleys between the previous piece and this one


@per_structure
def pieces(m) -> Pieces:
    """Return the pieces of all spatial tendons."""
    rows = []
    for t in range(m.ntendon):
        adr, num = int(m.tendon_adr[t]), int(m.tendon_num[t])
        kinds, ids = m.wrap_type[adr : adr + num], m.wrap_objid[adr : adr + num]
        pulley, passed, j = -1, 0, 0
        if num and kinds[0] == WrapType.JOINT:
            continue
        while j < num - 1:
            if WrapType.PULLEY in (kinds[j], kinds[j + 1]):
                if kinds[j] == WrapType.PULLEY:
                    pulley, passed = adr + j, passed + 1
                j += 1
                continue
            wraps = kinds[j + 1] in (WrapType.SPHERE, WrapType.CYLINDER)
            end = j + 2 if wraps else j + 1
            closes = end == num - 1 or kinds[end + 1] == WrapType.PULLEY
            geom, side = (ids[j + 1], adr + j + 1) if wraps else (-1, -1)
            rows.append((t, ids[j], ids[end], geom, side, pulley, closes, passed))
            j, passed = end, 0
    columns = np.array(rows, dtype=int).reshape(-1, len(Pieces._fields)).T
    return Pieces(*columns)


class Path(NamedTuple):
    """The pieces in a state: their ends, whether they wrap, tangent points, length of the arc, and divisors.

    Quantities of wraps are (nwrapping, ...) for the pieces `wrapping`.
    """

    start: Array
    end: Array
    divisor: Array
    wrapping: np.ndarray
    wraps: Array
    touch0: Array
    touch1: Array
    arc: Array


def path(m: Model, d: Data) -> Path:
    """Compute the path of each piece."""
    xp = xp_of(d.site_xpos, m.wrap_prm)
    p = pieces(m)
    divisor = xp.where(p.pulley >= 0, take(m.wrap_prm, np.maximum(p.pulley, 0)), 1)
    start, end = take(d.site_xpos, p.site0), take(d.site_xpos, p.site1)
    wrapping = np.flatnonzero(p.geom >= 0)
    if len(wrapping) == 0:
        none = xp.zeros((0, 3), start.dtype)
        return Path(start, end, divisor, wrapping, xp.zeros(0, bool), none, none, none[:, 0])
    geom = p.geom[wrapping]
    side = xp.round(take(m.wrap_prm, p.side[wrapping])).astype(np.int32)
    found = wrap(
        take(start, wrapping),
        take(end, wrapping),
        take(d.geom_xpos, geom),
        take(d.geom_xmat, geom).reshape(-1, 3, 3),
        take(m.geom_size, geom)[:, 0],
        m.wrap_type[p.side[wrapping]] == WrapType.SPHERE,
        d.site_xpos[xp.clip(side, 0, m.nsite - 1)],
        side >= 0,
    )
    return Path(start, end, divisor, wrapping, *found)


def lengths(m: Model, way: Path) -> Array:
    """Compute the contribution of the pieces to the lengths of the tendons: (ntendon,)."""
    xp = xp_of(way.start)
    p = pieces(m)
    length = norm(way.end - way.start)
    if len(way.wrapping):
        w = way.wrapping
        around = norm(take(way.start, w) - way.touch0) + way.arc + norm(take(way.end, w) - way.touch1)
        whole = xp.where(way.wraps, around, take(length, w))
        length = merge(length, w, whole)
    return add_at(p.tendon, length / way.divisor, m.ntendon)


class _Pulls(NamedTuple):
    """Straight parts of paths: tendons, and the bodies at both ends."""

    tendon: np.ndarray
    body0: np.ndarray
    body1: np.ndarray


@per_structure
def _pulls(m) -> _Pulls:
    """Return the pieces as if nothing wrapped, then the parts before and after each geom."""
    p = pieces(m)
    body0, body1 = m.site_bodyid[p.site0], m.site_bodyid[p.site1]
    w = np.flatnonzero(p.geom >= 0)
    over = m.geom_bodyid[p.geom[w]]
    tendon, left, right = (p.tendon, p.tendon[w], p.tendon[w]), (body0, body0[w], over), (body1, over, body1[w])
    return _Pulls(*map(np.concatenate, (tendon, left, right)))


def _forces(way: Path) -> tuple[Array, Array, Array]:
    """Return both ends of the `_pulls`, and the force (n, 3) at the second end per unit of tension, zero if absent."""
    xp = xp_of(way.start)
    share, w = 1 / way.divisor, way.wrapping
    start, end = way.start, way.end
    if len(w):
        bent = xp.where(way.wraps, take(share, w), 0)
        direct = merge(share, w, take(share, w) - bent)
        start = xp.concatenate([start, take(start, w), way.touch1])
        end = xp.concatenate([end, way.touch0, take(end, w)])
        share = xp.concatenate([direct, bent, bent])
    unit = normalize(end - start, default=np.array([1.0, 0, 0]), eps=MINVAL)[0]
    return start, end, unit * share[:, None]


@per_structure
def _levers(m) -> tuple[np.ndarray, np.ndarray]:
    """Return end (of both ends of all pulls, second ends first) and dof of each product in the Jacobian.

    A dof that moves both ends of a straight part does not change its length.
    """
    p = _pulls(m)
    first, second = moving_dofs(m, p.body0), moving_dofs(m, p.body1)
    end, dof = np.nonzero(np.concatenate([second & ~first, first & ~second]))
    return end, dof


def jacobian(m: Model, d: Data, way: Path, entry: np.ndarray) -> Array:
    """Compute the contribution of the pieces to ten_J (nJten,).

    `entry` (ntendon, nv) is the address of each derivative, or -1.
    """
    xp = xp_of(way.start)
    p = _pulls(m)
    start, end, force = _forces(way)
    body, tendon = np.concatenate([p.body1, p.body0]), np.concatenate([p.tendon, p.tendon])
    force = xp.concatenate([force, -force])
    arm = xp.concatenate([end, start]) - take(d.subtree_com, m.body_rootid[body])
    wrench = xp.concatenate([cross(arm, force), force], axis=1)
    side, dof = _levers(m)
    place = entry[tendon[side], dof]
    side, dof, place = side[place >= 0], dof[place >= 0], place[place >= 0]
    return add_at(place, inner(take(d.cdof, dof), take(wrench, side)), m.nJten)


def bias_rate(m: Model, d: Data) -> Array | None:
    """Compute the product of the rate of each tendon's Jacobian with qvel: (ntendon,).

    Returns None if no Jacobian changes. Pieces that may wrap around a geom are left out: MJCF does not allow armature
    on their tendons.
    """
    p = pieces(m)
    straight = np.flatnonzero(p.geom < 0)
    if len(straight) == 0:
        return None
    rates = dof_path_sum(tables.tree(m), d.cdof_dot * d.qvel[:, None])
    ends = []
    for site in (p.site0[straight], p.site1[straight]):
        body = m.site_bodyid[site]
        pos = take(d.site_xpos, site)
        velocity = point_velocities(m, d, body, pos)
        acceleration = shift_motion(take(rates, body), pos - take(d.subtree_com, m.body_rootid[body]))
        ends.append((pos, velocity[:, 3:], acceleration[:, 3:] + cross(velocity[:, :3], velocity[:, 3:])))
    (pos0, vel0, acc0), (pos1, vel1, acc1) = ends
    unit, length = normalize(pos1 - pos0, default=np.array([1.0, 0, 0]), eps=MINVAL)
    speed = vel1 - vel0
    along = inner(unit, speed)
    swing = divide(inner(speed, speed) - along * along, length)
    divisor = xp_of(m.wrap_prm).where(p.pulley[straight] >= 0, take(m.wrap_prm, np.maximum(p.pulley[straight], 0)), 1)
    apart = m.site_bodyid[p.site0[straight]] != m.site_bodyid[p.site1[straight]]
    rate = (inner(unit, acc1 - acc0) + swing) / divisor * apart.astype(unit.dtype)
    return add_at(p.tendon[straight], rate, m.ntendon)


@per_structure
def _point_rows(m) -> tuple[np.ndarray, ...]:
    """Return all points that can occur in `wrap_xpos`, in order: piece (or -1), its point, its object, and tendon.

    Points of a piece are 0: its start, 1 and 2: tangent points on its geom, 3: its end; a pulley has -1.
    """
    p = pieces(m)
    rows = []
    for k in range(len(p.tendon)):
        t = p.tendon[k]
        rows += [(k, -1, PULLEY, t)] * p.after_pulley[k]
        rows.append((k, 0, SITE, t))
        if p.geom[k] >= 0:
            rows += [(k, 1, p.geom[k], t), (k, 2, p.geom[k], t)]
        if p.closes[k]:
            rows.append((k, 3, SITE, t))
    return tuple(np.array(rows, dtype=int).reshape(-1, 4).T)


def wrap_points(m: Model, way: Path) -> dict[str, Array]:
    """Compute the points of the paths in Data: ten_wrapadr, ten_wrapnum, wrap_obj and wrap_xpos."""
    xp = xp_of(way.start)
    piece, which, what, tendon = _point_rows(m)
    place = np.full(len(way.start), -1)
    place[way.wrapping] = np.arange(len(way.wrapping))
    tables_of = [way.start, way.touch0, way.touch1, way.end, xp.zeros((1, 3), way.start.dtype)]
    offset = np.cumsum([0, *(len(x) for x in tables_of)])
    k = place[piece]
    row = np.select([which == i for i in (0, 1, 2, 3, -1)], [piece, k, k, piece, np.zeros_like(piece)])
    points = take(xp.concatenate(tables_of), offset[np.where(which < 0, 4, which)] + row)
    there = xp.ones(len(piece), bool)
    touching = np.isin(which, (1, 2))
    if touching.any():
        there = xp.where(touching, take(way.wraps, np.where(touching, k, 0)), there)
    capacity = 2 * m.nwrap
    target = xp.where(there, xp.cumsum(there) - 1, capacity)
    number = add_at(tendon, there.astype(np.int32), m.ntendon)
    obj, pos = xp.full(capacity + 1, SITE, np.int32) * 0, xp.zeros((capacity + 1, 3), points.dtype)
    what = what.astype(np.int32)
    if is_numpy(points, target):
        obj[target], pos[target] = what, points
    else:
        obj, pos = obj.at[target].set(jnp.asarray(what)), pos.at[target].set(points)
    return {
        "ten_wrapnum": number,
        "ten_wrapadr": xp.cumsum(number) - number,
        "wrap_obj": obj[:-1].reshape(-1, 2),
        "wrap_xpos": pos[:-1].reshape(-1, 6),
    }
