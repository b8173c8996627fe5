"""Index tables derived from a model's structure, computed once for each structure and cached on it."""

from typing import Any, NamedTuple

import numpy as np

from jaxsim.core.structure import per_structure
from jaxsim.core.types import JointType
from jaxsim.math.tree import Tree, make_tree, pointer_jumps


@per_structure
def tree(m: Any) -> Tree:
    """Return the model's kinematic tree."""
    return make_tree(m.body_parentid, m.dof_bodyid, np.where(in_world(m), -1, m.dof_jntid))


class Nodes(NamedTuple):
    """The tree of frames: a node for every body, then one for every joint; `jumps` are the rounds of pointer jumping.

    `body` is the node of a body's own frame: its last joint's or its own; `joint` is the node before each joint, whose
    frame holds the joint's anchor and axis. `order` are the nodes below the world, parents first. `root` is the node
    below the world above each node, and `ancestor` the mask (n, n) of the nodes on its path, without the world;
    None for large models.
    """

    jumps: tuple[np.ndarray, ...]
    body: np.ndarray
    joint: np.ndarray
    order: np.ndarray
    root: np.ndarray
    ancestor: np.ndarray | None


DENSE_NODES = 128  # up to this many, sums over paths are products with a mask


@per_structure
def nodes(m: Any) -> Nodes:
    """Return the tree of frames.

    The joints of a body hang below its own node one after the other; a body hangs below its parent's last node.
    """
    joint = m.nbody + np.arange(m.njnt)
    last = np.where(m.body_jntnum > 0, m.nbody + m.body_jntadr + m.body_jntnum - 1, np.arange(m.nbody))
    parent = np.zeros(m.nbody + m.njnt, int)
    parent[: m.nbody] = last[m.body_parentid]
    first = m.body_jntadr[m.jnt_bodyid] == np.arange(m.njnt)
    parent[m.nbody :] = np.where(first, m.jnt_bodyid, joint - 1)
    root, above, depth = np.arange(len(parent)), parent, np.zeros(len(parent), int)
    while above.any():
        root, depth, above = np.where(above, above, root), depth + (above > 0), parent[above]
    order = np.argsort(depth, kind="stable")
    ancestor = None
    if len(parent) <= DENSE_NODES:
        ancestor = np.eye(len(parent), dtype=bool)
        for jump in pointer_jumps(parent):
            ancestor |= ancestor[jump]
        ancestor[:, 0] = False
    return Nodes(pointer_jumps(parent), last, parent[m.nbody :], order[order > 0], root, ancestor)


def quat_address(jnt_type: np.ndarray, jnt_qposadr: np.ndarray) -> np.ndarray:
    """Return the address in qpos of the quaternion of each joint, -1 for joints without one."""
    ball, free = jnt_type == JointType.BALL, jnt_type == JointType.FREE
    return np.where(ball, jnt_qposadr, np.where(free, jnt_qposadr + 3, -1))


@per_structure
def joint_quat(m: Any) -> np.ndarray:
    """Return the addresses in qpos (njnt, 4) of the quaternion of each joint; meaningless for hinges and slides."""
    return quat_address(m.jnt_type, m.jnt_qposadr)[:, None] + np.arange(4)


class JointCoordinates(NamedTuple):
    """Addresses of the coordinates of joints: ids of joints, and for each its addresses in qpos and its dofs.

    Hinges and slides have one number (ns,). Free joints (nf,) begin with a position, three numbers (nf, 3). Free and
    ball joints (nt,) have a unit quaternion (nt, 4) and an angular velocity (nt, 3).
    """

    scalar: np.ndarray
    scalar_qpos: np.ndarray
    scalar_dof: np.ndarray
    free: np.ndarray
    free_qpos: np.ndarray
    free_dof: np.ndarray
    turning: np.ndarray
    quat: np.ndarray
    omega: np.ndarray

    @property
    def linear_qpos(self) -> np.ndarray:
        """Addresses in qpos of all numbers outside quaternions: of hinges and slides, then of free joints."""
        return np.concatenate([self.scalar_qpos, self.free_qpos.reshape(-1)])

    @property
    def linear_dof(self) -> np.ndarray:
        """The dof of each entry of `linear_qpos`."""
        return np.concatenate([self.scalar_dof, self.free_dof.reshape(-1)])


