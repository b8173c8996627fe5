"""Fields of Model, Data and their structs. Written by `python -m validation.fields`: do not edit."""

from typing import Any, TypedDict

import jax
import numpy as np

from jaxsim.core.callbacks import Callbacks
from jaxsim.core.data import Constraint, Contact, Warning
from jaxsim.core.layout import Layout
from jaxsim.core.model import Option, Statistic, Structure

class ModelFields:
    @property
    def nq(self) -> int:
        """Number of position coordinates (length of qpos)."""

    @property
    def nv(self) -> int:
        """Number of degrees of freedom (length of qvel)."""

    @property
    def nu(self) -> int:
        """Number of actuators (length of ctrl)."""

    @property
    def na(self) -> int:
        """Number of activation variables (length of act)."""

    @property
    def nbody(self) -> int:
        """Number of bodies, the world included."""

    @property
    def nbvh(self) -> int:
        """Number of nodes of all bounding-volume trees."""

    @property
    def nbvhstatic(self) -> int:
        """Number of nodes whose boxes are kept in the model."""

    @property
    def nbvhdynamic(self) -> int:
        """Number of nodes whose boxes move with flexes."""

    @property
    def noct(self) -> int:
        """Number of octree cells of all meshes."""

    @property
    def njnt(self) -> int:
        """Number of joints."""

    @property
    def ntree(self) -> int:
        """Number of kinematic trees below the world."""

    @property
    def nM(self) -> int:
        """Number of stored entries of qM: ancestor pairs of dofs."""

    @property
    def nB(self) -> int:
        """Number of stored entries of the sparse body-by-dof matrix."""

    @property
    def nC(self) -> int:
        """Number of stored entries of the lower triangle of M by rows."""

    @property
    def nD(self) -> int:
        """Number of stored entries of the sparse dof-by-dof matrix."""

    @property
    def ngeom(self) -> int:
        """Number of geoms."""

    @property
    def nsite(self) -> int:
        """Number of sites."""

    @property
    def ncam(self) -> int:
        """Number of cameras."""

    @property
    def nlight(self) -> int:
        """Number of lights."""

    @property
    def nflex(self) -> int:
        """Number of flexes."""

    @property
    def nflexnode(self) -> int:
        """Number of nodes of all flexes."""

    @property
    def nflexvert(self) -> int:
        """Number of vertices of all flexes."""

    @property
    def nflexedge(self) -> int:
        """Number of edges of all flexes."""

    @property
    def nflexelem(self) -> int:
        """Number of elements of all flexes."""

    @property
    def nflexelemdata(self) -> int:
        """Number of vertex ids of all flex elements."""

    @property
    def nflexstiffness(self) -> int:
        """Length of flex_stiffness."""

    @property
    def nflexbending(self) -> int:
        """Length of flex_bending."""

    @property
    def nflexelemedge(self) -> int:
        """Number of edge ids of all flex elements."""

    @property
    def nflexshelldata(self) -> int:
        """Number of vertex ids of all shell fragments."""

    @property
    def nflexevpair(self) -> int:
        """Number of pairs of a flex element and a vertex that may collide."""

    @property
    def nflextexcoord(self) -> int:
        """Number of flex vertices with texture coordinates."""

    @property
    def nJfe(self) -> int:
        """Number of stored entries of the Jacobian of flex edges."""

    @property
    def nJfv(self) -> int:
        """Number of stored entries of the Jacobian of flex vertices."""

    @property
    def nmesh(self) -> int:
        """Number of meshes."""

    @property
    def nmeshvert(self) -> int:
        """Number of vertices of all meshes."""

    @property
    def nmeshnormal(self) -> int:
        """Number of normals of all meshes."""

    @property
    def nmeshtexcoord(self) -> int:
        """Number of texture coordinates of all meshes."""

    @property
    def nmeshface(self) -> int:
        """Number of triangles of all meshes."""

    @property
    def nmeshgraph(self) -> int:
        """Number of integers in mesh_graph."""

    @property
    def nmeshpoly(self) -> int:
        """Number of polygons of the convex hulls of all meshes."""

    @property
    def nmeshpolyvert(self) -> int:
        """Number of vertex ids of all polygons."""

    @property
    def nmeshpolymap(self) -> int:
        """Number of entries of the map from vertices to polygons."""

    @property
    def nskin(self) -> int:
        """Number of skins."""

    @property
    def nskinvert(self) -> int:
        """Number of vertices of all skins."""

    @property
    def nskintexvert(self) -> int:
        """Number of skin vertices with texture coordinates."""

    @property
    def nskinface(self) -> int:
        """Number of triangles of all skins."""

    @property
    def nskinbone(self) -> int:
        """Number of bones of all skins."""

    @property
    def nskinbonevert(self) -> int:
        """Number of vertices of all bones."""

    @property
    def nhfield(self) -> int:
        """Number of height fields."""

    @property
    def nhfielddata(self) -> int:
        """Number of elevations in all height fields."""

    @property
    def ntex(self) -> int:
        """Number of textures."""

    @property
    def ntexdata(self) -> int:
        """Number of bytes of all textures."""

    @property
    def nmat(self) -> int:
        """Number of materials."""

    @property
    def npair(self) -> int:
        """Number of explicit pairs of geoms."""

    @property
    def nexclude(self) -> int:
        """Number of excluded pairs of bodies."""

    @property
    def neq(self) -> int:
        """Number of equality constraints."""

    @property
    def ntendon(self) -> int:
        """Number of tendons."""

    @property
    def nJten(self) -> int:
        """Number of stored entries of the Jacobian of tendons."""

    @property
    def nwrap(self) -> int:
        """Number of path objects of all tendons."""

    @property
    def nsensor(self) -> int:
        """Number of sensors."""

    @property
    def nnumeric(self) -> int:
        """Number of custom numeric fields."""

    @property
    def nnumericdata(self) -> int:
        """Length of all custom numeric fields."""

    @property
    def ntext(self) -> int:
        """Number of custom texts."""

    @property
    def ntextdata(self) -> int:
        """Number of bytes of all custom texts, end marks included."""

    @property
    def ntuple(self) -> int:
        """Number of custom tuples."""

    @property
    def ntupledata(self) -> int:
        """Number of members of all custom tuples."""

    @property
    def nkey(self) -> int:
        """Number of keyframes."""

    @property
    def nmocap(self) -> int:
        """Number of mocap bodies."""

    @property
    def nplugin(self) -> int:
        """Number of plugin instances."""

    @property
    def npluginattr(self) -> int:
        """Number of characters of all plugin attributes."""

    @property
    def nuser_body(self) -> int:
        """Number of user numbers of each body."""

    @property
    def nuser_jnt(self) -> int:
        """Number of user numbers of each joint."""

    @property
    def nuser_geom(self) -> int:
        """Number of user numbers of each geom."""

    @property
    def nuser_site(self) -> int:
        """Number of user numbers of each site."""

    @property
    def nuser_cam(self) -> int:
        """Number of user numbers of each camera."""

    @property
    def nuser_tendon(self) -> int:
        """Number of user numbers of each tendon."""

    @property
    def nuser_actuator(self) -> int:
        """Number of user numbers of each actuator."""

    @property
    def nuser_sensor(self) -> int:
        """Number of user numbers of each sensor."""

    @property
    def nnames(self) -> int:
        """Number of bytes in names."""

    @property
    def npaths(self) -> int:
        """Number of bytes in paths."""

    @property
    def nnames_map(self) -> int:
        """Number of slots of the hash map of names."""

    @property
    def nJmom(self) -> int:
        """Number of stored entries of MuJoCo's sparse actuator_moment."""

    @property
    def ngravcomp(self) -> int:
        """Number of bodies with gravity compensation."""

    @property
    def nemax(self) -> int:
        """Number of equality rows that can occur."""

    @property
    def njmax(self) -> int:
        """Number of constraint rows set by the file (legacy)."""

    @property
    def nconmax(self) -> int:
        """Number of contacts set by the file (legacy)."""

    @property
    def nuserdata(self) -> int:
        """Length of userdata."""

    @property
    def nsensordata(self) -> int:
        """Length of sensordata."""

    @property
    def npluginstate(self) -> int:
        """Length of plugin_state."""

    @property
    def nhistory(self) -> int:
        """Length of history."""

    @property
    def qpos0(self) -> jax.Array:
        """Positions of the reference configuration [m, rad, -], (nq,)."""

    @property
    def qpos_spring(self) -> jax.Array:
        """Positions at which joint springs rest [m, rad, -], (nq,)."""

    @property
    def body_parentid(self) -> np.ndarray:
        """Id of the parent body, (nbody,)."""

    @property
    def body_rootid(self) -> np.ndarray:
        """Id of the ancestor that is a child of the world, (nbody,)."""

    @property
    def body_weldid(self) -> np.ndarray:
        """Id of the highest body fixed to this one, (nbody,)."""

    @property
    def body_mocapid(self) -> np.ndarray:
        """Row in mocap_pos and mocap_quat; -1: not a mocap body, (nbody,)."""

    @property
    def body_jntnum(self) -> np.ndarray:
        """Number of joints, (nbody,)."""

    @property
    def body_jntadr(self) -> np.ndarray:
        """First joint; -1: none, (nbody,)."""

    @property
    def body_dofnum(self) -> np.ndarray:
        """Number of dofs, (nbody,)."""

    @property
    def body_dofadr(self) -> np.ndarray:
        """First dof; -1: none, (nbody,)."""

    @property
    def body_treeid(self) -> np.ndarray:
        """Id of the kinematic tree; -1: static, (nbody,)."""

    @property
    def body_geomnum(self) -> np.ndarray:
        """Number of geoms, (nbody,)."""

    @property
    def body_geomadr(self) -> np.ndarray:
        """First geom; -1: none, (nbody,)."""

    @property
    def body_simple(self) -> np.ndarray:
        """1: diagonal block of M; 2: also slides only; 0: neither, (nbody,)."""

    @property
    def body_sameframe(self) -> np.ndarray:
        """Relation of body and inertia frames (mjtSameFrame), (nbody,)."""

    @property
    def body_pos(self) -> jax.Array:
        """Position in the parent's frame [m], (nbody, 3)."""

    @property
    def body_quat(self) -> jax.Array:
        """Orientation in the parent's frame, (nbody, 4)."""

    @property
    def body_ipos(self) -> jax.Array:
        """Centre of mass in the body frame [m], (nbody, 3)."""

    @property
    def body_iquat(self) -> jax.Array:
        """Orientation of the principal axes in the body frame, (nbody, 4)."""

    @property
    def body_mass(self) -> jax.Array:
        """Mass of the body [kg], (nbody,)."""

    @property
    def body_subtreemass(self) -> jax.Array:
        """Mass of the body and all its descendants [kg], (nbody,)."""

    @property
    def body_inertia(self) -> jax.Array:
        """Principal moments of inertia [kg m^2], (nbody, 3)."""

    @property
    def body_invweight0(self) -> jax.Array:
        """Mean inverse inertia at qpos0, translation and rotation [1/kg, 1/(kg m^2)], (nbody, 2)."""

    @property
    def body_gravcomp(self) -> jax.Array:
        """Part of the body's weight that is compensated, (nbody,)."""

    @property
    def body_margin(self) -> jax.Array:
        """Largest margin of the body's geoms [m], (nbody,)."""

    @property
    def body_user(self) -> jax.Array:
        """User numbers, (nbody, nuser_body)."""

    @property
    def body_plugin(self) -> np.ndarray:
        """Plugin instance; -1: none, (nbody,)."""

    @property
    def body_contype(self) -> np.ndarray:
        """Bitwise OR of the contypes of the body's geoms, (nbody,)."""

    @property
    def body_conaffinity(self) -> np.ndarray:
        """Bitwise OR of the conaffinities of the body's geoms, (nbody,)."""

    @property
    def body_bvhadr(self) -> np.ndarray:
        """Root of the bounding-volume tree; -1: none, (nbody,)."""

    @property
    def body_bvhnum(self) -> np.ndarray:
        """Nodes of the bounding-volume tree, (nbody,)."""

    @property
    def bvh_depth(self) -> np.ndarray:
        """Depth of the node in its tree, (nbvh,)."""

    @property
    def bvh_child(self) -> np.ndarray:
        """Left and right child; -1: none, (nbvh, 2)."""

    @property
    def bvh_nodeid(self) -> np.ndarray:
        """Geom, element or face at the node; -1: inner node, (nbvh,)."""

    @property
    def bvh_aabb(self) -> np.ndarray:
        """Box of the node, centre and half sizes, local frame [m], (nbvhstatic, 6)."""

    @property
    def oct_depth(self) -> np.ndarray:
        """Depth of the cell in its octree, (noct,)."""

    @property
    def oct_child(self) -> np.ndarray:
        """Children of the cell; -1: none, (noct, 8)."""

    @property
    def oct_aabb(self) -> np.ndarray:
        """Box of the cell, centre and half sizes, mesh frame [m], (noct, 6)."""

    @property
    def oct_coeff(self) -> np.ndarray:
        """Signed distances at the corners of the cell [m], (noct, 8)."""

    @property
    def jnt_type(self) -> np.ndarray:
        """Kind of joint (mjtJoint), (njnt,)."""

    @property
    def jnt_qposadr(self) -> np.ndarray:
        """First coordinate in qpos, (njnt,)."""

    @property
    def jnt_dofadr(self) -> np.ndarray:
        """First coordinate in qvel, (njnt,)."""

    @property
    def jnt_bodyid(self) -> np.ndarray:
        """Body that the joint moves, (njnt,)."""

    @property
    def jnt_actuatorid(self) -> np.ndarray:
        """Actuator that adds damping or armature; -1: none, (njnt,)."""

    @property
    def jnt_group(self) -> np.ndarray:
        """Group for visibility, (njnt,)."""

    @property
    def jnt_limited(self) -> np.ndarray:
        """Whether the range is enforced, (njnt,)."""

    @property
    def jnt_actfrclimited(self) -> np.ndarray:
        """Whether the total actuator force is clamped, (njnt,)."""

    @property
    def jnt_actgravcomp(self) -> np.ndarray:
        """Whether gravity compensation counts as actuator force, (njnt,)."""

    @property
    def jnt_solref(self) -> jax.Array:
        """Solver reference of the limit [s, - or N/m, N s/m], (njnt, 2)."""

    @property
    def jnt_solimp(self) -> jax.Array:
        """Solver impedance of the limit, (njnt, 5)."""

    @property
    def jnt_pos(self) -> jax.Array:
        """Anchor in the body frame [m], (njnt, 3)."""

    @property
    def jnt_axis(self) -> jax.Array:
        """Axis in the body frame, unit length, (njnt, 3)."""

    @property
    def jnt_stiffness(self) -> jax.Array:
        """Linear stiffness of the spring [N/m or N m/rad], (njnt,)."""

    @property
    def jnt_stiffnesspoly(self) -> jax.Array:
        """Stiffness coefficients of higher order, (njnt, 2)."""

    @property
    def jnt_range(self) -> jax.Array:
        """Lower and upper limit [m or rad], (njnt, 2)."""

    @property
    def jnt_actfrcrange(self) -> jax.Array:
        """Smallest and largest total actuator force [N or N m], (njnt, 2)."""

    @property
    def jnt_margin(self) -> jax.Array:
        """Distance from the limit at which it becomes active [m or rad], (njnt,)."""

    @property
    def jnt_user(self) -> jax.Array:
        """User numbers, (njnt, nuser_jnt)."""

    @property
    def dof_bodyid(self) -> np.ndarray:
        """Body that the dof moves, (nv,)."""

    @property
    def dof_jntid(self) -> np.ndarray:
        """Joint that the dof belongs to, (nv,)."""

    @property
    def dof_parentid(self) -> np.ndarray:
        """Nearest ancestor dof; -1: none, (nv,)."""

    @property
    def dof_treeid(self) -> np.ndarray:
        """Id of the kinematic tree, (nv,)."""

    @property
    def dof_Madr(self) -> np.ndarray:
        """Position of the diagonal entry in qM, (nv,)."""

    @property
    def dof_simplenum(self) -> np.ndarray:
        """Number of consecutive simple dofs that start here, (nv,)."""

    @property
    def dof_solref(self) -> jax.Array:
        """Solver reference of dry friction [s, - or N/m, N s/m], (nv, 2)."""

    @property
    def dof_solimp(self) -> jax.Array:
        """Solver impedance of dry friction, (nv, 5)."""

    @property
    def dof_frictionloss(self) -> jax.Array:
        """Largest force of dry friction [N or N m], (nv,)."""

    @property
    def dof_armature(self) -> jax.Array:
        """Inertia added to the diagonal of M [kg or kg m^2], (nv,)."""

    @property
    def dof_damping(self) -> jax.Array:
        """Linear damping [N s/m or N m s/rad], (nv,)."""

    @property
    def dof_dampingpoly(self) -> jax.Array:
        """Damping coefficients of higher order, (nv, 2)."""

    @property
    def dof_invweight0(self) -> jax.Array:
        """Diagonal of the inverse of M at qpos0 [1/kg or 1/(kg m^2)], (nv,)."""

    @property
    def dof_M0(self) -> jax.Array:
        """Diagonal of M at qpos0 [kg or kg m^2], (nv,)."""

    @property
    def dof_length(self) -> jax.Array:
        """1 for slides; length that turns rotation into translation [- or m], (nv,)."""

    @property
    def tree_bodyadr(self) -> np.ndarray:
        """First body, (ntree,)."""

    @property
    def tree_bodynum(self) -> np.ndarray:
        """Number of bodies, (ntree,)."""

    @property
    def tree_dofadr(self) -> np.ndarray:
        """First dof, (ntree,)."""

    @property
    def tree_dofnum(self) -> np.ndarray:
        """Number of dofs, (ntree,)."""

    @property
    def tree_sleep_policy(self) -> np.ndarray:
        """When the tree may sleep (mjtSleepPolicy), (ntree,)."""

    @property
    def geom_type(self) -> np.ndarray:
        """Shape (mjtGeom), (ngeom,)."""

    @property
    def geom_contype(self) -> np.ndarray:
        """Bits offered to the contact filter, (ngeom,)."""

    @property
    def geom_conaffinity(self) -> np.ndarray:
        """Bits accepted by the contact filter, (ngeom,)."""

    @property
    def geom_condim(self) -> np.ndarray:
        """Dimension of contacts: 1, 3, 4 or 6, (ngeom,)."""

    @property
    def geom_bodyid(self) -> np.ndarray:
        """Body that carries the geom, (ngeom,)."""

    @property
    def geom_dataid(self) -> np.ndarray:
        """Mesh, height field or signed distance field; -1: none, (ngeom,)."""

    @property
    def geom_matid(self) -> np.ndarray:
        """Material; -1: none, (ngeom,)."""

    @property
    def geom_group(self) -> np.ndarray:
        """Group for visibility, (ngeom,)."""

    @property
    def geom_priority(self) -> np.ndarray:
        """The geom of higher priority sets contact parameters, (ngeom,)."""

    @property
    def geom_plugin(self) -> np.ndarray:
        """Plugin instance; -1: none, (ngeom,)."""

    @property
    def geom_sameframe(self) -> np.ndarray:
        """Relation of geom and body frames (mjtSameFrame), (ngeom,)."""

    @property
    def geom_solmix(self) -> jax.Array:
        """Weight in the mix of contact parameters, (ngeom,)."""

    @property
    def geom_solref(self) -> jax.Array:
        """Solver reference of contacts [s, - or N/m, N s/m], (ngeom, 2)."""

    @property
    def geom_solimp(self) -> jax.Array:
        """Solver impedance of contacts, (ngeom, 5)."""

    @property
    def geom_size(self) -> jax.Array:
        """Size parameters, by shape [m], (ngeom, 3)."""

    @property
    def geom_aabb(self) -> jax.Array:
        """Bounding box, centre and half sizes, geom frame [m], (ngeom, 6)."""

    @property
    def geom_rbound(self) -> jax.Array:
        """Radius of the bounding sphere; 0: unbounded [m], (ngeom,)."""

    @property
    def geom_pos(self) -> jax.Array:
        """Position in the body frame [m], (ngeom, 3)."""

    @property
    def geom_quat(self) -> jax.Array:
        """Orientation in the body frame, (ngeom, 4)."""

    @property
    def geom_friction(self) -> jax.Array:
        """Friction: sliding, spinning, rolling [-, m, m], (ngeom, 3)."""

    @property
    def geom_margin(self) -> jax.Array:
        """Distance below which contacts are detected [m], (ngeom,)."""

    @property
    def geom_gap(self) -> jax.Array:
        """Width of the zone in which contacts make no force [m], (ngeom,)."""

    @property
    def geom_fluid(self) -> jax.Array:
        """Parameters of the ellipsoid fluid model, (ngeom, 12)."""

    @property
    def geom_user(self) -> jax.Array:
        """User numbers, (ngeom, nuser_geom)."""

    @property
    def geom_rgba(self) -> jax.Array:
        """Colour, when there is no material, (ngeom, 4)."""

    @property
    def site_type(self) -> np.ndarray:
        """Shape for drawing and for sensor volumes (mjtGeom), (nsite,)."""

    @property
    def site_bodyid(self) -> np.ndarray:
        """Body that carries the site, (nsite,)."""

    @property
    def site_matid(self) -> np.ndarray:
        """Material; -1: none, (nsite,)."""

    @property
    def site_group(self) -> np.ndarray:
        """Group for visibility, (nsite,)."""

    @property
    def site_sameframe(self) -> np.ndarray:
        """Relation of site and body frames (mjtSameFrame), (nsite,)."""

    @property
    def site_size(self) -> jax.Array:
        """Size parameters, by shape [m], (nsite, 3)."""

    @property
    def site_pos(self) -> jax.Array:
        """Position in the body frame [m], (nsite, 3)."""

    @property
    def site_quat(self) -> jax.Array:
        """Orientation in the body frame, (nsite, 4)."""

    @property
    def site_user(self) -> jax.Array:
        """User numbers, (nsite, nuser_site)."""

    @property
    def site_rgba(self) -> jax.Array:
        """Colour, when there is no material, (nsite, 4)."""

    @property
    def cam_mode(self) -> np.ndarray:
        """How the camera moves (mjtCamLight), (ncam,)."""

    @property
    def cam_bodyid(self) -> np.ndarray:
        """Body that carries the camera, (ncam,)."""

    @property
    def cam_targetbodyid(self) -> np.ndarray:
        """Body that the camera looks at; -1: none, (ncam,)."""

    @property
    def cam_pos(self) -> jax.Array:
        """Position in the body frame [m], (ncam, 3)."""

    @property
    def cam_quat(self) -> jax.Array:
        """Orientation in the body frame, (ncam, 4)."""

    @property
    def cam_poscom0(self) -> jax.Array:
        """Position from the subtree's centre of mass at qpos0, global frame [m], (ncam, 3)."""

    @property
    def cam_pos0(self) -> jax.Array:
        """Position from the body's origin at qpos0, global frame [m], (ncam, 3)."""

    @property
    def cam_mat0(self) -> jax.Array:
        """Rotation matrix at qpos0, global frame, (ncam, 9)."""

    @property
    def cam_projection(self) -> np.ndarray:
        """Perspective or orthographic (mjtProjection), (ncam,)."""

    @property
    def cam_fovy(self) -> jax.Array:
        """Vertical field of view; orthographic: visible height [deg or m], (ncam,)."""

    @property
    def cam_ipd(self) -> jax.Array:
        """Distance between the eyes [m], (ncam,)."""

    @property
    def cam_resolution(self) -> np.ndarray:
        """Width and height of the image [pixel], (ncam, 2)."""

    @property
    def cam_output(self) -> np.ndarray:
        """Kinds of images (mjtCamOutBit), (ncam,)."""

    @property
    def cam_sensorsize(self) -> jax.Array:
        """Width and height of the sensor [m], (ncam, 2)."""

    @property
    def cam_intrinsic(self) -> jax.Array:
        """Focal lengths and principal point [m], (ncam, 4)."""

    @property
    def cam_user(self) -> jax.Array:
        """User numbers, (ncam, nuser_cam)."""

    @property
    def light_mode(self) -> np.ndarray:
        """How the light moves (mjtCamLight), (nlight,)."""

    @property
    def light_bodyid(self) -> np.ndarray:
        """Body that carries the light, (nlight,)."""

    @property
    def light_targetbodyid(self) -> np.ndarray:
        """Body that the light points at; -1: none, (nlight,)."""

    @property
    def light_type(self) -> np.ndarray:
        """Kind of light (mjtLightType), (nlight,)."""

    @property
    def light_texid(self) -> np.ndarray:
        """Texture of an image light; -1: none, (nlight,)."""

    @property
    def light_castshadow(self) -> np.ndarray:
        """Whether the light casts shadows, (nlight,)."""

    @property
    def light_bulbradius(self) -> jax.Array:
        """Radius of the bulb, for soft shadows [m], (nlight,)."""

    @property
    def light_intensity(self) -> jax.Array:
        """Luminous intensity [cd], (nlight,)."""

    @property
    def light_range(self) -> jax.Array:
        """Distance at which the light ends [m], (nlight,)."""

    @property
    def light_active(self) -> np.ndarray:
        """Whether the light is on, (nlight,)."""

    @property
    def light_pos(self) -> jax.Array:
        """Position in the body frame [m], (nlight, 3)."""

    @property
    def light_dir(self) -> jax.Array:
        """Direction in the body frame, (nlight, 3)."""

    @property
    def light_poscom0(self) -> jax.Array:
        """Position from the subtree's centre of mass at qpos0, global frame [m], (nlight, 3)."""

    @property
    def light_pos0(self) -> jax.Array:
        """Position from the body's origin at qpos0, global frame [m], (nlight, 3)."""

    @property
    def light_dir0(self) -> jax.Array:
        """Direction at qpos0, global frame, (nlight, 3)."""

    @property
    def light_attenuation(self) -> jax.Array:
        """Constant, linear and quadratic attenuation [-, 1/m, 1/m^2], (nlight, 3)."""

    @property
    def light_cutoff(self) -> jax.Array:
        """Half angle of a spot light [deg], (nlight,)."""

    @property
    def light_exponent(self) -> jax.Array:
        """Exponent of a spot light's falloff, (nlight,)."""

    @property
    def light_ambient(self) -> jax.Array:
        """Ambient colour, (nlight, 3)."""

    @property
    def light_diffuse(self) -> jax.Array:
        """Diffuse colour, (nlight, 3)."""

    @property
    def light_specular(self) -> jax.Array:
        """Specular colour, (nlight, 3)."""

    @property
    def flex_contype(self) -> np.ndarray:
        """Bits offered to the contact filter, (nflex,)."""

    @property
    def flex_conaffinity(self) -> np.ndarray:
        """Bits accepted by the contact filter, (nflex,)."""

    @property
    def flex_condim(self) -> np.ndarray:
        """Dimension of contacts: 1, 3, 4 or 6, (nflex,)."""

    @property
    def flex_priority(self) -> np.ndarray:
        """The side of higher priority sets contact parameters, (nflex,)."""

    @property
    def flex_solmix(self) -> jax.Array:
        """Weight in the mix of contact parameters, (nflex,)."""

    @property
    def flex_solref(self) -> jax.Array:
        """Solver reference of contacts [s, - or N/m, N s/m], (nflex, 2)."""

    @property
    def flex_solimp(self) -> jax.Array:
        """Solver impedance of contacts, (nflex, 5)."""

    @property
    def flex_friction(self) -> jax.Array:
        """Friction: sliding, spinning, rolling [-, m, m], (nflex, 3)."""

    @property
    def flex_margin(self) -> jax.Array:
        """Distance below which contacts are detected [m], (nflex,)."""

    @property
    def flex_gap(self) -> jax.Array:
        """Width of the zone in which contacts make no force [m], (nflex,)."""

    @property
    def flex_internal(self) -> np.ndarray:
        """Whether elements collide with vertices nearby, (nflex,)."""

    @property
    def flex_selfcollide(self) -> np.ndarray:
        """How the flex collides with itself (mjtFlexSelf), (nflex,)."""

    @property
    def flex_activelayers(self) -> np.ndarray:
        """Layers of elements that collide, in 3D, (nflex,)."""

    @property
    def flex_passive(self) -> np.ndarray:
        """Whether contacts act as passive forces, (nflex,)."""

    @property
    def flex_dim(self) -> np.ndarray:
        """1: lines, 2: triangles, 3: tetrahedra, (nflex,)."""

    @property
    def flex_matid(self) -> np.ndarray:
        """Material; -1: none, (nflex,)."""

    @property
    def flex_group(self) -> np.ndarray:
        """Group for visibility, (nflex,)."""

    @property
    def flex_interp(self) -> np.ndarray:
        """Order of interpolation from nodes; 0: every vertex moves, (nflex,)."""

    @property
    def flex_bandwidth(self) -> np.ndarray:
        """Bandwidth of the flex's system matrix, (nflex,)."""

    @property
    def flex_cellnum(self) -> np.ndarray:
        """Number of cells of the lattice by axis, (nflex, 3)."""

    @property
    def flex_nodeadr(self) -> np.ndarray:
        """First node, (nflex,)."""

    @property
    def flex_nodenum(self) -> np.ndarray:
        """Number of nodes, (nflex,)."""

    @property
    def flex_vertadr(self) -> np.ndarray:
        """First vertex, (nflex,)."""

    @property
    def flex_vertnum(self) -> np.ndarray:
        """Number of vertices, (nflex,)."""

    @property
    def flex_edgeadr(self) -> np.ndarray:
        """First edge, (nflex,)."""

    @property
    def flex_edgenum(self) -> np.ndarray:
        """Number of edges, (nflex,)."""

    @property
    def flex_elemadr(self) -> np.ndarray:
        """First element, (nflex,)."""

    @property
    def flex_elemnum(self) -> np.ndarray:
        """Number of elements, (nflex,)."""

    @property
    def flex_elemdataadr(self) -> np.ndarray:
        """First entry in flex_elem, (nflex,)."""

    @property
    def flex_stiffnessadr(self) -> np.ndarray:
        """First entry in flex_stiffness, (nflex,)."""

    @property
    def flex_elemedgeadr(self) -> np.ndarray:
        """First entry in flex_elemedge, (nflex,)."""

    @property
    def flex_bendingadr(self) -> np.ndarray:
        """First entry in flex_bending, (nflex,)."""

    @property
    def flex_shellnum(self) -> np.ndarray:
        """Number of shell fragments, (nflex,)."""

    @property
    def flex_shelldataadr(self) -> np.ndarray:
        """First entry in flex_shell, (nflex,)."""

    @property
    def flex_evpairadr(self) -> np.ndarray:
        """First entry in flex_evpair, (nflex,)."""

    @property
    def flex_evpairnum(self) -> np.ndarray:
        """Number of pairs of element and vertex, (nflex,)."""

    @property
    def flex_texcoordadr(self) -> np.ndarray:
        """First entry in flex_texcoord; -1: none, (nflex,)."""

    @property
    def flex_nodebodyid(self) -> np.ndarray:
        """Body of each node, (nflexnode,)."""

    @property
    def flex_vertbodyid(self) -> np.ndarray:
        """Body of each vertex, (nflexvert,)."""

    @property
    def flex_vertedgeadr(self) -> np.ndarray:
        """First entry in flex_vertedge, (nflexvert,)."""

    @property
    def flex_vertedgenum(self) -> np.ndarray:
        """Number of edges at the vertex, (nflexvert,)."""

    @property
    def flex_vertedge(self) -> np.ndarray:
        """Edges at each vertex, (nflexedge, 2)."""

    @property
    def flex_edge(self) -> np.ndarray:
        """The two vertices of each edge, (nflexedge, 2)."""

    @property
    def flex_edgeflap(self) -> np.ndarray:
        """Vertices opposite to each edge; -1: none, (nflexedge, 2)."""

    @property
    def flex_elem(self) -> np.ndarray:
        """Vertices of each element, dim + 1 of them, (nflexelemdata,)."""

    @property
    def flex_elemtexcoord(self) -> np.ndarray:
        """Texture coordinates of each element's vertices, (nflexelemdata,)."""

    @property
    def flex_elemedge(self) -> np.ndarray:
        """Edges of each element, (nflexelemedge,)."""

    @property
    def flex_elemlayer(self) -> np.ndarray:
        """Distance of the element from the surface, in layers, (nflexelem,)."""

    @property
    def flex_shell(self) -> np.ndarray:
        """Vertices of each shell fragment, dim of them, (nflexshelldata,)."""

    @property
    def flex_evpair(self) -> np.ndarray:
        """Pairs of element and vertex that may collide, (nflexevpair, 2)."""

    @property
    def flex_vert(self) -> jax.Array:
        """Vertices in their bodies' frames [m], (nflexvert, 3)."""

    @property
    def flex_vert0(self) -> jax.Array:
        """Vertices at qpos0, scaled to the unit box, (nflexvert, 3)."""

    @property
    def flex_vertmetric(self) -> jax.Array:
        """Inverse of the mass-weighted square of the vertex's edges [1/(kg m^2)], (nflexvert, 4)."""

    @property
    def flex_node(self) -> jax.Array:
        """Nodes in their bodies' frames [m], (nflexnode, 3)."""

    @property
    def flex_node0(self) -> jax.Array:
        """Nodes at qpos0, global frame [m], (nflexnode, 3)."""

    @property
    def flexedge_length0(self) -> jax.Array:
        """Length at qpos0 [m], (nflexedge,)."""

    @property
    def flexedge_invweight0(self) -> jax.Array:
        """Inverse inertia of the edge's length at qpos0 [1/kg], (nflexedge,)."""

    @property
    def flex_radius(self) -> jax.Array:
        """Radius around elements [m], (nflex,)."""

    @property
    def flex_size(self) -> jax.Array:
        """Half sizes of the box of all vertices at qpos0 [m], (nflex, 3)."""

    @property
    def flex_stiffness(self) -> jax.Array:
        """Stiffness of the finite elements [N/m], (nflexstiffness,)."""

    @property
    def flex_bending(self) -> jax.Array:
        """Bending stiffness [N/m], (nflexbending,)."""

    @property
    def flex_damping(self) -> jax.Array:
        """Rayleigh damping: ratio of damping to stiffness [s], (nflex,)."""

    @property
    def flex_edgestiffness(self) -> jax.Array:
        """Stiffness of edges [N/m], (nflex,)."""

    @property
    def flex_edgedamping(self) -> jax.Array:
        """Damping of edges [N s/m], (nflex,)."""

    @property
    def flex_edgeequality(self) -> np.ndarray:
        """Constraints of the flex; 0: none, 1: edges, 2: vertices, 3: strain, (nflex,)."""

    @property
    def flex_rigid(self) -> np.ndarray:
        """Whether all vertices belong to one body, (nflex,)."""

    @property
    def flexedge_rigid(self) -> np.ndarray:
        """Whether both ends belong to one body, (nflexedge,)."""

    @property
    def flex_centered(self) -> np.ndarray:
        """Whether all vertices lie at their bodies' origins, (nflex,)."""

    @property
    def flex_flatskin(self) -> np.ndarray:
        """Whether the skin is drawn with flat shading, (nflex,)."""

    @property
    def flex_bvhadr(self) -> np.ndarray:
        """Root of the bounding-volume tree; -1: none, (nflex,)."""

    @property
    def flex_bvhnum(self) -> np.ndarray:
        """Nodes of the bounding-volume tree, (nflex,)."""

    @property
    def flexedge_J_rownnz(self) -> np.ndarray:
        """Stored entries of each edge's Jacobian row, (nflexedge,)."""

    @property
    def flexedge_J_rowadr(self) -> np.ndarray:
        """First entry of each edge's Jacobian row, (nflexedge,)."""

    @property
    def flexedge_J_colind(self) -> np.ndarray:
        """Dof of each entry of the edges' Jacobian, (nJfe,)."""

    @property
    def flexvert_J_rownnz(self) -> np.ndarray:
        """Stored entries of each vertex's Jacobian rows, (nflexvert, 2)."""

    @property
    def flexvert_J_rowadr(self) -> np.ndarray:
        """First entry of each vertex's Jacobian rows, (nflexvert, 2)."""

    @property
    def flexvert_J_colind(self) -> np.ndarray:
        """Dof of each entry of the vertices' Jacobian, (nJfv, 2)."""

    @property
    def flex_rgba(self) -> jax.Array:
        """Colour, when there is no material, (nflex, 4)."""

    @property
    def flex_texcoord(self) -> np.ndarray:
        """Texture coordinates of vertices, (nflextexcoord, 2)."""

    @property
    def mesh_vertadr(self) -> np.ndarray:
        """First vertex, (nmesh,)."""

    @property
    def mesh_vertnum(self) -> np.ndarray:
        """Number of vertices, (nmesh,)."""

    @property
    def mesh_faceadr(self) -> np.ndarray:
        """First triangle, (nmesh,)."""

    @property
    def mesh_facenum(self) -> np.ndarray:
        """Number of triangles, (nmesh,)."""

    @property
    def mesh_bvhadr(self) -> np.ndarray:
        """Root of the bounding-volume tree; -1: none, (nmesh,)."""

    @property
    def mesh_bvhnum(self) -> np.ndarray:
        """Nodes of the bounding-volume tree, (nmesh,)."""

    @property
    def mesh_octadr(self) -> np.ndarray:
        """Root of the octree; -1: none, (nmesh,)."""

    @property
    def mesh_octnum(self) -> np.ndarray:
        """Cells of the octree, (nmesh,)."""

    @property
    def mesh_normaladr(self) -> np.ndarray:
        """First normal, (nmesh,)."""

    @property
    def mesh_normalnum(self) -> np.ndarray:
        """Number of normals, (nmesh,)."""

    @property
    def mesh_texcoordadr(self) -> np.ndarray:
        """First texture coordinate; -1: none, (nmesh,)."""

    @property
    def mesh_texcoordnum(self) -> np.ndarray:
        """Number of texture coordinates, (nmesh,)."""

    @property
    def mesh_graphadr(self) -> np.ndarray:
        """First entry in mesh_graph; -1: no convex hull, (nmesh,)."""

    @property
    def mesh_vert(self) -> jax.Array:
        """Vertices in the mesh frame [m], (nmeshvert, 3)."""

    @property
    def mesh_normal(self) -> np.ndarray:
        """Normals in the mesh frame, (nmeshnormal, 3)."""

    @property
    def mesh_texcoord(self) -> np.ndarray:
        """Texture coordinates, (nmeshtexcoord, 2)."""

    @property
    def mesh_face(self) -> np.ndarray:
        """Vertices of each triangle, (nmeshface, 3)."""

    @property
    def mesh_facenormal(self) -> np.ndarray:
        """Normals of each triangle, (nmeshface, 3)."""

    @property
    def mesh_facetexcoord(self) -> np.ndarray:
        """Texture coordinates of each triangle, (nmeshface, 3)."""

    @property
    def mesh_graph(self) -> np.ndarray:
        """Vertices, edges and faces of the convex hulls, (nmeshgraph,)."""

    @property
    def mesh_scale(self) -> jax.Array:
        """Scale that the compiler applied to the asset, (nmesh, 3)."""

    @property
    def mesh_pos(self) -> jax.Array:
        """Translation that the compiler applied to the asset [m], (nmesh, 3)."""

    @property
    def mesh_quat(self) -> jax.Array:
        """Rotation that the compiler applied to the asset, (nmesh, 4)."""

    @property
    def mesh_pathadr(self) -> np.ndarray:
        """First byte of the file's name in paths; -1: none, (nmesh,)."""

    @property
    def mesh_polynum(self) -> np.ndarray:
        """Number of polygons of the hull, (nmesh,)."""

    @property
    def mesh_polyadr(self) -> np.ndarray:
        """First polygon of the hull, (nmesh,)."""

    @property
    def mesh_polynormal(self) -> jax.Array:
        """Normal of each polygon, mesh frame, (nmeshpoly, 3)."""

    @property
    def mesh_polyvertadr(self) -> np.ndarray:
        """First entry in mesh_polyvert, (nmeshpoly,)."""

    @property
    def mesh_polyvertnum(self) -> np.ndarray:
        """Number of vertices of each polygon, (nmeshpoly,)."""

    @property
    def mesh_polyvert(self) -> np.ndarray:
        """Vertices of the polygons, (nmeshpolyvert,)."""

    @property
    def mesh_polymapadr(self) -> np.ndarray:
        """First entry in mesh_polymap, (nmeshvert,)."""

    @property
    def mesh_polymapnum(self) -> np.ndarray:
        """Number of polygons at each vertex, (nmeshvert,)."""

    @property
    def mesh_polymap(self) -> np.ndarray:
        """Polygons at each vertex, (nmeshpolymap,)."""

    @property
    def skin_matid(self) -> np.ndarray:
        """Material; -1: none, (nskin,)."""

    @property
    def skin_group(self) -> np.ndarray:
        """Group for visibility, (nskin,)."""

    @property
    def skin_rgba(self) -> np.ndarray:
        """Colour, when there is no material, (nskin, 4)."""

    @property
    def skin_inflate(self) -> np.ndarray:
        """Offset of vertices along their normals [m], (nskin,)."""

    @property
    def skin_vertadr(self) -> np.ndarray:
        """First vertex, (nskin,)."""

    @property
    def skin_vertnum(self) -> np.ndarray:
        """Number of vertices, (nskin,)."""

    @property
    def skin_texcoordadr(self) -> np.ndarray:
        """First texture coordinate; -1: none, (nskin,)."""

    @property
    def skin_faceadr(self) -> np.ndarray:
        """First triangle, (nskin,)."""

    @property
    def skin_facenum(self) -> np.ndarray:
        """Number of triangles, (nskin,)."""

    @property
    def skin_boneadr(self) -> np.ndarray:
        """First bone, (nskin,)."""

    @property
    def skin_bonenum(self) -> np.ndarray:
        """Number of bones, (nskin,)."""

    @property
    def skin_vert(self) -> np.ndarray:
        """Vertices, global frame of the bind pose [m], (nskinvert, 3)."""

    @property
    def skin_texcoord(self) -> np.ndarray:
        """Texture coordinates, (nskintexvert, 2)."""

    @property
    def skin_face(self) -> np.ndarray:
        """Vertices of each triangle, (nskinface, 3)."""

    @property
    def skin_bonevertadr(self) -> np.ndarray:
        """First entry in skin_bonevertid, (nskinbone,)."""

    @property
    def skin_bonevertnum(self) -> np.ndarray:
        """Number of vertices of the bone, (nskinbone,)."""

    @property
    def skin_bonebindpos(self) -> np.ndarray:
        """Position of the bone in the bind pose [m], (nskinbone, 3)."""

    @property
    def skin_bonebindquat(self) -> np.ndarray:
        """Orientation of the bone in the bind pose, (nskinbone, 4)."""

    @property
    def skin_bonebodyid(self) -> np.ndarray:
        """Body that moves the bone, (nskinbone,)."""

    @property
    def skin_bonevertid(self) -> np.ndarray:
        """Vertices of the bones, (nskinbonevert,)."""

    @property
    def skin_bonevertweight(self) -> np.ndarray:
        """Weights of the bones' vertices, (nskinbonevert,)."""

    @property
    def skin_pathadr(self) -> np.ndarray:
        """First byte of the file's name in paths; -1: none, (nskin,)."""

    @property
    def hfield_size(self) -> jax.Array:
        """Half sizes in x and y, greatest elevation, thickness below zero [m], (nhfield, 4)."""

    @property
    def hfield_nrow(self) -> np.ndarray:
        """Number of rows, (nhfield,)."""

    @property
    def hfield_ncol(self) -> np.ndarray:
        """Number of columns, (nhfield,)."""

    @property
    def hfield_adr(self) -> np.ndarray:
        """First entry in hfield_data, (nhfield,)."""

    @property
    def hfield_data(self) -> jax.Array:
        """Elevations by rows, from 0 to 1, (nhfielddata,)."""

    @property
    def hfield_pathadr(self) -> np.ndarray:
        """First byte of the file's name in paths; -1: none, (nhfield,)."""

    @property
    def tex_type(self) -> np.ndarray:
        """Kind of texture (mjtTexture), (ntex,)."""

    @property
    def tex_colorspace(self) -> np.ndarray:
        """Colour space (mjtColorSpace), (ntex,)."""

    @property
    def tex_height(self) -> np.ndarray:
        """Rows of the image [pixel], (ntex,)."""

    @property
    def tex_width(self) -> np.ndarray:
        """Columns of the image [pixel], (ntex,)."""

    @property
    def tex_nchannel(self) -> np.ndarray:
        """Channels of the image, (ntex,)."""

    @property
    def tex_adr(self) -> np.ndarray:
        """First byte in tex_data, (ntex,)."""

    @property
    def tex_data(self) -> np.ndarray:
        """Bytes of the images, (ntexdata,)."""

    @property
    def tex_pathadr(self) -> np.ndarray:
        """First byte of the file's name in paths; -1: none, (ntex,)."""

    @property
    def mat_texid(self) -> np.ndarray:
        """Texture of each role (mjtTextureRole); -1: none, (nmat, 10)."""

    @property
    def mat_texuniform(self) -> np.ndarray:
        """Whether the texture repeats by length, not by object, (nmat,)."""

    @property
    def mat_texrepeat(self) -> jax.Array:
        """Repetitions of the texture in both directions, (nmat, 2)."""

    @property
    def mat_emission(self) -> jax.Array:
        """Emission, as a factor of the colour, (nmat,)."""

    @property
    def mat_specular(self) -> jax.Array:
        """Specularity, as a factor of white, (nmat,)."""

    @property
    def mat_shininess(self) -> jax.Array:
        """Shininess, (nmat,)."""

    @property
    def mat_reflectance(self) -> jax.Array:
        """Reflectance; 0: none, (nmat,)."""

    @property
    def mat_metallic(self) -> jax.Array:
        """Metallic coefficient; -1: not set, (nmat,)."""

    @property
    def mat_roughness(self) -> jax.Array:
        """Roughness coefficient; -1: not set, (nmat,)."""

    @property
    def mat_rgba(self) -> jax.Array:
        """Colour, (nmat, 4)."""

    @property
    def pair_dim(self) -> np.ndarray:
        """Dimension of contacts: 1, 3, 4 or 6, (npair,)."""

    @property
    def pair_geom1(self) -> np.ndarray:
        """First geom, (npair,)."""

    @property
    def pair_geom2(self) -> np.ndarray:
        """Second geom, (npair,)."""

    @property
    def pair_signature(self) -> np.ndarray:
        """Number made of both body ids: body1 << 16 + body2, (npair,)."""

    @property
    def pair_solref(self) -> jax.Array:
        """Solver reference, normal direction [s, - or N/m, N s/m], (npair, 2)."""

    @property
    def pair_solreffriction(self) -> jax.Array:
        """Solver reference, friction directions [s, - or N/m, N s/m], (npair, 2)."""

    @property
    def pair_solimp(self) -> jax.Array:
        """Solver impedance, (npair, 5)."""

    @property
    def pair_margin(self) -> jax.Array:
        """Distance below which contacts are detected [m], (npair,)."""

    @property
    def pair_gap(self) -> jax.Array:
        """Width of the zone in which contacts make no force [m], (npair,)."""

    @property
    def pair_friction(self) -> jax.Array:
        """Friction: two tangents, spinning, two rolling [-, -, m, m, m], (npair, 5)."""

    @property
    def exclude_signature(self) -> np.ndarray:
        """Number made of both body ids: body1 << 16 + body2, (nexclude,)."""

    @property
    def eq_type(self) -> np.ndarray:
        """Kind of constraint (mjtEq), (neq,)."""

    @property
    def eq_obj1id(self) -> np.ndarray:
        """Id of the first object, (neq,)."""

    @property
    def eq_obj2id(self) -> np.ndarray:
        """Id of the second object; -1: none, (neq,)."""

    @property
    def eq_objtype(self) -> np.ndarray:
        """Kind of both objects (mjtObj), (neq,)."""

    @property
    def eq_active0(self) -> np.ndarray:
        """Whether the constraint is active at the start, (neq,)."""

    @property
    def eq_solref(self) -> jax.Array:
        """Solver reference [s, - or N/m, N s/m], (neq, 2)."""

    @property
    def eq_solimp(self) -> jax.Array:
        """Solver impedance, (neq, 5)."""

    @property
    def eq_data(self) -> jax.Array:
        """Parameters, by kind of constraint, (neq, 11)."""

    @property
    def tendon_adr(self) -> np.ndarray:
        """First path object in wrap_type, (ntendon,)."""

    @property
    def tendon_num(self) -> np.ndarray:
        """Number of path objects, (ntendon,)."""

    @property
    def tendon_matid(self) -> np.ndarray:
        """Material; -1: none, (ntendon,)."""

    @property
    def tendon_actuatorid(self) -> np.ndarray:
        """Actuator that adds damping or armature; -1: none, (ntendon,)."""

    @property
    def tendon_group(self) -> np.ndarray:
        """Group for visibility, (ntendon,)."""

    @property
    def tendon_treenum(self) -> np.ndarray:
        """Number of trees along the path, (ntendon,)."""

    @property
    def tendon_treeid(self) -> np.ndarray:
        """First two trees along the path; -1: none, (ntendon, 2)."""

    @property
    def ten_J_rownnz(self) -> np.ndarray:
        """Stored entries of each Jacobian row, (ntendon,)."""

    @property
    def ten_J_rowadr(self) -> np.ndarray:
        """First entry of each Jacobian row, (ntendon,)."""

    @property
    def ten_J_colind(self) -> np.ndarray:
        """Dof of each Jacobian entry, (nJten,)."""

    @property
    def tendon_limited(self) -> np.ndarray:
        """Whether the range is enforced, (ntendon,)."""

    @property
    def tendon_actfrclimited(self) -> np.ndarray:
        """Whether the total actuator force is clamped, (ntendon,)."""

    @property
    def tendon_width(self) -> jax.Array:
        """Radius for drawing [m], (ntendon,)."""

    @property
    def tendon_solref_lim(self) -> jax.Array:
        """Solver reference of the limit [s, - or N/m, N s/m], (ntendon, 2)."""

    @property
    def tendon_solimp_lim(self) -> jax.Array:
        """Solver impedance of the limit, (ntendon, 5)."""

    @property
    def tendon_solref_fri(self) -> jax.Array:
        """Solver reference of dry friction [s, - or N/m, N s/m], (ntendon, 2)."""

    @property
    def tendon_solimp_fri(self) -> jax.Array:
        """Solver impedance of dry friction, (ntendon, 5)."""

    @property
    def tendon_range(self) -> jax.Array:
        """Least and greatest length [m or rad], (ntendon, 2)."""

    @property
    def tendon_actfrcrange(self) -> jax.Array:
        """Smallest and largest total actuator force [N], (ntendon, 2)."""

    @property
    def tendon_margin(self) -> jax.Array:
        """Distance from the limit at which it becomes active [m], (ntendon,)."""

    @property
    def tendon_stiffness(self) -> jax.Array:
        """Linear stiffness of the spring [N/m], (ntendon,)."""

    @property
    def tendon_stiffnesspoly(self) -> jax.Array:
        """Stiffness coefficients of higher order, (ntendon, 2)."""

    @property
    def tendon_damping(self) -> jax.Array:
        """Linear damping [N s/m], (ntendon,)."""

    @property
    def tendon_dampingpoly(self) -> jax.Array:
        """Damping coefficients of higher order, (ntendon, 2)."""

    @property
    def tendon_armature(self) -> jax.Array:
        """Inertia against changes of length [kg], (ntendon,)."""

    @property
    def tendon_frictionloss(self) -> jax.Array:
        """Largest force of dry friction [N], (ntendon,)."""

    @property
    def tendon_lengthspring(self) -> jax.Array:
        """Lengths between which the spring is at rest [m], (ntendon, 2)."""

    @property
    def tendon_length0(self) -> jax.Array:
        """Length at qpos0 [m], (ntendon,)."""

    @property
    def tendon_invweight0(self) -> jax.Array:
        """Inverse inertia of the length at qpos0 [1/kg], (ntendon,)."""

    @property
    def tendon_user(self) -> jax.Array:
        """User numbers, (ntendon, nuser_tendon)."""

    @property
    def tendon_rgba(self) -> jax.Array:
        """Colour, when there is no material, (ntendon, 4)."""

    @property
    def wrap_type(self) -> np.ndarray:
        """Kind of path object (mjtWrap), (nwrap,)."""

    @property
    def wrap_objid(self) -> np.ndarray:
        """Joint, site or geom of the path object; -1: pulley, (nwrap,)."""

    @property
    def wrap_prm(self) -> jax.Array:
        """Joint coefficient, pulley divisor or side site, (nwrap,)."""

    @property
    def actuator_trntype(self) -> np.ndarray:
        """Kind of transmission (mjtTrn), (nu,)."""

    @property
    def actuator_dyntype(self) -> np.ndarray:
        """Kind of activation dynamics (mjtDyn), (nu,)."""

    @property
    def actuator_gaintype(self) -> np.ndarray:
        """Kind of gain (mjtGain), (nu,)."""

    @property
    def actuator_biastype(self) -> np.ndarray:
        """Kind of bias (mjtBias), (nu,)."""

    @property
    def actuator_trnid(self) -> np.ndarray:
        """Ids of the transmission's objects; -1: none, (nu, 2)."""

    @property
    def actuator_damping(self) -> jax.Array:
        """Damping added to the target [N s/m or N m s/rad], (nu,)."""

    @property
    def actuator_dampingpoly(self) -> jax.Array:
        """Damping coefficients of higher order, (nu, 2)."""

    @property
    def actuator_armature(self) -> jax.Array:
        """Inertia added to the target [kg or kg m^2], (nu,)."""

    @property
    def actuator_actadr(self) -> np.ndarray:
        """First variable in act; -1: stateless, (nu,)."""

    @property
    def actuator_actnum(self) -> np.ndarray:
        """Number of activation variables, (nu,)."""

    @property
    def actuator_group(self) -> np.ndarray:
        """Group, for visibility and for disabling, (nu,)."""

    @property
    def actuator_history(self) -> np.ndarray:
        """Samples and interpolation of the control's buffer, (nu, 2)."""

    @property
    def actuator_historyadr(self) -> np.ndarray:
        """First entry in history; -1: none, (nu,)."""

    @property
    def actuator_delay(self) -> jax.Array:
        """Delay of the control; 0: none [s], (nu,)."""

    @property
    def actuator_ctrllimited(self) -> np.ndarray:
        """Whether the control is clamped, (nu,)."""

    @property
    def actuator_forcelimited(self) -> np.ndarray:
        """Whether the force is clamped, (nu,)."""

    @property
    def actuator_actlimited(self) -> np.ndarray:
        """Whether the activation is clamped, (nu,)."""

    @property
    def actuator_dynprm(self) -> jax.Array:
        """Parameters of the activation dynamics, (nu, 10)."""

    @property
    def actuator_gainprm(self) -> jax.Array:
        """Parameters of the gain, (nu, 10)."""

    @property
    def actuator_biasprm(self) -> jax.Array:
        """Parameters of the bias, (nu, 10)."""

    @property
    def actuator_actearly(self) -> np.ndarray:
        """Whether the force uses the activation of the next step, (nu,)."""

    @property
    def actuator_ctrlrange(self) -> jax.Array:
        """Smallest and largest control, (nu, 2)."""

    @property
    def actuator_forcerange(self) -> jax.Array:
        """Smallest and largest force [N or N m], (nu, 2)."""

    @property
    def actuator_actrange(self) -> jax.Array:
        """Smallest and largest activation, (nu, 2)."""

    @property
    def actuator_gear(self) -> jax.Array:
        """Scales of length and force, by direction, (nu, 6)."""

    @property
    def actuator_cranklength(self) -> jax.Array:
        """Length of the crank of a slider-crank [m], (nu,)."""

    @property
    def actuator_acc0(self) -> jax.Array:
        """Norm of the acceleration by unit force at qpos0 [m/s^2 or rad/s^2], (nu,)."""

    @property
    def actuator_length0(self) -> jax.Array:
        """Length of the transmission at qpos0 [m or rad], (nu,)."""

    @property
    def actuator_lengthrange(self) -> jax.Array:
        """Least and greatest length that can be reached [m or rad], (nu, 2)."""

    @property
    def actuator_user(self) -> jax.Array:
        """User numbers, (nu, nuser_actuator)."""

    @property
    def actuator_plugin(self) -> np.ndarray:
        """Plugin instance; -1: none, (nu,)."""

    @property
    def sensor_type(self) -> np.ndarray:
        """Kind of sensor (mjtSensor), (nsensor,)."""

    @property
    def sensor_datatype(self) -> np.ndarray:
        """Kind of output (mjtDataType), (nsensor,)."""

    @property
    def sensor_needstage(self) -> np.ndarray:
        """Stage after which it can be computed (mjtStage), (nsensor,)."""

    @property
    def sensor_objtype(self) -> np.ndarray:
        """Kind of the measured object (mjtObj), (nsensor,)."""

    @property
    def sensor_objid(self) -> np.ndarray:
        """Id of the measured object, (nsensor,)."""

    @property
    def sensor_reftype(self) -> np.ndarray:
        """Kind of the frame of reference (mjtObj), (nsensor,)."""

    @property
    def sensor_refid(self) -> np.ndarray:
        """Id of the frame of reference; -1: global frame, (nsensor,)."""

    @property
    def sensor_intprm(self) -> np.ndarray:
        """Integer parameters, (nsensor, 3)."""

    @property
    def sensor_dim(self) -> np.ndarray:
        """Number of outputs, (nsensor,)."""

    @property
    def sensor_adr(self) -> np.ndarray:
        """First entry in sensordata, (nsensor,)."""

    @property
    def sensor_cutoff(self) -> jax.Array:
        """Bound on the outputs; 0: none [by sensor], (nsensor,)."""

    @property
    def sensor_noise(self) -> jax.Array:
        """Standard deviation of noise, for the user [by sensor], (nsensor,)."""

    @property
    def sensor_history(self) -> np.ndarray:
        """Samples and interpolation of the output's buffer, (nsensor, 2)."""

    @property
    def sensor_historyadr(self) -> np.ndarray:
        """First entry in history; -1: none, (nsensor,)."""

    @property
    def sensor_delay(self) -> jax.Array:
        """Delay of the output; 0: none [s], (nsensor,)."""

    @property
    def sensor_interval(self) -> jax.Array:
        """Period and phase of sampling [s], (nsensor, 2)."""

    @property
    def sensor_user(self) -> jax.Array:
        """User numbers, (nsensor, nuser_sensor)."""

    @property
    def sensor_plugin(self) -> np.ndarray:
        """Plugin instance; -1: none, (nsensor,)."""

    @property
    def plugin(self) -> np.ndarray:
        """Number of the plugin, as MuJoCo registers it, (nplugin,)."""

    @property
    def plugin_stateadr(self) -> np.ndarray:
        """First entry in plugin_state, (nplugin,)."""

    @property
    def plugin_statenum(self) -> np.ndarray:
        """Number of state variables, (nplugin,)."""

    @property
    def plugin_attr(self) -> np.ndarray:
        """Attributes of all instances, 0-terminated, (npluginattr,)."""

    @property
    def plugin_attradr(self) -> np.ndarray:
        """First character in plugin_attr, (nplugin,)."""

    @property
    def numeric_adr(self) -> np.ndarray:
        """First entry in numeric_data, (nnumeric,)."""

    @property
    def numeric_size(self) -> np.ndarray:
        """Number of entries, (nnumeric,)."""

    @property
    def numeric_data(self) -> jax.Array:
        """Numbers of all numeric fields, (nnumericdata,)."""

    @property
    def text_adr(self) -> np.ndarray:
        """First byte in text_data, (ntext,)."""

    @property
    def text_size(self) -> np.ndarray:
        """Number of bytes, the end mark included, (ntext,)."""

    @property
    def text_data(self) -> bytes:
        """All texts, 0-terminated, (ntextdata,)."""

    @property
    def tuple_adr(self) -> np.ndarray:
        """First member in tuple_objtype, (ntuple,)."""

    @property
    def tuple_size(self) -> np.ndarray:
        """Number of members, (ntuple,)."""

    @property
    def tuple_objtype(self) -> np.ndarray:
        """Kind of each member (mjtObj), (ntupledata,)."""

    @property
    def tuple_objid(self) -> np.ndarray:
        """Id of each member, (ntupledata,)."""

    @property
    def tuple_objprm(self) -> jax.Array:
        """Number that goes with each member, (ntupledata,)."""

    @property
    def key_time(self) -> jax.Array:
        """Time [s], (nkey,)."""

    @property
    def key_qpos(self) -> jax.Array:
        """Positions [m, rad, -], (nkey, nq)."""

    @property
    def key_qvel(self) -> jax.Array:
        """Velocities [m/s, rad/s], (nkey, nv)."""

    @property
    def key_act(self) -> jax.Array:
        """Activations, (nkey, na)."""

    @property
    def key_mpos(self) -> jax.Array:
        """Positions of mocap bodies, global frame [m], (nkey, nmocap*3)."""

    @property
    def key_mquat(self) -> jax.Array:
        """Orientations of mocap bodies, global frame, (nkey, nmocap*4)."""

    @property
    def key_ctrl(self) -> jax.Array:
        """Controls, (nkey, nu)."""

    @property
    def name_bodyadr(self) -> np.ndarray:
        """First byte of the body's name in names, (nbody,)."""

    @property
    def name_jntadr(self) -> np.ndarray:
        """First byte of the joint's name in names, (njnt,)."""

    @property
    def name_geomadr(self) -> np.ndarray:
        """First byte of the geom's name in names, (ngeom,)."""

    @property
    def name_siteadr(self) -> np.ndarray:
        """First byte of the site's name in names, (nsite,)."""

    @property
    def name_camadr(self) -> np.ndarray:
        """First byte of the camera's name in names, (ncam,)."""

    @property
    def name_lightadr(self) -> np.ndarray:
        """First byte of the light's name in names, (nlight,)."""

    @property
    def name_flexadr(self) -> np.ndarray:
        """First byte of the flex's name in names, (nflex,)."""

    @property
    def name_meshadr(self) -> np.ndarray:
        """First byte of the mesh's name in names, (nmesh,)."""

    @property
    def name_skinadr(self) -> np.ndarray:
        """First byte of the skin's name in names, (nskin,)."""

    @property
    def name_hfieldadr(self) -> np.ndarray:
        """First byte of the height field's name in names, (nhfield,)."""

    @property
    def name_texadr(self) -> np.ndarray:
        """First byte of the texture's name in names, (ntex,)."""

    @property
    def name_matadr(self) -> np.ndarray:
        """First byte of the material's name in names, (nmat,)."""

    @property
    def name_pairadr(self) -> np.ndarray:
        """First byte of the pair's name in names, (npair,)."""

    @property
    def name_excludeadr(self) -> np.ndarray:
        """First byte of the exclusion's name in names, (nexclude,)."""

    @property
    def name_eqadr(self) -> np.ndarray:
        """First byte of the constraint's name in names, (neq,)."""

    @property
    def name_tendonadr(self) -> np.ndarray:
        """First byte of the tendon's name in names, (ntendon,)."""

    @property
    def name_actuatoradr(self) -> np.ndarray:
        """First byte of the actuator's name in names, (nu,)."""

    @property
    def name_sensoradr(self) -> np.ndarray:
        """First byte of the sensor's name in names, (nsensor,)."""

    @property
    def name_numericadr(self) -> np.ndarray:
        """First byte of the numeric field's name in names, (nnumeric,)."""

    @property
    def name_textadr(self) -> np.ndarray:
        """First byte of the text's name in names, (ntext,)."""

    @property
    def name_tupleadr(self) -> np.ndarray:
        """First byte of the tuple's name in names, (ntuple,)."""

    @property
    def name_keyadr(self) -> np.ndarray:
        """First byte of the keyframe's name in names, (nkey,)."""

    @property
    def name_pluginadr(self) -> np.ndarray:
        """First byte of the plugin instance's name in names, (nplugin,)."""

    @property
    def names(self) -> bytes:
        """Name of the model and of all objects, 0-terminated, (nnames,)."""

    @property
    def names_map(self) -> np.ndarray:
        """MuJoCo's hash map from names to ids, (nnames_map,)."""

    @property
    def paths(self) -> bytes:
        """Names of asset files, 0-terminated, (npaths,)."""

    @property
    def B_rownnz(self) -> np.ndarray:
        """Body by dof: stored entries of each row, (nbody,)."""

    @property
    def B_rowadr(self) -> np.ndarray:
        """Body by dof: first entry of each row, (nbody,)."""

    @property
    def B_colind(self) -> np.ndarray:
        """Body by dof: column of each entry, (nB,)."""

    @property
    def M_rownnz(self) -> np.ndarray:
        """M by rows: stored entries of each row, (nv,)."""

    @property
    def M_rowadr(self) -> np.ndarray:
        """M by rows: first entry of each row, (nv,)."""

    @property
    def M_colind(self) -> np.ndarray:
        """M by rows: column of each entry, (nC,)."""

    @property
    def mapM2M(self) -> np.ndarray:
        """Position in qM of each entry of M, (nC,)."""

    @property
    def D_rownnz(self) -> np.ndarray:
        """Dof by dof: stored entries of each row, (nv,)."""

    @property
    def D_rowadr(self) -> np.ndarray:
        """Dof by dof: first entry of each row, (nv,)."""

    @property
    def D_diag(self) -> np.ndarray:
        """Dof by dof: position of the diagonal entry in its row, (nv,)."""

    @property
    def D_colind(self) -> np.ndarray:
        """Dof by dof: column of each entry, (nD,)."""

    @property
    def mapM2D(self) -> np.ndarray:
        """Position in M of each entry of D; -1: none, (nD,)."""

    @property
    def mapD2M(self) -> np.ndarray:
        """Position in D of each entry of M, (nC,)."""

    @property
    def opt(self) -> Option:
        """Physics options."""

    @property
    def stat(self) -> Statistic:
        """Statistics at qpos0."""

    @property
    def vis(self) -> Visual:
        """Settings of pictures; take no part in the physics."""

    @property
    def structure(self) -> Structure:
        """Everything that shapes the program: all fields that are not leaves."""

    @property
    def max_contacts(self) -> int:
        """Capacity of the contact buffer."""

    @property
    def max_constraints(self) -> int:
        """Capacity of the packed constraint rows."""

    @property
    def modelname(self) -> str:
        """Name of the model."""

    @property
    def eq_strain(self) -> np.ndarray:
        """Of equalities on strain of a flex: element of the lattice, its modes, (neq, 2)."""

    @property
    def callbacks(self) -> Callbacks:
        """Functions of the user that stages call."""

