"""Derivatives of a step of flexes by state, material, masses and constraints: both modes against differences."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.core.types import IntegratorType
from tests.engine.flex.cases import CASES, CONSTRAINED
from validation.stages import exact, load, states, to_data

MATERIAL = ("flex_stiffness", "flex_bending", "flex_damping", "flex_edgestiffness", "flex_edgedamping", "body_mass")
REST = (
    "flexedge_length0",
    "flexedge_invweight0",
    "flex_vert",
    "flex_vert0",
    "flex_vertmetric",
    "flex_node",
    "flex_node0",
)
HELD = ("eq_solref", "eq_solimp", "body_invweight0")
STEPS = [
    ("both", IntegratorType.EULER),
    ("trilinear on a moving body", IntegratorType.IMPLICITFAST),
    ("cloth of held edges", IntegratorType.EULER),
]
STEPS += [
    pytest.param(*step, marks=pytest.mark.slow)
    for step in (
        ("rope on a moving body", IntegratorType.IMPLICITFAST),
        ("solid on a moving body", IntegratorType.IMPLICIT),
        ("quadratic cells", IntegratorType.IMPLICITFAST),
        ("quadratic shell", IntegratorType.EULER),
        ("held vertices", IntegratorType.EULER),
        ("large cloth of held edges", IntegratorType.EULER),
        ("held strain", IntegratorType.IMPLICITFAST),
    )
]
ALL = {**CASES, **CONSTRAINED}


@functools.cache
def program(case, integrator):
    """A model, a state in motion, and a compiled step with its derivatives by all inputs."""
    model = exact(load(ALL[case], integrator=int(integrator)))
    m = jaxsim.from_mujoco(model)
    d = to_data(m, states(model, 1, 2, noise=0.2)[0])
    inputs = {n: getattr(m, n) for n in (*MATERIAL, *REST, *HELD) if np.size(getattr(m, n))}
    inputs |= {"qpos": d.qpos, "qvel": d.qvel}

    def outcome(x):
        state = {n: x[n] for n in ("qpos", "qvel")}
        new = jaxsim.step(m.replace(**{n: v for n, v in x.items() if n not in state}), d.replace(**state))
        return jnp.concatenate([new.qpos, new.qvel, new.energy, new.flexedge_length])

    size = jax.eval_shape(outcome, inputs).shape

    def both(x, v, w):
        y, linear = jax.linearize(outcome, x)
        return y, linear(v), jax.linear_transpose(linear, x)(w)[0]

    return inputs, size, jax.jit(both)


def differences(x, v, value):
    """Central differences along v, to fourth order."""
    parts = []
    for eps in (4e-6, 2e-6):
        plus, minus = (value(jax.tree.map(lambda a, b, e=e: a + e * b, x, v)) for e in (eps, -eps))
        parts.append((plus - minus) / (2 * eps))
    return (4 * parts[1] - parts[0]) / 3


@pytest.mark.parametrize(("case", "integrator"), STEPS)
def test_both_modes_agree_with_differences_by_every_field(case, integrator):
    x, size, run = program(case, integrator)
    rng = np.random.default_rng(0)
    w = jnp.asarray(rng.standard_normal(size))
    back = run(x, x, w)[2]
    for name in x:
        v = jax.tree.map(jnp.zeros_like, x)
        moved = rng.standard_normal(x[name].shape) * (1.0 if name in ("qpos", "qvel") else abs(x[name]))
        if name == "flex_stiffness" and "flex_node0" in x:  # matrices, which stay symmetric
            moved = np.asarray(x[name]) * rng.standard_normal()
        if name == "flex_bending":  # that of shells of lattices names faces among its numbers
            moved = np.where(x[name] == np.round(x[name]), 0, moved)
        v[name] = jnp.asarray(moved)
        slope = run(x, v, w)[1]
        assert np.isfinite(slope).all() and np.isfinite(back[name]).all(), name
        forward, reverse = jnp.vdot(w, slope), jnp.vdot(back[name], v[name])
        scale = max(1e-3, float(jnp.abs(w * slope).sum()))
        np.testing.assert_allclose(reverse, forward, atol=1e-9 * scale, rtol=0, err_msg=name)
        wanted = differences(x, v, lambda y: run(y, x, w)[0])
        bound = 1e-6 * max(1e-2, float(jnp.abs(slope).max()))
        np.testing.assert_allclose(slope, wanted, atol=bound, rtol=0, err_msg=name)


@pytest.mark.parametrize("case", ["rope of held edges", "both", "trilinear", "bending shell"])
def test_derivatives_are_finite_at_rest(case):
    m = jaxsim.load_model(ALL[case])
    d = jaxsim.make_data(m)

    def height(qpos, stiffness):
        return jaxsim.step(m.replace(flex_stiffness=stiffness), d.replace(qpos=qpos)).flexvert_xpos.sum()

    both = jax.jit(jax.grad(height, argnums=(0, 1)))(d.qpos, m.flex_stiffness)
    assert all(np.isfinite(x).all() for x in both)
