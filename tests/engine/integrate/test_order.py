"""Order of convergence of each integrator: how fast errors fall as steps are halved, on a smooth system.

Its joints are hinges: where orientations are integrated, MuJoCo's RK4 averages velocities of different frames and is
of second order.
"""

import functools

import chex
import jax
import numpy as np
import pytest

import jaxsim

PENDULUM = """<mujoco><option integrator="{}"><flag contact="disable"/></option><worldbody>
  <body pos="0 0 1"><joint axis="0 1 0" damping=".05"/><joint axis="1 0 .3"/>
    <geom type="capsule" fromto="0 0 0 .3 .1 0" size=".03"/>
    <body pos=".3 .1 0"><joint axis="0 1 .2" stiffness="2" damping=".1"/><geom size=".06" pos=".2 0 .05"/></body></body>
  </worldbody></mujoco>"""
DURATION = 0.2
ORDERS = {"Euler": 1, "implicit": 1, "implicitfast": 1, "RK4": 4}


@functools.cache
def program(integrator):
    m = jaxsim.load_model(PENDULUM.format(integrator))
    d = jaxsim.make_data(m).replace(qvel=np.array([1.0, -2.0, 3.0]))

    @jax.jit
    def run(m, d, count):
        d = jax.lax.fori_loop(0, count, lambda _, d: jaxsim.step(m, d), d)
        return jax.numpy.concatenate([d.qpos, d.qvel])

    return m, d, run


def end(integrator, counts):
    """Positions and velocities (n, nq + nv) after `DURATION`, made in so many steps each."""
    m, d, run = program(integrator)
    return np.array([run(m.replace(opt=m.opt.replace(timestep=DURATION / n)), d, n) for n in counts])


@pytest.fixture(scope="module")
def truth():
    fine = end("RK4", [800, 1600])
    chex.assert_trees_all_close(fine[0], fine[1], atol=1e-11)
    return fine[1]


@pytest.mark.parametrize("integrator", ORDERS)
def test_errors_fall_with_the_order_of_the_integrator(integrator, truth):
    counts = [20, 40, 80] if ORDERS[integrator] > 1 else [100, 200, 400]
    errors = np.abs(end(integrator, counts) - truth).max(1)
    measured = np.log2(errors[:-1] / errors[1:])
    np.testing.assert_allclose(measured, ORDERS[integrator], atol=0.1 * ORDERS[integrator], err_msg=str(errors))
