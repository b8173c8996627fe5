"""Programs that are compiled ahead of time and cached on disk, so that a later process neither traces nor compiles.

JAX's own cache is read only after a program has been traced and lowered, which takes most of a warm start.
"""

import contextlib
import hashlib
import json
import os
import pickle
import re
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import jaxlib.version
import numpy as np
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from jaxsim.core.callbacks import Callbacks
from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.engine.step import forward
from jaxsim.engine.step.initial import make_data
from jaxsim.host.packing import Packing
from jaxsim.interface.arguments import check_data, check_model, check_worlds
from jaxsim.interface.overflow import warn_of_overflow
from jaxsim.native import compiler
from jaxsim.native.core_program import core_program
from jaxsim.native.direct import DirectCall, Given
from jaxsim.xla.cache import BOUNDS, evict
from jaxsim.xla.options import OPTIONS, jit

FOLDER = "programs"  # beside the libraries of machine code
NOT_WORTH_SAYING = 1.0  # seconds


class Timed(NamedTuple):
    """A phase of building a program and its duration in seconds."""

    phase: str
    seconds: float


class Progress:
    """A line on the terminal with the current phase and its duration last time."""

    def __init__(self, title: str, shown: bool | None):
        self.title = title
        self.shown = sys.stderr.isatty() if shown is None else shown
        self.phases: list[Timed] = []
        self._file = compiler.folder(FOLDER) / f"{_digest(title)[:24]}.json"
        self._last = _read_json(self._file)

    @contextlib.contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """Print that a phase has begun, and time it."""
        last = f" ({self._last[phase]:.1f} s last time)" if phase in self._last else ""
        self._write(f"\r\033[K{self.title}: {phase}{last} ...")
        start = time.perf_counter()
        yield
        self.phases.append(Timed(phase, time.perf_counter() - start))

    def done(self) -> None:
        """Print the duration, and store it for the next time."""
        total = sum(seconds for _, seconds in self.phases)
        parts = ", ".join(f"{phase} {seconds:.1f} s" for phase, seconds in self.phases)
        said = f"{self.title}: ready in {total:.1f} s: {parts}\n" if total > NOT_WORTH_SAYING else ""
        self._write(f"\r\033[K{said}")
        with contextlib.suppress(OSError):
            self._file.write_text(json.dumps(self._last | dict(self.phases)), encoding="ascii")

    def _write(self, text: str) -> None:
        if self.shown:
            print(text, end="", file=sys.stderr, flush=True)


class Ahead(NamedTuple):
    """A program of the leaves of its arguments, compiled ahead of time.

    program: gives the results that it computes; a direct call gives NumPy arrays.
    results: structure of the function's result.
    sources: for each leaf of the result the argument that it equals, or None if the program computes it; empty if the
        program gives all.
    phases: seconds of each phase of building the program.
    loaded: whether it came from the cache of an earlier process.
    direct: whether the program is a C function, called without JAX.
    """

    program: Callable[..., Any]
    results: Any
    sources: tuple[int | None, ...]
    phases: tuple[Timed, ...]
    loaded: bool
    direct: bool

    def __call__(self, *leaves: Any) -> Any:
        """Leaves of the results."""
        if not self.sources:
            return self.program(*leaves)
        computed = iter(self.program(*leaves))
        return [next(computed) if i is None else _as_array(leaves[i]) for i in self.sources]


def _as_array(x: Any) -> jax.Array:
    return x if isinstance(x, jax.Array) else jnp.asarray(x)  # asarray of an array takes 15 us


