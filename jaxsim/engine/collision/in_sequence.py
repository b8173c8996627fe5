"""The narrow phase as machine code of a CPU: pair after pair in MuJoCo's order, straight into the contact buffer.

A pair costs its bound test, and no more if that fails. Every collider is a program of scalars, made from the function
that the plain form calls (`narrow`). The source has no number of geoms, pairs or contacts in it, so that models with
the same kinds of pairs share one library.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.engine.collision.broad.bounds import Box, boxes_overlap, spheres_touch
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
from jaxsim.math.arrays import gather, inner, matvec
from jaxsim.math.safe import Array
from jaxsim.xla.c_source import C_TYPES, UnsupportedPrimitive, c_function
from jaxsim.xla.loops import when
from jaxsim.xla.world_program import WorldProgram, run_program


class _Kind(NamedTuple):
    """A collider as the program calls it; `plane` if its first geoms are planes."""

    collider: Collider
    plane: bool


class _Traced(NamedTuple):
    """Bound test and collider of a kind, as programs of (arrays..., geoms (2,), margin)."""

    near: Any
    visit: Any


def entries_in_sequence(
    m: Any, x: NarrowInputs, geom: Any, kind: Any, groups: list[PairGroup], plain: Callable[..., BufferEntries]
) -> BufferEntries:
    """Entries of the contact buffer of pairs `geom` (n, 2) of the groups `kind` (n,), -1 for none.

    `plain(x, geom, kind)` gives the same from these arrays; on a CPU with a C compiler it gives the derivatives only.
    """
    leaves, tree = jax.tree.flatten(x)
    arrays = [i for i, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray | jax.Array)]
    statics = tuple(None if i in arrays else leaf for i, leaf in enumerate(leaves))
    shapes = tuple((leaves[i].shape, jax.dtypes.canonicalize_dtype(leaves[i].dtype)) for i in arrays)
    kinds = tuple(_Kind(g.collider, is_plane(m, g)) for g in groups)
    width = row_width(groups)
    traced = _programs(kinds, tree, statics, tuple(arrays), shapes, width)
    margin_leaf = next(i for i, leaf in enumerate(leaves) if leaf is x.margin)
    used = [i for i in arrays if i in traced.used and i != margin_leaf]

    known = [leaf if isinstance(leaf, np.ndarray) else s for leaf, s in zip(leaves, statics, strict=True)]

    def in_plain_form(*operands: Array) -> Sequence[Array]:
        *values, geom, kind, _ = operands
        own = dict(zip([*used, margin_leaf], values, strict=True))
        full = [k if isinstance(k, np.ndarray) else own.get(i, k) for i, k in enumerate(known)]
        found = plain(tree.unflatten(full), geom, kind)
        return found.row, found.candidate, jnp.stack([found.found, found.dropped]).astype(jnp.int32)

    dtype = x.pos.dtype
    results = (
        jax.ShapeDtypeStruct((m.max_contacts, width), dtype),
        jax.ShapeDtypeStruct((m.max_contacts,), jnp.int32),
        jax.ShapeDtypeStruct((2,), jnp.int32),
    )
    sizes = np.array([len(geom), m.max_contacts], np.int32)
    program = WorldProgram(in_plain_form, partial(_source, traced, kinds, tuple(used), width), results)
    lists = jnp.asarray(geom, jnp.int32), jnp.asarray(kind, jnp.int32), sizes
    row, candidate, count = run_program(program, *[leaves[i] for i in used], x.margin, *lists)
    return BufferEntries(row, candidate, count[0], count[1])


class _Programs(NamedTuple):
    """Programs of all kinds, the leaves (indices) that stand for their arguments, and those that are read."""

    kinds: tuple[_Traced, ...]
    arrays: tuple[int, ...]
    used: frozenset[int]


@lru_cache(maxsize=32)
def _programs(
    kinds: tuple[_Kind, ...], tree: Any, statics: tuple, arrays: tuple[int, ...], shapes: tuple, width: int
) -> _Programs:
    """The kinds' programs for inputs of a structure, whose `arrays` have these shapes and dtypes."""
    structs = [jax.ShapeDtypeStruct(*s) for s in shapes]
    real = next(s.dtype for s in structs if jnp.issubdtype(s.dtype, jnp.floating))
    pair = jax.ShapeDtypeStruct((2,), jnp.int32), jax.ShapeDtypeStruct((), real)

    def inputs(values: Sequence[Array]) -> NarrowInputs:
        full = list(statics)
        for i, value in zip(arrays, values, strict=True):
            full[i] = value
        return tree.unflatten(full)

    found = []
    for k, kind in enumerate(kinds):

        def near(*args: Array, kind: _Kind = kind) -> Array:
            *values, geom, margin = args
            return _bounds_touch(inputs(values), kind, geom, margin)

        def visit(*args: Array, kind: _Kind = kind, k: int = k) -> Array:
            *values, geom, margin = args
            return _contacts_of_pair(inputs(values), kind, k, geom, margin, width)

        found.append(_Traced(*(jax.make_jaxpr(f)(*structs, *pair) for f in (near, visit))))
    read = [_read(closed.jaxpr) for t in found for closed in t]
    used = {arrays[i] for mask in read for i, is_read in enumerate(mask[: len(arrays)]) if is_read}
    return _Programs(tuple(found), arrays, frozenset(used))


