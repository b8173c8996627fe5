"""The tables of fields: name, kind and shape of every field of Model and Data, from which the structs are built.

A line is ``name kind shape``; a shape is a list of sizes of the model, integers, or ``-`` for a scalar. Kinds of Model:
``int``, ``bool`` and ``char`` are structure (static numpy), ``asset`` is static data that no stage of the physics reads
as a number, ``float`` is a leaf of the PyTree. Kinds of Data: ``float`` and ``int``, all leaves. The names, shapes and
meanings are those of mjModel and mjData; what a fixed-shape program adds stands under "own fields".
"""

SIZES = """
nq nv nu na nbody nbvh nbvhstatic nbvhdynamic noct njnt ntree nM nB nC nD ngeom nsite ncam nlight nflex
nflexnode nflexvert nflexedge nflexelem nflexelemdata nflexstiffness nflexbending nflexelemedge nflexshelldata
nflexevpair nflextexcoord nJfe nJfv nmesh nmeshvert nmeshnormal nmeshtexcoord nmeshface nmeshgraph nmeshpoly
nmeshpolyvert nmeshpolymap nskin nskinvert nskintexvert nskinface nskinbone nskinbonevert nhfield nhfielddata
ntex ntexdata nmat npair nexclude neq ntendon nJten nwrap nsensor nnumeric nnumericdata ntext ntextdata ntuple
ntupledata nkey nmocap nplugin npluginattr nuser_body nuser_jnt nuser_geom nuser_site nuser_cam nuser_tendon
nuser_actuator nuser_sensor nnames npaths nnames_map nJmom ngravcomp nemax njmax nconmax nuserdata nsensordata
npluginstate nhistory
"""

