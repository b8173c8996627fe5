"""MJX's support functions: Jacobians (nv, 3), products with M, rays, names."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxsim import support
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.model import NAMED
from jaxsim.engine.kinematics.wrench import apply_wrench
from jaxsim.engine.ray import cast as rays
from jaxsim.math.safe import Array
from jaxsim.mjx.arguments import takes_mjx
from jaxsim.mjx.types import Data, DataStructure, Model

_NAMES = {int(kind): (name, address) for name, (address, kind) in NAMED.items()}


@takes_mjx
def jac(m: Model, d: Data, point: Array, body_id: Any) -> tuple[Array, Array]:
    """Compute the Jacobians (nv, 3) of a global point of a body, translation and rotation."""
    jacp, jacr = support.jac(m.model, d.data, point, body_id)
    return jacp.T, jacr.T


@takes_mjx
def jac_dot(m: Model, d: Data, point: Array, body_id: Any) -> tuple[Array, Array]:
    """Compute the time derivatives (nv, 3) of `jac`."""
    jacp, jacr = support.jac_dot(m.model, d.data, point, body_id)
    return jacp.T, jacr.T


@takes_mjx
def apply_ft(m: Model, d: Data, force: Array, torque: Array, point: Array, body_id: Any) -> Array:
    """Compute the generalized force (nv,) of a force and a torque at a global point of a body."""
    return support.apply_ft(m.model, d.data, force, torque, point, body_id)


@takes_mjx
def xfrc_accumulate(m: Model, d: Data) -> Array:
    """Compute the generalized force (nv,) of `xfrc_applied`."""
    force = d.data.xfrc_applied
    return apply_wrench(m.model, d.data, force[:, :3], force[:, 3:], d.data.xipos)


@takes_mjx
def full_m(m: Model, d: Data) -> Array:
    """Return the dense inertia matrix (nv, nv)."""
    return support.full_m(m.model, d.data)


@takes_mjx
def mul_m(m: Model, d: Data, vec: Array) -> Array:
    """Multiply M by a vector."""
    return support.mul_m(m.model, d.data, vec)


@takes_mjx
def solve_m(m: Model, d: Data, x: Array) -> Array:
    """Multiply the inverse of M by a vector."""
    return support.solve_m(m.model, d.data, x)


@takes_mjx
def contact_force(m: Model, d: Data, contact_id: Any, to_world_frame: bool = False) -> Array:
    """Compute the force and torque (6,) of a contact, in its frame, or along global axes."""
    force = support.contact_force(m.model, d.data, contact_id)
    if not to_world_frame:
        return force
    frame = d.data.contact.frame[contact_id].reshape(3, 3)
    return (force.reshape(2, 3) @ frame).reshape(6)


@takes_mjx
def ray(
    m: Model,
    d: Data,
    pnt: Array,
    vec: Array,
    geomgroup: Sequence[int] = (),
    flg_static: bool = True,
    bodyexclude: Sequence[int] | int = -1,
) -> tuple[Array, Array]:
    """Return the distance along a ray to the first geom, and its id; both -1 without a hit."""
    groups = tuple(geomgroup) or None
    if isinstance(bodyexclude, Sequence) and len(bodyexclude) != 1:
        visible = ~np.isin(m.model.geom_bodyid, list(bodyexclude))
        return _ray_without(m, d, pnt, vec, groups, flg_static, visible)
    body = bodyexclude[0] if isinstance(bodyexclude, Sequence) else bodyexclude
    dist, geom, _ = rays.ray(m.model, d.data, pnt, vec, groups, flg_static, body)
    return dist, geom


def _ray_without(
    m: Model, d: Data, pnt: Array, vec: Array, groups: Any, static: bool, visible: np.ndarray
) -> tuple[Array, Array]:
    """Cast a ray against these geoms only."""
    geoms = np.intersect1d(rays.visible(m.model, groups, static), np.flatnonzero(visible))
    hit = rays.cast(m.model, d.data, pnt[None], vec[None], geoms)
    dist, geom, _ = rays.mujoco_results(hit)
    return dist[0], geom[0]


def is_sparse(m: Any) -> bool:
    """Return whether MJX stores the inertia matrix of this model as sparse."""
    return bool(DataStructure(m.model if isinstance(m, Model) else m).mjx_sparse)


def name2id(m: Any, typ: Any, name: str) -> int:
    """Return the id of a named object of a kind (mjtObj), -1 if there is none."""
    names = _names(m, typ)
    return names.index(name) if name in names else -1


def id2name(m: Any, typ: Any, i: int) -> str | None:
    """Return the name of an object of a kind (mjtObj), None if it has none."""
    names = _names(m, typ)
    return (names[i] or None) if 0 <= i < len(names) else None


def _names(m: Any, typ: Any) -> list[str]:
    kind = int(typ)
    if kind not in _NAMES:
        raise ValueError(f"objects of the kind {typ} have no names")
    return [m.names[a : m.names.index(b"\0", a)].decode() for a in np.ravel(getattr(m, _NAMES[kind][1]))]


def refused(*_: Any, **__: Any) -> Any:
    """Raise UnsupportedError for MJX's renderer."""
    raise UnsupportedError("MJX's renderer: use jaxsim.viewer.raycast, which renders under jit")


create_render_context = refit_bvh = render = render_with_segmentation = refused
get_rgb = get_depth = get_segmentation = refused
