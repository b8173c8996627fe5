"""Find the pose of a known object from one depth picture, by Gauss-Newton from 100 random poses at once.

The object (a bracket of two boxes and a peg, 12 cm) lies before a wall, 40 cm from the camera; the picture has 64 x 64
pixels. Starts are within 30 degrees and 5 cm of the pose to be found. Residuals are differences of depth. First both
pictures are blurred and derivatives include the outline (`edges=True`), which moves the object over the one in the
picture. Then derivatives inside of surfaces are enough, and differences above a bound are left out.
Expected: at least 90 of 100 starts end within 1 degree and 2 mm. Writes pose.png (the true
pose and four starts, and below what they end at), errors as pose.svg, and a replay.
"""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from common import finish, options, plot, replay

import jaxsim
from jaxsim.support import integrate_pos
from jaxsim.viewer.png import png_bytes
from jaxsim.viewer.raycast import render

XML = """<mujoco>
  <visual><map znear=".05" zfar="4"/></visual>
  <statistic extent="1" center="0 0 .4"/>
  <worldbody>
    <camera name="depth" pos="0 0 0" xyaxes="1 0 0 0 -1 0" fovy="45" resolution="64 64"/>
    <light pos="-.3 -.4 0" dir=".4 .5 1" castshadow="false"/>
    <geom name="wall" type="plane" size="2 2 .1" pos="0 0 .6" euler="180 0 0" rgba=".6 .65 .7 1"/>
    <body name="bracket" pos="0 0 .4">
      <freejoint/>
      <geom type="box" size=".06 .02 .008" rgba=".8 .4 .2 1"/>
      <geom type="box" size=".008 .02 .03" pos="-.052 0 .03" rgba=".8 .4 .2 1"/>
      <geom type="cylinder" size=".012 .03" pos=".035 .01 -.03" rgba=".3 .5 .8 1"/>
    </body>
  </worldbody>
</mujoco>"""
SIZE, STARTS = 64, 100
BLUR = np.linspace(8, 1, 12)  # reach in pixels, in each iteration of the first part
BOUNDS = np.geomspace(0.05, 0.01, 12)  # of residuals in m, in each iteration of the second part
DAMPING, BETTER, WORSE = 1e-3, 0.3, 4.0  # Levenberg-Marquardt: at the start, and its change after a step


def placed(m: jaxsim.Model, d: jaxsim.Data, qpos: jax.Array) -> jaxsim.Data:
    """Data with the positions of a pose (7,)."""
    return jaxsim.camlight(m, jaxsim.com_pos(m, jaxsim.kinematics(m, d.replace(qpos=qpos))))


def depth(m: jaxsim.Model, d: jaxsim.Data, qpos: jax.Array, edges: bool = False) -> jax.Array:
    """Depth picture (SIZE, SIZE)."""
    return render(m, placed(m, d, qpos), "depth", SIZE, SIZE, edges=edges).depth


def blurred(picture: jax.Array, reach: jax.Array) -> jax.Array:
    """Picture with means over the pixels within `reach` of each, in both directions."""
    away = jnp.abs(np.arange(SIZE)[:, None] - np.arange(SIZE))
    mean = jnp.clip(reach + 0.5 - away, 0, 1) / (2 * reach)
    return mean @ picture @ mean.T


