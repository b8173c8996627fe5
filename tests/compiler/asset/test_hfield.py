"""Height fields against MuJoCo, and files that are not right."""

import io
import re
import struct

import mujoco
import numpy as np
import pytest
from PIL import Image

from jaxsim.compiler.asset.hfield import HFieldInput, compile_hfield
from jaxsim.core.errors import ModelError

RNG = np.random.default_rng(0)
SIZE = (1.0, 2.0, 0.5, 0.1)


def check(attributes, assets, **kwargs):
    size = " ".join(map(str, SIZE))
    m = mujoco.MjModel.from_xml_string(
        f'<mujoco><asset><hfield name="h" size="{size}" {attributes}/></asset></mujoco>', assets
    )
    h = compile_hfield(HFieldInput(name="h", size=SIZE, **kwargs))
    assert (h.nrow, h.ncol) == (m.hfield_nrow[0], m.hfield_ncol[0])
    np.testing.assert_array_equal(h.size, m.hfield_size[0])
    assert h.data.dtype == np.float32
    np.testing.assert_array_equal(h.data, m.hfield_data)


def test_elevations_are_normalised_and_turned_upside_down():
    data = RNG.normal(size=(4, 5))
    text = " ".join(repr(float(x)) for x in data.ravel())
    check(f'nrow="4" ncol="5" elevation="{text}"', {}, nrow=4, ncol=5, elevation=data)


@pytest.mark.parametrize("value", [0.0, 3.5])
def test_constant_elevations_become_zero(value):
    check(f'nrow="2" ncol="2" elevation="{" ".join([str(value)] * 4)}"', {}, nrow=2, ncol=2, elevation=[value] * 4)


def test_no_elevations_make_a_flat_field():
    check('nrow="3" ncol="4"', {}, nrow=3, ncol=4)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_png(mode):
    out = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, size=(6, 7, 4)).astype(np.uint8), "RGBA").convert(mode).save(out, "PNG")
    data = out.getvalue()
    check('file="a.png"', {"a.png": data}, file=data, filename="a.png")


@pytest.mark.parametrize("filename", ["a.bin", "a"])
def test_binary_file(filename):
    data = struct.pack("<2i", 3, 4) + RNG.normal(size=12).astype("<f4").tobytes()
    check(f'file="{filename}"', {filename: data}, file=data, filename=filename)


BAD = {
    "nothing": ({}, "hfield '' has no elevations: give a file, or nrow and ncol"),
    "wrong count": (
        {"nrow": 2, "ncol": 2, "elevation": [1, 2, 3]},
        "hfield '': 'elevation' has 3 numbers; nrow x ncol is 4",
    ),
    "not finite": ({"nrow": 1, "ncol": 2, "elevation": [1, np.nan]}, "hfield '' has elevations that are not finite"),
    "huge": ({"nrow": 2**30, "ncol": 2**30}, "hfield '' of 1073741824 x 1073741824 elevations is too large"),
    "size": ({"nrow": 2, "ncol": 2, "size": (1, 1, 0, 1)}, "hfield '': 'size' needs four positive numbers"),
    "size not finite": (
        {"nrow": 2, "ncol": 2, "size": (1, 1, np.nan, 1)},
        "hfield '': 'size' needs four positive numbers",
    ),
    "empty file": ({"file": b"", "filename": "a.bin"}, "height field file 'a.bin' is empty"),
    "no header": (
        {"file": b"abc", "filename": "a.bin"},
        "height field file 'a.bin' is too short: it begins with its numbers of rows and columns",
    ),
    "negative count": (
        {"file": struct.pack("<2i", -1, 3), "filename": "a.bin"},
        "height field file 'a.bin' begins with -1 rows",
    ),
    "file too short": (
        {"file": struct.pack("<2i", 2**20, 2**20) + b"1234", "filename": "a.bin"},
        "height field file 'a.bin' has ",
    ),
    "other type": ({"file": b"abc", "filename": "a.obj"}, "unsupported content type: 'model/obj' in hfield ''"),
    "not a png": ({"file": b"abc", "filename": "a.png"}, "error decoding PNG file 'a.png': not a PNG file"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_is_refused(what):
    given, words = BAD[what]
    with pytest.raises(ModelError, match=re.escape(words)):
        compile_hfield(HFieldInput(**{"size": SIZE, **given}))
