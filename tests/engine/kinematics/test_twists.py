"""Derivatives of poses by positions, by twists, against those of the formulas of poses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.kinematics import kinematics
from jaxsim.engine.kinematics.twists import PLACED, PLACING
from jaxsim.native.stage import keeping_residuals

# all joints, several on a body, turned inertial frames, geoms and sites; a body that is welded to the world
SCENE = """<mujoco><worldbody><geom size=".1" pos=".1 .2 0"/><site pos="1 0 0"/>
<body pos=".1 .2 .3" quat=".5 .5 .2 .1"><freejoint/><geom type="box" size=".1 .2 .3" pos=".1 0 .2" euler="10 20 30"/>
  <site pos=".2 .1 0" euler="30 0 10"/>
  <body pos=".3 0 0" euler="0 20 10"><joint type="slide" axis="1 2 0" pos=".1 0 .2"/><joint axis="0 1 1" pos="0 .2 0"/>
    <joint axis="1 0 1" pos=".1 .2 0"/><geom size=".1" pos="0 .1 0"/>
    <body pos="0 .3 0"><joint type="slide" axis="0 0 1"/><joint type="ball" pos=".1 .2 .3"/>
      <geom type="capsule" size=".1 .2" pos=".2 0 0"/></body></body>
  <body pos="0 .4 .1"><geom size=".1"/></body></body>
<body pos="1 0 0"><joint type="ball" pos="0 .1 0"/><geom type="box" size=".1 .2 .3"/>
  <body pos=".2 0 0"><joint axis="0 0 1"/><geom size=".1" pos="0 .1 0"/></body></body>
</worldbody></mujoco>"""
FIELDS = ("xpos", "xquat", "xmat", "xipos", "ximat", "xanchor", "xaxis", "geom_xpos", "geom_xmat", "site_xpos")
FIELDS += ("site_xmat", "subtree_com", "cinert", "cdof")


@pytest.fixture(autouse=True)
def many_directions():
    """Derivatives are traced as those for many directions, which alone have twists."""
    with keeping_residuals():
        yield


def scene():
    """A model, data at random positions with quaternions that are not of length one, and a random generator."""
    m, rng = jaxsim.load_model(SCENE), np.random.default_rng(0)
    m = m.replace(jnt_axis=1.5 * m.jnt_axis)
    d = jaxsim.make_data(m)
    return m, d.replace(qpos=d.qpos + 0.4 * rng.standard_normal(m.nq)), rng


def placed(m, d):
    """Fields that follow from positions."""
    d = jaxsim.com_pos(m, jaxsim.kinematics(m, d))
    return {name: getattr(d, name) for name in FIELDS}


def plainly(m, d, qpos):
    """The same by the formulas themselves, whose derivatives pass through quaternions."""
    numbers = {name: getattr(m, name) for name in (*PLACING, *PLACED)}
    poses = kinematics.poses_of(m, d, numbers, (d.mocap_pos, d.mocap_quat), qpos)
    d = jaxsim.com_pos(m, d.replace(**poses))
    return {name: getattr(d, name) for name in FIELDS}


@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
def test_derivatives_by_positions_are_those_of_the_formulas(mode):
    m, d, _ = scene()
    got, want = (jax.jit(mode(f))(d.qpos) for f in (lambda q: placed(m, d.replace(qpos=q)), lambda q: plainly(m, d, q)))
    for name in FIELDS:
        np.testing.assert_allclose(got[name], want[name], atol=2e-12, err_msg=name)


def test_second_derivatives_are_those_of_the_formulas():
    m, d, rng = scene()
    weights = {k: rng.standard_normal(v.shape) for k, v in placed(m, d).items()}

    def total(found):
        return sum(jnp.vdot(weights[k], x) for k, x in found.items())

    along = rng.standard_normal(m.nq)
    got, want = (
        jax.jit(jax.grad(lambda q, f=f: jax.jvp(lambda q: total(f(q)), (q,), (along,))[1]))(d.qpos)
        for f in (lambda q: placed(m, d.replace(qpos=q)), lambda q: plainly(m, d, q))
    )
    np.testing.assert_allclose(got, want, atol=1e-11 * np.abs(want).max())


def test_derivatives_by_numbers_of_the_model_go_with_those_by_positions():
    m, d, rng = scene()
    tangent, of_qpos = rng.standard_normal(m.body_pos.shape), rng.standard_normal(m.nq)

    def along(f):
        def of(pos, qpos):
            return f(m.replace(body_pos=pos), d, qpos)["xpos"]

        return jax.jit(lambda: jax.jvp(of, (jnp.asarray(m.body_pos), d.qpos), (tangent, of_qpos))[1])()

    np.testing.assert_allclose(along(lambda m, d, q: placed(m, d.replace(qpos=q))), along(plainly), atol=1e-12)
