"""Distances between geoms against mj_geomDistance, and their derivatives."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.collision.distance import geom_distance
from tests.engine.collision.scenes import random_qpos
from validation.models.geoms import ASSETS, GEOMS

KINDS = ("plane", "sphere", "capsule", "ellipsoid", "cylinder", "box", "hull")
FIRST, SECOND = [x.reshape(-1) for x in np.meshgrid(*[np.arange(len(KINDS))] * 2, indexing="ij")]
PAIRS = [(i, j) for i, j in zip(FIRST, SECOND, strict=True) if i != j]
FIRST, SECOND = np.array(PAIRS).T
LIMITS = np.where(np.arange(45) % 3 == 0, 0.3, 10.0)


def scene_xml():
    geoms = [f'<geom {GEOMS[k]} contype="0" conaffinity="0"/>' for k in KINDS]
    bodies = [g if "plane" in g else f"<body><freejoint/>{g}</body>" for g in geoms]
    return f"<mujoco><asset>{ASSETS}</asset><worldbody>{''.join(bodies)}</worldbody></mujoco>"


@pytest.fixture(scope="module")
def measured():
    """Ours, the oracle's, and whether the oracle's distance is the length of its segment; else its search failed."""
    mj = mujoco.MjModel.from_xml_string(scene_xml())
    m = jaxsim.from_mujoco(mj)
    d = jaxsim.make_data(m)
    rng = np.random.default_rng(0)
    qpos = np.concatenate([random_qpos(rng, 15, len(KINDS) - 1, s) for s in (0.2, 0.5, 1.5)])
    data, pos, mat = mujoco.MjData(mj), [], []
    dist, fromto = np.zeros((len(qpos), len(PAIRS))), np.zeros((len(qpos), len(PAIRS), 6))
    for k, q in enumerate(qpos):
        data.qpos[:] = q
        mujoco.mj_kinematics(mj, data)
        pos.append(data.geom_xpos.copy())
        mat.append(data.geom_xmat.copy())
        for p, (i, j) in enumerate(PAIRS):
            dist[k, p] = mujoco.mj_geomDistance(mj, data, i, j, LIMITS[k], fromto[k, p])

    def run(pos, mat, far):
        return geom_distance(m, d.replace(geom_xpos=pos, geom_xmat=mat), FIRST, SECOND, far)

    ours = jax.jit(jax.vmap(run))(np.array(pos), np.array(mat), LIMITS)
    found = np.any(fromto != 0, axis=-1)
    length = np.linalg.norm(fromto[..., 3:] - fromto[..., :3], axis=-1)
    sound = ~found | (np.abs(length - np.abs(dist)) < 1e-6) | (dist == LIMITS[:, None])
    return (m, d, run), (np.array(pos), np.array(mat), qpos), [np.asarray(x) for x in ours], dist, fromto, sound


def nearby(mj, pair, q, limit, rng):
    """The oracle's distances of a pair at poses that differ from `q` by rounding and next to nothing."""
    data, out = mujoco.MjData(mj), []
    for shift in np.repeat([1e-15, 1e-13, 1e-11, 1e-9], 40):
        data.qpos[:] = q + shift * rng.standard_normal(len(q))
        mujoco.mj_kinematics(mj, data)
        out.append(mujoco.mj_geomDistance(mj, data, *pair, limit, None))
    return np.array(out)


def test_distances_equal_mujocos(measured):
    (*_, qpos), ours, dist, _, sound = measured[1:]
    assert sound.mean() > 0.99  # MuJoCo's search for the distance fails for some flat simplices
    mj, rng = mujoco.MjModel.from_xml_string(scene_xml()), np.random.default_rng(0)
    differ = np.argwhere((np.abs(ours[0] - dist) > 1e-6) & sound)
    assert len(differ) < 0.005 * dist.size
    # where rounding decides the search's way, the oracle itself gives our number close by
    ties = [np.abs(nearby(mj, PAIRS[p], qpos[k], LIMITS[k], rng) - ours[0][k, p]).min() < 1e-6 for k, p in differ]
    assert np.sum(np.logical_not(ties)) <= 2 and np.abs(ours[0] - dist)[sound].max() < 2e-3
    assert (dist < 0).any() and (dist == LIMITS[:, None]).any() and ((dist > 0) & (dist < LIMITS[:, None])).any()


def test_segments_equal_mujocos(measured):
    *_, ours, _, fromto, sound = measured
    gap = np.abs(ours[1] - fromto).max(axis=-1)[sound]
    assert np.quantile(gap, 0.99) < 1e-5  # where a surface is curved the search ends within 1e-6 of the distance


def test_the_segment_is_as_long_as_the_distance(measured):
    *_, ours, _, _, _ = measured
    near = np.any(ours[1] != 0, axis=-1) & (ours[0] < LIMITS[:, None])
    length = np.linalg.norm(ours[1][..., 3:] - ours[1][..., :3], axis=-1)
    np.testing.assert_allclose(length[near], np.abs(ours[0][near]), rtol=0, atol=2e-6)


def test_numbers_for_ids_give_numbers(measured):
    (m, d, _), (pos, mat, _), ours, *_ = measured
    d = d.replace(geom_xpos=jnp.asarray(pos[0]), geom_xmat=jnp.asarray(mat[0]))
    dist, fromto = geom_distance(m, d, 1, 2, LIMITS[0])
    p = PAIRS.index((1, 2))
    assert dist.shape == () and fromto.shape == (6,)
    np.testing.assert_allclose(dist, ours[0][0, p])
