"""What the engine does not build yet, and what it does by other means: tables from a model to the name of a feature."""

import functools
import warnings

from jaxsim.core.errors import ModelWarning, UnsupportedError
from jaxsim.core.layout import is_sparse
from jaxsim.core.model import Model
from jaxsim.core.structure import per_structure
from jaxsim.core.types import EnableBit, EqType, SolverType

WARPS = (1, 2, 4, 8, 16, 32)  # a block has at most 1,024 threads
KERNEL_DOFS = 128  # the kernel of the solver keeps the Hessian in registers

# (what is refused, how many of it a model has)
REFUSED = (("flex (deformable objects)", lambda m: m.nflex),)
# (whether a model has the feature, its name, and what is done instead)
SUBSTITUTED = (
    (
        lambda m: m.opt.solver == SolverType.PGS,
        "solver='PGS' is computed by Newton's method: the answer that the sweeps of PGS approach, without their error",
    ),
    (
        lambda m: m.opt.solver == SolverType.CG and is_sparse(m),
        "solver='CG' on a large model is computed by Newton's method without a Hessian: the same answer, and "
        "opt.iterations bounds Newton's iterations",
    ),
)


@per_structure
def _refused(m) -> str | None:
    found = [f"{name}: {int(count(m))}" for name, count in REFUSED if count(m)]
    return "; ".join(found) or None


def refuse(m: Model):
    """Raise UnsupportedError, naming the features, for a model with features that are not built."""
    found = _refused(m)
    if found:
        raise UnsupportedError(f"not supported yet: {found}")
    if m.opt.enableflags & EnableBit.SLEEP and (m.eq_type == EqType.TENDON).any():
        raise UnsupportedError("the flag sleep with equalities of tendons (MuJoCo refuses it, too)")


def warn_of_substitutes(m: Model):
    """Issue a `ModelWarning`, once per process and kind, where an algorithm is not the one that the model names."""
    for asked, what in SUBSTITUTED:
        if asked(m):
            warn_once(what)


@functools.cache
def warn_once(what: str):
    warnings.warn(what, ModelWarning, stacklevel=4)  # at the line that loads the model


def refuse_kernel(m: Model):
    """Raise UnsupportedError for what `opt.solver_kernel` does not take."""
    warps = m.opt.solver_kernel
    reasons = (
        (warps not in WARPS, f"{warps} warps, which is no power of two up to {WARPS[-1]}"),
        (m.opt.solver == SolverType.CG, "the solver CG"),
        (is_sparse(m), "the sparse rows of a large scene"),
        (m.nv > KERNEL_DOFS, f"more than {KERNEL_DOFS} dofs"),
    )
    found = [reason for holds, reason in reasons if holds]
    if found:
        raise UnsupportedError(f"solver_kernel with {' and '.join(found)}")
