"""States in which rounding decides what MuJoCo computes: its own answer changes where the pose moves by as little.

A difference is a tie if MuJoCo's answer changes at poses moved by `MOVES`, and equals ours at one of them or changes by
as much as ours differs. Contacts are judged pair by pair. MuJoCo's sweep over bounding boxes sorts in single precision:
geoms that overlap by less have contacts or not, as the sort decides. So moves go up to 1e-6, and geoms move as well.
"""

import copy
from typing import Any, NamedTuple

import mujoco
import numpy as np

MOVES = {True: np.repeat([1e-15, 1e-14, 1e-13, 1e-11, 1e-9, 1e-7, 1e-6], 4), False: np.repeat([1e-7, 1e-6, 1e-5], 4)}
TINY = {True: 1e-13, False: 1e-6}  # the largest move whose effect on other fields than contacts counts as rounding
AMPLIFIED = 100  # a change of contacts beyond the move by this factor is one of their choice
PAIR = ("geom", "flex", "elem", "vert")


class Moved(NamedTuple):
    """Results of a step from a moved pose: the move, jaxsim's data, MuJoCo's data."""

    by: float
    d: Any
    data: mujoco.MjData


def of_pairs(contact: Any, n: int) -> dict[tuple, np.ndarray]:
    """Return distances, positions and frames (k, 13) of the contacts of each pair."""
    pair = np.column_stack([np.asarray(getattr(contact, x))[:n] for x in PAIR])
    dist, pos, frame = (np.asarray(getattr(contact, x), float)[:n] for x in ("dist", "pos", "frame"))
    values = np.concatenate([dist[:, None], pos, frame.reshape(n, 9)], axis=1)
    groups: dict[tuple, list[int]] = {}
    for i, key in enumerate(map(tuple, pair.tolist())):
        groups.setdefault(key, []).append(i)
    return {key: values[index] for key, index in groups.items()}


def matching(ours: np.ndarray, theirs: np.ndarray, limit: float) -> np.ndarray | None:
    """Return for each row of `ours` the index of an equal row of `theirs`, each used once, or None."""
    if len(ours) != len(theirs):
        return None
    gaps = np.abs(ours[:, None] - theirs[None]).max(axis=-1, initial=0)
    out = np.zeros(len(ours), int)
    for i in range(len(ours)):
        j = i if gaps[i, i] <= limit else int(gaps[i].argmin())
        if not gaps[i, j] <= limit:
            return None
        out[i], gaps[:, j] = j, np.inf
    return out


def far(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest distance of one of our contacts from the nearest of theirs; infinite if numbers differ."""
    if len(ours) != len(theirs):
        return np.inf
    return np.abs(ours[:, None] - theirs[None]).max(axis=-1, initial=0).min(axis=1, initial=np.inf).max(initial=0)


def contact_order(d: Any, data: mujoco.MjData, limit: float) -> np.ndarray | None:
    """Return MuJoCo's index of each of our contacts, or None where the contacts are not the same set."""
    if int(d.ncon) != data.ncon:
        return None
    pairs = [tuple(int(x) for name in PAIR for x in np.ravel(getattr(data.contact[i], name))) for i in range(data.ncon)]
    ours, theirs, first = of_pairs(d.contact, data.ncon), of_pairs(data.contact, data.ncon), {}
    for i, key in enumerate(pairs):
        first.setdefault(key, []).append(i)
    if list(ours) != list(theirs):
        return None
    found = [matching(ours[key], theirs[key], limit) for key in ours]
    if any(x is None for x in found):
        return None
    parts = [np.array(first[key])[x] for key, x in zip(ours, found, strict=True)]
    return np.concatenate([*parts, np.zeros(0, int)])


def row_order(data: mujoco.MjData, contacts: np.ndarray) -> np.ndarray:
    """Return the constraint rows of MuJoCo in the order of these contacts."""
    begin = np.array(data.contact.efc_address, int)
    used = np.sort(begin[begin >= 0])
    end = dict(zip(used, np.append(used[1:], data.nefc), strict=False))
    rows = [np.arange(begin[i], end[begin[i]]) for i in contacts if begin[i] >= 0]
    return np.concatenate([np.arange(used[0] if len(used) else data.nefc), *rows])


def contacts_of_moved_geoms(model: mujoco.MjModel, start: mujoco.MjData, moves: np.ndarray) -> list[tuple[float, dict]]:
    """Return MuJoCo's contacts by pairs with each geom and each vertex of a flex moved by itself."""
    rng, out = np.random.default_rng(1), []
    for by in moves:
        data = copy.copy(start)
        mujoco.mj_fwdPosition(model, data)
        data.geom_xpos += by * rng.standard_normal(data.geom_xpos.shape)
        data.flexvert_xpos += by * rng.standard_normal(data.flexvert_xpos.shape)
        mujoco.mj_collision(model, data)
        out.append((by, of_pairs(data.contact, data.ncon)))
    return out


def contacts_are_ties(
    model: mujoco.MjModel, start: mujoco.MjData, d: Any, data: mujoco.MjData, near: list[Moved], limit: float
) -> bool:
    """Return whether all pairs whose contacts differ are ties; `start` is MuJoCo's data before the step."""
    none = np.zeros((0, 13))
    ours, theirs = of_pairs(d.contact, int(d.ncon)), of_pairs(data.contact, data.ncon)
    both = [(of_pairs(x.d.contact, int(x.d.ncon)), of_pairs(x.data.contact, x.data.ncon)) for x in near]
    moved = [(x.by, pairs) for x, (_, pairs) in zip(near, both, strict=True)]
    moved += contacts_of_moved_geoms(model, start, np.array([x.by for x in near]))
    for pair in {*ours, *theirs}:
        mine, own = ours.get(pair, none), theirs.get(pair, none)
        if matching(mine, own, limit) is not None:
            continue
        beside = [(by, x.get(pair, none)) for by, x in moved]
        changed = [x for by, x in beside if matching(own, x, limit + AMPLIFIED * by) is None]
        agrees = any(matching(a.get(pair, none), b.get(pair, none), limit) is not None for a, b in both)
        as_far = any(len(x) == len(mine) and far(x, own) >= far(mine, own) for x in changed)
        if not (changed and (agrees or as_far)):
            return False
    return True
