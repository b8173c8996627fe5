"""Two processes on one machine with `jax.distributed`: a sharded batch steps as on one process, to the bit."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
NWORLD, NSTEP = 8, 3
CODE = """
import sys
import jax
import jax.numpy as jnp
import numpy as np

rank, count, port, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
jax.config.update("jax_num_cpu_devices", 4 // count)
if count > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", count, rank)
import jaxsim

m = jaxsim.load_model(sys.argv[5])
assert len(jax.devices()) == 4 and jax.process_count() == count
own = NWORLD // count
velocity = np.random.default_rng(0).normal(size=(NWORLD, m.nv)).astype(np.float32)[rank * own : (rank + 1) * own]
d = jaxsim.make_data(m)
worlds = jax.tree.map(lambda x: jnp.stack([x] * own), d).replace(qvel=velocity)
step = jaxsim.over_devices(jax.vmap(jaxsim.step, in_axes=(None, 0)))
worlds = jaxsim.shard(worlds)
m = jaxsim.replicate(m)
for _ in range(NSTEP):
    worlds = step(m, worlds)
local = sorted(worlds.qpos.addressable_shards, key=lambda s: s.index[0].start)
np.save(f"{out}/{count}_{rank}.npy", np.concatenate([np.asarray(s.data) for s in local]))
"""
CODE = CODE.replace("NWORLD", str(NWORLD)).replace("NSTEP", str(NSTEP))
XML = """<mujoco><worldbody><geom type="plane" size="3 3 1"/><body pos="0 0 .2"><freejoint/>
<geom type="capsule" size=".1 .1"/></body></worldbody></mujoco>"""


def start(rank, count, port, folder):
    """A process of a run, with two devices of four, or with all of them."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "0", "NPROC": "4"}
    arguments = [str(x) for x in (rank, count, port, folder, folder / "model.xml")]
    return subprocess.Popen([sys.executable, "-c", CODE, *arguments], env=env, stderr=subprocess.PIPE, encoding="utf-8")


def test_two_processes_give_the_bits_of_one(tmp_path):
    (tmp_path / "model.xml").write_text(XML)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for count in (1, 2):
        runs = [start(rank, count, port, tmp_path) for rank in range(count)]
        for run in runs:
            _, errors = run.communicate(timeout=300)
            assert run.returncode == 0, errors[-2000:]
    alone = np.load(tmp_path / "1_0.npy")
    both = np.concatenate([np.load(tmp_path / f"2_{rank}.npy") for rank in range(2)])
    assert alone.shape == (NWORLD, 7) and len(np.unique(alone, axis=0)) == NWORLD
    np.testing.assert_array_equal(both, alone)
