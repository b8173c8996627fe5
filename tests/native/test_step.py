"""A step as a few kernels: by one lane, and by threads, against the step of operations of JAX."""

import re
import shutil
from collections import Counter
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.core.layout import is_sparse
from jaxsim.engine.step.forward import step_by_stages
from jaxsim.native import nvrtc
from jaxsim.native import stage as tile
from jaxsim.native.function import choices_of
from tests.native import threads

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler, as kernels on the host do"
)

WORLDS = 3
CLOSE = 1e-9  # float64; sums in another order
QUICK = ["humanoid"]
SLOW = ["mesh_gripper", "hand", "quadruped", "quadruped_rough", "thirty_boxes", "hand_hulls", "rope_bridge"]


@pytest.fixture(autouse=True, scope="module")
def doubles():
    with jax.enable_x64(True):
        yield


@cache
def model_and_worlds(name):
    """A model, and worlds that have moved for a while, each at another speed."""
    m = jaxsim.load_model(f"models/{name}.xml")
    step = jax.vmap(jaxsim.step, (None, 0))
    start = jax.vmap(lambda v: jaxsim.make_data(m).replace(qvel=jnp.full(m.nv, v)))(jnp.linspace(0, 0.3, WORLDS))
    return m, jaxsim.jit(lambda d: jax.lax.fori_loop(0, 40, lambda _, d: step(m, d), d))(start)


@cache
def plain(name):
    """The step by operations of JAX; of large models the solver, too, which on a CPU goes by another method."""
    m, d = model_and_worlds(name)
    if is_sparse(m):
        m = m.replace(opt=m.opt.replace(backend="xla"))
    return jax.jit(jax.vmap(step_by_stages, (None, 0)))(m, d)


def assert_same_data(got, want):
    for (path, x), y in zip(jax.tree_util.tree_leaves_with_path(got), jax.tree.leaves(want), strict=True):
        scale = np.max(np.abs(y), initial=1)
        np.testing.assert_allclose(x, y, rtol=0, atol=CLOSE * scale, err_msg=jax.tree_util.keystr(path))


@pytest.mark.parametrize("name", ["humanoid", *(pytest.param(n, marks=pytest.mark.slow) for n in ("hand", "ant"))])
def test_a_step_of_a_batch_is_one_program_and_the_step(name):
    m, d = model_and_worlds(name)
    some, places = jax.jit(jax.vmap(jaxsim.step, (None, 0))), np.arange(9) % WORLDS  # more than fill a vector
    step = some.lower(m, jax.tree.map(lambda x: x[places], d))
    assert step.as_text().count("custom_call @jaxsim_") == 1
    found = step.compile()(m, jax.tree.map(lambda x: x[places], d))
    assert_same_data(found, jax.tree.map(lambda x: x[places], plain(name)))


@pytest.mark.parametrize("lanes", ["one", "threads"])
@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(n, marks=pytest.mark.slow) for n in SLOW)])
def test_a_step_by_kernels_is_the_step(name, lanes, monkeypatch):
    m, d = model_and_worlds(name)
    if lanes == "threads":
        threads.use(monkeypatch)
    got = jax.jit(jax.vmap(tile.stage(jaxsim.step, form="host"), (None, 0)))(m, d)
    assert_same_data(got, plain(name))


BALL = """
<mujoco>
  <option integrator="implicitfast"/>
  <worldbody>
    <geom type="plane" size="2 2 .1"/>
    <body pos="0 0 .099"><freejoint/><geom size=".1"/>
      <body pos=".2 0 0"><joint name="hinge" damping=".1"/><geom type="capsule" size=".03 .1" pos=".1 0 0"/></body>
    </body>
  </worldbody>
  <actuator><motor joint="hinge"/></actuator>
</mujoco>
"""


def worlds_of(name, most=9):
    """A model and `most` worlds; those of a file move, since at rest, at a kink, rounding chooses the side."""
    if name == "ball":
        m = jaxsim.load_model(BALL)
        return m, jax.vmap(lambda v: jaxsim.make_data(m).replace(qvel=jnp.full(m.nv, v)))(jnp.linspace(0.01, 0.3, most))
    m, d = model_and_worlds(name)
    return m, jax.tree.map(lambda x: x[1 + np.arange(most) % (WORLDS - 1)], d)


@pytest.mark.parametrize("name", ["ball", pytest.param("humanoid", marks=pytest.mark.slow)])
def test_a_step_of_one_world_and_its_gradient_are_programs_of_a_core(name):
    m, worlds = worlds_of(name)
    d = jax.tree.map(lambda x: x[1], worlds)

    def of(step):
        value = lambda v: jnp.sum(step(m, d.replace(qvel=v)).qvel ** 2)  # noqa: E731
        return jax.jit(jax.value_and_grad(value)).lower(d.qvel)

    programs = []
    found = choices_of(lambda: programs.append(of(jaxsim.step)))
    assert [c.cause for c in found if c.label == "the step"] == [None, None]
    for got, want in zip(*(x.compile()(d.qvel) for x in (*programs, of(step_by_stages))), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=CLOSE * np.abs(want).max())


