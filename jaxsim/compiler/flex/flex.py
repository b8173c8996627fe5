"""The compiler's data of one flex."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from jaxsim.compiler.asset.bvh import Bvh
from jaxsim.compiler.flex.topology import Topology


@dataclass
class Flex:
    """Data of one flex during compilation.

    Attributes:
        dim: dimension of its elements.
        order: degree of the interpolation from nodes, 0 without.
        cellcount: (3,) cells of the lattice of nodes.
        rigid: all vertices are fixed in one body. centered: all are at the centres of their bodies (nodes likewise).
        body, nodebody: ids of the bodies of vertices and nodes; of a rigid flex one for all.
        vert, vert0, xpos: (nvert, 3) vertices in their bodies, in the box of the flex (from 0 to 1), in the world.
        node, node0: (nnode, 3) nodes in their bodies, in the frame of the lattice.
        size: (3,) half sizes of the box of the flex.
        elem, topology: (nelem, dim + 1) vertices of the elements, and their connectivity.
        cells: (ncell, nodes of a cell) nodes of each cell of the lattice.
        texcoord, elemtexcoord: texture coordinates (n, 2) or None, and their indices by element, flat.
        stiffness, bending: elastic coefficients, flat. bvh: boxes of the elements.
    """

    dim: int
    order: int
    cellcount: np.ndarray
    elem: np.ndarray
    rigid: bool = False
    centered: bool = False
    body: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    nodebody: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    vert: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    vert0: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    xpos: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    node: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    node0: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    size: np.ndarray = field(default_factory=lambda: np.zeros(3))
    cells: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), int))
    texcoord: np.ndarray | None = None
    elemtexcoord: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    stiffness: np.ndarray = field(default_factory=lambda: np.zeros(0))
    bending: np.ndarray = field(default_factory=lambda: np.zeros(0))
    topology: Topology = field(init=False)
    bvh: Bvh = field(init=False)

    @property
    def interpolated(self) -> bool:
        """Whether the vertices follow nodes."""
        return len(self.nodebody) > 0

    @property
    def nvert(self) -> int:
        """Number of vertices."""
        return len(self.vert)
