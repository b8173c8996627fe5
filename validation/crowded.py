"""Scenes in which bodies touch many geoms at once: what default capacities of contacts have to suffice for."""

from math import cos, pi, sin


def box(x: float, y: float, z: float, size: str, more: str = "") -> str:
    """A box geom."""
    return f'<geom type="box" size="{size}" pos="{x:.4f} {y:.4f} {z:.4f}" {more}/>'


def free(x: float, y: float, z: float, inside: str, more: str = "") -> str:
    """A free body with these geoms."""
    return f'<body pos="{x:.4f} {y:.4f} {z:.4f}" {more}><freejoint/>{inside}</body>'


def world(inside: str, more: str = "", after: str = "") -> str:
    """A model with a floor and what is given."""
    floor = '<geom name="floor" type="plane" size="5 5 .1"/>'
    return f'<mujoco><compiler angle="radian"/>{more}<worldbody>{floor}{inside}</worldbody>{after}</mujoco>'


def grid(n: int, step: float) -> list[tuple[float, float]]:
    """Places of an n by n grid about zero."""
    return [((i - (n - 1) / 2) * step, (j - (n - 1) / 2) * step) for i in range(n) for j in range(n)]


def ring(n: int, radius: float) -> list[tuple[float, float, float]]:
    """Places and angles of n points on a circle."""
    return [(radius * cos(2 * pi * k / n), radius * sin(2 * pi * k / n), 2 * pi * k / n) for k in range(n)]


def tiles(n: int, half: float) -> str:
    """A parquet of boxes with its top at z = 0.1."""
    return "".join(box(x, y, 0.05, f"{half} {half} .05") for x, y in grid(n, 2 * half))


def chain(n: int, axis: str) -> str:
    """A body with a free joint and a box, and n - 1 below it, each on a hinge."""
    inside = ""
    for i in reversed(range(n)):
        joint = f'<joint axis="{axis}"/>' if i else "<freejoint/>"
        pos = "0.11 0 0" if i else "-1 0 .6"
        inside = f'<body pos="{pos}">{joint}{box(0, 0, 0, ".05 .05 .05")}{inside}</body>'
    return inside


def table() -> str:
    """A table of a top and four legs."""
    legs = "".join(box(x, y, -0.2, ".06 .06 .2") for x in (-0.3, 0.3) for y in (-0.3, 0.3))
    return box(0, 0, 0.03, ".4 .4 .03") + legs


