"""Stages `kinematics` and `camlight`: global frames of bodies, joints, geoms, sites, cameras and lights."""

import numpy as np

from jaxsim.data import Data
from jaxsim.engine import tables
from jaxsim.math.arrays import matvec, merge, take
from jaxsim.math.rotation import (
    axis_angle_to_quat,
    cross,
    quat_mul,
    quat_normalize,
    quat_rotate,
    quat_to_mat,
)
from jaxsim.math.safe import Array, normalize, xp_of
from jaxsim.model import Model
from jaxsim.types import CamLightType

IDENTITY = np.array([1.0, 0, 0, 0])


def kinematics(m: Model, d: Data) -> Data:
    """Forward kinematics: xpos, xquat, xmat, xipos, ximat, xanchor, xaxis and the frames of geoms and sites."""
    xp = xp_of(m.body_pos, d.qpos)
    pos, quat, anchor, axis = _local_frames(m, d)
    for hop in tables.tree(m).hops:
        parent_pos, parent_quat = take(pos, hop), take(quat, hop)
        pos, quat = parent_pos + quat_rotate(parent_quat, pos), quat_mul(parent_quat, quat)
    quat = quat_normalize(quat)
    mat = quat_to_mat(quat)
    parent = m.body_parentid[m.jnt_bodyid]
    parent_mat = take(mat, parent)
    anchor = take(pos, parent) + matvec(parent_mat, anchor)
    axis = matvec(parent_mat, axis)
    body = np.concatenate([np.arange(m.nbody), m.geom_bodyid, m.site_bodyid])
    local_pos = xp.concatenate([m.body_ipos, m.geom_pos, m.site_pos])
    local_quat = xp.concatenate([m.body_iquat, m.geom_quat, m.site_quat])
    xpos, xmat = to_global(pos, quat, mat, body, local_pos, local_quat)
    i, g = m.nbody, m.nbody + m.ngeom
    return d.replace(
        xpos=pos,
        xquat=quat,
        xmat=mat.reshape(-1, 9),
        xanchor=anchor,
        xaxis=axis,
        xipos=xpos[:i],
        ximat=xmat[:i],
        geom_xpos=xpos[i:g],
        geom_xmat=xmat[i:g],
        site_xpos=xpos[g:],
        site_xmat=xmat[g:],
    )


def to_global(
    pos: Array, quat: Array, mat: Array, body: np.ndarray, local_pos: Array, local_quat: Array
) -> tuple[Array, Array]:
    """Global position and flat rotation matrix of frames fixed in bodies."""
    xpos = take(pos, body) + matvec(take(mat, body), local_pos)
    return xpos, quat_to_mat(quat_mul(take(quat, body), local_quat)).reshape(-1, 9)


def _local_frames(m: Model, d: Data) -> tuple[Array, Array, Array, Array]:
    """Body frames in their parents' and, in the same frames, the anchors and axes of all joints."""
    xp = xp_of(m.body_pos, d.qpos)
    bodies = tables.mocap_bodies(m)
    pos = merge(m.body_pos, bodies, d.mocap_pos)
    quat = merge(m.body_quat, bodies, quat_normalize(d.mocap_quat)) if len(bodies) else m.body_quat
    ids, anchors, axes = [], [], []
    for slot in tables.joint_slots(m):
        new_pos, new_quat, anchor, axis = _apply_joints(m, d, slot, take(pos, slot.body), take(quat, slot.body))
        pos, quat = merge(pos, slot.body, new_pos), merge(quat, slot.body, new_quat)
        ids, anchors, axes = [*ids, slot.joint], [*anchors, anchor], [*axes, axis]
    free = tables.free_joints(m)
    if len(free):
        address = m.jnt_qposadr[free][:, None]
        body = m.jnt_bodyid[free]
        free_pos = take(d.qpos, address + np.arange(3))
        pos = merge(pos, body, free_pos)
        quat = merge(quat, body, quat_normalize(take(d.qpos, address + np.arange(3, 7))))
        ids, anchors, axes = [*ids, free], [*anchors, free_pos], [*axes, take(m.jnt_axis, free)]
    if not ids:
        return pos, quat, m.jnt_pos, m.jnt_axis
    order = np.argsort(np.concatenate(ids))
    return pos, quat, take(xp.concatenate(anchors), order), take(xp.concatenate(axes), order)


