"""Command line: `jaxsim demo`, `info`, `rollout`, `render`, `view`, `gradcheck` and `bench`.

After a mistake of the user, the program prints one line on stderr and exits with status 1 (in a model, a file or a
value) or 2 (in the command line itself).

`viewer.web` is imported where it is used, since it needs viser, an optional dependency that takes a second to load.
"""

import argparse
import contextlib
import os
import socket
import sys
import tempfile
import time
import warnings
import webbrowser
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import jax
import numpy as np
from tqdm import tqdm

import jaxsim
from jaxsim.core.errors import ModelError, UnsupportedError
from jaxsim.tools import bench, demo, gradcheck, info
from jaxsim.tools.peers import MODULES
from jaxsim.viewer import render, rollouts
from jaxsim.viewer.html import save_html
from jaxsim.xla.cache import use_compile_cache

PEERS = tuple(MODULES)


class CliError(Exception):
    """Mistake in the arguments, with a message for the user."""


class Parser(argparse.ArgumentParser):
    """Argument parser that reports a mistake in one line, with the options that commands share."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: error: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(2)

    def number(self, flag: str, text: str, default: int | None, kind: Any = None, shown: str = "") -> None:
        """Add a positive integer, or of another kind; the help names its default value, or what is `shown`."""
        about = f"{text} (default: {shown or default})"
        self.add_argument(flag, type=kind or positive, default=default, metavar="N", help=about)

    def numbers(self, flag: str, text: str, default: tuple[int, ...]) -> None:
        """Add positive integers separated by commas."""
        about = f"{text} (default: {','.join(map(str, default))})"
        self.add_argument(flag, type=worlds, default=default, metavar="N[,N]", help=about)

    def seed(self, of: str) -> None:
        """Add the seed of random numbers."""
        self.number("--seed", f"seed of {of}", 0, natural)

    def keyframe(self, default: str = "qpos0") -> None:
        """Add the keyframe of the initial state."""
        text = f"start from this keyframe, by name or number (default: {default})"
        self.add_argument("--keyframe", metavar="NAME", help=text)

    def quiet(self) -> None:
        """Add the switch of the progress bar."""
        self.add_argument("--quiet", action="store_true", help="no progress bar")


def positive(text: str) -> int:
    """Parse an integer of at least one."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return value


def natural(text: str) -> int:
    """Parse an integer of at least zero."""
    return 0 if text.strip() == "0" else positive(text)


def peers(text: str) -> tuple[str, ...]:
    """Parse names of other simulators, separated by commas."""
    names = tuple(filter(None, (name.strip() for name in text.split(","))))
    for name in names:
        if name not in PEERS:
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(PEERS)}")
    return names


def scenes(text: str) -> tuple[demo.Scene, ...]:
    """Parse names of scenes of the gallery, separated by commas."""
    known = {s.name: s for s in demo.SCENES}
    names = text.split(",")
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(known)}")
    return tuple(known[name] for name in names)


def worlds(text: str) -> tuple[int, ...]:
    """Parse numbers of worlds, separated by commas."""
    return tuple(positive(part) for part in text.split(","))


