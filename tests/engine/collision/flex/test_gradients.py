"""Derivatives of a step through contacts of flexes, in both modes, against central differences."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from tests.engine.collision.flex.cases import ALONE, CLOTH, PLANE, SPHERE, exact, flexcomp, scene, states
from tests.engine.collision.flex.test_contacts import GEOMS, SHAPES, SMALL
from validation.gradients import exact_searches

CASES = {
    "primitives": scene(PLANE + SPHERE + GEOMS + flexcomp(SMALL, CLOTH, ALONE + ' condim="4"', pos="0 0 .152")),
    "searched": scene(SHAPES + flexcomp('dim="2" count="5 5 1"', CLOTH), 'cone="elliptic"'),
    "itself": scene(flexcomp('dim="2" count="5 5 1"', CLOTH, 'selfcollide="sap" internal="true"', radius=".02")),
    "sparse rows": scene(SPHERE + flexcomp('dim="2" count="9 9 1"', CLOTH, pos="0 0 .152")),
}
STATE, MODEL = ("qpos", "qvel"), ("flex_radius", "flex_friction", "flex_stiffness", "body_mass", "flex_solref")
STEPS = 1e-6, 2e-6
TOLERANCE = {"primitives": 1e-6, "searched": 1e-5, "itself": 1e-5, "sparse rows": 5e-6}  # the last: by iterations


@pytest.fixture(autouse=True)
def _searches_end_at_solutions():
    with exact_searches():
        yield


@functools.cache
def step_of(case):
    """A state in contact, the inputs of a step, and one program: the step's velocity with its JVP and its VJP."""
    model, m = mujoco.MjModel.from_xml_string(CASES[case]), exact(jaxsim.load_model(CASES[case]))
    data = next(states(model, 1, 0.02 if case == "itself" else 0.005, seed=1))
    assert data.ncon
    d = jaxsim.make_data(m).replace(qpos=data.qpos, qvel=data.qvel)
    inputs = {n: getattr(d, n) for n in STATE} | {n: getattr(m, n) for n in MODEL}

    def f(x):
        return jaxsim.step(m.replace(**{n: x[n] for n in MODEL}), d.replace(**{n: x[n] for n in STATE})).qvel

    def both(x, v, w):
        y, linear = jax.linearize(f, x)
        return y, linear(v), jax.linear_transpose(linear, x)(w)[0]

    return inputs, jax.jit(both)


@pytest.mark.parametrize(
    ("name", "case"),
    [
        pytest.param(name, case, marks=[pytest.mark.slow] if (name, case) != ("qvel", "primitives") else [])
        for case in CASES  # a program for each takes minutes to compile
        for name in (*STATE, *MODEL)
    ],
)
def test_derivatives_are_differences(case, name):
    inputs, run = step_of(case)
    rng = np.random.default_rng(3)
    x = np.asarray(inputs[name])
    v = {n: jnp.zeros_like(y) for n, y in inputs.items()}
    v[name] = jnp.asarray(rng.standard_normal(x.shape) * (np.abs(x) if name in MODEL else 0.1))
    w = jnp.asarray(rng.standard_normal(inputs["qvel"].shape))
    _, forward, reverse = run(inputs, v, w)
    forward = np.asarray(forward)

    def difference(h):
        both = [run({n: y + s * h * v[n] for n, y in inputs.items()}, v, w)[0] for s in (1, -1)]
        return (np.asarray(both[0]) - np.asarray(both[1])) / (2 * h)

    narrow, wide = (difference(h) for h in STEPS)
    scale = np.abs(narrow).max() + 1e-6
    assert np.isfinite(forward).all()
    assert np.abs(forward - (4 * narrow - wide) / 3).max() <= TOLERANCE[case] * scale
    assert all(np.isfinite(np.asarray(g)).all() for g in reverse.values())
    np.testing.assert_allclose(np.vdot(reverse[name], v[name]), np.vdot(w, forward), rtol=1e-8, atol=1e-8 * scale)
