"""Optional packages: imported by the function that needs them, with an error that names the extra to install."""

import importlib
from types import ModuleType


def require(module: str, purpose: str, extra: str) -> ModuleType:
    """Return the module of this name.

    Raise ImportError with `purpose` (the feature and its need) and the extra to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{purpose}: pip install 'jaxsim-mjcf[{extra}]'") from error
