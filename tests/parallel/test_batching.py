"""Batch axes of models, shared compiled batches, compilation ahead of time."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim

XML = """<mujoco><worldbody><geom type="plane" size="1 1 .1"/><body pos="0 0 .12"><freejoint/>
<geom type="box" size=".1 .1 .1"/><geom size=".01" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""
NWORLD = 11


@functools.cache
def model():
    return jaxsim.load_model(XML)


def worlds(m):
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (NWORLD, *x.shape)), jaxsim.make_data(m))


@functools.cache
def randomised():
    """A step with masses and gravity of each world, its inputs, and its lowered program."""
    m = model()
    scale = jnp.linspace(0.5, 2, NWORLD)
    mixed = m.replace(body_mass=scale[:, None] * m.body_mass, opt=m.opt.replace(gravity=scale[:, None] * m.opt.gravity))
    axes = jaxsim.batch_axes(m, ["body_mass", "opt.gravity"])
    step = jax.jit(jax.vmap(jaxsim.step, in_axes=(axes, 0)))
    return step, mixed, worlds(m), step.lower(mixed, worlds(m))


def test_named_numbers_have_an_axis_and_no_others():
    axes = jaxsim.batch_axes(model(), ["body_mass", "opt.gravity", "stat.meaninertia"])
    assert (axes.body_mass, axes.opt.gravity, axes.stat.meaninertia) == (0, 0, 0)
    assert jax.tree.leaves(axes) == [0, 0, 0]


@pytest.mark.parametrize("name", ["body_weight", "opt.iterations", "geom_type", "nv"])
def test_a_name_that_is_no_float_field_is_an_error(name):
    with pytest.raises(ValueError, match=re.escape(name)):
        jaxsim.batch_axes(model(), [name])


def test_each_world_gets_its_own_numbers():
    step, mixed, start, _ = randomised()
    last = step(mixed, start)
    for k in (0, NWORLD - 1):
        m = model()
        alone = m.replace(body_mass=mixed.body_mass[k], opt=m.opt.replace(gravity=mixed.opt.gravity[k]))
        one = jaxsim.parallel.batching.single()(alone, jaxsim.make_data(m))
        np.testing.assert_allclose(last.qvel[k], one.qvel, rtol=1e-9, atol=1e-9)


def test_fields_that_are_not_batched_are_not_copied():
    _, mixed, _, lowered = randomised()
    shapes = [x.shape for x in jax.tree.leaves(lowered.in_avals[0][0])]
    batched = [s for s in shapes if s[:1] == (NWORLD,)]
    assert sorted(batched) == sorted([mixed.body_mass.shape, mixed.opt.gravity.shape])
    text = lowered.compile().as_text()
    ngeom = model().ngeom
    for shape in (f"{NWORLD},{ngeom},17", f"{NWORLD},{ngeom},6"):  # of geom_fluid and geom_aabb, had they been copied
        assert f"f64[{shape}]" not in text


def test_batched_function_is_one_for_all_callers():
    assert jaxsim.batched() is jaxsim.batched() and jaxsim.batched(jaxsim.forward) is not jaxsim.batched()


@pytest.mark.parametrize("nworld", [None, NWORLD])
def test_after_warmup_steps_do_not_compile(nworld):
    m = model()
    warm = jaxsim.warmup(m, nworld)
    (step,) = warm.functions
    d = jaxsim.make_data(m) if nworld is None else worlds(m)
    before = step._cache_size()
    assert before >= 1
    for _ in range(2):
        d = step(m, d)
    assert step._cache_size() == before
    assert len(warm.seconds) == 1


POLE = """<mujoco><worldbody><body><joint axis="0 1 0"/>
<geom type="{}" fromto="0 0 0 0 0 -{}" size=".05"/></body></worldbody>
</mujoco>"""


def pole(length, geom="capsule", **options):
    return jaxsim.load_model(POLE.format(geom, length), **options)


def test_models_that_differ_in_lengths_share_a_program_and_stack():
    poles = [pole(0.2), pole(0.3)]
    step = jax.jit(lambda m, d: jaxsim.step(m, d))  # its own: `jit` of one function shares a cache
    apart = [step(m, jaxsim.make_data(m).replace(qpos=jnp.ones(1))).qacc for m in poles]
    assert step._cache_size() == 1
    d = jaxsim.make_data(poles[0]).replace(qpos=jnp.ones(1))
    together = jax.jit(jax.vmap(jaxsim.step, in_axes=(0, None)))(jaxsim.stack_models(poles), d)
    np.testing.assert_allclose(together.qacc, apart, rtol=1e-9)
    assert abs(apart[0] - apart[1]) > 1


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: pole(0.2, "cylinder"), r"models 0 and 1 differ in .*geom_type\[0\] \(3 and 5\)"),
        (lambda: model(), r"differ in nq \(1 and 7\)"),
        (lambda: pole(0.2, max_constraints=0), r"max_constraints \(1 and 0\); load them with max_constraints=1"),
        (lambda: pole(0.2).replace(opt=pole(0.2).opt.replace(cone="elliptic")), r"opt.cone \(0 and 1\)"),
    ],
    ids=["geom", "sizes", "capacity", "option"],
)
def test_models_of_other_structures_are_refused_with_what_differs(other, words):
    with pytest.raises(ValueError, match=words):
        jaxsim.stack_models([pole(0.2), other()])
