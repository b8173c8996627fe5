"""Keyframes of models that are copied or attached: their values follow the joints, actuators and mocap bodies.

While macros run, the values are stored on the elements (`Element.state`, by keyframe name), so that copies have them
too. At the end they become keyframes of the whole tree. Missing values of a keyframe are NaN in qpos, mpos and mquat,
which means the initial state of the compiled model, and zero elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from jaxsim.mjcf.defaults import resolve, resolve_actuator
from jaxsim.mjcf.references import listed
from jaxsim.mjcf.spec import Element, Spec

MAX_COUNT = 1 << 20  # most user data or keyframes accepted
_JOINT_SIZES = {"free": (7, 6), "ball": (4, 3), "hinge": (1, 1), "slide": (1, 1)}
_ARRAYS_LEFT_OPEN = ("qpos", "mpos", "mquat")
_POSE_LENGTHS = {"mpos": 3, "mquat": 4}
_ARRAYS = ("qpos", "qvel", "act", "ctrl", "mpos", "mquat")


def bodies(top: Element) -> Iterator[Element]:
    """Return the bodies of a tree depth first, the world's element first; frames are transparent."""
    todo = [top]
    while todo:
        body = todo.pop()
        yield body
        todo.extend(reversed([e for e in content(body) if e.tag == "body"]))


def content(body: Element) -> list[Element]:
    """Return the elements of a body in document order, including those in its frames."""
    found, todo = [], list(reversed(body.children))
    while todo:
        element = todo.pop()
        if element.tag == "frame":
            todo.extend(reversed(element.children))
        else:
            found.append(element)
    return found


def _joint_sizes(spec: Spec, joint: Element) -> dict[str, int]:
    kind = "free" if joint.tag == "freejoint" else resolve(spec, joint)["type"]
    return dict(zip(("qpos", "qvel"), _JOINT_SIZES[kind], strict=True))


def _actuator_sizes(spec: Spec, actuator: Element) -> dict[str, int]:
    record = resolve_actuator(spec, actuator)
    states = record["actdim"] if record["actdim"] > 0 else int(record["dyntype"] != "none")
    return {"act": states, "ctrl": 1}


def owners(spec: Spec) -> list[tuple[Element, dict[str, int]]]:
    """Return the elements with values in keyframes, in keyframe order, with the sizes of their parts."""
    found: list[tuple[Element, dict[str, int]]] = []
    tree = list(bodies(spec.worldbody))
    for body in tree:
        found += [(e, _joint_sizes(spec, e)) for e in content(body) if e.type.kind == "joint"]
    found += [(e, _actuator_sizes(spec, e)) for e in listed(spec, "actuator", "actuator")]
    found += [(e, {"mpos": 3, "mquat": 4}) for e in tree if e.attrs.get("mocap")]
    return found


def totals(parts: list[tuple[Element, dict[str, int]]]) -> dict[str, int]:
    """Return the length of each array of a state."""
    sizes: dict[str, int] = dict.fromkeys(_ARRAYS, 0)
    for _, own in parts:
        for name, size in own.items():
            sizes[name] += size
    return sizes


class PendingKeyframes:
    """Keyframes whose values are stored on the elements: name, time, and the arrays present."""

    def __init__(self) -> None:
        self.keys: list[tuple[str, float, tuple[str, ...]]] = []

    def store(self, spec: Spec, rename: Callable[[str], str]) -> None:
        """Store the values of all keyframes of a spec on its elements, under new names.

        Raises ModelError for a keyframe that does not fit the current tree.
        """
        keys = listed(spec, "keyframe", "key")
        if not keys:
            return
        parts = owners(spec)
        sizes = totals(parts)
        for key in keys:
            name = rename(key.name or "")
            arrays = tuple(a for a in sizes if a in key.attrs)
            for a in arrays:
                if len(key.attrs[a]) != sizes[a]:
                    raise key.error(
                        f"{a} has {len(key.attrs[a])} numbers; it needs {sizes[a]}, as many as the model has before "
                        "replicate or attach copies it: every copy gets a keyframe of its own. For a state of all "
                        f"copies write them out, or set it in Python: d.replace({a}=...)"
                    )
            self.keys.append((name, key.attrs.get("time", 0.0), arrays))
            _scatter(parts, key, name, arrays)

    def finish(self, spec: Spec) -> None:
        """Append the stored keyframes to a spec, for its current tree, after empty ones up to `nkey`."""
        if not self.keys:
            return
        parts = owners(spec)
        wanted = [size.attrs["nkey"] for size in spec.root.children if size.tag == "size" and "nkey" in size.attrs]
        for _ in range(len(listed(spec, "keyframe", "key")), min(wanted[-1], MAX_COUNT) if wanted else 0):
            spec.section("keyframe").add("key")
        for name, time, arrays in self.keys:
            key = spec.section("keyframe").add("key", name=name or None, time=time)
            for a in arrays:
                pieces = [_piece(element, name, a, own[a]) for element, own in parts if own.get(a)]
                key.attrs[a] = np.concatenate([np.zeros(0), *pieces])


def _scatter(parts: list, key: Element, name: str, arrays: tuple[str, ...]) -> None:
    at = dict.fromkeys(arrays, 0)
    for element, own in parts:
        for a in arrays:
            if own.get(a):
                value = key.attrs[a][at[a] : at[a] + own[a]]
                at[a] += own[a]
                state = {k: dict(v) for k, v in (element.state or {}).items()}
                state.setdefault(name, {})[a] = value
                element.state = state


def _piece(element: Element, name: str, array: str, size: int) -> np.ndarray:
    value = (element.state or {}).get(name, {}).get(array)
    return np.full(size, np.nan if array in _ARRAYS_LEFT_OPEN else 0.0) if value is None else value


def forget(top: Element) -> None:
    """Remove the stored keyframe values from everything in an element."""
    for element in top.all():
        element.state = None


def extend(spec: Spec) -> None:
    """Extend the keyframes of a spec to its current tree.

    As in MuJoCo, a joint gets its `ref` as written (and zeros), a mocap body its written pose.
    """
    keys = listed(spec, "keyframe", "key")
    if not keys:
        return
    parts = owners(spec)
    written: dict[str, np.ndarray] = {}  # one array for all keys: a scene of a hundred copies has hundreds of keys
    for key in keys:
        for a in _ARRAYS:
            value = key.attrs.get(a)
            if value is None:
                continue
            value = value[: len(value) // _POSE_LENGTHS.get(a, 1) * _POSE_LENGTHS.get(a, 1)]
            if a not in written:
                full = [_written(spec, element, a, own[a]) for element, own in parts if own.get(a)]
                written[a] = np.concatenate([np.zeros(0), *full])
            rest = written[a][len(value) :]
            if len(rest):
                key.attrs[a] = np.concatenate([value, rest])  # a truncated pose is dropped


def _written(spec: Spec, element: Element, array: str, size: int) -> np.ndarray:
    out = np.zeros(size)
    if array == "qpos" and element.tag == "joint":
        out[0] = resolve(spec, element)["ref"]
    elif array in ("mpos", "mquat"):
        out = resolve(spec, element)[array[1:]]
    return out
