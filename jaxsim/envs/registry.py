"""Registry of environments by name, each with a default config whose fields can be changed.

A name may include the module that registers it: `my_tasks:spin`, or `path/my_tasks.py:spin`. It is imported first.
"""

import dataclasses
import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxsim.core.errors import did_you_mean
from jaxsim.envs.base import Config, Env

_ENTRIES: dict[str, tuple[Callable[[Any], Env], Config]] = {}
_LISTENERS: list[Callable[[str], None]] = []


def register(name: str, make_env: Callable[[Any], Env], config: Config) -> None:
    """Add an environment: `make_env(config) -> Env`.

    The same class or function of the same file may be registered again, for example by a notebook cell that runs twice.
    Raises ValueError if another environment has the name.
    """
    is_new = name not in _ENTRIES
    if not is_new:
        old, old_config = _ENTRIES[name]
        ours = getattr(old, "__module__", "").startswith("jaxsim.") and old_config != config
        if ours or _origin(old) != _origin(make_env):
            raise ValueError(f"an environment named {name!r} is registered already")
    _ENTRIES[name] = make_env, config
    if is_new:
        for tell in _LISTENERS:
            tell(name)


def for_each_name(tell: Callable[[str], None]) -> None:
    """Call `tell(name)` for every environment that is registered now or later."""
    _LISTENERS.append(tell)
    for name in names():
        tell(name)


def _origin(make_env: Callable[[Any], Env]) -> tuple[str, str]:
    """Where a class or function was written (in a notebook, its module), and its name there."""
    parts = [make_env, *getattr(make_env, "__dict__", {}).values()]
    files = [x.__code__.co_filename for x in parts if hasattr(x, "__code__")]
    file = next((str(Path(x).resolve()) for x in files if Path(x).is_file()), getattr(make_env, "__module__", ""))
    return file, getattr(make_env, "__qualname__", repr(make_env))


def names() -> tuple[str, ...]:
    """List the names of all registered environments, sorted."""
    return tuple(sorted(_ENTRIES))


def _entry(name: str) -> tuple[Callable[[Any], Env], Config]:
    module, colon, last = name.rpartition(":")
    if colon:
        _import(module)
        name = last
    if name not in _ENTRIES:
        hint = did_you_mean(name, _ENTRIES, 3) or f"; the registered ones are {', '.join(names())}"
        raise KeyError(f"no environment {name!r}{hint}")
    return _ENTRIES[name]


def _import(module: str) -> None:
    """Import a module, by its dotted name or by the path of its file, once."""
    if not module.endswith(".py"):
        importlib.import_module(module)
        return
    path = Path(module).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {module!r}")
    key = f"jaxsim.envs.of_user.{path}"
    if key not in sys.modules:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None  # a file of Python has both
        sys.modules[key] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[key])


def default_config(name: str) -> Config:
    """Return the default config of an environment. Raises KeyError, with the nearest names, for an unknown one."""
    return _entry(name)[1]


def make(name: str, config: Config | None = None, **changes: Any) -> Env:
    """Make the environment of that name, on its default config or the one given, with some fields changed.

    Raises KeyError for an unknown name, ImportError or FileNotFoundError for an unknown module, and TypeError, with the
    nearest field, for an unknown field.
    """
    make_env, default = _entry(name)
    config = default if config is None else config
    fields = [f.name for f in dataclasses.fields(config)]
    for field in changes:
        if field not in fields:
            hint = did_you_mean(field, fields) or f"; its fields are {', '.join(fields)}"
            raise TypeError(f"the config of {name!r} has no field {field!r}{hint}")
    return make_env(dataclasses.replace(config, **changes))
