"""Derivatives of contact forces, by poses and by shape, against central differences where the same features touch.

Searches on curved shapes end within a tolerance, up to 1e-6 off along the surface, and differences of such results are
as far off (1e-5 of the force). For those pairs the results are refined to the solution that the search approaches.
"""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.kinematics.positions import integrate_pos
from validation.gradients import exact_searches
from validation.models.geoms import GEOMS, HULL

ANALYTIC = (("sphere", "box"), ("sphere", "cylinder"), ("capsule", "capsule"), ("capsule", "box"))
SEARCHED = (("box", "box"), ("box", "hull"), ("hull", "hull"), ("capsule", "hull"))
CURVED = (("cylinder", "hull"), ("cylinder", "box"), ("capsule", "cylinder"), ("ellipsoid", "hull"))
pytestmark = pytest.mark.slow  # compiling forces with both derivatives takes minutes on a busy machine
STEP = 1e-6
NSTATES = 6


def xml(pairs):
    bodies, contacts = "", ""
    for i, pair in enumerate(pairs):
        for side, kind in enumerate(pair):
            geom = f'<geom name="{i}.{side}" {GEOMS[kind]} contype="0" conaffinity="0"/>'
            bodies += f'<body pos="{3 * i} 0 0"><freejoint/>{geom}</body>'
        contacts += f'<pair geom1="{i}.0" geom2="{i}.1"/>'
    return f"""<mujoco><option tolerance="1e-14" iterations="200" ccd_tolerance="1e-12" ccd_iterations="100"/>
      <asset><mesh name="hull" vertex="{HULL}"/></asset>
      <worldbody>{bodies}</worldbody><contact>{contacts}</contact></mujoco>"""


@pytest.fixture(scope="module", params=[ANALYTIC, SEARCHED, CURVED], ids=["analytic", "searched", "curved"])
def forces(request):
    """Constraint forces of each pair along one change of poses, sizes and vertices: derivatives and differences."""
    with exact_searches() if request.param is CURVED else contextlib.nullcontext():
        return forces_of(request.param)


def forces_of(pairs):
    m = jaxsim.load_model(xml(pairs))
    d, rng = jaxsim.make_data(m), np.random.default_rng(5)
    n = len(pairs)
    qpos = np.tile(np.asarray(d.qpos).reshape(n, 2, 7), (NSTATES, 1, 1, 1))
    qpos[..., :3] += rng.uniform(-0.2, 0.2, (NSTATES, n, 2, 3))
    quat = rng.standard_normal((NSTATES, n, 2, 4))
    qpos[..., 3:] = quat / np.linalg.norm(quat, axis=-1, keepdims=True)
    move = rng.standard_normal((NSTATES, m.nv))
    grow, stretch = rng.standard_normal(m.geom_size.shape), rng.standard_normal(3)

    def force(t, qpos, move):
        changed = m.replace(geom_size=m.geom_size * (1 + t * grow), mesh_vert=m.mesh_vert * (1 + t * stretch))
        at = d.replace(qpos=integrate_pos(m, qpos.reshape(-1), move, t))
        out = jaxsim.forward(changed, at)
        return out.qfrc_constraint.reshape(n, -1), out.contact.dist, out.contact.geom

    def both(qpos, move):
        value, tangent = jax.jvp(lambda t: force(t, qpos, move)[0], (0.0,), (1.0,))
        weight = jnp.cos(jnp.arange(value.size)).reshape(value.shape)
        backward = jax.grad(lambda t: jnp.sum(weight * force(t, qpos, move)[0]))(0.0)
        return value, tangent, backward, jnp.sum(weight * tangent)

    value, tangent, backward, total = map(np.asarray, jax.jit(jax.vmap(both))(qpos, move))
    near = [jax.jit(jax.vmap(force, in_axes=(None, 0, 0)))(h * STEP, qpos, move) for h in (-2, -1, 1, 2)]
    fine, coarse = [np.asarray(near[b][0] - near[a][0]) / (w * STEP) for a, b, w in ((1, 2, 2), (0, 3, 4))]
    return value, tangent, fine, coarse, backward, total


@pytest.mark.parametrize("pair", range(len(ANALYTIC)))
def test_derivative_of_contact_forces_equals_central_differences(forces, pair):
    """Where differences of two lengths agree: elsewhere another feature takes over in between."""
    value, tangent, fine, coarse, *_ = (x[:, pair] if x.ndim == 3 else x for x in forces)
    scale = 1 + np.abs(fine).max(axis=1)
    touching = np.abs(value).max(axis=1) > 1e-3
    stable = touching & (np.abs(fine - coarse).max(axis=1) < 1e-6 * scale)
    error = np.abs(tangent - fine).max(axis=1) / scale
    assert stable.sum() >= 2
    assert np.all(error[stable] < 1e-5), error[stable]


def test_both_modes_agree_and_are_finite(forces):
    *_, backward, total = forces
    np.testing.assert_allclose(backward, total, rtol=1e-6)
    assert np.isfinite(backward).all()
