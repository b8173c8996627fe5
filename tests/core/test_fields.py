"""The tables of fields: every row has a meaning and a unit, and the structs have the fields that the tables say."""

import ast
import inspect
import re

import mujoco
import pytest

import jaxsim
from jaxsim.core import fields
from jaxsim.core.data import Constraint, Contact, Data, Warning
from jaxsim.core.model import Model, Option, Statistic
from validation import fields as written

TABLES = ("SIZES", "MODEL", "MODEL_PARTS", "OPTION", "STATISTIC", "VISUAL")
TABLES += ("DATA", "DATA_PARTS", "CONTACT", "CONSTRAINT", "JACOBIANS", "ROW", "WARNING")
UNITS = {"-", "1", "kg", "m", "s", "rad", "deg", "N", "J", "Pa", "T", "cd", "pixel", "by sensor"}


@pytest.mark.parametrize("table", TABLES)
def test_every_field_has_a_meaning_and_a_unit(table):
    rows = fields.parse(getattr(fields, table))
    assert rows and len({row.name for row in rows}) == len(rows)
    for row in rows:
        assert re.search("[a-z]", row.meaning) and not row.meaning.endswith("."), row
        factors = [row.unit] if row.unit in UNITS else re.split(", | or |/| ", row.unit)
        assert all(re.sub(r"\^\d$", "", factor.strip("()")) in UNITS for factor in factors), row


def test_every_table_is_tested():
    assert set(TABLES) == {name for name in vars(fields) if name.isupper()}


def test_shapes_are_made_of_sizes():
    own = ("max_contacts", "ngeneral", "condim", "nside")
    sizes = dict.fromkeys([*(row.name for row in fields.parse(fields.SIZES)), *own], 2)
    for table in TABLES:
        for row in fields.parse(getattr(fields, table)):
            assert all(n > 0 for n in fields.evaluate(row.shape, sizes)), row
    assert fields.evaluate(("nkey", "nmocap*3", 5), sizes) == (2, 6, 5)


def test_statistic_has_the_fields_of_its_table():
    assert Statistic._fields == tuple(row.name for row in fields.parse(fields.STATISTIC))


def test_sections_are_read_with_their_titles():
    assert list(fields.sections("a int - | first | -\n# Next\nb float nq 3 | second | m")) == ["", "Next"]
    (row,) = fields.parse("b float nq 3 | second | m")
    assert row == fields.Field("b", "float", ("nq", 3), "second", "m")


@pytest.mark.parametrize(
    ("path", "text"), [(written.STUB, written.stub), (written.PAGE, written.page)], ids=["stub", "page"]
)
def test_what_is_written_from_the_tables_is_up_to_date(path, text):
    assert path.read_text(encoding="utf-8") == text(), "run `python -m validation.fields`"


def test_stub_declares_every_attribute_of_the_structs():
    bodies = {node.name: node.body for node in ast.parse(written.stub()).body if isinstance(node, ast.ClassDef)}
    for struct in (Model, Option, Data, Contact, Constraint, Warning):
        name = struct.__name__
        declared = {node.name for node in bodies[f"{name}Fields"] if isinstance(node, ast.FunctionDef)}
        found = {attribute for attribute in dir(struct) if not attribute.startswith("_")}
        methods = {attribute for attribute in found if inspect.isfunction(getattr(struct, attribute))}
        assert found - methods == declared, name
        assert "replace" in methods


def test_stub_names_all_that_replace_takes():
    bodies = {node.name: node.body for node in ast.parse(written.stub()).body if isinstance(node, ast.ClassDef)}
    m = jaxsim.load_model("<mujoco><worldbody/></mujoco>")
    d = jaxsim.make_data(m)
    for value in (m, m.opt, m.stat, d, d.contact, d.efc, d.warning):
        names = [node.target.id for node in bodies[f"{type(value).__name__}Changes"]]
        value.replace(**{name: getattr(value, name) for name in names})
        with pytest.raises(TypeError, match="no field 'nonsense'"):
            value.replace(nonsense=1)


def test_what_is_bytes_in_mujoco_is_bytes_here(tmp_path):
    (tmp_path / "m.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    path = tmp_path / "model.xml"
    path.write_text(
        """<mujoco model="kettle"><custom><text name="say" data="caf\u00e9"/></custom>
        <asset><mesh file="m.obj"/></asset>
        <worldbody><geom name="spout" type="mesh" mesh="m"/></worldbody></mujoco>""",
        encoding="utf-8",
    )
    theirs = mujoco.MjModel.from_xml_path(str(path))
    names = [f.name for f in fields.parse(fields.MODEL) if isinstance(getattr(theirs, f.name), bytes)]
    assert names == ["text_data", "names", "paths"]
    ours = jaxsim.load_model(path)
    jaxsim.save_model(ours, tmp_path / "model.jaxsim")
    again = jaxsim.load_model(tmp_path / "model.jaxsim")
    for m in (ours, again, jaxsim.from_mujoco(theirs), ours.replace(text_data=theirs.text_data)):
        for name in names:
            assert isinstance(getattr(m, name), bytes) and getattr(m, name) == getattr(theirs, name), name
        assert m.id2name("geom", 0) == "spout" and m.name2id("text", "say") == 0
    assert again.structure == ours.structure and hash(again.structure) == hash(ours.structure)
    assert ours.replace(text_data=b"cafe\0").structure != ours.structure
