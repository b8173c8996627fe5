"""Registry of environments by name, each with a default config whose fields can be changed."""

import dataclasses
import difflib
from collections.abc import Callable
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
    if name not in _ENTRIES:
        near = difflib.get_close_matches(name, _ENTRIES, n=3)
        hint = f"did you mean {', '.join(near)}?" if near else f"the registered ones are {', '.join(names())}"
        raise KeyError(f"no environment {name!r}; {hint}")
    return _ENTRIES[name]


def default_config(name: str) -> Config:
    """Default config of an environment. Raises KeyError, with the nearest names, for an unknown one."""
    return _entry(name)[1]


def make(name: str, config: Config | None = None, **changes: Any) -> Env:
    """Environment of that name, on its default config or the one given, with some fields changed.

    Raises KeyError for an unknown name and TypeError, with the nearest field, for an unknown field.
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