MODEL = """
qpos0                    float  nq
qpos_spring              float  nq
body_parentid            int    nbody
body_rootid              int    nbody
body_weldid              int    nbody
body_mocapid             int    nbody
body_jntnum              int    nbody
body_jntadr              int    nbody
body_dofnum              int    nbody
body_dofadr              int    nbody
body_treeid              int    nbody
body_geomnum             int    nbody
body_geomadr             int    nbody
body_simple              int    nbody
body_sameframe           int    nbody
body_pos                 float  nbody 3
body_quat                float  nbody 4
body_ipos                float  nbody 3
body_iquat               float  nbody 4
body_mass                float  nbody
body_subtreemass         float  nbody
body_inertia             float  nbody 3
body_invweight0          float  nbody 2
body_gravcomp            float  nbody
body_margin              float  nbody
body_user                float  nbody nuser_body
body_plugin              int    nbody
body_contype             int    nbody
body_conaffinity         int    nbody
body_bvhadr              int    nbody
body_bvhnum              int    nbody
bvh_depth                int    nbvh
bvh_child                int    nbvh 2
bvh_nodeid               int    nbvh
bvh_aabb                 asset  nbvhstatic 6
oct_depth                int    noct
oct_child                int    noct 8
oct_aabb                 asset  noct 6
oct_coeff                asset  noct 8
jnt_type                 int    njnt
jnt_qposadr              int    njnt
jnt_dofadr               int    njnt
jnt_bodyid               int    njnt
jnt_actuatorid           int    njnt
jnt_group                int    njnt
jnt_limited              bool   njnt
jnt_actfrclimited        bool   njnt
jnt_actgravcomp          bool   njnt
jnt_solref               float  njnt 2
jnt_solimp               float  njnt 5
jnt_pos                  float  njnt 3
jnt_axis                 float  njnt 3
jnt_stiffness            float  njnt
jnt_stiffnesspoly        float  njnt 2
jnt_range                float  njnt 2
jnt_actfrcrange          float  njnt 2
jnt_margin               float  njnt
jnt_user                 float  njnt nuser_jnt
dof_bodyid               int    nv
dof_jntid                int    nv
dof_parentid             int    nv
dof_treeid               int    nv
dof_Madr                 int    nv
dof_simplenum            int    nv
dof_solref               float  nv 2
dof_solimp               float  nv 5
dof_frictionloss         float  nv
dof_armature             float  nv
dof_damping              float  nv
dof_dampingpoly          float  nv 2
dof_invweight0           float  nv
dof_M0                   float  nv
dof_length               float  nv
tree_bodyadr             int    ntree
tree_bodynum             int    ntree
tree_dofadr              int    ntree
tree_dofnum              int    ntree
tree_sleep_policy        int    ntree
geom_type                int    ngeom
geom_contype             int    ngeom
geom_conaffinity         int    ngeom
geom_condim              int    ngeom
geom_bodyid              int    ngeom
geom_dataid              int    ngeom
geom_matid               int    ngeom
geom_group               int    ngeom
geom_priority            int    ngeom
geom_plugin              int    ngeom
geom_sameframe           int    ngeom
geom_solmix              float  ngeom
geom_solref              float  ngeom 2
geom_solimp              float  ngeom 5
geom_size                float  ngeom 3
geom_aabb                float  ngeom 6
geom_rbound              float  ngeom
geom_pos                 float  ngeom 3
geom_quat                float  ngeom 4
geom_friction            float  ngeom 3
geom_margin              float  ngeom
geom_gap                 float  ngeom
geom_fluid               float  ngeom 12
geom_user                float  ngeom nuser_geom
geom_rgba                float  ngeom 4
site_type                int    nsite
site_bodyid              int    nsite
site_matid               int    nsite
site_group               int    nsite
site_sameframe           int    nsite
site_size                float  nsite 3
site_pos                 float  nsite 3
site_quat                float  nsite 4
site_user                float  nsite nuser_site
site_rgba                float  nsite 4
cam_mode                 int    ncam
cam_bodyid               int    ncam
cam_targetbodyid         int    ncam
cam_pos                  float  ncam 3
cam_quat                 float  ncam 4
cam_poscom0              float  ncam 3
cam_pos0                 float  ncam 3
cam_mat0                 float  ncam 9
cam_projection           int    ncam
cam_fovy                 float  ncam
cam_ipd                  float  ncam
cam_resolution           int    ncam 2
cam_output               int    ncam
cam_sensorsize           float  ncam 2
cam_intrinsic            float  ncam 4
cam_user                 float  ncam nuser_cam
light_mode               int    nlight
light_bodyid             int    nlight
light_targetbodyid       int    nlight
light_type               int    nlight
light_texid              int    nlight
light_castshadow         bool   nlight
light_bulbradius         float  nlight
light_intensity          float  nlight
light_range              float  nlight
light_active             bool   nlight
light_pos                float  nlight 3
light_dir                float  nlight 3
light_poscom0            float  nlight 3
light_pos0               float  nlight 3
light_dir0               float  nlight 3
light_attenuation        float  nlight 3
light_cutoff             float  nlight
light_exponent           float  nlight
light_ambient            float  nlight 3
light_diffuse            float  nlight 3
light_specular           float  nlight 3
flex_contype             int    nflex
flex_conaffinity         int    nflex
flex_condim              int    nflex
flex_priority            int    nflex
flex_solmix              float  nflex
flex_solref              float  nflex 2
flex_solimp              float  nflex 5
flex_friction            float  nflex 3
flex_margin              float  nflex
flex_gap                 float  nflex
flex_internal            bool   nflex
flex_selfcollide         int    nflex
flex_activelayers        int    nflex
flex_passive             int    nflex
flex_dim                 int    nflex
flex_matid               int    nflex
flex_group               int    nflex
flex_interp              int    nflex
flex_bandwidth           int    nflex
flex_cellnum             int    nflex 3
flex_nodeadr             int    nflex
flex_nodenum             int    nflex
flex_vertadr             int    nflex
flex_vertnum             int    nflex
flex_edgeadr             int    nflex
flex_edgenum             int    nflex
flex_elemadr             int    nflex
flex_elemnum             int    nflex
flex_elemdataadr         int    nflex
flex_stiffnessadr        int    nflex
flex_elemedgeadr         int    nflex
flex_bendingadr          int    nflex
flex_shellnum            int    nflex
flex_shelldataadr        int    nflex
flex_evpairadr           int    nflex
flex_evpairnum           int    nflex
flex_texcoordadr         int    nflex
flex_nodebodyid          int    nflexnode
flex_vertbodyid          int    nflexvert
flex_vertedgeadr         int    nflexvert
flex_vertedgenum         int    nflexvert
flex_vertedge            int    nflexedge 2
flex_edge                int    nflexedge 2
flex_edgeflap            int    nflexedge 2
flex_elem                int    nflexelemdata
flex_elemtexcoord        int    nflexelemdata
flex_elemedge            int    nflexelemedge
flex_elemlayer           int    nflexelem
flex_shell               int    nflexshelldata
flex_evpair              int    nflexevpair 2
flex_vert                float  nflexvert 3
flex_vert0               float  nflexvert 3
flex_vertmetric          float  nflexvert 4
flex_node                float  nflexnode 3
flex_node0               float  nflexnode 3
flexedge_length0         float  nflexedge
flexedge_invweight0      float  nflexedge
flex_radius              float  nflex
flex_size                float  nflex 3
flex_stiffness           float  nflexstiffness
flex_bending             float  nflexbending
flex_damping             float  nflex
flex_edgestiffness       float  nflex
flex_edgedamping         float  nflex
flex_edgeequality        int    nflex
flex_rigid               bool   nflex
flexedge_rigid           bool   nflexedge
flex_centered            bool   nflex
flex_flatskin            bool   nflex
flex_bvhadr              int    nflex
flex_bvhnum              int    nflex
flexedge_J_rownnz        int    nflexedge
flexedge_J_rowadr        int    nflexedge
flexedge_J_colind        int    nJfe
flexvert_J_rownnz        int    nflexvert 2
flexvert_J_rowadr        int    nflexvert 2
flexvert_J_colind        int    nJfv 2
flex_rgba                float  nflex 4
flex_texcoord            asset  nflextexcoord 2
mesh_vertadr             int    nmesh
mesh_vertnum             int    nmesh
mesh_faceadr             int    nmesh
mesh_facenum             int    nmesh
mesh_bvhadr              int    nmesh
mesh_bvhnum              int    nmesh
mesh_octadr              int    nmesh
mesh_octnum              int    nmesh
mesh_normaladr           int    nmesh
mesh_normalnum           int    nmesh
mesh_texcoordadr         int    nmesh
mesh_texcoordnum         int    nmesh
mesh_graphadr            int    nmesh
mesh_vert                float  nmeshvert 3
mesh_normal              asset  nmeshnormal 3
mesh_texcoord            asset  nmeshtexcoord 2
mesh_face                int    nmeshface 3
mesh_facenormal          int    nmeshface 3
mesh_facetexcoord        int    nmeshface 3
mesh_graph               int    nmeshgraph
mesh_scale               float  nmesh 3
mesh_pos                 float  nmesh 3
mesh_quat                float  nmesh 4
mesh_pathadr             int    nmesh
mesh_polynum             int    nmesh
mesh_polyadr             int    nmesh
mesh_polynormal          float  nmeshpoly 3
mesh_polyvertadr         int    nmeshpoly
mesh_polyvertnum         int    nmeshpoly
mesh_polyvert            int    nmeshpolyvert
mesh_polymapadr          int    nmeshvert
mesh_polymapnum          int    nmeshvert
mesh_polymap             int    nmeshpolymap
skin_matid               int    nskin
skin_group               int    nskin
skin_rgba                asset  nskin 4
skin_inflate             asset  nskin
skin_vertadr             int    nskin
skin_vertnum             int    nskin
skin_texcoordadr         int    nskin
skin_faceadr             int    nskin
skin_facenum             int    nskin
skin_boneadr             int    nskin
skin_bonenum             int    nskin
skin_vert                asset  nskinvert 3
skin_texcoord            asset  nskintexvert 2
skin_face                int    nskinface 3
skin_bonevertadr         int    nskinbone
skin_bonevertnum         int    nskinbone
skin_bonebindpos         asset  nskinbone 3
skin_bonebindquat        asset  nskinbone 4
skin_bonebodyid          int    nskinbone
skin_bonevertid          int    nskinbonevert
skin_bonevertweight      asset  nskinbonevert
skin_pathadr             int    nskin
hfield_size              float  nhfield 4
hfield_nrow              int    nhfield
hfield_ncol              int    nhfield
hfield_adr               int    nhfield
hfield_data              float  nhfielddata
hfield_pathadr           int    nhfield
tex_type                 int    ntex
tex_colorspace           int    ntex
tex_height               int    ntex
tex_width                int    ntex
tex_nchannel             int    ntex
tex_adr                  int    ntex
tex_data                 asset  ntexdata
tex_pathadr              int    ntex
mat_texid                int    nmat 10
mat_texuniform           bool   nmat
mat_texrepeat            float  nmat 2
mat_emission             float  nmat
mat_specular             float  nmat
mat_shininess            float  nmat
mat_reflectance          float  nmat
mat_metallic             float  nmat
mat_roughness            float  nmat
mat_rgba                 float  nmat 4
pair_dim                 int    npair
pair_geom1               int    npair
pair_geom2               int    npair
pair_signature           int    npair
pair_solref              float  npair 2
pair_solreffriction      float  npair 2
pair_solimp              float  npair 5
pair_margin              float  npair
pair_gap                 float  npair
pair_friction            float  npair 5
exclude_signature        int    nexclude
eq_type                  int    neq
eq_obj1id                int    neq
eq_obj2id                int    neq
eq_objtype               int    neq
eq_active0               bool   neq
eq_solref                float  neq 2
eq_solimp                float  neq 5
eq_data                  float  neq 11
tendon_adr               int    ntendon
tendon_num               int    ntendon
tendon_matid             int    ntendon
tendon_actuatorid        int    ntendon
tendon_group             int    ntendon
tendon_treenum           int    ntendon
tendon_treeid            int    ntendon 2
ten_J_rownnz             int    ntendon
ten_J_rowadr             int    ntendon
ten_J_colind             int    nJten
tendon_limited           bool   ntendon
tendon_actfrclimited     bool   ntendon
tendon_width             float  ntendon
tendon_solref_lim        float  ntendon 2
tendon_solimp_lim        float  ntendon 5
tendon_solref_fri        float  ntendon 2
tendon_solimp_fri        float  ntendon 5
tendon_range             float  ntendon 2
tendon_actfrcrange       float  ntendon 2
tendon_margin            float  ntendon
tendon_stiffness         float  ntendon
tendon_stiffnesspoly     float  ntendon 2
tendon_damping           float  ntendon
tendon_dampingpoly       float  ntendon 2
tendon_armature          float  ntendon
tendon_frictionloss      float  ntendon
tendon_lengthspring      float  ntendon 2
tendon_length0           float  ntendon
tendon_invweight0        float  ntendon
tendon_user              float  ntendon nuser_tendon
tendon_rgba              float  ntendon 4
wrap_type                int    nwrap
wrap_objid               int    nwrap
wrap_prm                 float  nwrap
actuator_trntype         int    nu
actuator_dyntype         int    nu
actuator_gaintype        int    nu
actuator_biastype        int    nu
actuator_trnid           int    nu 2
actuator_damping         float  nu
actuator_dampingpoly     float  nu 2
actuator_armature        float  nu
actuator_actadr          int    nu
actuator_actnum          int    nu
actuator_group           int    nu
actuator_history         int    nu 2
actuator_historyadr      int    nu
actuator_delay           float  nu
actuator_ctrllimited     bool   nu
actuator_forcelimited    bool   nu
actuator_actlimited      bool   nu
actuator_dynprm          float  nu 10
actuator_gainprm         float  nu 10
actuator_biasprm         float  nu 10
actuator_actearly        bool   nu
actuator_ctrlrange       float  nu 2
actuator_forcerange      float  nu 2
actuator_actrange        float  nu 2
actuator_gear            float  nu 6
actuator_cranklength     float  nu
actuator_acc0            float  nu
actuator_length0         float  nu
actuator_lengthrange     float  nu 2
actuator_user            float  nu nuser_actuator
actuator_plugin          int    nu
sensor_type              int    nsensor
sensor_datatype          int    nsensor
sensor_needstage         int    nsensor
sensor_objtype           int    nsensor
sensor_objid             int    nsensor
sensor_reftype           int    nsensor
sensor_refid             int    nsensor
sensor_intprm            int    nsensor 3
sensor_dim               int    nsensor
sensor_adr               int    nsensor
sensor_cutoff            float  nsensor
sensor_noise             float  nsensor
sensor_history           int    nsensor 2
sensor_historyadr        int    nsensor
sensor_delay             float  nsensor
sensor_interval          float  nsensor 2
sensor_user              float  nsensor nuser_sensor
sensor_plugin            int    nsensor
plugin                   int    nplugin
plugin_stateadr          int    nplugin
plugin_statenum          int    nplugin
plugin_attr              char   npluginattr
plugin_attradr           int    nplugin
numeric_adr              int    nnumeric
numeric_size             int    nnumeric
numeric_data             float  nnumericdata
text_adr                 int    ntext
text_size                int    ntext
text_data                char   ntextdata
tuple_adr                int    ntuple
tuple_size               int    ntuple
tuple_objtype            int    ntupledata
tuple_objid              int    ntupledata
tuple_objprm             float  ntupledata
key_time                 float  nkey
key_qpos                 float  nkey nq
key_qvel                 float  nkey nv
key_act                  float  nkey na
key_mpos                 float  nkey nmocap*3
key_mquat                float  nkey nmocap*4
key_ctrl                 float  nkey nu
name_bodyadr             int    nbody
name_jntadr              int    njnt
name_geomadr             int    ngeom
name_siteadr             int    nsite
name_camadr              int    ncam
name_lightadr            int    nlight
name_flexadr             int    nflex
name_meshadr             int    nmesh
name_skinadr             int    nskin
name_hfieldadr           int    nhfield
name_texadr              int    ntex
name_matadr              int    nmat
name_pairadr             int    npair
name_excludeadr          int    nexclude
name_eqadr               int    neq
name_tendonadr           int    ntendon
name_actuatoradr         int    nu
name_sensoradr           int    nsensor
name_numericadr          int    nnumeric
name_textadr             int    ntext
name_tupleadr            int    ntuple
name_keyadr              int    nkey
name_pluginadr           int    nplugin
names                    char   nnames
names_map                int    nnames_map
paths                    char   npaths
B_rownnz                 int    nbody
B_rowadr                 int    nbody
B_colind                 int    nB
M_rownnz                 int    nv
M_rowadr                 int    nv
M_colind                 int    nC
mapM2M                   int    nC
D_rownnz                 int    nv
D_rowadr                 int    nv
D_diag                   int    nv
D_colind                 int    nD
mapM2D                   int    nD
mapD2M                   int    nC
"""