class VisualGlobal:
    @property
    def cameraid(self) -> int:
        """Camera at the start; -1: free."""

    @property
    def orthographic(self) -> int:
        """Whether the free camera is orthographic."""

    @property
    def fovy(self) -> float:
        """Vertical field of view of the free camera; orthographic: visible height [deg or m]."""

    @property
    def ipd(self) -> float:
        """Distance between the eyes of the free camera [m]."""

    @property
    def azimuth(self) -> float:
        """Azimuth of the free camera at the start [deg]."""

    @property
    def elevation(self) -> float:
        """Elevation of the free camera at the start [deg]."""

    @property
    def linewidth(self) -> float:
        """Width of lines [pixel]."""

    @property
    def glow(self) -> float:
        """Glow of the selected body."""

    @property
    def realtime(self) -> float:
        """Ratio of simulated to real time at the start."""

    @property
    def offwidth(self) -> int:
        """Width of the offscreen image [pixel]."""

    @property
    def offheight(self) -> int:
        """Height of the offscreen image [pixel]."""

    @property
    def ellipsoidinertia(self) -> int:
        """Inertias are drawn as 0: boxes, 1: ellipsoids."""

    @property
    def bvactive(self) -> int:
        """Whether active bounding volumes are drawn."""

class VisualQuality:
    @property
    def shadowsize(self) -> int:
        """Side of the shadow map [pixel]."""

    @property
    def offsamples(self) -> int:
        """Samples of each pixel offscreen."""

    @property
    def numslices(self) -> int:
        """Slices of round shapes."""

    @property
    def numstacks(self) -> int:
        """Stacks of round shapes."""

    @property
    def numquads(self) -> int:
        """Squares along the side of a box."""

