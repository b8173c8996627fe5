"""Replay of a trajectory as a self-contained HTML file, for any browser with WebGL 2, without a network or a server."""

import base64
import html
import json
import zlib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from jaxsim.core.model import Model
from jaxsim.core.types import GeomType, LightType, ObjType, TextureRole, TextureType
from jaxsim.viewer import scene_layout as layout
from jaxsim.viewer.deformables import Surface, is_sheet, look, surface_points, surfaces, thickness
from jaxsim.viewer.frames import TENDON, WORLD_SPACING, grid, poses, split_worlds
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
MAX_IMAGE = 1024  # pixels; larger textures are scaled down
MAX_TRIANGLES = 20_000  # of one mesh; larger ones are simplified
MAX_LINES = 64  # of a plot; sensors with more values are left out
COMPRESS_BYTES = 512  # shorter blobs are not compressed
BLOB_TYPES = {np.dtype(t): name for t, name in (("<f4", "f32"), ("<i2", "i16"), ("i1", "i8"), ("<u4", "u32"))}
PLAIN_LOOK = {"specular": 0.5, "shininess": 0.5, "emission": 0.0, "image": -1, "repeat": [1.0, 1.0]}
PULLEY = -2  # in wrap_obj: no segment begins or ends there


def save_html(
    m: Model, trajectory: Any, path: str | Path, *, follow: str | None = "auto", title: str | None = None
) -> None:
    """Write an HTML file that replays a trajectory in 3-D, of one world or of many side by side.

    Args:
        trajectory: a `Data`, of one state, of a batch of worlds (all of one time), or with a leading axis of frames as
            `lax.scan` stacks them; a second axis counts worlds. Or a mapping with `qpos`, or with
            `time` (nframe,), `geom_xpos` (nframe, ngeom, 3), `geom_xmat` (nframe, ngeom, 9) and, optionally, `xpos`
            (nframe, nbody, 3), `site_xpos` and `site_xmat` (nframe, nsite, 3 and 9), `ncon` (nframe,), `contact_pos`
            (nframe, n, 3) and `contact_frame` (nframe, n, 9). Sites are drawn where their poses are given, flexes if
            it has `flexvert_xpos` (nframe, nflexvert, 3), skins if it has `xpos` and `xmat` (nframe, nbody, 9).
            `sensordata` (nframe, nsensordata) and `reward` (nframe,) can be plotted under the time line.
        follow: name of the body that the camera follows; "auto" follows the moving tree if there is only one and it
            travels far; None follows nothing.
        title: by default the model's name.

    Raises ValueError for inconsistent shapes, KeyError for an unknown body.
    """
    Path(path).write_text(render(m, trajectory, follow=follow, title=title), encoding="utf-8")


def render(m: Model, trajectory: Any, *, follow: str | None = "auto", title: str | None = None) -> str:
    """Compose the HTML text of a replay; arguments as in `save_html`."""
    scene = make_scene(m, trajectory, follow)
    title = title or m.modelname or "jaxsim"
    subtitle = f"{m.nbody - 1} bodies, {m.nv} degrees of freedom, {m.nu} actuators"
    script = resources.files("jaxsim.viewer").joinpath("replay.js").read_text(encoding="utf-8")
    return fill(
        "replay.html",
        {"TITLE": html.escape(title), "SUBTITLE": html.escape(subtitle), "SCENE": as_json(scene), "SCRIPT": script},
    )


def fill(template: str, parts: Mapping[str, str]) -> str:
    """Fill in a page of this package: `@NAME@` is replaced by the part of that name."""
    page = resources.files("jaxsim.viewer").joinpath(template).read_text(encoding="utf-8").split("@")
    return "".join(parts.get(text, text) for text in page)


