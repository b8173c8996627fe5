"""Where the files that a model names are looked for."""

import mujoco
import numpy as np
import pytest

from jaxsim.compiler import compile_spec
from jaxsim.core.errors import ModelError
from jaxsim.mjcf import asset_path, expand, read, read_file, save_mjcf
from validation.compare import assert_models_equal

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


def write(folder, files: dict[str, str]) -> None:
    """Write texts below a folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


WORLD = "<mujoco><worldbody><body name='b'><geom size='1'/></body></worldbody></mujoco>"
BACKSLASHES = {
    "file": PART.format("", r"a\b\m.obj"),
    "file with dots": PART.format("", r"a\b\..\.\b\m.obj"),
    "meshdir": PART.format(r'<compiler meshdir=".\a\b\"/>', "m.obj"),
    "assetdir": PART.format(r'<compiler assetdir="a\b"/>', r"..\b\m.obj"),
    "stripped": PART.format(r'<compiler meshdir="a\b" strippath="true"/>', r"C:\far\m.obj"),
    "include": r'<mujoco><include file="a\i.xml"/></mujoco>',
    "model": r'<mujoco><asset><model name="m" file="a\w.xml"/></asset>'
    '<worldbody><attach model="m" prefix="x"/></worldbody></mujoco>',
    "flexcomp": r'<mujoco><worldbody><body name="b"><flexcomp name="f" type="mesh" file="a\b\m.obj"/></body>'
    "</worldbody></mujoco>",
}
ROBOT = (
    '<robot name="r"><link name="l"><collision><geometry><mesh filename="{}"/></geometry></collision></link></robot>'
)


@pytest.mark.parametrize("text", BACKSLASHES.values(), ids=BACKSLASHES)
def test_a_backslash_separates_folders(tmp_path, text):
    write(tmp_path, {"a/b/m.obj": OBJ, "a/w.xml": WORLD, "a/i.xml": PART.format("", r"b\m.obj"), "main.xml": text})
    ours = compile_spec(read(tmp_path / "main.xml"))
    assert_models_equal(ours, mujoco.MjModel.from_xml_path(str(tmp_path / "main.xml")))


def test_a_backslash_separates_folders_in_a_urdf_file(tmp_path):
    write(tmp_path, {"a/b/m.obj": OBJ, "main.urdf": ROBOT.format(r"a\b\m.obj")})
    theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "main.urdf"))
    np.testing.assert_allclose(compile_spec(read(tmp_path / "main.urdf")).mesh_vert, theirs.mesh_vert, atol=1e-9)


@pytest.mark.parametrize("given", ["a/m.obj", r"a\m.obj", "m.obj"])
@pytest.mark.parametrize("named", ["a/m.obj", r"a\m.obj"])
def test_a_backslash_separates_folders_in_names_of_assets(given, named):
    text, assets = PART.format("", named), {given: OBJ.encode()}
    assert_models_equal(compile_spec(read(text, assets)), mujoco.MjModel.from_xml_string(text, assets))


def test_a_backslash_in_the_path_of_the_model(tmp_path, monkeypatch):
    write(tmp_path, {"a/main.xml": PART.format("", "m.obj"), "a/m.obj": OBJ})
    monkeypatch.chdir(tmp_path)
    assert compile_spec(read(r"a\main.xml")).nmesh == 1


def test_a_saved_model_finds_its_files_behind_backslashes(tmp_path):
    write(tmp_path, {"a/b/m.obj": OBJ, "main.xml": BACKSLASHES["meshdir"]})
    (tmp_path / "other").mkdir()
    save_mjcf(read(tmp_path / "main.xml"), tmp_path / "other" / "saved.xml")
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "other" / "saved.xml")).nmesh == 1


def test_a_folder_where_a_file_is_named_is_said(tmp_path):
    write(tmp_path, {"m.obj/x": "", "main.xml": PART.format("", "m.obj")})
    with pytest.raises(ModelError, match="is a folder, not a file"):
        compile_spec(read(tmp_path / "main.xml"))
