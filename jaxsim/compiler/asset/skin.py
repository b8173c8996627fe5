"""Skins: from attributes or a SKN file to mjModel's `skin_*` fields.

The entry is `compile_skin(SkinInput(...)) -> SkinArrays`. Bodies of bones are given by name: the caller finds them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from jaxsim.compiler.asset.mesh import flat32
from jaxsim.core.errors import ModelError
from jaxsim.core.types import MINVAL

_BONE_HEADER = 18 * 4  # name of 40 bytes, position, quaternion, number of vertices


@dataclass
class SkinInput:
    """Attributes of a skin element, and the bytes of its file.

    Attributes:
        name: for messages.
        file, filename: bytes of the SKN file (None: no file) and its name; with a file all fields below are empty.
        vertex, texcoord: flat floats. face: flat ints.
        body: names of the bones' bodies. bindpos (nbone, 3), bindquat (nbone, 4).
        vertid, vertweight: for each bone the vertices that it moves and their weights.
    """

    name: str = ""
    file: bytes | None = None
    filename: str = ""
    vertex: np.ndarray | Sequence = ()
    texcoord: np.ndarray | Sequence = ()
    face: np.ndarray | Sequence = ()
    body: list[str] = field(default_factory=list)
    bindpos: np.ndarray | Sequence = ()
    bindquat: np.ndarray | Sequence = ()
    vertid: list = field(default_factory=list)
    vertweight: list = field(default_factory=list)


@dataclass
class SkinArrays:
    """mjModel's fields of one skin; addresses relative to it.

    Attributes:
        vert (nv, 3), texcoord (nt, 2): float32. has_texcoord: else `skin_texcoordadr` is -1. face: (nf, 3) int32.
        bonebody: names of the bodies. bonebindpos (nb, 3), bonebindquat (nb, 4): float32.
        bonevertadr, bonevertnum: (nb,) int32. bonevertid, bonevertweight: all bones' vertices, concatenated.
    """

    vert: np.ndarray
    texcoord: np.ndarray
    face: np.ndarray
    bonebody: list[str]
    bonebindpos: np.ndarray
    bonebindquat: np.ndarray
    bonevertadr: np.ndarray
    bonevertnum: np.ndarray
    bonevertid: np.ndarray
    bonevertweight: np.ndarray
    has_texcoord: bool


def compile_skin(skin: SkinInput) -> SkinArrays:
    """Compile the fields of a skin.

    Raises:
        ModelError: for data that is missing or inconsistent, and for a file that is not well formed.
    """
    if skin.file is not None:
        skin = _load(skin, skin.file)
    vert, texcoord = flat32(skin.vertex), flat32(skin.texcoord)
    face = np.asarray(skin.face, dtype=np.int64).reshape(-1)
    bindpos, bindquat = flat32(skin.bindpos), flat32(skin.bindquat)
    nbone = len(skin.body)
    if not (vert.size and face.size and nbone and bindpos.size and bindquat.size and skin.vertid and skin.vertweight):
        raise ModelError(f"skin '{skin.name}' needs 'vertex', 'face' and bones with 'vertid' and 'vertweight'")
    nvert = vert.size // 3
    _require(vert.size % 3 == 0, skin, "vertex data must be multiple of 3")
    _require(texcoord.size in (0, 2 * nvert), skin, "vertex and texcoord data incompatible size")
    _require(face.size % 3 == 0, skin, "face data must be multiple of 3")
    _require(bindpos.size == 3 * nbone, skin, "unexpected bindpos size")
    _require(bindquat.size == 4 * nbone, skin, "unexpected bindquat size")
    _require(len(skin.vertid) == nbone, skin, "unexpected vertid size")
    _require(len(skin.vertweight) == nbone, skin, "unexpected vertweight size")
    _require(bool(np.all((face >= 0) & (face < nvert))), skin, "face has a vertex index that does not exist")
    finite = all(np.all(np.isfinite(x)) for x in (vert, texcoord, bindpos, bindquat))
    _require(finite, skin, "data is not finite")
    vertid, weight, num = _weights(skin, nvert)
    return SkinArrays(
        vert=vert.reshape(-1, 3),
        texcoord=texcoord.reshape(-1, 2),
        face=face.reshape(-1, 3).astype(np.int32),
        bonebody=list(skin.body),
        bonebindpos=bindpos.reshape(-1, 3),
        bonebindquat=_unit_quats(bindquat.reshape(-1, 4)),
        bonevertadr=(np.cumsum(num) - num).astype(np.int32),
        bonevertnum=num.astype(np.int32),
        bonevertid=vertid.astype(np.int32),
        bonevertweight=weight,
        has_texcoord=bool(texcoord.size),
    )


def _require(good: bool, skin: SkinInput, message: str) -> None:
    if not good:
        raise ModelError(f"{message} in skin '{skin.name}'")


def _weights(skin: SkinInput, nvert: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all bones' vertices, their weights scaled to a sum of one at every vertex, and the numbers of vertices."""
    ids = [np.asarray(x, dtype=np.int64).reshape(-1) for x in skin.vertid]
    weights = [flat32(x) for x in skin.vertweight]
    same = all(len(i) == len(w) > 0 for i, w in zip(ids, weights, strict=True))
    _require(same, skin, "vertid and vertweight must have same non-zero size")
    vertid, weight = np.concatenate(ids), np.concatenate(weights)
    bad = np.flatnonzero((vertid < 0) | (vertid >= nvert))
    if bad.size:
        raise ModelError(f"vertid {vertid[bad[0]]} does not exist: there are {nvert} vertices in skin '{skin.name}'")
    total = np.zeros(nvert, dtype=np.float32)
    np.add.at(total, vertid, weight)
    bad = np.flatnonzero(~(total > MINVAL))
    if bad.size:
        raise ModelError(f"vertex {bad[0]} must have positive total weight in skin '{skin.name}'")
    return vertid, weight / total[vertid], np.array([len(i) for i in ids])


