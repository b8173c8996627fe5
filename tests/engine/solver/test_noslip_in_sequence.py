"""The sweeps over rows in use, as machine code: the answers of the scans, whatever stands in rows that are absent."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.core.layout import make_layout
from jaxsim.engine.solver import noslip
from jaxsim.engine.solver.sweeps import SweepProblem, friction_slots
from jaxsim.native import compiler as native

pytestmark = pytest.mark.skipif(native.c_compiler() is None, reason="no C compiler (cc) to compare with XLA")
NWORLD = 3
ISLANDS = 3
BODY = '<body name="b{0}" pos="{0} 0 0"><joint name="j{0}" limited="true" range="-1 1"/><geom size=".1" {1}/></body>'
TENDON = '<tendon><fixed frictionloss=".1"><joint joint="j0" coef="1"/><joint joint="j2" coef="-.5"/></fixed></tendon>'

# name: cone, condim, whether a tendon has dry friction, capacity of contacts, tolerance
CASES = {
    "pyramids": ("pyramidal", 4, True, 9, 1e-3),
    "cones": ("elliptic", 4, False, 9, 1e-3),
    "cones of six": ("elliptic", 6, True, 5, 0),
    "plane cones": ("elliptic", 3, False, 7, 1e-3),
    "frictionless": ("elliptic", 1, True, 4, 1e-3),
    "no contacts": ("pyramidal", 3, False, 0, 1e-3),
}


@functools.cache
def layout_of(name):
    cone, condim, tendon, contacts, _ = CASES[name]
    bodies = "".join(BODY.format(i, f'condim="{condim}"') for i in range(6))
    option = f'<option cone="{cone}" noslip_iterations="9"/>'
    xml = f"<mujoco>{option}<worldbody>{bodies}</worldbody>{TENDON * tendon}</mujoco>"
    return make_layout(jaxsim.load_model(xml, max_contacts=contacts))


def problem(name, seed, absent=0.0):
    """A random world, some rows of which are absent; the Jacobian and reference of those are `absent`."""
    layout, (*_, tolerance) = layout_of(name), CASES[name]
    rng = np.random.default_rng(seed)
    nv, start, nslot = layout.nv, layout.offsets[3], layout.nslot
    active = rng.random(nslot) < 0.7
    present = rng.random(layout.ncontact) < 0.6
    dims = np.where(rng.random(layout.ncontact) < 0.5, layout.condim, min(3, layout.condim))
    rows = np.where(dims == 1, 1, 2 * (dims - 1) if layout.pyramidal else dims)
    active[start:] = (present[:, None] & (np.arange(layout.nfacet) < rows[:, None])).reshape(-1)
    force = np.where(active, rng.standard_normal(nslot), 0)
    force[start:] = np.abs(force[start:])
    island = rng.integers(0, ISLANDS, nslot)
    island[start:] = np.repeat(rng.integers(0, ISLANDS, layout.ncontact), layout.nfacet)
    root = rng.standard_normal((nv, nv))
    frictional = layout.ncontact and layout.condim > 1
    jac = np.where(present[:, None, None], rng.standard_normal((layout.ncontact, layout.condim, nv)), absent)
    return SweepProblem(
        factor=np.linalg.cholesky(root @ root.T + np.eye(nv)),
        y=3 * rng.standard_normal(nv),
        general=rng.standard_normal((1, nv)) if len(friction_slots(layout)) > nv else None,
        contact=jac if frictional else None,
        friction=rng.uniform(0.3, 1, (layout.ncontact, layout.condim - 1)) if frictional else None,
        aref=np.where(active, rng.standard_normal(nslot), absent),
        active=active,
        bound=rng.uniform(0.1, 1, nslot),
        force=force,
        regular=np.where(active, rng.uniform(0, 0.1, nslot), 0),
        label=np.where(active, island, nv).astype(np.int32),
        tolerance=np.array(float(tolerance)),
        scale=np.array(1.0),
    )


def batch(name, absent=0.0, dtype=np.float64):
    worlds = [problem(name, seed, absent) for seed in range(NWORLD)]
    stacked = jax.tree.map(lambda *x: np.stack(x), *worlds)
    return jax.tree.map(lambda x: jnp.asarray(x, dtype if x.dtype == np.float64 else x.dtype), stacked)


def by_scans(name, s, iterations=9):
    return jax.jit(jax.vmap(functools.partial(noslip.sweep_all, layout_of(name), iterations)))(s)


def by_used(name, s, iterations=9):
    return jax.jit(jax.vmap(functools.partial(noslip.sweep, layout_of(name), iterations)))(s)


@pytest.mark.parametrize("name", CASES)
def test_answers_are_those_of_the_scans(name):
    s = batch(name)
    (want, counts), (force, sweeps) = by_scans(name, s), by_used(name, s)
    assert np.abs(want - s.force).max() > 0.01
    np.testing.assert_allclose(force, want, rtol=0, atol=1e-10 * np.abs(want).max())
    np.testing.assert_array_equal(sweeps, counts)


def test_answers_are_those_of_the_scans_in_single_precision(float32):
    s = batch("cones", dtype=np.float32)
    (want, _), (force, _) = by_scans("cones", s), by_used("cones", s)
    assert force.dtype == np.float32
    np.testing.assert_allclose(force, want, rtol=0, atol=1e-4 * np.abs(want).max())


def test_each_world_stops_by_itself():
    _, sweeps = by_used("cones", batch("cones"), 60)
    assert len(np.unique(sweeps)) > 1 and sweeps.max() < 60


@pytest.mark.parametrize("name", ["pyramids", "cones"])
def test_absent_rows_are_not_visited(name):
    force, sweeps = by_used(name, batch(name, absent=np.nan))
    want, counts = by_used(name, batch(name))
    np.testing.assert_array_equal(force, want)
    np.testing.assert_array_equal(sweeps, counts)


@pytest.mark.parametrize("name", ["pyramids", "cones"])
def test_a_world_in_a_batch_has_the_numbers_of_one_alone(name):
    s = batch(name)
    force, sweeps = by_used(name, s)
    for i in range(NWORLD):
        one, count = by_used(name, jax.tree.map(lambda x, i=i: x[i : i + 1], s))
        np.testing.assert_array_equal(one[0], force[i])
        assert count[0] == sweeps[i]


SCENE = """<mujoco><option cone="elliptic" noslip_iterations="3"/><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 .09"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""


