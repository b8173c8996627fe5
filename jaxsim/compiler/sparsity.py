"""Sparsity patterns of M and D (dof by dof) and B (body by dof), and the index maps between them.

All are constants of a model: NumPy, int32. `parent` is dof_parentid, `simple` is dof_simplenum.
"""

from collections.abc import Sequence

import numpy as np

from jaxsim.compiler.draft import starts

ModelFields = dict[str, np.ndarray | int]


def dof_chain(parent: Sequence[int], i: int) -> list[int]:
    """Return the dof and its ancestors, nearest first."""
    chain = [i]
    while (i := parent[i]) >= 0:
        chain.append(i)
    return chain


def simplenum(body_simple: np.ndarray, dof_bodyid: np.ndarray) -> np.ndarray:
    """Return dof_simplenum: number of consecutive dofs of simple bodies from each dof on."""
    out, count = np.zeros(len(dof_bodyid), np.int32), 0
    for i in range(len(dof_bodyid) - 1, -1, -1):
        count = count + 1 if body_simple[dof_bodyid[i]] else 0
        out[i] = count
    return out


def _csr(rows: list[list[int]], prefix: str) -> dict[str, np.ndarray]:
    nnz = np.array([len(r) for r in rows], np.int32)
    col = np.array([c for r in rows for c in r], np.int32)
    return {f"{prefix}_rownnz": nnz, f"{prefix}_rowadr": starts(nnz), f"{prefix}_colind": col}


def dof_tables(parent: np.ndarray, simple: np.ndarray) -> ModelFields:
    """Return the tables of M and D.

    They are M_*, D_*, dof_Madr, mapM2M, mapM2D, mapD2M and the sizes nM, nC, nD.
    """
    parents: list[int] = parent.tolist()
    nv = len(parents)
    chains = [dof_chain(parents, i) for i in range(nv)]
    madr = np.cumsum([0] + [len(c) for c in chains])
    lower = [[i] if simple[i] else chains[i][::-1] for i in range(nv)]
    full = [c[::-1] for c in chains]
    for i in range(nv):
        for j in chains[i][1:]:
            full[j].append(i)
    out = {**_csr(lower, "M"), **_csr(full, "D")}
    out["D_diag"] = np.array([len(c) - 1 for c in chains], np.int32)
    out["dof_Madr"] = madr[:-1].astype(np.int32)
    at = [{c: int(out["M_rowadr"][i]) + k for k, c in enumerate(lower[i])} for i in range(nv)]
    in_d = [{c: int(out["D_rowadr"][i]) + k for k, c in enumerate(full[i])} for i in range(nv)]
    out["mapM2M"] = np.array([madr[i] + chains[i].index(c) for i in range(nv) for c in lower[i]], np.int32)
    out["mapM2D"] = np.array([at[max(i, c)].get(min(i, c), -1) for i in range(nv) for c in full[i]], np.int32)
    out["mapD2M"] = np.array([in_d[i][c] for i in range(nv) for c in lower[i]], np.int32)
    sizes = {"nM": int(madr[-1]), "nC": len(out["M_colind"]), "nD": len(out["D_colind"])}
    return {**out, **sizes}


def body_table(parent: np.ndarray, dofadr: np.ndarray, dofnum: np.ndarray) -> ModelFields:
    """Return the tables of B.

    They are B_*: dofs of each body's subtree and ancestors, and the size nB.
    """
    own = [list(range(a, a + n)) for a, n in zip(dofadr.tolist(), dofnum.tolist(), strict=True)]
    parent = parent.tolist()
    below = [list(o) for o in own]
    above: list[list[int]] = [[] for _ in own]
    for i in range(len(own) - 1, 0, -1):
        below[parent[i]] += below[i]
    for i in range(1, len(own)):
        if parent[i]:
            above[i] = above[parent[i]] + own[parent[i]]
    out = _csr([sorted(set(a + b)) for a, b in zip(above, below, strict=True)], "B")
    return {**out, "nB": len(out["B_colind"])}
