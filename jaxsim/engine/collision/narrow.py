"""Reference implementation of the narrow phase: contacts of candidate pairs by group, then in the buffer's order.

A slot is one possible contact of a pair: a collider fills a fixed number of slots for each of its pairs.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import GeomType
from jaxsim.engine.collision.broad.bounds import boxes_touch, spheres_touch
from jaxsim.engine.collision.buffer_jvp import (
    ContactOrigin,
    GeomPoses,
    ReevaluatedCollider,
    is_reevaluated,
    with_reevaluated_jvp,
)
from jaxsim.engine.collision.sequential import sequential
from jaxsim.engine.collision.shapes import PairContacts, posed_geoms
from jaxsim.engine.collision.table import Collider
from jaxsim.math.arrays import gather, inner, take
from jaxsim.math.safe import Array
from jaxsim.xla.compaction import compact
from jaxsim.xla.loops import traced_once

CHUNK = 128  # pairs of a large model per step of the scan
BOX_TEST_MIN_COST = 1000  # colliders of at least this cost test boxes after spheres


class PairGroup(NamedTuple):
    """Pairs of one collider: geoms (n, 2), candidates (n,) and the capacity for tested pairs.

    For pairs known only at run time, candidates and capacity are None, and `geom` contains all geoms of the types.
    """

    collider: Collider
    geom: np.ndarray
    candidate: np.ndarray | None = None
    capacity: int | None = None


class NarrowInputs(NamedTuple):
    """Input of the narrow phase: poses and bounds of geoms, margins (n,) of pairs, contexts of the groups."""

    pos: Array
    mat: Array
    geom_size: Array
    geom_rbound: Array
    geom_aabb: Array
    margin: Array
    contexts: tuple[Any, ...]


class GroupContacts(NamedTuple):
    """Contacts of a group: of the pairs tested, with the candidate of each pair and the number beyond a capacity.

    With `reevaluated`, their derivatives are those of `with_reevaluated_jvp`.
    """

    contacts: PairContacts
    candidate: Any
    dropped: Any
    reevaluated: PairGroup | None = None


class BufferEntries(NamedTuple):
    """Entries of the contact buffer: rows (k, 7 or 10) of `row_width`, candidates (k,) or -1 if empty.

    `found` counts all contacts, `dropped` those beyond a capacity.
    """

    row: Array
    candidate: Array
    found: Array
    dropped: Array


def context(m: Any, group: PairGroup) -> Any:
    """Return the context of a group's collider for this model, or None."""
    return group.collider.setup(m, *group.geom.T) if group.collider.setup else None


def has_box_test(collider: Collider) -> bool:
    """Return whether boxes of pairs are tested before the collider."""
    return collider.cost >= BOX_TEST_MIN_COST


def is_plane(m: Any, group: PairGroup) -> bool:
    """Return whether the first geoms of a group are planes."""
    return bool(m.geom_type[group.geom[0, 0]] == GeomType.PLANE)


def row_width(groups: list[PairGroup]) -> int:
    """Return the width of a contact's row: dist, pos and normal, and the tangent where a collider gives one."""
    return 10 if any(g.collider.tangent for g in groups) else 7


def is_counted(collider: Collider) -> bool:
    """Return whether a collider takes the number of real pairs."""
    return collider.searches or collider.expensive


def contacts_of_group(m: Any, x: NarrowInputs, group: PairGroup, context: Any) -> GroupContacts:
    """Compute the contacts of a group of listed pairs."""
    assert group.candidate is not None and group.capacity is not None  # the pairs are listed
    geom, margin = group.geom, take(x.margin, group.candidate)
    reevaluated = group if is_reevaluated(group.collider, group.capacity, m.max_contacts) else None
    collide = _function(group.collider, context)
    size = [take(x.geom_size, g) for g in geom.T]
    if group.capacity == len(geom):
        a, b = (posed_geoms(take, x.pos, x.mat, s, g) for s, g in zip(size, geom.T, strict=True))
        if not is_counted(group.collider):
            contacts = collide(a, b, margin)
        else:
            near = _bounds_touch(x, is_plane(m, group), margin, group)
            contacts = collide(a, b, margin, near)
            contacts = contacts._replace(valid=contacts.valid & near[:, None])
        return GroupContacts(contacts, group.candidate, contacts.dropped, reevaluated)
    index, real, dropped = compact(_bounds_touch(x, is_plane(m, group), margin, group), group.capacity)
    candidate = jnp.asarray(group.candidate)[index]
    g1, g2 = jnp.asarray(geom)[index].T
    a, b = (posed_geoms(gather, x.pos, x.mat, gather(s, index), g) for s, g in zip(size, (g1, g2), strict=True))
    if is_counted(group.collider):
        collide = partial(collide, count=jnp.sum(real, dtype=jnp.int32))
    contacts = collide(a, b, gather(margin, index))
    dropped += contacts.dropped
    return GroupContacts(contacts._replace(valid=contacts.valid & real[:, None]), candidate, dropped, reevaluated)


