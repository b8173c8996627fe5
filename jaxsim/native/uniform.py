"""Find uniform arrays, which are the same for all worlds of a vector: they need no masks and are stored once."""

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from jaxsim.native.jaxpr import WIDE, Flat, Operation, Term, flatten
from jaxsim.xla.compat import scan_lengths

SYSTEMS_PRIMITIVES = ("cholesky", "triangular_solve", "small_matrices")  # tested by `test_operations`


def uniform_outputs(flat: Flat, inputs: Sequence[bool], platform: str) -> list[bool]:
    """Return whether each output is uniform, given which inputs are."""
    known = {v for v, u in zip(flat.inputs, inputs, strict=True) if u}

    def is_known(v: Term) -> bool:
        return isinstance(v, np.ndarray) or v in known

    for op in flat.operations:
        own = uniform_results(op, [is_known(v) for v in op.inputs], platform)
        known |= {v for v, u in zip(op.outputs, own, strict=True) if u}
    return [is_known(v) for v in flat.outputs]


_OUTPUTS: WeakKeyDictionary[Any, dict[tuple, list[bool]]] = WeakKeyDictionary()


def _outputs_of(closed: Any, inputs: Sequence[bool], platform: str) -> list[bool]:
    """Return `uniform_outputs` of a closed jaxpr, once: loops within loops ask for it again and again."""
    kept, key = _OUTPUTS.setdefault(closed, {}), (platform, *inputs)
    if key not in kept:
        kept[key] = uniform_outputs(flatten(closed, platform), inputs, platform)
    return kept[key]


def uniform_results(op: Operation, operands: Sequence[bool], platform: str) -> list[bool]:
    """Return whether each result of an operation is uniform, given which operands are."""
    if op.name == "while":
        return carried_by_while(op, operands, platform)
    if op.name == "scan":
        nc, nk = scan_lengths(op.params, len(op.inputs))
        carry = carried_by_scan(op, operands, platform)
        own = [*operands[:nc], *carry, *operands[nc + nk :]]
        return [*carry, *_outputs_of(op.params["jaxpr"], own, platform)[nk:]]
    if op.name == "cond":
        branches = [_outputs_of(b, operands[1:], platform) for b in op.params["branches"]]
        return [operands[0] and all(own) for own in zip(*branches, strict=True)]
    if op.name == "by_value":
        own = _outputs_of(op.params["jaxpr"], operands, platform)
        return [operands[0] and known for known in own]
    if op.name in SYSTEMS_PRIMITIVES and platform in WIDE:
        return [False] * len(op.outputs)  # `systems.h` writes vectors
    return [op.name == "any_of_vector" or all(operands)] * len(op.outputs)


def carried_by_while(op: Operation, operands: Sequence[bool], platform: str) -> list[bool]:
    """Return whether each carried array of a `while` is uniform; if its length is not, no changed array is."""
    p, nc = op.params, op.params["cond_nconsts"]
    nb = p["body_nconsts"]
    carry = list(operands[nc + nb :])
    while True:
        (is_same,) = _outputs_of(p["cond_jaxpr"], [*operands[:nc], *carry], platform)
        new = _outputs_of(p["body_jaxpr"], [*operands[nc : nc + nb], *carry], platform)
        kept = [c and n and is_same for c, n in zip(carry, new, strict=True)]
        if kept == carry:
            return carry
        carry = kept


def carried_by_scan(op: Operation, operands: Sequence[bool], platform: str) -> list[bool]:
    """Return whether each carried array of a `scan` is uniform."""
    nc, nk = scan_lengths(op.params, len(op.inputs))
    carry = list(operands[nc : nc + nk])
    while True:
        new = _outputs_of(op.params["jaxpr"], [*operands[:nc], *carry, *operands[nc + nk :]], platform)[:nk]
        kept = [c and n for c, n in zip(carry, new, strict=True)]
        if kept == carry:
            return carry
        carry = kept
