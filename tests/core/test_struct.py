"""Models and data behave like objects: copies, pickles, comparison, donation, and what `print` shows."""

import copy
import dataclasses
import multiprocessing
import pickle
from collections import Counter

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import identify, optim
from jaxsim.envs.base import State
from jaxsim.identify.uncertainty import uncertainty
from tests.paths import MODELS

XML = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="ball" pos="0 0 .09"><freejoint/><geom size=".1"/></body><body name="hand" mocap="true"/></worldbody>
<keyframe><key name="up" qpos="0 0 2 1 0 0 0"/></keyframe></mujoco>"""
PARTS = (
    "m",
    "d",
    "m.opt",
    "m.stat",
    "m.vis",
    "m.vis.map",
    "m.structure",
    "d.contact",
    "d.efc",
    "d.warning",
    "d.efc.layout",
)


@pytest.fixture(scope="module")
def simulated():
    m = jaxsim.load_model(XML)
    return {"m": m, "d": jaxsim.step(m, jaxsim.make_data(m))}


def pickled(x):
    return pickle.loads(pickle.dumps(x))


def cloudpickled(x):
    return cloudpickle.loads(cloudpickle.dumps(x))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled, cloudpickled])
@pytest.mark.parametrize("part", PARTS)
def test_copies_are_equal_and_have_equal_hashes(simulated, part, copied):
    x = eval(part, simulated)
    twin = copied(x)
    assert type(twin) is type(x) and twin == x and hash(twin) == hash(x)
    if isinstance(x, jaxsim.Model | jaxsim.Data):
        assert jax.tree.structure(twin) == jax.tree.structure(x)


def test_copies_share_the_compilation(simulated):
    m, d = simulated["m"], simulated["d"]
    heights = jax.jit(lambda m, d: m.geom_pos + d.geom_xpos)
    heights(m, d)
    heights(pickled(m), copy.deepcopy(d))
    heights(copy.copy(m), cloudpickled(d))
    assert heights._cache_size() == 1


def _in_float64():
    jax.config.update("jax_enable_x64", True)


def _heights(m, d):
    return np.asarray(d.body("ball").xpos), m.id2name("geom", 0)


def test_spawned_processes_take_models_and_data(simulated):
    with multiprocessing.get_context("spawn").Pool(1, _in_float64) as pool:
        xpos, name = pool.apply(_heights, (simulated["m"], simulated["d"]))
    assert name == "floor"
    np.testing.assert_array_equal(xpos, simulated["d"].body("ball").xpos)


def test_dataclasses_functions_work(simulated):
    m, d = simulated["m"], simulated["d"]
    assert {"qpos", "contact", "efc"} <= {f.name for f in dataclasses.fields(d)}
    assert {"nq", "body_mass", "geom_type", "opt", "vis"} <= {f.name for f in dataclasses.fields(m)}
    assert dataclasses.is_dataclass(m) and dataclasses.is_dataclass(jaxsim.Option)
    assert dataclasses.replace(d, ctrl=d.ctrl) == d
    same = dataclasses.replace(m, body_mass=2 * m.body_mass)
    assert same.structure is m.structure and same.body_mass[1] == 2 * m.body_mass[1]
    other = dataclasses.replace(m, geom_group=np.array([3, 3], np.int32))
    assert other.geom_group[0] == 3 and other.structure != m.structure and m.geom_group[0] == 0
    assert dataclasses.replace(m.opt, timestep=0.1).timestep == 0.1
    with pytest.raises(TypeError, match="no field 'nq'"):
        dataclasses.replace(m, nq=3)


def test_equality_is_that_of_structure_and_numbers(simulated):
    m, d = simulated["m"], simulated["d"]
    again = jaxsim.load_model(XML)
    assert again == m and hash(again) == hash(m) and again is not m and len({m, again}) == 1
    assert m != m.replace(body_mass=m.body_mass + 1) and m != m.replace(geom_group=[1, 1]) and m != d and m != 3
    assert m.opt != m.opt.replace(iterations=3) and m.vis != m.vis.replace(map=m.vis.map.replace(zfar=3.0))
    bad = d.replace(qvel=d.qvel.at[0].set(jnp.nan))
    assert bad == copy.deepcopy(bad) and bad != d and d == jaxsim.step(m, jaxsim.make_data(again))
    assert d != jax.tree.map(lambda x: x[None], d)
    with pytest.raises(TypeError, match=r"traced: compare leaves, as in jax\.tree\.map"):
        jax.jit(lambda a, b: jnp.array(a == b))(d, bad)


def test_values_given_to_a_model_stay_the_callers(simulated):
    group = np.array([1, 2], np.int32)
    m = simulated["m"].replace(geom_group=group)
    group[0] = 7
    assert m.geom_group[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        m.geom_group[0] = 3


def test_attributes_can_be_neither_set_nor_deleted(simulated):
    for part in ("m", "d", "m.opt", "m.stat", "m.vis", "d.contact"):
        x = eval(part, simulated)
        name = dataclasses.fields(x)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError, match=r"use .replace"):
            setattr(x, name, 1)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(x, name)


def fresh(m):
    yield jaxsim.make_data(m)
    yield jaxsim.make_data(m, keyframe="up")
    yield jaxsim.reset_data(m, jaxsim.make_data(m))
    yield jax.jit(jaxsim.reset_data)(m, jaxsim.make_data(m))
    yield jaxsim.reset_data_keyframe(m, jaxsim.make_data(m), 0)
    yield jax.jit(jaxsim.make_data)(m)
    yield jaxsim.from_arrays(jaxsim.make_data(m), jaxsim.to_arrays(jaxsim.make_data(m)))


def test_leaves_of_fresh_data_share_no_buffer(simulated):
    m = simulated["m"]
    own = {x.unsafe_buffer_pointer() for x in jax.tree.leaves(m) if x.size}
    for d in fresh(m):
        found = Counter(x.unsafe_buffer_pointer() for x in jax.tree.leaves(d) if x.size)
        assert max(found.values()) == 1 and not own & set(found)


def test_data_can_be_donated():
    m = jaxsim.load_model(XML)
    step = jax.jit(jaxsim.step, donate_argnums=1)
    for d in fresh(m):
        for _ in range(2):
            d = step(m, d)
        assert np.isfinite(d.qpos).all()
    jaxsim.step(m, jaxsim.make_data(m))


def lines(x):
    text = repr(x)
    assert max(map(len, text.splitlines())) <= 140
    return len(text.splitlines())


@pytest.mark.parametrize("name", ["humanoid.xml", "kitchen.xml", "flag.xml"])
def test_everything_fits_a_screen(name):
    m = jaxsim.load_model(MODELS / name)
    d = jaxsim.make_data(m)
    worlds = jax.tree.map(lambda x: jnp.stack([x] * 3), d)
    for x in (m, d, worlds):
        assert lines(x) <= 12
    for x in (m.opt, m.stat, m.vis, d.contact, worlds.contact, d.efc, worlds.efc, d.warning, m.body(1), d.joint(0)):
        assert lines(x) <= 45


def test_results_of_optimisers_fit_a_screen():
    many, names, m = np.zeros((300, 40)), tuple(f"actuator_{i}" for i in range(50)), jaxsim.load_model(XML)
    trajectory = {"qpos": many, "qvel": many, "sensordata": many}
    rest = many, many, None, None, None, many
    results = [
        optim.Result(many, many[0, 0], many[0], True, 3, many[0, 0], many, trajectory),
        optim.Result({"a": many, "b": [many] * 3}, many[0, 0], many),
        identify.Recordings(many, many, many, many, names, many),
        identify.Fit(names, *[many] * 4, m, *[many] * 4, names, 1.0, many, True, 3, *rest),
        identify.Parameter(names, many, None),
        uncertainty(many),
        jax.tree.map(
            lambda x: np.zeros(x.shape), jax.eval_shape(jaxsim.transition_derivatives, m, jaxsim.make_data(m))
        ),
    ]
    results.append(State(results[-1].A, trajectory, many, many, trajectory, {"first": results[0]}))
    for result in results:
        assert lines(result) <= 20 and type(result).__name__ in repr(result)
