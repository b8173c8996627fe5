"""Derivatives of products with the inertia matrix, by bodies, against those of the matrix itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.dynamics.inertia import crb, full_m
from jaxsim.engine.dynamics.inertia_jvp import inertia_parts
from jaxsim.math.arrays import dot
from jaxsim.math.jvp import matrix_times

SCENE = """<mujoco><worldbody>
<body><freejoint/><geom size=".1" pos=".1 0 0"/>
  <body pos=".3 0 0"><joint axis="0 1 0" armature=".2"/><geom size=".1"/></body>
  <body pos="0 .3 0"><joint type="ball" armature=".1"/><geom size=".1"/></body></body>
<body pos="1 0 0"><joint type="slide"/><joint axis="0 0 1"/><geom size=".1" pos="0 .1 0"/></body>
</worldbody></mujoco>"""
SIMPLE = '<mujoco><worldbody><body><freejoint/><geom size=".1"/></body></worldbody></mujoco>'
TENDON = """<mujoco><worldbody><body><joint name="j"/><geom size=".1" pos=".1 0 0"/></body></worldbody>
<tendon><fixed armature=".1"><joint joint="j" coef="1"/></fixed></tendon></mujoco>"""


@pytest.mark.parametrize("added", [0.0, 0.7])
def test_product_has_the_derivative_of_the_matrix(added):
    m = jaxsim.load_model(SCENE)
    d = jaxsim.make_data(m)
    rng = np.random.default_rng(0)
    world = (np.arange(m.nbody) > 0)[:, None]

    def draw():
        inertia = jnp.asarray(np.where(world, rng.standard_normal((m.nbody, 10)), 0))
        return jnp.asarray(rng.standard_normal((m.nv, 6))), inertia, jnp.asarray(rng.standard_normal(m.nv))

    def matrix(z):
        changed, at = m.replace(dof_armature=z[2]), d.replace(cdof=z[0], cinert=z[1])
        return full_m(changed, crb(changed, at)) + added * jnp.eye(m.nv), inertia_parts(changed, at, added)

    z, dz, x = draw(), draw(), rng.standard_normal(m.nv)
    got = jax.jvp(lambda z, x: matrix_times(dot, *matrix(z), x), (z, x), (dz, 2 * x))
    want = jax.jvp(lambda z, x: matrix(z)[0] @ x, (z, x), (dz, 2 * x))
    np.testing.assert_allclose(got, want, atol=1e-12)


@pytest.mark.parametrize("xml", [SIMPLE, TENDON])
def test_matrix_that_bodies_alone_do_not_make_is_differentiated_itself(xml):
    m = jaxsim.load_model(xml)
    assert inertia_parts(m, jaxsim.make_data(m)) is None
    matrix, x = jnp.eye(m.nv), jnp.arange(1.0, m.nv + 1)
    slope = jax.jvp(lambda a: matrix_times(dot, a, None, x), (matrix,), (3 * matrix,))[1]
    np.testing.assert_allclose(slope, 3 * x)
