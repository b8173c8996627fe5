"""Registry of environments by name, each with a default config whose fields can be changed.

A name may say which module registers it: `my_tasks:spin`, or `path/my_tasks.py:spin`. The module is imported first.
"""

import dataclasses
import difflib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxsim.envs.base import Config, Env

_ENTRIES: dict[str, tuple[Callable[[Any], Env], Config]] = {}


def register(name: str, make_env: Callable[[Any], Env], config: Config) -> None:
    """Add an environment: `make_env(config) -> Env`. Raises ValueError when the name is taken."""
    if name in _ENTRIES:
        raise ValueError(f"an environment named {name!r} is registered already")
    _ENTRIES[name] = make_env, config


def names() -> tuple[str, ...]:
    """Names of all registered environments, sorted."""
    return tuple(sorted(_ENTRIES))


def _entry(name: str) -> tuple[Callable[[Any], Env], Config]:
    module, colon, last = name.rpartition(":")
    if colon:
        _import(module)
        name = last
    if name not in _ENTRIES:
        near = difflib.get_close_matches(name, _ENTRIES, n=3)
        hint = f"did you mean {', '.join(near)}?" if near else f"the registered ones are {', '.join(names())}"
        raise KeyError(f"no environment {name!r}; {hint}")
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
    """Default config of an environment. Raises KeyError, with the nearest names, for an unknown one."""
    return _entry(name)[1]


def make(name: str, config: Config | None = None, **changes: Any) -> Env:
    """Environment of that name, on its default config or the one given, with some fields changed.

    Raises KeyError for an unknown name, ImportError or FileNotFoundError for an unknown module, and TypeError, with the
    nearest field, for an unknown field.
    """
    make_env, default = _entry(name)
    config = default if config is None else config
    fields = [f.name for f in dataclasses.fields(config)]
    for field in changes:
        if field not in fields:
            near = difflib.get_close_matches(field, fields, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"its fields are {', '.join(fields)}"
            raise TypeError(f"the config of {name!r} has no field {field!r}; {hint}")
    return make_env(dataclasses.replace(config, **changes))
