"""Warnings about models: one line for each kind, with a count, once for each file; all of them in `jaxsim info`."""

import warnings

import pytest

import jaxsim
from jaxsim.core.errors import ModelWarning, collected_warnings, warn
from jaxsim.tools.cli import main

MESH = '<mesh name="m{}" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>'
XML = f"""<mujoco><asset>{"".join(MESH.format(i) for i in range(5))}</asset>
<worldbody><body><joint/><inertial pos="0 0 0" mass="1" diaginertia="9 9 9"/><geom size=".1"/></body></worldbody>
</mujoco>"""


def load(source):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        jaxsim.load_model(source)
    return [str(w.message) for w in found if w.category is ModelWarning], found


def test_a_kind_is_one_line_with_a_count():
    lines, found = load(XML)
    assert len(lines) == 2
    assert any("'m0': no geom uses this mesh" in line and "and 4 more like it" in line for line in lines)
    assert any("suspicious inertia" in line and "more like it" not in line for line in lines)
    assert found[0].filename == __file__


def test_a_file_warns_once_in_a_process(tmp_path):
    path = tmp_path / "model.xml"
    path.write_text(XML)
    assert len(load(path)[0]) == 2
    assert not load(path)[0]
    assert len(load(XML)[0]) == 2  # a text has no name


def test_info_lists_all_of_them(tmp_path, capsys):
    path = tmp_path / "model.xml"
    path.write_text(XML)
    assert main(["info", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.count("no geom uses this mesh") == 5 and out.count("suspicious inertia") == 1


def test_warnings_are_issued_before_an_error():
    xml = XML.replace("<mujoco>", '<mujoco><frame/><sensor><jointpos joint="no"/></sensor>')
    with pytest.warns(ModelWarning, match="a frame outside"), pytest.raises(jaxsim.ModelError, match="joint"):
        jaxsim.load_model(xml)


def test_collected_warnings_are_not_issued():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with collected_warnings() as found:
            warn("odd", ("a.xml", 3), "geom 'g'")
    assert [str(x) for x in found] == ["a.xml:3: geom 'g': odd"]
