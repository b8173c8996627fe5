"""Identify friction, contact damping and air drag of a tossed cube from noisy motion capture.

A cube slides and tumbles over a floor after six tosses; its position and orientation are recorded every 4 ms. Its mass
is known, since contact forces scale with it and such data hardly determine it. The initial guess is off by 40 to 50 %;
four starts run in one batch.
Expected: friction within 1 % of the truth. The errors of all three numbers, in units of their standard deviations (the
Cramer-Rao bound), have a root mean square below two.
Writes toss.html with values, intervals and residuals, and a replay of the identified cube.
"""

import jax
import jax.numpy as jnp
import numpy as np
from common import POSE, describe, finish, options, plot, replay

import jaxsim
from jaxsim import identify

CUBE = """<mujoco><option timestep="0.004" cone="elliptic"/><default>
<geom solref="-{k} -{b}" solimp="0 .95 .002" friction="{mu} .005 .0001"/></default><worldbody><light pos="0 0 3"/>
<geom type="plane" size="4 4 .1" rgba=".9 .9 .9 1"/>
<body name="cube" pos="0 0 .06"><joint name="free" type="free" damping="{drag}"/>
<geom name="cube" type="box" size=".05 .05 .05" mass=".4" priority="1" rgba=".2 .5 .9 1"/></body></worldbody>
<sensor><framepos name="pos" objtype="body" objname="cube"/><framequat name="quat" objtype="body" objname="cube"/>
</sensor></mujoco>"""
TRUTH = {"friction": 0.35, "damping": 40.0, "drag": 0.02}
SIGMA = {"pos": 0.001, "quat": 0.003}
K, N = 6, 120


def main():
    args = options(__doc__)
    true = jaxsim.load_model(CUBE.format(mu=0.35, k=4000, b=40, drag=0.02))
    guess = jaxsim.load_model(CUBE.format(mu=0.5, k=4000, b=60, drag=0.03))
    rng = np.random.default_rng(args.seed)
    qpos = np.tile(np.asarray(true.qpos0), (K, 1))
    qpos[:, 2] = rng.uniform(0.06, 0.15, K)
    qpos[:, 3:] = np.array([1, 0, 0, 0]) + 0.1 * rng.standard_normal((K, 4))
    qpos[:, 3:] /= np.linalg.norm(qpos[:, 3:], axis=1, keepdims=True)
    qvel = np.concatenate([rng.uniform(0.8, 1.6, (K, 2)), rng.uniform(-0.3, 0.3, (K, 1)), rng.normal(0, 2, (K, 3))], 1)
    ctrl = np.zeros((K, N, 0))

    def simulate(m, q, v, outputs):
        start = jaxsim.make_data(true).replace(qpos=q, qvel=v)
        return jaxsim.rollout(m, start, nstep=N, outputs=outputs)[1]

    run = jaxsim.jit(jax.vmap(lambda q, v: simulate(true, q, v, ("sensordata",))["sensordata"]))
    clean = np.asarray(run(jnp.asarray(qpos), jnp.asarray(qvel)))
    parts = {"pos": clean[..., :3], "quat": clean[..., 3:]}
    noisy = {n: y + SIGMA[n] * rng.standard_normal(y.shape) for n, y in parts.items()}
    data = identify.recordings(guess, ctrl, noisy, qpos=qpos, qvel=qvel, sigma=SIGMA)

    def contact_damping(m, value):
        cube = m.name2id("geom", "cube")
        return m.replace(geom_solref=m.geom_solref.at[cube, 1].set(-value[0]))

    parameters = [
        identify.parameter(guess, "geom_friction", "cube", 0, log=True),
        identify.Parameter(("contact damping",), np.array([60.0]), contact_damping, low=1.0, high=400.0, log=True),
        identify.parameter(guess, "dof_damping", "free", log=True, tie=True),
    ]
    fit = identify.identify(
        guess,
        data,
        parameters,
        iterations=2 if args.smoke else 30,
        starts=4,
        seed=args.seed,
        progress=True,
        held_out=None,
    )
    print(fit)
    identify.save_report(fit, data, args.out / "toss.html", "Tossed cube")
    plot(args.out / "toss.svg", {f"start {i}": c for i, c in enumerate(fit.cost)}, title="Identification of a cube",
         x="iteration", y="cost", log=True)  # fmt: skip
    poses = jaxsim.jit(lambda q, v: simulate(fit.m, q, v, POSE))(jnp.asarray(qpos[0]), jnp.asarray(qvel[0]))
    replay(guess, poses, args.out / "toss_replay.html")
    truth = np.array(list(TRUTH.values()))
    error = np.sqrt(np.mean(((fit.values - truth) / fit.std) ** 2))
    friction = abs(fit.values[0] / truth[0] - 1)
    result = describe([*TRUTH, "error of friction", "error / bound"], [*fit.values, friction, error])
    finish(friction < 0.01 and error < 2, result, args.smoke)


if __name__ == "__main__":
    main()
