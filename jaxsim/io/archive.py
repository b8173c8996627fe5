"""Files of compiled models: `save_model` writes one, `load_model` reads it without compiling.

The file is a zip archive: `header.json` holds format, version, sizes, options, visual settings and the list of arrays;
each array is a member in NumPy's format. Nothing in it is executed, and it is the same on every platform.
"""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
import zlib
from typing import Any

import numpy as np

from jaxsim.core.callbacks import Callbacks
from jaxsim.core.errors import ModelError, UnsupportedError
from jaxsim.core.frames import near_frames
from jaxsim.core.make_model import strain_modes
from jaxsim.core.model import ARRAYS, BYTES, CAPACITIES, FLOATS, MODEL_FIELDS, SIZES, Model
from jaxsim.core.option import OPTION_FLOATS, OPTION_INTS, STATISTICS, Option, Statistic
from jaxsim.core.struct import evaluate
from jaxsim.core.structure import Structure
from jaxsim.core.visual import make_visual

FORMAT, VERSION = "jaxsim-model", 1
MAX_BYTES = 8 * 2**30
_HEADER = "header.json"
_DAMAGE = (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError)
_DAMAGE += (KeyError, TypeError, ValueError, AttributeError, OverflowError, MemoryError)
_DATE = (1980, 1, 1, 0, 0, 0)
_SHAPES = {f.name: f.shape for f in MODEL_FIELDS}


def save_model(m: Model, path: str | os.PathLike) -> None:
    """Write a compiled model, numbers and structure in their precision, to a file that `load_model` reads.

    Args:
        m: any `Model`, batched leaves included.
        path: the file, by convention with the suffix `.jaxsim`.

    Raises:
        UnsupportedError: the model has callbacks, which are Python functions and cannot be written.
    """
    if m.callbacks != Callbacks():
        raise UnsupportedError("a model with callbacks cannot be saved; remove them, and set them after loading")
    arrays = {name: np.asarray(getattr(m, name)) for name in (*FLOATS, *ARRAYS)}
    arrays |= {name: np.frombuffer(getattr(m, name), np.uint8) for name in BYTES}
    arrays |= {f"opt.{name}": np.asarray(getattr(m.opt, name)) for name in OPTION_FLOATS}
    arrays |= {f"stat.{name}": np.asarray(getattr(m.stat, name)) for name in STATISTICS}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "modelname": m.modelname,
        "sizes": {name: int(getattr(m, name)) for name in (*SIZES, *CAPACITIES)},
        "option": {name: int(getattr(m.opt, name)) for name in OPTION_INTS},
        "visual": {group: _plain(values.values()) for group, values in m.vis.values().items()},
        "arrays": {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()},
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(_HEADER, _DATE), json.dumps(header, indent=1))
        for name, array in arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False)
            member = zipfile.ZipInfo(f"{name}.npy", _DATE)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, stream.getvalue())


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {k: np.asarray(v).tolist() for k, v in values.items()}


def is_archive(path: str | os.PathLike) -> bool:
    """Return whether a file begins like a zip archive, as those of `save_model` do."""
    try:
        with open(path, "rb") as stream:
            return stream.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def read_archive(path: str | os.PathLike) -> Model:
    """Read a host model (NumPy leaves in their saved precision) from a file that `save_model` wrote.

    Raises:
        ModelError: the file is damaged, of another format, or of an unknown version.
    """
    name = os.fspath(path)
    try:
        with zipfile.ZipFile(path) as archive:
            header = _read_header(archive, name)
            return _assemble(
                header, {key: _read_array(archive, key, *entry) for key, entry in header["arrays"].items()}
            )
    except ModelError:
        raise
    except _DAMAGE as reason:
        raise ModelError(f"the model file '{name}' is damaged: {reason}") from None


def _read_header(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    total = sum(info.file_size for info in archive.infolist())
    if total > MAX_BYTES:
        raise ModelError(f"the model file '{name}' holds {total} bytes uncompressed; at most {MAX_BYTES} are read")
    header = json.loads(archive.read(_HEADER))
    if header["format"] != FORMAT:
        raise ModelError(f"'{name}' is not a compiled model of jaxsim")
    if header["version"] != VERSION:
        raise ModelError(f"'{name}' has version {header['version']}; this jaxsim reads version {VERSION}")
    return header


def _read_array(archive: zipfile.ZipFile, name: str, dtype: str, shape: list[int]) -> np.ndarray:
    member = archive.getinfo(f"{name}.npy")
    size = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
    if not size <= member.file_size <= size + 4096:
        raise ValueError(f"array {name} has {member.file_size} bytes, not {size}")
    array = np.lib.format.read_array(io.BytesIO(archive.read(member)), allow_pickle=False)
    if array.dtype.str != dtype or array.shape != tuple(shape):
        raise ValueError(f"array {name} is {array.dtype}{array.shape}, not {dtype}{tuple(shape)}")
    return array


def _assemble(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Model:
    sizes = {name: int(header["sizes"][name]) for name in (*SIZES, *CAPACITIES)}
    for name in (*FLOATS, *ARRAYS, *BYTES):
        shape = evaluate(_SHAPES[name], sizes)
        found = arrays[name].shape
        if found[len(found) - len(shape) :] != tuple(shape) or (name not in FLOATS and len(found) != len(shape)):
            raise ValueError(f"array {name} has shape {found}; the sizes say {tuple(shape)}")
    visual = {(group, key): _tuple(v) for group, values in header["visual"].items() for key, v in values.items()}
    static = {**sizes, **{name: arrays[name] for name in ARRAYS}, "vis": make_visual(visual)}
    static |= {name: arrays[name].tobytes() for name in BYTES}
    static |= {"modelname": str(header["modelname"]), "callbacks": Callbacks()}
    static["eq_strain"] = strain_modes({**sizes, **arrays})
    static["near_frames"] = near_frames({**sizes, **arrays})
    options: dict[str, Any] = {name: arrays[f"opt.{name}"] for name in OPTION_FLOATS}
    options |= {name: int(header["option"][name]) for name in OPTION_INTS}
    statistics: dict[str, Any] = {name: arrays[f"stat.{name}"] for name in STATISTICS}
    floats = {name: arrays[name] for name in FLOATS}
    return Model(Structure(static), opt=Option(**options), stat=Statistic(**statistics), **floats)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
