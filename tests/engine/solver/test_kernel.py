"""The solver as one kernel, its source compiled for this machine: the answers and derivatives of the plain one."""

import dataclasses
import functools
import unittest.mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.core import layout as layouts
from jaxsim.core.types import Backend, ConstraintType, SolverType
from jaxsim.engine.constraint.solve import SOLVERS
from jaxsim.engine.solver import implicit_diff, kernel, primal
from jaxsim.engine.solver.operators import DenseInertia, DenseRows
from jaxsim.engine.solver.problem import ConstraintProblem, curvature, gradient, hessian_times, residual
from jaxsim.native import compiler as native
from jaxsim.native import function
from jaxsim.native import launch as kernels
from jaxsim.native.nvrtc import CompilerMissing

needs_compiler = pytest.mark.skipif(
    native.c_compiler() is None, reason="runs the kernel's source on this machine: needs a C compiler (cc)"
)

pytestmark = pytest.mark.filterwarnings("error:.*by XLA instead")
# the source of the kernel, and the form for one thread that a CPU takes by itself
KINDS = ["kernel", "thread"]
HEAD = '<mujoco><option cone="{}"/><worldbody>{}</worldbody>{}</mujoco>'
HINGE = '<body name="b{0}" pos="{0} 0 0"><joint name="j{0}" {1}/><geom name="g{0}" size=".1" condim="{2}"/></body>'
LIMITED = 'limited="true" range="-1 1"'
GENERAL = """<equality><connect body1="b0" body2="b1" anchor="0 0 0"/></equality><tendon>
<fixed limited="true" range="-1 1"><joint joint="j0" coef="1"/><joint joint="j1" coef="1"/></fixed></tendon>"""


def _xml(cone: str, condim: int, joint: str = "", general: str = "") -> str:
    return HEAD.format(cone, "".join(HINGE.format(i, joint if i % 2 else "", condim) for i in range(3)), general)


# name: the model, and the capacity of contacts
MODELS = {
    "dofs": (_xml("pyramidal", 1, LIMITED), 0),
    "friction alone": (_xml("elliptic", 1), 0),
    "frictionless": (_xml("elliptic", 1, LIMITED), 3),
    "pyramids": (_xml("pyramidal", 3, LIMITED, GENERAL), 10),
    "cones": (_xml("elliptic", 3, LIMITED, GENERAL), 18),
    "cones of six": (_xml("elliptic", 6), 2),
    "many dofs": (HEAD.format("elliptic", "".join(HINGE.format(i, "", 3) for i in range(66)), ""), 5),
}
NWORLD = 4


@functools.cache
def layout_of(name: str):
    """The layout of a model's rows."""
    xml, contacts = MODELS[name]
    return layouts.make_layout(jaxsim.load_model(xml, max_contacts=contacts))


def problems(name: str, dtype, seed: int = 0):
    """A batch of random problems of one layout, in each some rows absent, and guesses: all of one dtype."""
    layout = layout_of(name)
    rng = np.random.default_rng(seed)
    made = [_problem(layout, rng) for _ in range(NWORLD)]
    p = jax.tree.map(lambda *x: jnp.asarray(np.stack(x), dtype), *made)
    free, warm = (jnp.asarray(rng.standard_normal((NWORLD, layout.nv)), dtype) for _ in range(2))
    free = jax.vmap(jnp.linalg.solve)(p.M.matrix, p.qfrc_smooth) if dtype == np.float64 else free
    return p, primal.Guesses(free, warm)


def _problem(layout, rng):
    nv, start = layout.nv, layout.offsets[3]
    root = rng.standard_normal((nv, nv))
    stiffness = np.exp(rng.uniform(0, 4, layout.nslot)) * (rng.random(layout.nslot) < 0.8)
    friction = rng.uniform(0.3, 1, (layout.ncontact, 5))
    mu = friction[:, 0] * (rng.random(layout.ncontact) < 0.9)  # some contacts are frictionless
    present = np.arange(layout.ncontact) < rng.integers(0, layout.ncontact + 1)
    if layout.pyramidal or layout.condim == 1:
        stiffness[start:] *= np.repeat(present, layout.nfacet)
    else:
        ratio = np.concatenate([np.ones((layout.ncontact, 1)), friction[:, : layout.condim - 1]], axis=1)
        ratio[:, 1:] *= (mu > 0)[:, None] / np.where(mu > 0, mu, 1)[:, None]
        stiffness[start:] = (stiffness[start :: layout.nfacet] * present)[:, None].repeat(layout.condim, 1).ravel()
        stiffness[start:] *= np.square(ratio).ravel()
    moved = present[:, None] & (rng.random((layout.ncontact, nv)) < 0.7)  # a contact depends on few dofs
    jac = np.where(moved[:, None], rng.standard_normal((layout.ncontact, layout.condim, nv)), 0)
    lo, hi = _bounds(layout, rng.uniform(0, 1, layout.nslot))
    return ConstraintProblem(
        M=DenseInertia(root @ root.T + np.eye(nv)),
        J=DenseRows(layout, rng.standard_normal((layout.ngeneral, nv)), jac, friction),
        qfrc_smooth=3 * rng.standard_normal(nv),
        aref=3 * rng.standard_normal(layout.nslot),
        D=stiffness,
        lo=lo,
        hi=hi,
        mu=mu,
    )


