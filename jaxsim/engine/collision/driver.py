"""Contacts of a state: candidate pairs, bound test, narrow phase by groups of pairs, and the contact buffer.

A slot is one possible contact of a pair: a collider fills a fixed number of slots for each of its pairs. The contact
buffer holds those that are valid, `max_contacts` at most, in MuJoCo's order.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.data import EMPTY_CONTACT
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.model import Model
from jaxsim.core.types import DisableBit, GeomType, WarningType
from jaxsim.engine.collision import parameters
from jaxsim.engine.collision.broad import broadphase
from jaxsim.engine.collision.broad.bounds import boxes_touch, spheres_touch
from jaxsim.engine.collision.broad.pairs import Candidates, candidates
from jaxsim.engine.collision.buffer_jvp import (
    ContactOrigin,
    GeomPoses,
    ReevaluatedCollider,
    is_reevaluated,
    with_reevaluated_jvp,
)
from jaxsim.engine.collision.compaction import compact
from jaxsim.engine.collision.flex.contacts import flex_contacts, merge
from jaxsim.engine.collision.flex.segments import collides
from jaxsim.engine.collision.in_turn import in_turn
from jaxsim.engine.collision.shapes import PairContacts, make_frame, posed_geoms
from jaxsim.engine.collision.table import COLLIDERS, Collider
from jaxsim.engine.sleep import sleeps, wake_and_filter
from jaxsim.interface.public import public
from jaxsim.math.arrays import gather, inner, take
from jaxsim.math.safe import Array
from jaxsim.xla.fusion import fusion_barrier
from jaxsim.xla.loops import traced_once

COMPACT_MIN_PAIRS = 16  # a group with no more pairs gets the narrow phase for all of them
COMPACT_MIN_COST = 30_000  # so does one whose narrow phase costs no more, in units of `Collider.cost`
NARROW_PHASE_CHUNK = 128  # pairs of a large model in one step of the scan over the narrow phase
BOX_TEST_MIN_COST = 1000  # pairs of colliders that cost as much are tested by their boxes, after their spheres


class PairGroup(NamedTuple):
    """Candidates of one collider: their indices (n,) in the candidate list, and how many can get the narrow phase."""

    collider: Collider
    candidate: np.ndarray
    capacity: int


class GroupContacts(NamedTuple):
    """Contacts of a group: those of the pairs tested, the candidate of each pair, the number beyond a capacity.

    With `reevaluated`, their derivatives are those of `with_reevaluated_jvp`.
    """

    contacts: PairContacts
    candidate: Any
    dropped: Any
    reevaluated: PairGroup | None = None


@public
def collision(m: Model, d: Any) -> Any:
    """Data with the contacts of the geom poses and vertices of flexes in `d`. Source: mj_collision.

    Sets `contact`, `ncon`, `maxuse_con`; counts dropped contacts in `overflow_contacts` and as a warning. Contacts are
    in MuJoCo's order; unused entries hold zeros and geom -1. Raises UnsupportedError for a pair of geom types that has
    no collider.
    """
    if m.opt.disableflags & (DisableBit.CONSTRAINT | DisableBit.CONTACT):
        return _empty_buffer(d)
    large = broadphase.is_large(m)
    flexes = flex_contacts(m, d) if collides(m) else None
    if not large and not len(candidates(m).pair):
        if flexes is None:
            return _empty_buffer(d)
        d, ncon, dropped = _empty_buffer(d), jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)
    else:
        d, ncon, dropped = (_contacts_of_large_model if large else _contacts_of_geoms)(m, d)
    if flexes is not None:
        contact, count, lost = merge(m, d.contact, jnp.minimum(ncon, m.max_contacts), flexes)
        d, dropped = d.replace(contact=contact), dropped + lost + flexes.dropped
        ncon = count
    return _update_counts(m, d, ncon, dropped)


def _contacts_of_geoms(m: Model, d: Any) -> tuple[Any, Array, Array]:
    """Data with the contacts of geoms, how many were found, and how many dropped."""
    pairs = candidates(m)
    mat = d.geom_xmat.reshape(-1, 3, 3)
    pair_groups = groups(m)
    sizes = _take_each(m.geom_size, [pairs.geom[g.candidate].T for g in pair_groups])
    margins = _take_each(parameters.margins(m, pairs), [g.candidate for g in pair_groups])
    found = [
        _narrow_phase(m, d.geom_xpos, mat, pairs, *group) for group in zip(pair_groups, sizes, margins, strict=True)
    ]
    if m.callbacks.contact_filter is not None:
        found = [_apply_contact_filter(m, d, pairs, part) for part in found]
    if sleeps(m):
        d, found = wake_and_filter(m, d, pairs, found)
    slot, ncon, dropped = _slots_of_buffer(m, found, len(pairs.pair))
    contact = _fill_buffer(m, d, pairs, found, slot)
    return d.replace(contact=contact), ncon, dropped


def _contacts_of_large_model(m: Model, d: Any) -> tuple[Any, Array, Array]:
    """`_contacts_of_geoms` for too many candidates to list: near pairs are found first, then grouped by collider."""
    near = broadphase.near_pairs(m, d, broadphase.near_capacity(m))
    collider_of_types, colliders = _colliders_by_types(m)
    types = gather(jnp.asarray(m.geom_type), near.geom)
    collider = gather(jnp.asarray(collider_of_types.reshape(-1)), types[:, 0] * len(collider_of_types) + types[:, 1])
    found = [
        _narrow_phase_in_chunks(m, d, near, near.real & (collider == k), *colliders[k]) for k in range(len(colliders))
    ]
    if m.callbacks.contact_filter is not None:
        found = [_apply_contact_filter(m, d, near, part) for part in found]
    if sleeps(m):
        d, found = wake_and_filter(m, d, near, found)
    slot, ncon, dropped = _slots_of_buffer(m, found, len(near.pair))
    contact = _fill_buffer(m, d, near, found, slot)
    return d.replace(contact=contact), ncon, dropped + near.dropped


def _colliders_by_types(m: Model) -> tuple[np.ndarray, list[tuple[Collider, np.ndarray, np.ndarray]]]:
    """The index of the collider of each two geom types, and the colliders with the geoms that they may meet.

    Each collider comes with two arrays of geoms, first and second, which contain all geoms of its types.
    """
    ntypes = GeomType.SDF + 1
    index_of_types, members_of = np.full((ntypes, ntypes), -1, np.int32), {}
    for t1, t2 in broadphase.colliding_types(m.structure):
        collider = _collider(t1, t2)
        geoms = [np.flatnonzero(m.geom_type == t) for t in (t1, t2)]
        members_of.setdefault(collider.function, []).append(
            (collider, t1, t2, *(np.resize(g, max(map(len, geoms))) for g in geoms))
        )
    colliders = []
    for k, members in enumerate(members_of.values()):
        for _, t1, t2, *_ in members:
            index_of_types[t1, t2] = k
        g1, g2 = (np.concatenate([member[side] for member in members]) for side in (3, 4))
        colliders.append((max((c for c, *_ in members), key=lambda c: c.ncon), g1, g2))
    return index_of_types, colliders


def _collider(t1: int, t2: int) -> Collider:
    """The collider of two geom types; raises UnsupportedError if there is none."""
    if (t1, t2) not in COLLIDERS:
        raise UnsupportedError(f"collisions between {GeomType(t1).name.lower()} and {GeomType(t2).name.lower()}")
    return COLLIDERS[t1, t2]


def _narrow_phase_in_chunks(
    m: Model, d: Any, near: Any, mask: Array, collider: Collider, *geoms: np.ndarray
) -> GroupContacts:
    """Contacts of the near pairs in `mask` by a scan over chunks of pairs; a chunk without a pair costs nothing."""
    npair = len(near.pair)
    candidate, real, _ = compact(mask, -(-npair // NARROW_PHASE_CHUNK) * NARROW_PHASE_CHUNK)
    collide = _function(collider, m, *geoms)

    def run(chunk: Array, real: Array) -> PairContacts:
        geom, pair = gather(near.geom, chunk), gather(near.pair, chunk)
        a, b = (posed_geoms(gather, d.geom_xpos, d.geom_xmat, gather(m.geom_size, g), g) for g in geom.T)
        count = {"count": jnp.sum(real, dtype=jnp.int32)} if _is_counted(collider) else {}
        contacts = collide(a, b, parameters.margin_of(m, geom, pair), **count)
        return contacts._replace(dropped=jnp.asarray(contacts.dropped, jnp.int32))

    run, none = traced_once(run, candidate[:NARROW_PHASE_CHUNK], real[:NARROW_PHASE_CHUNK])

    def visit(_: None, chunk: tuple[Array, Array]) -> tuple[None, PairContacts]:
        contacts = lax.cond(chunk[1].any(), run, lambda *_: none, *chunk)
        return None, contacts._replace(valid=contacts.valid & chunk[1][:, None])

    _, contacts = lax.scan(
        visit, None, (candidate.reshape(-1, NARROW_PHASE_CHUNK), real.reshape(-1, NARROW_PHASE_CHUNK))
    )
    dropped = jnp.sum(contacts.dropped)
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), contacts._replace(dropped=None))
    return GroupContacts(flat._replace(dropped=dropped), candidate, dropped)


def groups(m: Any) -> list[PairGroup]:
    """The candidate pairs grouped by collider, as static structure."""
    return _groups(m.structure, m.opt.disableflags, candidates(m))


def _groups(structure: Any, flags: int, pairs: Candidates) -> list[PairGroup]:
    types, type_pair = np.unique(structure.geom_type[pairs.geom], axis=0, return_inverse=True)
    colliders = [_collider(t1, t2) for t1, t2 in types.tolist()]
    out = []
    for function in dict.fromkeys(c.function for c in colliders):
        rows = [i for i, c in enumerate(colliders) if c.function is function]
        candidate = np.flatnonzero(np.isin(type_pair.reshape(-1), rows))
        collider = max((colliders[i] for i in rows), key=lambda c: c.ncon)
        whole = len(candidate) <= COMPACT_MIN_PAIRS or len(candidate) * collider.cost <= COMPACT_MIN_COST
        limit = structure.max_contacts if collider.cost >= BOX_TEST_MIN_COST else 2 * structure.max_contacts
        capacity = len(candidate) if whole else min(len(candidate), max(COMPACT_MIN_PAIRS, limit))
        out.append(PairGroup(collider, candidate, capacity))
    return out


def _take_each(x: Array, indices: list[np.ndarray]) -> list[Array]:
    """`x[index]` for each index by one gather; for fields of the model, which all worlds of a batch share."""
    found = take(x, np.concatenate([i.reshape(-1) for i in indices]))
    cuts = np.cumsum([i.size for i in indices])[:-1]
    return [y.reshape(*i.shape, *x.shape[1:]) for i, y in zip(indices, jnp.split(found, cuts), strict=True)]


def _narrow_phase(
    m: Model, pos: Array, mat: Array, pairs: Candidates, group: PairGroup, size: Array, margin: Array
) -> GroupContacts:
    """Contacts of a group; `size` (2, n, 3) and `margin` (n,) are those of its pairs."""
    geom = pairs.geom[group.candidate]
    reevaluated = group if is_reevaluated(group.collider, group.capacity, m.max_contacts) else None
    collide = _function(group.collider, m, geom[:, 0], geom[:, 1])
    if group.capacity == len(geom) and not _is_counted(group.collider):
        g1, g2 = geom.T
        a, b = (posed_geoms(take, pos, mat, s, g) for s, g in zip(size, (g1, g2), strict=True))
        contacts = collide(a, b, margin)
        return GroupContacts(contacts, group.candidate, contacts.dropped, reevaluated)
    touching = _bounds_touch(m, pos, mat, margin, pairs, group)
    index, real, dropped = compact(touching, group.capacity)
    candidate = jnp.asarray(group.candidate)[index]
    g1, g2 = jnp.asarray(geom)[index].T
    a, b = (posed_geoms(gather, pos, mat, gather(s, index), g) for s, g in zip(size, (g1, g2), strict=True))
    if _is_counted(group.collider):
        collide = partial(collide, count=jnp.sum(real, dtype=jnp.int32))
    contacts = collide(a, b, gather(margin, index))
    dropped += contacts.dropped
    return GroupContacts(contacts._replace(valid=contacts.valid & real[:, None]), candidate, dropped, reevaluated)


def _function(collider: Collider, m: Model, g1: np.ndarray, g2: np.ndarray) -> Callable[..., PairContacts]:
    """The function of a collider for pairs among geoms g1, g2, without its context."""
    if collider.setup:
        return partial(collider.function, collider.setup(m, g1, g2))
    return partial(in_turn, collider.function) if collider.dear else collider.function


def _is_counted(collider: Collider) -> bool:
    """Whether a collider takes the number of pairs that are real."""
    return collider.searches or collider.dear


def _apply_contact_filter(m: Model, d: Any, pairs: Candidates, found: GroupContacts) -> GroupContacts:
    """The contacts without those that the user's contact filter drops. Explicit pairs are not filtered."""
    geom, explicit = jnp.asarray(pairs.geom)[found.candidate], jnp.asarray(pairs.pair)[found.candidate] >= 0
    dropped = m.callbacks.contact_filter(m, d, geom[:, 0], geom[:, 1]) & ~explicit
    return found._replace(contacts=found.contacts._replace(valid=found.contacts.valid & ~dropped[:, None]))


