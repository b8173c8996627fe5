"""Frames in bodies that count as another one: as the body's frame or its inertial frame, in pose or in orientation.

MuJoCo decides it when it compiles a model, with a tolerance, and then gives the object the frame that it counts as.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxsim.core.types import SameFrame
from jaxsim.math.arrays import take
from jaxsim.math.safe import Array, xp_of

TOLERANCE = 1e-6  # frames that differ by less count as equal
_ROUNDING = 1e-12  # a smaller difference is ignored


def counted_as(kind: np.ndarray, body: np.ndarray, pos: Array, quat: Array) -> tuple[Array, Array]:
    """Return positions and quaternions of the frames that frames count as, in the signs of their own quaternions.

    `kind` holds members of `SameFrame`; the first frames are the bodies' inertial frames, by body.
    """
    xp = xp_of(pos, quat)
    inertial = np.isin(kind, (SameFrame.INERTIA, SameFrame.INERTIAROT))[:, None]
    own = np.isin(kind, (SameFrame.NONE, SameFrame.BODYROT, SameFrame.INERTIAROT))[:, None]
    to_pos = xp.where(own, pos, xp.where(inertial, take(pos, body), 0))
    to_quat = xp.where(inertial, take(quat, body), np.eye(1, 4, dtype=quat.dtype))
    to_quat = xp.where((quat * to_quat).sum(1, keepdims=True) < 0, -to_quat, to_quat)
    return to_pos, xp.where((kind == SameFrame.NONE)[:, None], quat, to_quat)


def near_frames(values: Mapping[str, Any]) -> np.ndarray:
    """Return the inertial frames, geoms and sites, in one list, that differ from what they count as.

    They differ by residual errors of iterations or by rounded text. `values` are fields of a model by name, of which
    numbers may be batched: the first world counts.
    """

    def joined(names: tuple[str, ...]) -> np.ndarray:
        arrays = [values[name] for name in names]
        return np.concatenate([np.asarray(x)[(0,) * (np.ndim(x) - 2)] for x in arrays])

    body = np.concatenate([np.arange(values["nbody"]), values["geom_bodyid"], values["site_bodyid"]])
    kind = np.concatenate([values[f"{name}_sameframe"] for name in ("body", "geom", "site")])
    frames = [joined((f"body_i{part}", f"geom_{part}", f"site_{part}")) for part in ("pos", "quat")]
    gaps = [abs(x - y).max(1) for x, y in zip(counted_as(kind, body, *frames), frames, strict=True)]
    return np.flatnonzero(np.maximum(*gaps) > _ROUNDING)
