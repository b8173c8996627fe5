"""Textures: from images, binary files or builtin patterns to mjModel's `tex_*` fields.

The entry is `compile_texture(TextureInput(...)) -> TextureArrays`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from jaxsim.compiler.asset.png import MAX_PIXELS, read_png
from jaxsim.core.errors import ModelError, UnsupportedError
from jaxsim.mjcf.files import content_type

FACES = "RLUDFB"
TYPES = {"2d": 0, "cube": 1, "skybox": 2}
COLORSPACES = {"auto": 0, "linear": 1, "sRGB": 2}


@dataclass
class TextureInput:
    """Attributes of a texture element, and the bytes of its files.

    Attributes:
        name: for messages.
        type: "2d", "cube" or "skybox". colorspace: "auto", "linear" or "sRGB".
        builtin: "none", "gradient", "checker" or "flat", with rgb1 and rgb2; width, height (height for "2d" only).
        mark: "none", "edge", "cross" or "random", drawn with markrgb; random: probability of a dot.
        file, filename, content_type: bytes of the one file (None: no file), its name, its type if given.
        cubefiles: (bytes, filename) or None for right, left, up, down, front, back.
        gridsize: (rows, columns) of the faces in the one file. gridlayout: a letter of RLUDFB or "." for each cell.
    """

    name: str = ""
    type: str = "cube"
    colorspace: str = "auto"
    builtin: str = "none"
    rgb1: np.ndarray | Sequence = (0.8, 0.8, 0.8)
    rgb2: np.ndarray | Sequence = (0.5, 0.5, 0.5)
    mark: str = "none"
    markrgb: np.ndarray | Sequence = (0.0, 0.0, 0.0)
    random: float = 0.01
    width: int = 0
    height: int = 0
    nchannel: int = 3
    hflip: bool = False
    vflip: bool = False
    file: bytes | None = None
    filename: str = ""
    content_type: str = ""
    cubefiles: list = field(default_factory=lambda: [None] * 6)
    gridsize: tuple[int, int] = (1, 1)
    gridlayout: str = "............"


@dataclass
class TextureArrays:
    """type, colorspace: mjtTexture, mjtColorSpace; height, width, nchannel; data (height * width * nchannel,) uint8."""

    type: int
    colorspace: int
    height: int
    width: int
    nchannel: int
    data: np.ndarray


def compile_texture(texture: TextureInput) -> TextureArrays:
    """Compile the fields of a texture.

    Raises:
        ModelError: for invalid sizes, symbols or files.
        UnsupportedError: for cube textures from files with other than 3 channels.
    """
    if texture.type not in TYPES or texture.colorspace not in COLORSPACES:
        raise ModelError(f"unknown type '{texture.type}' or colorspace '{texture.colorspace}' in texture")
    colorspace = COLORSPACES[texture.colorspace]
    if texture.builtin != "none":
        data = _builtin(texture)
    else:
        data, srgb = _from_files(texture)
        if colorspace == 0:
            colorspace = COLORSPACES["sRGB" if srgb else "linear"]
    height, width = data.shape[:2]
    return TextureArrays(TYPES[texture.type], colorspace, height, width, data.shape[2], data.reshape(-1))


def _byte(colour) -> np.ndarray:
    """Convert colours in [0, 1] to bytes, with fractions cut off."""
    value = np.asarray(colour, dtype=np.float64) * 255
    if value.size and value.min() >= 0 and value.max() < 256:
        return value.astype(np.uint8)
    return (np.where(np.isfinite(value), value, 0).astype(np.int64) & 255).astype(np.uint8)


# builtin patterns


def _builtin(texture: TextureInput) -> np.ndarray:
    """Draw the pixels (height, width, nchannel) of a pattern; a cube is six squares below each other."""
    flat = texture.type == "2d"
    width = int(texture.width)
    height = int(texture.height) if flat else 6 * width
    for what, value in (("width", width), ("height", height)):
        if value < 1:
            raise ModelError(f"invalid {what} of builtin texture '{texture.name}'")
    if width * height > MAX_PIXELS:
        raise ModelError(f"builtin texture '{texture.name}' is too large: {width} x {height} pixels")
    if texture.nchannel < 3:
        raise ModelError(f"builtin texture '{texture.name}' needs 3 channels or more, not {texture.nchannel}")
    if texture.builtin not in ("gradient", "checker", "flat"):
        raise ModelError(f"unknown builtin texture '{texture.builtin}'")
    square = width if not flat else height
    faces = _flat_pattern(texture, height, width) if flat else _cube_pattern(texture, width)
    _mark_faces(faces.reshape(-1, square, width, 3), texture)
    pixels = faces.reshape(height, width, 3)
    if texture.mark == "random" and texture.random > 0:
        pixels[random_dots(height * width, texture.random).reshape(height, width)] = _byte(texture.markrgb)
    if texture.nchannel == 3:
        return pixels
    out = np.zeros(height * width * texture.nchannel, dtype=np.uint8)
    out[: pixels.size] = pixels.reshape(-1)
    return out.reshape(height, width, texture.nchannel)


def _flat_pattern(texture: TextureInput, height: int, width: int) -> np.ndarray:
    if texture.builtin == "gradient":
        x, y = _coordinates(height, width)
        return _blend(texture.rgb2, texture.rgb1, 2 * np.sqrt(x * x + y * y) - 1)
    if texture.builtin == "checker":
        return _checker(height, width, texture.rgb1, texture.rgb2)
    return np.broadcast_to(_byte(texture.rgb1), (height, width, 3)).copy()


def _cube_pattern(texture: TextureInput, width: int) -> np.ndarray:
    """Draw the faces (6, width, width, 3): right, left, up, down, front, back."""
    one, two = texture.rgb1, texture.rgb2
    if texture.builtin == "gradient":
        x, y = _coordinates(width, width)
        radius = np.sqrt(1 + x * x + y * y)
        side = _blend(one, two, np.arcsin(y / radius) / (0.5 * np.pi))
        elevation = 1 - np.arccos(1.0 / radius) / (0.5 * np.pi)
        return np.stack([side, side, _blend(one, two, elevation), _blend(one, two, -elevation), side, side])
    if texture.builtin == "checker":
        even, odd = _checker(width, width, one, two), _checker(width, width, two, one)
        return np.stack([even, even, even, even, odd, odd])
    faces = np.empty((6, width, width, 3), dtype=np.uint8)
    faces[:] = _byte(one)
    faces[3] = _byte(two)
    return faces


def _coordinates(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return x of the columns and y of the rows, from -1 to 1, y upward."""
    with np.errstate(invalid="ignore", divide="ignore"):
        x = 2 * np.arange(width) / np.float64(width - 1) - 1
        y = 1 - 2 * np.arange(height) / np.float64(height - 1)
    return x[None, :], y[:, None]


