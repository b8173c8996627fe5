"""Sequential calls of expensive analytic colliders, for the real pairs only."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from jaxsim.engine.collision.shapes import Geoms, PairContacts
from jaxsim.math.safe import Array
from jaxsim.native.pool import for_each
from jaxsim.native.rows import over_rows, real_rows

Function = Callable[[Geoms, Geoms, Array], PairContacts]


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def sequential(function: Function, a: Geoms, b: Geoms, margin: Array, count: Array) -> PairContacts:
    """Call `function(a, b, margin)` for each of the first `count` of n pairs; other contacts are not valid.

    The collider must drop nothing. The derivatives are those of the function.
    """

    def of_pair(_: None, pair: tuple[Geoms, Geoms, Array], __: Array) -> PairContacts:
        contacts = function(*jax.tree.map(lambda x: x[None], pair))._replace(dropped=None)
        return jax.tree.map(lambda x: x[0], contacts)

    return for_each(of_pair, None, (a, b, margin), count)._replace(dropped=0)


@sequential.defjvp
def _sequential_jvp(function: Function, primals: tuple, tangents: tuple) -> tuple[PairContacts, PairContacts]:
    _, _, margin, count = primals

    def of_rows(_: tuple, rows: tuple[Geoms, Geoms, Array]) -> tuple[PairContacts, tuple]:
        return function(*rows)._replace(dropped=None), ()

    def of_pairs(*pairs: Any) -> PairContacts:
        return over_rows(of_rows, real_rows(count, len(margin)), (), pairs)[0]

    tangent = jax.jvp(of_pairs, primals[:3], tangents[:3])[1]
    none = np.zeros((), jax.dtypes.float0)
    return sequential(function, *primals), tangent._replace(dropped=none)
