"""One small model for each feature of the compiler, by name; all are accepted by MuJoCo."""


def world(body: str, extra: str = "", head: str = "") -> str:
    """A model with these elements in the worldbody, sections after it and sections before it, each on its own line."""
    return f"<mujoco>{head}\n<worldbody>{body}</worldbody>\n{extra}</mujoco>"


def head(settings: str) -> str:
    """A compiler element with these attributes."""
    return f"<compiler {settings}/>"


ARM = """
<body name="a" pos="0 0 1"><joint name="j1" axis="0 1 0" range="-30 60"/><geom name="ga" size=".1 .2" type="capsule"/>
  <site name="s1" pos=".1 0 .2"/>
  <body name="b" pos=".3 0 0" euler="10 20 30"><joint name="j2" type="slide" axis="1 1 0" range="-.1 .3"/>
    <geom name="gb" type="box" size=".1 .2 .3" pos=".1 0 0" quat="1 .2 .3 .4"/>
      <site name="s2" pos="0 .1 .2" euler="5 6 7"/>
    <body name="c" pos="0 .3 0"><joint name="j3" type="ball" range="0 50"/><geom name="gc" size=".1"/>
      <site name="s3"/><camera name="cam" pos="0 0 1" resolution="4 3"/></body>
  </body>
</body>
<body name="f" pos="2 0 1"><freejoint name="j4"/><geom name="gf" type="ellipsoid" size=".1 .2 .3"/>
  <site name="s4"/></body>
<body name="m" mocap="true" pos="1 1 1"><geom name="gm" size=".1"/></body>
<geom name="floor" type="plane" size="0 0 .1"/>
<site name="s0"/>
"""

_INERTIAL = '<body pos="0 0 1"><freejoint/><inertial pos=".1 .2 .3" mass="2" {}/><geom size=".1"/></body>'
_BALLS = '<body name="p" pos="0 0 1"><joint type="ball"/>{}</body>'
_TWO = '<geom size=".1" pos=".2 0 0"/><geom type="box" size=".1 .2 .3" euler="10 20 30" pos="0 .1 0"/>'

