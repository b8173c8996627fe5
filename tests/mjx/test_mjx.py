"""Scripts written for MJX: only the import differs."""

import dataclasses
import functools

import jax
import jax.numpy as jp
import mujoco
import numpy as np
import pytest

from jaxsim import mjx
from jaxsim.core.errors import UnsupportedError
from jaxsim.mjx import math as mjx_math

XML = """<mujoco><worldbody><light pos="0 0 3"/><geom name="floor" type="plane" size="3 3 .1"/>
<body name="arm" pos="0 0 1"><joint name="a" axis="0 1 0" damping=".1"/>
  <geom name="upper" type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
  <body name="fore" pos=".3 0 0"><joint name="b" type="ball"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
    <site name="tip" pos=".3 0 0"/></body></body>
<body name="ball" pos="0 1 .09"><freejoint name="f"/><geom name="sphere" size=".1"/></body>
<body name="hand" mocap="true" pos="1 1 1"><geom size=".05" contype="0" conaffinity="0"/></body></worldbody>
<tendon><fixed name="t"><joint joint="a" coef="2"/></fixed></tendon>
<actuator><motor name="m" joint="a"/><position name="p" tendon="t" kp="3"/></actuator>
<sensor><framepos name="s" objtype="site" objname="tip"/></sensor></mujoco>"""


@functools.cache
def scene():
    spec = mujoco.MjSpec.from_string(XML)
    model = spec.compile()
    model.opt.tolerance = 1e-12
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(0).normal(size=model.nv)
    data.ctrl[:] = 0.3
    mujoco.mj_forward(model, data)
    return spec, model, data, mjx.put_model(model), mjx.put_data(model, data)


def test_the_first_tutorial():
    """Put, step under jit, and get back."""
    _, model, data, mx, dx = scene()
    dx = jax.jit(mjx.step)(mx, dx)
    out, want = mjx.get_data(model, dx), mujoco.MjData(model)
    mujoco.mj_setState(model, want, state(model, data), mujoco.mjtState.mjSTATE_INTEGRATION)
    mujoco.mj_step(model, want)
    for name in ("qpos", "qvel", "xpos", "sensordata", "qfrc_constraint"):
        np.testing.assert_allclose(getattr(out, name), getattr(want, name), atol=1e-6, err_msg=name)
    assert out.ncon == want.ncon == 1
    np.testing.assert_allclose(out.contact.dist, want.contact.dist, atol=1e-9)


def state(model, data):
    out = np.zeros(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION))
    mujoco.mj_getState(model, data, out, mujoco.mjtState.mjSTATE_INTEGRATION)
    return out


def test_the_second_tutorial():
    """A batch of random velocities with `vmap`, and a list of MjData."""
    _, model, _, mx, _ = scene()

    def velocity(key):
        dx = mjx.make_data(mx)
        return mjx.step(mx, dx.replace(qvel=0.1 * jax.random.normal(key, (mx.nv,))))

    batch = jax.jit(jax.vmap(velocity))(jax.random.split(jax.random.PRNGKey(0), 3))
    worlds = mjx.get_data(model, batch)
    assert len(worlds) == 3 and worlds[0].ncon == 1 and batch.xmat.shape == (3, model.nbody, 3, 3)
    np.testing.assert_allclose(worlds[2].qpos, batch.qpos[2])
    again = [mujoco.MjData(model) for _ in range(3)]
    mjx.get_data_into(again, model, batch)
    np.testing.assert_array_equal(again[1].qvel, worlds[1].qvel)
    np.testing.assert_array_equal(batch[1].qpos, batch.qpos[1])


def test_the_third_tutorial():
    """Models that differ: axes by `tree_map` and `tree_replace`."""
    _, _, _, mx, dx = scene()
    in_axes = jax.tree_util.tree_map(lambda x: None, mx).tree_replace({"geom_friction": 0, "opt.gravity": 0})
    friction = jp.stack([mx.geom_friction, 2 * mx.geom_friction])
    gravity = jp.array([[0, 0, -9.81], [0, 0, 0.0]])
    models = mx.tree_replace({"geom_friction": friction, "opt.gravity": gravity})
    out = jax.jit(jax.vmap(mjx.step, in_axes=(in_axes, None)))(models, dx)
    assert out.qvel.shape == (2, mx.nv) and out.qvel[0, 6] < out.qvel[1, 6]
    slow = mx.tree_replace({"opt.timestep": 1e-3})
    assert slow.opt.timestep == 1e-3 and mx.opt.timestep == 2e-3 and isinstance(slow, mjx.Model)


