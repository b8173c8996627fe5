"""The narrow phase as machine code against its plain form, pair types by pair types."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.core.types import DisableBit
from jaxsim.engine.collision import in_sequence
from jaxsim.engine.collision.broad import broadphase
from jaxsim.engine.collision.table import COLLIDERS
from jaxsim.native import compiler as native
from jaxsim.native import world_program
from jaxsim.native.function import choices_of
from tests.engine.collision.test_driver import everything, states
from validation.models import sdf

pytestmark = pytest.mark.skipif(native.c_compiler() is None, reason="no C compiler (cc) to compare with XLA")
HEIGHTS = " ".join(str(i * 37 % 11) for i in range(64))
ASSETS = f"""<mesh name="m" vertex="0 0 0 .3 0 0 0 .4 0 0 0 .3 .2 .2 .3"/>
  <hfield name="h" nrow="8" ncol="8" size="1 1 .2 .1" elevation="{HEIGHTS}"/>"""
KINDS = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")


def every_shape():
    """A floor, a height field, and two of each shape in the air."""
    shapes = [f'type="{k}" size=".1 .15 .2"' if k != "mesh" else 'type="mesh" mesh="m"' for k in KINDS * 2]
    bodies = "".join(f'<body><joint type="free"/><geom {s} margin=".02"/></body>' for s in shapes)
    return f"""<mujoco><asset>{ASSETS}</asset><worldbody><geom type="plane" size="2 2 .1" pos="0 0 -.2"/>
      <geom type="hfield" hfield="h" pos="0 0 -.3"/>{bodies}</worldbody></mujoco>"""


SCENES = {
    "primitives": (everything(1), {}),
    "every shape": (every_shape(), {}),
    "a full buffer": (everything(1), {"max_contacts": 7}),
}


def posed(m, mj, n):
    """Data (n,) with random poses."""
    d = jax.jit(jax.vmap(lambda q: jaxsim.kinematics(m, jaxsim.make_data(m).replace(qpos=q))))(states(mj, n))
    return d.replace(geom_xmat=d.geom_xmat.reshape(n, m.ngeom, -1))


def found(m, d, program=None):
    """Contacts, their number and those dropped, of a batch."""
    d = (program or jax.jit(jax.vmap(jaxsim.collision, in_axes=(None, 0))))(m, d)
    return {n: getattr(d.contact, n) for n in ("dist", "pos", "frame", "geom")}, d.ncon, d.overflow_contacts


def in_plain_form(monkeypatch):
    monkeypatch.delitem(world_program.WORLD_PROGRAM.programs, "cpu")


def both_forms(m, d, monkeypatch):
    ours = found(m, d)
    in_plain_form(monkeypatch)
    return ours, found(m, d)


@pytest.mark.parametrize(
    "scene",
    [  # "every shape" has all pairs of primitives too
        pytest.param(x, marks=[pytest.mark.slow] if x == "primitives" else []) for x in SCENES
    ],
)
def test_contacts_are_those_of_the_plain_form(scene, monkeypatch):
    xml, sizes = SCENES[scene]
    m, mj = jaxsim.load_model(xml, **sizes), mujoco.MjModel.from_xml_string(xml)
    ours, plain = both_forms(m, posed(m, mj, 4), monkeypatch)
    assert (np.asarray(ours[1]) > 3).all()
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9), ours, plain)


def test_pairs_of_large_models_too(monkeypatch):
    monkeypatch.setattr(broadphase, "LIST_MAX_PAIRS", 0)
    xml = everything(3)
    m, mj = jaxsim.load_model(xml, max_contacts=200), mujoco.MjModel.from_xml_string(xml)
    ours, plain = both_forms(m, posed(m, mj, 3), monkeypatch)
    assert (np.asarray(ours[1]) > 3).all()
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9), ours, plain)


@pytest.mark.parametrize("flag", ["", pytest.param('override="enable"', marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "scene",
    [everything, pytest.param(lambda *_: every_shape(), marks=pytest.mark.slow)],
    ids=["everything", "every shape"],
)
def test_pairs_that_a_sweep_selects_too(scene, flag, monkeypatch):
    monkeypatch.setattr(in_sequence, "SWEEP_MIN_PAIRS", 1)
    xml = scene(2, flag)
    m, mj = jaxsim.load_model(xml), mujoco.MjModel.from_xml_string(xml)
    ours, plain = both_forms(m, posed(m, mj, 6), monkeypatch)
    assert (np.asarray(ours[1]) > 3).all()
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9), ours, plain)


def test_worlds_may_differ_in_their_model():
    xml = everything(2)
    m, mj = jaxsim.load_model(xml), mujoco.MjModel.from_xml_string(xml)
    d = posed(m, mj, 3)
    scale = jnp.array([0.7, 1.0, 1.3])
    models = jax.vmap(lambda s: m.replace(geom_size=s * m.geom_size, geom_rbound=s * m.geom_rbound))(scale)
    batch = jax.jit(jax.vmap(jaxsim.collision))(models, d)
    one = jax.jit(jaxsim.collision)
    for i in range(3):
        alone = one(*jax.tree.map(lambda x, i=i: x[i], (models, d)))
        np.testing.assert_array_equal(batch.contact.dist[i], alone.contact.dist)


def test_batches_of_batches_are_batches():
    xml = everything(2)
    m, mj = jaxsim.load_model(xml), mujoco.MjModel.from_xml_string(xml)
    d = posed(m, mj, 4)
    flat, _, _ = found(m, d)
    nested = jax.jit(jax.vmap(jax.vmap(jaxsim.collision, in_axes=(None, 0)), in_axes=(None, 0)))(
        m, jax.tree.map(lambda x: x.reshape(2, 2, *x.shape[1:]), d)
    )
    np.testing.assert_array_equal(nested.contact.dist.reshape(4, -1), flat["dist"])


def test_derivatives_are_those_of_the_plain_form(monkeypatch):
    xml = everything(1)
    m, mj = jaxsim.load_model(xml), mujoco.MjModel.from_xml_string(xml)
    d = jax.tree.map(lambda x: x[0], posed(m, mj, 1))

    def total(pos, size):
        contact = jaxsim.collision(m.replace(geom_size=size), d.replace(geom_xpos=pos)).contact
        return jnp.sum(jnp.sin(contact.dist)) + jnp.sum(contact.pos)

    ours = jax.jit(jax.grad(total, argnums=(0, 1)))(d.geom_xpos, m.geom_size)
    in_plain_form(monkeypatch)
    plain = jax.jit(jax.grad(total, argnums=(0, 1)))(d.geom_xpos, m.geom_size)
    assert max(float(jnp.abs(x).max()) for x in ours) > 0.1
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9), ours, plain)


def test_models_with_the_same_kinds_of_pairs_share_a_library():
    sources = []
    ball = '<body pos="0 0 {z}"><joint type="free"/><geom size=".1"/></body>'
    for n in (3, 5):
        floor = '<geom type="plane" size="1 1 1"/>'
        bodies = "".join(ball.format(z=0.15 * i) for i in range(n))
        m = jaxsim.load_model(f"<mujoco><worldbody>{floor}{bodies}</worldbody></mujoco>")
        sources.append(source_of(m))
    assert sources[0] == sources[1] and "world(" in sources[0].world and len(sources[0].parts) == 2


def source_of(m):
    """C source of a model's narrow phase."""
    made = []

    def spy(program, *operands):
        made.append(program.source())
        return world_program.run_program(program, *operands)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_sequence, "run_program", spy)
        jax.make_jaxpr(jaxsim.collision)(m, jaxsim.make_data(m))
    return made[0]


