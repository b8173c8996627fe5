"""Identify masses, friction, damping and a sensor's bias of an arm of two links from noisy joint sensors.

The data are three trajectories of 1.5 s; the initial guess is off by 30 to 60 %.
Expected: masses and friction within 1 % of the truth. The errors of all five numbers, in units of their standard
deviations (the Cramer-Rao bound), have a root mean square below two.
Writes fit.html with values, intervals and residuals, and a replay of the identified arm.
"""

import jax
import jax.numpy as jnp
import numpy as np
from common import POSE, describe, finish, options, plot, replay

import jaxsim
from jaxsim import identify

ARM = """<mujoco><option timestep="0.01" integrator="implicitfast"><flag contact="disable"/></option><worldbody>
<light pos="0 -2 2"/><body name="upper"><joint name="shoulder" axis="0 1 0" damping="{d}" frictionloss="{f}"
  armature=".05"/><geom type="capsule" fromto="0 0 0 0 0 -.4" size=".04" mass="{m1}"/>
  <body name="lower" pos="0 0 -.4"><joint name="elbow" axis="0 1 0" damping=".2" frictionloss="{f}" armature=".02"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03" mass="{m2}"/></body></body></worldbody>
<actuator><motor joint="shoulder" gear="10"/><motor joint="elbow" gear="4"/></actuator>
<sensor><jointpos name="q1" joint="shoulder"/><jointpos name="q2" joint="elbow"/>
<jointvel name="v1" joint="shoulder"/><jointvel name="v2" joint="elbow"/></sensor></mujoco>"""
SIGMA = {"q1": 0.002, "q2": 0.002, "v1": 0.02, "v2": 0.02}
TRUTH = {"mass[upper]": 2.0, "mass[lower]": 1.0, "damping": 0.5, "friction": 0.3, "bias": 0.03}
K, N = 3, 150


def main():
    args = options(__doc__)
    true = jaxsim.load_model(ARM.format(d=0.5, f=0.3, m1=2.0, m2=1.0))
    guess = jaxsim.load_model(ARM.format(d=0.8, f=0.2, m1=1.5, m2=1.4))
    rng = np.random.default_rng(args.seed)
    phase = rng.uniform(2, 9, (K, 1, 2)) * np.arange(N)[:, None] * 0.01 + rng.uniform(0, 6, (K, 1, 2))
    ctrl = np.sin(phase)

    def simulate(m, u, outputs):
        return jaxsim.rollout(m, jaxsim.make_data(true), u, outputs=outputs)[1]

    clean = jaxsim.jit(jax.vmap(lambda u: simulate(true, u, ("sensordata",))["sensordata"]))(jnp.asarray(ctrl))
    clean = np.asarray(clean) + np.array([0, TRUTH["bias"], 0, 0])
    noisy = {n: clean[..., i] + s * rng.standard_normal((K, N)) for i, (n, s) in enumerate(SIGMA.items())}
    data = identify.recordings(guess, ctrl, noisy, sigma=SIGMA)
    parameters = [
        identify.mass(guess, "upper"),
        identify.mass(guess, "lower"),
        identify.parameter(guess, "dof_damping", "shoulder", log=True),
        identify.parameter(guess, "dof_frictionloss", ["shoulder", "elbow"], log=True, tie=True),
        identify.signal("bias", "q2"),
    ]
    fit = identify.identify(guess, data, parameters, iterations=2 if args.smoke else 30, progress=True)
    print(fit)
    identify.save_report(fit, data, args.out / "fit.html", "Arm of two links")
    plot(args.out / "arm.svg", {"cost": fit.cost[0]}, title="Identification", x="iteration", y="cost", log=True)
    replay(true, jaxsim.jit(lambda u: simulate(fit.m, u, POSE))(jnp.asarray(ctrl[0])), args.out / "arm.html")
    truth = np.array(list(TRUTH.values()))
    worst = np.abs(fit.values / truth - 1)[[0, 1, 3]].max()
    error = np.sqrt(np.mean(((fit.values - truth) / fit.std) ** 2))
    result = describe([*TRUTH, "worst of masses and friction", "error / bound"], [*fit.values, worst, error])
    finish(worst < 0.01 and error < 2, result, args.smoke)


if __name__ == "__main__":
    main()
