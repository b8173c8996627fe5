"""Free bodies under implicitfast, whose midpoint is found by a kernel of its own on a CPU."""

import jax
import jax.numpy as jnp
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
