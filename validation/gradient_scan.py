"""Gradients that are not finite, counted over random states, in the precision that JAX is set to.

The states are meant to be bad ones: bodies in each other's centres and deep in the floor, at rest exactly, turned by
nothing or by right angles, joints and controls exactly at their limits. Each world is differentiated in reverse mode,
a scalar of all that a step leaves in the state, the sensors and qacc, by every float leaf of Model and inputs of Data.
"""

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.core.types import JointType
from validation.gradients import Slices, apply, inputs_of

OUTPUTS = ("qpos", "qvel", "act", "sensordata", "qacc", "energy")
SPANS = (0.0, 1e-6, 1e-2, 0.3, 1.0)


def random_states(m, n, rng):
    """Inputs of the state, each with n rows."""
    span = rng.choice(SPANS, (n, 1))
    qpos = np.asarray(m.qpos0, float) + span * rng.standard_normal((n, m.nq))
    met, low = rng.random((n, m.njnt)) < 0.3, rng.random((n, m.njnt)) < 0.5
    together, square = rng.random(n) < 0.2, rng.random(n) < 0.2
    for j, (kind, at) in enumerate(zip(m.jnt_type, m.jnt_qposadr, strict=True)):
        if kind in (JointType.HINGE, JointType.SLIDE):
            bound = np.where(low[:, j], *np.asarray(m.jnt_range[j], float))
            qpos[:, at] = np.where(met[:, j] & bool(m.jnt_limited[j]), bound, qpos[:, at])
            continue
        if kind == JointType.FREE:
            qpos[together, at : at + 3] = np.asarray(m.qpos0[:3]) if m.nq >= 3 else 0
            at = at + 3
        turned = rng.standard_normal((n, 4))
        turned[square] = np.eye(4)[rng.integers(4, size=square.sum())]
        quat = np.where(rng.random((n, 1)) < 0.5, turned, qpos[:, at : at + 4])
        qpos[:, at : at + 4] = quat / np.maximum(np.linalg.norm(quat, axis=1, keepdims=True), 1e-12)
    speed = rng.choice((0.0, 1e-6, 0.1, 3.0), (n, 1))
    ctrl = rng.choice((0.0, 0.5, 1.0), (n, 1)) * rng.uniform(-1, 1, (n, m.nu))
    edge = rng.random((n, m.nu)) < 0.3
    ends = np.where(rng.random((n, m.nu)) < 0.5, *np.asarray(m.actuator_ctrlrange, float).T)
    return {
        "d.qpos": qpos,
        "d.qvel": speed * rng.standard_normal((n, m.nv)),
        "d.act": rng.choice((0.0, 0.3, 1.0), (n, 1)) * rng.standard_normal((n, m.na)),
        "d.ctrl": np.where(edge & m.actuator_ctrllimited.astype(bool), ends, ctrl),
        "d.qfrc_applied": rng.choice((0.0, 1.0), (n, 1)) * rng.standard_normal((n, m.nv)),
    }


def compiled(m, d):
    """The gradient of a batch of worlds: (m, d, x (n, inputs)) -> (n, inputs), and the slices of the inputs."""
    slices = Slices(inputs_of(m, d))

    def loss(vector, m, d):
        new = jaxsim.step(*apply(m, d, slices.split(vector)))
        y = jnp.concatenate([jnp.ravel(getattr(new, name)) for name in OUTPUTS])
        return jnp.sum(jnp.cos(jnp.arange(y.size, dtype=y.dtype)) * y)

    return jaxsim.jit(lambda m, d, x: jax.vmap(jax.grad(loss), (0, None, None))(x, m, d)), slices


def scan(m, count, seed=0, batch=250, report=None):
    """(worlds with a gradient that is not finite, worlds); `report(field, state)` is told each field and its state."""
    d = jaxsim.make_data(m)
    run, slices = compiled(m, d)
    rng = np.random.default_rng(seed)
    base = np.asarray(slices.flat(inputs_of(m, d)))
    bad = 0
    for _ in range(-(-count // batch)):
        x = np.tile(base, (batch, 1))
        for name, value in random_states(m, batch, rng).items():
            if name in slices.at:
                x[:, slices.at[name]] = value
        fine = np.isfinite(np.asarray(run(m, d, x.astype(base.dtype))))
        bad += int((~fine.all(1)).sum())
        if report and not fine.all():
            for name, where in slices.at.items():
                worlds = np.flatnonzero(~fine[:, where].all(1))
                if len(worlds):
                    report(name, len(worlds), x[worlds[0], slices.at["d.qpos"]])
    return bad, -(-count // batch) * batch
