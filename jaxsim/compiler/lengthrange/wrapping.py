"""Lengths of actuators and tendons and their derivatives, in NumPy, for many motions of one model at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxsim.core.model import Model
from jaxsim.core.types import MINVAL, TrnType, WrapType
from jaxsim.engine.tendon.path import pieces
from jaxsim.engine.tendon.wrap import wrap
from jaxsim.math.rotation import cross
from jaxsim.math.safe import norm, normalize


class LengthTerms(NamedTuple):
    """Terms of the measured lengths: of each motion's actuator, then of each motion's limited tendons.

    A length is linear in positions by dof, plus the lengths of tendon pieces between two points, some of which may wrap
    around a geom.

    Attributes:
        row_motion: (k,) motion of each length. linear: (k, nv) its linear part.
        motion: (n,) motion of each piece. ends: (2, n) its end points.
        change: (n, nv) dofs that move the second end, less those that move the first.
        share: (n,) gear, divided by the divisor of a pulley.
        wrapping: (w,) pieces that may wrap. geom_change: (w, nv) dofs that move the geom, less those that move the
            first end.
        geom, geom_point: (w,) index of the geom among `wrapped_geoms`, and of its centre among the points.
        radius, sphere: (w,) radius of the geom, and whether it is a sphere. side: (w,) side site's point, or -1.
        order, starts, rows: straight parts sorted by length, the first one of each length, and these lengths.
    """

    row_motion: np.ndarray
    linear: np.ndarray
    motion: np.ndarray
    ends: np.ndarray
    change: np.ndarray
    share: np.ndarray
    wrapping: np.ndarray
    geom_change: np.ndarray
    geom: np.ndarray
    geom_point: np.ndarray
    radius: np.ndarray
    sphere: np.ndarray
    side: np.ndarray
    order: np.ndarray
    starts: np.ndarray
    rows: np.ndarray


def wrapped_geoms(m: Model) -> np.ndarray:
    """Return the ids of the geoms that tendons wrap around."""
    return np.unique(m.wrap_objid[np.isin(m.wrap_type, (WrapType.SPHERE, WrapType.CYLINDER))])


def make_length_terms(
    m: Model, motors: np.ndarray, limited: np.ndarray, mask: np.ndarray, links: np.ndarray, first: int
) -> LengthTerms:
    """Return the terms of the lengths of these actuators and tendons.

    Args:
        m: the model.
        motors: (n,) actuator of each motion.
        limited: ids of limited tendons.
        mask: (nlinks, nv) 1 where the dof moves the link.
        links: link of each point.
        first: index of the first site among the points; geoms of `wrapped_geoms` follow the sites.
    """
    n, target = len(motors), m.actuator_trnid[motors, 0]
    by_tendon, gear = m.actuator_trntype[motors] == TrnType.TENDON, m.actuator_gear[motors, 0]
    tendon = np.concatenate([np.where(by_tendon, target, -1), np.tile(limited, n)])
    motion = np.concatenate([np.arange(n), np.repeat(np.arange(n), len(limited))])
    scale = np.concatenate([gear, np.ones(n * len(limited))])
    linear = np.append(_fixed(m), np.zeros((1, m.nv)), axis=0)[tendon] * scale[:, None]
    joint = np.flatnonzero(~by_tendon)
    linear[joint, m.jnt_dofadr[target[joint]]] = gear[joint]
    p = pieces(m)
    of = [np.flatnonzero(p.tendon == t) if t >= 0 else np.zeros(0, int) for t in range(-1, m.ntendon)]
    piece = np.concatenate([of[t + 1] for t in tendon]).astype(int)
    row = np.repeat(np.arange(len(tendon)), [len(of[t + 1]) for t in tendon])
    ends = first + np.stack([p.site0[piece], p.site1[piece]])
    divisor = np.where(p.pulley >= 0, m.wrap_prm[p.pulley], 1)[piece] if m.nwrap else np.ones(0)
    moves = mask[links[ends]].astype(float)
    wrapping = np.flatnonzero(p.geom[piece] >= 0)
    entry = p.side[piece[wrapping]]
    geom = np.searchsorted(wrapped_geoms(m), p.geom[piece[wrapping]])
    side = np.round(m.wrap_prm[entry]).astype(int)
    row_of_parts = np.concatenate([row, row[wrapping]])
    order = np.argsort(row_of_parts, kind="stable")
    rows, starts = np.unique(row_of_parts[order], return_index=True)
    return LengthTerms(
        row_motion=motion,
        linear=linear,
        motion=motion[row],
        ends=ends,
        change=moves[1] - moves[0],
        share=scale[row] / divisor,
        wrapping=wrapping,
        geom_change=mask[links[first + m.nsite + geom]] - moves[0, wrapping],
        geom=geom,
        geom_point=first + m.nsite + geom,
        radius=np.asarray(m.geom_size)[p.geom[piece[wrapping]], 0],
        sphere=m.wrap_type[entry] == WrapType.SPHERE,
        side=np.where(side >= 0, first + side, -1),
        order=order,
        starts=starts,
        rows=rows,
    )


def _fixed(m: Model) -> np.ndarray:
    """Return the Jacobian (ntendon, nv) of fixed tendons, which are sums of joint positions."""
    out = np.zeros((m.ntendon, m.nv))
    tendon = np.repeat(np.arange(m.ntendon), m.tendon_num)
    wrap = np.concatenate([a + np.arange(n) for a, n in zip(m.tendon_adr, m.tendon_num, strict=True)] or [[]]).astype(
        int
    )
    keep = m.wrap_type[wrap] == WrapType.JOINT
    np.add.at(out, (tendon[keep], m.jnt_dofadr[m.wrap_objid[wrap[keep]]]), m.wrap_prm[wrap[keep]])
    return out


def lengths_and_jacobian(
    s: LengthTerms, q: np.ndarray, axes: np.ndarray, points: np.ndarray, mats: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Compute lengths (k,) and their Jacobian (k, nv).

    Args:
        s: terms of the lengths.
        q: (n, nv) positions of hinges and slides, by dof.
        axes: (n, nv, 6) motion about the world's origin due to each dof, angular first.
        points: (n, npoints, 3), global.
        mats: (n, ngeoms, 3, 3) of the geoms that can be wrapped around.
    """
    length, jac = (s.linear * q[s.row_motion]).sum(-1), s.linear.copy()
    if not len(s.motion):
        return length, jac
    start, end = points[s.motion, s.ends[0]], points[s.motion, s.ends[1]]
    change, share, motion, arc = s.change, s.share, s.motion, 0.0
    if len(s.wrapping):
        start, end, change, share, arc = _split_at_wraps(s, points, mats, start, end)
        motion = np.concatenate([motion, motion[s.wrapping]])
    segment = end - start
    unit = normalize(segment, default=np.array([1.0, 0, 0]), eps=MINVAL)[0]
    line = np.concatenate([cross(start, unit), unit], axis=1)
    rates = (axes[motion] @ line[:, :, None])[..., 0] * change * share[:, None]
    reach = norm(segment) * share + arc
    length[s.rows] += np.add.reduceat(reach[s.order], s.starts)
    jac[s.rows] += np.add.reduceat(rates[s.order], s.starts)
    return length, jac


def _split_at_wraps(s: LengthTerms, points: np.ndarray, mats: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple:
    """Return starts, ends, changes, shares and arc lengths of the straight parts.

    There is one part for each piece, then a second part for each piece in `wrapping`, from the geom to the end.
    """
    motion = s.motion[s.wrapping]
    wraps, touch0, touch1, length = wrap(
        start[s.wrapping],
        end[s.wrapping],
        points[motion, s.geom_point],
        mats[motion, s.geom],
        s.radius,
        s.sphere,
        points[motion, s.side],
        s.side >= 0,
    )
    first_end, first_change, arc = end.copy(), s.change.copy(), np.zeros(len(start) + len(s.wrapping))
    first_end[s.wrapping] = np.where(wraps[:, None], touch0, end[s.wrapping])
    first_change[s.wrapping] = np.where(wraps[:, None], s.geom_change, s.change[s.wrapping])
    second = s.share[s.wrapping] * wraps
    arc[len(start) :] = second * length
    return (
        np.concatenate([start, touch1]),
        np.concatenate([first_end, end[s.wrapping]]),
        np.concatenate([first_change, s.change[s.wrapping] - s.geom_change]),
        np.concatenate([s.share, second]),
        arc,
    )
