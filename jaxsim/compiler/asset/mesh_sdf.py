"""Meshes of signed distance fields: the zero surface of a plugin's field, by marching cubes.

The grid, the order of vertices and faces and the single precision are MuJoCo's, so that all numbers of the meshes are
equal.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compiler.asset.bvh import cross
from jaxsim.math.signed_distance import FIELDS
from jaxsim.mjcf.mesh_file import RawMesh

_CELLS = 300  # sum of the numbers of cells along the three half sizes of the box

# edges of a cell: axis, and the corner that the edge starts from
_EDGES = (
    *((0, 0, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (0, 0, 1, 1), (1, 0, 0, 0), (1, 1, 0, 0)),
    *((1, 0, 0, 1), (1, 1, 0, 1), (2, 0, 0, 0), (2, 1, 0, 0), (2, 0, 1, 0), (2, 1, 1, 0)),
)

# Triangles of every case of marching cubes as hexadecimal numbers of edges; bit i of a case means that corner i
# (x + 2 y + 4 z) is inside. The table is that of MarchingCubeCpp, which MuJoCo uses.
_TRIANGLES = """
    . 048 509 495489 1a4 1801a8 1a4950 51a5a99a8 b15 5b1804 0b109b 14818bb89 a5ba45 05b0b88ba 40949aa9b 8ba89b
    286 062046 950628 295256654 41a286 a62a21120 0958621a4 61a621251295 28615b 604620b15 b09b10628 46162916919b
    5a45ba286 2a625a5ba052 286a9ba49409 2a629a9ba 927 048792 250275 827874475 1a4279 1801a8792 250275a41
    827871175a81 b15279 0485b1279 7b1712210 48242112717b a5ba45279 7928ba80b05b ba7a407a0702 7827b8ba8 879867
    904947746 086065567 467475 7867981a4 79661a916901 a41567506086 a51a65675 87986715b 15b746794904 08606bb6710b
    17b147467 4ba45b698679 670ba0a605b0790 ba06707b0860a40 67b6ba 36a a36048 36a095 94895436a 341364 680603301
    341364950 958836538513 36a5b1 15b48036a 0b109b6a3 6a3b89b18148 b36b65564 8368030b305b 6b360b09b406 6b368b89b
    2a328a 4a3430032 a28a32509 34a394954293 841812213 013032 509213281841 529512132 2a328a5b1 b150320434a3
    38a32819b109 9b4324294a34b14 5b4428b24b32 b05b30320 3249b4b34094284 32939b 792a36 2796a3048 527502a36
    36a475487827 436413927 927301360680 164136075027 138758518278368 36a79215b 0486a379215b a362102717b1
    36ab17127142482 2795645b6b36 2798060360535b3 02b64b40b36b27b 6838b387b827 37939aa98 a04a30390379
    8a0a370a7075 34a374754 184178798371 937903013 758138378418508 137175 5b1a98a39379 15ba34304370790
    8a7107087b17a37 37a74a7147b1 4539838437935b3 9070370b305b 08437b 7b3 73b 0483b7 5093b7 4954893b7 b7341a
    81a80173b 1a4b73095 3b79a895a51a 173157 715731804 973930031 148187789317 3a4347745 80aa7307a057 a40a03309397
    3973a9a89 286b73 062046b73 2869503b7 b73654625295 3b7a41286 73b1201a2a62 1a48629503b7 3b762a21a291951
    173157862 246204357315 628031093973 469319149739629 8627457343a4 57a20a05a62a73a 2867393093a0a40
    2969a693a973 3923b9 3923b9480 b50b03302 54b482b42b23 93b92341a 0a801a2b923b 41a3023b0b50 235a858251a53b5
    592521123 804123152592 031023 814821231 3a4349945239 a852353a5925805 43a403023 23a2a8 63b6b88b9 63b6b00b9460
    86383003b0b5 b63b56546 1a48b986b63b 016b969063b61a6 1a450b03b083863 a616516b563b 985863583531
    319469639049159 608630310 314346 983453593a43863 3a6059 6383083403a4 3a6 6b76ab b6ab76048 6b76ab095
    854895a76ab7 1b7174476 0680b6b761b0 9504764171b7 891761681b71951 a15a56657 0486576a5a15 7696a1961910
    7618919714816a1 476457 068056576 940974764 897876 72878bb8a b7aa0470a720 095b8ab78728 ab25424a2952b72
    4284121721b7 71b721201 0954181281b2b72 5191291721b7 872817157a18 20a57a72a15a04a 1078a7a17287097 14a297
    872847457 205257 842472497409 972 26a2a99ab 4809ab92a26a 26a2a55ab025 542ab2b526a2482 4166921961b9
    b960161b6806926 64b02b26b50b41b 2681b5 6a1612215259 0489252152616a1 a26a12102 a16126182148 259265645
    058568526592 026064 268 8ab8b9 4904a9ab9 0b508b8ab ab5a54 1841b8b98 01b0b9 1b4b84b08b50 b51 5a159a98a
    4a0a90a59a15 10818a 14a 459498 590 084 .