def finger(side: int) -> str:
    """A sliding finger with nine pads on its inner side."""
    places = [(0.02 * i, 0.02 * j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    pads = "".join(box(-side * 0.02, y, z, ".01 .009 .009") for y, z in places)
    joint = f'<joint name="f{side}" type="slide" axis="{-side} 0 0" range="0 .1" damping="5"/>'
    return f'<body pos="{side * 0.14:.3f} 0 .1">{joint}{box(0, 0, 0, ".01 .03 .03")}{pads}</body>'


def gear(x: float, teeth: int, turn: float) -> str:
    """A gear on a hinge: a disc with boxes as teeth."""
    bars = [box(a, b, 0, ".03 .012 .03", f'euler="0 0 {angle:.4f}"') for a, b, angle in ring(teeth, 0.2)]
    body = f'<geom type="cylinder" size=".18 .03"/>{"".join(bars)}'
    return f'<body pos="{x} 0 .3" euler="0 0 {turn}"><joint axis="0 0 1" damping=".01"/>{body}</body>'


def studs() -> str:
    """Twenty-five small boxes with their tops at z = 0.1."""
    return "".join(box(x, y, 0.05, ".02 .02 .05") for x, y in grid(5, 0.1))


def boxes(places: list[tuple[float, float, float]], size: str) -> str:
    """A free box at each place."""
    return "".join(free(*place, box(0, 0, 0, size)) for place in places)


def planks() -> str:
    """A tower of layers of three planks, each across the layer below."""
    layers = []
    for k in range(12):
        for side in (-0.1, 0, 0.1):
            x, y, size = (0, side, ".15 .05 .03") if k % 2 == 0 else (side, 0, ".05 .15 .03")
            layers.append(free(x, y, 0.03 + 0.06 * k, box(0, 0, 0, size)))
    return "".join(layers)


def capsules(ends: list[tuple[float, ...]], radius: float) -> str:
    """A capsule between each two points (6,)."""
    return "".join(
        f'<geom type="capsule" size="{radius}" fromto="{" ".join(f"{x:.4f}" for x in end)}"/>' for end in ends
    )


def wall() -> list[tuple[float, float, float]]:
    """Places of six rows of five bricks."""
    return [(0.2 * i + 0.1 * (row % 2) - 0.5, 0, 0.05 + 0.1 * row) for row in range(6) for i in range(5)]


def lattice(nx: int, ny: int, nz: int, x: float, y: float, step: float) -> list[tuple[float, float, float]]:
    """Places of a block of boxes that lie side by side."""
    return [(x + step * i, y + step * j, 0.05 + step * k) for i in range(nx) for j in range(ny) for k in range(nz)]


CUP = "".join(box(a, b, 0, ".012 .04 .06", f'euler="0 0 {t:.4f}"') for a, b, t in ring(8, 0.07))
CUP += box(0, 0, -0.05, ".06 .06 .01")
GRIP = "".join(f'<position joint="f{side}" kp="400" ctrlrange=".05 .1"/>' for side in (-1, 1))
PEGS = capsules([(x, -0.3, 0.4, x, 0.3, 0.4) for x in (-0.5, 0, 0.5, 1)], 0.03)
CORNER = box(0.5, 0, 0.2, ".02 .5 .2") + box(0, 0.5, 0.2, ".5 .02 .2")
JACK = capsules([(-0.1, 0, 0, 0.1, 0, 0), (0, -0.1, 0, 0, 0.1, 0), (0, 0, -0.1, 0, 0, 0.1)], 0.02)
RING = capsules([(*ring(8, 0.1)[k - 1][:2], 0, *ring(8, 0.1)[k][:2], 0) for k in range(8)], 0.015)
SLAB = " ".join(f"{x} {y} {z}" for x in (-0.2, 0.2) for y in (-0.2, 0.2) for z in (-0.02, 0.02))
BUMPS = " ".join(str(round(0.5 + 0.5 * sin(1.7 * i) * cos(2.3 * j), 3)) for i in range(20) for j in range(20))
HFIELD = f'<asset><hfield name="h" nrow="20" ncol="20" size="1 1 .1 .1" elevation="{BUMPS}"/></asset>'
STAIRS = "".join(box(0.2 * i, 0, 0.05 * i, f".1 1 {0.05 * i + 0.05:.3f}") for i in range(6))
LADDER = "".join(box(0.2 * i, 0, 0, ".02 .3 .02") for i in range(-3, 4))
LADDER += box(0, 0.3, 0, ".7 .02 .02") + box(0, -0.3, 0, ".7 .02 .02")
HOLE = "".join(box(a, b, 0.05, ".05 .05 .05", f'euler="0 0 {t:.4f}"') for a, b, t in ring(4, 0.1))

SCENES = {
    "box on four tiles": world(tiles(2, 0.5) + free(0, 0, 0.3, box(0, 0, 0, ".1 .1 .1"))),
    "plate on 25 studs": world(studs() + free(0, 0, 0.2, box(0, 0, 0, ".3 .3 .02"))),
    "table on a parquet": world(tiles(12, 0.05) + free(0, 0, 0.52, table())),
    "two tables on a parquet": world(tiles(12, 0.05) + free(-0.5, 0, 0.52, table()) + free(0.5, 0, 0.52, table())),
    "body of five boxes": world(free(0, 0, 0.2, "".join(box(0.11 * i, 0, 0, ".05 .05 .05") for i in range(5)))),
    "chain of twenty boxes": world(chain(20, "0 0 1")),
    "chain over pegs": world(chain(20, "0 1 0") + PEGS),
    "wall of bricks": world(boxes(wall(), ".1 .05 .05")),
    "boxes in a corner": world(CORNER + boxes(lattice(3, 3, 2, 0.23, 0.23, 0.1), ".05 .05 .05")),
    "cube of cubes": world(boxes(lattice(3, 3, 3, 0, 0, 0.1), ".05 .05 .05")),
    "planks": world(planks()),
    "pads around a cup": world(
        finger(-1) + finger(1) + free(0, 0, 0.1, CUP, 'name="cup"'), after=f"<actuator>{GRIP}</actuator>"
    ),
    "gears": world(gear(0, 16, 0) + gear(0.41, 16, 0.2) + gear(0.82, 16, 0)),
    "pile of jacks": world("".join(free(x, y, 0.2 + 0.2 * k, JACK) for k in range(3) for x, y in grid(3, 0.15))),
    "pile of rings": world("".join(free(x, y, 0.1 + 0.06 * k, RING) for k in range(6) for x, y in grid(2, 0.15))),
    "boxes on a height field": world(
        '<geom type="hfield" hfield="h" pos="0 0 .1"/>' + boxes([(x, y, 0.4) for x, y in grid(3, 0.4)], ".12 .12 .06"),
        HFIELD,
    ),
    "mesh on studs": world(
        studs() + free(0, 0, 0.2, '<geom type="mesh" mesh="slab"/>'),
        f'<asset><mesh name="slab" vertex="{SLAB}"/></asset>',
    ),
    "ladder on stairs": world(STAIRS + free(0.5, 0, 1, LADDER)),
    "peg in a hole": world(HOLE + free(0.01, 0, 0.3, box(0, 0, 0, ".045 .045 .1"))),
}
