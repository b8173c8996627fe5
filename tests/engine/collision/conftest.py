"""Two geoms in many poses: contacts of our driver, in one batched call, against the reference's."""

import dataclasses

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.collision.driver import collision

FIELDS = ("dist", "pos", "frame")

GEOMS = {
    "plane": 'type="plane" size="5 5 .1"',
    "sphere": 'type="sphere" size=".3"',
    "capsule": 'type="capsule" size=".15 .35"',
    "ellipsoid": 'type="ellipsoid" size=".4 .2 .3"',
    "cylinder": 'type="cylinder" size=".25 .3"',
    "box": 'type="box" size=".2 .3 .4"',
    "mesh": 'type="mesh" mesh="hull"',
}
HULL = """.3 0 0  -.25 .1 0  0 .3 .05  .05 -.28 -.02  .02 .03 .33  -.03 .05 -.31  .2 .2 .2  -.2 -.15 .2
 .15 -.2 -.2  -.15 .2 -.18"""


def two_geoms(kind1, kind2, extra1="", extra2="", option="", flag=""):
    """MJCF of a model with one geom in each of two free bodies, or in the world if it is a plane."""

    def body(kind, extra):
        geom = f'<geom {GEOMS.get(kind, kind)} {extra}/>'
        return geom if "plane" in kind else f'<body><freejoint/>{geom}</body>'

    return f"""<mujoco><option {option}><flag {flag}/></option>
      <asset><mesh name="hull" vertex="{HULL}"/></asset>
      <worldbody>{body(kind1, extra1)}{body(kind2, extra2)}</worldbody></mujoco>"""


@dataclasses.dataclass
class Scene:
    """A model in both engines and a batched collision driver."""

    mj: mujoco.MjModel
    m: jaxsim.Model
    d: jaxsim.Data
    run: object

    def reference(self, qpos):
        """mjData of each pose after its collision stage: a list of copied contact dictionaries."""
        data, out = mujoco.MjData(self.mj), []
        for q in qpos:
            data.qpos[:] = q
            mujoco.mj_kinematics(self.mj, data)
            mujoco.mj_comPos(self.mj, data)
            mujoco.mj_collision(self.mj, data)
            contact = {k: np.array(getattr(data.contact, k)) for k in (*FIELDS, *PARAMETERS)}
            out.append((data.geom_xpos.copy(), data.geom_xmat.copy(), contact))
        return out

    def compare(self, qpos, atol=1e-9, fields=FIELDS):
        """Assert that all contacts of all poses are the reference's; give how many contacts each pose has."""
        expected = self.reference(qpos)
        pos = np.array([e[0] for e in expected])
        mat = np.array([e[1] for e in expected])
        d = self.run(pos, mat)
        counts = np.array([len(e[2]["dist"]) for e in expected])
        np.testing.assert_array_equal(np.asarray(d.ncon), counts)
        for field in fields:
            ours = np.asarray(getattr(d.contact, field))
            for i, (_, _, contact) in enumerate(expected):
                np.testing.assert_allclose(
                    ours[i, : counts[i]], contact[field], rtol=0, atol=atol, err_msg=f"{field} of pose {i}"
                )
        return counts


PARAMETERS = ("includemargin", "friction", "solref", "solreffriction", "solimp", "dim", "geom", "exclude")


def make_scene(xml, max_contacts=None):
    mj = mujoco.MjModel.from_xml_string(xml)
    m = jaxsim.from_mujoco(mj, max_contacts=max_contacts)
    d = jaxsim.make_data(m)

    @jax.jit
    @jax.vmap
    def run(pos, mat):
        return collision(m, d.replace(geom_xpos=pos, geom_xmat=mat))

    return Scene(mj, m, d, run)


def poses(rng, n, scale, bodies=1):
    """Random free-joint positions within a cube of half-side `scale`, random orientations."""
    pos = rng.uniform(-scale, scale, (n, bodies, 3))
    quat = rng.standard_normal((n, bodies, 4))
    quat /= np.linalg.norm(quat, axis=-1, keepdims=True)
    return np.concatenate([pos, quat], axis=-1).reshape(n, bodies * 7)


@pytest.fixture
def rng():
    return np.random.default_rng(7)
