"""Optimisation of rollouts: contacts with useful gradients, smoothing, and batched optimisers (docs/gradients.md)."""

from jaxsim.optim.contact import contacts_from_distance, smooth_impedance, straight_through
from jaxsim.optim.ilqr import Costs, IlqrResult, ilqr
from jaxsim.optim.sampling import cem, mppi
from jaxsim.optim.shooting import OptimResult, shoot
from jaxsim.optim.smoothing import smoothed
from jaxsim.optim.stiff import adaptive, substepped

__all__ = [
    "Costs",
    "IlqrResult",
    "OptimResult",
    "adaptive",
    "cem",
    "contacts_from_distance",
    "ilqr",
    "mppi",
    "shoot",
    "smooth_impedance",
    "smoothed",
    "straight_through",
    "substepped",
]
