"""Scenes of geom pairs in many poses: contacts of our driver, in one batched call, and MuJoCo's."""

import dataclasses

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.collision.driver import collision
from validation.models.geoms import ASSETS, GEOMS

PLACES = ("dist", "pos", "frame")
PARAMETERS = ("includemargin", "friction", "solref", "solreffriction", "solimp", "dim", "geom", "exclude")


def pair_xml(pairs, margin=0.0, options=""):
    """MJCF with two free geoms for each pair of kinds (planes are fixed) that collide with each other only."""
    bodies, contacts = [], []
    for i, kinds in enumerate(pairs):
        for side, kind in enumerate(kinds):
            geom = f'<geom name="{i}.{side}" {GEOMS[kind]} contype="0" conaffinity="0"/>'
            bodies.append(geom if kind == "plane" else f'<body><joint type="free"/>{geom}</body>')
        contacts.append(f'<pair geom1="{i}.0" geom2="{i}.1" margin="{np.broadcast_to(margin, len(pairs))[i]}"/>')
    return f"""<mujoco><option {options}/><asset>{ASSETS}</asset>
      <worldbody>{"".join(bodies)}</worldbody><contact>{"".join(contacts)}</contact></mujoco>"""


@dataclasses.dataclass
class Scene:
    """A model in both engines and the collision driver over a batch of geom poses."""

    mj: mujoco.MjModel
    m: jaxsim.Model
    d: jaxsim.Data
    options: dict = dataclasses.field(default_factory=dict)  # of the compiler

    def __post_init__(self):
        self.run = jax.jit(jax.vmap(self.single), compiler_options=self.options)

    def single(self, pos, mat):
        return collision(self.m, self.d.replace(geom_xpos=pos, geom_xmat=mat))

    def oracle(self, qpos):
        """MuJoCo's geom poses, and contacts as a list of dictionaries, of each qpos (n, nq)."""
        data, pos, mat, contacts = mujoco.MjData(self.mj), [], [], []
        for q in qpos:
            data.qpos[:] = q
            mujoco.mj_kinematics(self.mj, data)
            mujoco.mj_comPos(self.mj, data)
            mujoco.mj_collision(self.mj, data)
            pos.append(data.geom_xpos.copy())
            mat.append(data.geom_xmat.copy())
            contacts.append({k: np.array(getattr(data.contact, k)) for k in (*PLACES, *PARAMETERS)})
        return np.array(pos), np.array(mat), contacts


def make_scene(xml, max_contacts=None):
    mj = mujoco.MjModel.from_xml_string(xml)
    m = jaxsim.from_mujoco(mj, max_contacts=max_contacts)
    return Scene(mj, m, jaxsim.make_data(m))


def random_qpos(rng, n, bodies, scale=0.5):
    """Free-joint positions within a cube of half-side `scale`, any orientation: (n, 7 bodies)."""
    quat = rng.standard_normal((n, bodies, 4))
    quat /= np.linalg.norm(quat, axis=-1, keepdims=True)
    return np.concatenate([rng.uniform(-scale, scale, (n, bodies, 3)), quat], axis=-1).reshape(n, -1)


def assert_same(ours, contacts, fields=PLACES, atol=1e-9):
    """Every contact of every pose equals MuJoCo's, in its order."""
    np.testing.assert_array_equal(np.asarray(ours.ncon), [len(c["dist"]) for c in contacts])
    for field in fields:
        mine = np.asarray(getattr(ours.contact, field))
        for i, contact in enumerate(contacts):
            n = len(contact["dist"])
            np.testing.assert_allclose(mine[i, :n], contact[field], rtol=0, atol=atol, err_msg=f"{field} of pose {i}")


@pytest.fixture
def rng():
    return np.random.default_rng(7)
