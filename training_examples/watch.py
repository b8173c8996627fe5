"""Watch a trained policy: what it reaches in whole episodes, a replay, and pictures of one.

    python training_examples/watch.py training_examples/policies/humanoid_walk.npz --out walk
    python training_examples/watch.py runs/quadruped/policy.npz --video
    python training_examples/watch.py runs/rough/policy.npz --change level=9

Prints the mean of every metric of the task over the episodes of `--worlds` worlds, without exploration noise. Writes
`replay.html`, `strip.png` (eight pictures of one episode) and with `--video` an mp4 to `--out`.
"""

import argparse
import ast
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from common import POSE
from PIL import Image

import jaxsim
from jaxsim import envs
from jaxsim.viewer.html import save_html
from jaxsim.viewer.render import STATE, save_image, save_video
from jaxsim.xla.cache import use_compile_cache


def episodes(env: envs.Env, policy: envs.Policy, worlds: int, nstep: int, seed: int) -> tuple:
    """Whether each episode goes on, metrics and reward, each (nstep, worlds), and the poses of the first world."""

    def step(carry: tuple, _: None) -> tuple:
        state, going = carry
        state = jax.vmap(env.step)(state, policy(state.obs))
        frames = {name: getattr(state.data, name)[0] for name in (*STATE, *POSE)}
        return (state, going * (1 - state.done)), (going, {**state.metrics, "reward": state.reward}, frames)

    def run(keys: jax.Array) -> tuple:
        state = jax.vmap(env.reset)(keys)
        return jax.lax.scan(step, (state, jnp.ones(worlds)), None, nstep)[1]

    return jax.device_get(jaxsim.jit(run)(jax.random.split(jax.random.key(seed), worlds)))


def camera_of(m: jaxsim.Model) -> int | None:
    """The first camera that follows something, else the first; None for the viewer's own."""
    following = np.flatnonzero(np.asarray(m.cam_mode))
    return int(following[0]) if len(following) else 0 if m.ncam else None


def strip(env: envs.Env, frames: dict[str, np.ndarray], path: Path, first: int, every: int) -> None:
    """Write eight pictures of one episode as one PNG."""
    tiles = []
    for i in range(first, min(first + 8 * every, len(frames["qpos"])), every):
        state = {name: frames[name][i] for name in STATE}
        save_image(env.model, state, path, camera=camera_of(env.model), width=480, height=360)
        tiles.append(Image.open(path).resize((240, 180)).copy())
    whole = Image.new("RGB", (960, 180 * -(-len(tiles) // 4)))
    for i, tile in enumerate(tiles):
        whole.paste(tile, (240 * (i % 4), 180 * (i // 4)))
    whole.save(path)


def policy_parser(doc: str | None) -> argparse.ArgumentParser:
    """Parser of a policy's file and its task."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy", type=Path)
    parser.add_argument("--env", help="name of the task; the policy's own by default")
    parser.add_argument("--change", nargs="+", default=[], metavar="FIELD=VALUE", help="of the task's config")
    return parser


def policy_and_task(args: argparse.Namespace) -> tuple[envs.Policy, envs.Env]:
    """Policy and task that the arguments of a `policy_parser` name; a task of the user is looked for where they are."""
    sys.path.append(str(Path.cwd()))
    policy = envs.load_policy(args.policy)
    changes = dict(change.split("=", 1) for change in args.change)
    env = envs.make(args.env or policy.env, **{name: ast.literal_eval(value) for name, value in changes.items()})
    return policy, env


def main() -> None:
    """Watch as the command line says."""
    parser = policy_parser(__doc__)
    parser.add_argument("--worlds", type=int, default=64)
    parser.add_argument("--steps", type=int, help="actions of an episode; the task's by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=3, help="actions between two pictures (default: 3)")
    parser.add_argument("--video", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("watch"))
    args = parser.parse_args()
    use_compile_cache()
    policy, env = policy_and_task(args)
    nstep = args.steps or env.config.episode_length
    going, metrics, frames = episodes(env, policy, args.worlds, nstep, args.seed)
    length = going.sum(0)
    print(f"{policy.env}: {args.worlds} episodes of {nstep} actions")
    print(f"  length: {length.mean():.4g}, least {length.min():.4g}")
    for name, x in metrics.items():
        mean, last = (going * x).sum() / going.sum(), x[-1][going[-1] > 0]
        at_end = f", at the end {last.mean():.3g}" if len(last) else ""
        print(f"  {name}: {mean:.3g}{at_end}")
    args.out.mkdir(parents=True, exist_ok=True)
    frames = {name: x[: int(length[0])] for name, x in frames.items()}
    save_html(env.model, frames, args.out / "replay.html", title=policy.env)
    strip(env, frames, args.out / "strip.png", min(100, len(frames["qpos"]) // 2), args.every)
    if args.video:
        save_video(env.model, frames, args.out / "video.mp4", camera=camera_of(env.model), fps=1 / env.dt)
    print(f"written to {args.out}")


if __name__ == "__main__":
    main()