def _apply_joints(m: Model, d: Data, slot: tables.Slot, pos: Array, quat: Array) -> tuple[Array, Array, Array, Array]:
    """Move frames by one joint each: new position and quaternion, and the joint's anchor and axis before the move."""
    xp = xp_of(pos, d.qpos)
    joint_pos, joint_axis = take(m.jnt_pos, slot.joint), take(m.jnt_axis, slot.joint)
    axis = quat_rotate(quat, joint_axis)
    offset = quat_rotate(quat, joint_pos)
    anchor = pos + offset
    address = m.jnt_qposadr[slot.joint]
    move = take(d.qpos, address) - take(m.qpos0, address)
    if slot.slide.all():
        return pos + axis * move[:, None], quat, anchor, axis
    turn = move if slot.hinge.all() else xp.where(slot.hinge, move, 0)
    local = axis_angle_to_quat(joint_axis, turn)
    if slot.ball.any():
        at = address[slot.ball][:, None] + np.arange(4)
        local = merge(local, np.flatnonzero(slot.ball), quat_normalize(take(d.qpos, at)))
    quat = quat_mul(quat, local)
    pos = anchor - quat_rotate(quat, joint_pos)
    if slot.slide.any():
        pos = pos + axis * xp.where(slot.slide, move, 0)[:, None]
    return pos, quat, anchor, axis


def camlight(m: Model, d: Data) -> Data:
    """Global frames of cameras, and positions and directions of lights, in all their tracking modes."""
    if m.ncam:
        d = _cameras(m, d)
    return _lights(m, d) if m.nlight else d


def _targets(m: Model, d: Data, mode: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, Array]:
    """Which cameras or lights look at a body, and the points that they look at."""
    xp = xp_of(d.xpos)
    at = np.maximum(target, 0)
    aimed = np.isin(mode, (CamLightType.TARGETBODY, CamLightType.TARGETBODYCOM)) & (target >= 0)
    com = (mode == CamLightType.TARGETBODYCOM)[:, None]
    return aimed[:, None], xp.where(com, take(d.subtree_com, at), take(d.xpos, at))


def _tracked(m: Model, d: Data, mode: np.ndarray, body: np.ndarray, pos: Array, pos0: Array, poscom0: Array) -> Array:
    """Positions: `pos`, or at a constant offset from a body or from a subtree's centre of mass."""
    xp = xp_of(d.xpos)
    track, com = (mode == CamLightType.TRACK)[:, None], (mode == CamLightType.TRACKCOM)[:, None]
    if track.any():
        pos = xp.where(track, take(d.xpos, body) + pos0, pos)
    if com.any():
        pos = xp.where(com, take(d.subtree_com, body) + poscom0, pos)
    return pos


def _cameras(m: Model, d: Data) -> Data:
    xp = xp_of(d.xpos)
    body, mode = m.cam_bodyid, m.cam_mode
    pos, mat = to_global(d.xpos, d.xquat, d.xmat.reshape(-1, 3, 3), body, m.cam_pos, m.cam_quat)
    pos = _tracked(m, d, mode, body, pos, m.cam_pos0, m.cam_poscom0)
    tracking = np.isin(mode, (CamLightType.TRACK, CamLightType.TRACKCOM))[:, None]
    if tracking.any():
        mat = xp.where(tracking, m.cam_mat0, mat)
    aimed, point = _targets(m, d, mode, m.cam_targetbodyid)
    if aimed.any():
        z = normalize(pos - point, default=np.array([1.0, 0, 0]))[0]
        up = np.broadcast_to(np.array([0, 0, 1], z.dtype), z.shape)
        x = normalize(cross(xp.asarray(up), z), default=np.array([1.0, 0, 0]))[0]
        y = normalize(cross(z, x), default=np.array([1.0, 0, 0]))[0]
        mat = xp.where(aimed, xp.stack([x, y, z], axis=-1).reshape(-1, 9), mat)
    return d.replace(cam_xpos=pos, cam_xmat=mat)


def _lights(m: Model, d: Data) -> Data:
    xp = xp_of(d.xpos)
    body, mode = m.light_bodyid, m.light_mode
    mat = take(d.xmat.reshape(-1, 3, 3), body)
    pos = take(d.xpos, body) + matvec(mat, m.light_pos)
    direction = matvec(mat, m.light_dir)
    pos = _tracked(m, d, mode, body, pos, m.light_pos0, m.light_poscom0)
    tracking = np.isin(mode, (CamLightType.TRACK, CamLightType.TRACKCOM))[:, None]
    if tracking.any():
        direction = xp.where(tracking, m.light_dir0, direction)
    aimed, point = _targets(m, d, mode, m.light_targetbodyid)
    if aimed.any():
        direction = xp.where(aimed, point - pos, direction)
    return d.replace(light_xpos=pos, light_xdir=normalize(direction, default=np.array([1.0, 0, 0]))[0])
