"""What the engine does not build yet: a table from a model's structure to the name of the feature."""

from jaxsim.engine import dcmotor, tables
from jaxsim.errors import UnsupportedError
from jaxsim.model import Model
from jaxsim.types import EnableBit

# (what is refused, how many of it a model has)
REFUSED = (
    ("flex (deformable objects)", lambda m: m.nflex),
    ("engine plugins", lambda m: m.nplugin),
    ("delayed or recorded controls and sensors (nsample, delay, interval)", lambda m: m.nhistory),
    ("actuators that mix dcmotor with other dynamics, gain or bias", lambda m: len(dcmotor.mixed(m))),
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
