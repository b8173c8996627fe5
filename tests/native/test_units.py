"""Long functions divided into units, which compile at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsim.native import c_source, compiler, vectors
from jaxsim.native.core_program import core_program
from jaxsim.native.jaxpr import CORE, flatten
from jaxsim.native.stage import stage
from tests.native.test_c_source import needs_compiler

X = np.linspace(-1.0, 2.0, 40).reshape(8, 5)


def passes_on(x):
    """Return arrays that later operations read: scalars, views, parts of results, and one that a loop overwrites."""
    low, rows = x.min(), jnp.flip(x[1:7], 0)
    y = jnp.sin(x) @ jnp.cos(x).T + low
    z = lax.fori_loop(0, 8, lambda i, z: z.at[i].add(z[7 - i] * low), y)
    some = lax.cond(low < 0, lambda: z[0] + 1, lambda: z[1])
    total = jnp.concatenate([some, jnp.sort(y[2]), rows.sum(0)])
    return total * jnp.where(rows[0, 0] > 0, 2.0, low), z.T, jnp.linalg.cholesky(y @ y.T + jnp.eye(8)), rows


@needs_compiler
@pytest.mark.parametrize("batched", [False, True])
def test_a_function_in_units_computes_what_it_does_whole(batched, monkeypatch):
    monkeypatch.setattr(c_source, "LENGTH", 300)
    monkeypatch.setattr(vectors, "LENGTH", 300)
    sources = []
    made = compiler.shared_library
    monkeypatch.setattr(compiler, "shared_library", lambda source, *x: sources.append(source) or made(source, *x))
    if batched:
        x = jnp.stack([X, X[::-1], X / 3])
        found = jax.jit(jax.vmap(stage(passes_on, "wide")))(x)
        want = jax.vmap(passes_on)(x)
    else:
        found, want = jax.jit(core_program(passes_on))(jnp.asarray(X)), passes_on(jnp.asarray(X))
    assert max(source.count(compiler.UNIT) for source in sources) > 4
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)  # other rounding of sums


def test_a_unit_ends_before_a_call_when_half_as_long(monkeypatch):
    shape = jax.ShapeDtypeStruct((5,), jnp.float32)

    def function(x):
        for _ in range(6):
            x = lax.cumsum(jnp.sin(x))
        y = jax.ffi.ffi_call("jaxsim_0", shape)(x)
        for _ in range(6):
            y = lax.cumsum(jnp.cos(y))
        return y

    flat = flatten(jax.make_jaxpr(function)(shape), CORE)
    (whole, _), length = c_source.function_units("f", flat), len("".join(c_source.function_units("f", flat)))
    assert "cos" in whole
    monkeypatch.setattr(c_source, "LENGTH", length)
    assert len(c_source.function_units("f", flat)) == 2
    monkeypatch.setattr(c_source, "LENGTH", 0.75 * length)
    before, after, _ = c_source.function_units("f", flat)
    assert "sin" in before and "cos" not in before
    assert "cos" in after and "jaxsim_0" in after
