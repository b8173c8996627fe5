"""The skin of a cable of boxes: two sides of vertices and a rim, bound to the bodies of the cable.

Without a subgrid every vertex follows its nearest body. With one, the skin is a bicubic surface over the bones: cubic
Hermite polynomials whose derivative at a bone is half the difference of its neighbours, or the one-sided difference at
the border.
"""

from __future__ import annotations

import itertools

import numpy as np

from jaxsim.mjcf.spec import Element, Spec

_HERMITE = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [-3, 3, -2, -1], [2, -2, 1, 1]], float)  # of f0, f1, derivatives
_CORNERS = ((0, 0), (1, 0), (1, 1), (0, 1))
_SLOPES = ((0, 0), (1, 0), (0, 1), (1, 1))


def add_skin(element: Element, spec: Spec, n: int) -> None:
    """Append the skin of the cable that `element` describes, with n vertices along it."""
    look = element.child("skin")
    attrs = look.attrs if look is not None else {}
    sub = int(max(attrs.get("subgrid", 0), 0))
    geom = element.child("geom")
    assert geom is not None
    size = size_of(geom)
    prefix = element.attrs.get("prefix", "")
    rows = 3 if sub else 2
    along, across = n + (n - 1) * sub, rows + (rows - 1) * sub
    skin = spec.section("deformable").add("skin", name=f"{prefix}Skin", inflate=2 * size[2])
    skin.source, skin.compiler = element.source, element.compiler
    skin.attrs.update(
        rgba=attrs.get("rgba", np.ones(4)),
        group=attrs.get("group", 0),
        vertex=np.zeros(6 * along * across),
        face=_faces(along, across),
    )
    if attrs.get("material"):
        skin.attrs["material"] = attrs["material"]
    if attrs.get("texcoord"):
        pairs = [[i / (along - 1), j / (across - 1)] for i in range(along) for j in range(across)] * 2
        skin.attrs["texcoord"] = np.array(pairs, np.float32).astype(np.float64).ravel()
    weights = _smooth_weights(n, rows, sub) if sub else _plain_weights(n)
    for bone, (i, j) in enumerate(itertools.product(range(n), range(rows))):
        body = f"{prefix}B_{'first' if i == 0 else 'last' if i >= n - 2 else i}"
        x = -2 * size[0] if i == n - 1 else 0.0
        y = size[1] * (2 * j / (rows - 1) - 1)
        child = skin.add("bone", body=body, bindpos=[x, y, 0.0], bindquat=[1, 0, 0, 0])
        vertices, weight = weights[bone]
        both = np.stack([vertices, vertices + along * across], axis=1).ravel()
        child.set(vertid=both, vertweight=np.repeat(weight, 2).astype(np.float32))


def size_of(element: Element, x: float = 0.0) -> np.ndarray:
    """Return the three numbers of a size as written, those left out zero, the first of them `x`."""
    written = element.attrs.get("size", ())
    return np.array([*written, *(x, 0.0, 0.0)[len(written) :]])


def _faces(along: int, across: int) -> np.ndarray:
    """Return the triangles of the two sides and of the rim between them.

    Vertices are numbered side, step along, across.
    """

    def at(side: int, i: int, j: int) -> int:
        return (side * along + i) * across + j

    faces = []
    for side, i, j in itertools.product(range(2), range(along - 1), range(across - 1)):
        up, down = (1, 0) if side == 0 else (0, 1)
        faces += [[at(side, i, j), at(side, i + 1, j + down), at(side, i + 1, j + up)]]
        faces += [[at(side, i, j), at(side, i + up, j + 1), at(side, i + down, j + 1)]]
    end, last = along - 1, across - 1
    for i in range(end):
        faces += [[at(0, i, 0), at(1, i + 1, 0), at(0, i + 1, 0)], [at(0, i, 0), at(1, i, 0), at(1, i + 1, 0)]]
    for i in range(end):
        faces += [[at(0, i, last), at(0, i + 1, last), at(1, i + 1, last)]]
        faces += [[at(0, i, last), at(1, i + 1, last), at(1, i, last)]]
    for j in range(last):
        faces += [[at(0, 0, j), at(0, 0, j + 1), at(1, 0, j + 1)], [at(0, 0, j), at(1, 0, j + 1), at(1, 0, j)]]
    for j in range(last):
        faces += [[at(0, end, j), at(1, end, j + 1), at(0, end, j + 1)]]
        faces += [[at(0, end, j), at(1, end, j), at(1, end, j + 1)]]
    return np.array(faces, np.int64).ravel()