class VisualHeadlight:
    @property
    def ambient(self) -> tuple[float, ...]:
        """Ambient colour, (3,)."""

    @property
    def diffuse(self) -> tuple[float, ...]:
        """Diffuse colour, (3,)."""

    @property
    def specular(self) -> tuple[float, ...]:
        """Specular colour, (3,)."""

    @property
    def active(self) -> int:
        """Whether the headlight is on."""

class VisualMap:
    @property
    def stiffness(self) -> float:
        """Stiffness of perturbation by mouse, translation [N/m]."""

    @property
    def stiffnessrot(self) -> float:
        """Stiffness of perturbation by mouse, rotation [N m/rad]."""

    @property
    def force(self) -> float:
        """Length drawn for a unit force [m/N]."""

    @property
    def torque(self) -> float:
        """Length drawn for a unit torque [1/N]."""

    @property
    def alpha(self) -> float:
        """Factor of opacity when geoms are transparent."""

    @property
    def fogstart(self) -> float:
        """Distance at which fog begins, in extents."""

    @property
    def fogend(self) -> float:
        """Distance at which fog is full, in extents."""

    @property
    def znear(self) -> float:
        """Distance of the near plane, in extents."""

    @property
    def zfar(self) -> float:
        """Distance of the far plane, in extents."""

    @property
    def haze(self) -> float:
        """Part of the horizon that is haze."""

    @property
    def shadowclip(self) -> float:
        """Half width of shadows of directional lights, in extents."""

    @property
    def shadowscale(self) -> float:
        """Part of a spot light's cone that casts shadows."""

    @property
    def actuatortendon(self) -> float:
        """Width of actuated tendons, in tendon widths."""

