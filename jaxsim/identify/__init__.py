"""System identification: parameters of a model from recordings (docs/identification.md)."""

from jaxsim.identify.data import Recordings, recordings
from jaxsim.identify.files import load_recordings
from jaxsim.identify.fit import Fit, Problem, identify
from jaxsim.identify.parameters import Parameter, inertia, mass, parameter, signal
from jaxsim.identify.report import save_report
from jaxsim.identify.uncertainty import unidentifiable

__all__ = [
    "Fit",
    "Parameter",
    "Problem",
    "Recordings",
    "identify",
    "inertia",
    "load_recordings",
    "mass",
    "parameter",
    "recordings",
    "save_report",
    "signal",
    "unidentifiable",
]
