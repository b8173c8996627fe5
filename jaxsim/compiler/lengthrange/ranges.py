"""Length ranges of actuators, from limits if there are any, else found by pulling to both ends."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.compiler.draft import Draft
from jaxsim.compiler.lengthrange.pull import can_pull, pull
from jaxsim.core.make_model import to_device
from jaxsim.core.model import Model
from jaxsim.core.types import MINVAL, BiasType, DisableBit, GainType, TrnType
from jaxsim.engine.collision.broad.capacity import default_capacities
from jaxsim.engine.dynamics.inertia import solve_m
from jaxsim.engine.step.forward import step1, step2
from jaxsim.engine.step.initial import make_data
from jaxsim.math.safe import norm

DISABLE_ALL_BUT_LIMITS = (
    DisableBit.FRICTIONLOSS
    | DisableBit.CONTACT
    | DisableBit.SPRING
    | DisableBit.DAMPER
    | DisableBit.GRAVITY
    | DisableBit.ACTUATION
)
MAX_STEPS = 1_000_000


def _actuators_to_range(draft: Draft, m: Model) -> list[int]:
    """Return the actuators whose range the compiler's `lengthrange` element selects and the file does not give."""
    options = draft.lengthrange
    muscle = (m.actuator_gaintype == GainType.MUSCLE) | (m.actuator_biastype == BiasType.MUSCLE)
    user = (m.actuator_gaintype == GainType.USER) | (m.actuator_biastype == BiasType.USER)
    modes = {"none": muscle & False, "muscle": muscle, "muscleuser": muscle | user, "all": muscle | True}
    known = m.actuator_lengthrange[:, 0] < m.actuator_lengthrange[:, 1]
    return np.flatnonzero(modes[options["mode"]] & ~(known & bool(options["useexisting"]))).tolist()


def set_length_ranges(draft: Draft, m: Model) -> Model:
    """Set actuator_lengthrange as the compiler's `lengthrange` element requires."""
    ranges = m.actuator_lengthrange.copy()
    ids = _actuators_to_range(draft, m)
    if not ids:
        return m
    limits = {i: _range_of_target(m, i) if draft.lengthrange["uselimit"] else None for i in ids}
    for i, found in limits.items():
        if found is not None:
            ranges[i] = found
    pulled = [i for i in ids if limits[i] is None]
    if pulled:
        ranges[pulled] = _pull(draft, m, pulled)
    return m.replace(actuator_lengthrange=ranges)


def _range_of_target(m: Model, i: int) -> np.ndarray | None:
    """Return the range of the limited joint or tendon that the actuator moves; None without a limit.

    As in MuJoCo, the target is entry i of the flattened `actuator_trnid` (nu, 2), which belongs to actuator i // 2.
    """
    target = int(m.actuator_trnid.reshape(-1)[i])
    kind = m.actuator_trntype[i]
    if kind in (TrnType.JOINT, TrnType.JOINTINPARENT) and 0 <= target < m.njnt and m.jnt_limited[target]:
        return np.asarray(m.jnt_range)[target]
    if kind == TrnType.TENDON and 0 <= target < m.ntendon and m.tendon_limited[target]:
        return np.asarray(m.tendon_range)[target]
    return None


def _pull(draft: Draft, m: Model, ids: list[int]) -> np.ndarray:
    """Find ranges (k, 2) by pulling each actuator to both ends until its length settles.

    Raises ModelError if the motion is unstable, the range empty, or the length does not settle.
    """
    options = draft.lengthrange
    dt = options["timestep"] if options["timestep"] > 0 else float(m.opt.timestep)
    if not options["inttotal"] < MAX_STEPS * dt:
        raise draft.lists.actuator[ids[0]].error(
            f"finding its length range would take more than {MAX_STEPS} steps; give 'lengthrange'"
        )
    times = [0.0]
    while times[-1] < options["inttotal"]:
        times.append(times[-1] + dt)
    steps = len(times) - 1
    m = m.replace(opt=m.opt.replace(disableflags=int(DISABLE_ALL_BUT_LIMITS), timestep=dt))
    with np.errstate(all="ignore"):  # a motion that diverges is an error below
        lengths, diverged = (pull if can_pull(m, ids) else pull_by_engine)(m, ids, steps, dt, options)
    late = np.array(times[1:]) > options["inttotal"] - options["interval"]
    low, high = lengths[..., late].min(-1), lengths[..., late].max(-1)
    ranges = np.stack([low[:, 0], high[:, 1]], axis=1)
    for k, i in enumerate(ids):
        actuator, width = draft.lists.actuator[i], ranges[k, 1] - ranges[k, 0]
        if diverged[k].any():
            raise actuator.error("the simulation that finds the length range is unstable; give 'lengthrange'")
        if not width > 0:
            raise actuator.error(f"invalid length range ({ranges[k, 0]:g}, {ranges[k, 1]:g}); give 'lengthrange'")
        if (high[k] - low[k] > options["tolrange"] * width).any():
            raise actuator.error(
                "the length does not settle in the simulation that finds its range; give 'lengthrange'"
            )
    return ranges


def pull_by_engine(m: Model, ids: list[int], steps: int, dt: float, options: dict) -> tuple[np.ndarray, np.ndarray]:
    """Simulate pulling with the engine's own step, for any model; results as in `pull`.

    Most of the time is XLA's compilation.
    """
    slow = float(np.exp(-dt / max(0.01, options["timeconst"])))

    def advance(m, d, i, sign):
        d = step1(m, d.replace(qvel=d.qvel * slow))
        moment = d.actuator_moment[i]
        force = moment * (sign * options["accel"] / jnp.maximum(MINVAL, norm(solve_m(m, d, moment))))
        if options["maxforce"] > 0:
            force = force * jnp.minimum(1, options["maxforce"] / jnp.maximum(MINVAL, norm(force)))
        return step2(m, d.replace(qfrc_applied=force))

    def pull(m, d, i, sign):
        def body(d, _):
            d = advance(m, d, i, sign)
            return d, (d.actuator_length[i], d.time)

        return jax.lax.scan(body, d, length=steps)[1]

    with jax.enable_x64(True):
        idle = to_device(default_capacities(m, 0))
        both = jax.vmap(pull, (None, None, None, 0))
        every = jax.jit(jax.vmap(both, (None, None, 0, None)))
        lengths, clock = every(idle, make_data(idle), jnp.array(ids), jnp.array([-1.0, 1.0]))
        return np.asarray(lengths), (np.diff(clock, prepend=0) <= 0).any(-1)  # a world that diverges is reset to time 0
