"""What of the language the tests compare with the reference after a step, and why the rest cannot change one."""

import fnmatch
import re
from collections.abc import Iterator

import lxml.etree

from jaxsim.mjcf.schema.element_type import SCHEMA, ElementType
from jaxsim.mjcf.schema.values import ENUMS
from tests.engine import sweep_models
from tests.engine.sweep_cases import NUMBERS, WORDS
from tests.paths import ROOT
from validation.models.everything import BASE

PLACES = (ROOT / "tests" / "engine", ROOT / "validation" / "models")
ELEMENT = re.compile(r"<(\w+)((?:\s+\w+=(?:\"[^\"]*\"|'[^']*'|\{[^}]*\}))*)")
WRITTEN = re.compile(r"(\w+)=[\"']([^\"']*)[\"']")
FAMILIES = ("actuator", "sensor")  # elements of one family share the fields of attributes that most of them have
OWN = ("cutoff", "objtype", "reftype", "data")  # attributes of a family that each element must show
SECTIONS = ("default", "replicate", "frame")  # they repeat what stands elsewhere

POSE = "another way to write pos and quat; the compiled frames are compared"
LOOKS = "pictures only"
NAMES = "names and references; what is named is compared"
MADE = "another way to write fields that are compared when compiled (tests/compiler)"
FLEX = "steps of flexes are compared in engine/flex and engine/collision/flex"
FRAMELESS = sorted({*ENUMS["object"]} - {*sweep_models.FRAMES})
# patterns of element/attribute or element/attribute=word that no case shows -> why no step can tell, or who can
FREE = {
    "*/name|*/class|*/childclass|*/user|*/content_type|mujoco/model|*/prefix": NAMES,
    "*/group|*/rgba|*/material|*/width|*/texcoord|light/*|texture/*|layer/*|skin/*|bone/*|camera/ipd": LOOKS,
    "*/normal|global/*|quality/*|headlight/*|map/*|scale/*|statistic/*|rgba/*|camera/output*|mesh/smoothnormal": LOOKS,
    "*/axisangle|*/xyaxes|*/zaxis|*/euler|site/fromto|geom/fitscale|*/fullinertia|*/refpos|*/refquat": POSE,
    "compiler/*|lengthrange/*|size/*|composite/*|joint/sol*fix|attach/*|*/file|model/*|freejoint/align*": MADE,
    "mesh/face|mesh/maxhullvert|mesh/inertia*|mesh/builtin=*|camera/*pixel|joint/springdamper|dcmotor/nominal": MADE,
    "material/*": LOOKS,
    "flex*/*|edge/*|elasticity/*|pin/*|contact/selfcollide*|contact/activelayers": FLEX,
    "contact/passive|contact/condim|contact/priority|contact/friction": FLEX,
    "contact/sol*|contact/margin|contact/gap": FLEX,
    "numeric/*|text/*|tuple/*|element/*|key/*": "data for users and keyframes, compared when compiled",
    "*/noise": "a number for users: no engine adds noise",
    "|".join(
        f"*/{a}={word}" for a in ("objtype", "reftype") for word in FRAMELESS
    ): "objects without a frame: an error",
    "*/forcelimited=*|*/actuatorfrclimited=*": "one flag in the compiled model, on and off in other cases",
    "site/type=*": "sites have no plane, field, mesh or signed distance field",
    "frame?axis/cutoff|framequat/cutoff|ballquat/cutoff": "directions are not cut off: an error",
    "user/datatype*|user/needstage=none|user/objtype=*": "what a user's sensor holds is the user's",
    "body/sleep=*": "policies of sleep, by test_sleep",
    "flag/autoreset*|flag/fwdinv*": "by test_forward and test_inverse",
    "option/ls_iterations": "when a search ends, not where: the tests let it go on",
    "option/solver=PGS": "gives the answer that the others give, see docs/decisions/solver.md; by tests of the solver",
    "plugin/*": "first-party plugins, by test_plugins",
}


def elements() -> Iterator[ElementType]:
    """The element types of the language, each once."""
    seen = set()

    def below(kind: ElementType, inside: tuple) -> Iterator[ElementType]:
        if kind.path not in seen:
            seen.add(kind.path)
            yield kind
            for child in kind.children.values():
                if child.tag not in (*inside, *SECTIONS):
                    yield from below(child, (*inside, child.tag))

    yield from below(SCHEMA, ())


def family(kind: ElementType, attribute: str) -> str:
    """The name under which an attribute is listed: the family's where elements share it."""
    section = kind.path.split("/")[1] if kind.path.count("/") == 2 else ""
    siblings = SCHEMA.children[section].children.values() if section in FAMILIES else ()
    if attribute not in OWN and sum(attribute in s.attributes for s in siblings) > 1:
        return section
    return kind.tag


def asked() -> dict[str, str]:
    """Every attribute, and every word of one: its name in the list -> how an element or word is written."""
    out = {}
    for kind in elements():
        for a in kind.attributes.values():
            name = f"{family(kind, a.name)}/{a.name}"
            out[name] = kind.tag
            out.update({f"{name}={word}": kind.tag for word in (ENUMS[a.words] if a.words else ())})
    return out


def written(text: str) -> set[str]:
    """What a text in the language shows; an attribute left out shows its default word."""
    out, kinds = set(), {}
    for kind in elements():
        kinds.setdefault(kind.tag, []).append(kind)
    for tag, attributes in ELEMENT.findall(text):
        values = dict(WRITTEN.findall(attributes))
        for kind in kinds.get(tag, ()):
            if not set(values) <= set(kind.attributes):
                continue
            for a in kind.attributes.values():
                name = f"{family(kind, a.name)}/{a.name}"
                if a.name in values:
                    out.add(name)
                    out.update(f"{name}={word}" for word in values[a.name].split())
                elif a.words and a.default is not None:
                    out.add(f"{name}={a.default}")
    return out


def shown() -> set[str]:
    """What the cases of the sweep and the models of the other tests of the engine show."""
    out = written(BASE)
    for text in sweep_models.MODELS.values():
        out |= written(text)
    for file in sorted(file for place in PLACES for file in place.rglob("*.py")):
        if file.name not in ("sweep_list.py", "sweep_models.py"):
            out |= written(file.read_text())
    for path, names in [*NUMBERS.items(), *WORDS.items()]:
        for tag in tags_of(path):
            for attribute, values in names.items():
                many = values if isinstance(values, list) else [values]
                out |= written("".join(f'<{tag} {attribute}="{v}"/>' for v in many))
    return out


def tags_of(path: str) -> set[str]:
    """The tag of the element of the base model that a case changes."""
    return {e.tag for e in lxml.etree.fromstring(BASE).findall(f".//{path}")}


def why_not(name: str) -> str | None:
    """The reason for which a step cannot tell an attribute or word."""
    for patterns, reason in FREE.items():
        if any(fnmatch.fnmatchcase(name, p) for p in patterns.split("|")):
            return reason
    return None
