"""Compare one step from the same state with MuJoCo, over real models: a line per model with the worst field.

    python ci/parity_steps.py [--program jit|compile|batch|rows] [--backend auto|native|xla] [--float32]
                              [--states N | --at STEPS ...] [--timeout SECONDS] [FILES or folders ...]

Without files: all models of gymnasium, dm_control and mujoco.mjx, as installed. States are those of a trajectory of
MuJoCo with random controls, every 40 steps or after the steps that `--at` names. The step is `jax.jit`'s, that of
`jaxsim.compile`, or one batch of all states. With `rows` only constraint rows and solver are ours; all before comes
from MuJoCo. Every file has a process of its own, so that a crash or a hang is one line of the table. The line
also holds warnings of what has no native program, and the processor time until the first step is done. Every stage's
output that both have is compared. An error is relative to the largest entry of the field, at least one. Where a state
differs, both make the step from poses moved by 1e-15 to 1e-6. A difference that rounding decides is a tie, by the rules
of `validation/ties.py`. Ties are counted by name: "contacts", after which nothing of the state is compared; other
fields; "order" for the same contacts of a pair in another order, whose rows are then compared in ours.
"""

import argparse
import copy
import importlib.util
import multiprocessing
import pathlib
import resource
import warnings
from collections import Counter

import jax
import mujoco
import numpy as np

import jaxsim
from jaxsim.engine.constraint.make import make_constraint, reference_constraint
from jaxsim.engine.constraint.solve import fwd_constraint
from jaxsim.xla.options import jit
from validation import ties
from validation.oracle import dense_jacobian, oracle_data

FIELDS = (
    "xpos",
    "xquat",
    "xmat",
    "xipos",
    "ximat",
    "xanchor",
    "xaxis",
    "geom_xpos",
    "geom_xmat",
    "site_xpos",
    "site_xmat",
    "cam_xpos",
    "cam_xmat",
    "light_xpos",
    "light_xdir",
    "flexvert_xpos",
    "flexelem_aabb",
    "flexedge_length",
    "flexedge_velocity",
    "subtree_com",
    "cdof",
    "cinert",
    "ten_length",
    "ten_J",
    "actuator_length",
    "crb",
    "M",
    "qLD",
    "ten_velocity",
    "actuator_velocity",
    "cvel",
    "cdof_dot",
    "qfrc_bias",
    "qfrc_spring",
    "qfrc_damper",
    "qfrc_gravcomp",
    "qfrc_fluid",
    "qfrc_passive",
    "actuator_force",
    "qfrc_actuator",
    "qfrc_smooth",
    "qacc_smooth",
    "qacc",
    "qfrc_constraint",
    "sensordata",
    "energy",
    "act_dot",
    "qpos",
    "qvel",
    "act",
    "time",
    "history",
    "eq_active",
    "tree_asleep",
    "plugin_state",
)
CONTACT = (
    "dist",
    "pos",
    "frame",
    "includemargin",
    "friction",
    "solref",
    "solimp",
    "dim",
    "geom",
    "flex",
    "elem",
    "vert",
)
ROWS = ("J", "pos", "margin", "frictionloss", "diagApprox", "D", "vel", "aref", "force")
STATE = ("time", "qpos", "qvel", "act", "ctrl", "qacc_warmstart", "mocap_pos", "mocap_quat", "eq_active", "history")
SETTLE = 40  # steps of MuJoCo between two states
PACKAGES = ("gymnasium", "dm_control", "mujoco.mjx")


def default_files() -> list[pathlib.Path]:
    """MJCF files of the installed packages."""
    files = []
    for package in PACKAGES:
        root = pathlib.Path(importlib.util.find_spec(package).submodule_search_locations[0])
        files += sorted(root.glob("**/*.xml"))
    return files


def error(ours, theirs) -> float:
    """Largest difference relative to MuJoCo's largest entry, at least one; infinite where shapes differ."""
    ours, theirs = np.asarray(ours, float).reshape(-1), np.asarray(theirs, float).reshape(-1)
    if ours.shape != theirs.shape:
        return np.inf
    gap = np.abs(ours - theirs).max(initial=0)
    return np.inf if not np.isfinite(gap) else gap / max(1.0, np.abs(theirs).max(initial=0))


def compare(model, data, d, order) -> dict[str, float]:
    """Relative error of every field, in the order of the stages; `order` is that of our contacts in MuJoCo's."""
    out = {name: error(getattr(d, name), getattr(data, name)) for name in FIELDS}
    n = data.ncon
    out["ncon"] = 0.0 if int(d.ncon) == n else np.inf
    out["nefc"] = 0.0 if int(d.nefc) == data.nefc else np.inf
    if np.isinf(out["ncon"]) or np.isinf(out["nefc"]):
        return out
    order = np.arange(n) if order is None else order
    rows = ties.row_order(data, order)
    for name in CONTACT:
        out[f"contact.{name}"] = error(getattr(d.contact, name)[:n], getattr(data.contact, name)[order])
    jacobian = dense_jacobian(model, data)
    for name in ROWS:
        theirs = jacobian if name == "J" else getattr(data, f"efc_{name}")
        out[f"efc_{name}"] = error(getattr(d, f"efc_{name}")[: data.nefc], theirs[rows])
    terms = np.abs(jacobian).T @ np.abs(data.efc_force)  # forces may cancel in a sum
    out["qfrc_constraint"] *= min(1.0, np.abs(data.qfrc_constraint).max(initial=1) / terms.max(initial=1))
    return out