def _unit_quats(quat: np.ndarray) -> np.ndarray:
    """Normalise quaternions; those that are too short do not change."""
    wide = quat.astype(np.float64)
    square = (wide * wide).sum(axis=1, keepdims=True)
    norm = np.where(square < 1e-14, 1.0, np.sqrt(square))
    return (wide / norm).astype(np.float32)


def _load(skin: SkinInput, data: bytes) -> SkinInput:
    """Read the skin of a SKN file: four counts, vertices, texture coordinates, faces, then the bones."""
    for what in ("vertex", "texcoord", "face", "body", "bindpos", "bindquat", "vertid", "vertweight"):
        _require(len(getattr(skin, what)) == 0, skin, f"both skin data and file were specified: {skin.filename}")
    name = skin.filename
    if not name.lower().endswith(".skn"):
        raise ModelError(f"unknown skin file type: {name}")
    if len(data) < 16:
        raise ModelError(f"SKN file '{name}' is too short for its header" if data else f"SKN file '{name}' is empty")
    nvert, ntexcoord, nface, nbone = struct.unpack_from("<4i", data)
    if min(nvert, ntexcoord, nface, nbone) < 0:
        raise ModelError(f"negative size in header of SKN file '{name}'")
    at = 16 + 12 * nvert + 8 * ntexcoord + 12 * nface
    if len(data) < at:
        raise ModelError(f"SKN file '{name}' ends before its last vertex or face")
    if nbone * (_BONE_HEADER + 8) > len(data) - at:
        raise ModelError(f"SKN file '{name}' is too short for {nbone} bones")
    out = SkinInput(name=skin.name)
    out.vertex = np.frombuffer(data, "<f4", 3 * nvert, 16)
    out.texcoord = np.frombuffer(data, "<f4", 2 * ntexcoord, 16 + 12 * nvert)
    out.face = np.frombuffer(data, "<i4", 3 * nface, 16 + 12 * nvert + 8 * ntexcoord)
    frames = []
    for bone in range(nbone):
        if len(data) - at < _BONE_HEADER:
            raise ModelError(f"SKN file '{name}' ends within bone {bone}")
        out.body.append(data[at : at + 39].split(b"\0")[0].decode("utf-8", errors="replace"))
        frames.append(np.frombuffer(data, "<f4", 7, at + 40))
        (count,) = struct.unpack_from("<i", data, at + 68)
        at += _BONE_HEADER
        if count < 1:
            raise ModelError(f"vertex count must be positive in SKN file '{name}', bone {bone}")
        if len(data) - at < 8 * count:
            raise ModelError(f"SKN file '{name}' ends within the vertices of bone {bone}")
        out.vertid.append(np.frombuffer(data, "<i4", count, at))
        out.vertweight.append(np.frombuffer(data, "<f4", count, at + 4 * count))
        at += 8 * count
    if at != len(data):
        raise ModelError(f"SKN file '{name}' goes on after its last bone")
    frames = np.array(frames, dtype=np.float32).reshape(-1, 7)
    out.bindpos, out.bindquat = frames[:, :3], frames[:, 3:]
    return out