def test_shapes_are_mjxs():
    _, model, data, mx, dx = scene()
    for name in ("xmat", "ximat", "geom_xmat", "site_xmat", "cam_xmat"):
        assert getattr(dx, name).shape[1:] == (3, 3)
        np.testing.assert_allclose(getattr(dx, name).reshape(-1, 9), getattr(data, name))
    dense = np.zeros((model.nv, model.nv))
    mujoco.mju_sym2dense(dense, data.M, model.M_rownnz, model.M_rowadr, model.M_colind)
    np.testing.assert_allclose(dx.qM, dense, atol=1e-12)
    np.testing.assert_allclose(dx.ten_J, [[2.0] + [0.0] * (model.nv - 1)])
    assert dx.solver_niter.shape == () and dx.replace(solver_niter=3).data.solver_niter[0] == 3
    assert mjx.JointType.BALL.qpos_width() == 4 and mjx.JointType.FREE.dof_width() == 6
    contact = dx._impl.contact
    assert contact.frame.shape[1:] == (3, 3) and contact.dist[0] < 0 and contact.geom1[0] == 0
    assert (contact.dist[data.ncon :] > 1).all()
    turned = dx.replace(xmat=jp.ones((model.nbody, 3, 3)))
    assert turned.data.xmat.shape == (model.nbody, 9) and mx.cam_mat0.shape == (0, 3, 3)
    inertia = dx.tree_replace({"_impl.qM": 2 * dx.qM, "ten_J": 3 * dx.ten_J, "_impl.efc_force": 5 * dx.efc_force})
    np.testing.assert_allclose(inertia.qM, 2 * dx.qM, atol=1e-12)
    np.testing.assert_allclose(inertia.data.qM, 2 * dx.data.qM, atol=1e-12)
    np.testing.assert_allclose(inertia.ten_J, 3 * dx.ten_J)
    np.testing.assert_allclose(inertia.efc_force, 5 * dx.efc_force)
    with pytest.raises(AttributeError, match=r"use \.replace"):
        dx.qpos = 0
    with pytest.raises(AttributeError, match="did you mean"):
        dx.qposs  # noqa: B018


def test_contacts_are_a_dataclass_with_mjxs_fields():
    _, _, data, _, dx = scene()
    contact = dx.contact
    for field in dataclasses.fields(mjx.Contact):
        want = getattr(data.contact, field.name)
        here = np.asarray(getattr(contact, field.name))[: data.ncon]
        np.testing.assert_allclose(here.reshape(want.shape), want, atol=1e-12, err_msg=field.name)
    assert isinstance(contact.dim, np.ndarray) and contact.dim[[0]] == 3  # a list is no index of a JAX array
    first = jax.tree.map(lambda x: x[:1], contact).replace(dim=contact.dim[:1])
    assert first.pos.shape == (1, 3) and first.geom1[0] == 0
    nearer = contact.replace(dist=contact.dist - 1)
    changed = jax.jit(lambda d, c: d.replace(contact=c))(dx, nearer)
    np.testing.assert_allclose(changed.contact.dist[0], data.contact.dist[0] - 1, atol=1e-12)
    np.testing.assert_array_equal(changed.data.contact.dist[1:], dx.data.contact.dist[1:])
    moved = dx.tree_replace({"_impl.contact.frame": 2 * contact.frame})
    np.testing.assert_allclose(moved.data.contact.frame, 2 * dx.data.contact.frame, atol=1e-12)


@pytest.mark.parametrize("cone", [mujoco.mjtCone.mjCONE_PYRAMIDAL, mujoco.mjtCone.mjCONE_ELLIPTIC])
def test_contacts_know_their_rows_after_collision(cone):
    xml = XML.replace('size=".1"/>', 'size=".1" condim="4"/>').replace(
        '<body name="hand"', '<body pos="1 0 .09"><freejoint/><geom size=".1" condim="1" margin=".1" gap=".2"/></body>'
        '<body pos="2 0 .09"><freejoint/><geom size=".1" condim="1"/></body><body pos="2 1 .09"><freejoint/>'
        '<geom size=".1" condim="6"/></body><body name="hand"'
    )  # fmt: skip
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.cone = cone
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon == 4 and len(set(data.contact.dim)) == 3
    mx, dx = mjx.put_model(model), mjx.put_data(model, data)
    blank = dx.tree_replace({"_impl.contact.efc_address": jp.full_like(dx.data.contact.efc_address, -7)})
    out = jax.jit(mjx.collision)(mx, blank)
    np.testing.assert_array_equal(out.contact.efc_address[:4], data.contact.efc_address)
    np.testing.assert_array_equal(mjx.make_constraint(mx, out).contact.efc_address, out.contact.efc_address)


