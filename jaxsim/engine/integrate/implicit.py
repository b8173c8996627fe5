"""Integrators `implicit` and `implicitfast`: implicit in velocity."""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.data import Data
from jaxsim.core.flags import disabled, enabled
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure, structure_of
from jaxsim.core.types import DisableBit, EnableBit, GainType, IntegratorType
from jaxsim.engine.actuation import laws
from jaxsim.engine.dynamics.factor import solve_once
from jaxsim.engine.dynamics.inertia import mul_sparse, solve_positive
from jaxsim.engine.dynamics.inertia_jvp import InertiaParts, inertia_parts
from jaxsim.engine.flex.implicit import edge_damping_vel, stiff_lattices
from jaxsim.engine.flex.lattice import lattice_cells
from jaxsim.engine.integrate.derivative import bias_vel, fluid_vel, smooth_vel
from jaxsim.engine.integrate.explicit import advance
from jaxsim.engine.integrate.free_body import midpoint
from jaxsim.engine.structure import tables
from jaxsim.interface.public import public
from jaxsim.math.arrays import take, take_or_zero
from jaxsim.math.jvp import matrix_times
from jaxsim.math.safe import Array
from jaxsim.native import linalg


@public
def implicit(m: Model, d: Data) -> Data:
    """Advance with accelerations at the end of the step.

    `implicitfast` leaves out the derivative of the bias forces and keeps the matrix symmetric; it rotates free bodies
    without contacts or other constraints by the implicit midpoint rule.
    """
    if not m.nv:
        return advance(m, d, d.act_dot, d.qacc)
    force = d.qfrc_smooth + d.qfrc_constraint
    if m.opt.integrator == IntegratorType.IMPLICIT:
        return advance(m, d, d.act_dot, _solve_full(m, d, force))
    qacc = _solve_symmetric(m, d, force)
    if enabled(m, EnableBit.INVDISCRETE):
        return advance(m, d, d.act_dot, qacc)
    return midpoint(m, d, force, qacc)


def symmetric_matrix(m: Model, d: Data) -> Array:
    """Compute M - h * (symmetric part of the derivative of the smooth forces, without bias), in the form of `d.M`."""
    return d.M + _added_to_inertia(m, d)


def _added_to_inertia(m: Model, d: Data) -> Array:
    row, col = tables.inertia_pattern(m)
    both = fluid_vel(m, d, np.concatenate([row, col]), np.concatenate([col, row])).reshape(2, -1)
    return -m.opt.timestep * (smooth_vel(m, d) + 0.5 * both.sum(0))


def _solve_symmetric(m: Model, d: Data, force: Array) -> Array:
    added = _added_to_inertia(m, d)
    qacc = _solve_trees(m, d, added, force)
    return stiff_lattices(m, d, d.M + added, force, qacc, lower=True) if lattice_cells(m) else qacc


@partial(jax.tree_util.register_dataclass, data_fields=["inertia", "added"], meta_fields=["structure"])
@dataclasses.dataclass(frozen=True)
class _Parts:
    """Parts of a matrix: those of M, and what is added to it, in the form of `d.M`."""

    inertia: InertiaParts
    added: Array
    structure: Any

    def times(self, x: Array) -> Array:
        """Compute the product of the matrix with x (nv,)."""
        return self.inertia.times(x) + mul_sparse(self.structure, self.added, x)


def _solve_trees(m: Model, d: Data, added: Array, force: Array) -> Array:
    matrix = d.M + added
    if m.opt.fluid:  # lift can act along a motion, so that the matrix may be indefinite
        return _solve_blocks(m, _blocks(m, matrix), force)
    inertia = inertia_parts(m, d)
    parts = inertia and _Parts(inertia, added, m.structure)
    if not _may_push(m):
        return solve_positive(m, matrix, force, parts)
    fixed = lax.stop_gradient(matrix)
    solve = lambda _, x: _solve_any(m, fixed, x)  # noqa: E731
    multiply = partial(mul_sparse, structure_of(m))
    return lax.custom_linear_solve(lambda x: matrix_times(multiply, matrix, parts, x), force, solve, symmetric=True)


