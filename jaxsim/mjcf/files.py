"""Files of a model: their bytes, from the assets of a spec or the file system.

As in MuJoCo, a backslash in a file name separates folders on every platform.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from jaxsim.core.errors import ModelError

MAX_BYTES = 256 * 2**20
_SCHEME = "://"
_CONTENT_TYPES = {
    ".stl": "model/stl",
    ".obj": "model/obj",
    ".ply": "model/ply",
    ".msh": "model/vnd.mujoco.msh",
    ".png": "image/png",
    ".ktx": "image/ktx",
}


def portable(path: str) -> str:
    """Return a path with slashes as the only separators of folders."""
    return path.replace("\\", "/")


def base_name(path: str) -> str:
    """Return the name of a file without its folders."""
    return os.path.basename(portable(path))


def content_type(written: str, filename: str, default: str) -> str:
    """Return the type of a file: as written, else by the ending of its name, else the default."""
    if written:
        return written.split(";")[0].strip()
    _, dot, ending = filename.rpartition(".")
    return _CONTENT_TYPES.get(dot + ending.lower(), default)


def check_assets(assets: Mapping[str, Any] | None) -> dict[str, bytes]:
    """Check contents of files by name. Raises TypeError for contents that are not bytes."""
    for name, data in (assets or {}).items():
        if not isinstance(data, bytes):
            hint = ": use .encode()" if isinstance(data, str) else ""
            raise TypeError(f"assets[{name!r}] is of type {type(data).__name__}, wanted bytes{hint}")
    return dict(assets or {})


def read_bytes(assets: Mapping[str, bytes], path: str) -> bytes | None:
    """Return the bytes of a file from the assets, else from the file system; None if there is no file."""
    found = _find_asset(assets, path)
    return _read_bounded(path) if found is None and os.path.isfile(path) else found


def not_found(path: str) -> str:
    """Return the error text for a path without a file, with the remedy if it is known."""
    if os.path.isdir(path):
        return f"'{path}' is a folder, not a file"
    if _SCHEME in path:
        before, _, name = path.partition(_SCHEME)
        return (
            f"cannot find the file '{before.rpartition('/')[2]}{_SCHEME}{name}': addresses are not looked up. Name the "
            'folder of the files and drop that of the address: <compiler meshdir="FOLDER" strippath="true"/>, in URDF '
            "within <mujoco>"
        )
    return f"cannot find the file '{path}'"


def _find_asset(assets: Mapping[str, bytes], path: str) -> bytes | None:
    """Find a file's bytes in the assets, by its path as written, else by its bare file name; None if absent."""
    if path in assets:
        return assets[path]
    bare = base_name(path)
    return next((data for name, data in assets.items() if base_name(name) == bare), None)


def _read_bounded(path: str) -> bytes:
    if os.path.getsize(path) > MAX_BYTES:
        raise ModelError(f"the file '{path}' is larger than {MAX_BYTES} bytes")
    with open(path, "rb") as stream:
        return stream.read(MAX_BYTES + 1)
