"""Step functions that divide the time step, for accurate gradients through short, stiff contacts."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.engine.kinematics.positions import differentiate_pos
from jaxsim.engine.step.derived import carried, from_carried
from jaxsim.math.safe import Array, divide, sqrt

Step = Callable[[Model, Data], Data]


def with_timestep(m: Model, timestep: Array) -> Model:
    """Model with another time step in seconds."""
    return m.replace(opt=m.opt.replace(timestep=timestep))


def substepped(count: int, step: Step = jaxsim.step) -> Step:
    """Step function of `m.opt.timestep` in `count` equal sub-steps; reverse mode keeps the states between them.

    Unless REFSAFE is disabled, the time constant of a constraint is at least twice the time step: sub-steps may
    therefore make contacts stiffer.
    """

    def divided(m: Model, d: Data) -> Data:
        fine = with_timestep(m, m.opt.timestep / count)

        @jax.checkpoint
        def body(state: dict[str, Any], _: None) -> tuple[dict[str, Any], None]:
            return carried(m, step(fine, from_carried(d, state))), None

        state, _ = jax.lax.scan(body, carried(m, d), None, length=count - 1)
        return step(fine, from_carried(d, state))

    return divided


def adaptive(rtol: float = 1e-3, atol: float = 1e-4, max_steps: int = 64, step: Step = jaxsim.step) -> Step:
    """Step function of `m.opt.timestep` in sub-steps whose lengths follow an error estimate by step doubling.

    A step of length t is compared with two of t / 2, which are the result. The differences of positions, and of
    velocities times h, must stay below `atol + rtol h |velocity|`, where h is `m.opt.timestep`. The lengths are
    constants in the derivative. At most `max_steps` trials are made; the last one covers the remaining time, whatever
    its error. Meant for one world: in a batch all worlds take as many trials as the slowest.
    """

    def divided(m: Model, d: Data) -> Data:
        total = jax.lax.stop_gradient(m.opt.timestep)
        scale = m.opt.timestep / total  # one, with the derivative by the time step

        def attempt(carry: tuple, last: Array) -> tuple:
            state, done, length = carry
            length = jnp.where(last, total - done, jnp.minimum(length, total - done))
            d0 = from_carried(d, state)
            whole = step(with_timestep(m, length * scale), d0)
            half = with_timestep(m, 0.5 * length * scale)
            middle = step(half, d0)
            end = step(half, from_carried(d, carried(m, middle)))
            error = jax.lax.stop_gradient(_error(m, whole, end, rtol, atol))
            accept = (error <= 1) | last
            new = jax.tree.map(lambda a, b: jnp.where(accept, a, b), carried(m, end), state)
            factor = jnp.clip(divide(0.9 * jnp.ones_like(error), sqrt(error), default=4.0), 0.2, 4.0)
            done = jnp.where(accept, jnp.where(length >= total - done, total, done + length), done)
            return new, done, length * factor

        @jax.checkpoint
        def body(carry: tuple, last: Array) -> tuple[tuple, None]:
            return jax.lax.cond(carry[1] < total, lambda c: attempt(c, last), lambda c: c, carry), None

        trials = jnp.arange(max_steps) == max_steps - 1
        (state, _, _), _ = jax.lax.scan(body, (carried(m, d), jnp.zeros_like(total), total), trials)
        return from_carried(d, state)

    return divided


def _error(m: Model, a: Data, b: Data, rtol: float, atol: float) -> Array:
    """Largest difference of positions, and of velocities times the whole time step, relative to the tolerances."""
    h = m.opt.timestep
    moved = jnp.maximum(jnp.abs(differentiate_pos(m, a.qpos, b.qpos)), h * jnp.abs(a.qvel - b.qvel))
    error = jnp.max(moved / (atol + rtol * h * jnp.abs(b.qvel)), initial=0)
    return jnp.where(jnp.isfinite(error), error, jnp.inf)
