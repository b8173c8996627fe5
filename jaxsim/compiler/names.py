"""mjModel's `names`, `names_map` and `paths`: texts with their addresses, and the hash map from name to id."""

from collections.abc import Sequence

import numpy as np

from jaxsim.compiler.draft import starts_or_none

_MASK = (1 << 64) - 1
_SLOTS_PER_NAME = 2


def _hash(name: bytes, size: int) -> int:
    h = 5381
    for byte in name:
        h = (((h << 5) + h) & _MASK) ^ ((byte if byte < 128 else byte - 256) & _MASK)
    return h % size


def _hash_map(names: Sequence[bytes]) -> np.ndarray:
    """Return a hash map with linear probing: id in each slot, or -1; unnamed objects have no slot."""
    size = _SLOTS_PER_NAME * len(names)
    slots = np.full(size, -1, np.int32)
    for i, name in enumerate(names):
        if not name:
            continue
        at = _hash(name, size)
        while slots[at] != -1:
            at = (at + 1) % size
        slots[at] = i
    return slots


def name_tables(modelname: str, lists: Sequence[Sequence[str]]) -> tuple[bytes, np.ndarray, list[np.ndarray]]:
    """Return `names`, `names_map` and one array of addresses for each list of names, in mjModel's order of lists."""
    data = [[name.encode() + b"\0" for name in names] for names in lists]
    names, addresses = _packed(data, modelname.encode() + b"\0")
    return names, np.concatenate([_hash_map([name[:-1] for name in row]) for row in data]), addresses


def path_tables(lists: Sequence[Sequence[str]]) -> tuple[bytes, list[np.ndarray]]:
    """Return `paths` and one array of addresses for each list; -1 for an asset without a file."""
    paths, addresses = _packed([[file.encode() + b"\0" if file else b"" for file in files] for files in lists], b"")
    return paths or b"\0", addresses


def _packed(lists: Sequence[Sequence[bytes]], first: bytes) -> tuple[bytes, list[np.ndarray]]:
    """Return texts joined after the `first` one, and the addresses of each list's texts, -1 for empty ones."""
    every = [text for texts in lists for text in texts]
    start = starts_or_none([len(text) for text in every])
    start = np.where(start >= 0, start + len(first), -1).astype(np.int32)
    return first + b"".join(every), np.split(start, np.cumsum([len(texts) for texts in lists])[:-1])
