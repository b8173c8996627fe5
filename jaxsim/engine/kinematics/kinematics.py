"""Stages `kinematics` and `camlight`: global frames of bodies, joints, geoms, sites, cameras and lights."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.data import Data
from jaxsim.core.frames import TOLERANCE, counted_as
from jaxsim.core.model import Model
from jaxsim.core.types import CamLightType, JointType
from jaxsim.engine.kinematics.twists import PLACED, PLACING, poses_tangent
from jaxsim.engine.structure import tables
from jaxsim.interface.public import public
from jaxsim.math import component as c
from jaxsim.math.arrays import dot_static, entry_at, gather, is_numpy, matvec, merge, take, with_entry
from jaxsim.math.jvp import all_zero, value_and_tangent
from jaxsim.math.rotation import cross, quat_normalize
from jaxsim.math.safe import Array, normalize, xp_of
from jaxsim.native.stage import keeps_residuals


@public
def kinematics(m: Model, d: Data) -> Data:
    """Compute forward kinematics: xpos, xquat, xmat, xipos, ximat, xanchor, xaxis and the frames of geoms and sites.

    Every body and every joint is a node of one tree with its own transformation. Programs of a core, of vectors of
    worlds and of a TPU compose them sequentially, others by pointer jumping, in one round for each power of two of the
    depth.
    """
    given = {name: getattr(m, name) for name in (*PLACING, *PLACED)}, (d.mocap_pos, d.mocap_quat), d.qpos
    return d.replace(**(poses_of(m, d, *given) if is_numpy(*jax.tree.leaves(given)) else _moving_poses(m, d)(*given)))


Numbers = dict[str, Array]


def _moving_poses(m: Model, d: Data) -> Callable[[Numbers, tuple[Array, Array], Array], dict[str, Array]]:
    """Return `poses_of`, with twists as derivatives by positions alone if these are for many directions."""

    @jax.custom_jvp
    def poses(numbers: Numbers, mocap: tuple[Array, Array], qpos: Array) -> dict[str, Array]:
        return poses_of(m, d, numbers, mocap, qpos)

    def rule(primals: tuple, tangents: tuple) -> tuple[dict[str, Array], dict[str, Array]]:
        numbers, _, qpos = primals
        if not (keeps_residuals() and all_zero(tangents[:2])):
            return value_and_tangent(lambda x: poses_of(m, d, *x), primals, tangents)
        out = poses(*primals)
        return out, poses_tangent(m.replace(**numbers), d.replace(qpos=qpos, **out), tangents[2])

    poses.defjvp(rule, symbolic_zeros=True)
    return poses


def poses_of(m: Model, d: Data, numbers: Numbers, mocap: tuple[Array, Array], qpos: Array) -> dict[str, Array]:
    """Return the poses of bodies, joints, geoms and sites, by the names of their fields."""
    m, d = m.replace(**numbers), d.replace(mocap_pos=mocap[0], mocap_quat=mocap[1], qpos=qpos)
    xp = xp_of(m.body_pos, d.qpos)
    nodes = tables.nodes(m)
    frame = compose(nodes, xp.concatenate(_node_frames(m, d), axis=1))
    anchor, axis = _joint_axes(m, c.split(take(frame, nodes.joint)))
    xpos, xquat = _parts(take(frame, nodes.body))
    xquat = quat_normalize(xquat)
    mat = c.join(c.quat_to_mat(c.split(xquat)))
    body = np.concatenate([np.arange(m.nbody), m.geom_bodyid, m.site_bodyid])
    frame_pos, frame_mat = to_global(xpos, xquat, mat, body, *_local_frames(m, body))
    i, g = m.nbody, m.nbody + m.ngeom
    return {
        "xpos": xpos,
        "xquat": xquat,
        "xmat": mat,
        "xanchor": anchor,
        "xaxis": axis,
        "xipos": frame_pos[:i],
        "ximat": frame_mat[:i],
        "geom_xpos": frame_pos[i:g],
        "geom_xmat": frame_mat[i:g],
        "site_xpos": frame_pos[g:],
        "site_xmat": frame_mat[g:],
    }


def _local_frames(m: Model, body: np.ndarray) -> tuple[Array, Array]:
    """Return inertial frames, geoms and sites in their bodies' frames; `m.near_frames` become what they count as.

    Derivatives are with respect to their own numbers.
    """
    xp = xp_of(m.body_ipos, m.geom_pos, m.site_pos)
    pos = xp.concatenate([m.body_ipos, m.geom_pos, m.site_pos])
    quat = xp.concatenate([m.body_iquat, m.geom_quat, m.site_quat])
    near = m.near_frames
    if len(near):
        kind = np.concatenate([m.body_sameframe, m.geom_sameframe, m.site_sameframe])
        to_pos, to_quat = counted_as(kind, body, pos, quat)
        pos = merge(pos, near, _snapped(take(pos, near), take(to_pos, near)))
        quat = merge(quat, near, _snapped(take(quat, near), take(to_quat, near)))
    return pos, quat_normalize(quat)


def _snapped(x: Array, near: Array) -> Array:
    """Return `near` where it counts as the same, with the derivative of `x`."""
    xp = xp_of(x, near)
    gap = near - x
    gap = xp.where(xp.max(abs(gap), axis=1, keepdims=True) < TOLERANCE, gap, 0)
    return x + (gap if is_numpy(gap) else lax.stop_gradient(gap))


def _parts(frame: Array) -> tuple[Array, Array]:
    """Split frames (n, 7) in positions and quaternions."""
    return frame[:, :3], frame[:, 3:]


def compose(nodes: tables.Nodes, frame: Array) -> Array:
    """Compose frames (n, 7) in the world from frames in parents, with the derivatives of unit quaternions."""
    return compose_by_jumps(nodes.jumps, frame) if is_numpy(frame) or not nodes.jumps else _composed(nodes, frame)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _composed(nodes: tables.Nodes, frame: Array) -> Array:
    one_by_one, by_jumps = partial(compose_sequentially, nodes), partial(compose_by_jumps, nodes.jumps)
    # native programs name their targets as platforms, which XLA does not know
    return lax.platform_dependent(frame, core=one_by_one, vectors=one_by_one, tpu=one_by_one, default=by_jumps)


def compose_sequentially(nodes: tables.Nodes, frame: Array) -> Array:
    """Compose frames one after the other, parents first: fewer operations than jumps, none of them in parallel."""

    def one(frame: Array, pair: Array) -> tuple[Array, None]:
        node, parent = pair
        return with_entry(frame, node, _moved(entry_at(frame, parent), entry_at(frame, node))), None

    pairs = np.stack([nodes.order, nodes.jumps[0][nodes.order]], 1).astype(np.int32)
    return lax.scan(one, frame, jnp.asarray(pairs))[0]


def _moved(above: Array, frame: Array) -> Array:
    """Return frames (..., 7) that are given in others, in what those are given in."""
    (above_pos, above_quat), (pos, quat) = (map(c.split, (x[..., :3], x[..., 3:])) for x in (above, frame))
    return c.join((*c.add(above_pos, c.quat_rotate(above_quat, pos)), *c.quat_mul(above_quat, quat)))


@_composed.defjvp
def _composed_jvp(nodes: tables.Nodes, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """Compute the JVP of `compose` by one sum over paths instead of one round after the other.

    A frame moves with the sum of the motions of the nodes above it.
    """
    out = _composed(nodes, *primals)
    (_, quat), (move, turn) = map(_parts, (primals[0], tangents[0]))
    above = c.split(take(out[:, 3:], nodes.jumps[0]))
    spin = c.quat_mul(c.split(turn), c.quat_conj(c.split(quat)))[1:]
    angular, linear = c.quat_rotate(above, c.scale(2.0, spin)), c.quat_rotate(above, c.split(move))
    pos, quat = _parts(out)
    arm = c.split(pos - take(pos, nodes.root))  # relative to the near root of the tree: accurate in float32
    linear = c.sub(linear, c.cross(angular, arm))
    total = c.split(_path_sum(nodes, c.join((*angular, *linear))))
    angular, linear = total[:3], c.add(total[3:], c.cross(total[:3], arm))
    turned = c.quat_mul((jnp.zeros_like(angular[0]), *c.scale(0.5, angular)), c.split(quat))
    return out, c.join((*linear, *turned))


def _path_sum(nodes: tables.Nodes, x: Array) -> Array:
    """Sum over the nodes from below the world to each node (n, k)."""
    if nodes.ancestor is not None:
        return dot_static(nodes.ancestor, x)
    x = x * (np.arange(len(x)) > 0)[:, None]
    for jump in nodes.jumps:
        x = x + take(x, jump)
    return x


def compose_by_jumps(jumps: tuple[np.ndarray, ...], frame: Array) -> Array:
    """Compose frames by pointer jumping: a loop over rounds, so that one round is compiled for all."""

    def jump_over(frame: Array, jump: Array) -> tuple[Array, None]:
        return _moved(gather(frame, jump), frame), None

    if is_numpy(frame) or len(jumps) < 2:
        for jump in jumps:
            frame, _ = jump_over(frame, jump)
        return frame
    return lax.scan(jump_over, frame, jnp.asarray(np.stack(jumps)))[0]


def to_global(
    pos: Array, quat: Array, mat: Array, body: np.ndarray, local_pos: Array, local_quat: Array
) -> tuple[Array, Array]:
    """Return the global position and flat rotation matrix of frames fixed in bodies.

    `mat` holds their own matrices, flat.
    """
    moved = c.mat_vec(c.split(take(mat, body)), c.split(local_pos))
    xpos = c.join(c.add(c.split(take(pos, body)), moved))
    return xpos, c.join(c.quat_to_mat(c.quat_mul(c.split(take(quat, body)), c.split(local_quat))))


def _node_frames(m: Model, d: Data) -> tuple[Array, Array]:
    """Return every node's frame in its parent node's: bodies, then joints."""
    xp = xp_of(m.body_pos, d.qpos)
    mocap, (pos, quat) = tables.mocap_bodies(m), _body_frames(m)
    pos = merge(pos, mocap, d.mocap_pos)
    quat = merge(quat, mocap, quat_normalize(d.mocap_quat)) if len(mocap) else quat
    joints, unit = tables.joint_coordinates(m), tables.joint_quat(m)
    if len(joints.free):
        body = m.jnt_bodyid[joints.free]
        pos = merge(pos, body, take(d.qpos, joints.free_qpos))
        quat = merge(quat, body, quat_normalize(take(d.qpos, unit[joints.free])))
    if not m.njnt:
        return pos, quat
    kind = m.jnt_type
    address = m.jnt_qposadr
    move = take(d.qpos, address) - take(m.qpos0, address)
    turn = xp.where(kind == JointType.HINGE, move, 0)
    shift = xp.where(kind == JointType.SLIDE, move, 0)
    axis, offset = c.split(m.jnt_axis), c.split(m.jnt_pos)
    turned = c.join((xp.cos(0.5 * turn), *c.scale(xp.sin(0.5 * turn), c.split(normalize(m.jnt_axis)[0]))))
    ball = np.flatnonzero(kind == JointType.BALL)
    if len(ball):
        turned = merge(turned, ball, quat_normalize(take(d.qpos, unit[ball])))
    moved = c.add(c.sub(offset, c.quat_rotate(c.split(turned), offset)), c.scale(shift, axis))
    return xp.concatenate([pos, c.join(moved)]), xp.concatenate([quat, turned])


def _body_frames(m: Model) -> tuple[Array, Array]:
    """Return positions and unit quaternions of bodies in their parents' frames; the world does not move."""
    xp = xp_of(m.body_pos, m.body_quat)
    world = (np.arange(m.nbody) == 0)[:, None]
    unit = np.array([1, 0, 0, 0], m.body_quat.dtype)
    return xp.where(world, 0, m.body_pos), xp.where(world, unit, quat_normalize(m.body_quat))


