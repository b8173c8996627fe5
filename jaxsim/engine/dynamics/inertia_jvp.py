"""Derivatives of products with the inertia matrix, by the bodies.

The tangent of M has as many entries as M, while a derivative needs only its product with a vector. So M x is
differentiated as the force of the bodies at the acceleration x.
"""

import dataclasses
from functools import partial
from typing import Any

import jax
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.engine.dynamics.force_matrices import Place, force_at, place_of
from jaxsim.engine.structure.damping import joint_actuator_sum
from jaxsim.math.arrays import take
from jaxsim.math.safe import Array


@partial(
    jax.tree_util.register_dataclass, data_fields=["cdof", "cinert", "diagonal", "place"], meta_fields=["structure"]
)
@dataclasses.dataclass(frozen=True)
class InertiaParts:
    """Arguments of M: axes of dofs, inertias of bodies, and additions to its diagonal."""

    cdof: Array  # (nv, 6)
    cinert: Array  # (nbody, 10)
    diagonal: Array  # (nv,)
    place: Place | None  # from which axes and inertias follow
    structure: Any

    def times(self, x: Array) -> Array:
        """Compute M x for x (nv,): the joint-space forces of the bodies at this acceleration."""
        return force_at(self.structure, self.place, self.cdof, self.cinert, x) + self.diagonal * x


def dof_armature(m: Model) -> Array:
    """Compute the armature of dofs (nv,) with that of actuators."""
    from_actuators = joint_actuator_sum(m, m.actuator_armature)
    return m.dof_armature if from_actuators is None else m.dof_armature + take(from_actuators, m.dof_jntid)


@per_structure
def _follows_bodies(m) -> bool:
    """Return whether M has all entries due to bodies, and none from tendons that only some state or option adds."""
    count = np.zeros(m.nv, int)
    for i in range(m.nv):
        count[i] = 1 + (count[m.dof_parentid[i]] if m.dof_parentid[i] >= 0 else 0)
    return m.ntendon == 0 and np.array_equal(count, m.M_rownnz)


def inertia_parts(m: Model, d: Data, added: Array | float = 0.0) -> InertiaParts | None:
    """Return the arguments of M plus `added` on its diagonal; None unless M follows from bodies and armature alone.

    Tendons may have armature, and M of simple bodies lacks entries that a moved inertial frame would give.
    """
    if not _follows_bodies(m):
        return None
    return InertiaParts(d.cdof, d.cinert, dof_armature(m) + added, place_of(m, d), m.structure)
