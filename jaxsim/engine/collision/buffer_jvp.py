"""JVP of the contact buffer with respect to geom poses: colliders are evaluated again for the contacts found.

The narrow phase evaluates every candidate pair, few of which are contacts. Where a collider has more candidates than
the contact buffer has entries, differentiating all of them is wasted work. The values then come from the narrow phase,
as constants. The derivatives come from a second evaluation of the collider, for the pairs in the buffer only.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.engine.collision.shapes import Geoms, PairContacts, posed_geoms
from jaxsim.math.arrays import gather, take
from jaxsim.math.jvp import jvp_at, sum_of_tangents
from jaxsim.math.safe import Array
from jaxsim.native.rows import over_rows, rows_in_use


class ReevaluatedCollider(NamedTuple):
    """A collider without setup whose contacts fill `count` slots from `first` on, `slots_per_pair` for each pair.

    `spare_pair` is one pair of geoms of its types. It stands in for contacts of other colliders.
    """

    function: Callable[..., PairContacts]
    first: int
    count: int
    slots_per_pair: int
    spare_pair: tuple[int, int]


class ContactOrigin(NamedTuple):
    """Origin of each contact: whether it is real (n,), its slot (n,), its geoms (n, 2) and its margin (n,)."""

    real: Array
    slot: Array
    geom: Array
    margin: Array


class GeomPoses(NamedTuple):
    """Positions, flat rotation matrices and sizes of all geoms: the operands of contacts."""

    pos: Array
    mat: Array
    size: Array


Reevaluation = tuple[tuple[ReevaluatedCollider, ...], Callable[[PairContacts], Array]]


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def with_reevaluated_jvp(
    reevaluation: Reevaluation, rows: Array, others: Array, origin: ContactOrigin, poses: GeomPoses
) -> Array:
    """Return `rows` (n, k) of the contact buffer, differentiable with respect to `others` and `poses`.

    `reevaluation` holds the colliders to evaluate again and the function that makes rows of their contacts. `rows` must
    be constants. `others` holds the rows of contacts from other colliders and zeros elsewhere, or is a single zero if
    there are none.
    """
    return rows


def _with_reevaluated_jvp_rule(reevaluation: Reevaluation, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    rows, _, origin, poses = primals
    reevaluated = jvp_at(partial(_reevaluated_rows, reevaluation, origin), poses)
    return with_reevaluated_jvp(reevaluation, *primals), sum_of_tangents(
        rows, (lambda t: t, tangents[1]), (reevaluated, tangents[3])
    )


with_reevaluated_jvp.defjvp(_with_reevaluated_jvp_rule, symbolic_zeros=True)


def _reevaluated_rows(reevaluation: Reevaluation, origin: ContactOrigin, poses: GeomPoses) -> Array:
    """Return rows (n, k) of the contacts of all colliders evaluated again; zero for contacts of other colliders."""
    colliders, rows_of = reevaluation

    def of_contacts(shared: tuple[GeomPoses, GeomPoses], origin: ContactOrigin) -> tuple[Array, tuple[()]]:
        poses, constant = shared
        sides = [_geoms_at(gather, poses, geom) for geom in origin.geom.T]
        return sum(_rows_of_collider(c, rows_of, origin, sides, constant) for c in colliders), ()

    return over_rows(of_contacts, rows_in_use(origin.real), (poses, jax.lax.stop_gradient(poses)), origin)[0]


def _geoms_at(fetch: Callable[[Array, Array], Array], poses: GeomPoses, geom: Array) -> Geoms:
    return posed_geoms(fetch, poses.pos, poses.mat, fetch(poses.size, geom), geom)


def _rows_of_collider(
    collider: ReevaluatedCollider,
    rows_of: Callable[[PairContacts], Array],
    origin: ContactOrigin,
    sides: list[Geoms],
    constant_poses: GeomPoses,
) -> Array:
    """Evaluate one collider again; return rows (n, k) of its contacts, zero for others, which use the spare pair."""
    mine = (origin.slot >= collider.first) & (origin.slot < collider.first + collider.count)
    spare = [_geoms_at(take, constant_poses, np.array([geom])) for geom in collider.spare_pair]
    a, b = (jax.tree.map(partial(_select, mine), *pair) for pair in zip(sides, spare, strict=True))
    rows = rows_of(collider.function(a, b, origin.margin)).reshape(len(mine), collider.slots_per_pair, -1)
    chosen = (
        mine[:, None]
        & ((origin.slot - collider.first) % collider.slots_per_pair == np.arange(collider.slots_per_pair)[:, None]).T
    )
    return jnp.sum(jnp.where(chosen[..., None], rows, 0), axis=1)


def _select(mask: Array, x: Array, y: Array) -> Array:
    return jnp.where(mask.reshape(-1, *[1] * (x.ndim - 1)), x, y)


def is_reevaluated(collider: Any, capacity: int, max_contacts: int) -> bool:
    """Return whether the JVP evaluates a collider with `capacity` pairs again for `max_contacts` pairs."""
    return collider.setup is None and capacity > max_contacts
