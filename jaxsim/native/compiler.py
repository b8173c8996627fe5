"""Compile C source with the C compiler of this machine, into functions that a compiled JAX program calls.

XLA keeps each scalar of such programs in memory and takes long to compile them. A C compiler keeps scalars in
registers. PyTorch's compiler uses a C compiler on a CPU too. Without a C compiler, callers fall back to XLA.
"""

import atexit
import contextlib
import ctypes
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax

from jaxsim.native.nvrtc import CompilerMissing
from jaxsim.native.source_text import text
from jaxsim.xla.cache import evict, made, user_folder

FLAGS = (
    "-Wall",
    "-Wno-unused",
    "-Wno-parentheses",
    "-fwrapv",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
)
LINK = ("-shared", *(("-Wl,-undefined,dynamic_lookup",) if platform.system() == "Darwin" else ()))  # other libraries'
UNIT = "\n/* a unit that is compiled beside the others of its source */\n"  # between units, which are linked
# Exact arithmetic of the source: no contraction, no reordering. Only instructions of the base ABI, so that a cached
# library also runs on another machine; scalar code gains little from newer instructions.
# The bounds of two searches of gcc for stores that a load may read: a third less time to compile long functions.
C = ("-std=c99", "-Werror=implicit-function-declaration")
C += ("--param=sccvn-max-alias-queries-per-access=20", "--param=dse-max-alias-queries-per-store=32")
SCALAR = (*C, "-O2", "-ffp-contract=off")
# Passes of gcc for long code that a step, or its derivative, passes once: compiled in 0.73 of the time of -O2 without
# PRE and GCSE, and a step takes 1.00 to 1.02 of the time. Colliders and rows would take 1.03 to 1.08.
SHORT = ("-O1", "-ftree-vectorize", "-finline-functions", "-finline-small-functions", "-fexpensive-optimizations")
SHORT += ("-fstrict-aliasing", "-fcaller-saves", "-fpeephole2", "-freorder-blocks", "-foptimize-sibling-calls")
ONCE = (*C, *SHORT, "-ffp-contract=off")
CRASH = "internal compiler error"
# Sums in any order, and vector instructions of this machine: short vectors, since rows of robots' matrices are short.
# NaN and infinity keep their meaning.
VECTOR = (*C, "-O2", "-march=native", "-ffp-contract=fast", "-fassociative-math", "-fno-signed-zeros")
VECTOR += ("-mprefer-vector-width=128",) if platform.machine() in ("x86_64", "AMD64") else ()
# Products of matrices, in vectors of this machine. Steps gain nothing from these, not even loops over steps.
PRODUCTS = (*C, "-O2", "-march=native", "-ffp-contract=fast")
# C++ for vectors of worlds: each vector holds one number of several worlds.
WORLDS = ("-x", "c++", "-std=c++17", "-fno-exceptions", "-O2", "-march=native", "-ffp-contract=fast")
WORLDS += ("-fno-signed-zeros",)
# Long programs of derivatives: compiled in half the time, and they take 6 % longer.
LINEAR = tuple(x.replace("-O2", "-O1") for x in WORLDS)
LIBRARIES = ("-lmvec", "-lm") if platform.machine() == "x86_64" and platform.libc_ver()[0] == "glibc" else ("-lm",)
PREAMBLE = """#include <string.h>
#include "xla/ffi/api/c_api.h"
static int is_question(XLA_FFI_CallFrame* frame) {
for (XLA_FFI_Metadata_Extension* e = (XLA_FFI_Metadata_Extension*)frame->extension_start; e;
     e = (XLA_FFI_Metadata_Extension*)e->extension_base.next)
if (e->extension_base.type == XLA_FFI_Extension_Metadata) {
XLA_FFI_Metadata* m = e->metadata;
m->api_version.major_version = XLA_FFI_API_MAJOR;
m->api_version.minor_version = XLA_FFI_API_MINOR;
return 1;
}
return 0;
}
static XLA_FFI_Buffer* argument(XLA_FFI_CallFrame* frame, int i) { return (XLA_FFI_Buffer*)frame->args.args[i]; }
static XLA_FFI_Buffer* result(XLA_FFI_CallFrame* frame, int i) { return (XLA_FFI_Buffer*)frame->rets.rets[i]; }
"""


class CompilerRefused(CompilerMissing):
    """The compiler reports an error in the source."""


WORKERS = text(Path(__file__).parent, "workers.h")


@cache
def c_compiler() -> tuple[str, ...] | None:
    """Return the command of the C compiler or None: JAXSIM_CC (empty: None), else `cc`, gcc, clang or ziglang."""
    named = os.environ.get("JAXSIM_CC")
    names = ("cc", "gcc", "clang") if named is None else (named,) if named else ()
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None and named is None and importlib.util.find_spec("ziglang"):
        return sys.executable, "-m", "ziglang", "cc"
    return (path,) if path else None


