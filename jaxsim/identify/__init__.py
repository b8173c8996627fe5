"""System identification: parameters of a model from recordings (docs/identification.md)."""

from jaxsim.identify.data import Recordings, recordings
from jaxsim.identify.excite import Excitation, excite
from jaxsim.identify.files import load_recordings
from jaxsim.identify.fit import Fit, identify
from jaxsim.identify.loss import Loss
from jaxsim.identify.parameters import Parameter, gain, inertia, mass, parameter, signal
from jaxsim.identify.posterior import Posterior, Profile, posterior, profile
from jaxsim.identify.problem import Initial, Problem
from jaxsim.identify.randomize import model_randomizer
from jaxsim.identify.report import save_report
from jaxsim.identify.save import save_mjcf
from jaxsim.identify.search import Search, search
from jaxsim.identify.states import measured_states
from jaxsim.identify.uncertainty import unidentifiable
from jaxsim.identify.validation import Validation, validate

__all__ = [
    "Excitation",
    "Fit",
    "Initial",
    "Loss",
    "Parameter",
    "Posterior",
    "Problem",
    "Profile",
    "Recordings",
    "Search",
    "Validation",
    "excite",
    "gain",
    "identify",
    "inertia",
    "load_recordings",
    "mass",
    "measured_states",
    "model_randomizer",
    "parameter",
    "posterior",
    "profile",
    "recordings",
    "save_mjcf",
    "save_report",
    "search",
    "signal",
    "unidentifiable",
    "validate",
]