def _bounds(layout, loss):
    """Bounds of all slots: none for equalities, +-loss for dry friction, pushing only for all others."""
    lo, hi = np.full(layout.nslot, -np.inf), np.zeros(layout.nslot)
    hi[: layout.ngeneral][layout.general.type == ConstraintType.EQUALITY] = np.inf
    dry = np.zeros(layout.nslot, bool)
    dry[: layout.ngeneral] = layout.general.type == ConstraintType.FRICTION_TENDON
    dry[layout.offsets[1] : layout.offsets[2]] = True
    return np.where(dry, -loss, lo), np.where(dry, loss, hi)


ON_HOST = dataclasses.replace(kernel.SOLVE, name="solve_on_host", programs={"cpu": kernel.on_host})


def solve(layout, kind: str, solver: SolverType, p, guesses):
    """The solution of one problem by operations of JAX ("plain"), or a program: see `KINDS`."""
    one = jnp.ones((), p.M.matrix.dtype)
    settings = primal.Tolerances(1e-13 * one, 1e-2 * one, one)
    limits = primal.IterationLimits(SOLVERS[solver], 60, 50, Backend.XLA if kind == "plain" else Backend.AUTO)
    with unittest.mock.patch.object(kernel, "SOLVE", ON_HOST if kind == "kernel" else kernel.SOLVE):
        return implicit_diff.solve(layout, limits, p, settings, guesses)


@functools.cache
def solver_of(name: str, kind: str, solver: SolverType = SolverType.NEWTON):
    """Solves a batch of problems of one layout."""
    return jax.jit(jax.vmap(functools.partial(solve, layout_of(name), kind, solver)))


def both(name: str, dtype, solver: SolverType = SolverType.NEWTON, kind: str = "kernel"):
    """Solutions of the plain solver and of another kind."""
    args = problems(name, dtype)
    return [present(args[0].D, solver_of(name, k, solver)(*args)) for k in ("plain", kind)]


def present(d, found):
    """A solution with zeros for the residuals of absent rows, which mean nothing."""
    return found._replace(r=jnp.where(d > 0, found.r, 0), free_r=jnp.where(d > 0, found.free_r, 0))


def assert_close(got, want, tolerance):
    for field in ("acc", "r", "free_r", "qfrc"):
        x, y = getattr(got, field), getattr(want, field)
        assert np.isfinite(x).all()
        np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * max(1, np.abs(y).max()), err_msg=field)


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MODELS)
def test_solution_is_that_of_the_plain_solver(name, kind):
    want, got = both(name, np.float64, kind=kind)
    assert np.abs(want.acc).max() > 0.1
    assert_close(got, want, 1e-9)
    assert np.abs(want.niter - got.niter).max() <= 1


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["pyramids", "cones"])
def test_conjugate_gradients_are_those_of_the_plain_solver(name, kind):
    want, got = both(name, np.float64, SolverType.CG, kind)
    assert np.max(want.niter) > 3
    assert_close(got, want, 1e-9)


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
def test_solution_in_single_precision_is_that_of_the_plain_solver_in_double_precision(kind):
    """The plain one in single precision stops 3e-5 from it."""
    args = problems("pyramids", np.float32)
    doubles = jax.tree.map(lambda x: x.astype(np.float64), args)
    want = present(doubles[0].D, solver_of("pyramids", "plain")(*doubles))
    with jax.enable_x64(False):
        found = jax.jit(jax.vmap(functools.partial(solve, layout_of("pyramids"), kind, SolverType.NEWTON)))(*args)
        got = present(args[0].D, found)
    assert got.acc.dtype == np.float32 and got.niter.dtype == np.float32
    assert_close(got, want, 1e-5)


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
def test_each_world_stops_by_itself(kind):
    _, got = both("pyramids", np.float64, kind=kind)
    assert len(np.unique(got.niter)) > 1


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_is_no_number_spoils_its_own_world_alone(kind):
    p, guesses = problems("cones", np.float64)
    fine = solver_of("cones", kind)(p, guesses)
    bad = solver_of("cones", kind)(p._replace(D=p.D.at[0, 0].set(jnp.nan)), guesses)
    assert np.isnan(bad.acc[0]).all() and np.isfinite(fine.acc[0]).all()
    np.testing.assert_array_equal(bad.acc[1:], fine.acc[1:])


