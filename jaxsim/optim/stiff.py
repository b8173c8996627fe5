"""Steps that divide the time step, so that the gradient through a short hard contact is that of the motion."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.engine.integrate.positions import differentiate_pos
from jaxsim.engine.rollout import CARRIED
from jaxsim.math.safe import Array, divide, sqrt

Step = Callable[[Model, Data], Data]


def with_timestep(m: Model, timestep: Array) -> Model:
    return m.replace(opt=m.opt.replace(timestep=timestep))


def substepped(count: int, step: Step = jaxsim.step) -> Step:
    """A step of `m.opt.timestep` made of `count` equal ones; reverse mode keeps the states between them.

    Constraints whose time constant is below twice the time step are stiffened to it (unless REFSAFE is disabled), so
    shorter steps may also mean harder contacts.
    """

    def divided(m: Model, d: Data) -> Data:
        fine = with_timestep(m, m.opt.timestep / count)

        @jax.checkpoint
        def body(state: dict[str, Any], _: None) -> tuple[dict[str, Any], None]:
            return _state(step(fine, _blank(d).replace(**state))), None

        state, _ = jax.lax.scan(body, _state(d), None, length=count - 1)
        return step(fine, _blank(d).replace(**state))

    return divided


def adaptive(rtol: float = 1e-3, atol: float = 1e-4, max_steps: int = 64, step: Step = jaxsim.step) -> Step:
    """A step of `m.opt.timestep` made of as many as its error asks for, chosen by step doubling.

    A step of length t is compared with two of t / 2; the differences of positions, and of velocities times h, must stay
    below `atol + rtol h |velocity|`, h being `m.opt.timestep`. The two half steps are what is kept. The lengths are
    held fixed in the derivative. Made for one world: in a batch every world pays for the slowest. At most
    `max_steps` trials are made; the last one covers what is left, whatever its error.
    """

    def divided(m: Model, d: Data) -> Data:
        total = jax.lax.stop_gradient(m.opt.timestep)
        scale = m.opt.timestep / total  # carries the derivative by the time step

        def attempt(carry: tuple, last: Array) -> tuple:
            state, done, length = carry
            length = jnp.where(last, total - done, jnp.minimum(length, total - done))
            d0 = _blank(d).replace(**state)
            whole = step(with_timestep(m, length * scale), d0)
            half = with_timestep(m, 0.5 * length * scale)
            middle = step(half, d0)
            end = step(half, _blank(d).replace(**_state(middle)))
            error = jax.lax.stop_gradient(_error(m, whole, end, rtol, atol))
            accept = (error <= 1) | last
            new = jax.tree.map(lambda a, b: jnp.where(accept, a, b), _state(end), state)
            factor = jnp.clip(divide(0.9 * jnp.ones_like(error), sqrt(error), default=4.0), 0.2, 4.0)
            done = jnp.where(accept, jnp.where(length >= total - done, total, done + length), done)
            return new, done, length * factor

        @jax.checkpoint
        def body(carry: tuple, last: Array) -> tuple[tuple, None]:
            return jax.lax.cond(carry[1] < total, lambda c: attempt(c, last), lambda c: c, carry), None

        trials = jnp.arange(max_steps) == max_steps - 1
        (state, _, _), _ = jax.lax.scan(body, (_state(d), jnp.zeros_like(total), total), trials)
        return _blank(d).replace(**state)

    return divided


def _error(m: Model, a: Data, b: Data, rtol: float, atol: float) -> Array:
    """Largest difference of positions, and of velocities times the whole time step, relative to the tolerances."""
    h = m.opt.timestep
    moved = jnp.maximum(jnp.abs(differentiate_pos(m, a.qpos, b.qpos)), h * jnp.abs(a.qvel - b.qvel))
    error = jnp.max(moved / (atol + rtol * h * jnp.abs(b.qvel)), initial=0)
    return jnp.where(jnp.isfinite(error), error, jnp.inf)


def _state(d: Data) -> dict[str, Any]:
    return {name: getattr(d, name) for name in CARRIED}


def _blank(d: Data) -> Data:
    return jax.tree.map(jnp.zeros_like, d)
