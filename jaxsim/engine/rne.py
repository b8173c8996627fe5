"""Recursive Newton-Euler: the bias force, and the accelerations and forces of bodies after the constraint solve."""

import numpy as np

from jaxsim.data import Data
from jaxsim.engine import tables
from jaxsim.math.arrays import inner
from jaxsim.math.safe import Array, xp_of
from jaxsim.math.spatial import cross_force, inertia_mul
from jaxsim.math.tree import dof_path_sum, dof_subtree_sum
from jaxsim.model import Model
from jaxsim.types import DisableBit


def body_forces(m: Model, d: Data, qacc: Array | None) -> tuple[Array, Array]:
    """Accelerations (nbody, 6), gravity included, and the forces that they take, about the trees' centres of mass."""
    xp = xp_of(d.cdof, d.qvel)
    rate = d.cdof_dot * d.qvel[:, None]
    if qacc is not None:
        rate = rate + d.cdof * qacc[:, None]
    acceleration = dof_path_sum(tables.tree(m), rate)
    if not m.opt.disableflags & DisableBit.GRAVITY:
        acceleration = acceleration - xp.concatenate([np.zeros(3, rate.dtype), m.opt.gravity])
    force = inertia_mul(d.cinert, acceleration) + cross_force(d.cvel, inertia_mul(d.cinert, d.cvel))
    return acceleration, force


def rne(m: Model, d: Data, qacc: Array | None = None) -> Array:
    """The joint-space force M qacc + qfrc_bias, (nv,); without `qacc` the bias force alone."""
    _, force = body_forces(m, d, qacc)
    return inner(d.cdof, dof_subtree_sum(tables.tree(m), force))
