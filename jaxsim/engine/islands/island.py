"""Islands: groups of trees that active constraint rows connect, found at run time."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.data import Data
from jaxsim.core.layout import Layout
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import EqType, ObjType
from jaxsim.engine.kinematics.contact_jacobian import contact_bodies
from jaxsim.engine.kinematics.contact_sides import contact_sides
from jaxsim.math.arrays import dot
from jaxsim.math.safe import Array


class TouchedTrees(NamedTuple):
    """Trees of the constraint rows: general (ngeneral, ntree), contacts (ncontact, nside), single (ntree,).

    Inactive rows have no tree; a contact with the static world has its tree twice, or `ntree` where flexes collide. An
    inactive contact has `ntree`.
    """

    general: Array
    contact: Array
    single: jax.Array


@per_structure
def _of_dofs(m) -> np.ndarray:
    """Return the 0/1 matrix (ntree, nv) of the dofs of each tree."""
    return (m.dof_treeid[None, :] == np.arange(m.ntree)[:, None]).astype(np.float32)


@per_structure
def _of_equalities(m) -> np.ndarray:
    """Return the mask (neq, ntree) of the trees of the two bodies of connect and weld."""
    mask = np.zeros((m.neq, m.ntree), bool)
    for i in np.flatnonzero(np.isin(m.eq_type, (EqType.CONNECT, EqType.WELD))):
        bodies = np.array([m.eq_obj1id[i], m.eq_obj2id[i]])
        bodies = m.site_bodyid[bodies] if m.eq_objtype[i] == ObjType.SITE else bodies
        trees = m.body_treeid[bodies]
        mask[i, trees[trees >= 0]] = True
    return mask


def touched_trees(m: Model, d: Data) -> TouchedTrees:
    """Return the trees of all active rows."""
    layout: Layout = d.efc.layout
    _, friction, limit, contact, _ = layout.offsets
    active = d.efc.active
    general = dot((d.efc.J_general != 0).astype(np.float32), _of_dofs(m).T) > 0
    of_equality = np.zeros((layout.ngeneral, m.ntree), bool)
    equal = np.flatnonzero(layout.general.type == 0)
    of_equality[equal] = _of_equalities(m)[layout.general.id[equal]]
    general = (general | of_equality) & active[:friction, None]
    at_dof = active[friction:limit]
    both = active[limit:contact].reshape(2, -1).any(0)
    single = jnp.zeros(m.ntree, bool).at[m.dof_treeid].max(at_dof).at[m.dof_treeid[layout.limit_dof]].max(both)
    if not layout.ncontact:
        return TouchedTrees(general, jnp.zeros((0, 2), jnp.int32), single)
    if layout.flexes:
        body, weight, _ = contact_sides(m, d)
        trees = jnp.where(weight != 0, jnp.asarray(m.body_treeid)[body], -1)
    else:
        trees = jnp.asarray(m.body_treeid)[contact_bodies(m, d)]
        trees = jnp.where(trees < 0, trees[:, ::-1], trees)
    rows = active[contact:].reshape(layout.ncontact, layout.nfacet).any(1)
    return TouchedTrees(general, jnp.where(rows[:, None] & (trees >= 0), trees, m.ntree), single)


def join_trees(m: Model, general: Array, pairs: Array) -> Array:
    """Return the smallest tree of each tree's component (ntree,), connected by masks (k, ntree) and by pairs (n, 2)."""
    none = m.ntree

    def spread(state: tuple[Array, Array]) -> tuple[Array, Array]:
        label, _ = state
        new = label
        if general.shape[0]:
            least = jnp.min(jnp.where(general, label, none), axis=1)
            new = jnp.minimum(new, jnp.min(jnp.where(general, least[:, None], none), axis=0))
        if pairs.shape[0]:
            least = jnp.min(label.at[pairs].get(mode="fill", fill_value=none), axis=1)
            new = new.at[pairs].min(least[:, None], mode="drop")
        new = jnp.minimum(new, new[new])
        return new, jnp.any(new != label)

    start = jnp.arange(m.ntree, dtype=jnp.int32)
    return lax.while_loop(lambda s: s[1], spread, (start, jnp.ones((), bool)))[0]


def tree_labels(m: Model, d: Data) -> tuple[Array, Array]:
    """Return for each tree the smallest tree of its island, and whether any row acts on it: both (ntree,)."""
    touch = touched_trees(m, d)
    hit = touch.single | touch.general.any(0)
    hit = hit.at[touch.contact].set(True, mode="drop")
    return join_trees(m, touch.general, touch.contact), hit


def slot_trees(m: Model, d: Data) -> Array:
    """Return a tree of each constraint slot (nslot,), `ntree` for empty slots."""
    layout: Layout = d.efc.layout
    touch = touched_trees(m, d)
    first = jnp.where(touch.general.any(1), jnp.argmax(touch.general, axis=1), m.ntree)
    limits = np.tile(m.dof_treeid[layout.limit_dof], 2)
    contacts = jnp.repeat(touch.contact.min(1), layout.nfacet) if layout.ncontact else jnp.zeros(0, jnp.int32)
    parts = (first, m.dof_treeid, limits, contacts)
    return jnp.concatenate([jnp.asarray(x, jnp.int32) for x in parts])


def slot_labels(m: Model, d: Data) -> Array:
    """Return the smallest tree of the island of each constraint slot (nslot,), `ntree` for empty slots."""
    label, _ = tree_labels(m, d)
    return jnp.concatenate([label, jnp.full(1, m.ntree, label.dtype)])[slot_trees(m, d)]