def _read(jaxpr: Any) -> list[bool]:
    """Which arguments a jaxpr reads."""
    inside = {v for vs in [jaxpr.outvars, *(e.invars for e in jaxpr.eqns)] for v in vs if not hasattr(v, "val")}
    return [v in inside for v in jaxpr.invars]


def _bounds_touch(x: NarrowInputs, kind: _Kind, geom: Array, margin: Array) -> Array:
    """Whether the bounds of two geoms (2,) touch: `narrow` tests those of many."""
    pos, reach = gather(x.pos, geom), gather(x.geom_rbound, geom)
    gap = (pos[1] - pos[0])[None]
    if kind.plane:
        return inner(gap, gather(x.mat, geom[:1])[0, :, 2])[0] <= margin + reach[1]
    near = spheres_touch(gap, reach[0] + reach[1] + margin)[0]
    if not has_box_test(kind.collider):
        return near
    return when(near, lambda: boxes_overlap(_box(x, geom[:1]), _box(x, geom[1:]), margin[None])[0])


def _box(x: NarrowInputs, geom: Array) -> Box:
    pos, mat, aabb = (gather(y, geom) for y in (x.pos, x.mat, x.geom_aabb))
    return Box(pos + matvec(mat, aabb[:, :3]), mat, aabb[:, 3:])


def _contacts_of_pair(x: NarrowInputs, kind: _Kind, number: int, geom: Array, margin: Array, width: int) -> Array:
    """Contacts of two geoms (2,): for each slot whether it is one, and its row; then the number dropped."""
    collider = kind.collider
    first = (x.contexts[number],) if collider.setup else ()
    count = {"count": jnp.int32(1)} if is_counted(collider) and not collider.dear else {}
    found = collider.function(*first, *(_geom(x, geom[i : i + 1]) for i in (0, 1)), margin[None], **count)
    slots = found.dist.shape[1]
    parts = [found.valid[0][:, None], found.dist[0][:, None], found.pos[0], found.normal[0]]
    if width == 10:
        parts.append(jnp.zeros((slots, 3)) if found.tangent is None else found.tangent[0])
    rows = jnp.concatenate([y.astype(x.pos.dtype) for y in parts], axis=1)
    return jnp.append(rows.reshape(-1), jnp.asarray(found.dropped, x.pos.dtype).reshape(()))


def _geom(x: NarrowInputs, geom: Array) -> Geoms:
    pos, mat, size = (gather(y, geom) for y in (x.pos, x.mat, x.geom_size))
    return Geoms(pos, mat, size, geom, mat[:, :, 2])


def _source(programs: _Programs, kinds: tuple[_Kind, ...], used: tuple[int, ...], width: int) -> str:
    """C source of `world(used leaves..., margins, geoms, kinds, sizes, rows, candidates, counts)`."""
    dtypes = dict(zip(programs.arrays, (v.aval.dtype for v in programs.kinds[0].visit.jaxpr.invars), strict=False))
    real = C_TYPES[str(programs.kinds[0].visit.out_avals[0].dtype)]
    name_of = {leaf: f"in{k}" for k, leaf in enumerate(used)}
    arguments = ", ".join([name_of.get(i, "0") for i in programs.arrays] + ["geom + 2 * p", "margin + p"])
    functions, cases, largest = [], [], 0
    for k, (traced, kind) in enumerate(zip(programs.kinds, kinds, strict=True)):
        if not kind.collider.in_sequence:
            raise UnsupportedPrimitive(f"{kind.collider.function.__name__} in sequence")
        for name, closed in zip(traced._fields, traced, strict=True):
            functions.append(c_function(f"{name}{k}", closed.jaxpr, closed.consts))
        size = traced.visit.out_avals[0].shape[0]
        largest = max(largest, size)
        cases.append(
            f"case {k}: near{k}({arguments}, &near); if (!near) continue; "
            f"visit{k}({arguments}, out); slots = {(size - 1) // (width + 1)}; break;"
        )
    inputs = [f"const {C_TYPES[str(dtypes[leaf])]}* {name}" for leaf, name in name_of.items()]
    return "\n".join([*functions, _world(real, inputs, cases, largest, width)])


def _world(real: str, inputs: list[str], cases: list[str], largest: int, width: int) -> str:
    """The loop over the pairs of a world."""
    lists = [f"const {real}* margin", *(f"const int* {name}" for name in ("geom", "kind", "sizes"))]
    results = [f"{real}* row", "int* candidate", "int* count"]
    return f"""static void world({", ".join([*inputs, *lists, *results])}) {{
{real} out[{largest}];
const int room = sizes[1];
int found = 0, dropped = 0;
for (int p = 0; p < sizes[0]; ++p) {{
bool near;
int slots;
switch (kind[p]) {{
{chr(10).join(cases)}
default: continue;
}}
for (int s = 0; s < slots; ++s) {{
const {real}* mine = out + s * {width + 1};
if (mine[0] == 0) continue;
if (found < room) {{
memcpy(row + found * {width}, mine + 1, {width} * sizeof({real}));
candidate[found] = p;
}}
++found;
}}
dropped += (int)out[slots * {width + 1}];
}}
for (int i = found; i < room; ++i) candidate[i] = -1;
count[0] = found;
count[1] = dropped + (found > room ? found - room : 0);
}}
"""