class CompiledFunction:
    """A function compiled for arguments of one structure and shape; `compile` makes it.

    `phases` are the seconds of each phase of building it; `loaded` is true if an earlier process had cached it.
    """

    def __init__(
        self,
        made: Ahead,
        function: Callable[..., Any],
        packing: Packing,
        model: Any,
        others: Any,
        nworld: int | None,
        again: Callable,
    ):
        self._again, self._nworld = again, nworld
        self._made, self._packing, self._form_of_model, self._form = made, packing, model, others
        self._function = jax.jit(function)
        self._model: tuple[Model | None, tuple[Any, ...]] = None, ()  # a model and its numbers in buffers
        self.phases, self.loaded = made.phases, made.loaded

    def __call__(self, m: Model, *args: Any) -> Any:
        leaves, form = jax.tree.flatten(args)
        packed, buffers = self._model
        if _is_traced(leaves) or (m is not packed and _is_traced(jax.tree.leaves(m))):
            return self._function(m, *args)
        if m is not packed:
            buffers = self._packed(m, args)
            self._model = m, buffers
        if form != self._form:
            self._refuse(m, args)
        try:
            result = self._made.results.unflatten(self._made(*buffers, *leaves))
        except TypeError:
            self._check(m, args)  # its error has the name of the field
            raise
        if self._made.direct and isinstance(result, Data):
            warn_of_overflow(m, result)
        return result

    def __reduce__(self) -> Any:
        return self._again, ()  # which loads the program from the cache

    def _packed(self, m: Model, args: tuple[Any, ...]) -> tuple[Any, ...]:
        check_model(m, "the compiled function")
        leaves, form = jax.tree.flatten(m)
        if form != self._form_of_model:
            self._refuse(m, args)
        return self._packing.pack(dict(enumerate(leaves)))

    def _check(self, m: Model, args: tuple[Any, ...]) -> None:
        """Raise an error with the name of a field, where the data is wrong."""
        if self._nworld is not None:
            check_worlds(m, args[0] if args else None, "the compiled function", self._nworld)
        else:
            check_data(m, args[0] if args else None, "the compiled function")

    def _refuse(self, m: Model, args: tuple[Any, ...]) -> None:
        self._check(m, args)
        raise TypeError(
            "the arguments have another structure than those that this was compiled for: "
            "a model of another structure, or other types"
        )


def _is_traced(leaves: list[Any]) -> bool:
    return any(issubclass(x, jax.core.Tracer) for x in set(map(type, leaves)))


def compile(
    m: Model,
    nworld: int | None = None,
    function: Callable[..., Any] = forward.step,
    *args: Any,
    name: str | None = None,
    progress: bool | None = None,
) -> CompiledFunction:
    """Compile `function(m, d, *args)` ahead of time, for one world or a batch; later processes load it from a cache.

    Args:
        m: the model.
        nworld: number of worlds, over which `function` is mapped; None for one world.
        function: by default `jaxsim.step`.
        args: more arguments of the function, or their shapes; in a batch, with an axis of worlds first.
        name: caches your own function under this name. Choose another name when you change the function, since a change
            of its code is not detected. Functions of jaxsim are cached without a name.
        progress: write the current phase and its duration last time to stderr; by default, on a terminal.

    Returns:
        A function of (m, d, *args). It accepts other numbers of the same structure; other shapes raise TypeError. The
            first call with a model copies its numbers to a few buffers, so that later calls with it are fast. With
            traced arguments (`jit`, `grad`, `vmap`) it is the function itself.

    With a C compiler the function of one world on a CPU is mostly one C function, which is called without JAX. Its
    results are then read-only NumPy arrays, which functions of JAX accept: `jnp.asarray(d.qpos).at[0]`, since NumPy
    arrays have no `at`. Other functions return JAX arrays.

    Programs are cached beside the native libraries. The key is the content of the model's structure, jaxsim's source,
    the versions and options of JAX, and the machine. The cache contains machine code: use only a folder that you trust.
    Programs are removed 60 days after they were last loaded; if all exceed 1 GiB, the least recently loaded are removed
    first. The environment variables `JAXSIM_KEPT_DAYS` and `JAXSIM_KEPT_BYTES` set other bounds.
    """
    check_model(m, "compile", None)
    d = make_data(m)
    lead = () if nworld is None else (nworld,)
    worlds = jax.tree.map(lambda x: jax.ShapeDtypeStruct((*lead, *x.shape), x.dtype), d)
    mapped = function if nworld is None else jax.vmap(function, in_axes=(None, *[0] * (1 + len(args))))
    what = name or (_path(function) if function.__module__.startswith("jaxsim.") else None)
    title = f"{m.modelname or 'model'}, {'one world' if nworld is None else f'{nworld} worlds'}, {function.__name__}"
    key = None if what is None else (what, nworld is not None)
    numbers, form = jax.tree.flatten(m)
    packing = Packing(dict(enumerate(numbers)))

    def of_buffers(buffers: Any, *others: Any) -> Any:
        found = packing.unpack(buffers)
        return mapped(form.unflatten([found[i] for i in range(len(numbers))]), *others)

    args_of_program = (packing.shapes, worlds, *args)
    made = ahead(of_buffers, args_of_program, m, key, Progress(title, progress), one_world=nworld is None)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), jax.dtypes.result_type(x)), args)
    again = partial(compile, m, nworld, function, *shapes, name=name)
    return CompiledFunction(made, mapped, packing, form, jax.tree.structure((worlds, *args)), nworld, again)


