"""Height fields against convex geoms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from tests.engine.collision.scenes import PLACES, make_scene, random_qpos
from validation.models.geoms import ASSETS, GEOMS

KINDS = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "hull", "cube")
NCURVED = 3  # the first kinds, whose search has a unique result
POSES = 20


def terrain():
    heights = " ".join(f"{x:.4f}" for x in np.random.default_rng(0).uniform(0, 1, 7 * 9))
    geoms = "".join(f'<body><freejoint/><geom {GEOMS[k]} contype="0" conaffinity="1"/></body>' for k in KINDS)
    field = f'<hfield name="h" nrow="7" ncol="9" size="1.2 .9 .3 .1" elevation="{heights}"/>'
    return f"""<mujoco><asset>{ASSETS}{field}</asset><worldbody><body pos=".1 .2 .1" euler="5 3 20">
      <geom type="hfield" hfield="h" contype="1" conaffinity="1"/></body>{geoms}</worldbody></mujoco>"""


@pytest.fixture(scope="module")
def field():
    rng = np.random.default_rng(0)
    scene = make_scene(terrain(), max_contacts=150)
    qpos = random_qpos(rng, POSES, len(KINDS), 0.8).reshape(POSES, len(KINDS), 7)
    qpos[..., 2] = rng.uniform(0.1, 0.8, qpos.shape[:2])
    pos, mat, contacts = scene.oracle(qpos.reshape(POSES, -1))
    return scene, pos, mat, contacts, scene.run(pos, mat)


def test_every_triangle_under_a_geom_makes_its_contact(field):
    *_, contacts, ours = field
    counts = np.array([len(c["dist"]) for c in contacts])
    np.testing.assert_array_equal(np.asarray(ours.ncon), counts)
    for i, contact in enumerate(contacts):
        np.testing.assert_array_equal(np.asarray(ours.contact.geom)[i, : counts[i]], contact["geom"])
    assert counts.max() > 20
    assert np.all(np.asarray(ours.overflow_contacts) == 0)


def errors(field, place, kind):
    """Largest difference of each contact of one kind of geom."""
    *_, contacts, ours = field
    out = []
    for i, contact in enumerate(contacts):
        mine = contact["geom"][:, 1] == kind + 1
        gap = np.asarray(getattr(ours.contact, place))[i, : len(mine)][mine] - contact[place][mine]
        out.extend(np.max(np.abs(x)) for x in gap)
    return np.array(out)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", range(NCURVED), ids=KINDS[:NCURVED])
def test_contacts_equal_mujocos(field, place, kind):
    found = errors(field, place, kind)
    assert len(found) > 30
    np.testing.assert_array_less(found, 1e-9)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", range(NCURVED, len(KINDS)), ids=KINDS[NCURVED:])
def test_most_contacts_of_flat_shapes_equal_mujocos(field, place, kind):
    """Most contacts agree; the others end at another face of one plane, which rounding picks.

    MuJoCo does not number a prism's vertices. Its search ends as soon as a vertex of the other shape repeats, before it
    has converged. A flat cap on a flat triangle touches along a whole face, of which the search gives any point.
    """
    found = errors(field, place, kind)
    assert len(found) > 30
    assert (found < 1e-5).mean() > 0.9


def test_depths_are_differentiable_by_the_height_of_a_geom():
    slope = '<hfield name="h" nrow="2" ncol="2" size="1 1 1 .1" elevation="0 1 0 1"/>'
    geom = '<geom type="ellipsoid" size=".1 .2 .3" contype="0" conaffinity="1"/>'
    m = jaxsim.load_model(f"""<mujoco><asset>{slope}</asset><worldbody><geom type="hfield" hfield="h"/>
      <body><joint type="slide" axis="0 0 1"/>{geom}</body></worldbody></mujoco>""")
    d = jaxsim.kinematics(m, jaxsim.make_data(m).replace(qpos=jnp.array([0.78])))

    @jax.jit
    def depth(z):
        found = jaxsim.collision(m, d.replace(geom_xpos=d.geom_xpos.at[1, 2].add(z))).contact
        return jnp.min(found.dist)

    assert depth(0.0) < 0
    # the surface rises by 1 over 2: moving up by 1 moves by 2 / sqrt(5) along its normal
    np.testing.assert_allclose(jax.jit(jax.grad(depth))(0.0), 2 / np.sqrt(5), rtol=1e-9)
