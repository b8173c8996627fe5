"""What is written from the tables of fields: the stub `jaxsim/core/field_types.pyi` and the page `docs/fields.md`.

Run from the repository to write both: python -m validation.fields
"""

from pathlib import Path

from jaxsim.core import fields
from jaxsim.core.fields import Field

ROOT = Path(__file__).resolve().parent.parent
STUB, PAGE = ROOT / "jaxsim/core/field_types.pyi", ROOT / "docs/fields.md"

# what a field of each kind is in Python, where it is not the kind's own name
MODEL_TYPES = {
    "float": "jax.Array",
    "int": "np.ndarray",
    "bool": "np.ndarray",
    "asset": "np.ndarray",
    "char": "np.ndarray",
}
OPTION_TYPES = {"float": "jax.Array"}
DATA_TYPES = {"float": "jax.Array", "int": "jax.Array", "bool": "jax.Array"}

STUB_HEAD = '''"""Fields of Model, Data and their structs. Written by `python -m validation.fields`: do not edit."""

from typing import Any, TypedDict

import jax
import numpy as np

from jaxsim.core.callbacks import Callbacks
from jaxsim.core.data import Constraint, Contact, Warning
from jaxsim.core.layout import Layout
from jaxsim.core.model import Option, Statistic, Structure
'''

PAGE_HEAD = """# Fields

Every field of `Model`, `Data` and their structs, with its shape, meaning and unit. Names, shapes and meanings are those
of MuJoCo's mjModel and mjData; what this package adds stands under "Own fields". An editor shows the same text.

Units are SI, `-` where there is none. "N or N m" is by the kind of object (slide or hinge); with commas, entries
differ. A solver reference is a time constant and a damping ratio or, negative, a stiffness and a damping. Matrices are
stored by rows, quaternions as (w, x, y, z). Spatial vectors have the rotation first.

Kinds: `float` is a leaf of the PyTree, which can be batched and differentiated. `int`, `bool`, `char`, `bytes`
and `asset` fields of a model are structure: static, and another value means another compilation. All fields of `Data`
are leaves.

This page is written by `python -m validation.fields`.
"""


def packed_fields() -> list[Field]:
    """The rows of `d.efc_*`: what is stored of constraints, then what follows from their slots."""
    rows = [*(f for f in fields.parse(fields.CONSTRAINT) if f.name != "active"), *fields.parse(fields.ROW)]
    return [f._replace(name=f"efc_{f.name}", shape=("max_constraints", *f.shape)) for f in rows]


def _within(lead: tuple[str | int, ...], table: list[Field]) -> list[Field]:
    return [f._replace(shape=(*lead, *f.shape)) for f in table]


def _shape(field: Field) -> str:
    if not field.shape:
        return "scalar"
    return f"({', '.join(map(str, field.shape))}{',' * (len(field.shape) == 1)})"


def _struct(name: str, table: list[Field], types: dict[str, str], scalars: bool = False) -> str:
    """A class of the stub: a read-only property for each field."""
    lines = [f"\nclass {name}:"]
    for field in table:
        kind = field.kind if scalars and not field.shape and field.kind == "int" else types.get(field.kind, field.kind)
        shape = f", {_shape(field)}" if field.shape else ""
        unit = "" if field.unit == "-" else f" [{field.unit}]"
        lines += ["    @property", f"    def {field.name}(self) -> {kind}:"]
        lines += [f'        """{field.meaning[0].upper()}{field.meaning[1:]}{unit}{shape}."""', ""]
    return "\n".join(lines)


def _changes(name: str, names: list[str]) -> str:
    """What `replace` takes: a TypedDict."""
    return "\n".join([f"\nclass {name}(TypedDict, total=False):", *(f"    {n}: Any" for n in names), ""])


def _names(table: list[Field]) -> list[str]:
    return [f.name for f in table]


def _visual() -> str:
    groups: dict[str, list[Field]] = {}
    for field in fields.parse(fields.VISUAL):
        group, _, name = field.name.partition(".")
        kind = field.kind if not field.shape else "tuple[float, ...]"
        groups.setdefault(group, []).append(field._replace(name=name, kind=kind))
    text = "".join(_struct(f"Visual{group.title()}", rows, {}) for group, rows in groups.items())
    lines = ["", "class Visual:"]
    for group in groups:
        name = "global_" if group == "global" else group
        lines += ["    @property", f"    def {name}(self) -> Visual{group.title()}: ..."]
    return text + "\n".join([*lines, ""])


