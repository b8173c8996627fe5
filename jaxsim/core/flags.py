"""The disable and enable flags of `m.opt`, which are structure."""

from jaxsim.core.model import Model


def disabled(m: Model, *bits: int) -> bool:
    """Return whether all of these flags of `opt.disableflags` are set."""
    return all(m.opt.disableflags & bit for bit in bits)


def enabled(m: Model, bit: int) -> bool:
    """Return whether a flag of `opt.enableflags` is set."""
    return bool(m.opt.enableflags & bit)
