"""Contacts of a state: candidate pairs, the narrow phase, and the contact buffer.

The contact buffer holds the contacts found, `max_contacts` at most, in MuJoCo's order.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.core.contact import EMPTY_CONTACT
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.model import Model
from jaxsim.core.types import DisableBit, GeomType, WarningType
from jaxsim.engine.collision import parameters
from jaxsim.engine.collision.broad import broadphase
from jaxsim.engine.collision.broad.pairs import Candidates, candidates
from jaxsim.engine.collision.flex.contacts import flex_contacts, merge
from jaxsim.engine.collision.flex.segments import collides
from jaxsim.engine.collision.in_sequence import entries_in_sequence
from jaxsim.engine.collision.narrow import (
    BufferEntries,
    GroupContacts,
    NarrowInputs,
    PairGroup,
    contacts_in_chunks,
    contacts_of_group,
    context,
    entries,
    has_box_test,
    merged_entries,
)
from jaxsim.engine.collision.shapes import make_frame
from jaxsim.engine.collision.table import COLLIDERS, Collider
from jaxsim.engine.islands.sleep import sleeps, wake_and_filter
from jaxsim.engine.structure.geom_bounds import with_current_bounds
from jaxsim.interface.public import public
from jaxsim.math.arrays import gather
from jaxsim.math.safe import Array
from jaxsim.native.rows import over_rows, rows_in_use

COMPACT_MIN_PAIRS = 16  # groups of at most this many pairs are not compacted
COMPACT_MIN_COST = 30_000  # nor are groups with at most this cost, in units of `Collider.cost`
COMPACT_MIN_SHARE = 1.5  # nor are searches of at most this many times the capacity: a TPU searches listed pairs


@public
def collision(m: Model, d: Any) -> Any:
    """Compute the contacts of the geom poses and vertices of flexes in `d`. Source: mj_collision.

    Sets `contact`, `ncon`, `maxuse_con`; counts dropped contacts in `overflow_contacts` and as a warning. Contacts are
    in MuJoCo's order; unused entries hold zeros and geom -1. Raises UnsupportedError for a pair of geom types that has
    no collider.
    """
    if m.opt.disableflags & (DisableBit.CONSTRAINT | DisableBit.CONTACT):
        return _empty_buffer(d)
    m, large = with_current_bounds(m), broadphase.is_large(m)
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
    """Compute the contacts of geoms; return data, the number found, and the number dropped."""
    pairs, pair_groups = candidates(m), groups(m)
    x = _inputs(m, d, parameters.margins(m, pairs), pair_groups)
    kind = np.full(len(pairs.pair), -1, np.int32)
    for k, group in enumerate(pair_groups):
        kind[group.candidate] = k

    def find(x: NarrowInputs, _: Array, __: Array, some: list[PairGroup]) -> list[GroupContacts]:
        return [contacts_of_group(m, x, g, c) for g, c in zip(some, x.contexts, strict=True)]

    d, found = _entries(m, d, x, pairs, kind, pair_groups, find)
    return _fill_buffer(m, d, pairs, found)


def _contacts_of_large_model(m: Model, d: Any) -> tuple[Any, Array, Array]:
    """Compute the contacts of geoms of a large model: find near pairs first, then group them by collider."""
    near = broadphase.near_pairs(m, d, broadphase.near_capacity(m))
    collider_of_types, colliders = _colliders_by_types(m)
    types = gather(jnp.asarray(m.geom_type), near.geom)
    collider = gather(jnp.asarray(collider_of_types.reshape(-1)), types[:, 0] * len(collider_of_types) + types[:, 1])
    kind = jnp.where(near.real, collider, -1)
    x = _inputs(m, d, parameters.margin_of(m, near.geom, near.pair), colliders)

    def find(x: NarrowInputs, geom: Array, kind: Array, some: list[PairGroup]) -> list[GroupContacts]:
        parts = enumerate(zip(some, x.contexts, strict=True))
        return [contacts_in_chunks(x, geom, kind == k, g.collider, c) for k, (g, c) in parts]

    d, found = _entries(m, d, x, near, kind, colliders, find)
    d, ncon, dropped = _fill_buffer(m, d, near, found)
    return d, ncon, dropped + near.dropped


def _entries(
    m: Model, d: Any, x: NarrowInputs, pairs: Any, kind: Any, pair_groups: list[PairGroup], find: Callable
) -> tuple[Any, BufferEntries]:
    """Return data and the entries of the contact buffer.

    `find(x, geom, kind, groups)` computes contacts of groups by JAX. On a CPU, groups whose colliders run `in_sequence`
    are one native program; other groups are JAX operations.
    """
    if m.callbacks.contact_filter is not None or sleeps(m):
        d, found = _kept(m, d, pairs, find(x, pairs.geom, kind, pair_groups))
        return d, entries(m, x, pairs.geom, found)
    ours = [k for k, g in enumerate(pair_groups) if g.collider.in_sequence]
    others = [k for k, g in enumerate(pair_groups) if not g.collider.in_sequence]
    parts = []
    for chosen in filter(None, (ours, others)):
        some, mine, own = [pair_groups[k] for k in chosen], *_part_of(x, kind, chosen, len(pair_groups))
        by_jax = lambda x, geom, kind, some=some: entries(m, x, geom, find(x, geom, kind, some))  # noqa: E731
        if chosen is ours:
            parts.append(entries_in_sequence(m, mine, pairs.geom, own, some, by_jax))
        else:
            parts.append(by_jax(mine, pairs.geom, own))
    return d, parts[0] if len(parts) == 1 else merged_entries(m.max_contacts, *parts)


def _part_of(x: NarrowInputs, kind: Any, chosen: list[int], count: int) -> tuple[NarrowInputs, Any]:
    """Return the inputs of the groups `chosen` of `count`, and the index of each pair's group among them, or -1."""
    if len(chosen) == count:
        return x, kind
    index = np.full(count + 1, -1, np.int32)  # the last entry is for kind -1
    index[chosen] = np.arange(len(chosen))
    own = gather(index if isinstance(kind, np.ndarray) else jnp.asarray(index), kind % len(index))
    return x._replace(contexts=tuple(x.contexts[k] for k in chosen)), own


