"""The noslip solver against the oracle, from the same state, for both cones, all dimensions and any main solver."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.constraint.make import make_constraint, reference_constraint
from jaxsim.engine.constraint.solve import fwd_constraint
from validation.oracle import oracle_data

# Slopes on which things slip without the sweeps; a pusher with dry friction in joints and a tendon; a rolling ball.
SCENE = """
<mujoco><option cone="{cone}" impratio="{impratio}" tolerance="1e-15" iterations="1000" ls_tolerance="1e-12"
  solver="{solver}" noslip_iterations="{sweeps}" noslip_tolerance="{tolerance}" gravity="2 1 -9.81">
  <flag island="{island}"/></option>
<default><geom condim="{condim}" friction=".7 .02 .01"/></default>
<worldbody>
  <geom name="floor" type="plane" size="5 5 1"/>
  <body pos="0 0 .05"><freejoint/><geom type="box" size=".1 .2 .05"/></body>
  <body pos="0 0 .149"><freejoint/><geom type="box" size=".05 .05 .05" friction="1.2 .02 .01"/></body>
  <body pos="1 0 .099"><freejoint/><geom size=".1" condim="{other}" friction=".3 .01 .005"/></body>
  <body pos="-1 0 .3"><joint name="j1" axis="0 1 0" frictionloss=".6" damping=".1"/>
    <geom type="capsule" fromto="0 0 0 .3 0 -.2" size=".06"/>
    <body pos=".3 0 -.2"><joint name="j2" axis="0 1 0" frictionloss=".05" range="-10 10"/>
      <geom type="capsule" fromto="0 0 0 .2 0 0" size=".05"/></body></body>
</worldbody>
<tendon><fixed name="t" frictionloss=".1"><joint joint="j1" coef="1"/><joint joint="j2" coef="-.5"/></fixed></tendon>
</mujoco>
"""
CASES = {
    "pyramidal_rolling": ("pyramidal", 2, "Newton", 6, 4, 3, 0, "disable"),
    "elliptic_torsion": ("elliptic", 3, "Newton", 4, 3, 4, 0, "enable"),
    "until_exact_by_island": ("pyramidal", 1, "Newton", 3, 3, 60, 1e-5, "enable"),
    "pyramidal": ("pyramidal", 1, "CG", 3, 1, 5, 0, "disable"),
    "elliptic": ("elliptic", 1, "Newton", 3, 1, 5, 0, "disable"),
    "elliptic_rolling": ("elliptic", 1, "Newton", 6, 3, 4, 0, "enable"),
    "until_exact": ("elliptic", 1, "Newton", 3, 3, 60, 1e-5, "disable"),
}
NAMES = [pytest.param(n, marks=pytest.mark.slow) if i > 2 else n for i, n in enumerate(CASES)]


@functools.cache
def scene(name):
    cone, impratio, solver, condim, other, sweeps, tolerance, island = CASES[name]
    xml = SCENE.format(
        cone=cone,
        impratio=impratio,
        solver=solver,
        condim=condim,
        other=other,
        sweeps=sweeps,
        tolerance=tolerance,
        island=island,
    )
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    data.qvel[:] = 0.05 * np.random.default_rng(3).standard_normal(model.nv)
    for _ in range(12):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    m = jaxsim.from_mujoco(model, max_contacts=14)

    def stages(m, d):
        return fwd_constraint(m, reference_constraint(m, make_constraint(m, d)))

    d = oracle_data(m, jaxsim.make_data(m), data)
    return model, data, m, d, jax.jit(stages)


@pytest.mark.parametrize("name", NAMES)
def test_noslip_equals_the_oracle(name):
    _, data, m, d, stages = scene(name)
    d = stages(m, d)
    n = data.nefc
    assert data.ncon > 4 and int(d.nefc) == n
    scale = np.abs(data.efc_force).max()
    np.testing.assert_allclose(d.efc_force[:n], data.efc_force, atol=1e-8 * scale)
    np.testing.assert_allclose(d.qfrc_constraint, data.qfrc_constraint, atol=1e-8 * scale)
    np.testing.assert_allclose(d.qacc, data.qacc, atol=1e-8 * np.abs(data.qacc).max())
    if m.opt.cone == 0:  # a force on its cone is inside or outside by rounding
        np.testing.assert_array_equal(d.efc_state[:n], data.efc_state)


def test_noslip_changes_the_answer():
    model, data, m, *_ = scene("elliptic_torsion")
    before = data.qacc.copy()
    model.opt.noslip_iterations = 0
    mujoco.mj_forward(model, data)
    assert np.abs(data.qacc - before).max() > 1e-3
    model.opt.noslip_iterations = m.opt.noslip_iterations
    mujoco.mj_forward(model, data)


@pytest.mark.parametrize("name", ["elliptic_torsion", pytest.param("pyramidal_rolling", marks=pytest.mark.slow)])
def test_gradients_are_those_of_the_sweeps(name):
    _, _, m, d, stages = scene(name)
    rng = np.random.default_rng(0)
    inputs = (d.qacc_smooth, d.qvel, d.contact.friction)
    moves = tuple(jnp.asarray(rng.standard_normal(x.shape)) * jnp.abs(x) for x in inputs)
    weights = jnp.asarray(rng.standard_normal(m.nv))

    def f(smooth, qvel, friction):
        force = jaxsim.engine.dynamics.inertia.mul_m(m, d, smooth)
        new = d.replace(qacc_smooth=smooth, qfrc_smooth=force, qvel=qvel, contact=d.contact.replace(friction=friction))
        return stages(m, new).qacc

    _, forward = jax.jit(lambda x, v: jax.jvp(f, x, v))(inputs, moves)
    reverse = jax.jit(lambda x: jax.vjp(f, *x)[1](weights))(inputs)
    at = [np.asarray(f(*(x + s * v for x, v in zip(inputs, moves, strict=True)))) for s in (1e-6, -1e-6)]
    central = (at[0] - at[1]) / 2e-6
    np.testing.assert_allclose(forward, central, atol=1e-5 * np.abs(central).max())
    assert all(np.isfinite(g).all() for g in reverse)
    total = sum(jnp.sum(g * v) for g, v in zip(reverse, moves, strict=True))
    np.testing.assert_allclose(total, jnp.sum(weights * forward), rtol=1e-8)
