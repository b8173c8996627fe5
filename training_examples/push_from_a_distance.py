"""Push a puck to a target by striking it, with gradients of contacts from a distance.

The pusher starts 30 cm away and the controls start near zero: the plain gradient is zero, and descent goes nowhere.
With `optim.straight_through` the forward pass is the plain step, and the gradient is that of contacts that act from a
distance.
Expected: after 150 iterations with contacts from 40 cm and 150 from 5 cm, the puck is after 1.6 s within 5 cm of the
target (0.5 m forward, 0.16 m sideways of its start) and slower than 0.6 m/s. With the plain gradient it stays put.
"""

import functools

import jax
import jax.numpy as jnp
import optax
from common import POSE, describe, finish, options, plot, replay

import jaxsim
from jaxsim import optim

TABLE = """<mujoco><option timestep="0.02"/><default><geom contype="0" conaffinity="0"/>
<joint type="slide"/></default><worldbody><light pos="0 0 3"/>
<geom type="plane" size="2 2 .1" rgba=".9 .9 .9 1"/><geom type="sphere" size=".03" pos="1 .2 .03" rgba="0 .8 0 .5"/>
<body name="pusher" pos="0 0 .1"><joint name="x" axis="1 0 0" damping="2"/><joint name="y" axis="0 1 0" damping="2"/>
  <geom size=".1" mass="1" contype="1" condim="1" rgba=".2 .4 .9 1"/></body>
<body name="puck" pos=".5 0.04 .1"><joint axis="1 0 0" damping="2"/><joint axis="0 1 0" damping="2"/>
  <geom size=".1" mass=".5" conaffinity="1" condim="1" rgba=".9 .3 .2 1"/></body></worldbody>
<actuator><motor joint="x" gear="10"/><motor joint="y" gear="10"/></actuator></mujoco>"""
TARGET = jnp.asarray([0.5, 0.16])  # of the puck, relative to its start
STEPS, HOLD = 80, 4
WIDTHS = 0.4, 0.05


def main():
    args = options(__doc__)
    m = jaxsim.load_model(TABLE)
    d = jaxsim.make_data(m)

    def simulate(u, step, outputs=("qpos",)):
        return jaxsim.rollout(m, d, jnp.repeat(u, HOLD, axis=0), step=step, outputs=outputs)

    def cost(u, step):
        last, _ = simulate(u, step)
        return jnp.sum((last.qpos[2:] - TARGET) ** 2) + 0.05 * jnp.sum(last.qvel[2:] ** 2) + 1e-5 * jnp.sum(u**2)

    def descend(u, step, n):
        rate = optax.cosine_decay_schedule(0.05, n)
        optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))
        settings = optim.Shooting(n, optimizer=optimizer)
        return optim.shoot(functools.partial(cost, step=step), u, settings, low=-1, high=1, progress=True)

    start = 1e-3 * jax.random.normal(jax.random.key(args.seed), (STEPS // HOLD, m.nu))
    plain = descend(start, jaxsim.step, 3 if args.smoke else 20)
    found, history = start, []
    for width in WIDTHS:  # wide to find the puck, then narrow for a gradient closer to that of the plain step
        step = optim.straight_through(functools.partial(optim.contacts_from_distance, width=width))
        best = descend(found, step, 3 if args.smoke else 150)
        found = best.x
        history.append(best.history)
    curves = {"from a distance": jnp.concatenate(history), "plain": plain.history}
    plot(args.out / "push.svg", curves, title="Push", x="iteration", y="cost", log=True)
    last, poses = jaxsim.jit(functools.partial(simulate, step=jaxsim.step, outputs=POSE))(found)
    replay(m, poses, args.out / "push.html")
    miss, speed = jnp.linalg.norm(last.qpos[2:] - TARGET), jnp.linalg.norm(last.qvel[2:])
    plain_miss = jnp.sqrt(plain.cost)
    result = describe(
        ("miss (m)", "speed (m/s)", "miss with the plain gradient (m)"), jnp.stack([miss, speed, plain_miss])
    )
    finish(bool((miss < 0.05) & (speed < 0.6)), result, args.smoke)


if __name__ == "__main__":
    main()
