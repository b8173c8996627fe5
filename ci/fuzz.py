"""Feed mutated inputs to everything that reads files, for as long as one likes; stop at the first fault.

    python ci/fuzz.py [--kind xml stl ...] [--seconds 600] [--runs N] [--seed 0] [--keep FOLDER] [--seeds FOLDER]
                      [--plain]

Kinds: MJCF and URDF text, meshes (STL, OBJ, MSH), images, height fields, skins and compiled models. An input passes if
it is read, or refused with ModelError or UnsupportedError, in SECONDS and without more than MEMORY of growth. With
atheris (`pip install atheris`) coverage guides the mutations; without it, or with --plain, they are drawn at random.
Good inputs of your own are the files of the folder `--seeds` whose names end with the kind (a.xml, b.stl).
What fails is written to the folder `--keep`, and its path is printed: `--replay FILE` runs it again.
"""

import argparse
import contextlib
import importlib
import os
import random
import resource
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("JAX_PLATFORMS", "cpu")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
atheris: Any = None
with contextlib.suppress(ImportError):
    atheris = importlib.import_module("atheris")
GUIDED = atheris is not None and "--plain" not in sys.argv
with (
    atheris.instrument_imports(include=["jaxsim.mjcf", "jaxsim.compiler", "jaxsim.io"])
    if GUIDED
    else (contextlib.nullcontext())
):
    from jaxsim.compiler.asset.hfield import HFieldInput, compile_hfield
    from jaxsim.compiler.asset.mesh import MeshInput, compile_mesh
    from jaxsim.compiler.asset.skin import SkinInput, compile_skin
    from jaxsim.compiler.asset.texture import TextureInput, compile_texture
    from jaxsim.compiler.compile import compile_spec
    from jaxsim.core.errors import ModelError, UnsupportedError
    from jaxsim.io.archive import read_archive
    from jaxsim.mjcf import read
    from jaxsim.mjcf.schema.element_type import all_types

SECONDS = 20.0  # of one input
MEMORY = 1 << 20  # KiB by which one input may raise the greatest memory
SMALL = 6_000  # bytes: seeds are no larger
WORDS = sorted({kind.tag for kind in all_types()} | {name for kind in all_types() for name in kind.attributes})
NUMBERS = (0, 1, -1, 2**31 - 1, -(2**31), 1 << 20)
VALUES = [b"0", b"-1", b"1e308", b"1e-320", b"nan", b"-inf", b"2147483648", b"1 2 3", b"", b"0x10", b"../x", b"a" * 99]
VALUES += [b"99999999999999999999", b"0 0 0", b"1 0 0 0", b"true", b"world", b"main", b"\x00", b"\xff\xfe", b"]]>"]


_SCRATCH = Path(tempfile.mkdtemp()) / "model.npz"
MODELS = ROOT / "models"
SCENE = b'<include file="common/scene.xml"/>'
INCLUDED = {path.relative_to(MODELS).as_posix(): path.read_bytes() for path in MODELS.rglob("*.xml")}


def _text(data: bytes) -> None:
    compile_spec(read("model.xml", INCLUDED | {"model.xml": data}))


def _archive(data: bytes) -> None:
    _SCRATCH.write_bytes(data)
    read_archive(_SCRATCH)


def _mesh(suffix: str) -> Callable[[bytes], Any]:
    return lambda data: compile_mesh(MeshInput(file=data, filename=f"a.{suffix}"))


READERS: dict[str, Callable[[bytes], Any]] = {
    "xml": _text,
    "urdf": _text,
    "stl": _mesh("stl"),
    "obj": _mesh("obj"),
    "msh": _mesh("msh"),
    "png": lambda data: compile_texture(TextureInput(type="2d", file=data, filename="a.png")),
    "hfield": lambda data: compile_hfield(HFieldInput(size=np.ones(4), file=data, filename="a.bin")),
    "skn": lambda data: compile_skin(SkinInput(file=data, filename="a.skn")),
    "model": _archive,
}
KINDS = tuple(READERS)


