"""`Structure`: the static part of a model, and values derived from it, computed once and cached on it."""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np


class Structure:
    """The static part of a model: sizes, integer and boolean arrays, names, assets, capacities.

    Immutable; equality and hash are those of a digest of the content, computed once, on demand. A copy is the structure
    itself. Without flexes, boxes of the trees of bodies (`bvh_aabb`) are left out: they follow from sizes of geoms,
    which are numbers.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, values: Mapping[str, Any]):
        for name in sorted(values):
            value = values[name]
            if isinstance(value, np.ndarray):
                value = np.ascontiguousarray(value)
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    @property
    def digest(self) -> bytes:
        """Digest of the content, the same in every process."""
        return self._digest

    @cached_property
    def _digest(self) -> bytes:
        digest = hashlib.blake2b(digest_size=16)
        for name, value in self.values().items():
            if name == "bvh_aabb" and not self.nflex:
                value = value[int(self.body_bvhnum.sum()) :]
            if isinstance(value, np.ndarray):
                digest.update(f"{name}{value.dtype.str}{value.shape}".encode())
                digest.update(np.ascontiguousarray(value).data if value.size else b"")
            else:
                digest.update(f"{name}={_content(value)!r}".encode())
        return digest.digest()

    @cached_property
    def _hash(self) -> int:
        return hash(self._digest)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Structure) and self._digest == other._digest)

    def __setattr__(self, name: str, value: Any):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}; use replace")

    def __reduce__(self):
        return Structure, (self.values(),)

    def __copy__(self) -> "Structure":
        return self

    def __deepcopy__(self, memo: Any) -> "Structure":
        return self

    def replace(self, changes: Mapping[str, Any]) -> "Structure":
        """Return a structure with some values changed."""
        return Structure({**self.values(), **changes})

    @property
    def source(self) -> Any:
        """The `Spec` of this structure, or None; ignored by equality."""
        return self.__dict__.get("_source")

    def remember(self, source: Any) -> None:
        """Store the `Spec` of this structure."""
        object.__setattr__(self, "_source", source)

    def values(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if not k.startswith("_")}


def _content(value: Any) -> Any:
    """Return the form of a value in a digest: all values of a struct, else itself."""
    values = getattr(value, "values", None)
    return {name: _content(x) for name, x in values().items()} if values else value


def structure_of(m: Any) -> Any:
    """Return the structure of a model, static and hashable; a structure is returned unchanged."""
    return getattr(m, "structure", m)


def per_structure(make: Callable[..., Any]) -> Callable[..., Any]:
    """Cache the results of `make(m, *args)` on the model's structure; `make` must read only the structure.

    Arguments are known by their texts: strings and Python's integers, alone or in tuples.
    """
    name = f"_{make.__module__}.{make.__name__}"

    @functools.wraps(make)
    def get(m: Any, *args: Any) -> Any:
        structure = structure_of(m)
        key = f"{name}{args}" if args else name
        if key not in structure.__dict__:
            object.__setattr__(structure, key, make(structure, *args))
        return structure.__dict__[key]

    return get


@per_structure
def _paths(m: Any) -> list[np.ndarray]:
    """Return for each body the dofs that move it."""
    paths = [np.zeros(0, int)]
    for b in range(1, m.nbody):
        own = np.arange(m.body_dofadr[b], m.body_dofadr[b] + m.body_dofnum[b])
        paths.append(np.concatenate([paths[m.body_parentid[b]], own]))
    return paths


def path(m: Any, body: int) -> np.ndarray:
    """Return the dofs that move a body."""
    return _paths(m)[body]


def moving_dofs(m: Any, body: Any) -> Any:
    """Return the masks of dofs that move each of these bodies: (..., nv) for ids (...) that are static or traced."""
    if isinstance(body, (int, np.integer, np.ndarray)):
        paths = _paths(m)
        mask = np.zeros((np.size(body), m.nv), bool)
        for row, b in zip(mask, np.ravel(body).tolist(), strict=True):
            row[paths[b]] = True
        return mask.reshape(*np.shape(body), m.nv)
    # gathers one word per 32 dofs and unpacks it: a gather of whole rows costs several times as much
    words = jnp.asarray(_dof_words(m)).at[body].get(mode="promise_in_bounds")
    dof = np.arange(m.nv, dtype=np.uint32)
    return (words[..., dof // 32] >> (dof % 32)) & 1 == 1


@per_structure
def _dof_words(m: Any) -> np.ndarray:
    """Return `moving_dofs` of all bodies packed into words of 32 dofs: (nbody, nword) uint32."""
    mask = moving_dofs(m, np.arange(m.nbody))
    padded = np.pad(mask, ((0, 0), (0, -m.nv % 32))).reshape(m.nbody, -(-m.nv // 32), 32)
    return (padded.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(-1).astype(np.uint32)


def geom_bodies(m: Any) -> np.ndarray:
    """Return the body of each geom.

    For a model without geoms it is the world only, for contacts of flexes with themselves.
    """
    return m.geom_bodyid if m.ngeom else np.zeros(1, np.int32)
