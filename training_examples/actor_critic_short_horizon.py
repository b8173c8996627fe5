"""Analytic policy gradients: short-horizon actor-critic (SHAC) on the runner, in one file.

The actor ascends the gradient of the rewards of 16 actions plus a critic's value at their end. The gradient is taken
through 80 physics steps and their contacts; the critic learns from the same rollouts. Xu et al., "Accelerated Policy
Learning with Parallel Differentiable Simulation", ICLR 2022.
Expected: after 150 updates of 32 worlds (77,000 actions) the mean policy runs at more than 1.5 m/s over four seconds
from standing, its trunk within 60 degrees of level. The untrained policy stays in place.
"""

import functools
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from common import POSE, describe, finish, options, plot, replay
from tqdm import trange

import jaxsim
from jaxsim import envs
from jaxsim.envs.wrappers import first_moments, normalize, update_moments

WORLDS, HORIZON, EPISODE = 32, 16, 160
DISCOUNT, LAMBDA = 0.98, 0.95
CRITIC_STEPS, TARGET_RATE = 32, 0.2
PITCH = 2  # the runner's third coordinate


class Learner(NamedTuple):
    """Everything that changes while learning, except the worlds."""

    actor: Any
    critic: Any
    target: Any
    actor_state: Any
    critic_state: Any
    moments: Any
    key: Any


def make_net(key, sizes, last=1.0):
    """Random weights and zero biases of a network of tanh layers; `last` scales those of the output."""
    keys = jax.random.split(key, len(sizes) - 1)
    shapes = list(itertools.pairwise(sizes))
    scales = [1.0] * (len(shapes) - 1) + [last]
    return [
        (s * jax.random.normal(k, p) / p[0] ** 0.5, jnp.zeros(p[1]))
        for k, p, s in zip(keys, shapes, scales, strict=True)
    ]


def apply(net, x):
    """Output of a network of `make_net`."""
    for w, b in net[:-1]:
        x = jax.nn.tanh(x @ w + b)
    w, b = net[-1]
    return x @ w + b


def policy(actor, moments, obs, noise):
    """Action in (-1, 1); `noise` is a standard normal draw."""
    net, log_std = actor
    return jnp.tanh(apply(net, normalize(moments, obs)) + jnp.exp(log_std) * noise)


def advance(env, actor, moments, state, noise):
    """Last state of HORIZON actions in one world, and the observations before and after each action and its reward."""

    def one(state, noise):
        new = env.step(state, policy(actor, moments, state.obs, noise))
        # the environment's own reward has no gradient where the speed is negative, and does not depend on pitch
        reward = new.metrics["speed"] + 2 * jnp.cos(new.data.qpos[PITCH]) - new.metrics["control_cost"]
        return new, (state.obs, new.obs, reward)

    return jax.lax.scan(one, state, noise)


def actor_loss(env, actor, learner, state, noise):
    """Negative mean of the discounted rewards and the final value in one world, and the rollout."""
    last, (obs, after, reward) = advance(env, actor, learner.moments, state, noise)
    value = apply(learner.target, normalize(learner.moments, after[-1]))[0]
    total = DISCOUNT ** jnp.arange(HORIZON) @ reward + DISCOUNT**HORIZON * value
    return -total / HORIZON, (last, obs, after, reward)


def robust_mean(grads):
    """Mean over worlds of gradients clipped to their median norm: after a hard impact one can be very large."""
    grads = jax.tree.map(lambda g: jnp.where(jnp.isfinite(g), g, 0), grads)
    size = jax.vmap(optax.global_norm)(grads)
    weight = jnp.minimum(1, jnp.median(size) / (size + 1e-9)) / WORLDS
    return jax.tree.map(lambda g: jnp.tensordot(weight, g, 1), grads)


def targets(learner, after, reward):
    """TD(lambda) targets of the values before each action of one world."""
    value = apply(learner.target, normalize(learner.moments, after))[..., 0]

    def back(later, now):
        reward, value = now
        target = reward + DISCOUNT * ((1 - LAMBDA) * value + LAMBDA * later)
        return target, target

    return jax.lax.scan(back, value[-1], (reward, value), reverse=True)[1]


def critic_loss(critic, moments, obs, target):
    """Mean squared error of the values of observations."""
    return jnp.mean((apply(critic, normalize(moments, obs))[..., 0] - target) ** 2)


