"""Narrow phase as a native program of a CPU, which writes one pair at a time, in MuJoCo's order, to the buffer.

A pair that fails its bound test costs nothing more; in long lists a sweep selects the pairs to test. Every collider is
a scalar program generated from the function that the reference implementation calls (`narrow`). Its source contains no
number of geoms, vertices, pairs or contacts, so that models share the library of each kind of pairs.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import GeomType
from jaxsim.engine.collision.broad.bounds import boxes_touch, spheres_of_pairs
from jaxsim.engine.collision.broad.sweep import SweptGeoms, near_of_list, swept_geoms
from jaxsim.engine.collision.narrow import (
    BufferEntries,
    NarrowInputs,
    PairGroup,
    has_box_test,
    is_counted,
    is_plane,
    row_width,
)
from jaxsim.engine.collision.shapes import Geoms
from jaxsim.engine.collision.table import Collider
from jaxsim.math.arrays import gather, inner
from jaxsim.math.safe import Array
from jaxsim.native.c_source import ONE_LANE, c_function
from jaxsim.native.expressions import UnsupportedPrimitive, c_type
from jaxsim.native.world_program import ProgramSource, WorldProgram, rebuilt, run_program
from jaxsim.xla.batching import is_read

SWEEP_MIN_PAIRS = 1 << 13  # least number of listed pairs for a sweep: at 4,640 it gains nothing
SLOT = 11  # numbers of a slot: whether it is a contact, dist, pos, normal, tangent


class _Kind(NamedTuple):
    """A collider as the native program calls it; `plane` if its first geoms are planes."""

    collider: Collider
    plane: bool


class _Programs(NamedTuple):
    """Bound test beyond spheres, and collider, of a kind, as programs of (arrays..., geoms (2,), margin).

    `used` are the arrays that they read.
    """

    near: Any
    visit: Any
    used: tuple[int, ...]


def entries_in_sequence(
    m: Any, x: NarrowInputs, geom: Any, kind: Any, groups: list[PairGroup], plain: Callable[..., BufferEntries]
) -> BufferEntries:
    """Compute the entries of the contact buffer for pairs `geom` (n, 2) of the groups `kind` (n,), -1 for none.

    `plain(x, geom, kind)` is the reference implementation in JAX. On a CPU with a C compiler it gives the derivatives
    only.
    """
    width = row_width(groups)
    kinds = tuple(_Kind(g.collider, is_plane(m, g)) for g in groups)
    own = [_own_inputs(x, k, kind.collider) for k, kind in enumerate(kinds)]
    programs = [_programs(k, *_structure(inputs)) for k, inputs in zip(kinds, own, strict=True)]
    read = [[_arrays(inputs)[i] for i in p.used] for inputs, p in zip(own, programs, strict=True)]
    read.append([x.pos, x.geom_rbound])
    operands = list({id(a): a for arrays in read for a in arrays}.values())
    *places, spheres = (tuple(next(i for i, o in enumerate(operands) if o is a) for a in arrays) for arrays in read)

    again, n = rebuilt(x, [*operands, x.margin]), len(operands)

    def in_plain_form(*values: Array) -> Sequence[Array]:
        found = plain(again(values), *values[n + 1 : n + 3])
        return found.row, found.candidate, jnp.stack([found.found, found.dropped]).astype(jnp.int32)

    results = (
        jax.ShapeDtypeStruct((m.max_contacts, width), x.pos.dtype),
        jax.ShapeDtypeStruct((m.max_contacts,), jnp.int32),
        jax.ShapeDtypeStruct((2,), jnp.int32),
    )
    sizes = np.array([len(geom), m.max_contacts], np.int32)
    types = tuple(str(jax.dtypes.canonicalize_dtype(a.dtype)) for a in operands)
    lists = [jnp.asarray(geom, jnp.int32), jnp.asarray(kind, jnp.int32), sizes]
    sweep = sweep_operands(m, x, geom) if is_swept(geom) else []
    tests = _spheres(x) + (_sweep(len(geom), sweep) if sweep else "")
    source = partial(_source, tuple(programs), kinds, types, tuple(places), spheres, width, tests, bool(sweep))
    program = WorldProgram(in_plain_form, source, results, "the narrow phase")
    row, candidate, count = run_program(program, *operands, x.margin, *lists, *sweep)
    return BufferEntries(row, candidate, count[0], count[1])


def is_swept(geom: Any) -> bool:
    """Return whether there are enough static pairs (n, 2) for a sweep; pairs found at run time are few."""
    return isinstance(geom, np.ndarray) and len(geom) >= SWEEP_MIN_PAIRS


def sweep_operands(m: Any, x: NarrowInputs, geom: np.ndarray) -> list[Any]:
    """Return operands of `near_of_list` without the number of pairs."""
    reach = jnp.max(lax.stop_gradient(x.margin)) / 2
    return [x.pos, x.mat, x.geom_aabb, reach, *_sweep_tables(m.structure, geom.tobytes())]


def _sweep(npair: int, operands: Sequence[Any]) -> str:
    """Return the C source of `near_of_list` for these operands."""
    return _c_source("sweep", lambda *x: near_of_list(SweptGeoms(*x[:6]), npair, *x[6:]), operands)


def _spheres(x: NarrowInputs) -> str:
    """Return the C source of `spheres_of_pairs` for one pair: most pairs are far apart."""
    find = lambda pos, rbound, geom, margin: spheres_of_pairs(pos, rbound, geom[None], margin)[0]  # noqa: E731
    return _c_source("spheres", find, [x.pos, x.geom_rbound, np.empty(2, np.int32), np.empty((), x.margin.dtype)])


def _c_source(name: str, function: Callable[..., Array], operands: Sequence[Any]) -> str:
    """Return the C source of a function of operands like these."""
    shapes = [jax.ShapeDtypeStruct(jnp.shape(x), jax.dtypes.canonicalize_dtype(x.dtype)) for x in operands]
    return c_function(name, jax.make_jaxpr(function)(*shapes))


@lru_cache(maxsize=64)
def _sweep_tables(m: Any, pairs: bytes) -> tuple[np.ndarray, ...]:
    """Return the tables of the sweep.

    They are the masks of static and of swept geoms, the sorted keys and the positions of swept pairs, and the other
    pairs.
    """
    geom = np.frombuffer(pairs, np.int32).reshape(-1, 2).astype(np.int64)
    swept = swept_geoms(m) | np.isin(np.arange(m.ngeom), geom)  # explicit pairs need no contact bits
    swept &= m.geom_type > GeomType.HFIELD
    both = swept[geom].all(axis=1)
    candidate, always = np.flatnonzero(both), np.flatnonzero(~both)
    key = geom[both].min(axis=1) * m.ngeom + geom[both].max(axis=1)
    order = np.argsort(key, kind="stable")
    integers = (np.asarray(y, np.int32) for y in (key[order], candidate[order], always))
    return m.body_weldid[m.geom_bodyid] == 0, swept, *integers


def _own_inputs(x: NarrowInputs, k: int, collider: Collider) -> NarrowInputs:
    """Return the inputs of pairs of one kind, in a form shared by many models."""
    context = x.contexts[k]
    general = collider.general(context) if collider.general else context
    return x._replace(margin=None, contexts=(general,))


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray | jax.Array)


def _arrays(x: NarrowInputs) -> list[Array]:
    return [leaf for leaf in jax.tree.leaves(x) if _is_array(leaf)]


def _structure(x: NarrowInputs) -> tuple[Any, tuple, tuple]:
    """Return all that is static in the inputs: PyTree structure, leaves that are not arrays, shapes and dtypes."""
    leaves, tree = jax.tree.flatten(x)
    shapes = tuple((a.shape, jax.dtypes.canonicalize_dtype(a.dtype)) for a in _arrays(x))
    return tree, tuple(None if _is_array(leaf) else leaf for leaf in leaves), shapes


@lru_cache(maxsize=64)
def _programs(kind: _Kind, tree: Any, statics: tuple, shapes: tuple) -> _Programs:
    """Return the programs of a kind for inputs of this structure."""
    structs = [jax.ShapeDtypeStruct(*s) for s in shapes]
    real = structs[0].dtype  # positions come first
    pair = jax.ShapeDtypeStruct((2,), jnp.int32), jax.ShapeDtypeStruct((), real)

    def inputs(values: Sequence[Array]) -> NarrowInputs:
        arrays = iter(values)
        return tree.unflatten([next(arrays) if s is None else s for s in statics])

    def near(*args: Array) -> Array:
        return _bounds_touch(inputs(args[:-2]), kind, *args[-2:])

    def visit(*args: Array) -> Array:
        return _contacts_of_pair(inputs(args[:-2]), kind, *args[-2:])

    programs = [jax.make_jaxpr(f)(*structs, *pair) for f in (near, visit)]
    read = [is_read(closed.jaxpr) for closed in programs]
    return _Programs(programs[0], programs[1], tuple(i for i in range(len(structs)) if any(r[i] for r in read)))


def _bounds_touch(x: NarrowInputs, kind: _Kind, geom: Array, margin: Array) -> Array:
    """Return whether plane and sphere, or the boxes of an expensive collider, touch.

    `narrow` has the batched test. Spheres have been tested before.
    """
    if kind.plane:
        pos, reach = gather(x.pos, geom), gather(x.geom_rbound, geom)
        return inner((pos[1] - pos[0])[None], gather(x.mat, geom[:1])[0, :, 2])[0] <= margin + reach[1]
    if has_box_test(kind.collider):
        return boxes_touch(x, x.pos, x.mat, margin[None], geom[:1], geom[1:])[0]
    return jnp.array(True)


def _contacts_of_pair(x: NarrowInputs, kind: _Kind, geom: Array, margin: Array) -> Array:
    """Compute the contacts of two geoms (2,): a flag and a row for each slot, then the number dropped."""
    collider = kind.collider
    first = x.contexts if collider.setup else ()
    count = {"count": jnp.int32(1)} if is_counted(collider) and not collider.expensive else {}
    found = collider.function(*first, *(_geom(x, geom[i : i + 1]) for i in (0, 1)), margin[None], **count)
    slots = found.dist.shape[1]
    parts = [found.valid[0][:, None], found.dist[0][:, None], found.pos[0], found.normal[0]]
    parts.append(jnp.zeros((slots, 3)) if found.tangent is None else found.tangent[0])
    rows = jnp.concatenate([y.astype(x.pos.dtype) for y in parts], axis=1)
    return jnp.append(rows.reshape(-1), jnp.asarray(found.dropped, x.pos.dtype).reshape(()))


def _geom(x: NarrowInputs, geom: Array) -> Geoms:
    pos, mat, size = (gather(y, geom) for y in (x.pos, x.mat, x.geom_size))
    return Geoms(pos, mat, size, geom, mat[:, :, 2])


def _source(
    programs: tuple[_Programs, ...],
    kinds: tuple[_Kind, ...],
    types: tuple[str, ...],
    places: tuple[tuple[int, ...], ...],
    spheres: tuple[int, ...],
    width: int,
    tests: str,
    swept: bool,
) -> ProgramSource:
    """Return the C source of `world`, which computes the contacts of all pairs.

    Its parameters are arrays..., margins, geoms, kinds, sizes, [tables of the sweep,] rows, candidates, counts.
    `places` are the indices of the arrays, of these `types`, that each kind reads, `spheres` of those that the test of
    spheres reads. `tests` are the C functions `spheres` and, if pairs are `swept`, `sweep`.
    """
    for kind in kinds:
        if not kind.collider.in_sequence:
            raise UnsupportedPrimitive(f"{kind.collider.function.__name__} in sequence")
    real = c_type(programs[0].visit.out_avals[0].dtype)
    parts = [_part(p, real) for p in programs]
    names = [f"jaxsim_{hashlib.sha256(text.encode()).hexdigest()[:24]}" for text in parts]
    sizes = [p.visit.out_avals[0].shape[0] for p in programs]
    declared = [f"int {name}({_signature(real)});" for name in names]
    given = [f"const void* const of{k}[] = {{{', '.join(f'in{i}' for i in own)}}};" for k, own in enumerate(places)]
    given.append(f"const {real} *centre = in{spheres[0]}, *rbound = in{spheres[1]};")
    cases = [
        f"case {k}: if (!{name}(of{k}, geom + 2 * p, margin + p, out)) continue; slots = {size // SLOT}; break;"
        for k, (name, size) in enumerate(zip(names, sizes, strict=True))
    ]
    inputs = [f"const {c_type(np.dtype(t))}* in{i}" for i, t in enumerate(types)]
    world = _world(real, inputs, given, cases, max(sizes), width, swept)
    world = f"#include <stdlib.h>\n{ONE_LANE}{tests}{world}"
    bodies = tuple(text.replace("NAME", name) for text, name in zip(parts, names, strict=True))
    return ProgramSource("\n".join([*declared, world]), bodies)


def _signature(real: str) -> str:
    return f"const void* const* in, const int* geom, const {real}* margin, {real}* out"


def _part(p: _Programs, real: str) -> str:
    """Return the C source of `NAME`: write the contacts of a pair and return 1, or 0 if its bounds do not touch."""
    count = len(p.visit.jaxpr.invars) - 2
    arguments = ", ".join([f"in[{p.used.index(i)}]" if i in p.used else "0" for i in range(count)] + ["geom, margin"])
    functions = [c_function(n, c) for n, c in (("near", p.near), ("visit", p.visit))]
    return f"""{ONE_LANE}{"".join(functions)}
