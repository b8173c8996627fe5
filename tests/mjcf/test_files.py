"""Where the files that a model names are looked for."""

import mujoco
import pytest

from jaxsim.core.errors import ModelError
from jaxsim.mjcf import asset_path, expand, read, read_file

OBJ = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"
PART = '<mujoco>{}<asset><mesh name="m" file="{}"/></asset><worldbody><geom type="mesh" mesh="m"/></worldbody></mujoco>'


def found(path) -> bool:
    """Whether we find the mesh of a model."""
    try:
        spec = expand(read(path))
    except ModelError:
        return False
    mesh = spec.find("mesh", "m")
    return read_file(spec, asset_path(spec, mesh)) is not None


def mujoco_finds(path) -> bool:
    """Whether MuJoCo does."""
    try:
        mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("place", ["m.obj", "meshes/m.obj", "sub/m.obj", "sub/meshes/m.obj", "other/m.obj"])
@pytest.mark.parametrize(
    "compiler", ["", '<compiler meshdir="meshes"/>', '<compiler assetdir="other" texturedir="meshes"/>']
)
@pytest.mark.parametrize("name", ["m.obj", "meshes/m.obj", "sub/m.obj"])
@pytest.mark.parametrize("included", [False, True])
def test_meshes_are_found_where_mujoco_finds_them(tmp_path, place, compiler, name, included):
    for folder in ("meshes", "sub/meshes", "other"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_text(OBJ)
    main = tmp_path / "main.xml"
    if included:
        (tmp_path / "sub" / "part.xml").write_text(PART.format(compiler, name))
        main.write_text('<mujoco><include file="sub/part.xml"/></mujoco>')
    else:
        main.write_text(PART.format(compiler, name))
    assert found(main) == mujoco_finds(main)


def test_stripped_paths_and_assets(tmp_path):
    main = tmp_path / "main.xml"
    main.write_text(PART.format('<compiler strippath="true" meshdir="meshes"/>', "far/away/m.obj"))
    (tmp_path / "meshes").mkdir()
    assert not found(main)
    (tmp_path / "meshes" / "m.obj").write_text(OBJ)
    assert found(main) and mujoco_finds(main)
    spec = read(PART.format("", "far/away/m.obj"), {"m.obj": OBJ.encode()})
    assert read_file(spec, asset_path(spec, spec.find("mesh", "m"))) == OBJ.encode()
