"""The solver as one kernel, interpreted: the answers and derivatives of the plain one; and its lowering for CUDA."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.core import layout as layouts
from jaxsim.core.types import ConstraintType, SolverType
from jaxsim.engine.solver import implicit_diff, primal
from jaxsim.engine.solver.operators import DenseInertia, DenseRows
from jaxsim.engine.solver.problem import ConstraintProblem, residual
from jaxsim.math.arrays import dot

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
}
NWORLD = 4


@functools.cache
def layout_of(name: str):
    """The layout of a model's rows."""
    xml, contacts = MODELS[name]
    return layouts.make_layout(jaxsim.load_model(xml, max_contacts=contacts))


def problems(name: str, dtype, seed: int = 0):
    """A batch of random problems of one layout, in each some rows absent, and a guess: all of one dtype."""
    layout = layout_of(name)
    rng = np.random.default_rng(seed)
    made = [_problem(layout, rng) for _ in range(NWORLD)]
    p = jax.tree.map(lambda *x: jnp.asarray(np.stack(x), dtype), *made)
    acc = jnp.asarray(rng.standard_normal((NWORLD, layout.nv)), dtype)
    return p, primal.InitialGuess(
        acc, jax.vmap(dot)(p.M.matrix, acc), jax.vmap(functools.partial(residual, layout))(p, acc)
    )


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
    jac = np.where(present[:, None, None], rng.standard_normal((layout.ncontact, layout.condim, nv)), 0)
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


def solve(layout, kind: str, p, start):
    """qacc and the number of iterations of one problem."""
    one = jnp.ones((), p.M.matrix.dtype)
    settings = primal.Tolerances(1e-13 * one, 1e-2 * one, one)
    return implicit_diff.solve(
        layout, primal.IterationLimits("newton", 50, 50, kind == "kernel"), p, settings, jnp.zeros(()), start
    )


@functools.cache
def solver(name: str, kind: str):
    """Solves a batch of problems of one layout."""
    return jax.jit(jax.vmap(functools.partial(solve, layout_of(name), kind)))


def both(name: str, dtype, seed: int = 0):
    """Answers of the plain solver and of the kernel."""
    args = problems(name, dtype, seed)
    return solver(name, "newton")(*args), solver(name, "kernel")(*args)


@pytest.mark.parametrize("name", MODELS)
def test_answer_is_that_of_the_plain_solver(name):
    (want, plain), (got, counts) = both(name, np.float64)
    assert np.abs(want).max() > 0.1 and np.isfinite(got).all()
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-9 * np.abs(want).max())
    assert np.abs(plain - counts).max() <= 1


def test_answer_is_that_of_the_plain_solver_in_single_precision(float32):
    (want, _), (got, counts) = both("cones", np.float32)
    assert got.dtype == np.float32 and counts.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * np.abs(want).max())


def test_each_world_stops_by_itself():
    _, (_, counts) = both("pyramids", np.float64)
    assert len(np.unique(counts)) > 1


@functools.cache
def derivatives(kind: str):
    """Of the answers by everything in the problem: along one direction, and backwards from another."""
    layout = layout_of("cones")
    p, start = problems("cones", np.float64)
    rng = np.random.default_rng(1)
    push = p._replace(**{k: rng.standard_normal(getattr(p, k).shape) for k in ("qfrc_smooth", "aref")})
    push = jax.tree.map(lambda x, v: v if v is not x else jnp.zeros_like(x), p, push)
    pull = rng.standard_normal(start.acc.shape)

    def both_ways(p, start, push, pull):
        answer = lambda p: solve(layout, kind, p, start)[0]  # noqa: E731
        return jax.jvp(answer, (p,), (push,))[1], jax.vjp(answer, p)[1](pull)[0]

    return jax.jit(jax.vmap(both_ways))(p, start, push, pull)


def test_derivatives_are_those_of_the_plain_solver():
    for want, got in zip(*map(jax.tree.leaves, (derivatives("newton"), derivatives("kernel"))), strict=True):
        assert np.isfinite(got).all()
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-8 * max(1, np.abs(want).max()))
    assert np.abs(derivatives("kernel")[0]).max() > 0.1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MODELS)
def test_it_lowers_for_cuda_without_a_gpu(name, dtype):
    lowered = solver(name, "kernel").trace(*problems(name, dtype)).lower(lowering_platforms=("cuda",))
    assert lowered.as_text().count("__gpu$xla.gpu.triton") == 1


def test_a_forward_pass_takes_the_option_and_gives_the_same_answer():
    ball = '<body pos="0 0 .09"><freejoint/><geom size=".1"/></body>'
    plain = jaxsim.load_model(HEAD.format("elliptic", f'<geom type="plane" size="1 1 1"/>{ball}', ""), max_contacts=1)
    m = _with_kernel(plain)
    got = jax.jit(jaxsim.forward)(m, jaxsim.make_data(m).replace(qvel=jnp.array([1.0, 0, -1, 0, 0, 0])))
    want = jax.jit(jaxsim.fwd_constraint)(plain, got)
    assert got.ncon == 1 and got.solver_niter > 0 and np.abs(got.efc_force).max() > 1
    np.testing.assert_allclose(got.qacc, want.qacc, rtol=0, atol=1e-9 * np.abs(want.qacc).max())


def test_the_option_is_off_by_default():
    m = jaxsim.load_model(MODELS["dofs"][0])
    traced = [str(jax.make_jaxpr(jaxsim.forward)(m, jaxsim.make_data(m))) for m in (m, _with_kernel(m))]
    assert ["pallas_call" in text for text in traced] == [False, True]


def _with_kernel(m, **options):
    return m.replace(opt=m.opt.replace(**{"solver_kernel": 1, **options}))


def _traced(xml: str, **options):
    m = _with_kernel(jaxsim.load_model(xml, max_contacts=1), **options)
    return jax.eval_shape(jaxsim.forward, m, jaxsim.make_data(m))


MANY = HEAD.format(
    "elliptic", '<replicate count="130" offset="1 0 0"><body><joint/><geom size=".1"/></body></replicate>', ""
)


@pytest.mark.parametrize("warps", [-1, 3, 64])
def test_numbers_of_warps_that_no_gpu_takes_are_refused(warps):
    with pytest.raises(jaxsim.UnsupportedError, match=f"solver_kernel with {warps} warps"):
        _traced(MODELS["dofs"][0], solver_kernel=warps)


def test_conjugate_gradients_are_refused():
    with pytest.raises(jaxsim.UnsupportedError, match="solver_kernel with the solver CG"):
        _traced(MODELS["dofs"][0], solver=SolverType.CG)


def test_more_dofs_than_fit_registers_are_refused():
    with pytest.raises(jaxsim.UnsupportedError, match="solver_kernel with more than 128 dofs"):
        _traced(MANY)


def test_sparse_rows_are_refused(monkeypatch):
    monkeypatch.setattr(layouts, "SPARSE_DOFS", 1)
    with pytest.raises(jaxsim.UnsupportedError, match="solver_kernel with the sparse rows"):
        _traced(MANY.replace("130", "8"))