def _inputs(m: Model, d: Any, margin: Array, pair_groups: list[PairGroup]) -> NarrowInputs:
    """Return the inputs of the narrow phase for these groups."""
    bounds = m.geom_size, m.geom_rbound, m.geom_aabb
    contexts = tuple(context(m, group) for group in pair_groups)
    return NarrowInputs(d.geom_xpos, d.geom_xmat.reshape(-1, 3, 3), *bounds, margin, contexts)


def _kept(m: Model, d: Any, pairs: Any, found: list[GroupContacts]) -> tuple[Any, list[GroupContacts]]:
    """Wake the trees that contacts wake; remove contacts by the user's filter and by sleep."""
    if m.callbacks.contact_filter is not None:
        found = [_apply_contact_filter(m, d, pairs, part) for part in found]
    return wake_and_filter(m, d, pairs, found) if sleeps(m) else (d, found)


def _colliders_by_types(m: Model) -> tuple[np.ndarray, list[PairGroup]]:
    """Return the index of the collider of each two geom types, and the colliders with their geoms.

    Each collider comes with pairs of geoms, first and second, which contain all geoms of its types.
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
        collider = max((c for c, *_ in members), key=lambda c: c.ncon)
        colliders.append(PairGroup(collider, np.stack([g1, g2], axis=1)))
    return index_of_types, colliders


def _collider(t1: int, t2: int) -> Collider:
    """Return the collider of two geom types; raise UnsupportedError if there is none."""
    if (t1, t2) not in COLLIDERS:
        raise UnsupportedError(
            f"collisions between {GeomType(t1).name.lower()} and {GeomType(t2).name.lower()} are not supported"
        )
    return COLLIDERS[t1, t2]


def groups(m: Any) -> list[PairGroup]:
    """Group the candidate pairs by collider, as static structure."""
    return _groups(m.structure, m.opt.disableflags, candidates(m))


def _groups(structure: Any, flags: int, pairs: Candidates) -> list[PairGroup]:
    types, type_pair = np.unique(structure.geom_type[pairs.geom], axis=0, return_inverse=True)
    colliders = [_collider(t1, t2) for t1, t2 in types.tolist()]
    out = []
    for function in dict.fromkeys(c.function for c in colliders):
        rows = [i for i, c in enumerate(colliders) if c.function is function]
        candidate = np.flatnonzero(np.isin(type_pair.reshape(-1), rows))
        collider = max((colliders[i] for i in rows), key=lambda c: c.ncon)
        limit = structure.max_contacts if has_box_test(collider) else 2 * structure.max_contacts
        whole = len(candidate) <= COMPACT_MIN_PAIRS or len(candidate) * collider.cost <= COMPACT_MIN_COST
        whole |= collider.searches and len(candidate) <= COMPACT_MIN_SHARE * limit
        capacity = len(candidate) if whole else min(len(candidate), max(COMPACT_MIN_PAIRS, limit))
        out.append(PairGroup(collider, pairs.geom[candidate], candidate, capacity))
    return out


def _apply_contact_filter(m: Model, d: Any, pairs: Candidates, found: GroupContacts) -> GroupContacts:
    """Remove the contacts that the user's contact filter rejects; explicit pairs are not filtered."""
    geom, explicit = jnp.asarray(pairs.geom)[found.candidate], jnp.asarray(pairs.pair)[found.candidate] >= 0
    contact_filter = m.callbacks.contact_filter
    assert contact_filter is not None
    dropped = contact_filter(m, d, geom[:, 0], geom[:, 1]) & ~explicit
    return found._replace(contacts=found.contacts._replace(valid=found.contacts.valid & ~dropped[:, None]))


