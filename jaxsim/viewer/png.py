"""PNG encoder on the standard library, for rendered images and the textures of HTML replays."""

import struct
import zlib

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
RGB = 2  # the colour type
UP = 2  # the filter: each row less the one above it


def png_bytes(pixels: np.ndarray) -> bytes:
    """Encode `pixels` (height, width, 3), uint8, as the contents of a PNG file."""
    height, width, channels = pixels.shape
    if channels != 3 or pixels.dtype != np.uint8:
        raise ValueError(f"pixels are (height, width, 3) uint8, not {pixels.shape} {pixels.dtype}")
    rows = pixels.reshape(height, -1)
    rows = np.diff(rows, axis=0, prepend=np.zeros_like(rows[:1]))
    rows = np.concatenate([np.full((height, 1), UP, np.uint8), rows], 1)
    header = struct.pack(">IIBBBBB", width, height, 8, RGB, 0, 0, 0)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows.tobytes())) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def reduced(pixels: np.ndarray, most: int) -> np.ndarray:
    """Scale an image (height, width, 3) down to at most `most` pixels a side, by averaging square blocks.

    Rows and columns that do not fill a block are cut off.
    """
    n = -(-max(pixels.shape[:2]) // most)
    if n == 1:
        return pixels
    height, width = (max(size // n, 1) for size in pixels.shape[:2])
    blocks = pixels[: height * n, : width * n]
    blocks = blocks.reshape(height, len(blocks) // height, width, blocks.shape[1] // width, 3)
    return blocks.mean((1, 3)).round().astype(np.uint8)
