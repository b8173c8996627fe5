"""Linear operators of a constraint problem whose matrices are dense arrays.

Every problem has an inertia with `times(x)` and rows with `times(x)` and `transpose_times(force)`, all differentiable.
The dense solvers also read the arrays below. Each array may come with `parts`: a PyTree of its factors, with methods
for the same products. Derivatives then go through the parts, not through the array, whose tangent is as large as the
array itself; without parts the array is differentiated.
"""

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import jax
from jax import lax

from jaxsim.core.layout import Layout
from jaxsim.core.rows import rows_times, rows_transpose_times
from jaxsim.math.arrays import dot
from jaxsim.math.jvp import matrix_times, product_by_parts
from jaxsim.math.safe import Array
from jaxsim.native.rows import RowsInUse, over_rows


@partial(jax.tree_util.register_dataclass, data_fields=["matrix", "parts"], meta_fields=[])
@dataclasses.dataclass(frozen=True)
class DenseInertia:
    """Inertia matrix (nv, nv); `parts` has `times(x)`."""

    matrix: Array
    parts: Any = None

    def times(self, x: Array) -> Array:
        """Compute M x (nv,)."""
        return matrix_times(dot, self.matrix, self.parts, x)


@partial(
    jax.tree_util.register_dataclass, data_fields=["general", "contact", "friction", "parts"], meta_fields=["layout"]
)
@dataclasses.dataclass(frozen=True)
class DenseRows:
    """Rows over all dofs: general ones (ngeneral, nv), and contact rows in contact frames (ncontact, condim, nv).

    `friction` (ncontact, 5) makes facets of contact frames; `parts` of the contact rows has `times(layout, x)`,
    `transpose_times(layout, force)` and `in_use()`.
    """

    layout: Layout
    general: Array
    contact: Array
    friction: Array
    parts: Any = None

    def times(self, x: Array) -> Array:
        """Compute J x for every slot (nslot,), x being (nv,)."""
        contact = partial(contact_times, self.layout, self.contact, self.parts)
        return rows_times(self.layout, self.friction, x, partial(dot, self.general), contact)

    def transpose_times(self, force: Array) -> Array:
        """Compute J' f (nv,) for forces of every slot (nslot,)."""
        contact = partial(contact_transpose_times, self.layout, self.contact, self.parts)
        return rows_transpose_times(self.layout, self.friction, force, lambda f: dot(f, self.general), contact)


class ContactsInUse(NamedTuple):
    """Parts of contact rows that are not differentiated: which contacts have rows."""

    used: RowsInUse

    def in_use(self) -> RowsInUse:
        """Return the contacts that have rows."""
        return self.used


def _contact_times(layout: Layout, rows: Array, parts: Any, x: Array) -> Array:
    def of_contacts(x: Array, rows: Array) -> tuple[Array, tuple[()]]:
        return dot(lax.collapse(rows, 0, 2), x).reshape(rows.shape[:2]), ()

    return of_contacts(x, rows)[0] if parts is None else over_rows(of_contacts, parts.in_use(), x, rows)[0]


def _contact_transpose_times(layout: Layout, rows: Array, parts: Any, force: Array) -> Array:
    def of_contacts(_: tuple[()], x: tuple[Array, Array]) -> tuple[tuple[()], Array]:
        rows, force = x
        return (), dot(force.reshape(-1), lax.collapse(rows, 0, 2))

    x = rows, force.reshape(rows.shape[:2])
    return of_contacts((), x)[1] if parts is None else over_rows(of_contacts, parts.in_use(), (), x)[1]


# of (layout, rows (ncontact, condim, nv), parts, x): J x in contact frames (ncontact, condim) and J' f (nv,)
contact_times = product_by_parts(_contact_times, lambda layout, parts, x: parts.times(layout, x))
contact_transpose_times = product_by_parts(
    _contact_transpose_times, lambda layout, parts, force: parts.transpose_times(layout, force)
)
