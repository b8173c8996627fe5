"""Height fields: from a PNG image, a binary file or numbers to mjModel's `hfield_*` fields.

The entry is `compile_hfield(HFieldInput(...)) -> HFieldArrays`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxsim.compiler.asset.png import read_png
from jaxsim.core.errors import ModelError
from jaxsim.mjcf.files import content_type
from jaxsim.mjcf.pose import EPS

MAX_ELEVATIONS = 2**26


@dataclass
class HFieldInput:
    """Attributes of a height field element, and the bytes of its file.

    Attributes:
        name: for messages.
        size: (4,) radius in x, radius in y, elevation above, depth below.
        nrow, ncol, elevation: numbers row by row from the top (empty: flat); used only without a file.
        file, filename, content_type: bytes of the file (None: no file), its name, its type if given.
    """

    name: str = ""
    size: np.ndarray | Sequence = (0.0, 0.0, 0.0, 0.0)
    nrow: int = 0
    ncol: int = 0
    elevation: np.ndarray | Sequence = ()
    file: bytes | None = None
    filename: str = ""
    content_type: str = ""


@dataclass
class HFieldArrays:
    """size (4,) float64; nrow, ncol; data (nrow * ncol,) float32 in [0, 1], row by row from the bottom."""

    size: np.ndarray
    nrow: int
    ncol: int
    data: np.ndarray


def compile_hfield(hfield: HFieldInput) -> HFieldArrays:
    """Compile the fields of a height field.

    Raises:
        ModelError: for sizes that are not positive, a wrong number of elevations or a file that is not well formed.
    """
    size = np.asarray(hfield.size, dtype=np.float64).reshape(-1)
    if size.size != 4 or not np.all(np.isfinite(size)) or np.any(size <= 0):
        raise ModelError(f"hfield '{hfield.name}': 'size' needs four positive numbers")
    data = _inline(hfield) if hfield.file is None else _from_file(hfield, hfield.file)
    if data.size == 0:
        raise ModelError(f"hfield '{hfield.name}' has no elevations: give a file, or nrow and ncol")
    if not np.all(np.isfinite(data)):
        raise ModelError(f"hfield '{hfield.name}' has elevations that are not finite")
    low, high = np.float32(min(data.min(), np.float32(1e10))), np.float32(max(data.max(), np.float32(-1e10)))
    if low > high:
        raise ModelError(f"hfield '{hfield.name}' has elevations beyond 1e10")
    flat = data.reshape(-1) - low
    if high - low > EPS:
        flat = flat / (high - low)
    return HFieldArrays(size, data.shape[0], data.shape[1], flat)


def _inline(hfield: HFieldInput) -> np.ndarray:
    nrow, ncol = int(hfield.nrow), int(hfield.ncol)
    if nrow < 1 or ncol < 1:
        return np.zeros((0, 0), np.float32)
    if nrow * ncol > MAX_ELEVATIONS:
        raise ModelError(f"hfield '{hfield.name}' of {nrow} x {ncol} elevations is too large")
    given = np.asarray(hfield.elevation, dtype=np.float64).reshape(-1)
    if given.size == 0:
        return np.zeros((nrow, ncol), np.float32)
    if given.size != nrow * ncol:
        raise ModelError(f"hfield '{hfield.name}': 'elevation' has {given.size} numbers; nrow x ncol is {nrow * ncol}")
    with np.errstate(over="ignore"):
        return given.astype(np.float32).reshape(nrow, ncol)[::-1]


def _from_file(hfield: HFieldInput, data: bytes) -> np.ndarray:
    kind = content_type(hfield.content_type, hfield.filename, "image/vnd.mujoco.hfield")
    if kind == "image/png":
        return read_png(data, 1, hfield.filename)[0][::-1, :, 0].astype(np.float32)
    if kind == "image/vnd.mujoco.hfield":
        return _read_binary(data, hfield.filename)
    raise ModelError(f"unsupported content type: '{kind}' in hfield '{hfield.name}'")


def _read_binary(data: bytes, filename: str) -> np.ndarray:
    """Read two int32 counts (rows, columns), then float32 elevations."""
    if not data:
        raise ModelError(f"height field file '{filename}' is empty")
    if len(data) < 8:
        raise ModelError(f"height field file '{filename}' is too short: it begins with its numbers of rows and columns")
    nrow, ncol = struct.unpack_from("<2i", data)
    if nrow < 1 or ncol < 1:
        raise ModelError(
            f"height field file '{filename}' begins with {nrow} rows and {ncol} columns; both must be positive"
        )
    if len(data) != 8 + 4 * nrow * ncol:
        need = f"{nrow} x {ncol} elevations need {8 + 4 * nrow * ncol}"
        raise ModelError(f"height field file '{filename}' has {len(data)} bytes; {need}")
    return np.frombuffer(data, "<f4", nrow * ncol, 8).astype(np.float32).reshape(nrow, ncol)
