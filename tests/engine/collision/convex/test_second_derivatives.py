"""Second derivatives of contacts of convex pairs, in three orders of modes, against differences of first derivatives.

Searches on curved shapes end within a tolerance of the solution, but first derivatives are taken at the solution. Those
of distance, position and normal are exact, which differences need.
"""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.collision.driver import collision
from jaxsim.math.rotation import quat_mul, quat_to_mat, rotvec_to_quat
from tests.engine.collision.scenes import pair_xml, random_qpos

PAIRS = [
    ("sphere", "ellipsoid"),
    ("sphere", "hull"),
    ("capsule", "ellipsoid"),
    ("capsule", "cylinder"),
    ("capsule", "hull"),
    ("ellipsoid", "ellipsoid"),
    ("ellipsoid", "cylinder"),
    ("ellipsoid", "box"),
    ("ellipsoid", "hull"),
    ("cylinder", "cylinder"),
    ("cylinder", "box"),
    ("cylinder", "hull"),
    ("box", "hull"),
    ("hull", "hull"),
]
pytestmark = pytest.mark.slow  # three programs of nested derivatives take minutes to compile
NPOSES, STEP = 10, 1e-4
PARTS = (1, 0.5, 0.25)  # of the step: widths of the differences
CHEAP = {"xla_backend_optimization_level": 0}  # to compile takes longer than to run
TOLERANCE = 1e-6  # of the largest entry of a contact's second derivatives


@pytest.fixture(scope="module")
def curved():
    """Second derivatives of every contact by poses, sizes and vertices along a line, and differences of first ones."""
    mj = mujoco.MjModel.from_xml_string(pair_xml(PAIRS, 0.0, 'ccd_tolerance="1e-12" ccd_iterations="100"'))
    m = jaxsim.from_mujoco(mj, max_contacts=5 * len(PAIRS))
    d, rng = jaxsim.make_data(m), np.random.default_rng(3)
    qpos = random_qpos(rng, NPOSES, 2 * len(PAIRS), 0.2).reshape(NPOSES, -1, 7)

    def contacts(t, q, move, turn, grow, stretch):
        mat = quat_to_mat(quat_mul(rotvec_to_quat(t * turn), q[:, 3:])).reshape(-1, 9)
        changed = m.replace(geom_size=m.geom_size * (1 + t * grow), mesh_vert=m.mesh_vert * (1 + t * stretch))
        found = collision(changed, d.replace(geom_xpos=q[:, :3] + t * move, geom_xmat=mat)).contact
        return jnp.concatenate([found.dist[:, None], found.pos, found.frame[:, :3]], axis=1), found.geom

    def first(t, *args):
        _, moved, geom = jax.jvp(lambda t: contacts(t, *args), (t,), (1.0,), has_aux=True)
        return moved, geom

    def second(weight, *args):
        weighted = lambda t: jnp.sum(weight * contacts(t, *args)[0])  # noqa: E731
        moved = jax.jvp(lambda t: first(t, *args)[0], (0.0,), (1.0,))[1]
        forward_over_reverse = jax.jvp(jax.grad(weighted), (0.0,), (1.0,))[1]
        reverse_over_forward = jax.grad(lambda t: jax.jvp(weighted, (t,), (1.0,))[1])(0.0)
        return moved, forward_over_reverse, reverse_over_forward

    shape = (NPOSES, 2 * len(PAIRS), 3)
    args = (qpos, *[0.3 * rng.standard_normal(shape) for _ in range(3)], 0.3 * rng.standard_normal((NPOSES, 1, 3)))
    weight = rng.standard_normal((m.max_contacts, 7))
    over = lambda f: jax.jit(jax.vmap(f, in_axes=(None, *[0] * len(args))), compiler_options=CHEAP)  # noqa: E731
    exact, *mixed = map(np.asarray, over(second)(weight, *args))
    near = over(first)
    geom = np.asarray(near(0.0, *args)[1])
    rows = [(near(STEP * k, *args)[0] - near(-STEP * k, *args)[0]) / (2 * STEP * k) for k in PARTS]
    fine, coarse = ((4 * rows[i + 1] - rows[i]) / 3 for i in (1, 0))
    return np.where(geom[..., 0] < 0, -1, geom[..., 0] // 2), exact, *map(np.asarray, (fine, coarse)), mixed, weight


def test_second_derivatives_of_contacts_equal_differences_of_first_ones(curved):
    pair, exact, fine, coarse, *_ = curved
    for i, kinds in enumerate(PAIRS):
        one, two, three = (x[pair == i] for x in (exact, fine, coarse))
        scale = np.maximum(np.abs(two).max(axis=1), 1)
        stable = np.abs(two - three).max(axis=1) < 1e-6 * scale  # elsewhere the feature changes in between
        assert stable.sum() >= 3, kinds
        error = np.abs(one - two).max(axis=1) / scale
        assert np.all(error[stable] < TOLERANCE), (kinds, error, stable)


def test_modes_in_any_order_agree(curved):
    _, exact, _, _, mixed, weight = curved
    expected = np.sum(weight * exact, axis=(1, 2))
    for found in mixed:
        np.testing.assert_allclose(found, expected, rtol=1e-6)