def test_derivative_of_smooth_forces():
    _, _, _, mx, dx = scene()

    @jax.jit
    def force(qvel):
        d = mjx.passive(mx, mjx.fwd_velocity(mx, dx.replace(qvel=qvel)))
        return d.qfrc_passive

    np.testing.assert_allclose(mjx.deriv_smooth_vel(mx, dx), jax.jacobian(force)(dx.qvel), atol=1e-9)
    model = mujoco.MjModel.from_xml_string(XML.replace("<worldbody>", '<option density="1"/><worldbody>', 1))
    with pytest.raises(UnsupportedError, match="fluid"):
        mjx.deriv_smooth_vel(mjx.put_model(model), dx)


def test_mjxs_functions_of_quaternions():
    rng = np.random.default_rng(1)
    u, v = rng.normal(size=(2, 4))
    u, v = jp.array(u / np.linalg.norm(u)), jp.array(v / np.linalg.norm(v))
    x, out = jp.array(rng.normal(size=3)), np.zeros(3)
    mujoco.mju_subQuat(out, np.array(u), np.array(v))
    np.testing.assert_allclose(mjx_math.quat_sub(u, v), out, atol=1e-12)
    mujoco.mju_rotVecQuat(out, np.array(x), np.array(u))
    np.testing.assert_allclose(mjx_math.rotate(x, u), out, atol=1e-12)
    turned = np.array(u)
    mujoco.mju_quatIntegrate(turned, np.array(x), 0.3)
    np.testing.assert_allclose(mjx_math.quat_integrate(u, x, 0.3), turned, atol=1e-12)
    axis, angle = mjx_math.quat_to_axis_angle(u)
    np.testing.assert_allclose(mjx_math.axis_angle_to_quat(axis, angle) * jp.sign(u @ u), u, atol=1e-12)
    np.testing.assert_allclose(mjx_math.quat_mul(u, mjx_math.quat_inv(u)), [1, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(mjx_math.norm(jp.ones((2, 2))), 2)
    np.testing.assert_array_equal(mjx_math.normalize(jp.zeros(3)), jp.zeros(3))


def test_stages_make_up_forward():
    _, _, data, mx, _ = scene()

    @jax.jit
    def forward(d):
        d = mjx.tendon(mx, mjx.camlight(mx, mjx.com_pos(mx, mjx.kinematics(mx, d))))
        d = mjx.factor_m(mx, mjx.tendon_armature(mx, mjx.crb(mx, d)))
        d = mjx.transmission(mx, mjx.make_constraint(mx, mjx.collision(mx, d)))
        d = mjx.passive(mx, mjx.com_vel(mx, mjx.fwd_velocity(mx, d)))
        d = mjx.tendon_bias(mx, mjx.rne(mx, d))
        return mjx.solve(mx, mjx.fwd_acceleration(mx, mjx.fwd_actuation(mx, d)))

    blank = mjx.make_data(mx).replace(qpos=data.qpos, qvel=data.qvel, ctrl=data.ctrl)
    out = forward(blank)
    np.testing.assert_allclose(out.qacc, data.qacc, atol=1e-6)
    np.testing.assert_allclose(mjx.subtree_vel(mx, out).subtree_linvel.shape, (mx.nbody, 3))


def test_support_functions_have_mjxs_shapes():
    _, model, data, mx, dx = scene()
    jacp, jacr = mjx.jac(mx, dx, dx.site_xpos[0], 2)
    want = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    mujoco.mj_jac(model, data, *want, data.site_xpos[0], 2)
    np.testing.assert_allclose(jacp, want[0].T, atol=1e-12)
    np.testing.assert_allclose(jacr, want[1].T, atol=1e-12)
    assert mjx.full_m(mx, dx).shape == (mx.nv, mx.nv) and mjx.mul_m(mx, dx, dx.qvel).shape == (mx.nv,)
    pushed = dx.replace(xfrc_applied=dx.xfrc_applied.at[2].set(1.0))
    one = mjx.apply_ft(mx, dx, jp.ones(3), jp.ones(3), dx.xipos[2], 2)
    np.testing.assert_allclose(mjx.xfrc_accumulate(mx, pushed), one, atol=1e-12)
    names = mujoco.mjtObj
    assert mjx.name2id(mx, names.mjOBJ_BODY, "fore") == 2 and mjx.name2id(model, names.mjOBJ_BODY, "no") == -1
    assert mjx.id2name(mx, names.mjOBJ_GEOM, 0) == "floor" and mjx.id2name(mx, names.mjOBJ_GEOM, 99) is None
    spec = mujoco.mjtState.mjSTATE_PHYSICS
    vector = mjx.get_state(mx, dx, spec)
    assert vector.shape == (mjx.state_size(mx, spec),)
    np.testing.assert_array_equal(mjx.set_state(mx, mjx.make_data(mx), vector, spec).qpos, dx.qpos)
    assert not mjx.is_sparse(mx)


def test_rays():
    _, _, _, mx, dx = scene()
    dist, geom = mjx.ray(mx, dx, jp.array([0, 1, 2.0]), jp.array([0, 0, -1.0]))
    np.testing.assert_allclose(dist, 2 - 0.19, atol=1e-9)
    assert geom == mjx.name2id(mx, mujoco.mjtObj.mjOBJ_GEOM, "sphere")
    for exclude in (3, (3,), (3, 1)):
        dist, geom = mjx.ray(mx, dx, jp.array([0, 1, 2.0]), jp.array([0, 0, -1.0]), bodyexclude=exclude)
        assert geom == 0 and dist == pytest.approx(2)


def test_bind():
    spec, _, data, mx, dx = scene()
    np.testing.assert_array_equal(mx.bind(spec.geom("sphere")).size, mx.geom_size[3])
    np.testing.assert_array_equal(mx.bind(spec.bodies).mass, mx.body_mass)
    np.testing.assert_array_equal(dx.bind(mx, spec.body("fore")).xpos, data.xpos[2])
    assert dx.bind(mx, spec.geoms).xmat.shape == (mx.ngeom, 3, 3)
    np.testing.assert_array_equal(dx.bind(mx, spec.joint("b")).qpos, data.qpos[1:5])
    np.testing.assert_array_equal(dx.bind(mx, [spec.joint("a"), spec.joint("f")]).qvel, data.qvel[[0, *range(4, 10)]])
    np.testing.assert_array_equal(dx.bind(mx, spec.sensor("s")).sensordata, data.sensordata)
    changed = dx.bind(mx, spec.actuator("m")).set("ctrl", 2.0)
    np.testing.assert_array_equal(changed.ctrl, [2.0, 0.3])
    moved = dx.bind(mx, spec.body("hand")).set("mocap_pos", jp.array([1, 2, 3.0]))
    np.testing.assert_array_equal(moved.mocap_pos, [[1, 2, 3]])
    with pytest.raises(AttributeError, match="ctrl is not available"):
        dx.bind(mx, spec.geom("sphere")).ctrl  # noqa: B018
    with pytest.raises(AttributeError, match="readonly"):
        dx.bind(mx, spec.sensor("s")).set("sensordata", jp.zeros(3))
    other = mujoco.MjSpec.from_string("<mujoco><worldbody><body><geom name='g' size='1'/></body></worldbody></mujoco>")
    other.compile()
    with pytest.raises(ValueError, match="signature does not match"):
        mx.bind(other.geom("g"))


def test_what_is_not_there_is_refused_by_name():
    _, model, data, mx, dx = scene()
    with pytest.raises(UnsupportedError, match="'warp'"):
        mjx.put_model(model, impl="warp")
    with pytest.raises(UnsupportedError, match="renderer"):
        mjx.render(mx, dx, None)
    with pytest.raises(ValueError, match="d is not batched"):
        mjx.get_data_into([data], model, dx)
    with pytest.raises(ValueError, match="a MjData, but d is batched"):
        mjx.get_data_into(data, model, jax.tree.map(lambda x: x[None], dx))
    with pytest.raises(UnsupportedError, match="'cpp'"):
        mjx.make_data(model, impl=mjx.Impl.C)
    with pytest.raises(ValueError, match="'jox'"):
        mjx.put_data(model, data, impl="jox")
    with pytest.raises(TypeError, match="nconmx"):
        mjx.make_data(mx, nconmx=3)
    assert mjx.make_data(mx, impl="JAX", nconmax=4, njmax=9).ncon == 0


def test_derivatives_pass_through():
    _, _, _, mx, dx = scene()

    @jax.jit
    def height(ctrl):
        return mjx.step(mx, dx.replace(ctrl=ctrl)).qvel[0]

    slope = jax.grad(height)(dx.ctrl)
    h = 1e-5
    want = (height(dx.ctrl.at[0].add(h)) - height(dx.ctrl.at[0].add(-h))) / (2 * h)
    np.testing.assert_allclose(slope[0], want, rtol=1e-6)
