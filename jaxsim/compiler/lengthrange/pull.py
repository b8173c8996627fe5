"""Simulation of actuators pulled both ways, in NumPy: smooth dynamics with limits and joint couplings.

Each motion (an actuator and a direction) is an entry of the first axis, and a step is some hundred operations on all
motions. The package's docstring explains why the dynamics are implemented here again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jax import Array

from jaxsim.compiler.lengthrange.limits import constrained_acceleration, make_constraint_rows
from jaxsim.compiler.lengthrange.wrapping import lengths_and_jacobian, make_length_terms, wrapped_geoms
from jaxsim.core.model import Model
from jaxsim.core.types import MAXVAL, MINVAL, EnableBit, EqType, IntegratorType, JointType, TrnType
from jaxsim.engine.structure import tables
from jaxsim.engine.structure.damping import joint_actuator_sum
from jaxsim.math.rotation import cross, quat_mul, quat_normalize, quat_to_mat, rotvec_to_quat
from jaxsim.math.tree import pointer_jumps

_SCALAR = (JointType.HINGE, JointType.SLIDE)
_AXES = np.arange(3)


def can_pull(m: Model, ids: list[int]) -> bool:
    """Return whether `pull` supports the model.

    It supports actuators of scalar joints and tendons, limits and couplings of joints.
    """
    scalar = np.isin(m.jnt_type, _SCALAR)
    by_joint = np.isin(m.actuator_trntype[ids], (TrnType.JOINT, TrnType.JOINTINPARENT))
    joint = np.where(by_joint, m.actuator_trnid[ids, 0], -1)
    return bool(
        not (m.jnt_limited & ~scalar).any()
        and np.where(by_joint, np.append(scalar, False)[joint], m.actuator_trntype[ids] == TrnType.TENDON).all()
        and (m.eq_type == EqType.JOINT).all()
        and m.opt.integrator in (IntegratorType.EULER, IntegratorType.RK4)
        and not m.opt.enableflags & EnableBit.SLEEP
        and not (m.nflex or m.tendon_armature.any() or (m.tendon_actuatorid != -1).any())
    )


class MovingLinks(NamedTuple):
    """Moving frames (link 0 is the world, link j + 1 follows joint j) and the objects fixed in them.

    Attributes:
        jumps: ancestors of all links for each round of pointer jumping.
        joint_terms: (4, njnt, 4, 4) transformation of each joint's frame in the frame before it, as a sum of four
            matrices times 1, the sine, one less the cosine, and the displacement.
        mask: (nlinks, nv) 1 where the dof moves the link.
        axis: (nv, 3) direction of each dof, fixed in its link, or in the world for translations of a free joint.
        rotates, in_world: (nv,) whether the dof is a rotation, and whether its axis is fixed in the world.
        points: (k, 4) homogeneous positions of joint anchors, centres of mass, sites and wrapping geoms, in the links
            `point_link`.
        mats: (ngeoms, 3, 3) orientations of the wrapping geoms, in the links `mat_link`.
    """

    jumps: tuple[np.ndarray, ...]
    joint_terms: np.ndarray
    mask: np.ndarray
    axis: np.ndarray
    rotates: np.ndarray
    in_world: np.ndarray
    points: np.ndarray
    point_link: np.ndarray
    mats: np.ndarray
    mat_link: np.ndarray


class BodyInertias(NamedTuple):
    """Inertias of the k moving bodies.

    Attributes:
        link: (k,) link of each body. mats: (k, 3, 3) orientation of its inertial frame in the link.
        weights: (k * 6,) mass, three times, and diagonal inertia: factors of linear and angular velocity.
        mask: (k * 6, nv) 1 where the dof moves the body. armature: (nv, nv) diagonal matrix that joints add.
    """

    link: np.ndarray
    mats: np.ndarray
    weights: np.ndarray
    mask: np.ndarray
    armature: np.ndarray


class LinkPoses(NamedTuple):
    """Global frames of links (n, nlinks, 4, 4), points (n, k, 3), dof axes (n, nv, 6), geoms' matrices (n, g, 3, 3).

    An axis is the motion about the world's origin due to a unit velocity of the dof, angular part first.
    """

    frames: np.ndarray
    points: np.ndarray
    axes: np.ndarray
    mats: np.ndarray


def pull(m: Model, ids: list[int], steps: int, dt: float, options: dict) -> tuple[np.ndarray, np.ndarray]:
    """Simulate actuators pulled to both ends; return lengths (k, 2, steps), and the mask of diverged motions (k, 2).

    The ends are the shorter, then the longer one. `m` is a host model for which `can_pull` holds, with the time step
    and the flags of the search.
    """
    motors = np.repeat(ids, 2)
    n, limited = len(motors), np.flatnonzero(m.tendon_limited)
    links, inertias = _make_links(m)
    terms = make_length_terms(
        m, motors, limited, links.mask, links.point_link, len(links.points) - m.nsite - len(links.mats)
    )
    rows = make_constraint_rows(m, limited)
    by_dof = m.jnt_qposadr[m.dof_jntid]
    accel = np.tile([-1.0, 1.0], len(ids))[:, None] * options["accel"]
    slow = np.exp(-dt / max(0.01, options["timeconst"]))
    q, v = np.tile(m.qpos0, (n, 1)), np.zeros((n, m.nv))
    lengths, diverged = np.empty((steps, n)), np.zeros(n, bool)
    for step in range(steps):
        v = v * slow
        poses = _link_poses(m, links, q)
        mass, bias = _dynamics(m, links, inertias, poses, v)
        length, jac = lengths_and_jacobian(terms, q[:, by_dof], poses.axes, poses.points, poses.mats)
        moment = jac[:n]
        response, slowing = np.moveaxis(np.linalg.solve(mass, np.stack([moment, bias], axis=-1)), -1, 0)
        share = accel / np.maximum(MINVAL, _norm(response))
        if options["maxforce"] > 0:
            share = share * np.minimum(1, options["maxforce"] / np.maximum(MINVAL, _norm(share * moment)))
        free = share * response - slowing
        a = constrained_acceleration(
            rows, mass, free, q[:, by_dof], v, length[n:].reshape(n, -1), jac[n:].reshape(n, -1, m.nv)
        )
        lengths[step] = length[:n]
        v = v + dt * a
        q = _integrate(m, q, dt * v)
        diverged |= ~(np.abs(np.concatenate([q, v, a], axis=1)).max(axis=1) <= MAXVAL)
        if diverged.any():
            q, v = np.where(diverged[:, None], m.qpos0, q), np.where(diverged[:, None], 0, v)
    return lengths.T.reshape(len(ids), 2, steps), diverged.reshape(-1, 2)


def _norm(x: np.ndarray) -> np.ndarray:
    return np.sqrt((x * x).sum(-1, keepdims=True))


def _pose(pos: Array | np.ndarray, quat: Array | np.ndarray) -> np.ndarray:
    """Return homogeneous transformations (..., 4, 4)."""
    out = np.zeros((*pos.shape[:-1], 4, 4))
    out[..., :3, :3], out[..., :3, 3], out[..., 3, 3] = quat_to_mat(quat), pos, 1
    return out


def _make_links(m: Model) -> tuple[MovingLinks, BodyInertias]:
    """Return the links of a model, and the inertias of the bodies in them."""
    link, parent = np.zeros(m.nbody, int), np.zeros(m.njnt + 1, int)
    poses, fixed = _pose(m.body_pos, m.body_quat), np.tile(np.eye(4), (m.njnt, 1, 1))
    for b in range(1, m.nbody):
        link[b], poses[b] = link[m.body_parentid[b]], poses[m.body_parentid[b]] @ poses[b]
        for j in range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b]):
            parent[j + 1], fixed[j] = link[b], poses[b]
            link[b], poses[b] = j + 1, np.eye(4)
    mask = np.zeros((m.njnt + 1, m.nv))
    for j in range(m.njnt):
        mask[j + 1] = mask[parent[j + 1]] + (m.dof_jntid == j)
    kind, first = m.jnt_type[m.dof_jntid], np.arange(m.nv) - m.jnt_dofadr[m.dof_jntid]
    in_world = tables.in_world(m)
    moving, geoms = np.flatnonzero(link > 0), wrapped_geoms(m)
    anchor, identity = np.zeros((m.njnt, 4, 4)), np.arange(m.njnt) + 1
    anchor[:, :3, 3], anchor[:, 3, 3] = m.jnt_pos, 1
    inertial = poses[moving] @ _pose(m.body_ipos, m.body_iquat)[moving]
    site = poses[m.site_bodyid] @ _pose(m.site_pos, m.site_quat)
    geom = poses[m.geom_bodyid[geoms]] @ _pose(m.geom_pos, m.geom_quat)[geoms]
    weights = np.concatenate([np.repeat(m.body_mass[moving, None], 3, axis=1), m.body_inertia[moving]], axis=1)
    lent = joint_actuator_sum(m, m.actuator_armature)
    armature = m.dof_armature if lent is None else m.dof_armature + lent[m.dof_jntid]
    return MovingLinks(
        jumps=pointer_jumps(parent),
        joint_terms=_joint_terms(m, fixed),
        mask=mask,
        axis=np.where(np.isin(kind, _SCALAR)[:, None], m.jnt_axis[m.dof_jntid], np.eye(3)[first % 3]),
        rotates=(kind != JointType.SLIDE) & ~in_world,
        in_world=in_world,
        points=np.concatenate([anchor, inertial, site, geom])[..., 3],
        point_link=np.concatenate([identity, link[moving], link[m.site_bodyid], link[m.geom_bodyid[geoms]]]),
        mats=geom[:, :3, :3],
        mat_link=link[m.geom_bodyid[geoms]],
    ), BodyInertias(
        link=link[moving],
        mats=inertial[:, :3, :3],
        weights=weights.reshape(-1),
        mask=np.repeat(mask[link[moving]], 6, axis=0),
        armature=np.diag(armature),
    )


def _joint_terms(m: Model, fixed: np.ndarray) -> np.ndarray:
    """Return `MovingLinks.joint_terms`, given the frames (njnt, 4, 4) before the joints in the links before them."""
    skew = np.cross(m.jnt_axis[:, None, :], np.eye(3)).swapaxes(1, 2)
    sine, cosine, shift = np.zeros((3, m.njnt, 4, 4))
    for part, turn in ((sine, skew), (cosine, skew @ skew)):
        part[:, :3, :3] = turn
        part[:, :3, 3] = -(turn @ m.jnt_pos[:, :, None])[..., 0]
    shift[:, :3, 3] = m.jnt_axis
    return np.stack([fixed, fixed @ sine, fixed @ cosine, fixed @ shift])


def _link_poses(m: Model, links: MovingLinks, q: np.ndarray) -> LinkPoses:
    """Compute the global poses of links, points, dof axes and geoms at positions q (n, nq)."""
    hinge, slide = m.jnt_type == JointType.HINGE, m.jnt_type == JointType.SLIDE
    move = q[:, m.jnt_qposadr] - m.qpos0[m.jnt_qposadr]
    turn, shift = np.where(hinge, move, 0), np.where(slide, move, 0)
    half = np.sin(0.5 * turn)
    factors = (x[..., None, None] for x in (np.sin(turn), 2 * half * half, shift))
    frames = np.empty((len(q), m.njnt + 1, 4, 4))
    frames[:, 0] = np.eye(4)
    frames[:, 1:] = links.joint_terms[0] + sum(x * part for x, part in zip(factors, links.joint_terms[1:], strict=True))
    for kind, offset in ((JointType.BALL, 0), (JointType.FREE, 3)):
        joint = np.flatnonzero(m.jnt_type == kind)
        if len(joint):
            quat = quat_normalize(q[:, tables.joint_quat(m)[joint]])
            if offset:
                frames[:, joint + 1] = _pose(q[:, m.jnt_qposadr[joint][:, None] + _AXES], quat)
            else:
                pos = m.jnt_pos[joint]
                frames[:, joint + 1] @= _pose(pos - (quat_to_mat(quat) @ pos[:, :, None])[..., 0], quat)
    for ancestor in links.jumps:
        frames = frames[:, ancestor] @ frames
    points = (frames[:, links.point_link, :3] @ links.points[:, :, None])[..., 0]
    axis = (frames[:, m.dof_jntid + 1, :3, :3] @ links.axis[:, :, None])[..., 0]
    axis = np.where(links.in_world[:, None], links.axis, axis)
    angular = np.where(links.rotates[:, None], axis, 0)
    linear = np.where(links.rotates[:, None], cross(points[:, m.dof_jntid], axis), axis)
    mats = frames[:, links.mat_link, :3, :3] @ links.mats
    return LinkPoses(frames, points, np.concatenate([angular, linear], axis=-1), mats)


def _integrate(m: Model, q: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Compute positions (n, nq) after a displacement (n, nv) in the tangent space."""
    if m.nq == m.nv:  # no quaternions
        return q + change
    q, joints = q.copy(), tables.joint_coordinates(m)
    q[:, joints.linear_qpos] += change[:, joints.linear_dof]
    q[:, joints.quat] = quat_mul(quat_normalize(q[:, joints.quat]), rotvec_to_quat(change[:, joints.omega]))
    return q


def _dynamics(
    m: Model, links: MovingLinks, inertias: BodyInertias, poses: LinkPoses, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the inertia matrices (n, nv, nv) and bias forces (n, nv), from the 6D velocities of the moving bodies."""
    n, k = len(v), len(inertias.link)
    # Maps a motion about the world's origin to a body's linear velocity at its centre of mass and to its angular
    # velocity in its inertial frame.
    x, y, z = np.moveaxis(poses.points[:, m.njnt : m.njnt + k], -1, 0)
    change = np.zeros((n, k, 6, 6))
    change[..., 0, 1], change[..., 0, 2], change[..., 1, 2] = z, -y, x
    change[..., 1, 0], change[..., 2, 0], change[..., 2, 1] = -z, y, -x
    change[..., _AXES, _AXES + 3] = 1
    change[..., 3:, :3] = (poses.frames[:, inertias.link, :3, :3] @ inertias.mats).swapaxes(-1, -2)
    jac = (change.reshape(n, k * 6, 6) @ poses.axes.swapaxes(1, 2)) * inertias.mask
    weighted = (jac * inertias.weights[:, None]).swapaxes(1, 2)
    mass = weighted @ jac + inertias.armature
    motion = poses.axes * v[..., None]
    velocity = links.mask @ motion
    # An axis moves with its link. Summed over the three axes of a ball, that equals moving with the link before it.
    spin, speed = np.split(velocity[:, m.dof_jntid + 1], 2, axis=-1)
    axis, arm = np.split(poses.axes, 2, axis=-1)
    rate = np.concatenate([cross(spin, axis), cross(spin, arm) + cross(speed, axis)], axis=-1)
    rate[:, links.in_world] = 0
    drift = ((links.mask @ (rate * v[..., None]))[:, inertias.link, None] * change).sum(-1)
    speed, weights = (jac @ v[..., None]).reshape(n, k, 6), inertias.weights.reshape(k, 6)
    force = weights * drift
    force[..., :3] += weights[:, :3] * cross(velocity[:, inertias.link, :3], speed[..., :3])
    force[..., 3:] += cross(speed[..., 3:], weights[:, 3:] * speed[..., 3:])
    return mass, (force.reshape(n, 1, k * 6) @ jac)[:, 0]
