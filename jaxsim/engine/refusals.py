"""What the engine does not build yet: a table from a model's structure to the name of the feature."""

import numpy as np

from jaxsim.engine import tables
from jaxsim.errors import UnsupportedError
from jaxsim.model import Model
from jaxsim.types import DynType, EnableBit

# (what is refused, how many of it a model has)
REFUSED = (
    ("flex (deformable objects)", lambda m: m.nflex),
    ("engine plugins", lambda m: m.nplugin),
    ("delayed or recorded controls and sensors (nsample, delay, interval)", lambda m: m.nhistory),
    ("actuators with dcmotor dynamics", lambda m: np.sum(m.actuator_dyntype == DynType.DCMOTOR)),
)


@tables.per_structure
def _refused(m) -> str | None:
    found = [f"{name}: {int(count(m))}" for name, count in REFUSED if count(m)]
    return "; ".join(found) or None


def refuse(m: Model):
    """Raise UnsupportedError, naming the features, for a model that asks for what is not built."""
    found = _refused(m)
    if found:
        raise UnsupportedError(f"not supported yet: {found}")
    for flag in (EnableBit.SLEEP,):
        if m.opt.enableflags & flag:
            raise UnsupportedError(f"not supported yet: the flag {flag.name.lower()}")
    if m.opt.noslip_iterations:
        raise UnsupportedError("not supported yet: the noslip solver (noslip_iterations)")
