"""Warnings counted in each world, and reset of a world that diverged, without an effect on other worlds."""

import jax.numpy as jnp
import numpy as np

from jaxsim.core.allocate import at_qpos0
from jaxsim.core.data import Data
from jaxsim.core.flags import disabled, enabled
from jaxsim.core.model import Model
from jaxsim.core.types import MAXVAL, DisableBit, EnableBit, WarningType
from jaxsim.engine.structure.history import initial_history
from jaxsim.math.safe import Array

STATE = ("time", "qpos", "qvel", "act", "history", "qacc_warmstart", "ctrl", "qfrc_applied", "xfrc_applied")
STATE += ("eq_active", "mocap_pos", "mocap_quat", "userdata", "tree_asleep")
DERIVED = ("qacc", "qacc_smooth", "act_dot", "sensordata", "energy", "actuator_force", "cacc", "cfrc_int", "cfrc_ext")
DERIVED += ("qfrc_smooth", "qfrc_actuator", "qfrc_constraint", "qfrc_passive", "qfrc_bias")


def is_bad(x: Array) -> Array:
    """Return the mask of numbers that are not finite, or so large that the state has diverged."""
    return ~(abs(x) <= MAXVAL)


def warn(d: Data, kind: WarningType, bad: Array, count: int = 1) -> Data:
    """Count a warning of this kind where any entry of `bad` is set; the first one's index is kept."""
    here = np.arange(len(d.warning.number)) == kind
    this = bad.any() & here
    index = jnp.argmax(bad).astype(d.warning.lastinfo.dtype)
    return d.replace(
        warning=d.warning.replace(
            number=d.warning.number + jnp.where(this, count, 0).astype(d.warning.number.dtype),
            lastinfo=jnp.where(this, index, d.warning.lastinfo),
        )
    )


def initial_state(m: Model, d: Data) -> Data:
    """Set positions, mocap poses and histories to the initial state, and wake all trees."""
    return with_history(m, at_qpos0(m, d))


def with_history(m: Model, d: Data) -> Data:
    """Set histories to the initial state."""
    return d.replace(history=initial_history(m)) if m.nhistory else d


def restart(m: Model, d: Data, which: Array, names: tuple[str, ...] = STATE) -> Data:
    """Reset `d` to the model's initial state, with zero counters, where the scalar condition holds."""
    fresh = initial_state(m, d.replace(eq_active=m.eq_active0))
    initial = ("qpos", "history", "mocap_pos", "mocap_quat", "eq_active", "tree_asleep")
    asleep = enabled(m, EnableBit.SLEEP)
    names = tuple(n for n in names if getattr(d, n).size and (n != "tree_asleep" or asleep))
    changes = {n: jnp.where(which, getattr(fresh, n) if n in initial else 0, getattr(d, n)) for n in names}
    clean = d.warning.replace(
        number=jnp.where(which, 0, d.warning.number), lastinfo=jnp.where(which, 0, d.warning.lastinfo)
    )
    return d.replace(warning=clean, **changes)


def check_state(m: Model, d: Data) -> Data:
    """Count a qpos or qvel that has diverged; unless autoreset is off, reset the world."""
    if not m.nv:
        return d
    bad_pos, bad_vel = is_bad(d.qpos), is_bad(d.qvel)
    if disabled(m, DisableBit.AUTORESET):
        return warn(warn(d, WarningType.BADQPOS, bad_pos, 2), WarningType.BADQVEL, bad_vel, 2)
    d = restart(m, d, bad_pos.any() | bad_vel.any())
    return warn(warn(d, WarningType.BADQPOS, bad_pos), WarningType.BADQVEL, bad_vel & ~bad_pos.any())


def check_acc(m: Model, d: Data) -> tuple[Data, Array]:
    """Count a qacc that has diverged; unless autoreset is off, reset the world, at rest.

    Also returns whether it was reset. A world that was reset does not advance in this step. MuJoCo advances it by one
    step, which would evaluate the forward dynamics a second time, in every world of a batch.
    """
    if not m.nv:
        return d, jnp.zeros((), bool)
    bad = is_bad(d.qacc)
    if disabled(m, DisableBit.AUTORESET):
        return warn(d, WarningType.BADQACC, bad, 2), jnp.zeros((), bool)
    which = bad.any()
    return warn(restart(m, d, which, STATE + DERIVED), WarningType.BADQACC, bad), which


def hold(old: Data, new: Data, which: Array) -> Data:
    """Return `new` with the state of `old` where the scalar condition holds."""
    names = [n for n in STATE if getattr(new, n) is not getattr(old, n)]
    return new.replace(**{n: jnp.where(which, getattr(old, n), getattr(new, n)) for n in names})
