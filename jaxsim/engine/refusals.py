"""What the engine does not build yet: a table from a model's structure to the name of the feature."""

from jaxsim.engine import tables
from jaxsim.errors import UnsupportedError
from jaxsim.model import Model
from jaxsim.types import EnableBit, EqType

# (what is refused, how many of it a model has)
REFUSED = (("flex (deformable objects)", lambda m: m.nflex),)


@tables.per_structure
def _refused(m) -> str | None:
    found = [f"{name}: {int(count(m))}" for name, count in REFUSED if count(m)]
    return "; ".join(found) or None


def refuse(m: Model):
    """Raise UnsupportedError, naming the features, for a model that asks for what is not built."""
    found = _refused(m)
    if found:
        raise UnsupportedError(f"not supported yet: {found}")
    if m.opt.enableflags & EnableBit.SLEEP and (m.eq_type == EqType.TENDON).any():
        raise UnsupportedError("the flag sleep with equalities of tendons (the reference refuses it, too)")
