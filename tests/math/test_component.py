"""Joining components: any number of them, on both sides of the width that XLA stacks in one kernel."""

import jax
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


def test_nine_components_are_joined_in_one_kernel():
    join = jax.jit(lambda q: c.join(c.quat_to_mat(c.split(q))))
    with jax.default_device(jax.devices("cpu")[0]):
        program = join.lower(jnp.ones((5, 4))).compile().as_text()
    main = program[program.index("ENTRY") :]
    assert main.count(" fusion(") == 1 and " concatenate(" not in main
