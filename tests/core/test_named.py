"""Objects by name: every accessor of MuJoCo's bindings, field by field, and what ours add."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.core.named import attributes
from tests.paths import MODELS

EVERYTHING = """<mujoco model="everything">
  <compiler autolimits="true"/>
  <size nuser_body="2" nuser_geom="1" nuser_sensor="3"/>
  <asset>
    <texture name="chess" type="2d" builtin="checker" width="6" height="4"/>
    <texture name="sky" type="skybox" builtin="gradient" width="4" height="4"/>
    <material name="floor" texture="chess" specular=".3"/>
    <mesh name="tetra" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
    <mesh name="wedge" vertex="0 0 0 2 0 0 0 1 0 0 0 1 1 1 1"/>
    <hfield name="hills" nrow="2" ncol="3" size="1 1 1 .1" elevation="0 1 2 3 4 5"/>
    <hfield name="dunes" nrow="3" ncol="3" size="1 1 1 .1" elevation="0 1 2 3 4 5 6 7 8"/>
  </asset>
  <worldbody>
    <light name="sun" pos="0 0 5" dir="0 0 -1"/> <camera name="eye" pos="0 -3 1" fovy="40"/>
    <geom name="floor" type="plane" size="5 5 .1" material="floor"/>
    <body name="torso" pos="0 0 1" user="1 2">
      <freejoint name="root"/> <geom name="chest" size=".2" user="7"/> <site name="imu" pos="0 0 .1"/>
      <body name="leg" pos="0 0 -.3">
        <joint name="hip" type="ball" damping=".2"/> <geom name="thigh" type="capsule" size=".05 .2"/>
        <body name="shin" pos="0 0 -.4">
          <joint name="knee" axis="0 1 0" range="-2 2" stiffness="3" armature=".01"/>
          <geom name="foot" type="box" size=".1 .05 .02"/> <site name="toe" pos=".1 0 0"/>
        </body>
      </body>
    </body>
    <body name="rail"><joint name="slide" type="slide" axis="1 0 0" frictionloss=".1"/>
      <geom name="cart" type="mesh" mesh="tetra"/></body>
    <body name="hand" mocap="true" pos="1 1 1"><geom name="palm" size=".05"/></body>
    <body name="other" mocap="true" pos="2 1 1"/>
  </worldbody>
  <contact><pair name="touch" geom1="foot" geom2="floor"/><exclude name="apart" body1="torso" body2="rail"/></contact>
  <equality><joint name="hold" joint1="knee" joint2="slide"/><weld name="glue" body1="shin" body2="rail"
    active="false"/></equality>
  <tendon>
    <spatial name="rope"><site site="imu"/><site site="toe"/></spatial>
    <fixed name="mix"><joint joint="knee" coef="1"/><joint joint="slide" coef="2"/></fixed>
  </tendon>
  <actuator>
    <motor name="kick" joint="knee" ctrlrange="-1 1"/> <motor name="push" joint="slide" gear="3"/>
    <general name="servo" joint="slide" dyntype="integrator" gainprm="2"/> <muscle name="muscle" tendon="rope"/>
  </actuator>
  <sensor><accelerometer name="acc" site="imu"/><jointpos name="angle" joint="knee" user="1 2 3"/>
    <ballquat name="turn" joint="hip"/></sensor>
  <custom><numeric name="gains" data="1 2 3"/><numeric name="mass" data="4"/><text name="say" data="hello"/>
    <tuple name="set"><element objtype="body" objname="leg" prm="3"/><element objtype="geom" objname="foot"/></tuple>
  </custom>
  <keyframe><key name="start" time="1"/><key name="later" time="2" ctrl="1 1 0 0"/></keyframe>
