"""Replay of a trajectory as a self-contained HTML file, for any browser with WebGL 2, without a network or a server."""

import base64
import html
import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from jaxsim.core.model import Model
from jaxsim.core.types import GeomType, LightType, TextureRole, TextureType
from jaxsim.viewer.png import png_bytes, reduced

SHAPES = {
    GeomType.PLANE: "plane",
    GeomType.SPHERE: "sphere",
    GeomType.CAPSULE: "capsule",
    GeomType.ELLIPSOID: "ellipsoid",
    GeomType.CYLINDER: "cylinder",
    GeomType.BOX: "box",
}
TRIANGLES = (GeomType.HFIELD, GeomType.MESH, GeomType.SDF)
DEFAULT_RGBA = np.array([0.5, 0.5, 0.5, 1.0], np.float32)
MAX_IMAGE = 1024  # pixels; larger textures are scaled down
BLOB_TYPES = {np.dtype("<f4"): "f32", np.dtype("<i2"): "i16"}


def save_html(
    m: Model, trajectory: Any, path: str | Path, *, follow: str | None = "auto", title: str | None = None
) -> None:
    """Write an HTML file that replays the trajectory of one world in 3-D.

    Args:
        trajectory: a `Data` whose fields have a leading axis of frames (as `lax.scan` stacks them), or a mapping with
            `time` (nframe,), `geom_xpos` (nframe, ngeom, 3), `geom_xmat` (nframe, ngeom, 9) and, optionally, `xpos`
            (nframe, nbody, 3), `ncon` (nframe,), `contact_pos` (nframe, n, 3) and `contact_frame` (nframe, n, 9).
        follow: name of the body that the camera follows; "auto" follows the moving tree if there is only one and it
            travels far; None follows nothing.
        title: by default the model's name.

    Raises ValueError when shapes do not fit, KeyError when there is no such body.
    """
    Path(path).write_text(render(m, trajectory, follow=follow, title=title), encoding="utf-8")


