"""The tables of fields: every field of Model and Data, from which the structs, their stubs and their docs are made.

A row is ``name kind shape | meaning | unit``; a line with ``#`` is the title of a section. A shape is a list of
sizes of the model, integers, or ``-`` for a scalar. Kinds of Model: ``int``, ``bool`` and ``char`` are structure
(static numpy), as is ``bytes`` (Python's own), ``asset`` is static data that no stage of the physics reads as a number,
``float`` is a leaf of the PyTree. Kinds of Data: ``float``, ``int`` and ``bool``, all leaves. Names, shapes and
meanings are those of mjModel and mjData; what a fixed-shape program adds stands under "Own fields".

Units are SI, ``-`` where there is none. "N or N m" is by the kind of object (slide or hinge); with commas, entries
differ. A solver reference is a time constant and a damping ratio or, negative, a stiffness and a damping.
"""

from typing import NamedTuple

SIZES = """
# Dynamics
nq           int  - | number of position coordinates (length of qpos) | -
nv           int  - | number of degrees of freedom (length of qvel) | -
nu           int  - | number of actuators (length of ctrl) | -
na           int  - | number of activation variables (length of act) | -
nbody        int  - | number of bodies, the world included | -
nbvh         int  - | number of nodes of all bounding-volume trees | -
nbvhstatic   int  - | number of nodes whose boxes are kept in the model | -
nbvhdynamic  int  - | number of nodes whose boxes move with flexes | -
noct         int  - | number of octree cells of all meshes | -
njnt         int  - | number of joints | -
ntree        int  - | number of kinematic trees below the world | -
nM           int  - | number of stored entries of qM: ancestor pairs of dofs | -
nB           int  - | number of stored entries of the sparse body-by-dof matrix | -
nC           int  - | number of stored entries of the lower triangle of M by rows | -
nD           int  - | number of stored entries of the sparse dof-by-dof matrix | -
# Objects
ngeom           int  - | number of geoms | -
nsite           int  - | number of sites | -
ncam            int  - | number of cameras | -
nlight          int  - | number of lights | -
nflex           int  - | number of flexes | -
nflexnode       int  - | number of nodes of all flexes | -
nflexvert       int  - | number of vertices of all flexes | -
nflexedge       int  - | number of edges of all flexes | -
nflexelem       int  - | number of elements of all flexes | -
nflexelemdata   int  - | number of vertex ids of all flex elements | -
nflexstiffness  int  - | length of flex_stiffness | -
nflexbending    int  - | length of flex_bending | -
nflexelemedge   int  - | number of edge ids of all flex elements | -
nflexshelldata  int  - | number of vertex ids of all shell fragments | -
nflexevpair     int  - | number of pairs of a flex element and a vertex that may collide | -
nflextexcoord   int  - | number of flex vertices with texture coordinates | -
nJfe            int  - | number of stored entries of the Jacobian of flex edges | -
nJfv            int  - | number of stored entries of the Jacobian of flex vertices | -
nmesh           int  - | number of meshes | -
nmeshvert       int  - | number of vertices of all meshes | -
nmeshnormal     int  - | number of normals of all meshes | -
nmeshtexcoord   int  - | number of texture coordinates of all meshes | -
nmeshface       int  - | number of triangles of all meshes | -
nmeshgraph      int  - | number of integers in mesh_graph | -
nmeshpoly       int  - | number of polygons of the convex hulls of all meshes | -
nmeshpolyvert   int  - | number of vertex ids of all polygons | -
nmeshpolymap    int  - | number of entries of the map from vertices to polygons | -
nskin           int  - | number of skins | -
nskinvert       int  - | number of vertices of all skins | -
nskintexvert    int  - | number of skin vertices with texture coordinates | -
nskinface       int  - | number of triangles of all skins | -
nskinbone       int  - | number of bones of all skins | -
nskinbonevert   int  - | number of vertices of all bones | -
nhfield         int  - | number of height fields | -
nhfielddata     int  - | number of elevations in all height fields | -
ntex            int  - | number of textures | -
ntexdata        int  - | number of bytes of all textures | -
nmat            int  - | number of materials | -
npair           int  - | number of explicit pairs of geoms | -
nexclude        int  - | number of excluded pairs of bodies | -
neq             int  - | number of equality constraints | -
ntendon         int  - | number of tendons | -
nJten           int  - | number of stored entries of the Jacobian of tendons | -
nwrap           int  - | number of path objects of all tendons | -
nsensor         int  - | number of sensors | -
# Custom data, keyframes, plugins
nnumeric        int  - | number of custom numeric fields | -
nnumericdata    int  - | length of all custom numeric fields | -
ntext           int  - | number of custom texts | -
ntextdata       int  - | number of bytes of all custom texts, end marks included | -
ntuple          int  - | number of custom tuples | -
ntupledata      int  - | number of members of all custom tuples | -
nkey            int  - | number of keyframes | -
nmocap          int  - | number of mocap bodies | -
nplugin         int  - | number of plugin instances | -
npluginattr     int  - | number of characters of all plugin attributes | -
nuser_body      int  - | number of user numbers of each body | -
nuser_jnt       int  - | number of user numbers of each joint | -
nuser_geom      int  - | number of user numbers of each geom | -
nuser_site      int  - | number of user numbers of each site | -
nuser_cam       int  - | number of user numbers of each camera | -
nuser_tendon    int  - | number of user numbers of each tendon | -
nuser_actuator  int  - | number of user numbers of each actuator | -
nuser_sensor    int  - | number of user numbers of each sensor | -
nnames          int  - | number of bytes in names | -
npaths          int  - | number of bytes in paths | -
nnames_map      int  - | number of slots of the hash map of names | -
# Sizes of data
nJmom         int  - | number of stored entries of MuJoCo's sparse actuator_moment | -
ngravcomp     int  - | number of bodies with gravity compensation | -
nemax         int  - | number of equality rows that can occur | -
njmax         int  - | number of constraint rows set by the file (legacy) | -
nconmax       int  - | number of contacts set by the file (legacy) | -
nuserdata     int  - | length of userdata | -
nsensordata   int  - | length of sensordata | -
npluginstate  int  - | length of plugin_state | -
nhistory      int  - | length of history | -
"""

