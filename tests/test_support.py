"""Support functions compared with MuJoCo's functions of the same names, and states as vectors."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim import ObjType, State, support
from jaxsim.engine.dynamics.rne import rne_post_constraint
from tests.names import snake_case
from validation.oracle import dense_jacobian
from validation.stages import exact, states, to_data

XML = """
<mujoco>
  <option cone="CONE"/>
  <size nuserdata="2"/>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body name="free" pos="0 0 .19" euler="3 5 7"><freejoint/>
      <geom type="box" size=".2 .1 .15" pos=".05 0 0"/><site name="tip" pos=".2 .1 0" euler="10 20 30"/>
      <body pos="0 0 .3"><joint type="ball" pos="0 0 -.1"/><geom type="capsule" size=".05 .1" pos=".1 0 0"/>
        <body pos=".2 0 0"><joint axis="0 1 0"/><joint type="slide" axis="1 .3 0"/><geom size=".08"/></body>
        <body pos="-.2 0 0"><joint axis="0 0 1" damping="1"/><geom size=".06" pos=".1 0 0"/>
          <camera name="eye" pos="0 0 .1" euler="20 0 0"/><body pos="0 .1 0"><geom size=".05"/></body></body>
      </body>
    </body>
    <body name="other" pos="1 0 1"><joint axis="0 1 0" frictionloss=".1"/><geom size=".1" pos=".3 0 0"/></body>
    <body mocap="true" pos="2 0 0"><geom size=".1"/></body>
  </worldbody>
  <equality><joint joint1="slide" polycoef="0 1 0 0 0"/></equality>
  <actuator><motor joint="hinge" gear="2"/><general joint="hinge" dyntype="integrator"/></actuator>
  <sensor><framelinacc objtype="site" objname="tip"/><jointpos joint="hinge"/></sensor>
  <keyframe><key time="3" qvel="1 0 -1 0 0 0 1 0 0 0 0 0 1"/></keyframe>
</mujoco>
""".replace('axis="0 0 1" damping', 'name="hinge" axis="0 0 1" damping').replace(
    'type="slide" axis', 'name="slide" type="slide" axis'
)
NAMES = {snake_case(name): name for name in dir(mujoco) if name.startswith("mj_")}
POINT, AXIS, FORCE = np.array([0.3, -0.2, 0.5]), np.array([0.3, 0.4, -0.5]), np.array([1.0, -2, 3])
BODY, FRAMES = 3, ((ObjType.BODY, 2), (ObjType.XBODY, 4), (ObjType.GEOM, 2), (ObjType.SITE, 0), (ObjType.CAMERA, 0))


@jax.jit
def everything(m, d, body, vec, rows):
    d = rne_post_constraint(m, jaxsim.forward(m, d))
    out = {
        name: getattr(support, name)(m, d, body)
        for name in ("jac_body", "jac_body_com", "jac_subtree_com", "angmom_mat")
    }
    out |= {"jac": support.jac(m, d, POINT, body), "jac_dot": support.jac_dot(m, d, POINT, body)}
    out |= {"jac_geom": support.jac_geom(m, d, 2), "jac_site": support.jac_site(m, d, 0)}
    out["jac_point_axis"] = support.jac_point_axis(m, d, POINT, AXIS, body)
    out["apply_ft"] = support.apply_ft(m, d, FORCE, AXIS, POINT, body)
    out["full_m"] = support.full_m(m, d)
    for name in ("mul_m", "mul_m2", "solve_m", "solve_m2"):
        out[name] = getattr(support, name)(m, d, vec)
    out["contact_force"] = jax.vmap(lambda i: support.contact_force(m, d, i))(jnp.arange(m.max_contacts))
    out["mul_jac_vec"], out["mul_jac_t_vec"] = support.mul_jac_vec(m, d, vec), support.mul_jac_t_vec(m, d, rows)
    for kind, index in FRAMES:
        for local in (0, 1):
            out[f"object_velocity {kind} {local}"] = support.object_velocity(m, d, kind, index, local)
            out[f"object_acceleration {kind} {local}"] = support.object_acceleration(m, d, kind, index, local)
    out["local2global"] = support.local2global(m, d, POINT, np.array([0.5, 0.5, -0.5, 0.5]), body)
    out["geom_distance"] = support.geom_distance(m, d, 2, 3, 10.0)
    return out


def theirs(name):
    """MuJoCo's function of which ours has the name, in snake case."""
    return getattr(mujoco, NAMES[name])


