"""Parameters by name, physical inertias, recordings from files."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import identify as ident
from jaxsim.identify.inertia import from_moments, read_moments, to_moments, write_moments
from jaxsim.identify.simulator import delayed
from jaxsim.math.rotation import quat_to_mat

MODEL = """<mujoco><worldbody><body name="a"><freejoint name="f"/>
<geom name="g" size=".1 .2 .3" type="box" pos=".1 0 .2" euler="20 30 40" friction=".7"/></body>
<body name="b"><joint name="j" damping=".1"/><geom name="h" size=".1"/></body>
</worldbody>
<actuator><position name="p" joint="j" kp="5"/></actuator><sensor><jointpos name="s" joint="j"/></sensor></mujoco>"""


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(MODEL)


def tensor(m, body):
    r = quat_to_mat(m.body_iquat[body])
    return np.asarray(r @ jnp.diag(m.body_inertia[body]) @ r.T)


def test_inertia_is_unchanged_by_a_round_trip_through_log_cholesky(m):
    theta = from_moments(read_moments(m, 1))
    back = write_moments(m, 1, to_moments(jnp.asarray(theta)))
    np.testing.assert_allclose(back.body_mass[1], m.body_mass[1], rtol=1e-12)
    np.testing.assert_allclose(back.body_ipos[1], m.body_ipos[1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(tensor(back, 1), tensor(m, 1), rtol=1e-4)


def test_any_ten_numbers_are_a_physical_body_with_finite_derivatives(m):
    rng = np.random.default_rng(0)
    write = jax.jit(
        lambda t: [getattr(write_moments(m, 2, to_moments(t)), n)[2] for n in ("body_mass", "body_inertia")]
    )
    for theta in rng.standard_normal((20, 10)):
        mass, (a, b, c) = write(jnp.asarray(theta))
        assert mass > 0 and a > 0 and a + b >= c * (1 - 1e-4)
    sphere = jnp.asarray(from_moments(read_moments(m, 2)))  # equal moments: their axes have no derivative
    jac = jax.jacfwd(lambda t: write_moments(m, 2, to_moments(t)).body_inertia)(sphere)
    assert np.isfinite(jac).all()


@pytest.mark.parametrize(
    ("field", "name", "index", "labels", "start"),
    [
        ("dof_damping", "j", None, ["dof_damping[j]"], [0.1]),
        ("dof_armature", "f", None, [f"dof_armature[f.{k}]" for k in range(6)], [0] * 6),
        ("geom_friction", ["g", "h"], 0, ["geom_friction[g][0]", "geom_friction[h][0]"], [0.7, 1.0]),
        ("actuator_gainprm", "p", 0, ["actuator_gainprm[p][0]"], [5.0]),
        ("opt.gravity", None, 2, ["opt.gravity[2]"], [-9.81]),
    ],
)
def test_parameters_are_chosen_by_name_and_written_back(m, field, name, index, labels, start):
    p = ident.parameter(m, field, name, index)
    assert list(p.labels) == labels
    np.testing.assert_allclose(p.start, start)
    again = ident.parameter(p.write(m, jnp.asarray(p.start) + 1), field, name, index)
    np.testing.assert_allclose(again.start, np.asarray(start) + 1.0)


def test_mass_keeps_the_shape_of_the_body(m):
    new = ident.mass(m, "a").write(m, jnp.asarray([2 * m.body_mass[1]]))
    np.testing.assert_allclose(new.body_inertia[1], 2 * m.body_inertia[1])


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda m: ident.parameter(m, "dof_dampnig", "j"), TypeError, "dof_dampnig"),
        (lambda m: ident.parameter(m, "dof_damping", "k"), KeyError, "k"),
        (lambda m: ident.parameter(m, "dof_damping", "j", high=0.05), ValueError, "outside"),
        (lambda m: ident.signal("scale", "s"), ValueError, "scale"),
        (lambda m: ident.parameter(m, "geom_friction", None, 7), ValueError, "columns 0 to 2, and index is 7"),
        (
            lambda m: ident.parameter(m, "dof_damping", "j", prior=(0.1, -1.0)),
            ValueError,
            "positive standard deviation",
        ),
    ],
)
def test_errors_name_the_mistake(m, call, error, match):
    with pytest.raises(error, match=match):
        call(m)


def test_delay_is_linear_between_samples():
    y = jnp.asarray([[0.0, 1.0, 4.0, 9.0]])
    np.testing.assert_allclose(delayed(y, 1.0, 4), [[0, 0, 1, 4]])
    np.testing.assert_allclose(delayed(y, 0.5, 4), [[0, 0.5, 2.5, 6.5]])
    np.testing.assert_allclose(delayed(y, -0.5, 3)[:, :3], [[0.5, 2.5, 4.0]])  # the last row is not known
    np.testing.assert_allclose(jax.jacfwd(lambda t: delayed(y, t, 4))(0.5), [[0, -1, -3, -5]])


def test_recordings_are_read_from_npz_and_csv_alike(m, tmp_path):
    ctrl, q = np.arange(4.0)[:, None], np.array([0.5, np.nan, 1.5, 2.0])
    np.savez(tmp_path / "a.npz", ctrl=ctrl, s=q)
    rows = ["time,ctrl:p,s", "0,0,0.5", "0.002,1,", "0.004,2,1.5", "0.006,3,2.0"]
    (tmp_path / "b.csv").write_text("\n".join(rows))
    both = ident.load_recordings(m, [tmp_path / "a.npz", tmp_path / "b.csv"], sigma=0.1)
    np.testing.assert_array_equal(both.measured[0], both.measured[1])
    np.testing.assert_array_equal(both.ctrl[0], both.ctrl[1])
    assert both.measured.shape == (2, 4, 1) and np.isnan(both.measured[0, 1, 0])


def test_pickled_data_is_refused(m, tmp_path):
    np.savez(tmp_path / "a.npz", ctrl=np.array([{"x": 1}], dtype=object))
    with pytest.raises(ValueError, match=r"a\.npz"):
        ident.load_recordings(m, tmp_path / "a.npz")