MODEL = """
# Reference coordinates
qpos0        float  nq | positions of the reference configuration | m, rad, -
qpos_spring  float  nq | positions at which joint springs rest | m, rad, -
# Bodies
body_parentid     int    nbody            | id of the parent body | -
body_rootid       int    nbody            | id of the ancestor that is a child of the world | -
body_weldid       int    nbody            | id of the highest body fixed to this one | -
body_mocapid      int    nbody            | row in mocap_pos and mocap_quat; -1: not a mocap body | -
body_jntnum       int    nbody            | number of joints | -
body_jntadr       int    nbody            | first joint; -1: none | -
body_dofnum       int    nbody            | number of dofs | -
body_dofadr       int    nbody            | first dof; -1: none | -
body_treeid       int    nbody            | id of the kinematic tree; -1: static | -
body_geomnum      int    nbody            | number of geoms | -
body_geomadr      int    nbody            | first geom; -1: none | -
body_simple       int    nbody            | 1: diagonal block of M; 2: also slides only; 0: neither | -
body_sameframe    int    nbody            | relation of body and inertia frames (mjtSameFrame) | -
body_pos          float  nbody 3          | position in the parent's frame | m
body_quat         float  nbody 4          | orientation in the parent's frame | -
body_ipos         float  nbody 3          | centre of mass in the body frame | m
body_iquat        float  nbody 4          | orientation of the principal axes in the body frame | -
body_mass         float  nbody            | mass of the body | kg
body_subtreemass  float  nbody            | mass of the body and all its descendants | kg
body_inertia      float  nbody 3          | principal moments of inertia | kg m^2
body_invweight0   float  nbody 2          | mean inverse inertia at qpos0, translation and rotation | 1/kg, 1/(kg m^2)
body_gravcomp     float  nbody            | part of the body's weight that is compensated | -
body_margin       float  nbody            | largest margin of the body's geoms | m
body_user         float  nbody nuser_body | user numbers | -
body_plugin       int    nbody            | plugin instance; -1: none | -
body_contype      int    nbody            | bitwise OR of the contypes of the body's geoms | -
body_conaffinity  int    nbody            | bitwise OR of the conaffinities of the body's geoms | -
body_bvhadr       int    nbody            | root of the bounding-volume tree; -1: none | -
body_bvhnum       int    nbody            | nodes of the bounding-volume tree | -
# Bounding volumes and octrees
bvh_depth   int    nbvh         | depth of the node in its tree | -
bvh_child   int    nbvh 2       | left and right child; -1: none | -
bvh_nodeid  int    nbvh         | geom, element or face at the node; -1: inner node | -
bvh_aabb    asset  nbvhstatic 6 | box of the node, centre and half sizes, local frame | m
oct_depth   int    noct         | depth of the cell in its octree | -
oct_child   int    noct 8       | children of the cell; -1: none | -
oct_aabb    asset  noct 6       | box of the cell, centre and half sizes, mesh frame | m
oct_coeff   asset  noct 8       | signed distances at the corners of the cell | m
# Joints
jnt_type           int    njnt           | kind of joint (mjtJoint) | -
jnt_qposadr        int    njnt           | first coordinate in qpos | -
jnt_dofadr         int    njnt           | first coordinate in qvel | -
jnt_bodyid         int    njnt           | body that the joint moves | -
jnt_actuatorid     int    njnt           | actuator that adds damping or armature; -1: none | -
jnt_group          int    njnt           | group for visibility | -
jnt_limited        bool   njnt           | whether the range is enforced | -
jnt_actfrclimited  bool   njnt           | whether the total actuator force is clamped | -
jnt_actgravcomp    bool   njnt           | whether gravity compensation counts as actuator force | -
jnt_solref         float  njnt 2         | solver reference of the limit | s, - or N/m, N s/m
jnt_solimp         float  njnt 5         | solver impedance of the limit | -
jnt_pos            float  njnt 3         | anchor in the body frame | m
jnt_axis           float  njnt 3         | axis in the body frame, unit length | -
jnt_stiffness      float  njnt           | linear stiffness of the spring | N/m or N m/rad
jnt_stiffnesspoly  float  njnt 2         | stiffness coefficients of higher order | -
jnt_range          float  njnt 2         | lower and upper limit | m or rad
jnt_actfrcrange    float  njnt 2         | smallest and largest total actuator force | N or N m
jnt_margin         float  njnt           | distance from the limit at which it becomes active | m or rad
jnt_user           float  njnt nuser_jnt | user numbers | -
# Degrees of freedom
dof_bodyid        int    nv   | body that the dof moves | -
dof_jntid         int    nv   | joint that the dof belongs to | -
dof_parentid      int    nv   | nearest ancestor dof; -1: none | -
dof_treeid        int    nv   | id of the kinematic tree | -
dof_Madr          int    nv   | position of the diagonal entry in qM | -
dof_simplenum     int    nv   | number of consecutive simple dofs that start here | -
dof_solref        float  nv 2 | solver reference of dry friction | s, - or N/m, N s/m
dof_solimp        float  nv 5 | solver impedance of dry friction | -
dof_frictionloss  float  nv   | largest force of dry friction | N or N m
dof_armature      float  nv   | inertia added to the diagonal of M | kg or kg m^2
dof_damping       float  nv   | linear damping | N s/m or N m s/rad
dof_dampingpoly   float  nv 2 | damping coefficients of higher order | -
dof_invweight0    float  nv   | diagonal of the inverse of M at qpos0 | 1/kg or 1/(kg m^2)
dof_M0            float  nv   | diagonal of M at qpos0 | kg or kg m^2
dof_length        float  nv   | 1 for slides; length that turns rotation into translation | - or m
# Kinematic trees
tree_bodyadr       int  ntree | first body | -
tree_bodynum       int  ntree | number of bodies | -
tree_dofadr        int  ntree | first dof | -
tree_dofnum        int  ntree | number of dofs | -
tree_sleep_policy  int  ntree | when the tree may sleep (mjtSleepPolicy) | -
# Geoms
geom_type         int    ngeom            | shape (mjtGeom) | -
geom_contype      int    ngeom            | bits offered to the contact filter | -
geom_conaffinity  int    ngeom            | bits accepted by the contact filter | -
geom_condim       int    ngeom            | dimension of contacts: 1, 3, 4 or 6 | -
geom_bodyid       int    ngeom            | body that carries the geom | -
geom_dataid       int    ngeom            | mesh, height field or signed distance field; -1: none | -
geom_matid        int    ngeom            | material; -1: none | -
geom_group        int    ngeom            | group for visibility | -
geom_priority     int    ngeom            | the geom of higher priority sets contact parameters | -
geom_plugin       int    ngeom            | plugin instance; -1: none | -
geom_sameframe    int    ngeom            | relation of geom and body frames (mjtSameFrame) | -
geom_solmix       float  ngeom            | weight in the mix of contact parameters | -
geom_solref       float  ngeom 2          | solver reference of contacts | s, - or N/m, N s/m
geom_solimp       float  ngeom 5          | solver impedance of contacts | -
geom_size         float  ngeom 3          | size parameters, by shape | m
geom_aabb         float  ngeom 6          | bounding box, centre and half sizes, geom frame | m
geom_rbound       float  ngeom            | radius of the bounding sphere; 0: unbounded | m
geom_pos          float  ngeom 3          | position in the body frame | m
geom_quat         float  ngeom 4          | orientation in the body frame | -
geom_friction     float  ngeom 3          | friction: sliding, spinning, rolling | -, m, m
geom_margin       float  ngeom            | distance below which contacts are detected | m
geom_gap          float  ngeom            | width of the zone in which contacts make no force | m
geom_fluid        float  ngeom 12         | parameters of the ellipsoid fluid model | -
geom_user         float  ngeom nuser_geom | user numbers | -
geom_rgba         float  ngeom 4          | colour, when there is no material | -
# Sites
site_type       int    nsite            | shape for drawing and for sensor volumes (mjtGeom) | -
site_bodyid     int    nsite            | body that carries the site | -
site_matid      int    nsite            | material; -1: none | -
site_group      int    nsite            | group for visibility | -
site_sameframe  int    nsite            | relation of site and body frames (mjtSameFrame) | -
site_size       float  nsite 3          | size parameters, by shape | m
site_pos        float  nsite 3          | position in the body frame | m
site_quat       float  nsite 4          | orientation in the body frame | -
site_user       float  nsite nuser_site | user numbers | -
site_rgba       float  nsite 4          | colour, when there is no material | -
# Cameras
cam_mode          int    ncam           | how the camera moves (mjtCamLight) | -
cam_bodyid        int    ncam           | body that carries the camera | -
cam_targetbodyid  int    ncam           | body that the camera looks at; -1: none | -
cam_pos           float  ncam 3         | position in the body frame | m
cam_quat          float  ncam 4         | orientation in the body frame | -
cam_poscom0       float  ncam 3         | position from the subtree's centre of mass at qpos0, global frame | m
cam_pos0          float  ncam 3         | position from the body's origin at qpos0, global frame | m
cam_mat0          float  ncam 9         | rotation matrix at qpos0, global frame | -
cam_projection    int    ncam           | perspective or orthographic (mjtProjection) | -
cam_fovy          float  ncam           | vertical field of view; orthographic: visible height | deg or m
cam_ipd           float  ncam           | distance between the eyes | m
cam_resolution    int    ncam 2         | width and height of the image | pixel
cam_output        int    ncam           | kinds of images (mjtCamOutBit) | -
cam_sensorsize    float  ncam 2         | width and height of the sensor | m
cam_intrinsic     float  ncam 4         | focal lengths and principal point | m
cam_user          float  ncam nuser_cam | user numbers | -
# Lights
light_mode          int    nlight   | how the light moves (mjtCamLight) | -
light_bodyid        int    nlight   | body that carries the light | -
light_targetbodyid  int    nlight   | body that the light points at; -1: none | -
light_type          int    nlight   | kind of light (mjtLightType) | -
light_texid         int    nlight   | texture of an image light; -1: none | -
light_castshadow    bool   nlight   | whether the light casts shadows | -
light_bulbradius    float  nlight   | radius of the bulb, for soft shadows | m
light_intensity     float  nlight   | luminous intensity | cd
light_range         float  nlight   | distance at which the light ends | m
light_active        bool   nlight   | whether the light is on | -
light_pos           float  nlight 3 | position in the body frame | m
light_dir           float  nlight 3 | direction in the body frame | -
light_poscom0       float  nlight 3 | position from the subtree's centre of mass at qpos0, global frame | m
light_pos0          float  nlight 3 | position from the body's origin at qpos0, global frame | m
light_dir0          float  nlight 3 | direction at qpos0, global frame | -
light_attenuation   float  nlight 3 | constant, linear and quadratic attenuation | -, 1/m, 1/m^2
light_cutoff        float  nlight   | half angle of a spot light | deg
light_exponent      float  nlight   | exponent of a spot light's falloff | -
light_ambient       float  nlight 3 | ambient colour | -
light_diffuse       float  nlight 3 | diffuse colour | -
light_specular      float  nlight 3 | specular colour | -
# Flexes: contact
flex_contype       int    nflex   | bits offered to the contact filter | -
flex_conaffinity   int    nflex   | bits accepted by the contact filter | -
flex_condim        int    nflex   | dimension of contacts: 1, 3, 4 or 6 | -
flex_priority      int    nflex   | the side of higher priority sets contact parameters | -
flex_solmix        float  nflex   | weight in the mix of contact parameters | -
flex_solref        float  nflex 2 | solver reference of contacts | s, - or N/m, N s/m
flex_solimp        float  nflex 5 | solver impedance of contacts | -
flex_friction      float  nflex 3 | friction: sliding, spinning, rolling | -, m, m
flex_margin        float  nflex   | distance below which contacts are detected | m
flex_gap           float  nflex   | width of the zone in which contacts make no force | m
flex_internal      bool   nflex   | whether elements collide with vertices nearby | -
flex_selfcollide   int    nflex   | how the flex collides with itself (mjtFlexSelf) | -
flex_activelayers  int    nflex   | layers of elements that collide, in 3D | -
flex_passive       int    nflex   | whether contacts act as passive forces | -
# Flexes: elements, vertices, edges
flex_dim             int    nflex           | 1: lines, 2: triangles, 3: tetrahedra | -
flex_matid           int    nflex           | material; -1: none | -
flex_group           int    nflex           | group for visibility | -
flex_interp          int    nflex           | order of interpolation from nodes; 0: every vertex moves | -
flex_bandwidth       int    nflex           | bandwidth of the flex's system matrix | -
flex_cellnum         int    nflex 3         | number of cells of the lattice by axis | -
flex_nodeadr         int    nflex           | first node | -
flex_nodenum         int    nflex           | number of nodes | -
flex_vertadr         int    nflex           | first vertex | -
flex_vertnum         int    nflex           | number of vertices | -
flex_edgeadr         int    nflex           | first edge | -
flex_edgenum         int    nflex           | number of edges | -
flex_elemadr         int    nflex           | first element | -
flex_elemnum         int    nflex           | number of elements | -
flex_elemdataadr     int    nflex           | first entry in flex_elem | -
flex_stiffnessadr    int    nflex           | first entry in flex_stiffness | -
flex_elemedgeadr     int    nflex           | first entry in flex_elemedge | -
flex_bendingadr      int    nflex           | first entry in flex_bending | -
flex_shellnum        int    nflex           | number of shell fragments | -
flex_shelldataadr    int    nflex           | first entry in flex_shell | -
flex_evpairadr       int    nflex           | first entry in flex_evpair | -
flex_evpairnum       int    nflex           | number of pairs of element and vertex | -
flex_texcoordadr     int    nflex           | first entry in flex_texcoord; -1: none | -
flex_nodebodyid      int    nflexnode       | body of each node | -
flex_vertbodyid      int    nflexvert       | body of each vertex | -
flex_vertedgeadr     int    nflexvert       | first entry in flex_vertedge | -
flex_vertedgenum     int    nflexvert       | number of edges at the vertex | -
flex_vertedge        int    nflexedge 2     | edges at each vertex | -
flex_edge            int    nflexedge 2     | the two vertices of each edge | -
flex_edgeflap        int    nflexedge 2     | vertices opposite to each edge; -1: none | -
flex_elem            int    nflexelemdata   | vertices of each element, dim + 1 of them | -
flex_elemtexcoord    int    nflexelemdata   | texture coordinates of each element's vertices | -
flex_elemedge        int    nflexelemedge   | edges of each element | -
flex_elemlayer       int    nflexelem       | distance of the element from the surface, in layers | -
flex_shell           int    nflexshelldata  | vertices of each shell fragment, dim of them | -
flex_evpair          int    nflexevpair 2   | pairs of element and vertex that may collide | -
flex_vert            float  nflexvert 3     | vertices in their bodies' frames | m
flex_vert0           float  nflexvert 3     | vertices at qpos0, scaled to the unit box | -
flex_vertmetric      float  nflexvert 4     | inverse of the mass-weighted square of the vertex's edges | 1/(kg m^2)
flex_node            float  nflexnode 3     | nodes in their bodies' frames | m
flex_node0           float  nflexnode 3     | nodes at qpos0, global frame | m
flexedge_length0     float  nflexedge       | length at qpos0 | m
flexedge_invweight0  float  nflexedge       | inverse inertia of the edge's length at qpos0 | 1/kg
flex_radius          float  nflex           | radius around elements | m
flex_size            float  nflex 3         | half sizes of the box of all vertices at qpos0 | m
flex_stiffness       float  nflexstiffness  | stiffness of the finite elements | N/m
flex_bending         float  nflexbending    | bending stiffness | N/m
flex_damping         float  nflex           | Rayleigh damping: ratio of damping to stiffness | s
flex_edgestiffness   float  nflex           | stiffness of edges | N/m
flex_edgedamping     float  nflex           | damping of edges | N s/m
flex_edgeequality    int    nflex           | constraints of the flex; 0: none, 1: edges, 2: vertices, 3: strain | -
flex_rigid           bool   nflex           | whether all vertices belong to one body | -
flexedge_rigid       bool   nflexedge       | whether both ends belong to one body | -
flex_centered        bool   nflex           | whether all vertices lie at their bodies' origins | -
flex_flatskin        bool   nflex           | whether the skin is drawn with flat shading | -
flex_bvhadr          int    nflex           | root of the bounding-volume tree; -1: none | -
flex_bvhnum          int    nflex           | nodes of the bounding-volume tree | -
flexedge_J_rownnz    int    nflexedge       | stored entries of each edge's Jacobian row | -
flexedge_J_rowadr    int    nflexedge       | first entry of each edge's Jacobian row | -
flexedge_J_colind    int    nJfe            | dof of each entry of the edges' Jacobian | -
flexvert_J_rownnz    int    nflexvert 2     | stored entries of each vertex's Jacobian rows | -
flexvert_J_rowadr    int    nflexvert 2     | first entry of each vertex's Jacobian rows | -
flexvert_J_colind    int    nJfv 2          | dof of each entry of the vertices' Jacobian | -
flex_rgba            float  nflex 4         | colour, when there is no material | -
flex_texcoord        asset  nflextexcoord 2 | texture coordinates of vertices | -
# Meshes
mesh_vertadr       int    nmesh           | first vertex | -
mesh_vertnum       int    nmesh           | number of vertices | -
mesh_faceadr       int    nmesh           | first triangle | -
mesh_facenum       int    nmesh           | number of triangles | -
mesh_bvhadr        int    nmesh           | root of the bounding-volume tree; -1: none | -
mesh_bvhnum        int    nmesh           | nodes of the bounding-volume tree | -
mesh_octadr        int    nmesh           | root of the octree; -1: none | -
mesh_octnum        int    nmesh           | cells of the octree | -
mesh_normaladr     int    nmesh           | first normal | -
mesh_normalnum     int    nmesh           | number of normals | -
mesh_texcoordadr   int    nmesh           | first texture coordinate; -1: none | -
mesh_texcoordnum   int    nmesh           | number of texture coordinates | -
mesh_graphadr      int    nmesh           | first entry in mesh_graph; -1: no convex hull | -
mesh_vert          float  nmeshvert 3     | vertices in the mesh frame | m
mesh_normal        asset  nmeshnormal 3   | normals in the mesh frame | -
mesh_texcoord      asset  nmeshtexcoord 2 | texture coordinates | -
mesh_face          int    nmeshface 3     | vertices of each triangle | -
mesh_facenormal    int    nmeshface 3     | normals of each triangle | -
mesh_facetexcoord  int    nmeshface 3     | texture coordinates of each triangle | -
mesh_graph         int    nmeshgraph      | vertices, edges and faces of the convex hulls | -
mesh_scale         float  nmesh 3         | scale that the compiler applied to the asset | -
mesh_pos           float  nmesh 3         | translation that the compiler applied to the asset | m
mesh_quat          float  nmesh 4         | rotation that the compiler applied to the asset | -
mesh_pathadr       int    nmesh           | first byte of the file's name in paths; -1: none | -
mesh_polynum       int    nmesh           | number of polygons of the hull | -
mesh_polyadr       int    nmesh           | first polygon of the hull | -
mesh_polynormal    float  nmeshpoly 3     | normal of each polygon, mesh frame | -
mesh_polyvertadr   int    nmeshpoly       | first entry in mesh_polyvert | -
mesh_polyvertnum   int    nmeshpoly       | number of vertices of each polygon | -
mesh_polyvert      int    nmeshpolyvert   | vertices of the polygons | -
mesh_polymapadr    int    nmeshvert       | first entry in mesh_polymap | -
mesh_polymapnum    int    nmeshvert       | number of polygons at each vertex | -
mesh_polymap       int    nmeshpolymap    | polygons at each vertex | -
# Skins
skin_matid           int    nskin          | material; -1: none | -
skin_group           int    nskin          | group for visibility | -
skin_rgba            asset  nskin 4        | colour, when there is no material | -
skin_inflate         asset  nskin          | offset of vertices along their normals | m
skin_vertadr         int    nskin          | first vertex | -
skin_vertnum         int    nskin          | number of vertices | -
skin_texcoordadr     int    nskin          | first texture coordinate; -1: none | -
skin_faceadr         int    nskin          | first triangle | -
skin_facenum         int    nskin          | number of triangles | -
skin_boneadr         int    nskin          | first bone | -
skin_bonenum         int    nskin          | number of bones | -
skin_vert            asset  nskinvert 3    | vertices, global frame of the bind pose | m
skin_texcoord        asset  nskintexvert 2 | texture coordinates | -
skin_face            int    nskinface 3    | vertices of each triangle | -
skin_bonevertadr     int    nskinbone      | first entry in skin_bonevertid | -
skin_bonevertnum     int    nskinbone      | number of vertices of the bone | -
skin_bonebindpos     asset  nskinbone 3    | position of the bone in the bind pose | m
skin_bonebindquat    asset  nskinbone 4    | orientation of the bone in the bind pose | -
skin_bonebodyid      int    nskinbone      | body that moves the bone | -
skin_bonevertid      int    nskinbonevert  | vertices of the bones | -
skin_bonevertweight  asset  nskinbonevert  | weights of the bones' vertices | -
skin_pathadr         int    nskin          | first byte of the file's name in paths; -1: none | -
# Height fields
hfield_size     float  nhfield 4   | half sizes in x and y, greatest elevation, thickness below zero | m
hfield_nrow     int    nhfield     | number of rows | -
hfield_ncol     int    nhfield     | number of columns | -
hfield_adr      int    nhfield     | first entry in hfield_data | -
hfield_data     float  nhfielddata | elevations by rows, from 0 to 1 | -
hfield_pathadr  int    nhfield     | first byte of the file's name in paths; -1: none | -
# Textures and materials
tex_type         int    ntex     | kind of texture (mjtTexture) | -
tex_colorspace   int    ntex     | colour space (mjtColorSpace) | -
tex_height       int    ntex     | rows of the image | pixel
tex_width        int    ntex     | columns of the image | pixel
tex_nchannel     int    ntex     | channels of the image | -
tex_adr          int    ntex     | first byte in tex_data | -
tex_data         asset  ntexdata | bytes of the images | -
tex_pathadr      int    ntex     | first byte of the file's name in paths; -1: none | -
mat_texid        int    nmat 10  | texture of each role (mjtTextureRole); -1: none | -
mat_texuniform   bool   nmat     | whether the texture repeats by length, not by object | -
mat_texrepeat    float  nmat 2   | repetitions of the texture in both directions | -
mat_emission     float  nmat     | emission, as a factor of the colour | -
mat_specular     float  nmat     | specularity, as a factor of white | -
mat_shininess    float  nmat     | shininess | -
mat_reflectance  float  nmat     | reflectance; 0: none | -
mat_metallic     float  nmat     | metallic coefficient; -1: not set | -
mat_roughness    float  nmat     | roughness coefficient; -1: not set | -
mat_rgba         float  nmat 4   | colour | -
# Pairs of geoms
pair_dim             int    npair    | dimension of contacts: 1, 3, 4 or 6 | -
pair_geom1           int    npair    | first geom | -
pair_geom2           int    npair    | second geom | -
pair_signature       int    npair    | number made of both body ids: body1 << 16 + body2 | -
pair_solref          float  npair 2  | solver reference, normal direction | s, - or N/m, N s/m
pair_solreffriction  float  npair 2  | solver reference, friction directions | s, - or N/m, N s/m
pair_solimp          float  npair 5  | solver impedance | -
pair_margin          float  npair    | distance below which contacts are detected | m
pair_gap             float  npair    | width of the zone in which contacts make no force | m
pair_friction        float  npair 5  | friction: two tangents, spinning, two rolling | -, -, m, m, m
exclude_signature    int    nexclude | number made of both body ids: body1 << 16 + body2 | -
# Equality constraints
eq_type     int    neq    | kind of constraint (mjtEq) | -
eq_obj1id   int    neq    | id of the first object | -
eq_obj2id   int    neq    | id of the second object; -1: none | -
eq_objtype  int    neq    | kind of both objects (mjtObj) | -
eq_active0  bool   neq    | whether the constraint is active at the start | -
eq_solref   float  neq 2  | solver reference | s, - or N/m, N s/m
eq_solimp   float  neq 5  | solver impedance | -
eq_data     float  neq 11 | parameters, by kind of constraint | -
# Tendons
tendon_adr            int    ntendon              | first path object in wrap_type | -
tendon_num            int    ntendon              | number of path objects | -
tendon_matid          int    ntendon              | material; -1: none | -
tendon_actuatorid     int    ntendon              | actuator that adds damping or armature; -1: none | -
tendon_group          int    ntendon              | group for visibility | -
tendon_treenum        int    ntendon              | number of trees along the path | -
tendon_treeid         int    ntendon 2            | first two trees along the path; -1: none | -
ten_J_rownnz          int    ntendon              | stored entries of each Jacobian row | -
ten_J_rowadr          int    ntendon              | first entry of each Jacobian row | -
ten_J_colind          int    nJten                | dof of each Jacobian entry | -
tendon_limited        bool   ntendon              | whether the range is enforced | -
tendon_actfrclimited  bool   ntendon              | whether the total actuator force is clamped | -
tendon_width          float  ntendon              | radius for drawing | m
tendon_solref_lim     float  ntendon 2            | solver reference of the limit | s, - or N/m, N s/m
tendon_solimp_lim     float  ntendon 5            | solver impedance of the limit | -
tendon_solref_fri     float  ntendon 2            | solver reference of dry friction | s, - or N/m, N s/m
tendon_solimp_fri     float  ntendon 5            | solver impedance of dry friction | -
tendon_range          float  ntendon 2            | least and greatest length | m or rad
tendon_actfrcrange    float  ntendon 2            | smallest and largest total actuator force | N
tendon_margin         float  ntendon              | distance from the limit at which it becomes active | m
tendon_stiffness      float  ntendon              | linear stiffness of the spring | N/m
tendon_stiffnesspoly  float  ntendon 2            | stiffness coefficients of higher order | -
tendon_damping        float  ntendon              | linear damping | N s/m
tendon_dampingpoly    float  ntendon 2            | damping coefficients of higher order | -
tendon_armature       float  ntendon              | inertia against changes of length | kg
tendon_frictionloss   float  ntendon              | largest force of dry friction | N
tendon_lengthspring   float  ntendon 2            | lengths between which the spring is at rest | m
tendon_length0        float  ntendon              | length at qpos0 | m
tendon_invweight0     float  ntendon              | inverse inertia of the length at qpos0 | 1/kg
tendon_user           float  ntendon nuser_tendon | user numbers | -
tendon_rgba           float  ntendon 4            | colour, when there is no material | -
wrap_type             int    nwrap                | kind of path object (mjtWrap) | -
wrap_objid            int    nwrap                | joint, site or geom of the path object; -1: pulley | -
wrap_prm              float  nwrap                | joint coefficient, pulley divisor or side site | -
# Actuators
actuator_trntype       int    nu                | kind of transmission (mjtTrn) | -
actuator_dyntype       int    nu                | kind of activation dynamics (mjtDyn) | -
actuator_gaintype      int    nu                | kind of gain (mjtGain) | -
actuator_biastype      int    nu                | kind of bias (mjtBias) | -
actuator_trnid         int    nu 2              | ids of the transmission's objects; -1: none | -
actuator_damping       float  nu                | damping added to the target | N s/m or N m s/rad
actuator_dampingpoly   float  nu 2              | damping coefficients of higher order | -
actuator_armature      float  nu                | inertia added to the target | kg or kg m^2
actuator_actadr        int    nu                | first variable in act; -1: stateless | -
actuator_actnum        int    nu                | number of activation variables | -
actuator_group         int    nu                | group, for visibility and for disabling | -
actuator_history       int    nu 2              | samples and interpolation of the control's buffer | -
actuator_historyadr    int    nu                | first entry in history; -1: none | -
actuator_delay         float  nu                | delay of the control; 0: none | s
actuator_ctrllimited   bool   nu                | whether the control is clamped | -
actuator_forcelimited  bool   nu                | whether the force is clamped | -
actuator_actlimited    bool   nu                | whether the activation is clamped | -
actuator_dynprm        float  nu 10             | parameters of the activation dynamics | -
actuator_gainprm       float  nu 10             | parameters of the gain | -
actuator_biasprm       float  nu 10             | parameters of the bias | -
actuator_actearly      bool   nu                | whether the force uses the activation of the next step | -
actuator_ctrlrange     float  nu 2              | smallest and largest control | -
actuator_forcerange    float  nu 2              | smallest and largest force | N or N m
actuator_actrange      float  nu 2              | smallest and largest activation | -
actuator_gear          float  nu 6              | scales of length and force, by direction | -
actuator_cranklength   float  nu                | length of the crank of a slider-crank | m
actuator_acc0          float  nu                | norm of the acceleration by unit force at qpos0 | m/s^2 or rad/s^2
actuator_length0       float  nu                | length of the transmission at qpos0 | m or rad
actuator_lengthrange   float  nu 2              | least and greatest length that can be reached | m or rad
actuator_user          float  nu nuser_actuator | user numbers | -
actuator_plugin        int    nu                | plugin instance; -1: none | -
# Sensors
sensor_type        int    nsensor              | kind of sensor (mjtSensor) | -
sensor_datatype    int    nsensor              | kind of output (mjtDataType) | -
sensor_needstage   int    nsensor              | stage after which it can be computed (mjtStage) | -
sensor_objtype     int    nsensor              | kind of the measured object (mjtObj) | -
sensor_objid       int    nsensor              | id of the measured object | -
sensor_reftype     int    nsensor              | kind of the frame of reference (mjtObj) | -
sensor_refid       int    nsensor              | id of the frame of reference; -1: global frame | -
sensor_intprm      int    nsensor 3            | integer parameters | -
sensor_dim         int    nsensor              | number of outputs | -
sensor_adr         int    nsensor              | first entry in sensordata | -
sensor_cutoff      float  nsensor              | bound on the outputs; 0: none | by sensor
sensor_noise       float  nsensor              | standard deviation of noise, for the user | by sensor
sensor_history     int    nsensor 2            | samples and interpolation of the output's buffer | -
sensor_historyadr  int    nsensor              | first entry in history; -1: none | -
sensor_delay       float  nsensor              | delay of the output; 0: none | s
sensor_interval    float  nsensor 2            | period and phase of sampling | s
sensor_user        float  nsensor nuser_sensor | user numbers | -
sensor_plugin      int    nsensor              | plugin instance; -1: none | -
# Plugins
plugin           int   nplugin     | number of the plugin, as MuJoCo registers it | -
plugin_stateadr  int   nplugin     | first entry in plugin_state | -
plugin_statenum  int   nplugin     | number of state variables | -
plugin_attr      char  npluginattr | attributes of all instances, 0-terminated | -
plugin_attradr   int   nplugin     | first character in plugin_attr | -
# Custom fields
numeric_adr    int    nnumeric     | first entry in numeric_data | -
numeric_size   int    nnumeric     | number of entries | -
numeric_data   float  nnumericdata | numbers of all numeric fields | -
text_adr       int    ntext        | first byte in text_data | -
text_size      int    ntext        | number of bytes, the end mark included | -
text_data      bytes  ntextdata    | all texts, 0-terminated | -
tuple_adr      int    ntuple       | first member in tuple_objtype | -
tuple_size     int    ntuple       | number of members | -
tuple_objtype  int    ntupledata   | kind of each member (mjtObj) | -
tuple_objid    int    ntupledata   | id of each member | -
tuple_objprm   float  ntupledata   | number that goes with each member | -
# Keyframes
key_time   float  nkey          | time | s
key_qpos   float  nkey nq       | positions | m, rad, -
key_qvel   float  nkey nv       | velocities | m/s, rad/s
key_act    float  nkey na       | activations | -
key_mpos   float  nkey nmocap*3 | positions of mocap bodies, global frame | m
key_mquat  float  nkey nmocap*4 | orientations of mocap bodies, global frame | -
key_ctrl   float  nkey nu       | controls | -
# Names and paths
name_bodyadr      int    nbody      | first byte of the body's name in names | -
name_jntadr       int    njnt       | first byte of the joint's name in names | -
name_geomadr      int    ngeom      | first byte of the geom's name in names | -
name_siteadr      int    nsite      | first byte of the site's name in names | -
name_camadr       int    ncam       | first byte of the camera's name in names | -
name_lightadr     int    nlight     | first byte of the light's name in names | -
name_flexadr      int    nflex      | first byte of the flex's name in names | -
name_meshadr      int    nmesh      | first byte of the mesh's name in names | -
name_skinadr      int    nskin      | first byte of the skin's name in names | -
name_hfieldadr    int    nhfield    | first byte of the height field's name in names | -
name_texadr       int    ntex       | first byte of the texture's name in names | -
name_matadr       int    nmat       | first byte of the material's name in names | -
name_pairadr      int    npair      | first byte of the pair's name in names | -
name_excludeadr   int    nexclude   | first byte of the exclusion's name in names | -
name_eqadr        int    neq        | first byte of the constraint's name in names | -
name_tendonadr    int    ntendon    | first byte of the tendon's name in names | -
name_actuatoradr  int    nu         | first byte of the actuator's name in names | -
name_sensoradr    int    nsensor    | first byte of the sensor's name in names | -
name_numericadr   int    nnumeric   | first byte of the numeric field's name in names | -
name_textadr      int    ntext      | first byte of the text's name in names | -
name_tupleadr     int    ntuple     | first byte of the tuple's name in names | -
name_keyadr       int    nkey       | first byte of the keyframe's name in names | -
name_pluginadr    int    nplugin    | first byte of the plugin instance's name in names | -
names             bytes  nnames     | name of the model and of all objects, 0-terminated | -
names_map         int    nnames_map | MuJoCo's hash map from names to ids | -
paths             bytes  npaths     | names of asset files, 0-terminated | -
# Sparse structures
B_rownnz  int  nbody | body by dof: stored entries of each row | -
B_rowadr  int  nbody | body by dof: first entry of each row | -
B_colind  int  nB    | body by dof: column of each entry | -
M_rownnz  int  nv    | M by rows: stored entries of each row | -
M_rowadr  int  nv    | M by rows: first entry of each row | -
M_colind  int  nC    | M by rows: column of each entry | -
mapM2M    int  nC    | position in qM of each entry of M | -
D_rownnz  int  nv    | dof by dof: stored entries of each row | -
D_rowadr  int  nv    | dof by dof: first entry of each row | -
D_diag    int  nv    | dof by dof: position of the diagonal entry in its row | -
D_colind  int  nD    | dof by dof: column of each entry | -
mapM2D    int  nD    | position in M of each entry of D; -1: none | -
mapD2M    int  nC    | position in D of each entry of M | -
"""

