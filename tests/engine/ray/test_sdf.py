"""Rays against signed distance fields of plugins and octrees, compared with MuJoCo's."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

import jaxsim
from validation.models.sdf import xml
from validation.stages import to_data

MODEL = mujoco.MjModel.from_xml_string(xml([("gear", "torus"), ("octree", "bowl")]))
DATA = mujoco.MjData(MODEL)
DATA.qpos[:] = np.random.default_rng(0).standard_normal(MODEL.nq)
mujoco.mj_forward(MODEL, DATA)


def state():
    m = jaxsim.from_mujoco(MODEL)
    return m, jax.jit(jaxsim.kinematics)(m, to_data(m, DATA))


def rays(n):
    """Rays towards the geoms, some from within their boxes."""
    rng = np.random.default_rng(1)
    target = DATA.geom_xpos[rng.integers(0, MODEL.ngeom, n)] + 0.2 * rng.standard_normal((n, 3))
    pnt = target + rng.choice([0.1, 1.0], (n, 1)) * rng.standard_normal((n, 3))
    return pnt, target - pnt


def test_rays_meet_fields_where_mujocos_do():
    m, d = state()
    pnt, vec = rays(300)
    dist, geom, normal = jax.jit(jax.vmap(lambda p, v: jaxsim.ray(m, d, p, v)))(pnt, vec)
    theirs = np.zeros(len(pnt), np.int32)
    for i in range(len(pnt)):
        wanted = np.zeros(3)
        np.testing.assert_allclose(
            dist[i], mujoco.mj_ray(MODEL, DATA, pnt[i], vec[i], None, 1, -1, theirs[i : i + 1], wanted), atol=1e-6
        )
        np.testing.assert_allclose(normal[i], wanted, atol=1e-5)  # MuJoCo's are differences for plugins
    np.testing.assert_array_equal(geom, theirs)
    assert set(theirs) == {-1, 0, 1, 2, 3}


def test_derivatives_of_the_distance_are_those_of_differences():
    m, d = state()
    pnt, vec = rays(40)

    def distances(x):
        move = jnp.zeros((MODEL.ngeom, 3)).at[:].set(x)
        return jax.vmap(lambda p, v: jaxsim.ray(m, d.replace(geom_xpos=d.geom_xpos + move), p, v)[0])(pnt, vec)

    step = 1e-6 * np.array([0.3, -0.5, 0.8])
    run = jax.jit(lambda x: jax.jvp(distances, (x,), (step / 1e-6,)))
    found, slope = run(jnp.zeros(3))
    differences = (run(step)[0] - run(-step)[0]) / 2e-6
    met = np.asarray(found) > 0
    assert met.sum() > 15
    np.testing.assert_allclose(slope[met], differences[met], rtol=1e-4, atol=1e-4)  # a walk ends within 1e-7
