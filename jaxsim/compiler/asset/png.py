"""Decoding of PNG images to arrays of bytes, with the colour conversions of MuJoCo's decoder."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np

from jaxsim.core.errors import ModelError
from jaxsim.core.extras import require

MAX_PIXELS = 2**26
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_MAX_EXPANSION = 1040  # deflate expands one byte to at most 1032


def read_png(data: bytes, nchannel: int, filename: str = "") -> tuple[np.ndarray, bool]:
    """Decode a PNG image.

    Args:
        data: bytes of the file.
        nchannel: 1 (the red channel), 3 (alpha dropped) or 4.

    Returns:
        pixels: (height, width, nchannel) uint8.
        srgb: whether the file declares its colours as sRGB.

    Raises:
        ModelError: for a file that cannot be decoded, or one larger than `MAX_PIXELS`.
        ImportError: without Pillow, naming the extra to install.
    """
    if nchannel not in (1, 3, 4):
        raise ModelError(f"'nchannel' must be 1, 3 or 4, not {nchannel}")
    if not data:
        raise ModelError(f"empty PNG file '{filename}'")
    bits = _check_header(data, filename)
    images = require("PIL.Image", f"reading the PNG file '{filename}' needs Pillow", "images")
    try:
        with images.open(io.BytesIO(data), formats=["PNG"]) as image:
            image.load()
            key = image.info.get("transparency")
            if image.mode == "L" and isinstance(key, int) and bits in (2, 4):
                # the transparent grey is given in the file's own depth
                image.info["transparency"] = key * 255 // (2**bits - 1)
            pixels = _to_channels(image, nchannel)
            return pixels, "srgb" in image.info
    except (OSError, ValueError, SyntaxError, IndexError, struct.error, images.DecompressionBombError) as error:
        raise ModelError(f"error decoding PNG file '{filename}': {error}") from error


def _check_header(data: bytes, filename: str) -> int:
    """Return bits per sample; raise ModelError if the image is too large or inconsistent with the file's length."""
    if data[:8] != _SIGNATURE or len(data) < 33 or data[12:16] != b"IHDR":
        raise ModelError(f"error decoding PNG file '{filename}': not a PNG file")
    width, height, bits, colour = struct.unpack(">IIBB", data[16:26])
    if width == 0 or height == 0 or colour not in _CHANNELS:
        raise ModelError(f"error decoding PNG file '{filename}': bad header")
    if width * height > MAX_PIXELS:
        raise ModelError(f"PNG file '{filename}' has {width} x {height} pixels; at most {MAX_PIXELS} are read")
    if (width * _CHANNELS[colour] * bits + 7) // 8 * height > _MAX_EXPANSION * len(data):
        raise ModelError(f"error decoding PNG file '{filename}': the file is too short for {width} x {height} pixels")
    return bits


def _to_channels(image: Any, nchannel: int) -> np.ndarray:
    """Convert pixels to (height, width, nchannel) uint8."""
    if image.mode.startswith("I"):
        # 16-bit grey: the high byte
        grey = (np.asarray(image).astype(np.int64) >> 8).astype(np.uint8)
        full = np.full_like(grey, 255)
        return np.stack([grey, grey, grey, full], -1)[:, :, :nchannel]
    if nchannel == 4:
        return np.asarray(image.convert("RGBA"))
    # going through RGBA drops alpha without blending, for palettes too
    rgb = np.asarray(image.convert("RGBA"))[:, :, :3]
    return rgb if nchannel == 3 else rgb[:, :, :1]