OPTION = """
# Numbers
timestep          float  - | length of a step | s
impratio          float  - | ratio of frictional to normal impedance of elliptic cones | -
tolerance         float  - | improvement below which the solver stops | -
ls_tolerance      float  - | relative tolerance of the solver's line search | -
noslip_tolerance  float  - | improvement below which the noslip solver stops | -
ccd_tolerance     float  - | tolerance of the search for convex contacts | m
sleep_tolerance   float  - | velocity below which a tree counts as at rest | m/s
gravity           float  3 | acceleration of gravity, global frame | m/s^2
wind              float  3 | velocity of the fluid, global frame | m/s
magnetic          float  3 | magnetic flux density, global frame | T
density           float  - | density of the fluid | kg/m^3
viscosity         float  - | dynamic viscosity of the fluid | Pa s
o_margin          float  - | margin of contacts, when override is on | m
o_solref          float  2 | solver reference of contacts, when override is on | s, - or N/m, N s/m
o_solimp          float  5 | solver impedance of contacts, when override is on | -
o_friction        float  5 | friction of contacts, when override is on | -, -, m, m, m
# Choices
integrator         int  - | integrator (mjtIntegrator) | -
cone               int  - | friction cone (mjtCone) | -
jacobian           int  - | form of the Jacobian (mjtJacobian); has no effect here | -
solver             int  - | constraint solver (mjtSolver) | -
iterations         int  - | most iterations of the solver | -
ls_iterations      int  - | most iterations of the solver's line search | -
noslip_iterations  int  - | most iterations of the noslip solver; 0: off | -
ccd_iterations     int  - | most iterations of the search for convex contacts | -
disableflags       int  - | features switched off (mjtDisableBit) | -
enableflags        int  - | features switched on (mjtEnableBit) | -
disableactuator    int  - | actuator groups switched off, one bit each | -
sdf_initpoints     int  - | starting points of the search on signed distance fields | -
sdf_iterations     int  - | most iterations of the search on signed distance fields | -
# Own fields
fluid          int  - | whether the program computes fluid forces at all | -
solver_kernel  int  - | 0: a kernel on CUDA, C on a CPU, else XLA; 1: the kernel or an error; -1: XLA | -
"""

