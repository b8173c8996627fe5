"""The solver as one call, in which each world stops when it has converged: a kernel on a GPU, machine code on a CPU.

`primal.cu` has the kernel, a warp a world, and `primal.c` the form for one thread. `primal.solve` defines what is
right, and is what other platforms compute, and machines without a compiler. The solver is a primitive of JAX, so that
only the form for the platform of the program is traced.
"""

import functools
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import core

from jaxsim.core.errors import UnsupportedError
from jaxsim.core.layout import Layout
from jaxsim.engine.solver import primal
from jaxsim.engine.solver.operators import DenseInertia, DenseRows
from jaxsim.engine.solver.problem import ConstraintProblem, elliptic
from jaxsim.math.safe import Array
from jaxsim.native import compiler as native
from jaxsim.native import launch as kernels
from jaxsim.native.jaxpr import PLAIN_FORMS, trace
from jaxsim.native.nvrtc import CompilerMissing
from jaxsim.native.source_text import definitions, text
from jaxsim.xla.batching import merged
from jaxsim.xla.compat import Primitive, batching, mlir

HERE = Path(__file__).parent
NEVER, BY_PLATFORM, ALWAYS = -1, 0, 1  # `opt.solver_kernel`
MOST_DOFS = 1024  # a lane a dof, and threads of a block
SHARED = ("M", "smooth", "aref", "D", "lo", "hi", "general", "contact", "friction", "mu", "settings", "free", "warm")


class _Plan(NamedTuple):
    """What is static of a solve: `names` are those of the operands, in the kernel's order."""

    layout: Layout
    limits: primal.IterationLimits
    names: tuple[str, ...]


def solve(
    layout: Layout,
    limits: primal.IterationLimits,
    p: ConstraintProblem,
    settings: primal.Tolerances,
    guesses: primal.Guesses,
) -> primal.Solution:
    """The solution as `primal.solve` finds it: by a kernel on a GPU, or as `limits.kernel` says. Not differentiable."""
    # the kernel has no remedy for a Hessian that rounding made indefinite (`primal.solve_hessian`)
    indefinite = layout.strains and limits.kernel == BY_PLATFORM
    if limits.solver.in_c is None and limits.kernel == ALWAYS:
        raise UnsupportedError("solver_kernel 1 with a solver that has no kernel")
    if limits.kernel == NEVER or limits.solver.in_c is None or layout.nv > MOST_DOFS or indefinite:
        return primal.solve(layout, limits, p, settings, guesses)
    numbers = jnp.stack(settings).astype(p.M.matrix.dtype)
    given = dict(zip(SHARED, (p.M.matrix, p.qfrc_smooth, p.aref, p.D, p.lo, p.hi), strict=False))
    if layout.ngeneral:
        given |= {"general": p.J.general}
    if layout.ncontact:
        given |= {"contact": p.J.contact, "friction": p.J.friction, "mu": p.mu}
    given |= {"settings": numbers, "free": guesses.free}
    if guesses.warm is not None:
        given |= {"warm": guesses.warm}
    plan = _Plan(layout, limits, tuple(given))
    return primal.Solution(*solve_p.bind(*map(jnp.asarray, given.values()), plan=plan, axes=None))


def _plain(plan: _Plan, *operands: Array) -> primal.Solution:
    """`primal.solve` of the operands of the primitive."""
    x = dict(zip(plan.names, operands, strict=True))
    layout, dtype = plan.layout, x["M"].dtype
    empty = lambda *shape: jnp.zeros(shape, dtype)  # noqa: E731
    rows = DenseRows(
        layout,
        x.get("general", empty(0, layout.nv)),
        x.get("contact", empty(0, layout.condim, layout.nv)),
        x.get("friction", empty(0, 5)),
    )
    p = ConstraintProblem(
        M=DenseInertia(x["M"]),
        J=rows,
        qfrc_smooth=x["smooth"],
        aref=x["aref"],
        D=x["D"],
        lo=x["lo"],
        hi=x["hi"],
        mu=x.get("mu", empty(0)),
    )
    settings = primal.Tolerances(*x["settings"])
    return primal.solve(layout, plan.limits, p, settings, primal.Guesses(x["free"], x.get("warm")))