def updater(env, actor_tx, critic_tx):
    """Compiled update: (learner, state, which worlds to reset) -> learner and state a horizon later, mean reward."""

    @jaxsim.jit
    def update(learner, state, ended):
        key, draw, reset = jax.random.split(learner.key, 3)
        start = jax.vmap(env.reset)(jax.random.split(reset, WORLDS))
        state = jax.tree.map(lambda a, b: jnp.where(ended.reshape(-1, *[1] * (a.ndim - 1)), a, b), start, state)
        noise = jax.random.normal(draw, (WORLDS, HORIZON, env.action_size))
        gradient = jax.vmap(jax.grad(functools.partial(actor_loss, env), has_aux=True), (None, None, 0, 0))
        grads, (state, obs, after, reward) = gradient(learner.actor, learner, state, noise)
        grad = robust_mean(grads)
        change, actor_state = actor_tx.update(grad, learner.actor_state, learner.actor)
        actor = optax.apply_updates(learner.actor, change)
        moments = update_moments(learner.moments, obs.reshape(-1, obs.shape[-1]))
        target_values = jax.vmap(targets, (None, 0, 0))(learner, after, reward)

        def fit(carry, _):
            critic, critic_state = carry
            grad = jax.grad(critic_loss)(critic, moments, obs, target_values)
            change, critic_state = critic_tx.update(grad, critic_state, critic)
            return (optax.apply_updates(critic, change), critic_state), None

        (critic, critic_state), _ = jax.lax.scan(fit, (learner.critic, learner.critic_state), length=CRITIC_STEPS)
        target = optax.incremental_update(critic, learner.target, TARGET_RATE)
        return Learner(actor, critic, target, actor_state, critic_state, moments, key), state, jnp.mean(reward)

    return update


def evaluate(env, learner, steps=200):
    """Poses, mean speed (m/s) and least cosine of pitch of the mean policy from standing."""

    def one(state, _):
        new = env.step(state, policy(learner.actor, learner.moments, state.obs, 0.0))
        poses = {name: getattr(new.data, name) for name in POSE}
        return new, (poses, new.metrics["speed"], jnp.cos(new.data.qpos[PITCH]))

    poses, speed, level = jax.lax.scan(one, env.reset(jax.random.key(1)), length=steps)[1]
    return poses, jnp.mean(speed), jnp.min(level)


def main():
    args = options(__doc__, x64=False)
    env = envs.make("runner_run")
    count = 2 if args.smoke else 150
    rate = optax.linear_schedule(3e-3, 3e-4, count)
    actor_tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate, b1=0.7, b2=0.95))
    critic_tx = optax.adam(2e-3)
    keys = jax.random.split(jax.random.key(args.seed), 4)
    n = env.observation_size
    actor = make_net(keys[0], (n, 64, 64, env.action_size), 0.01), jnp.full(env.action_size, -1.5, jnp.float32)
    critic = make_net(keys[1], (n, 64, 64, 1))
    state = jaxsim.jit(jax.vmap(env.reset))(jax.random.split(keys[2], WORLDS))
    optimisers = actor_tx.init(actor), critic_tx.init(critic)
    learner = Learner(actor, critic, critic, *optimisers, first_moments(state.obs), keys[3])
    update, run = updater(env, actor_tx, critic_tx), jaxsim.jit(functools.partial(evaluate, env))
    before, rewards = run(learner)[1], []
    phase = np.arange(WORLDS) * (EPISODE // HORIZON) // WORLDS  # so that not all worlds are reset in one update
    with trange(count, desc="updates") as bar:
        for i in bar:
            learner, state, reward = update(learner, state, jnp.asarray((phase + i) % (EPISODE // HORIZON) == 0))
            rewards.append(float(reward))
            bar.set_postfix(reward=f"{rewards[-1]:.3f}")
    poses, speed, level = run(learner)
    plot(
        args.out / "runner.svg",
        {"mean reward of an action": rewards},
        title="Short-horizon actor-critic",
        x="update",
        y="",
    )
    replay(env.model, poses, args.out / "runner.html")
    result = describe(("speed (m/s)", "before", "least cosine of pitch"), [speed, before, level])
    finish(bool((speed > 1.5) & (level > 0.5)), result, args.smoke)


if __name__ == "__main__":
    main()
