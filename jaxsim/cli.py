"""The command line: `jaxsim info`, `jaxsim rollout` and `jaxsim bench`.

Every mistake of the user's gives one line on stderr and a status that is not zero: 1 for a model, a file or a value,
2 for the command line itself.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

PEERS = ("mujoco", "mjx", "mjwarp")


class CliError(Exception):
    """A mistake in the arguments: the message is what the user reads."""


class Parser(argparse.ArgumentParser):
    """An argument parser that reports a mistake in one line."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: error: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(2)


def positive(text: str) -> int:
    """An integer of at least one."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return value


def natural(text: str) -> int:
    """An integer of at least zero."""
    return 0 if text.strip() == "0" else positive(text)


def peers(text: str) -> tuple[str, ...]:
    """Names of peers, separated by commas."""
    names = tuple(filter(None, (name.strip() for name in text.split(","))))
    for name in names:
        if name not in PEERS:
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(PEERS)}")
    return names


def worlds(text: str) -> tuple[int, ...]:
    """Numbers of worlds, separated by commas."""
    return tuple(positive(part) for part in text.split(","))


def make_parser() -> Parser:
    """The parser of the whole command line."""
    parser = Parser(prog="jaxsim", description="A differentiable physics engine in JAX that reads MJCF and URDF.")
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    def command(name: str, run: Any, text: str) -> Parser:
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        sub.add_argument("model", metavar="MODEL", help="an MJCF or URDF file")
        sub.add_argument("--max-contacts", type=positive, metavar="N", help="capacity of the contact buffer")
        sub.add_argument("--max-constraints", type=positive, metavar="N", help="capacity of the constraint rows")
        sub.set_defaults(run=run)
        return sub

    command("info", run_info, "say what a model holds, and what of it is refused")

    sub = command("rollout", run_rollout, "simulate many worlds of a model")
    sub.add_argument("--nworld", type=positive, default=64, metavar="N", help="worlds at a time (default: 64)")
    sub.add_argument("--nstep", type=positive, metavar="N", help="steps (default: 1000, or the length of the controls)")
    sub.add_argument(
        "--controls",
        default="random",
        metavar="random|zero|keyframe|FILE",
        help="random: uniform in the control ranges; keyframe: those of --keyframe, held; FILE: an .npz file with an "
        "array 'ctrl', or an .npy file, of shape (nstep, nu) or (nstep, nworld, nu) (default: random)",
    )
    sub.add_argument(
        "--hold", type=positive, default=10, metavar="N", help="steps a random control lasts (default: 10)"
    )
    sub.add_argument("--seed", type=natural, default=0, metavar="N", help="seed of random controls (default: 0)")
    sub.add_argument("--keyframe", metavar="NAME", help="start from this keyframe, by name or number (default: qpos0)")
    sub.add_argument("--every", type=positive, default=1, metavar="N", help="record every N steps (default: 1)")
    sub.add_argument("--out", type=Path, metavar="FILE.npz", help="write the trajectories of all worlds here")
    sub.add_argument("--html", type=Path, metavar="FILE.html", help="write a page that replays one world in 3-D here")
    sub.add_argument("--world", type=natural, default=0, metavar="I", help="the world that --html replays (default: 0)")
    sub.add_argument("--follow", default="auto", metavar="BODY", help="the body that the replay's camera follows")
    sub.add_argument("--quiet", action="store_true", help="no progress bar")

    sub = command("bench", run_bench, "measure compilation and speed, beside other simulators if asked")
    sub.add_argument("--nworld", type=worlds, default=(256,), metavar="N[,N]", help="worlds at a time (default: 256)")
    sub.add_argument("--nstep", type=positive, default=100, metavar="N", help="steps of one measurement (default: 100)")
    sub.add_argument("--keyframe", metavar="NAME", help="start from this keyframe (default: the first, else qpos0)")
    sub.add_argument("--settle", type=natural, default=100, metavar="N", help="steps before the clock (default: 100)")
    sub.add_argument("--noise", type=float, default=0.1, metavar="X", help="random part of controls (default: 0.1)")
    sub.add_argument("--seed", type=natural, default=0, metavar="N", help="seed of the controls (default: 0)")
    sub.add_argument("--grad", action="store_true", help="time the reverse-mode gradient of a step as well")
    sub.add_argument("--against", type=peers, default=(), metavar="PEER[,PEER]", help=f"of {', '.join(PEERS)}")
    sub.add_argument("--peer-timeout", type=float, default=300.0, metavar="S", help="seconds that a peer may take")
    sub.add_argument("--mjx-nworld", type=worlds, default=(64, 256), metavar="N[,N]", help="batches that MJX tries")
    sub.add_argument("--json", metavar="FILE", help="write the figures as JSON here; - is stdout, without the table")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = make_parser()
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    if args.version:
        import jaxsim

        print(f"jaxsim {jaxsim.__version__}")
        return 0
    if args.command is None:
        parser.print_help()
        return 2
    return guarded(args)


def guarded(args: argparse.Namespace) -> int:
    """Run a command; what the user can mend becomes one line, what is our fault stays a traceback."""
    import jax

    from jaxsim.errors import ModelError, UnsupportedError

    try:
        check_outputs(args)
        return args.run(args)
    except (CliError, ModelError, UnsupportedError) as error:
        message = str(error)
    except OSError as error:
        message = f"{error.filename or args.model}: {error.strerror or error}"
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        message = "out of memory: use fewer worlds (--nworld) or record less (--every)"
    except MemoryError:
        message = "out of memory: use fewer worlds (--nworld) or record less (--every)"
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    print(f"jaxsim {args.command}: error: {' '.join(message.split())}", file=sys.stderr)
    return 1


def check_outputs(args: argparse.Namespace) -> None:
    """Refuse, before any work is done, a file that cannot be written and a model that is not there."""
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


def load(args: argparse.Namespace) -> Any:
    """The model of the arguments."""
    import jaxsim

    return jaxsim.load_model(
        args.model, **{k: v for k in ("max_contacts", "max_constraints") if (v := getattr(args, k)) is not None}
    )


def find_keyframe(m: Any, text: str | None) -> int | None:
    """The index of a keyframe given by name or number."""
    if text is None:
        return None
    names = [m.id2name("key", k) for k in range(m.nkey)]
    if text in names:
        return names.index(text)
    if text.isdigit() and int(text) < m.nkey:
        return int(text)
    known = ", ".join(name or str(k) for k, name in enumerate(names))
    raise CliError(f"no keyframe {text!r}; the model has {known or 'none'}")


def run_info(args: argparse.Namespace) -> int:
    """`jaxsim info`."""
    from jaxsim import info

    return info.report(args.model, lambda: load(args))


def run_rollout(args: argparse.Namespace) -> int:
    """`jaxsim rollout`."""
    import jax
    from tqdm import tqdm

    from jaxsim import rollouts
    from jaxsim.viewer.html import save_html

    start = time.perf_counter()
    m = load(args)
    loaded = time.perf_counter() - start
    if args.world >= args.nworld:
        raise CliError(f"--world {args.world}: there are {args.nworld} worlds, counted from 0")
    if args.follow not in ("auto", "none"):
        follow_exists(m, args.follow)
    d = rollouts.batch(m, args.nworld, find_keyframe(m, args.keyframe))
    values = given_values(args, m)
    nstep = args.nstep or (1000 if values is None else len(values))
    if values is not None and len(values) < nstep:
        raise CliError(f"--controls {args.controls} has {len(values)} steps; --nstep {nstep} needs more")
    plan = rollouts.Plan(
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
            else:  # compiled: the clock starts
                bar.reset()
                bar.set_description("rollout")

        result = rollouts.simulate(m, d, plan, controls, progress)
    print_result(m, plan, result)
    if args.out is not None:
        import numpy as np

        np.savez(args.out, **result.states)
        print(f"trajectories: {args.out} ({', '.join(result.states)}; frames first, then worlds)")
    if args.html is not None:
        save_html(m, thin(result.poses, m), args.html, follow=None if args.follow == "none" else args.follow)
        print(f"replay: {args.html} (open it in a browser)")
    return 0


def follow_exists(m: Any, name: str) -> None:
    """Refuse a body that is not there, before the simulation and not after it."""
    try:
        m.name2id("body", name)
    except KeyError as error:
        raise CliError(f"--follow: {error.args[0]}") from None


def given_values(args: argparse.Namespace, m: Any) -> Any:
    """The array of controls that --controls names, or None when it names a kind."""
    from jaxsim import rollouts

    if args.controls in ("random", "zero", "keyframe"):
        return None
    if not Path(args.controls).is_file():
        raise CliError(f"--controls: {args.controls!r} is neither random, zero, keyframe nor a file")
    try:
        return rollouts.load_controls(args.controls, m, args.nworld)
    except ValueError as error:
        raise CliError(f"--controls: {error}") from None


def choose_controls(args: argparse.Namespace, m: Any, d: Any, plan: Any, values: Any) -> tuple[Any, Any]:
    """The batch and the function of controls that the arguments ask for."""
    from jaxsim import rollouts

    if values is not None:
        return d, rollouts.given_controls(values)
    if args.controls == "random":
        return d, rollouts.random_controls(m, plan, args.seed)
    if args.controls == "keyframe" and args.keyframe is None:
        raise CliError("--controls keyframe needs --keyframe")
    return (d.replace(ctrl=0 * d.ctrl) if args.controls == "zero" else d), rollouts.held_controls


def thin(poses: dict[str, Any], m: Any, fps: float = 60.0) -> dict[str, Any]:
    """About `fps` frames a second of simulated time, for a page of a sensible size."""
    stamps = poses["time"]
    period = float(stamps[1] - stamps[0]) if len(stamps) > 1 else float(m.opt.timestep)
    stride = max(1, round(1 / (fps * max(period, 1e-9))))
    return {name: value[::stride] for name, value in poses.items()}


def print_result(m: Any, plan: Any, result: Any) -> None:
    """Speed, use of capacities, and what went wrong, on stdout; troubles go to stderr as well-marked lines."""
    from jaxsim import rollouts

    total = plan.nworld * plan.nstep
    rate = total / max(result.run_s, 1e-9)
    realtime = rate * float(m.opt.timestep)
    print(f"compiled in {result.compile_s:.2f} s; {rate:,.0f} steps/s, {realtime:,.0f} x real time over all worlds")
    most, rows = int(result.data.maxuse_con.max()), int(result.data.maxuse_efc.max())
    print(
        f"contacts: mean {result.mean_ncon:.1f}, most {most} of {m.max_contacts}; "
        f"constraint rows: most {rows} of {m.max_constraints}; solver iterations: mean {result.mean_niter:.1f}"
    )
    found = rollouts.troubles(m, result.data)
    for line in found:
        print(f"warning: {line}", file=sys.stderr)
    if not found:
        print("no overflow, no divergence")


def run_bench(args: argparse.Namespace) -> int:
    """`jaxsim bench`."""
    from jaxsim import bench

    if not 0 <= args.noise <= 1:
        raise CliError(f"--noise {args.noise} is not between 0 and 1")
    m_time = time.perf_counter()
    m = load(args)
    m_time = time.perf_counter() - m_time
    key = find_keyframe(m, args.keyframe)
    settings = bench.Settings(
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
    report = bench.bench(m, settings, load_s=m_time)
    if args.json != "-":
        print(bench.table(report))
    if args.json is not None:
        text = bench.to_json(report)
        if args.json == "-":
            print(text)
        else:
            Path(args.json).write_text(text + "\n", encoding="utf-8")
    return 0
