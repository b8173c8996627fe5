"""Values that follow from a model's structure alone, made once for each structure and kept on it."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np


def structure_of(m: Any) -> Any:
    """The structure of a model, or itself: what is static, and hashable."""
    return getattr(m, "structure", m)


def per_structure(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Remember what `make(m)` gives on the model's structure; `make` reads nothing but the structure."""
    key = f"_{make.__module__}.{make.__name__}"

    @functools.wraps(make)
    def get(m: Any) -> Any:
        structure = structure_of(m)
        if key not in structure.__dict__:
            object.__setattr__(structure, key, make(structure))
        return structure.__dict__[key]

    return get


@per_structure
def _paths(m: Any) -> list[np.ndarray]:
    """For each body the dofs that move it."""
    paths = [np.zeros(0, int)]
    for b in range(1, m.nbody):
        own = np.arange(m.body_dofadr[b], m.body_dofadr[b] + m.body_dofnum[b])
        paths.append(np.concatenate([paths[m.body_parentid[b]], own]))
    return paths


def path(m: Any, body: int) -> np.ndarray:
    """The dofs that move a body."""
    return _paths(m)[body]


def moving_dofs(m: Any, body: np.ndarray) -> np.ndarray:
    """Which dofs move each of these bodies: (k, nv)."""
    mask, paths = np.zeros((len(body), m.nv), bool), _paths(m)
    for row, b in zip(mask, body, strict=True):
        row[paths[b]] = True
    return mask
