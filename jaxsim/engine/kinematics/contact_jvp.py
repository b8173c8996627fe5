"""Derivatives of products with dense contact rows, by the bodies of the rows.

The tangent of the rows (ncontact, condim, nv) is as large as the rows, while a derivative needs only its product with a
vector. So J x is differentiated as the relative velocity of the two bodies of each contact, J' f as the force of
wrenches on them.
"""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.core.layout import Layout
from jaxsim.engine.structure import tables
from jaxsim.math.arrays import gather, inner, take
from jaxsim.math.safe import Array, short_sum
from jaxsim.math.spatial import join, shift_force, shift_motion
from jaxsim.math.tree import dof_path_sum, dof_subtree_sum
from jaxsim.native.rows import RowsInUse, over_rows, rows_in_use


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["frame", "pos", "used", "body", "cdof", "subtree_com", "weight"],
    meta_fields=["structure"],
)
@dataclasses.dataclass(frozen=True)
class ContactParts:
    """Arguments of the contact rows: poses of contacts, mask of rows `used`, bodies, and axes of dofs.

    `weight` are the signed weights of the bodies; None if all contacts are between two bodies, with the first one's
    sign negative.
    """

    frame: Array  # (ncontact, 9)
    pos: Array
    used: Array  # (ncontact, condim)
    body: Array  # (ncontact, nside)
    cdof: Array
    subtree_com: Array
    weight: Any
    structure: Any

    def in_use(self) -> RowsInUse:
        """Return the contacts that have rows."""
        return rows_in_use(self.used[:, 0])

    def _rows(self) -> tuple[Any, ...]:
        return self.frame, self.pos, self.used, self.body, self.weight

    def _shift(self) -> Array:
        """Return the arms from the trees' own centres of mass to that of the world, the common point of reference."""
        return self.subtree_com[0] - take(self.subtree_com, self.structure.body_rootid)

    def times(self, layout: Layout, x: Array) -> Array:
        """Compute J x in contact frames (ncontact, condim) for x (nv,): relative velocities of the bodies."""
        moving = dof_path_sum(tables.tree(self.structure), self.cdof * x[:, None])

        def of_contacts(shared: tuple[Array, Array], contacts: tuple[Any, ...]) -> tuple[Array, tuple[()]]:
            (velocity, point), (frame, pos, used, body, weight) = shared, contacts
            both = gather(velocity, body)
            apart = both[:, 1] - both[:, 0] if weight is None else jnp.sum(both * weight[..., None], axis=1)
            apart = shift_motion(apart, pos - point)
            rows = frame.reshape(-1, 3, 3)
            out = short_sum(rows[:, : layout.condim] * apart[:, None, 3:])
            if layout.condim > 3:
                out = jnp.concatenate([out, short_sum(rows[:, : layout.condim - 3] * apart[:, None, :3])], axis=1)
            return jnp.where(used, out, 0), ()

        shared = shift_motion(moving, self._shift()), self.subtree_com[0]
        return over_rows(of_contacts, self.in_use(), shared, self._rows())[0]

    def transpose_times(self, layout: Layout, force: Array) -> Array:
        """Compute J' f (nv,) for forces in contact frames (ncontact, condim)."""
        nbody = self.structure.nbody

        def of_contacts(point: Array, contacts: tuple[Any, ...]) -> tuple[tuple[()], Array]:
            frame, pos, used, body, weight, force = contacts
            force, rows = jnp.where(used, force, 0), frame.reshape(-1, 3, 3)
            push = short_sum(rows[:, : force.shape[1]] * force[:, :3, None], 1)
            spin = jnp.zeros_like(push)
            if force.shape[1] > 3:
                spin = short_sum(rows[:, : force.shape[1] - 3] * force[:, 3:, None], 1)
            wrench = shift_force(join(spin, push), pos - point)
            sides = jnp.stack([-wrench, wrench], 1) if weight is None else weight[..., None] * wrench[:, None]
            zero = jnp.zeros((nbody, 6), sides.dtype)
            return (), zero.at[body].add(sides, mode="promise_in_bounds", wrap_negative_indices=False)

        total = over_rows(of_contacts, self.in_use(), self.subtree_com[0], (*self._rows(), force))[1]
        return inner(self.cdof, dof_subtree_sum(tables.tree(self.structure), shift_force(total, self._shift())))
