"""Optimisation with gradients: contacts that have useful ones, and optimisers on the batch. See docs/gradients.md."""

from jaxsim.optim.contact import contacts_from_distance, smooth_impedance, straight_through
from jaxsim.optim.ilqr import Costs, Plan, ilqr
from jaxsim.optim.sampling import cem, mppi
from jaxsim.optim.shooting import Found, shoot
from jaxsim.optim.smoothing import smoothed
from jaxsim.optim.stiff import adaptive, substepped

__all__ = [
    "Costs",
    "Found",
    "Plan",
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
