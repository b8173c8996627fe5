"""The two errors that models raise, and the warning."""

import warnings


class ModelError(ValueError):
    """A model that is wrong.

    The message holds the file, the line, the element with its name, what is wrong and, where it can be known, what
    would be right. The parts are kept as attributes.

    Args:
        what: what is wrong and what would be right, one sentence.
        source: `(file, line)` of the element, or None where there is none.
        element: the element as a person would call it, e.g. `geom 'foot'`.
    """

    def __init__(self, what: str, source: tuple[str, int] | None = None, element: str | None = None):
        self.what, self.source, self.element = what, source, element
        place = f"{source[0] or 'XML'}:{source[1]}: " if source else ""
        super().__init__(place + (f"{element}: " if element else "") + what)


class UnsupportedError(NotImplementedError):
    """A valid feature that is not built yet; the message names it."""


class ModelWarning(UserWarning):
    """Something in a model that is allowed and probably not meant; the message says where, as a `ModelError` does."""


def warn(what: str, source: tuple[str, int] | None = None, element: str | None = None) -> None:
    """Issue a `ModelWarning` about an element; see `ModelError` for the arguments."""
    warnings.warn(str(ModelError(what, source, element)), ModelWarning, stacklevel=2)
