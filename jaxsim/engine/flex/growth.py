"""Elongation of edges, from displacements of their ends.

The difference of two positions has the rounding of positions: in float32, for edges of 7 cm a metre away, a strain of
1e-4 has a relative error of 2e-2. Displacements by slides are numbers of the state, whose difference is exact where
they are near each other.
"""

from typing import Any, NamedTuple

import numpy as np
from jax import lax

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import JointType
from jaxsim.engine.structure import flex_tables as tables
from jaxsim.math.arrays import inner, matvec, merge, take, take_or_zero
from jaxsim.math.rotation import quat_to_mat
from jaxsim.math.safe import Array, xp_of

SLIDES = 3  # most joints of a vertex that slides
ROUNDINGS = 4  # roundings of rest positions within which the strain counts as zero


class Sliding(NamedTuple):
    """Vertices whose position in a frame is a sum of slides, and the edges between two of the same frame.

    Attributes:
        body: (nflexvert,) their bodies, 0 for vertices without one.
        joint: (nflexvert, SLIDES) slides of those that move, -1 for none.
        local: (nflexvert,) whether they are fixed in their bodies, away from the origin.
        edges: (n,) edges between vertices that slide in one frame, or are fixed in it.
    """

    body: np.ndarray
    joint: np.ndarray
    local: np.ndarray
    edges: np.ndarray


@per_structure
def sliding(m: Any) -> Sliding:
    """Return the vertices of all flexes that slide."""
    body = np.maximum(m.flex_vertbodyid, 0)
    centered = m.flex_centered[tables.vertex_flex(m)]
    count, step = m.body_jntnum[body], np.arange(SLIDES)
    joint = np.where(step < count[:, None], m.body_jntadr[body][:, None] + step, -1)
    slides = np.append(m.jnt_type, -1)[joint] == JointType.SLIDE
    moves = (count > 0) & (slides.sum(1) == count)
    frame = np.where(moves, m.body_parentid[body], body)
    known = (m.flex_vertbodyid >= 0) & (centered | ~moves)
    one, two = tables.edges(m).ends.T
    edges = np.flatnonzero(known[one] & known[two] & (frame[one] == frame[two]))
    joint = np.where(moves[:, None], joint, -1)
    return Sliding(body, joint, ~moves & ~centered, edges)


def _rest(m: Model, s: Sliding) -> Array:
    """Return the rest positions (nflexvert, 3) of vertices, in the frame in which they slide."""
    still = np.flatnonzero(s.joint[:, 0] < 0)
    xp = xp_of(m.body_pos, m.flex_vert)
    at = xp.where(s.local[still, None], take(m.flex_vert, still), 0)
    return merge(take(m.body_pos, s.body), still, at)


def _moved(m: Model, d: Data, s: Sliding) -> Array:
    """Return the displacements of vertices by slides."""
    address = np.where(s.joint < 0, -1, m.jnt_qposadr[s.joint])
    slide = take_or_zero(d.qpos, address) - take_or_zero(m.qpos0, address)
    axis = matvec(quat_to_mat(take(m.body_quat, s.body))[:, None], take_or_zero(m.jnt_axis, s.joint))
    return (axis * slide[..., None]).sum(1)


def squared_growth(m: Model, d: Data, edge: np.ndarray) -> Array:
    """Compute the squared lengths of edges (n,) less their squared rest lengths."""
    s = sliding(m)
    length, rest_length = take(d.flexedge_length, edge), take(m.flexedge_length0, edge)
    growth = length * length - rest_length * rest_length
    known = np.flatnonzero(np.isin(edge, s.edges))
    if not len(known):
        return growth
    ends = tables.edges(m).ends[edge[known]]
    rest, moved = _rest(m, s), _moved(m, d, s)
    at1, at2 = (take(rest, ends[:, i]) for i in (0, 1))
    step, moved_step = at2 - at1, take(moved, ends[:, 1]) - take(moved, ends[:, 0])
    exact = 2 * inner(step, moved_step) + inner(moved_step, moved_step)
    return merge(growth, known, exact + _at_rest(step, at1, at2, take(rest_length, known)))


def _at_rest(step: Array, at1: Array, at2: Array, length: Array) -> Array:
    """Compute |step|^2 - length^2, set to zero if it is within the rounding of the rest positions.

    Its derivatives are kept.
    """
    xp = xp_of(step, length)
    square = inner(step, step)
    strain = square - length * length
    size = (abs(at1) + abs(at2)).sum(-1) + length
    noise = ROUNDINGS * float(np.finfo(strain.dtype).eps) * length * size
    fixed = lax.stop_gradient(strain) if xp is not np else strain
    return strain - xp.where(abs(fixed) <= noise, fixed, 0)
