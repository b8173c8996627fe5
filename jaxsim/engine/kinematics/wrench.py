"""Forces at points of bodies as joint-space forces."""

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.engine.structure import tables
from jaxsim.math.arrays import add_at, inner, take
from jaxsim.math.safe import Array
from jaxsim.math.spatial import join, shift_force
from jaxsim.math.tree import dof_subtree_sum


def apply_wrench(m: Model, d: Data, force: Array, torque: Array, point: Array, body: np.ndarray | None = None) -> Array:
    """Compute the joint-space force (nv,) of global forces at points of bodies, all (k, 3).

    One per body without `body`.
    """
    at = np.arange(m.nbody) if body is None else body
    about = shift_force(join(torque, force), point - take(d.subtree_com, m.body_rootid[at]))
    if body is not None:
        about = add_at(body, about, m.nbody)
    return inner(d.cdof, dof_subtree_sum(tables.tree(m), about))
