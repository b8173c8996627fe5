"""The whole MJCF language of MuJoCo 3.8.1 as one table: elements, places, counts, attributes, types and defaults.

All other modules are driven by this table; `element_type.py` turns it into objects. Notation:

- One line for each element: indentation gives its parent, then come its tag and how often it may occur in its parent
  (`!` exactly once, `?` at most once, `*` any number, `R` any number and in itself). Elements that differ in their
  tags alone share a line: `jointpos,jointvel`.
- `< tag` after the count: the children are those of the sibling element `tag`.
- `= kind` after the count: attributes left out come from the record `kind` of the element's default class.
- Lines that start with `|` list attributes as `name:type=default`. `!` after the type: must be written.
- Types: `f` double, `g` single precision, `i` integer, `b` bool, `s` text, `name`, `file`, `bytes` (size with suffix),
  `@set` a word of WORDS, `>kind` the name of an element of that kind, `>(attr)` of the kind that `attr` gives.
  A number after it is an exact length, `n~` one to n numbers (the rest keep their defaults), `*` any number.
- `%group` inserts a group of GROUPS. A default shorter than the length is filled with zeros; none means undefined.
"""

WORDS = {
    "coordinate": "local global",
    "angle": "radian degree",
    "fluid": "none ellipsoid",
    "enable": "disable enable",
    "auto": "false true auto",
    "sleep": "auto=0 never=3 allowed=4 init=5",
    "joint": "free ball slide hinge",
    "geom": "plane hfield sphere capsule ellipsoid cylinder box mesh sdf",
    "projection": "perspective orthographic",
    "track": "fixed track trackcom targetbody targetbodycom",
    "light": "spot directional point image",
    "role": "rgb=1 occlusion roughness metallic normal opacity emissive rgba orm",
    "integrator": "Euler RK4 implicit implicitfast",
    "cone": "pyramidal elliptic",
    "jacobian": "dense sparse auto",
    "solver": "PGS CG Newton",
    "texture": "2d cube skybox",
    "colorspace": "auto linear sRGB",
    "builtin": "none gradient checker flat",
    "mark": "none edge cross random",
    "dyn": "none integrator filter filterexact muscle dcmotor user",
    "dcinput": "voltage position velocity",
    "gain": "fixed affine muscle dcmotor user",
    "bias": "none affine muscle dcmotor user",
    "interp": "zoh linear cubic",
    "stage": "none pos vel acc",
    "datatype": "real positive axis quaternion",
    "condata": "found force torque dist pos normal tangent",
    "raydata": "dist dir origin point normal depth",
    "camout": "rgb=1 depth=2 distance=4 normal=8 segmentation=16",
    "reduce": "none mindist maxforce netforce",
    "lrmode": "none muscle muscleuser all",
    "composite": "particle grid rope loop cable cloth",
    "jkind": "main",
    "meshinertia": "convex=0 legacy=2 exact=1 shell=3",
    "meshbuiltin": "none sphere hemisphere cone supersphere supertorus wedge plate",
    "flexcomp": "grid box cylinder ellipsoid square disc circle mesh gmsh direct",
    "flexdof": "full radial trilinear quadratic 2d",
    "selfcollide": "none narrow bvh sap auto",
    "elastic2d": "none bend stretch both",
    "flexeq": "false true vert strain",
    "object": "body=1 xbody joint dof geom site camera light flex mesh skin hfield texture material pair exclude "
    "equality tendon actuator sensor numeric text tuple key plugin",
}