class VisualScale:
    @property
    def forcewidth(self) -> float:
        """Width of force arrows."""

    @property
    def contactwidth(self) -> float:
        """Width of contact discs."""

    @property
    def contactheight(self) -> float:
        """Height of contact discs."""

    @property
    def connect(self) -> float:
        """Width of capsules that join bodies."""

    @property
    def com(self) -> float:
        """Radius of centres of mass."""

    @property
    def camera(self) -> float:
        """Size of cameras."""

    @property
    def light(self) -> float:
        """Size of lights."""

    @property
    def selectpoint(self) -> float:
        """Radius of the selected point."""

    @property
    def jointlength(self) -> float:
        """Length of joint arrows."""

    @property
    def jointwidth(self) -> float:
        """Width of joint arrows."""

    @property
    def actuatorlength(self) -> float:
        """Length of actuators."""

    @property
    def actuatorwidth(self) -> float:
        """Width of actuators."""

    @property
    def framelength(self) -> float:
        """Length of frame axes."""

    @property
    def framewidth(self) -> float:
        """Width of frame axes."""

    @property
    def constraint(self) -> float:
        """Width of constraint lines."""

    @property
    def slidercrank(self) -> float:
        """Width of slider-cranks."""

    @property
    def frustum(self) -> float:
        """Distance of the far plane of camera frustums."""