"""


def sdf_mesh(name: str, numbers: tuple[float, ...]) -> RawMesh:
    """Compute the zero surface of the field of a plugin, with normals.

    Args:
        name: name of the plugin.
        numbers: its attributes, with defaults.
    """
    distance, half = FIELDS[name], np.array(_HALF_SIZES[name](*numbers))
    shape = np.floor(_CELLS / np.sum(half) * half).astype(int) + 1
    axes = [-h + 2 * h * np.arange(n) / (n - 1) for h, n in zip(half, shape, strict=True)]
    z, y, x = np.meshgrid(axes[2], axes[1], axes[0], indexing="ij")
    with np.errstate(invalid="ignore", divide="ignore"):
        field = distance(x, y, z, *numbers).astype(np.float32)
    vertex, face = marching_cubes(field)
    normal = _normals(vertex, face)
    placed = 2 * half * vertex / (shape - 1) - half
    return RawMesh(vertex=placed.astype(np.float32).ravel(), normal=normal.ravel(), face=face.astype(np.int64).ravel())


def marching_cubes(field: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the zero surface of a field on a grid.

    Args:
        field: (nz, ny, nx) float32, negative inside.

    Returns:
        vertices (nv, 3) float32 in units of the grid, faces (nf, 3).
    """
    inside = field < 0
    case = np.zeros(tuple(n - 1 for n in field.shape), np.int32)
    for corner in range(8):
        case |= _shift(inside, corner & 1, corner >> 1 & 1, corner >> 2).astype(np.int32) << corner
    z, y, x = np.nonzero((case != 0) & (case != 255))
    cells = np.stack([x, y, z], axis=1)
    edges = np.array(_EDGES)
    start = cells[:, None] + edges[:, 1:]  # (cells, 12, 3)
    end = start + np.eye(3, dtype=int)[edges[:, 0]]
    first, second = (field[p[..., 2], p[..., 1], p[..., 0]] for p in (start, end))
    # a cell adds the edges that no earlier cell added: those at its upper corner, and all at the sides of the grid
    upper = edges[:, 1:] + np.eye(3, dtype=int)[edges[:, 0]]
    made = np.all((upper == 1) | (cells[:, None] == 0), axis=2) & ((first < 0) != (second < 0))
    number = np.cumsum(made.ravel()).reshape(made.shape) - 1
    ids = np.zeros((3, *field.shape), np.int64)
    axis = np.broadcast_to(edges[:, 0], made.shape)
    ids[axis[made], start[made][:, 2], start[made][:, 1], start[made][:, 0]] = number[made]
    vertex = start[made].astype(np.float32)
    vertex[np.arange(len(vertex)), axis[made]] += first[made] / (first[made] - second[made])
    of_edge = ids[axis, start[..., 2], start[..., 1], start[..., 0]]
    return vertex, _faces(of_edge, case[z, y, x])


def _shift(grid: np.ndarray, x: int, y: int, z: int) -> np.ndarray:
    nz, ny, nx = (n - 1 for n in grid.shape)
    return grid[z : z + nz, y : y + ny, x : x + nx]


def _faces(of_edge: np.ndarray, case: np.ndarray) -> np.ndarray:
    """Return the faces of all cells in order, from the vertices at the edges of each cell (n, 12) and its case (n,)."""
    words = ["" if word == "." else word for word in _TRIANGLES.split()]
    count = np.array([len(word) for word in words])
    table = np.zeros((len(words), count.max()), int)
    for row, word in zip(table, words, strict=True):
        row[: len(word)] = [int(digit, 16) for digit in word]
    used = np.arange(table.shape[1]) < count[case][:, None]
    return np.take_along_axis(of_edge, table[case], axis=1)[used].reshape(-1, 3)


def _normals(vertex: np.ndarray, face: np.ndarray) -> np.ndarray:
    """Compute normals of vertices: area-weighted sums over their faces in float32; zero where they cancel."""
    a, b, c = (vertex[face[:, i]] for i in range(3))
    out = np.zeros_like(vertex)
    np.add.at(out, face.ravel(), np.repeat(cross(c - b, a - b), 3, axis=0))
    length = np.sqrt(out[:, 0] * out[:, 0] + out[:, 1] * out[:, 1] + out[:, 2] * out[:, 2])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(out / length[:, None], posinf=0.0, neginf=0.0)


_HALF_SIZES = {
    "mujoco.sdf.bolt": lambda radius: (0.6, 0.6, 1.0),
    "mujoco.sdf.bowl": lambda height, radius, thickness: (radius + thickness,) * 3,
    "mujoco.sdf.gear": lambda alpha, diameter, teeth, thickness, inner: (
        *(diameter / 2.0 * 1.25,) * 2,
        thickness / 2.0 * 1.1,
    ),
    "mujoco.sdf.nut": lambda radius: (0.6, 0.6, 1.0),
    "mujoco.sdf.torus": lambda radius1, radius2: (radius1 + radius2, radius1 + radius2, radius2),
}