def render(m: Model, trajectory: Any, *, follow: str | None = "auto", title: str | None = None) -> str:
    """HTML text of a replay; arguments as in `save_html`."""
    scene = make_scene(m, trajectory, follow)
    title = title or m.modelname or "jaxsim"
    subtitle = f"{m.nbody - 1} bodies, {m.nv} degrees of freedom, {m.nu} actuators"
    files = resources.files("jaxsim.viewer")
    parts = {
        "TITLE": html.escape(title),
        "SUBTITLE": html.escape(subtitle),
        "SCENE": json.dumps(scene, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        "SCRIPT": files.joinpath("replay.js").read_text(encoding="utf-8"),
    }
    page = files.joinpath("replay.html").read_text(encoding="utf-8").split("@")
    return "".join(parts.get(text, text) for text in page)


def make_scene(m: Model, trajectory: Any, follow: str | None = "auto") -> dict[str, Any]:
    """Contents of a replay, ready for JSON: geoms, meshes, images, camera, and the poses of moving geoms."""
    frames = _frames(m, trajectory)
    moving = np.flatnonzero(m.body_weldid[m.geom_bodyid] != 0)
    roots = np.flatnonzero((m.body_parentid == 0) & (m.body_weldid != 0))
    track = frames["xpos"][:, roots]
    images, image_of = _images(m)
    meshes, mesh_of = _meshes(m)
    names = [m.id2name("body", int(b)) or f"body {b}" for b in roots]
    return {
        "nmoving": len(moving),
        "geoms": _geoms(m, frames, moving, mesh_of, image_of),
        "meshes": meshes,
        "images": images,
        "time": _blob(frames["time"]),
        "position": _blob(frames["geom_xpos"][:, moving]),
        "rotation": _blob_quaternions(quaternions(frames["geom_xmat"][:, moving])),
        "track": _blob(track),
        "follow": names,
        "defaultFollow": _default_follow(m, roots, track, follow),
        "contact": _blob(frames["contact"]),
        "ncontact": _blob(frames["ncontact"]),
        "camera": _camera(m, frames, moving),
        "extent": float(m.stat.extent),
        "sun": sun_direction(m),
        "sky": sky_colours(m),
    }


def _frames(m: Model, trajectory: Any) -> dict[str, np.ndarray]:
    """Arrays of the trajectory that are drawn, with their shapes checked, as finite float32."""

    def get(name: str, default: Any = None) -> Any:
        if isinstance(trajectory, Mapping):
            return trajectory.get(name, default)
        if name.startswith("contact_"):
            return getattr(trajectory.contact, name.removeprefix("contact_"))
        return getattr(trajectory, name, default)

    frames = {}
    nframe = len(np.atleast_1d(np.asarray(get("time"))))
    for name, shape in (("time", ()), ("geom_xpos", (m.ngeom, 3)), ("geom_xmat", (m.ngeom, 9)), ("xpos", (m.nbody, 3))):
        value = get(name)
        value = np.zeros((nframe, *shape)) if value is None and name == "xpos" else np.asarray(value, np.float32)
        if value.shape != (nframe, *shape) or not nframe:
            raise ValueError(f"{name} has shape {value.shape}; a trajectory of {nframe} frames has {(nframe, *shape)}")
        frames[name] = np.nan_to_num(value.astype(np.float32), posinf=0.0, neginf=0.0)
    ncon = get("ncon")
    if ncon is None or get("contact_pos") is None:
        frames |= {"contact": np.zeros((0, 6), np.float32), "ncontact": np.zeros(nframe, np.float32)}
        return frames
    pos, frame = np.asarray(get("contact_pos"), np.float32), np.asarray(get("contact_frame"), np.float32)
    ncon = np.minimum(np.asarray(ncon), pos.shape[1])
    real = np.arange(pos.shape[1]) < ncon[:, None]
    rows = np.concatenate([pos, frame.reshape(*pos.shape[:2], 9)[..., :3]], axis=-1)[real]
    return frames | {"contact": np.nan_to_num(rows), "ncontact": ncon.astype(np.float32)}


def _blob(array: np.ndarray) -> dict[str, str]:
    """Base64 text of an array with its type; int16 stays, all else becomes float32."""
    array = np.ascontiguousarray(array, array.dtype if array.dtype == np.dtype("<i2") else "<f4")
    return {"type": BLOB_TYPES[array.dtype], "data": base64.b64encode(array.tobytes()).decode()}


def _blob_quaternions(quat: np.ndarray) -> dict[str, str]:
    """Base64 text of quaternions as int16 fractions of 32767."""
    return _blob(np.round(quat * 32767).astype("<i2"))


def quaternions(xmat: np.ndarray) -> np.ndarray:
    """Unit quaternions (..., 4), w first, of rotation matrices (..., 9).

    Of the four formulas, that with the largest divisor is taken, so that none is degenerate.
    """
    r = xmat.reshape(*xmat.shape[:-1], 3, 3).astype(np.float64)
    diagonal = np.einsum("...ii->...i", r)
    trace = diagonal.sum(-1)
    # row i of this symmetric matrix is 4 q_i q
    k = np.empty((*r.shape[:-2], 4, 4))
    k[..., 0, 0] = 1 + trace
    for i in range(3):
        j, l = (i + 1) % 3, (i + 2) % 3
        k[..., i + 1, i + 1] = 1 - trace + 2 * diagonal[..., i]
        k[..., 0, i + 1] = k[..., i + 1, 0] = r[..., l, j] - r[..., j, l]
        k[..., j + 1, l + 1] = k[..., l + 1, j + 1] = r[..., j, l] + r[..., l, j]
    best = np.argmax(np.einsum("...ii->...i", k), axis=-1)
    q = np.take_along_axis(k, best[..., None, None], axis=-2)[..., 0, :]
    return q / np.maximum(np.linalg.norm(q, axis=-1, keepdims=True), 1e-12)


def _geoms(
    m: Model, frames: dict[str, np.ndarray], moving: np.ndarray, mesh_of: dict[int, int], image_of: dict[int, int]
) -> list[dict[str, Any]]:
    slot = np.full(m.ngeom, -1)
    slot[moving] = np.arange(len(moving))
    quat = quaternions(frames["geom_xmat"][0]) if m.ngeom else np.zeros((0, 4))
    out = []
    for g in range(m.ngeom):
        kind = GeomType(m.geom_type[g])
        entry: dict[str, Any] = {"moving": int(slot[g]), "group": int(np.clip(m.geom_group[g], 0, 5))}
        if kind in TRIANGLES:
            entry["mesh"] = mesh_of[g]
        else:
            entry["shape"] = SHAPES[kind]
            entry["size"] = _floats(m.geom_size[g])
        if kind == GeomType.PLANE:
            endless = [float(s) <= 0 for s in m.geom_size[g, :2]]
            reach = 60 * float(m.stat.extent) + 20
            entry["size"] = [reach if e else float(s) for e, s in zip(endless, m.geom_size[g, :2], strict=True)]
            entry["endless"] = any(endless)
        if slot[g] < 0:
            entry |= {"pos": _floats(frames["geom_xpos"][0, g]), "quat": _floats(quat[g])}
        out.append(entry | geom_appearance(m, g, kind, image_of))
    return out


def geom_appearance(m: Model, g: int, kind: GeomType, image_of: dict[int, int]) -> dict[str, Any]:
    """Colour, gloss and texture of a geom; its own rgba overrides the material's unless it is the default."""
    mat = int(m.geom_matid[g])
    rgba = np.asarray(m.geom_rgba[g], np.float32)
    look: dict[str, Any] = {"specular": 0.15, "shininess": 0.3, "emission": 0.0, "image": -1, "repeat": [1.0, 1.0]}
    if mat >= 0:
        if np.array_equal(rgba, DEFAULT_RGBA):
            rgba = np.asarray(m.mat_rgba[mat], np.float32)
        look |= {
            "specular": 0.5 * float(m.mat_specular[mat]),
            "shininess": float(m.mat_shininess[mat]),
            "emission": float(m.mat_emission[mat]),
        }
        tex = int(m.mat_texid[mat, TextureRole.RGB])
        if tex in image_of and kind in (GeomType.PLANE, GeomType.MESH, GeomType.BOX, GeomType.HFIELD):
            look |= {"image": image_of[tex], "repeat": _repeat(m, g, mat, kind)}
        elif tex >= 0:
            rgba = rgba * np.append(texture_pixels(m, tex).reshape(-1, 3).mean(0) / 255, 1)
    return look | {"rgba": _floats(rgba)}


def _repeat(m: Model, g: int, mat: int, kind: GeomType) -> list[float]:
    """Texture repeats (2): per metre for planes, whose coordinate is in metres, over the whole surface otherwise."""
    repeat = np.asarray(m.mat_texrepeat[mat], np.float64)
    if kind != GeomType.PLANE:
        return _floats(repeat)
    size = np.asarray(m.geom_size[g, :2], np.float64)
    per_metre = np.ones(2) if m.mat_texuniform[mat] else np.where(size > 0, 1 / np.maximum(size, 1e-9), 1.0)
    return _floats(0.5 * repeat * per_metre)


def texture_pixels(m: Model, tex: int) -> np.ndarray:
    """Pixels (height, width, 3) of a texture, uint8; a single channel is repeated."""
    height, width, channels = (int(getattr(m, f"tex_{n}")[tex]) for n in ("height", "width", "nchannel"))
    start = int(m.tex_adr[tex])
    pixels = np.asarray(m.tex_data[start : start + height * width * channels]).reshape(height, width, channels)
    return np.repeat(pixels, 3, axis=-1) if channels < 3 else pixels[..., :3]


def _images(m: Model) -> tuple[list[str], dict[int, int]]:
    """2-D textures of materials as data URLs, and the index in that list by texture id."""
    urls: list[str] = []
    image_of: dict[int, int] = {}
    used = {int(t) for t in np.asarray(m.mat_texid).reshape(-1, 10)[:, TextureRole.RGB]} if m.nmat else set()
    for tex in sorted(used):
        if tex < 0 or m.tex_type[tex] != TextureType.TEXTURE_2D:
            continue
        image = png_bytes(reduced(texture_pixels(m, tex)[::-1], MAX_IMAGE))
        image_of[tex] = len(urls)
        urls.append("data:image/png;base64," + base64.b64encode(image).decode())
    return urls, image_of


def _meshes(m: Model) -> tuple[list[dict[str, str]], dict[int, int]]:
    """Triangles of every mesh and height field in use, and the index in that list by geom id."""
    blobs: list[dict[str, str]] = []
    index_of: dict[tuple[int, int], int] = {}
    mesh_of: dict[int, int] = {}
    for g in np.flatnonzero(np.isin(m.geom_type, TRIANGLES)):
        hfield = m.geom_type[g] == GeomType.HFIELD
        key = (int(hfield), int(m.geom_dataid[g]))
        if key not in index_of:
            index_of[key] = len(blobs)
            blobs.append(_blob(hfield_triangles(m, key[1]) if hfield else mesh_triangles(m, key[1])))
        mesh_of[int(g)] = index_of[key]
    return blobs, mesh_of


def mesh_triangles(m: Model, i: int) -> np.ndarray:
    """Corners (3 nface, 8) of the triangles of a mesh: position, normal, texture coordinate."""
    rows = slice(int(m.mesh_faceadr[i]), int(m.mesh_faceadr[i] + m.mesh_facenum[i]))
    vertex = np.asarray(m.mesh_vert)[int(m.mesh_vertadr[i]) + m.mesh_face[rows].ravel()]
    normal = np.asarray(m.mesh_normal)[int(m.mesh_normaladr[i]) + m.mesh_facenormal[rows].ravel()]
    coord = np.zeros((len(vertex), 2))
    if m.mesh_texcoordadr[i] >= 0:
        coord = np.asarray(m.mesh_texcoord)[int(m.mesh_texcoordadr[i]) + m.mesh_facetexcoord[rows].ravel()]
    return np.concatenate([vertex, normal, coord], axis=1)


def hfield_triangles(m: Model, i: int) -> np.ndarray:
    """Corners (n, 8) of the upper surface of a height field, two triangles a cell, with smooth normals."""
    nrow, ncol, start = (int(getattr(m, f"hfield_{n}")[i]) for n in ("nrow", "ncol", "adr"))
    sx, sy, sz, _ = (float(x) for x in m.hfield_size[i])
    z = sz * np.asarray(m.hfield_data)[start : start + nrow * ncol].reshape(nrow, ncol)
    y, x = np.meshgrid(np.linspace(-sy, sy, nrow), np.linspace(-sx, sx, ncol), indexing="ij")
    dy, dx = np.gradient(z, 2 * sy / (nrow - 1), 2 * sx / (ncol - 1))
    normal = np.stack([-dx, -dy, np.ones_like(z)], -1)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    grid = np.concatenate([np.stack([x, y, z], -1), normal, np.stack([x / sx, y / sy], -1) / 2 + 0.5], -1)
    a, b, c, d = grid[:-1, :-1], grid[:-1, 1:], grid[1:, 1:], grid[1:, :-1]
    return np.stack([a, b, c, a, c, d], axis=2).reshape(-1, 8)


def _camera(m: Model, frames: dict[str, np.ndarray], moving: np.ndarray) -> dict[str, Any]:
    """Free camera as in MuJoCo's visualiser, by the model's statistics and `visual/global`."""
    view = m.vis.global_
    return {
        "azimuth": float(view.azimuth),
        "elevation": float(np.clip(view.elevation, -89, 89)),
        "distance": 1.4 * float(m.stat.extent),
        "center": _floats(m.stat.center),
        "fovy": float(view.fovy),
    }


def _default_follow(m: Model, roots: np.ndarray, track: np.ndarray, follow: str | None) -> int:
    """Index of the tree that the camera follows at first, -1 for none."""
    if follow is None:
        return -1
    if follow == "auto":
        travel = np.abs(track - track[:1]).max(initial=0.0)
        return 0 if len(roots) == 1 and travel > 0.5 * float(m.stat.extent) else -1
    body = m.name2id("body", follow)
    root = int(m.body_rootid[body])
    if root not in roots:
        raise KeyError(f"body {follow!r} cannot be followed, since it does not move")
    return int(np.flatnonzero(roots == root)[0])


def sun_direction(m: Model) -> list[float]:
    """Direction to the first directional light that points down; without one, a fixed direction from above."""
    for i in np.flatnonzero(m.light_type == LightType.DIRECTIONAL):
        if m.light_dir[i][2] < 0:
            return _floats(-np.asarray(m.light_dir[i]))
    return [-0.3, -0.4, 1.0]


def sky_colours(m: Model) -> list[list[float]]:
    """Colours of the zenith and of the horizon, those of the skybox if there is one."""
    for tex in np.flatnonzero(m.tex_type == TextureType.SKYBOX):
        faces = texture_pixels(m, int(tex)) / 255.0
        side = faces.shape[0] // 6
        if side:
            up, front = faces[2 * side : 3 * side], faces[4 * side : 5 * side]
            return [_floats(up.mean((0, 1))), _floats(front[side // 2].mean(0))]
    return [[0.36, 0.46, 0.58], [0.74, 0.81, 0.88]]


def _floats(x: Any) -> list[float]:
    """Numbers rounded for JSON."""
    return [round(float(v), 7) for v in np.ravel(np.asarray(x))]
