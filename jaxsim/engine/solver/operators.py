"""Linear operators of a constraint problem whose matrices are dense arrays.

Every problem has an inertia with `times(x)` and rows with `times(x)` and `transpose_times(force)`, all differentiable.
The dense solvers also read the arrays below. Each array may come with `parts`: a PyTree of its factors, with methods
for the same products. Derivatives then go through the parts, not through the array, whose tangent is as large as the
array itself; without parts the array is differentiated.
"""

import dataclasses
from functools import partial
from typing import Any

import jax
from jax import lax

from jaxsim.core.layout import Layout
from jaxsim.core.rows import rows_times, rows_transpose_times
from jaxsim.math.arrays import dot
from jaxsim.math.jvp import matrix_times, product_by_parts
from jaxsim.math.safe import Array


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

    `friction` (ncontact, 5) makes facets of contact frames; `parts` of the contact rows has `times(layout, x)` and
    `transpose_times(layout, force)`.
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


# of (layout, rows (ncontact, condim, nv), parts, x): J x in contact frames (ncontact, condim) and J' f (nv,)
contact_times = product_by_parts(
    lambda layout, rows, x: dot(lax.collapse(rows, 0, 2), x).reshape(layout.ncontact, layout.condim),
    lambda layout, parts, x: parts.times(layout, x),
)
contact_transpose_times = product_by_parts(
    lambda layout, rows, force: dot(force.reshape(-1), lax.collapse(rows, 0, 2)),
    lambda layout, parts, force: parts.transpose_times(layout, force),
)