def given(name):
    m, d = worlds_of(name)
    return d.qpos, d.qvel, d.ctrl, m.body_mass


def derivative(name, step, mode="reverse"):
    """The lowered program of a derivative of the worlds' states after a step."""
    m, d = worlds_of(name)

    def after(qpos, qvel, ctrl, mass):
        new = jax.vmap(step, (None, 0))(m.replace(body_mass=mass), d.replace(qpos=qpos, qvel=qvel, ctrl=ctrl))
        return new.qpos, new.qvel

    def forward(*x):
        return jax.jvp(after, x, jax.tree.map(jnp.ones_like, x))[1]

    reverse = jax.grad(lambda *x: sum(jnp.sum(y**2) for y in after(*x)), argnums=(0, 1, 2, 3))
    return jax.jit(reverse if mode == "reverse" else forward).lower(*given(name))


@cache
def plain_derivative(name, mode):
    return derivative(name, step_by_stages, mode).compile()(*given(name))


@pytest.mark.parametrize("form", ["host", pytest.param("wide", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["ball", *(pytest.param(n, marks=pytest.mark.slow) for n in ("humanoid", "hand"))])
def test_gradients_by_kernels_are_those_of_the_step(name, form, monkeypatch):
    """By the state and the control of each world, and by masses that the worlds share."""
    if form != "host":
        monkeypatch.setattr("jaxsim.native.function.CompilerMissing", KeyError)  # so that what it refuses is seen
    found = derivative(name, tile.stage(jaxsim.step, form)).compile()(*given(name))
    for got, want in zip(found, plain_derivative(name, "reverse"), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=CLOSE * np.max(np.abs(want), initial=1))


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("ball", "reverse"),
        *(pytest.param(n, "reverse", marks=pytest.mark.slow) for n in ("humanoid", "hopper", "hand_hulls")),
        *(pytest.param(n, "forward", marks=pytest.mark.slow) for n in ("ball", "humanoid")),
    ],
)
def test_derivatives_of_a_batch_are_programs_and_those_of_the_step(name, mode):
    """By the state and the control of each world, and by masses that the worlds share."""
    program = derivative(name, jaxsim.step, mode)
    # the step, which solves, and its derivative, which searches of hulls that touch divide
    assert program.as_text().count("custom_call @jaxsim_") == (6 if name == "hand_hulls" else 2)
    for got, want in zip(program.compile()(*given(name)), plain_derivative(name, mode), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=CLOSE * np.max(np.abs(want), initial=1))


def by_jacfwd(f, x, d):
    return jax.vmap(jax.jacfwd(f))(x, d)


def by_jacrev(f, x, d):
    return jax.vmap(jax.jacrev(f))(x, d)


def by_directions_of_a_batch(f, x, d):
    """One direction for all worlds at a time: the axis of directions is the outer one."""
    along = lambda t: jax.jvp(lambda x: jax.vmap(f)(x, d), (x,), (jnp.broadcast_to(t, x.shape),))[1]  # noqa: E731
    return jnp.moveaxis(jax.vmap(along)(jnp.eye(x.shape[1])), 0, 2)


def by_batch_of_one(f, x, d):
    return jax.vmap(jax.jacfwd(f))(x[4:5], jax.tree.map(lambda y: y[4:5], d))


def by_jacobian_of_one(f, x, d):
    return jax.jacfwd(f)(x[4], jax.tree.map(lambda y: y[4], d))


@pytest.mark.parametrize(
    ("jacobian", "calls"),
    [
        (by_jacfwd, 3),
        pytest.param(by_jacrev, 3, marks=pytest.mark.slow),
        pytest.param(by_directions_of_a_batch, 3, marks=pytest.mark.slow),
        pytest.param(by_jacobian_of_one, 5, marks=pytest.mark.slow),  # its step is operations of JAX with three calls
        pytest.param(by_batch_of_one, 5, marks=pytest.mark.slow),  # its step is a program of a core, with the solver's
    ],
)
def test_a_jacobian_is_a_program_of_vectors_of_directions(jacobian, calls):
    """Beside the step, one program computes what the directions of a world share, and one what each of them needs."""
    m, d = worlds_of("ball")
    program = jax.jit(partial(jacobian, lambda v, d: jaxsim.step(m, d.replace(qvel=v)).qvel)).lower(d.qvel, d)
    assert program.as_text().count("custom_call @jaxsim_") == calls
    got, want = program.compile()(d.qvel, d), plain_a()[:, m.nv :, m.nv :]
    want = want[4:5] if jacobian is by_batch_of_one else want[4] if jacobian is by_jacobian_of_one else want
    np.testing.assert_allclose(got, want, rtol=0, atol=CLOSE * np.max(np.abs(want)))


