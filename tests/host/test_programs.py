"""Programs compiled ahead of time and kept for later processes."""

import os
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.host import programs
from jaxsim.native import compiler

needs_compiler = pytest.mark.skipif(compiler.c_compiler() is None, reason="no C compiler (cc), whose code this runs")
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
    phases = ["tracing", "lowering and C", "XLA"]  # XLA compiles no program that is one C function
    assert [phase for phase, _ in first.phases] == phases[: 3 if compiler.c_compiler() is None else 2]
    d = jaxsim.make_data(m).replace(qvel=jnp.ones(1))
    one, two = first(m, d), second(m, d)
    assert one == two == jax.jit(jaxsim.step)(m, d)


@needs_compiler
def test_a_step_of_one_world_gives_arrays_of_its_own_that_cannot_be_written_to(m):
    step, u = jaxsim.compile(m), np.ones(1, np.float32)
    first = step(m, jaxsim.make_data(m))
    d = step(m, first.replace(ctrl=u))
    u[0] = 5
    assert d.ctrl == 1 and type(d.qpos) is np.ndarray
    for x, y in zip(jax.tree.leaves(d), jax.tree.leaves(first), strict=True):
        assert not x.flags.writeable and not np.shares_memory(x, y)


def test_states_of_any_order_and_origin_go_in(m):
    """Results of the last call, of an earlier one, arrays of JAX, parts of results and numbers of Python."""
    step, wanted = jaxsim.compile(m), jax.jit(jaxsim.step)
    d = jaxsim.make_data(m).replace(qpos=[0.3], qvel=[2.0])
    first = step(m, d)
    second = step(m, first)
    states = [first, d, second, second, first.replace(qpos=second.qpos, qvel=first.qacc[::-1])]
    states += [jax.tree.map(jnp.asarray, first), jax.tree.map(lambda x: np.array(x), second)]
    for state in states:
        for x, y in zip(*map(jax.tree.leaves, (step(m, state), wanted(m, state))), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def test_an_array_that_its_owner_writes_to_is_read_anew(m):
    d = jax.tree.map(np.array, jaxsim.make_data(m))
    step = jaxsim.compile(m, None, moved)
    assert step(m, d).qpos == 1
    d.qpos[0] = 3
    assert step(m, d).qpos == 4


def test_traced_arguments_get_the_function_itself(m):
    step = jaxsim.compile(m)
    d = step(m, jaxsim.make_data(m))

    def speed(u):
        return step(m, d.replace(ctrl=u)).qvel[0]

    wanted = jax.grad(lambda u: jaxsim.step(m, d.replace(ctrl=u)).qvel[0])(jnp.ones(1))
    np.testing.assert_allclose(jax.jit(jax.grad(speed))(jnp.ones(1)), wanted, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(speed)(jnp.ones((2, 1))), np.full(2, speed(jnp.ones(1))), rtol=1e-6)
    heavier = jax.vmap(lambda mass: step(m.replace(body_mass=mass), d).qacc)(jnp.stack([m.body_mass] * 2))
    assert heavier.shape == (2, 1)


@pytest.mark.parametrize(("change", "message"), [
    ({"qpos": np.zeros(3)}, r"qpos has shape \(3,\), wanted \(1,\)"),
    ({"qvel": np.ones(1, int)}, "qvel holds integers"),
])  # fmt: skip
def test_a_field_of_wrong_shape_or_kind_is_named(m, change, message):
    d = jaxsim.make_data(m)
    values = d.values() | change
    with pytest.raises((TypeError, ValueError), match=message):
        jaxsim.compile(m)(m, jaxsim.core.struct.build(jaxsim.Data, values))


def test_other_numbers_go_through_the_same_program(m):
    heavier = m.replace(opt=m.opt.replace(gravity=[0, 0, -20]))
    step = jaxsim.compile(heavier)
    assert step.loaded
    d = jaxsim.make_data(m)
    np.testing.assert_allclose(step(heavier, d).qacc, 2.0387359 * step(m, d).qacc, rtol=1e-5)


def test_results_that_are_arguments_are_handed_on_each_once(m):
    worlds = jaxsim.make_data(m, nworld=2).replace(ctrl=[[0.5], [0.6]])
    after = jaxsim.compile(m, 2, moved)(m, worlds)
    assert after.ctrl is worlds.ctrl and after.qpos[1] == 1
    buffers = [id(x) for x in jax.tree.leaves(after)]
    assert len(buffers) == len(set(buffers))


def test_a_model_with_an_axis_of_its_own_is_refused(m):
    models = m.replace(body_mass=jnp.stack([m.body_mass, m.body_mass]))
    with pytest.raises(ValueError, match=r"shape \(2, 2\), wanted \(2,\)"):
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


def test_a_compiled_function_can_be_sent_to_another_process(m):
    gear, d = jnp.full(1, 2.0), jaxsim.make_data(m).replace(ctrl=[3.0])
    for args, step in (((), jaxsim.compile(m)), ((gear,), jaxsim.compile(m, None, torque, gear, name="torque"))):
        other = pickle.loads(pickle.dumps(step))
        assert other.loaded and other(m, d, *args) == step(m, d, *args)


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
