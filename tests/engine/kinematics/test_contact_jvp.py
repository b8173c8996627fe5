"""Derivatives of products with contact rows, by bodies, against those of the rows themselves."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.core.layout import make_layout
from jaxsim.engine.kinematics.contact_jacobian import contact_jacobian, contact_parts
from jaxsim.engine.solver.operators import contact_times, contact_transpose_times

# two trees with branches, so that contacts have dofs in common, dofs of one side only, and none
SCENE = """<mujoco><worldbody><geom type="plane" size="1 1 1" condim="{0}"/>
<body><freejoint/><geom size=".1" condim="{0}"/>
  <body pos=".3 0 0"><joint axis="0 1 0"/><geom size=".1" condim="{0}"/></body>
  <body pos="0 .3 0"><joint type="ball"/><geom size=".1" condim="{0}"/></body></body>
<body pos="1 0 0"><joint type="slide"/><joint axis="0 0 1"/><geom size=".1" condim="{0}"/></body>
</worldbody></mujoco>"""
PAIRS = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [0, 4], [-1, -1]])


@functools.cache
def scene(condim):
    """Data with contacts at random poses, a direction in which they and the axes move, and the rows as a function."""
    m = jaxsim.load_model(SCENE.format(condim), max_contacts=len(PAIRS))
    layout, d = make_layout(m), jaxsim.make_data(m)
    rng = np.random.default_rng(condim)
    dim = np.where(PAIRS[:, 0] < 0, 0, condim)
    dim[1] = min(condim, 3)
    d = d.replace(contact=d.contact.replace(geom=jnp.asarray(PAIRS, jnp.int32), dim=jnp.asarray(dim, jnp.int32)))
    shapes = {"pos": (len(PAIRS), 3), "frame": (len(PAIRS), 9), "cdof": (m.nv, 6), "subtree_com": (m.nbody, 3)}
    z, dz = ({k: jnp.asarray(rng.standard_normal(s)) for k, s in shapes.items()} for _ in range(2))

    def at(z):
        contact = d.contact.replace(pos=z["pos"], frame=z["frame"])
        moved = d.replace(contact=contact, cdof=z["cdof"], subtree_com=z["subtree_com"])
        return contact_jacobian(m, moved, layout)[0], contact_parts(m, moved, layout)

    x, force = rng.standard_normal(m.nv), rng.standard_normal((len(PAIRS), layout.condim))
    return layout, at, z, dz, x, force


@pytest.mark.parametrize("condim", [1, 3, 4, 6])
def test_products_have_the_derivatives_of_the_rows(condim):
    layout, at, z, dz, x, force = scene(condim)

    def by_bodies(z, x, force):
        return contact_times(layout, *at(z), x), contact_transpose_times(layout, *at(z), force)

    def by_rows(z, x, force):
        return at(z)[0] @ x, jnp.einsum("cij,ci->j", at(z)[0], force)

    got, want = (
        jax.jit(lambda t, f=f: jax.jvp(f, (z, x, force), t))((dz, 2 * x, 3 * force)) for f in (by_bodies, by_rows)
    )
    assert np.abs(want[1][0]).min(axis=1)[0] > 0.01
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), got, want)


def test_products_are_differentiated_backwards():
    layout, at, z, dz, x, force = scene(4)

    def work(z):
        push = contact_transpose_times(layout, *at(z), force)
        return force.reshape(-1) @ contact_times(layout, *at(z), x).reshape(-1), x @ push

    (one, other), (d_one, d_other) = jax.jvp(work, (z,), (dz,))
    np.testing.assert_allclose(one, other, rtol=1e-12)
    np.testing.assert_allclose(d_one, d_other, rtol=1e-12)
    for k in range(2):
        slope = jax.grad(lambda z, k=k: work(z)[k])(z)
        np.testing.assert_allclose(sum(jnp.vdot(slope[n], dz[n]) for n in dz), d_one, rtol=1e-12)


def test_rows_without_parts_are_differentiated_themselves():
    layout, at, z, _, x, force = scene(3)
    rows = at(z)[0]
    direction = jnp.ones_like(rows)
    got = jax.jvp(lambda r: contact_times(layout, r, None, x), (rows,), (direction,))[1]
    np.testing.assert_allclose(got, direction @ x)
    got = jax.jvp(lambda r: contact_transpose_times(layout, r, None, force), (rows,), (direction,))[1]
    np.testing.assert_allclose(got, np.full(layout.nv, force.sum()))
