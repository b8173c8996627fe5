"""Batches: any float of the model, structure apart from numbers, one compilation."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from tests.paths import MODELS

MODEL = MODELS / "hopper.xml"


@functools.cache
def hopper():
    m = jaxsim.load_model(MODEL)
    return m, jaxsim.make_data(m)


STEP = jax.jit(jaxsim.step)


def test_any_float_of_the_model_can_have_a_batch_axis():
    m, d = hopper()
    mass = m.body_mass * jnp.linspace(0.8, 1.2, 3)[:, None]
    axes = jax.tree.map(lambda _: None, m).replace(body_mass=0)
    moving = d.replace(qvel=jnp.arange(m.nv) * 0.1, ctrl=jnp.ones(m.nu))
    batch = jax.jit(jax.vmap(jaxsim.step, in_axes=(axes, None)))(m.replace(body_mass=mass), moving)
    for i in range(3):
        one = STEP(m.replace(body_mass=mass[i]), moving)
        np.testing.assert_allclose(batch.qacc[i], one.qacc, rtol=1e-9, atol=1e-9)


def test_the_second_step_needs_no_second_compilation():
    m, d = hopper()
    d = STEP(m, d)
    before = STEP._cache_size()
    STEP(m, d)
    assert STEP._cache_size() == before


def test_numbers_never_become_structure():
    m, _ = hopper()
    changed = m.replace(body_mass=m.body_mass * 2, opt=m.opt.replace(gravity=m.opt.gravity * 2))
    assert changed.structure is m.structure
    assert jax.tree.structure(changed) == jax.tree.structure(m)


def test_structure_is_not_traced():
    m, d = hopper()

    def look(m, d):
        assert isinstance(m.jnt_type, np.ndarray) and isinstance(m.nv, int)
        return d.qpos

    jax.eval_shape(look, m, d)


@pytest.mark.parametrize("inner", ["one world", "batch"])
def test_step_in_a_branch_that_worlds_take_or_not(inner):
    m = jaxsim.load_model(MODELS / "cartpole.xml")
    size = 50  # more than the solver iterates together
    many = jax.vmap(lambda v: jaxsim.make_data(m).replace(qvel=v))(jnp.linspace(0, 1, 2 * size)[:, None] * jnp.ones(2))
    step = functools.partial(jaxsim.step, m)
    want = jax.jit(jax.vmap(step))(many)
    go = np.arange(2 * size) < size
    if inner == "batch":
        many, want, go = jax.tree.map(lambda x: x.reshape(2, size, *x.shape[1:]), (many, want, go))
        step, go = jax.vmap(step), go[:, 0]
    got = jax.jit(jax.vmap(lambda go, d: jax.lax.cond(go, step, lambda d: d, d)))(go, many)
    took = go.reshape(-1, *[1] * (many.qpos.ndim - 1))
    np.testing.assert_allclose(got.qpos, np.where(took, want.qpos, many.qpos), atol=1e-12)
