"""The initial state of a simulation, also used by resets."""

from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from jaxsim.core.allocate import allocate, reset_to_keyframe
from jaxsim.core.contact import EMPTY_CONTACT
from jaxsim.core.data import Data
from jaxsim.core.describe import count
from jaxsim.core.model import Model
from jaxsim.core.types import SleepPolicy
from jaxsim.engine.islands import sleep
from jaxsim.engine.step.first_program import compare_first
from jaxsim.engine.step.forward import forward
from jaxsim.engine.structure.checks import initial_state, with_history
from jaxsim.interface.public import public


@public(compiled=False)
def make_data(m: Model, keyframe: str | int | None = None, nworld: int | None = None) -> Data:
    """Return the state at qpos0, or at a keyframe given by name or index; with `nworld`, a batch of that many worlds.

    Every array has its final shape and dtype, so that `step` compiles once, and its own buffer, so that it can be
    donated. A model on the host (NumPy leaves) gives NumPy data. Raises KeyError for an unknown keyframe.
    """
    nworld = None if nworld is None else count("nworld", nworld)
    d = with_history(m, allocate(m))
    if isinstance(d.qpos, jax.core.Tracer):
        d = _with_own_positions(d)
    d = _asleep_at_start(m, d)
    compare_first(m, d)
    d = d if keyframe is None else reset_to_keyframe(m, d, m.keyframe(keyframe).id)
    return d if nworld is None else jax.tree.map(lambda x: _repeated(x, nworld), d)


def _repeated(x: Any, nworld: int) -> Any:
    """Repeat an array `nworld` times, on the host if it is not traced, since each shape would be another program."""
    if isinstance(x, jax.core.Tracer):
        return jnp.broadcast_to(x, (nworld, *x.shape))
    copies = np.broadcast_to(np.asarray(x), (nworld, *x.shape)).copy()
    return copies if isinstance(x, np.ndarray) else jax.device_put(copies)


@public
def reset_data(m: Model, d: Data) -> Data:
    """Return the state at qpos0 with the shapes of `d` and zero counters. Pure: works under jit and vmap."""
    zero = jax.tree.map(jnp.zeros_like, d)
    contact = zero.contact.replace(**{name: getattr(zero.contact, name) - 1 for name in EMPTY_CONTACT})
    d = _with_own_positions(initial_state(m, zero.replace(eq_active=m.eq_active0).replace(contact=contact)))
    return _asleep_at_start(m, d)


def _with_own_positions(d: Data) -> Data:
    """Return `d` with a copy of `qpos`, which is the model's own array.

    Under `jit` an output that is an input shares its buffer.
    """
    return d.replace(qpos=d.qpos.copy())


def _asleep_at_start(m: Model, d: Data) -> Data:
    if not sleep.starts_asleep(m):
        return d
    out = _put_to_sleep(m, d)
    return jax.tree.map(lambda x, y: np.asarray(x, y.dtype), out, d) if isinstance(m.qpos0, np.ndarray) else out


@jax.jit
def _put_to_sleep(m: Model, d: Data) -> Data:
    """Return `d` with the trees of policy "init" asleep, by the islands of the initial state.

    A tree that touches a tree of another policy stays awake (MuJoCo refuses these models).
    """
    init = m.tree_sleep_policy == SleepPolicy.INIT
    there = forward(m, d)
    state = sleep.fall_asleep(m, there.replace(tree_asleep=np.where(init, -1, sleep.AWAKE)))
    names = set(sleep.kept_names(m)) - {"qfrc_smooth", "qacc_smooth"}  # these are zero
    return d.replace(tree_asleep=state, **{n: getattr(there, n) for n in names})