@cache
def is_gcc() -> bool:
    """Return whether the C compiler is gcc."""
    try:
        done = subprocess.run([*(c_compiler() or ()), "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return b"Free Software Foundation" in done.stdout


def of_compiler(flags: tuple[str, ...]) -> tuple[str, ...]:
    """Return flags for the C compiler: a compiler other than gcc takes -O2 in place of `SHORT`."""
    if SHORT[-1] not in flags or is_gcc():
        return flags
    return ("-O2", *(x for x in flags if x not in SHORT))


@cache
def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def instructions() -> str:
    """Return the instruction sets of this processor, as the operating system names them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((x for x in lines if x.startswith(("flags", "Features"))), platform.processor())


@cache
def vector_bytes() -> int:
    """Return the bytes of this processor's widest vector registers."""
    flags = instructions().split()
    return 64 if "avx512f" in flags else 32 if "avx2" in flags else 16


def begin(source: str, flags: tuple[str, ...] = SCALAR) -> None:
    """Start to compile a source in another thread, while the caller goes on tracing; `target_of` waits for it."""
    if c_compiler():
        shared_library(source, flags)


def target_of(source: str, flags: tuple[str, ...] = SCALAR) -> str:
    """Return the name under which XLA calls `handler` of a source; flags are SCALAR, ONCE, VECTOR, WORLDS or LINEAR.

    The source begins with `PREAMBLE`. The function has the same name in the library, see `let_call`. The library is
    cached for later processes (`folder`). Raises CompilerMissing without a compiler, or if it reports an error; within
    `loaded_at_end`, errors are raised at its end.
    """
    library = _library(source, flags)
    _when_written(_load, library, ctypes.RTLD_LOCAL)
    return library.path.stem


def _library(source: str, flags: tuple[str, ...]) -> "_Library":
    if c_compiler() is None:
        raise CompilerMissing("no C compiler; install gcc or clang, or pip install 'jaxsim-mjcf[compiler]'")
    return shared_library(source, flags)


_at_end: ContextVar[list[Callable[[], None]] | None] = ContextVar("at_end", default=None)


@contextlib.contextmanager
def loaded_at_end() -> Iterator[None]:
    """Let libraries that are named within be compiled while the caller goes on; load them at the end, in order.

    Raises CompilerMissing at the end.
    """
    actions: list[Callable[[], None]] = []
    before = _at_end.set(actions)
    try:
        yield
    finally:
        _at_end.reset(before)
    for action in actions:
        action()


def _when_written(action: Callable[..., None], *args: Any) -> None:
    actions = _at_end.get()
    if actions is None:
        action(*args)
    else:
        actions.append(partial(action, *args))


def _register(name: str, library: ctypes.CDLL) -> None:
    """Register a library's handler with XLA, if it has one."""
    if hasattr(library, name):
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library, name)), platform="cpu")


def let_call(target: str) -> None:
    """Let libraries that are loaded later call a handler `XLA_FFI_Error* target(XLA_FFI_CallFrame*)`."""
    _when_written(_share, target)


def _share(target: str) -> None:
    ctypes.CDLL(str(_paths[target]), ctypes.RTLD_GLOBAL)
    loaded[target] = True


def function_of(library: str, name: str) -> Any:
    """Return a function of a library that this process has loaded, by ctypes."""
    return getattr(ctypes.CDLL(str(_paths[library])), name)


def load_part(source: str) -> None:
    """Let libraries that are loaded later call the functions of a source; raises as `target_of`."""
    _when_written(_load, _library(source, SCALAR), ctypes.RTLD_GLOBAL)


@cache
def _load(library: "_Library", mode: int) -> None:
    """Wait until a library is written, and load it; it is never unloaded."""
    library.written.result()
    path = library.path
    try:
        functions = ctypes.CDLL(str(path), mode)
    except OSError as error:  # the disk is full, or mounted without permission to execute
        raise CompilerMissing(f"no library of machine code in {path.parent}: {error}") from None
    loaded[path.stem], _paths[path.stem] = mode == ctypes.RTLD_GLOBAL, path
    _register(path.stem, functions)
    _note_use(path)


def _note_use(library: Path) -> None:
    """Set the time of the last use, see `evict`."""
    with contextlib.suppress(OSError):  # of a folder that cannot be written to
        os.utime(library)


# Libraries that this process has loaded, by name, in order. True: other libraries call its functions.
loaded: dict[str, bool] = {}
_paths: dict[str, Path] = {}


