"""Eager calls of public functions run a compiled program; traced ones and the engine's own are as they are written."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.core.make_model import to_device
from jaxsim.engine.constants.totalmass import set_totalmass
from jaxsim.interface.public import public
from jaxsim.io.mujoco import host_model

XML = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 .09"><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0"/></body></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def model():
    m = jaxsim.load_model(XML)
    return m, jaxsim.make_data(m)


@pytest.fixture
def counted():
    """A public function and the list that grows with each trace of it."""
    traces = []

    @public(static=("kind",))
    def double(m, d, factor, kind="a"):
        """Positions times a factor."""
        traces.append(kind)
        return d.qpos * factor

    return double, traces


def test_eager_calls_compile_once_for_a_structure(model, counted):
    (m, d), (double, traces) = model, counted
    for factor in (2.0, 3.0, 4):
        double(m, d.replace(qpos=jnp.ones(1)), factor)
    again = jaxsim.load_model(XML)
    double(again, jaxsim.make_data(again), 2.0)
    assert len(traces) == 2  # floats, and an integer
    double(m, d, 2.0, kind="b")
    assert traces[2:] == ["b"]


def test_calls_while_tracing_run_the_function_itself(model, counted):
    (m, d), (double, traces) = model, counted
    program = jax.jit(double)
    program(m, d, 2.0)
    program(m, d, 3.0)
    assert len(traces) == 1
    assert "jit" not in str(jax.make_jaxpr(double)(m, d, 2.0))


def test_functions_that_cannot_be_cached_run_as_they_are(model, counted):
    (m, d), (double, traces) = model, counted
    for _ in range(2):
        double(m, d, 1.0, kind=["not", "hashable"])
    assert len(traces) == 2


def test_eager_results_are_those_of_a_jitted_call(model):
    m, d = model
    eager, jitted = jaxsim.step(m, d), jaxsim.jit(jaxsim.step)(m, d)
    for x, y in zip(jax.tree.leaves(eager), jax.tree.leaves(jitted), strict=True):
        np.testing.assert_array_equal(x, y)


def test_eager_transformations_work(model):
    m, d = model
    worlds = jax.tree.map(lambda x: jnp.stack([x, x]), d)
    assert jax.vmap(jaxsim.step, in_axes=(None, 0))(m, worlds).qpos.shape == (2, 1)
    value, derivative = jax.value_and_grad(lambda q: jaxsim.kinematics(m, d.replace(qpos=q)).geom_xpos[1, 2])(d.qpos)
    np.testing.assert_allclose([value, derivative[0]], [0.09, -0.1], atol=1e-12)
    _, moved = jax.jvp(lambda q: jaxsim.kinematics(m, d.replace(qpos=q)).xpos.sum(), (d.qpos,), (jnp.ones(1),))
    assert moved == 0
    jax.grad(lambda x: x * jaxsim.kinematics(m, d).xpos.sum())(1.0)  # of a constant of the transformation
    jax.grad(lambda mass: set_totalmass(m, mass).body_mass.sum())(1.0)


def test_models_on_the_host_are_not_compiled(counted):
    mujoco = pytest.importorskip("mujoco")
    double, traces = counted
    m = host_model(mujoco.MjModel.from_xml_string(XML))
    d = jaxsim.make_data(m)
    assert isinstance(double(m, d, 2.0), np.ndarray)
    double(m, d, 2.0)
    assert len(traces) == 2
    assert isinstance(to_device(m).qpos0, jax.Array)


def test_an_error_leaves_the_checks_on(model):
    m, d = model

    @public
    def broken(m, d):
        """Raises."""
        raise RuntimeError("inside")

    for _ in range(2):
        with pytest.raises(RuntimeError, match="inside"):
            broken(m, d)
        with pytest.raises(ValueError, match="qpos has shape"):
            broken(m, d.replace(qpos=0.5))


@pytest.mark.parametrize("half", [jnp.bfloat16, jnp.float16])
def test_half_precision_is_refused(model, half):
    m, d = model
    cast = lambda tree: jax.tree.map(lambda x: x.astype(half) if x.dtype == d.qpos.dtype else x, tree)  # noqa: E731
    with pytest.raises(TypeError, match=f"step: time is {half.__name__}; jaxsim computes in float32 or"):
        jaxsim.step(m, cast(d))
    with pytest.raises(TypeError, match=f"step: m.qpos0 is {half.__name__}; jaxsim computes in float32 or"):
        jax.jit(jaxsim.step)(cast(m), cast(d))


def test_model_and_data_have_one_precision(model):
    m, d = model
    single = lambda tree: jax.tree.map(lambda x: x.astype(jnp.float32) if x.dtype.kind == "f" else x, tree)  # noqa: E731
    assert jaxsim.step(single(m), single(d)).qpos.dtype == jnp.float32
    with pytest.raises(TypeError, match="step: time is float32, and the model's numbers are float64: cast the data"):
        jaxsim.step(m, single(d))
    with pytest.raises(TypeError, match="step: time is float64, and the model's numbers are float32: cast the data"):
        jax.jit(jaxsim.step)(single(m), d)
    mixed = dataclasses.replace(m, body_mass=m.body_mass.astype(jnp.float32))
    with pytest.raises(TypeError, match=r"step: m\.body_mass is float32, and m.qpos0 float64: give all numbers"):
        jaxsim.step(mixed, d)


def test_derivatives_by_whole_data_need_allow_int(model):
    m, d = model
    slope = jax.grad(lambda d: jaxsim.kinematics(m, d).geom_xpos[1, 2], allow_int=True)(d)
    np.testing.assert_allclose(slope.qpos, [-0.1], atol=1e-12)
    assert slope.ncon.dtype == jax.dtypes.float0
