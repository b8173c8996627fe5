"""`MjData` to `Data` and back: every field, contacts and constraint rows in their slots, for one world and batches."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.core.contact import CONTACT_FIELDS
from jaxsim.core.data import DATA_FIELDS
from jaxsim.io.mujoco_data import OWN, ROW_FIELDS
from jaxsim.io.newer import data_name
from tests.paths import MODELS
from validation.oracle import dense_jacobian

# what copies as it is; the legacy inertia matrix is not in newer versions of MuJoCo
FIELDS = [f.name for f in DATA_FIELDS if f.name not in (*OWN, "actuator_moment", "solver_niter")]
COPIED = [name for name in FIELDS if hasattr(mujoco.MjData, name)]
# rows of every kind: equalities, friction and limits of dofs, balls and tendons, contacts of all dimensions
XML = """<mujoco><option cone="{cone}" jacobian="{jacobian}"/>
<worldbody><geom type="plane" size="3 3 1"/>
  <body name="a" pos="0 0 1"><joint name="h" axis="0 1 0" range="-20 20" limited="true" frictionloss=".1"/>
    <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/><site name="sa" pos=".3 0 0"/>
    <body name="b" pos=".4 0 0"><joint name="s" type="slide" axis="1 0 0" range="-.1 .1" limited="true"/>
      <geom size=".05"/></body></body>
  <body name="c" pos="0 1 1"><joint name="ball" type="ball" range="0 15" limited="true"/><geom size=".1" pos="0 0 .2"/>
    <site name="sc" pos="0 0 .4"/></body>
  <body pos="1 0 .09"><freejoint/><geom size=".1" condim="1"/></body>
  <body pos="1 1 .09"><freejoint/><geom size=".1" condim="3"/></body>
  <body pos="1 2 .09"><freejoint/><geom size=".1" condim="4"/></body>
  <body name="f" pos="1 3 .09"><freejoint/><geom size=".1" condim="6"/></body>
  <body name="g" pos="1 3.3 .09"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body name="m" mocap="true" pos="2 2 2"/>
</worldbody>
<tendon><spatial name="t" limited="true" range="0 .9" frictionloss=".2"><site site="sa"/><site site="sc"/></spatial>
  <fixed name="u" limited="true" range="-.01 .01"><joint joint="h" coef="1"/><joint joint="s" coef="-2"/></fixed>
</tendon>
<equality><connect body1="a" body2="c" anchor=".1 0 0"/><weld body1="f" body2="g"/>
  <joint joint1="h" joint2="s" polycoef=".1 .5 0 0 0"/><tendon tendon1="t" tendon2="u"/></equality>
<actuator><motor joint="h"/><position tendon="t" kp="3"/><general joint="s" dyntype="filter" dynprm=".1"/></actuator>
<sensor><framepos objtype="body" objname="b"/><actuatorfrc actuator="0"/></sensor></mujoco>"""
XML = XML.replace('<actuatorfrc actuator="0"/>', '<jointvel joint="h"/>')
CASES = [("pyramidal", "dense"), ("elliptic", "sparse")]


@functools.cache
def scene(cone, jacobian):
    """The models of both, and MuJoCo's data of some states."""
    theirs = mujoco.MjModel.from_xml_string(XML.format(cone=cone, jacobian=jacobian))
    worlds, rng = [], np.random.default_rng(0)
    for i in range(3):
        data = mujoco.MjData(theirs)
        data.qpos[:2] = (0.6, 0.2) if i % 2 else (-0.6, -0.2)
        data.qvel[:] = rng.normal(size=theirs.nv) * 0.3
        data.ctrl[:] = rng.normal(size=theirs.nu)
        mujoco.mj_step(theirs, data, i)
        mujoco.mj_forward(theirs, data)
        worlds.append(data)
    return jaxsim.from_mujoco(theirs), theirs, worlds