def copied(m, d, model, data):
    """Data at MuJoCo's state; with sleeping enabled all fields are copied, since those of sleeping bodies persist."""
    if model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_SLEEP:
        return oracle_data(m, d, data)
    return d.replace(**{name: np.asarray(getattr(data, name)) for name in STATE})


def moved_steps(m, d0, model, start, program: str, run, count: int) -> list[ties.Moved]:
    """Steps from poses next to `start`, every second one without turning; `run` takes `count` states at once."""
    rng, steps, turns = np.random.default_rng(0), [], np.zeros(model.nv, bool)
    for kind, adr in zip(model.jnt_type, model.jnt_dofadr, strict=True):
        first = adr + (3 if kind == mujoco.mjtJoint.mjJNT_FREE else 0)
        turns[first : first + (3 if kind <= int(mujoco.mjtJoint.mjJNT_BALL) else 0)] = True
    moves = ties.MOVES[bool(jax.config.jax_enable_x64)]
    for i, by in enumerate(moves):
        data = copy.copy(start)
        direction = rng.standard_normal(model.nv) * np.where(turns & (i % 2 == 1), 0, 1)
        mujoco.mj_integratePos(model, data.qpos, by * direction, 1)
        steps.append(one_step(m, d0, model, data, program))
    befores = [before for before, _ in steps]
    befores += befores[:1] * (-len(befores) % count)
    ours = [d for i in range(0, len(befores), count) for d in run(befores[i : i + count])]
    return [ties.Moved(by, d, data) for by, d, (_, data) in zip(moves, ours, steps, strict=False)]


def fields_are_ties(model, data, near: list[ties.Moved], bad: dict[str, float], limit: float) -> bool:
    """Whether MuJoCo's own values of all these fields change at poses moved by rounding.

    They must change by a tenth of the error at least, or be equal at a moved pose.
    """
    own, agrees = dict.fromkeys(bad, 0.0), dict.fromkeys(bad, np.inf)
    for x in near:
        change = compare(model, data, x.data, None)
        here = compare(model, x.data, x.d, ties.contact_order(x.d, x.data, limit))
        for name in bad:
            agrees[name] = min(agrees[name], here.get(name, np.inf))
            own[name] = max(own[name], change.get(name, 0.0) if x.by <= ties.TINY[limit < 1e-5] else 0.0)
    return all(own[name] > limit and (agrees[name] <= limit or own[name] >= 0.1 * bad[name]) for name in bad)


def constrained(m, d):
    """Data after the stages of constraints."""
    return fwd_constraint(m, reference_constraint(m, make_constraint(m, d)))


def stepper(m, d, program: str):
    """Function of a list of Data to the list of Data after one step."""
    if program == "batch":
        batch = jit(jax.vmap(jaxsim.step, (None, 0)))

        def run(states):
            worlds = jax.tree.map(np.asarray, batch(m, jax.tree.map(lambda *x: np.stack(x), *states)))
            return [jax.tree.map(lambda x: x[i], worlds) for i in range(len(states))]  # noqa: B023

        return run
    function = constrained if program == "rows" else jaxsim.step
    step = jaxsim.compile(m) if program == "compile" else jit(function).lower(m, d).compile()
    return lambda states: [step(m, x) for x in states]


def processor_time() -> float:
    """Seconds of this process and of the compilers that it called."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def one_step(m, d0, model, data, program: str):
    """Our data before a step, and MuJoCo's after it. Of the program `rows`, before and after stages of constraints."""
    if program == "rows":
        mujoco.mj_forward(model, data)
        return jax.tree.map(np.array, oracle_data(m, d0, data)), copy.copy(data)
    before = jax.tree.map(np.array, copied(m, d0, model, data))
    mujoco.mj_step(model, data)
    return before, copy.copy(data)


def trajectory(m, d0, model, times: list[int], program: str = "jit"):
    """Our data before a step, and MuJoCo's before and after it, for each of `times` at which it does not diverge."""
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    rng, done, out = np.random.default_rng(0), 0, []
    for time_of_state in times:
        for _ in range(time_of_state - done):
            data.ctrl[:] = rng.uniform(-0.5, 0.5, model.nu)
            mujoco.mj_step(model, data)
        start = copy.copy(data)
        before, after = one_step(m, d0, model, data, program)
        done = time_of_state + (program != "rows")
        if np.isfinite(np.r_[after.qacc, after.qpos]).all() and after.time >= start.time:  # earlier: it was reset
            out.append((before, start, after))
    return out


