"""Shares of the stages in a step's time."""

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim.tools import stage_times
from jaxsim.viewer.rollouts import batch

XML = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .1"><freejoint/><geom size=".11"/></body>
</worldbody></mujoco>"""


@pytest.mark.skipif(not hasattr(jax.profiler, "ProfileData"), reason="this JAX does not read its own profiles")
def test_every_stage_has_a_share_of_the_time_of_a_step():
    before = jax.config.jax_traceback_in_locations_limit
    m = jaxsim.load_model(XML)
    found = stage_times.time_stages(m, batch(m, 2, None))
    assert set(found.shares) == {*stage_times.GROUPS, stage_times.REST}
    np.testing.assert_allclose(sum(found.shares.values()), 1)
    assert found.shares["collision"] > 0 and found.shares["rows"] > 0 and found.shares["solver"] > 0
    assert found.us > 0 and found.written > 0 and found.launches > 10
    assert jax.config.jax_traceback_in_locations_limit == before