STATISTIC = """
meaninertia  float  - | mean of the diagonal of M; scales the solver's tolerance | kg or kg m^2
meanmass     float  - | mean mass of bodies | kg
meansize     float  - | mean size of bodies | m
extent       float  - | size of the model | m
center       float  3 | centre of the model, global frame | m
"""

# Names are `group.field`.
VISUAL = """
# Global
global.cameraid          int    - | camera at the start; -1: free | -
global.orthographic      int    - | whether the free camera is orthographic | -
global.fovy              float  - | vertical field of view of the free camera; orthographic: visible height | deg or m
global.ipd               float  - | distance between the eyes of the free camera | m
global.azimuth           float  - | azimuth of the free camera at the start | deg
global.elevation         float  - | elevation of the free camera at the start | deg
global.linewidth         float  - | width of lines | pixel
global.glow              float  - | glow of the selected body | -
global.realtime          float  - | ratio of simulated to real time at the start | -
global.offwidth          int    - | width of the offscreen image | pixel
global.offheight         int    - | height of the offscreen image | pixel
global.ellipsoidinertia  int    - | inertias are drawn as 0: boxes, 1: ellipsoids | -
global.bvactive          int    - | whether active bounding volumes are drawn | -
# Quality
quality.shadowsize  int  - | side of the shadow map | pixel
quality.offsamples  int  - | samples of each pixel offscreen | -
quality.numslices   int  - | slices of round shapes | -
quality.numstacks   int  - | stacks of round shapes | -
quality.numquads    int  - | squares along the side of a box | -
# Headlight
headlight.ambient   float  3 | ambient colour | -
headlight.diffuse   float  3 | diffuse colour | -
headlight.specular  float  3 | specular colour | -
headlight.active    int    - | whether the headlight is on | -
# Map
map.stiffness       float  - | stiffness of perturbation by mouse, translation | N/m
map.stiffnessrot    float  - | stiffness of perturbation by mouse, rotation | N m/rad
map.force           float  - | length drawn for a unit force | m/N
map.torque          float  - | length drawn for a unit torque | 1/N
map.alpha           float  - | factor of opacity when geoms are transparent | -
map.fogstart        float  - | distance at which fog begins, in extents | -
map.fogend          float  - | distance at which fog is full, in extents | -
map.znear           float  - | distance of the near plane, in extents | -
map.zfar            float  - | distance of the far plane, in extents | -
map.haze            float  - | part of the horizon that is haze | -
map.shadowclip      float  - | half width of shadows of directional lights, in extents | -
map.shadowscale     float  - | part of a spot light's cone that casts shadows | -
map.actuatortendon  float  - | width of actuated tendons, in tendon widths | -
# Scale
scale.forcewidth      float  - | width of force arrows | -
scale.contactwidth    float  - | width of contact discs | -
scale.contactheight   float  - | height of contact discs | -
scale.connect         float  - | width of capsules that join bodies | -
scale.com             float  - | radius of centres of mass | -
scale.camera          float  - | size of cameras | -
scale.light           float  - | size of lights | -
scale.selectpoint     float  - | radius of the selected point | -
scale.jointlength     float  - | length of joint arrows | -
scale.jointwidth      float  - | width of joint arrows | -
scale.actuatorlength  float  - | length of actuators | -
scale.actuatorwidth   float  - | width of actuators | -
scale.framelength     float  - | length of frame axes | -
scale.framewidth      float  - | width of frame axes | -
scale.constraint      float  - | width of constraint lines | -
scale.slidercrank     float  - | width of slider-cranks | -
scale.frustum         float  - | distance of the far plane of camera frustums | -
# Rgba
rgba.fog               float  4 | fog | -
rgba.haze              float  4 | haze | -
rgba.force             float  4 | external forces | -
rgba.inertia           float  4 | inertias | -
rgba.joint             float  4 | joints | -
rgba.actuator          float  4 | actuators at zero | -
rgba.actuatornegative  float  4 | actuators at the lower end of the range | -
rgba.actuatorpositive  float  4 | actuators at the upper end of the range | -
rgba.com               float  4 | centres of mass | -
rgba.camera            float  4 | cameras | -
rgba.light             float  4 | lights | -
rgba.selectpoint       float  4 | selected point | -
rgba.connect           float  4 | capsules that join bodies | -
rgba.contactpoint      float  4 | contact points | -
rgba.contactforce      float  4 | contact forces | -
rgba.contactfriction   float  4 | friction forces | -
rgba.contacttorque     float  4 | contact torques | -
rgba.contactgap        float  4 | contacts within the gap | -
rgba.rangefinder       float  4 | rays of rangefinders | -
rgba.constraint        float  4 | constraints | -
rgba.slidercrank       float  4 | slider-cranks | -
rgba.crankbroken       float  4 | slider-cranks that cannot reach | -
rgba.frustum           float  4 | camera frustums | -
rgba.bv                float  4 | bounding volumes | -
rgba.bvactive          float  4 | active bounding volumes | -
"""

