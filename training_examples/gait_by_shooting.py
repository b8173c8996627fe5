"""Find a gait of the quadruped by gradient descent through its contacts.

The servos follow a trot: the left legs do half a period later what the right ones do, diagonal legs move together. What
a leg does is unknown: the sine, the cosine and the middle of abduction, hip and knee, front and rear, 18 numbers. At
first the legs are lifted but do not swing, and the robot drifts backwards. Wanted is a walk of 0.5 m/s, straight, level
and upright; the cost is the mean of four robots that are pushed a little at the start, other pushes in each iteration.
Expected: after 60 iterations on 1.2 s the gait goes on for four seconds: between 1.5 and 2.5 m ahead (before:
backwards), less than 0.5 m sideways, and the trunk's up within 20 degrees of the vertical.
"""

import jax
import jax.numpy as jnp
import optax
from common import MODELS, POSE, describe, finish, options, plot, replay

import jaxsim
from jaxsim import mjcf, optim
from jaxsim.math.rotation import quat_rotate

PERIOD, HOLD = 0.4, 5  # s; controls of 20 ms
SHORT, LONG = 60, 200  # controls: to optimise, to judge
SPEED = jnp.asarray([0.5, 0.0, 0.0])  # m/s
TURN = jnp.asarray([1.0, -1.0, -1.0, 1.0])  # legs front right, front left, rear right, rear left
PAIR = jnp.asarray([0, 0, 1, 1])  # front, front, rear, rear


def robot():
    """The quadruped without contacts of its parts with each other: a third less to compile."""
    spec = mjcf.read(MODELS / "quadruped.xml")
    for geom in spec.elements("geom"):
        if geom.get("name") != "floor":
            geom.set(contype=0)
    return jaxsim.load_model(spec)


def stepping(key):
    """Hips and knees lift each foot in turn. (3, 2, 3): sine, cosine, middle; front, rear; abduction, hip, knee."""
    lift = jnp.zeros((3, 2, 3)).at[0].set(jnp.asarray([0, 0.125, -0.25]))
    return lift + 0.01 * jax.random.normal(key, lift.shape)


def axes(qpos):
    """The trunk's forward and upward directions."""
    return tuple(quat_rotate(qpos[3:7], jnp.asarray(v)) for v in ([1.0, 0, 0], [0, 0, 1.0]))


def main():
    args = options(__doc__)
    m = robot()
    d = jaxsim.make_data(m, keyframe="stand")

    def controls(x, n):
        phase = 2 * jnp.pi * m.opt.timestep * HOLD / PERIOD * jnp.arange(n)[:, None, None]
        sine, cosine, middle = x[:, PAIR]
        wave = middle + TURN[:, None] * (sine * jnp.sin(phase) + cosine * jnp.cos(phase))
        return d.ctrl + wave.reshape(n, m.nu)

    def simulate(x, qvel, n, outputs=("qpos",)):
        return jaxsim.rollout(m, d.replace(qvel=qvel), controls(x, n), substeps=HOLD, outputs=outputs)

    def error(x, push):
        qpos = simulate(x, push, SHORT)[1]["qpos"]
        forward, up = jax.vmap(axes)(qpos)
        wanted = d.qpos[:3] + SPEED * m.opt.timestep * HOLD * jnp.arange(1, SHORT + 1)[:, None]
        place = jnp.mean((qpos[:, :3] - wanted) ** 2, axis=0)
        return place[0] + place[1] + 10 * place[2] + jnp.mean(forward[:, 1] ** 2) + 2 * jnp.mean(1 - up[:, 2])

    def cost(x, key):
        pushes = 0.1 * jax.random.normal(key, (4, m.nv))
        return jnp.mean(jax.vmap(error, (None, 0))(x, pushes))

    begin, push = jax.random.split(jax.random.key(args.seed))
    start = stepping(begin)
    count = 2 if args.smoke else 60
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(0.01, count)))
    found = optim.shoot(cost, start, count, optimizer, key=push, progress=True)
    plot(args.out / "gait.svg", {"cost": found.history}, title="Gait", x="iteration", y="cost")

    long = jaxsim.jit(lambda x: simulate(x, d.qvel, LONG, (*POSE, "qpos")))
    before, (last, poses) = long(start)[0], long(found.x)
    replay(m, {name: poses[name] for name in POSE}, args.out / "gait.html")
    up = jnp.min(jax.vmap(axes)(poses["qpos"])[1][:, 2])
    ahead, aside = last.qpos[:2] - d.qpos[:2]
    words = ("ahead (m)", "sideways (m)", "least cosine of tilt", "ahead before (m)")
    words = describe(words, jnp.stack([ahead, aside, up, before.qpos[0] - d.qpos[0]]))
    finish(bool((abs(ahead - 2) < 0.5) & (abs(aside) < 0.5) & (up > jnp.cos(jnp.pi / 9))), words, args.smoke)


if __name__ == "__main__":
    main()
