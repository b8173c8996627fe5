"""Several processes timed at once, one a core."""

import jax
import numpy as np

import jaxsim
from jaxsim import bench, bench_peers, bench_processes

XML = '<mujoco><worldbody><body><joint type="slide"/><geom size="0.1"/></body></worldbody></mujoco>'


def _settings(processes: int) -> bench.Settings:
    return bench.Settings(path="", nstep=5, processes=processes, quiet=True)


def test_worlds_are_divided_among_processes():
    m = jaxsim.load_model(XML)
    worlds = jax.vmap(lambda x: jaxsim.make_data(m).replace(qpos=x))(np.ones((4, 1)))
    figures = bench_processes.measure(m, _settings(2), bench_peers.states_of(worlds))
    assert figures["processes"] == 2 and figures["nworld"] == 4
    assert figures["steps_per_s"] > 0


def test_a_process_that_fails_says_why():
    figures = bench_processes.measure(
        jaxsim.load_model(XML), _settings(2), {"time": np.zeros(2), "nothing": np.zeros(2)}
    )
    assert "AttributeError" in figures["refused"] and "nothing" in figures["refused"]


def test_worlds_that_cannot_be_divided_are_refused():
    figures = bench_processes.measure(None, _settings(2), {"time": np.zeros(3)})
    assert "3 worlds cannot be divided among 2 processes" in figures["refused"]
