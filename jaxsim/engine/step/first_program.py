"""Compare the native programs of a step with JAX operations, before the first program on a new kind of GPU or TPU."""

import sys
import warnings

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.model import Model
from jaxsim.core.types import Backend
from jaxsim.engine.actuation.forces import control_range
from jaxsim.engine.kinematics.positions import integrate_pos
from jaxsim.engine.step.forward import step
from jaxsim.math.safe import Array
from jaxsim.native import trust

WORLDS = 8  # random states that are compared
SPEED = 0.3  # standard deviation of velocities and of displacements, in units of the dofs
# Median over worlds. In single precision steps of all models differed by at most 2e-3 on an H100; single worlds may
# differ more, since contacts of parallel faces are a choice.
MOST_DIFFERENCE = 1e-2
FIELDS = ("qpos", "qvel", "act")


def compare_first(m: Model, d: Data) -> None:
    """Compare a step of the model where its native programs are new; record and warn if the results differ.

    `d` is a state without worlds. This happens once for a model's structure on a kind of device, and takes as long as
    both programs take to compile. A model whose `opt.backend` is chosen is not compared.
    """
    model = m.structure.digest.hex()
    if m.opt.backend != Backend.AUTO or not trust.is_new(model):
        return
    if not all(isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(d)):
        return
    print(f"jaxsim: first program of this model on {trust.kind()}: comparing it with XLA's, once", file=sys.stderr)
    try:
        difference = step_difference(m, d)
    except UnsupportedError:
        return  # the step raises it again
    except jax.errors.JaxRuntimeError as error:
        fault = f"a step fails: {error}"
    else:
        far = f"a step of {WORLDS} random states differs by {difference:.2g} (relative, median of worlds) from XLA's"
        fault = None if difference <= MOST_DIFFERENCE else far
    trust.note(model, fault)
    if fault:
        warnings.warn(
            f"native programs are wrong on {trust.kind()}: {fault}. XLA's are used from now on, and are slower; please "
            f"report this",
            RuntimeWarning,
            stacklevel=3,
        )


def step_difference(m: Model, d: Data) -> float:
    """Return the relative difference between a step by native programs and by XLA: the median of random states."""
    worlds = jax.vmap(lambda key: _random_state(m, d, key))(jax.random.split(jax.random.key(0), WORLDS))
    worlds = jax.device_put(worlds, jax.local_devices()[0])
    native, xla = (
        jax.jit(jax.vmap(lambda d, b=b: _state(step(m.replace(opt=m.opt.replace(backend=b)), d))))(worlds)
        for b in (Backend.AUTO, Backend.XLA)
    )
    of_worlds = np.zeros(WORLDS)
    for ours, theirs in zip(map(np.asarray, native), map(np.asarray, xla), strict=True):
        both_nan = np.isnan(ours) & np.isnan(theirs)
        scale = 1 + np.nanmax(np.abs(theirs), axis=1, initial=0)
        far = np.where(both_nan, 0, np.nan_to_num(np.abs(ours - theirs), nan=np.inf))
        of_worlds = np.maximum(of_worlds, far.max(axis=1, initial=0) / scale)
    return float(np.median(of_worlds))


def _state(d: Data) -> list[Array]:
    return [getattr(d, name) for name in FIELDS]


def _random_state(m: Model, d: Data, key: Array) -> Data:
    """Return a state near `d`, with random velocities, and controls within their ranges."""
    moved, speed, control = jax.random.split(key, 3)
    one = jnp.ones((), d.qpos.dtype)
    draw = lambda key: SPEED * jax.random.normal(key, d.qvel.shape, d.qvel.dtype)  # noqa: E731
    low, high = control_range(m)
    return d.replace(
        qpos=integrate_pos(m, d.qpos, draw(moved), one) if m.nv else d.qpos,
        qvel=draw(speed),
        ctrl=low + (high - low) * jax.random.uniform(control, d.ctrl.shape, d.ctrl.dtype),
    )
