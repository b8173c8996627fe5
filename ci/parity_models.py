"""Compare compiled models of MJCF and URDF files with MuJoCo's: a line per file, with the difference or the refusal.

    python ci/parity_models.py [--save] [--timeout SECONDS] [FILE_OR_FOLDER ...]

Without arguments: the files of this repository and of the installed packages gymnasium, dm_control and mujoco.mjx. With
`--save` each model that is equal is also saved as MJCF, as written and flat, and as a compiled model. The saved MJCF is
compiled by jaxsim and by MuJoCo, the saved model is loaded, and both are compared with the original. Every file has a
process of its own, so that a crash or a hang of MuJoCo is one line of the table.
"""

import argparse
import importlib.util
import multiprocessing
import pathlib
import sys
import tempfile
import time
import warnings
from collections import Counter

import mujoco

import jaxsim
from jaxsim.compiler import compile_spec
from jaxsim.mjcf import read
from validation.compare import archive_differences, model_differences, saved_differences

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = ("gymnasium", "dm_control", "mujoco.mjx")
GOOD = ("equal", "both reject", "refused")


def folders() -> list[pathlib.Path]:
    """Folders with MJCF files: the repository's models and the installed packages."""
    found = [ROOT / "models"]
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        found += [pathlib.Path(p) for p in (spec.submodule_search_locations if spec else [])]
    return found


def compare(path: pathlib.Path, save: bool) -> tuple[str, str, float]:
    """Verdict, detail and seconds of one file."""
    try:
        theirs = mujoco.MjModel.from_xml_path(str(path))
        reason = None
    except ValueError as error:
        theirs, reason = None, str(error).splitlines()[0]
    start = time.perf_counter()
    try:
        spec = read(str(path))
        ours = compile_spec(spec)
        if theirs is None:
            jaxsim.load_model(spec)  # which also checks the initial state
    except jaxsim.UnsupportedError as error:
        verdict = "both reject" if theirs is None else "refused"
        return verdict, str(error).rsplit(": ", 1)[-1], time.perf_counter() - start
    except jaxsim.ModelError as error:
        verdict = "both reject" if theirs is None else "REJECTED"
        return verdict, f"{error} | {reason}" if theirs is None else str(error), time.perf_counter() - start
    except Exception as error:
        return "CRASH", repr(error), time.perf_counter() - start
    seconds = time.perf_counter() - start
    if theirs is None:
        return "ACCEPTED", f"MuJoCo: {reason}", seconds
    bad = model_differences(ours, theirs)
    if bad:
        return "DIFFERS", _list(bad), seconds
    return ("equal", "", seconds) if not save else (*saved(spec, ours, theirs), seconds)


def saved(spec: jaxsim.mjcf.Spec, ours, theirs) -> tuple[str, str]:
    """Verdict and detail of saving a model in every format and reading it back, by jaxsim and by MuJoCo."""
    with tempfile.TemporaryDirectory() as folder:
        bad = archive_differences(ours, pathlib.Path(folder) / "model.jaxsim")
        if bad:
            return "SAVED MODEL", _list(bad)
        for way in ("MJCF", "FLAT"):
            try:
                bad = saved_differences(spec, theirs, pathlib.Path(folder) / f"{way}.xml", way == "FLAT")
            except jaxsim.UnsupportedError as error:
                return f"{way} REFUSED", str(error)
            except Exception as error:
                return f"{way} CRASH", repr(error)
            if bad:
                return f"SAVED {way}", _list(bad)
    return "equal", ""


def _list(differences: dict[str, str]) -> str:
    return "; ".join(f"{k}: {v}" for k, v in list(differences.items())[:6])


def _work(pipe, path: pathlib.Path, save: bool) -> None:
    warnings.simplefilter("ignore")
    pipe.send(compare(path, save))


def guarded(path: pathlib.Path, save: bool, limit: float) -> tuple[str, str, float]:
    """Result of `compare` in a process of its own, for at most `limit` seconds."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_work, args=(theirs, path, save))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(limit) else ("TIMEOUT", f"{limit:.0f} s", limit)
    except EOFError:
        process.join()
        return "DIED", f"exit status {process.exitcode}", 0.0
    finally:
        process.kill()
        process.join()


def is_model(path: pathlib.Path) -> bool:
    """Whether a file is a whole model, MJCF or URDF, rather than one to be included."""
    text = path.read_text(encoding="utf-8", errors="ignore")
    return "<mujoco" in text or "<robot" in text


def main(arguments: list[str]) -> int:
    """Print the table and the totals; returns exit status 1 where a model differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--timeout", type=float, default=120.0)
    parser.add_argument("paths", nargs="*", type=pathlib.Path)
    given = parser.parse_args(arguments)
    files = {f for p in given.paths or folders() for f in ([p] if p.is_file() else p.rglob("*"))}
    counts: Counter[str] = Counter()
    for file in sorted(f for f in files if f.suffix in (".xml", ".urdf", ".mjcf") and is_model(f)):
        verdict, detail, seconds = guarded(file, given.save, given.timeout)
        counts[verdict] += 1
        print(f"{verdict:12} {seconds:7.3f} s  {'/'.join(file.parts[-4:])}  {detail[:300]}", flush=True)
    print(", ".join(f"{name}: {n}" for name, n in counts.most_common()))
    return int(any(verdict not in GOOD for verdict in counts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
