"""Meshes of signed distance fields, vertex by vertex and face by face against MuJoCo."""

import mujoco
import numpy as np
import pytest

from jaxsim.compiler import compile_spec
from jaxsim.compiler.asset.mesh_sdf import marching_cubes
from jaxsim.core.errors import ModelError
from jaxsim.mjcf import read
from validation.compare import assert_models_equal

TEXT = """<mujoco><extension><plugin plugin="mujoco.sdf.{0}"/></extension>
<asset><mesh name="m" {1}><plugin plugin="mujoco.sdf.{0}">{2}</plugin></mesh></asset><worldbody><body><freejoint/>
<geom type="sdf" mesh="m"><plugin plugin="mujoco.sdf.{0}">{2}</plugin></geom></body></worldbody></mujoco>"""


def check(name: str, config: str = "") -> None:
    text = TEXT.format(name, "", config)
    assert_models_equal(compile_spec(read(text)), mujoco.MjModel.from_xml_string(text))


def test_mesh_of_a_gear_equals_mujoco():
    check("gear", '<config key="teeth" value="12"/><config key="innerdiameter" value=".5"/>')


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bolt", "bowl", "gear", "nut", "torus"])
def test_mesh_of_a_field_equals_mujoco(name):
    check(name)


def test_scale_is_rejected():
    text = TEXT.format("torus", 'scale="1 1 2"', "")
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_string(text)
    with pytest.raises(ModelError, match=r"mesh 'm': .*scale"):
        compile_spec(read(text))


def test_surface_of_a_sphere_is_closed():
    z, y, x = np.meshgrid(*[np.linspace(-1, 1, 9)] * 3, indexing="ij")
    vertex, face = marching_cubes((np.sqrt(x * x + y * y + z * z) - 0.7).astype(np.float32))
    edges = np.sort(face[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    assert np.all(np.unique(edges, axis=0, return_counts=True)[1] == 2)
    np.testing.assert_allclose(np.linalg.norm(vertex / 4 - 1, axis=1), 0.7, atol=0.03)
