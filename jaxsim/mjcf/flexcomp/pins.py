"""Pins of a flexcomp: its points, or nodes, that are fixed in the body around it."""

from __future__ import annotations

import numpy as np

from jaxsim.mjcf.flexcomp.grids import FlexShape, lattice
from jaxsim.mjcf.spec import Element


def pinned_points(element: Element, a: dict, shape: FlexShape, nnode: int) -> np.ndarray:
    """Return the mask of pinned points or nodes, with the length of the larger number, since pins can name both."""
    n, dim, nodal = len(shape.points), shape.dim, nnode > 0
    pinned = np.zeros(max(n, nnode), bool)
    ids, ranges = _numbers(element, "id"), _numbers(element, "range")
    grids, blocks = _numbers(element, "grid"), _numbers(element, "gridrange")
    for name, values, size in (("range", ranges, 2), ("grid", grids, dim), ("gridrange", blocks, 2 * dim)):
        if len(values) % size:
            raise element.error(f"the pins' {name} needs a multiple of {size} numbers")
    if len(grids) or len(blocks):
        if a["type"] != "grid" and not nodal:
            raise element.error("grid and gridrange pin points of grids and nodes only")
        if dim == 1:
            raise element.error("grid and gridrange pin points of dimension 2 or 3 only")
    if any(not 0 <= i < n for i in (*ids, *ranges)):
        raise element.error(f"a pin names a point that does not exist; there are {n}")
    pinned[ids] = True
    for first, last in ranges.reshape(-1, 2):
        pinned[first : last + 1] = True
    count = a["count"]
    places = {"trilinear": 2, "quadratic": 3}.get(a["dof"]) if a["type"] != "grid" else None
    _check(element, grids.reshape(-1, dim), count[:dim] if places is None else np.full(dim, places))
    _check(element, blocks.reshape(-1, dim), count[:dim])
    chosen = list(grids.reshape(-1, dim))
    for block in blocks.reshape(-1, 2 * dim):
        chosen += list(block[:dim] + lattice(np.maximum(block[dim:] - block[:dim] + 1, 0)))
    if chosen:
        step = np.array([count[1], 1]) if dim == 2 else np.array([count[1] * count[2], count[2], 1])
        index = np.array(chosen) @ step  # numbered by `count` for nodes too: some match no node
        pinned[index[index < len(pinned)]] = True
    return pinned


def _numbers(element: Element, name: str) -> np.ndarray:
    """Return the values of an attribute of all pins, concatenated."""
    values = [child.attrs[name] for child in element.children if child.tag == "pin" and name in child.attrs]
    return np.concatenate([np.zeros(0, int), *values]).astype(int)


def _check(element: Element, points: np.ndarray, count: np.ndarray) -> None:
    if np.any(points < 0) or np.any(points >= count):
        raise element.error("a pin lies outside of the grid")
