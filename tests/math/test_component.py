"""Joining components: any number of them."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.math import component as c


@pytest.mark.parametrize("count", [1, 3, 8, 9, 10, 11, 22])
@pytest.mark.parametrize("xp", [np, jnp])
def test_join_undoes_split(count, xp):
    x = np.arange(2 * 5 * count, dtype=np.float32).reshape(2, 5, count)
    joined = c.join(c.split(xp.asarray(x)))
    assert isinstance(joined, np.ndarray) == (xp is np)
    np.testing.assert_array_equal(joined, x)
