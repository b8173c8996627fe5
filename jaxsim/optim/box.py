"""Quadratic programs of the backward pass: controls within limits, and their gains."""

import jax
import jax.numpy as jnp

from jaxsim.math.safe import Array
from jaxsim.native.linalg import solve
from jaxsim.optim.progress import negligible

ITERATIONS = 12  # projected Newton steps
NATIVE_CONTROLS = 16  # controls up to which the backward pass is a native program


def control_law(h: Array, g: Array, by_state: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Change of the controls (nu,) that minimises x' h x / 2 + g' x within limits, and its derivative by the state."""
    whole = -solved(h, jnp.column_stack([g, by_state]))
    x = whole[:, 0]

    def limited(_: None) -> tuple[Array, Array]:
        x, free = box_newton(h, g, low, high)
        gain = solved(jnp.where(free[:, None] & free[None], h, jnp.eye(len(g), dtype=h.dtype)), by_state)
        return x, -jnp.where(free[:, None], gain, 0)

    is_minimum = jnp.all((low < x) & (x < high)) & (g @ x <= 0)
    return jax.lax.cond(is_minimum, lambda _: (x, whole[:, 1:]), limited, None)


def solved(a: Array, b: Array) -> Array:
    """Solve a x = b; of few rows by operations that native programs know, of more by a library."""
    return solve(a, b) if len(a) <= NATIVE_CONTROLS else jnp.linalg.solve(a, b)


def box_newton(h: Array, g: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Minimise x' h x / 2 + g' x in low <= x <= high by projected Newton steps; return x and which are not clamped."""

    def value(x: Array) -> Array:
        return 0.5 * x @ h @ x + g @ x

    def free_at(x: Array) -> Array:
        gradient = h @ x + g
        return ~(((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0)))

    def improve(x: Array, _: None) -> tuple[Array, None]:
        free = free_at(x)
        gradient = jnp.where(free, h @ x + g, 0)
        matrix = jnp.where(free[:, None] & free[None], h, jnp.eye(len(g), dtype=h.dtype))
        direction = -solved(matrix, gradient[:, None])[:, 0]
        trials = jnp.clip(x + jnp.asarray(0.5 ** jnp.arange(8), x.dtype)[:, None] * direction, low, high)
        values = jax.vmap(value)(trials)
        best = jnp.argmin(values)
        return jnp.where(values[best] < value(x), trials[best], x), None

    def is_open(s: tuple) -> Array:
        i, x = s
        free, gradient = free_at(x), h @ x + g
        small = negligible(g.dtype) * (jnp.abs(g) + jnp.abs(h) @ jnp.abs(x))
        return (i < ITERATIONS) & jnp.any(free & (jnp.abs(gradient) > small))

    start = jnp.clip(jnp.zeros_like(g), low, high)
    _, x = jax.lax.while_loop(is_open, lambda s: (s[0] + 1, improve(s[1], None)[0]), (0, start))
    return x, free_at(x)
