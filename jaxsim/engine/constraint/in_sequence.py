"""Constraint rows as a native program of a CPU, which writes only active rows, directly to their slots.

The reference implementation computes every slot, used or not. Here an unused slot costs only its zeros. Chains of dofs
are walked from the bodies of a contact to their common ancestor. The formulas of impedance are translated to C from the
function that the reference implementation calls. The source contains no number of dofs, rows or contacts, so that
models share the library.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.layout import Layout
from jaxsim.core.structure import geom_bodies
from jaxsim.core.types import MINVAL, ConstraintType, DisableBit
from jaxsim.engine.constraint import impedance as imp
from jaxsim.engine.constraint.general import GeneralRows
from jaxsim.engine.constraint.rows import FIXED, ConstraintRows, RowNumbers
from jaxsim.engine.kinematics.sparse_contact import last_dof
from jaxsim.math.safe import Array
from jaxsim.native.c_source import ONE_LANE, c_function
from jaxsim.native.expressions import C_TYPES
from jaxsim.native.source_text import definitions, text
from jaxsim.native.world_program import ProgramSource, WorldProgram, rebuilt, run_program

HERE = Path(__file__).parent
Arrays = dict[str, Array]


class _Plan(NamedTuple):
    """Key of a program's C source: names and types of its arrays, and its constants."""

    given: tuple[tuple[str, str], ...]
    found: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, float], ...]
    real: str
    safe: bool  # whether REFSAFE is on


def rows_in_sequence(m: Any, d: Any, layout: Layout, general: GeneralRows | None, plain: Callable) -> ConstraintRows:
    """Compute `plain(m, d, layout, general)` natively, for contacts without flexes and trees that never sleep."""
    names = ("dist", "pos", "frame", "includemargin", "friction", "solref", "solreffriction", "solimp")
    given: Arrays = {n: getattr(d.contact, n) for n in (*names, "dim", "exclude", "geom")}
    given |= {n: getattr(d, n) for n in ("qpos", "cdof", "subtree_com")}
    model = ("body_invweight0", "dof_frictionloss", "dof_solref", "dof_solimp", "dof_invweight0")
    given |= {n: getattr(m, n) for n in (*model, "jnt_range", "jnt_margin", "jnt_solref", "jnt_solimp")}
    given |= {"timestep": m.opt.timestep, "impratio": m.opt.impratio}
    rows = _no_rows(layout, d.qpos.dtype) if general is None else general
    given |= {f"general_{n}": getattr(rows, n) for n in rows._fields if n != "jac"}
    static = _row_tables(m, layout) | _chains(m, layout)
    again = rebuilt((m, d, general), list(given.values()))

    def in_plain_form(*values: Array) -> Sequence[Array]:
        m, d, general = again(values)
        return jax.tree.leaves(plain(m, d, layout, general)._replace(bodies=None))

    slots = jax.ShapeDtypeStruct((layout.nslot,), d.qpos.dtype)
    names = ("active", *RowNumbers._fields, "J_contact", "efc_address", "exclude", "mu", "count")  # of leaves, in order
    found: dict[str, Any] = dict.fromkeys(names, slots)
    found |= {"active": jax.ShapeDtypeStruct((layout.nslot,), bool), "count": jax.ShapeDtypeStruct((5,), jnp.int32)}
    found |= {"KBIP": jax.ShapeDtypeStruct((layout.nslot, 4), d.qpos.dtype), "J_contact": d.efc.J_contact}
    found |= {"efc_address": d.contact.efc_address, "exclude": d.contact.exclude, "mu": d.contact.mu}
    plan = _plan_of(layout, d.qpos.dtype, imp.is_safe(m))
    active, *numbers, jac, address, exclude, mu, count = _run(plan, in_plain_form, given, static, found)
    return ConstraintRows(active, RowNumbers(*numbers), jac, address, exclude, mu, count, d.efc.bodies)


def _run(of: Callable[..., _Plan], plain: Callable, given: Arrays, static: Arrays, found: Arrays) -> list[Array]:
    """Run the program with these operands.

    Results are like `found`, and `of(given, found)` makes its plan from types.
    """
    given = given | {n: np.asarray(x, np.int32) for n, x in static.items()}
    types = [{n: str(jax.dtypes.canonicalize_dtype(x.dtype)) for n, x in y.items()} for y in (given, found)]
    plan = of(*(tuple(t.items()) for t in types))
    out = tuple(jax.ShapeDtypeStruct(x.shape, jax.dtypes.canonicalize_dtype(x.dtype)) for x in found.values())
    return run_program(
        WorldProgram(plain, partial(_source, plan), out, "rows of constraints", inlined=True), *given.values()
    )


