"""Swing a cart-pole up with limited force, by iterative LQR.

The pole starts hanging, the controls start small and random and are limited to [-1, 1].
Expected: after 18 to 30 iterations the pole ends, after two seconds, within 0.1 rad of upright and slower than
0.2 rad/s. Seeds 0, 1 and 2 reach it.
"""

import jax
import jax.numpy as jnp
from common import MODELS, POSE, describe, finish, options, plot, replay

import jaxsim
from jaxsim import optim

STEPS = 100


def running(d, u, i):
    return 0.02 * (0.1 * u[0] ** 2 + 1 - jnp.cos(d.qpos[1]) + 0.1 * d.qpos[0] ** 2 + 0.01 * jnp.sum(d.qvel**2))


def final(d):
    return 20 * (1 - jnp.cos(d.qpos[1])) + 5 * d.qpos[0] ** 2 + jnp.sum(d.qvel**2)


def main():
    args = options(__doc__)
    m = jaxsim.load_model(MODELS / "cartpole.xml")
    m = m.replace(opt=m.opt.replace(timestep=0.02))
    d = jaxsim.make_data(m, keyframe="hanging")
    controls = 0.1 * jax.random.normal(jax.random.key(args.seed), (STEPS, m.nu))
    plan = optim.ilqr(
        m, d, controls, optim.Costs(running, final), low=-1, high=1, iterations=2 if args.smoke else 150, progress=True
    )
    last, poses = jaxsim.jit(lambda u: jaxsim.rollout(m, d, u, outputs=POSE))(plan.controls)
    plot(
        args.out / "swing_up_cost.svg",
        {"cost": plan.history},
        title="Swing-up by iLQR",
        x="iteration",
        y="cost",
        log=True,
    )
    plot(args.out / "swing_up.svg", {"pole (rad)": plan.states["qpos"][:, 1], "control": plan.controls[:, 0]},
         title="Swing-up", x="step of 20 ms", y="")  # fmt: skip
    replay(m, poses, args.out / "swing_up.html")
    angle = jnp.arctan2(jnp.sin(last.qpos[1]), jnp.cos(last.qpos[1]))
    result = describe(("angle", "speed", "cost"), jnp.stack([angle, last.qvel[1], plan.history[-1]]))
    finish(
        abs(angle) < 0.1 and abs(last.qvel[1]) < 0.2, f"{result} after {len(plan.history) - 1} iterations", args.smoke
    )


if __name__ == "__main__":
    main()