@per_structure
def joint_coordinates(m: Any) -> JointCoordinates:
    """Return addresses of the coordinates of all joints, by kind."""
    three, qpos, dof = np.arange(3), m.jnt_qposadr, m.jnt_dofadr
    scalar = np.flatnonzero(np.isin(m.jnt_type, (JointType.HINGE, JointType.SLIDE)))
    free = np.flatnonzero(m.jnt_type == JointType.FREE)
    turning = np.flatnonzero(np.isin(m.jnt_type, (JointType.FREE, JointType.BALL)))
    lead = np.where(m.jnt_type[turning] == JointType.FREE, 3, 0)
    return JointCoordinates(
        *(scalar, qpos[scalar], dof[scalar]),
        *(free, qpos[free][:, None] + three, dof[free][:, None] + three),
        *(turning, joint_quat(m)[turning], (dof[turning] + lead)[:, None] + three),
    )


@per_structure
def in_world(m: Any) -> np.ndarray:
    """Return the mask of dofs (nv,) that are translations of free joints, along axes of the world."""
    joint = m.dof_jntid
    return (m.jnt_type[joint] == JointType.FREE) & (np.arange(m.nv) - m.jnt_dofadr[joint] < 3)


@per_structure
def mocap_bodies(m: Any) -> np.ndarray:
    """Return the mocap bodies, in the order of their mocap ids."""
    bodies = np.flatnonzero(m.body_mocapid >= 0)
    return bodies[np.argsort(m.body_mocapid[bodies])]


@per_structure
def inertia_pattern(m: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and column of each entry of the sparse, lower-triangular inertia matrix `d.M`."""
    return np.repeat(np.arange(m.nv), m.M_rownnz), np.asarray(m.M_colind)


class Block(NamedTuple):
    """Trees with the same number of dofs: their dofs (k, n), and addresses (k, n, n) of their inertia in `d.M`.

    An address is -1 where the matrix is zero. `lower` keeps only the lower triangle.
    """

    dofs: np.ndarray
    full: np.ndarray
    lower: np.ndarray


@per_structure
def inertia_blocks(m: Any) -> tuple[Block, ...]:
    """Return the block-diagonal form of the inertia matrix, one entry for each size of tree."""
    blocks = []
    row, col = inertia_pattern(m)
    tree = m.dof_treeid[row]
    for n in np.unique(m.tree_dofnum[m.tree_dofnum > 0]):
        start = m.tree_dofadr[m.tree_dofnum == n]
        dofs = start[:, None] + np.arange(n)
        lower = np.full((len(start), n, n), -1, np.int32)
        adr = np.flatnonzero(m.tree_dofnum[tree] == n)
        place = np.cumsum(m.tree_dofnum == n) - 1
        first = m.tree_dofadr[tree[adr]]
        lower[place[tree[adr]], row[adr] - first, col[adr] - first] = adr
        blocks.append(Block(dofs, np.maximum(lower, lower.transpose(0, 2, 1)), lower))
    return tuple(blocks)


@per_structure
def dof_order(m: Any) -> np.ndarray:
    """Return the position of each dof in the concatenated dofs of all `inertia_blocks`."""
    dofs = [b.dofs.reshape(-1) for b in inertia_blocks(m)]
    return np.argsort(np.concatenate(dofs)) if dofs else np.zeros(0, int)


@per_structure
def pattern_in_blocks(m: Any) -> np.ndarray:
    """Return the position of each entry of `d.M` in the flattened, concatenated `inertia_blocks`."""
    place, offset = np.zeros(m.nC, int), 0
    for block in inertia_blocks(m):
        flat = block.lower.reshape(-1)
        at = np.flatnonzero(flat >= 0)
        place[flat[at]] = offset + at
        offset += len(flat)
    return place


@per_structure
def diagonal(m: Any) -> np.ndarray:
    """Return the dof of each entry of `d.M` on the diagonal, else -1."""
    row, col = inertia_pattern(m)
    return np.where(row == col, row, -1)
