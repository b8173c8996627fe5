"""Saved models are read back equal; damaged files raise errors."""

import io
import json
import zipfile

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.compiler import compile_spec
from jaxsim.io.archive import read_archive
from validation.compare import assert_models_equal

TEXT = """<mujoco model="arm"><option timestep=".004" gravity="0 0 -3"/><visual><map znear=".3"/></visual>
<worldbody><light name="l"/><body name="b"><joint name="j" range="-1 1"/><geom name="g" size=".1"/></body></worldbody>
<actuator><motor name="m" joint="j"/></actuator><keyframe><key name="k" qpos=".3"/></keyframe></mujoco>"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    m = jaxsim.load_model(TEXT, max_contacts=7)
    path = tmp_path_factory.mktemp("archive") / "arm.jaxsim"
    jaxsim.save_model(m, path)
    return m, path


def assert_equal(a, b):
    assert a.structure == b.structure
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def test_saved_model_is_read_back_equal(saved):
    m, path = saved
    twin = jaxsim.load_model(path)
    assert_equal(m, twin)
    assert twin.name2id("joint", "j") == 0
    assert twin.max_contacts == 7
    assert twin.vis.map.znear == m.vis.map.znear


def test_changed_and_batched_numbers_are_kept(saved, tmp_path):
    m = saved[0].replace(body_mass=np.array([[0.0, 2.0], [0.0, 3.0]]))
    m = m.replace(opt=m.opt.replace(timestep=0.01))
    jaxsim.save_model(m, tmp_path / "m")
    assert_equal(m, jaxsim.load_model(tmp_path / "m"))


def test_capacities_can_be_changed_on_loading(saved):
    assert jaxsim.load_model(saved[1], max_contacts=3).max_contacts == 3


def test_single_precision_is_kept(saved, float32, tmp_path):
    m = jaxsim.load_model(TEXT)
    jaxsim.save_model(m, tmp_path / "m")
    assert jaxsim.load_model(tmp_path / "m").body_mass.dtype == np.float32


def test_the_same_model_gives_the_same_bytes(saved, tmp_path):
    jaxsim.save_model(saved[0], tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == saved[1].read_bytes()


def test_nothing_in_the_file_is_pickled(saved):
    with zipfile.ZipFile(saved[1]) as archive:
        for name in archive.namelist():
            if name.endswith(".npy"):
                np.load(io.BytesIO(archive.read(name)), allow_pickle=False)


def rewritten(path, target, change):
    """A copy of an archive with its header changed."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename == "header.json":
                header = json.loads(data)
                change(header)
                data = json.dumps(header).encode()
            new.writestr(info, data)
    return target


CHANGES = {
    "version": (lambda h: h.update(version=99), "version 99"),
    "format": (lambda h: h.update(format="other"), "not a compiled model"),
    "size": (lambda h: h["sizes"].update(nq=5), "damaged"),
    "missing size": (lambda h: h["sizes"].pop("nq"), "damaged"),
    "missing array": (lambda h: h["arrays"].pop("qpos0"), "damaged"),
    "another dtype": (lambda h: h["arrays"].update(qpos0=["|O", [1]]), "damaged"),
    "huge array": (lambda h: h["arrays"].update(qpos0=["<f8", [10**15]]), "damaged"),
    "negative array": (lambda h: h["arrays"].update(qpos0=["<f8", [-1]]), "damaged"),
    "no header": (lambda h: h.clear(), "damaged"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_wrong_header_is_refused(saved, tmp_path, name):
    change, message = CHANGES[name]
    with pytest.raises(jaxsim.ModelError, match=message):
        jaxsim.load_model(rewritten(saved[1], tmp_path / "m", change))


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_truncated_file_is_refused(saved, tmp_path, part):
    data = saved[1].read_bytes()
    (tmp_path / "m").write_bytes(data[: int(part * len(data))])
    with pytest.raises(jaxsim.ModelError, match="damaged"):
        jaxsim.load_model(tmp_path / "m")


def test_flipped_bytes_are_refused_or_harmless(saved, tmp_path):
    m, path = saved
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.integers(4, len(data), 60):
        (tmp_path / "m").write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        try:
            twin = read_archive(tmp_path / "m")
        except jaxsim.ModelError:
            continue
        assert twin.structure == m.structure


def test_model_with_callbacks_is_not_saved(saved, tmp_path):
    m = saved[0].replace(callbacks=jaxsim.Callbacks(passive=lambda m, d: d.qvel))
    with pytest.raises(jaxsim.UnsupportedError, match="callbacks"):
        jaxsim.save_model(m, tmp_path / "m")


def test_loaded_model_is_written_as_mjcf(saved, tmp_path):
    m = saved[0]
    text = jaxsim.save_mjcf(m, tmp_path / "m.xml")
    assert_equal(m, jaxsim.load_model(tmp_path / "m.xml", max_contacts=7))
    assert 'timestep="0.004"' in text and "solref" not in text


def test_changed_numbers_are_not_written_as_mjcf(saved):
    with pytest.raises(jaxsim.UnsupportedError, match="body_mass"):
        jaxsim.save_mjcf(saved[0].replace(body_mass=saved[0].body_mass * 2))


def test_restored_model_has_no_spec(saved):
    with pytest.raises(jaxsim.UnsupportedError, match="no spec"):
        jaxsim.save_mjcf(jaxsim.load_model(saved[1]))


def test_attached_model_is_written_with_full_keyframes():
    child = jaxsim.mjcf.read(TEXT)
    world = '<worldbody><body name="a"><freejoint/><geom size="1"/></body></worldbody>'
    parent = jaxsim.mjcf.read(f"<mujoco>{world}</mujoco>")
    parent.attach(child, prefix="x_")
    text = jaxsim.save_mjcf(parent)
    assert_models_equal(compile_spec(parent), mujoco.MjModel.from_xml_string(text))
    assert "NaN" not in text and "nan" not in text


def test_actuators_and_instances_of_plugins_are_written_flat():
    text = """<mujoco><extension><plugin plugin="mujoco.pid"/><plugin plugin="mujoco.elasticity.cable"/></extension>
    <worldbody><body><joint name="j"/><geom size=".1"/></body>
    <composite type="cable" curve="s" count="4 1 1" size="1" prefix="c"><geom type="capsule" size=".01"/>
    <plugin plugin="mujoco.elasticity.cable"><config key="twist" value="1e7"/></plugin></composite></worldbody>
    <actuator><plugin name="a" plugin="mujoco.pid" joint="j" actdim="1" gear="2"><config key="ki" value="2"/></plugin>
    </actuator></mujoco>"""
    flat = jaxsim.save_mjcf(jaxsim.mjcf.expand(jaxsim.mjcf.read(text)))
    ours, theirs = compile_spec(jaxsim.mjcf.read(flat)), mujoco.MjModel.from_xml_string(flat)
    assert_models_equal(ours, theirs)
    assert theirs.nplugin == 2 and theirs.actuator_actnum[0] == 1
