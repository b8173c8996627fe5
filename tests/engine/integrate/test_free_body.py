"""Free bodies under implicitfast, whose midpoint is found by a kernel of its own on a CPU."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

import jaxsim

SPINNING = """<mujoco><option integrator="implicitfast"/><worldbody><body><freejoint/>
  <geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>"""


def test_a_model_that_is_a_constant_of_the_program_steps_as_an_argument_does():
    """XLA ends the process where it finds a constant among the operands of such a kernel."""
    m = jaxsim.load_model(SPINNING)
    d = jaxsim.make_data(m)
    spins = jnp.linspace(-3, 3, 24).reshape(4, 6)
    worlds = jax.vmap(lambda qvel: d.replace(qvel=qvel))(spins)

    def three_steps(m, worlds):
        step = jax.vmap(jaxsim.step, in_axes=(None, 0))
        return jax.lax.scan(lambda d, _: (step(m, d), None), worlds, None, 3)[0]

    constant = jax.jit(lambda worlds: three_steps(m, worlds))(worlds)
    argument = jax.jit(three_steps)(m, worlds)
    np.testing.assert_allclose(constant.qvel, argument.qvel, rtol=1e-12)


def test_in_a_large_model_only_bodies_that_a_constraint_pulls_take_the_plain_update():
    """Sparse rows: two of forty bodies are connected, a third to the world."""
    ball = '<body name="{0}" pos="{1} 0 0"><freejoint/><geom type="box" size=".02 .04 .07" contype="0"/></body>'
    bodies = "".join(ball.format(f"b{i}", 0.3 * i) for i in range(40))
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><option integrator="implicitfast" tolerance="1e-14"/>
      <worldbody>{bodies}</worldbody><equality><connect body1="b3" body2="b4" anchor=".15 0 0"/>
      <connect body1="b9" anchor="0 .1 0"/></equality></mujoco>""")
    m = jaxsim.load_model(model)
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(0).normal(size=model.nv)
    d = jaxsim.make_data(m).replace(qvel=data.qvel.copy())
    assert d.efc.layout.sparse
    d = jax.jit(jaxsim.step)(m, d)
    mujoco.mj_step(model, data)
    np.testing.assert_allclose(d.qvel, data.qvel, atol=1e-9)
    np.testing.assert_allclose(d.qpos, data.qpos, atol=1e-9)