OPTION = """
timestep float -
impratio float -
tolerance float -
ls_tolerance float -
noslip_tolerance float -
ccd_tolerance float -
sleep_tolerance float -
gravity float 3
wind float 3
magnetic float 3
density float -
viscosity float -
o_margin float -
o_solref float 2
o_solimp float 5
o_friction float 5
integrator int -
cone int -
jacobian int -
solver int -
iterations int -
ls_iterations int -
noslip_iterations int -
ccd_iterations int -
disableflags int -
enableflags int -
disableactuator int -
sdf_initpoints int -
sdf_iterations int -
medium int -
solver_kernel int -
"""

STATISTIC = """
meaninertia float -
meanmass float -
meansize float -
extent float -
center float 3
"""

VISUAL = """
global     cameraid           int    -
global     orthographic       int    -
global     fovy               float  -
global     ipd                float  -
global     azimuth            float  -
global     elevation          float  -
global     linewidth          float  -
global     glow               float  -
global     realtime           float  -
global     offwidth           int    -
global     offheight          int    -
global     ellipsoidinertia   int    -
global     bvactive           int    -
quality    shadowsize         int    -
quality    offsamples         int    -
quality    numslices          int    -
quality    numstacks          int    -
quality    numquads           int    -
headlight  ambient            float  3
headlight  diffuse            float  3
headlight  specular           float  3
headlight  active             int    -
map        stiffness          float  -
map        stiffnessrot       float  -
map        force              float  -
map        torque             float  -
map        alpha              float  -
map        fogstart           float  -
map        fogend             float  -
map        znear              float  -
map        zfar               float  -
map        haze               float  -
map        shadowclip         float  -
map        shadowscale        float  -
map        actuatortendon     float  -
scale      forcewidth         float  -
scale      contactwidth       float  -
scale      contactheight      float  -
scale      connect            float  -
scale      com                float  -
scale      camera             float  -
scale      light              float  -
scale      selectpoint        float  -
scale      jointlength        float  -
scale      jointwidth         float  -
scale      actuatorlength     float  -
scale      actuatorwidth      float  -
scale      framelength        float  -
scale      framewidth         float  -
scale      constraint         float  -
scale      slidercrank        float  -
scale      frustum            float  -
rgba       fog                float  4
rgba       haze               float  4
rgba       force              float  4
rgba       inertia            float  4
rgba       joint              float  4
rgba       actuator           float  4
rgba       actuatornegative   float  4
rgba       actuatorpositive   float  4
rgba       com                float  4
rgba       camera             float  4
rgba       light              float  4
rgba       selectpoint        float  4
rgba       connect            float  4
rgba       contactpoint       float  4
rgba       contactforce       float  4
rgba       contactfriction    float  4
rgba       contacttorque      float  4
rgba       contactgap         float  4
rgba       rangefinder        float  4
rgba       constraint         float  4
rgba       slidercrank        float  4
rgba       crankbroken        float  4
rgba       frustum            float  4
rgba       bv                 float  4
rgba       bvactive           float  4
"""

