"""jaxsim timed in several processes at once, one bound to each core, the worlds of a batch divided among them.

XLA hands the kernels of a program around among the threads of its pool; a process of one core has one thread and none
of that cost.
"""

import multiprocessing
import queue
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

Figures = dict[str, Any]
SECONDS = 2.0  # that every process runs for, after all of them are ready


def measure(m: Any, settings: Any, states: dict[str, np.ndarray]) -> Figures:
    """Steps per second of all processes together (`settings.processes`), or `refused` with the reason in one line."""
    import jaxsim

    count, nworld = settings.processes, len(states["time"])
    if jax.default_backend() != "cpu":
        return {"refused": "a process for each core is of use on a CPU only"}
    if nworld % count:
        return {"refused": f"{nworld} worlds cannot be divided among {count} processes"}
    context = multiprocessing.get_context("spawn")
    answers, ready = context.Queue(), context.Barrier(count)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.zip")
        jaxsim.save_model(m, path)
        parts = [{field: x[i::count] for field, x in states.items()} for i in range(count)]
        work = [(i, path, parts[i], settings.nstep, ready, answers) for i in range(count)]
        processes = [context.Process(target=_work, args=args, daemon=True) for args in work]
        for process in processes:
            process.start()
        try:
            speeds = []
            for _ in processes:
                answer = answers.get(timeout=settings.peer_timeout)
                if isinstance(answer, str):
                    return {"refused": answer}
                speeds.append(answer)
        except queue.Empty:
            return {"refused": f"no answer within {settings.peer_timeout:.0f} s"}
        finally:
            for process in processes:
                process.kill()
                process.join()
    return {"processes": count, "nworld": nworld, "steps_per_s": sum(speeds)}


def _work(core: int, path: str, states: dict[str, np.ndarray], nstep: int, ready: Any, answers: Any) -> None:
    try:
        answers.put(_speed(core, path, states, nstep, ready))
    except Exception as error:
        answers.put(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")


def _speed(core: int, path: str, states: dict[str, np.ndarray], nstep: int, ready: Any) -> float:
    import jaxsim
    from jaxsim import bench

    jaxsim.use_core(core)
    m = jaxsim.load_model(path)
    one, nworld = jaxsim.make_data(m), len(states["time"])
    d = jax.tree.map(lambda x: np.broadcast_to(np.asarray(x), (nworld, *np.shape(x))), one)
    d = jax.device_put(d.replace(**{field: x.astype(getattr(one, field).dtype) for field, x in states.items()}))
    run, m, d = bench.compile_rollout(m, d, nstep)
    jax.block_until_ready(run(m, d))
    ready.wait()
    begin, steps = time.perf_counter(), 0
    while time.perf_counter() - begin < SECONDS:
        jax.block_until_ready(run(m, d))
        steps += nworld * nstep
    return steps / (time.perf_counter() - begin)