@pytest.mark.parametrize("case", CASES)
def test_every_field_is_mujocos(case):
    m, theirs, worlds = scene(*case)
    for data in worlds:
        d = jaxsim.from_mujoco_data(m, data)
        assert (
            d.ncon == data.ncon > 4
            and d.nefc == data.nefc > 30
            and (d.overflow_contacts, d.maxuse_con)
            == (
                0,
                data.ncon,
            )
        )
        for name in COPIED:
            np.testing.assert_array_equal(np.ravel(getattr(d, name)), np.ravel(getattr(data, name)), err_msg=name)
        np.testing.assert_array_equal(d.qM[m.mapM2M], data.M)
        for name, *_ in CONTACT_FIELDS:
            ours = np.asarray(getattr(d.contact, name))[: data.ncon]
            np.testing.assert_array_equal(ours, getattr(data.contact, name), err_msg=name)
        for name in (*ROW_FIELDS, "type", "id"):
            ours = np.asarray(getattr(d, f"efc_{name}"))[: data.nefc]
            np.testing.assert_array_equal(ours, getattr(data, data_name(data, f"efc_{name}")), err_msg=name)
        np.testing.assert_allclose(d.efc_J[: data.nefc], dense_jacobian(theirs, data), atol=1e-14)
        moment = np.zeros((theirs.nu, theirs.nv))
        sparse = (data.moment_rownnz, data.moment_rowadr, data.moment_colind)
        mujoco.mju_sparse2dense(moment, data.actuator_moment, *sparse)
        np.testing.assert_array_equal(d.actuator_moment, moment)


