"""Optimisation of rollouts: planners, controllers, contacts with useful gradients, smoothing (docs/planning.md)."""

from jaxsim.optim.contact import contacts_from_distance, smooth_impedance, straight_through
from jaxsim.optim.costs import Constraint, Costs, SmoothAbs, SmoothLength, Term, linear, quadratic
from jaxsim.optim.inverse import inverse_trajectory
from jaxsim.optim.lqr import ddp, ilqr
from jaxsim.optim.options import Cem, Ddp, Ilqr, Inverse, Iteration, Mppi, Result, Shooting
from jaxsim.optim.planning import Controller, Memory, mpc, plan, trajectory_cost
from jaxsim.optim.report import GradientReport, gradient_report
from jaxsim.optim.sampling import cem, mppi
from jaxsim.optim.second import hvp
from jaxsim.optim.shooting import shoot
from jaxsim.optim.smoothing import smoothed
from jaxsim.optim.stiff import adaptive, substepped

__all__ = [
    "Cem",
    "Constraint",
    "Controller",
    "Costs",
    "Ddp",
    "GradientReport",
    "Ilqr",
    "Inverse",
    "Iteration",
    "Memory",
    "Mppi",
    "Result",
    "Shooting",
    "SmoothAbs",
    "SmoothLength",
    "Term",
    "adaptive",
    "cem",
    "contacts_from_distance",
    "ddp",
    "gradient_report",
    "hvp",
    "ilqr",
    "inverse_trajectory",
    "linear",
    "mpc",
    "mppi",
    "plan",
    "quadratic",
    "shoot",
    "smooth_impedance",
    "smoothed",
    "straight_through",
    "substepped",
    "trajectory_cost",
]