def a_of(step):
    """The lowered program of the derivatives by the state of the worlds' states after a step."""
    m, d = worlds_of("ball")
    return jax.jit(jax.vmap(lambda d: jaxsim.transition_derivatives(m, d, step).A)).lower(d)


@cache
def plain_a():
    return a_of(step_by_stages).compile()(worlds_of("ball")[1])


def test_a_of_a_batch_is_one_program():
    """Nothing passes through memory between the step and its derivatives: directions are turns of loops."""
    program = a_of(jaxsim.step)
    assert program.as_text().count("custom_call @jaxsim_") == 1
    got, want = program.compile()(worlds_of("ball")[1]), plain_a()
    np.testing.assert_allclose(got, want, rtol=0, atol=CLOSE * np.max(np.abs(want)))


@pytest.mark.slow
def test_a_of_a_batch_is_native_where_a_box_meets_a_capsule():
    """The search of such pairs is part of the program: nothing runs by XLA instead."""
    m = jaxsim.load_model("""<mujoco><worldbody><geom type="box" size="1 1 .1"/><body pos="0 0 .19"><freejoint/>
        <geom type="capsule" size=".1 .2" euler="0 80 10"/></body></worldbody></mujoco>""")
    d, v = jaxsim.make_data(m), 0.1 * np.random.default_rng(0).normal(size=(9, m.nv))

    def of(step):
        return jax.jit(jax.vmap(lambda v: jaxsim.transition_derivatives(m, d.replace(qvel=v), step).A))

    chosen = choices_of(lambda: of(jaxsim.step).lower(v))
    assert chosen and all(c.cause is None for c in chosen)
    got, want = (of(step)(v) for step in (jaxsim.step, step_by_stages))
    np.testing.assert_allclose(got, want, rtol=0, atol=CLOSE * np.max(np.abs(want)))


@pytest.mark.slow
def test_a_jacobian_of_a_jacobian_is_that_of_the_step():
    m = jaxsim.load_model(BALL)
    d = jaxsim.make_data(m).replace(qvel=jnp.full(m.nv, 0.1))

    def of(step):
        return jax.jit(jax.jacrev(jax.jacfwd(lambda v: step(m, d.replace(qvel=v)).qvel)))(d.qvel)

    want = of(step_by_stages)
    np.testing.assert_allclose(of(jaxsim.step), want, rtol=0, atol=CLOSE * np.max(np.abs(want)))


def solves(jaxpr):
    """How often a program solves for constraint forces, loops counted once."""
    found = 0
    for eqn in jaxpr.eqns:
        found += eqn.primitive.name == "constraint_solve"
        inner = [x for p in eqn.params.values() for x in (p if isinstance(p, tuple) else (p,))]
        inner += [eqn.params["plan"].traced.closed] if eqn.primitive.name == "stage" else []
        found += sum(solves(getattr(x, "jaxpr", x)) for x in inner if hasattr(x, "jaxpr") or hasattr(x, "eqns"))
    return found


def test_the_gradient_of_a_rollout_solves_once_a_step():
    """The solver's answers are kept, as without kernels."""
    m = jaxsim.load_model(BALL)
    d = jaxsim.make_data(m).replace(qvel=jnp.full(m.nv, 0.1))

    def gradient(step):
        loss = lambda v: jnp.sum(jaxsim.rollout(m, d.replace(qvel=v), nstep=3, step=step)[0].qpos ** 2)  # noqa: E731
        return jax.jit(jax.grad(loss))

    by_kernels, plain = gradient(tile.stage(step_by_stages, form="host")), gradient(step_by_stages)
    np.testing.assert_allclose(by_kernels(d.qvel), plain(d.qvel), rtol=CLOSE)
    assert [solves(g.trace(d.qvel).jaxpr.jaxpr) for g in (by_kernels, gradient(jaxsim.step), plain)] == [1, 1, 1]


@pytest.mark.skipif(not nvrtc.is_installed(), reason="needs NVRTC (the extra `cuda`)")
def test_a_step_for_cuda_is_kernels_and_one_solver():
    m, d = model_and_worlds("humanoid")
    program = (
        jax.jit(jax.vmap(tile.stage(jaxsim.step), (None, 0))).trace(m, d).lower(lowering_platforms=("cuda",)).as_text()
    )
    kernels = re.findall(r'\bname = "(\w+)"', program)
    assert Counter(kernels) == {"tile": 7, "solve_worlds": 1}  # long ones are cut in pieces
    assert program.count("stablehlo.custom_call") == 8 and "stablehlo.while" not in program


def test_a_stage_that_is_called_twice_is_traced_once_within_tracing_once():
    calls = []

    def doubled(x):
        calls.append(x)
        return 2 * x

    with tile.tracing_once():
        found = tile.stage(doubled)(tile.stage(doubled)(jnp.ones(())))
    assert float(found) == 4
    assert len(calls) == 1
