"""The driver on a scene with all options: order, parameters, flags, capacity."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.core.contact import EMPTY_CONTACT
from jaxsim.core.types import GeomType, WarningType
from jaxsim.engine.collision import driver
from jaxsim.engine.collision.table import COLLIDERS
from jaxsim.native import compiler as native
from jaxsim.native.stage import stage
from jaxsim.xla import compaction
from tests.engine.collision.scenes import PARAMETERS, PLACES, assert_same, make_scene

needs_c = pytest.mark.skipif(native.c_compiler() is None, reason="no C compiler (cc) to run the GPU's source")
SIZES = {"sphere": ".2", "capsule": ".1 .25", "box": ".15 .2 .25"}


def random_geom(rng, name):
    kind = rng.choice(list(SIZES))
    x = functools.partial(rng.uniform)
    return f"""<geom name="{name}" type="{kind}" size="{SIZES[kind]}" pos="{x(-0.3, 0.3)} {x(-0.3, 0.3)} {x(-0.3, 0.3)}"
      euler="{x(0, 90)} {x(0, 90)} 0" contype="{rng.integers(1, 4)}" conaffinity="{rng.integers(0, 4)}"
      condim="{rng.choice([1, 3, 4, 6])}" priority="{rng.choice([0, 0, 1])}" solmix="{rng.choice([0, 1, 2.0])}"
      margin="{x(0, 0.05)}" gap="{x(0, 0.03)}" friction="{x(0, 1)} {x(0, 0.01)} {x(0, 0.001)}"
      solref="{rng.choice([".02 1", ".05 .8", "-100 -1"])}" solimp="{x(0.5, 0.9)} .95 {x(0.001, 0.01)} .4 2"/>"""


def everything(seed, flag=""):
    """Bodies with several geoms, chains, static geoms, two planes, exclusions and explicit pairs, all at random."""
    rng = np.random.default_rng(seed)
    names, bodies = ["floor", "w0", "s0"], []
    xml = f"""<mujoco><option o_margin=".03" o_solref=".03 .9" o_friction="1 .9 .01 .02 .03"><flag {flag}/></option>
      <worldbody><geom name="floor" type="plane" size="3 3 .1" margin=".01"/>{random_geom(rng, "w0")}
      <body pos=".2 0 0">{random_geom(rng, "s0")}<geom type="plane" size="1 1 .1" euler="40 0 0" pos="0 0 -.5"/>
      </body>"""
    for b in range(6):
        geoms = "".join(random_geom(rng, f"g{b}.{g}") for g in range(rng.integers(1, 4)))
        names.append(f"g{b}.0")
        child = ""
        if b % 2:
            child = f'<body name="c{b}" pos=".2 .1 0"><joint type="ball"/>{random_geom(rng, f"k{b}")}</body>'
            bodies.append(f"c{b}")
            names.append(f"k{b}")
        xml += f'<body name="b{b}"><joint type="free"/>{geoms}{child}</body>'
        bodies.append(f"b{b}")
    xml += "</worldbody><contact>"
    for pair in {tuple(sorted(rng.choice(bodies, 2, replace=False))) for _ in range(5)}:
        xml += '<exclude body1="{}" body2="{}"/>'.format(*pair)
    for i, pair in enumerate(sorted({tuple(sorted(rng.choice(names[1:], 2, replace=False))) for _ in range(12)})):
        ref = 'solreffriction=".1 .5"' if i % 2 else ""
        xml += f"""<pair geom1="{pair[0]}" geom2="{pair[1]}" condim="{rng.choice([1, 3, 4, 6])}" gap=".02"
          margin="{rng.uniform(0, 0.1)}" friction="1 .5 .01 .02 .03" {ref}/>"""
    return xml + "</contact></mujoco>"


def states(mj, n, seed=5):
    rng = np.random.default_rng(seed)
    qpos = np.tile(mj.qpos0, (n, 1))
    for kind, adr in zip(mj.jnt_type, mj.jnt_qposadr, strict=True):
        if kind == mujoco.mjtJoint.mjJNT_FREE:
            qpos[:, adr : adr + 3] = rng.uniform(-0.7, 0.7, (n, 3))
            adr += 3
        quat = rng.standard_normal((n, 4))
        qpos[:, adr : adr + 4] = quat / np.linalg.norm(quat, axis=1, keepdims=True)
    return qpos


@pytest.fixture(scope="module")
def crowd():
    scene = make_scene(everything(1), max_contacts=300)
    pos, mat, contacts = scene.oracle(states(scene.mj, 40))
    return scene, pos, mat, contacts, scene.run(pos, mat)


def test_order_and_numbers_of_contacts_equal_mujocos(crowd):
    *_, contacts, ours = crowd
    assert_same(ours, contacts, (*PLACES, *PARAMETERS))
    assert min(len(c["dist"]) for c in contacts) > 10
    excluded = np.concatenate([c["exclude"] for c in contacts])
    assert 0 < excluded.sum() < len(excluded)


def test_unused_slots_are_empty(crowd):
    *_, ours = crowd
    empty = int(ours.ncon[0])
    for name in ours.contact.LEAVES:
        rest = np.asarray(getattr(ours.contact, name))[0, empty:]
        assert np.all(rest == (-1 if name in EMPTY_CONTACT else 0)), name


def test_capacity_keeps_the_first_contacts_and_counts_the_rest(crowd):
    _, pos, mat, contacts, _ = crowd
    small = make_scene(everything(1), max_contacts=6)
    step = jax.jit(jax.vmap(functools.partial(driver.collision, small.m)))
    ours = step(jax.vmap(lambda p, r: small.d.replace(geom_xpos=p, geom_xmat=r))(pos[:3], mat[:3]))
    again = step(ours)
    for i in range(3):
        full = len(contacts[i]["dist"])
        assert int(ours.ncon[i]) == 6
        assert int(ours.maxuse_con[i]) == full
        assert int(ours.overflow_contacts[i]) == full - 6
        assert int(again.overflow_contacts[i]) == 2 * (full - 6)
        assert int(again.warning.number[i, WarningType.CONTACTFULL]) == 2
        np.testing.assert_allclose(ours.contact.dist[i], contacts[i]["dist"][:6], atol=1e-9)


@pytest.mark.parametrize(("size", "capacity"), [(1, 1), (2, 5), (31, 8), (32, 32), (100, 7)])
@pytest.mark.parametrize("share", [0, 0.3, 1])
@pytest.mark.parametrize("as_program", [False, pytest.param(True, marks=needs_c)])
def test_compact_finds_the_first_true_entries(size, capacity, share, as_program):
    masks = np.random.default_rng(size).random((4, size)) < share
    compact = functools.partial(compaction.compact, capacity=capacity)
    index, real, lost = jax.jit(jax.vmap(stage(compact, form="host") if as_program else compact))(masks)
    for k, mask in enumerate(masks):
        index_true = np.flatnonzero(mask)
        n = min(len(index_true), capacity)
        np.testing.assert_array_equal(index[k], np.pad(index_true[:n], (0, capacity - n)))
        np.testing.assert_array_equal(real[k], np.arange(capacity) < n)
        assert lost[k] == len(index_true) - n


def test_compaction_before_the_narrow_phase_changes_nothing(crowd, monkeypatch):
    scene, pos, mat, contacts, _ = crowd
    monkeypatch.setattr(driver, "COMPACT_MIN_COST", 0)
    monkeypatch.setattr(driver, "COMPACT_MIN_PAIRS", 2)
    monkeypatch.setattr(driver, "entries_in_sequence", lambda m, x, geom, kind, groups, plain: plain(x, geom, kind))
    ours = jax.jit(jax.vmap(scene.single))(pos, mat)
    assert_same(ours, contacts, (*PLACES, "geom"))


@pytest.mark.parametrize("flag", ['override="enable" filterparent="disable"', 'midphase="disable"'])
def test_flags(flag):
    scene = make_scene(everything(2, flag), max_contacts=400)
    pos, mat, contacts = scene.oracle(states(scene.mj, 8))
    assert_same(scene.run(pos, mat), contacts, (*PLACES, *PARAMETERS))


@pytest.mark.parametrize("flag", ["contact", "constraint"])
def test_disabled_contacts_leave_an_empty_buffer(flag):
    m = jaxsim.from_mujoco(mujoco.MjModel.from_xml_string(everything(1, f'{flag}="disable"')))
    d = driver.collision(m, jaxsim.make_data(m))
    assert int(d.ncon) == 0 and np.all(np.asarray(d.contact.geom) == -1)


def test_types_without_an_entry_in_the_table_are_refused_by_name(monkeypatch):
    monkeypatch.delitem(COLLIDERS, (GeomType.SPHERE, GeomType.BOX))
    m = jaxsim.from_mujoco(mujoco.MjModel.from_xml_string(everything(1)))
    with pytest.raises(jaxsim.UnsupportedError, match="sphere and box"):
        driver.collision(m, jaxsim.make_data(m))


def test_margin_is_a_number_not_a_constant(crowd):
    scene, pos, mat, *_ = crowd

    def count(scale):
        m = scene.m.replace(geom_margin=scale * scene.m.geom_margin)
        return driver.collision(m, scene.d.replace(geom_xpos=pos[0], geom_xmat=mat[0])).ncon

    few, many = jax.jit(jax.vmap(count))(jnp.array([0.0, 4.0]))
    assert few < many
