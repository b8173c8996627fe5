"""What the program of a step is made of: types that meet without promotion, structure apart from numbers, one trace."""

import functools

import chex
import jax
import jax.extend
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.step.forward import step_by_stages
from validation.models import dynamics, everything, features

WALKER = """<mujoco><option gravity="0 0 -9.8"/><worldbody><geom type="plane" size="1 1 1" friction=".83"/>
  <body pos="0 0 .2731"><freejoint/><geom type="box" size=".1231 .2 .0517"/>
    <body pos=".1231 0 0"><joint name="knee" axis="0 1 .123" range="-40 33" damping=".1371"/>
      <geom type="capsule" fromto="0 0 0 .1123 .05 -.213" size=".0431"/></body></body></worldbody>
  <actuator><motor joint="knee" gear="3.217"/></actuator><sensor><jointpos joint="knee"/></sensor></mujoco>"""
TEXTS = {
    "walker": WALKER,
    "everything": everything.BASE,
    "noslip": everything.BASE.replace('cone="elliptic"', 'cone="pyramidal" solver="PGS" noslip_iterations="3"'),
    "tendons": dynamics.TENDONS,
    "transmissions": dynamics.TRANSMISSIONS,
    "delays": features.DELAYS.format(integrator="implicitfast"),
    "rays": features.RAYS,
}


def step_and_gradient(m, d):
    def of(qpos):
        new = jaxsim.step(m, d.replace(qpos=qpos))
        return new.qvel.sum(), new

    return jax.value_and_grad(of, has_aux=True)(d.qpos)


OFTEN = (("walker", False), ("everything", True))  # the others: `pytest -m slow`
ALL = [(name, x64) for name in TEXTS for x64 in (False, True)]


@pytest.mark.parametrize(
    ("name", "x64"), [case if case in OFTEN else pytest.param(*case, marks=pytest.mark.slow) for case in ALL]
)
def test_no_function_relies_on_promotion_of_types(name, x64):
    """A flag times a number, or an integer plus one, says its type."""
    with jax.enable_x64(x64), jax.numpy_dtype_promotion("strict"):
        m = jaxsim.load_model(TEXTS[name])
        d = jaxsim.make_data(m)
        for function in (step_and_gradient, jaxsim.inverse):
            out = jax.eval_shape(function, m, d)
            kinds = {x.dtype for x in jax.tree.leaves(out) if np.issubdtype(x.dtype, np.floating)}
            assert kinds == {np.dtype(np.float64 if x64 else np.float32)}


@functools.cache
def base():
    m = jaxsim.load_model(WALKER)
    return m, jaxsim.make_data(m)


def test_models_that_differ_in_numbers_share_one_trace_of_a_step():
    """Files loaded twice, other numbers in the file, other numbers put in, and the state after a step."""
    chex.clear_trace_counter()
    step = jax.jit(chex.assert_max_traces(jaxsim.step, n=1))
    m, d = base()
    after = step.eval_shape(m, d)
    again = jaxsim.load_model(WALKER)
    step.eval_shape(again, jaxsim.make_data(again))
    light = jaxsim.load_model(WALKER.replace("0 0 -9.8", "0 0 -3").replace(".1371", ".2"))
    assert light.opt.gravity[2] != m.opt.gravity[2] and light.dof_damping[6] != m.dof_damping[6]
    step.eval_shape(light, after)
    step.eval_shape(m.replace(body_mass=2 * m.body_mass), after)
    with pytest.raises(AssertionError, match="traced > 1 times"):
        step.eval_shape(jaxsim.load_model(WALKER.replace("<freejoint/>", '<joint type="ball"/>')), d)


def constants(closed):
    """Every constant and literal of a closed jaxpr and of those inside it."""
    yield from closed.consts
    for equation in closed.jaxpr.eqns:
        yield from (atom.val for atom in equation.invars if hasattr(atom, "val"))
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=is_jaxpr):
            if isinstance(inner, jax.extend.core.Jaxpr):
                inner = jax.extend.core.ClosedJaxpr(inner, ())
            if isinstance(inner, jax.extend.core.ClosedJaxpr):
                yield from constants(inner)


def is_jaxpr(x):
    return isinstance(x, jax.extend.core.Jaxpr | jax.extend.core.ClosedJaxpr)


def test_no_number_of_the_model_is_a_constant_of_the_program():
    m, d = base()
    program = jax.make_jaxpr(step_by_stages)(m, d)
    found = [np.asarray(x) for x in constants(program)]
    floats = {float(v) for x in found if x.dtype.kind == "f" for v in x.ravel()}
    numbers = np.concatenate([np.ravel(x).astype(float) for x in jax.tree.leaves((m, d))])
    odd = set(numbers[np.round(numbers, 5) != numbers].tolist())
    assert len(floats) > 10 and len(odd) > 30
    assert not floats & odd


def test_structure_is_never_a_tracer_and_numbers_always_are():
    m, d = base()

    def look(m, d):
        numbers = jax.tree.leaves((m, d))
        assert all(isinstance(x, jax.core.Tracer) for x in numbers)
        static = [getattr(m.structure, name) for name in ("jnt_type", "geom_type", "body_parentid")]
        assert all(type(x) is np.ndarray for x in static) and type(m.nv) is int
        return d.qpos

    jax.eval_shape(look, m, d)
