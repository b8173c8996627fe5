"""Large models: rows by bodies and columns give what dense rows give, in value and in derivative."""

import functools

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim.core import layout
from jaxsim.engine.solver import sparse
from jaxsim.native import compiler as native

BODY = """<body name="b{0}" pos="{1} 0 .09"><freejoint/><geom type="box" size=".1 .1 .1" condim="{2}" mass="{3}"/>
<body name="c{0}" pos=".1 0 .1"><joint name="j{0}" axis="0 1 0" limited="true" range="-.1 .2" frictionloss=".1"/>
<geom type="capsule" size=".04" fromto="0 0 0 .1 0 0"/><body name="e{0}" pos=".1 0 0"><joint name="k{0}" type="ball"
limited="true" range="0 .1"/><geom size=".05" pos=".03 0 0"/></body></body></body>"""
XML = """<mujoco><option cone="{0}" tolerance="1e-14" ls_tolerance="1e-10" iterations="100"/><worldbody>
<geom type="plane" size="3 3 .1"/>{1}</worldbody>
<equality><connect body1="b0" body2="c1" anchor=".3 0 0"/><weld body1="b2" body2="b3"/>
<joint joint1="j1" joint2="j3" polycoef="0 1 0 0 0"/></equality>
<tendon><fixed name="t" limited="true" range="-.01 .01" frictionloss=".2"><joint joint="j2" coef="1"/>
<joint joint="j4" coef="-.5"/></fixed></tendon></mujoco>"""
BODIES = "".join(BODY.format(i, 0.25 * i, (3, 4, 6)[i % 3], 1 + i) for i in range(5))
CONES = ("pyramidal", "elliptic")


def loaded(cone, limit):
    """A model whose rows are sparse above `limit` dofs, and a state."""
    old, layout.SPARSE_DOFS = layout.SPARSE_DOFS, limit
    try:
        m = jaxsim.load_model(XML.format(cone, BODIES), max_contacts=60)
        rng = np.random.default_rng(0)
        qpos = m.qpos0 + 0.02 * rng.standard_normal(m.nq)
        d = jaxsim.make_data(m).replace(qpos=qpos, qvel=0.3 * rng.standard_normal(m.nv))
        return m, d, jax.jit(jaxsim.forward)(m, d)
    finally:
        layout.SPARSE_DOFS = old


@functools.cache
def both(cone):
    """The model and its forward pass with dense rows and with sparse ones."""
    return loaded(cone, 10**6), loaded(cone, 0)


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize(
    "name", ["qacc", "qfrc_constraint", "efc_J", "efc_aref", "efc_D", "efc_force", "efc_state", "nefc"]
)
def test_result_is_that_of_dense_rows(cone, name):
    (_, _, dense), (_, _, large) = both(cone)
    assert large.efc.layout.sparse and not dense.efc.layout.sparse
    assert large.ne > 0 and large.nl > 0 and large.nf > 0 and large.ncon > 10
    want = np.asarray(getattr(dense, name))
    scale = max(1, np.abs(want).max())
    np.testing.assert_allclose(np.asarray(getattr(large, name)) / scale, want / scale, atol=1e-8)


@pytest.mark.skipif(native.c_compiler() is None, reason="no C compiler (cc) to compare with XLA")
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("direct", [0, 10**6], ids=["conjugate gradients", "elimination"])
def test_machine_code_finds_what_operations_of_xla_find(cone, direct, monkeypatch):
    monkeypatch.setattr(layout, "SPARSE_DOFS", 0)
    monkeypatch.setattr(sparse, "DIRECT", direct)
    monkeypatch.setattr(sparse, "DIRECT_IF_PRECISE", direct)  # the tolerance is below PRECISE
    got, want = accelerations(cone, "auto"), accelerations(cone, "xla")
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-8 * np.abs(want).max())
    assert np.abs(np.diff(want.reshape(4, -1), axis=0)).max() > 1


def accelerations(cone, chosen, **options):
    """qacc (2, 2, nv) of a batch of batches of forces, by the solver that is `chosen`."""
    _, (m, _, d) = both(cone)
    forces = 5 * np.random.default_rng(2).standard_normal((2, 2, m.nv))
    forced = m.replace(opt=m.opt.replace(backend=chosen, **options))
    return jax.jit(jax.vmap(jax.vmap(lambda f: solution(forced, d, f))))(forces)


@pytest.mark.skipif(native.c_compiler() is None, reason="no C compiler (cc), whose code this reads")
def test_a_precise_tolerance_takes_elimination(monkeypatch):
    monkeypatch.setattr(layout, "SPARSE_DOFS", 0)
    tolerance = {"precise": 1e-14, "usual": 1e-8}

    def found(direct, if_precise, kind):
        monkeypatch.setattr(sparse, "DIRECT", direct)
        monkeypatch.setattr(sparse, "DIRECT_IF_PRECISE", if_precise)
        return accelerations("pyramidal", "auto", tolerance=tolerance[kind])

    for kind in tolerance:
        eliminated, iterated = found(10**6, 10**6, kind), found(0, 0, kind)
        assert not np.array_equal(eliminated, iterated)
        wanted = eliminated if kind == "precise" else iterated
        assert np.array_equal(found(0, 10**6, kind), wanted)


def solution(m, d, force):
    """qacc of a force, from rows that are in `d`."""
    return jaxsim.fwd_constraint(m, d.replace(qfrc_smooth=d.qfrc_smooth + force, qacc_smooth=d.qacc_smooth)).qacc


@functools.cache
def derivative(limit):
    """Jacobian of the solution by forces, both ways along one direction each."""
    old, layout.SPARSE_DOFS = layout.SPARSE_DOFS, limit
    try:
        (dense, large), rng = both("elliptic"), np.random.default_rng(1)
        m, _, d = large if limit == 0 else dense
        push, pull = rng.standard_normal((2, m.nv))
        _, tangent = jax.jit(lambda f: jax.jvp(lambda x: solution(m, d, x), (0 * f,), (f,)))(push)
        back = jax.jit(jax.grad(lambda f: solution(m, d, f) @ pull))(0 * push)
        return np.asarray(tangent), np.asarray(back), push, pull
    finally:
        layout.SPARSE_DOFS = old


def test_derivatives_are_those_of_dense_rows():
    for got, want in zip(derivative(0)[:2], derivative(10**6)[:2], strict=True):
        assert np.isfinite(got).all() and np.abs(want).max() > 0
        np.testing.assert_allclose(got, want, atol=1e-7 * np.abs(want).max())


def test_forward_and_reverse_mode_agree():
    tangent, back, push, pull = derivative(0)
    np.testing.assert_allclose(pull @ tangent, back @ push, rtol=1e-7)


def test_nothing_is_as_wide_as_the_model():
    _, (m, _, d) = both("pyramidal")
    assert d.efc.J_contact.shape == (m.max_contacts, 6, 2, 6)
    assert d.efc.J_general.shape[1] < m.nv


def test_small_models_keep_dense_rows():
    m = jaxsim.load_model("<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>")
    assert not layout.make_layout(m).sparse
