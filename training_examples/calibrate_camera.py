"""Calibrate a camera from ten pictures of an arm: its lens and its mounting, by Gauss-Newton on colours.

MuJoCo's renderer made the pictures (48 x 36 pixels, each the mean of 16 of its own; calibrate_camera.npz). Joint angles
are known. To be found are the focal length, the principal point, and the camera's position and rotation: nine numbers.
Starts differ by up to 6 % of the focal length, and 1.5 pixels, 3 cm and 1.7 degrees along each axis. Residuals are
differences of colours, and derivatives include outlines (`edges=True`); both pictures are blurred, less at every step.
Expected: focal length within 0.5 %, principal point within 0.3 pixels, position within 5 mm, rotation within 0.4
degrees. Writes calibrate.png (pictures, ours at the start and at the end, and differences), errors as calibrate.svg,
and a replay. `--draw` makes the pictures anew (needs mujoco; `MUJOCO_GL=osmesa` without a display).
"""

import argparse
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from common import finish, options, plot, replay

import jaxsim
from jaxsim.math.rotation import quat_mul, rotvec_to_quat
from jaxsim.viewer.png import png_bytes
from jaxsim.viewer.raycast import render

XML = """<mujoco>
  <visual>
    <headlight active="0"/>
    <map znear=".05" zfar="50"/>
    <quality numslices="64" numstacks="32"/>
  </visual>
  <statistic extent="1" center="0 0 .4"/>
  <default><geom contype="0" conaffinity="0"/><joint axis="0 1 0"/>
    <light specular="0 0 0" castshadow="false"/></default>
  <worldbody>
    <light type="directional" dir="-.4 .5 -1" ambient=".3 .3 .3" diffuse=".6 .6 .6"/>
    <light type="directional" dir=".8 .3 -.3" diffuse=".3 .3 .3"/>
    <geom type="plane" size="0 0 1" rgba=".5 .52 .55 1"/>
    <camera name="eye" pos=".25 -1 1.05" xyaxes="1 .25 0 -.175 .7 1.0625" resolution="48 36"
      sensorsize=".0048 .0036" focal=".0048 .0048"/>
    <body name="turret" pos="0 0 .05">
      <joint axis="0 0 1"/>
      <geom type="cylinder" size=".12 .05" rgba=".2 .22 .26 1"/>
      <body name="upper" pos="0 0 .08">
        <joint/>
        <geom type="box" size=".07 .08 .17" pos="0 0 .16" rgba=".9 .5 .2 1"/>
        <body name="fore" pos="0 0 .34">
          <joint/>
          <geom type="capsule" size=".065" fromto="0 0 0 0 0 .26" rgba=".2 .6 .75 1"/>
          <body name="hand" pos="0 0 .28">
            <joint/>
            <geom type="box" size=".05 .1 .05" pos="0 0 .06" rgba=".85 .85 .3 1"/>
            <geom type="box" size=".025 .025 .05" pos="0 .07 .16" rgba=".7 .2 .3 1"/>
            <geom type="box" size=".025 .025 .05" pos="0 -.07 .16" rgba=".7 .2 .3 1"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>"""
WIDTH, HEIGHT, FINER = 48, 36, 4  # pixels of a picture, and of MuJoCo's along each side of one
PICTURES = Path(__file__).with_suffix(".npz")
# change of the model's camera: log of the focal length, principal point in pixels, position in m, rotation in rad
TRUTH = np.array([0.06, 1.3, -0.8, 0.03, -0.02, 0.02, 0.03, -0.02, 0.025])
OFF = np.array([0.06, 1.5, 1.5, 0.03, 0.03, 0.03, 0.03, 0.03, 0.03])  # of the start from the truth, at most
BLUR = np.geomspace(4, 0.7, 8)  # reach in pixels, in each step
TRUST = np.geomspace(1, 1e-3, 8)  # weight of distances from the start, in units of `OFF`, in each step
SAMPLES = 2  # rays along each side of a pixel
DAMPING, BETTER, WORSE = 1e-3, 0.3, 4.0  # Levenberg-Marquardt: at the start, and its change after a step


