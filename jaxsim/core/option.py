"""`Option` and `Statistic`: the physics options and the statistics of a model."""

from typing import Any

from jax import Array

from jaxsim.core.describe import describe_option, option_value
from jaxsim.core.struct import Struct, build, cast_like, fields_of, integer, real

FLUID_OPTIONS = ("density", "viscosity")  # options that switch `fluid` on


class Option(Struct):
    """Physics options, `m.opt`: mjOption's fields. Floats are leaves, integers and flags are structure.

    Own fields, both structure: `fluid` is whether the program computes fluid forces at all. It is on when the compiled
    model has a density or viscosity, and `replace` of either turns it on (unless with a plain zero). To differentiate
    by density at zero, turn it on explicitly: `opt.replace(fluid=1)`. `backend` selects how the program's platform
    computes a step: "auto" uses native programs on CUDA and on a CPU with a C compiler, and XLA, with a warning, for
    parts without a native program; with "native" these parts are an error; "xla" uses XLA for everything. Results and
    gradients are equal up to rounding.
    """

    # Numbers
    timestep: Array = real("", "length of a step", "s")
    impratio: Array = real("", "ratio of frictional to normal impedance of elliptic cones")
    tolerance: Array = real("", "improvement below which the solver stops")
    ls_tolerance: Array = real("", "relative tolerance of the solver's line search")
    noslip_tolerance: Array = real("", "improvement below which the noslip solver stops")
    ccd_tolerance: Array = real("", "tolerance of the search for convex contacts", "m")
    sleep_tolerance: Array = real("", "velocity below which a tree counts as at rest", "m/s")
    gravity: Array = real("3", "acceleration of gravity, global frame", "m/s^2")
    wind: Array = real("3", "velocity of the fluid, global frame", "m/s")
    magnetic: Array = real("3", "magnetic flux density, global frame", "T")
    density: Array = real("", "density of the fluid", "kg/m^3")
    viscosity: Array = real("", "dynamic viscosity of the fluid", "Pa s")
    o_margin: Array = real("", "margin of contacts, when override is on", "m")
    o_solref: Array = real("2", "solver reference of contacts, when override is on", "s, - or N/m, N s/m")
    o_solimp: Array = real("5", "solver impedance of contacts, when override is on")
    o_friction: Array = real("5", "friction of contacts, when override is on", "-, -, m, m, m")
    # Choices
    integrator: int = integer("", "integrator (mjtIntegrator)")
    cone: int = integer("", "friction cone (mjtCone)")
    jacobian: int = integer("", "form of the Jacobian (mjtJacobian); has no effect here")
    solver: int = integer("", "constraint solver (mjtSolver)")
    iterations: int = integer("", "most iterations of the solver")
    ls_iterations: int = integer("", "most iterations of the solver's line search")
    noslip_iterations: int = integer("", "most iterations of the noslip solver; 0: off")
    ccd_iterations: int = integer("", "most iterations of the search for convex contacts")
    disableflags: int = integer("", "features switched off (mjtDisableBit)")
    enableflags: int = integer("", "features switched on (mjtEnableBit)")
    disableactuator: int = integer("", "actuator groups switched off, one bit each")
    sdf_initpoints: int = integer("", "starting points of the search on signed distance fields")
    sdf_iterations: int = integer("", "most iterations of the search on signed distance fields")
    # Own fields
    fluid: int = integer("", "whether the program computes fluid forces at all")
    backend: int = integer("", "what computes a step: auto (0), native (1), xla (2)")

    def __repr__(self) -> str:
        return describe_option(self, OPTION_FLOATS, OPTION_INTS)

    def replace(self, **changes: Any) -> "Option":
        """Return a copy with some fields changed; new values take the dtype of the old ones.

        Choices may be given by MJCF's words: `replace(integrator="RK4", cone="elliptic")`.
        """
        values = self.values()
        self.refuse_unknown(changes, values)
        for name, value in changes.items():
            values[name] = option_value(name, value) if name in OPTION_INTS else cast_like(values[name], value)
        if any(name in changes and not _is_plain_zero(changes[name]) for name in FLUID_OPTIONS):
            values["fluid"] = 1
        return build(Option, values)


def _is_plain_zero(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and value == 0)


class Statistic(Struct):
    """Statistics of the model at qpos0, `m.stat`; `meaninertia` scales the solver's tolerance."""

    meaninertia: Array = real("", "mean of the diagonal of M; scales the solver's tolerance", "kg or kg m^2")
    meanmass: Array = real("", "mean mass of bodies", "kg")
    meansize: Array = real("", "mean size of bodies", "m")
    extent: Array = real("", "size of the model", "m")
    center: Array = real("3", "centre of the model, global frame", "m")


OPTION_FLOATS = tuple(f.name for f in fields_of(Option, "float"))
OPTION_INTS = tuple(f.name for f in fields_of(Option, "int"))
OWN_OPTIONS = ("fluid", "backend")  # absent in MuJoCo
STATISTICS = tuple(f.name for f in fields_of(Statistic))
