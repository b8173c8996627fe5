"""Constraint rows and their solution against the oracle, from the same positions, velocities and smooth forces."""

import functools

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.constraint.make import make_constraint, reference_constraint
from jaxsim.engine.constraint.solve import fwd_constraint
from validation.oracle import dense_jacobian, oracle_data, settled

# Every kind of row: contacts of any dimension, both kinds of limit, friction in dofs and tendons, all equalities.
SCENE = """
<mujoco><option cone="{cone}" impratio="{impratio}" tolerance="1e-15" iterations="1000" solver="{solver}">
  <flag island="disable"/></option>
<worldbody>
  <geom name="floor" type="plane" size="5 5 1" condim="{condim}"/>
  <body pos="0 0 .3"><freejoint/><geom type="box" size=".1 .2 .05" friction=".6 .02 .01"/>
    <body pos=".1 .2 0">
      <joint name="j1" axis="0 1 0" range="-20 20" frictionloss=".1" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".04"/>
      <body pos=".3 0 0"><joint type="ball" range="0 30" damping=".1"/>
        <geom type="capsule" fromto="0 0 0 .2 0 -.2" size=".04"/><site name="s1" pos=".2 0 -.2"/></body></body></body>
  <body pos="1 0 .3"><freejoint/><geom name="ball" size=".1"/></body>
  <body name="w" pos="-1 0 .5"><joint name="j2" axis="1 0 0" pos="0 0 .3"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".05"/>
    <body name="w2" pos="0 0 -.35"><joint name="j3" axis="0 1 0" range="-10 10"/><geom size=".05"/></body></body>
  <body name="f" pos="-1 .5 .5"><freejoint/><geom type="box" size=".05 .05 .05"/>
    <site name="s2" euler="10 20 30"/></body>
</worldbody>
<tendon>
  <fixed name="t" limited="true" range="-.1 .1" frictionloss=".2">
    <joint joint="j2" coef="1"/><joint joint="j3" coef="-.5"/></fixed>
  <fixed name="t2"><joint joint="j1" coef="1"/></fixed>
</tendon>
<contact><pair geom1="floor" geom2="ball" condim="{condim}" margin=".02" gap=".004" solimp=".8 .95 .03 .4 3"
  solreffriction="{solreffriction}"/></contact>
<equality>{equality}</equality></mujoco>
"""
EQUALITY = """
<connect body1="w" body2="f" anchor="0.1 0 0.1"/><joint joint1="j1" joint2="j2" polycoef="0.1 .5 .2 0 .1"/>
<joint joint1="j3" polycoef=".05 0 0 0 0"/><tendon tendon1="t" tendon2="t2" polycoef="0 1 0 0 0"/>
"""
WELD = '<weld body1="w2" body2="f" torquescale=".7"/>'
SITES = '<weld site1="s1" site2="s2"/><connect site1="s1" site2="s2"/>'
CASES = {
    "pyramidal": ("pyramidal", 1, "Newton", 3, ""),
    "elliptic": ("elliptic", 1, "Newton", 3, ""),
    "elliptic_rolling_equality": ("elliptic", 5, "Newton", 6, EQUALITY),
    "pyramidal_torsion_weld": ("pyramidal", 2, "Newton", 4, WELD),
    "frictionless_sites": ("pyramidal", 1, "Newton", 1, SITES),
    "conjugate_gradient": ("elliptic", 1, "CG", 3, ""),
    "gauss_seidel": ("pyramidal", 1, "PGS", 3, ""),
}
SOLREFFRICTION = {"elliptic": ".01 0", "elliptic_rolling_equality": "-200 -20"}  # mixed signs are ignored


@functools.cache
def solved(name):
    cone, impratio, solver, condim, equality = CASES[name]
    reffriction = SOLREFFRICTION.get(name, "0 0")
    xml = SCENE.format(
        cone=cone, impratio=impratio, solver=solver, condim=condim, equality=equality, solreffriction=reffriction
    )
    model, data = settled(xml, steps=120, noise=1.0)
    m = jaxsim.from_mujoco(model)

    def stages(m, d):
        return fwd_constraint(m, reference_constraint(m, make_constraint(m, d)))

    return model, data, jax.jit(stages)(m, oracle_data(m, jaxsim.make_data(m), data))


@pytest.mark.parametrize("name", CASES)
def test_rows_equal_the_oracles(name):
    model, data, d = solved(name)
    n = data.nefc
    assert data.ncon > 0 and (int(d.ne), int(d.nf), int(d.nl), int(d.nefc)) == (data.ne, data.nf, data.nl, n)
    np.testing.assert_allclose(d.efc_J[:n], dense_jacobian(model, data), atol=1e-12)
    for field in ("type", "id", "pos", "margin", "frictionloss", "diagApprox", "KBIP", "R", "D", "vel", "aref", "b"):
        ours, oracles = getattr(d, f"efc_{field}")[:n], getattr(data, f"efc_{field}")
        np.testing.assert_allclose(ours, oracles, rtol=1e-9, atol=1e-9, err_msg=field)
    np.testing.assert_array_equal(d.contact.efc_address[: data.ncon], data.contact.efc_address)
    np.testing.assert_allclose(d.contact.mu[: data.ncon], data.contact.mu, rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_solution_equals_the_oracles(name):
    _, data, d = solved(name)
    n = data.nefc
    scale = np.abs(data.qacc).max()
    np.testing.assert_allclose(d.qacc, data.qacc, rtol=1e-6, atol=1e-7 * scale)
    np.testing.assert_allclose(d.qfrc_constraint, data.qfrc_constraint, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(d.efc_force[:n], data.efc_force, rtol=1e-5, atol=1e-5)
    pushing = np.abs(data.efc_force) > 1e-5  # at zero force the state of a row is a tie
    np.testing.assert_array_equal(np.asarray(d.efc_state[:n])[pushing], data.efc_state[pushing])


def test_rows_beyond_capacity_are_dropped_whole_and_counted():
    model, data, _ = solved("pyramidal")
    m = jaxsim.from_mujoco(model, max_constraints=data.nefc - 3)
    d = jax.jit(make_constraint)(m, oracle_data(m, jaxsim.make_data(m), data))
    assert int(d.maxuse_efc) == data.nefc
    assert int(d.nefc) == data.nefc - 4 and int(d.overflow_constraints) == 4
    assert int(d.warning.number[2]) == 1


def test_packed_fields_work_on_a_batch():
    _, _, d = solved("pyramidal")
    batch = jax.tree.map(lambda x: np.stack([x, x]), d)
    np.testing.assert_array_equal(batch.efc_force[1], d.efc_force)
