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
from jaxsim.mjx.types import Data, DataStructure, Model

_NAMES = {int(kind): (name, address) for name, (address, kind) in NAMED.items()}


def jac(m: Model, d: Data, point: Array, body_id: Any) -> tuple[Array, Array]:
    """Jacobians (nv, 3) of a global point of a body, translation and rotation."""
    jacp, jacr = support.jac(m.model, d.data, point, body_id)
    return jacp.T, jacr.T


def jac_dot(m: Model, d: Data, point: Array, body_id: Any) -> tuple[Array, Array]:
    """Time derivatives (nv, 3) of `jac`."""
    jacp, jacr = support.jac_dot(m.model, d.data, point, body_id)
    return jacp.T, jacr.T


def apply_ft(m: Model, d: Data, force: Array, torque: Array, point: Array, body_id: Any) -> Array:
    """Generalized force (nv,) of a force and a torque at a global point of a body."""
    return support.apply_ft(m.model, d.data, force, torque, point, body_id)


def xfrc_accumulate(m: Model, d: Data) -> Array:
    """Generalized force (nv,) of `xfrc_applied`."""
    force = d.data.xfrc_applied
    return apply_wrench(m.model, d.data, force[:, :3], force[:, 3:], d.data.xipos)


def full_m(m: Model, d: Data) -> Array:
    """Dense inertia matrix (nv, nv)."""
    return support.full_m(m.model, d.data)


def mul_m(m: Model, d: Data, vec: Array) -> Array:
    """M times a vector."""
    return support.mul_m(m.model, d.data, vec)


def solve_m(m: Model, d: Data, x: Array) -> Array:
    """The inverse of M times a vector."""
    return support.solve_m(m.model, d.data, x)


def contact_force(m: Model, d: Data, contact_id: Any, to_world_frame: bool = False) -> Array:
    """Force and torque (6,) of a contact, in its frame, or along global axes."""
    force = support.contact_force(m.model, d.data, contact_id)
    if not to_world_frame:
        return force
    frame = d.data.contact.frame[contact_id].reshape(3, 3)
    return (force.reshape(2, 3) @ frame).reshape(6)


def ray(
    m: Model,
    d: Data,
    pnt: Array,
    vec: Array,
    geomgroup: Sequence[int] = (),
    flg_static: bool = True,
    bodyexclude: Sequence[int] | int = -1,
) -> tuple[Array, Array]:
    """Distance along a ray to the first geom, and its id; both -1 without a hit."""
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
    """`ray` that sees these geoms alone."""
    geoms = np.intersect1d(rays.visible(m.model, groups, static), np.flatnonzero(visible))
    hit = rays.cast(m.model, d.data, pnt[None], vec[None], geoms)
    dist, geom, _ = rays.mujoco_results(hit)
    return dist[0], geom[0]


def is_sparse(m: Any) -> bool:
    """Whether MJX keeps the inertia matrix of this model sparse."""
    return bool(DataStructure(m.model if isinstance(m, Model) else m).mjx_sparse)


def name2id(m: Any, typ: Any, name: str) -> int:
    """Id of a named object of a kind (mjtObj), -1 where there is none."""
    names = _names(m, typ)
    return names.index(name) if name in names else -1


def id2name(m: Any, typ: Any, i: int) -> str | None:
    """Name of an object of a kind (mjtObj), None where it has none."""
    names = _names(m, typ)
    return (names[i] or None) if 0 <= i < len(names) else None


def _names(m: Any, typ: Any) -> list[str]:
    kind = int(typ)
    if kind not in _NAMES:
        raise ValueError(f"objects of the kind {typ} have no names")
    return [m.names[a : m.names.index(b"\0", a)].decode() for a in np.ravel(getattr(m, _NAMES[kind][1]))]


def refused(*_: Any, **__: Any) -> Any:
    """Raise UnsupportedError: MJX's renderer."""
    raise UnsupportedError("MJX's renderer: use jaxsim.viewer.raycast, which renders under jit")


create_render_context = refit_bvh = render = render_with_segmentation = refused
get_rgb = get_depth = get_segmentation = refused
