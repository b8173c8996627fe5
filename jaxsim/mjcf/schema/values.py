"""Attributes of the language and their values: text to value and back, with the reasons when a text is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxsim.core import errors
from jaxsim.mjcf.schema import language

_FLOAT = re.compile(
    r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?\d+)?"
    r"|inf(?:inity)?|nan(?:\(\w*\))?)$",
    re.IGNORECASE | re.ASCII,
)
_INT = re.compile(r"[+-]?\d+$", re.ASCII)
_SPACE = " \t\n\v\f\r"
_NOT_SPACE = re.compile(r"[^ \t\n\v\f\r]+")
_FLOAT32_MAX, _FLOAT32_TINY = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)
_FLOAT64_TINY = float(np.finfo(np.float64).tiny)
_BYTE_SUFFIX = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50, "e": 60}


def _word_values(text: str) -> dict[str, int]:
    values: dict[str, int] = {}
    for item in text.split():
        word, _, number = item.partition("=")
        values[word] = int(number) if number else (list(values.values())[-1] + 1 if values else 0)
    return values


ENUMS: dict[str, dict[str, int]] = {name: _word_values(text) for name, text in language.WORDS.items()}
"""Allowed words of each word set, in order, with the number that MuJoCo gives each."""


@dataclass(frozen=True)
class Attribute:
    """One attribute of one element type.

    `kind` is one of `f` (double), `g` (single precision), `i`, `b`, `s`, `name`, `file`, `bytes`, `word`, `ref`.
    `length` is 1 for a scalar, n for arrays, None if any length is allowed; `exact` is whether all n numbers must be
    written. `words` is the word set of ENUMS, empty for other kinds. `refers` is the kind of object that a reference
    names, or, in parentheses, the attribute that gives the kind. `default` is a value of the type, None if it is
    undefined.
    """

    name: str
    kind: str
    length: int | None = 1
    exact: bool = True
    required: bool = False
    default: Any = None
    words: str = ""
    refers: str = ""
    many: bool = False

    @property
    def is_array(self) -> bool:
        """Whether the value is a NumPy array (of numbers)."""
        return self.kind in "fgi" and self.length != 1

    @property
    def is_number(self) -> bool:
        """Whether the text is a list of numbers."""
        return self.kind in ("f", "g", "i")


_MAX_LISTED = 12  # longer lists of choices are left out of messages


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the choice nearest to `word`, else a list of the choices if these are few."""
    choices = sorted(filter(None, choices))
    if hint := errors.did_you_mean(word, choices):
        return hint
    return f"; known are {', '.join(choices)}" if 0 < len(choices) <= _MAX_LISTED else ""


def _tokens(text: str) -> list[str]:
    """Split a text at ASCII white space only."""
    return text.split() if text.isascii() else _NOT_SPACE.findall(text)


def _parse_float(token: str, single: bool) -> float:
    if not _FLOAT.match(token):
        raise ValueError(f"'{token}' is not a number")
    low = token.lower()
    if "nan" in low:
        return float("nan")
    if "inf" in low:
        return float(token)
    try:
        value = float.fromhex(token) if "x" in low else float(token)
    except OverflowError:
        value = float("inf")
    largest, tiny = (_FLOAT32_MAX, _FLOAT32_TINY) if single else (float("inf"), _FLOAT64_TINY)
    digits = low.partition("p" if "x" in low else "e")[0].partition("x")[2] or low.partition("e")[0]
    underflow = abs(value) < tiny and any(c not in "+-.0" for c in digits)
    if value in (float("inf"), float("-inf")) or abs(value) > largest or underflow:
        raise ValueError(f"'{token}' is out of range")
    return value


def _parse_int(token: str) -> int:
    if not _INT.match(token):
        raise ValueError(f"'{token}' is not an integer")
    value = int(token) if len(token) < 24 else 2**40
    if not -(2**31) <= value < 2**31:
        raise ValueError(f"'{token}' is out of range")
    return value


def _counted(numbers: Any) -> str:
    return f"{len(numbers)} number{'' if len(numbers) == 1 else 's'}"


