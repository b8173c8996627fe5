"""Cameras as bundles of rays: intrinsics in pixels, and the origin and direction of the ray through each pixel."""

import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.math.arrays import matvec, take
from jaxsim.math.safe import Array, divide, normalize, xp_of

PERSPECTIVE, ORTHOGRAPHIC = 0, 1  # mjtProjection


def intrinsics(m: Model, cams: np.ndarray, resolution: np.ndarray) -> Array:
    """Return focal lengths and principal point in pixels, fx, fy, cx, cy (k, 4), of cameras (k,): mju_camIntrinsics.

    `resolution` (k, 2) is width and height. For orthographic cameras pixels are mapped to [-1, 1].
    """
    xp = xp_of(m.cam_fovy)
    resolution = np.asarray(resolution, m.cam_fovy.dtype)
    sensor, intrinsic = take(m.cam_sensorsize, cams), take(m.cam_intrinsic, cams)
    scale = divide(resolution, sensor)
    physical = xp.concatenate([intrinsic[:, :2] * scale, intrinsic[:, 2:] * scale], axis=1)
    by_angle = 0.5 / xp.tan(take(m.cam_fovy, cams) * (np.pi / 360)) * resolution[:, 1]
    angular = xp.concatenate([xp.stack([by_angle, by_angle], axis=1), resolution / 2], axis=1)
    parallel = np.concatenate([resolution, resolution], axis=1) / 2
    measured = (sensor[:, :1] != 0) & (sensor[:, 1:] != 0)
    flat = (m.cam_projection[cams] == ORTHOGRAPHIC)[:, None]
    return xp.where(flat, parallel, xp.where(measured, physical, angular))


def pixel_rays(m: Model, d: Data, cams: np.ndarray, resolution: np.ndarray) -> tuple[Array, Array]:
    """Return origins and unit directions (n, 3) of the rays through the pixels of cameras, one camera after the other.

    Pixels lie where MuJoCo's rangefinder has them (mju_camPixelRay), not its renderer: the principal point is measured
    from the image's corner, and orthographic images are as wide as they are high.

    Args:
        cams: (k,) static ids.
        resolution: (k, 2) static width and height of each image; pixels go row by row from the top left.
    """
    xp = xp_of(d.cam_xpos, m.cam_fovy)
    owner = np.repeat(np.arange(len(cams)), np.prod(resolution, axis=1, dtype=int))
    col = np.concatenate([np.tile(np.arange(w), h) for w, h in resolution])
    row = np.concatenate([np.repeat(np.arange(h), w) for w, h in resolution])
    fx, fy, cx, cy = take(intrinsics(m, cams, resolution), owner).T
    x, y = (col + 0.5 - cx) / fx, -(row + 0.5 - cy) / fy
    mat = take(take(d.cam_xmat, cams).reshape(-1, 3, 3), owner)
    pos = take(take(d.cam_xpos, cams), owner)
    forward = xp.stack([x, y, xp.full_like(x, -1)], axis=1)
    way = normalize(matvec(mat, forward))[0]
    if not (m.cam_projection[cams] == ORTHOGRAPHIC).any():
        return pos, way
    flat = (m.cam_projection[cams] == ORTHOGRAPHIC)[owner][:, None]
    half = take(take(m.cam_fovy, cams), owner) / 2
    offset = matvec(mat, xp.stack([x * half, y * half, xp.zeros_like(x)], axis=1))
    return xp.where(flat, pos + offset, pos), xp.where(flat, -mat[:, :, 2], way)