THREADS = """#include <pthread.h>
static pthread_barrier_t gate;
static void meet(void) { pthread_barrier_wait(&gate); }
static T memory[AT_END];
static const void* given[24];
static void* one_lane(void* lane) {
  for (int world = 0; world < %d; ++world) { meet(); visit((int)(long)lane, world, memory, %s); meet(); }
  return 0;
}
void solve_worlds(%s) {
  pthread_t threads[LANES];
  const void* pointers[] = {%s};
  for (int i = 0; i < sizeof pointers / sizeof *pointers; ++i) given[i] = pointers[i];
  pthread_barrier_init(&gate, 0, LANES);
  for (long i = 0; i < LANES; ++i) pthread_create(threads + i, 0, one_lane, (void*)i);
  for (int i = 0; i < LANES; ++i) pthread_join(threads[i], 0);
}
"""


@needs_compiler
@pytest.mark.parametrize(("name", "lanes"), [("pyramids", 2), ("cones", 8), ("many dofs", 5)])
def test_lanes_that_share_the_work_find_the_same(name, lanes, monkeypatch):
    """Each lane is a thread, and they wait for one another where the kernel says so."""

    def entry(_, parameters, count, *__):
        names = [p.split()[-1] for p in parameters]
        args = [f"(void*)given[{i}]" for i in range(len(names))]
        return THREADS % (count, ", ".join(args), ", ".join(parameters), ", ".join(names))

    monkeypatch.setattr(kernels, "HOST", kernels.Lanes(lanes, lanes))
    monkeypatch.setattr(kernels, "entry_source", entry)
    monkeypatch.setattr(native, "FLAGS", (*native.FLAGS, "-D_GNU_SOURCE", "-pthread"))
    args = problems(name, np.float64)
    got = jax.jit(jax.vmap(functools.partial(solve, layout_of(name), "kernel", SolverType.NEWTON)))(*args)
    assert_close(present(args[0].D, got), both(name, np.float64)[0], 1e-9)


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
def test_batches_of_batches_and_shared_operands(kind):
    layout = layout_of("cones")
    p, guesses = problems("cones", np.float64)
    shared = p._replace(M=jax.tree.map(lambda x: x[0], p.M))
    axes = jax.tree.map(lambda _: 0, p)._replace(M=jax.tree.map(lambda _: None, p.M))
    one = functools.partial(solve, layout, kind, SolverType.NEWTON)
    want = jax.vmap(functools.partial(solve, layout, "plain", SolverType.NEWTON), in_axes=(axes, 0))(shared, guesses)
    want = present(p.D, want)
    assert_close(present(p.D, jax.jit(jax.vmap(one, in_axes=(axes, 0)))(shared, guesses)), want, 1e-9)
    two = lambda x: x.reshape(2, -1, *x.shape[1:])  # noqa: E731
    twice = jax.tree.map(two, p)._replace(M=shared.M), jax.tree.map(two, guesses)
    got = jax.jit(jax.vmap(jax.vmap(one, in_axes=(axes, 0)), in_axes=(axes, 0)))(*twice)
    assert_close(present(p.D, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), got)), want, 1e-9)
    alone = present(p.D[1], jax.jit(one)(*jax.tree.map(lambda x: x[1], (p, guesses))))
    assert_close(alone, jax.tree.map(lambda x: x[1], both("cones", np.float64)[0]), 1e-9)


@functools.cache
def derivatives(kind: str):
    """Of the answers by everything in the problem: along one direction, and backwards from another."""
    layout = layout_of("cones")
    p, guesses = problems("cones", np.float64)
    rng = np.random.default_rng(1)
    push = p._replace(**{k: rng.standard_normal(getattr(p, k).shape) for k in ("qfrc_smooth", "aref")})
    push = jax.tree.map(lambda x, v: v if v is not x else jnp.zeros_like(x), p, push)
    pull = rng.standard_normal(guesses.free.shape)

    def both_ways(p, guesses, push, pull):
        answer = lambda p: solve(layout, kind, SolverType.NEWTON, p, guesses)[0]  # noqa: E731
        return jax.jvp(answer, (p,), (push,))[1], jax.vjp(answer, p)[1](pull)[0]

    return jax.jit(jax.vmap(both_ways))(p, guesses, push, pull)


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_are_those_of_the_plain_solver(kind):
    for want, got in zip(*map(jax.tree.leaves, map(derivatives, ("plain", kind))), strict=True):
        assert np.isfinite(got).all()
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-8 * max(1, np.abs(want).max()))
    assert np.abs(derivatives(kind)[0]).max() > 0.1