DATA = """
# State, inputs and outputs
time            float  -            | simulated time | s
energy          float  2            | potential and kinetic energy | J
qpos            float  nq           | positions | m, rad, -
qvel            float  nv           | velocities | m/s, rad/s
act             float  na           | activations of actuators | -
history         float  nhistory     | past controls and sensor values with their times | -
qacc_warmstart  float  nv           | acceleration that the solver starts from | m/s^2, rad/s^2
plugin_state    float  npluginstate | states of plugins | -
ctrl            float  nu           | controls | -
qfrc_applied    float  nv           | force applied to dofs | N, N m
xfrc_applied    float  nbody 6      | force and torque applied at bodies' centres of mass, global frame | N, N m
eq_active       bool   neq          | whether each equality constraint is active | -
tree_asleep     int    ntree        | negative: awake; otherwise the next tree of the cycle that sleeps | -
mocap_pos       float  nmocap 3     | positions of mocap bodies, global frame | m
mocap_quat      float  nmocap 4     | orientations of mocap bodies, global frame | -
qacc            float  nv           | accelerations | m/s^2, rad/s^2
act_dot         float  na           | time derivative of activations | 1/s
userdata        float  nuserdata    | numbers of the user, which no stage touches | -
sensordata      float  nsensordata  | outputs of all sensors | by sensor
# Kinematics
xpos         float  nbody 3  | position of the body frame, global frame | m
xquat        float  nbody 4  | orientation of the body frame, global frame | -
xmat         float  nbody 9  | rotation matrix of the body frame, global frame | -
xipos        float  nbody 3  | centre of mass of the body, global frame | m
ximat        float  nbody 9  | rotation matrix of the principal axes, global frame | -
xanchor      float  njnt 3   | anchor of the joint, global frame | m
xaxis        float  njnt 3   | axis of the joint, global frame | -
geom_xpos    float  ngeom 3  | position of the geom, global frame | m
geom_xmat    float  ngeom 9  | rotation matrix of the geom, global frame | -
site_xpos    float  nsite 3  | position of the site, global frame | m
site_xmat    float  nsite 9  | rotation matrix of the site, global frame | -
cam_xpos     float  ncam 3   | position of the camera, global frame | m
cam_xmat     float  ncam 9   | rotation matrix of the camera, global frame | -
light_xpos   float  nlight 3 | position of the light, global frame | m
light_xdir   float  nlight 3 | direction of the light, global frame | -
subtree_com  float  nbody 3  | centre of mass of each subtree, global frame | m
cdof         float  nv 6     | motion axis of each dof (rotation, translation), about the tree's centre of mass | -, m
cinert       float  nbody 10 | inertia of the body about the tree's centre of mass, global axes | kg m^2, kg m, kg
# Flexes
flexvert_xpos      float  nflexvert 3 | positions of flex vertices, global frame | m
flexelem_aabb      float  nflexelem 6 | boxes of flex elements: centre, half sizes with the radius; global frame | m
flexedge_J         float  nJfe        | Jacobian of the lengths of flex edges, stored entries | m/rad, -
flexedge_length    float  nflexedge   | length | m
flexedge_velocity  float  nflexedge   | velocity of the length | m/s
flexvert_J         float  nJfv 2      | Jacobian of flexvert_length, stored entries | 1/m
flexvert_length    float  nflexvert 2 | trace and determinant of the strain, by the root of mass | 1
# Tendons and transmission
ten_wrapadr      int    ntendon | first point of the path in wrap_xpos | -
ten_wrapnum      int    ntendon | number of points of the path | -
ten_J            float  nJten   | Jacobian of tendon lengths, stored entries | m/rad, -
ten_length       float  ntendon | length | m
wrap_obj         int    nwrap 2 | geom of each path point; -1: site, -2: pulley | -
wrap_xpos        float  nwrap 6 | points of all paths, global frame | m
actuator_length  float  nu      | length of the transmission | m or rad
actuator_moment  float  nu nv   | Jacobian of the transmission's length, dense here | m/rad, -
# Inertia
crb        float  nbody 10 | inertia of the subtree about the tree's centre of mass, global axes | kg m^2, kg m, kg
qM         float  nM       | inertia matrix: entries of ancestor pairs of dofs | kg, kg m, kg m^2
M          float  nC       | inertia matrix: lower triangle by rows | kg, kg m, kg m^2
qLD        float  nC       | factors L and D of M = L' D L | -
qLDiagInv  float  nv       | inverse of D | 1/kg, 1/(kg m^2)
# Velocity
ten_velocity       float  ntendon | velocity of the length | m/s
actuator_velocity  float  nu      | velocity of the transmission's length | m/s or rad/s
cvel               float  nbody 6 | spatial velocity (rotation, translation) at the tree's centre of mass | rad/s, m/s
cdof_dot           float  nv 6    | time derivative of cdof | 1/s, m/s
qfrc_bias          float  nv      | Coriolis, centrifugal and gravitational force | N, N m
qfrc_spring        float  nv      | force of springs | N, N m
qfrc_damper        float  nv      | force of dampers | N, N m
qfrc_gravcomp      float  nv      | force of gravity compensation | N, N m
qfrc_fluid         float  nv      | force of the fluid | N, N m
qfrc_passive       float  nv      | sum of all passive forces | N, N m
subtree_linvel     float  nbody 3 | velocity of the subtree's centre of mass, global frame | m/s
subtree_angmom     float  nbody 3 | angular momentum about the subtree's centre of mass, global frame | kg m^2/s
# Forces and acceleration
actuator_force   float  nu      | force of the actuator | N or N m
qfrc_actuator    float  nv      | force of all actuators on dofs | N, N m
qfrc_smooth      float  nv      | force without constraints | N, N m
qacc_smooth      float  nv      | acceleration without constraints | m/s^2, rad/s^2
qfrc_constraint  float  nv      | force of constraints | N, N m
qfrc_inverse     float  nv      | force that explains qacc, from inverse dynamics | N, N m
cacc             float  nbody 6 | spatial acceleration (rotation, translation), at the tree's centre | rad/s^2, m/s^2
cfrc_int         float  nbody 6 | torque and force from the parent, at the tree's centre of mass | N m, N
cfrc_ext         float  nbody 6 | external torque and force on the body, at the tree's centre of mass | N m, N
# Counts
ncon           int    - | contacts found; the first entries of contact | -
ne             int    - | active rows of equality constraints | -
nf             int    - | active rows of dry friction | -
nl             int    - | active rows of limits | -
nefc           int    - | active rows in all | -
solver_niter   int    1 | iterations of the solver | -
solver_fwdinv  float  2 | difference of forward and inverse dynamics, joint and constraint forces | -
# Own fields
maxuse_con            int  - | most contacts that this world needed at once, dropped ones included | -
maxuse_efc            int  - | most rows that this world needed at once, dropped ones included | -
overflow_contacts     int  - | contacts dropped for want of capacity since the last reset | -
overflow_constraints  int  - | rows dropped for want of capacity since the last reset | -
"""

