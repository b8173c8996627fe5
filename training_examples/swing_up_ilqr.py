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


def lean(d):
    return jnp.sin(0.5 * d.qpos[1])  # its square is half of 1 - cos


RUNNING = (
    optim.Term(lean, 0.08),
    optim.Term(lambda d: d.ctrl, 0.004),
    optim.Term(lambda d: d.qpos[0], 0.004),
    optim.Term(lambda d: d.qvel, 0.0004),
)
FINAL = optim.Term(lean, 80.0), optim.Term(lambda d: d.qpos[0], 10.0), optim.Term(lambda d: d.qvel, 2.0)


def main():
    args = options(__doc__)
    m = jaxsim.load_model(MODELS / "cartpole.xml")
    m = m.replace(opt=m.opt.replace(timestep=0.02))
    d = jaxsim.make_data(m, keyframe="hanging")
    controls = 0.1 * jax.random.normal(jax.random.key(args.seed), (STEPS, m.nu))
    method = optim.Ilqr(2 if args.smoke else 150)
    plan = optim.ilqr(m, d, optim.Costs(RUNNING, FINAL), controls, method, progress=True)
    last, poses = jaxsim.jit(lambda u: jaxsim.rollout(m, d, u, outputs=POSE))(plan.x)
    plot(
        args.out / "swing_up_cost.svg",
        {"cost": plan.history},
        title="Swing-up by iLQR",
        x="iteration",
        y="cost",
        log=True,
    )
    plot(args.out / "swing_up.svg", {"pole (rad)": plan.states["qpos"][:, 1], "control": plan.x[:, 0]},
         title="Swing-up", x="step of 20 ms", y="")  # fmt: skip
    replay(m, poses, args.out / "swing_up.html")
    angle = jnp.arctan2(jnp.sin(last.qpos[1]), jnp.cos(last.qpos[1]))
    result = describe(("angle", "speed", "cost"), jnp.stack([angle, last.qvel[1], plan.cost]))
    finish(abs(angle) < 0.1 and abs(last.qvel[1]) < 0.2, f"{result} after {plan.iterations} iterations", args.smoke)


if __name__ == "__main__":
    main()
