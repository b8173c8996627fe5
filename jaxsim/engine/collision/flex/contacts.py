"""Contacts of flexes: found, chosen, ordered, and merged with the contacts of geoms in the contact buffer."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.core.contact import EMPTY_CONTACT
from jaxsim.core.model import Model
from jaxsim.core.structure import geom_bodies
from jaxsim.engine.collision import parameters
from jaxsim.engine.collision.flex import segments as static
from jaxsim.engine.collision.flex.fields import field_contacts
from jaxsim.engine.collision.flex.found import ID_NAMES, Found, joined
from jaxsim.engine.collision.flex.geoms import element_contacts, plane_contacts
from jaxsim.engine.collision.flex.order import in_order
from jaxsim.engine.collision.flex.selves import flex_flex_contacts, internal_contacts
from jaxsim.engine.collision.shapes import make_frame
from jaxsim.math.arrays import gather
from jaxsim.math.safe import Array

LAST = np.uint32(0xFFFFFFFF)
CHOICE_MIN = 512  # least capacity for contacts of elements before the choice of `MAXCONPAIR` per pair
CHOICE_PER_ELEMENT = 2  # and per element


class FlexContacts(NamedTuple):
    """Contacts of flexes in order: fields, mask of real ones, signatures of their pairs, and number dropped."""

    values: dict[str, Array]
    real: Array
    signature: Array
    dropped: Array


def flex_contacts(m: Model, d: Any) -> FlexContacts | None:
    """Compute the contacts of all flexes; None if no flex can collide."""
    planes = plane_contacts(m, d)
    bodies = [*field_contacts(m, d), *element_contacts(m, d)]
    parts = [*planes, *bodies, *flex_flex_contacts(m, d), *internal_contacts(m, d)]
    if not parts:
        return None
    found = joined(parts)
    several = max(CHOICE_MIN, 4 * m.max_contacts, CHOICE_PER_ELEMENT * m.nflexelem)
    capacity = min(len(found.valid), sum(len(p.valid) for p in planes) + several)
    found = in_order(m, d, found, capacity)
    signature = np.append(static.segments(m).signature, LAST).astype(np.uint32)
    return FlexContacts(_fields(m, found), found.valid, gather(jnp.asarray(signature), found.segment), found.dropped)


def _fields(m: Model, found: Found) -> dict[str, Array]:
    """Return the fields of the contacts, zero or -1 for empty entries."""
    name = {k: found.ids[:, i] for i, k in enumerate(ID_NAMES)}
    none = jnp.full_like(name["geom"], -1)
    within = (name["flex1"] >= 0) & (name["flex1"] == name["flex2"])
    face = within & (name["elem1"] >= 0) & (name["vert2"] >= 0)  # of a tetrahedron against its own vertex
    side1 = jnp.where(name["geom"] >= 0, name["geom"], m.ngeom + jnp.maximum(name["flex1"], 0))
    side2 = m.ngeom + jnp.maximum(name["flex2"], 0)
    mixed = parameters.mix_with_flexes(m, jnp.stack([side1, side2], axis=1), within)
    dist, pos, normal = found.numbers[:, 0], found.numbers[:, 1:4], found.numbers[:, 4:]
    values = {
        "dist": dist,
        "pos": pos,
        "frame": make_frame(normal, None),
        **mixed,
        "dim": jnp.where(face, 1, mixed["dim"]),
        "mu": jnp.zeros_like(dist),
        "geom": jnp.stack([name["geom"], none], axis=1),
        "flex": jnp.stack([name["flex1"], name["flex2"]], axis=1),
        "elem": jnp.stack([name["elem1"], name["elem2"]], axis=1),
        "vert": jnp.stack([name["vert1"], name["vert2"]], axis=1),
    }
    values["exclude"] = (dist >= values["includemargin"]).astype(jnp.int32)
    passive = jnp.asarray(np.append(m.flex_passive != 0, False))
    acts = gather(passive, jnp.stack([name["flex1"], name["flex2"]], axis=1)).any(1)
    values["exclude"] = jnp.where(acts, 4, values["exclude"])
    values["efc_address"] = none
    return values


def merge(m: Model, contact: Any, ncon: Array, flexes: FlexContacts) -> tuple[Any, Array, Array]:
    """Merge the contacts of flexes into the contact buffer; return it, the number of contacts, and the number lost."""
    values, real, signature, _ = flexes
    n, k = m.max_contacts, len(real)
    body = gather(jnp.asarray(geom_bodies(m)), jnp.maximum(contact.geom, 0)).astype(jnp.uint32)
    pair = (jnp.min(body, axis=1) << 16) + jnp.max(body, axis=1)
    of_geoms = jnp.where(np.arange(n) < ncon, jnp.maximum.accumulate(pair), LAST)
    of_flexes = jnp.where(real, signature, LAST)
    place = jnp.arange(n, dtype=jnp.int32) + jnp.searchsorted(of_flexes, of_geoms, side="left").astype(jnp.int32)
    place_of_flexes = jnp.arange(k, dtype=jnp.int32) + jnp.searchsorted(of_geoms, of_flexes, side="left").astype(
        jnp.int32
    )
    place = jnp.where(np.arange(n) < ncon, place, n)
    source = jnp.full(n, -1, jnp.int32)
    source = source.at[place].set(jnp.arange(n, dtype=jnp.int32), mode="drop")
    source = source.at[jnp.where(real, place_of_flexes, n)].set(n + jnp.arange(k, dtype=jnp.int32), mode="drop")
    row, used = jnp.maximum(source, 0), source >= 0
    out = {}
    for name, value in values.items():
        own = getattr(contact, name)
        own = jnp.full_like(own, -1) if name in ("flex", "elem", "vert") else own
        both = jnp.concatenate([own, value.astype(own.dtype)])
        mask = used.reshape(-1, *(1,) * (value.ndim - 1))
        out[name] = jnp.where(mask, gather(both, row), -1 if name in EMPTY_CONTACT else 0)
    total = ncon + jnp.sum(real, dtype=jnp.int32)
    return contact.replace(**out), jnp.minimum(total, n), jnp.maximum(total - n, 0)
