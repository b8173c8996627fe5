"""Textures against MuJoCo, and files that are not right."""

import io
import re
import struct

import mujoco
import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from jaxsim.compiler import compile_spec
from jaxsim.compiler.asset.texture import TextureInput, compile_texture, random_dots
from jaxsim.core.errors import ModelError, UnsupportedError
from jaxsim.mjcf import read
from validation.compare import assert_models_equal

RNG = np.random.default_rng(0)
WORDS = {"type", "builtin", "mark", "colorspace", "gridlayout", "content_type", "name"}
CUBE_FILES = ("fileright", "fileleft", "fileup", "filedown", "filefront", "fileback")


def png(pixels, srgb=False, mode=None):
    info = PngImagePlugin.PngInfo()
    if srgb:
        info.add(b"sRGB", b"\0")
    out = io.BytesIO()
    Image.fromarray(np.asarray(pixels, dtype=np.uint8), mode).save(out, "PNG", pnginfo=info)
    return out.getvalue()


def image(height, width, channels=3):
    return RNG.integers(0, 256, size=(height, width, channels))


def _attributes(kwargs, files):
    words = {}
    for key, value in kwargs.items():
        if key in WORDS:
            words[key] = value
        elif isinstance(value, bool):
            words[key] = str(value).lower()
        else:
            words[key] = " ".join(repr(float(x)) if key != "gridsize" else str(x) for x in np.ravel(value))
    for key in ("width", "height", "nchannel"):
        if key in kwargs:
            words[key] = str(kwargs[key])
    words |= files
    return " ".join(f'{k}="{v}"' for k, v in words.items())


def mujoco_model(kwargs, files, assets):
    xml = f'<mujoco><asset><texture name="t" {_attributes(kwargs, files)}/></asset></mujoco>'
    return mujoco.MjModel.from_xml_string(xml, assets)


def check(kwargs, file=None, filename="", cubefiles=None):
    files, assets, mine = {}, {}, dict(kwargs)
    if file is not None:
        files, assets = {"file": filename}, {filename: file}
        mine |= {"file": file, "filename": filename}
    if cubefiles is not None:
        mine["cubefiles"] = [None if f is None else (f, f"{k}.png") for k, f in enumerate(cubefiles)]
        files = {CUBE_FILES[k]: f"{k}.png" for k, f in enumerate(cubefiles) if f is not None}
        assets = {f"{k}.png": f for k, f in enumerate(cubefiles) if f is not None}
    m = mujoco_model(kwargs, files, assets)
    t = compile_texture(TextureInput(**mine))
    got = (t.type, t.colorspace, t.height, t.width, t.nchannel)
    assert got == (m.tex_type[0], m.tex_colorspace[0], m.tex_height[0], m.tex_width[0], m.tex_nchannel[0])
    np.testing.assert_array_equal(t.data, m.tex_data)


COLOURS = {"rgb1": (0.1, 0.55, 0.9), "rgb2": (0.7, 0.2, 0.33), "markrgb": (1, 0.5, 0.25)}


@pytest.mark.parametrize("builtin", ["gradient", "checker", "flat"])
@pytest.mark.parametrize("mark", ["none", "edge", "cross", "random"])
@pytest.mark.parametrize("kind", ["2d", "cube", "skybox"])
def test_builtin_patterns(builtin, mark, kind):
    size = {"width": 21, "height": 14} if kind == "2d" else {"width": 21}
    check({"type": kind, "builtin": builtin, "mark": mark, "random": 0.1, **size, **COLOURS})


def test_builtin_with_four_channels_fills_the_first_three_quarters():
    check({"type": "2d", "builtin": "flat", "width": 5, "height": 4, "nchannel": 4, **COLOURS})


def test_random_dots_repeat_and_have_the_probability():
    dots = random_dots(100_000, 0.03)
    np.testing.assert_array_equal(dots[:500], random_dots(500, 0.03))
    assert abs(dots.mean() - 0.03) < 0.003


@pytest.mark.parametrize("nchannel", [1, 3, 4])
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P", "1"])
def test_png_colour_types(nchannel, mode):
    picture = Image.fromarray(image(6, 5, 4).astype(np.uint8), "RGBA").convert(mode)
    out = io.BytesIO()
    picture.save(out, "PNG")
    check({"type": "2d", "nchannel": nchannel}, out.getvalue(), "a.png")


@pytest.mark.parametrize("nchannel", [1, 3, 4])
def test_png_of_sixteen_bits_keeps_the_high_byte(nchannel):
    out = io.BytesIO()
    Image.fromarray(RNG.integers(0, 65536, size=(4, 7)).astype(np.uint16)).save(out, "PNG")
    check({"type": "2d", "nchannel": nchannel}, out.getvalue(), "a.png")


@pytest.mark.parametrize("srgb", [False, True])
@pytest.mark.parametrize("colorspace", ["auto", "linear", "sRGB"])
def test_colorspace(srgb, colorspace):
    check({"type": "2d", "colorspace": colorspace}, png(image(3, 4), srgb), "a.png")


@pytest.mark.parametrize("hflip", [False, True])
@pytest.mark.parametrize("vflip", [False, True])
def test_flips(hflip, vflip):
    check({"type": "2d", "hflip": hflip, "vflip": vflip}, png(image(5, 6)), "a.png")


def test_binary_file():
    data = struct.pack("<2i", 4, 3) + bytes(range(36))
    check({"type": "2d"}, data, "a.tex")
    check({"type": "2d", "content_type": "image/vnd.mujoco.texture"}, data, "a.png")


