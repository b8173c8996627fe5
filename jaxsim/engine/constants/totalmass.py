"""Total mass of a model: read, and set by scaling all bodies."""

import jax.numpy as jnp
import numpy as np

from jaxsim.core.model import Model
from jaxsim.core.types import MINVAL
from jaxsim.interface.public import public
from jaxsim.math.safe import Array


@public
def get_totalmass(m: Model) -> Array:
    """Return the mass of all bodies but the world: mj_getTotalmass."""
    return m.body_mass[1:].sum()


@public
def set_totalmass(m: Model, newmass: Array | float) -> Model:
    """Scale all masses and inertias to a total mass: mj_setTotalmass.

    Constants derived from masses do not change: `set_const` recomputes them.
    """
    scale = jnp.maximum(MINVAL, newmass / jnp.maximum(MINVAL, get_totalmass(m)))
    scale = jnp.where(np.arange(m.nbody) > 0, scale, 1)
    return m.replace(body_mass=m.body_mass * scale, body_inertia=m.body_inertia * scale[:, None])
