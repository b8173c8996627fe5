"""Words added to MJCF after MuJoCo 3.8.1, each with its version: the errors that refuse them name the version."""

READ = "3.8.1"  # the version of the language table

ELEMENTS = {"orientation": "3.11", "pid": "3.12"}
# (element, attribute) -> version
ATTRIBUTES = {
    ("flag", "diagexact"): "3.9",
    ("compiler", "conflict"): "3.10",
    ("geom", "adhesion"): "3.11",
    ("geom", "surfacevel"): "3.11",
    ("pair", "adhesion"): "3.11",
    ("body", "simple"): "3.11",
    ("attach", "frame"): "3.11",
    ("general", "input"): "3.11",
    ("intvelocity", "actlimited"): "3.11",
    ("light", "softness"): "3.12",
    ("flex", "nodecoord"): "3.12",
    ("general", "velrange"): "3.12",
    ("general", "ffrange"): "3.12",
    ("dcmotor", "velrange"): "3.12",
    ("dcmotor", "ffrange"): "3.12",
}
# (attribute, word) -> version; None: an unknown version
WORDS = {
    ("gaintype", "so3"): "3.11",
    ("biastype", "so3"): "3.11",
    ("gaintype", "pid"): "3.12",
    ("dyntype", "pid"): "3.12",
    ("input", "pos"): "3.12",
    ("input", "vel"): "3.12",
    ("input", "ff"): "3.12",
    ("integrator", "discrete"): None,
}


def newer_element(tag: str) -> str:
    """Return an addition to the error of an unknown element that a newer MuJoCo has; empty for all others."""
    return _since(ELEMENTS[tag]) if tag in ELEMENTS else ""


def newer_attribute(tag: str, name: str) -> str:
    """Return an addition to the error of an unknown attribute of an element, like `newer_element`."""
    return _since(ATTRIBUTES[tag, name]) if (tag, name) in ATTRIBUTES else ""


def newer_word(attribute: str, word: str) -> str:
    """Return an addition to the error of an unknown word of an attribute, like `newer_element`."""
    return _since(WORDS[attribute, word]) if (attribute, word) in WORDS else ""


def _since(version: str | None) -> str:
    came = f"it came with MuJoCo {version}" if version else f"it came after MuJoCo {READ}"
    return f"; {came}, and this reads MuJoCo {READ}"
