"""The solver as one native call in which each world stops when it converges: a GPU kernel, or a CPU program.

`problem.cu` and `primal.cu` have the kernel, one warp per world, and `used_dense.py` the version for one core.
`primal.solve` is the reference implementation, which also runs on other platforms and without a C compiler. The
solver is a JAX primitive, so that only the implementation for the program's platform is traced.
"""

import functools
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.errors import UnsupportedError
from jaxsim.core.layout import Layout
from jaxsim.core.types import Backend
from jaxsim.engine.solver import primal, problem, used_dense
from jaxsim.engine.solver.operators import DenseInertia, DenseRows
from jaxsim.engine.solver.problem import ConstraintProblem, elliptic
from jaxsim.math.safe import Array
from jaxsim.native import compiler as native
from jaxsim.native import launch as kernels
from jaxsim.native import world_program
from jaxsim.native.c_source import ONE_LANE, c_function
from jaxsim.native.function import CPU, NativeFunction, of_world
from jaxsim.native.jaxpr import GPU, trace
from jaxsim.native.source_text import definitions, text
from jaxsim.native.systems import REGISTERS, pitch, shared_numbers
from jaxsim.native.world_program import ProgramSource, WorldProgram, scalar_source

HERE = Path(__file__).parent
LABEL = "the constraint solver"
WORLDS_OF_PART = 4  # that a thread takes at a time
MOST_DOFS = 1024  # one lane per dof; the most threads of a block
SHARED = ("M", "smooth", "aref", "D", "lo", "hi", "general", "contact", "friction", "mu", "settings", "free", "warm")


class Plan(NamedTuple):
    """Static data of a solve: `names` of the operands, in the kernel's order."""

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
    """Solve by a native program where there is one, else by `primal.solve`. Not differentiable."""
    # native programs cannot treat a Hessian that rounding made indefinite (`primal.solve_hessian`)
    is_native = limits.solver.native_id is not None and layout.nv <= MOST_DOFS and not layout.strains
    if not is_native and limits.backend == Backend.NATIVE:
        raise UnsupportedError(
            f"opt.backend 'native' with this solver, rows of strains, or over {MOST_DOFS} dofs is not supported: "
            "use 'auto' or 'xla'"
        )
    if not is_native or limits.backend == Backend.XLA:
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
    return primal.Solution(*SOLVE(Plan(layout, limits, tuple(given)), *given.values()))


def _plain(plan: Plan, *operands: Array) -> primal.Solution:
    return _with(primal.solve, plan, *operands)


def _with(solve: Callable[..., primal.Solution], plan: Plan, *operands: Array) -> primal.Solution:
    """Call a solver with the operands of the primitive."""
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
    return solve(layout, plan.limits, p, settings, primal.Guesses(x["free"], x.get("warm")))


def _results(plan: Plan, operands: Sequence[jax.ShapeDtypeStruct]) -> list[jax.ShapeDtypeStruct]:
    """Return shapes like a `primal.Solution`, for the operands in the order of the plan."""
    layout, dtype = plan.layout, operands[0].dtype
    sizes = ((layout.nv,), (), (layout.nslot,), (layout.nslot,), (layout.nv,))
    return [jax.ShapeDtypeStruct(s, jnp.int32 if k == 1 else dtype) for k, s in enumerate(sizes)]


def _begin(plan: Plan, worlds: Sequence[bool], operands: Sequence[jax.ShapeDtypeStruct]) -> None:
    world_program.begin(_program(plan, tuple(operands)), worlds, operands)


