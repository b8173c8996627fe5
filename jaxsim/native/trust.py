"""Record on which kinds of GPU and TPU the native programs were compared with JAX operations, and where they differed.

A kind of device on which no program of this package has run is not trusted: the engine compares a step of the user's
model there (`engine/step/first_program.py`), and JAX operations are used if the results differ.
"""

import hashlib
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import jax

from jaxsim.native import compiler
from jaxsim.native.jaxpr import GPU, TPU

KNOWN = ("NVIDIA H100 80GB HBM3",)  # kinds on which models were compared, see docs/decisions/gpu_first_run.md
FOLDER = "devices"


def kind() -> str | None:
    """Return the kind of the GPU or TPU that JAX uses by default, or None."""
    if jax.default_backend() not in ("gpu", GPU, TPU):
        return None
    device = jax.local_devices()[0]
    if device.platform == TPU:
        return device.device_kind
    return device.device_kind if GPU in device.client.platform_version.lower() else None


def is_new(model: str) -> bool:
    """Return whether a model, named by the digest of its structure, is still to be compared on this device."""
    device = kind()
    return device is not None and device not in KNOWN and model not in _record(device)


def note(model: str, fault: str | None) -> None:
    """Record that a model was compared on this device; `fault` says how its results differ, None if they do not."""
    device = kind()
    if device is None:
        return
    path = _path(device)
    new = path.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(_record(device) | {model: fault}), encoding="utf-8")
    os.replace(new, path)


def fault() -> str | None:
    """Return why native programs are not used on this device, or None."""
    device = kind()
    return next((text for text in _record(device).values() if text), None) if device else None


def _record(device: str) -> dict[str, Any]:
    try:
        return json.loads(_path(device).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _path(device: str) -> Path:
    """Return the file of a kind of device; another version of the generator has another file."""
    return compiler.folder(FOLDER) / f"{hashlib.sha256(f'{device} {_source()}'.encode()).hexdigest()[:40]}.json"


@cache
def _source() -> str:
    """Return a digest of the source of this folder and of the JAX version."""
    files = sorted(x for x in Path(__file__).parent.iterdir() if x.suffix in (".py", ".h", ".cu"))
    return compiler.digest(b"".join(x.read_bytes() for x in files) + jax.__version__.encode())