def _bounds_touch(m: Model, pos: Array, mat: Array, margin: Array, pairs: Candidates, group: PairGroup) -> Array:
    """Whether the bounds of pairs (n,) touch: spheres, or plane and sphere; boxes too before an expensive collider."""
    g1, g2 = pairs.geom[group.candidate].T
    gap = take(pos, g2) - take(pos, g1)
    if m.geom_type[g1[0]] == GeomType.PLANE:
        return inner(gap, take(mat[:, :, 2], g1)) <= margin + take(m.geom_rbound, g2)
    reach = take(m.geom_rbound, g1) + take(m.geom_rbound, g2) + margin
    near = spheres_touch(gap, reach)
    return near & boxes_touch(m, pos, mat, margin, g1, g2) if group.collider.cost >= BOX_TEST_MIN_COST else near


def _slots_of_buffer(m: Model, found: list[GroupContacts], n: int) -> tuple[Array, Array, Array]:
    """The slot of each entry of the contact buffer (-1: empty), the number of contacts found, and of those dropped.

    Slots are numbered group by group; contacts are in the order of the candidates.
    """
    valid = jnp.concatenate([part.contacts.valid.reshape(-1) for part in found])
    ncon = jnp.sum(valid, dtype=jnp.int32)
    dropped = sum(part.dropped for part in found) + jnp.maximum(ncon - m.max_contacts, 0)
    if all(isinstance(part.candidate, np.ndarray) for part in found):
        owner = np.concatenate([np.repeat(part.candidate, part.contacts.dist.shape[1]) for part in found])
        order = np.argsort(owner, kind="stable")
        index, real, _ = compact(take(valid, order), m.max_contacts)
        slot = jnp.where(real, gather(jnp.asarray(order, jnp.int32), index), -1)
        return fusion_barrier(slot), ncon, dropped
    position = jnp.where(valid, _buffer_indices(found, n), m.max_contacts)
    slot = jnp.full(m.max_contacts, -1, jnp.int32)
    return slot.at[position].set(jnp.arange(len(valid), dtype=jnp.int32), mode="drop"), ncon, dropped


