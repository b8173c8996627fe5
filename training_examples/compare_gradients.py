"""A policy's gradient from derivatives of the physics (as SHAC's) and from samples (as PPO's), at the same states.

    python training_examples/compare_gradients.py training_examples/policies/ant_run.npz
    python training_examples/compare_gradients.py runs/quadruped/policy.npz --horizons 4 16 --std 0.35

Both estimate the same thing: the gradient, by the weights of the actor, of the discounted rewards of the next actions,
from states that the policy visits. Prints for each horizon, without a critic: the length of the mean gradient; how many
worlds each needs until the noise of their mean is no larger than it (fewer is better); the cosine of the two
means; and processor time of a world's gradient. See Suh et al., "Do Differentiable Simulators Give Better Policy
Gradients?", ICML 2022.
"""

import copy
import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from shac import bounded
from watch import policy_and_task, policy_parser

import jaxsim
from jaxsim import envs
from jaxsim.xla.cache import use_compile_cache

Array = Any


def mean_action(policy: envs.Policy, layers: list, obs: Any) -> Array:
    """Action of a policy with other layers, not clipped: what both gradients are taken by."""
    other = copy.copy(policy)
    other.layers = layers
    return other.unclipped(obs)


def visited(env: envs.Env, act: Any, std: float, states: int, key: Array) -> envs.State:
    """States of as many worlds after some of the policy's own actions, of different numbers, with noise."""
    batch = envs.wrap(env, stagger=True)

    def step(state: envs.State, key: Array) -> tuple[envs.State, None]:
        mean = act(state.obs)
        return batch.step(state, mean + std * jax.random.normal(key, mean.shape)), None

    start, noise = jax.random.split(key)
    state = batch.reset(jax.random.split(start, states))
    return jax.lax.scan(step, state, jax.random.split(noise, 150))[0]


def rollout(env: envs.Env, act: Any, discount: float, state: envs.State, noise: Array) -> tuple[Array, tuple]:
    """Discounted rewards until an episode ends, and observations, actions, and rewards of a world."""

    def one(carry: tuple, noise: Array) -> tuple[tuple, tuple]:
        state, going = carry
        action = act(state.obs) + noise
        new = env.step(state, bounded(action))
        return (new, going * (1 - new.done)), (state.obs, action, jnp.where(going > 0, new.reward, 0), going)

    _, record = jax.lax.scan(one, (state, jnp.ones(())), noise)
    return discount ** jnp.arange(len(noise)) @ record[2], record


def from_samples(act: Any, layers: list, std: float, discount: float, record: tuple) -> Array:
    """Gradients (states, draws, ...): log densities weighted by rewards to go, less the mean of all draws."""
    obs, action, reward, going = record
    weight = discount ** jnp.arange(reward.shape[-1])
    to_go = jnp.cumsum((weight * reward)[..., ::-1], -1)[..., ::-1]
    draws = to_go.shape[1]
    advantage = (to_go - to_go.mean(1, keepdims=True)) * draws / (draws - 1)

    def one(obs: Any, action: Array, advantage: Array, going: Array) -> Array:
        def surrogate(layers: list) -> Array:
            log_density = -0.5 * jnp.square((jax.lax.stop_gradient(action) - act(layers, obs)) / std).sum(-1)
            return (going * advantage * log_density).sum()

        return ravel_pytree(jax.grad(surrogate)(layers))[0]

    return jax.vmap(jax.vmap(one))(obs, action, advantage, going)


def signal(grads: Array) -> tuple[float, float]:
    """Length of the mean of gradients (n, size), and how many of them have a mean whose noise is as long as that."""
    n, square = len(grads), float(np.square(grads).sum(1, dtype=np.float64).mean())
    whole = float(np.square(grads.mean(0, dtype=np.float64)).sum())
    true = (n * whole - square) / (n - 1)  # without the share of the noise
    return np.sqrt(max(true, 0)), (square - true) / true if true > 0 else np.inf


def cosine(a: Array, b: Array) -> float:
    """Cosine of the angle between two vectors."""
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b) + 1e-30))


def main() -> None:
    """Compare as the command line says."""
    parser = policy_parser(__doc__)
    parser.add_argument("--horizons", type=int, nargs="+", default=[4, 8, 16, 32], help="actions")
    parser.add_argument("--std", type=float, default=0.4, help="of the exploration noise")
    parser.add_argument("--discount", type=float, default=0.985)
    parser.add_argument("--states", type=int, default=64)
    parser.add_argument("--draws", type=int, default=16, help="of noise, from each state")
    args = parser.parse_args()
    use_compile_cache()
    policy, env = policy_and_task(args)
    act = partial(mean_action, policy)
    layers = [(jnp.asarray(w), jnp.asarray(b)) for w, b in policy.layers]
    states = jaxsim.jit(partial(visited, env, partial(act, layers), args.std, args.states))(jax.random.key(0))

    def gradients(state: envs.State, noise: Array) -> tuple[Array, tuple]:
        loss = lambda layers: rollout(env, partial(act, layers), args.discount, state, noise)  # noqa: E731
        grad, record = jax.grad(loss, has_aux=True)(layers)
        return ravel_pytree(grad)[0], record

    print("| horizon | length | worlds, derivatives | the same, clipped | worlds, samples | cosine | ms a world |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for horizon in args.horizons:
        shape = (args.states, args.draws, horizon, env.action_size)
        noise = args.std * jax.random.normal(jax.random.key(1), shape)
        both = jaxsim.jit(jax.vmap(jax.vmap(gradients, (None, 0))))
        exact, record = jax.block_until_ready(both(states, noise))
        begin = time.process_time()
        jax.block_until_ready(both(states, noise))
        cost = (time.process_time() - begin) * 1e3 / (args.states * args.draws)
        sampled = np.asarray(jaxsim.jit(partial(from_samples, act, layers, args.std, args.discount))(record))
        sampled = sampled.reshape(-1, sampled.shape[-1])
        exact = np.asarray(exact).reshape(sampled.shape)
        size = np.linalg.norm(exact, axis=1)
        clipped = exact * np.minimum(1, np.median(size) / (size + 1e-30))[:, None]
        (length, raw), (_, cut), (_, zeroth) = map(signal, (exact, clipped, sampled))
        angle = cosine(clipped.mean(0), sampled.mean(0))
        print(
            f"| {horizon} | {length:.3g} | {raw:.3g} | {cut:.3g} | {zeroth:.3g} | {angle:.2f} | {cost:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
