"""Polygons clipped vertex by vertex, and all at once: the same polygons."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.engine.collision.convex.manifold import clip_in_turn, clip_side_by_side

SIZE = 12


def polygon(rng, count, height):
    """A convex polygon of `count` points about the z axis, in a row of `SIZE`."""
    angle = np.sort(rng.uniform(0, 2 * np.pi, count))
    centre = rng.uniform(-0.5, 0.5, 2)
    points = np.zeros((SIZE, 3))
    points[:count] = np.stack([centre[0] + np.cos(angle), centre[1] + np.sin(angle), np.full(count, height)], axis=1)
    return jnp.asarray(points), jnp.int32(count)


@pytest.mark.parametrize("subject_size", [2, 3, 5, SIZE])
def test_clipping_in_turn_gives_what_clipping_side_by_side_gives(subject_size):
    rng, down = np.random.default_rng(subject_size), jnp.array([0.0, 0, -1])
    runs = [jax.jit(clip) for clip in (clip_in_turn, clip_side_by_side)]
    counts = []
    for _ in range(20):
        clipper, subject = polygon(rng, int(rng.integers(3, SIZE + 1)), 0.0), polygon(rng, subject_size, 0.1)
        (mine, n), (theirs, count) = (run(clipper, subject, down) for run in runs)
        assert n == count
        np.testing.assert_allclose(mine[: int(n)], theirs[: int(count)], rtol=0, atol=1e-12)
        counts.append(int(n))
    assert max(counts) >= 2
