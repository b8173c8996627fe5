"""Contacts of a state: candidate pairs, bound test, narrow phase by groups, and the contact buffer."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.errors import UnsupportedError
from jaxsim.core.model import Model
from jaxsim.core.types import DisableBit, GeomType, WarningType
from jaxsim.engine.collision import parameters
from jaxsim.engine.collision.broad import broadphase
from jaxsim.engine.collision.broad.bounds import boxes_touch, spheres_touch
from jaxsim.engine.collision.broad.pairs import Candidates, candidates
from jaxsim.engine.collision.followed import Followed, Place, Poses, follow, worthwhile
from jaxsim.engine.collision.shapes import Hits, make_frame, posed
from jaxsim.engine.collision.table import COLLIDERS, Collider
from jaxsim.engine.sleep import sleeps, wake_and_filter
from jaxsim.math.arrays import gather, inner, take
from jaxsim.math.safe import Array
from jaxsim.xla.fusion import fusion_barrier, one_kernel

FEW = 16  # groups of no more pairs than this are never compacted
CHEAP = 30_000  # nor are those whose narrow phase costs less than this
CHUNK = 128  # pairs of a large scene that get the narrow phase at a time
DEAR = 1000  # pairs of colliders that cost more than this are tested by their boxes too


class Group(NamedTuple):
    """Candidates of one collider: their places in the candidate list, and how many get the narrow phase."""

    collider: Collider
    which: np.ndarray
    capacity: int


class Found(NamedTuple):
    """Contacts of a group: `hits` of the pairs tested, the candidate of each, and how many pairs found no room.

    With a `group`, derivatives of the contacts are those that `follow` finds.
    """

    hits: Hits
    which: Any
    lost: Any
    group: Group | None = None


def collision(m: Model, d: Any) -> Any:
    """Find all contacts of the geoms' poses in `d`: mj_collision.

    Sets `contact`, `ncon`, `maxuse_con`; counts dropped contacts in `overflow_contacts` and as a warning. Contacts
    stand in MuJoCo's order; unused slots hold zeros and geom -1. Raises UnsupportedError for a pair of geom types
    that has no collider, and for flexes that collide.
    """
    off = m.opt.disableflags & (DisableBit.CONSTRAINT | DisableBit.CONTACT)
    if not off and broadphase.is_large(m):
        return _collision_at_large(m, d)
    pairs = None if off else candidates(m)
    if off or not len(pairs.pair):
        return _no_contacts(m, d, pairs, bool(off))
    _refuse_flex(m)
    mat = d.geom_xmat.reshape(-1, 3, 3)
    parts = groups(m)
    sizes = _take_each(m.geom_size, [pairs.geom[g.which].T for g in parts])
    margins = _take_each(parameters.margins(m, pairs), [g.which for g in parts])
    found = [_narrow(m, d.geom_xpos, mat, pairs, *part) for part in zip(parts, sizes, margins, strict=True)]
    if m.callbacks.contact_filter is not None:
        found = [_filtered(m, d, pairs, f) for f in found]
    if sleeps(m):
        d, found = wake_and_filter(m, d, pairs, found)
    source, ncon, lost = _buffer(m, found, len(pairs.pair))
    contact = _fill(m, d, pairs, found, source)
    return _count(m, d.replace(contact=contact), ncon, lost)


def _collision_at_large(m: Model, d: Any) -> Any:
    """The same for models with too many candidates to list: near pairs are found first, then each collider's own."""
    _refuse_flex(m)
    near = broadphase.near_pairs(m, d, broadphase.room(m))
    kind_of, kinds = _kinds(m)
    types = gather(jnp.asarray(m.geom_type), near.geom)
    kind = gather(jnp.asarray(kind_of.reshape(-1)), types[:, 0] * len(kind_of) + types[:, 1])
    found = [_narrow_near(m, d, near, near.real & (kind == k), *kinds[k]) for k in range(len(kinds))]
    if m.callbacks.contact_filter is not None:
        found = [_filtered(m, d, near, f) for f in found]
    if sleeps(m):
        d, found = wake_and_filter(m, d, near, found)
    source, ncon, lost = _buffer(m, found, len(near.pair))
    contact = _fill(m, d, near, found, source)
    return _count(m, d.replace(contact=contact), ncon, lost + near.lost)


