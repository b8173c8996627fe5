"""The language table against MuJoCo: the tree of elements and attributes, and what each attribute takes."""

import re

import mujoco
import pytest

from jaxsim.core.errors import ModelError, ModelWarning
from jaxsim.mjcf import read
from jaxsim.mjcf.schema.element_type import SCHEMA, all_types
from jaxsim.mjcf.schema.values import ENUMS
from tests.mjcf.helpers import REPLACES, WITH, document, minimal, sample

# MuJoCo does not check what stands in frames and replicates, and cannot read models from nowhere
UNCHECKED = ("mujoco/body/frame", "mujoco/body/replicate")
NO_FILE = ("mujoco/asset/model", "mujoco/body/attach")
IGNORED = ("mujoco/body/composite/jointlimited",)  # looked for in the wrong element by MuJoCo
CAMERA = ("rangefinder", "camera")
SAMPLES = {
    ("numeric", "size"): "3",
    ("composite", "vertex"): "0 0 0 1 0 0 2 0 0",
    ("flexcomp", "radius"): ".01",
    ("mesh", "params"): "1",
    ("composite", "count"): "3 1 1",
    ("flexcomp", "count"): "3 3 1",
    ("contact", "margin"): "0",
    ("pin", "range"): "1 1",
    ("pin", "gridrange"): "0 0 1 1",
    ("pin", "grid"): "1 1",
    ("mesh", "builtin"): "sphere",
    ("default", "class"): "fresh",
    ("geom", "type"): "capsule",
}
PLUGIN = re.compile("plugin|instance|config")


def accepts(text: str) -> bool:
    """Our verdict on a text."""
    try:
        read(text)
    except ModelError:
        return False
    return True


def mujoco_accepts(text: str) -> bool:
    """MuJoCo's verdict on a text."""
    try:
        mujoco.MjSpec.from_string(text)
    except (ValueError, RuntimeError):
        return False
    return True


def uses(kind):
    """For each attribute an accepted use, and uses that are wrong."""
    for attribute in kind.attributes.values():
        attrs = minimal(kind)
        for other in (*REPLACES.get(attribute.name, ()), *(["site"] if (kind.tag, attribute.name) == CAMERA else [])):
            attrs.pop(other, None)
        attrs |= {k: v for k, v in WITH.get(attribute.name, {}).items() if k in kind.attributes and k not in attrs}
        good = SAMPLES.get((kind.tag, attribute.name), sample(attribute))
        bad = []
        if attribute.is_number:
            bad.append("x")
            if attribute.length is not None:
                bad.append(" ".join(["1"] * (attribute.length + 1)))
            if attribute.exact and attribute.length not in (None, 1):
                bad.append("1")
        elif attribute.kind in ("word", "b"):
            bad.append("wrong")
        elif attribute.kind == "bytes":
            bad.append("1X")
        yield attribute.name, attrs | {attribute.name: good}, [attrs | {attribute.name: text} for text in bad]