def stub() -> str:
    """The text of the stub."""
    parse = fields.parse
    sizes, model, parts = parse(fields.SIZES), parse(fields.MODEL), parse(fields.MODEL_PARTS)
    option, data, data_parts = parse(fields.OPTION), parse(fields.DATA), parse(fields.DATA_PARTS)
    contact, constraint, jacobians = parse(fields.CONTACT), parse(fields.CONSTRAINT), parse(fields.JACOBIANS)
    warning = parse(fields.WARNING)
    settable = [f for f in parts if f.name not in ("vis", "structure", "modelname", "eq_strain")]
    return "".join(
        [
            STUB_HEAD,
            _struct("ModelFields", sizes, {}),
            _struct("", model, MODEL_TYPES).removeprefix("\nclass :"),
            _struct("", parts, {}).removeprefix("\nclass :"),
            _visual(),
            _struct("OptionFields", option, OPTION_TYPES, scalars=True),
            _struct("DataFields", [*data, *data_parts, *packed_fields()], DATA_TYPES),
            _struct("ContactFields", _within(("max_contacts",), contact), DATA_TYPES),
            _struct("ConstraintFields", [*_within(("nslot",), constraint), *jacobians], DATA_TYPES),
            _struct("WarningFields", warning, DATA_TYPES),
            _changes("ModelChanges", _names([*model, *settable])),
            _changes("OptionChanges", _names(option)),
            _changes("StatisticChanges", _names(parse(fields.STATISTIC))),
            _changes("DataChanges", _names([*data, *data_parts])),
            _changes("ContactChanges", _names(contact)),
            _changes("ConstraintChanges", _names([*constraint, *jacobians])),
            _changes("WarningChanges", _names(warning)),
        ]
    )


def _table(rows: list[Field]) -> str:
    lines = ["| field | kind | shape | meaning | unit |", "| --- | --- | --- | --- | --- |"]
    for f in rows:
        lines.append(f"| `{f.name}` | {f.kind} | {_shape(f)} | {f.meaning} | {f.unit} |")
    return "\n".join(lines) + "\n"


def _section(title: str, intro: str, table: dict[str, list[Field]]) -> str:
    parts = [f"\n## {title}\n\n{intro}\n"]
    for name, rows in table.items():
        parts.append((f"\n### {name}\n\n" if name else "\n") + _table(rows))
    return "".join(parts)


def page() -> str:
    """The text of the page."""
    sections, parse = fields.sections, fields.parse
    data = sections(fields.DATA)
    visual = {f"vis.{title.lower()}": rows for title, rows in sections(fields.VISUAL).items()}
    constraint = _within(("nslot",), parse(fields.CONSTRAINT))
    return "".join(
        [
            PAGE_HEAD,
            _section("Model: sizes", "Integers of `m`.", sections(fields.SIZES)),
            _section("Model: arrays", "Fields of `m`.", sections(fields.MODEL)),
            _section("Model: parts", "What `m` holds in addition.", sections(fields.MODEL_PARTS)),
            _section("Option", "Fields of `m.opt`.", sections(fields.OPTION)),
            _section("Statistic", "Fields of `m.stat`.", sections(fields.STATISTIC)),
            _section("Visual", "Fields of `m.vis`, by group; `global` is reached as `m.vis.global_`.", visual),
            _section("Data", "Fields of `d`.", data),
            _section("Data: parts", "What `d` holds in addition.", sections(fields.DATA_PARTS)),
            _section(
                "Data: packed rows",
                "Constraint rows in MuJoCo's order, of which the first `nefc` are real: properties of `d`.",
                {"": packed_fields()},
            ),
            _section("Contact", "Fields of `d.contact`.", {"": _within(("max_contacts",), parse(fields.CONTACT))}),
            _section(
                "Constraint",
                "Fields of `d.efc`: rows in the fixed slots of `jaxsim.core.layout`. A slot without a row holds zeros.",
                {"": [*constraint, *parse(fields.JACOBIANS)]},
            ),
            _section("Warning", "Fields of `d.warning`.", sections(fields.WARNING)),
        ]
    )


def main() -> None:
    """Write the stub and the page."""
    STUB.write_text(stub(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