def lowered(name: str, kind: str, platform: str) -> str:
    """The program of a batch of problems for a platform."""
    traced = jax.jit(jax.vmap(functools.partial(solve, layout_of(name), kind, SolverType.NEWTON))).trace(
        *problems(name, np.float64)
    )
    return traced.lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize("name", ["dofs", "cones", "many dofs"])
def test_the_platform_of_the_program_chooses(name, monkeypatch):
    monkeypatch.setattr(kernels, "ptx_of", lambda source: source)
    text = lowered(name, "thread", "cuda")
    assert text.count("__gpu$xla.gpu.ptx") == 1 and "void solve_worlds" in text
    assert "solve_worlds" not in lowered(name, "plain", "cuda")
    assert "xla.gpu" not in lowered(name, "thread", "cpu")


def test_without_nvrtc_the_plain_solver_is_taken_with_a_warning(monkeypatch):
    def missing(source):
        raise CompilerMissing("NVRTC is not installed")

    monkeypatch.setattr(kernels, "ptx_of", missing)
    with pytest.warns(RuntimeWarning, match="slower: NVRTC is not installed"):
        function.warn_once.cache_clear()
        assert "solve_worlds" not in lowered("frictionless", "thread", "cuda")


def test_memory_beyond_that_of_a_block_is_global(monkeypatch):
    seen = []
    monkeypatch.setattr(kernels, "ptx_of", lambda source: seen.append(source) or source)
    monkeypatch.setattr(kernels, "SHARED_BYTES", 1000)
    text = lowered("cones of six", "thread", "cuda")
    assert "(lane, &p, spill + w * " in seen[0] and "shared_mem_bytes = 0" in text


@needs_compiler
def test_a_step_takes_the_option_and_gives_the_same_answer():
    ball = '<body pos="0 0 .09"><freejoint/><geom size=".1"/></body>'
    m = jaxsim.load_model(HEAD.format("elliptic", f'<geom type="plane" size="1 1 1"/>{ball}', ""), max_contacts=1)
    d = jaxsim.make_data(m).replace(qvel=jnp.array([1.0, 0, -1, 0, 0, 0]))
    models = [m.replace(opt=m.opt.replace(backend=b)) for b in ("native", "xla")]
    programs = [jax.jit(jaxsim.forward).lower(m, d) for m in models]
    assert ["jaxsim_" in p.as_text() for p in programs] == [True, False]
    got, want = (jax.jit(jaxsim.forward)(m, d) for m in models)
    assert got.ncon == 1 and got.solver_niter > 0 and np.abs(got.efc_force).max() > 1
    for field in ("qacc", "qfrc_constraint", "efc_force", "efc_b"):
        x, y = getattr(got, field), getattr(want, field)
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-9 * np.abs(y).max(), err_msg=field)


def test_a_word_that_means_nothing_is_refused():
    m = jaxsim.load_model(MODELS["dofs"][0], max_contacts=1)
    with pytest.raises(ValueError, match="backend is 'cuda', wanted one of 'auto', 'native', 'xla'"):
        m.opt.replace(backend="cuda")


def test_more_dofs_than_a_program_takes_are_refused_where_one_is_demanded(monkeypatch):
    monkeypatch.setattr(kernel, "MOST_DOFS", 1)
    m = jaxsim.load_model(MODELS["dofs"][0], max_contacts=1)
    with pytest.raises(jaxsim.UnsupportedError, match="backend 'native' with this solver"):
        jax.eval_shape(jaxsim.forward, m.replace(opt=m.opt.replace(backend="native")), jaxsim.make_data(m))


@pytest.mark.parametrize("name", ["dofs", "frictionless", "pyramids", "cones", "cones of six"])
def test_products_with_the_hessian_are_derivatives_of_the_gradient(name):
    layout, (p, guesses) = layout_of(name), problems(name, np.float64)

    def both(p, acc, x):
        expected = jax.jvp(functools.partial(gradient, layout, p), (acc,), (x,))[1]
        return hessian_times(layout, p, curvature(layout, p, residual(layout, p, acc)), x), expected

    found, expected = jax.jit(jax.vmap(both))(p, guesses.free, guesses.warm)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