class VisualRgba:
    @property
    def fog(self) -> tuple[float, ...]:
        """Fog, (4,)."""

    @property
    def haze(self) -> tuple[float, ...]:
        """Haze, (4,)."""

    @property
    def force(self) -> tuple[float, ...]:
        """External forces, (4,)."""

    @property
    def inertia(self) -> tuple[float, ...]:
        """Inertias, (4,)."""

    @property
    def joint(self) -> tuple[float, ...]:
        """Joints, (4,)."""

    @property
    def actuator(self) -> tuple[float, ...]:
        """Actuators at zero, (4,)."""

    @property
    def actuatornegative(self) -> tuple[float, ...]:
        """Actuators at the lower end of the range, (4,)."""

    @property
    def actuatorpositive(self) -> tuple[float, ...]:
        """Actuators at the upper end of the range, (4,)."""

    @property
    def com(self) -> tuple[float, ...]:
        """Centres of mass, (4,)."""

    @property
    def camera(self) -> tuple[float, ...]:
        """Cameras, (4,)."""

    @property
    def light(self) -> tuple[float, ...]:
        """Lights, (4,)."""

    @property
    def selectpoint(self) -> tuple[float, ...]:
        """Selected point, (4,)."""

    @property
    def connect(self) -> tuple[float, ...]:
        """Capsules that join bodies, (4,)."""

    @property
    def contactpoint(self) -> tuple[float, ...]:
        """Contact points, (4,)."""

    @property
    def contactforce(self) -> tuple[float, ...]:
        """Contact forces, (4,)."""

    @property
    def contactfriction(self) -> tuple[float, ...]:
        """Friction forces, (4,)."""

    @property
    def contacttorque(self) -> tuple[float, ...]:
        """Contact torques, (4,)."""

    @property
    def contactgap(self) -> tuple[float, ...]:
        """Contacts within the gap, (4,)."""

    @property
    def rangefinder(self) -> tuple[float, ...]:
        """Rays of rangefinders, (4,)."""

    @property
    def constraint(self) -> tuple[float, ...]:
        """Constraints, (4,)."""

    @property
    def slidercrank(self) -> tuple[float, ...]:
        """Slider-cranks, (4,)."""

    @property
    def crankbroken(self) -> tuple[float, ...]:
        """Slider-cranks that cannot reach, (4,)."""

    @property
    def frustum(self) -> tuple[float, ...]:
        """Camera frustums, (4,)."""

    @property
    def bv(self) -> tuple[float, ...]:
        """Bounding volumes, (4,)."""

    @property
    def bvactive(self) -> tuple[float, ...]:
        """Active bounding volumes, (4,)."""

