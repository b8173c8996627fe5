"""Gains of a linear controller by gradients through steps, with worlds over the devices of several hosts.

One all-reduce averages cost and gradient in each update; steps exchange nothing. On one machine, which starts both
processes itself:

    python training_examples/over_hosts.py --processes 2 --devices 2

On real hosts start it once on each, with the address of the first one:

    python training_examples/over_hosts.py --coordinator HOST:PORT --processes 2 --rank 0    # and 1 on the other

Expected: the cost falls in each update, and the compiled update contains one all-reduce; both are printed.
"""

import argparse
import re
import socket
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import jaxsim
from jaxsim.parallel.devices import AXIS

MODEL = Path(__file__).resolve().parents[1] / "models" / "cartpole.xml"
NSTEP, RATE = 50, 0.1
COLLECTIVES = r" (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)(?:-start)?\("


def cost(gains: jax.Array, m: jaxsim.Model, d: jaxsim.Data) -> jax.Array:
    """Mean squared state of one world over an episode with the control -gains . (qpos, qvel)."""

    def step(d: jaxsim.Data, _: None) -> tuple[jaxsim.Data, jax.Array]:
        state = jnp.concatenate([d.qpos, d.qvel])
        d = jaxsim.step(m, d.replace(ctrl=-(gains @ state)[None]))
        return d, jnp.sum(jnp.square(state))

    return jax.lax.scan(step, d, None, NSTEP)[1].mean()


def update(gains: jax.Array, m: jaxsim.Model, worlds: jaxsim.Data) -> tuple[jax.Array, jax.Array]:
    """Gains after a step against the gradient over all worlds of all devices, and the mean cost before it."""
    value, grad = jax.vmap(jax.value_and_grad(cost), in_axes=(None, None, 0))(gains, m, worlds)
    both = jax.lax.pmean(jnp.append(grad.mean(0), value.mean()), AXIS)
    return gains - RATE * both[:-1], both[-1]


def train(args: argparse.Namespace) -> None:
    """Run this process's part of the training."""
    if args.devices:
        jaxsim.use_cores(args.devices)
    if args.processes > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")  # of effect on a CPU only
        jax.distributed.initialize(args.coordinator, args.processes, args.rank)
    m, mesh = jaxsim.load_model(MODEL), jaxsim.parallel.make_mesh()
    own = args.worlds // args.processes
    random = np.random.default_rng(args.rank)
    d = jaxsim.make_data(m, nworld=own).replace(qpos=random.normal(0, 0.3, (own, m.nq)).astype(np.float32))
    worlds, model, gains = jaxsim.shard(d, mesh), jaxsim.replicate(m, mesh), jaxsim.replicate(np.zeros(4, "f"), mesh)
    body = jaxsim.parallel.shard_map(update, mesh, in_specs=(P(), P(), P(AXIS)), out_specs=P())
    run = jaxsim.jit(body, out_shardings=NamedSharding(mesh, P())).lower(gains, model, worlds).compile()
    if args.rank == 0:
        found = re.findall(COLLECTIVES, run.as_text())
        print(f"{len(jax.devices())} devices of {args.processes} processes; collectives of an update: {found}")
    for i in range(args.updates):
        gains, value = run(gains, model, worlds)
        if args.rank == 0:
            print(f"update {i}: cost {float(value):.4f}", flush=True)


def main(argv: list[str] | None = None) -> int:
    """Train, or start all processes on this machine when none has a rank."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--rank", type=int, help="of this process; without it all processes start on this machine")
    parser.add_argument("--coordinator", help="address and port of the process of rank 0")
    parser.add_argument("--devices", type=int, default=0, help="CPU devices of each process")
    parser.add_argument("--worlds", type=int, default=64, help="of all processes together")
    parser.add_argument("--updates", type=int, default=10)
    args = parser.parse_args(argv)
    if args.rank is None and args.processes > 1:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        given = sys.argv[1:] if argv is None else argv
        each = [sys.executable, __file__, *given, "--coordinator", f"127.0.0.1:{port}", "--rank"]
        started = [subprocess.Popen([*each, str(rank)]) for rank in range(args.processes)]
        return max(process.wait() for process in started)
    args.rank = args.rank or 0
    train(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
