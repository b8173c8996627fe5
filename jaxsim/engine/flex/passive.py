"""Passive forces of all flexes."""

from jaxsim.core.data import Data
from jaxsim.core.flags import disabled
from jaxsim.core.model import Model
from jaxsim.core.types import DisableBit
from jaxsim.engine.flex.elastic import bending_force, edge_force, force_on_dofs, strain_force
from jaxsim.engine.flex.lattice import lattice_force
from jaxsim.math.safe import Array, xp_of


def flex_force(m: Model, d: Data) -> tuple[Array, Array]:
    """Compute the joint-space forces (nv,) of springs and of dampers in flexes, from the results of `flex`, `com_vel`.

    As in MuJoCo the damping of strain counts as a spring's force; only the flags of springs and dampers together
    disable it.
    """
    xp = xp_of(d.qvel)
    spring, damper = not disabled(m, DisableBit.SPRING), not disabled(m, DisableBit.DAMPER)
    total = [xp.zeros_like(d.qvel), xp.zeros_like(d.qvel)]
    for part in (bending_force, edge_force, lattice_force):
        forces = part(m, d, spring, damper)
        if forces is not None:
            total = [a + b for a, b in zip(total, forces, strict=True)]
    strain = strain_force(m, d)
    return (total[0] if strain is None else total[0] + force_on_dofs(m, d, strain)), total[1]
