"""System identification: parameters of a model from recordings (docs/identification.md)."""

from jaxsim.identify.data import Recordings, recordings
from jaxsim.identify.files import load_recordings
from jaxsim.identify.fit import Fit, identify
from jaxsim.identify.loss import Loss
from jaxsim.identify.parameters import Parameter, gain, inertia, mass, parameter, signal
from jaxsim.identify.problem import Initial, Problem
from jaxsim.identify.report import save_report
from jaxsim.identify.save import save_mjcf
from jaxsim.identify.search import Search, search
from jaxsim.identify.states import measured_states
from jaxsim.identify.uncertainty import unidentifiable
from jaxsim.identify.validation import Validation, validate

__all__ = [
    "Fit",
    "Initial",
    "Loss",
    "Parameter",
    "Problem",
    "Recordings",
    "Search",
    "Validation",
    "gain",
    "identify",
    "inertia",
    "load_recordings",
    "mass",
    "measured_states",
    "parameter",
    "recordings",
    "save_mjcf",
    "save_report",
    "search",
    "signal",
    "unidentifiable",
    "validate",
]