CONTACT = """
dist            float  - | distance of the surfaces; negative: penetration | m
pos             float  3 | midpoint between the surfaces, global frame | m
frame           float  9 | axes by rows, normal first (from geom[0] to geom[1]), global frame | -
includemargin   float  - | distance below which the contact makes force: margin - gap | m
friction        float  5 | friction: two tangents, spinning, two rolling | -, -, m, m, m
solref          float  2 | solver reference, normal direction | s, - or N/m, N s/m
solreffriction  float  2 | solver reference, friction directions | s, - or N/m, N s/m
solimp          float  5 | solver impedance | -
mu              float  - | friction of the regularized cone | -
dim             int    - | dimension: 1, 3, 4 or 6 | -
geom            int    2 | ids of both geoms; -1: a flex, or an empty entry | -
flex            int    2 | ids of both flexes; -1: a geom | -
elem            int    2 | elements of both flexes; -1: a geom or a vertex | -
vert            int    2 | vertices of both flexes; -1: a geom or an element | -
exclude         int    - | 0: makes force; else why not (1: in the gap, 2: fused, 3: no dofs, 4: passive) | -
efc_address     int    - | first of its rows among the packed ones; -1: none | -
"""

CONSTRAINT = """
active        bool   - | whether the slot holds a row | -
pos           float  - | violation: position error, or distance of the contact or limit | m or rad
margin        float  - | value of pos below which the row becomes active | m or rad
frictionloss  float  - | largest force of dry friction | N or N m
diagApprox    float  - | approximate diagonal of the inverse inertia of rows | 1/kg or 1/(kg m^2)
KBIP          float  4 | stiffness, damping, impedance and its derivative by position | 1/s^2, 1/s, -, 1/m
D             float  - | inertia of the row: inverse of R | kg or kg m^2
R             float  - | regularization: diagonal added to the inverse inertia of rows | 1/kg or 1/(kg m^2)
vel           float  - | velocity of the row: J qvel | m/s or rad/s
aref          float  - | acceleration that the constraint aims at | m/s^2 or rad/s^2
b             float  - | J qacc_smooth - aref | m/s^2 or rad/s^2
force         float  - | force of the row | N or N m
state         int    - | part of the cost that the row is in (mjtConstraintState) | -
"""

