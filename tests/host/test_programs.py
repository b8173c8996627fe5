"""Programs compiled ahead of time and kept for later processes."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.host import programs
from jaxsim.native import compiler

XML = """
<mujoco>
  <worldbody>
    <body><joint name="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/></body>
  </worldbody>
  <actuator><motor joint="hinge"/></actuator>
</mujoco>
"""


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(XML)


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory):
    """A folder of programs of its own."""
    path, of = tmp_path_factory.mktemp("cache"), compiler.folder
    compiler.folder = lambda name="native": path if name == programs.FOLDER else of(name)
    yield path
    compiler.folder = of


def torque(m, d, gear):
    return {"force": gear * m.actuator_gear[:, 0] * d.ctrl, "time": d.time}


def moved(m, d):
    return d.replace(qpos=d.qpos + 1)


def test_a_program_is_loaded_by_the_second_that_wants_it(m):
    first, second = jaxsim.compile(m), jaxsim.compile(m)
    assert (first.loaded, second.loaded) == (False, True)
    assert [phase for phase, _ in first.phases] == ["tracing", "lowering and C", "XLA"]
    d = jaxsim.make_data(m).replace(qvel=jnp.ones(1))
    one, two = first(m, d), second(m, d)
    assert one == two == jax.jit(jaxsim.step)(m, d)


def test_other_numbers_go_through_the_same_program(m):
    heavier = m.replace(opt=m.opt.replace(gravity=[0, 0, -20]))
    step = jaxsim.compile(heavier)
    assert step.loaded
    d = jaxsim.make_data(m)
    np.testing.assert_allclose(step(heavier, d).qacc, 2.0387359 * step(m, d).qacc, rtol=1e-5)


def test_results_that_are_arguments_are_handed_on_each_once(m):
    d = jaxsim.make_data(m).replace(ctrl=[0.5])
    after = jaxsim.compile(m, None, moved)(m, d)
    assert after.ctrl is d.ctrl and after.qpos == 1
    buffers = [id(x) for x in jax.tree.leaves(after)]
    assert len(buffers) == len(set(buffers))


def test_a_model_with_an_axis_of_its_own_is_refused(m):
    models = m.replace(body_mass=jnp.stack([m.body_mass, m.body_mass]))
    with pytest.raises(TypeError, match=r"shape \(2, 2\), wanted \(2,\)"):
        jaxsim.compile(m)(models, jaxsim.make_data(m))


def test_another_structure_is_refused(m):
    other = m.replace(opt=m.opt.replace(integrator="RK4"))
    step = jaxsim.compile(m)
    with pytest.raises(TypeError, match="another structure"):
        step(other, jaxsim.make_data(other))


def test_a_batch_has_an_axis_of_worlds(m):
    step = jaxsim.compile(m, nworld=2)
    worlds = jaxsim.make_data(m, nworld=2)
    assert step(m, worlds).qpos.shape == (2, 1)


def test_a_function_of_the_user_is_kept_under_a_name_only(m):
    gear, d = jnp.full(1, 2.0), jaxsim.make_data(m).replace(ctrl=[3.0])
    assert not any(jaxsim.compile(m, None, torque, gear).loaded for _ in range(2))
    kept = [jaxsim.compile(m, None, torque, gear, name="torque") for _ in range(2)]
    assert [x.loaded for x in kept] == [False, True]
    assert kept[1](m, d, gear) == {"force": 6.0, "time": 0.0}


def test_models_with_functions_of_the_user_are_not_kept(m):
    pushed = m.replace(callbacks=jaxsim.Callbacks(passive=lambda m, d: jnp.ones(1)))
    assert not any(jaxsim.compile(pushed).loaded for _ in range(2))


def test_a_damaged_program_is_compiled_anew(m, folder):
    jaxsim.compile(m)
    for path in folder.glob("*.program"):
        path.write_bytes(path.read_bytes()[:1000])
    assert not jaxsim.compile(m).loaded
    assert jaxsim.compile(m).loaded


def test_progress_says_what_is_done_and_how_long_it_took_last_time(m, capsys, folder):
    for path in folder.glob("*.program"):
        path.unlink()
    jaxsim.compile(m, progress=True)
    said = capsys.readouterr().err
    assert "MuJoCo Model, one world, step: tracing (" in said and "s last time) ..." in said


def test_nothing_is_said_where_nobody_looks(m, capsys):
    jaxsim.compile(m)
    assert capsys.readouterr().err == ""


def test_a_program_that_is_loaded_counts_as_used(m, folder):
    jaxsim.compile(m)
    file = max(folder.glob("*.program"), key=lambda x: x.stat().st_mtime)
    os.utime(file, (0, 0))
    assert jaxsim.compile(m).loaded and file.stat().st_mtime > 1e9