def _may_push(m: Model) -> bool:
    """Return whether some actuator's force can grow with its velocity, so that the matrix may be indefinite."""
    by_law = laws.of_velocity(laws.GAINS, m.actuator_gaintype) or laws.of_velocity(laws.BIASES, m.actuator_biastype)
    return bool(by_law or (m.actuator_gaintype == GainType.DCMOTOR).any())


def _solve_any(m: Model, matrix: Array, force: Array) -> Array:
    """Solve with the factor of `matrix`, or by elimination where it has none; on a GPU or TPU always by elimination.

    On a CPU this is a loop that most worlds do not enter; elsewhere the loop's condition would be read by the host.
    """
    eliminated = lambda matrix, force: _solve_blocks(m, _blocks(m, matrix), force)  # noqa: E731
    by_loop = partial(_solve_or_eliminate, m)
    return lax.platform_dependent(matrix, force, cuda=eliminated, tpu=eliminated, default=by_loop)


def _solve_or_eliminate(m: Model, matrix: Array, force: Array) -> Array:
    x = solve_once(m, matrix, force)

    def by_elimination(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        # XLA hoists loop invariants and would always compute them: so the matrix is a loop variable
        _, matrix, _ = state
        return _solve_blocks(m, _blocks(m, matrix), force), jnp.zeros_like(matrix), jnp.array(False)

    return lax.while_loop(lambda state: state[2], by_elimination, (x, matrix, ~jnp.all(jnp.isfinite(x))))[0]


def _blocks(m: Model, matrix: Array) -> list[Array]:
    return [take_or_zero(matrix, block.full) for block in tables.inertia_blocks(m)]


@per_structure
def _derivative_blocks(m) -> tuple[np.ndarray, ...]:
    """Return the addresses of the entries of each of `tables.inertia_blocks` in the pattern `D_*`, -1 for none.

    The pattern has more entries than that of M: a "simple" body has a diagonal M, but its forces depend on all its
    velocities.
    """
    blocks = []
    for block in tables.inertia_blocks(m):
        address = np.full((*block.dofs.shape, block.dofs.shape[1]), -1)
        for t, i in np.ndindex(*block.dofs.shape):
            dof = block.dofs[t, i]
            entries = np.arange(m.D_rowadr[dof], m.D_rowadr[dof] + m.D_rownnz[dof])
            address[t, i, m.D_colind[entries] - block.dofs[t, 0]] = entries
        blocks.append(address)
    return tuple(blocks)


def full_blocks(m: Model, d: Data) -> list[Array]:
    """Compute M - h * (derivative of the smooth forces) by trees: (k, n, n) for each of `tables.inertia_blocks`."""
    row = np.repeat(np.arange(m.nv), m.D_rownnz)
    fluid = fluid_vel(m, d, row, m.D_colind)
    common = d.M - m.opt.timestep * smooth_vel(m, d)
    if m.nflexedge and not disabled(m, DisableBit.DAMPER):
        fluid = fluid + edge_damping_vel(m, d, lower=False)
    blocks = []
    for block, address, bias in zip(tables.inertia_blocks(m), _derivative_blocks(m), bias_vel(m, d), strict=True):
        derivative = take_or_zero(fluid, address) - bias
        blocks.append(take_or_zero(common, block.full) - m.opt.timestep * derivative)
    return blocks


def _solve_full(m: Model, d: Data, force: Array) -> Array:
    blocks = full_blocks(m, d)
    qacc = _solve_blocks(m, blocks, force)
    if not lattice_cells(m):
        return qacc
    entries = jnp.concatenate([x.reshape(-1) for x in blocks])
    return stiff_lattices(m, d, take(entries, _entries_in_blocks(m)), force, qacc, lower=False)


@per_structure
def _entries_in_blocks(m) -> np.ndarray:
    """Return the position of each entry of the pattern `D_*` among the concatenated entries of all blocks."""
    place, offset = np.zeros(m.nD, int), 0
    for address in _derivative_blocks(m):
        at = np.flatnonzero(address.reshape(-1) >= 0)
        place[address.reshape(-1)[at]] = offset + at
        offset += address.size
    return place


def _solve_blocks(m: Model, blocks: list[Array], force: Array) -> Array:
    parts = [
        linalg.solve(matrix, take(force, block.dofs)[..., None]).reshape(-1)
        for matrix, block in zip(blocks, tables.inertia_blocks(m), strict=True)
    ]
    return take(jnp.concatenate(parts), tables.dof_order(m))
