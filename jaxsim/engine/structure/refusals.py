"""Features that the engine does not implement, and a table of features that it replaces by another method."""

import functools
import warnings

import numpy as np

from jaxsim.core.errors import ModelWarning, UnsupportedError
from jaxsim.core.layout import is_sparse, side_widths
from jaxsim.core.model import Model
from jaxsim.core.types import EnableBit, EqType, SolverType

# (whether a model has the feature, its name, its replacement)
SUBSTITUTED = (
    (
        lambda m: m.opt.solver == SolverType.PGS,
        "solver='PGS' is computed by Newton's method, whose result is the limit of the sweeps of PGS",
    ),
    (
        lambda m: m.opt.solver == SolverType.CG and is_sparse(m),
        "solver='CG' on a large model is computed by Newton's method without a Hessian: the result is the same, and "
        "opt.iterations bounds Newton's iterations",
    ),
)


def refuse(m: Model):
    """Raise UnsupportedError, naming the features, for a model with features that are not implemented."""
    awake = (EqType.TENDON, EqType.FLEX, EqType.FLEXVERT)
    if m.opt.enableflags & EnableBit.SLEEP and np.isin(m.eq_type, awake).any():
        raise UnsupportedError(
            "the flag sleep with equalities of tendons or flexes is not supported (MuJoCo refuses it, too)"
        )
    if m.opt.enableflags & EnableBit.SLEEP and side_widths(m)[1] > 1:
        raise UnsupportedError("the flag sleep with flexes that collide is not supported yet")


def warn_of_substitutes(m: Model):
    """Issue a `ModelWarning`, once per process and kind, if another algorithm replaces one that the model names."""
    for asked, what in SUBSTITUTED:
        if asked(m):
            warn_once(what)


@functools.cache
def warn_once(what: str):
    warnings.warn(what, ModelWarning, stacklevel=4)  # at the line that loads the model
