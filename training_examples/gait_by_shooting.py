"""Find a gait of the quadruped by gradient descent through its contacts.

The servos follow a trot: diagonal legs move together, left legs half a period after right ones. The unknowns are the
sine, cosine and mean of abduction, hip and knee, front and rear: 18 numbers. The initial gait lifts the legs without
swinging them, and the robot drifts backwards. The target is a walk of 0.5 m/s, straight, level and upright. The cost is
the mean over four robots with random velocities at the start, drawn anew in each iteration.
Expected: after 60 iterations on 1.2 s, a rollout of four seconds ends between 1.5 and 2.5 m forward (before:
backward) and less than 0.5 m sideways, with the trunk's up axis within 20 degrees of the vertical.
"""

import jax
import jax.numpy as jnp
import optax
from common import MODELS, POSE, describe, finish, options, plot, replay

import jaxsim
from jaxsim import mjcf, optim
from jaxsim.math.rotation import quat_rotate

PERIOD, HOLD = 0.4, 5  # s; controls of 20 ms
SHORT, LONG = 60, 200  # controls of a rollout that is optimised, of one that is evaluated
SPEED = jnp.asarray([0.5, 0.0, 0.0])  # m/s
SIGN = jnp.asarray([1.0, -1.0, -1.0, 1.0])  # of the wave: legs front right, front left, rear right, rear left
PAIR = jnp.asarray([0, 0, 1, 1])  # front, front, rear, rear


def robot():
    """The quadruped without contacts between its own geoms, which take a third of the compile time."""
    spec = mjcf.read(MODELS / "quadruped.xml")
    for geom in spec.elements("geom"):
        if geom.get("name") != "floor":
            geom.set(contype=0)
    return jaxsim.load_model(spec)


def stepping(key):
    """Initial gait (3, 2, 3) that lifts the feet: sine, cosine, mean; front, rear; abduction, hip, knee."""
    lift = jnp.zeros((3, 2, 3)).at[0].set(jnp.asarray([0, 0.125, -0.25]))
    return lift + 0.01 * jax.random.normal(key, lift.shape)


def axes(qpos):
    """Forward and up axes of the trunk."""
    return tuple(quat_rotate(qpos[3:7], jnp.asarray(v)) for v in ([1.0, 0, 0], [0, 0, 1.0]))


def main():
    args = options(__doc__)
    m = robot()
    d = jaxsim.make_data(m, keyframe="stand")

    def controls(x, n):
        phase = 2 * jnp.pi * m.opt.timestep * HOLD / PERIOD * jnp.arange(n)[:, None, None]
        sine, cosine, mean = x[:, PAIR]
        wave = mean + SIGN[:, None] * (sine * jnp.sin(phase) + cosine * jnp.cos(phase))
        return d.ctrl + wave.reshape(n, m.nu)

    def simulate(x, qvel, n, outputs=("qpos",)):
        return jaxsim.rollout(m, d.replace(qvel=qvel), controls(x, n), substeps=HOLD, outputs=outputs)

    def error(x, push):
        qpos = simulate(x, push, SHORT)[1]["qpos"]
        forward, up = jax.vmap(axes)(qpos)
        target = d.qpos[:3] + SPEED * m.opt.timestep * HOLD * jnp.arange(1, SHORT + 1)[:, None]
        position = jnp.mean((qpos[:, :3] - target) ** 2, axis=0)
        return position[0] + position[1] + 10 * position[2] + jnp.mean(forward[:, 1] ** 2) + 2 * jnp.mean(1 - up[:, 2])

    def cost(x, key):
        pushes = 0.1 * jax.random.normal(key, (4, m.nv))
        return jnp.mean(jax.vmap(error, (None, 0))(x, pushes))

    begin, push = jax.random.split(jax.random.key(args.seed))
    start = stepping(begin)
    count = 2 if args.smoke else 60
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(0.01, count)))
    found = optim.shoot(cost, start, optim.Shooting(count, optimizer=optimizer), key=push, progress=True)
    plot(args.out / "gait.svg", {"cost": found.history}, title="Gait", x="iteration", y="cost")

    long = jaxsim.jit(lambda x: simulate(x, d.qvel, LONG, (*POSE, "qpos")))
    before, (last, poses) = long(start)[0], long(found.x)
    replay(m, {name: poses[name] for name in POSE}, args.out / "gait.html")
    up = jnp.min(jax.vmap(axes)(poses["qpos"])[1][:, 2])
    forward, sideways = last.qpos[:2] - d.qpos[:2]
    names = ("forward (m)", "sideways (m)", "least cosine of tilt", "forward before (m)")
    result = describe(names, jnp.stack([forward, sideways, up, before.qpos[0] - d.qpos[0]]))
    finish(bool((abs(forward - 2) < 0.5) & (abs(sideways) < 0.5) & (up > jnp.cos(jnp.pi / 9))), result, args.smoke)


if __name__ == "__main__":
    main()
