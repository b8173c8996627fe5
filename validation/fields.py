"""The page `docs/fields.md`, written from the annotated fields of Model, Data and their parts.

Run from the repository to write it: python -m validation.fields
"""

import dataclasses
import inspect
import re
from pathlib import Path

from jaxsim.core.contact import JACOBIANS, Constraint, Contact, Warning
from jaxsim.core.data import PACKED, Data
from jaxsim.core.model import Model
from jaxsim.core.option import Option, Statistic
from jaxsim.core.struct import Field, Struct, fields_of
from jaxsim.core.visual import VISUAL_GROUPS

PAGE = Path(__file__).resolve().parent.parent / "docs/fields.md"

PAGE_HEAD = """# Fields

Every field of `Model`, `Data` and their structs, with its shape, meaning and unit. Names, shapes and meanings are those
of MuJoCo's mjModel and mjData; what this package adds stands under "Own fields". An editor shows the same text.

Units are SI, `-` where there is none. "N or N m" is by the kind of object (slide or hinge); with commas, entries
differ. A solver reference is a time constant and a damping ratio or, negative, a stiffness and a damping. Matrices are
stored by rows, quaternions as (w, x, y, z). Spatial vectors have the rotation first.

Kinds: `float` is a leaf of the PyTree, which can be batched and differentiated. `int`, `bool`, `char`, `bytes`
and `asset` fields of a model are structure: static, and another value means another compilation. All fields of `Data`
are leaves. `size` fields are integers.

This page is written by `python -m validation.fields`.
"""


def sections(struct: type[Struct]) -> dict[str, list[Field]]:
    """The fields of a class, parts included, by the comments over them in its source; "" before the first."""
    own = {f.name: f for f in fields_of(struct)}
    types = {f.name: f.type.__name__ for f in dataclasses.fields(struct) if f.name not in own}
    parts = {f.name: f._replace(kind=types[f.name]) for f in fields_of(struct, "part")}
    out: dict[str, list[Field]] = {}
    title = ""
    for line in inspect.getsource(struct).splitlines():
        if found := re.match(r"    # (.*)", line):
            title = found[1]
        if (found := re.match(r"    (\w+): ", line)) and (field := (own | parts).get(found[1])):
            out.setdefault(title, []).append(field)
    return out


def _within(lead: str, rows: list[Field]) -> list[Field]:
    return [f if f.name in JACOBIANS or f.name == "layout" else f._replace(shape=(lead, *f.shape)) for f in rows]


def _shape(field: Field) -> str:
    if not field.shape:
        return "scalar"
    return f"({', '.join(map(str, field.shape))}{',' * (len(field.shape) == 1)})"


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
    visual = {f"vis.{group}": fields_of(kind) for group, kind in VISUAL_GROUPS.items()}
    contact = {title: _within("max_contacts", rows) for title, rows in sections(Contact).items()}
    constraint = {title: _within("nslot", rows) for title, rows in sections(Constraint).items()}
    return "".join(
        [
            PAGE_HEAD,
            _section("Model", "Fields of `m`.", sections(Model)),
            _section("Option", "Fields of `m.opt`.", sections(Option)),
            _section("Statistic", "Fields of `m.stat`.", sections(Statistic)),
            _section("Visual", "Fields of `m.vis`, by group.", visual),
            _section("Data", "Fields of `d`.", sections(Data)),
            _section(
                "Data: packed rows",
                "Constraint rows in MuJoCo's order, of which the first `nefc` are real: properties of `d`.",
                {"": list(PACKED.values())},
            ),
            _section("Contact", "Fields of `d.contact`.", contact),
            _section(
                "Constraint",
                "Fields of `d.efc`: rows in the fixed slots of `jaxsim.core.layout`. A slot without a row holds zeros.",
                constraint,
            ),
            _section("Warning", "Fields of `d.warning`.", sections(Warning)),
        ]
    )


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