def as_json(value: Any) -> str:
    """Encode a value as JSON that is safe inside a script of a page."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def make_scene(m: Model, states: Any, follow: str | None = "auto") -> dict[str, Any]:
    """Collect the contents of a replay, ready for JSON: objects, meshes, images, camera, and poses of moving objects.

    Worlds are placed in a grid. Static planes are drawn once, other static objects in every world.
    """
    worlds = [_with_poses(m, world) for world in split_worlds(m, states)]
    offsets = grid(len(worlds), WORLD_SPACING * float(m.stat.extent))
    every = [_moved(_frames(m, w), x) for w, x in zip(worlds, offsets, strict=True)]
    frames = every[0]
    moving = np.flatnonzero(m.body_weldid[m.geom_bodyid] != 0)
    sites = np.flatnonzero(m.body_weldid[m.site_bodyid] != 0) if "site_xpos" in frames else np.zeros(0, int)
    roots = np.flatnonzero((m.body_parentid == 0) & (m.body_weldid != 0))
    track = np.concatenate([f["xpos"][:, roots] for f in every], 1)
    images, image_of = _images(m)
    meshes, mesh_of = _meshes(m)
    names = [m.id2name("body", int(b)) or f"body {b}" for b in roots]
    geoms, soft, points = [], [], []
    for i, (f, world, offset) in enumerate(zip(every, worlds, offsets, strict=True)):
        shapes = _geoms(m, f, moving, mesh_of, image_of) + _sites(m, f, sites, len(moving))
        shapes = [g for g in shapes if i == 0 or g["moving"] >= 0 or g.get("shape") != "plane"]
        geoms += [g | {"moving": g["moving"] + i * (len(moving) + len(sites)) * (g["moving"] >= 0)} for g in shapes]
        entries, vertices = _with_tendons(m, world, _surfaces(m, world, len(f["time"]), image_of))
        first = sum(p.shape[1] for p in points)
        soft += [e | {"first": e["first"] + first} for e in entries]
        points.append(vertices + offset.astype(np.float32))
    contact, ncontact = _all_contacts(every)
    position = np.concatenate([_of_both(f, "xpos", moving, sites) for f in every], 1)
    rotation = np.concatenate([_of_both(f, "xmat", moving, sites) for f in every], 1)
    return {
        "nmoving": len(worlds) * (len(moving) + len(sites)),
        "nworld": len(worlds),
        "geoms": geoms,
        "surfaces": soft,
        "points": _blob(np.concatenate(points, 1)),
        "meshes": meshes,
        "images": images,
        "time": _blob(frames["time"]),
        "position": _blob(position),
        "rotation": _blob(_fractions(quaternions(rotation), "<i2")),
        "track": _blob(track),
        "follow": names if len(worlds) == 1 else [f"{w}: {name}" for w in range(len(worlds)) for name in names],
        "defaultFollow": _default_follow(m, roots, track, follow) if len(worlds) == 1 else -1,
        "contact": _blob(contact),
        "ncontact": _blob(ncontact),
        "camera": _camera(m) | _distance_to(m, len(worlds)),
        "cameras": _cameras(m, worlds[0]),
        "lights": _lights(m, worlds[0]),
        "headlight": _headlight(m),
        "plots": _plots(m, worlds),
        "extent": float(m.stat.extent),
        "sky": sky_colours(m),
    }


def _with_poses(m: Model, world: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A trajectory with poses: those that it has, else those at its qpos."""
    if "geom_xpos" in world:
        return world if "time" in world else world | {"time": np.arange(len(world["geom_xpos"])) * m.opt.timestep}
    return poses(m, world) | world


def _moved(frames: dict[str, np.ndarray], offset: np.ndarray) -> dict[str, np.ndarray]:
    """Frames of a world that stands elsewhere."""
    names = [n for n in ("geom_xpos", "xpos", "site_xpos") if n in frames]
    out = frames | {n: (frames[n] + offset).astype(np.float32) for n in names}
    out["contact"] = frames["contact"] + np.concatenate([offset, np.zeros(3)]).astype(np.float32)
    return out


