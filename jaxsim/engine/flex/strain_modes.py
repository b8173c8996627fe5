"""Rows of the equality `flexstrain`: the strain modes of the elements of a lattice of nodes."""

from typing import Any, NamedTuple

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.flex_lattice import lattice_elements
from jaxsim.core.model import Model
from jaxsim.engine.flex.kinematics import node_chains, node_jacobian, node_positions
from jaxsim.engine.flex.lattice import Cells, frames
from jaxsim.math.arrays import inner, matvec, matvec_t, take
from jaxsim.math.bins import make_bins, sum_into
from jaxsim.math.rotation import quat_to_mat
from jaxsim.math.safe import Array, xp_of


class StrainModes(NamedTuple):
    """Rows (n,) with their positions, their Jacobian at its columns (n, width), and the mean weight of the nodes."""

    pos: Array
    jac: Array
    weight: Array


def strain_modes(m: Model, d: Data, ids: np.ndarray, mode: np.ndarray, columns: np.ndarray | None) -> StrainModes:
    """Compute modes `mode` (n,) of the elements that the equalities `ids` (n,) name.

    Args:
        columns: (n, width) dofs at which a row holds values, padded with -1; None for all dofs.
    """
    interp = m.flex_interp[m.eq_obj1id[ids]]
    parts, order = [], []
    for kind in np.unique(interp).tolist():
        rows = np.flatnonzero(interp == kind)
        parts.append(_modes_of(m, d, ids[rows], mode[rows], None if columns is None else columns[rows]))
        order.append(rows)
    xp = xp_of(d.xpos, m.flex_stiffness)
    back = np.argsort(np.concatenate(order))
    return StrainModes(*(take(xp.concatenate(x), back) for x in zip(*parts, strict=True)))


def _elements(m: Any, equality: np.ndarray) -> Cells:
    """Return the elements of equalities whose flexes have the same interpolation."""
    flex, element = m.eq_obj1id[equality], m.eq_strain[equality, 0]
    known = {int(f): lattice_elements(m, int(f)) for f in np.unique(flex)}
    node = np.stack([known[f][0][e] for f, e in zip(flex.tolist(), element.tolist(), strict=True)])
    axes = np.stack([known[f][1][e] for f, e in zip(flex.tolist(), element.tolist(), strict=True)])
    interp = int(m.flex_interp[flex[0]])
    first = m.flex_stiffnessadr[flex]
    entry = first + 9 * node.shape[1] ** 2 * element
    return Cells(abs(interp), interp < 0, node, flex, axes, entry, first, make_bins(node.reshape(-1), m.nflexnode))


def _modes_of(m: Model, d: Data, ids: np.ndarray, mode: np.ndarray, columns: np.ndarray | None) -> StrainModes:
    equality, element = np.unique(ids, return_inverse=True)
    cells = _elements(m, equality)
    k = cells.node.shape[1]
    position = node_positions(m, d)
    at, rest = take(position, cells.node), take(m.flex_node0, cells.node)
    turned = quat_to_mat(frames(cells, at))[:, None]
    # modes are orthogonal to translations: centres are subtracted for precision in float32
    moved = matvec_t(turned, at - at.mean(1, keepdims=True)) - (rest - rest.mean(1, keepdims=True))
    entry = cells.entry[element] + 1 + 3 * k * mode
    shape = take(m.flex_stiffness, entry[:, None] + np.arange(3 * k)).reshape(-1, k, 3)
    pos = (shape * take(moved, element)).sum((1, 2))
    pull = matvec(take(turned, element), shape)
    chain = node_chains(m)[cells.node][element]  # (n, k, w)
    speed = take(node_jacobian(m, d, position), cells.node[element])
    terms = inner(pull[:, :, None], speed)
    width = m.nv if columns is None else columns.shape[1]
    index = _places(chain.reshape(len(ids), -1), columns, width)
    jac = sum_into(make_bins(index.reshape(-1), len(ids) * width), terms.reshape(-1)).reshape(len(ids), width)
    weight = take(m.body_invweight0[:, 0], m.flex_nodebodyid[cells.node]).mean(1)
    return StrainModes(pos, jac, take(weight, element))


def _places(chain: np.ndarray, columns: np.ndarray | None, width: int) -> np.ndarray:
    """Return the positions of dofs (n, k), padded with -1, among the columns of all rows, flat; -1 for none."""
    begin = width * np.arange(len(chain))[:, None]
    if columns is None:
        return np.where(chain >= 0, begin + chain, -1)
    place = np.full(chain.shape, -1)
    for column in range(width):
        here = (chain == columns[:, column : column + 1]) & (chain >= 0)
        place = np.where(here, begin + column, place)
    return place
