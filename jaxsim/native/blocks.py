"""Run a function of one world for blocks of worlds on a TPU: one kernel, in which each number is a register of worlds.

The generator writes the same statements as for vectors of worlds on a CPU (`vectors.py`). Here they are evaluated while
a Pallas kernel is traced (`evaluate.py`): an array of a world is (size, 8, 128) in the memory of a core, one register
for each number and 1,024 worlds. Indices of loops and numbers that all worlds share are scalars.
"""

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math.safe import Array
from jaxsim.native.compute import compute
from jaxsim.native.evaluate import TYPES, Memory, Names, Scope, run_statements
from jaxsim.native.expressions import TooLarge, UnsupportedPrimitive
from jaxsim.native.jaxpr import BLOCKS, Flat, Var
from jaxsim.native.reading import Tree, functions, statements
from jaxsim.native.registers import DTYPES, REGISTER
from jaxsim.native.source_text import text
from jaxsim.native.tile_source import real_type
from jaxsim.native.writer import Buffer, Writer, places

WORLDS = math.prod(REGISTER)  # of a block
BYTES = 4 * WORLDS  # of a register; all numbers have 32 bits
MOST_BYTES = 100 << 20  # of arrays in the memory of a core
MOST_SHARED = 250_000  # numbers that all worlds share, in scalar memory, which holds 262,144


class Program(NamedTuple):
    """Statements of a kernel, and where its arrays lie."""

    trees: list[Tree]
    inputs: list[Buffer]
    outputs: list[Buffer]
    own: dict[Buffer, int]  # first numbers of arrays of worlds
    size: int
    shared: dict[Buffer, int]  # of arrays that all worlds share
    shared_sizes: tuple[int, int]  # of real numbers, of others
    tables: dict[str, np.ndarray]