# What Model, Data and its structs hold in addition; the kind is the class.
MODEL_PARTS = """
opt              Option           - | physics options | -
stat             Statistic        - | statistics at qpos0 | -
vis              Visual           - | settings of pictures; take no part in the physics | -
structure        Structure        - | everything that shapes the program: all fields that are not leaves | -
# Own fields
max_contacts     int              - | capacity of the contact buffer | -
max_constraints  int              - | capacity of the packed constraint rows | -
modelname        str              - | name of the model | -
eq_strain        np.ndarray       neq 2 | of equalities on strain of a flex: element of the lattice, its modes | -
callbacks        Callbacks        - | functions of the user that stages call | -
"""

DATA_PARTS = """
contact  Contact     - | contacts: arrays of max_contacts entries, of which the first ncon are real | -
efc      Constraint  - | constraint rows in their slots | -
warning  Warning     - | warnings by kind (mjtWarning) | -
"""

# Of `efc`. Sparse models have fewer columns in J_general, and wrenches (2, 6) on both bodies in place of nv numbers.
JACOBIANS = """
J_general  float   ngeneral nv            | Jacobian rows of equality, tendons and limits of balls | -, m
J_contact  float   max_contacts condim nv | Jacobian rows of contacts, in their frames | -, m
bodies     int     max_contacts nside     | bodies of contacts, in sparse rows of models whose flexes collide | -
layout     Layout  -                      | which row stands in which slot; static | -
"""