class Oracle:
    """MuJoCo's functions under our names, with results returned instead of written into arrays."""

    def __init__(self, m, d, vec, rows):
        self.m, self.d, self.vec, self.rows = m, d, vec, rows
        self.nv = m.nv

    def two(self, name, *args):
        a, b = np.zeros((3, self.nv)), np.zeros((3, self.nv))
        theirs(name)(self.m, self.d, a, b, *args)
        return a, b

    def one(self, name, shape, *args):
        out = np.zeros(shape)
        theirs(name)(self.m, self.d, out, *args)
        return out

    def results(self):
        m, d, nv, vec = self.m, self.d, self.nv, self.vec
        out = {name: self.two(name, BODY) for name in ("jac_body", "jac_body_com")}
        out |= {name: self.one(name, (3, nv), BODY) for name in ("jac_subtree_com", "angmom_mat")}
        out |= {name: self.two(name, POINT, BODY) for name in ("jac", "jac_dot")}
        out |= {"jac_geom": self.two("jac_geom", 2), "jac_site": self.two("jac_site", 0)}
        out["jac_point_axis"] = self.two("jac_point_axis", POINT, AXIS, BODY)
        force = np.zeros(nv)
        mujoco.mj_applyFT(m, d, FORCE, AXIS, POINT, BODY, force)
        out["apply_ft"] = force
        full = np.zeros((nv, nv))
        mujoco.mj_fullM(m, full, d.qM)
        out["full_m"] = full
        out |= {name: self.one(name, nv, vec) for name in ("mul_m", "mul_m2")}
        for name, more in (("solve_m", ()), ("solve_m2", (np.sqrt(d.qLDiagInv),))):
            rows = np.zeros((1, nv))
            theirs(name)(m, d, rows, vec[None], *more)
            out[name] = rows[0]
        forces = np.zeros((64, 6))
        for i in range(d.ncon):
            mujoco.mj_contactForce(m, d, i, forces[i])
        out["contact_force"] = forces
        jacobian = dense_jacobian(m, d)
        out["mul_jac_vec"] = np.pad(jacobian @ vec, (0, 500))
        out["mul_jac_t_vec"] = jacobian.T @ self.rows[: d.nefc]
        for kind, index in FRAMES:
            for local in (0, 1):
                for name in ("object_velocity", "object_acceleration"):
                    value = np.zeros(6)
                    theirs(name)(m, d, kind, index, value, local)
                    out[f"{name} {kind} {local}"] = value
        pos, mat = np.zeros(3), np.zeros(9)
        mujoco.mj_local2Global(d, pos, mat, POINT, np.array([0.5, 0.5, -0.5, 0.5]), BODY, 0)
        out["local2global"] = pos, mat.reshape(3, 3)
        segment = np.zeros(6)
        out["geom_distance"] = mujoco.mj_geomDistance(m, d, 2, 3, 10.0, segment), segment
        return out


def assert_same(got, want, name):
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        got, want = (x[: min(len(got), len(want))] for x in (got, want))
    np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-8, err_msg=str(name))


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_every_function_gives_what_the_references_gives(cone):
    model = exact(mujoco.MjModel.from_xml_string(XML.replace("CONE", cone)))
    m = jaxsim.from_mujoco(model)
    rng = np.random.default_rng(0)
    vec, rows = rng.standard_normal(model.nv), rng.standard_normal(m.max_constraints)
    contacts = 0
    for data in states(model, 3, skip=30):
        got = everything(m, to_data(m, data), BODY, vec, rows)
        mujoco.mj_forward(model, data)
        mujoco.mj_rnePostConstraint(model, data)
        want = Oracle(model, data, vec, rows).results()
        assert got.keys() == want.keys()
        contacts += data.ncon
        for name, value in want.items():
            for ours, theirs in zip(jax.tree.leaves(got[name]), jax.tree.leaves(value), strict=True):
                assert_same(ours, theirs, name)
    assert contacts > 3


def test_jacobians_of_many_points_are_those_of_each_whether_ids_are_static_or_traced():
    m = jaxsim.from_mujoco(model())
    d = jax.jit(lambda m, d: jaxsim.stages.com_pos(m, jaxsim.stages.kinematics(m, d)))(m, jaxsim.make_data(m))
    body = np.array([[0, 1, 3], [2, 5, m.nbody - 1]])
    points = np.random.default_rng(0).standard_normal((2, 3, 3))
    static = support.jac(m, d, points, body)
    traced = jax.jit(support.jac)(m, d, points, body)
    for index in np.ndindex(body.shape):
        one = support.jac(m, d, points[index], int(body[index]))
        for many in (static, traced):
            for a, b in zip(many, one, strict=True):
                np.testing.assert_allclose(a[index], b, atol=1e-14, err_msg=str(index))


def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(XML.replace("CONE", "pyramidal"))


