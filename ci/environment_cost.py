"""Print what an action of a task costs beside the plain physics of the same batch, as a Markdown table.

    taskset -c 0 python ci/environment_cost.py [--env quadruped_locomotion] [--worlds 256]

A trained policy of `training_examples/policies` moves the robots first. Then all programs start from the same states
and play the same actions. They run in turn; the least processor time of all rounds counts, compilation never.
"""

import argparse
import time
from functools import partial
from pathlib import Path

import jax
import numpy as np

import jaxsim
from jaxsim import envs
from jaxsim.envs.base import simulate
from jaxsim.tools import bench
from jaxsim.xla.cache import use_compile_cache

POLICIES = Path(__file__).resolve().parent.parent / "training_examples/policies"


def programs(env: envs.Wrapper, batch: envs.Wrapper) -> dict:
    """Functions (states, actions) -> states of all worlds, by name; the last is plain physics."""
    bare = env.unwrapped

    def physics(task, state, action):
        control = task.control(state.data, action, state.info)
        return state.replace(data=task.physics(state.data, control, state.info))

    def plain(state, action):
        control = bare.control(state.data, action, state.info)
        return state.replace(data=simulate(bare.model, state.data, control, bare.n_substeps))

    return {
        "the task: physics, observation, reward, noise, pushes, resets": batch.step,
        "without resets": envs.Vectorize(env).step,
        "physics of random models, with latency": jax.vmap(lambda s, a: physics(env._inner(s.info["model"]), s, a)),
        "physics of one model, with latency": jax.vmap(partial(physics, bare)),
        "plain physics": jax.vmap(plain),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", default="quadruped_locomotion", help="a task with random models and a trained policy")
    parser.add_argument("--worlds", type=int, default=256)
    parser.add_argument("--actions", type=int, default=24, help="of each world in a round (default: 24)")
    parser.add_argument("--rounds", type=int, default=12)
    args = parser.parse_args()
    use_compile_cache()
    env, policy = envs.make(args.env), envs.load_policy(POLICIES / f"{args.env}.npz")
    batch = envs.wrap(env, stagger=True)

    def walk(state, _):
        action = policy(state.obs)
        return batch.step(state, action), action

    state = jaxsim.jit(batch.reset)(jax.random.split(jax.random.key(0), args.worlds))
    state = jaxsim.jit(lambda s: jax.lax.scan(walk, s, None, 100)[0])(state)
    actions = jaxsim.jit(lambda s: jax.lax.scan(walk, s, None, args.actions)[1])(state)
    found = programs(env, batch)
    compiled = [
        jaxsim.jit(lambda s, a, f=f: jax.lax.scan(lambda s, a: (f(s, a), None), s, a)[0]) for f in found.values()
    ]
    times = np.zeros((args.rounds + 1, len(found)))
    for i in range(args.rounds + 1):
        for j, program in enumerate(compiled):
            begin = time.process_time()
            jax.block_until_ready(program(state, actions))
            times[i, j] = time.process_time() - begin
    least = times[1:].min(0) / args.worlds / args.actions * 1e6
    print(f"{args.env}, {args.worlds} worlds, {bench.describe_machine()['processor']}\n")
    print("| program | us an action | plain physics over it |\n| --- | --- | --- |")
    for name, cost in zip(found, least, strict=True):
        print(f"| {name} | {cost:.1f} | {least[-1] / cost:.2f} |")


if __name__ == "__main__":
    main()
