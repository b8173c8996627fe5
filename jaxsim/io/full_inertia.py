"""Models whose inertial frames may move: rows of M for what a compiled model knows to be zero."""

import numpy as np

from jaxsim.compiler import sparse
from jaxsim.core.model import FLOATS, Model, Structure


def with_full_inertia(m: Model) -> Model:
    """The same model with room in M for every pair of dofs on one path of the tree.

    A body whose frame is its inertial frame counts as "simple" when a model is compiled: a free box has a diagonal M,
    here as in MuJoCo. Moving or turning the inertial frame of such a body (`body_ipos`, `body_iquat`) asks for entries
    that its M does not have. Call this before changing or differentiating by them, and make `Data` of the result. The
    numbers of a step stay the same. Host-side: the structure changes, so that programs compile again.
    """
    simple = {name: np.zeros_like(getattr(m, name)) for name in ("body_simple", "dof_simplenum")}
    tables = sparse.dof_tables(m.dof_parentid, simple["dof_simplenum"])
    structure = Structure({**m.structure.values(), **simple, **tables})
    return Model(structure, m.opt, m.stat, **{name: getattr(m, name) for name in FLOATS})
