"""Uniform grid: pairs of points in the same or in neighbouring cells, processed in chunks."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax

from jaxsim.math.arrays import gather
from jaxsim.math.safe import Array
from jaxsim.xla.batching import batch_max

GRID_MAX_CELLS = 1022  # along each axis; points beyond it fall in the last cell
COLUMN_OFFSETS = (1, 1023, 1024, 1025)  # (dz, dy) of half of the neighbouring columns, for keys (z 1024 + y) 1024 + x
CHUNK_PER_POINT = 16  # pairs of one chunk, for each point


def neighbours(
    centre: Array, width: Array, keep: Callable[[Array, Array], tuple[Array, Array]], found: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Append the kept pairs of neighbours; return rows (capacity, k) and their number, which may exceed capacity.

    Args:
        centre: points (n, 3).
        width: width of a cell; pairs of points farther apart along an axis may be left out.
        keep: function of the indices of points i, j (m,), each pair once: the mask of kept pairs and their rows (m, k).
        found: rows to append to, and the number of real ones.
    """
    n = len(centre)
    centre = jnp.where(jnp.isfinite(centre), centre, 0)
    cell = jnp.floor((centre - jnp.min(centre, axis=0)) / jnp.maximum(width, 1e-9))
    x, y, z = (jnp.clip(cell, 0, GRID_MAX_CELLS - 1).astype(jnp.int32) + 1).T
    key, order = lax.sort_key_val((z * 1024 + y) * 1024 + x, jnp.arange(n, dtype=jnp.int32))
    begin, end = [jnp.arange(1, n + 1)], [jnp.searchsorted(key, key + 1, side="right")]
    for column in COLUMN_OFFSETS:
        begin.append(jnp.searchsorted(key, key + 1024 * column - 1, side="left"))
        end.append(jnp.searchsorted(key, key + 1024 * column + 1, side="right"))
    begin, end = jnp.concatenate(begin), jnp.concatenate(end)
    run_end = jnp.cumsum(end - begin, dtype=jnp.int32)
    chunk = CHUNK_PER_POINT * n

    def add_chunk(i: Array, found: tuple[Array, Array]) -> tuple[Array, Array]:
        k = i * chunk + jnp.arange(chunk, dtype=jnp.int32)
        here = jnp.where(run_end >= k[0], run_end - k[0], chunk)
        ends = jnp.cumsum(jnp.zeros(chunk, jnp.int32).at[here].add(1, mode="drop"), dtype=jnp.int32)
        run = jnp.minimum(jnp.sum(run_end < k[0], dtype=jnp.int32) + ends, 5 * n - 1)
        other = jnp.clip(gather(end, run) - (gather(run_end, run) - k), 0, n - 1)
        kept, new = keep(gather(order, run % n), gather(order, other))
        return appended(found, kept & (k < run_end[-1]), new)

    count = (batch_max(run_end[-1]) + chunk - 1) // chunk
    return lax.fori_loop(0, count, add_chunk, found)


def appended(found: tuple[Array, Array], mask: Array, new: Array) -> tuple[Array, Array]:
    """Append the rows in `mask`; rows beyond the capacity are dropped but counted."""
    rows, count = found
    index = jnp.where(mask, count + jnp.cumsum(mask, dtype=jnp.int32) - 1, len(rows))
    return rows.at[index].set(new, mode="drop"), count + jnp.sum(mask, dtype=jnp.int32)
