"""Errors and warnings that models raise, and parts of their messages."""

import contextlib
import difflib
import re
import warnings
from collections.abc import Iterable, Iterator
from contextvars import ContextVar


class ModelError(ValueError):
    """An invalid model.

    The message has the file, the line, the element with its name, what is wrong and, if it is known, the remedy. The
    parts are kept as attributes.

    Args:
        what: the fault and the remedy, one sentence.
        source: `(file, line)` of the element, or None.
        element: the element in readable form, e.g. `geom 'foot'`.
    """

    def __init__(self, what: str, source: tuple[str, int] | None = None, element: str | None = None):
        self.what, self.source, self.element = what, source, element
        place = f"{source[0] or 'XML'}:{source[1]}: " if source else ""
        super().__init__(place + (f"{element}: " if element else "") + what)


class UnsupportedError(NotImplementedError):
    """A valid feature that is not implemented; the message names it."""


class ModelWarning(UserWarning):
    """Valid but probably unintended input in a model; the message has its position, as in a `ModelError`."""


class CapacityWarning(UserWarning):
    """An estimated capacity, or dropped contacts and rows; the message gives arguments for `load_model`."""


_collector: ContextVar[list[ModelError] | None] = ContextVar("collector", default=None)
_said: set[tuple[str, str]] = set()  # files and kinds of warnings issued by this process
_PARTICULARS = re.compile(r"'[^']*'|-?[0-9][0-9.e+-]*")  # the parts that differ between warnings of one kind


def warn(what: str, source: tuple[str, int] | None = None, element: str | None = None) -> None:
    """Issue a `ModelWarning` about an element; see `ModelError` for the arguments."""
    found = _collector.get()
    if found is None:
        warnings.warn(str(ModelError(what, source, element)), ModelWarning, stacklevel=2)
    else:
        found.append(ModelError(what, source, element))


@contextlib.contextmanager
def collected_warnings() -> Iterator[list[ModelError]]:
    """Return a context in which `warn` appends to a list instead of issuing warnings."""
    found: list[ModelError] = []
    token = _collector.set(found)
    try:
        yield found
    finally:
        _collector.reset(token)


@contextlib.contextmanager
def summarised_warnings(stacklevel: int = 4) -> Iterator[None]:
    """Return a context that issues each kind of warning once, at its first place, with the number of further ones.

    A kind is issued once in a process for each file. Within `collected_warnings`, all are passed on.
    """
    outer = _collector.get()
    with collected_warnings() as found:
        try:
            yield
        finally:
            if outer is not None:
                outer += found
            else:
                for line in _summary(found):
                    warnings.warn(line, ModelWarning, stacklevel=stacklevel)


def _summary(found: list[ModelError]) -> list[str]:
    """Return one line for each kind of warning that was not issued before."""
    kinds: dict[tuple[str, str], list[ModelError]] = {}
    for one in found:
        file = str(one.source[0] or "") if one.source else ""
        kinds.setdefault((file, _PARTICULARS.sub("*", one.what)), []).append(one)
    lines = []
    for key, same in kinds.items():
        if key in _said:
            continue
        if key[0]:
            _said.add(key)
        more = f"; and {len(same) - 1} more like it, which `jaxsim info` lists" if len(same) > 1 else ""
        lines.append(str(same[0]) + more)
    return lines


def did_you_mean(name: str, known: Iterable[str], n: int = 1) -> str:
    """Return the nearest known names as the end of an error's message; empty if there are none."""
    known = list(known)
    near = [x for x in known if x.lower() == name.lower()] or difflib.get_close_matches(name, known, n=n)
    return f"; did you mean {', '.join(map(repr, near))}?" if near else ""
