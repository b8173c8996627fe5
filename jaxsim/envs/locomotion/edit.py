"""Edits of a spec that a locomotion task makes before compilation: floor, terrain, collisions, sensors."""

import os
from typing import Any

import numpy as np

from jaxsim.core.model import Model
from jaxsim.envs.base import model_path
from jaxsim.mjcf import Spec, read

TERRAIN_CELLS = 96  # of a side of the height field


def spec_of(source: Any) -> Spec:
    """Return a copy of a spec, or the spec of a path, of MJCF text, or of a model's file that comes with jaxsim."""
    if isinstance(source, Spec):
        return source.copy()
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"model: expected a path, MJCF text, a Spec or a Model, got {type(source).__name__}")
    text = str(source)
    if not text.lstrip().startswith("<") and not os.path.isfile(text):
        text = str(model_path(text))
    return read(text)


def without_sensors(spec: Spec) -> None:
    """Disable sensors, in place: the task reads none, and they cost time."""
    option = spec.section("option")
    flag = option.child("flag") or option.add("flag")
    flag.set(sensor="disable")


def add_floor(spec: Spec) -> None:
    """Add a plane to the world, in place."""
    spec.worldbody.add("geom", type="plane", size=[0, 0, 0.05], name="floor", rgba=[0.5, 0.55, 0.6, 1])


def add_terrain(spec: Spec, height: float, size: float, seed: int) -> None:
    """Replace the world's planes by a smooth random height field, in place.

    Args:
        spec: the model, whose world has a plane or nothing.
        height: of the highest point above the lowest, m. size: half of a side, m. seed: of the shape.
    """
    bits: dict[str, Any] = {}
    for geom in [e for e in spec.worldbody.children if e.tag == "geom" and e.get("type") == "plane"]:
        bits = {k: geom.get(k) for k in ("contype", "conaffinity", "condim", "friction", "material")}
        geom.delete()
    z = rough_ground(TERRAIN_CELLS, TERRAIN_CELLS, seed)
    rows = {"nrow": TERRAIN_CELLS, "ncol": TERRAIN_CELLS, "elevation": z.ravel()}
    spec.add("asset", "hfield", name="terrain", size=[size, size, height, 0.1], **rows)
    given = {k: v for k, v in bits.items() if v is not None}
    spec.worldbody.add("geom", name="terrain", type="hfield", hfield="terrain", **given)


def rough_ground(nrow: int, ncol: int, seed: int) -> np.ndarray:
    """Smooth random heights (nrow, ncol) between 0 and 1: a sum of waves."""
    rng = np.random.default_rng(seed)
    y, x = np.meshgrid(np.linspace(0, 1, nrow), np.linspace(0, 1, ncol), indexing="ij")
    z = np.zeros((nrow, ncol))
    for _ in range(24):
        k, phase = rng.normal(size=2) * 2 * np.pi * ncol / 12, rng.uniform(0, 2 * np.pi)
        z += np.sin(k[0] * x + k[1] * y + phase)
    return (z - z.min()) / np.ptp(z)


def feet_collide_only(spec: Spec, m: Model, torso: int, feet: tuple[np.ndarray, ...]) -> None:
    """Let only feet and torso of a robot collide, in place; `m` is the model that the spec compiles to.

    Raises:
        ValueError: a foot's geom or the torso has no name.
    """
    names = {m.id2name("geom", int(g)) for geoms in feet for g in geoms}
    trunk = m.id2name("body", torso)
    if not all(names) or not trunk:
        raise ValueError('collisions="feet": the geoms of the feet and the torso need names')
    for geom in spec.elements("geom"):
        body = next((e for e in geom.ancestors() if e.tag == "body"), None)
        if body is not None and geom.name not in names and body.name != trunk:
            geom.set(contype=0, conaffinity=0)