def _all_contacts(every: list[dict[str, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Contacts of all worlds, frame by frame, and how many a frame has."""
    frame = [np.repeat(np.arange(len(f["ncontact"])), f["ncontact"].astype(int)) for f in every]
    order = np.argsort(np.concatenate(frame), kind="stable")
    return np.concatenate([f["contact"] for f in every])[order], np.sum([f["ncontact"] for f in every], axis=0)


def _distance_to(m: Model, nworld: int) -> dict[str, float]:
    """Distance from which all worlds are seen."""
    side = np.ceil(np.sqrt(nworld)) - 1
    return {"distance": (1.4 + 0.9 * WORLD_SPACING * side) * float(m.stat.extent)} if nworld > 1 else {}


def _cameras(m: Model, world: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Cameras of the first world, with their poses in every frame; none where the trajectory has none."""
    pos, mat = world.get("cam_xpos"), world.get("cam_xmat")
    if pos is None or mat is None or not np.isfinite(pos).all():
        return []
    names = [m.id2name("camera", i) or f"camera {i}" for i in range(m.ncam)]
    return [
        {
            "name": name,
            "fovy": float(m.cam_fovy[i]),
            "position": _blob(np.asarray(pos)[:, i]),
            "rotation": _blob(np.asarray(mat)[:, i].reshape(len(pos), 9)),
        }
        for i, name in enumerate(names)
    ]


def _lights(m: Model, world: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Lights that are on, with the first world's poses of them in every frame, or those of the model."""
    pos, way = world.get("light_xpos"), world.get("light_xdir")
    if pos is None or way is None:
        pos, way = np.asarray(m.light_pos0)[None], np.asarray(m.light_dir0)[None]
    kinds = {LightType.SPOT: "spot", LightType.DIRECTIONAL: "directional"}
    return [
        {
            "kind": kinds.get(LightType(m.light_type[i]), "head"),  # MuJoCo draws point lights as if at the camera
            "shadow": int(bool(m.light_castshadow[i])),
            "position": _blob(np.asarray(pos)[:, i]),
            "direction": _blob(np.asarray(way)[:, i]),
            "attenuation": _floats(m.light_attenuation[i]),
            "cone": _floats([np.cos(np.deg2rad(min(float(m.light_cutoff[i]), 180.0))), float(m.light_exponent[i])]),
            **{name: _floats(getattr(m, f"light_{name}")[i]) for name in ("ambient", "diffuse", "specular")},
        }
        for i in np.flatnonzero(m.light_active)
    ]


def _headlight(m: Model) -> dict[str, Any] | None:
    """The light at the camera, None where it is off."""
    head = m.vis.headlight
    colours = {name: _floats(getattr(head, name)) for name in ("ambient", "diffuse", "specular")}
    return colours if head.active else None


def _plots(m: Model, worlds: list[dict[str, np.ndarray]]) -> list[dict[str, Any]]:
    """Signals for plots under the time line, of the first world: sensors and the reward, values (nframe, k)."""
    out, world = [], worlds[0]
    reward, data = world.get("reward"), world.get("sensordata")
    if reward is not None:
        together = np.stack([np.reshape(w["reward"], -1) for w in worlds], 1)
        out.append({"name": "reward", "count": together.shape[1], "values": _blob(np.nan_to_num(together))})
    if data is None or data.ndim != 2 or data.shape[1] != m.nsensordata:
        return out
    for i in range(m.nsensor):
        rows = slice(int(m.sensor_adr[i]), int(m.sensor_adr[i] + m.sensor_dim[i]))
        values = np.nan_to_num(data[:, rows])
        name = m.id2name("sensor", i) or f"sensor {i}"
        out.append({"name": name, "count": values.shape[1], "values": _blob(values)})
    return [p for p in out if p["count"] <= MAX_LINES]


def _surfaces(
    m: Model, world: Mapping[str, np.ndarray], nframe: int, image_of: dict[int, int]
) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Flexes and skins, and their vertices (nframe, n, 3), one surface after the other."""
    found = {n: world[n] for n in ("flexvert_xpos", "xpos", "xmat") if np.size(world.get(n, ()))}
    shown = [s for s in surfaces(m, tuple(range(6))) if ("xmat" if s.skin else "flexvert_xpos") in found]
    frames = [{n: np.asarray(x[i]) for n, x in found.items()} for i in range(nframe)] if shown else []
    points = [np.stack([surface_points(m, s, frame) for frame in frames]) for s in shown]
    first = np.cumsum([0, *(p.shape[1] for p in points)])
    entries = [
        _surface(m, s, int(start), p.shape[1], image_of) for s, start, p in zip(shown, first, points, strict=False)
    ]
    every = np.concatenate(points, axis=1) if points else np.zeros((nframe, 0, 3))
    return entries, np.nan_to_num(every.astype(np.float32))


def _with_tendons(
    m: Model, world: Mapping[str, np.ndarray], soft: tuple[list[dict[str, Any]], np.ndarray]
) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Surfaces and their vertices, and after them spatial tendons, drawn as edges between points of their paths."""
    entries, vertices = soft
    o = layout.objects(m)
    if any(name not in world for name in TENDON):
        return soft
    for t in range(m.ntendon):
        part = o.part[(o.objtype == ObjType.TENDON) & (o.row == t)]
        if not len(part):
            continue
        points = np.reshape(world["wrap_xpos"], (len(vertices), -1, 3))
        owner = np.reshape(world["wrap_obj"], (len(vertices), -1))
        row = np.clip(np.asarray(world["ten_wrapadr"])[:, t, None] + part, 0, points.shape[1] - 2)
        there = part < np.asarray(world["ten_wrapnum"])[:, t, None] - 1
        frame = np.arange(len(vertices))[:, None]
        there &= (owner[frame, row] != PULLEY) & (owner[frame, row + 1] != PULLEY)
        a, b = points[frame, row], points[frame, row + 1]
        ends = np.stack([a, np.where(there[..., None], b, a)], 2).reshape(len(vertices), -1, 3)
        rgba, _ = look(m, int(m.tendon_matid[t]), np.asarray(m.tendon_rgba[t]))
        face = np.arange(2 * len(part)).reshape(-1, 2)
        s = Surface(False, t, face, np.zeros((2 * len(part), 2)), rgba, -1, True)
        entry = _drawn(s, vertices.shape[1], ends.shape[1], int(m.tendon_group[t]), image_of={})
        entries = [*entries, entry | {"thickness": float(m.tendon_width[t]), "sheet": False}]
        vertices = np.concatenate([vertices, ends.astype(np.float32)], 1)
    return entries, vertices


def _surface(m: Model, s: Surface, first: int, count: int, image_of: dict[int, int]) -> dict[str, Any]:
    group = m.skin_group[s.id] if s.skin else m.flex_group[s.id]
    entry = _drawn(s, first, count, int(group), image_of)
    return entry | {"thickness": thickness(m, s), "sheet": bool(is_sheet(m, s))}


def _drawn(s: Surface, first: int, count: int, group: int, image_of: dict[int, int]) -> dict[str, Any]:
    """A surface as the page draws it, with its vertices in the table of all."""
    return PLAIN_LOOK | {
        "rgba": _floats(s.rgba),
        "image": image_of.get(s.texture, -1),
        "group": int(np.clip(group, 0, 5)),
        "first": first,
        "count": count,
        "corners": s.face.shape[1],
        "face": _blob(s.face),
        "coordinate": _blob(s.coordinate),
        "smooth": bool(s.smooth),
    }


def _frames(m: Model, world: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays of a world's trajectory that are drawn, with their shapes checked, as finite float32."""
    frames, get = {}, world.get
    nframe = len(np.atleast_1d(world["time"]))
    shapes = {"time": (), "geom_xpos": (m.ngeom, 3), "geom_xmat": (m.ngeom, 9), "xpos": (m.nbody, 3)}
    if m.nsite and get("site_xpos") is not None and get("site_xmat") is not None:
        shapes |= {"site_xpos": (m.nsite, 3), "site_xmat": (m.nsite, 9)}
    for name, shape in shapes.items():
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


def _of_both(frames: dict[str, np.ndarray], field: str, moving: np.ndarray, sites: np.ndarray) -> np.ndarray:
    """Positions or rotations of the moving geoms, then of the moving sites."""
    geoms = frames[f"geom_{field}"][:, moving]
    return np.concatenate([geoms, frames[f"site_{field}"][:, sites]], 1) if len(sites) else geoms


def _blob(array: np.ndarray) -> dict[str, Any]:
    """Base64 text of an array with its type, compressed if it is long; types that the page lacks become float32."""
    array = np.ascontiguousarray(array, array.dtype if array.dtype in BLOB_TYPES else "<f4")
    data, zipped = array.tobytes(), array.nbytes > COMPRESS_BYTES
    text = base64.b64encode(zlib.compress(data, 9) if zipped else data).decode()
    return {"type": BLOB_TYPES[array.dtype], "data": text, "deflate": int(zipped)}


def _fractions(x: np.ndarray, dtype: str) -> np.ndarray:
    """Numbers from -1 to 1 as integers, fractions of the type's greatest."""
    return np.round(np.clip(x, -1, 1) * np.iinfo(dtype).max).astype(dtype)


def quaternions(xmat: np.ndarray) -> np.ndarray:
    """Convert rotation matrices (..., 9) to unit quaternions (..., 4), w first.

    Of the four formulas, the one with the largest divisor is used, so that it is never degenerate.
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


def _sites(m: Model, frames: dict[str, np.ndarray], moving: np.ndarray, first: int) -> list[dict[str, Any]]:
    """Sites as the page draws them; the poses of those that move stand after those of `first` geoms."""
    if "site_xpos" not in frames:
        return []
    slot = np.full(m.nsite, -1)
    slot[moving] = first + np.arange(len(moving))
    quat, out = quaternions(frames["site_xmat"][0]), []
    for i in range(m.nsite):
        rgba, _ = look(m, int(m.site_matid[i]), m.site_rgba[i])
        out.append(
            {
                "site": 1,
                "moving": int(slot[i]),
                "group": int(np.clip(m.site_group[i], 0, 5)),
                "shape": SHAPES[GeomType(m.site_type[i])],
                "size": _floats(m.site_size[i]),
                "rgba": _floats(rgba),
                "pos": _floats(frames["site_xpos"][0, i]),
                "quat": _floats(quat[i]),
                **PLAIN_LOOK,
            }
        )
    return out


def geom_appearance(m: Model, g: int, kind: GeomType, image_of: dict[int, int]) -> dict[str, Any]:
    """Find colour, gloss and texture of a geom; its own rgba overrides the material's unless it is the default."""
    mat = int(m.geom_matid[g])
    rgba, _ = look(m, mat, m.geom_rgba[g])
    shown: dict[str, Any] = dict(PLAIN_LOOK)
    if mat >= 0:
        shown |= {name: float(getattr(m, f"mat_{name}")[mat]) for name in ("specular", "shininess", "emission")}
        tex = int(m.mat_texid[mat, TextureRole.RGB])
        if tex in image_of and kind in (GeomType.PLANE, GeomType.MESH, GeomType.BOX, GeomType.HFIELD):
            shown |= {"image": image_of[tex], "repeat": _repeat(m, g, mat, kind)}
        elif tex >= 0:
            rgba = rgba * np.append(layout.texture_pixels(m, tex).reshape(-1, 3).mean(0) / 255, 1)
    return shown | {"rgba": _floats(rgba)}


def _repeat(m: Model, g: int, mat: int, kind: GeomType) -> list[float]:
    """Texture repeats (2): per metre for planes, whose coordinate is in metres, over the whole surface otherwise."""
    repeat = np.asarray(m.mat_texrepeat[mat], np.float64)
    if kind != GeomType.PLANE:
        return _floats(repeat)
    size = np.asarray(m.geom_size[g, :2], np.float64)
    per_metre = np.ones(2) if m.mat_texuniform[mat] else np.where(size > 0, 1 / np.maximum(size, 1e-9), 1.0)
    return _floats(0.5 * repeat * per_metre)


def _images(m: Model) -> tuple[list[str], dict[int, int]]:
    """2-D textures of materials as data URLs, and the index in that list by texture id."""
    urls: list[str] = []
    image_of: dict[int, int] = {}
    used = {int(t) for t in np.asarray(m.mat_texid).reshape(-1, 10)[:, TextureRole.RGB]} if m.nmat else set()
    for tex in sorted(used):
        if tex < 0 or m.tex_type[tex] != TextureType.TEXTURE_2D:
            continue
        pixels = np.round(255 * layout.linear_image(m, tex)[0, ::-1]).astype(np.uint8)
        image = png_bytes(reduced(pixels, MAX_IMAGE))
        image_of[tex] = len(urls)
        urls.append("data:image/png;base64," + base64.b64encode(image).decode())
    return urls, image_of


def _meshes(m: Model) -> tuple[list[dict[str, Any]], dict[int, int]]:
    """Triangles of every mesh and height field in use, and the index in that list by geom id."""
    blobs: list[dict[str, Any]] = []
    index_of: dict[tuple[int, int], int] = {}
    mesh_of: dict[int, int] = {}
    for g in np.flatnonzero(np.isin(m.geom_type, TRIANGLES)):
        hfield = m.geom_type[g] == GeomType.HFIELD
        key = (int(hfield), int(m.geom_dataid[g]))
        if key not in index_of:
            index_of[key] = len(blobs)
            triangles = hfield_triangles(m, key[1]) if hfield else mesh_triangles(m, key[1])
            blobs.append(make_mesh(triangles, bool(m.nmat)))
        mesh_of[int(g)] = index_of[key]
    return blobs, mesh_of


def make_mesh(corner: np.ndarray, textured: bool) -> dict[str, Any]:
    """Pack corners (3 n, 8) of triangles as shared vertices: positions in 1/32767 of the half box, normals in 1/127."""
    corner = simplified(np.asarray(corner, np.float32), MAX_TRIANGLES)
    low, high = (f(corner[:, :3], 0) if len(corner) else np.zeros(3, np.float32) for f in (np.min, np.max))
    centre, half = (low + high) / 2, np.maximum((high - low) / 2, 1e-9)
    parts = [_fractions((corner[:, :3] - centre) / half, "<i2"), _fractions(corner[:, 3:6], "i1")]
    parts += [corner[:, 6:].astype("<f4")] if textured else []
    rows = np.concatenate([np.ascontiguousarray(p).view(np.uint8).reshape(len(corner), -1) for p in parts], 1)
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).ravel()
    _, first, index = np.unique(keys, return_index=True, return_inverse=True)
    names = ("position", "normal", "coord")
    out: dict[str, Any] = {name: _blob(p[first]) for name, p in zip(names, parts, strict=False)}
    return out | {"index": _blob(index.astype("<u4")), "centre": _floats(centre), "half": _floats(half)}


def simplified(corner: np.ndarray, most: int) -> np.ndarray:
    """Simplify corners (3 n, 8) of triangles to (3 k, 8) of at most `most` that look like them.

    Vertices in one cell of a grid are merged at their mean; the grid gets coarser until the mesh is small enough.
    Degenerate triangles are removed.
    """
    cells, count = 256, len(corner) // 3
    low, high = (f(corner[:, :3], 0) if len(corner) else 0 for f in (np.min, np.max))
    out = corner
    while len(out) > 3 * most and cells > 2:
        size = np.max(high - low) / cells
        grid = np.floor((corner[:, :3] - low) / np.maximum(size, 1e-12)).astype(np.int64)
        _, cell = np.unique(grid @ np.array([1, 1 << 20, 1 << 40]), return_inverse=True)
        kept = cell.reshape(count, 3)
        kept = (kept != np.roll(kept, 1, 1)).all(1).repeat(3)
        number = np.bincount(cell)
        mean = np.stack([np.bincount(cell, corner[:, k]) / number for k in range(3)], 1)
        out = np.concatenate([mean[cell], corner[:, 3:]], 1)[kept].astype(np.float32)
        cells = cells * 3 // 4
    return out


def mesh_triangles(m: Model, i: int) -> np.ndarray:
    """Collect the corners (3 nface, 8) of the triangles of a mesh: position, normal, texture coordinate."""
    mesh = layout.mesh(m, i)
    return np.concatenate([m.mesh_vert[mesh.vertex], mesh.normal, mesh.coordinate], axis=2).reshape(-1, 8)


def hfield_triangles(m: Model, i: int) -> np.ndarray:
    """Triangulate the upper surface of a height field, two triangles a cell, corners (n, 8) with smooth normals."""
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


def _camera(m: Model) -> dict[str, Any]:
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


def sky_colours(m: Model) -> list[list[float]]:
    """Choose colours of the zenith and of the horizon, from the skybox if there is one."""
    for tex in np.flatnonzero(m.tex_type == TextureType.SKYBOX):
        faces = layout.texture_pixels(m, int(tex)) / 255.0
        side = faces.shape[0] // 6
        if side:
            up, front = faces[2 * side : 3 * side], faces[4 * side : 5 * side]
            return [_floats(up.mean((0, 1))), _floats(front[side // 2].mean(0))]
    return [[0.36, 0.46, 0.58], [0.74, 0.81, 0.88]]


def _floats(x: Any) -> list[float]:
    """Numbers rounded for JSON."""
    return [round(float(v), 7) for v in np.ravel(np.asarray(x))]