def test_contacts_switched_off_leave_no_call():
    m = jaxsim.load_model(everything(1))
    m = m.replace(opt=m.opt.replace(disableflags=m.opt.disableflags | DisableBit.CONTACT))
    assert "world_program" not in str(jax.make_jaxpr(jaxsim.collision)(m, jaxsim.make_data(m)))


@pytest.mark.parametrize("capacity", [pytest.param(64, marks=pytest.mark.slow), 2])
def test_a_pair_without_a_program_leaves_the_others_theirs(capacity, monkeypatch):
    shapes = [
        (0, 0.2, sdf.geom("torus", plugin=False)),
        (0.3, 0.35, '<geom size=".2"/>'),
        (2, 0.1, '<geom size=".1"/>'),
    ]
    bodies = "".join(f'<body pos="{x} 0 {z}"><freejoint/>{geom}</body>' for x, z, geom in shapes)
    world = f'<worldbody><geom type="plane" size="5 5 1"/>{bodies}</worldbody>'
    m = jaxsim.load_model(f"<mujoco><asset>{sdf.mesh('torus')}</asset>{world}</mujoco>", max_contacts=capacity)
    d = jaxsim.make_data(m)
    lower = np.array([0.0, -0.03, -0.06])
    d = jax.vmap(lambda z: jaxsim.kinematics(m, d.replace(qpos=d.qpos.at[2::7].add(z))))(lower)
    programs = []
    lower = jax.jit(jax.vmap(jaxsim.collision, in_axes=(None, 0))).lower
    assert ("the narrow phase", None) in choices_of(lambda: programs.append(lower(m, d)))
    ours = found(m, d, programs[0].compile())
    for types, collider in COLLIDERS.items():
        monkeypatch.setitem(COLLIDERS, types, collider._replace(in_sequence=True))  # all pairs at once, by JAX
    in_plain_form(monkeypatch)
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9), ours, found(m, d))
    assert (np.asarray(ours[2]) > 0).any() == (capacity == 2)
    assert {(0, 1), (0, 3)} <= set(map(tuple, ours[0]["geom"][2].tolist())) or capacity == 2