def contacts_in_chunks(x: NarrowInputs, geom: Array, mask: Array, collider: Collider, context: Any) -> GroupContacts:
    """Compute the contacts of the pairs (n, 2) in `mask` by a scan over chunks of pairs; empty chunks are skipped."""
    candidate, real, _ = compact(mask, -(-len(geom) // CHUNK) * CHUNK)
    collide = _function(collider, context)

    def run(chunk: Array, real: Array) -> PairContacts:
        sides = gather(geom, chunk).T
        a, b = (posed_geoms(gather, x.pos, x.mat, gather(x.geom_size, g), g) for g in sides)
        count = {"count": jnp.sum(real, dtype=jnp.int32)} if is_counted(collider) else {}
        contacts = collide(a, b, gather(x.margin, chunk), **count)
        return contacts._replace(dropped=jnp.asarray(contacts.dropped, jnp.int32))

    run, none = traced_once(run, candidate[:CHUNK], real[:CHUNK])

    def visit(_: None, chunk: tuple[Array, Array]) -> tuple[None, PairContacts]:
        contacts = lax.cond(chunk[1].any(), run, lambda *_: none, *chunk)
        return None, contacts._replace(valid=contacts.valid & chunk[1][:, None])

    _, contacts = lax.scan(visit, None, (candidate.reshape(-1, CHUNK), real.reshape(-1, CHUNK)))
    dropped = jnp.sum(contacts.dropped)
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), contacts._replace(dropped=None))
    return GroupContacts(flat._replace(dropped=dropped), candidate, dropped)


def _function(collider: Collider, context: Any) -> Callable[..., PairContacts]:
    """Return the function of a collider, with its context."""
    if collider.setup:
        return partial(collider.function, context)
    return partial(sequential, collider.function) if collider.expensive else collider.function


def _bounds_touch(x: NarrowInputs, plane: bool, margin: Array, group: PairGroup) -> Array:
    """Return whether the bounds of pairs (n,) touch: spheres, or plane and sphere.

    Also boxes if the collider is costly.
    """
    g1, g2 = group.geom.T
    gap = take(x.pos, g2) - take(x.pos, g1)
    if plane:
        return inner(gap, take(x.mat[:, :, 2], g1)) <= margin + take(x.geom_rbound, g2)
    near = spheres_touch(gap, take(x.geom_rbound, g1) + take(x.geom_rbound, g2) + margin)
    return near & boxes_touch(x, x.pos, x.mat, margin, g1, g2) if has_box_test(group.collider) else near


def entries(m: Any, x: NarrowInputs, geom: Any, found: list[GroupContacts]) -> BufferEntries:
    """Select the entries of the buffer from the contacts of all groups; `geom` (n, 2) are the candidates' geoms."""
    slot, count, dropped = _slots_of_buffer(m, found, len(geom))
    rows_of = partial(_slots_as_rows, any(part.contacts.tangent is not None for part in found))
    rows = jnp.concatenate([rows_of(part.contacts) for part in found])
    owner = jnp.concatenate([jnp.repeat(jnp.asarray(part.candidate), part.contacts.dist.shape[1]) for part in found])
    real, slot = slot >= 0, jnp.maximum(slot, 0)
    row, candidate = gather(rows, slot), gather(owner, slot)
    if any(part.reevaluated for part in found):
        margin = lax.stop_gradient(gather(x.margin, candidate))
        others = _rows_of_other_colliders(found, rows_of, slot)
        origin = ContactOrigin(real, slot, gather(jnp.asarray(geom), candidate), margin)
        poses = GeomPoses(x.pos, x.mat, x.geom_size)
        row = with_reevaluated_jvp(
            (_reevaluated_colliders(found), rows_of), lax.stop_gradient(row), others, origin, poses
        )
    return BufferEntries(row, jnp.where(real, candidate, -1).astype(jnp.int32), count, dropped)


