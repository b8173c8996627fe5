"""glTF file of textured triangles, for the viewer in the browser."""

import json
import struct
from typing import Any

import numpy as np

from jaxsim.viewer.png import png_bytes

FLOAT, ARRAY = 5126, 34962  # componentType and target of vertices


def glb_bytes(corner: np.ndarray, image: np.ndarray, rgba: np.ndarray) -> bytes:
    """Encode a binary glTF file: corners (3 n, 8) of triangles, with an image (h, w, 3) times a colour (4,).

    A corner is a position, a unit normal and a texture coordinate, whose second part grows upwards.
    """
    place = corner[:, 6:] * [1, -1] + [0, 1]
    columns = [np.ascontiguousarray(x, "<f4") for x in (corner[:, :3], corner[:, 3:6], place)]
    blobs = [x.tobytes() for x in columns] + [png_bytes(np.ascontiguousarray(image))]
    blobs[-1] += bytes(-len(blobs[-1]) % 4)
    first = np.cumsum([0, *(len(x) for x in blobs)])
    views: list[dict[str, Any]] = [
        {"buffer": 0, "byteOffset": int(i), "byteLength": len(x)} for i, x in zip(first, blobs, strict=False)
    ]
    accessors = [
        {"bufferView": i, "componentType": FLOAT, "count": len(x), "type": f"VEC{x.shape[1]}"}
        for i, x in enumerate(columns)
    ]
    accessors[0] |= {"min": columns[0].min(0).tolist(), "max": columns[0].max(0).tolist()}
    surface = {
        "baseColorTexture": {"index": 0},
        "baseColorFactor": np.clip(rgba, 0, 1).tolist(),
        "metallicFactor": 0.0,
        "roughnessFactor": 0.9,
    }
    scene = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0, "NORMAL": 1, "TEXCOORD_0": 2}, "material": 0}]}],
        "materials": [
            {"pbrMetallicRoughness": surface, "doubleSided": True, "alphaMode": "BLEND" if rgba[3] < 1 else "OPAQUE"}
        ],
        "textures": [{"source": 0}],
        "images": [{"bufferView": 3, "mimeType": "image/png"}],
        "accessors": accessors,
        "bufferViews": [v | {"target": ARRAY} if i < 3 else v for i, v in enumerate(views)],
        "buffers": [{"byteLength": int(first[-1])}],
    }
    text = json.dumps(scene).encode()
    text += b" " * (-len(text) % 4)
    chunks = b"".join(
        struct.pack("<I4s", len(x), kind) + x for kind, x in ((b"JSON", text), (b"BIN\0", b"".join(blobs)))
    )
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks
