"""Other simulators (peers), timed on the model, states and controls of a benchmark of jaxsim, where installed.

The figures of a peer are `rows` (what, nworld, steps_per_s, mean_ncon) and the figures used in ratios
(`one_world`, `batch`, `compile_s`); or `refused`, the reason in one line.
"""
# pyright: reportAttributeAccessIssue=false
# The extension modules of mujoco have no types.

import contextlib
import importlib.util
import multiprocessing
import os
import queue
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.data import Data
from jaxsim.native.compiler import cores
from jaxsim.tools.timing import best_time

Figures = dict[str, Any]
MODULES = {"mujoco": "mujoco", "mjx": "mujoco.mjx", "mjwarp": "mujoco_warp"}
STATE = ("time", "qpos", "qvel", "act", "ctrl", "qacc_warmstart")


def measure(name: str, settings: Any, start: Data) -> Figures:
    """Measure the figures of one peer from the batch of states `start`.

    The peer runs in a separate process for at most `settings.peer_timeout` seconds, so that a crash or a hang does not
    lose earlier figures.
    """
    try:
        if importlib.util.find_spec(MODULES[name]) is None:
            raise ModuleNotFoundError
    except ModuleNotFoundError:
        return {"refused": f"not installed (python package {MODULES[name]})"}
    states = states_of(start)
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=_in_process, args=(name, settings, states, answers), daemon=True)
    process.start()
    try:
        return answers.get(timeout=settings.peer_timeout)
    except queue.Empty:
        return {"refused": f"no answer within {settings.peer_timeout:.0f} s"}
    finally:
        process.kill()
        process.join()


def states_of(start: Data) -> dict[str, np.ndarray]:
    """Collect the arrays of a batch of states, for a process that starts from them."""
    return {field: np.asarray(getattr(start, field), np.float64) for field in STATE}


def _in_process(name: str, settings: Any, states: dict[str, np.ndarray], answers: Any) -> None:
    """Put the figures of a peer, or the reason why there are none, into the queue `answers`."""
    import mujoco

    # MJX hangs unless XLA's thread pool has spare threads: its batched Cholesky factorisations wait for the pool
    os.environ["NPROC"] = str((os.cpu_count() or 1) + 2)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # stdout is for the report
            mj_model = mujoco.MjModel.from_xml_path(str(settings.path))
            answers.put({"mujoco": _mujoco, "mjx": _mjx, "mjwarp": _mjwarp}[name](mj_model, states, settings))
    except Exception as error:
        answers.put({"refused": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"})


def _set_state(mj_data: Any, states: dict[str, np.ndarray], world: int) -> None:
    """Write the state of a world into an `mjData`."""
    mj_data.time = states["time"][world]
    for field in STATE[1:]:
        getattr(mj_data, field)[:] = states[field][world]


def _mujoco(mj_model: Any, states: dict[str, np.ndarray], settings: Any) -> Figures:
    """Figures of MuJoCo in C: one world on one thread, all worlds on one thread and on every core."""
    import mujoco
    from mujoco import rollout

    nworld, nstep = len(states["time"]), settings.nstep
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    initial = np.zeros((nworld, mujoco.mj_stateSize(mj_model, spec)))
    warmstart = states["qacc_warmstart"]
    scratch = mujoco.MjData(mj_model)
    for world in range(nworld):
        _set_state(scratch, states, world)
        mujoco.mj_getState(mj_model, scratch, initial[world], spec)
    control = np.repeat(states["ctrl"][:, None], nstep, axis=1)
    threads = cores()

    def run(worlds: int, nthread: int) -> float:
        data = [mujoco.MjData(mj_model) for _ in range(nthread)]
        args = {"initial_warmstart": warmstart[:worlds], "nstep": nstep}
        if mj_model.nu:
            args["control"] = control[:worlds]
        times = []
        with rollout.Rollout(nthread=0 if nthread == 1 else nthread) as roll:
            for _ in range(4):
                begin = time.perf_counter()
                roll.rollout([mj_model] * worlds, data, initial[:worlds], **args)
                times.append(time.perf_counter() - begin)
        return worlds * nstep / min(times[1:])

    ncon = _mean_ncon(mj_model, states, nstep)
    rows = [
        {"what": "mujoco, 1 thread", "nworld": 1, "steps_per_s": run(1, 1), "mean_ncon": None},
        {"what": "mujoco, 1 thread", "nworld": nworld, "steps_per_s": run(nworld, 1), "mean_ncon": ncon},
    ]
    if threads > 1:
        what = f"mujoco, {threads} threads"
        rows.append({"what": what, "nworld": nworld, "steps_per_s": run(nworld, threads), "mean_ncon": None})
    return {"version": mujoco.__version__, "rows": rows, "one_world": rows[0]["steps_per_s"], "batch": _best(rows[1:])}


def _mean_ncon(mj_model: Any, states: dict[str, np.ndarray], nstep: int) -> float:
    """Mean number of contacts over at most 16 worlds, to check that the peer simulates the same contacts."""
    import mujoco

    data = mujoco.MjData(mj_model)
    total, worlds = 0, min(16, len(states["time"]))
    for world in range(worlds):
        mujoco.mj_resetData(mj_model, data)
        _set_state(data, states, world)
        for _ in range(nstep):
            mujoco.mj_step(mj_model, data)
            total += data.ncon
    return total / (worlds * nstep)


def _best(rows: list[Figures]) -> float:
    """Steps per second of the fastest row."""
    return max(row["steps_per_s"] for row in rows)


def _mjx(mj_model: Any, states: dict[str, np.ndarray], settings: Any) -> Figures:
    """Figures of MJX: compile time of one step, one world, and batches of several sizes, in a loop like jaxsim's."""
    import mujoco
    from mujoco import mjx

    mx = mjx.put_model(mj_model)
    nworld = len(states["time"])

    def batch(worlds: int) -> Any:
        index = np.arange(worlds) % nworld
        data = mjx.make_data(mj_model)
        spread = jax.tree.map(lambda x: np.broadcast_to(np.asarray(x), (worlds, *np.shape(x))), data)
        fields = {f: states[f][index].astype(np.asarray(getattr(data, f)).dtype) for f in STATE}
        return jax.device_put(spread.replace(**fields))

    def advance(mx: Any, dx: Any, nstep: int) -> Any:
        step = mjx.step if dx.time.ndim == 0 else jax.vmap(mjx.step, in_axes=(None, 0))
        # with many dofs mjx.step returns the factor of M in another shape than mjx.make_data
        dx = jax.tree.map(lambda x, y: x if x.shape == y.shape else jnp.zeros_like(y), dx, jax.eval_shape(step, mx, dx))
        return jax.lax.scan(lambda dx, _: (step(mx, dx), None), dx, None, length=nstep)[0]

    single = jax.tree.map(lambda x: x[0], batch(1))
    lowered = jax.jit(mjx.step).lower(mx, single)
    begin = time.perf_counter()
    lowered.compile()
    compile_s = time.perf_counter() - begin

    rows = []
    for worlds in (1, *settings.mjx_nworld):
        dx = single if worlds == 1 else batch(worlds)
        run = jax.jit(advance, static_argnums=2).lower(mx, dx, settings.nstep).compile()
        seconds = best_time(lambda run=run, dx=dx: run(mx, dx), repeats=2)
        rows.append(
            {"what": "mjx", "nworld": worlds, "steps_per_s": worlds * settings.nstep / seconds, "mean_ncon": None}
        )
    figures = {"version": mujoco.__version__, "rows": rows, "compile_s": compile_s}
    return figures | {"one_world": rows[0]["steps_per_s"], "batch": _best(rows)}


def _mjwarp(mj_model: Any, states: dict[str, np.ndarray], settings: Any) -> Figures:
    """Figures of MuJoCo Warp: all worlds on its default device, as a captured graph where that device is a GPU."""
    import mujoco
    import mujoco_warp as mjw  # pyright: ignore[reportMissingImports]
    import warp as wp  # pyright: ignore[reportMissingImports]

    wp.config.quiet = True
    nworld, nstep = len(states["time"]), settings.nstep
    mj_data = mujoco.MjData(mj_model)
    _set_state(mj_data, states, 0)
    mujoco.mj_forward(mj_model, mj_data)

    def measure_batch(worlds: int) -> float:
        model = mjw.put_model(mj_model)
        data = mjw.put_data(mj_model, mj_data, nworld=worlds)
        for field in STATE[1:]:
            getattr(data, field).assign(states[field][:worlds].astype(np.float32))
        mjw.step(model, data)
        if wp.get_device().is_cuda:
            with wp.ScopedCapture() as capture:
                mjw.step(model, data)
            run = lambda: wp.capture_launch(capture.graph)  # noqa: E731
        else:
            run = lambda: mjw.step(model, data)  # noqa: E731
        wp.synchronize()
        begin = time.perf_counter()
        for _ in range(nstep):
            run()
        wp.synchronize()
        return worlds * nstep / (time.perf_counter() - begin)

    rows = [
        {"what": f"mjwarp, {wp.get_device()}", "nworld": n, "steps_per_s": measure_batch(n), "mean_ncon": None}
        for n in sorted({1, nworld})
    ]
    return {
        "version": getattr(mjw, "__version__", ""),
        "rows": rows,
        "one_world": rows[0]["steps_per_s"],
        "batch": _best(rows),
    }