def merged_entries(capacity: int, a: BufferEntries, b: BufferEntries) -> BufferEntries:
    """Merge the entries of two buffers of equal capacity, in the order of their candidates."""
    width = max(a.row.shape[1], b.row.shape[1])
    rows = jnp.concatenate([jnp.pad(x.row, ((0, 0), (0, width - x.row.shape[1]))) for x in (a, b)])
    candidate = jnp.concatenate([a.candidate, b.candidate])
    order = jnp.argsort(jnp.where(candidate < 0, np.iinfo(np.int32).max, candidate), stable=True)[:capacity]
    beyond = lambda found: jnp.maximum(found - capacity, 0)  # noqa: E731
    lost = a.dropped - beyond(a.found) + b.dropped - beyond(b.found) + beyond(a.found + b.found)
    return BufferEntries(gather(rows, order), gather(candidate, order), a.found + b.found, lost)


def _slots_of_buffer(m: Any, found: list[GroupContacts], n: int) -> tuple[Array, Array, Array]:
    """Return the slot of each entry of the contact buffer (-1: empty), and the numbers of contacts found and dropped.

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
        return slot, ncon, dropped
    position = jnp.where(valid, _buffer_indices(found, n), m.max_contacts)
    slot = jnp.full(m.max_contacts, -1, jnp.int32)
    return slot.at[position].set(jnp.arange(len(valid), dtype=jnp.int32), mode="drop"), ncon, dropped


def _buffer_indices(found: list[GroupContacts], n: int) -> Array:
    """Compute the buffer index of each contact, as an exclusive prefix sum of contact counts."""
    count = jnp.zeros(n, jnp.int32)
    for part in found:
        count = count.at[part.candidate].add(jnp.sum(part.contacts.valid, axis=1, dtype=jnp.int32))
    start = jnp.cumsum(count) - count
    position = [
        start[part.candidate][:, None] + jnp.cumsum(part.contacts.valid, axis=1, dtype=jnp.int32) - 1 for part in found
    ]
    return jnp.concatenate([p.reshape(-1) for p in position])


def _reevaluated_colliders(found: list[GroupContacts]) -> tuple[ReevaluatedCollider, ...]:
    """Return the colliders that the JVP evaluates again, and the ranges of their slots."""
    ends = np.cumsum([part.contacts.dist.size for part in found])
    return tuple(
        ReevaluatedCollider(
            part.reevaluated.collider.function,
            int(end) - part.contacts.dist.size,
            part.contacts.dist.size,
            part.contacts.dist.shape[1],
            tuple(part.reevaluated.geom[0].tolist()),
        )
        for part, end in zip(found, ends, strict=True)
        if part.reevaluated
    )


def _rows_of_other_colliders(
    found: list[GroupContacts], rows_of: Callable[[PairContacts], Array], slot: Array
) -> Array:
    """Return the rows of these slots that come from other colliders, zero elsewhere."""
    other = np.concatenate([np.full(part.contacts.dist.size, part.reevaluated is None) for part in found])
    if not other.any():
        return jnp.zeros((), found[0].contacts.dist.dtype)
    row = gather(jnp.asarray(np.where(other, np.cumsum(other) - 1, -1)), slot)
    rows = jnp.concatenate([rows_of(part.contacts) for part in found if not part.reevaluated])
    return jnp.where(row[:, None] >= 0, gather(rows, jnp.maximum(row, 0)), 0)


def _slots_as_rows(tangent: bool, contacts: PairContacts) -> Array:
    """Flatten slots to rows of numbers: dist, pos, normal and, if `tangent`, the tangent."""
    n = contacts.dist.size
    parts = [contacts.dist.reshape(n, 1), contacts.pos.reshape(n, 3), contacts.normal.reshape(n, 3)]
    if tangent:
        parts.append(
            jnp.zeros((n, 3), contacts.dist.dtype) if contacts.tangent is None else contacts.tangent.reshape(n, 3)
        )
    return jnp.concatenate(parts, axis=1)