def ahead(
    function: Callable[..., Any],
    args: Any,
    m: Model,
    key: Any,
    progress: Progress,
    one_world: bool = False,
) -> Ahead:
    """Compile a function of the leaves of `args`; with `one_world`, as programs for one core.

    `key` identifies the function, beyond the structure of `m` and the shapes of `args`; None: it is not cached. A
    program of one world that is one C function is called without JAX, and its results are NumPy arrays.
    """
    leaves, given = jax.tree.flatten(args)
    shapes = [jax.ShapeDtypeStruct(np.shape(x), jax.dtypes.result_type(x)) for x in leaves]
    path = None if key is None else _path_of(m, key, shapes, given.num_leaves)
    if path is not None:
        with progress.during("loading"):
            found = _load(path)
        if found is not None:
            progress.done()
            program, out, sources = found
            is_direct = not isinstance(program, jax.stages.Compiled)
            return Ahead(program, jax.tree.structure(out), sources, tuple(progress.phases), True, is_direct)
    progress.phases.clear()
    found_out: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        out = function(*given.unflatten(leaves))
        results = jax.tree.leaves(out)
        sources = _sources(results, leaves)
        found_out[:] = jax.tree.map(lambda _: 0, out), sources if set(sources) - {None} else ()
        return [x for x, i in zip(results, sources, strict=True) if i is None]

    calls: list[DirectCall] = []
    fixed = len(jax.tree.leaves(args[0]))  # of the model
    jitted = jit(core_program(flat, progress.title, m.opt.backend, calls.append, fixed) if one_world else flat)
    with progress.during("tracing"):
        traced = jitted.trace(*shapes)
    with progress.during("lowering and C"):
        lowered = traced.lower()
    out, sources = found_out
    if calls:
        calls, sources = [_with_arguments(calls[0], sources)], ()
        program = calls[0].load()
    else:
        with progress.during("XLA"), _fresh() if path is not None else contextlib.nullcontext():
            program = lowered.compile()
    progress.done()
    if path is not None:
        _keep(path, calls[0] if calls else program, out, sources)
    return Ahead(program, jax.tree.structure(out), sources, tuple(progress.phases), False, bool(calls))


def _with_arguments(call: DirectCall, sources: tuple[int | None, ...]) -> DirectCall:
    """Return the call with copies of arguments as results too."""
    own = iter(call.results)
    results = tuple(next(own) if i is None else Given(i) for i in sources) if sources else call.results
    return call._replace(results=results)


def _sources(results: list[Any], given: tuple[Any, ...]) -> tuple[int | None, ...]:
    """Of each result the argument that it is, each once; None where it is computed. Empty arrays take any like them."""
    same = {id(x): i for i, x in enumerate(given)}
    found = [same.pop(id(x), None) for x in results]
    empty: dict[Any, list[int]] = {}
    for i in same.values():
        if not given[i].size:
            empty.setdefault((given[i].shape, given[i].dtype), []).append(i)
    for k, x in enumerate(results):
        if found[k] is None and not x.size and empty.get((x.shape, x.dtype)):
            found[k] = empty[x.shape, x.dtype].pop()
    return tuple(found)


@contextlib.contextmanager
def _fresh() -> Iterator[None]:
    """Compile without JAX's cache on disk: what comes from there loses its kernels when it is written again."""
    before = jax.config.values["jax_enable_compilation_cache"]
    jax.config.update("jax_enable_compilation_cache", False)
    reset_cache()  # JAX asks once whether there is a cache
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
        reset_cache()


