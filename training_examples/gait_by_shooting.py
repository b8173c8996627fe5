"""Find a gait of the quadruped by gradient descent through its contacts.

The servos follow one sine each, with a period of 0.4 s; the legs step in the order of a trot, but do not swing. Unknown
are the sines' two coefficients and the middle of every joint, 36 numbers; forward is good, turning bad.
Expected: after 60 iterations on 0.8 s from standing it walks more than 0.5 m in two seconds, with the trunk's up within
30 degrees of the vertical and less than 0.5 m of drift sideways.
Not reached yet: the cost fell to -0.26 (seed 0), but beyond the 0.8 s that it was optimised for the robot rolls over.
"""

import jax
import jax.numpy as jnp
import optax
from common import MODELS, POSE, describe, finish, options, plot, replay

import jaxsim
from jaxsim import optim
from jaxsim.math.rotation import quat_rotate

PERIOD, STEPS, HOLD = 0.4, 40, 5  # s; controls of 20 ms
LIFT = 0.25  # rad, of the knees
DIAGONAL = jnp.asarray([1.0, -1.0, -1.0, 1.0])  # legs front right, front left, rear right, rear left


def trot(key):
    """Stepping on the spot: hips and knees lift each foot in turn. (3, 4, 3): sine, cosine, middle; leg; joint."""
    lift = DIAGONAL[:, None] * jnp.asarray([0.0, LIFT / 2, -LIFT])
    return jnp.stack([lift, jnp.zeros((4, 3)), jnp.zeros((4, 3))]) + 0.01 * jax.random.normal(key, (3, 4, 3))


def main():
    args = options(__doc__)
    m = jaxsim.load_model(MODELS / "quadruped.xml")
    d = jaxsim.make_data(m, keyframe="stand")

    def controls(x, n):
        phase = 2 * jnp.pi * m.opt.timestep * HOLD * jnp.arange(n)[:, None] / PERIOD
        sine, cosine, middle = x.reshape(3, 12)
        return d.ctrl + middle + sine * jnp.sin(phase) + cosine * jnp.cos(phase)

    def simulate(x, n, outputs=("qpos",)):
        return jaxsim.rollout(m, d, controls(x, n), substeps=HOLD, outputs=outputs)

    def cost(x):
        last, out = simulate(x, STEPS)
        qpos = out["qpos"]
        up = jax.vmap(lambda q: quat_rotate(q, jnp.asarray([0.0, 0.0, 1.0])))(qpos[:, 3:7])
        heading = jax.vmap(lambda q: quat_rotate(q, jnp.asarray([1.0, 0.0, 0.0])))(qpos[:, 3:7])
        calm = jnp.mean(1 - up[:, 2]) + jnp.mean(heading[:, 1] ** 2) + jnp.mean((qpos[:, 2] - d.qpos[2]) ** 2)
        return -(last.qpos[0] - d.qpos[0]) + last.qpos[1] ** 2 + 2 * calm + 0.02 * jnp.sum((x - start) ** 2)

    start = trot(jax.random.key(args.seed))
    count = 2 if args.smoke else 60
    optimizer = optax.chain(optax.clip_by_global_norm(0.3), optax.adam(0.02))
    found = optim.shoot(cost, start, count, optimizer, low=-0.6, high=0.6, progress=True)
    plot(args.out / "gait.svg", {"cost": found.history}, title="Gait", x="iteration", y="cost")
    long = jaxsim.jit(lambda x: simulate(x, 100, (*POSE, "qpos")))
    first, (last, poses) = long(start)[0], long(found.x)
    replay(m, {name: poses[name] for name in POSE}, args.out / "gait.html")
    up = jnp.min(jax.vmap(lambda q: quat_rotate(q, jnp.asarray([0.0, 0.0, 1.0]))[2])(poses["qpos"][:, 3:7]))
    went = last.qpos[:2] - d.qpos[:2]
    words = describe(
        ("ahead (m)", "sideways (m)", "least cosine of tilt", "ahead before (m)"),
        jnp.stack([went[0], went[1], up, first.qpos[0] - d.qpos[0]]),
    )
    finish(went[0] > 0.5 and abs(went[1]) < 0.5 and up > 0.866, words, args.smoke)


if __name__ == "__main__":
    main()
