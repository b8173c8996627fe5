"""Divide a long function of a program into units, which C compilers compile at once on several cores.

The writer ends a unit between two statements and has stored what later ones read. So only arrays pass from unit to
unit, by their addresses.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from jaxsim.native.writer import NAMES, Writer

LENGTH = 120_000  # characters, some 3,000 lines: gcc takes a second
HIDDEN = '__attribute__((visibility("hidden")))'  # within its library


class Unit(NamedTuple):
    """Statements of a unit, the words in them, and the tables that they read."""

    lines: list[str]
    words: frozenset[str]
    tables: list[str]


def units(w: Writer, before: Sequence[str] = ()) -> list[Unit]:
    """Return the units of what was written; the first begins with the lines `before`."""
    found = []
    for begin, end in itertools.pairwise([*w.ends, len(w.lines)]):
        lines = [*(() if begin else before), *w.lines[begin:end]]
        words = frozenset(NAMES.findall("\n".join(lines)))
        found.append(Unit(lines, words, [t for t in w.tables if _name(t) is None or _name(t) in words]))
    return found


def _name(table: str) -> str | None:
    """Return the name of a table; None for other declarations."""
    return table.split("[", 1)[0].rsplit(" ", 1)[1] if table.startswith("TABLE ") else None
