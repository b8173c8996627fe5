"""Rollouts: the same steps as a Python loop, the same gradients with every checkpointing, within its memory."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.step import forward
from jaxsim.engine.step.derived import CARRIED, fields_read
from jaxsim.engine.step.forward import step_by_stages
from jaxsim.engine.step.rollout import step_of_state

BEAD = """<mujoco><option timestep="0.01"/><worldbody><geom type="plane" size="3 3 1"/><body pos="0 0 .12">
<joint name="x" type="slide" axis="1 0 0" damping=".5"/><joint type="slide" axis="0 0 1"/><joint axis="0 1 0"/>
<geom size=".1" mass="1"/></body></worldbody>
<actuator><general joint="x" gear="10" dyntype="filter" dynprm=".05"/></actuator>
<sensor><jointpos joint="x"/><clock/></sensor></mujoco>"""
PENDULUM = """<mujoco><option timestep="0.01"/><worldbody><body><joint name="h" axis="0 1 0" damping=".01"/>
<geom type="capsule" fromto="0 0 0 0 0 .5" size=".03"/></body></worldbody>
<actuator><motor joint="h"/></actuator></mujoco>"""
NSTEP = 7


@functools.cache
def bead():
    m = jaxsim.load_model(BEAD)
    return m, jaxsim.make_data(m).replace(qvel=jnp.asarray([0.1, -1.0, 1.0])), jax.jit(jaxsim.step)


@functools.cache
def pendulum():
    m = jaxsim.load_model(PENDULUM)
    return m, jaxsim.make_data(m).replace(qvel=jnp.asarray([0.3]))


def controls():
    return jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (NSTEP, 1)))


def test_rollout_makes_the_steps_of_a_loop():
    m, d, step = bead()
    last, out = jax.jit(lambda u: jaxsim.rollout(m, d, u, outputs=("qpos", "sensordata", "contact.dist")))(controls())
    for i, u in enumerate(controls()):
        d = step(m, d.replace(ctrl=u))
        np.testing.assert_allclose(out["qpos"][i], d.qpos, atol=1e-13)
        np.testing.assert_allclose(out["sensordata"][i], d.sensordata, atol=1e-13)
        np.testing.assert_allclose(out["contact.dist"][i], d.contact.dist, atol=1e-13)
    assert d.ncon == 1
    pairs = zip(*(jax.tree.leaves([getattr(x, n) for n in CARRIED]) for x in (last, d)), strict=True)
    assert all(np.allclose(a, b, atol=1e-12) for a, b in pairs)


def test_next_step_needs_only_what_is_carried():
    m, d, step = bead()
    for _ in range(NSTEP):
        d = step(m, d)
    bare = jax.tree.map(jnp.zeros_like, d).replace(**{n: getattr(d, n) for n in CARRIED})
    assert all(np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (step(m, bare), step(m, d))), strict=True))


def test_substeps_hold_the_control_and_policies_see_the_state():
    m, d, step = bead()
    gain = jnp.asarray([[-1.0, 2, 0]])
    fine, _ = jax.jit(lambda: jaxsim.rollout(m, d, lambda i, d: gain @ d.qvel * (i < 2), 3, substeps=2))()
    for i in range(3):
        d = d.replace(ctrl=gain @ d.qvel * (i < 2))
        d = step(m, step(m, d))
    np.testing.assert_allclose(fine.qpos, d.qpos, atol=1e-13)


def test_rollouts_batch_over_controls_and_models():
    m, d = pendulum()
    heavy = m.replace(body_mass=2 * m.body_mass)
    models = jax.tree.map(lambda a, b: jnp.stack([a, b]), m, heavy)
    run = jax.jit(jax.vmap(lambda m, u: jaxsim.rollout(m, d, u)[1]["qpos"]))
    both = run(models, jnp.stack([controls(), controls()]))
    turned = run(jax.tree.map(lambda x: x[::-1], models), jnp.stack([controls(), controls()]))
    np.testing.assert_allclose(both[1], turned[0], atol=1e-12)
    assert both.shape == (2, NSTEP, m.nq) and not np.allclose(both[0], both[1])


@functools.cache
def gradient(checkpoint, substeps=1):
    """Loss of controls and masses along a rollout of the pendulum, and its gradient."""
    m, d = pendulum()

    def loss(u, mass):
        last, out = jaxsim.rollout(m.replace(body_mass=mass), d, u, checkpoint=checkpoint, substeps=substeps)
        return jnp.sum(last.qpos**2) + jnp.sum(out["qvel"] ** 2)

    return jax.jit(jax.value_and_grad(loss, (0, 1)))(controls(), m.body_mass)


@pytest.mark.parametrize(("checkpoint", "substeps"), [("step", 1), pytest.param(3, 2, marks=pytest.mark.slow)])
def test_checkpointing_does_not_change_the_gradient(checkpoint, substeps):
    value, plain = gradient("none", substeps)
    other, grad = gradient(checkpoint, substeps)
    np.testing.assert_allclose(other, value, rtol=1e-12)
    for a, b in zip(grad, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


def test_gradient_through_contact_equals_central_differences():
    m, d, _ = bead()

    def loss(u):
        last, out = jaxsim.rollout(m, d, u, outputs=("sensordata", "qvel"), checkpoint=3)
        return jnp.sum(last.qpos**2) + jnp.sum(out["sensordata"]) + jnp.sum(out["qvel"] ** 2)

    loss = jax.jit(jax.value_and_grad(loss))
    v = jnp.asarray(np.random.default_rng(1).standard_normal((NSTEP, 1)))
    want = (loss(controls() + 1e-6 * v)[0] - loss(controls() - 1e-6 * v)[0]) / 2e-6
    np.testing.assert_allclose(jnp.vdot(loss(controls())[1], v), want, rtol=1e-6)


def not_one_program(m):
    """The model with a callback that does nothing, so that a batch of its steps is not one program."""
    return m.replace(callbacks=jaxsim.Callbacks(control=lambda m, d: d))


@pytest.mark.slow
def test_memory_of_a_long_gradient_follows_the_checkpointing():
    m, d = pendulum()

    def temporary(m, checkpoint, nstep):
        loss = jax.grad(lambda u: jnp.sum(jaxsim.rollout(m, d, u, checkpoint=checkpoint, outputs=())[0].qpos ** 2))
        return jax.jit(loss).lower(jnp.zeros((nstep, 1))).compile().memory_analysis().temp_size_in_bytes

    state = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves([getattr(d, n) for n in CARRIED]))
    other = not_one_program(m)
    none, step = (temporary(other, checkpoint, 1000) for checkpoint in ("none", "step"))
    assert step < 1000 * state < 0.5 * none  # a step costs at most its state, not all that it computes
    assert temporary(m, "none", 1000) < 1000 * state  # a program computes it again


def test_a_step_of_the_state_is_that_step_and_reverse_mode_keeps_its_state_alone():
    m, d = pendulum()
    m = not_one_program(m)

    def gradient(step, nstep):
        loss = lambda v: jnp.sum(jax.lax.fori_loop(0, nstep, lambda _, d: step(d), d.replace(qvel=v)).qpos ** 2)  # noqa: E731
        return jax.jit(jax.value_and_grad(loss)).lower(d.qvel).compile()

    plain = functools.partial(step_by_stages, m)  # with the tools of CUDA, `step` is a stage that keeps its state alone
    both = [gradient(step, 1000) for step in (functools.partial(step_of_state, m), plain)]
    for a, b in zip(*(jax.tree.leaves(g(d.qvel)) for g in both), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    state = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves([getattr(d, n) for n in CARRIED]))
    small, large = (g.memory_analysis().temp_size_in_bytes for g in both)
    assert small < 1000 * state < 0.5 * large


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(), "needs nstep"),
        (dict(controls=np.zeros((3, 2))), "shape"),
        (dict(controls=np.zeros((3, 1)), nstep=4), "3 rows"),
        (dict(nstep=3, checkpoint="often"), "often"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, message):
    m, d, _ = bead()
    with pytest.raises(ValueError, match=message):
        jaxsim.rollout(m, d, **arguments)


def test_policies_read_true_derived_fields():
    """The fields of `forward` at the state before each step, whichever part of them is read."""
    m, d, step = bead()
    forward = jax.jit(jaxsim.forward)
    policies = (
        lambda i, d: -d.xpos[1, :1] + 0.1 * i,
        lambda i, d: -0.5 * d.sensordata[:1] + 0.01 * d.contact.dist[:1],
        lambda i, d: jnp.tanh(d.qacc[:1]),
    )
    for policy in policies:
        fast, _ = jax.jit(lambda d, policy=policy: jaxsim.rollout(m, d, policy, 4))(d)
        slow = d
        for i in range(4):
            slow = step(m, slow.replace(ctrl=policy(i, forward(m, slow))))
        np.testing.assert_allclose(fast.qpos, slow.qpos, atol=1e-13)
        np.testing.assert_allclose(fast.ctrl, slow.ctrl, atol=1e-13)


def test_derived_fields_are_computed_only_if_a_policy_reads_them():
    m, d, _ = bead()
    gain = jnp.ones((1, 3))

    def rollout(d, policy):  # operations of JAX, which a jaxpr shows
        return jaxsim.rollout(m, d, policy, 2, step=step_by_stages, checkpoint="none")

    def size(policy):
        return len(str(jax.make_jaxpr(lambda d: rollout(d, policy)[0].qpos)(d)))

    state, poses, forces = (
        size(policy) for policy in (lambda i, d: gain @ d.qvel, lambda i, d: d.xpos[1, :1], lambda i, d: d.qacc[:1])
    )
    assert state < poses < 1.3 * state and forces > 1.6 * state


def test_fields_that_a_function_reads_are_found():
    _, d = pendulum()
    assert fields_read(lambda d: d.qpos + d.contact.dist.sum(), d) == {"qpos", "contact"}
    assert fields_read(lambda d: jnp.zeros_like(d.xpos), d) == frozenset()
    assert fields_read(lambda d: d.time, d) == {"time"}
    assert fields_read(lambda d, u: jax.jit(lambda q: q.sum())(d.qvel) + u, d, 1.0) == {"qvel"}


def test_derived_fields_of_the_last_data_are_absent_and_it_can_be_stepped():
    m, d, step = bead()
    last, _ = jax.jit(lambda d: jaxsim.rollout(m, d, nstep=2))(d)
    assert np.isnan(last.xpos).all() and last.ncon == -1 and np.isnan(last.contact.dist).all()
    again = step(m, step(m, d))
    one, other = step(m, last), step(m, again)
    for name in (*CARRIED, "qacc", "xpos", "sensordata", "contact", "efc", "qfrc_constraint", "ncon"):
        for x, y in zip(*(jax.tree.leaves(getattr(d, name)) for d in (one, other)), strict=True):
            np.testing.assert_allclose(x, y, atol=1e-12, err_msg=name)


def test_a_length_is_a_value_and_later_records_are_zero():
    m, d, _ = bead()
    short, found = jax.jit(lambda n: jaxsim.rollout(m, d, controls(), length=n))(3)
    last, records = jaxsim.rollout(m, d, controls()[:3])
    np.testing.assert_allclose(short.qpos, last.qpos, atol=1e-12)
    np.testing.assert_allclose(found["qpos"][:3], records["qpos"], atol=1e-12)
    assert not found["qpos"][3:].any()


def test_eager_calls_of_other_lengths_share_a_program(monkeypatch):
    m, d, _ = bead()
    traced, step = [], forward.step
    monkeypatch.setattr(forward, "step", lambda *args: traced.append(args) or step(*args))
    outputs = ("qpos", "time")
    last, long = jaxsim.rollout(m, d, controls(), outputs=outputs)
    count = len(traced)
    middle, short = jaxsim.rollout(m, d, controls()[:5], outputs=outputs)
    assert len(traced) == count > 0
    assert [x["qpos"].shape for x in (long, short)] == [(NSTEP, 3), (5, 3)]
    np.testing.assert_array_equal(short["qpos"], long["qpos"][:5])
    end, _ = jaxsim.rollout(m, middle, controls()[5:], outputs=outputs)
    np.testing.assert_allclose(end.qpos, last.qpos, atol=1e-12)