def _plain_weights(n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return vertices and weights of each bone without a subgrid: one vertex with weight one."""
    return [(np.array([v]), np.ones(1)) for v in range(2 * n)]


def _smooth_weights(n: int, rows: int, sub: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return for each bone the vertices of one side that it moves, and their weights."""
    found: list[tuple[list[int], list[float]]] = [([], []) for _ in range(n * rows)]
    across = rows + (rows - 1) * sub
    for i, j in itertools.product(range(n - 1), range(rows - 1)):
        places = _border(i, n), _border(j, rows)
        patch = _patch(sub, *places)
        bones = [(i + a) * rows + j + b for a, b in itertools.product(range(-1, 3), repeat=2)]
        for a, b in itertools.product(range(1 + sub + (i == n - 2)), range(1 + sub + (j == rows - 2))):
            vertex = (i * (1 + sub) + a) * across + j * (1 + sub) + b
            for bone, weight in zip(bones, patch[a * (2 + sub) + b], strict=True):
                if weight and 0 <= bone < len(found):
                    found[bone][0].append(vertex)
                    found[bone][1].append(weight)
    return [(np.array(vertices, np.int64), np.array(weights)) for vertices, weights in found]


def _border(i: int, n: int) -> int:
    """Return 0 for the first segment between bones, 2 for the last, 1 in between."""
    return 0 if i == 0 else 2 if i == n - 2 else 1


def _slopes(place: int) -> np.ndarray:
    """Return the matrix from the four bones around a segment to values and derivatives (f0, f1, m0, m1) at its ends."""
    central = np.array([[-0.5, 0, 0.5, 0], [0, -0.5, 0, 0.5]])
    one_sided = np.array([0.0, -1, 1, 0])
    slopes = [one_sided if place == 0 else central[0], one_sided if place == 2 else central[1]]
    return np.array([[0, 1, 0, 0], [0, 0, 1, 0], *slopes])


def _patch(sub: int, along: int, across: int) -> np.ndarray:
    """Compute weights (points, 16) of the bones around a square for the points of its subgrid.

    The sums run in MuJoCo's order: the rounding errors of cancelling numbers are entries as well.
    """
    step = 1.0 / (1 + sub)
    powers = np.array([_powers(a * step, b * step) for a, b in itertools.product(range(2 + sub), repeat=2)])
    columns = [(x + 2 * p, y + 2 * q) for p, q in _SLOPES for x, y in _CORNERS]
    rows = list(itertools.product(range(4), repeat=2))
    hermite = np.array([[_HERMITE[i, x] * _HERMITE[j, y] for x, y in columns] for i, j in rows])
    dx, dy = _slopes(along), _slopes(across)
    bones = np.array([np.outer(dx[x], dy[y]).ravel() for x, y in columns])
    return _product(_product(powers, hermite), bones)


def _powers(x: float, y: float) -> list[float]:
    xs = [(), (x,), (x, x), (x, x, x)]
    ys = [(1.0,), (y,), (y, y), (y, y, y)]
    out = []
    for a, b in itertools.product(xs, ys):
        value = 1.0
        for factor in (*a, *b):
            value = value * factor
        out.append(value)
    return out


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compute the matrix product with sums in order, term by term."""
    out = np.zeros((len(a), b.shape[1]))
    for k in range(len(b)):
        out += a[:, k : k + 1] * b[k]
    return out
