"""Sums of rows into static bins: by gathers of lists of about equal lengths, else by scatters."""

from typing import NamedTuple

import numpy as np

from jaxsim.math.arrays import add_at, is_numpy, take_or_zero
from jaxsim.math.safe import Array, short_sum

MOST_PADDING = 3  # lists are padded to the longest up to this multiple of the rows


class Bins(NamedTuple):
    """Bins: a map from k rows to n sums.

    Attributes:
        index: (k,) the bin of each row, -1 for none.
        count: n.
        rows: (n, width) the rows of each bin, padded with -1; None where a bin has many more than most.
    """

    index: np.ndarray
    count: int
    rows: np.ndarray | None


def make_bins(index: np.ndarray, count: int) -> Bins:
    """Return the bins of rows with these indices (k,), -1 for rows that are left out."""
    index = np.asarray(index)
    row = np.flatnonzero(index >= 0)
    row = row[np.argsort(index[row], kind="stable")]
    size = np.bincount(index[row], minlength=count)
    width = int(size.max(initial=0))
    if count * width > MOST_PADDING * len(row) + count:
        return Bins(index, count, None)
    rows = np.full((count, width), -1)
    first = np.cumsum(size) - size
    rows[index[row], np.arange(len(row)) - first[index[row]]] = row
    return Bins(index, count, rows)


def sum_into(bins: Bins, x: Array) -> Array:
    """Sum the rows of x (k, ...) by bin: (n, ...)."""
    if bins.rows is None or is_numpy(x):
        return add_at(bins.index, x, bins.count)
    found = take_or_zero(x, bins.rows)
    return short_sum(found, 1) if found.ndim == 2 else found.sum(1)