def load_again(libraries: dict[str, bool]) -> bool:
    """Load the libraries that another process had `loaded` for a program; return whether all exist and are intact."""
    for name, is_part in libraries.items():
        if name in loaded:
            if is_part and not loaded[name]:
                let_call(name)
            continue
        path = folder() / f"{name}.so"
        if not is_whole(path):
            return False
        _note_use(path)
        library = ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL if is_part else ctypes.RTLD_LOCAL)
        _register(name, library)
        loaded[name], _paths[name] = is_part, path
    return True


class _Library(NamedTuple):
    path: Path
    written: Future


@cache
def shared_library(source: str, flags: tuple[str, ...]) -> _Library:
    """Return the library of a source, which another thread may still be writing; JAXSIM_CFLAGS are further flags."""
    compiler, flags = c_compiler() or (), (*FLAGS, *of_compiler(flags), *_user_flags())
    machine = [platform.system(), platform.machine(), *([instructions()] if "-march=native" in flags else [])]
    made_of = ["handlers have names of their own", jax.__version__, *machine, *compiler, *flags, source]
    name = "jaxsim_" + hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:24]
    path = folder() / f"{name}.so"
    return _Library(path, _writers().submit(lambda: is_whole(path) or _compile([*compiler, *flags], source, path)))


def _user_flags() -> list[str]:
    return os.environ.get("JAXSIM_CFLAGS", "").split()


def is_whole(library: Path) -> bool:
    """Return whether a library exists and is intact: loading a truncated library kills the process."""
    try:
        return digest(library.read_bytes()) == library.with_suffix(".sum").read_text(encoding="ascii")
    except OSError:
        return False


def digest(content: bytes) -> str:
    """Return the length of a file's content and its checksum."""
    return f"{len(content)} {hashlib.sha256(content).hexdigest()}"


@cache
def _writers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="jaxsim-cc")


@cache
def _compilers() -> ThreadPoolExecutor:
    """Return threads that wait for compilers: as many as this process has cores."""
    return ThreadPoolExecutor(cores(), thread_name_prefix="jaxsim-unit")


def _compile(command: list[str], source: str, library: Path) -> None:
    """Write the shared library atomically, since other processes may look for it."""
    with tempfile.TemporaryDirectory(dir=library.parent) as name:
        folder, out, objects = Path(name), Path(name) / "library.so", []
        command = [*command, f"-Dhandler={library.stem}", f"-I{jax.ffi.include_dir()}", "-c"]
        for i, unit in enumerate(sorted(source.split(UNIT), key=len, reverse=True)):  # the last one to end is short
            file, made = folder / f"{i}.c", str(folder / f"{i}.o")
            file.write_text(unit, encoding="ascii")
            objects.append((made, _compilers().submit(_run, [*command, str(file), "-o", made])))
        for _, done in objects:
            done.result()
        _run([*(c_compiler() or ()), *LINK, *_user_flags(), *(made for made, _ in objects), "-o", str(out), *LIBRARIES])
        known = folder / "library.sum"
        known.write_text(digest(out.read_bytes()), encoding="ascii")
        os.replace(known, library.with_suffix(".sum"))
        os.replace(out, library)
    evict(library.parent)


def _run(command: list[str]) -> None:
    """Run the compiler, again without vectors of loops if it crashes. Raises CompilerMissing and CompilerRefused."""
    done = _ended(command)
    if CRASH in done.stderr:  # gcc 12 in its pass over loops: damping of trilinear flexes, float64
        done = _ended([*command, "-fno-tree-vectorize"])
    if done.returncode:
        raise CompilerRefused(f"{command[0]} refuses the source, please report this: {done.stderr[:500]}")


def _ended(command: list[str]) -> subprocess.CompletedProcess:
    """Return how a run of the compiler ended. Raises CompilerMissing."""
    english = os.environ | {"LC_ALL": "C"}  # its messages are shown
    try:
        return subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=600, check=False, env=english
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompilerMissing(f"{command[0]} does not run: {error}") from None


def folder(name: str = "native") -> Path:
    """Return the cache folder of this name: beside JAX's compiled programs if they are kept, else in the user's cache.

    If JAX's cache is switched off, or neither folder can be written, return a temporary folder of this process.
    """
    kept = getattr(jax.config, "jax_compilation_cache_dir", None) or os.environ.get("JAX_COMPILATION_CACHE_DIR")
    off = not getattr(jax.config, "jax_enable_compilation_cache", True) or kept == ""
    places = [] if off else [Path(kept)] if kept and "://" not in str(kept) else [user_folder()]
    return next(filter(None, (made(place / name) for place in places)), None) or _own_folder()


@cache
def _own_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="jaxsim-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
