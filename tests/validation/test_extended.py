"""Jaxprs evaluated in floats of 80 bits: every rule beside JAX's own evaluation, and the precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxsim
from validation import extended

X = np.random.default_rng(0).uniform(0.1, 0.9, (4, 3, 3))
POSITIVE = X @ X.swapaxes(1, 2) + np.eye(3)
BALL = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 .09"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""


def halved_until_small(x):
    """A loop whose worlds end at different times."""
    return lax.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x)


def pieces(x):
    first, second = jnp.split(x, [1], axis=-1)
    return jnp.concatenate([second, first[..., ::-1]], -1), jnp.stack([x, -x]), jnp.tile(x, (2, 1, 1))


def put(x):
    at = jnp.array([2, 0, 2, 9])
    y = x[:, 0]
    return (
        y.at[:, at].set(7.0, mode="drop"),
        y.at[:, at].add(x[0, 0, 0], mode="drop"),
        y.at[:, at].max(0.5, mode="drop"),
    )


def taken(x):
    at = jnp.array([[2, 0], [9, 1]])
    fill = x.at[:, 0, at].get(mode="fill", fill_value=5.0)
    start = jnp.argmax(x[0, 0])
    return fill, jnp.take_along_axis(x, jnp.argsort(x, -1), -1), lax.dynamic_slice(x, (start, 0, 1), (1, 2, 2))


def replaced(x):
    return lax.dynamic_update_slice(x, -x[:2, :1, :1], (1, jnp.argmin(x[0, 0]), 0)), jnp.pad(
        x, ((1, 0), (0, 2), (0, 0))
    )


def triangles(x):
    lower = jnp.linalg.cholesky(POSITIVE)
    return [
        lax.linalg.triangular_solve(
            lower if low else lower.swapaxes(1, 2), x, left_side=left, lower=low, transpose_a=turned
        )
        for low in (True, False)
        for left in (True, False)
        for turned in (True, False)
    ]


def swept(x):
    return lax.scan(lambda c, row: (c + row, c * row), x[0], x, reverse=True), lax.associative_scan(jnp.multiply, x)


FUNCTIONS = {
    "elementwise": lambda x: (
        jnp.sin(x) ** 2.5,
        jnp.arctan2(x, 1 - x),
        jnp.expm1(x) / jnp.sqrt(x),
        jnp.tanh(jnp.log1p(x)) + jnp.sinh(x) * jnp.cosh(x) - jnp.exp2(x),
        jnp.arcsin(x) + jnp.arccos(x) * jnp.arctan(x) + lax.rsqrt(x) * jnp.log(x) + jnp.floor(3 * x) - jnp.ceil(2 * x),
        x**-3,
        jnp.clip(x, 0.2, 0.5),
    ),
    "integers": lambda x: ((10 * x).astype(int) // 3, (10 * x).astype(int) % 3, jnp.round(10 * x).astype(int) >> 1),
    "pieces": pieces,
    "taken": taken,
    "put": put,
    "replaced": replaced,
    "reductions": lambda x: (x.sum((0, 2)), x.prod(1), x.max(0), x.min(2), (x > 0.5).any(0), (x > 0.2).all(1)),
    "folded": lambda x: lax.reduce((x, x * x), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0, 2)),
    "cumulated": lambda x: (jnp.cumsum(x, 1), lax.cumsum(x, 2, reverse=True), lax.cummax(x, 1), jnp.cumprod(x, 0)),
    "sorted": lambda x: (jnp.sort(x, -1), jnp.lexsort((x[0, 0], jnp.round(x[0, 1])))),
    "products": lambda x: (jnp.einsum("bij,bkj->bki", x, x), jnp.tensordot(x, x, [(1, 2), (1, 2)]), x[0] @ x[1, 0]),
    "factors": lambda x: (jnp.linalg.cholesky(POSITIVE * x[0, 0, 0]), jnp.linalg.solve(POSITIVE, x), *triangles(x)),
    "eigenvalues": lambda x: (jnp.linalg.eigh(POSITIVE)[0], jnp.abs(jnp.linalg.eigh(POSITIVE)[1])),
    "loops": lambda x: (jax.vmap(halved_until_small)(x), halved_until_small(x)),
    "scans": swept,
    "branches": lambda x: lax.switch((3 * x[0, 0, 0]).astype(int), [jnp.sin, jnp.cos, jnp.tan], x),
    "derivatives": lambda x: jax.jvp(lambda x: jnp.linalg.solve(x + jnp.eye(3), x), (x,), (x,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_evaluation_agrees_with_jax(name):
    function = FUNCTIONS[name]
    expected = jax.tree.leaves(jax.jit(function)(X))
    for ours, theirs in zip(extended.evaluated(function, X)(X), expected, strict=True):
        assert ours.dtype == (extended.WIDE if theirs.dtype == float else theirs.dtype)
        np.testing.assert_allclose(ours.astype(theirs.dtype), theirs, rtol=1e-13, atol=1e-15)


def test_rounding_is_that_of_long_double():
    small = 64 * np.finfo(extended.WIDE).eps
    out = extended.evaluated(lambda x: ((1 + x) - 1, jnp.sqrt(1 + x) ** 2 - 1), 1.0)(small)
    np.testing.assert_allclose(np.array(out) / small, 1, atol=0.05)


def test_step_in_contact_agrees_with_the_compiled_one_to_rounding():
    m = jaxsim.load_model(BALL)
    d = jaxsim.make_data(m)
    worlds = jax.vmap(lambda v: d.replace(qvel=d.qvel + v))(jnp.linspace(-1, 1, 3))
    step = jax.vmap(jaxsim.step, (None, 0))
    expected = jax.tree.leaves(jax.jit(step)(m, worlds))
    for ours, theirs in zip(extended.evaluated(step, m, worlds)(m, worlds), expected, strict=True):
        np.testing.assert_allclose(ours.astype(theirs.dtype), theirs, rtol=1e-9, atol=1e-9)


def test_unknown_operations_are_named():
    with pytest.raises(NotImplementedError, match="fft"):
        extended.evaluated(jnp.fft.fft, X)(X)