def make_parser() -> Parser:
    """Make the parser of the whole command line."""
    parser = Parser(prog="jaxsim", description="A differentiable physics engine in JAX that reads MJCF and URDF.")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    def command(name: str, run: Any, text: str, model: bool = True) -> Parser:
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        sub.set_defaults(run=run)
        if model:
            sub.add_argument("model", metavar="MODEL", help="an MJCF or URDF file")
            sub.number("--max-contacts", "capacity for contacts", None, shown="automatic")
            sub.number("--max-constraints", "capacity for constraint rows", None, shown="automatic")
        return sub

    text = "simulate models that come with jaxsim, and open a page that replays them in 3-D"
    sub = command("demo", run_demo, text, model=False)
    sub.add_argument("--out", type=Path, metavar="FILE.html", help="write the page there instead of opening it")
    sub.add_argument(
        "--scenes",
        type=scenes,
        default=demo.SCENES,
        metavar="NAME[,NAME]",
        help=f"some of {', '.join(s.name for s in demo.SCENES)} (default: all)",
    )
    sub.seed("random controls")
    sub.quiet()

    command("info", run_info, "describe a model and say whether all of its features are supported")

    sub = command("rollout", run_rollout, "simulate a batch of worlds of a model")
    sub.number("--nworld", "number of worlds", 64)
    sub.number("--nstep", "number of steps", None, shown="1000, or the length of the controls")
    sub.add_argument(
        "--controls",
        default="random",
        metavar="random|zero|keyframe|FILE",
        help="random: uniform in the control ranges; zero; keyframe: those of --keyframe, constant; FILE: an .npz file "
        "with an array 'ctrl', or an .npy file, of shape (nstep, nu) or (nstep, nworld, nu) (default: random)",
    )
    sub.number("--hold", "number of steps for which a random control is constant", 10)
    sub.seed("random controls")
    sub.keyframe()
    sub.number("--every", "record a frame every N steps", 1)
    sub.add_argument("--out", type=Path, metavar="FILE.npz", help="file to write the trajectories of all worlds to")
    sub.add_argument("--html", type=Path, metavar="FILE.html", help="file to write a 3-D replay of one world to")
    sub.add_argument("--world", type=natural, default=0, metavar="I", help="world to replay with --html (default: 0)")
    sub.add_argument(
        "--follow",
        default="auto",
        metavar="BODY",
        help="body that the camera of the replay follows, auto or none (default: auto)",
    )
    sub.quiet()

    sub = command("render", run_render, "render an image or a video of a model, without a display")
    sub.add_argument(
        "--out",
        type=Path,
        default=Path("frame.png"),
        metavar="FILE",
        help="image or video, such as .png, .mp4 or .gif (default: frame.png)",
    )
    sub.add_argument("--camera", metavar="NAME", help="camera of the model, by name or number (default: a free camera)")
    sub.keyframe()
    sub.add_argument(
        "--seconds", type=float, metavar="S", help="simulated time in seconds (default: 0 for images, 4 for videos)"
    )
    sub.add_argument(
        "--controls", choices=("zero", "random", "keyframe"), default="zero", help="controls (default: zero)"
    )
    sub.seed("random controls")
    sub.add_argument(
        "--replay", type=Path, metavar="FILE.npz", help="render a trajectory that `jaxsim rollout --out` wrote"
    )
    sub.add_argument("--world", type=natural, default=0, metavar="I", help="world of --replay (default: 0)")
    sub.add_argument("--together", action="store_true", help="all worlds of --replay in one scene, on one floor")
    sub.add_argument(
        "--orbit", type=float, default=0.0, metavar="DEG", help="degrees a second by which the free camera turns"
    )
    sub.number("--fps", "frames per second of a video", 30)
    sub.number("--width", "width in pixels", 640)
    sub.number("--height", "height in pixels", 480)
    sub.quiet()

    sub = command("view", run_view, "simulate a model interactively in the browser")
    sub.keyframe()
    sub.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    sub.number("--port", "port to listen on", 8080, shown="8080, or the next free one")
    sub.add_argument("--paused", action="store_true", help="start with the simulation paused")

    sub = command("gradcheck", run_gradcheck, "compare derivatives of a step of a model with differences")
    sub.keyframe()
    sub.number("--steps", "number of steps before the check", 50, natural)
    sub.seed("the directions")
    sub.add_argument(
        "--float32",
        action="store_true",
        help="check derivatives in single precision on JAX's device; differences are of double precision on the CPU",
    )
    sub.quiet()

    sub = command("bench", run_bench, "measure compilation and speed, and compare with other simulators")
    sub.numbers("--nworld", "numbers of worlds of the batches", (256,))
    sub.number("--nstep", "number of steps of one measurement", 100)
    sub.keyframe(default="the first one, or qpos0 if there is none")
    sub.number("--settle", "number of steps before the measurement", 100, natural)
    sub.add_argument(
        "--noise", type=float, default=0.1, metavar="X", help="random fraction of the controls, 0 to 1 (default: 0.1)"
    )
    sub.seed("the controls")
    sub.add_argument("--grad", action="store_true", help="also measure the reverse-mode gradient of a step")
    sub.add_argument(
        "--against", type=peers, default=(), metavar="NAME[,NAME]", help=f"compare with {', '.join(PEERS)}"
    )
    sub.add_argument(
        "--peer-timeout",
        type=float,
        default=300.0,
        metavar="S",
        help="time limit of another simulator in seconds (default: 300)",
    )
    sub.numbers("--mjx-nworld", "numbers of worlds of MJX's batches", (64, 256))
    sub.add_argument("--json", metavar="FILE", help="write the results as JSON; - is stdout, without the table")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status; as a program, it caches compiled programs."""
    if argv is None:
        use_compile_cache()
    parser = make_parser()
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    if args.version:
        print(f"jaxsim {jaxsim.__version__}")
        return 0
    if args.command is None:
        parser.print_help()
        return 2
    return run(args)


def run(args: argparse.Namespace) -> int:
    """Run a command and return the exit status; errors that the user can correct are printed in one line."""
    spread_over_cores()
    try:
        check_outputs(args)
        return args.run(args)
    except (CliError, ModelError, UnsupportedError, ImportError) as error:
        message = str(error)
    except OSError as error:
        message = f"{error.filename or vars(args).get('model', '')}: {error.strerror or error}"
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in str(error):
            raise
        message = "out of memory: use fewer worlds (--nworld) or record less (--every)"
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    print(f"jaxsim {args.command}: error: {' '.join(message.split())}", file=sys.stderr)
    return 1


def check_outputs(args: argparse.Namespace) -> None:
    """Raise CliError, before any work is done, for a missing model or a file that cannot be written."""
    if "model" in args:
        path = Path(args.model)
        if not path.exists():
            raise CliError(f"{path}: no such file")
        if path.is_dir():
            raise CliError(f"{path} is a directory, not a model")
    for option in ("out", "html", "json"):
        target = getattr(args, option, None)
        if target is None or str(target) == "-":
            continue
        folder = Path(target).absolute().parent
        if not folder.is_dir():
            raise CliError(f"--{option}: the directory {folder} does not exist")
        if Path(target).is_dir() or not os.access(folder, os.W_OK):
            raise CliError(f"--{option}: {target} cannot be written")


def spread_over_cores() -> None:
    """Make each core a JAX device, unless this process has computed with JAX before."""
    with contextlib.suppress(RuntimeError):
        jaxsim.use_cores()


def load(args: argparse.Namespace) -> Any:
    """Load the model that the arguments name, with capacities. Commands report what they drop: estimates are silent."""
    given = {k: v for k in ("max_contacts", "max_constraints") if (v := getattr(args, k)) is not None}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* is an estimate", jaxsim.CapacityWarning)
        return jaxsim.load_model(args.model, **given)


def find_keyframe(m: Any, text: str | None) -> int | None:
    """Find the index of a keyframe given by name or number, or None. Raises CliError when there is no such keyframe."""
    if text is None:
        return None
    names = [m.id2name("key", k) for k in range(m.nkey)]
    if text in names:
        return names.index(text)
    if text.isdigit() and int(text) < m.nkey:
        return int(text)
    known = ", ".join(name or str(k) for k, name in enumerate(names))
    raise CliError(f"no keyframe {text!r}; the model has {known or 'none'}")


def run_demo(args: argparse.Namespace) -> int:
    """Run `jaxsim demo` and return the exit status."""
    start = time.perf_counter()
    with tqdm(args.scenes, desc="demo", unit="scene", disable=args.quiet, file=sys.stderr) as shown:
        page = demo.gallery(shown, args.seed)
    path = args.out or Path(tempfile.mkdtemp(prefix="jaxsim_")) / "demo.html"
    path.write_text(page, encoding="utf-8")
    print(f"{len(args.scenes)} scenes simulated in {time.perf_counter() - start:.0f} s: {path}")
    if args.out is None and not webbrowser.open(path.absolute().as_uri()):
        print("no browser was found: open the file in one")
    return 0


def run_info(args: argparse.Namespace) -> int:
    """Run `jaxsim info` and return the exit status."""
    return info.report(args.model, lambda: load(args))


def run_gradcheck(args: argparse.Namespace) -> int:
    """Run `jaxsim gradcheck` and return the exit status: 1 where a derivative is wrong."""
    jax.config.update("jax_enable_x64", True)
    with jax.default_device(jax.local_devices(backend="cpu")[0] if args.float32 else None):
        m = load(args)
        d = jaxsim.make_data(m, keyframe=find_keyframe(m, args.keyframe))
        if args.steps:
            d = jaxsim.rollout(m, d, nstep=args.steps, outputs=())[0]
        d = jaxsim.forward(m, d)
        count = len(gradcheck.leaves(m, d))
        with tqdm(total=count, desc="gradcheck", disable=args.quiet, file=sys.stderr) as shown:
            rows = gradcheck.check(m, d, args.seed, shown.update, args.float32)
    precision = f"float32 on {jax.devices()[0].device_kind}" if args.float32 else "float64"
    print(f"{args.model}: a step after {args.steps}, {int(d.ncon)} contacts, {precision}")
    print(gradcheck.table(rows))
    print(f"{count - len(rows)} more leaves are zero, or have no effect that differences can see\n{gradcheck.NOTES}")
    return int(any(not row.right and not row.kink for row in rows))


def run_rollout(args: argparse.Namespace) -> int:
    """Run `jaxsim rollout` and return the exit status."""
    start = time.perf_counter()
    m = load(args)
    loaded = time.perf_counter() - start
    if args.world >= args.nworld:
        raise CliError(f"--world {args.world}: there are {args.nworld} worlds, counted from 0")
    if args.follow not in ("auto", "none"):
        check_body(m, args.follow)
    d = jaxsim.make_data(m, find_keyframe(m, args.keyframe), args.nworld)
    values = given_values(args, m)
    nstep = args.nstep or (1000 if values is None else len(values))
    if values is not None and len(values) < nstep:
        raise CliError(f"--controls {args.controls} has {len(values)} steps; --nstep {nstep} needs more")
    plan = rollouts.RolloutPlan(
        nworld=args.nworld,
        nstep=nstep,
        every=args.every,
        hold=args.hold,
        world=args.world,
        states=args.out is not None,
        poses=args.html is not None,
    )
    d, controls = choose_controls(args, m, d, plan, values)

    device = jax.devices()[0]
    print(
        f"{m.modelname or Path(args.model).stem}: {m.nbody - 1} bodies, {m.nv} dofs, {m.nu} actuators, {m.ngeom} geoms"
    )
    print(f"loaded in {loaded:.2f} s; {args.nworld} worlds x {nstep} steps on {device.platform}, {d.qpos.dtype}")
    with tqdm(total=nstep * args.nworld, unit="step", unit_scale=True, disable=args.quiet, desc="compiling") as bar:

        def progress(steps: int) -> None:
            if steps:
                bar.update(steps)
            else:  # compiled: the time of the bar starts here
                bar.reset()
                bar.set_description("rollout")

        result = rollouts.simulate(m, d, plan, controls, progress)
    print_result(m, plan, result)
    if args.out is not None:
        np.savez(args.out, **result.states)  # pyright: ignore[reportArgumentType]
        print(f"trajectories: {args.out} ({', '.join(result.states)}; axes: frame, world, ...)")
    if args.html is not None:
        save_html(m, thin(result.poses, m), args.html, follow=None if args.follow == "none" else args.follow)
        print(f"replay: {args.html} (open it in a browser)")
    return 0


def check_body(m: Any, name: str) -> None:
    """Raise CliError for an unknown body, before the simulation rather than after it."""
    try:
        m.name2id("body", name)
    except KeyError as error:
        raise CliError(f"--follow: {error.args[0]}") from None


def given_values(args: argparse.Namespace, m: Any) -> Any:
    """Load the array of controls in the file that --controls names, or return None when it is a keyword."""
    if args.controls in ("random", "zero", "keyframe"):
        return None
    if not Path(args.controls).is_file():
        raise CliError(f"--controls: {args.controls!r} is neither random, zero, keyframe nor a file")
    try:
        return rollouts.load_controls(args.controls, m, args.nworld)
    except ValueError as error:
        raise CliError(f"--controls: {error}") from None


def choose_controls(args: argparse.Namespace, m: Any, d: Any, plan: Any, values: Any) -> tuple[Any, Any]:
    """Batch with its initial controls, and the function (step, ctrl) -> ctrl of the arguments."""
    if values is not None:
        return d, rollouts.given_controls(values)
    if args.controls == "random":
        return d, rollouts.random_controls(m, plan, args.seed)
    if args.controls == "keyframe" and args.keyframe is None:
        raise CliError("--controls keyframe needs --keyframe")
    return (d.replace(ctrl=0 * d.ctrl) if args.controls == "zero" else d), rollouts.held_controls


def thin(poses: dict[str, Any], m: Any, fps: float = 60.0) -> dict[str, Any]:
    """Reduce poses to about `fps` frames per second of simulated time, to limit the size of a replay."""
    stamps = poses["time"].reshape(len(poses["time"]), -1)[:, 0]  # those of the first world
    period = float(stamps[1] - stamps[0]) if len(stamps) > 1 else float(m.opt.timestep)
    stride = max(1, round(1 / (fps * max(period, 1e-9))))
    return {name: value[::stride] for name, value in poses.items()}


def print_result(m: Any, plan: Any, result: Any) -> None:
    """Print speed and use of capacities on stdout, and diagnostics as warnings on stderr."""
    total = plan.nworld * plan.nstep
    rate = total / max(result.run_s, 1e-9)
    realtime = rate * float(m.opt.timestep)
    print(
        f"compiled in {result.compile_s:.2f} s; {rate:,.0f} steps/s of all worlds together, {realtime:,.0f} x real time"
    )
    contacts, rows = int(result.data.maxuse_con.max()), int(result.data.maxuse_efc.max())
    print(
        f"contacts: mean {result.mean_ncon:.1f}, maximum {contacts} (capacity {m.max_contacts}); "
        f"constraint rows: maximum {rows} (capacity {m.max_constraints}); "
        f"solver iterations: mean {result.mean_niter:.1f}"
    )
    found = rollouts.diagnostics(m, result.data)
    for line in found:
        print(f"warning: {line}", file=sys.stderr)
    if not found:
        print("no capacity overflowed, no world diverged")


MAX_PORT = 65535
VIDEOS = (".mp4", ".gif", ".webm", ".mkv", ".avi", ".mov")


def run_render(args: argparse.Namespace) -> int:
    """Run `jaxsim render` and return the exit status."""
    m = load(args)
    video = args.out.suffix.lower() in VIDEOS
    camera = int(args.camera) if args.camera is not None and args.camera.isdigit() else args.camera
    seconds = args.seconds if args.seconds is not None else (4.0 if video else 0.0)
    if seconds < 0:
        raise CliError(f"--seconds {seconds} is negative")
    if args.together and not args.replay:
        raise CliError("--together draws the worlds of a file: give --replay FILE.npz")
    size = {"width": args.width, "height": args.height, "together": args.together, "orbit": args.orbit / args.fps}
    try:
        if camera is not None:
            m.name2id("camera", camera) if isinstance(camera, str) else m.id2name("camera", camera)
        if video:
            frames = recorded(args, m) if args.replay else simulated(args, m, seconds, args.fps)
            save = partial(render.save_video, fps=args.fps, progress=partial(tqdm, disable=args.quiet, unit="frame"))
            save(m, frames, args.out, camera, **size)
        else:
            frames = recorded(args, m) if args.replay else simulated(args, m, seconds, 1 / max(seconds, 1e-9))
            render.save_image(m, frames, args.out, camera, **size)
    except (KeyError, IndexError) as error:
        known = ", ".join(m.id2name("camera", i) or str(i) for i in range(m.ncam))
        raise CliError(f"--camera: no camera {args.camera!r}; the model has {known or 'none'}") from error
    except (ImportError, ValueError) as error:
        raise CliError(str(error)) from None
    print(f"{'video' if video else 'image'}: {args.out}")
    return 0


def recorded(args: argparse.Namespace, m: Any) -> dict[str, Any]:
    """Read frames of one world of the trajectories that `jaxsim rollout --out` wrote, or of all, at about --fps."""
    loaded = np.load(args.replay)
    if "qpos" not in loaded or loaded["qpos"].ndim != 3 or loaded["qpos"].shape[2] != m.nq:
        raise CliError(f"--replay {args.replay} holds no qpos of shape (frames, worlds, {m.nq})")
    if args.world >= loaded["qpos"].shape[1]:
        raise CliError(f"--world {args.world}: the file has {loaded['qpos'].shape[1]} worlds, counted from 0")
    world = slice(None) if args.together else args.world
    frames = {name: loaded[name][:, world] for name in ("time", "qpos")}
    return thin(frames, m, args.fps)


def simulated(args: argparse.Namespace, m: Any, seconds: float, fps: float) -> dict[str, Any]:
    """Simulate frames of one world: the initial state, then `fps` per second."""
    d = jaxsim.make_data(m, find_keyframe(m, args.keyframe), nworld=1)
    first = {"time": np.asarray(d.time), "qpos": np.asarray(d.qpos)}
    every = max(1, round(1 / (fps * float(m.opt.timestep))))
    nstep = round(seconds / float(m.opt.timestep))
    if not nstep:
        return first
    plan = rollouts.RolloutPlan(nworld=1, nstep=nstep, every=min(every, nstep), states=True)
    d, controls = choose_controls(args, m, d, plan, None)
    states = rollouts.simulate(m, d, plan, controls).states
    return {name: np.concatenate([x, states[name][:, 0]]) for name, x in first.items()}


def check_address(host: str, port: int) -> None:
    """Raise CliError for an address that cannot be used; if a port is in use, the next free one is taken."""
    if port > MAX_PORT:
        raise CliError(f"--port {port}: ports end at {MAX_PORT}")
    try:
        socket.create_server((host, 0)).close()
    except OSError as error:
        raise CliError(f"--host {host}: cannot listen there: {error.strerror or error}") from None


def run_view(args: argparse.Namespace) -> int:
    """Run `jaxsim view` and return the exit status."""
    try:
        from jaxsim.viewer.web import Viewer
    except ImportError as error:
        raise CliError(str(error)) from None
    check_address(args.host, args.port)
    m = load(args)
    viewer = Viewer(m, keyframe=find_keyframe(m, args.keyframe), host=args.host, port=args.port, paused=args.paused)
    address = f"{args.host}:{viewer.port}"
    print(f"open http://{address} in a browser (from another machine: first ssh -L {viewer.port}:{address} HOST)")
    viewer.run()
    return 0


def run_bench(args: argparse.Namespace) -> int:
    """Run `jaxsim bench` and return the exit status."""
    if not 0 <= args.noise <= 1:
        raise CliError(f"--noise {args.noise} is not between 0 and 1")
    start = time.perf_counter()
    m = load(args)
    load_s = time.perf_counter() - start
    key = find_keyframe(m, args.keyframe)
    settings = bench.BenchSettings(
        path=args.model,
        nworld=args.nworld,
        nstep=args.nstep,
        keyframe=(0 if m.nkey else None) if key is None else key,
        settle=args.settle,
        noise=args.noise,
        seed=args.seed,
        grad=args.grad,
        against=args.against,
        peer_timeout=args.peer_timeout,
        mjx_nworld=args.mjx_nworld,
        quiet=args.json == "-",
    )
    report = bench.bench(m, settings, load_s=load_s)
    if args.json != "-":
        print(bench.table(report))
    if args.json is not None:
        text = bench.to_json(report)
        if args.json == "-":
            print(text)
        else:
            Path(args.json).write_text(text + "\n", encoding="utf-8")
    return 0
