"""Optional packages: imported by the function that needs them, with an error that names the extra to install."""

import importlib
from types import ModuleType


def require(module: str, purpose: str, extra: str) -> ModuleType:
    """The module of this name. Raises ImportError with `purpose` (what needs what) and the extra that brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{purpose}: pip install 'jaxsim-mjcf[{extra}]'") from error