def test_other_platforms_keep_the_scans():
    m = jaxsim.load_model(SCENE, max_contacts=1)
    traced = jax.jit(jaxsim.forward).trace(m, jaxsim.make_data(m))
    text = {p: traced.lower(lowering_platforms=(p,)).as_text() for p in ("cpu", "cuda")}
    assert text["cuda"].count("stablehlo.while") >= 3 + text["cpu"].count("stablehlo.while")


@functools.cache
def forces_of_scene():
    """Constraint forces by velocity: the model is a constant of the program."""
    m = jaxsim.load_model(SCENE, max_contacts=1)
    return m.nv, lambda v: jaxsim.forward(m, jaxsim.make_data(m).replace(qvel=v)).efc_force


def test_numbers_of_the_model_may_be_constants():
    nv, forces = forces_of_scene()
    assert np.abs(jax.jit(forces)(jnp.ones(nv))).max() > 1


def test_batches_of_batches_are_one_larger_batch():
    nv, forces = forces_of_scene()
    qvel = np.random.default_rng(0).standard_normal((2, 3, nv))
    several, alone = jax.jit(jax.vmap(jax.vmap(forces)))(qvel), jax.jit(forces)
    for i, j in np.ndindex(2, 3):
        np.testing.assert_allclose(several[i, j], alone(qvel[i, j]), rtol=0, atol=1e-9 * np.abs(several).max())
