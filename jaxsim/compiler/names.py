"""mjModel's `names`, `names_map` and `paths`: texts with their addresses, and the hash map from name to id."""

from collections.abc import Sequence

import numpy as np

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
    chunks = [modelname.encode() + b"\0"]
    at = len(chunks[0])
    addresses, maps = [], []
    for names in lists:
        data = [name.encode() for name in names]
        starts = []
        for item in data:
            starts.append(at)
            chunks.append(item + b"\0")
            at += len(item) + 1
        addresses.append(np.array(starts, np.int32))
        maps.append(_hash_map(data))
    names_map = np.concatenate(maps) if maps else np.zeros(0, np.int32)
    return b"".join(chunks), names_map, addresses


def path_tables(lists: Sequence[Sequence[str]]) -> tuple[bytes, list[np.ndarray]]:
    """Return `paths` and one array of addresses for each list; -1 for an asset without a file."""
    chunks, addresses, at = [], [], 0
    for files in lists:
        starts = []
        for file in files:
            starts.append(at if file else -1)
            if file:
                chunks.append(file.encode() + b"\0")
                at += len(chunks[-1])
        addresses.append(np.array(starts, np.int32))
    return b"".join(chunks) or b"\0", addresses
