"""Worlds split over eight emulated devices, in a process of its own."""

import json
import os
import subprocess
import sys

import pytest

from tests.paths import ROOT

PROGRAM = r"""
import json, re
import jax, jax.numpy as jnp, numpy as np
import jaxsim
XML = '''<mujoco><worldbody><geom type="plane" size="1 1 .1"/><body pos="0 0 .099"><freejoint/>
<geom type="box" size=".1 .1 .1"/><body pos=".2 0 0"><joint axis="0 1 0"/><geom size=".05" fromto="0 0 0 .2 0 0"
type="capsule"/></body></body></worldbody></mujoco>'''
m = jaxsim.load_model(XML)
d = jaxsim.make_data(m)
worlds = jax.tree.map(lambda x: jnp.broadcast_to(x, (16, *x.shape)), d)
worlds = worlds.replace(qvel=0.1 * jax.random.normal(jax.random.key(0), worlds.qvel.shape))
step = jax.vmap(jaxsim.step, in_axes=(None, 0))
pairs = [jaxsim.batched()(m, jax.tree.map(lambda x: x[k : k + 2], worlds)) for k in range(0, 16, 2)]
alone = jax.tree.map(lambda *x: jnp.concatenate(x), *pairs)
whole = jaxsim.batched()(m, worlds)
run = jaxsim.over_devices(step)
shared, spread = jaxsim.replicate(m), jaxsim.shard(worlds)
text = run.lower(shared, spread).compile().as_text()
out = run(shared, spread)
plain = jax.jit(step).lower(shared, spread).compile().as_text()
pattern = r"(all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)[(-]"
try:
    jaxsim.shard(jax.tree.map(lambda x: x[:12], worlds))
    refused = ""
except ValueError as error:
    refused = str(error)
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((8,), ("w",))  # its axis is explicit
off = lambda found: float(abs(np.asarray(whole.qvel) - np.asarray(found.qvel)).max())
placed = jax.device_put(worlds, NamedSharding(mesh, P("w")))
explicit = jax.jit(step)(m, placed)
try:
    jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P("w")), out_specs=P("w")))(m, placed)
    checked = ""
except TypeError as error:
    checked = str(error)
mapped = jax.jit(jaxsim.parallel.shard_map(lambda d: step(m, d), mesh, P("w"), P("w")))
by_hand = mapped(placed)
programs = run.lower(shared, spread).as_text(), mapped.lower(placed).as_text()
operands = [re.search(r"manual_axes=\{[^}]*\} \((.*)\) \{", text).group(1) for text in programs]
print(json.dumps({
    "explicit": [list(explicit.qpos.sharding.spec), off(explicit)],
    "by_hand": off(by_hand),
    "checked": checked,
    "empty_operands": [len(re.findall(r"tensor<(?:\d+x)*0x", text)) for text in operands],
    "devices": len(out.qpos.sharding.device_set),
    "worlds_per_device": out.qpos.addressable_shards[0].data.shape[0],
    "contacts": int(out.ncon.min()),
    "equal": all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(out))),
    "off": off(out),
    "collectives": len(re.findall(pattern, text)),
    "collectives_without": len(re.findall(pattern, plain)),
    "refused": refused,
}))
"""


@pytest.fixture(scope="module")
def report():
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=8"
    env = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, encoding="utf-8", cwd=ROOT, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_worlds_are_split_evenly_over_devices(report):
    assert (report["devices"], report["worlds_per_device"]) == (8, 2)


def test_result_is_that_of_one_device_to_the_last_bit(report):
    """With the same number of worlds per device, since XLA orders sums by the size of a batch."""
    assert report["contacts"] > 0
    assert report["equal"]


def test_result_is_that_of_one_batch(report):
    assert report["off"] < 1e-4  # float32, one step


def test_step_has_no_communication_between_devices(report):
    assert report["collectives"] == 0
    assert report["collectives_without"] > 0  # what `over_devices` is for


def test_uneven_batch_is_refused(report):
    assert "12 worlds cannot be split evenly over 8 devices" in report["refused"]


CORES = """
import jax, jaxsim, numpy as np
count = jaxsim.use_cores(2)
m = jaxsim.load_model("models/cartpole.xml")
d = jax.vmap(lambda x: jaxsim.make_data(m).replace(qpos=x))(np.linspace(0, 1, 8)[:, None] * np.ones(m.nq))
step = jax.vmap(jaxsim.step, in_axes=(None, 0))
spread = jaxsim.over_devices(step)
both = spread(jaxsim.replicate(m), jaxsim.shard(d))
spread(jaxsim.replicate(m), both)
assert spread._cache_size() == 1  # results are accepted as inputs without compiling
alone = jaxsim.jit(step)(m, d)
assert len(both.qpos.sharding.device_set) == len(jax.devices()) == count == 2
np.testing.assert_allclose(both.qpos, alone.qpos, rtol=1e-6)
try:
    jaxsim.use_cores(3)
except RuntimeError:
    print("too late")
"""


def test_each_core_becomes_a_device_until_jax_has_started():
    env = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"} | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", CORES], capture_output=True, encoding="utf-8", cwd=ROOT, env=env, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "too late"


def test_worlds_on_an_explicit_mesh_stay_split(report):
    spec, off = report["explicit"]
    assert spec == ["w", None]
    assert off < 1e-5


def test_shard_map_runs_without_its_check_and_the_error_says_so(report):
    assert report["by_hand"] < 1e-5
    assert "jaxsim.parallel.shard_map" in report["checked"] and "over_devices" in report["checked"]


def test_no_operand_of_a_shard_map_is_empty(report):
    """Neither of arguments nor of constants: XLA of jaxlib 0.11.2 ends the process."""
    assert report["empty_operands"] == [0, 0]
