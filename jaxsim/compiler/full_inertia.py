"""Models whose inertial frames may change: adds entries of M that a compiled model omits because they are zero."""

import numpy as np

from jaxsim.compiler import sparsity
from jaxsim.core.model import Model


def with_full_inertia(m: Model) -> Model:
    """Return the model with an entry in M for every pair of dofs on one path of the tree.

    As in MuJoCo, a body whose frame is its inertial frame is compiled as "simple": a free box has a diagonal M. If the
    inertial frame of a simple body moves or rotates (`body_ipos`, `body_iquat`), M has more nonzero entries. Call this
    function before changing these fields or differentiating by them, and make `Data` of the result. The results of a
    step are the same. Host-side: the structure changes, so that programs compile again.
    """
    simple = {name: np.zeros_like(getattr(m, name)) for name in ("body_simple", "dof_simplenum")}
    tables = sparsity.dof_tables(m.dof_parentid, simple["dof_simplenum"])
    return m.replace(structure=m.structure.replace({**simple, **tables}))
