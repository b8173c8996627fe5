"""An experiment by gradient: controls that make the ten inertial parameters of an arm's hand most certain.

Four joints, 2 s, angles known to 1 mrad, speeds up to 8 rad/s, torques up to 120 Nm. The best of 1,000 random controls
within the same limits is what descent begins with.
Expected: the root of the determinant of the covariance is less than a hundredth of that of the best random controls.
Writes excite.svg with both experiments and their standard deviations, and a replay of the one by gradient.
"""

import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from common import POSE, describe, finish, options, replay

import jaxsim
from jaxsim import identify

ARM = """<mujoco><option timestep="0.01" integrator="implicitfast"><flag contact="disable"/></option>
<compiler angle="radian"/>
<worldbody>
<body name="turret"><joint name="yaw" axis="0 0 1" range="-2.5 2.5" damping="1" armature=".1"/>
  <geom type="capsule" fromto="0 0 0 0 0 .2" size=".06" mass="3"/>
<body name="upper" pos="0 0 .2"><joint name="shoulder" axis="0 1 0" range="-1.5 1.5" damping="1" armature=".1"/>
  <geom type="capsule" fromto="0 0 0 0 0 .4" size=".05" mass="2"/>
<body name="fore" pos="0 0 .4"><joint name="elbow" axis="0 1 0" range="-2.2 2.2" damping=".5" armature=".05"/>
  <geom type="capsule" fromto="0 0 0 0 0 .3" size=".04" mass="1"/>
<body name="hand" pos="0 0 .3"><joint name="wrist" axis="1 0 0" range="-1.5 1.5" damping=".2" armature=".02"/>
  <geom type="box" size=".03 .05 .07" pos=".01 .02 .07" euler=".2 .3 .1" mass=".8"/></body></body></body></body>
</worldbody>
<actuator><position joint="yaw" kp="60" kv="8" ctrlrange="-2 2"/>
  <position joint="shoulder" kp="120" kv="12" ctrlrange="-1.2 1.2"/>
  <position joint="elbow" kp="60" kv="6" ctrlrange="-2 2"/>
  <position joint="wrist" kp="15" kv="1" ctrlrange="-1.3 1.3"/></actuator>
<sensor><jointpos name="q1" joint="yaw"/><jointpos name="q2" joint="shoulder"/>
  <jointpos name="q3" joint="elbow"/><jointpos name="q4" joint="wrist"/></sensor></mujoco>"""


def main():
    args = options(__doc__)
    m = jaxsim.with_full_inertia(jaxsim.load_model(ARM))
    limits = {"speed": 8.0, "torque": 120.0, "hold": 15, "random": 8 if args.smoke else 1000, "seed": args.seed}
    limits |= {"steps": 60 if args.smoke else 200, "sigma": {f"q{i}": 1e-3 for i in range(1, 5)}}
    parameters = [identify.inertia(m, "hand")]
    began = time.process_time()
    found = identify.excite(m, parameters, iterations=2 if args.smoke else 150, progress=True, **limits)
    spent = time.process_time() - began
    drawn = identify.excite(m, parameters, iterations=0, **limits)
    print(f"{'standard deviation':24s} {'best random':>12s} {'by gradient':>12s}")
    for label, a, b in zip(found.labels, drawn.std, found.std, strict=True):
        print(f"{label:24s} {a:12.3g} {b:12.3g}")
    print(f"{np.isfinite(found.random).sum()} of {len(found.random)} random controls are within the limits; "
          f"{spent:.0f} s of processor time; used of the limits: {found.peaks}")  # fmt: skip
    draw(m, {"best of the random controls": drawn, "by gradient": found}, args.out / "excite.svg")
    poses = jaxsim.jit(lambda u: jaxsim.rollout(m, jaxsim.make_data(m), u, outputs=POSE)[1])(jnp.asarray(found.ctrl[0]))
    replay(m, poses, args.out / "excite.html")
    ratio = float(np.exp(found.criterion - found.random.min()))
    finish(ratio < 0.01, describe(["root of the determinant, over the best random"], [ratio]), args.smoke)


def draw(m: jaxsim.Model, found: dict[str, identify.Excitation], path: Path) -> None:
    """Joint angles of both experiments, and their standard deviations."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axes = figure.subplots(1, 3)
    run = jax.jit(lambda u: jaxsim.rollout(m, jaxsim.make_data(m), u)[1]["qpos"])
    for place, (name, excitation) in zip(axes, found.items(), strict=False):
        place.plot(excitation.time, np.asarray(run(excitation.ctrl[0])))
        place.set(title=name, xlabel="s", ylabel="joint angles (rad)", ylim=(-2.3, 2.3))
    axes[0].legend(["yaw", "shoulder", "elbow", "wrist"], fontsize=8)
    at = np.arange(len(next(iter(found.values())).labels))
    for i, (name, excitation) in enumerate(found.items()):
        axes[2].bar(at + 0.4 * i, excitation.std, 0.4, label=name)
        names = [label.split(".")[-1] for label in excitation.labels]
    axes[2].set(yscale="log", title="standard deviations", xticks=at + 0.2)
    axes[2].set_xticklabels(names, rotation=90, fontsize=8)
    axes[2].legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    print(f"plot: {path}")


if __name__ == "__main__":
    main()