def check(path: pathlib.Path, times: list[int], program: str, backend: str) -> str:
    """Line of the table for one model."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.tolerance, model.opt.iterations = (1e-15, 500) if jax.config.jax_enable_x64 else (1e-10, 200)
    model.opt.ls_iterations = 200
    start = processor_time()
    try:
        m = jaxsim.load_model(path)
        changed = dict(tolerance=model.opt.tolerance, iterations=model.opt.iterations, ls_iterations=200)
        m = m.replace(opt=m.opt.replace(backend=backend, **changed))
        d0 = jaxsim.make_data(m)
        loaded = processor_time()
        states = trajectory(m, d0, model, times, program)
        if not states:
            return "unstable  MuJoCo's numbers diverge"
        start += processor_time() - loaded
        run = stepper(m, d0, program)
        stepped = run([before for before, *_ in states])
    except jaxsim.UnsupportedError as refusal:
        return f"refused   {str(refusal).splitlines()[0][:150]}"
    compiled = processor_time() - start
    worst: dict[str, float] = {}
    contacts, tied = 0, Counter()
    limit = 1e-6 if jax.config.jax_enable_x64 else 1e-3
    for d, (_, start, data) in zip(stepped, states, strict=True):
        contacts += data.ncon
        order = ties.contact_order(d, data, limit)
        found = compare(model, data, d, order)
        tied["order"] += order is not None and bool((np.diff(order) < 0).any())
        bad = {name: value for name, value in found.items() if not value <= limit}
        asleep = (start.tree_asleep >= 0).any()  # a move would wake trees
        near = moved_steps(m, d0, model, start, program, run, len(states)) if bad and not asleep else []
        if bad and order is None and ties.contacts_are_ties(model, start, d, data, near, limit):
            tied["contacts"] += 1
            continue
        if bad and order is not None and fields_are_ties(model, data, near, bad, limit):
            tied.update(list(bad))
            found = {name: value for name, value in found.items() if name not in bad}
        for name, value in found.items():
            worst[name] = max(value, worst.get(name, 0.0))
    names = ", ".join(f"{name} {n}" for name, n in tied.items() if n) or "none"
    if not worst:
        return f"ties      no other state: {names}"
    name = max(worst, key=worst.get)
    bad = {n: v for n, v in worst.items() if not v <= limit}
    verdict = "equal  " if not bad else "DIFFERS"
    more = "  beyond: " + " ".join(f"{n} {v:.0e}" for n, v in list(bad.items())[:30]) if bad else ""
    seen = f"contacts {contacts}; ties: {names}; compiled in {compiled:.0f} s"
    return f"{verdict}   worst {worst[name]:.1e} ({name}); {seen}{more}"


def line_of(path: pathlib.Path, *arguments) -> str:
    """`check`, with a model that cannot be loaded as a line of its own, and with warnings of other programs."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            line = check(path, *arguments)
        except (ValueError, mujoco.FatalError) as failure:
            line = f"no model  {str(failure).splitlines()[0][:90]}"
    other = {str(w.message).splitlines()[0][:120] for w in caught if issubclass(w.category, RuntimeWarning)}
    return " | WARNING ".join([line, *sorted(other)])


def _work(pipe, float32: bool, *arguments) -> None:
    jax.config.update("jax_enable_x64", not float32)
    try:
        pipe.send(line_of(*arguments))
    except Exception as failure:
        pipe.send(f"CRASH     {failure!r}"[:300])


def guarded(limit: float, *arguments) -> str:
    """Line of one model from a process of its own, for at most `limit` seconds."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_work, args=(theirs, *arguments))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(limit) else f"TIMEOUT   {limit:.0f} s"
    except EOFError:
        process.join()
        return f"DIED      exit status {process.exitcode}"
    finally:
        process.kill()
        process.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--program", choices=("jit", "compile", "batch", "rows"), default="jit")
    parser.add_argument("--backend", choices=("auto", "native", "xla"), default="auto")
    parser.add_argument("--float32", action="store_true")
    parser.add_argument("--states", type=int, default=5)
    parser.add_argument("--at", type=int, nargs="+", help="steps of MuJoCo before each state")
    parser.add_argument("--timeout", type=float, default=600.0)
    args = parser.parse_args()
    times = args.at or [SETTLE + i * (SETTLE + 1) for i in range(args.states)]
    files = [f for p in args.files for f in (sorted(p.glob("**/*.xml")) if p.is_dir() else [p])] or default_files()
    counts: Counter[str] = Counter()
    for path in files:
        line = guarded(args.timeout, args.float32, path, times, args.program, args.backend)
        counts[line.split()[0]] += 1
        print(f"{'/'.join(path.parts[-3:]):60s} {line}", flush=True)
    print(", ".join(f"{name}: {n}" for name, n in counts.most_common()))


if __name__ == "__main__":
    main()