class Visual:
    @property
    def global_(self) -> VisualGlobal: ...
    @property
    def quality(self) -> VisualQuality: ...
    @property
    def headlight(self) -> VisualHeadlight: ...
    @property
    def map(self) -> VisualMap: ...
    @property
    def scale(self) -> VisualScale: ...
    @property
    def rgba(self) -> VisualRgba: ...

class OptionFields:
    @property
    def timestep(self) -> jax.Array:
        """Length of a step [s]."""

    @property
    def impratio(self) -> jax.Array:
        """Ratio of frictional to normal impedance of elliptic cones."""

    @property
    def tolerance(self) -> jax.Array:
        """Improvement below which the solver stops."""

    @property
    def ls_tolerance(self) -> jax.Array:
        """Relative tolerance of the solver's line search."""

    @property
    def noslip_tolerance(self) -> jax.Array:
        """Improvement below which the noslip solver stops."""

    @property
    def ccd_tolerance(self) -> jax.Array:
        """Tolerance of the search for convex contacts [m]."""

    @property
    def sleep_tolerance(self) -> jax.Array:
        """Velocity below which a tree counts as at rest [m/s]."""

    @property
    def gravity(self) -> jax.Array:
        """Acceleration of gravity, global frame [m/s^2], (3,)."""

    @property
    def wind(self) -> jax.Array:
        """Velocity of the fluid, global frame [m/s], (3,)."""

    @property
    def magnetic(self) -> jax.Array:
        """Magnetic flux density, global frame [T], (3,)."""

    @property
    def density(self) -> jax.Array:
        """Density of the fluid [kg/m^3]."""

    @property
    def viscosity(self) -> jax.Array:
        """Dynamic viscosity of the fluid [Pa s]."""

    @property
    def o_margin(self) -> jax.Array:
        """Margin of contacts, when override is on [m]."""

    @property
    def o_solref(self) -> jax.Array:
        """Solver reference of contacts, when override is on [s, - or N/m, N s/m], (2,)."""

    @property
    def o_solimp(self) -> jax.Array:
        """Solver impedance of contacts, when override is on, (5,)."""

    @property
    def o_friction(self) -> jax.Array:
        """Friction of contacts, when override is on [-, -, m, m, m], (5,)."""

    @property
    def integrator(self) -> int:
        """Integrator (mjtIntegrator)."""

    @property
    def cone(self) -> int:
        """Friction cone (mjtCone)."""

    @property
    def jacobian(self) -> int:
        """Form of the Jacobian (mjtJacobian); has no effect here."""

    @property
    def solver(self) -> int:
        """Constraint solver (mjtSolver)."""

    @property
    def iterations(self) -> int:
        """Most iterations of the solver."""

    @property
    def ls_iterations(self) -> int:
        """Most iterations of the solver's line search."""

    @property
    def noslip_iterations(self) -> int:
        """Most iterations of the noslip solver; 0: off."""

    @property
    def ccd_iterations(self) -> int:
        """Most iterations of the search for convex contacts."""

    @property
    def disableflags(self) -> int:
        """Features switched off (mjtDisableBit)."""

    @property
    def enableflags(self) -> int:
        """Features switched on (mjtEnableBit)."""

    @property
    def disableactuator(self) -> int:
        """Actuator groups switched off, one bit each."""

    @property
    def sdf_initpoints(self) -> int:
        """Starting points of the search on signed distance fields."""

    @property
    def sdf_iterations(self) -> int:
        """Most iterations of the search on signed distance fields."""

    @property
    def fluid(self) -> int:
        """Whether the program computes fluid forces at all."""

    @property
    def solver_kernel(self) -> int:
        """0: a kernel on CUDA, C on a CPU, else XLA; 1: the kernel or an error; -1: XLA."""

class DataFields:
    @property
    def time(self) -> jax.Array:
        """Simulated time [s]."""

    @property
    def energy(self) -> jax.Array:
        """Potential and kinetic energy [J], (2,)."""

    @property
    def qpos(self) -> jax.Array:
        """Positions [m, rad, -], (nq,)."""

    @property
    def qvel(self) -> jax.Array:
        """Velocities [m/s, rad/s], (nv,)."""

    @property
    def act(self) -> jax.Array:
        """Activations of actuators, (na,)."""

    @property
    def history(self) -> jax.Array:
        """Past controls and sensor values with their times, (nhistory,)."""

    @property
    def qacc_warmstart(self) -> jax.Array:
        """Acceleration that the solver starts from [m/s^2, rad/s^2], (nv,)."""

    @property
    def plugin_state(self) -> jax.Array:
        """States of plugins, (npluginstate,)."""

    @property
    def ctrl(self) -> jax.Array:
        """Controls, (nu,)."""

    @property
    def qfrc_applied(self) -> jax.Array:
        """Force applied to dofs [N, N m], (nv,)."""

    @property
    def xfrc_applied(self) -> jax.Array:
        """Force and torque applied at bodies' centres of mass, global frame [N, N m], (nbody, 6)."""

    @property
    def eq_active(self) -> jax.Array:
        """Whether each equality constraint is active, (neq,)."""

    @property
    def tree_asleep(self) -> jax.Array:
        """Negative: awake; otherwise the next tree of the cycle that sleeps, (ntree,)."""

    @property
    def mocap_pos(self) -> jax.Array:
        """Positions of mocap bodies, global frame [m], (nmocap, 3)."""

    @property
    def mocap_quat(self) -> jax.Array:
        """Orientations of mocap bodies, global frame, (nmocap, 4)."""

    @property
    def qacc(self) -> jax.Array:
        """Accelerations [m/s^2, rad/s^2], (nv,)."""

    @property
    def act_dot(self) -> jax.Array:
        """Time derivative of activations [1/s], (na,)."""

    @property
    def userdata(self) -> jax.Array:
        """Numbers of the user, which no stage touches, (nuserdata,)."""

    @property
    def sensordata(self) -> jax.Array:
        """Outputs of all sensors [by sensor], (nsensordata,)."""

    @property
    def xpos(self) -> jax.Array:
        """Position of the body frame, global frame [m], (nbody, 3)."""

    @property
    def xquat(self) -> jax.Array:
        """Orientation of the body frame, global frame, (nbody, 4)."""

    @property
    def xmat(self) -> jax.Array:
        """Rotation matrix of the body frame, global frame, (nbody, 9)."""

    @property
    def xipos(self) -> jax.Array:
        """Centre of mass of the body, global frame [m], (nbody, 3)."""

    @property
    def ximat(self) -> jax.Array:
        """Rotation matrix of the principal axes, global frame, (nbody, 9)."""

    @property
    def xanchor(self) -> jax.Array:
        """Anchor of the joint, global frame [m], (njnt, 3)."""

    @property
    def xaxis(self) -> jax.Array:
        """Axis of the joint, global frame, (njnt, 3)."""

    @property
    def geom_xpos(self) -> jax.Array:
        """Position of the geom, global frame [m], (ngeom, 3)."""

    @property
    def geom_xmat(self) -> jax.Array:
        """Rotation matrix of the geom, global frame, (ngeom, 9)."""

    @property
    def site_xpos(self) -> jax.Array:
        """Position of the site, global frame [m], (nsite, 3)."""

    @property
    def site_xmat(self) -> jax.Array:
        """Rotation matrix of the site, global frame, (nsite, 9)."""

    @property
    def cam_xpos(self) -> jax.Array:
        """Position of the camera, global frame [m], (ncam, 3)."""

    @property
    def cam_xmat(self) -> jax.Array:
        """Rotation matrix of the camera, global frame, (ncam, 9)."""

    @property
    def light_xpos(self) -> jax.Array:
        """Position of the light, global frame [m], (nlight, 3)."""

    @property
    def light_xdir(self) -> jax.Array:
        """Direction of the light, global frame, (nlight, 3)."""

    @property
    def subtree_com(self) -> jax.Array:
        """Centre of mass of each subtree, global frame [m], (nbody, 3)."""

    @property
    def cdof(self) -> jax.Array:
        """Motion axis of each dof (rotation, translation), about the tree's centre of mass [-, m], (nv, 6)."""

    @property
    def cinert(self) -> jax.Array:
        """Inertia of the body about the tree's centre of mass, global axes [kg m^2, kg m, kg], (nbody, 10)."""

    @property
    def flexvert_xpos(self) -> jax.Array:
        """Positions of flex vertices, global frame [m], (nflexvert, 3)."""

    @property
    def flexelem_aabb(self) -> jax.Array:
        """Boxes of flex elements: centre, half sizes with the radius; global frame [m], (nflexelem, 6)."""

    @property
    def flexedge_J(self) -> jax.Array:
        """Jacobian of the lengths of flex edges, stored entries [m/rad, -], (nJfe,)."""

    @property
    def flexedge_length(self) -> jax.Array:
        """Length [m], (nflexedge,)."""

    @property
    def flexedge_velocity(self) -> jax.Array:
        """Velocity of the length [m/s], (nflexedge,)."""

    @property
    def flexvert_J(self) -> jax.Array:
        """Jacobian of flexvert_length, stored entries [1/m], (nJfv, 2)."""

    @property
    def flexvert_length(self) -> jax.Array:
        """Trace and determinant of the strain, by the root of mass [1], (nflexvert, 2)."""

    @property
    def ten_wrapadr(self) -> jax.Array:
        """First point of the path in wrap_xpos, (ntendon,)."""

    @property
    def ten_wrapnum(self) -> jax.Array:
        """Number of points of the path, (ntendon,)."""

    @property
    def ten_J(self) -> jax.Array:
        """Jacobian of tendon lengths, stored entries [m/rad, -], (nJten,)."""

    @property
    def ten_length(self) -> jax.Array:
        """Length [m], (ntendon,)."""

    @property
    def wrap_obj(self) -> jax.Array:
        """Geom of each path point; -1: site, -2: pulley, (nwrap, 2)."""

    @property
    def wrap_xpos(self) -> jax.Array:
        """Points of all paths, global frame [m], (nwrap, 6)."""

    @property
    def actuator_length(self) -> jax.Array:
        """Length of the transmission [m or rad], (nu,)."""

    @property
    def actuator_moment(self) -> jax.Array:
        """Jacobian of the transmission's length, dense here [m/rad, -], (nu, nv)."""

    @property
    def crb(self) -> jax.Array:
        """Inertia of the subtree about the tree's centre of mass, global axes [kg m^2, kg m, kg], (nbody, 10)."""

    @property
    def qM(self) -> jax.Array:
        """Inertia matrix: entries of ancestor pairs of dofs [kg, kg m, kg m^2], (nM,)."""

    @property
    def M(self) -> jax.Array:
        """Inertia matrix: lower triangle by rows [kg, kg m, kg m^2], (nC,)."""

    @property
    def qLD(self) -> jax.Array:
        """Factors L and D of M = L' D L, (nC,)."""

    @property
    def qLDiagInv(self) -> jax.Array:
        """Inverse of D [1/kg, 1/(kg m^2)], (nv,)."""

    @property
    def ten_velocity(self) -> jax.Array:
        """Velocity of the length [m/s], (ntendon,)."""

    @property
    def actuator_velocity(self) -> jax.Array:
        """Velocity of the transmission's length [m/s or rad/s], (nu,)."""

    @property
    def cvel(self) -> jax.Array:
        """Spatial velocity (rotation, translation) at the tree's centre of mass [rad/s, m/s], (nbody, 6)."""

    @property
    def cdof_dot(self) -> jax.Array:
        """Time derivative of cdof [1/s, m/s], (nv, 6)."""

    @property
    def qfrc_bias(self) -> jax.Array:
        """Coriolis, centrifugal and gravitational force [N, N m], (nv,)."""

    @property
    def qfrc_spring(self) -> jax.Array:
        """Force of springs [N, N m], (nv,)."""

    @property
    def qfrc_damper(self) -> jax.Array:
        """Force of dampers [N, N m], (nv,)."""

    @property
    def qfrc_gravcomp(self) -> jax.Array:
        """Force of gravity compensation [N, N m], (nv,)."""

    @property
    def qfrc_fluid(self) -> jax.Array:
        """Force of the fluid [N, N m], (nv,)."""

    @property
    def qfrc_passive(self) -> jax.Array:
        """Sum of all passive forces [N, N m], (nv,)."""

    @property
    def subtree_linvel(self) -> jax.Array:
        """Velocity of the subtree's centre of mass, global frame [m/s], (nbody, 3)."""

    @property
    def subtree_angmom(self) -> jax.Array:
        """Angular momentum about the subtree's centre of mass, global frame [kg m^2/s], (nbody, 3)."""

    @property
    def actuator_force(self) -> jax.Array:
        """Force of the actuator [N or N m], (nu,)."""

    @property
    def qfrc_actuator(self) -> jax.Array:
        """Force of all actuators on dofs [N, N m], (nv,)."""

    @property
    def qfrc_smooth(self) -> jax.Array:
        """Force without constraints [N, N m], (nv,)."""

    @property
    def qacc_smooth(self) -> jax.Array:
        """Acceleration without constraints [m/s^2, rad/s^2], (nv,)."""

    @property
    def qfrc_constraint(self) -> jax.Array:
        """Force of constraints [N, N m], (nv,)."""

    @property
    def qfrc_inverse(self) -> jax.Array:
        """Force that explains qacc, from inverse dynamics [N, N m], (nv,)."""

    @property
    def cacc(self) -> jax.Array:
        """Spatial acceleration (rotation, translation), at the tree's centre [rad/s^2, m/s^2], (nbody, 6)."""

    @property
    def cfrc_int(self) -> jax.Array:
        """Torque and force from the parent, at the tree's centre of mass [N m, N], (nbody, 6)."""

    @property
    def cfrc_ext(self) -> jax.Array:
        """External torque and force on the body, at the tree's centre of mass [N m, N], (nbody, 6)."""

    @property
    def ncon(self) -> jax.Array:
        """Contacts found; the first entries of contact."""

    @property
    def ne(self) -> jax.Array:
        """Active rows of equality constraints."""

    @property
    def nf(self) -> jax.Array:
        """Active rows of dry friction."""

    @property
    def nl(self) -> jax.Array:
        """Active rows of limits."""

    @property
    def nefc(self) -> jax.Array:
        """Active rows in all."""

    @property
    def solver_niter(self) -> jax.Array:
        """Iterations of the solver, (1,)."""

    @property
    def solver_fwdinv(self) -> jax.Array:
        """Difference of forward and inverse dynamics, joint and constraint forces, (2,)."""

    @property
    def maxuse_con(self) -> jax.Array:
        """Most contacts that this world needed at once, dropped ones included."""

    @property
    def maxuse_efc(self) -> jax.Array:
        """Most rows that this world needed at once, dropped ones included."""

    @property
    def overflow_contacts(self) -> jax.Array:
        """Contacts dropped for want of capacity since the last reset."""

    @property
    def overflow_constraints(self) -> jax.Array:
        """Rows dropped for want of capacity since the last reset."""

    @property
    def contact(self) -> Contact:
        """Contacts: arrays of max_contacts entries, of which the first ncon are real."""

    @property
    def efc(self) -> Constraint:
        """Constraint rows in their slots."""

    @property
    def warning(self) -> Warning:
        """Warnings by kind (mjtWarning)."""

    @property
    def efc_pos(self) -> jax.Array:
        """Violation: position error, or distance of the contact or limit [m or rad], (max_constraints,)."""

    @property
    def efc_margin(self) -> jax.Array:
        """Value of pos below which the row becomes active [m or rad], (max_constraints,)."""

    @property
    def efc_frictionloss(self) -> jax.Array:
        """Largest force of dry friction [N or N m], (max_constraints,)."""

    @property
    def efc_diagApprox(self) -> jax.Array:
        """Approximate diagonal of the inverse inertia of rows [1/kg or 1/(kg m^2)], (max_constraints,)."""

    @property
    def efc_KBIP(self) -> jax.Array:
        """Stiffness, damping, impedance and its derivative by position [1/s^2, 1/s, -, 1/m], (max_constraints, 4)."""

    @property
    def efc_D(self) -> jax.Array:
        """Inertia of the row: inverse of R [kg or kg m^2], (max_constraints,)."""

    @property
    def efc_R(self) -> jax.Array:
        """Regularization: diagonal added to the inverse inertia of rows [1/kg or 1/(kg m^2)], (max_constraints,)."""

    @property
    def efc_vel(self) -> jax.Array:
        """Velocity of the row: J qvel [m/s or rad/s], (max_constraints,)."""

    @property
    def efc_aref(self) -> jax.Array:
        """Acceleration that the constraint aims at [m/s^2 or rad/s^2], (max_constraints,)."""

    @property
    def efc_b(self) -> jax.Array:
        """J qacc_smooth - aref [m/s^2 or rad/s^2], (max_constraints,)."""

    @property
    def efc_force(self) -> jax.Array:
        """Force of the row [N or N m], (max_constraints,)."""

    @property
    def efc_state(self) -> jax.Array:
        """Part of the cost that the row is in (mjtConstraintState), (max_constraints,)."""

    @property
    def efc_type(self) -> jax.Array:
        """Kind of constraint (mjtConstraint), (max_constraints,)."""

    @property
    def efc_id(self) -> jax.Array:
        """Id of the object that is constrained, (max_constraints,)."""

    @property
    def efc_J(self) -> jax.Array:
        """Jacobian by qvel [-, m], (max_constraints, nv)."""