def test_the_table_has_mujoco_tree():
    rows, path = {}, []
    for line in mujoco.mj_printSchema(False, False).splitlines():
        match = re.match(r"( *)(\S+) \((.)\)\s*(.*)$", line)
        if match:
            del path[len(match[1]) // 3 :]
            path.append(match[2].replace("(world)body", "body"))
            key = "/".join(path)
            rows[key] = (match[3], set(match[4].split()))
        else:
            rows[key][1].update(line.split())
    ours = {kind.path: (kind.count, set(kind.attributes)) for kind in all_types()}
    extra = {"mujoco/worldbody", "mujoco/body/frame", "mujoco/body/replicate"}
    assert {path: row for path, row in ours.items() if path not in extra} == rows


@pytest.mark.parametrize(
    "words, prefix, enum",
    [
        ("joint", "mjJNT_", "mjtJoint"),
        ("geom", "mjGEOM_", "mjtGeom"),
        ("dyn", "mjDYN_", "mjtDyn"),
        ("gain", "mjGAIN_", "mjtGain"),
        ("bias", "mjBIAS_", "mjtBias"),
        ("role", "mjTEXROLE_", "mjtTextureRole"),
        ("integrator", "mjINT_", "mjtIntegrator"),
        ("cone", "mjCONE_", "mjtCone"),
        ("solver", "mjSOL_", "mjtSolver"),
        ("jacobian", "mjJAC_", "mjtJacobian"),
        ("texture", "mjTEXTURE_", "mjtTexture"),
        ("track", "mjCAMLIGHT_", "mjtCamLight"),
        ("stage", "mjSTAGE_", "mjtStage"),
        ("datatype", "mjDATATYPE_", "mjtDataType"),
        ("light", "mjLIGHT_", "mjtLightType"),
        ("condata", "mjCONDATA_", "mjtConDataField"),
        ("raydata", "mjRAYDATA_", "mjtRayDataField"),
        ("meshinertia", "mjMESH_INERTIA_", "mjtMeshInertia"),
        ("object", "mjOBJ_", "mjtObj"),
        ("sleep", "mjSLEEP_", "mjtSleepPolicy"),
        ("lrmode", "mjLRMODE_", "mjtLRMode"),
    ],
)
def test_words_have_mujoco_numbers(words, prefix, enum):
    members = {name.lower(): int(value) for name, value in getattr(mujoco, enum).__members__.items()}
    for word, number in ENUMS[words].items():
        assert members[(prefix + word).lower()] == number


@pytest.mark.parametrize("kind", all_types(), ids=lambda kind: kind.path)
def test_each_attribute_is_taken_and_refused_as_by_mujoco(kind):
    for name, good, bads in uses(kind):
        text = document(kind, good)
        if kind.path not in NO_FILE and not PLUGIN.search(kind.path):
            assert mujoco_accepts(text), f"MuJoCo refuses the sample of {kind.path}.{name}: {good}"
        if not PLUGIN.search(kind.path) and kind.path not in NO_FILE:
            assert accepts(text), f"{kind.path}.{name}: {good}"
        for bad in bads:
            text = document(kind, bad)
            if name in ("objtype", "reftype") and kind.path.startswith("mujoco/sensor"):
                continue  # an unknown word stands for no object in some sensors: see the compiler's generated tests
            assert not accepts(text), f"{kind.path}.{name}: {bad}"
            if kind.path not in NO_FILE and name not in ("objtype", "reftype", "role"):
                assert kind.path + name in IGNORED or not mujoco_accepts(text), f"{kind.path}.{name}: {bad}"


@pytest.mark.parametrize("kind", all_types(), ids=lambda kind: kind.path)
def test_a_misspelt_attribute_is_refused(kind):
    text = document(kind, minimal(kind) | {"zzz": "1"})
    if kind.path in UNCHECKED and kind.tag in ("frame", "replicate"):  # MuJoCo does not look; we warn
        with pytest.warns(ModelWarning, match="zzz"):
            assert accepts(text)
        return
    assert not accepts(text)
    if kind.path not in UNCHECKED:
        assert not mujoco_accepts(text)


@pytest.mark.parametrize("kind", all_types(), ids=lambda kind: kind.path)
def test_a_required_attribute_that_is_missing_is_refused(kind):
    for attribute in kind.attributes.values():
        if attribute.required:
            attrs = {k: v for k, v in minimal(kind).items() if k != attribute.name}
            text = document(kind, attrs)
            assert not accepts(text), f"{kind.path}.{attribute.name}"
            assert not mujoco_accepts(text), f"{kind.path}.{attribute.name}"


def test_defaults_have_the_length_of_their_attribute():
    for kind in all_types():
        for attribute in kind.attributes.values():
            if attribute.is_array and attribute.default is not None:
                assert attribute.default.shape == (attribute.length,)


def test_the_root_type_is_mujoco():
    assert SCHEMA.tag == "mujoco"
