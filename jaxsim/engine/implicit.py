"""Integrators `implicit` and `implicitfast`: implicit in velocity."""

from jaxsim.data import Data
from jaxsim.errors import UnsupportedError
from jaxsim.model import Model


def implicit(m: Model, d: Data) -> Data:
    raise UnsupportedError("the integrators implicit and implicitfast")