def _load(path: Path) -> tuple[Callable[..., Any], Any, tuple[int | None, ...]] | None:
    """A program that was kept, a tree like its results, and their sources; None where there is none that is whole."""
    if not compiler.is_whole(path):
        return None
    from jax.experimental.serialize_executable import deserialize_and_load

    with contextlib.suppress(OSError):  # of a folder that cannot be written to
        os.utime(path)  # it is used: see evict
    kept = pickle.loads(path.read_bytes())
    if not compiler.load_again(kept["libraries"]):
        return None
    if isinstance(kept["program"], DirectCall):
        return kept["program"].load(), kept["out"], kept["sources"]
    if kept["lapack"]:
        jax.jit(jax.numpy.linalg.cholesky).lower(np.eye(2, dtype=np.float32))  # which makes its functions known
    try:
        leaves = (kept["given"], kept["results"])
        program = deserialize_and_load(kept["program"], *map(jax.tree.structure, leaves))
    except (RuntimeError, ValueError) as error:  # of a backend that cannot
        print(f"jaxsim: a kept program does not load and is compiled anew: {error}", file=sys.stderr)
        return None
    return program, kept["out"], kept["sources"]


def _keep(path: Path, program: Any, out: Any, sources: tuple[int | None, ...]) -> None:
    """Write a program for later processes, all at once; not where the backend cannot, or nothing can be written."""
    content = {"program": program, "out": out, "sources": sources}
    if isinstance(program, DirectCall):
        used = {program.target} | ({program.prepare.target} if program.prepare else set())
    else:
        from jax.experimental.serialize_executable import serialize

        try:
            blob, given, results = serialize(program)
        except (ValueError, NotImplementedError, RuntimeError):  # callbacks of Python, closed-over arrays, a plugin
            return
        used = set(re.findall(r'custom_call_target="(\w+)"', program.as_text()))
        content |= {
            "program": blob,
            "given": given.unflatten([0] * given.num_leaves),
            "results": results.unflatten([0] * results.num_leaves),
            "lapack": any(target.startswith("lapack_") for target in used),
        }
    content["libraries"] = {name: part for name, part in compiler.loaded.items() if part or name in used}
    with contextlib.suppress(OSError, pickle.PicklingError, TypeError, AttributeError):
        data = pickle.dumps(content)
        mine = path.with_suffix(f".{os.getpid()}")
        mine.write_text(compiler.digest(data), encoding="ascii")
        os.replace(mine, path.with_suffix(".sum"))
        mine.write_bytes(data)
        os.replace(mine, path)
        evict(path.parent)


def _path_of(m: Model, key: Any, shapes: list[Any], count: int) -> Path | None:
    """Path of a cached program; None for a model with user functions, which cannot be compared by content."""
    if m.callbacks != Callbacks():
        return None
    options = {name: getattr(m.opt, name) for name in m.opt.STATIC}
    made_of = [repr(key), m.structure.digest.hex(), repr(options), repr([(x.shape, str(x.dtype)) for x in shapes])]
    return compiler.folder(FOLDER) / f"{_digest(*made_of, str(count), *_surroundings())[:40]}.program"


def _surroundings() -> list[str]:
    """Other parts of a program's key: versions, options, devices, the machine, the environment."""
    values = {k: v for k, v in jax.config.values.items() if "cache" not in k and "log" not in k}
    environment = {k: v for k, v in os.environ.items() if k.startswith(("XLA_", "JAXSIM_", "NPROC", "TF_"))}
    environment = {k: v for k, v in environment.items() if k not in BOUNDS}
    devices = [(d.platform, d.device_kind, d.id) for d in jax.devices()]
    return [
        *(jax.__version__, jaxlib.version.__version__, sys.version, _source(), repr(sorted(values.items(), key=str))),
        *(repr(sorted(environment.items())), repr(devices), repr(OPTIONS), str(compiler.c_compiler())),
        *(compiler.instructions(), sys.platform),
    ]


@cache
def _source() -> str:
    """Digest of the source of this package."""
    package, found = Path(__file__).parent.parent, hashlib.sha256()
    for folder, folders, names in os.walk(package):
        folders.sort()
        for name in sorted(names):
            if name.endswith((".py", ".h", ".cu", ".c")):
                content = Path(folder, name).read_bytes()
                found.update(f"{os.path.relpath(folder, package)} {name} {len(content)}".encode() + content)
    return found.hexdigest()


def _path(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def _read_json(file: Path) -> dict[str, float]:
    try:
        return json.loads(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return {}
