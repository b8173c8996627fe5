"""The warning, once in a process, that contacts or constraint rows were dropped for lack of capacity.

It is issued on the host, when a result of a compiled program is available. With a callback inside a program, JAX could
not cache the program on disk (docs/decisions/capacities.md).
"""

import warnings
from math import ceil
from typing import Any

import jax.core
import numpy as np

from jaxsim.core.errors import CapacityWarning

MARGIN = 1.25  # of the capacity that is named, relative to the largest use that was seen
reported: set[str] = set()  # what this process has been told to overflow


def warn_of_overflow(m: Any, d: Any, stacklevel: int = 3, wait: bool = False) -> None:
    """Issue a `CapacityWarning` if a world of `d` dropped something; once in a process for contacts and for rows.

    Traced data gives no warning, and neither does data that is still being computed, unless `wait` is set.
    """
    for what, used in (("contacts", "maxuse_con"), ("constraints", "maxuse_efc")):
        if what in reported:
            continue
        dropped = getattr(d, f"overflow_{what}")
        if isinstance(dropped, jax.core.Tracer) or not (wait or getattr(dropped, "is_ready", lambda: True)()):
            continue
        dropped = np.asarray(dropped)
        if dropped.any():
            reported.add(what)
            option, most = f"max_{what}", int(np.max(np.asarray(getattr(d, used))))
            warnings.warn(
                f"{int(dropped.sum())} {what} were dropped in {np.count_nonzero(dropped)} of {dropped.size} worlds: "
                f"the capacity is {getattr(m, option)}, {most} were needed at a time; load with "
                f"{option}={ceil(MARGIN * most)}, or as jaxsim.suggest_capacity(m, d) says. This warning is given "
                f"once; d.overflow_{what} counts on",
                CapacityWarning,
                stacklevel=stacklevel,
            )
