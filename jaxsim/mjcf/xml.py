"""Text of a file to a tree of nodes, without DTDs, entities beyond XML's own five, or network access.

MuJoCo's parser accepts text that is not valid XML: declarations after blank lines, bare ampersands, attributes without
a space between them, bytes that are not UTF-8, elements after the root. Existing files rely on it, so this text is
corrected before a strict parser reads it. Removed comments and texts leave their newlines, and newlines inside a tag
move after it, so that a node's line is the one where its tag begins.
"""

from __future__ import annotations

import re

import lxml.etree as etree

from jaxsim.core.errors import ModelError

XACRO = "xacro is not expanded; run it first: xacro FILE -o robot.urdf"

_TOKEN = re.compile(
    r"""<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<!|<(?P<close>/?)(?P<tag>[^\s<>/"'=!?]++)"""
    r"""(?P<rest>(?:[^<>"']|"[^"]*"|'[^']*')*+)>""",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"""\s*([^\s=/"'<>]+)\s*=\s*("[^"]*"|'[^']*')""")
_UNUSUAL = re.compile(r"""[&<\n\t]|=\s*(?:"[^"]*"|'[^']*')[^\s/]""")
_AMPERSAND = re.compile(r"&(?!#?\w+;)")  # text in the form of an entity is left to the parser
_CONTROL = re.compile("[\x01-\x08\x0e-\x1f\ufffe\uffff]")
_LATIN = {0xDC00 + byte: chr(byte) for byte in range(0x80, 0x100)} | {0x0B: " ", 0x0C: " "}  # and old white space
_NOT_TEXT = re.compile(r"<|&\w+;")


def parse_xml(data: bytes, filename: str) -> etree._Element:
    """Return the root node of a document; its lines are those of the file. Raises ModelError with file and line."""
    if not data.strip():
        raise ModelError("the file is empty", (filename, 1))
    if b"\0" in data:
        raise ModelError("the file is not XML text in an 8-bit encoding", (filename, 1))
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, remove_pis=True, remove_comments=True
    )
    text = _tidy(_decode(data).replace("\r\n", "\n").replace("\r", "\n"), filename)
    _refuse_controls(text, filename)
    try:
        return etree.fromstring(text, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        reason = str(getattr(error, "msg", error))
        what = XACRO if "prefix xacro" in reason else f"not well-formed XML: {reason}"
        raise ModelError(what, (filename, line)) from None


def _decode(data: bytes) -> str:
    """Decode UTF-8 bytes; single bytes that are not UTF-8 are read as Latin 1, as comments often are."""
    return data.decode("utf-8-sig", "surrogateescape").translate(_LATIN)


def _refuse_controls(text: str, filename: str) -> None:
    found = _CONTROL.search(text)
    if found:
        line = text.count("\n", 0, found.start()) + 1
        raise ModelError(f"the character {ord(found[0]):#04x} is not allowed in XML; remove it", (filename, line))


def _tidy(text: str, filename: str) -> str:
    """Return the document without declarations, comments, text and content after the root.

    Attributes in strict form.
    """
    parts: list[str] = []
    at, depth, roots, blank = 0, 0, 0, True
    for token in _TOKEN.finditer(text):
        between, word = text[at : token.start()], token[0]
        at = token.end()
        parts.append(between if _NOT_TEXT.search(between) else "\n" * between.count("\n"))
        if word == "<!" or word.startswith("<?"):
            line = text.count("\n", 0, token.start()) + 1
            if word == "<!":
                raise ModelError(_declaration(text[token.start() :]), (filename, line))
            if not blank or between.strip():
                raise ModelError(f"'{word[:20]}' may only stand at the start of a file", (filename, line))
        if token["tag"] is None:
            parts.append("\n" * word.count("\n"))
            blank = blank and word.startswith("<?")
            continue
        blank = False
        opens, closes = not token["close"], token["close"] or token["rest"].endswith("/")
        roots += opens and depth == 0
        depth += bool(opens) - bool(closes)
        if roots and depth < 0:  # an end tag behind the root ends the document
            return "".join(parts)
        if roots > 1:
            parts.append("\n" * word.count("\n"))  # behind the root: not read
        else:
            parts.append(_tidy_tag(token) if opens and _UNUSUAL.search(token["rest"]) else word)
    if roots > 1 and depth:
        raise ModelError("not well-formed XML: the text after the root element is not closed", (filename, 1))
    return "".join([*parts, text[at:]])


def _declaration(rest: str) -> str:
    """Return the error for text that begins with `<!` and is neither a comment nor a complete CDATA section."""
    if rest.startswith("<!--"):
        return "the comment is not closed; end it by -->"
    if rest.startswith("<![CDATA["):
        return "the CDATA section is not closed; end it by ]]>"
    return "document types and entities are not read; remove the declaration"


def _tidy_tag(token: re.Match) -> str:
    """Return a tag on one line, in strict form if it can be parsed; its newlines follow it."""
    rest, end = token["rest"], ""
    if rest.endswith("/"):
        rest, end = rest[:-1], "/"
    attributes, at = [], 0
    while found := _ATTRIBUTE.match(rest, at):
        attributes.append(f" {found[1]}={_tidy_value(found[2])}")
        at = found.end()
    if rest[at:].strip():
        return token[0]
    return f"<{token['tag']}{''.join(attributes)}{end}>" + "\n" * token[0].count("\n")


def _tidy_value(quoted: str) -> str:
    value = _AMPERSAND.sub("&amp;", quoted)
    return value.replace("<", "&lt;").replace("\n", "&#10;").replace("\t", "&#9;")
