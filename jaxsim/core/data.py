"""`Data`: the state of one world and all results of the engine for it, with mjData's names."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxsim.core.contact import Constraint, Contact, Warning
from jaxsim.core.describe import describe_data
from jaxsim.core.named import objects
from jaxsim.core.rows import pack_rows, slot_values
from jaxsim.core.struct import Field, Struct, boolean, fields_of, integer, part, real
from jaxsim.core.structure import Structure


@functools.cache
def packer(field: str, batch_axes: int) -> Callable[..., Array]:
    """Return a function that packs one field of a batch, compiled once for a structure and a shape."""

    def packed(efc: Any, contact: Any, cdof: Array) -> Array:
        return pack_rows(efc.layout, efc.active, slot_values(efc, contact, cdof, field))

    for _ in range(batch_axes):
        packed = jax.vmap(packed)
    return jax.jit(packed)


class Packed:
    """A property `efc_*`: rows in MuJoCo's order (max_constraints, ...), of which the first `nefc` are real.

    Stored rows have the meaning of the field of `Constraint`; for others kind, shape, meaning and unit are given.
    """

    def __init__(self, kind: str = "", shape: tuple[str | int, ...] = (), meaning: str = "", unit: str = "-"):
        self._given = Field("", kind, shape, meaning, unit)

    def __set_name__(self, owner: type, name: str):
        self.row = name.removeprefix("efc_")
        stored = {f.name: f for f in fields_of(Constraint)}
        field = self._given if self._given.kind else stored[self.row]
        self.field = field._replace(name=name, shape=("max_constraints", *field.shape))
        self.__doc__ = f"{field.meaning[0].upper()}{field.meaning[1:]}."

    def __get__(self, d: Any, owner: type | None = None) -> Any:
        return self if d is None else packer(self.row, jnp.ndim(d.time))(d.efc, d.contact, d.cdof)


class Data(Struct):
    """The state of one world and all results of the engine for it, with mjData's names.

    All shapes are fixed by the model. `contact` has `max_contacts` entries of which the first `ncon` are real.
    Constraint rows are stored in `efc` in fixed slots (see `jaxsim.core.layout`). MuJoCo's names (`d.efc_force`,
    `d.efc_J`, ...) are properties that pack the active rows, in MuJoCo's order, into arrays of `max_constraints` rows,
    of which the first `nefc` are real. Differences from the bindings: `actuator_moment` and `efc_J` are dense;
    `solver_niter` has one entry. Objects are found by name or id: `d.joint("knee").qpos`, `d.sensor("acc").data`.

    Own fields: `maxuse_con` and `maxuse_efc` are the largest numbers of contacts and rows that this world needed;
    `overflow_contacts` and `overflow_constraints` count those dropped for lack of capacity since the last reset.
    """

    # State, inputs and outputs
    time: Array = real("", "simulated time", "s")
    energy: Array = real("2", "potential and kinetic energy", "J")
    qpos: Array = real("nq", "positions", "m, rad, -")
    qvel: Array = real("nv", "velocities", "m/s, rad/s")
    act: Array = real("na", "activations of actuators")
    history: Array = real("nhistory", "past controls and sensor values with their times")
    qacc_warmstart: Array = real("nv", "acceleration that the solver starts from", "m/s^2, rad/s^2")
    plugin_state: Array = real("npluginstate", "states of plugins")
    ctrl: Array = real("nu", "controls")
    qfrc_applied: Array = real("nv", "force applied to dofs", "N, N m")
    xfrc_applied: Array = real("nbody 6", "force and torque applied at bodies' centres of mass, global frame", "N, N m")
    eq_active: Array = boolean("neq", "whether each equality constraint is active")
    tree_asleep: Array = integer("ntree", "negative: awake; otherwise the next tree of the cycle that sleeps")
    mocap_pos: Array = real("nmocap 3", "positions of mocap bodies, global frame", "m")
    mocap_quat: Array = real("nmocap 4", "orientations of mocap bodies, global frame")
    qacc: Array = real("nv", "accelerations", "m/s^2, rad/s^2")
    act_dot: Array = real("na", "time derivative of activations", "1/s")
    userdata: Array = real("nuserdata", "numbers of the user, which no stage touches")
    sensordata: Array = real("nsensordata", "outputs of all sensors", "by sensor")
    # Kinematics
    xpos: Array = real("nbody 3", "position of the body frame, global frame", "m")
    xquat: Array = real("nbody 4", "orientation of the body frame, global frame")
    xmat: Array = real("nbody 9", "rotation matrix of the body frame, global frame")
    xipos: Array = real("nbody 3", "centre of mass of the body, global frame", "m")
    ximat: Array = real("nbody 9", "rotation matrix of the principal axes, global frame")
    xanchor: Array = real("njnt 3", "anchor of the joint, global frame", "m")
    xaxis: Array = real("njnt 3", "axis of the joint, global frame")
    geom_xpos: Array = real("ngeom 3", "position of the geom, global frame", "m")
    geom_xmat: Array = real("ngeom 9", "rotation matrix of the geom, global frame")
    site_xpos: Array = real("nsite 3", "position of the site, global frame", "m")
    site_xmat: Array = real("nsite 9", "rotation matrix of the site, global frame")
    cam_xpos: Array = real("ncam 3", "position of the camera, global frame", "m")
    cam_xmat: Array = real("ncam 9", "rotation matrix of the camera, global frame")
    light_xpos: Array = real("nlight 3", "position of the light, global frame", "m")
    light_xdir: Array = real("nlight 3", "direction of the light, global frame")
    subtree_com: Array = real("nbody 3", "centre of mass of each subtree, global frame", "m")
    cdof: Array = real(
        "nv 6", "motion axis of each dof (rotation, translation), about the tree's centre of mass", "-, m"
    )
    cinert: Array = real(
        "nbody 10", "inertia of the body about the tree's centre of mass, global axes", "kg m^2, kg m, kg"
    )
    # Flexes
    flexvert_xpos: Array = real("nflexvert 3", "positions of flex vertices, global frame", "m")
    flexelem_aabb: Array = real(
        "nflexelem 6", "boxes of flex elements: centre, half sizes with the radius; global frame", "m"
    )
    flexedge_J: Array = real("nJfe", "Jacobian of the lengths of flex edges, stored entries", "m/rad, -")
    flexedge_length: Array = real("nflexedge", "length", "m")
    flexedge_velocity: Array = real("nflexedge", "velocity of the length", "m/s")
    flexvert_J: Array = real("nJfv 2", "Jacobian of flexvert_length, stored entries", "1/m")
    flexvert_length: Array = real("nflexvert 2", "trace and determinant of the strain, by the root of mass", "1")
    # Tendons and transmission
    ten_wrapadr: Array = integer("ntendon", "first point of the path in wrap_xpos")
    ten_wrapnum: Array = integer("ntendon", "number of points of the path")
    ten_J: Array = real("nJten", "Jacobian of tendon lengths, stored entries", "m/rad, -")
    ten_length: Array = real("ntendon", "length", "m")
    wrap_obj: Array = integer("nwrap 2", "geom of each path point; -1: site, -2: pulley")
    wrap_xpos: Array = real("nwrap 6", "points of all paths, global frame", "m")
    actuator_length: Array = real("nu", "length of the transmission", "m or rad")
    actuator_moment: Array = real("nu nv", "Jacobian of the transmission's length, dense here", "m/rad, -")
    # Inertia
    crb: Array = real(
        "nbody 10", "inertia of the subtree about the tree's centre of mass, global axes", "kg m^2, kg m, kg"
    )
    qM: Array = real("nM", "inertia matrix: entries of ancestor pairs of dofs", "kg, kg m, kg m^2")
    M: Array = real("nC", "inertia matrix: lower triangle by rows", "kg, kg m, kg m^2")
    qLD: Array = real("nC", "factors L and D of M = L' D L")
    qLDiagInv: Array = real("nv", "inverse of D", "1/kg, 1/(kg m^2)")
    # Velocity
    ten_velocity: Array = real("ntendon", "velocity of the length", "m/s")
    actuator_velocity: Array = real("nu", "velocity of the transmission's length", "m/s or rad/s")
    cvel: Array = real("nbody 6", "spatial velocity (rotation, translation) at the tree's centre of mass", "rad/s, m/s")
    cdof_dot: Array = real("nv 6", "time derivative of cdof", "1/s, m/s")
    qfrc_bias: Array = real("nv", "Coriolis, centrifugal and gravitational force", "N, N m")
    qfrc_spring: Array = real("nv", "force of springs", "N, N m")
    qfrc_damper: Array = real("nv", "force of dampers", "N, N m")
    qfrc_gravcomp: Array = real("nv", "force of gravity compensation", "N, N m")
    qfrc_fluid: Array = real("nv", "force of the fluid", "N, N m")
    qfrc_passive: Array = real("nv", "sum of all passive forces", "N, N m")
    subtree_linvel: Array = real("nbody 3", "velocity of the subtree's centre of mass, global frame", "m/s")
    subtree_angmom: Array = real(
        "nbody 3", "angular momentum about the subtree's centre of mass, global frame", "kg m^2/s"
    )
    # Forces and acceleration
    actuator_force: Array = real("nu", "force of the actuator", "N or N m")
    qfrc_actuator: Array = real("nv", "force of all actuators on dofs", "N, N m")
    qfrc_smooth: Array = real("nv", "force without constraints", "N, N m")
    qacc_smooth: Array = real("nv", "acceleration without constraints", "m/s^2, rad/s^2")
    qfrc_constraint: Array = real("nv", "force of constraints", "N, N m")
    qfrc_inverse: Array = real("nv", "force that explains qacc, from inverse dynamics", "N, N m")
    cacc: Array = real(
        "nbody 6", "spatial acceleration (rotation, translation), at the tree's centre", "rad/s^2, m/s^2"
    )
    cfrc_int: Array = real("nbody 6", "torque and force from the parent, at the tree's centre of mass", "N m, N")
    cfrc_ext: Array = real("nbody 6", "external torque and force on the body, at the tree's centre of mass", "N m, N")
    # Counts
    ncon: Array = integer("", "contacts found; the first entries of contact")
    ne: Array = integer("", "active rows of equality constraints")
    nf: Array = integer("", "active rows of dry friction")
    nl: Array = integer("", "active rows of limits")
    nefc: Array = integer("", "active rows in all")
    solver_niter: Array = integer("1", "iterations of the solver")
    solver_fwdinv: Array = real("2", "difference of forward and inverse dynamics, joint and constraint forces")
    # Own fields
    maxuse_con: Array = integer("", "most contacts that this world needed at once, dropped ones included")
    maxuse_efc: Array = integer("", "most rows that this world needed at once, dropped ones included")
    overflow_contacts: Array = integer("", "contacts dropped for want of capacity since the last reset")
    overflow_constraints: Array = integer("", "rows dropped for want of capacity since the last reset")
    # Parts
    contact: Contact = part("contacts: arrays of max_contacts entries, of which the first ncon are real")
    efc: Constraint = part("constraint rows in their slots")
    warning: Warning = part("warnings by kind (mjtWarning)")
    index: Structure = part("names and addresses of objects, for access by name; static")

    efc_pos = Packed()
    efc_margin = Packed()
    efc_frictionloss = Packed()
    efc_diagApprox = Packed()
    efc_KBIP = Packed()
    efc_D = Packed()
    efc_R = Packed()
    efc_vel = Packed()
    efc_aref = Packed()
    efc_b = Packed()
    efc_force = Packed()
    efc_state = Packed()
    efc_type = Packed("int", (), "kind of constraint (mjtConstraint)")
    efc_id = Packed("int", (), "id of the object that is constrained")
    efc_J = Packed("float", ("nv",), "Jacobian by qvel", "-, m")

    def __repr__(self) -> str:
        return describe_data(self)

    actuator = objects("actuator", of_data=True)
    body = objects("body", of_data=True)
    camera = cam = objects("camera", of_data=True)
    equality = eq = objects("equality", of_data=True)
    geom = objects("geom", of_data=True)
    joint = jnt = objects("joint", of_data=True)
    light = objects("light", of_data=True)
    sensor = objects("sensor", of_data=True)
    site = objects("site", of_data=True)
    tendon = ten = objects("tendon", of_data=True)


DATA_FIELDS = fields_of(Data)
PACKED = {name: item.field for name, item in vars(Data).items() if isinstance(item, Packed)}
