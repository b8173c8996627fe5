"""`Packing`: the leaves of a tree in few flat buffers, for programs that the host calls step by step.

A call costs the host about a microsecond for each input array and two for each output array. Model and data have three
hundred arrays, so that this exceeds the cost of one world's physics. Within a program a slice of a buffer is free.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from jaxsim.math.safe import Array

# Entries above which an array is a buffer of its own: to copy so many takes longer than to hand over one more.
MAX_PACKED = 2048


class Packing:
    """Position of each leaf of trees like `tree`, a mapping: in a buffer of its dtype, or in its own if large."""

    def __init__(self, tree: Any):
        self.leaves, self.structure = jax.tree.flatten(jax.tree.map(_shape_of, tree))
        groups: dict[Any, list[int]] = {}
        for i, x in enumerate(self.leaves):
            if x.size:
                groups.setdefault(i if x.size > MAX_PACKED else str(x.dtype), []).append(i)
        self.groups = list(groups.values())
        # of each leaf: its buffer, its first entry and the one after; None of one without entries
        self.place: list[tuple[int, int, int] | None] = [None] * len(self.leaves)
        for b, group in enumerate(self.groups):
            ends = np.cumsum([self.leaves[i].size for i in group]).tolist()
            for i, end in zip(group, ends, strict=True):
                self.place[i] = b, end - self.leaves[i].size, end
        numbered = self.structure.unflatten(range(len(self.leaves)))
        self._entries = {name: jax.tree.flatten(numbered[name]) for name in numbered}
        # entries that are one leaf, without a structure around it
        self._single = {name: i[0] for name, (i, form) in self._entries.items() if len(i) == form.num_nodes == 1}

    @property
    def shapes(self) -> tuple[jax.ShapeDtypeStruct, ...]:
        """Shapes and types of the buffers."""
        first = [self.leaves[group[0]] for group in self.groups]
        sizes = [sum(self.leaves[i].size for i in group) for group in self.groups]
        return tuple(
            jax.ShapeDtypeStruct(x.shape if len(group) == 1 else (size,), x.dtype)
            for x, size, group in zip(first, sizes, self.groups, strict=True)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Packing) and (self.structure, self.leaves) == (other.structure, other.leaves)

    def __hash__(self) -> int:
        return hash((self.structure, tuple(self.leaves)))

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def pack(self, tree: Any) -> tuple[Array, ...]:
        """Pack a tree whose leaves have the shapes of this packing into buffers."""
        leaves = self.structure.flatten_up_to(tree)
        traced = any(isinstance(x, jax.core.Tracer) for x in leaves)
        numpy = jnp if traced else np  # what is not traced is copied on the host: a program would have to be compiled
        typed = [numpy.asarray(x, like.dtype) for x, like in zip(leaves, self.leaves, strict=True)]
        joined = [
            numpy.array(typed[group[0]])
            if len(group) == 1
            else numpy.concatenate([typed[i].reshape(-1) for i in group])
            for group in self.groups
        ]
        return tuple(joined if traced else map(jax.device_put, joined))

    def unpack(self, buffers: Sequence[Array]) -> Any:
        """Unpack the tree stored in these buffers."""
        return self.structure.unflatten([self._leaf(buffers, i) for i in range(len(self.leaves))])

    def read(self, buffers: Sequence[Array], name: str) -> Any:
        """Read the entry of this name on the host, as read-only views of the buffers."""
        if name in self._single:
            return self._host_leaf(buffers, self._single[name])
        indices, structure = self._entries[name]
        return structure.unflatten([self._host_leaf(buffers, i) for i in indices])

    def written(self, buffers: Sequence[Array], name: str, value: Any) -> tuple[Any, ...]:
        """Replace an entry of one leaf in the buffers; those that change are NumPy arrays."""
        (i,), _ = self._entries[name]
        if (place := self.place[i]) is None:
            return tuple(buffers)
        b, first, end = place
        new = np.array(buffers[b])
        new.reshape(-1)[first:end] = np.asarray(value, self.leaves[i].dtype).reshape(-1)
        return (*buffers[:b], new, *buffers[b + 1 :])

    def _leaf(self, buffers: Sequence[Array], i: int) -> Array:
        if (place := self.place[i]) is None:
            return jnp.zeros(self.leaves[i].shape, self.leaves[i].dtype)
        b, first, end = place
        return buffers[b] if len(self.groups[b]) == 1 else buffers[b][first:end].reshape(self.leaves[i].shape)

    def _host_leaf(self, buffers: Sequence[Array], i: int) -> np.ndarray:
        if (place := self.place[i]) is None:
            return np.zeros(self.leaves[i].shape, self.leaves[i].dtype)
        b, first, end = place
        x, shape = np.asarray(buffers[b]), self.leaves[i].shape
        x = x[first:end] if x.ndim == 1 else x.reshape(-1)[first:end]  # a view, whose flags are its own
        if len(shape) != 1:
            x = x.reshape(shape)
        x.setflags(write=False)
        return x


def _shape_of(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(np.shape(x), x.dtype)
