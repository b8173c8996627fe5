"""The annotated fields of the structs: every one has a meaning and a unit, and the docs are written from them."""

import re

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.core.contact import Constraint, Contact, Warning
from jaxsim.core.data import PACKED, Data
from jaxsim.core.model import MODEL_FIELDS, Model
from jaxsim.core.option import Option, Statistic
from jaxsim.core.struct import Struct, evaluate, fields_of, integer, real
from jaxsim.core.visual import VISUAL_GROUPS, Visual
from validation import fields as written

STRUCTS = (Model, Option, Statistic, Visual, *VISUAL_GROUPS.values(), Data, Contact, Constraint, Warning)
UNITS = {"-", "1", "kg", "m", "s", "rad", "deg", "N", "J", "Pa", "T", "cd", "pixel", "by sensor"}


def rows(struct):
    return fields_of(struct, "size", "float", "int", "bool", "char", "bytes", "asset", "part")


@pytest.mark.parametrize("struct", STRUCTS)
def test_every_field_has_a_meaning_and_a_unit(struct):
    table = rows(struct) + (list(PACKED.values()) if struct is Data else [])
    assert table and len({row.name for row in table}) == len(table)
    for row in table:
        assert re.search("[a-z]", row.meaning) and not row.meaning.endswith("."), row
        factors = [row.unit] if row.unit in UNITS else re.split(", | or |/| ", row.unit)
        assert all(re.sub(r"\^\d$", "", factor.strip("()")) in UNITS for factor in factors), row


def test_shapes_are_made_of_sizes():
    own = ("max_contacts", "max_constraints", "ngeneral", "condim", "nside")
    sizes = dict.fromkeys([*(row.name for row in fields_of(Model, "size")), *own], 2)
    for struct in STRUCTS:
        for row in rows(struct):
            assert all(n > 0 for n in evaluate(row.shape, sizes)), row
    assert evaluate(("nkey", "nmocap*3", 5), sizes) == (2, 6, 5)


def test_every_field_of_the_structs_is_in_the_page():
    for struct in (Model, Option, Statistic, Data, Contact, Constraint, Warning):
        found = [row.name for table in written.sections(struct).values() for row in table]
        assert found == [row.name for row in rows(struct)], struct
    assert "Bodies" in written.sections(Model) and "Kinematics" in written.sections(Data)


def test_the_page_is_up_to_date():
    assert written.PAGE.read_text(encoding="utf-8") == written.page(), "run `python -m validation.fields`"


class Pair(Struct):
    """Numbers and a static count."""

    x: jax.Array = real("3", "a vector", "m")
    n: int = integer("", "a count")


def test_the_annotation_says_what_is_a_leaf():
    p = Pair(x=np.zeros(3), n=2)
    assert jax.tree.leaves(p)[0] is p.x and len(jax.tree.leaves(p)) == 1
    assert Pair.LEAVES == ("x",) and Pair.STATIC == ("n",)
    assert jax.tree.structure(p) != jax.tree.structure(p.replace(n=3))
    assert jax.tree_util.keystr(jax.tree_util.tree_leaves_with_path(p)[0][0]) == ".x"
    with pytest.raises(TypeError, match=r"Pair\(\) is missing 'n'"):
        Pair(x=1)
    with pytest.raises(TypeError, match="Pair has no field 'y'"):
        Pair(x=1, n=1, y=2)


def test_leaves_of_a_model_are_its_floats():
    m = jaxsim.load_model("<mujoco/>")
    assert set(Model.LEAVES) == {"opt", "stat", *(f.name for f in MODEL_FIELDS if f.kind == "float")}
    assert all(x.dtype.kind == "f" for x in jax.tree.leaves(m)) and Model.STATIC == ("structure",)


@pytest.mark.parametrize("part", ["m", "m.opt", "m.stat", "m.vis", "m.vis.map", "d", "d.contact", "d.efc", "d.warning"])
def test_replace_takes_every_field(part):
    m = jaxsim.load_model("<mujoco/>")
    value = eval(part, {"m": m, "d": jaxsim.make_data(m)})
    kept = ("modelname", "eq_strain", "near_frames", "density", "viscosity")  # the last two switch `fluid` on
    names = (row.name for row in rows(type(value)) if row.kind != "size" and row.name not in kept)
    assert value.replace(**{name: getattr(value, name) for name in names}) == value
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
    names = [f.name for f in MODEL_FIELDS if isinstance(getattr(theirs, f.name), bytes)]
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
