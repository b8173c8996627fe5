"""Decide which arrays a program stores in memory, and which it computes wherever they are read."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxsim.native.control import INNER
from jaxsim.native.jaxpr import Flat, Operation, Var
from jaxsim.native.operations import COST, JOINS, OFTEN, REDUCTIONS, VIEWS
from jaxsim.native.statements import STATEMENTS
from jaxsim.native.writer import CYCLES_OF_LOAD, CYCLES_OF_STORE, CYCLES_OF_WAIT, OFTEN_COST, RECOMPUTED


def is_stored(op: Operation) -> bool:
    """Return whether the results of an operation are always stored in memory."""
    return op.name in STATEMENTS or op.name in INNER or op.name in JOINS


def limit_of_operand(op: Operation, lanes: int) -> int:
    """Return the cost of an entry above which an operand is stored before it is broadcast or reduced."""
    x, out = op.inputs[0] if op.inputs else None, op.outputs[0]
    if op.name == "pad":  # evaluates the operand for all entries, also those of the padding
        return OFTEN_COST
    if op.name == "broadcast_in_dim" and x is not None:
        return RECOMPUTED if math.prod(out.shape) > 4 * math.prod(x.shape) else 10**9
    if op.name in REDUCTIONS and x is not None:
        return _limit_of_terms(math.prod(x.shape), max(1, math.prod(out.shape)), lanes)
    return 10**9


def limit_of_spread(shape: Sequence[int], out: Sequence[int]) -> int:
    """Return the cost of an entry above which one lane stores an operand that it reads again in an outer loop."""
    last = max((d for d, n in enumerate(shape) if n > 1), default=0)
    turns = math.prod(out[d] for d in range(last) if shape[d] == 1)
    return math.ceil((CYCLES_OF_STORE + turns * CYCLES_OF_LOAD) / (turns - 1)) if turns > 1 else 10**9


def picks_few(op: Operation, lanes: int) -> bool:
    """Return whether one lane gathers at most half of an array at constant indices, so that it computes only these."""
    return (
        op.name == "gather"
        and lanes == 1
        and isinstance(op.inputs[1], np.ndarray)
        and 2 * math.prod(op.outputs[0].shape) <= math.prod(op.inputs[0].shape)
    )


def _limit_of_terms(terms: int, sums: int, lanes: int) -> int:
    """Return the cost of a term above which all lanes store the terms before others add them, because it is faster."""
    passes, count = math.ceil(sums / lanes), terms / sums
    saved = passes * count - math.ceil(terms / lanes)
    spent = math.ceil(terms / lanes) * CYCLES_OF_STORE + passes * count * CYCLES_OF_LOAD + CYCLES_OF_WAIT
    return math.ceil(spent / saved) if saved > 0 else 10**9


def arrays_to_store(flat: Flat, often: bool, lanes: int, groups: dict[int, list[int]]) -> set[Var]:
    """Return the arrays to store in memory, because loops read them more than once and recomputing them costs more.

    These are arrays that several loops read. With `often`, arrays that one loop reads many times are stored too. This
    is an estimate, since a lane does not recompute an expression that it has already computed.
    """
    cost: dict[Var, float] = {}
    reader = {j: k for k, group in groups.items() for j in group}  # a group counts as one loop
    for k, op in enumerate(flat.operations):
        own = sum(cost.get(v, 1) for v in op.inputs if isinstance(v, Var))
        x = op.inputs[0] if op.inputs else None
        if op.name in REDUCTIONS and x is not None:
            own *= math.prod(x.shape) / max(1, math.prod(op.outputs[0].shape))
        elif op.name == "dot_general" and x is not None:
            own *= math.prod(x.shape[d] for d in op.params["dimension_numbers"][0][0])
        price = 0 if op.name in VIEWS else COST.get(op.name, 2)
        stored = is_stored(op) or k in reader
        cost |= dict.fromkeys(op.outputs, 1 if stored else min(own + price, 1e6))
    readers: dict[Var, set[Any]] = {}  # loops, and loops behind a transposition
    for v in flat.outputs:
        if isinstance(v, Var):
            readers.setdefault(v, set()).add(-1)
    kept: set[Var] = set()
    read: dict[Var, float] = {}  # how many entries are computed if the array is not stored
    for k, op in reversed(list(enumerate(flat.operations))):
        mine: set[Any] = {reader[k]} if k in reader else set()
        for v in op.outputs if k not in reader else ():
            found = readers.get(v, set())
            again = (len(found) - 1) * cost[v] > RECOMPUTED or (
                often and _is_read_often(v, read.get(v, 0), cost[v], lanes)
            )
            if again and op.name not in VIEWS:
                kept.add(v)
            mine |= {k} if v in kept else found
        if is_stored(op):
            mine = {k}
        elif op.name == "transpose":  # a loop that reads an array in both ways would compute its entries twice
            mine = {(k, loop) for loop in mine}
        for v in op.inputs:
            if isinstance(v, Var):
                readers.setdefault(v, set()).update(mine)
                read[v] = read.get(v, 0) + (math.prod(v.shape) if k in reader else _entries(op, v, kept, read))
    return kept


def _is_read_often(v: Var, entries: float, cost: float, lanes: int) -> bool:
    """Return whether storing an array is cheaper than computing so many entries, if half of them are known already."""
    passes, own = entries / lanes, math.ceil(math.prod(v.shape) / lanes)
    spent = own * CYCLES_OF_STORE + passes * CYCLES_OF_LOAD + CYCLES_OF_WAIT
    return (passes / 2 - own) * cost > spent


def _entries(op: Operation, v: Var, kept: set[Var], read: dict[Var, float]) -> float:
    """Return how many entries of an operand an operation computes."""
    own, size = math.prod(v.shape), math.prod(op.outputs[0].shape)
    if is_stored(op) or op.name in OFTEN:
        return own
    often = size if op.outputs[0] in kept else read.get(op.outputs[0], size)
    return often * (own / max(size, 1) if op.name in REDUCTIONS else 1)