def _buffer_indices(found: list[GroupContacts], n: int) -> Array:
    """Index of each contact in the buffer: contacts of earlier candidates, and those before it in its own pair."""
    count = jnp.zeros(n, jnp.int32)
    for part in found:
        count = count.at[part.candidate].add(jnp.sum(part.contacts.valid, axis=1, dtype=jnp.int32))
    start = jnp.cumsum(count) - count
    position = [
        start[part.candidate][:, None] + jnp.cumsum(part.contacts.valid, axis=1, dtype=jnp.int32) - 1 for part in found
    ]
    return jnp.concatenate([p.reshape(-1) for p in position])


def _fill_buffer(m: Model, d: Any, pairs: Candidates, found: list[GroupContacts], slot_or_none: Array) -> Any:
    """The contact buffer, from the slot of each entry (-1: empty)."""
    rows_of = partial(_slots_as_rows, any(part.contacts.tangent is not None for part in found))
    rows = jnp.concatenate([rows_of(part.contacts) for part in found])
    owner = jnp.concatenate([jnp.repeat(jnp.asarray(part.candidate), part.contacts.dist.shape[1]) for part in found])
    real = slot_or_none >= 0
    slot = jnp.maximum(slot_or_none, 0)
    row, candidate = gather(rows, slot), gather(owner, slot)
    fields = parameters.contact_parameters(m, pairs, candidate)
    if any(part.reevaluated for part in found):
        margin = lax.stop_gradient(gather(parameters.margins(m, pairs), candidate))
        others, origin = _rows_of_other_colliders(found, rows_of, slot), ContactOrigin(slot, fields["geom"], margin)
        poses = GeomPoses(d.geom_xpos, d.geom_xmat, m.geom_size)
        row = with_reevaluated_jvp(
            (_reevaluated_colliders(pairs, found), rows_of), lax.stop_gradient(row), others, origin, poses
        )
    dist, pos, normal, *tangent = jnp.split(row, (1, 4, 7)[: row.shape[1] // 3], axis=1)
    dist = dist[:, 0]
    values = {
        "dist": dist,
        "pos": pos,
        "frame": make_frame(normal, *(tangent or (None,))),
        **fields,
        "mu": jnp.zeros_like(dist),
    }
    values["exclude"] = (dist >= values["includemargin"]).astype(jnp.int32)
    out = {}
    for name, value in values.items():
        mask = real.reshape(real.shape + (1,) * (value.ndim - 1))
        out[name] = jnp.where(mask, value, -1 if name == "geom" else 0)
    none = {name: jnp.full_like(getattr(d.contact, name), -1) for name in EMPTY_CONTACT if name not in out}
    return d.contact.replace(**out, **none)


def _reevaluated_colliders(pairs: Candidates, found: list[GroupContacts]) -> tuple[ReevaluatedCollider, ...]:
    """The colliders whose JVP evaluates them again, and the range of their slots."""
    ends = np.cumsum([part.contacts.dist.size for part in found])
    return tuple(
        ReevaluatedCollider(
            part.reevaluated.collider.function,
            int(end) - part.contacts.dist.size,
            part.contacts.dist.size,
            part.contacts.dist.shape[1],
            pair,
        )
        for part, end in zip(found, ends, strict=True)
        if part.reevaluated
        for pair in [tuple(pairs.geom[part.reevaluated.candidate[0]].tolist())]
    )


def _rows_of_other_colliders(
    found: list[GroupContacts], rows_of: Callable[[PairContacts], Array], slot: Array
) -> Array:
    """Rows of these slots where their collider is not evaluated again, zero elsewhere."""
    other = np.concatenate([np.full(part.contacts.dist.size, part.reevaluated is None) for part in found])
    if not other.any():
        return jnp.zeros((), found[0].contacts.dist.dtype)
    row = gather(jnp.asarray(np.where(other, np.cumsum(other) - 1, -1)), slot)
    rows = jnp.concatenate([rows_of(part.contacts) for part in found if not part.reevaluated])
    return jnp.where(row[:, None] >= 0, gather(rows, jnp.maximum(row, 0)), 0)


def _slots_as_rows(tangent: bool, contacts: PairContacts) -> Array:
    """Slots as rows of numbers: dist, pos, normal and, if `tangent`, the tangent."""
    n = contacts.dist.size
    parts = [contacts.dist.reshape(n, 1), contacts.pos.reshape(n, 3), contacts.normal.reshape(n, 3)]
    if tangent:
        parts.append(
            jnp.zeros((n, 3), contacts.dist.dtype) if contacts.tangent is None else contacts.tangent.reshape(n, 3)
        )
    return jnp.concatenate(parts, axis=1)


def _empty_buffer(d: Any) -> Any:
    """Data without contacts, of a model without candidates or with contacts disabled."""
    contact = {name: jnp.zeros_like(getattr(d.contact, name)) for name in d.contact.__slots__ if name != "__weakref__"}
    for name in EMPTY_CONTACT:
        contact[name] -= 1
    return d.replace(contact=d.contact.replace(**contact), ncon=jnp.zeros_like(d.ncon))


def _update_counts(m: Model, d: Any, ncon: Array, dropped: Array) -> Any:
    """Data with the number of contacts kept, the most found in any step, and the number dropped."""
    warning_type = WarningType.CONTACTFULL
    full = dropped > 0
    warning = d.warning.replace(
        number=d.warning.number.at[warning_type].add(full.astype(d.warning.number.dtype)),
        lastinfo=d.warning.lastinfo.at[warning_type].set(
            jnp.where(full, m.max_contacts, d.warning.lastinfo[warning_type])
        ),
    )
    return d.replace(
        ncon=jnp.minimum(ncon, m.max_contacts),
        maxuse_con=jnp.maximum(d.maxuse_con, jnp.minimum(ncon, m.max_contacts) + dropped),
        overflow_contacts=d.overflow_contacts + dropped,
        warning=warning,
    )