# Operands by `plan.names`, without worlds if `axes` is None; otherwise with an axis of worlds first, unless their entry
# of `axes` is None. Results are the leaves of a `primal.Solution`, with the worlds first.
solve_p = Primitive("constraint_solve")
solve_p.multiple_results = True


@solve_p.def_impl
def _run(*operands: Array, plan: _Plan, axes: tuple | None) -> list[Array]:
    return jax.jit(lambda *x: solve_p.bind(*x, plan=plan, axes=axes))(*operands)


def _worlds(operands: tuple, axes: tuple | None) -> tuple[int, ...]:
    return () if axes is None else (next(x.shape[0] for x, a in zip(operands, axes, strict=True) if a is not None),)


@solve_p.def_abstract_eval
def _shape(*operands: Any, plan: _Plan, axes: tuple | None) -> list[Any]:
    lead, layout, dtype = _worlds(operands, axes), plan.layout, operands[0].dtype
    if jax.default_backend() == "cpu" and plan.limits.kernel != ALWAYS:
        native.begin(native_source(layout, dtype), native.VECTOR)
    sizes = ((layout.nv,), (), (layout.nslot,), (layout.nslot,), (layout.nv,))
    return [core.ShapedArray((*lead, *s), jnp.int32 if k == 1 else dtype) for k, s in enumerate(sizes)]


def by_jax(*operands: Array, plan: _Plan, axes: tuple | None) -> list[Array]:
    """What the primitive means, by operations of JAX."""
    plain = partial(_plain, plan)
    return list((plain if axes is None else jax.vmap(plain, in_axes=axes))(*operands))


def _on_cuda(*operands: Array, plan: _Plan, axes: tuple | None) -> list[Array]:
    try:
        return _by_kernel(False, *operands, plan=plan, axes=axes)
    except CompilerMissing:
        if plan.limits.kernel == ALWAYS:
            raise
        return by_jax(*operands, plan=plan, axes=axes)


def _elsewhere(*operands: Array, plan: _Plan, axes: tuple | None) -> list[Array]:
    if plan.limits.kernel == ALWAYS:  # for tests
        return _by_kernel(True, *operands, plan=plan, axes=axes)
    return by_jax(*operands, plan=plan, axes=axes)


def _on_cpu(*operands: Array, plan: _Plan, axes: tuple | None) -> list[Array]:
    if plan.limits.kernel != ALWAYS:
        try:
            return natively(*operands, plan=plan, axes=axes)
        except CompilerMissing:
            pass
    return _elsewhere(*operands, plan=plan, axes=axes)


def natively(*operands: Array, plan: _Plan, axes: tuple | None) -> list[Array]:
    """What the primitive means, by machine code of a CPU. Raises CompilerMissing."""
    if axes is None:
        found = natively(*[x[None] for x in operands], plan=plan, axes=(0,) * len(operands))
        return [x[0] for x in found]
    layout, limits, given = plan.layout, plan.limits, dict(zip(plan.names, operands, strict=True))
    dtype, empty = operands[0].dtype, {"general": (0, layout.nv), "contact": (0, 1, 1), "friction": (0, 5)}
    full = [given[n] if n in given else jnp.zeros(empty.get(n, 0), dtype) for n in SHARED]
    numbers = [limits.iterations, limits.ls_iterations, limits.solver.in_c, "warm" in given]
    limited = np.concatenate([numbers, layout.limit_dof]).astype(np.int32)
    out = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in _shape(*operands, plan=plan, axes=axes)]
    target = native.target_of(native_source(layout, dtype), native.VECTOR)
    return list(jax.ffi.ffi_call(target, out)(*full, limited))