def poses(m: jaxsim.Model) -> np.ndarray:
    """Ten poses (10, nq) of the arm."""
    rng = np.random.default_rng(5)
    return rng.uniform([-2.5, -0.9, -1.6, -1.5], [2.5, 0.9, 1.6, 1.5], (10, m.nq))


def changed(m: jaxsim.Model, x: jax.Array) -> jaxsim.Model:
    """The model whose camera is changed by nine numbers, as in `TRUTH`."""
    pixel = m.cam_sensorsize[0] / np.array([WIDTH, HEIGHT])
    focal, principal = m.cam_intrinsic[0, :2] * jnp.exp(x[0]), m.cam_intrinsic[0, 2:] + x[1:3] * pixel
    return m.replace(
        cam_intrinsic=jnp.concatenate([focal, principal])[None],
        cam_pos=m.cam_pos + x[3:6],
        cam_quat=quat_mul(m.cam_quat, rotvec_to_quat(x[None, 6:])),
    )


def draw(m: jaxsim.Model, d: jaxsim.Data, x: jax.Array, edges: bool = False) -> jax.Array:
    """Pictures (10, HEIGHT, WIDTH, 3) of the poses in `d`."""
    m = changed(m, x)
    look = lambda d: render(m, jaxsim.camlight(m, d), "eye", WIDTH, HEIGHT, samples=SAMPLES, edges=edges).rgb  # noqa: E731
    return jax.lax.map(look, d)


def blurred(pictures: jax.Array, reach: jax.Array) -> jax.Array:
    """Pictures with means over the pixels within `reach` of each, in both directions."""

    def means(n: int) -> jax.Array:
        away = jnp.abs(np.arange(n)[:, None] - np.arange(n))
        near = jnp.clip(reach + 0.5 - away, 0, 1)
        return near / near.sum(1, keepdims=True)

    return jnp.einsum("ij,njkc,lk->nilc", means(HEIGHT), pictures, means(WIDTH))


