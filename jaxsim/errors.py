"""The two errors of the package: a model that is wrong, and a valid feature that is not built."""


class ModelError(ValueError):
    """A model that the language does not allow.

    The message holds file, line, the element with its name, what is wrong and, where it can be known, what would be
    right.
    """


class UnsupportedError(NotImplementedError):
    """A valid feature of the language or of the engine that is not built yet; the message names it."""