def _on_cpu(plan: Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    return world_program.on_cpu(_program(plan, of_world(operands, worlds)), worlds, count, operands)


@functools.lru_cache(maxsize=32)
def _program(plan: Plan, operands: tuple[jax.ShapeDtypeStruct, ...]) -> WorldProgram:
    """Return the program of one world on one core, over the rows in use."""
    source = scalar_source(partial(_with, used_dense.solve, plan), operands)
    return on_core(partial(_plain, plan), source, _results(plan, operands), LABEL, WORLDS_OF_PART)


def on_core(
    plain: Callable[..., Sequence[Array]],
    source: Callable[[], ProgramSource],
    results: Sequence[jax.ShapeDtypeStruct],
    label: str,
    worlds_of_part: int,
) -> WorldProgram:
    """Return a program with the compiler's options of the solvers: sums in any order, indices that never overflow."""
    flags = (*native.VECTOR, "-fno-wrapv")
    return WorldProgram(plain, source, tuple(results), label, flags=flags, worlds_of_part=worlds_of_part)


def _on_cuda(plan: Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    layout, dtype = plan.layout, operands[0].dtype
    numbers = memory_of_world(layout)
    shape = kernels.lanes_for(layout.nv)
    apart = numbers if numbers * dtype.itemsize > kernels.SHARED_BYTES else 0
    source = solver_source(plan, worlds, dtype, count, shape, apart)
    how = kernels.Launch(count, shape.lanes, 0 if apart else numbers * dtype.itemsize)
    return kernels.launch(source, "solve_worlds", operands, _written(plan, operands, count, apart), how)[:-1]


def on_host(plan: Plan, worlds: Sequence[bool], count: int, operands: Sequence[Array]) -> list[Array]:
    """Run the GPU kernel compiled for the host by its C compiler; for tests."""
    source = solver_source(plan, worlds, operands[0].dtype, count, kernels.HOST, 0)
    return kernels.run_on_host(source, "solve_worlds", operands, _written(plan, operands, count, 0))[:-1]


def _written(plan: Plan, operands: Sequence[Array], count: int, apart: int) -> list[jax.ShapeDtypeStruct]:
    """Return the shapes of the results of `count` worlds, and of the kernel's memory, `apart` or the matrix."""
    memory = jax.ShapeDtypeStruct((count, apart + matrix_numbers(plan.layout)), operands[0].dtype)
    return [*(jax.ShapeDtypeStruct((count, *x.shape), x.dtype) for x in _results(plan, operands)), memory]


def matrix_numbers(layout: Layout) -> int:
    """Return the size of the Hessian's part of a world's row of `spill`; a small one is in registers."""
    return layout.nv * pitch(layout.nv) if layout.nv > REGISTERS else 0


def _rows(layout: Layout) -> dict[str, int]:
    """Return the constant part of the rows of contacts."""
    dim, facets = (layout.condim, layout.nfacet) if layout.ncontact else (1, 1)
    return {"DIM": dim, "NF": facets, "ELLIPTIC": int(elliptic(layout))}


@functools.cache
def _constants(layout: Layout, limits: primal.IterationLimits) -> dict[str, Any]:
    return _rows(layout) | {
        "NG": layout.ngeneral,
        "NL": layout.nlimit,
        "NC": layout.ncontact,
        "CG": limits.solver.native_id,
        "ITERATIONS": limits.iterations,
        "LS_ITERATIONS": limits.ls_iterations,
        "LS_RELATIVE": limits.solver.ls_relative,
    }


def memory_of_world(layout: Layout) -> int:
    """Return the largest size of the memory shared by the lanes of a world.

    It is AT_END of `problem.cu` for a warp or more of lanes, in numbers.
    """
    dim, nv = (layout.condim, layout.nv) if layout.ncontact else (1, layout.nv)
    pad = {3: 4, 5: 6}.get(dim, dim)
    batch = max(1, min(-(-nv // kernels.WARP) * kernels.WARP, layout.ncontact))
    columns = pitch(nv) + shared_numbers(nv) if nv > REGISTERS else 2 * pitch(nv + 1)
    parts = (nv, nv * pad, nv * pad, columns, layout.nslot, layout.nslot, layout.ncontact * dim)
    return sum(map(pitch, parts)) + pitch(batch * dim * dim) + 4 * -(-nv // kernels.WARP)


# Functions of a row, or of the rows of a contact, that the kernel of a GPU calls: those of `problem`.
OF_ROW = {
    "force_of_row": problem.scalar_force,
    "weight_of_row": problem.scalar_weight,
    "cost_of_row": problem.scalar_costs,
}
OF_CONTACT = {
    "force_of_contact": problem.contact_force,
    "cost_of_contact": problem.contact_costs,
    "curvature_of_contact": problem.blocks_of_contacts,
}
# The names of `lane.h` and of the generator that `lanes.cu` defines for itself.
OF_ONE_LANE = ("LANES", "ALL", "EACH", "WARP", "WARPS", "sync", "FUNCTION", "TABLE")
INLINED = """#ifdef __CUDACC_RTC__
#undef FUNCTION
#define FUNCTION static __device__ __forceinline__
#endif
"""


@functools.cache
def rows_source(layout: Layout, dtype: Any) -> str:
    """Return source of functions of a row (D, lo, hi, r) or a contact (D, lo, hi, friction, mu, r), one lane each."""
    one, rows = jax.ShapeDtypeStruct((), dtype), jax.ShapeDtypeStruct((1, max(layout.nfacet, 1)), dtype)
    of_contact = (rows, rows, rows, jax.ShapeDtypeStruct((1, 5), dtype), jax.ShapeDtypeStruct((1,), dtype), rows)

    def row(function: Callable[..., Array]) -> Callable[..., Array]:
        return lambda d, lo, hi, r: function(problem.FixedRows(d, lo, hi), r)

    def contact(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda d, lo, hi, friction, mu, *r: function(
            layout, problem.ContactRows(jnp.zeros_like(d), d, lo, hi, friction, mu), *r
        )

    found = [c_function(name, trace(row(f), (one,) * 4)) for name, f in OF_ROW.items()]
    found += [c_function(name, trace(contact(f), of_contact)) for name, f in OF_CONTACT.items()]
    found.append(c_function("along_contact", trace(contact(problem.contact_along), (*of_contact, rows))))
    return "".join([ONE_LANE, INLINED, *found, *(f"#undef {name}\n" for name in OF_ONE_LANE)])


def solver_source(plan: Plan, worlds: Sequence[bool], dtype: Any, count: int, shape: kernels.Lanes, apart: int) -> str:
    """Return the source of `solve_worlds(operands..., results..., spill)` for `count` worlds.

    A world's row of `spill` has its memory, if `apart` (numbers) is not 0, and then its Hessian, if that is large.
    """
    layout = plan.layout
    table = np.full(max(1, layout.nv), -1)
    table[layout.limit_dof] = np.arange(layout.nlimit)
    limits = f"TABLE int LIMIT_OF_DOF[{len(table)}] = {{{', '.join(map(str, table))}}};\n"
    body = text(HERE, "problem.cu") + text(HERE, "primal.cu")
    parameters = [f"const T* {n}" for n in plan.names] + ["T* out_acc", "int* out_niter"]
    parameters += ["T* out_r", "T* out_free", "T* out_force", "T* spill"]
    sizes = _sizes(layout)
    fields = [
        f"  p.{n} = {n + (f' + w * {sizes[n]}' if worlds[plan.names.index(n)] else '')};"
        if n in plan.names
        else f"  p.{n} = 0;"
        for n in SHARED
    ]
    fill = "\n".join(fields)
    row = f"spill + w * {apart + matrix_numbers(layout)}"
    memory = f"{row if apart else 'memory'}, {row} + {apart}"
    visit = f"""
FUNCTION void visit(int lane, int world, T* memory, {", ".join(parameters)}) {{
  Problem p;
  long long w = world;
{fill}
  int count = 0;
  solve(lane, &p, {memory}, out_acc + w * NV, out_r + w * NSLOT, out_free + w * NSLOT, out_force + w * NV, &count);
  if (lane == 0) out_niter[w] = count;
}}
"""
    registers = 64 if matrix_numbers(layout) else 48 + layout.nv  # with its column of a small Hessian
    bounds = kernels.bounds(shape.lanes, count, registers)
    entry = kernels.entry_source("solve_worlds", parameters, count, bounds, None if apart else "AT_END")
    known = definitions(_constants(layout, plan.limits))
    before = rows_source(layout, dtype) + kernels.lanes_source(dtype, layout.nv, shape)
    return before + known + limits + body + visit + entry


def _sizes(layout: Layout) -> dict[str, int]:
    """Return the number of entries of a world in each operand."""
    nv, contact = layout.nv, layout.ncontact
    of = (nv * nv, nv, *(layout.nslot,) * 4, layout.ngeneral * nv, contact * layout.condim * nv, contact * 5, contact)
    return dict(zip(SHARED, (*of, len(primal.Tolerances._fields), nv, nv), strict=True))


SOLVE = NativeFunction(
    name="constraint_solve",
    plain=_plain,
    results=_results,
    programs={CPU: _on_cpu, GPU: _on_cuda},
    begin=_begin,
    label=lambda _: LABEL,
)