def _no_rows(layout: Layout, dtype: Any) -> GeneralRows:
    """Return the general rows of a model that has none."""
    none = np.zeros(0, dtype)
    two, five = np.zeros((0, 2), dtype), np.zeros((0, 5), dtype)
    return GeneralRows(np.zeros((0, layout.nv), dtype), none, none, none, none, two, five, none, np.zeros(0, bool))


def _row_tables(m: Any, layout: Layout) -> dict[str, Any]:
    """Return the tables of integers, and the sizes, for `rows.c`."""
    flags, kind = m.opt.disableflags, layout.general.type
    on = [not flags & (bit | DisableBit.CONSTRAINT) for bit in (DisableBit.FRICTIONLOSS, DisableBit.LIMIT)]
    contacts = not flags & (DisableBit.CONTACT | DisableBit.CONSTRAINT)
    equal, friction = kind == ConstraintType.EQUALITY, kind == ConstraintType.FRICTION_TENDON
    enabled = np.where(equal, not flags & DisableBit.EQUALITY, np.where(friction, on[0], on[1]))
    sizes = [layout.nv, layout.ngeneral, layout.nlimit, layout.ncontact, layout.max_constraints, *on, contacts]
    return {
        "sizes": sizes,
        "general_kind": np.where(enabled & (not flags & DisableBit.CONSTRAINT), np.where(equal, 0, 2 - friction), -1),
        "limit_joint": layout.limit_jnt,
        "limit_qpos": m.jnt_qposadr[layout.limit_jnt],
        "limit_dof": layout.limit_dof,
    }


def _chains(m: Any, layout: Layout) -> dict[str, Any]:
    """Return the last dof of each body, the dof before each dof in its chain, roots of bodies, bodies of geoms."""
    return {
        "body_last_dof": last_dof(m),
        "dof_parent": m.dof_parentid,
        "body_root": m.body_rootid,
        "geom_body": geom_bodies(m),
    }


def _plan_of(layout: Layout, real: Any, safe: bool) -> Callable[..., _Plan]:
    """Return the plan as a function of names and types of the inputs and outputs."""
    dim, facets = (layout.condim, layout.nfacet) if layout.ncontact else (1, 1)
    constants = {"DIM": dim, "NF": facets, "PYRAMIDAL": int(layout.pyramidal), "SPARSE": int(layout.sparse)}
    known = tuple((constants | {"FIXED": FIXED, "MINVAL": MINVAL}).items())
    return lambda given, found: _Plan(given, found, known, str(real), safe)


def _source(plan: _Plan) -> ProgramSource:
    """Return the C source of `world(given..., found...)`."""
    numbers = _numbers_source(plan.real, plan.safe)
    before = ONE_LANE + definitions({"T": C_TYPES[plan.real]} | dict(plan.constants)) + numbers
    structs = _struct("Given", plan.given, "const ") + _struct("Found", plan.found, "")
    given, found = ([f"{k}{i}" for i in range(len(x))] for k, x in (("x", plan.given), ("y", plan.found)))
    pointers = [f"const void* {x}" for x in given] + [f"void* {y}" for y in found]
    world = f"""static void world({", ".join(pointers)}) {{
const Given x = {{{", ".join(given)}}};
const Found y = {{{", ".join(found)}}};
make_rows(&x, &y);
}}
"""
    return ProgramSource(before + structs + text(HERE, "rows.c") + world)


def _struct(name: str, fields: tuple[tuple[str, str], ...], const: str) -> str:
    """Return the C source of a struct of pointers to the arrays with these names and types."""
    lines = [f"{const}{C_TYPES[kind]}* {field};" for field, kind in fields]
    return "typedef struct {\n" + "\n".join(lines) + f"\n}} {name};\n"


def _numbers_source(real: str, safe: bool) -> str:
    """Return the C source of `numbers(timestep, solref, solimp, depth, diag, out)`.

    It computes `imp.row_numbers` for one row.
    """
    one = lambda *shape: jax.ShapeDtypeStruct(shape, real)  # noqa: E731

    def row(timestep: Array, *x: Array) -> Array:
        return jnp.concatenate(imp.row_numbers(timestep, safe, *(y[None] for y in x)))

    closed = jax.make_jaxpr(row)(one(), one(2), one(5), one(), one())
    return c_function("numbers", closed)
