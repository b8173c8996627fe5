"""`takes_mjx`: the decorator of functions of `mjx.Model` and `mjx.Data`."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import jaxsim
from jaxsim.interface.arguments import unknown_argument
from jaxsim.mjx.types import Data, Model

F = TypeVar("F", bound=Callable[..., Any])
KINDS = {"m": Model, "d": Data}


def takes_mjx(function: F) -> F:
    """Return the function with errors, which name the remedy, for jaxsim's own objects and for unknown keywords."""
    signature, name = inspect.signature(function), function.__name__

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if answer := unknown_argument(f"mjx.{name}", signature, kwargs):
            raise TypeError(answer)
        for key, value in (*zip(signature.parameters, args, strict=False), *kwargs.items()):
            kind = KINDS.get(key)
            if kind is not None and signature.parameters[key].annotation is kind and not isinstance(value, kind):
                own = f"jaxsim.{name}" if hasattr(jaxsim, name) else "a function of jaxsim"
                raise TypeError(
                    f"mjx.{name}: {key} is a {type(value).__module__.partition('.')[0]}.{type(value).__name__}, wanted "
                    f"an mjx.{kind.__name__}: call {own}, or use mjx.put_model and mjx.make_data"
                )
        return function(*args, **kwargs)

    return checked  # pyright: ignore[reportReturnType]
