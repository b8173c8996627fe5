"""Signed distance fields against primitives, planes and each other."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.collision.driver import collision
from jaxsim.math.signed_distance import torus
from tests.engine.collision.scenes import PLACES, Scene, random_qpos
from validation.models.sdf import PAIRS, xml

POSES = 24
TORI = [("sphere", "torus"), ("ellipsoid", "torus")]
SHORT = {"starts": 4, "iterations": 5}
MESHES = [("hull", "torus"), ("cube", "octree")]
# Where the first trial step just decreases, or just does not, rounding decides: it is that of what users run.
AS_USERS_RUN_IT = {"xla_backend_optimization_level": 3}


def make_scene(text, **changes):
    mj = mujoco.MjModel.from_xml_string(text)
    m = jaxsim.from_mujoco(mj, max_contacts=150).replace(**changes)
    return Scene(mj, m, jaxsim.make_data(m), AS_USERS_RUN_IT)


def compare(scene, pairs, contacts, moved, ours):
    """For each pair, the number of stable poses, of contacts in them, and of stable poses in which ours differ.

    A pose is stable unless MuJoCo's contacts jump when it moves by 1e-9: a search that is cut off depends on which of
    the trial steps first gave a sufficient decrease. MuJoCo's gradients are differences with a step of 1e-8, wrong by
    some 1e-6 for the narrow fillets of a gear.
    """
    stable, seen, wrong = (np.zeros(len(pairs), int) for _ in range(3))
    for pair in range(len(pairs)):
        ids = [scene.m.name2id("geom", f"{pair}.{side}") for side in (0, 1)]
        atol = 1e-5 if "gear" in pairs[pair] else 1e-6
        for i, (theirs, *again) in enumerate(zip(contacts, *moved, strict=True)):
            mine = {k: np.asarray(getattr(ours.contact, k))[i] for k in (*PLACES, "geom")}
            mine, theirs, *again = (places(c, ids) for c in (mine, theirs, *again))
            if all(same(theirs, other, atol) for other in again):
                stable[pair] += 1
                seen[pair] += len(theirs[0])
                wrong[pair] += not same(theirs, mine, atol)
    return stable, seen, wrong


def places(contact, ids):
    of_pair = np.isin(contact["geom"], ids).all(axis=1)
    return [contact[k][of_pair] for k in PLACES]


def same(a, b, atol):
    return len(a[0]) == len(b[0]) and all(np.allclose(x, y, rtol=0, atol=atol) for x, y in zip(a, b, strict=True))


def run(scene, scale, seed=0, poses=POSES):
    rng = np.random.default_rng(seed)
    qpos = random_qpos(rng, poses, scene.mj.njnt, scale)
    pos, mat, contacts = scene.oracle(qpos)
    moved = [scene.oracle(qpos + 1e-9 * rng.standard_normal(qpos.shape))[2] for _ in range(4)]
    return contacts, moved, scene.run(pos, mat)


@pytest.fixture(scope="module")
def fields():
    """One step from every start: fields and gradients, without the chaos of a search that is cut off."""
    scene = make_scene(xml(PAIRS, iterations=0))
    contacts, moved, ours = run(scene, 0.25)
    return scene, contacts, moved, ours, compare(scene, PAIRS, contacts, moved, ours)


@pytest.mark.parametrize("pair", range(len(PAIRS)), ids=["-".join(p) for p in PAIRS])
def test_contacts_equal_mujocos(fields, pair):
    stable, seen, wrong = (x[pair] for x in fields[-1])
    assert stable > POSES / 2 and seen > 20 and wrong == 0


def test_contacts_are_in_mujocos_order(fields):
    _, contacts, _, ours, _ = fields
    as_many = [i for i in range(POSES) if ours.ncon[i] == len(contacts[i]["geom"])]
    for i in as_many:
        np.testing.assert_array_equal(ours.contact.geom[i][: ours.ncon[i]], contacts[i]["geom"])
    assert len(as_many) > POSES / 2


@pytest.fixture(scope="module")
def two_tori():
    return make_scene(xml(TORI, **SHORT))


def test_derivatives_are_those_of_the_steps_made(two_tori):
    """Between the jumps of a search that is cut off, as differences with two steps show."""
    rng = np.random.default_rng(1)
    pos, mat, _ = two_tori.oracle(random_qpos(rng, 12, two_tori.mj.njnt, 0.2))
    direction = rng.standard_normal(pos.shape[1:])
    weight = rng.standard_normal((two_tori.m.max_contacts, 3))

    def total(pos, mat):
        c = collision(two_tori.m, two_tori.d.replace(geom_xpos=pos, geom_xmat=mat)).contact
        return jnp.sum(c.dist * weight[:, 0]) + jnp.sum(c.pos * weight)

    gradient = jax.jit(jax.vmap(lambda p, r: jnp.vdot(jax.grad(total)(p, r), direction)))(pos, mat)
    forward = jax.jit(jax.vmap(lambda p, r: jax.jvp(lambda p: total(p, r), (p,), (direction,))[1]))(pos, mat)
    assert np.isfinite(gradient).all() and np.isfinite(forward).all()
    value = jax.jit(jax.vmap(total))
    coarse, fine = [(value(pos + h * direction, mat) - value(pos - h * direction, mat)) / (2 * h) for h in (2e-6, 1e-6)]
    smooth = np.isclose(coarse, fine, rtol=1e-5, atol=1e-5)
    assert smooth.sum() >= 4 and np.all(np.abs(gradient) > 1e-3)
    np.testing.assert_allclose(gradient[smooth], coarse[smooth], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(forward[smooth], gradient[smooth], rtol=1e-5)


def test_a_search_of_many_steps_ends_where_mujocos_ends(two_tori):
    contacts, moved, ours = run(two_tori, 0.2, seed=3, poses=40)
    stable, seen, wrong = compare(two_tori, TORI, contacts, moved, ours)
    assert np.all(stable > 10) and np.all(seen > 20) and not wrong.any()


def test_a_field_of_the_user_replaces_the_octree(two_tori):
    def sdf(m, geom, x):
        return torus(x[..., 0], x[..., 1], x[..., 2], 0.35, 0.15)

    own = make_scene(xml(TORI, plugin=False, **SHORT), callbacks=jaxsim.Callbacks(sdf=sdf))
    pos, mat, _ = two_tori.oracle(random_qpos(np.random.default_rng(2), 8, two_tori.mj.njnt, 0.2))
    theirs, ours = two_tori.run(pos, mat), own.run(pos, mat)
    assert np.sum(np.asarray(theirs.ncon)) > 15
    np.testing.assert_array_equal(ours.ncon, theirs.ncon)
    for place in PLACES:
        np.testing.assert_allclose(getattr(ours.contact, place), getattr(theirs.contact, place), rtol=0, atol=1e-12)


def test_capacity_suffices_for_every_start():
    m = jaxsim.from_mujoco(mujoco.MjModel.from_xml_string(xml([("sphere", "torus")])))
    assert m.max_contacts == 12


@pytest.fixture(scope="module")
def meshes():
    scene = make_scene(xml(MESHES, starts=3, iterations=4))
    contacts, moved, ours = run(scene, 0.25)
    return scene, contacts, compare(scene, MESHES, contacts, moved, ours)


@pytest.mark.parametrize("pair", range(len(MESHES)), ids=["-".join(p) for p in MESHES])
def test_contacts_of_meshes_equal_mujocos(meshes, pair):
    stable, seen, wrong = (x[pair] for x in meshes[-1])
    assert stable > POSES / 2 and seen > 20 and wrong == 0


def test_derivatives_of_meshes_by_their_scale_equal_differences(meshes):
    scene, *_ = meshes
    pos, mat, _ = scene.oracle(random_qpos(np.random.default_rng(4), 8, scene.mj.njnt, 0.25))
    weight = np.random.default_rng(5).standard_normal((scene.m.max_contacts, 4))

    def total(scale, pos, mat):
        m = scene.m.replace(mesh_vert=scene.m.mesh_vert * scale)
        c = collision(m, scene.d.replace(geom_xpos=pos, geom_xmat=mat)).contact
        return jnp.sum(c.dist * weight[:, 0]) + jnp.sum(c.pos * weight[:, 1:])

    gradient = jax.jit(jax.vmap(jax.grad(total), in_axes=(None, 0, 0)))(1.0, pos, mat)
    value = jax.jit(jax.vmap(total, in_axes=(None, 0, 0)))
    coarse, fine = [(value(1 + h, pos, mat) - value(1 - h, pos, mat)) / (2 * h) for h in (2e-6, 1e-6)]
    smooth = np.isclose(coarse, fine, rtol=1e-5, atol=1e-5)
    assert smooth.sum() >= 4 and np.isfinite(gradient).all()
    np.testing.assert_allclose(gradient[smooth], coarse[smooth], rtol=1e-5, atol=1e-5)