def _kinds(m: Model) -> tuple[np.ndarray, list[tuple[Collider, np.ndarray, np.ndarray]]]:
    """For each two types of geom the number of their collider; each collider, and pairs that hold all of its geoms."""
    side = GeomType.SDF + 1
    kind_of, kinds = np.full((side, side), -1, np.int32), {}
    for t1, t2 in broadphase.types_that_meet(m.structure):
        collider = _collider(t1, t2)
        every = [np.flatnonzero(m.geom_type == t) for t in (t1, t2)]
        kinds.setdefault(collider.function, []).append(
            (collider, t1, t2, *(np.resize(g, max(map(len, every))) for g in every))
        )
    out = []
    for k, members in enumerate(kinds.values()):
        for _, t1, t2, *_ in members:
            kind_of[t1, t2] = k
        g1, g2 = (np.concatenate([member[side] for member in members]) for side in (3, 4))
        out.append((max((c for c, *_ in members), key=lambda c: c.ncon), g1, g2))
    return kind_of, out


def _collider(t1: int, t2: int) -> Collider:
    if (t1, t2) not in COLLIDERS:
        raise UnsupportedError(f"collisions between {GeomType(t1).name.lower()} and {GeomType(t2).name.lower()}")
    return COLLIDERS[t1, t2]


def _narrow_near(m: Model, d: Any, near: Any, mine: Array, collider: Collider, *geoms: np.ndarray) -> Found:
    """The narrow phase of the near pairs that are `mine`, a chunk at a time: chunks without a pair cost nothing."""
    room = len(near.pair)
    which, real, _ = compact(mine, -(-room // CHUNK) * CHUNK)
    collide = partial(collider.function, collider.setup(m, *geoms)) if collider.setup else collider.function

    def run(part: Array) -> Hits:
        geom, pair = gather(near.geom, part), gather(near.pair, part)
        a, b = (posed(gather, d.geom_xpos, d.geom_xmat, gather(m.geom_size, g), g) for g in geom.T)
        hits = collide(a, b, parameters.margin_of(m, geom, pair))
        return hits._replace(lost=jnp.asarray(hits.lost, jnp.int32))

    none = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(run, which[:CHUNK]))

    def visit(_: None, part: tuple[Array, Array]) -> tuple[None, Hits]:
        hits = lax.cond(part[1].any(), run, lambda _: none, part[0])
        return None, hits._replace(valid=hits.valid & part[1][:, None])

    _, hits = lax.scan(visit, None, (which.reshape(-1, CHUNK), real.reshape(-1, CHUNK)))
    lost = jnp.sum(hits.lost)
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), hits._replace(lost=None))
    return Found(flat._replace(lost=lost), which, lost)


def groups(m: Any) -> list[Group]:
    """The candidates grouped by collider, as static structure."""
    return _groups(m.structure, m.opt.disableflags, candidates(m))


def _groups(structure: Any, flags: int, pairs: Candidates) -> list[Group]:
    types, kind = np.unique(structure.geom_type[pairs.geom], axis=0, return_inverse=True)
    colliders = [_collider(t1, t2) for t1, t2 in types.tolist()]
    out = []
    for function in dict.fromkeys(c.function for c in colliders):
        mine = [i for i, c in enumerate(colliders) if c.function is function]
        which = np.flatnonzero(np.isin(kind.reshape(-1), mine))
        collider = max((colliders[i] for i in mine), key=lambda c: c.ncon)
        few = len(which) <= FEW or len(which) * collider.cost <= CHEAP
        room = structure.max_contacts if collider.cost >= DEAR else 2 * structure.max_contacts
        capacity = len(which) if few else min(len(which), max(FEW, room))
        out.append(Group(collider, which, capacity))
    return out


def _refuse_flex(m: Any) -> None:
    if m.nflex and np.any((m.flex_contype != 0) | (m.flex_conaffinity != 0)):
        raise UnsupportedError("collisions of flexes")


def _take_each(x: Array, indices: list[np.ndarray]) -> list[Array]:
    """`x[index]` for each index, fetched at once: for numbers of the model, of which there is one for all worlds."""
    found = take(x, np.concatenate([i.reshape(-1) for i in indices]))
    cuts = np.cumsum([i.size for i in indices])[:-1]
    return [y.reshape(*i.shape, *x.shape[1:]) for i, y in zip(indices, jnp.split(found, cuts), strict=True)]


def _narrow(m: Model, pos: Array, mat: Array, pairs: Candidates, group: Group, size: Array, margin: Array) -> Found:
    """Contacts of a group: `size` (2, n, 3) and `margin` (n,) are those of its pairs."""
    geom = pairs.geom[group.which]
    again = group if worthwhile(group.collider, group.capacity, m.max_contacts) else None
    collide = group.collider.function
    if group.collider.setup:
        collide = partial(collide, group.collider.setup(m, geom[:, 0], geom[:, 1]))
    if group.capacity == len(geom):
        g1, g2 = geom.T
        a, b = (posed(take, pos, mat, s, g) for s, g in zip(size, (g1, g2), strict=True))
        hits = collide(a, b, margin)
        return Found(hits, group.which, hits.lost, again)
    near = _near(m, pos, mat, margin, pairs, group)
    index, real, lost = compact(near, group.capacity)
    which = jnp.asarray(group.which)[index]
    g1, g2 = jnp.asarray(geom)[index].T
    a, b = (posed(gather, pos, mat, s[index], g) for s, g in zip(size, (g1, g2), strict=True))
    hits = collide(a, b, margin[index])
    lost += hits.lost
    return Found(hits._replace(valid=hits.valid & real[:, None]), which, lost, again)


