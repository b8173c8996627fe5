"""Triangles of the primitive geoms: closed, turned outward, of the right volume."""

import numpy as np
import pytest

import jaxsim
from jaxsim.viewer.shapes import geom_triangles

VOLUME = {
    "sphere": (".3", 4 / 3 * np.pi * 0.3**3),
    "ellipsoid": (".1 .2 .3", 4 / 3 * np.pi * 0.1 * 0.2 * 0.3),
    "capsule": (".1 .2", np.pi * 0.1**2 * (0.4 + 4 / 3 * 0.1)),
    "cylinder": (".1 .2", np.pi * 0.1**2 * 0.4),
    "box": (".1 .2 .3", 8 * 0.1 * 0.2 * 0.3),
}


@pytest.mark.parametrize("kind", VOLUME)
def test_triangles_of_a_primitive_enclose_it(kind):
    size, volume = VOLUME[kind]
    m = jaxsim.load_model(f"<mujoco><worldbody><geom type='{kind}' size='{size}'/></worldbody></mujoco>")
    rows = geom_triangles(m, 0, 1.0)
    triangles, normals = rows[:, :3].reshape(-1, 3, 3), rows[:, 3:6].reshape(-1, 3, 3)
    a, b, c = triangles.swapaxes(0, 1)
    area = np.cross(b - a, c - a) / 2
    assert np.linalg.norm(area, axis=1).min() > 1e-6
    assert np.abs(area.sum(0)).max() < 1e-12  # a closed surface
    assert np.isclose((a * area).sum() / 3, volume, rtol=0.04)
    assert ((normals * area[:, None]).sum(-1) > 0).all()
    assert np.allclose(np.linalg.norm(normals, axis=-1), 1)
    assert np.isfinite(rows).all() and rows[:, 6:].min() >= 0 and rows[:, 6:].max() <= 1