class ContactFields:
    @property
    def dist(self) -> jax.Array:
        """Distance of the surfaces; negative: penetration [m], (max_contacts,)."""

    @property
    def pos(self) -> jax.Array:
        """Midpoint between the surfaces, global frame [m], (max_contacts, 3)."""

    @property
    def frame(self) -> jax.Array:
        """Axes by rows, normal first (from geom[0] to geom[1]), global frame, (max_contacts, 9)."""

    @property
    def includemargin(self) -> jax.Array:
        """Distance below which the contact makes force: margin - gap [m], (max_contacts,)."""

    @property
    def friction(self) -> jax.Array:
        """Friction: two tangents, spinning, two rolling [-, -, m, m, m], (max_contacts, 5)."""

    @property
    def solref(self) -> jax.Array:
        """Solver reference, normal direction [s, - or N/m, N s/m], (max_contacts, 2)."""

    @property
    def solreffriction(self) -> jax.Array:
        """Solver reference, friction directions [s, - or N/m, N s/m], (max_contacts, 2)."""

    @property
    def solimp(self) -> jax.Array:
        """Solver impedance, (max_contacts, 5)."""

    @property
    def mu(self) -> jax.Array:
        """Friction of the regularized cone, (max_contacts,)."""

    @property
    def dim(self) -> jax.Array:
        """Dimension: 1, 3, 4 or 6, (max_contacts,)."""

    @property
    def geom(self) -> jax.Array:
        """Ids of both geoms; -1: a flex, or an empty entry, (max_contacts, 2)."""

    @property
    def flex(self) -> jax.Array:
        """Ids of both flexes; -1: a geom, (max_contacts, 2)."""

    @property
    def elem(self) -> jax.Array:
        """Elements of both flexes; -1: a geom or a vertex, (max_contacts, 2)."""

    @property
    def vert(self) -> jax.Array:
        """Vertices of both flexes; -1: a geom or an element, (max_contacts, 2)."""

    @property
    def exclude(self) -> jax.Array:
        """0: makes force; else why not (1: in the gap, 2: fused, 3: no dofs, 4: passive), (max_contacts,)."""

    @property
    def efc_address(self) -> jax.Array:
        """First of its rows among the packed ones; -1: none, (max_contacts,)."""

class ConstraintFields:
    @property
    def active(self) -> jax.Array:
        """Whether the slot holds a row, (nslot,)."""

    @property
    def pos(self) -> jax.Array:
        """Violation: position error, or distance of the contact or limit [m or rad], (nslot,)."""

    @property
    def margin(self) -> jax.Array:
        """Value of pos below which the row becomes active [m or rad], (nslot,)."""

    @property
    def frictionloss(self) -> jax.Array:
        """Largest force of dry friction [N or N m], (nslot,)."""

    @property
    def diagApprox(self) -> jax.Array:
        """Approximate diagonal of the inverse inertia of rows [1/kg or 1/(kg m^2)], (nslot,)."""

    @property
    def KBIP(self) -> jax.Array:
        """Stiffness, damping, impedance and its derivative by position [1/s^2, 1/s, -, 1/m], (nslot, 4)."""

    @property
    def D(self) -> jax.Array:
        """Inertia of the row: inverse of R [kg or kg m^2], (nslot,)."""

    @property
    def R(self) -> jax.Array:
        """Regularization: diagonal added to the inverse inertia of rows [1/kg or 1/(kg m^2)], (nslot,)."""

    @property
    def vel(self) -> jax.Array:
        """Velocity of the row: J qvel [m/s or rad/s], (nslot,)."""

    @property
    def aref(self) -> jax.Array:
        """Acceleration that the constraint aims at [m/s^2 or rad/s^2], (nslot,)."""

    @property
    def b(self) -> jax.Array:
        """J qacc_smooth - aref [m/s^2 or rad/s^2], (nslot,)."""

    @property
    def force(self) -> jax.Array:
        """Force of the row [N or N m], (nslot,)."""

    @property
    def state(self) -> jax.Array:
        """Part of the cost that the row is in (mjtConstraintState), (nslot,)."""

    @property
    def J_general(self) -> jax.Array:
        """Jacobian rows of equality, tendons and limits of balls [-, m], (ngeneral, nv)."""

    @property
    def J_contact(self) -> jax.Array:
        """Jacobian rows of contacts, in their frames [-, m], (max_contacts, condim, nv)."""

    @property
    def bodies(self) -> jax.Array:
        """Bodies of contacts, in sparse rows of models whose flexes collide, (max_contacts, nside)."""

    @property
    def layout(self) -> Layout:
        """Which row stands in which slot; static."""

class WarningFields:
    @property
    def number(self) -> jax.Array:
        """How often the warning was given, (7,)."""

    @property
    def lastinfo(self) -> jax.Array:
        """Index that the last one was about, (7,)."""