def _parse_numbers(attribute: Attribute, text: str, pad: bool) -> Any:
    tokens = _tokens(text)
    length = attribute.length
    if not tokens:
        if attribute.kind == "i" and length == 1:
            raise ValueError("a number is missing")
        return None
    if "," in text:
        raise ValueError("separate numbers by spaces, not commas")
    if length is not None and len(tokens) > length:
        raise ValueError(f"has {_counted(tokens)}; at most {length} are allowed")
    if length is not None and attribute.exact and not pad and len(tokens) < length:
        raise ValueError(f"has {_counted(tokens)}; {length} are needed")
    if attribute.kind == "i":
        values: list = [_parse_int(t) for t in tokens]
        if length == 1:
            return values[0]
        array = np.array(values, np.int64)
    else:
        values = [_parse_float(t, attribute.kind == "g") for t in tokens]
        if length == 1:
            return values[0]
        array = np.array(values, np.float64)
    if pad and length is not None:
        array = np.concatenate([array, np.zeros(length - len(array), array.dtype)])
    return array


def _parse_bytes(text: str) -> int:
    text = text.strip(_SPACE)
    if text == "-1":
        return -1
    match = re.fullmatch(r"\+?(\d{1,20})([kmgtpe]?)", text, re.IGNORECASE)
    value = int(match[1]) << _BYTE_SUFFIX[match[2].lower()] if match else 2**64
    if value >= 2**64:
        raise ValueError(f"'{text}' is not a size; write a number of bytes with an optional suffix K, M, G, T, P or E")
    return value


def _parse_words(attribute: Attribute, text: str) -> Any:
    allowed = ENUMS[attribute.words]
    words = _tokens(text) if attribute.many else [text]
    for word in words:
        if word not in allowed:
            hint = did_you_mean(word, allowed) or f"; allowed are {', '.join(allowed)}"
            raise ValueError(f"unknown keyword '{word}'{hint}")
    if len(set(words)) < len(words):
        raise ValueError("a keyword is repeated")
    return (tuple(words) or None) if attribute.many else words[0]


def parse_value(attribute: Attribute, text: str, pad: bool = False) -> Any:
    """Parse the value of a text, of the attribute's type; None for an empty list.

    Numbers give float or int, or NumPy arrays (float64, int64) if the length is not 1; lists of words and of names give
    tuples. Raises ValueError with the reason.
    """
    if attribute.is_number:
        return _parse_numbers(attribute, text, pad)
    if attribute.kind == "word":
        return _parse_words(attribute, text)
    if attribute.kind == "b":
        if text not in ("true", "false"):
            raise ValueError(f"unknown keyword '{text}'; allowed are true, false")
        return text == "true"
    if attribute.kind == "bytes":
        return _parse_bytes(text)
    if attribute.many:
        return tuple(_tokens(text)) or None
    return text


def check_value(attribute: Attribute, value: Any) -> Any:
    """Convert a value given in Python to the attribute's type; raise ValueError with the reason."""
    if value is None or isinstance(value, str):
        return None if value is None else parse_value(attribute, value)
    if attribute.is_number:
        dtype = np.int64 if attribute.kind == "i" else np.float64
        array = np.atleast_1d(np.asarray(value))
        if array.dtype.kind not in "iufb" or (attribute.kind == "i" and np.any(array != array.astype(np.int64))):
            raise ValueError(f"{value!r} is not a list of {'integers' if attribute.kind == 'i' else 'numbers'}")
        array = array.astype(dtype).ravel()
        if attribute.length is None:
            return array
        if len(array) > attribute.length or (attribute.exact and len(array) < attribute.length):
            need = f"{attribute.length} are needed" if attribute.exact else f"at most {attribute.length} are allowed"
            raise ValueError(f"has {_counted(array)}; {need}")
        return array[0].item() if attribute.length == 1 else array
    if attribute.kind == "b" and isinstance(value, bool | np.bool_):
        return bool(value)
    if attribute.kind == "word" and isinstance(value, bool | np.bool_):
        return _parse_words(attribute, "true" if value else "false")
    if attribute.kind == "bytes" and isinstance(value, int):
        return value
    if attribute.many and isinstance(value, list | tuple):
        return parse_value(attribute, " ".join(value))
    raise ValueError(f"{value!r} does not fit")


def _format_number(value: float) -> str:
    value = float(value)
    if value == int(value) and abs(value) < 1e15 if np.isfinite(value) else False:
        return "-0" if value == 0 and np.signbit(value) else str(int(value))
    return repr(value)


def format_value(attribute: Attribute, value: Any) -> str:
    """Format a value as text that `parse_value` reads back to the same value."""
    if attribute.is_number:
        return " ".join(_format_number(v) for v in np.atleast_1d(value))
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return " ".join(value)
    return str(value)
