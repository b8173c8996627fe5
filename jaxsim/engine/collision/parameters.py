"""Contact parameters: margins of all candidates; friction, solref and the rest only for contacts in the buffer."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MINMU, MINVAL, EnableBit
from jaxsim.engine.collision.broad.pairs import Candidates
from jaxsim.math import safe
from jaxsim.math.arrays import gather, gather_all, take
from jaxsim.math.safe import Array

TABLED = 4096
FRICTION = np.array([0, 0, 1, 2, 2], np.int32)  # the five friction coefficients of a contact from the three of a geom


def margins(m: Any, pairs: Candidates) -> Array:
    """Margin of each candidate (n,): the sum of the geoms' margins, the explicit pair's, or the override."""
    n = len(pairs.pair)
    if m.opt.enableflags & EnableBit.OVERRIDE:
        return jnp.broadcast_to(m.opt.o_margin, (n,))
    margin = take(m.geom_margin, pairs.geom).sum(1)
    if not m.npair:
        return margin
    explicit = take(m.pair_margin, np.maximum(pairs.pair, 0))
    return jnp.where(pairs.pair >= 0, explicit, margin)


def condims(m: Any, pairs: Candidates) -> np.ndarray:
    """Contact dimension of each candidate: the greater of the geoms', unless one has priority; or the pair's."""
    d1, d2 = m.geom_condim[pairs.geom].T
    p1, p2 = m.geom_priority[pairs.geom].T
    dim = np.where(p1 > p2, d1, np.where(p1 < p2, d2, np.maximum(d1, d2)))
    return np.where(pairs.pair >= 0, m.pair_dim[np.maximum(pairs.pair, 0)], dim) if m.npair else dim


def of_contacts(m: Any, pairs: Candidates, which: Array) -> dict[str, Array]:
    """Parameters, dimension and geoms of the contacts of candidates `which` (k,).

    Up to `TABLED` candidates the parameters of all are mixed first, which a batch of worlds shares with its model, and
    each contact fetches one row.
    """
    if not isinstance(pairs, Candidates):
        return _of_near(m, gather(pairs.geom, which), gather(pairs.pair, which))
    static = np.column_stack([condims(m, pairs), pairs.geom]).astype(np.int32)
    chosen = gather(jnp.asarray(static), which)
    found = {"dim": chosen[:, 0], "geom": chosen[:, 1:]}
    if len(static) > TABLED:
        return mixed(m, pairs, which) | found
    every = mixed(m, pairs, jnp.arange(len(static)))
    widths = np.cumsum([v[0].size for v in every.values()])[:-1]
    table = jnp.concatenate([v.reshape(len(static), -1) for v in every.values()], axis=1)
    parts = jnp.split(gather(table, which), widths, axis=1)
    return {k: x.reshape(-1, *v.shape[1:]) for (k, v), x in zip(every.items(), parts, strict=True)} | found


def mixed(m: Any, pairs: Candidates, which: Array) -> dict[str, Array]:
    """Fields of the contacts of candidates `which` (k,): includemargin, friction, solref, solreffriction, solimp."""
    geom = jnp.asarray(pairs.geom)[which]
    p1, p2 = m.geom_priority[pairs.geom].T
    lead = jnp.asarray(np.sign(p1 - p2))[which][:, None]
    pair = jnp.asarray(pairs.pair)[which] if m.npair else None
    return _mixed(m, geom, pair, lead, margins(m, pairs)[which])


def margin_of(m: Any, geom: Array, pair: Array) -> Array:
    """Margin of pairs known at run time only: geoms (k, 2), explicit pair (k,) or -1."""
    if m.opt.enableflags & EnableBit.OVERRIDE:
        return jnp.broadcast_to(m.opt.o_margin, pair.shape)
    margin = gather(m.geom_margin, geom).sum(1)
    return jnp.where(pair >= 0, gather(m.pair_margin, jnp.maximum(pair, 0)), margin) if m.npair else margin


def widest_margin(m: Any) -> Array:
    """No pair of geoms that are not paired explicitly has a greater margin."""
    return m.opt.o_margin if m.opt.enableflags & EnableBit.OVERRIDE else 2 * jnp.max(m.geom_margin)


def _of_near(m: Any, geom: Array, pair: Array) -> dict[str, Array]:
    """Parameters, dimension and geoms of contacts of pairs known at run time only."""
    (d1, d2), (p1, p2) = (gather(jnp.asarray(x), geom).T for x in (m.geom_condim, m.geom_priority))
    dim = jnp.where(p1 > p2, d1, jnp.where(p1 < p2, d2, jnp.maximum(d1, d2)))
    if m.npair:
        dim = jnp.where(pair >= 0, gather(jnp.asarray(m.pair_dim), jnp.maximum(pair, 0)), dim)
    lead = jnp.sign(p1 - p2)[:, None]
    return _mixed(m, geom, pair, lead, margin_of(m, geom, pair)) | {"dim": dim, "geom": geom}


def _mixed(m: Any, geom: Array, pair: Array | None, lead: Array, margin: Array) -> dict[str, Array]:
    """The fields of `mixed` for geoms (k, 2), explicit pairs (k,), which geom leads (k, 1), and margins (k,)."""
    fields = (m.geom_solmix, m.geom_solref, m.geom_friction, m.geom_solimp, m.geom_gap)
    both = gather_all(geom, *fields)
    mix1, ref1, friction1, imp1, gap1 = [x[:, 0] for x in both]
    mix2, ref2, friction2, imp2, gap2 = [x[:, 1] for x in both]
    mix = _mix(mix1, mix2)[:, None]
    mix = jnp.where(lead == 0, mix, jnp.where(lead > 0, 1, 0).astype(mix.dtype))

    standard = (ref1[:, :1] > 0) & (ref2[:, :1] > 0)
    blend = standard | (lead != 0)
    friction = jnp.maximum(friction1, friction2)
    friction = jnp.where(lead == 0, friction, jnp.where(lead > 0, friction1, friction2))
    out = {
        "friction": friction[:, FRICTION],
        "solref": jnp.where(blend, _blend(mix, ref1, ref2), jnp.minimum(ref1, ref2)),
        "solreffriction": jnp.zeros_like(ref1),
        "solimp": _blend(mix, imp1, imp2),
    }
    gap = gap1 + gap2
    if m.npair:
        explicit, pair = pair >= 0, jnp.maximum(pair, 0)
        out = {k: jnp.where(explicit[:, None], getattr(m, f"pair_{k}")[pair], v) for k, v in out.items()}
        gap = jnp.where(explicit, m.pair_gap[pair], gap)
    if m.opt.enableflags & EnableBit.OVERRIDE:
        override = {"friction": m.opt.o_friction, "solref": m.opt.o_solref, "solreffriction": m.opt.o_solref}
        override["solimp"] = m.opt.o_solimp
        out = {k: jnp.broadcast_to(override[k], v.shape) for k, v in out.items()}
    out["friction"] = jnp.maximum(MINMU, out["friction"])
    out["includemargin"] = margin - gap
    return out


def _mix(mix1: Array, mix2: Array) -> Array:
    """Weight of the first geom's solver parameters."""
    some1, some2 = mix1 >= MINVAL, mix2 >= MINVAL
    both = safe.divide(mix1, mix1 + mix2)
    return jnp.where(some1 & some2, both, jnp.where(some1, 1.0, jnp.where(some2, 0.0, 0.5))).astype(mix1.dtype)


def _blend(mix: Array, x1: Array, x2: Array) -> Array:
    """mix x1 + (1 - mix) x2, exactly one of them where the mix is 0 or 1."""
    return mix * x1 + (1 - mix) * x2
