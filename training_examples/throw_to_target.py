"""Throw a ball so that it bounces once on the floor and comes down in a bin, through the contact.

The unknowns are the ball's initial velocity (3). A bounce lasts some 20 ms, which steps of 10 ms do not resolve: the
gradient is taken through 20 sub-steps with smooth impedance. Descent with the plain step is run for comparison.
Expected: after 150 iterations the ball falls less than 1 cm from the middle of the bin (radius 12 cm, ball 5 cm). The
velocity found with the plain step misses by 1 to 50 cm, depending on the seed.
"""

import functools

import jax
import jax.numpy as jnp
import optax
from common import POSE, describe, finish, options, plot, replay

import jaxsim
from jaxsim import optim

BALL = """<mujoco><option timestep="0.01"><flag refsafe="disable"/></option><default>
<geom solref="-20000 -5" solimp=".95 .95 .002" condim="3" friction=".2"/></default>
<worldbody><light pos="0 0 4"/><geom type="plane" size="4 4 .1" rgba=".9 .9 .9 1"/>
<geom type="cylinder" size=".12 .02" pos="2 .5 .3" contype="0" conaffinity="0" rgba="0 .8 0 .5"/>
<body pos="0 0 1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint type="slide" axis="0 0 1"/>
<geom size=".05" mass=".2" rgba=".9 .3 .2 1"/></body></worldbody></mujoco>"""
BIN = jnp.asarray([2.0, 0.5, -0.7])  # in the coordinates of the joints
STEPS = 125


def main():
    args = options(__doc__)
    m = optim.smooth_impedance(jaxsim.load_model(BALL), width=0.04)
    d = jaxsim.make_data(m)
    fine = optim.substepped(20)

    def simulate(v, step, outputs=("qpos",)):
        return jaxsim.rollout(m, d.replace(qvel=v), nstep=STEPS, step=step, outputs=outputs)

    def cost(v, step):
        last, _ = simulate(v, step)
        return jnp.sum((last.qpos - BIN) ** 2)

    start = jnp.asarray([1.0, 0.0, 0.0]) + 0.3 * jax.random.normal(jax.random.key(args.seed), (3,))
    count = 3 if args.smoke else 150
    found = {}
    for name, step in (("sub-steps", fine), ("plain", jaxsim.step)):
        optimizer = optax.adam(optax.cosine_decay_schedule(0.1, count))
        settings = optim.Shooting(count, optimizer=optimizer)
        found[name] = optim.shoot(functools.partial(cost, step=step), start, settings, progress=True)
    curves = {name: f.history for name, f in found.items()}
    plot(args.out / "throw.svg", curves, title="Throw", x="iteration", y="cost", log=True)
    last, poses = jaxsim.jit(lambda v: simulate(v, fine, POSE))(found["sub-steps"].x)
    replay(m, poses, args.out / "throw.html")
    miss = jnp.linalg.norm(last.qpos - BIN)
    plain = jaxsim.jit(lambda v: cost(v, fine))(found["plain"].x) ** 0.5
    result = describe(("miss (m)", "miss with the plain step (m)"), jnp.stack([miss, plain]))
    finish(bool((miss < 0.01) & (last.qvel[2] < 0)), result, args.smoke)


if __name__ == "__main__":
    main()