DATA = """
time               float  -
energy             float  2
qpos               float  nq
qvel               float  nv
act                float  na
history            float  nhistory
qacc_warmstart     float  nv
plugin_state       float  npluginstate
ctrl               float  nu
qfrc_applied       float  nv
xfrc_applied       float  nbody 6
eq_active          bool   neq
tree_asleep        int    ntree
mocap_pos          float  nmocap 3
mocap_quat         float  nmocap 4
qacc               float  nv
act_dot            float  na
userdata           float  nuserdata
sensordata         float  nsensordata
xpos               float  nbody 3
xquat              float  nbody 4
xmat               float  nbody 9
xipos              float  nbody 3
ximat              float  nbody 9
xanchor            float  njnt 3
xaxis              float  njnt 3
geom_xpos          float  ngeom 3
geom_xmat          float  ngeom 9
site_xpos          float  nsite 3
site_xmat          float  nsite 9
cam_xpos           float  ncam 3
cam_xmat           float  ncam 9
light_xpos         float  nlight 3
light_xdir         float  nlight 3
subtree_com        float  nbody 3
cdof               float  nv 6
cinert             float  nbody 10
ten_wrapadr        int    ntendon
ten_wrapnum        int    ntendon
ten_J              float  nJten
ten_length         float  ntendon
wrap_obj           int    nwrap 2
wrap_xpos          float  nwrap 6
actuator_length    float  nu
actuator_moment    float  nu nv
crb                float  nbody 10
qM                 float  nM
M                  float  nC
qLD                float  nC
qLDiagInv          float  nv
ten_velocity       float  ntendon
actuator_velocity  float  nu
cvel               float  nbody 6
cdof_dot           float  nv 6
qfrc_bias          float  nv
qfrc_spring        float  nv
qfrc_damper        float  nv
qfrc_gravcomp      float  nv
qfrc_fluid         float  nv
qfrc_passive       float  nv
subtree_linvel     float  nbody 3
subtree_angmom     float  nbody 3
actuator_force     float  nu
qfrc_actuator      float  nv
qfrc_smooth        float  nv
qacc_smooth        float  nv
qfrc_constraint    float  nv
qfrc_inverse       float  nv
cacc               float  nbody 6
cfrc_int           float  nbody 6
cfrc_ext           float  nbody 6
ncon               int    -
ne                 int    -
nf                 int    -
nl                 int    -
nefc               int    -
solver_niter       int    1
solver_fwdinv      float  2
maxuse_con         int    -
maxuse_efc         int    -
overflow_contacts  int    -
overflow_constraints int  -
"""

CONTACT = """
dist float -
pos float 3
frame float 9
includemargin float -
friction float 5
solref float 2
solreffriction float 2
solimp float 5
mu float -
dim int -
geom int 2
exclude int -
efc_address int -
"""

CONSTRAINT = """
active bool -
pos float -
margin float -
frictionloss float -
diagApprox float -
KBIP float 4
D float -
R float -
vel float -
aref float -
b float -
force float -
state int -
"""


def parse(table: str) -> list[tuple[str, str, tuple[str | int, ...]]]:
    """Read one of the tables above: a list of (name, kind, shape)."""
    rows = []
    for line in table.strip().splitlines():
        name, kind, *shape = line.split()
        rows.append((name, kind, tuple(int(s) if s.isdigit() else s for s in shape if s != "-")))
    return rows


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
