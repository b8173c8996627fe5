"""Vertices of a hull, and the facets around each, in the order of Qhull's own lists.

scipy does not give these orders, but the program `qhull` of the package cmeel-qhull prints them. Without it they are
reconstructed (see `hull.py`).
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

_TIMEOUT = 120
_TRACE = ("f", "T4", "TP-1", "Q5")  # print facets; trace, after the hull is built, without its check of widths
_ALL = re.compile(rb"all vertices:([\s\d]*)")
_VERTEX = re.compile(rb"^- p(\d+)\(v(\d+)\):[^\n]*(?:\n  neighbors:([^-]*))?", re.MULTILINE)
_FACET = re.compile(rb"^- f(\d+)\n", re.MULTILINE)
_CORNERS = re.compile(rb"^    - vertices: p(\d+)\(v\d+\) p(\d+)\(v\d+\) p(\d+)\(v\d+\)", re.MULTILINE)


@cache
def program() -> str | None:
    """Return the path of the program `qhull`, None if it is not installed."""
    try:
        path = Path(str(importlib.metadata.distribution("cmeel-qhull").locate_file("cmeel.prefix/bin/qhull")))
    except importlib.metadata.PackageNotFoundError:
        return None
    return str(path) if path.is_file() else None


@dataclass(frozen=True)
class QhullLists:
    """Qhull's lists of a hull.

    Attributes:
        vertex: (nv,) vertices in the order of its list, None if the trace does not have it.
        around: pairs (vertex, triangle), each (3 nf,), in the order of each vertex's own list of facets; None if Qhull
            has no lists, before it has added a point to the first simplex.
    """

    vertex: np.ndarray | None
    around: tuple[np.ndarray, np.ndarray] | None


def qhull_lists(command: str | None, vert: np.ndarray, options: str, simplices: np.ndarray) -> QhullLists | None:
    """Read the lists of a hull from the program's output; None if it is missing, fails or finds another hull.

    Args:
        command: path of the program.
        vert: (n, 3) points.
        options: Qhull's options of the hull.
        simplices: (nf, 3) triangles of the hull in Qhull's order.
    """
    done = _run(command, vert, options) if command else None
    if done is None:
        return None
    text, trace = done
    corners = np.array(_CORNERS.findall(text), dtype=np.int64).reshape(-1, 3)
    if corners.shape != simplices.shape or not np.array_equal(corners, simplices):
        return None
    order = {number: i for i, number in enumerate(_FACET.findall(text))}
    vertices, triangles = [], []
    points: dict[bytes, int] = {}
    for vertex, number, listed in _VERTEX.findall(text):
        points[number] = int(vertex)
        around = [order[word[1:]] for word in listed.split()]
        vertices += [int(vertex)] * len(around)
        triangles += around
    found = _ALL.findall(trace)
    listing = [points[word] for word in found[-1].split() if word in points] if found else []
    complete = len(listing) == len(points)
    pairs = np.array(vertices, np.int64), np.array(triangles, np.int64)
    return QhullLists(np.array(listing, np.int64) if complete else None, pairs if vertices else None)


def _run(command: str, vert: np.ndarray, options: str) -> tuple[bytes, bytes] | None:
    """Run the program; return its output and its trace.

    The trace goes through a file, since it has hundreds of thousands of pieces.
    """
    lines = [f"3\n{len(vert)}", *(f"{x!r} {y!r} {z!r}" for x, y, z in vert.tolist())]
    with tempfile.TemporaryFile() as trace:
        try:
            done = subprocess.run(
                [command, *options.split(), *_TRACE],
                input="\n".join(lines).encode(),
                stdout=subprocess.PIPE,
                stderr=trace,
                timeout=_TIMEOUT,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        trace.seek(0)
        return done.stdout, trace.read()
