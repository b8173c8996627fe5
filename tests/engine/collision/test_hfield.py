"""Height fields against convex geoms."""

import numpy as np
import pytest

from tests.engine.collision.scenes import ASSETS, GEOMS, PLACES, make_scene, random_qpos

KINDS = ("sphere", "capsule")


def terrain(rng):
    heights = " ".join(f"{x:.4f}" for x in rng.uniform(0, 1, 7 * 9))
    geoms = "".join(f'<body><freejoint/><geom {GEOMS[k]} contype="0" conaffinity="1"/></body>' for k in KINDS)
    field = f'<hfield name="h" nrow="7" ncol="9" size="1.2 .9 .3 .1" elevation="{heights}"/>'
    return f"""<mujoco><asset>{ASSETS}{field}</asset><worldbody><body pos=".1 .2 .1" euler="5 3 20">
      <geom type="hfield" hfield="h" contype="1" conaffinity="1"/></body>{geoms}</worldbody></mujoco>"""


@pytest.fixture(scope="module")
def field():
    rng = np.random.default_rng(0)
    scene = make_scene(terrain(rng), max_contacts=60)
    qpos = random_qpos(rng, 30, len(KINDS), 0.8).reshape(30, len(KINDS), 7)
    qpos[..., 2] = rng.uniform(0.2, 0.8, qpos.shape[:2])
    pos, mat, contacts = scene.reference(qpos.reshape(30, -1))
    return scene, pos, mat, contacts, scene.run(pos, mat)


def test_every_triangle_under_a_geom_makes_its_contact(field):
    *_, contacts, ours = field
    counts = np.array([len(c["dist"]) for c in contacts])
    np.testing.assert_array_equal(np.asarray(ours.ncon), counts)
    assert counts.max() > 5 and counts.min() == 0
    assert np.all(np.asarray(ours.overflow_contacts) == 0)


@pytest.mark.parametrize("place", PLACES)
def test_contacts_equal_the_reference(field, place):
    *_, contacts, ours = field
    for i, contact in enumerate(contacts):
        mine = np.asarray(getattr(ours.contact, place))[i, : len(contact["dist"])]
        np.testing.assert_array_equal(np.asarray(ours.contact.geom)[i, : len(mine)], contact["geom"])
        np.testing.assert_allclose(mine, contact[place], rtol=0, atol=5e-6)  # the search's own tolerance is 1e-6