def _filtered(m: Model, d: Any, pairs: Candidates, f: Found) -> Found:
    """Without the contacts that the user's filter drops; explicit pairs are not asked about."""
    geom, explicit = jnp.asarray(pairs.geom)[f.which], jnp.asarray(pairs.pair)[f.which] >= 0
    dropped = m.callbacks.contact_filter(m, d, geom[:, 0], geom[:, 1]) & ~explicit
    return f._replace(hits=f.hits._replace(valid=f.hits.valid & ~dropped[:, None]))


def _near(m: Model, pos: Array, mat: Array, margin: Array, pairs: Candidates, group: Group) -> Array:
    """Whether the bounds of pairs (n,) touch: spheres, or a plane and a sphere; boxes too before a dear collider."""
    g1, g2 = pairs.geom[group.which].T
    gap = take(pos, g2) - take(pos, g1)
    if m.geom_type[g1[0]] == GeomType.PLANE:
        return inner(gap, take(mat[:, :, 2], g1)) <= margin + take(m.geom_rbound, g2)
    reach = take(m.geom_rbound, g1) + take(m.geom_rbound, g2) + margin
    near = spheres_touch(gap, reach)
    return near & boxes_touch(m, pos, mat, margin, g1, g2) if group.collider.cost >= DEAR else near


def compact(mask: Array, capacity: int) -> tuple[Array, Array, Array]:
    """The first `capacity` true places of `mask` (n,) in order: index, whether it is real, and how many were lost.

    Places beyond the last true one are index 0 and not real.
    """
    total = jnp.cumsum(mask, dtype=jnp.int32)
    counted = partial(_counted, capacity)
    index = lax.platform_dependent(total, cpu=one_kernel(counted), default=counted)
    real = jnp.arange(capacity) < total[-1]
    return jnp.where(real, index, 0), real, jnp.maximum(total[-1] - capacity, 0)


def _counted(capacity: int, total: Array) -> Array:
    """For k = 1 ... `capacity`, how many entries of the running count `total` (n,) are less: a binary search."""
    n = len(total)
    rounds = n.bit_length()

    def halve(i: Array, index: Array) -> Array:
        ahead = index + ((1 << (rounds - 1)) >> i)
        less = gather(total, jnp.minimum(ahead, n) - 1) <= np.arange(capacity)
        return jnp.where((ahead <= n) & less, ahead, index)

    return lax.fori_loop(0, rounds, halve, jnp.zeros(capacity, jnp.int32))


def _buffer(m: Model, found: list[Found], n: int) -> tuple[Array, Array, Array]:
    """For each place in the contact buffer, which of all slots fills it (-1: none); contacts found, and lost.

    Slots are numbered group by group; contacts stand in the order of the candidates.
    """
    valid = jnp.concatenate([f.hits.valid.reshape(-1) for f in found])
    ncon = jnp.sum(valid, dtype=jnp.int32)
    lost = sum(f.lost for f in found) + jnp.maximum(ncon - m.max_contacts, 0)
    if all(isinstance(f.which, np.ndarray) for f in found):
        owner = np.concatenate([np.repeat(f.which, f.hits.dist.shape[1]) for f in found])
        order = np.argsort(owner, kind="stable")
        index, real, _ = compact(take(valid, order), m.max_contacts)
        source = jnp.where(real, gather(jnp.asarray(order, jnp.int32), index), -1)
        return fusion_barrier(source), ncon, lost
    place = jnp.where(valid, _places(found, n), m.max_contacts)
    source = jnp.full(m.max_contacts, -1, jnp.int32)
    return source.at[place].set(jnp.arange(len(valid), dtype=jnp.int32), mode="drop"), ncon, lost


def _places(found: list[Found], n: int) -> Array:
    """Each contact's place: the number of contacts of earlier candidates, and of those before it in its own pair."""
    count = jnp.zeros(n, jnp.int32)
    for f in found:
        count = count.at[f.which].add(jnp.sum(f.hits.valid, axis=1, dtype=jnp.int32))
    start = jnp.cumsum(count) - count
    place = [start[f.which][:, None] + jnp.cumsum(f.hits.valid, axis=1, dtype=jnp.int32) - 1 for f in found]
    return jnp.concatenate([p.reshape(-1) for p in place])