def program(flat: Flat, has_worlds: Sequence[bool]) -> Program:
    """Return the kernel of a function. Raises UnsupportedPrimitive."""
    outputs = [v for v in flat.outputs if isinstance(v, Var)]
    made = {v for op in flat.operations for v in op.outputs}
    for v in (*flat.inputs, *made):
        if v.dtype not in DTYPES:
            raise UnsupportedPrimitive(f"numbers of type {v.dtype} on a TPU")
    w = Writer(keeps_more=True, lanes=1, vector=BYTES, real=real_type(flat, outputs), wide_platform=BLOCKS)
    inputs = [
        w.buffer(v.dtype, math.prod(v.shape), f"in{i}", uniform=not own)
        for i, (v, own) in enumerate(zip(flat.inputs, has_worlds, strict=True))
    ]
    results = [w.buffer(v.dtype, math.prod(v.shape), f"out{i}") for i, v in enumerate(outputs)]
    args = [w.stored(b, v.shape) for b, v in zip(inputs, flat.inputs, strict=True)]
    targets = {v: b for v, b in zip(outputs, results, strict=True) if v in made}
    found = compute(w, flat, args, targets)
    for v, b, x in zip(
        outputs, results, [y for y, o in zip(found, flat.outputs, strict=True) if isinstance(o, Var)], strict=True
    ):
        if x.buffer is not b:
            w.fill(b, x, v.shape)
    free = [b for b in w.buffers if not b.given]
    own, nbytes = places([b for b in free if not b.uniform], BYTES)
    if nbytes > MOST_BYTES:
        raise TooLarge("so many numbers of a world at once")
    for b in free:
        b.width = 4
    uniform = [[b for b in free if b.uniform and (b.dtype == np.float32) == real] for real in (True, False)]
    (reals, nreal), (others, nother) = (places(own, 4) for own in uniform)
    tables = dict(_table(t) for t in w.tables if t.startswith("TABLE "))
    every = sum(b.size for b in inputs if b.uniform) + sum(x.size for x in tables.values()) + (nreal + nother) // 4
    if every > MOST_SHARED:
        raise TooLarge("so many numbers that all worlds share")
    numbers = {b: at // BYTES for b, at in own.items()}
    return Program(
        statements(w.lines),
        inputs,
        results,
        numbers,
        nbytes // BYTES,
        {b: at // 4 for b, at in (reals | others).items()},
        (nreal // 4, nother // 4),
        tables,
    )


def _table(line: str) -> tuple[str, np.ndarray]:
    """Return the name and the numbers of a table of constants."""
    head, body = line.removeprefix("TABLE ").split("[", 1)
    kind, name = head.rsplit(" ", 1)
    entries = body[body.index("{") + 1 : body.rindex("}")]
    b = Scope({}, {})
    return name, np.array([b.value(t[2][1]) for t in _entries(entries)], TYPES[kind])


def _entries(text: str) -> list[Tree]:
    return statements([f"ASSIGN(x, {e});" for e in text.split(", ")])


@lru_cache(maxsize=1)
def _systems() -> dict[str, tuple[list[str], list[Tree]]]:
    return functions(text(Path(__file__).parent, "systems.h"))


def run(
    flat: Flat, has_worlds: Sequence[bool], count: int, operands: Sequence[Array], interpret: bool = False
) -> list[Array]:
    """Return results (count, ...) of a function of one world. Raises UnsupportedPrimitive."""
    return kernel(
        program(flat, has_worlds), [v.shape for v in flat.outputs if isinstance(v, Var)], count, operands, interpret
    )


def kernel(
    p: Program, shapes: Sequence[tuple[int, ...]], count: int, operands: Sequence[Array], interpret: bool
) -> list[Array]:
    """Return results (count, *shape) of a kernel."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    reals, whole, own = laid_out(p, count, operands)
    blocks, total = len(own), max(1, sum(b.size for b in p.outputs))
    once = {"pipeline_mode": pl.Buffered(1)} if not interpret else {}
    block = lambda n: pl.BlockSpec((None, n, *REGISTER), lambda b: (b, 0, 0, 0), memory_space=pltpu.VMEM, **once)  # noqa: E731
    scalars = pl.BlockSpec(memory_space=pltpu.SMEM)
    nbytes = BYTES * (own.shape[1] + total + p.size)
    if nbytes > MOST_BYTES:
        raise TooLarge("so many numbers of a world at once")
    out = pl.pallas_call(
        partial(execute, p),
        grid=(blocks,),
        in_specs=[scalars, scalars, block(own.shape[1])],
        out_specs=block(total),
        out_shape=jax.ShapeDtypeStruct((blocks, total, *REGISTER), jnp.float32),
        scratch_shapes=[
            pltpu.VMEM((max(1, p.size), *REGISTER), jnp.float32),
            *(pltpu.SMEM((max(1, n),), t) for n, t in zip(p.shared_sizes, (jnp.float32, jnp.int32), strict=True)),
        ],
        compiler_params=pltpu.CompilerParams(vmem_limit_bytes=nbytes + (16 << 20)),
        interpret=interpret,
    )(reals, whole, own)
    return as_results(p, shapes, count, out)


def laid_out(p: Program, count: int, operands: Sequence[Array]) -> tuple[Array, Array, Array]:
    """Return the real and the whole numbers that all worlds share, and those of worlds (blocks, n, 8, 128)."""
    blocks = -(-count // WORLDS)
    given = [(b, x) for b, x in zip(p.inputs, operands, strict=True) if b.size]
    worlds = [_bits(x, jnp.float32).reshape(count, -1) for b, x in given if not b.uniform]
    own = jnp.concatenate(worlds, axis=1) if worlds else jnp.zeros((count, 1), jnp.float32)
    own = jnp.pad(own, [(0, blocks * WORLDS - count), (0, 0)], mode="edge")
    own = own.reshape(blocks, WORLDS, -1).swapaxes(1, 2).reshape(blocks, -1, *REGISTER)
    reals = [x.reshape(-1) for b, x in given if b.uniform and b.dtype == np.float32]
    whole = [_bits(x, jnp.int32).reshape(-1) for b, x in given if b.uniform and b.dtype != np.float32]
    reals += [jnp.asarray(x) for x in p.tables.values() if x.dtype == np.float32]
    whole += [jnp.asarray(x).astype(jnp.int32) for x in p.tables.values() if x.dtype != np.float32]
    reals, whole = (jnp.concatenate([jnp.zeros(1, t), *x]) for t, x in ((jnp.float32, reals), (jnp.int32, whole)))
    return reals, whole, own


def execute(p: Program, reals: Any, whole: Any, own: Any, out: Any, memory: Any, real_memory: Any, others: Any) -> None:
    """Execute the statements for a block, given references to its arrays."""
    names: Names = {}
    at = {"own": 0, "out": 0, np.float32: 1, np.int32: 1}

    def shared(name: str, size: int, dtype: np.dtype, numbers: np.ndarray | None = None) -> None:
        key = np.float32 if dtype == np.float32 else np.int32
        names[name] = Memory(reals if key == np.float32 else whole, at[key], size, dtype, False, numbers)
        at[key] += size

    for b in p.inputs:
        if b.uniform:
            shared(b.name, b.size, b.dtype)
        else:
            names[b.name] = Memory(own, at["own"], b.size, b.dtype)
            at["own"] += b.size
    for name, x in p.tables.items():
        shared(name, x.size, x.dtype, x)
    for b in p.outputs:
        names[b.name] = Memory(out, at["out"], b.size, b.dtype)
        at["out"] += b.size
    for b, begin in p.own.items():
        names[b.name] = Memory(memory, begin, b.size, b.dtype)
    for b, begin in p.shared.items():
        names[b.name] = Memory(real_memory if b.dtype == np.float32 else others, begin, b.size, b.dtype, False)
    run_statements([Scope(names, _systems())], p.trees)


def as_results(p: Program, shapes: Sequence[tuple[int, ...]], count: int, out: Array) -> list[Array]:
    """Return results (count, *shape) from those of blocks (blocks, n, 8, 128)."""
    sizes = [b.size for b in p.outputs]
    rows = out.reshape(len(out), -1, WORLDS).swapaxes(1, 2).reshape(len(out) * WORLDS, -1)[:count]
    begin = np.cumsum([0, *sizes])
    parts = [rows[:, a:z] for a, z in itertools.pairwise(begin)]
    return [_of_bits(x, b.dtype).reshape(count, *s) for x, b, s in zip(parts, p.outputs, shapes, strict=True)]


def _bits(x: Array, dtype: Any) -> Array:
    """Return numbers of 32 bits as those of another type with the same bits."""
    x = jnp.asarray(x)
    x = x.astype(jnp.int32) if x.dtype == bool else x
    return x if x.dtype == dtype else lax.bitcast_convert_type(x, dtype)


def _of_bits(x: Array, dtype: np.dtype) -> Array:
    return lax.bitcast_convert_type(x, jnp.int32) != 0 if dtype == np.bool_ else _bits(x, dtype)