def _joint_axes(m: Model, frame: tuple[Array, ...]) -> tuple[Array, Array]:
    """Return anchors and axes of joints from the frames before them.

    A free joint has its body's position and its own axis.
    """
    pos, quat = frame[:3], frame[3:]
    axis = c.quat_rotate(quat, c.split(m.jnt_axis))
    anchor = c.add(pos, c.quat_rotate(quat, c.split(m.jnt_pos)))
    free = (m.jnt_type == JointType.FREE)[:, None]
    return c.join(anchor), xp_of(pos[0]).where(free, m.jnt_axis, c.join(axis))


@public
def camlight(m: Model, d: Data) -> Data:
    """Compute the global frames of cameras, and positions and directions of lights, in all their tracking modes."""
    if m.ncam:
        d = _cameras(m, d)
    return _lights(m, d) if m.nlight else d


def _targets(m: Model, d: Data, mode: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, Array]:
    """Return the mask of cameras or lights that look at a body, and their target points."""
    xp = xp_of(d.xpos)
    at = np.maximum(target, 0)
    aimed = np.isin(mode, (CamLightType.TARGETBODY, CamLightType.TARGETBODYCOM)) & (target >= 0)
    com = (mode == CamLightType.TARGETBODYCOM)[:, None]
    return aimed[:, None], xp.where(com, take(d.subtree_com, at), take(d.xpos, at))


def _tracked(d: Data, mode: np.ndarray, body: np.ndarray, pos: Array, pos0: Array, poscom0: Array) -> Array:
    """Return positions: `pos`, or at a constant offset from a body or from a subtree's centre of mass."""
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
    pos, mat = to_global(d.xpos, d.xquat, d.xmat, body, m.cam_pos, m.cam_quat)
    pos = _tracked(d, mode, body, pos, m.cam_pos0, m.cam_poscom0)
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
    pos = _tracked(d, mode, body, pos, m.light_pos0, m.light_poscom0)
    tracking = np.isin(mode, (CamLightType.TRACK, CamLightType.TRACKCOM))[:, None]
    if tracking.any():
        direction = xp.where(tracking, m.light_dir0, direction)
    aimed, point = _targets(m, d, mode, m.light_targetbodyid)
    if aimed.any():
        direction = xp.where(aimed, point - pos, direction)
    return d.replace(light_xpos=pos, light_xdir=normalize(direction, default=np.array([1.0, 0, 0]))[0])
