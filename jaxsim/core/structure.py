"""Values that follow from a model's structure alone, made once for each structure and kept on it."""

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
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


def moving_dofs(m: Any, body: Any) -> Any:
    """Which dofs move each of these bodies: (..., nv) for ids (...) that are static or traced."""
    if isinstance(body, (int, np.integer, np.ndarray)):
        paths = _paths(m)
        mask = np.zeros((np.size(body), m.nv), bool)
        for row, b in zip(mask, np.ravel(body).tolist(), strict=True):
            row[paths[b]] = True
        return mask.reshape(*np.shape(body), m.nv)
    # one word is fetched for every 32 dofs and unpacked: a gather of whole rows costs several times as much
    words = jnp.asarray(_dof_words(m)).at[body].get(mode="promise_in_bounds")
    dof = np.arange(m.nv, dtype=np.uint32)
    return (words[..., dof // 32] >> (dof % 32)) & 1 == 1


@per_structure
def _dof_words(m: Any) -> np.ndarray:
    """`moving_dofs` of all bodies packed into words of 32 dofs: (nbody, nword) uint32."""
    mask = moving_dofs(m, np.arange(m.nbody))
    padded = np.pad(mask, ((0, 0), (0, -m.nv % 32))).reshape(m.nbody, -(-m.nv // 32), 32)
    return (padded.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(-1).astype(np.uint32)


def geom_bodies(m: Any) -> np.ndarray:
    """The body of each geom; of a model without geoms, the world alone, for contacts of flexes with themselves."""
    return m.geom_bodyid if m.ngeom else np.zeros(1, np.int32)