def _blend(colour1, colour2, position: np.ndarray) -> np.ndarray:
    """Blend two colours, by a sigmoid of the position in (-1, 1)."""
    alpha = 0.5 * (1 + position / np.sqrt(1 + position * position) / (1.0 / np.sqrt(2.0)))
    alpha = np.clip(alpha, 0, 1)
    rest = 1 - alpha
    out = np.empty((*alpha.shape, 3), dtype=np.uint8)
    for channel, (one, two) in enumerate(zip(colour1, colour2, strict=True)):
        out[..., channel] = _byte(alpha * np.float64(one) + rest * np.float64(two))
    return out


def _checker(height: int, width: int, colour1, colour2) -> np.ndarray:
    same = (np.arange(height) < height // 2)[:, None] == (np.arange(width) < width // 2)[None, :]
    return np.where(same[..., None], _byte(colour1), _byte(colour2))


def _mark_faces(faces: np.ndarray, texture: TextureInput) -> None:
    """Draw the edge or the cross on (n, height, width, 3) faces, in place."""
    colour = _byte(texture.markrgb)
    _, height, width, _ = faces.shape
    if texture.mark == "edge":
        faces[:, :, [0, width - 1]] = colour
        faces[:, [0, height - 1]] = colour
    elif texture.mark == "cross":
        faces[:, :, width // 2] = colour
        faces[:, height // 2] = colour
    elif texture.mark not in ("none", "random"):
        raise ModelError(f"unknown mark '{texture.mark}' in texture '{texture.name}'")


# 64-bit Mersenne Twister of Matsumoto and Nishimura (2000)
_MT_N, _MT_M = 312, 156
_MT_MATRIX = np.uint64(0xB5026F5AA96619E9)
_MT_HIGH, _MT_LOW = np.uint64(0xFFFFFFFF80000000), np.uint64(0x7FFFFFFF)


@lru_cache(maxsize=4)  # many models share one sky
def random_dots(n: int, probability: float, seed: int = 42) -> np.ndarray:
    """Return the mask (n,) of random dots.

    A dot is where a number of the 64-bit Mersenne Twister, in [0, 1), is below `probability`.
    """
    state = np.empty(_MT_N + -(-n // _MT_M) * _MT_M, dtype=np.uint64)
    state[:_MT_N] = _mt_seed(seed)
    high, low, one, matrix = (np.full(_MT_M, word, np.uint64) for word in (_MT_HIGH, _MT_LOW, 1, _MT_MATRIX))
    y, odd = np.empty((2, _MT_M), np.uint64)
    for at in range(0, len(state) - _MT_N, _MT_M):  # independent words are computed at once
        np.bitwise_and(state[at : at + _MT_M], high, y)
        np.bitwise_and(state[at + 1 : at + 1 + _MT_M], low, odd)
        np.bitwise_or(y, odd, y)
        np.bitwise_and(y, one, odd)
        np.multiply(odd, matrix, odd)
        np.right_shift(y, one, y)
        np.bitwise_xor(y, odd, y)
        np.bitwise_xor(y, state[at + _MT_M : at + _MT_N], state[at + _MT_N : at + _MT_N + _MT_M])
    x = state[_MT_N : _MT_N + n]
    x = x ^ ((x >> np.uint64(29)) & np.uint64(0x5555555555555555))
    x ^= (x << np.uint64(17)) & np.uint64(0x71D67FFFEDA60000)
    x ^= (x << np.uint64(37)) & np.uint64(0xFFF7EEE000000000)
    x ^= x >> np.uint64(43)
    return x.astype(np.float64) * 2.0**-64 < probability


def _mt_seed(seed: int) -> np.ndarray:
    state = [seed]
    for i in range(1, _MT_N):
        state.append((6364136223846793005 * (state[-1] ^ (state[-1] >> 62)) + i) & 0xFFFFFFFFFFFFFFFF)
    return np.array(state, dtype=np.uint64)


# files

_OTHER_PICTURES = (".jpg", ".jpeg", ".bmp", ".gif", ".tga", ".tif", ".tiff", ".webp", ".hdr", ".exr", ".dds")


def _from_files(texture: TextureInput) -> tuple[np.ndarray, bool]:
    """Read pixels (height, width, nchannel), and whether they are sRGB."""
    flat = texture.type == "2d"
    if texture.file is not None:
        image, srgb = _load(texture, texture.file, texture.filename)
        return (image if flat else _cube_from_grid(texture, image)), srgb
    if flat:
        raise ModelError(f"cannot load 2D texture from separate files, texture '{texture.name}'")
    if all(file is None for file in texture.cubefiles):
        raise ModelError(f"no file, no builtin and no cube files defined in texture '{texture.name}'")
    return _cube_from_files(texture)


def _load(texture: TextureInput, data: bytes, filename: str) -> tuple[np.ndarray, bool]:
    """Read one image, flipped if the texture requests it."""
    kind = content_type(texture.content_type, filename, "image/vnd.mujoco.texture")
    if kind == "image/ktx":
        return _raw(texture, data, filename), False
    if kind == "image/png":
        image, srgb = read_png(data, texture.nchannel, filename)
    elif kind == "image/vnd.mujoco.texture":
        image, srgb = _read_binary(texture, data, filename), False
    else:
        raise ModelError(f"unsupported content type: '{kind}' of texture file '{filename}'")
    if texture.hflip:
        image = image[:, ::-1]
    if texture.vflip:
        image = image[::-1]
    return image, srgb


def _raw(texture: TextureInput, data: bytes, filename: str) -> np.ndarray:
    """Return the bytes of a KTX file, one row, undecoded: the renderer reads them."""
    if texture.hflip or texture.vflip:
        raise ModelError(f"the KTX texture file '{filename}' cannot be flipped")
    if not data:
        raise ModelError(f"texture file is empty: '{filename}'")
    return np.frombuffer(data, np.uint8).reshape(1, -1, 1)


def _read_binary(texture: TextureInput, data: bytes, filename: str) -> np.ndarray:
    """Read two int32 counts (width, height), then three bytes a pixel."""
    if texture.nchannel != 3:
        raise ModelError(f"binary texture file '{filename}' has 3 channels, not {texture.nchannel}")
    if not data:
        raise ModelError(f"texture file is empty: '{filename}'")
    width, height = struct.unpack_from("<2i", data) if len(data) >= 8 else (0, 0)
    if width < 1 or height < 1:
        raise _not_binary(filename, "width and height are not positive")
    if len(data) != 8 + 3 * width * height:
        raise _not_binary(filename, f"{width} x {height} pixels need another size of the file")
    return np.frombuffer(data, np.uint8, 3 * width * height, 8).reshape(height, width, 3)


def _not_binary(filename: str, what: str) -> ModelError:
    if filename.lower().endswith(_OTHER_PICTURES):
        return ModelError(f"pictures are read from PNG files alone, as in MuJoCo: convert '{filename}' to PNG")
    return ModelError(f"texture file '{filename}' is not a PNG file, nor in MuJoCo's binary format: {what}")


def _check_cube_channels(texture: TextureInput) -> None:
    if texture.nchannel != 3:
        raise UnsupportedError(f"{texture.nchannel} channels in a cube texture from files ('{texture.name}')")


def _cube_from_grid(texture: TextureInput, image: np.ndarray) -> np.ndarray:
    """Cut six squares out of one image, or one square that is used for all six."""
    _check_cube_channels(texture)
    rows, columns = (int(x) for x in texture.gridsize)
    if rows < 1 or columns < 1 or rows * columns > 12:
        raise ModelError(f"'gridsize' needs one to twelve squares in texture '{texture.name}'")
    height, width = image.shape[:2]
    if width // columns != height // rows or width % columns or height % rows:
        raise ModelError(
            f"the picture of {width} x {height} pixels cannot be cut into {rows} rows of {columns} squares (gridsize), "
            f"texture '{texture.name}'"
        )
    if rows == columns == 1:
        return image
    size = width // columns
    faces = np.broadcast_to(_byte(texture.rgb1), (6, size, size, 3)).copy()
    for k, symbol in enumerate(texture.gridlayout.ljust(12, ".")[: rows * columns]):
        if symbol == ".":
            continue
        if symbol not in FACES:
            raise ModelError(
                f"'gridlayout' holds R, L, U, D, F, B and '.', not '{symbol}', in texture '{texture.name}'"
            )
        row, column = size * (k // columns), size * (k % columns)
        faces[FACES.index(symbol)] = image[row : row + size, column : column + size]
    return faces.reshape(6 * size, size, 3)


def _cube_from_files(texture: TextureInput) -> tuple[np.ndarray, bool]:
    """Read six squares from separate files, missing ones in rgb1, and whether the first file is sRGB."""
    _check_cube_channels(texture)
    faces, first_srgb = None, False
    for k, entry in enumerate(texture.cubefiles):
        if entry is None:
            continue
        image, srgb = _load(texture, *entry)
        height, width = image.shape[:2]
        if width != height:
            raise ModelError(f"non-square PNG file '{entry[1]}' in cube or skybox '{texture.name}'")
        if faces is None:
            faces, first_srgb = np.broadcast_to(_byte(texture.rgb1), (6, width, width, 3)).copy(), srgb
        elif faces.shape[1] != width:
            raise ModelError(f"PNG file '{entry[1]}' has another size than the first in texture '{texture.name}'")
        faces[k] = image
    assert faces is not None  # textures without a file are handled before
    return faces.reshape(-1, faces.shape[2], 3), first_srgb
