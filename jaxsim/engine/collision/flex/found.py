"""Contacts of flexes before they enter the contact buffer: rows of numbers, and rows of ids."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsim.engine.collision.shapes import PairContacts
from jaxsim.math.safe import Array

ID_NAMES = ("geom", "flex1", "elem1", "vert1", "flex2", "elem2", "vert2")  # -1 where there is none


class Found(NamedTuple):
    """Contacts (n,): numbers (n, 7) dist, pos and normal, mask, segment, keys (n, 3), ids (n, 7).

    Contacts of a segment are sorted by their keys. The first key orders them only while MuJoCo chooses which contacts
    of a full segment to keep. `dropped` counts pairs beyond a capacity.
    """

    numbers: Array
    valid: Array
    segment: Array
    keys: Array
    ids: Array
    dropped: Array


def found_of(contacts: PairContacts, segment: Any, keys: tuple, ids: dict[str, Any]) -> Found:
    """Return the contacts of n pairs in k slots, with the segment, keys and ids (n,) of their pair."""
    n, k = contacts.dist.shape
    numbers = jnp.concatenate([contacts.dist[..., None], contacts.pos, contacts.normal], axis=-1)
    none = jnp.full(n, -1, jnp.int32)
    columns = [segment, *keys, *(ids.get(name, none) for name in ID_NAMES)]
    table = jnp.stack([jnp.broadcast_to(jnp.asarray(x, jnp.int32), (n,)) for x in columns], axis=1)
    table = jnp.repeat(table, k, axis=0)
    dropped = jnp.asarray(contacts.dropped, jnp.int32)
    return Found(
        numbers.reshape(n * k, 7), contacts.valid.reshape(-1), table[:, 0], table[:, 1:4], table[:, 4:], dropped
    )


def joined(parts: list[Found]) -> Found:
    """Concatenate the contacts of all parts."""
    *arrays, dropped = zip(*parts, strict=True)
    return Found._make((*(jnp.concatenate(x) for x in arrays), sum(dropped)))
