"""A table of MJCF files: our compiled model equals MuJoCo's, is refused (by what), or differs (in what).

    python ci/parity_models.py [FILE_OR_FOLDER ...]

Without arguments: the files of this repository and of the installed packages gymnasium, dm_control and mujoco.mjx.
"""

import importlib.util
import pathlib
import sys
import time
from collections import Counter

import mujoco

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import jaxsim  # noqa: E402
from jaxsim.compiler import compile_spec  # noqa: E402
from jaxsim.mjcf import read  # noqa: E402
from tests.compare import model_differences  # noqa: E402

PACKAGES = ("gymnasium", "dm_control", "mujoco.mjx")


def folders() -> list[pathlib.Path]:
    """Where MJCF files lie on this machine."""
    found = [ROOT / "models"]
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        found += [pathlib.Path(p) for p in (spec.submodule_search_locations if spec else [])]
    return found


def compare(path: pathlib.Path) -> tuple[str, str, float]:
    """(verdict, detail, seconds) of one file."""
    try:
        theirs = mujoco.MjModel.from_xml_path(str(path))
        reason = None
    except ValueError as error:
        theirs, reason = None, str(error).splitlines()[0]
    start = time.perf_counter()
    try:
        ours = compile_spec(read(str(path)))
    except jaxsim.UnsupportedError as error:
        return "refused", str(error).rsplit(": ", 1)[-1], time.perf_counter() - start
    except jaxsim.ModelError as error:
        return ("both reject" if theirs is None else "REJECTED"), str(error), time.perf_counter() - start
    except Exception as error:
        return "CRASH", repr(error), time.perf_counter() - start
    seconds = time.perf_counter() - start
    if theirs is None:
        return "ACCEPTED", f"MuJoCo: {reason}", seconds
    bad = model_differences(ours, theirs)
    if not bad:
        return "equal", "", seconds
    return "DIFFERS", "; ".join(f"{k}: {v}" for k, v in list(bad.items())[:6]), seconds


def main(arguments: list[str]) -> int:
    """Print the table and the totals; the exit status tells whether anything differs."""
    places = [pathlib.Path(a) for a in arguments] or folders()
    files = sorted(f for p in places for f in ([p] if p.is_file() else p.rglob("*.xml")))
    counts: Counter[str] = Counter()
    for file in files:
        if "<mujoco" not in file.read_text(errors="ignore"):
            continue
        verdict, detail, seconds = compare(file)
        counts[verdict] += 1
        print(f"{verdict:12} {seconds:7.3f} s  {'/'.join(file.parts[-4:])}  {detail[:300]}", flush=True)
    print(", ".join(f"{name}: {n}" for name, n in counts.most_common()))
    return int(any(counts[v] for v in ("CRASH", "DIFFERS", "REJECTED", "ACCEPTED")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
