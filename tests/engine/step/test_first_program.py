"""A GPU of a kind on which nothing has run: its programs are compared with XLA's before they are used."""

import warnings

import jax
import jax.numpy as jnp
import pytest

import jaxsim
from jaxsim.core.types import Backend
from jaxsim.engine.step import first_program
from jaxsim.native import function, trust
from jaxsim.native.jaxpr import GPU

BALL = '<mujoco><worldbody><body pos="0 0 1"><freejoint/><geom size=".1"/></body></worldbody></mujoco>'


@pytest.fixture
def new_gpu(monkeypatch, tmp_path):
    """JAX runs on a GPU that nobody has seen, as far as the record knows; its programs are those of the CPU."""
    monkeypatch.setattr(trust, "kind", lambda: "A New GPU")
    monkeypatch.setattr(trust.compiler, "folder", lambda name="native": tmp_path)


@pytest.fixture
def wrong_programs(monkeypatch):
    right = first_program.step

    def step(m, d):
        d = right(m, d)
        return d if m.opt.backend == Backend.XLA else d.replace(qvel=d.qvel.at[2].add(0.1))

    monkeypatch.setattr(first_program, "step", step)


def test_the_first_state_on_a_new_gpu_compares_once(new_gpu, capsys):
    m = jaxsim.load_model(BALL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jaxsim.make_data(m)
        jaxsim.make_data(m)
    assert capsys.readouterr().err.count("A New GPU") == 1
    assert trust.fault() is None


def test_programs_that_differ_are_reported_and_not_used(new_gpu, wrong_programs):
    m = jaxsim.load_model(BALL)
    with pytest.warns(RuntimeWarning, match=r"wrong on A New GPU: a step of 8 random states differs by 0\.\d+ "):
        jaxsim.make_data(m)
    doubled = function.NativeFunction(
        name="doubled",
        plain=lambda plan, x: [2 * x],
        results=lambda plan, operands: operands,
        programs={GPU: lambda plan, worlds, count, operands: [jnp.full_like(operands[0], jnp.nan)[None]]},
        label=lambda plan: "doubled",
    )
    with pytest.warns(RuntimeWarning, match="doubled runs by XLA instead.* differs by"):
        program = jax.export.export(jax.jit(lambda x: doubled(None, x)), platforms=["cuda"])(jnp.ones(3))
    assert "0x7FC00000" not in program.mlir_module()  # the NaN of the native program


def test_a_known_gpu_a_chosen_backend_and_a_traced_state_are_not_compared(new_gpu, wrong_programs, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m = jaxsim.load_model(BALL)
        jax.jit(jaxsim.make_data)(m)
        jaxsim.make_data(m.replace(opt=m.opt.replace(backend=Backend.NATIVE)))
        monkeypatch.setattr(trust, "KNOWN", ("A New GPU",))
        jaxsim.make_data(m)