int NAME({_signature(real)}) {{
bool touch;
near({arguments}, &touch);
if (touch) visit({arguments}, out);
return touch;
}}
"""


# Parameters of the C function for `sweep_operands`.
NUMBERS, FLAGS, INTEGERS = ("pos", "mat", "aabb", "reach"), ("still", "swept"), ("key", "place", "always")
# The sweep marks the pairs to visit; if malloc fails, all are visited.
MARKED = f"""bool* near = malloc(sizes[0] + 1);
if (near) sweep({", ".join((*NUMBERS, *FLAGS, *INTEGERS))}, near);"""


def _world(
    real: str, inputs: list[str], given: list[str], cases: list[str], largest: int, width: int, swept: bool
) -> str:
    """Return the C source of the loop over the pairs of a world."""
    lists = [f"const {real}* margin", *(f"const int* {name}" for name in ("geom", "kind", "sizes"))]
    if swept:
        named = ((real, NUMBERS), ("bool", FLAGS), ("int", INTEGERS))
        lists += [f"const {kind}* {name}" for kind, names in named for name in names]
    results = [f"{real}* row", "int* candidate", "int* count"]
    return f"""static void world({", ".join([*inputs, *lists, *results])}) {{
{chr(10).join(given)}
{real} out[{largest}];
const int capacity = sizes[1];
int found = 0, dropped = 0;
{MARKED if swept else ""}
for (int p = 0; p < sizes[0]; ++p) {{
int slots;
{"if (near && !near[p]) continue;" if swept else ""}
bool touch;
if (kind[p] < 0) continue;
spheres(centre, rbound, geom + 2 * p, margin + p, &touch);
if (!touch) continue;
switch (kind[p]) {{
{chr(10).join(cases)}
default: continue;
}}
for (int s = 0; s < slots; ++s) {{
const {real}* mine = out + s * {SLOT};
if (mine[0] == 0) continue;
if (found < capacity) {{
memcpy(row + found * {width}, mine + 1, {width} * sizeof({real}));
candidate[found] = p;
}}
++found;
}}
dropped += (int)out[slots * {SLOT}];
}}
{"free(near);" if swept else ""}
for (int i = found; i < capacity; ++i) candidate[i] = -1;
count[0] = found;
count[1] = dropped + (found > capacity ? found - capacity : 0);
}}
"""