def seeds(kind: str) -> list[bytes]:
    """Small good inputs of a kind."""
    if kind == "xml":
        found = [path.read_bytes() for path in sorted(MODELS.glob("*.xml"))]
        plain = [data for data in found if data.count(b"<include") == data.count(SCENE)]
        return [data for data in plain if len(data) <= SMALL] + _texts()
    if kind == "model":
        import jaxsim

        with tempfile.TemporaryDirectory() as folder:
            jaxsim.save_model(jaxsim.load_model(TINY), f"{folder}/m.npz")
            return [Path(f"{folder}/m.npz").read_bytes()]
    return [SEEDS[kind]]


def _texts() -> list[bytes]:
    """The models that validation writes for one feature each."""
    from validation.models import dynamics, features

    values = [text for module in (dynamics, features) for text in vars(module).values()]
    return [text.encode() for text in values if isinstance(text, str) and "<mujoco" in text and "{" not in text]


TINY = """<mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody><geom type="plane"
size="1 1 1"/><body><joint name="j" range="-1 1"/><geom type="mesh" mesh="m"/><site name="s"/></body></worldbody>
<actuator><motor joint="j"/></actuator><sensor><jointpos joint="j"/></sensor></mujoco>"""
CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], "<f4")
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def _stl() -> bytes:
    rows = [np.zeros(3, "<f4").tobytes() + CORNERS[face].tobytes() + b"\0\0" for face in FACES]
    return bytes(80) + struct.pack("<I", len(rows)) + b"".join(rows)


def _obj() -> bytes:
    lines = [f"v {x} {y} {z}" for x, y, z in CORNERS] + ["vt 0 1", "vn 0 0 1"]
    return "\n".join(lines + [f"f {a + 1}/1/1 {b + 1}/1/1 {c + 1}/1/1" for a, b, c in FACES]).encode()


def _png() -> bytes:
    from jaxsim.viewer.png import png_bytes

    return png_bytes(np.arange(9 * 7 * 3, dtype=np.uint8).reshape(9, 7, 3))


SEEDS = {
    "urdf": b'<robot name="r"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz='
    b'"0" iyz="0"/></inertial><collision><geometry><box size="1 1 1"/></geometry></collision></link><link name="b">'
    b'<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    b'<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/><limit lower="-1" upper="1"'
    b' effort="1" velocity="1"/></joint></robot>',
    "stl": _stl(),
    "obj": _obj(),
    "msh": struct.pack("<4i", 4, 0, 0, 4) + CORNERS.tobytes() + FACES.astype("<i4").tobytes(),
    "png": _png(),
    "hfield": struct.pack("<2i", 2, 3) + np.arange(6, dtype="<f4").tobytes(),
    "skn": struct.pack("<4i", 4, 0, 4, 1)
    + CORNERS.tobytes()
    + FACES.astype("<i4").tobytes()
    + b"b".ljust(40, b"\0")
    + np.array([0, 0, 0, 1, 0, 0, 0], "<f4").tobytes()
    + struct.pack("<i", 4)
    + np.arange(4, dtype="<i4").tobytes()
    + np.ones(4, "<f4").tobytes(),
}


def check(data: bytes) -> None:
    """Read an input, whose first byte is its kind; raises where that fails, takes too long or too much memory."""
    if not data:
        return
    start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(ModelError, UnsupportedError):
            READERS[KINDS[data[0] % len(KINDS)]](data[1:])
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if time.process_time() - start > SECONDS:
        raise TimeoutError(f"{time.process_time() - start:.1f} s of processor time")
    if grown > MEMORY:
        raise MemoryError(f"{grown / 1024:.0f} MB more")