def native_source(layout: Layout, dtype: Any) -> str:
    """Source of the handler for all dense layouts with as many rows of a contact."""
    relative = {"LS_NEWTON": primal.LS_NEWTON, "LS_CG": primal.LS_CG}
    return worlds_source(layout, dtype, relative, "dense_worlds.c")


def worlds_source(layout: Layout, dtype: Any, constants: dict[str, Any], worlds: str) -> str:
    """Source of a handler: `primal.c` with its constants, and the file that knows the operands."""
    before = native.PREAMBLE + native.WORKERS + kernels.scalars_source(dtype) + definitions(_rows(layout) | constants)
    return before + "".join(text(HERE, name) for name in ("rows.cu", "primal.c", worlds))


def _by_kernel(on_host: bool, *operands: Array, plan: _Plan, axes: tuple | None) -> list[Array]:
    if axes is None:
        found = _by_kernel(on_host, *[x[None] for x in operands], plan=plan, axes=(0,) * len(operands))
        return [x[0] for x in found]
    (count,), layout, dtype = _worlds(operands, axes), plan.layout, operands[0].dtype
    numbers = memory_of_world(layout, dtype)
    shape = kernels.HOST if on_host else kernels.lanes_for(layout.nv, numbers * dtype.itemsize)
    spill = numbers if not on_host and numbers * dtype.itemsize > kernels.SHARED_BYTES else 0
    source = solver_source(plan, axes, dtype, count, shape, spill > 0)
    out = jax.ShapeDtypeStruct((count, _width(layout) + spill), dtype)
    if on_host:
        rows = kernels.run_on_host(source, "solve_worlds", operands, out)
    else:
        shared = 0 if spill else numbers * shape.worlds * dtype.itemsize
        how = kernels.Launch(-(-count // shape.worlds), shape.lanes * shape.worlds, shared)
        rows = kernels.launch(source, "solve_worlds", operands, out, how)
    nv, nslot = layout.nv, layout.nslot
    cuts = np.cumsum([nv, nslot, nslot, nv])
    acc, r, free, force, niter = jnp.split(rows[:, : _width(layout)], cuts, axis=1)
    return [acc, niter[:, 0].astype(jnp.int32), r, free, force]


def _width(layout: Layout) -> int:
    """Numbers of a world's results."""
    return 2 * layout.nv + 2 * layout.nslot + 1


def _rows(layout: Layout) -> dict[str, int]:
    """What is constant of the rows of contacts."""
    dim, facets = (layout.condim, layout.nfacet) if layout.ncontact else (1, 1)
    return {"DIM": dim, "NF": facets, "ELLIPTIC": int(elliptic(layout))}


@functools.cache
def _constants(layout: Layout, limits: primal.IterationLimits) -> dict[str, Any]:
    return _rows(layout) | {
        "NG": layout.ngeneral,
        "NL": layout.nlimit,
        "NC": layout.ncontact,
        "CG": limits.solver.in_c,
        "ITERATIONS": limits.iterations,
        "LS_ITERATIONS": limits.ls_iterations,
        "LS_RELATIVE": limits.solver.ls_relative,
    }


def memory_of_world(layout: Layout, dtype: Any) -> int:
    """Numbers that the lanes of a world share, at most: AT_END of `primal.cu` for a warp or more of lanes."""
    up = lambda n: -(-n // 4) * 4  # noqa: E731
    dim, nv = (layout.condim, layout.nv) if layout.ncontact else (1, layout.nv)
    pad = {3: 4, 5: 6}.get(dim, dim)
    batch = max(1, min(-(-nv // kernels.WARP) * kernels.WARP, layout.ncontact))
    parts = (nv, nv * pad, nv * pad, nv + 3, nv + 3, layout.nslot, layout.nslot, layout.ncontact * dim)
    return sum(map(up, parts)) + up(batch * dim * dim) + 4 * -(-nv // kernels.WARP)


def solver_source(plan: _Plan, axes: tuple, dtype: Any, count: int, shape: kernels.Lanes, spilled: bool) -> str:
    """Source of `solve_worlds(operands..., out)` for `count` worlds, a row of numbers for each.

    Where the memory of a world is `spilled` it stands at the end of its row.
    """
    layout = plan.layout
    table = np.full(max(1, layout.nv), -1)
    table[layout.limit_dof] = np.arange(layout.nlimit)
    limits = f"TABLE int LIMIT_OF_DOF[{len(table)}] = {{{', '.join(map(str, table))}}};\n"
    body = text(HERE, "rows.cu") + text(HERE, "primal.cu")
    parameters = [f"const T* {n}" for n in plan.names] + ["T* out"]
    sizes = _sizes(layout)
    fields = [
        f"  p.{n} = {n + (f' + (long long)world * {sizes[n]}' if axes[plan.names.index(n)] is not None else '')};"
        if n in plan.names
        else f"  p.{n} = 0;"
        for n in SHARED
    ]
    fill = "\n".join(fields)
    memory = "row + RESULTS" if spilled else "memory"
    visit = f"""
#define RESULTS (2 * NV + 2 * NSLOT + 1)
FUNCTION void visit(int lane, int world, T* memory, {", ".join(parameters)}) {{
  Problem p;
  T* row = out + (long long)world * (RESULTS + {"AT_END" if spilled else 0});
{fill}
  int count = 0;
  solve(lane, &p, {memory}, row, row + NV, row + NV + NSLOT, row + NV + 2 * NSLOT, &count);
  if (lane == 0) row[2 * NV + 2 * NSLOT] = count;
}}
"""
    entry = kernels.entry_source("solve_worlds", parameters, count, shape, None if spilled else "AT_END")
    known = definitions(_constants(layout, plan.limits))
    return kernels.lanes_source(dtype, layout.nv, shape) + known + limits + body + visit + entry


def _sizes(layout: Layout) -> dict[str, int]:
    """Numbers of a world in each operand."""
    nv, contact = layout.nv, layout.ncontact
    of = (nv * nv, nv, *(layout.nslot,) * 4, layout.ngeneral * nv, contact * layout.condim * nv, contact * 5, contact)
    return dict(zip(SHARED, (*of, len(primal.Tolerances._fields), nv, nv), strict=True))


mlir.register_lowering(solve_p, mlir.lower_fun(_on_cuda, multiple_results=True), platform="cuda")
mlir.register_lowering(solve_p, mlir.lower_fun(_on_cpu, multiple_results=True), platform="cpu")
mlir.register_lowering(solve_p, mlir.lower_fun(_elsewhere, multiple_results=True))


def _batch(operands: tuple, dims: tuple, *, plan: _Plan, axes: tuple | None) -> tuple[list[Array], list[int]]:
    """A batch; a batch of batches as one larger batch."""
    outer = next(x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None)
    moved = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(operands, dims, strict=True)]
    if axes is None:
        return solve_p.bind(*moved, plan=plan, axes=tuple(None if d is None else 0 for d in dims)), [0] * 5
    inner = [x if d is None else x[0] for x, d in zip(moved, dims, strict=True)]
    (size,) = _worlds(tuple(inner), axes)

    kept = [d is None and a is None for d, a in zip(dims, axes, strict=True)]
    of = zip(operands, dims, axes, kept, strict=True)
    full = [x if k else merged(x, d, a, outer, size) for x, d, a, k in of]
    found = solve_p.bind(*full, plan=plan, axes=tuple(None if k else 0 for k in kept))
    return [x.reshape(outer, size, *x.shape[1:]) for x in found], [0] * len(found)


batching.primitive_batchers[solve_p] = _batch


def _plain_form(eqn: Any) -> Any:
    return trace(partial(by_jax, **eqn.params), [v.aval for v in eqn.invars])


PLAIN_FORMS[solve_p.name] = _plain_form
