"""Derivatives of pictures at outlines, against differences of pictures with many rays a pixel."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.viewer.frames import place
from jaxsim.viewer.raycast import render

XML = """
<mujoco>
  <visual><map zfar="8"/></visual>
  <statistic extent="1"/>
  <worldbody>
    <camera pos="0 -3 1.5" xyaxes="1 0 0 0 .447 .894"/>
    <light pos="1 -2 3" dir="-.3 .6 -1" diffuse=".6 .7 .8" castshadow="false"/>
    <geom type="plane" size="3 3 1" rgba=".4 .5 .6 1"/>
    <body><freejoint/>
      <geom name="box" type="box" size=".5 .4 .3" rgba=".8 .4 .2 1"/>
      <geom size=".25" pos=".5 .1 .2" rgba=".1 .9 .2 1"/>
    </body>
  </worldbody>
</mujoco>
"""
WIDTH, HEIGHT = 40, 30


@pytest.mark.slow
def test_with_edges_derivatives_are_those_of_means_over_pixels():
    """The body is partly in the floor, and moves, turns and grows: edges of both kinds move."""
    m = jaxsim.load_model(XML)
    d = jaxsim.make_data(m).replace(qpos=np.array([0, 0, 0.25, 0.9, 0.2, 0.3, 0.1]))
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    weight = np.cos(x / 7) * np.sin(y / 5 + 1)

    def sums(t, **options):
        qpos = d.qpos.at[:3].add(t * np.array([0.3, 0.5, 0.2])).at[4].add(0.4 * t)
        wider = m.replace(geom_size=m.geom_size.at[m.name2id("geom", "box")].multiply(1 + 0.3 * t))
        image = render(wider, place(wider, d.replace(qpos=qpos)), 0, WIDTH, HEIGHT, **options)
        return jnp.array([(image.rgb.mean(2) * weight).sum(), (image.depth * weight).sum()])

    many, h = jax.jit(lambda t: sums(t, samples=32)), 0.02
    wanted = (many(h) - many(-h)) / (2 * h)
    found = jax.jit(jax.jacrev(lambda t: sums(t, samples=4, edges=True)))(0.0)
    np.testing.assert_allclose(found, wanted, rtol=0.05)
    without = jax.jit(jax.jacfwd(lambda t: sums(t, samples=4)))(0.0)
    assert (np.abs(without / wanted - 1) > 0.2).all()


def test_several_rays_of_a_pixel_are_averaged():
    m = jaxsim.load_model(XML)
    d = place(m, jaxsim.make_data(m))
    fine, coarse = render(m, d, 0, 8, 6), render(m, d, 0, 4, 3, samples=2)
    np.testing.assert_allclose(coarse.depth, fine.depth.reshape(3, 2, 4, 2).mean((1, 3)))
    np.testing.assert_allclose(coarse.rgb, fine.rgb.reshape(3, 2, 4, 2, 3).mean((1, 3)), atol=1e-12)
    np.testing.assert_array_equal(coarse.segmentation, fine.segmentation[1::2, 1::2])
