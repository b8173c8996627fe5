"""flexcomp of files: points and elements against MuJoCo's, and files that are not well formed."""

import mujoco
import pytest

from jaxsim.compiler import compile_spec
from jaxsim.core.errors import ModelError
from jaxsim.mjcf import expand, read
from tests.mjcf.flex_files import CENTRE, GMSH, MESHES
from validation.compare import assert_models_equal

_ORIGIN = f'origin="{CENTRE[0]!r} {CENTRE[1]!r} {CENTRE[2]!r}"'.replace("np.float64(", "").replace(")", "")
_INSIDE = '<contact selfcollide="none"/><elasticity young="100" damping="1"/><pin id="0 3"/>'


def model(attrs, compiler=""):
    return f"""<mujoco><compiler {compiler}/><worldbody><body name="p" pos="0 0 1" euler="30 20 10">
      <flexcomp name="f" scale=".5 1 2" euler="10 20 30" {attrs}>{_INSIDE}</flexcomp></body></worldbody></mujoco>"""


@pytest.mark.parametrize("dof", ["full", 'trilinear" cellcount="2 3 2'])
@pytest.mark.parametrize("name", GMSH)
def test_a_gmsh_file_gives_the_flex_of_mujoco(name, dof):
    text = model(f'type="gmsh" file="{name}" dof="{dof}"')
    assert_models_equal(compile_spec(read(text, assets=GMSH)), mujoco.MjModel.from_xml_string(text, dict(GMSH)))


@pytest.mark.parametrize("name", MESHES)
@pytest.mark.parametrize("attrs", ['dim="2"', f'dim="3" {_ORIGIN}', 'dim="2" dof="quadratic"'])
def test_a_mesh_gives_the_flex_of_mujoco(name, attrs):
    text = model(f'type="mesh" file="{name}" {attrs}')
    assert_models_equal(compile_spec(read(text, assets=MESHES)), mujoco.MjModel.from_xml_string(text, dict(MESHES)))


def test_files_are_looked_up_below_meshdir():
    text = model('type="gmsh" file="text41.msh"', 'meshdir="sub"')
    spec = expand(read(text, assets={"sub/text41.msh": GMSH["text41.msh"]}))
    assert len(spec.find("flex", "f").attrs["body"]) == 14


@pytest.mark.parametrize("attrs", [
    'type="gmsh"', 'type="mesh" dim="2"', 'type="gmsh" file="none.msh"', 'type="mesh" dim="2" file="text41.msh"',
    'type="gmsh" dim="2" file="hull.obj"', 'type="mesh" dim="3" file="hull.obj"', 'type="mesh" dim="1" file="hull.obj"',
    'type="mesh" dim="2" file="points.obj"',
])  # fmt: skip
def test_files_that_do_not_fit_are_errors(attrs):
    assets = {**GMSH, **MESHES, "points.obj": b"v 0 0 0\n"}
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_string(model(attrs), assets)
    with pytest.raises(ModelError, match="flexcomp 'f'"):
        expand(read(model(attrs), assets=assets))


@pytest.mark.parametrize(
    "shape", ['type="grid" count="3 3 1"', 'type="disc" count="3 3 1"', 'type="box" count="3 3 3"']
)
def test_written_points_come_before_those_of_a_shape(shape):
    text = f"""<mujoco><worldbody><flexcomp name="f" radius=".01" spacing=".1 .1 .1" {shape} dim="2"
      point="1 1 1 2 .5 1"><edge equality="true"/></flexcomp></worldbody></mujoco>"""
    assert_models_equal(compile_spec(read(text)), mujoco.MjModel.from_xml_string(text))