def fit(m: jaxsim.Model, d: jaxsim.Data, seen: jax.Array, start: jax.Array) -> jax.Array:
    """The pose (7,) that Levenberg-Marquardt reaches from `start`."""

    def improve(state: tuple, compare: Callable, bound: jax.Array, edges: bool) -> tuple:
        """One step on the residuals `compare(difference of depths)`, which count up to a bound."""
        qpos, damping = state
        moved = lambda v: compare(depth(m, d, integrate_pos(m, qpos, v, 1.0), edges) - seen).reshape(-1)  # noqa: E731
        cost = lambda x: jnp.sum(jnp.minimum(x**2, bound**2))  # noqa: E731
        residual, push = jax.linearize(moved, jnp.zeros(6))
        rows = jnp.where(jnp.abs(residual) < bound, jax.vmap(push)(jnp.eye(6)), 0)
        a = rows @ rows.T
        v = -jnp.linalg.solve(a + damping * jnp.diag(jnp.diag(a)) + 1e-9 * jnp.eye(6), rows @ residual)
        better = cost(moved(v)) < cost(residual)
        new = jnp.where(better, integrate_pos(m, qpos, v, 1.0), qpos)
        return new, jnp.clip(damping * jnp.where(better, BETTER, WORSE), 1e-7, 1e3)

    def coarse(state: tuple, reach: jax.Array) -> tuple:
        return improve(state, lambda x: blurred(x, reach), jnp.inf, True), None

    def fine(state: tuple, bound: jax.Array) -> tuple:
        return improve(state, lambda x: x, bound, False), None

    state = jax.lax.scan(coarse, (start, jnp.asarray(DAMPING)), jnp.asarray(BLUR, start.dtype))[0]
    return jax.lax.scan(fine, (state[0], jnp.asarray(DAMPING)), jnp.asarray(BOUNDS, start.dtype))[0][0]


def errors(found: np.ndarray, true: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Degrees and mm between poses (n, 7) and one pose."""
    turn = 2 * np.arccos(np.clip(np.abs(found[:, 3:] @ true[3:]), 0, 1))
    return np.rad2deg(turn), 1e3 * np.linalg.norm(found[:, :3] - true[:3], axis=1)


def starts(m: jaxsim.Model, true: jax.Array, count: int, seed: int) -> jax.Array:
    """Poses (count, 7) within 5 cm and 30 degrees of one: in random directions, by uniform amounts."""
    rng = np.random.default_rng(seed)
    way = rng.normal(size=(count, 2, 3))
    way *= rng.uniform(0, [[0.05], [np.deg2rad(30)]], (count, 2, 1)) / np.linalg.norm(way, axis=2, keepdims=True)
    return jax.vmap(lambda v: integrate_pos(m, true, v, 1.0))(jnp.asarray(way.reshape(count, 6), true.dtype))


def main() -> None:
    """Fit, and print how many starts end at the pose."""
    args = options(__doc__, x64=False)
    count = 2 if args.smoke else STARTS
    m = jaxsim.load_model(XML)
    d = jaxsim.make_data(m)
    true = integrate_pos(m, d.qpos, jnp.asarray([0.01, -0.01, 0.0, 0.5, 0.7, 0.3]), 1.0)
    first = starts(m, true, count, args.seed)
    seen = jax.jit(depth)(m, d, true)
    run = jax.jit(jax.vmap(fit, (None, None, None, 0))).lower(m, d, seen, first).compile()
    begun = time.process_time()
    found = np.asarray(run(m, d, seen, first))
    used = (time.process_time() - begun) / count
    before, after = errors(np.asarray(first), np.asarray(true)), errors(found, np.asarray(true))
    good = (after[0] < 1) & (after[1] < 2)
    for name, (degrees, mm) in (("start", before), ("end", after)):
        print(f"{name}: {np.median(degrees):.3f} degrees, {np.median(mm):.3f} mm in the median")
    curves = {"degrees, start": before[0], "degrees, end": after[0], "mm, start": before[1], "mm, end": after[1]}
    sorted_ = {name: np.sort(x) for name, x in curves.items()}
    plot(args.out / "pose.svg", sorted_, title="Errors of the pose", x="starts, the best first", y="error", log=True)
    replay(m, {"time": np.arange(2.0), "qpos": np.stack([first[:4], found[:4]])}, args.out / "pose.html")
    picture = jax.jit(jax.vmap(lambda q: render(m, placed(m, d, q), "depth", 160, 160, samples=2).rgb))
    rows = [np.concatenate(picture(jnp.stack([true, *x[:4]])), 1) for x in (first, jnp.asarray(found))]
    pixels = (np.concatenate(rows) * 255).round().astype(np.uint8)
    (args.out / "pose.png").write_bytes(png_bytes(pixels))
    result = f"{good.sum()} of {count} within 1 degree and 2 mm, {used:.2f} s of processor time each"
    finish(good.sum() >= 0.9 * count, result, args.smoke)


if __name__ == "__main__":
    main()
