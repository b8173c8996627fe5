"""Small models whose flexes touch geoms, each other and themselves, and what compares their contacts with MuJoCo's."""

import functools

import jax
import mujoco
import numpy as np

import jaxsim

SOLID = '<elasticity young="5e3" poisson=".2" damping=".001"/>'
CLOTH = SOLID.replace("/>", ' thickness=".01"/>')
ROPE = '<edge stiffness="50"/>'
ALONE = 'selfcollide="none" internal="false"'
SPHERE = '<body><joint type="slide" axis="0 0 1"/><geom type="sphere" size=".15" margin=".01" gap=".002"/></body>'
PLANE = '<geom type="plane" size="1 1 .1"/>'
# Where MuJoCo's Jacobians are sparse, rows of friction that turns read memory that it never wrote.
DENSE = 'jacobian="dense"'

CONTACT = ("dist", "pos", "frame", "includemargin", "friction", "solref", "solreffriction", "solimp", "dim")
IDS = ("geom", "flex", "elem", "vert", "exclude", "efc_address")
ROWS = ("pos", "margin", "D", "R", "diagApprox", "aref", "vel")


def flexcomp(shape, material, contact=ALONE, name="f", inside="", pos="0 0 0", euler="0 0 0", radius=".01"):
    """A flexcomp on a grid."""
    return (
        f'<flexcomp name="{name}" type="grid" spacing=".06 .06 .06" mass="1" {shape} pos="{pos}" euler="{euler}" '
        f'radius="{radius}">{material}<contact {contact}/>{inside}</flexcomp>'
    )


def scene(bodies, options=DENSE, flag="", extra=""):
    """A model with these bodies."""
    return f"""<mujoco><option timestep=".004" {options}><flag {flag}/></option>
      <asset><mesh name="t" vertex="0 0 .1 .12 0 -.1 -.1 .1 -.1 -.1 -.1 -.1 .05 .05 .12"/></asset>
      <worldbody>{bodies}</worldbody>{extra}</mujoco>"""


@functools.cache
def programs():
    """The compiled `forward`, one for all tests."""
    return jax.jit(jaxsim.forward)


def exact(m):
    """The model with a solver that goes on until it has converged."""
    settings = {"tolerance": 1e-14, "ls_tolerance": 1e-12, "iterations": 200, "ls_iterations": 100}
    if isinstance(m, jaxsim.Model):
        return m.replace(opt=m.opt.replace(**settings))
    for name, value in settings.items():
        setattr(m.opt, name, value)
    return m


def states(model, count, noise, seed=0):
    """MuJoCo's data at random states around qpos0, after `mj_forward`."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        data = mujoco.MjData(model)
        mujoco.mj_integratePos(model, data.qpos, rng.normal(0, noise, model.nv), 1)
        data.qvel[:] = rng.normal(0, 0.1, model.nv)
        mujoco.mj_forward(model, data)
        yield data


def jacobian(model, data):
    """MuJoCo's constraint Jacobian as a dense matrix."""
    if not mujoco.mj_isSparse(model):
        return data.efc_J.reshape(-1, model.nv)
    out = np.zeros((data.nefc, model.nv))
    mujoco.mju_sparse2dense(out, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
    return out


def assert_close(ours, theirs, tolerance, name):
    """Largest difference relative to the largest entry, or to one."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape, name
    if theirs.size:
        assert np.abs(ours - theirs).max() <= tolerance * max(1, np.abs(theirs).max()), name


def assert_contacts(d, data, tolerance=1e-9, ids=IDS):
    """Contacts, field by field and in order."""
    n = int(d.ncon)
    assert n == data.ncon and not int(d.overflow_contacts)
    if not n:
        return
    for name in (*CONTACT, *ids):
        theirs = np.asarray(getattr(data.contact, name)).reshape(n, -1)
        ours = np.asarray(getattr(d.contact, name))[:n].reshape(n, -1)
        assert_close(ours, theirs, 0 if name in ids else tolerance, name)


def assert_rows(d, model, data, tolerance=1e-9):
    """Constraint rows in order, and what they give."""
    n = int(d.nefc)
    assert n == data.nefc and not int(d.overflow_constraints)
    assert_close(d.efc_J[:n], jacobian(model, data), tolerance, "efc_J")
    for name in ROWS:
        assert_close(getattr(d, f"efc_{name}")[:n], getattr(data, f"efc_{name}"), tolerance, name)
    for name in ("qfrc_passive", "qacc_smooth", "qacc"):
        assert_close(getattr(d, name), getattr(data, name), max(tolerance, 1e-7), name)