GROUPS = {
    "alt": "axisangle:f4 xyaxes:f6 zaxis:f3 euler:f3",
    "pose": "pos:f3=0 quat:f4=1",
    "sol": "solref:f2~=.02,1 solimp:f5~=.9,.95,.001,.5,2",
    "sollimit": "solreflimit:f2~=.02,1 solimplimit:f5~=.9,.95,.001,.5,2",
    "solfriction": "solreffriction:f2~=.02,1 solimpfriction:f5~=.9,.95,.001,.5,2",
    "rgba": "rgba:g4=.5,.5,.5,1",
    "material": "texture:>texture texrepeat:g2=1,1 texuniform:b=false emission:g=0 specular:g=.5 shininess:g=.5 "
    "reflectance:g=0 metallic:g=-1 roughness:g=-1 rgba:g4=1,1,1,1",
    "joint": "type:@joint=hinge group:i=0 pos:f3=0 axis:f3=0,0,1 springdamper:f2=0 limited:@auto=auto "
    "actuatorfrclimited:@auto=auto %sollimit %solfriction stiffness:f3~=0 range:f2=0 actuatorfrcrange:f2=0 "
    "actuatorgravcomp:b=false margin:f=0 ref:f=0 springref:f=0 armature:f=0 damping:f3~=0 frictionloss:f=0 user:f*",
    "geom": "type:@geom=sphere contype:i=1 conaffinity:i=1 condim:i=3 group:i=0 priority:i=0 size:f3~=0 "
    "material:>material friction:f3~=1,.005,.0001 mass:f density:f=1000 shellinertia:b=false solmix:f=1 %sol "
    "margin:f=0 gap:f=0 fromto:f6 %pose %alt hfield:>hfield mesh:>mesh fitscale:f=1 %rgba fluidshape:@fluid=none "
    "fluidcoef:f5~=.5,.25,1.5,1,1 user:f*",
    "site": "type:@geom=sphere group:i=0 %pose material:>material size:f3~=.005,.005,.005 fromto:f6 %alt %rgba user:f*",
    "camera": "projection:@projection=perspective fovy:f=45 ipd:f=.068 resolution:i2=1,1 output:@camout*=rgb %pose "
    "%alt mode:@track=fixed focal:g2=0 focalpixel:g2=0 principal:g2=0 principalpixel:g2=0 sensorsize:g2=0 user:f*",
    "light": "directional:b type:@light=spot castshadow:b=true active:b=true pos:f3=0 dir:f3=0,0,-1 bulbradius:g=.02 "
    "intensity:g=0 range:g=10 attenuation:g3=1 cutoff:g=45 exponent:g=10 ambient:g3=0 diffuse:g3=.7,.7,.7 "
    "specular:g3=.3,.3,.3 mode:@track=fixed",
    "pair": "condim:i=3 friction:f5~=1,1,.005,.0001,.0001 solref:f2~=.02,1 solreffriction:f2~=0 "
    "solimp:f5~=.9,.95,.001,.5,2 gap:f=0 margin:f=0",
    "equality": "active:b=true %sol",
    "tendon": "group:i=0 limited:@auto=auto range:f2=0 %sollimit %solfriction frictionloss:f=0 springlength:f2~=-1,-1 "
    "margin:f=0 stiffness:f3~=0 damping:f3~=0 user:f*",
    "tendonforce": "actuatorfrclimited:@auto=false actuatorfrcrange:f2=0 armature:f=0",
    "tendonlook": "width:f=.003 material:>material %rgba",
    "buffer": "group:i=0 nsample:i=0 interp:@interp=zoh delay:f=0",
    "act": "%buffer gear:f6~=1 damping:f3~=0 armature:f=0 cranklength:f=0 user:f*",
    "ctrl": "ctrllimited:@auto=auto ctrlrange:f2=0",
    "force": "forcelimited:@auto=auto forcerange:f2=0",
    "trn": "lengthrange:f2=0 joint:>joint jointinparent:>joint tendon:>tendon slidersite:>site cranksite:>site",
    "trnsite": "site:>site refsite:>site",
    "general": "actlimited:@auto=auto actrange:f2=0 actdim:i=-1 dyntype:@dyn=none gaintype:@gain=fixed "
    "biastype:@bias=none dynprm:f10~=1 gainprm:f10~=1 biasprm:f10~=0 actearly:b=false",
    "position": "inheritrange:f=0 kp:f kv:f dampratio:f",
    "cylinder": "timeconst:f area:f diameter:f bias:f3",
    "muscle": "timeconst:f2 range:f2 force:f scale:f lmin:f lmax:f vmax:f fpmax:f fvmax:f",
    "dcmotor": "motorconst:f2~ resistance:f nominal:f3~ saturation:f3~ inductance:f2~ cogging:f3~ controller:f6~ "
    "input:@dcinput thermal:f6~ lugre:f5~",
    "sample": "nsample:i=0 interp:@interp=zoh delay:f=0 interval:f2~=0",
    "sensor": "%sample cutoff:f=0 noise:f=0 user:f*",
    "sensor_site": "name:name site:>site! %sensor",
    "sensor_joint": "name:name joint:>joint! %sensor",
    "sensor_tendon": "name:name tendon:>tendon! %sensor",
    "sensor_actuator": "name:name actuator:>actuator! %sensor",
    "sensor_body": "name:name body:>body! %sensor",
    "sensor_object": "name:name objtype:@object! objname:>(objtype)! %sensor",
    "sensor_frame": "name:name objtype:@object! objname:>(objtype)! reftype:@object refname:>(reftype) %sensor",
    "sensor_pair": "name:name geom1:>geom geom2:>geom body1:>body body2:>body %sensor",
    "sensor_global": "name:name %sensor",
    "skin": "name:name file:file material:>material %rgba inflate:g=0 vertex:g* texcoord:g* face:i* group:i=0",
    "bone": "body:>body! bindpos:g3! bindquat:g4! vertid:i*! vertweight:g*!",
    "flexcontact": "contype:i=1 conaffinity:i=1 condim:i=3 priority:i=0 friction:f3~=1,.005,.0001 solmix:f=1 %sol "
    "margin:f=0 gap:f=0 internal:b=false selfcollide:@selfcollide=auto activelayers:i=1 passive:b=false",
    "elasticity": "young:f=0 poisson:f=0 damping:f=0 thickness:f=-1 elastic2d:@elastic2d=none",
}