def mutate(data: bytes, rng: random.Random) -> bytes:
    """One to four changes: bytes, runs of bytes, numbers, and words of the language."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(1, len(out) + 1)
        change = rng.randrange(7)
        if change == 0 and at < len(out):
            out[at] = rng.randrange(256)
        elif change == 1:
            del out[at : at + rng.choice((1, 2, 8, 60))]
        elif change == 2:
            run = out[at : at + rng.choice((4, 30, 200))]
            out[at:at] = run
        elif change == 3:
            out[at:at] = rng.choice(WORDS).encode()
        elif change == 4:
            _change_value(out, at, rng)
        elif change == 5:
            out[at : at + 4] = struct.pack(
                "<i", rng.choice((0, 1, -1, 2**31 - 1, -(2**31), 1 << 20, rng.randrange(300)))
            )
        else:
            out[at : at + 4] = struct.pack("<f", rng.choice((0.0, np.nan, np.inf, -1e30, 1e-40, rng.random())))
    return bytes(out)


def _change_value(out: bytearray, at: int, rng: random.Random) -> None:
    """Replace what stands between the next two quotation marks."""
    first = out.find(b'"', at)
    last = out.find(b'"', first + 1)
    if 0 < first < last:
        out[first + 1 : last] = rng.choice(VALUES)


def run_plain(pool: list[bytes], args: argparse.Namespace) -> int:
    """Check random mutations of good inputs; returns how many were checked."""
    rng, begin, count = random.Random(args.seed), time.time(), 0
    while time.time() - begin < args.seconds and count < args.runs:
        data = mutate(rng.choice(pool), rng)
        try:
            check(data)
        except Exception as fault:
            path = args.keep / f"fault-{args.seed}-{count}"
            path.write_bytes(data)
            print(f"{path}: {type(fault).__name__}: {fault}", file=sys.stderr)
            raise
        count += 1
    return count


def run_guided(pool: list[bytes], args: argparse.Namespace) -> None:
    """Check mutations that coverage chooses; does not return."""
    corpus = args.keep / "corpus"
    corpus.mkdir(exist_ok=True)
    for i, data in enumerate(pool):
        (corpus / f"seed-{i}").write_bytes(data)

    def mutator(data: bytes, max_size: int, seed: int) -> bytes:
        rng = random.Random(seed)
        kind = data[:1] if data else b"\0"
        if rng.random() < 0.5:
            return mutate(data or kind, rng)[:max_size]
        return kind + bytes(atheris.Mutate(data[1:], max(max_size - 1, 1)))

    options = [f"-max_total_time={int(args.seconds)}", f"-runs={args.runs}", f"-seed={args.seed + 1}", "-max_len=16384"]
    options += ["-rss_limit_mb=4096", f"-timeout={int(3 * SECONDS)}", f"-artifact_prefix={args.keep}/fault-"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], check, custom_mutator=mutator)
    atheris.Fuzz()


def main() -> None:
    """Run the fuzzer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--runs", type=int, default=1_000_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "jaxsim-fuzz")
    parser.add_argument("--seeds", type=Path, help="a folder of more good inputs")
    parser.add_argument("--plain", action="store_true", help="random mutations even where atheris is installed")
    parser.add_argument("--replay", type=Path)
    args = parser.parse_args()
    if args.replay:
        check(args.replay.read_bytes())
        return
    args.keep.mkdir(parents=True, exist_ok=True)
    found = [(kind, data) for kind in args.kind for data in seeds(kind)]
    if args.seeds:
        found += [(kind, path.read_bytes()) for kind in args.kind for path in sorted(args.seeds.glob(f"*.{kind}"))]
    pool = [bytes([KINDS.index(kind)]) + data for kind, data in found]
    for data in pool:
        READERS[KINDS[data[0]]](data[1:])  # the seeds are good
    if GUIDED:
        run_guided(pool, args)
    else:
        print(f"{run_plain(pool, args)} mutated inputs without a fault")


if __name__ == "__main__":
    main()
