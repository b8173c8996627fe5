"""Near pairs of large models on a CPU: sweep and prune as machine code, in place of the grid of `broadphase.py`.

A sweep visits each two geoms whose boxes overlap along all axes of the world. It costs a sort, which buckets do in time
that is proportional to the geoms, and the overlaps along one axis. Static filters apply to what is left.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import DisableBit, EnableBit, GeomType
from jaxsim.math.safe import Array
from jaxsim.native.expressions import C_TYPES
from jaxsim.native.source_text import definitions, text
from jaxsim.native.world_program import ProgramSource, WorldProgram, rebuilt, run_program

HERE = Path(__file__).parent


class FoundPairs(NamedTuple):
    """Rows (capacity, 3) of two geoms and explicit pair or -1, of which the first `count` are real; number dropped."""

    rows: Array
    count: Array
    dropped: Array


def near_in_sequence(m: Any, pos: Array, mat: Array, capacity: int, plain: Callable[..., FoundPairs]) -> FoundPairs:
    """`plain(m, pos, mat, capacity)`: near pairs in MuJoCo's order. Which are dropped may differ between the forms."""
    given = [pos, mat, m.geom_rbound, m.geom_aabb, m.geom_margin, m.opt.o_margin, m.pair_margin]
    again = rebuilt((m, pos, mat), given)

    def in_plain_form(*values: Array) -> Sequence[Array]:
        rows, count, dropped = plain(*again(values), capacity)
        return rows, (count + dropped)[None]

    results = jax.ShapeDtypeStruct((capacity, 3), jnp.int32), jax.ShapeDtypeStruct((1,), jnp.int32)
    tables = _tables(m.structure, m.opt.disableflags & (DisableBit.MIDPHASE | DisableBit.FILTERPARENT))
    sizes = [m.ngeom, m.npair, m.nexclude, capacity]
    sizes += [bool(m.opt.enableflags & EnableBit.OVERRIDE), not m.opt.disableflags & DisableBit.MIDPHASE]
    program = WorldProgram(in_plain_form, partial(_source, str(pos.dtype)), results, "the broad phase")
    rows, (count,) = run_program(program, *given, np.array(sizes, np.int32), *tables)
    return FoundPairs(rows, jnp.minimum(count, capacity), jnp.maximum(count - capacity, 0))


def _source(dtype: str) -> ProgramSource:
    return ProgramSource(sweep_source(dtype) + text(HERE, "near.c"))


def sweep_source(dtype: str) -> str:
    """C source of the sweep, for numbers of this type."""
    known = {"T": C_TYPES[dtype], "PLANE": int(GeomType.PLANE), "HFIELD": int(GeomType.HFIELD)}
    return definitions(known) + text(HERE, "sweep.c")


def swept_geoms(m: Any) -> np.ndarray:
    """Which geoms (ngeom,) are swept: all that can collide and have bounds."""
    return (m.geom_type > GeomType.HFIELD) & ((m.geom_contype != 0) | (m.geom_conaffinity != 0))


@lru_cache(maxsize=64)
def _tables(m: Any, flags: int) -> tuple[np.ndarray, ...]:
    """What `near.c` knows of geoms, and its keys of excluded bodies and of explicit pairs."""
    body, weld = m.geom_bodyid, m.body_weldid[m.geom_bodyid]
    parent = m.body_weldid[m.body_parentid[weld]] if not flags & DisableBit.FILTERPARENT else np.full(m.ngeom, -1)
    single, volumes = m.body_geomnum[body] == 1, m.body_bvhadr[body] >= 0
    known = np.stack([m.geom_type, m.geom_contype, m.geom_conaffinity, body, weld, parent, single, volumes], axis=1)
    pair = np.stack([m.pair_geom1, m.pair_geom2], axis=1).astype(np.int64).reshape(-1, 2)
    swap = m.geom_type[pair[:, 0]] > m.geom_type[pair[:, 1]]
    by_type = np.where(swap[:, None], pair[:, ::-1], pair)
    signature = np.maximum.accumulate(m.pair_signature.astype(np.int64))
    explicit = np.concatenate([by_type, signature[:, None]], axis=1)
    listed = np.sort(pair.min(axis=1) * m.ngeom + pair.max(axis=1))
    exclude = np.sort(m.exclude_signature.astype(np.int64))
    integers = (x.astype(np.uint32).view(np.int32) for x in (exclude, explicit, listed))
    return known.astype(np.int32), weld == 0, swept_geoms(m), *integers
