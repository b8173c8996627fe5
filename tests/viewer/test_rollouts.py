"""Controls of rollouts: drawn, held, loaded."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.viewer import rollouts

SERVO = """<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody><actuator>
  <motor joint="j" ctrlrange="2 3"/><motor joint="j"/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(SERVO)


def test_random_controls_stay_in_their_ranges(m):
    draw = rollouts.random_controls(m, rollouts.RolloutPlan(), seed=1)
    values = np.array(draw(0, jnp.zeros((500, 2))))
    assert values[:, 0].min() >= 2 and values[:, 0].max() <= 3 and np.ptp(values[:, 0]) > 0.9
    assert values[:, 1].min() >= -1 and values[:, 1].max() <= 1 and np.ptp(values[:, 1]) > 1.8


def test_random_controls_hold_for_some_steps_and_differ_between_worlds(m):
    draw = rollouts.random_controls(m, rollouts.RolloutPlan(hold=3), seed=1)
    steps = [np.array(draw(i, jnp.zeros((4, 2)))) for i in range(4)]
    assert np.array_equal(steps[0], steps[2]) and not np.array_equal(steps[2], steps[3])
    assert len(np.unique(steps[0][:, 0])) == 4


def test_batch_starts_every_world_alike(m):
    d = jaxsim.make_data(m, nworld=3)
    assert d.qpos.shape == (3, 1) and d.contact.dist.shape == (3, m.max_contacts)


def test_array_of_controls_without_an_axis_of_worlds_is_for_all(m, tmp_path):
    np.save(tmp_path / "u.npy", np.arange(6.0).reshape(3, 2))
    values = rollouts.load_controls(tmp_path / "u.npy", m, nworld=5)
    assert np.array_equal(rollouts.given_controls(values)(1, jnp.zeros((5, 2))), np.tile([2.0, 3.0], (5, 1)))


@pytest.mark.parametrize(("nstep", "every", "nframe"), [(10, 1, 10), (10, 3, 4), (9, 3, 3), (1, 5, 1)])
def test_last_frame_may_be_short(nstep, every, nframe):
    assert rollouts.RolloutPlan(nstep=nstep, every=every).nframe == nframe
