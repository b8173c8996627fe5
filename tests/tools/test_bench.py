"""The figures of `jaxsim bench` that need no measurement."""

import jax

import jaxsim
from jaxsim.tools.bench import count_operations

CYLINDERS = """<mujoco><worldbody><body><freejoint/><geom type="cylinder" size=".1 .1"/></body>
  <body pos="0 0 .15"><freejoint/><geom type="cylinder" size=".1 .1"/></body></worldbody></mujoco>"""


def test_operations_of_searches_are_counted():
    m = jaxsim.load_model(CYLINDERS)
    d = jaxsim.make_data(m)
    alone = count_operations(jax.make_jaxpr(jaxsim.step)(m, d).jaxpr)
    apart = count_operations(jax.make_jaxpr(jaxsim.step)(*without_collisions()).jaxpr)
    assert alone > apart + 300  # a search by GJK and EPA alone has more


def without_collisions():
    m = jaxsim.load_model(CYLINDERS.replace('size=".1 .1"', 'size=".1 .1" contype="0" conaffinity="0"'))
    return m, jaxsim.make_data(m)
