"""The tables of fields: every row has a meaning and a unit, and the structs have the fields that the tables say."""

import re

import pytest

from jaxsim.core import fields
from jaxsim.core.model import Statistic

TABLES = ("SIZES", "MODEL", "MODEL_PARTS", "OPTION", "STATISTIC", "VISUAL")
TABLES += ("DATA", "DATA_PARTS", "CONTACT", "CONSTRAINT", "ROW", "WARNING")
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
    sizes = {row.name: 2 for row in fields.parse(fields.SIZES)}
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
