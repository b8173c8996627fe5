"""Geoms of every kind, by name, and the assets of those that are meshes."""

import numpy as np

ANGLES = np.arange(12) * np.pi / 6
PRISM = " ".join(f"{0.3 * np.cos(t):.9f} {0.3 * np.sin(t):.9f} {z}" for z in (-0.2, 0.2) for t in ANGLES)
CUBE = " ".join(f"{0.25 * x} {0.3 * y} {0.2 * z}" for x in (-1, 1) for y in (-1, 1) for z in (-1, 1))
HULL = """.3 0 0  -.25 .1 0  0 .3 .05  .05 -.28 -.02  .02 .03 .33  -.03 .05 -.31  .2 .2 .2  -.2 -.15 .2
 .15 -.2 -.2  -.15 .2 -.18"""
ASSETS = "".join(f'<mesh name="{n}" vertex="{v}"/>' for n, v in (("prism", PRISM), ("cube", CUBE), ("hull", HULL)))
GEOMS = {
    "plane": 'type="plane" size="5 5 .1"',
    "sphere": 'type="sphere" size=".3"',
    "capsule": 'type="capsule" size=".15 .35"',
    "ellipsoid": 'type="ellipsoid" size=".4 .2 .3"',
    "cylinder": 'type="cylinder" size=".25 .3"',
    "box": 'type="box" size=".2 .3 .4"',
    "hull": 'type="mesh" mesh="hull"',
    "prism": 'type="mesh" mesh="prism"',
    "cube": 'type="mesh" mesh="cube"',
}
