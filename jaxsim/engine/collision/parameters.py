"""Contact parameters: margins of all candidates; friction, solref and others only of contacts in the buffer."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MINMU, MINVAL, EnableBit
from jaxsim.engine.collision.broad.pairs import Candidates
from jaxsim.math import safe
from jaxsim.math.arrays import gather, take
from jaxsim.math.safe import Array

# index of a geom's friction coefficient for each of the five of a contact
FRICTION_INDEX = np.array([0, 0, 1, 2, 2], np.int32)
MIXED = ("solmix", "solref", "friction", "solimp", "gap")  # fields of geoms and flexes that are mixed
WIDTHS = (1, 2, 3, 5, 1)  # numbers of each


def margins(m: Any, pairs: Candidates) -> Array:
    """Return the margin of each candidate (n,): the sum of the geoms' margins, the explicit pair's, or the override."""
    n = len(pairs.pair)
    if m.opt.enableflags & EnableBit.OVERRIDE:
        return jnp.broadcast_to(m.opt.o_margin, (n,))
    margin = take(m.geom_margin, pairs.geom).sum(1)
    if not m.npair:
        return margin
    explicit = take(m.pair_margin, np.maximum(pairs.pair, 0))
    return jnp.where(pairs.pair >= 0, explicit, margin)


def margin_of(m: Any, geom: Array, pair: Array) -> Array:
    """Return margins (k,) of pairs known at run time only: geoms (k, 2), explicit pair (k,) or -1."""
    if m.opt.enableflags & EnableBit.OVERRIDE:
        return jnp.broadcast_to(m.opt.o_margin, pair.shape)
    margin = gather(m.geom_margin, geom).sum(1)
    return jnp.where(pair >= 0, gather(m.pair_margin, jnp.maximum(pair, 0)), margin) if m.npair else margin


def max_margin(m: Any) -> Array:
    """Return an upper bound of the margins of pairs that are not explicit."""
    return m.opt.o_margin if m.opt.enableflags & EnableBit.OVERRIDE else 2 * jnp.max(m.geom_margin)


def pair_operands(m: Any, pairs: Any) -> tuple[Any, Array, Any]:
    """Return what `parameters_of_pairs` reads: the model, a table of geoms, and the pairs."""
    return m, _table([getattr(m, f"geom_{name}") for name in MIXED]), pairs


def parameters_of_pairs(operands: tuple[Any, Array, Any], index: Array) -> dict[str, Array]:
    """Return parameters of contacts of pairs with these indices (k,), given `pair_operands`.

    These are includemargin, friction, solref, solreffriction, solimp, the dimension `dim` and `geom` (k, 2).
    """
    m, table, pairs = operands
    geom, pair = gather(jnp.asarray(pairs.geom), index), gather(jnp.asarray(pairs.pair), index)
    (d1, d2), (p1, p2) = (gather(jnp.asarray(x), geom).T for x in (m.geom_condim, m.geom_priority))
    dim = jnp.where(p1 > p2, d1, jnp.where(p1 < p2, d2, jnp.maximum(d1, d2)))
    if m.npair:
        dim = jnp.where(pair >= 0, gather(jnp.asarray(m.pair_dim), jnp.maximum(pair, 0)), dim)
    margin = margin_of(m, geom, pair)
    out, gap = _mix_sides(table, geom, jnp.sign(p1 - p2)[:, None])
    if m.npair:
        explicit, pair = pair >= 0, jnp.maximum(pair, 0)
        out = {k: jnp.where(explicit[:, None], gather(getattr(m, f"pair_{k}"), pair), v) for k, v in out.items()}
        gap = jnp.where(explicit, gather(m.pair_gap, pair), gap)
    return _overridden(m, out) | {"includemargin": margin - gap, "dim": dim, "geom": geom}


def _table(columns: list[Array]) -> Array:
    """Return the columns (n, ...) side by side (n, k)."""
    return jnp.concatenate([jnp.reshape(x, (len(x), -1)) for x in columns], axis=1)


def mix_with_flexes(m: Any, side: Array, within: Array) -> dict[str, Array]:
    """Mix parameters and dimension of contacts of sides (k, 2): geoms, or flexes numbered after them.

    Where `within`, a flex collides with itself, and margin and gap are ignored.
    """

    def joined(name: str) -> Array:
        return jnp.concatenate([jnp.asarray(getattr(m, f"geom_{name}")), jnp.asarray(getattr(m, f"flex_{name}"))])

    (d1, d2), (p1, p2) = (gather(joined(name), side).T for name in ("condim", "priority"))
    dim = jnp.where(p1 > p2, d1, jnp.where(p1 < p2, d2, jnp.maximum(d1, d2)))
    out, gap = _mix_sides(_table([joined(name) for name in MIXED]), side, jnp.sign(p1 - p2)[:, None])
    margin = gather(joined("margin"), side).sum(1)
    if m.opt.enableflags & EnableBit.OVERRIDE:
        margin = jnp.broadcast_to(m.opt.o_margin, margin.shape)
    return _overridden(m, out) | {"includemargin": jnp.where(within, 0, margin - gap), "dim": dim}


def _mix_sides(table: Array, side: Array, priority: Array) -> tuple[dict[str, Array], Array]:
    """Mix parameters of contacts of two sides (k, 2), and sum their gaps (k,); `table` holds those of `MIXED`."""
    both = jnp.split(gather(table, side), np.cumsum(WIDTHS)[:-1], axis=2)
    mix1, ref1, friction1, imp1, gap1 = [x[:, 0] for x in both]
    mix2, ref2, friction2, imp2, gap2 = [x[:, 1] for x in both]
    mix = _mix_weight(mix1, mix2)
    mix = jnp.where(priority == 0, mix, jnp.where(priority > 0, 1, 0).astype(mix.dtype))

    standard = (ref1[:, :1] > 0) & (ref2[:, :1] > 0)
    blend = standard | (priority != 0)
    friction = jnp.maximum(friction1, friction2)
    friction = jnp.where(priority == 0, friction, jnp.where(priority > 0, friction1, friction2))
    out = {
        "friction": friction[:, FRICTION_INDEX],
        "solref": jnp.where(blend, _blend(mix, ref1, ref2), jnp.minimum(ref1, ref2)),
        "solreffriction": jnp.zeros_like(ref1),
        "solimp": _blend(mix, imp1, imp2),
    }
    return out, (gap1 + gap2)[:, 0]


def _overridden(m: Any, out: dict[str, Array]) -> dict[str, Array]:
    """Apply the override of the options and the lower bound of friction to contact parameters."""
    if m.opt.enableflags & EnableBit.OVERRIDE:
        override = {"friction": m.opt.o_friction, "solref": m.opt.o_solref, "solreffriction": m.opt.o_solref}
        override["solimp"] = m.opt.o_solimp
        out = {k: jnp.broadcast_to(override[k], v.shape) for k, v in out.items()}
    return out | {"friction": jnp.maximum(MINMU, out["friction"])}


def _mix_weight(mix1: Array, mix2: Array) -> Array:
    """Return the weight of the first geom's solver parameters in the mean."""
    some1, some2 = mix1 >= MINVAL, mix2 >= MINVAL
    both = safe.divide(mix1, mix1 + mix2)
    return jnp.where(some1 & some2, both, jnp.where(some1, 1.0, jnp.where(some2, 0.0, 0.5))).astype(mix1.dtype)


def _blend(mix: Array, x1: Array, x2: Array) -> Array:
    """Compute mix x1 + (1 - mix) x2, exactly x1 or x2 where the mix is 1 or 0."""
    return mix * x1 + (1 - mix) * x2
