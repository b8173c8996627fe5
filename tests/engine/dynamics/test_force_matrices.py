"""Derivatives of the forces of bodies as matrices, against those along directions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.dynamics.force_matrices import bias_matrices, inertia_matrix, wrench_matrix
from jaxsim.engine.kinematics.positions import integrate_pos
from jaxsim.engine.kinematics.wrench import apply_wrench
from jaxsim.native.stage import keeping_residuals

# all joints, several on a body; without contacts, so that integrators and solutions alone are differentiated
SCENE = """<mujoco><option integrator="{integrator}" gravity="1 2 -9"><flag contact="disable"/></option><worldbody>
<body pos=".1 .2 .3" quat=".5 .5 .2 .1"><freejoint/><geom type="box" size=".1 .2 .3" pos=".1 0 .2" euler="10 20 30"/>
  <body pos=".3 0 0" euler="0 20 10"><joint type="slide" axis="1 2 0" pos=".1 0 .2"/><joint axis="0 1 1" pos="0 .2 0"/>
    <joint name="j" axis="1 0 1" pos=".1 .2 0" armature=".1" damping=".2"/><geom size=".1" pos="0 .1 0"/>
    <body pos="0 .3 0"><joint type="slide" axis="0 0 1"/><joint type="ball" pos=".1 .2 .3"/>
      <geom type="capsule" size=".1 .2" pos=".2 0 0"/></body></body>
  <body pos="0 .4 .1"><geom size=".1"/><body pos="0 0 .1"><joint/><geom size=".1" pos=".1 .1 .1"/></body></body></body>
<body pos="1 0 0"><joint type="ball" pos="0 .1 0"/><geom type="box" size=".1 .2 .3"/>
  <body pos=".2 0 0"><joint axis="0 0 1"/><geom size=".1" pos="0 .1 0"/></body></body>
</worldbody><actuator><position joint="j" kp="3" kv="1"/></actuator></mujoco>"""


def scene(integrator="Euler"):
    """A model, data at random positions and velocities, and a random generator."""
    m, rng = jaxsim.load_model(SCENE.format(integrator=integrator)), np.random.default_rng(0)
    d = jaxsim.make_data(m)
    qpos = jaxsim.normalize_quat(m, d.qpos + 0.4 * rng.standard_normal(m.nq))
    pushed = jnp.asarray(rng.standard_normal((m.nbody, 6)))
    return m, d.replace(qpos=qpos, qvel=jnp.asarray(rng.standard_normal(m.nv)), xfrc_applied=pushed), rng


def test_matrices_are_the_jacobians_of_inverse_dynamics():
    m, d, rng = scene()
    x, forces, torques = jnp.asarray(rng.standard_normal(m.nv)), *rng.standard_normal((2, m.nbody, 3))

    def found(dq, qvel):
        at = d.replace(qpos=integrate_pos(m, d.qpos, dq, 1.0), qvel=qvel)
        at = jaxsim.com_vel(m, jaxsim.crb(m, jaxsim.com_pos(m, jaxsim.kinematics(m, at))))
        return jaxsim.rne(m, at), jaxsim.mul_m(m, at, x), apply_wrench(m, at, forces, torques, at.xipos), at

    @jax.jit
    def both(qvel):
        want = jax.jacfwd(lambda *z: found(*z)[:3], (0, 1))(jnp.zeros(m.nv), qvel)
        at = found(jnp.zeros(m.nv), qvel)[3]
        bias = bias_matrices(m.structure, -m.opt.gravity, qvel, at.cdof, at.cdof_dot, at.cinert, at.cvel)
        arm = at.xipos - at.subtree_com[m.body_rootid]
        rest = (
            inertia_matrix(m.structure, at.cdof, at.cinert, x),
            wrench_matrix(m.structure, at.cdof, arm, forces, torques),
        )
        return (*bias, *rest), (*want[0], want[1][0], want[2][0])

    for got, want in zip(*both(d.qvel), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-12 * np.abs(want).max())


@pytest.mark.filterwarnings("error::RuntimeWarning")  # all are native programs
@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_a_and_b_are_the_derivatives_along_directions(integrator):
    m, d, _ = scene(integrator)

    @jax.jit
    def both(d):
        def outcome(dq, dv, du):
            new = jaxsim.step(m, d.replace(qpos=integrate_pos(m, d.qpos, dq, 1.0), qvel=d.qvel + dv, ctrl=d.ctrl + du))
            return jnp.concatenate([new.qpos, new.qvel])

        at = jnp.zeros(m.nv), jnp.zeros(m.nv), jnp.zeros(m.nu)
        with keeping_residuals():
            along = jax.linearize(outcome, *at)[1]
        got = [
            jax.vmap(lambda t, k=k: along(*at[:k], t, *at[k + 1 :]), out_axes=1)(jnp.eye(len(x)))
            for k, x in enumerate(at)
        ]
        return got, jax.jacfwd(outcome, (0, 1, 2))(*at)

    got, want = both(d)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11 * np.abs(b).max())
