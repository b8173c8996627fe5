"""Random models for locomotion: friction, masses, centre of mass and gains, drawn for each episode."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.model import Model
from jaxsim.envs.locomotion.robot import Robot
from jaxsim.math.safe import Array


@dataclasses.dataclass(frozen=True)
class Randomization:
    """Ranges that are drawn for each episode, uniformly.

    `friction`: factor of all sliding friction. `mass`: factor of each body's mass and inertia. `payload`: mass added
    to the torso, as a share of its own. `centre`: greatest shift of the torso's centre of mass along each axis, m.
    `gains`: factor of each actuator's gains. `latency`: seconds by which targets take effect late. `push_every`:
    mean seconds between pushes, 0 for none; `push`: greatest change of the torso's horizontal velocity, m/s.
    """

    friction: tuple[float, float] = (0.6, 1.3)
    mass: tuple[float, float] = (0.9, 1.1)
    payload: tuple[float, float] = (-0.1, 0.2)
    centre: float = 0.02
    gains: tuple[float, float] = (0.9, 1.1)
    latency: tuple[float, float] = (0.0, 0.015)
    push_every: float = 5.0
    push: float = 0.4


USUAL = Randomization()
NONE = Randomization((1, 1), (1, 1), (0, 0), 0.0, (1, 1), (0, 0), 0.0, 0.0)


def model_randomizer(robot: Robot, ranges: Randomization) -> Callable[[Model, Array], Model]:
    """Make a function `(model, rng) -> model` that draws friction, masses, centre of mass and gains."""

    def randomize(m: Model, rng: Array) -> Model:
        keys = jax.random.split(rng, 5)
        real = m.body_mass.dtype

        def uniform(key: Array, bounds: tuple[float, float], shape: tuple[int, ...] = ()) -> Array:
            return jax.random.uniform(key, shape, real, bounds[0], bounds[1])

        factor = uniform(keys[0], ranges.mass, (m.nbody,))
        factor = factor.at[robot.torso].add(uniform(keys[1], ranges.payload))
        shift = uniform(keys[2], (-ranges.centre, ranges.centre), (3,))
        gain = uniform(keys[3], ranges.gains, (m.nu,))
        slide = m.geom_friction[:, 0] * uniform(keys[4], ranges.friction)
        return m.replace(
            geom_friction=m.geom_friction.at[:, 0].set(slide),
            body_mass=m.body_mass * factor,
            body_inertia=m.body_inertia * factor[:, None],
            body_ipos=m.body_ipos.at[robot.torso].add(shift),
            actuator_gainprm=m.actuator_gainprm.at[:, 0].multiply(gain),
            actuator_biasprm=m.actuator_biasprm.at[:, 1:3].multiply(jnp.where(robot.servo, gain, 1)[:, None]),
        )

    return randomize


def changes_model(ranges: Randomization) -> bool:
    """Return whether any range changes the model."""
    one = np.array([ranges.friction, ranges.mass, ranges.gains])
    return bool((one != 1).any() or np.any(ranges.payload) or ranges.centre)