WARNING = """
number    int  7 | how often the warning was given | -
lastinfo  int  7 | index that the last one was about | -
"""

# Rows of `efc_*` that are not stored: they follow from the slot. `efc_J` is dense.
ROW = """
type  int    -  | kind of constraint (mjtConstraint) | -
id    int    -  | id of the object that is constrained | -
J     float  nv | Jacobian by qvel | -, m
"""


class Field(NamedTuple):
    """One row of a table."""

    name: str
    kind: str
    shape: tuple[str | int, ...]
    meaning: str
    unit: str


def sections(table: str) -> dict[str, list[Field]]:
    """Read one of the tables above: the fields of each section by its title ("" for what stands before the first)."""
    out: dict[str, list[Field]] = {}
    title = ""
    for line in table.strip().splitlines():
        if line.startswith("#"):
            title = line.removeprefix("# ")
            continue
        head, meaning, unit = line.split(" | ")
        name, kind, *shape = head.split()
        sizes = tuple(int(s) if s.isdigit() else s for s in shape if s != "-")
        out.setdefault(title, []).append(Field(name, kind, sizes, meaning, unit))
    return out


def parse(table: str) -> list[Field]:
    """Read one of the tables above."""
    return [field for section in sections(table).values() for field in section]


def evaluate(shape: tuple[str | int, ...], sizes: dict[str, int]) -> tuple[int, ...]:
    """Turn a symbolic shape into integers; ``a*3`` is a product."""
    out = []
    for item in shape:
        if isinstance(item, int):
            out.append(item)
        else:
            name, _, factor = item.partition("*")
            out.append(sizes[name] * int(factor or 1))
    return tuple(out)