def _fill(m: Model, d: Any, pairs: Candidates, found: list[Found], source: Array) -> Any:
    """The contact buffer from the slots chosen."""
    rows_of = partial(_rows, any(f.hits.tangent is not None for f in found))
    rows = jnp.concatenate([rows_of(f.hits) for f in found])
    owner = jnp.concatenate([jnp.repeat(jnp.asarray(f.which), f.hits.dist.shape[1]) for f in found])
    real = source >= 0
    slot = jnp.maximum(source, 0)
    row, which = gather(rows, slot), gather(owner, slot)
    known = parameters.of_contacts(m, pairs, which)
    if any(f.group for f in found):
        margin = lax.stop_gradient(gather(parameters.margins(m, pairs), which))
        others, place = _rows_of_others(found, rows_of, slot), Place(slot, known["geom"], margin)
        poses = Poses(d.geom_xpos, d.geom_xmat, m.geom_size)
        row = follow((_followed(pairs, found), rows_of), lax.stop_gradient(row), others, place, poses)
    dist, pos, normal, *tangent = jnp.split(row, (1, 4, 7)[: row.shape[1] // 3], axis=1)
    dist = dist[:, 0]
    values = {
        "dist": dist,
        "pos": pos,
        "frame": make_frame(normal, *(tangent or (None,))),
        **known,
        "mu": jnp.zeros_like(dist),
    }
    values["exclude"] = dist >= values["includemargin"]
    out = {}
    for name, value in values.items():
        mask = real.reshape(real.shape + (1,) * (value.ndim - 1))
        out[name] = jnp.where(mask, value, -1 if name == "geom" else 0)
    return d.contact.replace(**out, efc_address=jnp.full_like(d.contact.efc_address, -1))


def _followed(pairs: Candidates, found: list[Found]) -> tuple[Followed, ...]:
    """The colliders whose contacts are differentiated by themselves, and where their slots are."""
    ends = np.cumsum([f.hits.dist.size for f in found])
    return tuple(
        Followed(f.group.collider.function, int(end) - f.hits.dist.size, f.hits.dist.size, f.hits.dist.shape[1], pair)
        for f, end in zip(found, ends, strict=True)
        if f.group
        for pair in [tuple(pairs.geom[f.group.which[0]].tolist())]
    )


def _rows_of_others(found: list[Found], rows_of: Callable[[Hits], Array], slot: Array) -> Array:
    """The rows of these slots that come from colliders which are not followed, zero for others."""
    other = np.concatenate([np.full(f.hits.dist.size, f.group is None) for f in found])
    if not other.any():
        return jnp.zeros((), found[0].hits.dist.dtype)
    at = gather(jnp.asarray(np.where(other, np.cumsum(other) - 1, -1)), slot)
    rows = jnp.concatenate([rows_of(f.hits) for f in found if not f.group])
    return jnp.where(at[:, None] >= 0, gather(rows, jnp.maximum(at, 0)), 0)


def _rows(tangent: bool, h: Hits) -> Array:
    """Slots as rows: dist, pos, normal and, if wanted, tangent."""
    n = h.dist.size
    parts = [h.dist.reshape(n, 1), h.pos.reshape(n, 3), h.normal.reshape(n, 3)]
    if tangent:
        parts.append(jnp.zeros((n, 3), h.dist.dtype) if h.tangent is None else h.tangent.reshape(n, 3))
    return jnp.concatenate(parts, axis=1)


def _no_contacts(m: Model, d: Any, pairs: Candidates, off: bool) -> Any:
    if not off:
        _refuse_flex(m)
    contact = {name: jnp.zeros_like(getattr(d.contact, name)) for name in d.contact.__slots__ if name != "__weakref__"}
    contact["geom"] -= 1
    contact["efc_address"] -= 1
    return d.replace(contact=d.contact.replace(**contact), ncon=jnp.zeros_like(d.ncon))


def _count(m: Model, d: Any, ncon: Array, lost: Array) -> Any:
    """Number of contacts kept, the most ever asked for, and those dropped."""
    kind = WarningType.CONTACTFULL
    full = lost > 0
    warning = d.warning.replace(
        number=d.warning.number.at[kind].add(full.astype(d.warning.number.dtype)),
        lastinfo=d.warning.lastinfo.at[kind].set(jnp.where(full, m.max_contacts, d.warning.lastinfo[kind])),
    )
    return d.replace(
        ncon=jnp.minimum(ncon, m.max_contacts),
        maxuse_con=jnp.maximum(d.maxuse_con, jnp.minimum(ncon, m.max_contacts) + lost),
        overflow_contacts=d.overflow_contacts + lost,
        warning=warning,
    )
