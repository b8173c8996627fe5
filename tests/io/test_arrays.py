"""Worlds and models as named arrays: written and read by NumPy, orbax and flax, leaves without entries included."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim

XML = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .09"><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>"""


@pytest.fixture(scope="module")
def model():
    m = jaxsim.load_model(XML)
    return m, jaxsim.step(m, jaxsim.make_data(m))


@pytest.fixture(params=["one world", "a batch"])
def saved(model, request):
    m, d = model
    return m, d if request.param == "one world" else jax.tree.map(lambda x: jnp.stack([x, x]), d)


def npz(arrays, path):
    np.savez(path / "world.npz", **arrays)
    with np.load(path / "world.npz") as file:
        return dict(file)


def orbax(arrays, path):
    checkpoint = pytest.importorskip("orbax.checkpoint")
    with checkpoint.StandardCheckpointer() as writer:
        writer.save(path / "world", arrays)
        writer.wait_until_finished()
        return writer.restore(path / "world")


def flax(arrays, path):
    serialization = pytest.importorskip("flax.serialization")
    return serialization.msgpack_restore(serialization.to_bytes(arrays))


@pytest.mark.parametrize("through", [npz, orbax, flax])
def test_worlds_come_back_as_they_were(saved, through, tmp_path):
    m, d = saved
    assert d.act.size == 0 and "act" not in jaxsim.to_arrays(d)
    again = jaxsim.from_arrays(jaxsim.make_data(m), through(jaxsim.to_arrays(d), tmp_path))
    assert again == d and jax.tree.structure(again) == jax.tree.structure(d)
    assert again.act.shape == d.act.shape and again.contact.dist.shape == d.contact.dist.shape


def test_models_have_arrays_too(model):
    m, _ = model
    heavy = m.replace(body_mass=2 * m.body_mass, opt=m.opt.replace(timestep=0.01))
    arrays = jaxsim.to_arrays(heavy)
    assert arrays["opt.timestep"] == 0.01
    assert jaxsim.from_arrays(m, arrays) == heavy != m


def test_a_tree_of_worlds_is_named_by_its_keys(model):
    _, d = model
    assert {"a.qpos", "b.1"} <= set(jaxsim.to_arrays({"a": d, "b": (1, 2)}))


def test_arrays_of_another_model_are_refused(model):
    m, d = model
    arrays = jaxsim.to_arrays(d)
    with pytest.raises(ValueError, match=r"qpos has shape \(3,\), wanted \(7,\): are these arrays of another model"):
        jaxsim.from_arrays(d, {**arrays, "qpos": np.zeros(3)})
    with pytest.raises(ValueError, match="no array 'qposs'; did you mean 'qpos'"):
        jaxsim.from_arrays(d, {**arrays, "qposs": np.zeros(7)})
    with pytest.raises(ValueError, match="arrays are missing: qvel"):
        jaxsim.from_arrays(d, {name: x for name, x in arrays.items() if name != "qvel"})
    with pytest.raises(ValueError, match="different leading axes"):
        jaxsim.from_arrays(d, {**arrays, "qvel": np.zeros((2, 6))})
    assert m is not None
