"""Constraint rows as machine code against their plain form, which `test_make.py` compares with MuJoCo."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.core.layout import make_layout
from jaxsim.engine.constraint.make import make_constraint, reference_constraint
from jaxsim.native import compiler as native
from tests.engine.collision.test_in_sequence import in_plain_form
from tests.engine.constraint.test_make import CASES, EQUALITY, SCENE, SOLREFFRICTION, WELD
from validation.oracle import oracle_data, settled

pytestmark = pytest.mark.skipif(native.c_compiler() is None, reason="no C compiler (cc) to compare with XLA")
MANY = """<mujoco><option cone="{cone}"/><worldbody><geom type="plane" size="5 5 1"/>
<replicate count="40" offset=".3 0 0" sep="-"><body name="b" pos="0 0 .09"><freejoint/>
  <geom size=".1" condim="{condim}" friction=".5 .01 .002"/>
  <body name="c" pos="0 0 .15"><joint name="j" axis="0 1 0" range="-.2 .2" limited="true" frictionloss=".1"/>
    <geom size=".06"/></body></body></replicate></worldbody>
<equality><joint joint1="j-00" joint2="j-01" polycoef="0 1 0 0 0"/><weld body1="b-02" body2="b-03"/></equality>
</mujoco>"""
SCENES = {name: SCENE for name in CASES} | {
    "sparse": MANY.format(cone="pyramidal", condim=3),
    "sparse elliptic": MANY.format(cone="elliptic", condim=6),
}


def scene(name):
    if name not in CASES:
        return SCENES[name]
    cone, impratio, solver, condim, equality = CASES[name]
    given = {"cone": cone, "impratio": impratio, "solver": solver, "condim": condim, "equality": equality}
    return SCENE.format(**given, solreffriction=SOLREFFRICTION.get(name, "0 0"))


@functools.cache
def of_mujoco(xml):
    """MuJoCo's model, and its data with contacts after some steps."""
    return settled(xml, steps=120, noise=0.3)


def worlds(xml, **capacities):
    """A model, and two worlds at MuJoCo's positions and contacts that differ in velocity."""
    model, data = of_mujoco(xml)
    m = jaxsim.from_mujoco(model, **capacities)
    d = oracle_data(m, jaxsim.make_data(m), data)
    return m, jax.tree.map(lambda x: np.stack([x, x]), d).replace(qvel=np.stack([data.qvel, 0.5 + data.qvel]))


def rows(m, d):
    return jax.jit(jax.vmap(lambda d: reference_constraint(m, make_constraint(m, d))))(d)


def both_forms(m, d, monkeypatch):
    ours = rows(m, d)
    in_plain_form(monkeypatch)
    return ours, rows(m, d)


def assert_equal(ours, plain):
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9), ours, plain)


@pytest.mark.parametrize("name", SCENES)
def test_rows_are_those_of_the_plain_form(name, monkeypatch):
    m, d = worlds(scene(name))
    assert make_layout(m).sparse == (name not in CASES)
    ours, plain = both_forms(m, d, monkeypatch)
    assert np.asarray(ours.ncon).min() > 0 and np.asarray(ours.nefc).min() > 10
    assert_equal(ours, plain)


@pytest.mark.parametrize("flag", ["equality", "frictionloss", "limit", "refsafe", "constraint"])
def test_rows_that_flags_leave_out_are_those_of_the_plain_form(flag, monkeypatch):
    xml = SCENE.format(
        cone="elliptic", impratio=2, solver="Newton", condim=3, equality=EQUALITY + WELD, solreffriction="0 0"
    ).replace('<flag island="disable"/>', f'<flag {flag}="disable"/>')
    assert_equal(*both_forms(*worlds(xml), monkeypatch))


def test_rows_beyond_the_capacity_are_dropped_as_in_the_plain_form(monkeypatch):
    xml = scene("pyramidal")
    ours, plain = both_forms(*worlds(xml, max_constraints=of_mujoco(xml)[1].nefc - 3), monkeypatch)
    assert np.asarray(ours.overflow_constraints).min() > 0
    assert_equal(ours, plain)


def test_worlds_may_differ_in_their_model(monkeypatch):
    m, d = worlds(scene("elliptic_rolling_equality"))
    scale = np.array([0.7, 1.3])
    models = jax.vmap(lambda s: m.replace(jnt_solref=s * m.jnt_solref, dof_invweight0=s * m.dof_invweight0))(scale)
    both = jax.jit(jax.vmap(make_constraint))(models, d)
    for i in range(2):
        alone = jax.jit(make_constraint)(*jax.tree.map(lambda x, i=i: x[i], (models, d)))
        np.testing.assert_array_equal(both.efc.D[i], alone.efc.D)
    in_plain_form(monkeypatch)
    assert_equal(both, jax.jit(jax.vmap(make_constraint))(models, d))


@pytest.mark.parametrize("contacts", [True, False])
def test_derivatives_are_those_of_the_plain_form(contacts, monkeypatch):
    xml = scene("pyramidal") if contacts else scene("pyramidal").replace("<geom ", '<geom contype="0" ')
    m, d = worlds(xml.replace("<contact>", "<!--").replace("</contact>", "-->") if not contacts else xml)
    one = jax.tree.map(lambda x: jnp.asarray(x[0]), d)

    def total(qpos, qvel, solref):
        changed = m.replace(jnt_solref=solref)
        efc = reference_constraint(changed, make_constraint(changed, one.replace(qpos=qpos, qvel=qvel))).efc
        return jnp.sum(jnp.sin(efc.aref)) + jnp.sum(efc.D)

    ours = jax.jit(jax.grad(total, argnums=(0, 1, 2)))(one.qpos, one.qvel, m.jnt_solref)
    in_plain_form(monkeypatch)
    plain = jax.jit(jax.grad(total, argnums=(0, 1, 2)))(one.qpos, one.qvel, m.jnt_solref)
    assert max(float(jnp.abs(x).max()) for x in ours) > 0.01
    assert_equal(ours, plain)