@pytest.mark.parametrize("case", CASES)
def test_rows_stand_in_the_slots_in_which_forward_puts_them(case):
    m, _, worlds = scene(*case)
    forward = jaxsim.jit(jaxsim.forward)
    for data in worlds:
        d = jaxsim.from_mujoco_data(m, data)
        again = forward(m, d)
        np.testing.assert_array_equal(d.efc.active, again.efc.active)
        general = np.asarray(d.efc.active)[: len(d.efc.J_general)]
        np.testing.assert_allclose(d.efc.J_general[general], again.efc.J_general[general], atol=1e-9)
        np.testing.assert_allclose(d.efc_J, again.efc_J, atol=1e-9)
        np.testing.assert_allclose(d.efc.pos, again.efc.pos, atol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_there_and_back_is_the_same_data(case):
    m, theirs, worlds = scene(*case)
    batch = jaxsim.from_mujoco_data(m, worlds)
    assert batch.qpos.shape == (3, theirs.nq)
    out = [mujoco.MjData(theirs) for _ in worlds]
    jaxsim.to_mujoco(m, batch, out)
    for data, want in zip(out, worlds, strict=True):
        rows = [data_name(data, f"efc_{name}") for name in (*ROW_FIELDS, "type", "id")]
        frames = [name for name in ("xiquat", "geom_xquat", "site_xquat") if hasattr(data, name)]
        for name in frames:
            np.testing.assert_allclose(getattr(data, name), getattr(want, name), atol=1e-12, err_msg=name)
        for name in (*COPIED, *rows):
            np.testing.assert_array_equal(getattr(data, name), getattr(want, name), err_msg=name)
        for name, *_ in CONTACT_FIELDS:
            np.testing.assert_array_equal(getattr(data.contact, name), getattr(want.contact, name), err_msg=name)
        np.testing.assert_allclose(dense_jacobian(theirs, data), dense_jacobian(theirs, want), atol=1e-14)
        for index in range(data.ncon):
            ours, other = np.zeros(6), np.zeros(6)
            mujoco.mj_contactForce(theirs, data, index, ours)
            mujoco.mj_contactForce(theirs, want, index, other)
            np.testing.assert_array_equal(ours, other)
        mujoco.mj_step(theirs, data)
        assert np.isfinite(data.qpos).all()


def test_a_step_from_converted_data_is_mujocos():
    m, theirs, worlds = scene(*CASES[0])
    d = jaxsim.jit(jaxsim.step)(m, jaxsim.from_mujoco_data(m, worlds[1]))
    data = mujoco.MjData(theirs)
    jaxsim.to_mujoco(m, jaxsim.from_mujoco_data(m, worlds[1]), data)
    theirs.opt.tolerance = 0
    mujoco.mj_step(theirs, data)
    np.testing.assert_allclose(d.qpos, data.qpos, atol=1e-6)


def test_results_of_forward_reach_mujoco():
    m, theirs, worlds = scene(*CASES[0])
    d = jaxsim.jit(jaxsim.forward)(m, jaxsim.from_mujoco_data(m, worlds[2]))
    data = mujoco.MjData(theirs)
    jaxsim.to_mujoco(m, d, data)
    for name in ("xpos", "sensordata", "qfrc_bias", "efc_pos", "actuator_force"):
        np.testing.assert_allclose(getattr(data, name), getattr(worlds[2], name), atol=1e-8, err_msg=name)


def test_of_a_mere_state_the_state_is_copied():
    m, theirs, worlds = scene(*CASES[0])
    last, _ = jaxsim.jit(lambda d: jaxsim.rollout(m, d, nstep=1))(jaxsim.from_mujoco_data(m, worlds[0]))
    data = mujoco.MjData(theirs)
    jaxsim.to_mujoco(m, last, data)
    np.testing.assert_array_equal(data.qpos, last.qpos)
    assert np.isfinite(data.xpos).all() and data.ncon == 0


def test_data_keep_their_values_while_mujoco_steps_on():
    model = mujoco.MjModel.from_xml_path(str(MODELS / "humanoid.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    d = jaxsim.from_mujoco_data(jaxsim.from_mujoco(model), data)
    before = jax.tree.map(np.array, d)
    for _ in range(5):
        mujoco.mj_step(model, data)
    jax.tree.map(np.testing.assert_array_equal, d, before)


def test_what_exceeds_a_capacity_is_counted():
    _, theirs, worlds = scene(*CASES[0])
    m = jaxsim.from_mujoco(theirs, max_contacts=2)
    d = jaxsim.from_mujoco_data(m, worlds[0])
    assert (d.ncon, d.overflow_contacts) == (2, worlds[0].ncon - 2)
    assert d.overflow_constraints > 0 and d.nefc == d.efc.active.sum()


def test_wrong_data_is_refused_by_name():
    m, theirs, worlds = scene(*CASES[0])
    other = mujoco.MjModel.from_xml_path(str(MODELS / "cartpole.xml"))
    with pytest.raises(ValueError, match=r"mj_data\.qpos has 2 numbers, wanted 41: it is data of another model"):
        jaxsim.from_mujoco_data(m, mujoco.MjData(other))
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), jaxsim.make_data(m))
    with pytest.raises(ValueError, match="d is a batch"):
        jaxsim.to_mujoco(m, batch, mujoco.MjData(theirs))
    with pytest.raises(ValueError, match="wanted 3, one for each MjData"):
        jaxsim.to_mujoco(m, batch, worlds)


@pytest.mark.parametrize("kind", ["MjModel", "MjSpec"])
def test_load_model_takes_mujocos_objects(kind):
    theirs = mujoco.MjModel.from_xml_string(XML.format(cone="elliptic", jacobian="auto"))
    spec = mujoco.MjSpec.from_string(XML.format(cone="elliptic", jacobian="auto"))
    m = jaxsim.load_model(theirs if kind == "MjModel" else spec, max_contacts=7)
    assert m.max_contacts == 7 and m.structure == jaxsim.from_mujoco(theirs, max_contacts=7).structure
    np.testing.assert_array_equal(m.body_inertia, theirs.body_inertia)
    with pytest.raises(TypeError, match=r"source is a mujoco\.MjData, wanted"):
        jaxsim.load_model(mujoco.MjData(theirs))