def _fill_buffer(m: Model, d: Any, pairs: Any, found: BufferEntries) -> tuple[Any, Array, Array]:
    """Fill the contact buffer; return data, the number of contacts found, and the number dropped."""

    def contacts(shared: Any, rows: Any) -> tuple[dict[str, Array], tuple]:
        row, candidate = rows
        fields = parameters.parameters_of_pairs(shared, jnp.maximum(candidate, 0))
        dist, pos, normal, *tangent = jnp.split(row, (1, 4, 7)[: row.shape[1] // 3], axis=1)
        frame = make_frame(normal, *(tangent or (None,)))
        exclude = (dist[:, 0] >= fields["includemargin"]).astype(jnp.int32)
        values = {"dist": dist[:, 0], "pos": pos, "frame": frame, **fields, "exclude": exclude}
        real = candidate >= 0
        return {k: jnp.where(real.reshape(-1, *[1] * (v.ndim - 1)), v, 0) for k, v in values.items()}, ()

    real = found.candidate >= 0
    shared = parameters.pair_operands(m, pairs)
    out = over_rows(contacts, rows_in_use(real), shared, (found.row, found.candidate))[0]
    out["geom"] = jnp.where(real[:, None], out["geom"], -1)
    none = {name: jnp.full_like(getattr(d.contact, name), -1) for name in EMPTY_CONTACT if name not in out}
    contact = d.contact.replace(**out, mu=jnp.zeros_like(out["dist"]), **none)
    return d.replace(contact=contact), found.found, found.dropped


def _empty_buffer(d: Any) -> Any:
    """Clear the contacts of a model without candidates or with contacts disabled."""
    contact = {name: jnp.zeros_like(getattr(d.contact, name)) for name in d.contact.LEAVES}
    for name in EMPTY_CONTACT:
        contact[name] -= 1
    return d.replace(contact=d.contact.replace(**contact), ncon=jnp.zeros_like(d.ncon))


def _update_counts(m: Model, d: Any, ncon: Array, dropped: Array) -> Any:
    """Set the number of contacts kept, the most found in any step, and the number dropped."""
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
