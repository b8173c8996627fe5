"""Step functions that divide the time step, for accurate gradients through short, stiff contacts."""

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.core
import jax.numpy as jnp

import jaxsim
from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.engine.kinematics.positions import differentiate_pos
from jaxsim.engine.step.derived import carried, from_carried, without_derived
from jaxsim.math.safe import Array, divide, sqrt

Step = Callable[[Model, Data], Data]


def with_timestep(m: Model, timestep: Array) -> Model:
    """Return the model with another time step in seconds."""
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


def adaptive(rtol: float = 1e-3, atol: float = 1e-4, max_steps: int = 256, step: Step = jaxsim.step) -> Step:
    """Step function of `m.opt.timestep` in sub-steps whose lengths follow an error estimate.

    A trial makes two steps of one length, and a third one that feels the forces at their end. It is accepted if the
    changes of positions, and of velocities times h, differ from one to the next by at most `atol + rtol h |velocity|`.
    Here h is `m.opt.timestep`. The lengths are constants in the derivative. Derived fields of the result are NaN.

    If `max_steps` trials do not reach h, `qpos`, `qvel` and all derivatives are NaN, also in later steps, and `time` is
    the time that was reached; a call that is not traced warns. Meant for one world: a batch computes all `max_steps`
    trials.
    """

    def divided(m: Model, d: Data) -> Data:
        total = jax.lax.stop_gradient(m.opt.timestep)
        scale = m.opt.timestep / total  # one, with the derivative by the time step

        def attempt(carry: tuple) -> tuple:
            state, done, length = carry
            length = jnp.minimum(length, 0.5 * (total - done))
            fine = with_timestep(m, length * scale)

            def follow(state: dict[str, Any], _: None) -> tuple[dict[str, Any], tuple[Array, Array]]:
                state = carried(m, step(fine, from_carried(d, state)))
                return state, (state["qpos"], state["qvel"])

            end, path = jax.lax.scan(follow, state, length=2)
            ahead = carried(m, step(fine, from_carried(d, end)))
            error = jax.lax.stop_gradient(_error(m, state, path, ahead, rtol, atol))
            new = jax.tree.map(lambda a, b: jnp.where(error <= 1, a, b), end, state)
            factor = jnp.clip(divide(0.9 * jnp.ones_like(error), sqrt(error), default=4.0), 0.2, 4.0)
            reached = jnp.where(length >= 0.5 * (total - done), total, done + 2 * length)
            return new, jnp.where(error <= 1, reached, done), length * factor

        @jax.checkpoint
        def body(carry: tuple, _: None) -> tuple[tuple, None]:
            return jax.lax.cond(carry[1] < total, attempt, lambda c: c, carry), None

        start = jnp.where(jnp.isfinite(d.qpos).all() & jnp.isfinite(d.qvel).all(), 0 * total, jnp.nan)  # NaN: no trials
        (state, done, _), _ = jax.lax.scan(body, (carried(m, d), start, 0.5 * total), length=max_steps)
        return without_derived(m, d.replace(**_or_nan(state, done >= total, max_steps)))

    return divided


def _or_nan(state: dict[str, Any], reached: Array, max_steps: int) -> dict[str, Any]:
    """State whose positions, velocities and their derivatives are NaN unless the end of the step was reached."""
    if not isinstance(reached, jax.core.Tracer) and not reached:
        warnings.warn(
            f"adaptive: {max_steps} trials did not reach the end of the time step, or the state was not finite; raise "
            "max_steps, rtol or atol. qpos and qvel are NaN",
            stacklevel=3,
        )
    return state | {name: jnp.where(reached, 1.0, jnp.nan) * state[name] for name in ("qpos", "qvel")}


def _error(m: Model, start: dict, path: tuple[Array, Array], ahead: dict, rtol: float, atol: float) -> Array:
    """Largest second difference of three steps relative to the tolerances.

    Comparing one step with two halves would not see forces that begin in the second half: a touch would be missed.
    """
    h = m.opt.timestep
    qpos, qvel = (jnp.stack([start[k], *x, ahead[k]]) for k, x in zip(("qpos", "qvel"), path, strict=True))
    moved = jax.vmap(lambda a, b: differentiate_pos(m, a, b))(qpos[:-1], qpos[1:])
    second = jnp.maximum(jnp.abs(jnp.diff(moved, axis=0)), h * jnp.abs(jnp.diff(qvel, n=2, axis=0)))
    error = jnp.max(second / (atol + rtol * h * jnp.abs(qvel[2])), initial=0)
    return jnp.where(jnp.isfinite(error), error, jnp.inf)
