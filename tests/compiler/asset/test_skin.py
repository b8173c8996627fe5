"""Skins against MuJoCo, and data that is not right."""

import re
import struct

import mujoco
import numpy as np
import pytest

from jaxsim.compiler.asset.skin import SkinInput, compile_skin
from jaxsim.core.errors import ModelError

RNG = np.random.default_rng(0)
BODIES = '<worldbody><body name="b0"/><body name="b1" pos="1 0 0"/></worldbody>'


def inline(**change):
    skin = {
        "vertex": RNG.normal(size=15),
        "texcoord": RNG.random(10),
        "face": [0, 1, 2, 2, 3, 4],
        "body": ["b0", "b1"],
        "bindpos": RNG.normal(size=(2, 3)),
        "bindquat": RNG.normal(size=(2, 4)),
        "vertid": [[0, 1, 2, 3], [2, 3, 4]],
        "vertweight": [RNG.random(4), RNG.random(3)],
    }
    return skin | change


def text(values):
    return " ".join(repr(x) for x in np.ravel(values).tolist())


def skn(skin):
    out = struct.pack("<4i", len(skin["vertex"]) // 3, len(skin["texcoord"]) // 2, len(skin["face"]) // 3, 2)
    out += np.asarray(skin["vertex"], "<f4").tobytes() + np.asarray(skin["texcoord"], "<f4").tobytes()
    out += np.asarray(skin["face"], "<i4").tobytes()
    for k in range(2):
        out += skin["body"][k].encode().ljust(40, b"\0")
        out += np.asarray([*skin["bindpos"][k], *skin["bindquat"][k]], "<f4").tobytes()
        out += struct.pack("<i", len(skin["vertid"][k])) + np.asarray(skin["vertid"][k], "<i4").tobytes()
        out += np.asarray(skin["vertweight"][k], "<f4").tobytes()
    return out


def compare(m, s):
    for name in ("vert", "texcoord", "face", "bonebindpos", "bonebindquat", "bonevertweight"):
        np.testing.assert_allclose(getattr(s, name), getattr(m, f"skin_{name}"), rtol=1e-6, atol=1e-7, err_msg=name)
    for name in ("bonevertadr", "bonevertnum", "bonevertid"):
        np.testing.assert_array_equal(getattr(s, name), getattr(m, f"skin_{name}"))
    names = [mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_BODY, b) for b in m.skin_bonebodyid]
    assert s.bonebody == names
    assert s.has_texcoord == (m.skin_texcoordadr[0] >= 0)


@pytest.mark.parametrize("texcoord", [True, False])
def test_inline_skin(texcoord):
    skin = inline() if texcoord else inline(texcoord=[])
    attributes = "".join(f' {k}="{text(skin[k])}"' for k in ("vertex", "texcoord", "face") if len(skin[k]))
    bones = "".join(
        f'<bone body="{skin["body"][k]}" '
        + " ".join(f'{a}="{text(skin[a][k])}"' for a in ("bindpos", "bindquat", "vertid", "vertweight"))
        + "/>"
        for k in range(2)
    )
    xml = f'<mujoco>{BODIES}<deformable><skin name="s"{attributes}>{bones}</skin></deformable></mujoco>'
    compare(mujoco.MjModel.from_xml_string(xml), compile_skin(SkinInput(**skin)))


def test_skn_file():
    data = skn(inline())
    xml = f'<mujoco>{BODIES}<deformable><skin name="s" file="a.skn"/></deformable></mujoco>'
    m = mujoco.MjModel.from_xml_string(xml, {"a.skn": data})
    compare(m, compile_skin(SkinInput(file=data, filename="a.skn")))


BAD = {
    "nothing": (
        {k: [] for k in ("vertex", "face", "body", "bindpos", "bindquat", "vertid", "vertweight")},
        "skin '' needs 'vertex', 'face' and bones with 'vertid' and 'vertweight'",
    ),
    "vertex count": ({"vertex": RNG.normal(size=14)}, "vertex data must be multiple of 3 in skin ''"),
    "texcoord count": ({"texcoord": [1, 2]}, "vertex and texcoord data incompatible size in skin ''"),
    "face count": ({"face": [0, 1]}, "face data must be multiple of 3 in skin ''"),
    "face index": ({"face": [0, 1, 5]}, "face has a vertex index that does not exist in skin ''"),
    "bindpos": ({"bindpos": [1, 2, 3]}, "unexpected bindpos size in skin ''"),
    "bindquat": ({"bindquat": [1, 0, 0, 0]}, "unexpected bindquat size in skin ''"),
    "vertid range": ({"vertid": [[0, 1, 2, 9], [2, 3, 4]]}, "vertid 9 does not exist: there are"),
    "weights": (
        {"vertweight": [[1, 1, 1], [1, 1, 1]]},
        "vertid and vertweight must have same non-zero size in skin ''",
    ),
    "no weight": ({"vertweight": [[1, 1, 1, 1], [1, 1, 0]]}, "vertex 4 must have positive total weight in skin ''"),
    "not finite": ({"vertex": [np.nan] * 15}, "data is not finite in skin ''"),
}


@pytest.mark.parametrize("what", BAD)
def test_inline_data_that_is_wrong_is_refused(what):
    given, words = BAD[what]
    with pytest.raises(ModelError, match=re.escape(words)):
        compile_skin(SkinInput(**inline(**given)))


def test_every_truncation_of_a_file_is_refused():
    data = skn(inline())
    for length in range(0, len(data), 3):
        with pytest.raises(ModelError, match=r"SKN file 'a\.skn'"):
            compile_skin(SkinInput(file=data[:length], filename="a.skn"))


@pytest.mark.parametrize(
    "header, words",
    [
        ((-1, 0, 0, 0), "negative size in header of SKN file 'a.skn'"),
        ((2**31 - 1, 2**31 - 1, 2**31 - 1, 1), "SKN file 'a.skn' ends before its last vertex or face"),
        ((0, 0, 0, 2**31 - 1), "SKN file 'a.skn' is too short for 2147483647 bones"),
    ],
)
def test_counts_that_lie_are_refused(header, words):
    with pytest.raises(ModelError, match=re.escape(words)):
        compile_skin(SkinInput(file=struct.pack("<4i", *header) + bytes(200), filename="a.skn"))


def test_file_and_data_together_are_refused():
    with pytest.raises(ModelError, match="both"):
        compile_skin(SkinInput(file=skn(inline()), filename="a.skn", vertex=[1, 2, 3]))


def test_other_file_types_are_refused():
    with pytest.raises(ModelError, match="unknown skin file"):
        compile_skin(SkinInput(file=b"abc", filename="a.obj"))
