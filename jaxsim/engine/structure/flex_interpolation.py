"""Lattices of nodes: polynomials of one and three variables, and the weights of a vertex in the nodes of its cell."""

import itertools

import numpy as np

from jaxsim.core.flex_lattice import steps
from jaxsim.core.model import Model
from jaxsim.engine.structure.flex_tables import Lattice
from jaxsim.math.arrays import take
from jaxsim.math.safe import Array, components, xp_of


def polynomials(s: Array, order: int) -> list[Array]:
    """Evaluate the basis polynomials of the interval from 0 to 1 at s: one for each of its order + 1 nodes."""
    return [1 - s, s] if order == 1 else [2 * s * s - 3 * s + 1, 4 * (s - s * s), 2 * s * s - s]


def slopes(s: Array, order: int) -> list[Array]:
    """Evaluate the derivatives of `polynomials`."""
    one = s * 0 + 1
    return [-one, one] if order == 1 else [4 * s - 3, 4 * (1 - 2 * s), 4 * s - 1]


def vertex_nodes(m: Model, lattice: Lattice) -> tuple[Array, Array]:
    """Return the nodes (n, k) that carry each vertex of `lattice`, and their weights (n, k), which sum to one.

    The nodes are static where every flex has one cell; otherwise they follow from `flex_vert0`.
    """
    coordinate = take(m.flex_vert0, lattice.vertex)
    xp = xp_of(coordinate)
    scaled = coordinate * lattice.cells.astype(coordinate.dtype)
    cell = np.zeros(lattice.cells.shape, np.int32)
    if not lattice.single:
        cell = xp.clip(xp.floor(scaled), 0, lattice.cells - 1).astype(np.int32)
    local = xp.clip(scaled - cell, 0, 1)
    values = [polynomials(s, lattice.order) for s in components(local, -1)]
    weights = [x * y * z for x, y, z in itertools.product(*values)]
    size = lattice.cells * lattice.order + 1
    index = cell[:, None] * lattice.order + steps(lattice.order).astype(np.int32)
    strides = np.stack([size[:, 1] * size[:, 2], size[:, 2], np.ones(len(size), int)], axis=1).astype(np.int32)
    node = (index * strides[:, None]).sum(-1) + lattice.first[:, None].astype(np.int32)
    return node, xp.stack(weights, axis=-1)
