"""Derivatives of products with dense contact rows, by the bodies that the rows come from.

The derivative of the rows (ncontact, condim, nv) in one direction is as large as the rows, and every product asks for
no more than its own with a vector. So J x and J' f are differentiated as what they are, the velocity that x gives to
the two bodies of each contact and the force of wrenches on them; the derivative of the stored rows is not asked for,
unless they come without a source, in a problem made by hand.
"""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.core.layout import Layout
from jaxsim.engine import tables
from jaxsim.math.arrays import dot, gather, inner, take
from jaxsim.math.jvp import sourced_product
from jaxsim.math.safe import Array, short_sum
from jaxsim.math.spatial import join, shift_force, shift_motion
from jaxsim.math.tree import dof_path_sum, dof_subtree_sum


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["frame", "pos", "used", "body", "cdof", "subtree_com"],
    meta_fields=["structure"],
)
@dataclasses.dataclass(frozen=True)
class Source:
    """What the contact rows are functions of: poses of contacts, which rows are `used`, bodies, and axes of dofs."""

    frame: Array  # (ncontact, 9)
    pos: Array
    used: Array  # (ncontact, condim)
    body: Array  # (ncontact, 2)
    cdof: Array
    subtree_com: Array
    structure: Any


def _arms(s: Source) -> tuple[Array, Array]:
    """From one common point, the centre of mass of the world, to the contacts and from the trees' own to it."""
    point = s.subtree_com[0]
    return s.pos - point, point - take(s.subtree_com, s.structure.body_rootid)


def _times_by_bodies(layout: Layout, s: Source, x: Array) -> Array:
    arm, shift = _arms(s)
    velocity = shift_motion(dof_path_sum(tables.tree(s.structure), s.cdof * x[:, None]), shift)
    both = gather(velocity, s.body)
    apart = shift_motion(both[:, 1] - both[:, 0], arm)
    rows = s.frame.reshape(-1, 3, 3)
    out = short_sum(rows[:, : layout.condim] * apart[:, None, 3:])
    if layout.condim > 3:
        out = jnp.concatenate([out, short_sum(rows[:, : layout.condim - 3] * apart[:, None, :3])], axis=1)
    return jnp.where(s.used, out, 0)


def _transpose_by_bodies(layout: Layout, s: Source, force: Array) -> Array:
    arm, shift = _arms(s)
    force = jnp.where(s.used, force, 0)
    rows = s.frame.reshape(-1, 3, 3)
    push = short_sum(rows[:, : force.shape[1]] * force[:, :3, None], 1)
    spin = jnp.zeros_like(push)
    if force.shape[1] > 3:
        spin = short_sum(rows[:, : force.shape[1] - 3] * force[:, 3:, None], 1)
    wrench = shift_force(join(spin, push), arm)
    sides, bodies = jnp.concatenate([-wrench, wrench]), s.body.T.reshape(-1)
    total = shift_force(jax.ops.segment_sum(sides, bodies, s.structure.nbody), shift)
    return inner(s.cdof, dof_subtree_sum(tables.tree(s.structure), total))


def _times(layout: Layout, rows: Array, x: Array) -> Array:
    return dot(rows.reshape(-1, layout.nv), x).reshape(layout.ncontact, layout.condim)


def _transpose_times(layout: Layout, rows: Array, force: Array) -> Array:
    return dot(force.reshape(-1), rows.reshape(-1, layout.nv))


# of (layout, rows (ncontact, condim, nv), source, x): J x in contact frames (ncontact, condim) for x (nv,), and
# J' f (nv,) for forces in contact frames
times = sourced_product(_times, _times_by_bodies)
transpose_times = sourced_product(_transpose_times, _transpose_by_bodies)