def test_cube_of_one_repeated_square():
    check({"type": "cube"}, png(image(4, 4)), "a.png")


@pytest.mark.parametrize(
    ("gridsize", "layout", "shape"),
    [
        ((3, 4), ".U..LFRB.D..", (12, 16)),
        ((1, 6), "RLUDFB", (3, 18)),
        ((2, 2), "UD.F", (8, 8)),
        ((6, 1), "RRLUDF", (18, 3)),
    ],
)
def test_cube_from_a_grid(gridsize, layout, shape):
    kwargs = {"type": "skybox", "gridsize": gridsize, "gridlayout": layout, "rgb1": (0.2, 0.4, 0.6)}
    check(kwargs, png(image(*shape)), "a.png")


def test_cube_from_separate_files():
    files = [png(image(4, 4)), None, png(image(4, 4), True), None, png(image(4, 4)), None]
    check({"type": "cube", "rgb1": (0.3, 0.6, 0.9), "vflip": True}, cubefiles=files)


BAD = {
    "no source": ({"type": "2d"}, "cannot load 2D texture from separate files, texture ''"),
    "cube without files": ({"type": "cube"}, "no file, no builtin and no cube files defined in texture ''"),
    "no width": ({"type": "cube", "builtin": "flat"}, "invalid width of builtin texture ''"),
    "no height": ({"type": "2d", "builtin": "flat", "width": 3}, "invalid height of builtin texture ''"),
    "one channel builtin": (
        {"type": "2d", "builtin": "flat", "width": 3, "height": 3, "nchannel": 1},
        "builtin texture '' needs 3 channels or more, not 1",
    ),
    "huge builtin": (
        {"type": "cube", "builtin": "flat", "width": 2**28},
        "builtin texture '' is too large: 268435456 x 1610612736 pixels",
    ),
    "not a png": (
        {"type": "2d", "file": b"hello", "filename": "a.png"},
        "error decoding PNG file 'a.png': not a PNG file",
    ),
    "empty png": ({"type": "2d", "file": b"", "filename": "a.png"}, "empty PNG file 'a.png'"),
    "truncated png": (
        {"type": "2d", "file": png(image(30, 30))[:-500], "filename": "a.png"},
        "error decoding PNG file 'a.png': image file is truncated",
    ),
    "two channels": (
        {"type": "2d", "file": png(image(3, 3)), "filename": "a.png", "nchannel": 2},
        "'nchannel' must be 1, 3 or 4, not 2",
    ),
    "binary too short": (
        {"type": "2d", "file": struct.pack("<2i", 3, 3), "filename": "a.bin"},
        "is not a PNG file, nor in MuJoCo's binary format",
    ),
    "binary without header": (
        {"type": "2d", "file": b"abc", "filename": "a.bin"},
        "nor in MuJoCo's binary format: width and height are not positive",
    ),
    "binary counts": (
        {"type": "2d", "file": struct.pack("<2i", 2**31 - 1, 2**31 - 1), "filename": "a.bin"},
        "is not a PNG file, nor in MuJoCo's binary format",
    ),
    "photo": (
        {"type": "2d", "file": b"\xff\xd8\xff\xe0" * 4, "filename": "a.JPG"},
        "pictures are read from PNG files alone, as in MuJoCo: convert 'a.JPG' to PNG",
    ),
    "stl as texture": (
        {"type": "2d", "file": b"abc", "filename": "a.stl"},
        "unsupported content type: 'model/stl' of texture file 'a.stl'",
    ),
    "grid does not divide": (
        {"type": "cube", "file": png(image(4, 5)), "filename": "a.png", "gridsize": (1, 3)},
        "cannot be cut into",
    ),
    "not square": (
        {"type": "cube", "file": png(image(4, 5)), "filename": "a.png"},
        "cannot be cut into",
    ),
    "grid symbol": (
        {
            "type": "cube",
            "file": png(image(4, 8)),
            "filename": "a.png",
            "gridsize": (1, 2),
            "gridlayout": "RX",
        },
        "not 'X', in texture ''",
    ),
    "cube file not square": (
        {"type": "cube", "cubefiles": [(png(image(2, 3)), "a.png"), *[None] * 5]},
        "non-square PNG file 'a.png' in cube or skybox ''",
    ),
    "cube files differ": (
        {
            "type": "cube",
            "cubefiles": [(png(image(2, 2)), "a.png"), (png(image(3, 3)), "b.png"), *[None] * 4],
        },
        "PNG file 'b.png' has another size than the first in texture ''",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_is_refused(what):
    given, words = BAD[what]
    with pytest.raises(ModelError, match=re.escape(words)):
        compile_texture(TextureInput(**given))


def test_ktx_is_kept_as_it_is():
    data = bytes(range(200))
    text = '<mujoco><asset><texture name="t" type="2d" file="a.ktx"/></asset></mujoco>'
    assert_models_equal(
        compile_spec(read(text, {"a.ktx": data})), mujoco.MjModel.from_xml_string(text, {"a.ktx": data})
    )


def test_ktx_cannot_be_flipped():
    with pytest.raises(ModelError, match="KTX"):
        compile_texture(TextureInput(type="2d", file=b"ktx", filename="a.ktx", hflip=True))


def test_cube_files_with_other_than_three_channels_are_refused():
    with pytest.raises(UnsupportedError, match="channels"):
        compile_texture(TextureInput(type="cube", file=png(image(4, 4)), filename="a.png", nchannel=4))