class ModelChanges(TypedDict, total=False):
    qpos0: Any
    qpos_spring: Any
    body_parentid: Any
    body_rootid: Any
    body_weldid: Any
    body_mocapid: Any
    body_jntnum: Any
    body_jntadr: Any
    body_dofnum: Any
    body_dofadr: Any
    body_treeid: Any
    body_geomnum: Any
    body_geomadr: Any
    body_simple: Any
    body_sameframe: Any
    body_pos: Any
    body_quat: Any
    body_ipos: Any
    body_iquat: Any
    body_mass: Any
    body_subtreemass: Any
    body_inertia: Any
    body_invweight0: Any
    body_gravcomp: Any
    body_margin: Any
    body_user: Any
    body_plugin: Any
    body_contype: Any
    body_conaffinity: Any
    body_bvhadr: Any
    body_bvhnum: Any
    bvh_depth: Any
    bvh_child: Any
    bvh_nodeid: Any
    bvh_aabb: Any
    oct_depth: Any
    oct_child: Any
    oct_aabb: Any
    oct_coeff: Any
    jnt_type: Any
    jnt_qposadr: Any
    jnt_dofadr: Any
    jnt_bodyid: Any
    jnt_actuatorid: Any
    jnt_group: Any
    jnt_limited: Any
    jnt_actfrclimited: Any
    jnt_actgravcomp: Any
    jnt_solref: Any
    jnt_solimp: Any
    jnt_pos: Any
    jnt_axis: Any
    jnt_stiffness: Any
    jnt_stiffnesspoly: Any
    jnt_range: Any
    jnt_actfrcrange: Any
    jnt_margin: Any
    jnt_user: Any
    dof_bodyid: Any
    dof_jntid: Any
    dof_parentid: Any
    dof_treeid: Any
    dof_Madr: Any
    dof_simplenum: Any
    dof_solref: Any
    dof_solimp: Any
    dof_frictionloss: Any
    dof_armature: Any
    dof_damping: Any
    dof_dampingpoly: Any
    dof_invweight0: Any
    dof_M0: Any
    dof_length: Any
    tree_bodyadr: Any
    tree_bodynum: Any
    tree_dofadr: Any
    tree_dofnum: Any
    tree_sleep_policy: Any
    geom_type: Any
    geom_contype: Any
    geom_conaffinity: Any
    geom_condim: Any
    geom_bodyid: Any
    geom_dataid: Any
    geom_matid: Any
    geom_group: Any
    geom_priority: Any
    geom_plugin: Any
    geom_sameframe: Any
    geom_solmix: Any
    geom_solref: Any
    geom_solimp: Any
    geom_size: Any
    geom_aabb: Any
    geom_rbound: Any
    geom_pos: Any
    geom_quat: Any
    geom_friction: Any
    geom_margin: Any
    geom_gap: Any
    geom_fluid: Any
    geom_user: Any
    geom_rgba: Any
    site_type: Any
    site_bodyid: Any
    site_matid: Any
    site_group: Any
    site_sameframe: Any
    site_size: Any
    site_pos: Any
    site_quat: Any
    site_user: Any
    site_rgba: Any
    cam_mode: Any
    cam_bodyid: Any
    cam_targetbodyid: Any
    cam_pos: Any
    cam_quat: Any
    cam_poscom0: Any
    cam_pos0: Any
    cam_mat0: Any
    cam_projection: Any
    cam_fovy: Any
    cam_ipd: Any
    cam_resolution: Any
    cam_output: Any
    cam_sensorsize: Any
    cam_intrinsic: Any
    cam_user: Any
    light_mode: Any
    light_bodyid: Any
    light_targetbodyid: Any
    light_type: Any
    light_texid: Any
    light_castshadow: Any
    light_bulbradius: Any
    light_intensity: Any
    light_range: Any
    light_active: Any
    light_pos: Any
    light_dir: Any
    light_poscom0: Any
    light_pos0: Any
    light_dir0: Any
    light_attenuation: Any
    light_cutoff: Any
    light_exponent: Any
    light_ambient: Any
    light_diffuse: Any
    light_specular: Any
    flex_contype: Any
    flex_conaffinity: Any
    flex_condim: Any
    flex_priority: Any
    flex_solmix: Any
    flex_solref: Any
    flex_solimp: Any
    flex_friction: Any
    flex_margin: Any
    flex_gap: Any
    flex_internal: Any
    flex_selfcollide: Any
    flex_activelayers: Any
    flex_passive: Any
    flex_dim: Any
    flex_matid: Any
    flex_group: Any
    flex_interp: Any
    flex_bandwidth: Any
    flex_cellnum: Any
    flex_nodeadr: Any
    flex_nodenum: Any
    flex_vertadr: Any
    flex_vertnum: Any
    flex_edgeadr: Any
    flex_edgenum: Any
    flex_elemadr: Any
    flex_elemnum: Any
    flex_elemdataadr: Any
    flex_stiffnessadr: Any
    flex_elemedgeadr: Any
    flex_bendingadr: Any
    flex_shellnum: Any
    flex_shelldataadr: Any
    flex_evpairadr: Any
    flex_evpairnum: Any
    flex_texcoordadr: Any
    flex_nodebodyid: Any
    flex_vertbodyid: Any
    flex_vertedgeadr: Any
    flex_vertedgenum: Any
    flex_vertedge: Any
    flex_edge: Any
    flex_edgeflap: Any
    flex_elem: Any
    flex_elemtexcoord: Any
    flex_elemedge: Any
    flex_elemlayer: Any
    flex_shell: Any
    flex_evpair: Any
    flex_vert: Any
    flex_vert0: Any
    flex_vertmetric: Any
    flex_node: Any
    flex_node0: Any
    flexedge_length0: Any
    flexedge_invweight0: Any
    flex_radius: Any
    flex_size: Any
    flex_stiffness: Any
    flex_bending: Any
    flex_damping: Any
    flex_edgestiffness: Any
    flex_edgedamping: Any
    flex_edgeequality: Any
    flex_rigid: Any
    flexedge_rigid: Any
    flex_centered: Any
    flex_flatskin: Any
    flex_bvhadr: Any
    flex_bvhnum: Any
    flexedge_J_rownnz: Any
    flexedge_J_rowadr: Any
    flexedge_J_colind: Any
    flexvert_J_rownnz: Any
    flexvert_J_rowadr: Any
    flexvert_J_colind: Any
    flex_rgba: Any
    flex_texcoord: Any
    mesh_vertadr: Any
    mesh_vertnum: Any
    mesh_faceadr: Any
    mesh_facenum: Any
    mesh_bvhadr: Any
    mesh_bvhnum: Any
    mesh_octadr: Any
    mesh_octnum: Any
    mesh_normaladr: Any
    mesh_normalnum: Any
    mesh_texcoordadr: Any
    mesh_texcoordnum: Any
    mesh_graphadr: Any
    mesh_vert: Any
    mesh_normal: Any
    mesh_texcoord: Any
    mesh_face: Any
    mesh_facenormal: Any
    mesh_facetexcoord: Any
    mesh_graph: Any
    mesh_scale: Any
    mesh_pos: Any
    mesh_quat: Any
    mesh_pathadr: Any
    mesh_polynum: Any
    mesh_polyadr: Any
    mesh_polynormal: Any
    mesh_polyvertadr: Any
    mesh_polyvertnum: Any
    mesh_polyvert: Any
    mesh_polymapadr: Any
    mesh_polymapnum: Any
    mesh_polymap: Any
    skin_matid: Any
    skin_group: Any
    skin_rgba: Any
    skin_inflate: Any
    skin_vertadr: Any
    skin_vertnum: Any
    skin_texcoordadr: Any
    skin_faceadr: Any
    skin_facenum: Any
    skin_boneadr: Any
    skin_bonenum: Any
    skin_vert: Any
    skin_texcoord: Any
    skin_face: Any
    skin_bonevertadr: Any
    skin_bonevertnum: Any
    skin_bonebindpos: Any
    skin_bonebindquat: Any
    skin_bonebodyid: Any
    skin_bonevertid: Any
    skin_bonevertweight: Any
    skin_pathadr: Any
    hfield_size: Any
    hfield_nrow: Any
    hfield_ncol: Any
    hfield_adr: Any
    hfield_data: Any
    hfield_pathadr: Any
    tex_type: Any
    tex_colorspace: Any
    tex_height: Any
    tex_width: Any
    tex_nchannel: Any
    tex_adr: Any
    tex_data: Any
    tex_pathadr: Any
    mat_texid: Any
    mat_texuniform: Any
    mat_texrepeat: Any
    mat_emission: Any
    mat_specular: Any
    mat_shininess: Any
    mat_reflectance: Any
    mat_metallic: Any
    mat_roughness: Any
    mat_rgba: Any
    pair_dim: Any
    pair_geom1: Any
    pair_geom2: Any
    pair_signature: Any
    pair_solref: Any
    pair_solreffriction: Any
    pair_solimp: Any
    pair_margin: Any
    pair_gap: Any
    pair_friction: Any
    exclude_signature: Any
    eq_type: Any
    eq_obj1id: Any
    eq_obj2id: Any
    eq_objtype: Any
    eq_active0: Any
    eq_solref: Any
    eq_solimp: Any
    eq_data: Any
    tendon_adr: Any
    tendon_num: Any
    tendon_matid: Any
    tendon_actuatorid: Any
    tendon_group: Any
    tendon_treenum: Any
    tendon_treeid: Any
    ten_J_rownnz: Any
    ten_J_rowadr: Any
    ten_J_colind: Any
    tendon_limited: Any
    tendon_actfrclimited: Any
    tendon_width: Any
    tendon_solref_lim: Any
    tendon_solimp_lim: Any
    tendon_solref_fri: Any
    tendon_solimp_fri: Any
    tendon_range: Any
    tendon_actfrcrange: Any
    tendon_margin: Any
    tendon_stiffness: Any
    tendon_stiffnesspoly: Any
    tendon_damping: Any
    tendon_dampingpoly: Any
    tendon_armature: Any
    tendon_frictionloss: Any
    tendon_lengthspring: Any
    tendon_length0: Any
    tendon_invweight0: Any
    tendon_user: Any
    tendon_rgba: Any
    wrap_type: Any
    wrap_objid: Any
    wrap_prm: Any
    actuator_trntype: Any
    actuator_dyntype: Any
    actuator_gaintype: Any
    actuator_biastype: Any
    actuator_trnid: Any
    actuator_damping: Any
    actuator_dampingpoly: Any
    actuator_armature: Any
    actuator_actadr: Any
    actuator_actnum: Any
    actuator_group: Any
    actuator_history: Any
    actuator_historyadr: Any
    actuator_delay: Any
    actuator_ctrllimited: Any
    actuator_forcelimited: Any
    actuator_actlimited: Any
    actuator_dynprm: Any
    actuator_gainprm: Any
    actuator_biasprm: Any
    actuator_actearly: Any
    actuator_ctrlrange: Any
    actuator_forcerange: Any
    actuator_actrange: Any
    actuator_gear: Any
    actuator_cranklength: Any
    actuator_acc0: Any
    actuator_length0: Any
    actuator_lengthrange: Any
    actuator_user: Any
    actuator_plugin: Any
    sensor_type: Any
    sensor_datatype: Any
    sensor_needstage: Any
    sensor_objtype: Any
    sensor_objid: Any
    sensor_reftype: Any
    sensor_refid: Any
    sensor_intprm: Any
    sensor_dim: Any
    sensor_adr: Any
    sensor_cutoff: Any
    sensor_noise: Any
    sensor_history: Any
    sensor_historyadr: Any
    sensor_delay: Any
    sensor_interval: Any
    sensor_user: Any
    sensor_plugin: Any
    plugin: Any
    plugin_stateadr: Any
    plugin_statenum: Any
    plugin_attr: Any
    plugin_attradr: Any
    numeric_adr: Any
    numeric_size: Any
    numeric_data: Any
    text_adr: Any
    text_size: Any
    text_data: Any
    tuple_adr: Any
    tuple_size: Any
    tuple_objtype: Any
    tuple_objid: Any
    tuple_objprm: Any
    key_time: Any
    key_qpos: Any
    key_qvel: Any
    key_act: Any
    key_mpos: Any
    key_mquat: Any
    key_ctrl: Any
    name_bodyadr: Any
    name_jntadr: Any
    name_geomadr: Any
    name_siteadr: Any
    name_camadr: Any
    name_lightadr: Any
    name_flexadr: Any
    name_meshadr: Any
    name_skinadr: Any
    name_hfieldadr: Any
    name_texadr: Any
    name_matadr: Any
    name_pairadr: Any
    name_excludeadr: Any
    name_eqadr: Any
    name_tendonadr: Any
    name_actuatoradr: Any
    name_sensoradr: Any
    name_numericadr: Any
    name_textadr: Any
    name_tupleadr: Any
    name_keyadr: Any
    name_pluginadr: Any
    names: Any
    names_map: Any
    paths: Any
    B_rownnz: Any
    B_rowadr: Any
    B_colind: Any
    M_rownnz: Any
    M_rowadr: Any
    M_colind: Any
    mapM2M: Any
    D_rownnz: Any
    D_rowadr: Any
    D_diag: Any
    D_colind: Any
    mapM2D: Any
    mapD2M: Any
    opt: Any
    stat: Any
    max_contacts: Any
    max_constraints: Any
    callbacks: Any

class OptionChanges(TypedDict, total=False):
    timestep: Any
    impratio: Any
    tolerance: Any
    ls_tolerance: Any
    noslip_tolerance: Any
    ccd_tolerance: Any
    sleep_tolerance: Any
    gravity: Any
    wind: Any
    magnetic: Any
    density: Any
    viscosity: Any
    o_margin: Any
    o_solref: Any
    o_solimp: Any
    o_friction: Any
    integrator: Any
    cone: Any
    jacobian: Any
    solver: Any
    iterations: Any
    ls_iterations: Any
    noslip_iterations: Any
    ccd_iterations: Any
    disableflags: Any
    enableflags: Any
    disableactuator: Any
    sdf_initpoints: Any
    sdf_iterations: Any
    fluid: Any
    solver_kernel: Any

class StatisticChanges(TypedDict, total=False):
    meaninertia: Any
    meanmass: Any
    meansize: Any
    extent: Any
    center: Any

class DataChanges(TypedDict, total=False):
    time: Any
    energy: Any
    qpos: Any
    qvel: Any
    act: Any
    history: Any
    qacc_warmstart: Any
    plugin_state: Any
    ctrl: Any
    qfrc_applied: Any
    xfrc_applied: Any
    eq_active: Any
    tree_asleep: Any
    mocap_pos: Any
    mocap_quat: Any
    qacc: Any
    act_dot: Any
    userdata: Any
    sensordata: Any
    xpos: Any
    xquat: Any
    xmat: Any
    xipos: Any
    ximat: Any
    xanchor: Any
    xaxis: Any
    geom_xpos: Any
    geom_xmat: Any
    site_xpos: Any
    site_xmat: Any
    cam_xpos: Any
    cam_xmat: Any
    light_xpos: Any
    light_xdir: Any
    subtree_com: Any
    cdof: Any
    cinert: Any
    flexvert_xpos: Any
    flexelem_aabb: Any
    flexedge_J: Any
    flexedge_length: Any
    flexedge_velocity: Any
    flexvert_J: Any
    flexvert_length: Any
    ten_wrapadr: Any
    ten_wrapnum: Any
    ten_J: Any
    ten_length: Any
    wrap_obj: Any
    wrap_xpos: Any
    actuator_length: Any
    actuator_moment: Any
    crb: Any
    qM: Any
    M: Any
    qLD: Any
    qLDiagInv: Any
    ten_velocity: Any
    actuator_velocity: Any
    cvel: Any
    cdof_dot: Any
    qfrc_bias: Any
    qfrc_spring: Any
    qfrc_damper: Any
    qfrc_gravcomp: Any
    qfrc_fluid: Any
    qfrc_passive: Any
    subtree_linvel: Any
    subtree_angmom: Any
    actuator_force: Any
    qfrc_actuator: Any
    qfrc_smooth: Any
    qacc_smooth: Any
    qfrc_constraint: Any
    qfrc_inverse: Any
    cacc: Any
    cfrc_int: Any
    cfrc_ext: Any
    ncon: Any
    ne: Any
    nf: Any
    nl: Any
    nefc: Any
    solver_niter: Any
    solver_fwdinv: Any
    maxuse_con: Any
    maxuse_efc: Any
    overflow_contacts: Any
    overflow_constraints: Any
    contact: Any
    efc: Any
    warning: Any

class ContactChanges(TypedDict, total=False):
    dist: Any
    pos: Any
    frame: Any
    includemargin: Any
    friction: Any
    solref: Any
    solreffriction: Any
    solimp: Any
    mu: Any
    dim: Any
    geom: Any
    flex: Any
    elem: Any
    vert: Any
    exclude: Any
    efc_address: Any

class ConstraintChanges(TypedDict, total=False):
    active: Any
    pos: Any
    margin: Any
    frictionloss: Any
    diagApprox: Any
    KBIP: Any
    D: Any
    R: Any
    vel: Any
    aref: Any
    b: Any
    force: Any
    state: Any
    J_general: Any
    J_contact: Any
    bodies: Any
    layout: Any

class WarningChanges(TypedDict, total=False):
    number: Any
    lastinfo: Any
