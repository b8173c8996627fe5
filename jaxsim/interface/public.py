"""`public`: the decorator of the functions that users call.

A call from outside is checked (`arguments.py`). An eager call then runs a compiled program, which JAX caches by the
model's structure, since a step takes seconds op by op. While a caller traces, or from within the engine, the function
itself runs.
"""

import inspect
import threading
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, TypeVar

import jax
import jax.core
import numpy as np

from jaxsim.core.data import Data
from jaxsim.interface.arguments import check_data, check_model, unknown_argument
from jaxsim.interface.overflow import warn_of_overflow
from jaxsim.xla.compat import is_staging
from jaxsim.xla.options import jit

F = TypeVar("F", bound=Callable[..., Any])
DATA = ("d", "src", "dst")  # names of parameters that are Data
STATIC_TYPES = (str, bool, bytes, type(None), tuple, frozenset)


class _Depth(threading.local):
    """Whether a public function runs in this thread."""

    inside = False


_depth = _Depth()


def public(
    function: F | None = None,
    *,
    static: tuple[str, ...] = (),
    compiled: bool = True,
    waits: bool = False,
    shared: Callable[[dict[str, Any]], tuple[dict[str, Any], Callable[[Any], Any]]] | None = None,
) -> Any:
    """Wrap a function: check its arguments, and compile it where it is called eagerly.

    Its first parameter is a model `m`; parameters of the names in `DATA` are its data. Parameters in `static`, and
    strings, flags or None, are static. A call with a function or an unhashable value among them runs op by op, and so
    does a model on the host.

    An eager call warns of capacities that overflowed: in the data that it is given, and in its result if that is ready.
    With `waits` it waits for the result. `shared` replaces the arguments of an eager call by those of a program that
    calls with other arguments share, and returns the function that makes this call's result of the program's. It may
    raise an error for a value.
    """
    if function is None:
        return lambda f: public(f, static=static, compiled=compiled, waits=waits, shared=shared)
    signature = inspect.signature(function)
    name, plain = function.__name__, function
    data = tuple(p for p in signature.parameters if p in DATA)
    programs: dict[bool, Callable[..., Any]] = {}

    def run(known: tuple[tuple[str, Any], ...], arguments: dict[str, Any]) -> Any:
        return _call(plain, dict(known) | arguments)

    @wraps(function)
    def entry(*args: Any, **kwargs: Any) -> Any:
        if _depth.inside:
            return plain(*args, **kwargs)
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            if answer := unknown_argument(name, signature, kwargs):
                raise TypeError(answer) from None
            return plain(*args, **kwargs)  # which raises Python's own error
        m = given["m"]
        check_model(m, name, given.get(data[0]) if data else None)
        for key in data:
            check_data(m, given[key], name, key)
        if not compiled or isinstance(m.qpos0, np.ndarray) or is_staging():
            return _call(plain, given)
        traced = any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(given))
        given, finish = shared(given) if shared and not traced else (given, lambda result: result)
        known = {k: v for k, v in given.items() if k in static or isinstance(v, STATIC_TYPES) or callable(v)}
        if any(callable(v) or not _is_hashable(v) for v in known.values()):
            return finish(_call(plain, given))
        rest = {k: v for k, v in given.items() if k not in known}
        # JAX takes no compiler options within a transformation
        if traced not in programs:
            programs[traced] = (jax.jit if traced else jit)(run, static_argnums=0)
        result = finish(programs[traced](tuple(known.items()), rest))
        if not traced:
            for key in data[:1]:
                warn_of_overflow(m, given[key])
            after = result[0] if isinstance(result, tuple) and result else result
            if isinstance(after, Data):
                warn_of_overflow(m, after, wait=waits)
        return result

    return entry


def _call(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """`function` with these arguments; public functions that it calls run as they are written."""
    before, _depth.inside = _depth.inside, True
    try:
        return function(**arguments)
    finally:
        _depth.inside = before


def _is_hashable(x: Any) -> bool:
    return isinstance(x, Hashable) and not (isinstance(x, tuple) and not all(map(_is_hashable, x)))
