"""Gradients of a step in both modes against central differences, with contacts, limits and friction active."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from validation.oracle import oracle_data

# A leg pressed on the floor, a joint at its limit, dry friction, springs, and a second tree in rolling contact.
SCENE = """
<mujoco>
<option tolerance="1e-14" iterations="200" cone="{cone}" integrator="{integrator}" timestep="0.002"/>
<default><geom condim="{condim}" friction="0.8 0.02 0.01" solimp="0.9 0.95 0.01"/></default>
<worldbody>
  <geom type="plane" size="5 5 1"/>
  <body pos="0 0 .28"><freejoint/>
    <geom type="box" size=".12 .08 .05" mass="2"/>
    <body pos=".1 0 0"><joint name="hip" axis="0 1 0" range="-30 20" damping=".4" stiffness="3" armature=".01"/>
      <geom type="capsule" fromto="0 0 0 .05 0 -.15" size=".03"/>
      <body pos=".05 0 -.15"><joint name="knee" axis="0 1 0" range="-70 -5" damping=".3" frictionloss=".05"/>
        <geom type="capsule" fromto="0 0 0 -.05 0 -.12" size=".025"/></body></body>
    <body pos="-.1 0 0"><joint type="ball" range="0 40" damping=".2"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.25" size=".03"/></body></body>
  <body pos=".5 0 .1"><freejoint/><geom size=".1"/></body>
</worldbody>
<actuator><position joint="hip" kp="60"/><motor joint="knee" gear="2"/></actuator>
</mujoco>
"""
CASES = [
    ("elliptic", "implicitfast", 3),
    pytest.param(("pyramidal", "Euler", 3), marks=pytest.mark.slow),
    pytest.param(("elliptic", "Euler", 6), marks=pytest.mark.slow),
    pytest.param(("pyramidal", "RK4", 1), marks=pytest.mark.slow),
]
STATE = ("qpos", "qvel", "ctrl")
MODEL = ("body_mass", "geom_friction", "dof_damping", "actuator_gainprm", "jnt_stiffness", "dof_frictionloss")


@functools.cache
def scene(cone, integrator, condim):
    """A state in contact, the inputs of a step there, and one program: its value with its jvp, and its vjp."""
    model = mujoco.MjModel.from_xml_string(SCENE.format(cone=cone, integrator=integrator, condim=condim))
    data = mujoco.MjData(model)
    data.qvel[:] = 0.1 * np.random.default_rng(1).standard_normal(model.nv)
    data.ctrl[:] = [0.9, -0.4]
    for _ in range(200):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    m = jaxsim.from_mujoco(model)
    d = oracle_data(m, jaxsim.make_data(m), data)
    inputs = {n: getattr(d, n) for n in STATE} | {n: getattr(m, n) for n in MODEL} | {"gravity": m.opt.gravity}

    def f(x):
        changed = m.replace(**{n: x[n] for n in MODEL}, opt=m.opt.replace(gravity=x["gravity"]))
        new = jaxsim.step(changed, d.replace(**{n: x[n] for n in STATE}))
        return new.qpos, new.qvel, new.sensordata

    def both(x, v, w):
        y, linear = jax.linearize(f, x)
        return y, linear(v), jax.linear_transpose(linear, x)(w)[0]

    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape), jax.eval_shape(f, inputs))
    run = jax.jit(both)
    return data, inputs, lambda x, v, w=zeros: run(x, v, w)


def direction(inputs, name, seed):
    rng = np.random.default_rng(seed)
    v = {n: jnp.zeros_like(x) for n, x in inputs.items()}
    x = np.asarray(inputs[name])
    scale = np.abs(x) if name in MODEL else 1.0  # a parameter moves in proportion, and stays zero where it is zero
    return v | {name: jnp.asarray(rng.standard_normal(x.shape) * scale)}


def central(run, x, v, eps):
    def at(shift):
        return run(jax.tree.map(lambda a, b: a + shift * b, x, v), v)[0]

    plus, minus = at(eps), at(-eps)
    return jax.tree.map(lambda a, b: (a - b) / (2 * eps), plus, minus)


def flat(tree):
    return np.concatenate([np.ravel(x) for x in jax.tree.leaves(tree)])


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
def test_forward_mode_equals_central_differences(case):
    data, inputs, run = scene(*case)
    assert data.ncon >= 3 and data.nl >= 1 and data.nf >= 1
    for name in inputs:
        v = direction(inputs, name, 3)
        ours = flat(run(inputs, v)[1])
        # two step sizes: one of them is clear of both kinks and rounding
        errors = [np.abs(flat(central(run, inputs, v, eps)) - ours).max() for eps in (1e-6, 1e-7)]
        assert min(errors) <= 1e-6 * max(1.0, np.abs(ours).max()), (name, errors, np.abs(ours).max())


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
def test_reverse_mode_is_the_transpose_of_forward_mode(case):
    _, inputs, run = scene(*case)
    rng = np.random.default_rng(5)
    w = jax.tree.map(lambda x: jnp.asarray(rng.standard_normal(x.shape)), run(inputs, inputs)[0])
    back = run(inputs, inputs, w)[2]
    for name in inputs:
        v = direction(inputs, name, 4)
        forward = np.dot(flat(run(inputs, v)[1]), flat(w))
        reverse = np.vdot(np.asarray(back[name]), np.asarray(v[name]))
        np.testing.assert_allclose(reverse, forward, rtol=1e-8, atol=1e-10 * np.abs(flat(w)).sum(), err_msg=name)
