"""Convex pairs with `nativeccd` off, by MPR, against MuJoCo."""

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.collision.distance import geom_distance
from jaxsim.engine.collision.driver import collision
from jaxsim.engine.step.forward import step_by_stages
from tests.engine.collision.scenes import assert_same, make_scene, pair_xml, random_qpos

PAIRS = [
    ("hull", "hull"),
    ("cube", "box"),
    ("cylinder", "box"),
    ("ellipsoid", "box"),
    ("sphere", "hull"),
    ("capsule", "cylinder"),
    ("ellipsoid", "ellipsoid"),
]
MARGIN = 0.02  # rounds what is flat: without it rounding decides which corners of two polyhedra are taken
OFF = '><flag nativeccd="disable"/></option><option'
FINE = 'ccd_iterations="200" ' + OFF
NPOSES = 40
NTIES = 3  # the first pairs, whose contacts may tie


class Search:
    """A scene whose margin and tolerance are given with each call, so that all tests share one program."""

    def __init__(self):
        self.scene = make_scene(pair_xml(PAIRS, MARGIN, FINE))
        self.poses = random_qpos(np.random.default_rng(3), NPOSES, 2 * len(PAIRS), 0.3)
        self.run = jax.jit(jax.vmap(self.single, in_axes=(None, None, 0, 0)))

    def single(self, margin, tolerance, pos, mat):
        m = self.scene.m
        m = m.replace(pair_margin=m.pair_margin * 0 + margin, opt=m.opt.replace(ccd_tolerance=tolerance))
        return collision(m, self.scene.d.replace(geom_xpos=pos, geom_xmat=mat))

    def both(self, margin):
        """Our contacts and MuJoCo's, with this margin for every pair."""
        self.scene.mj.pair_margin[:] = margin
        pos, mat, contacts = self.scene.oracle(self.poses)
        return self.run(margin, 1e-6, pos, mat), contacts


@pytest.fixture(scope="module")
def search():
    return Search()


def test_contacts_equal_mujocos_in_its_order(search):
    ours, contacts = search.both(MARGIN)
    assert_same(ours, contacts)
    assert len({tuple(g // 2) for c in contacts for g in c["geom"]}) == len(PAIRS)


def test_contacts_without_margin_equal_mujocos_except_ties(search):
    ours, contacts = search.both(0.0)
    for pair in range(len(PAIRS)):
        same = []
        for i, c in enumerate(contacts):
            mine, theirs = of_pair(ours.contact.geom[i], pair), of_pair(c["geom"], pair)
            same.append(
                mine.sum() == theirs.sum()
                and np.allclose(np.asarray(ours.contact.dist)[i][mine], c["dist"][theirs], rtol=0, atol=1e-9)
                and np.allclose(np.asarray(ours.contact.pos)[i][mine], c["pos"][theirs], rtol=0, atol=1e-9)
            )
        assert np.mean(same) > (0.7 if pair < NTIES else 0.99)


def of_pair(geom, pair):
    return np.all(np.asarray(geom) == [2 * pair, 2 * pair + 1], axis=-1)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [("cylinder", "box"), ("cube", "box")])
def test_aligned_shapes_touch_in_the_middle_of_their_faces(kinds):
    off = OFF.replace('"disable"', '"disable" multiccd="disable"')
    scene = make_scene(pair_xml([kinds], MARGIN, off))
    qpos = np.zeros((1, 14))
    qpos[:, [3, 10]], qpos[:, 9] = 1, 0.55
    pos, mat, contacts = scene.oracle(qpos)
    assert len(contacts[0]["dist"])
    assert_same(scene.run(pos, mat), contacts)


@pytest.mark.slow
def test_height_fields():
    rng = np.random.default_rng(7)
    geoms = ('type="ellipsoid" size=".3 .2 .25"', 'size=".3"')
    bodies = "".join(f"<body><freejoint/><geom {g}/></body>" for g in geoms)
    heights = " ".join(f"{x:.3f}" for x in rng.uniform(0, 1, 20))
    xml = f"""<mujoco><option><flag nativeccd="disable"/></option><asset>
      <hfield name="h" nrow="4" ncol="5" size="1 .8 .3 .1" elevation="{heights}"/></asset>
      <worldbody><geom type="hfield" hfield="h"/>{bodies}</worldbody></mujoco>"""
    scene = make_scene(xml, max_contacts=60)
    qpos = random_qpos(rng, 8, 2, 0.4) + np.array([0, 0, 0.3, 0, 0, 0, 0] * 2)
    pos, mat, contacts = scene.oracle(qpos)
    assert min(len(c["dist"]) for c in contacts) > 2
    assert_same(scene.run(pos, mat), contacts)


@pytest.mark.slow
def test_distance_reaches_distmax(search):
    scene, data = search.scene, mujoco.MjData(search.scene.mj)
    pos, mat, _ = scene.oracle(search.poses[:10])
    pairs = np.arange(2 * len(PAIRS)).reshape(-1, 2)[::3]
    at = lambda p, r: geom_distance(scene.m, scene.d.replace(geom_xpos=p, geom_xmat=r), *pairs.T, 0.5)  # noqa: E731
    ours, fromto = jax.jit(jax.vmap(at))(pos, mat)
    for i in range(10):
        data.geom_xpos[:], data.geom_xmat[:] = pos[i], mat[i]
        for k, (g1, g2) in enumerate(pairs):
            segment = np.zeros(6)
            dist = mujoco.mj_geomDistance(scene.mj, data, g1, g2, 0.5, segment)
            np.testing.assert_allclose(ours[i, k], dist, rtol=0, atol=1e-8)
            np.testing.assert_allclose(fromto[i, k], segment, rtol=0, atol=1e-8)


@pytest.mark.slow
def test_derivatives_equal_central_differences(search):
    pos, mat, _ = search.scene.oracle(search.poses)
    direction = np.random.default_rng(2).standard_normal(pos.shape)
    fine, h = 1e-12, 1e-4

    def along(t, pos, mat, direction):
        return search.single(0.0, fine, pos + t * direction, mat).contact

    derivative = jax.jit(jax.vmap(lambda *args: jax.jvp(lambda t: along(t, *args), (0.0,), (1.0,))[1]))
    exact = derivative(pos, mat, direction)
    plus, minus = [search.run(0.0, fine, pos + t * direction, mat).contact for t in (h, -h)]
    same = np.all(np.asarray(plus.geom) == np.asarray(minus.geom), axis=-1) & (np.asarray(plus.geom)[..., 0] >= 0)
    assert same.sum() > 50
    for field in ("dist", "pos", "frame"):
        mine, ends = np.asarray(getattr(exact, field)), [np.asarray(getattr(c, field)) for c in (plus, minus)]
        assert np.isfinite(mine).all()
        central = (ends[0] - ends[1]) / (2 * h)
        close = np.abs(mine - central) < 1e-2 * (1 + np.abs(central))
        assert close.reshape(*same.shape, -1).all(axis=-1)[same].mean() > 0.8


def test_the_flag_does_not_change_programs_without_searches():
    body = '<body><freejoint/><geom size=".1"/></body>'
    steps = []
    for flag in ("enable", "disable"):
        xml = f'<mujoco><option><flag nativeccd="{flag}"/></option><worldbody>{body}{body}</worldbody></mujoco>'
        m = jaxsim.load_model(xml)
        steps.append(str(jax.make_jaxpr(step_by_stages)(m, jaxsim.make_data(m))))
    assert steps[0] == steps[1]