</mujoco>"""
OBJECTS = ("actuator", "body", "cam", "camera", "eq", "equality", "exclude", "geom", "hfield", "jnt", "joint", "key")
OBJECTS += (
    "keyframe",
    "light",
    "mat",
    "material",
    "mesh",
    "numeric",
    "pair",
    "sensor",
    "site",
    "skin",
    "tendon",
)
OBJECTS += ("tex", "texture", "tuple")
IN_DATA = ("actuator", "body", "cam", "camera", "geom", "jnt", "joint", "light", "sensor", "site", "ten", "tendon")
SIZES = {"joint": "njnt", "camera": "ncam", "actuator": "nu", "keyframe": "nkey", "material": "nmat"}
SIZES |= {"texture": "ntex", "equality": "neq", "ten": "ntendon"}
# What the bindings read from the wrong place or have in another form; see the test of it.
ELSEWHERE = {("tendon", "J_colind"), ("actuator", "moment")}
ELSEWHERE |= {(kind, field) for kind in ("jnt", "joint") for field in ("cdof", "cdof_dot", "bodyid")}


def load(name):
    text = EVERYTHING if name == "everything" else (MODELS / name).read_text()
    theirs = (
        mujoco.MjModel.from_xml_string(text)
        if name == "everything"
        else mujoco.MjModel.from_xml_path(str(MODELS / name))
    )
    data = mujoco.MjData(theirs)
    data.qvel[:] = 0.1
    mujoco.mj_forward(theirs, data)
    m = jaxsim.load_model(text if name == "everything" else MODELS / name)
    d = jaxsim.from_mujoco_data(m, data)
    return theirs, data, m, d


@pytest.fixture(scope="module", params=["everything", "humanoid.xml", "hand.xml", "kitchen.xml", "cartpole.xml"])
def models(request):
    return load(request.param)


@pytest.fixture(scope="module")
def everything():
    return load("everything")


def compare(ours, theirs, kind, count):
    compared = 0
    for i in range(count):
        view = getattr(theirs, kind)(i)
        mine = getattr(ours, kind)(i)
        assert mine.id == view.id and mine.name == view.name
        if view.name:
            assert getattr(ours, kind)(view.name).id == getattr(theirs, kind)(view.name).id
        for field in (f for f in dir(view) if not f.startswith("_") and f not in ("id", "name", "set")):
            if (kind, field) in ELSEWHERE or not hasattr(view, field):
                continue
            a, b = np.asarray(getattr(mine, field)), np.asarray(getattr(view, field))
            assert a.shape == b.shape, (kind, i, field, a.shape, b.shape)
            np.testing.assert_allclose(a, b, 1e-6, 1e-9, err_msg=f"{kind} {i} {field}")
            compared += 1
    return compared


@pytest.mark.parametrize("kind", OBJECTS)
def test_model_accessors_are_those_of_mujoco(models, kind):
    theirs, _, m, _ = models
    count = getattr(theirs, SIZES.get(kind, f"n{kind}"))
    assert bool(compare(m, theirs, kind, count)) == bool(count)


@pytest.mark.parametrize("kind", IN_DATA)
def test_data_accessors_are_those_of_mujoco(models, kind):
    theirs, data, _, d = models
    count = getattr(theirs, SIZES.get(kind, f"n{kind}"))
    assert bool(compare(d, data, kind, count)) == bool(count)


def test_the_sweep_covers_every_accessor_of_the_bindings(everything):
    theirs, data, m, d = everything
    for one, ours, known in ((theirs, m, OBJECTS), (data, d, IN_DATA)):
        found = set()
        for name in (n for n in dir(one) if not n.startswith(("_", "from_")) and callable(getattr(one, n))):
            try:
                getattr(one, name)("no such name")
            except KeyError as error:
                found |= {name} if "Invalid name" in str(error) else set()
            except TypeError:
                pass
        assert found == set(known) and all(hasattr(ours, name) for name in found)
    assert all(getattr(theirs, SIZES.get(kind, f"n{kind}")) for kind in OBJECTS if kind != "skin")


def test_values_that_the_bindings_have_in_another_form(everything):
    _, data, m, d = everything
    knee = m.joint("knee").dofadr  # the bindings read `cdof` of joints from another dof's place
    np.testing.assert_allclose(d.joint("knee").cdof, data.cdof[knee])
    assert d.joint("root").cdof_dot.shape == (6, 6) and m.joint("root").bodyid == [m.body("torso").id]
    np.testing.assert_array_equal(m.tendon("mix").J_colind, [m.joint("knee").dofadr[0], m.joint("slide").dofadr[0]])
    np.testing.assert_allclose(d.tendon("mix").J, [1, 2])
    assert d.actuator("push").moment.shape == (m.nv,) and d.actuator("servo").act.shape == (1,)
    assert d.actuator("kick").act.shape == (0,)
    np.testing.assert_allclose(d.body("other").mocap_pos, [[2, 1, 1]])
    assert d.body("torso").mocap_pos.shape == (0, 3)
    assert bool(d.equality("hold").active[0]) and not bool(d.eq("glue").active[0])
    assert m.mesh("wedge").vert.shape[1] == 3 and len(m.mesh("wedge").vert) == m.mesh("wedge").vertnum[0]


def test_values_can_be_read_while_tracing_and_in_a_batch(everything):
    _, _, m, d = everything
    foot = jax.jit(lambda m, d: (m.body("leg").mass, d.geom("foot").xpos, d.sensor("acc").data))(m, d)
    np.testing.assert_array_equal(foot[1], d.geom_xpos[m.name2id("geom", "foot")])
    assert foot[0].shape == (1,) and foot[2].shape == (3,)
    worlds = jax.tree.map(lambda x: jnp.stack([x, x, x]), d)
    assert worlds.geom("foot").xpos.shape == (3, 3) and worlds.joint("root").qpos.shape == (3, 7)
    assert jax.vmap(lambda d: d.joint("hip").qvel)(worlds).shape == (3, 3)
    slope = jax.grad(lambda m: m.geom("foot").size.sum())(m)
    assert slope.geom_size.sum() == 3


def test_several_objects_at_once(everything):
    _, _, m, d = everything
    assert m.geom(["foot", "chest"]).size.shape == (2, 3) and d.geom([1, 2, 3]).xpos.shape == (3, 3)
    np.testing.assert_array_equal(m.geom(["foot", 1]).id, [m.name2id("geom", "foot"), 1])
    assert m.geom(["foot", "chest"]).name == ["foot", "chest"] and m.body(["leg", "shin"]).mass.shape == (2,)
    joints = d.joint(["knee", "hip"])
    np.testing.assert_array_equal(joints.qpos, np.concatenate([d.joint("knee").qpos, d.joint("hip").qpos]))
    assert joints.qvel.shape == (4,) and d.joint([]).qpos.shape == (0,)


def test_set_gives_a_changed_model_or_data(everything):
    _, _, m, d = everything
    heavier = m.body("leg").set(mass=9.0, pos=[0, 0, -1])
    assert heavier.body("leg").mass[0] == 9 and heavier.body("leg").pos[2] == -1
    assert heavier.structure is m.structure and m.body("leg").mass[0] != 9
    assert heavier.body("shin").mass == m.body("shin").mass
    moved = jax.jit(lambda d, q: d.joint("knee").set(qpos=q, qvel=2.0))(d, 0.5)
    assert moved.joint("knee").qpos[0] == 0.5 and moved.joint("knee").qvel[0] == 2
    both = d.actuator(["kick", "push"]).set(ctrl=[1.0, 2.0])
    np.testing.assert_array_equal(both.ctrl, [1, 2, 0, 0])
    other = m.geom("foot").set(condim=1)
    assert other.geom_condim[m.geom("foot").id] == 1 and other.structure != m.structure
    dots = m.texture("chess").set(data=np.zeros((4, 6, 3), np.uint8))
    assert not dots.texture("chess").data.any() and dots.texture("sky").data.any()
    worlds = jax.tree.map(lambda x: jnp.stack([x] * 2), d).body("hand").set(mocap_pos=[[1.0, 2, 3]])
    np.testing.assert_array_equal(worlds.mocap_pos[:, 0], [[1, 2, 3]] * 2)
    with pytest.raises(ValueError, match="shape"):
        m.body("leg").set(pos=[1.0, 2])


def test_mistakes_are_answered(everything):
    _, _, m, d = everything
    with pytest.raises(KeyError, match="no geom named 'foto'; did you mean 'foot'"):
        m.geom("foto")
    with pytest.raises(KeyError, match="body 99 is out of range: the model has 7"):
        d.body(99)
    with pytest.raises(KeyError, match="out of range"):
        m.body(-1)
    with pytest.raises(AttributeError, match="a body has no field 'mas' in Model; did you mean 'mass'"):
        m.body("leg").mas  # noqa: B018
    with pytest.raises(AttributeError, match=r"immutable: use .set\(mass=...\), which gives the changed Model"):
        m.body("leg").mass = 3
    with pytest.raises(TypeError, match="the id of a body is traced"):
        jax.jit(lambda i: m.body(i).mass)(1)


def test_a_view_is_an_index_and_shows_its_fields(everything):
    _, _, m, d = everything
    assert m.qpos0[m.joint("root").__index__()] == m.qpos0[0] and [10, 20, 30][m.key("later")] == 20
    text = repr(d.joint("knee"))
    assert text.startswith("Data.joint: id=2, name='knee'\n") and "qpos=[0]" in text and len(text.splitlines()) < 30
    assert {"mass", "id", "set"} <= set(dir(m.body(0))) and "xpos" in dir(d.body(0)) and "xpos" not in dir(m.body(0))


def test_names_are_kept_with_data_and_compared():
    a, b = (
        jaxsim.load_model(f'<mujoco><worldbody><body name="{n}"><joint/><geom size=".1"/></body></worldbody></mujoco>')
        for n in "ab"
    )
    one, two = jaxsim.make_data(a), jaxsim.make_data(b)
    assert jax.tree.structure(one) != jax.tree.structure(two)
    again = jaxsim.make_data(a.replace(geom_group=[3]))
    assert jax.tree.structure(one) == jax.tree.structure(again)
    assert set(attributes(jaxsim.Data, "body")) >= {"xpos", "mocap_pos"}
