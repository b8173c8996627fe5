def manifold(kinds, hulls, rows, a, b, first):
    import jax.numpy as jnp

    z = jnp.zeros((5, 3), a.pos.dtype)
    return jnp.array(False), z, z, jnp.zeros(5, bool)
