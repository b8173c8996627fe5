"""Updates of PPO over two emulated devices, in a process of their own."""

import json
import os
import subprocess
import sys

import pytest

from tests.paths import ROOT

PROGRAM = """
import json, re, sys
sys.path.insert(0, "training_examples")
import jax, numpy as np
import ppo

small = dict(env="stub", worlds=8, unroll=4, epochs=2, minibatches=2, hidden=(8,))
trainer = ppo.Trainer(ppo.Settings(**small, devices=2))
run = trainer.start()
compiled = trainer.update.lower(run).compile()
pattern = r" (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)(?:-start)?[(]"
found = re.findall(pattern, compiled.as_text())
after, log = compiled(run)
shares = [jax.tree.map(lambda x: np.asarray(x.addressable_shards[i].data), after.params) for i in range(2)]
try:
    ppo.Trainer(ppo.Settings(**small, devices=5))
    refused = ""
except SystemExit as error:
    refused = str(error)
print(json.dumps({
    "devices": len(after.world.done.sharding.device_set),
    "worlds_per_device": after.world.done.addressable_shards[0].data.shape[0],
    "collectives": {name: found.count(name) for name in sorted(set(found))},
    "differ": sum(np.any(a != b) for a, b in zip(*map(jax.tree.leaves, shares), strict=True)).item(),
    "rewards": float(log["reward"]),
    "refused": refused,
}))
"""


@pytest.fixture(scope="module")
def report():
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=4"
    env = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, encoding="utf-8", cwd=ROOT, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_run_uses_the_devices_it_is_given(report):
    assert (report["devices"], report["worlds_per_device"]) == (2, 4)
    assert report["rewards"] != 0


def test_parameters_stay_equal_on_all_devices(report):
    assert report["differ"] == 0


def test_a_step_of_the_optimiser_has_one_all_reduce(report):
    """And one for the log; all-gathers are of scales of advantages, once an epoch, and of moments, once an update."""
    assert report["collectives"] == {"all-gather": 2, "all-reduce": 2}


def test_more_devices_than_there_are_is_refused(report):
    assert report["refused"] == "--devices 5: JAX has 4"


@pytest.mark.slow
def test_an_update_over_two_processes_has_one_all_reduce():
    command = [
        sys.executable,
        "training_examples/over_hosts.py",
        "--processes",
        "2",
        "--devices",
        "2",
        "--updates",
        "2",
    ]
    env = os.environ | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=ROOT, env=env, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "4 devices of 2 processes; collectives of an update: ['all-reduce']" in done.stdout
    costs = [float(line.split()[-1]) for line in done.stdout.splitlines() if line.startswith("update")]
    assert len(costs) == 2 and costs[1] < costs[0]
