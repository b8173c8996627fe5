"""`load_model`: from a file, a text or a spec to a model on the device."""

from __future__ import annotations

import os

from jaxsim.compiler.compile import compile_spec
from jaxsim.interop import finish
from jaxsim.mjcf import Spec, read
from jaxsim.model import Model, to_device


def load_model(
    source: str | os.PathLike | Spec,
    max_contacts: int | None = None,
    max_constraints: int | None = None,
    assets: dict[str, bytes] | None = None,
) -> Model:
    """A compiled model from a path, a text (MJCF or URDF) or a `Spec`.

    Args:
        source: a path, the XML text itself, or a `jaxsim.mjcf.Spec`.
        max_contacts: capacity of the contact buffer; by default such that ordinary use does not overflow.
        max_constraints: capacity of the packed constraint rows; by default as many as there can be.
        assets: files by name, looked up before the file system; for paths and texts.

    Raises:
        ModelError: the model is wrong; the message says where and what would be right.
        UnsupportedError: the model uses a feature that is not built; the message names it.
        FileNotFoundError: there is no such file.
    """
    spec = source if isinstance(source, Spec) else read(source, assets)
    return to_device(finish(compile_spec(spec), max_contacts, max_constraints))
