"""Words added to MJCF after MuJoCo 3.8.1, each with its version: the errors that refuse them name the version."""

READ = "3.8.1"  # the version of the language table

# version, or "" where it is not known -> elements, attributes as element/attribute, words as attribute=word
_ADDED = {
    "3.9": "flag/diagexact",
    "3.10": "compiler/conflict",
    "3.11": "orientation geom/adhesion geom/surfacevel pair/adhesion body/simple attach/frame general/input "
    "intvelocity/actlimited gaintype=so3 biastype=so3",
    "3.12": "pid light/softness flex/nodecoord general/velrange general/ffrange dcmotor/velrange dcmotor/ffrange "
    "gaintype=pid dyntype=pid input=pos input=vel input=ff",
    "": "integrator=discrete",
}
VERSIONS = {word: version for version, words in _ADDED.items() for word in words.split()}


def newer_element(tag: str) -> str:
    """Return an addition to the error of an unknown element that a newer MuJoCo has; empty for all others."""
    return _since(tag)


def newer_attribute(tag: str, name: str) -> str:
    """Return an addition to the error of an unknown attribute of an element, like `newer_element`."""
    return _since(f"{tag}/{name}")


def newer_word(attribute: str, word: str) -> str:
    """Return an addition to the error of an unknown word of an attribute, like `newer_element`."""
    return _since(f"{attribute}={word}")


def _since(word: str) -> str:
    if word not in VERSIONS:
        return ""
    version = VERSIONS[word]
    came = f"it came with MuJoCo {version}" if version else f"it came after MuJoCo {READ}"
    return f"; {came}, and this reads MuJoCo {READ}"