@pytest.mark.parametrize("sig", [State.INTEGRATION, State.PHYSICS, State.USER | State.TIME, State.EQ_ACTIVE, 0])
def test_state_vectors_are_the_references(sig):
    mj_model = model()
    data = states(mj_model, 1)[0]
    data.userdata[:] = 3, 4
    m = jaxsim.from_mujoco(mj_model)
    d = to_data(m, data).replace(userdata=data.userdata)
    want = np.zeros(mujoco.mj_stateSize(mj_model, int(sig)))
    mujoco.mj_getState(mj_model, data, want, int(sig))
    assert jaxsim.state_size(m, sig) == len(want)
    np.testing.assert_array_equal(jaxsim.get_state(m, d, sig), want)
    new = jaxsim.set_state(m, jaxsim.make_data(m), want, sig)
    np.testing.assert_array_equal(jaxsim.get_state(m, new, sig), want)
    assert new.eq_active.dtype == bool


def test_a_part_of_a_state_is_extracted_and_copied():
    m = jaxsim.from_mujoco(model())
    d = jaxsim.make_data(m).replace(time=3.0, qvel=np.arange(m.nv))
    state = jaxsim.get_state(m, d, State.FULLPHYSICS)
    np.testing.assert_array_equal(jaxsim.extract_state(m, state, State.FULLPHYSICS, State.QVEL), d.qvel)
    assert jaxsim.copy_state(m, d, jaxsim.make_data(m), State.TIME).time == 3
    with pytest.raises(ValueError, match="subset"):
        jaxsim.extract_state(m, state, State.FULLPHYSICS, State.CTRL)


def test_a_state_of_the_wrong_length_or_with_unknown_bits_is_refused():
    m = jaxsim.from_mujoco(model())
    with pytest.raises(ValueError, match="numbers"):
        jaxsim.set_state(m, jaxsim.make_data(m), np.zeros(3))
    with pytest.raises(ValueError, match="signature"):
        jaxsim.state_size(m, 1 << 15)


def test_keyframes_are_taken_from_and_written_to_the_state():
    m = jaxsim.from_mujoco(model())
    d = jaxsim.reset_data_keyframe(m, jaxsim.make_data(m).replace(qfrc_applied=np.ones(m.nv)), 0)
    assert d.time == 3 and d.qvel[0] == 1 and not d.qfrc_applied.any()
    changed = jaxsim.set_keyframe(m, d.replace(qvel=2 * d.qvel), 0)
    np.testing.assert_array_equal(changed.key_qvel[0], 2 * m.key_qvel[0])


def test_total_mass_is_set_as_in_the_reference():
    mj_model = model()
    m = support.set_totalmass(jaxsim.from_mujoco(mj_model), 7.0)
    mujoco.mj_setTotalmass(mj_model, 7.0)
    np.testing.assert_allclose(m.body_inertia, mj_model.body_inertia, rtol=1e-12)
    np.testing.assert_allclose(support.get_totalmass(m), 7.0)
    assert jax.grad(lambda x: support.get_totalmass(support.set_totalmass(m, x)))(7.0) == pytest.approx(1)


def test_positions_are_integrated_differentiated_and_normalised_as_in_the_reference():
    mj_model = model()
    m, data = jaxsim.from_mujoco(mj_model), states(mj_model, 1)[0]
    rng = np.random.default_rng(1)
    vel, qpos = rng.standard_normal(m.nv), data.qpos.copy()
    mujoco.mj_integratePos(mj_model, qpos, vel, 0.3)
    np.testing.assert_allclose(support.integrate_pos(m, data.qpos, vel, 0.3), qpos, atol=1e-12)
    want = np.zeros(m.nv)
    mujoco.mj_differentiatePos(mj_model, want, 0.5, data.qpos, qpos)
    np.testing.assert_allclose(support.differentiate_pos(m, data.qpos, qpos, 0.5), want, atol=1e-12)
    qpos *= 1.7
    got = support.normalize_quat(m, qpos)
    mujoco.mj_normalizeQuat(mj_model, qpos)
    np.testing.assert_allclose(got, qpos, atol=1e-12)


def test_derivatives_of_the_root_of_the_inertia_are_those_of_differences():
    m = jaxsim.from_mujoco(model())
    vec = np.linspace(-1, 1, m.nv)

    @jax.jit
    def square(mass):
        d = jaxsim.crb(m, jaxsim.com_pos(m.replace(body_mass=mass), jaxsim.kinematics(m, jaxsim.make_data(m))))
        return jnp.sum(support.mul_m2(m, d, vec) ** 3) + jnp.sum(support.solve_m2(m, d, vec) ** 3)

    way = np.linspace(0.5, 1, m.nbody)
    central = (square(m.body_mass + 1e-5 * way) - square(m.body_mass - 1e-5 * way)) / 2e-5
    assert jnp.vdot(jax.grad(square)(m.body_mass), way) == pytest.approx(float(central), rel=1e-6)
