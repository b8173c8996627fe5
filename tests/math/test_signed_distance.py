"""Signed distance fields: the same in numpy and JAX, finite wherever a formula has a corner."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.core.plugins import PLUGINS
from jaxsim.math.signed_distance import FIELDS

CORNERS = np.array([[0.0, 0, 0], [0, 0, 0.3], [0.35, 0, 0], [0, 0.26, -0.5], [-0.4, 0, 0], [0, 1e-9, 0], [3, 0, 0]])


@pytest.mark.parametrize("name", FIELDS)
def test_fields_agree_and_their_derivatives_are_finite(name):
    field, attributes = FIELDS[name], np.array(PLUGINS[name].defaults)
    points = np.concatenate([CORNERS, np.random.default_rng(0).uniform(-1, 1, (200, 3))])

    def distance(p, attributes):
        return field(p[0], p[1], p[2], *attributes)

    value, slopes = jax.jit(jax.vmap(jax.value_and_grad(distance, (0, 1)), (0, None)))(jnp.asarray(points), attributes)
    np.testing.assert_allclose(value, field(*points.T, *attributes), rtol=0, atol=1e-12)
    curvature = jax.jit(jax.vmap(jax.hessian(distance), (0, None)))(jnp.asarray(points), attributes)
    assert all(np.all(np.isfinite(x)) for x in (*slopes, curvature))
