"""Documents that are not quite XML: MuJoCo's verdict, its names, and lines that are those of the file."""

import mujoco
import pytest

from jaxsim.core.errors import ModelError
from jaxsim.mjcf import read
from jaxsim.mjcf.xml import parse_xml

MODEL = b'<mujoco><worldbody><body name="a"/></worldbody></mujoco>'
DOCUMENTS = {
    "blank lines first": b'\n\n<?xml version="1.0"?>\n' + MODEL,
    "two declarations": b'<?xml version="1.0"?><?xml-stylesheet href="a.css"?>' + MODEL,
    "empty declaration": b"<?xml?>" + MODEL,
    "unknown encoding": b'<?xml version="1.0" encoding="nonsense"?>' + MODEL,
    "late declaration": b"<!-- c --><?xml?>" + MODEL,
    "declaration inside": b"<mujoco><?foo bar?></mujoco>",
    "byte order mark": b"\xef\xbb\xbf" + MODEL,
    "bytes of Latin 1": b"<mujoco><!-- \xe9 --> \xe9 </mujoco>",
    "bytes of Latin 1 among UTF-8": b'<mujoco><!-- \xe9 --><worldbody><body name="a\xc3\xa9"/></worldbody></mujoco>',
    "vertical tab and form feed": b'<mujoco><worldbody><body name="a" pos="1\x0b2\x0c3"/></worldbody></mujoco>',
    "bare ampersand": b'<mujoco><worldbody><body name="a & b"/></worldbody></mujoco>',
    "less in a value": b'<mujoco><worldbody><body name="a < b"/></worldbody></mujoco>',
    "no space": b'<mujoco><worldbody><body name="a"pos="1 0 0"/></worldbody></mujoco>',
    "newline in a value": b'<mujoco><worldbody><body\nname="a\nb\tc"/></worldbody></mujoco>',
    "carriage returns": b'<mujoco>\r\n<worldbody>\r<body name="a\r\nb"/></worldbody></mujoco>',
    "second root": MODEL + b"<mujoco><zzz/></mujoco>",
    "open second root": MODEL + b"<mujoco>",
    "extra end": MODEL + b"</mujoco>",
    "text around": b"text" + MODEL,
    "text behind": MODEL + b"text",
    "character data": b'<mujoco><![CDATA[ <b> ]]><worldbody><body name="a"/></worldbody></mujoco>',
    "odd comment": b"<mujoco><!---- a --->\x01<worldbody/></mujoco>",
    "wide digit": '<mujoco><worldbody><body name="a" pos="\uff11 2 3"/></worldbody></mujoco>'.encode(),
    "wide space": '<mujoco><worldbody><body name="a" pos="1\u20092 3"/></worldbody></mujoco>'.encode(),
}


@pytest.mark.parametrize("data", DOCUMENTS.values(), ids=DOCUMENTS)
def test_documents_are_read_as_by_mujoco(data, tmp_path):
    path = tmp_path / "model.xml"
    path.write_bytes(data)
    try:
        theirs = [body.name for body in mujoco.MjSpec.from_file(str(path)).bodies[1:]]
    except ValueError:
        theirs = None
    try:
        ours = [body.name for body in read(path).elements("body") if body.parent.tag != "mujoco"]
    except ModelError:
        ours = None
    assert ours == theirs


def test_a_node_has_the_line_where_its_tag_begins():
    root = parse_xml(
        b'<!-- a\nb -->\n<mujoco\n model="a\nb"\n>\n\n<size\n/><option/>\ntext\n<visual/></mujoco>', "m.xml"
    )
    assert [node.sourceline for node in root.iter()] == [3, 8, 9, 11]


@pytest.mark.parametrize("data", [b'<mujoco model="&a;"/>', b"<mujoco>&a;</mujoco>", b"<!DOCTYPE mujoco><mujoco/>"])
def test_entities_and_document_types_are_refused(data):
    with pytest.raises(ModelError, match=r"m\.xml:1: "):
        parse_xml(data, "m.xml")


@pytest.mark.parametrize(
    "data, reason",
    [(b"<mujoco>\n<!-- x <size/></mujoco>", "end it by -->"), (b"<mujoco>\n<![CDATA[ x </mujoco>", "end it by ]]>")],
)
def test_what_is_not_closed_is_said_with_its_line(data, reason):
    with pytest.raises(ModelError, match=rf"m\.xml:2: .*{reason}"):
        parse_xml(data, "m.xml")


def test_bytes_of_latin_1_in_names_are_characters(tmp_path):
    path = tmp_path / "m.xml"
    path.write_bytes(b'<mujoco><worldbody><body name="caf\xe9"/></worldbody></mujoco>')
    spec = read(path)
    assert [body.name for body in spec.elements("body")][-1] == "caf\u00e9"


@pytest.mark.parametrize("character", ["\x01", "\x1b", "\uffff"])
def test_control_characters_are_refused_by_line(character, tmp_path):
    path = tmp_path / "m.xml"
    path.write_text(
        f'<mujoco>\n<size/>\n<worldbody><body name="a{character}b"/></worldbody></mujoco>', encoding="utf-8"
    )
    with pytest.raises(ModelError, match=r"m.xml:3: the character 0x.* is not allowed in XML"):
        read(path)