TABLE = """
mujoco !
  | model:s
  compiler *
    | autolimits:b=true boundmass:f=0 boundinertia:f=0 settotalmass:f=-1 balanceinertia:b=false strippath:b=false
    | coordinate:@coordinate=local angle:@angle=degree fitaabb:b=false eulerseq:s=xyz meshdir:s texturedir:s
    | discardvisual:b=false usethread:b=true fusestatic:b=false inertiafromgeom:@auto=auto inertiagrouprange:i2=0,5
    | saveinertial:b=false assetdir:s alignfree:b=false
    lengthrange ?
      | mode:@lrmode=muscle useexisting:b=true uselimit:b=false accel:f=20 maxforce:f=0 timeconst:f=1 timestep:f=.01
      | inttotal:f=10 interval:f=2 tolrange:f=.05
  option *
    | timestep:f=.002 impratio:f=1 tolerance:f=1e-8 ls_tolerance:f=.01 noslip_tolerance:f=1e-6 ccd_tolerance:f=1e-6
    | sleep_tolerance:f=1e-4 gravity:f3=0,0,-9.81 wind:f3=0 magnetic:f3=0,-.5,0 density:f=0 viscosity:f=0 o_margin:f=0
    | o_solref:f2~=.02,1 o_solimp:f5~=.9,.95,.001,.5,2 o_friction:f5~=1,1,.005,.0001,.0001 integrator:@integrator=Euler
    | cone:@cone=pyramidal jacobian:@jacobian=auto solver:@solver=Newton iterations:i=100 ls_iterations:i=50
    | noslip_iterations:i=0 ccd_iterations:i=35 sdf_iterations:i=10 sdf_initpoints:i=40 actuatorgroupdisable:i31~
    flag ?
      | constraint:@enable=enable equality:@enable=enable frictionloss:@enable=enable limit:@enable=enable
      | contact:@enable=enable spring:@enable=enable damper:@enable=enable gravity:@enable=enable
      | clampctrl:@enable=enable warmstart:@enable=enable filterparent:@enable=enable actuation:@enable=enable
      | refsafe:@enable=enable sensor:@enable=enable midphase:@enable=enable eulerdamp:@enable=enable
      | autoreset:@enable=enable nativeccd:@enable=enable island:@enable=enable multiccd:@enable=enable
      | override:@enable=disable energy:@enable=disable fwdinv:@enable=disable invdiscrete:@enable=disable
      | sleep:@enable=disable
  size *
    | memory:bytes njmax:i=-1 nconmax:i=-1 nstack:i=-1 nuserdata:i=0 nkey:i=0 nuser_body:i=-1 nuser_jnt:i=-1
    | nuser_geom:i=-1 nuser_site:i=-1 nuser_cam:i=-1 nuser_tendon:i=-1 nuser_actuator:i=-1 nuser_sensor:i=-1
  visual *
    global ?
      | cameraid:i=-1 orthographic:b=false fovy:g=45 ipd:g=.068 azimuth:g=90 elevation:g=-45 linewidth:g=1 glow:g=.3
      | offwidth:i=640 offheight:i=480 realtime:g=1 ellipsoidinertia:b=false bvactive:b=true
    quality ?
      | shadowsize:i=4096 offsamples:i=4 numslices:i=28 numstacks:i=16 numquads:i=4
    headlight ?
      | ambient:g3=.1,.1,.1 diffuse:g3=.4,.4,.4 specular:g3=.5,.5,.5 active:i=1
    map ?
      | stiffness:g=100 stiffnessrot:g=500 force:g=.005 torque:g=.1 alpha:g=.3 fogstart:g=3 fogend:g=10 znear:g=.01
      | zfar:g=50 haze:g=.3 shadowclip:g=1 shadowscale:g=.6 actuatortendon:g=2
    scale ?
      | forcewidth:g=.1 contactwidth:g=.3 contactheight:g=.1 connect:g=.2 com:g=.4 camera:g=.3 light:g=.3
      | selectpoint:g=.2 jointlength:g=1 jointwidth:g=.1 actuatorlength:g=.7 actuatorwidth:g=.2 framelength:g=1
      | framewidth:g=.1 constraint:g=.1 slidercrank:g=.2 frustum:g=10
    rgba ?
      | fog:g4=0,0,0,1 haze:g4=1,1,1,1 force:g4=1,.5,.5,1 inertia:g4=.8,.2,.2,.6 joint:g4=.2,.6,.8,1
      | actuator:g4=.2,.25,.2,1 actuatornegative:g4=.2,.6,.9,1 actuatorpositive:g4=.9,.4,.2,1 com:g4=.9,.9,.9,1
      | camera:g4=.6,.9,.6,1 light:g4=.6,.6,.9,1 selectpoint:g4=.9,.9,.1,1 connect:g4=.2,.2,.8,1
      | contactpoint:g4=.9,.6,.2,1 contactforce:g4=.7,.9,.9,1 contactfriction:g4=.9,.8,.4,1 contacttorque:g4=.9,.7,.9,1
      | contactgap:g4=.5,.8,.9,1 rangefinder:g4=1,1,.1,1 constraint:g4=.9,0,0,1 slidercrank:g4=.5,.3,.8,1
      | crankbroken:g4=.9,0,0,1 frustum:g4=1,1,0,.2 bv:g4=0,1,0,.5 bvactive:g4=1,0,0,.5
  statistic *
    | meaninertia:f meanmass:f meansize:f extent:f center:f3
  default R
    | class:s
    mesh ?
      | scale:f3=1,1,1 maxhullvert:i=-1 inertia:@meshinertia=legacy
    material ?
      | %material
      layer *
        | texture:>texture! role:@role!
    joint ?
      | %joint
    geom ?
      | %geom
    site ?
      | %site
    camera ?
      | %camera
    light ?
      | %light
    pair ?
      | %pair
    equality ?
      | %equality
    tendon ?
      | %tendon %tendonlook
    general ?
      | %act %ctrl %force %general
    motor ?
      | %act %ctrl %force
    position ?
      | %act %ctrl %force %position timeconst:f
    velocity ?
      | %act %ctrl %force kv:f
    intvelocity ?
      | %act %ctrl %force %position actrange:f2=0
    damper ?
      | %act %force ctrlrange:f2=0 kv:f
    cylinder ?
      | %act %ctrl %force %cylinder
    muscle ?
      | %act %ctrl %force %muscle
    adhesion ?
      | %buffer %force ctrlrange:f2=0 gain:f user:f*
    dcmotor ?
      | %act %ctrl %dcmotor
  extension *
    plugin *
      | plugin:s!
      instance *
        | name:name!
        config *
          | key:s! value:s!
  custom *
    numeric *
      | name:name! size:i data:f*
    text *
      | name:name! data:s!
    tuple *
      | name:name!
      element *
        | objtype:@object! objname:>(objtype)! prm:f=0
  asset *
    mesh * = mesh
      | name:name class:>default content_type:s file:file vertex:g* normal:g* texcoord:g* face:i* refpos:f3=0
      | refquat:f4=1 scale:f3=1,1,1 smoothnormal:b=false maxhullvert:i=-1 inertia:@meshinertia=legacy
      | builtin:@meshbuiltin=none params:f* material:>material
      plugin *
        | plugin:s instance:>instance
        config *
          | key:s! value:s!
    hfield *
      | name:name content_type:s file:file nrow:i=0 ncol:i=0 size:f4! elevation:g*
    skin *
      | %skin
      bone *
        | %bone
    texture *
      | name:name type:@texture=cube colorspace:@colorspace=auto content_type:s file:file gridsize:i2=1,1
      | gridlayout:s=............ fileright:file fileleft:file fileup:file filedown:file filefront:file fileback:file
      | builtin:@builtin=none rgb1:f3=.8,.8,.8 rgb2:f3=.5,.5,.5 mark:@mark=none markrgb:f3=0 random:f=.01 width:i=0
      | height:i=0 hflip:b=false vflip:b=false nchannel:i=3
    material * = material
      | name:name class:>default %material
      layer *
        | texture:>texture! role:@role!
    model *
      | name:name file:file! content_type:s
  worldbody * < body
  body R
    | name:name childclass:>default %pose mocap:b=false %alt gravcomp:f=0 sleep:@sleep=auto user:f*
    frame R < body
      | name:name childclass:>default %pose %alt
    replicate R < body
      | childclass:>default count:i! offset:f3=0 euler:f3=0 sep:s
    inertial ?
      | pos:f3! quat:f4=1 mass:f! diaginertia:f3=0 %alt fullinertia:f6
    joint * = joint
      | name:name class:>default %joint
    freejoint *
      | name:name group:i=0 align:@auto=auto
    geom * = geom
      | name:name class:>default %geom
      plugin *
        | plugin:s instance:>instance
        config *
          | key:s! value:s!
    attach *
      | model:>model! body:s prefix:s!
    site * = site
      | name:name class:>default %site
    camera * = camera
      | name:name class:>default %camera target:>body
    light * = light
      | name:name class:>default %light target:>body texture:>texture
    plugin *
      | plugin:s instance:>instance
      config *
        | key:s! value:s!
    composite *
      | prefix:s type:@composite! count:i3~=1,1,1 offset:f3=0 vertex:g* initial:s=ball curve:s size:f3~=1 quat:f4=1
      joint *
        | kind:@jkind! group:i=3 stiffness:f=0 damping:f=0 armature:f=0 solreffix:f2~=.02,1
        | solimpfix:f5~=.9,.95,.001,.5,2 type:@joint=hinge axis:f3=0,0,1 limited:@auto=auto range:f2=0 margin:f=0
        | %sollimit frictionloss:f=0 %solfriction
      skin ?
        | texcoord:b=false material:>material group:i=0 rgba:g4=1,1,1,1 inflate:g=0 subgrid:i=0
      geom ?
        | type:@geom=sphere contype:i=1 conaffinity:i=1 condim:i=3 group:i=0 priority:i=0 size:f3~=0
        | material:>material %rgba friction:f3~=1,.005,.0001 mass:f density:f=1000 solmix:f=1 %sol margin:f=0 gap:f=0
      site ?
        | group:i=3 size:f3~=.005,.005,.005 material:>material %rgba
      plugin *
        | plugin:s instance:>instance
        config *
          | key:s! value:s!
    flexcomp *
      | name:name! type:@flexcomp=grid group:i=0 dim:i=2 dof:@flexdof=full count:i3=10,10,10 cellcount:i3=-1,-1,-1
      | spacing:f3=.02,.02,.02 radius:f=.005 rigid:b=false mass:f=1 inertiabox:f=.005 scale:f3=1,1,1 file:file point:f*
      | element:i* texcoord:g* material:>material %rgba flatskin:b=false %pose %alt origin:f3
      edge ?
        | equality:@flexeq=false %sol stiffness:f=0 damping:f=0
      elasticity ?
        | %elasticity
      contact ?
        | %flexcontact
      pin *
        | id:i* range:i* grid:i* gridrange:i*
      plugin *
        | plugin:s instance:>instance
        config *
          | key:s! value:s!
  deformable *
    flex *
      | name:name group:i=0 dim:i=2 radius:f=.005 material:>material %rgba flatskin:b=false body:>body*! vertex:f*
      | element:i*! texcoord:g* elemtexcoord:i* node:>body* cellcount:i3=1,1,1 dof:@flexdof=full
      contact ?
        | %flexcontact
      edge ?
        | stiffness:f=0 damping:f=0
      elasticity ?
        | %elasticity
    skin *
      | %skin
      bone *
        | %bone
  contact *
    pair * = pair
      | name:name class:>default geom1:>geom geom2:>geom %pair
    exclude *
      | name:name body1:>body! body2:>body!
  equality *
    connect * = equality
      | name:name class:>default body1:>body body2:>body anchor:f3=0,1,0 site1:>site site2:>site %equality
    weld * = equality
      | name:name class:>default body1:>body body2:>body relpose:f7=0 anchor:f3=0,1,0 site1:>site site2:>site %equality
      | torquescale:f=1
    joint * = equality
      | name:name class:>default joint1:>joint! joint2:>joint polycoef:f5~=0,1,0,0,0 %equality
    tendon * = equality
      | name:name class:>default tendon1:>tendon! tendon2:>tendon polycoef:f5~=0,1,0,0,0 %equality
    flex,flexvert * = equality
      | name:name class:>default flex:>flex! %equality
    flexstrain * = equality
      | name:name class:>default flex:>flex! cell:f3=0,1,0 %equality
  tendon *
    spatial * = tendon
      | name:name class:>default %tendon %tendonforce %tendonlook
      site *
        | site:>site!
      geom *
        | geom:>geom! sidesite:>site
      pulley *
        | divisor:f!
    fixed * = tendon
      | name:name class:>default %tendon %tendonforce
      joint *
        | joint:>joint! coef:f!
  actuator *
    general * = actuator
      | name:name class:>default %act %ctrl %force %trn %trnsite body:>body %general
    motor * = actuator
      | name:name class:>default %act %ctrl %force %trn %trnsite
    position * = actuator
      | name:name class:>default %act %ctrl %force %trn %trnsite %position timeconst:f
    velocity * = actuator
      | name:name class:>default %act %ctrl %force %trn %trnsite kv:f
    intvelocity * = actuator
      | name:name class:>default %act %ctrl %force %trn %trnsite %position actrange:f2=0
    damper * = actuator
      | name:name class:>default %act ctrlrange:f2=0 %force %trn %trnsite kv:f
    cylinder * = actuator
      | name:name class:>default %act %ctrl %force %trn %trnsite %cylinder
    muscle * = actuator
      | name:name class:>default %act %ctrl %force %trn %muscle tausmooth:f
    adhesion * = actuator
      | name:name class:>default %buffer ctrlrange:f2=0 %force body:>body gain:f user:f*
    dcmotor * = actuator
      | name:name class:>default %act %ctrl %trn %trnsite %dcmotor
    plugin * = actuator
      | name:name class:>default plugin:s instance:>instance %act %ctrl %force %trn site:>site actlimited:@auto=auto
      | actrange:f2=0 actdim:i=-1 dyntype:@dyn=none dynprm:f10~=1 actearly:b=false
      config *
        | key:s! value:s!
  sensor *
    touch,accelerometer,velocimeter,gyro,force,torque,magnetometer *
      | %sensor_site
    camprojection *
      | name:name site:>site! camera:>camera! %sensor
    rangefinder *
      | name:name site:>site camera:>camera data:@raydata*=dist %sensor
    jointpos,jointvel *
      | %sensor_joint
    tendonpos,tendonvel *
      | %sensor_tendon
    actuatorpos,actuatorvel,actuatorfrc *
      | %sensor_actuator
    jointactuatorfrc *
      | %sensor_joint
    tendonactuatorfrc *
      | %sensor_tendon
    ballquat,ballangvel,jointlimitpos,jointlimitvel,jointlimitfrc *
      | %sensor_joint
    tendonlimitpos,tendonlimitvel,tendonlimitfrc *
      | %sensor_tendon
    framepos,framequat,framexaxis,frameyaxis,framezaxis,framelinvel,frameangvel *
      | %sensor_frame
    framelinacc,frameangacc *
      | %sensor_object
    subtreecom,subtreelinvel,subtreeangmom *
      | %sensor_body
    insidesite *
      | name:name site:>site! objtype:@object! objname:>(objtype)! %sensor
    distance,normal,fromto *
      | %sensor_pair
    contact *
      | name:name geom1:>geom geom2:>geom body1:>body body2:>body subtree1:>body subtree2:>body site:>site num:i=1
      | data:@condata*=found reduce:@reduce=none %sensor
    e_potential,e_kinetic,clock *
      | %sensor_global
    tactile *
      | name:name geom:>geom! mesh:>mesh! %sample user:f*
    user *
      | name:name objtype:@object objname:>(objtype) datatype:@datatype=real needstage:@stage=acc dim:i! cutoff:f=0
      | noise:f=0 user:f*
    plugin *
      | name:name plugin:s instance:>instance cutoff:f=0 objtype:@object objname:>(objtype) reftype:@object
      | refname:>(reftype) user:f*
      config *
        | key:s! value:s!
  keyframe *
    key *
      | name:name time:f=0 qpos:f* qvel:f* act:f* mpos:f* mquat:f* ctrl:f*
"""
