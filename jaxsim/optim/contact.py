"""Models whose contacts have useful gradients, and steps that use only their gradient (docs/gradients.md)."""

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

import jaxsim
from jaxsim.core.contact import Contact
from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.engine.constraint.impedance import DEFAULT_SOLREF, impedance, is_safe, safe_reference
from jaxsim.math.safe import Array


def contacts_from_distance(m: Model, width: float) -> Model:
    """Return a model whose contacts begin at the distance `width` (m) and grow smoothly until the surfaces touch.

    With r the distance less the margin, the position of a contact becomes -(width - r)^2 / (4 width) for r between
    -width and width; it is r below that range and 0 above. Between 0 and `width` its impedance is multiplied by
    (1 - (r / width)^2)^2. Stiffness and damping are kept. Contacts within `width` count towards `max_contacts`.
    Raises ValueError when the model has a contact callback.
    """
    near = m.replace(
        geom_margin=m.geom_margin + 0.5 * width,
        geom_gap=m.geom_gap + 0.5 * width,
        pair_margin=m.pair_margin + width,
        pair_gap=m.pair_gap + width,
        opt=m.opt.replace(o_margin=m.opt.o_margin + width),
    )
    return near.replace(callbacks=_with_contact(m.callbacks, float(width)))


@cache
def _with_contact(callbacks: Any, width: float) -> Any:
    if callbacks.contact is not None:
        raise ValueError("the model has a contact callback already")
    return dataclasses.replace(callbacks, contact=lambda m, d: _distant_contacts(m, d, width))


def _distant_contacts(m: Model, d: Data, width: float) -> Contact:
    """Contacts of `contacts_from_distance` in place of those of `d`."""
    c = d.contact
    r = c.dist - c.includemargin
    imp, _, dmax = impedance(c.solimp, jnp.minimum(r, 0))
    fraction = jnp.clip(r / width, 0, 1)
    soft = jnp.maximum(imp * (1 - fraction * fraction) ** 2, jaxsim.core.types.MINIMP)
    inside = jnp.clip(width - r, 0, 2 * width)
    position = jnp.where(r <= -width, r, -inside * inside / (4 * width))
    active = (c.dim > 0) & (r < width)
    safety = m.opt.timestep, is_safe(m)
    solref = _keep_stiffness(safe_reference(*safety, c.solref, DEFAULT_SOLREF), soft / dmax)
    friction = _keep_stiffness(safe_reference(*safety, c.solreffriction, (0.0, 0.0)), soft / dmax)
    return c.replace(
        dist=jnp.where(active, position + c.includemargin, c.dist),
        exclude=jnp.where(active & (c.exclude == 1), 0, c.exclude),
        solimp=jnp.where(active[:, None], c.solimp.at[:, :2].set(soft[:, None]), c.solimp),
        solref=jnp.where(active[:, None], solref, c.solref),
        solreffriction=jnp.where(active[:, None] & (c.solreffriction != 0), friction, c.solreffriction),
    )


def _keep_stiffness(solref: Array, ratio: Array) -> Array:
    """`solref` (n, 2) of the same stiffness and damping after the greatest impedance is multiplied by `ratio`."""
    time, damp = solref[:, 0], solref[:, 1]
    standard = time > 0
    scaled = jnp.where(standard, time / ratio, time * ratio * ratio)
    return jnp.stack([scaled, jnp.where(standard, damp, damp * ratio)], axis=1)


def smooth_impedance(m: Model, width: float | None = None, power: float = 2.0) -> Model:
    """Return a model of contacts with an impedance near zero at the surface, so that forces are continuous at touch.

    `width` (m) is the depth at which the impedance reaches its maximum, by default the model's own. A `power` of at
    least 2 makes the impedance smooth at the surface. Sets `geom_solimp` and `pair_solimp`; differentiable in `m`.
    """

    def changed(solimp: Array) -> Array:
        solimp = solimp.at[..., 0].set(0.0).at[..., 3].set(0.5).at[..., 4].set(power)
        return solimp if width is None else solimp.at[..., 2].set(width)

    return m.replace(geom_solimp=changed(m.geom_solimp), pair_solimp=changed(m.pair_solimp))


def straight_through(
    soften: Callable[[Model], Model], step: Callable[[Model, Data], Data] = jaxsim.step
) -> Callable[[Model, Data], Data]:
    """Step function with the value of `step(m, d)` and the derivatives of `step(soften(m), d)` at the same state.

    For `shoot` and other gradient descent. `ilqr` refuses it, since its line search uses only values.
    """

    def combined(m: Model, d: Data) -> Data:
        hard = jax.lax.stop_gradient(step(*jax.lax.stop_gradient((m, d))))
        soft = step(soften(m), d)
        return jax.tree.map(_value_and_gradient, hard, soft)

    combined.straight_through = True  # for optimisers that need derivatives of the values
    return combined


def _value_and_gradient(value: Array, gradient: Array) -> Array:
    if not jnp.issubdtype(value.dtype, jnp.floating):
        return value
    return value + (gradient - jax.lax.stop_gradient(gradient))