GEOMS = {
    f"geom {kind}{' shell' if shell else ''}": world(
        _BALLS.format(f'<geom type="{kind}" size=".1 .2 .3" pos=".1 .2 .3" {shell}/>')
    )
    for kind in ("sphere", "capsule", "cylinder", "ellipsoid", "box")
    for shell in ("", 'shellinertia="true"')
}
FROMTO = {
    f"fromto {kind}": world(
        _BALLS.format(f'<geom type="{kind}" size=".1" fromto="0 .1 .2 .5 .6 .9"/>')
        + f'<site type="{kind}" size=".1" fromto="0 0 1 0 0 -1"/>'
    )
    for kind in ("capsule", "cylinder", "ellipsoid", "box")
}
ORIENTATIONS = {
    f"orientation {attr} {settings}": world(
        f'<body {attr}><joint/><geom size=".1 .1" type="capsule" {attr}/><site {attr}/><camera {attr}/>'
        f'<frame {attr} pos="1 2 3"><geom size=".1" {attr} pos=".1 0 0"/><body {attr} pos="0 .1 0">'
        f'<joint axis="1 1 0" '
        f'pos=".1 0 0"/><geom size=".1"/></body><frame {attr}><site {attr}/><light dir="1 0 0" pos="0 1 0"/>'
        f"</frame></frame>"
        "</body>",
        head=head(settings),
    )
    for attr, settings in (
        ('quat="1 2 3 4"', ""),
        ('axisangle="1 1 0 50"', ""),
        ('axisangle="1 1 0 1.5"', 'angle="radian"'),
        ('xyaxes="1 .1 0 0 1 .3"', ""),
        ('zaxis="1 2 3"', ""),
        ('zaxis="0 0 -1"', ""),
        ('euler="10 20 30"', ""),
        ('euler="10 20 30"', 'eulerseq="XYZ"'),
        ('euler=".1 .2 .3"', 'eulerseq="zYx" angle="radian"'),
    )
}
INERTIA = {
    "inertial diagonal": world(_INERTIAL.format('diaginertia=".1 .2 .25" euler="10 20 30"')),
    "inertial full": world(_INERTIAL.format('fullinertia=".1 .2 .25 .01 .02 -.01"')),
    "inertial overridden": world(
        _INERTIAL.format('diaginertia=".1 .2 .25"'), head=head('inertiafromgeom="true" boundmass=".1"')
    ),
    "inertial in a frame": world(
        '<body pos="1 0 0"><joint/><frame pos="1 2 3" euler="10 0 0">'
        '<inertial pos="1 0 0" mass="1" diaginertia="1 1 1"/>'
        "</frame></body>"
    ),
    "two geoms": world(_BALLS.format(_TWO)),
    "mass of geoms": world(_BALLS.format('<geom size=".1" mass="3"/><geom size=".2" density="10" pos="1 0 0"/>')),
    "massless geom": world(_BALLS.format('<geom size=".1" mass="0"/><geom size=".2" pos="1 0 0"/>')),
    "inertia groups": world(
        _BALLS.format('<geom size=".1" group="3"/><geom size=".2" group="1"/>'), head=head('inertiagrouprange="0 2"')
    ),
    "bounds": world(
        _BALLS.format('<geom size=".001"/>') + '<body name="e"/>', head=head('boundmass=".1" boundinertia=".01"')
    ),
    "balance": world(_INERTIAL.format('diaginertia=".1 .2 .5"'), head=head('balanceinertia="true"')),
    "total mass": world(_BALLS.format(_TWO), head=head('settotalmass="5"')),
    "inertia from geoms only": world(
        '<body name="a" pos="1 2 3"><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
        '<body name="b" euler="0 90 0" pos="0 1 0"><geom size=".1"/></body></body>',
        head=head('inertiafromgeom="false"'),
    ),
    "mass in a static child": world('<body><joint/><body><geom size=".1"/></body></body>'),
    "align free": world(
        '<body pos="1 2 3" euler="10 20 30"><joint type="free"/><geom size=".1" pos=".2 .1 0"/>'
        '<geom type="box" size=".1 .2 .3" euler="10 20 30" pos="0 .1 0"/><site pos="1 0 0"/><camera pos="0 0 1"/>'
        '<light pos="0 1 0" dir="1 0 1"/></body>',
        head=head('alignfree="true"'),
    ),
    "align one": world(f'<body pos="1 2 3" euler="10 20 30"><freejoint align="true"/>{_TWO}</body>'),
    "align refused": world(f'<body><freejoint align="false"/>{_TWO}</body>', head=head('alignfree="true"')),
    "fluid ellipsoid": world(
        _BALLS.format(
            "".join(
                f'<geom type="{k}" size=".1 .2 .3" fluidshape="ellipsoid" fluidcoef=".1 .2 .3"/>'
                for k in ("sphere", "capsule", "cylinder", "ellipsoid", "box")
            )
        )
    ),
}
JOINTS = {
    "joint types": world(ARM),
    "joint numbers": world(
        '<body><joint name="x" pos="1 2 3" axis="0 3 4" ref="20" springref="30" stiffness="1 2 3" damping="4 5 6" '
        'armature=".1" frictionloss=".2" margin=".01" solreflimit=".05" solimplimit=".8 .9" solreffriction="-10 -1" '
        'solimpfriction=".7" actuatorfrcrange="-3 4" actuatorgravcomp="true" group="2" user="1 2"/>'
        '<geom size=".1"/></body>'
    ),
    "joint unlimited range": world('<body><joint range="10 20" limited="false"/><geom size=".1"/></body>'),
    "joint radian": world('<body><joint range="-1 2" ref=".3"/><geom size=".1"/></body>', head=head('angle="radian"')),
    "autolimits off": world(
        '<body><joint range="-1 2" limited="true"/><geom size=".1"/></body>', head=head('autolimits="false"')
    ),
    "springdamper": world(
        '<body><joint springdamper=".1 .8"/><geom size=".1" pos="1 0 0"/><body pos="0 0 1"><joint type="ball" '
        'springdamper=".2 1" stiffness="1" damping="2"/><geom size=".1" pos="0 1 0"/></body></body>'
    ),
    "simple bodies": world(
        '<body><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><geom size=".1"/></body>'
        '<body pos="1 0 0"><joint axis="0 0 1"/><geom size=".1"/></body>'
        '<body pos="2 0 0"><body><freejoint/><geom size=".1"/></body></body>'.replace(
            "<freejoint/>", '<joint type="ball"/>'
        )
        + '<body><joint axis="1 1 0" type="slide"/><geom size=".1"/></body>'
        + '<body><joint pos="1 0 0"/><geom size=".1"/></body>'
    ),
    "many trees": world("".join(f'<body pos="{i} 0 1"><freejoint/><geom size=".1"/></body>' for i in range(4))),
    "gravcomp and user": world('<body gravcomp=".5" user="1 2 3"><joint/><geom size=".1" user="4"/></body>'),
    "sleep": world(
        '<body sleep="never"><freejoint/><geom size=".1"/></body><body sleep="allowed" pos="1 0 0"><freejoint/>'
        '<geom size=".1"/></body>'
    ),
    "empty world": "<mujoco/>",
    "empty bodies": world('<body name="a"><body name="b"/></body>'),
}
CAMERAS = {
    "cameras": world(
        ARM + '<camera mode="targetbody" target="b" pos="1 2 3"/><camera mode="trackcom" fovy="30" ipd=".1" '
        'projection="orthographic"/><camera sensorsize=".02 .01" focal=".03 .04" principal=".001 .002" '
        'resolution="640 480"/><camera sensorsize=".02 .01" focalpixel="600 500" principalpixel="3 4"'
        ' resolution="640 480" '
        'output="rgb depth segmentation" user="1"/>'
    ),
    "lights": world(
        ARM + '<light mode="targetbodycom" target="c" dir="1 2 3" directional="true"/><light type="point" cutoff="20" '
        'ambient=".1 .2 .3" attenuation="1 2 3" castshadow="false" active="false" bulbradius=".1" intensity="2"'
        ' range="5"/>'
        '<light type="image" texture="t"/>',
        '<asset><texture name="t" type="cube" builtin="flat" width="4" height="4"/></asset>',
    ),
    "materials": world(
        '<geom size=".1" material="m"/><site material="n"/>',
        '<asset><texture name="t" type="2d" builtin="checker" width="8" height="8" rgb1="1 0 0" rgb2="0 1 0"/>'
        '<texture name="u" type="2d" builtin="flat" width="4" height="4"/>'
        '<material name="m" texture="t" texrepeat="2 3" texuniform="true" specular=".1" rgba=".1 .2 .3 .4"/>'
        '<material name="n" metallic=".3" roughness=".4"><layer texture="t" role="rgb"/>'
        '<layer texture="u" role="normal"/>'
        "</material></asset>",
    ),
}
CONTACT = {
    "pairs": world(
        ARM,
        '<contact><pair geom1="gf" geom2="ga"/><pair name="p" geom1="ga" geom2="floor" condim="4" friction="1 2" '
        'solref=".1 .2" solimp=".8" margin=".1" gap=".05" solreffriction=".3 .4"/>'
        '<exclude body1="c" body2="a" name="e"/>'
        '<exclude body1="world" body2="b"/></contact>',
    ),
}
EQUALITY = {
    "equality": world(
        ARM,
        '<tendon><fixed name="t1"><joint joint="j1" coef="2"/></fixed><fixed name="t2"><joint joint="j2" coef="3"/>'
        "</fixed>"
        '</tendon><equality><connect body1="c" anchor=".1 .2 .3" name="q"/>'
        '<connect body1="c" body2="f" anchor="1 2 3"/>'
        '<connect site1="s1" site2="s4"/><weld body1="c" body2="f"/>'
        '<weld body1="f" anchor=".1 .2 .3" torquescale="2"/>'
        '<weld body1="b" relpose="1 2 3 2 0 0 0" active="false"/><weld site1="s2" site2="s3" solref=".1 2"/>'
        '<joint joint1="j1" joint2="j2" polycoef=".1 .2"/><joint joint1="j2"/><tendon tendon1="t1" tendon2="t2"/>'
        '<tendon tendon1="t2" polycoef="0 1 2 3 4"/></equality>',
    ),
}
TENDONS = {
    "fixed tendon": world(
        ARM,
        '<tendon><fixed name="t" range="-1 2" stiffness="1 2" damping="3" springlength=".1 .2" frictionloss=".1" '
        'margin=".01" user="7" group="2" armature=".1"><joint joint="j2" coef="-2"/><joint joint="j1" coef="3"/>'
        "</fixed>"
        '<fixed springlength=".3" limited="false" range="0 1"><joint joint="j1" coef="1"/></fixed></tendon>',
    ),
    "a joint twice in a fixed tendon": world(
        '<body><joint name="a" axis="0 1 0"/><geom size=".1" pos="1 0 0"/><body pos="2 0 0">'
        '<joint name="b" axis="0 1 0"/><geom size=".1" pos="1 0 0"/></body></body>',
        '<tendon><fixed name="t"><joint joint="a" coef=".3"/><joint joint="b" coef=".2"/><joint joint="a" coef=".8"/>'
        '</fixed></tendon><actuator><motor tendon="t"/><motor joint="a"/></actuator>',
    ),
    "spatial tendon": world(
        ARM,
        '<tendon><spatial name="t" width=".01" rgba="1 0 0 1" range="0 5"><site site="s0"/><site site="s1"/>'
        '<geom geom="gc" sidesite="s3"/><site site="s2"/><pulley divisor="2"/><site site="s2"/><site site="s4"/>'
        "</spatial>"
        '<spatial stiffness="3" actuatorfrcrange="-1 1" actuatorfrclimited="true"><site site="s1"/><site site="s3"/>'
        "</spatial></tendon>",
    ),
}
ACTUATORS = {
    "actuators": world(
        ARM,
        '<tendon><fixed name="t" range="-1 2"><joint joint="j1" coef="2"/></fixed></tendon><actuator>'
        '<motor joint="j1" ctrlrange="-1 1" gear="10" forcerange="-5 5" user="1 2"/>'
        '<position joint="j2" kp="30" kv="2" ctrlrange="-1 1"/><velocity joint="j1" kv="3"/>'
        '<position joint="j1" kp="30" dampratio="1.2" timeconst=".1"/><position joint="j1" inheritrange=".9"/>'
        '<position tendon="t" kp="2" dampratio=".7"/><intvelocity joint="j1" kp="2" actrange="-1 1"/>'
        '<intvelocity joint="j1" kp="2" inheritrange="1"/><damper joint="j1" kv="2" ctrlrange="0 1"/>'
        '<cylinder joint="j1" timeconst=".2" area=".1"/><general joint="j1" dyntype="filter" dynprm=".1"'
        ' gaintype="affine" '
        'gainprm="1 2 3" biastype="affine" biasprm="4 5 6" actlimited="true" actrange="0 1" actearly="true"'
        ' group="3"/>'
        '<general joint="j1" dyntype="user" actdim="3"/><motor joint="j3" gear="1 2 3"/><motor jointinparent="j3" '
        'gear="1 2 3"/><motor joint="j4" gear="1 2 3 4 5 6"/><motor joint="j1" damping="1 2" armature=".3"/>'
        '<motor joint="j2" armature=".3"/><motor joint="j2" damping=".3"/><motor tendon="t" damping=".2"/>'
        '<muscle joint="j1" range=".8 1.1" lengthrange=".1 .5"/></actuator>',
    ),
    "site and body transmissions": world(
        ARM,
        '<actuator><motor site="s3" gear="1 2 3 4 5 6"/><motor site="s3" refsite="s1" gear="0 1 0 1 0 0"/>'
        '<general cranksite="s2" slidersite="s1" cranklength=".9"/><adhesion body="f" ctrlrange="0 2" gain="3"/>'
        "</actuator>",
    ),
    "muscle by limits": world(
        ARM,
        '<actuator><muscle joint="j1" name="x"/></actuator>',
        head='<compiler><lengthrange uselimit="true"/></compiler>',
    ),
    "delays": world(
        ARM,
        '<actuator><motor joint="j1" nsample="3" delay=".01" interp="linear"/><motor joint="j2"/></actuator>'
        '<sensor><jointpos joint="j1" nsample="4" interval=".1 -.05" delay=".02" interp="cubic"/>'
        '<jointvel joint="j1"/></sensor>',
    ),
    "flags": world(
        ARM,
        head='<option timestep=".01" integrator="implicit" cone="elliptic" solver="CG" jacobian="sparse"'
        ' iterations="7" '
        'gravity="0 0 -1" wind="1 2 3" density="1" viscosity="2" o_solref=".1" o_friction="1 2 3"'
        ' actuatorgroupdisable="1 3 '
        '30"><flag contact="disable" energy="enable" gravity="disable" multiccd="disable" sleep="disable"/></option>'
        '<option impratio="2"><flag gravity="enable" invdiscrete="enable"/></option>',
    ),
    "sizes": world(
        ARM,
        '<keyframe><key name="k" time="1"/></keyframe>',
        head='<size njmax="50" nconmax="20" nuserdata="3" nkey="3" nuser_body="4" nuser_geom="2"/>',
    ),
    "visual and statistic": world(
        ARM,
        head='<visual><map znear=".1" zfar="20"/><rgba haze="1 0 0 1"/><global offwidth="800" bvactive="false"/>'
        '<quality shadowsize="100"/><headlight ambient="1 1 1"/><scale com="2"/></visual><visual><map force="3"/>'
        "</visual>"
        '<statistic extent="3" center="1 2 3"/><statistic meaninertia="4"/>',
    ),
}
SENSORS = {
    "sensors": world(
        ARM,
        '<tendon><fixed name="t" range="0 1"><joint joint="j1" coef="1"/></fixed></tendon>'
        '<actuator><motor joint="j1" name="u"/></actuator><sensor>'
        + "".join(
            f'<{s} site="s2"/>'
            for s in ("touch", "accelerometer", "velocimeter", "gyro", "force", "torque", "magnetometer", "rangefinder")
        )
        + "".join(f'<{s} joint="j1"/>' for s in ("jointpos", "jointvel", "jointactuatorfrc", "jointlimitpos"))
        + "".join(f'<{s} joint="j1"/>' for s in ("jointlimitvel", "jointlimitfrc"))
        + "".join(f'<{s} joint="j3"/>' for s in ("ballquat", "ballangvel", "jointlimitpos"))
        + "".join(f'<{s} tendon="t"/>' for s in ("tendonpos", "tendonvel", "tendonactuatorfrc", "tendonlimitpos"))
        + "".join(f'<{s} tendon="t"/>' for s in ("tendonlimitvel", "tendonlimitfrc"))
        + "".join(f'<{s} actuator="u"/>' for s in ("actuatorpos", "actuatorvel", "actuatorfrc"))
        + "".join(
            f'<{s} objtype="body" objname="b" reftype="site" refname="s0"/>'
            for s in ("framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel")
        )
        + '<framelinacc objtype="xbody" objname="b" cutoff="3"/><frameangacc objtype="geom" objname="gc" noise=".1"/>'
        '<framepos objtype="camera" objname="cam" name="x" user="1 2"/>'
        + "".join(f'<{s} body="b"/>' for s in ("subtreecom", "subtreelinvel", "subtreeangmom"))
        + '<e_potential/><e_kinetic/><clock/><user dim="3"/><user dim="3" objtype="body" objname="b" datatype="axis" '
        'needstage="vel"/><camprojection site="s1" camera="cam"/><rangefinder camera="cam" data="dist dir normal"/>'
        '<insidesite site="s1" objtype="body" objname="c"/><distance geom1="ga" geom2="gb" cutoff="1"/>'
        '<normal body1="b" geom2="ga"/><fromto body1="a" body2="c"/><contact/>'
        '<contact geom1="ga" num="3" data="found force '
        'dist" reduce="maxforce"/><contact site="s1" subtree2="a" data="torque pos normal tangent"/>'
        "</sensor>",
    ),
}
CUSTOM = {
    "custom": world(
        ARM,
        '<custom><numeric name="n" data="1 2 3"/><numeric name="o" size="5" data="1"/><text name="t" data="hello"/>'
        '<tuple name="u"><element objtype="body" objname="b" prm="3"/><element objtype="geom" objname="ga"/>'
        "</tuple></custom>",
    ),
    "keyframes": world(
        ARM,
        '<actuator><motor joint="j1"/><general joint="j2" dyntype="integrator"/></actuator><keyframe>'
        '<key name="k" time="2" qpos="1 2 3 4 5 6 1 2 3 2 0 0 0" ctrl="1 2" act="3" mpos="1 2 3" mquat="2 0 0 0"/>'
        "<key/>"
        '<key qpos="1 2" qvel="1 2 3"/></keyframe>',
    ),
    "names": world(
        '<body name="ümlaut"><joint name="x"/><geom size=".1"/></body><body><site/><site name="x"/></body>'
    ).replace("<mujoco>", '<mujoco model="a name">'),
    "defaults": world(
        '<body childclass="c"><joint/><geom/><geom class="d" size=".3"/><body><joint class="main"/>'
        '<geom fromto="0 0 0 1 0 0"/>'
        '</body><frame childclass="d"><geom/></frame></body>',
        head='<default><geom size=".1" density="10"/><default class="c">'
        '<geom type="capsule" size=".1 .2" rgba="1 0 0 1"/>'
        '<joint damping="2" axis="0 1 0"/><default class="d"><geom size=".2" euler="10 0 0"/></default></default>'
        "</default>",
    ),
}
DISCARD = {
    "discard visual": world(
        '<body name="a" pos="0 0 1"><joint/><geom size=".1" contype="0" conaffinity="0" material="m"/><geom name="g" '
        'size=".2" pos="1 0 0"/><geom name="h" type="cylinder" size=".1 .2" contype="0" conaffinity="0"/>'
        '<geom name="i" '
        'type="mesh" mesh="k" contype="0" conaffinity="0"/><geom type="mesh" mesh="l"/>'
        '<geom name="n" size=".3" contype="0" '
        'conaffinity="0"/><site name="s"/><site name="t" pos="0 0 1"/></body>',
        '<asset><texture name="t" type="2d" builtin="flat" width="4" height="4"/><material name="m" texture="t"/>'
        '<mesh name="k" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/><mesh name="l" vertex="0 0 0 2 0 0 0 1 0 0 0 1"/></asset>'
        '<tendon><spatial><site site="s"/><geom geom="h"/><site site="t"/></spatial></tendon>'
        '<sensor><framepos objtype="geom" objname="n"/></sensor>',
        head=head('discardvisual="true"'),
    ),
}
_FLYING = (
    '<body pos="0 0 1" euler="10 20 30"><freejoint/><geom size=".1" pos=".1 .2 0"/><geom type="box" size=".1 .2 .3"/>'
    '<camera pos="0 0 1"/><light/></body>'
)
_STATIC = '<body pos="1 0 0" euler="0 0 40"><geom size=".1"/>{}</body>'
FUSE = {
    "fuse above a free joint": world(
        _STATIC.format(_FLYING), '<keyframe><key qpos="1 2 3 1 0 0 0"/></keyframe>', head=head('fusestatic="true"')
    ),
    "fuse above a free joint, twice": world(
        _STATIC.format(_STATIC.format(_FLYING + '<body pos="1 1 1"><joint/><geom size=".1"/></body>')),
        head=head('fusestatic="true"'),
    ),
    "fuse above an aligned free joint": world(
        f'<frame pos="1 2 3" euler="3 4 5">{_STATIC.format(_FLYING)}</frame>',
        head=head('fusestatic="true" alignfree="true"'),
    ),
    "fuse above free joints in a replicate": world(
        f'<replicate count="3" offset="1 0 0" euler="0 0 20">{_STATIC.format(_FLYING)}</replicate>',
        head=head('fusestatic="true"'),
    ),
    "fuse static": world(
        '<body name="a" pos="0 0 1"><joint/><geom size=".1"/><body name="b" pos=".1 .2 .3" euler="10 20 30">'
        '<geom type="box" '
        'size=".1 .2 .3"/><site name="s" pos="1 0 0"/><body pos="0 0 .2"><joint/><geom size=".1" pos=".3 0 0"/>'
        "</body></body>"
        '<body name="kept"><geom size=".1"/><camera/><light/></body></body><body pos="3 0 0"><geom type="plane" '
        'size="1 1 1"/><body pos="1 0 0" euler="0 0 90"><geom size=".1"/></body></body>',
        '<sensor><framepos objtype="body" objname="kept"/></sensor>',
        head=head('fusestatic="true"'),
    ),
    "fuse an offset body": world(
        '<body name="a" pos="0 0 1"><joint/><geom size=".1"/><geom size=".1 .2 .3" type="box" euler="1 2 3"/>'
        '<body name="b" pos=".1 .2 .3" euler="10 20 30"><geom type="box" size=".1 .2 .3" pos="1 2 3" euler="40 50 60"/>'
        '<geom size=".2" pos="0 0 1"/></body></body>',
        head=head('fusestatic="true"'),
    ),
    "fuse with cameras": world(
        '<body name="a" pos="0 0 1"><joint/><geom size=".1"/><body name="b" pos=".1 .2 .3" euler="10 20 30"><camera '
        'pos="1 0 0"/><light pos="1 0 0" dir="1 1 1"/><geom size=".1"/></body></body>',
        head=head('fusestatic="true"'),
    ),
    "fuse with force sensor": world(
        '<body name="a" pos="0 0 1"><joint/><geom size=".1"/><body name="b"><site name="s"/><geom size=".1"/></body>'
        '<body name="c"><site name="t"/><geom size=".1"/></body></body>',
        '<sensor><force site="s"/><gyro site="t"/></sensor>',
        head=head('fusestatic="true"'),
    ),
}
_TETRA = 'vertex="0 0 0 1 0 0 0 1 0 0 0 1"'
_SLAB = 'vertex="0 0 0 1 0 0 1 2 0 0 2 0 0 0 .3 1 0 .3 1 2 .3 0 2 .3"'
ASSETS = {
    "mesh geoms": world(
        '<body pos="0 0 1"><joint/><geom type="mesh" mesh="t" pos="1 0 0" euler="10 20 30"/>'
        '<geom type="mesh" mesh="s" '
        'mass="2"/></body><body><joint/><geom type="mesh" mesh="c" contype="0" conaffinity="0"/></body>',
        f'<asset><mesh name="t" {_TETRA}/><mesh name="s" {_SLAB} scale="1 -2 .5" refpos=".1 .2 .3" refquat="1 1 0 0" '
        f'inertia="exact" face="0 2 1 0 3 2 4 5 6 4 6 7 0 1 5 0 5 4 1 2 6 1 6 5 2 3 7 2 7 6 3 0 4 3 4 7"/>'
        f'<mesh name="c" '
        f'{_SLAB} inertia="convex" maxhullvert="6"/><mesh name="u" {_TETRA} material="m"/><material name="m"/>'
        f"</asset>",
    ),
    "mesh fitted": world(
        "".join(
            f'<body pos="{i} 0 1"><joint/><geom type="{kind}" mesh="s" fitscale=".9" pos="0 1 0"/></body>'
            for i, kind in enumerate(("sphere", "capsule", "cylinder", "ellipsoid", "box"))
        ),
        f'<asset><mesh name="s" {_SLAB}/></asset>',
    ),
    "mesh fitted to its bounds": world(
        "".join(
            f'<body pos="{i} 0 1"><joint/><geom type="{kind}" mesh="s" euler="10 20 30"/></body>'
            for i, kind in enumerate(("sphere", "capsule", "cylinder", "ellipsoid", "box"))
        ),
        f'<asset><mesh name="s" {_SLAB}/></asset>',
        head=head('fitaabb="true"'),
    ),
    "height field": world(
        '<geom type="hfield" hfield="h" pos="1 0 0"/><body pos="0 0 1"><joint/><geom size=".1"/></body>',
        '<asset><hfield name="h" nrow="3" ncol="2" size="1 2 .5 .1" elevation="0 1 2 3 4 5"/></asset>',
    ),
    "skin": world(
        ARM,
        '<asset><material name="m"/></asset><deformable><skin name="k" material="m" inflate=".1" group="2" '
        'vertex="0 0 0 1 0 0 0 1 0" face="0 1 2" texcoord="0 0 1 0 0 1">'
        '<bone body="a" bindpos="1 0 0" bindquat="1 0 0 0" '
        'vertid="0 1" vertweight=".5 1"/>'
        '<bone body="c" bindpos="0 0 0" bindquat="0 1 0 0" vertid="0 2" vertweight=".5 1"/>'
        "</skin></deformable>",
    ),
    "tactile": world(
        '<body pos="0 0 1"><joint/><geom name="g" size=".1"/></body>',
        f'<asset><mesh name="t" {_TETRA}/></asset><sensor><tactile geom="g" mesh="t"/><clock/></sensor>',
    ),
}
MACROS = {
    "replicate": world(
        '<replicate count="3" offset="1 0 0" euler="0 0 10"><body name="b" pos="0 1 1"><joint name="j"/>'
        '<geom name="g" '
        'size=".1"/><site name="s"/></body></replicate>',
        '<actuator><motor joint="j0"/></actuator><sensor><gyro site="s" name="q"/></sensor>',
    ),
    "frames": world(
        '<frame pos="1 2 3" euler="10 20 30"><body name="a" pos="1 0 0"><freejoint/><geom size=".1"/></body><frame '
        'quat="0 1 0 0"><geom type="plane" size="1 1 1"/><body mocap="true" pos="0 1 0"><geom size=".1"/>'
        "</body></frame>"
        "</frame>"
    ),
    "cable": world(
        '<composite type="cable" curve="s" count="5 1 1" size="1" prefix="c" initial="none">'
        '<joint kind="main" damping=".1"/>'
        '<geom type="capsule" size=".01"/></composite>'
    ),
}
_ONE = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
_OTHER = '<inertial pos="0 0 1" mass="2" diaginertia="1 2 1"/>'
_FULL = '<inertial pos="0 1 1" mass="3" fullinertia="1 2 2 .1 0 0"/>'
_WEDGE = f'<asset><mesh name="k" {_TETRA} material="no"/><material name="m"/></asset>'
LOOSE = {  # what MuJoCo does not look at, or overwrites
    "two inertials in a frame": world(f"<body><joint/><frame>{_ONE}{_OTHER}</frame></body>"),
    "inertials in and outside a frame": world(f'<body><joint/><frame pos="1 0 0">{_ONE}</frame>{_OTHER}</body>'),
    "two full inertias": world(f"<body><joint/><frame>{_FULL}{_FULL.replace('.1', '.2')}</frame></body>"),
    "two inertials, one turned": world(
        f'<body><joint/><frame>{_OTHER}{_ONE.replace("/>", """ euler="10 20 30"/>""")}</frame></body>'
    ),
    "two replicated inertials": world(f'<replicate count="2"><body><joint/>{_ONE}{_OTHER}</body></replicate>'),
    "unknown words in a frame": world(
        '<frame><geom size=".1" foo="1"><bar/></geom><site><plugin/></site><body><geom size=".1" foo="1"/></body>'
        '</frame><replicate count="2"><body foo="1"><geom size=".1"/></body></replicate>'
    ),
    "njmax, then memory": world("", '<size njmax="7"/><size memory="1M"/><size nuserdata="2"/>'),
    "infinite accelerations": world(
        '<body><joint name="s" type="slide"/><joint type="slide" axis="0 1 0"/><geom size=".1"/></body>'
        '<body><joint name="a"/><geom size=".1" pos="1 0 0"/><body><joint name="b" axis="0 1 0"/><geom size=".1"/>'
        "</body></body>",
        '<actuator><motor joint="s" gear="inf"/><motor joint="a" gear="1e300"/><motor joint="b" gear="1e308"/>'
        '<motor joint="b" gear="1e160"/></actuator>',
    ),
    "unknown material of an unused mesh": world("", _WEDGE),
    "unknown material of a mesh whose geom has another": world('<geom type="mesh" mesh="k" material="m"/>', _WEDGE),
    "singular inertia": world('<body><joint type="slide"/><joint type="slide" axis="1 0 0"/>'
                              '<joint type="slide" axis="1 0 1"/><geom size=".1"/></body>'),
}  # fmt: skip
CASES: dict[str, str] = {
    **LOOSE,
    **GEOMS,
    **FROMTO,
    **ORIENTATIONS,
    **INERTIA,
    **JOINTS,
    **CAMERAS,
    **CONTACT,
    **EQUALITY,
    **TENDONS,
    **ACTUATORS,
    **SENSORS,
    **CUSTOM,
    **FUSE,
    **DISCARD,
    **ASSETS,
    **MACROS,
}
