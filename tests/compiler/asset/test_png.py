"""PNG images to bytes."""

import struct
import zlib

import numpy as np
import pytest

from jaxsim.compiler.asset.png import MAX_PIXELS, read_png
from jaxsim.core.errors import ModelError
from tests.compiler.asset.test_texture import image, png

PIXELS = image(5, 4).astype(np.uint8)


@pytest.mark.parametrize("srgb", [False, True])
def test_pixels_and_colour_space_come_back(srgb):
    pixels, found = read_png(png(PIXELS, srgb), 3)
    np.testing.assert_array_equal(pixels, PIXELS)
    assert found == srgb


def test_one_channel_is_the_red_one():
    np.testing.assert_array_equal(read_png(png(PIXELS), 1)[0], PIXELS[:, :, :1])


def test_alpha_is_dropped_without_blending():
    pixels = image(5, 4, 4)
    np.testing.assert_array_equal(read_png(png(pixels), 3)[0], pixels[:, :, :3])
    np.testing.assert_array_equal(read_png(png(pixels), 4)[0], pixels)


def grey_png(bits, rows, chunks=()):
    """A PNG of packed grey rows, made by hand since the usual writer knows no 2 and 4 bits."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">2I5B", 8 * len(rows[0]) // bits, len(rows), bits, 0, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows)))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunk(*c) for c in chunks) + body + chunk(b"IEND", b"")


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_grey_is_spread_over_a_byte_and_one_shade_is_transparent(bits):
    data = grey_png(bits, [bytes([0b00011011] * 4)] * 2, [(b"tRNS", struct.pack(">H", 1))])
    pixels = read_png(data, 4)[0]
    values = [(0b00011011 >> (8 - bits * (k + 1))) & (2**bits - 1) for k in range(8 // bits)]
    np.testing.assert_array_equal(pixels[0, : len(values), 0], [v * 255 // (2**bits - 1) for v in values])
    np.testing.assert_array_equal(pixels[0, : len(values), 3], [0 if v == 1 else 255 for v in values])


def with_header(**change):
    data = bytearray(png(PIXELS))
    data[16:24] = struct.pack(">2I", change["width"], change["height"])
    return bytes(data)


@pytest.mark.parametrize(
    ("width", "height", "what"),
    [(8000, 8000, "too short"), (2**31 - 1, 2**31 - 1, "at most"), (0, 4, "bad header"), (MAX_PIXELS, 1, "too short")],
)
def test_a_header_that_lies_is_refused_before_anything_is_allocated(width, height, what):
    with pytest.raises(ModelError, match=what):
        read_png(with_header(width=width, height=height), 3)


@pytest.mark.parametrize("length", range(0, 90, 7))
def test_truncated_files_are_refused(length):
    with pytest.raises(ModelError, match="PNG file"):
        read_png(png(PIXELS)[:length], 3)


def test_other_numbers_of_channels_are_refused():
    with pytest.raises(ModelError, match="nchannel"):
        read_png(png(PIXELS), 2)