def improve(
    m: jaxsim.Model,
    d: jaxsim.Data,
    seen: jax.Array,
    start: jax.Array,
    x: jax.Array,
    damping: jax.Array,
    reach: jax.Array,
    trust: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """One step of Levenberg-Marquardt: numbers, damping, and the mean square of the residuals before."""
    scale = jnp.asarray(OFF, x.dtype)

    def compare(v: jax.Array, edges: bool) -> jax.Array:
        pictures = blurred(draw(m, d, x + scale * v, edges) - seen, reach).reshape(-1)
        return jnp.concatenate([pictures, jnp.sqrt(trust) * (v + (x - start) / scale)])

    residual, push = jax.linearize(lambda v: compare(v, True), jnp.zeros_like(x))
    rows = jax.lax.map(push, jnp.eye(len(x)))
    a = rows @ rows.T
    v = -jnp.linalg.solve(a + damping * jnp.diag(jnp.diag(a)), rows @ residual)
    after = compare(v, False)
    better = after @ after < residual @ residual
    damping = jnp.clip(damping * jnp.where(better, BETTER, WORSE), 1e-7, 1e3)
    return jnp.where(better, x + scale * v, x), damping, jnp.mean(residual[: -len(x)] ** 2)


def mujoco_pictures(m: jaxsim.Model, qpos: np.ndarray) -> np.ndarray:
    """Pictures (10, HEIGHT, WIDTH, 3), bytes, by MuJoCo's renderer."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(XML)
    data, true = mujoco.MjData(model), changed(m, jnp.asarray(TRUTH))
    for name in ("cam_intrinsic", "cam_pos", "cam_quat"):
        getattr(model, name)[:] = getattr(true, name)
    model.vis.global_.offwidth, model.vis.global_.offheight = FINER * WIDTH, FINER * HEIGHT
    found = []
    with mujoco.Renderer(model, FINER * HEIGHT, FINER * WIDTH) as renderer:
        for q in qpos:
            data.qpos[:] = q
            mujoco.mj_forward(model, data)
            renderer.update_scene(data, "eye")
            fine = renderer.render().reshape(HEIGHT, FINER, WIDTH, FINER, 3)
            found.append(fine.mean((1, 3)).round().astype(np.uint8))
    return np.stack(found)


def errors(x: np.ndarray) -> dict[str, float]:
    """Errors of nine numbers: in percent, pixels, mm and degrees."""
    off = np.asarray(x) - TRUTH
    focal, mm = 100 * abs(np.expm1(off[0])), 1e3 * np.linalg.norm(off[3:6])
    turn = quat_mul(rotvec_to_quat(jnp.asarray(-TRUTH[6:])), rotvec_to_quat(jnp.asarray(np.asarray(x)[6:], float)))
    degrees = np.rad2deg(2 * np.arcsin(min(np.linalg.norm(turn[1:]), 1)))
    return {"focal length, %": focal, "principal point, pixels": np.linalg.norm(off[1:3]), "position, mm": mm,
            "rotation, degrees": degrees}  # fmt: skip


def more(parser: argparse.ArgumentParser) -> None:
    """Add this example's own option."""
    parser.add_argument("--draw", action="store_true", help="make the pictures anew, by MuJoCo's renderer")


def main() -> None:
    """Calibrate, and print the errors."""
    args = options(__doc__, x64=False, add=more)
    m = jaxsim.load_model(XML)
    if args.draw:
        qpos = poses(m)
        np.savez_compressed(PICTURES, pictures=mujoco_pictures(m, qpos), qpos=qpos)
    given = np.load(PICTURES)
    placed = jax.vmap(lambda q: jaxsim.com_pos(m, jaxsim.kinematics(m, jaxsim.make_data(m).replace(qpos=q))))
    d, seen = placed(jnp.asarray(given["qpos"], jnp.float32)), jnp.asarray(given["pictures"] / 255, jnp.float32)
    start = jnp.asarray(TRUTH + OFF * np.random.default_rng(args.seed).uniform(-1, 1, 9), jnp.float32)
    x, damping, found, used = start, jnp.float32(DAMPING), [start], 0.0
    step = jax.jit(improve).lower(m, d, seen, start, x, damping, *jnp.float32([1, 1])).compile()
    for i, numbers in enumerate(list(zip(BLUR, TRUST, strict=True))[: 1 if args.smoke else None]):
        begun = time.process_time()
        x, damping, cost = jax.block_until_ready(step(m, d, seen, start, x, damping, *jnp.float32(numbers)))
        used += time.process_time() - begun
        found.append(x)
        off = ", ".join(f"{e:.3f} {n.split(', ')[1]}" for n, e in errors(np.asarray(x)).items())
        print(f"step {i}: residual {float(jnp.sqrt(cost)):.5f}; {off}", flush=True)
    table = [errors(np.asarray(x)) for x in found]
    curves = {name: np.array([e[name] for e in table]) for name in table[0]}
    plot(args.out / "calibrate.svg", curves, title="Errors of the camera", x="step", y="error", log=True)
    replay(m, {"time": np.arange(10.0), "qpos": given["qpos"]}, args.out / "calibrate.html")
    show = [np.asarray(seen), *(np.asarray(jax.jit(draw)(m, d, x)) for x in (start, x))]
    show += [0.5 + 0.5 * (show[k] - show[0]) for k in (1, 2)]
    rows = [np.concatenate(list(pictures[:5]), 1) for pictures in show]
    pixels = (np.clip(np.concatenate(rows), 0, 1) * 255).round().astype(np.uint8)
    (args.out / "calibrate.png").write_bytes(png_bytes(pixels.repeat(3, 0).repeat(3, 1)))
    last = table[-1]
    good = all(e <= most for e, most in zip(last.values(), (0.5, 0.3, 5, 0.4), strict=True))
    result = ", ".join(f"{n} {table[0][n]:.2f} -> {e:.3f}" for n, e in last.items())
    finish(good, f"{result}; {used:.0f} s of processor time", args.smoke)


if __name__ == "__main__":
    main()
