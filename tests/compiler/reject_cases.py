"""Models that are wrong, by what is wrong with them, and the element and words that our error begins with.

MuJoCo rejects every one.
"""

from tests.compiler.cases import ARM, head, world

_ASSETS = (
    '<asset><mesh name="k" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>'
    '<hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/></asset>'
)


def sensor(text: str) -> str:
    """A model with one sensor."""
    sections = f'<tendon><fixed name="t"><joint joint="j1" coef="1"/></fixed></tendon><sensor>{text}</sensor>'
    return world(ARM, sections, '<size nuser_sensor="2"/>')


def actuator(text: str) -> str:
    """A model with one actuator."""
    return world(
        ARM, f'<tendon><fixed name="t"><joint joint="j1" coef="1"/></fixed></tendon><actuator>{text}</actuator>'
    )


def tendon(text: str) -> str:
    """A model with one tendon."""
    return world(ARM, f"<tendon>{text}</tendon>")


_BODY = {
    "joint in the world": (world('<joint/><geom size="1"/>'), "joint: the world cannot have a joint"),
    "no mass": (world("<body><joint/></body>"), "body: mass and inertia of a moving body must be positive"),
    "geom without mass": (
        world('<body><joint/><geom size=".1" mass="0"/></body>'),
        "body: mass and inertia of a moving body must be positive",
    ),
    "negative mass": (
        world('<body><joint/><geom size=".1" mass="-1"/></body>'),
        "geom: mass, inertia and density cannot be negative",
    ),
    "negative density": (
        world('<body><joint/><geom size=".1" density="-1"/></body>'),
        "geom: mass, inertia and density cannot be negative",
    ),
    "negative inertia": (
        world('<body><joint/><inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/></body>'),
        "body: mass and inertia of a moving body must be positive",
    ),
    "impossible inertia": (
        world('<body><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/></body>'),
        "body: inertia (1, 1, 3) violates A + B >= C",
    ),
    "full and diagonal": (
        world('<body><inertial pos="0 0 0" mass="1" diaginertia="1 1 1" fullinertia="1 1 1 0 0 0"/></body>'),
        "inertial: 'fullinertia' and 'diaginertia' exclude each other",
    ),
    "full and turned": (
        world('<body><inertial pos="0 0 0" mass="1" euler="1 0 0" fullinertia="1 1 1 0 0 0"/></body>'),
        "inertial: fullinertia already gives the orientation",
    ),
    "full not positive": (
        world('<body><inertial pos="0 0 0" mass="1" fullinertia="1 1 1 2 0 0"/></body>'),
        "inertial: fullinertia: the three principal inertias must be positive",
    ),
    "seven dofs": (
        world('<body><joint type="slide"/><joint type="slide"/>' + "<joint/>" * 5 + '<geom size=".1"/></body>'),
        "body: 7 degrees of freedom in one body",
    ),
    "hinge after ball": (
        world('<body><joint type="ball"/><joint/><geom size=".1"/></body>'),
        "body: a ball joint cannot be followed by another rotation",
    ),
    "two free joints": (
        world('<body><freejoint/><joint/><geom size=".1"/></body>'),
        "body: 7 degrees of freedom in one body",
    ),
    "free below": (
        world('<body><body><freejoint/><geom size=".1"/></body></body>'),
        "body: a free joint is only allowed in children of the world",
    ),
    "full and diagonal in two inertials": (
        world(
            '<body><joint/><frame><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></frame>'
            '<inertial pos="0 0 0" mass="1" fullinertia="1 2 2 .1 0 0"/></body>'
        ),
        "inertial: 'fullinertia' and 'diaginertia' exclude each other",
    ),
    "unknown element in a frame": (world("<frame><foo/></frame>"), "unknown element 'foo' in frame"),
    "unknown material of a used mesh": (
        world(
            '<geom type="mesh" mesh="k"/>',
            '<asset><mesh name="k" vertex="0 0 0 1 0 0 0 1 0 0 0 1" material="no"/></asset>',
        ),
        "geom: attribute 'material': there is no material named 'no'",
    ),
    "mocap with joint": (
        world('<body mocap="true"><joint/><geom size=".1"/></body>'),
        "body: a mocap body must be a child of the world without joints",
    ),
    "mocap below": (
        world('<body><body mocap="true"><geom size=".1"/></body></body>'),
        "body: a mocap body must be a child of the world without joints",
    ),
    "world with inertia": (
        world('<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'),
        "inertial: the world cannot have a inertial",
    ),
    "user too long": (world('<body user="1 2"/>', head='<size nuser_body="1"/>'), "body: 'user' has 2 numbers"),
    "sleep in a child": (
        world('<body><joint/><geom size=".1"/><body sleep="never"><joint/><geom size=".1"/></body></body>'),
        "body: 'sleep' is only allowed in the root body of a moving tree",
    ),
    "sleep in a static body": (
        world('<body sleep="never"/>'),
        "body: 'sleep' is only allowed in the root body of a moving tree",
    ),
    "repeated name": (world('<body name="a"/><body name="a"/>'), "body 'a': the body name 'a' is taken"),
    "body called world": (world('<body name="world"/>'), "body 'world': the body name 'world' is taken"),
}
_JOINT = {
    f"joint {name}": (world(f'<body><joint {attrs}/><geom size=".1"/></body>', head=head(settings)), words)
    for name, attrs, settings, words in (
        ("range falls", 'range="1 -1" limited="true"', "", "joint: 'range' must rise"),
        ("ball range", 'type="ball" range="1 2"', "", "joint: 'range' of a ball joint must start at 0"),
        (
            "force range falls",
            'actuatorfrcrange="1 -1" actuatorfrclimited="true"',
            "",
            "joint: 'actuatorfrcrange' must rise",
        ),
        ("no autolimits", 'range="-1 1"', 'autolimits="false"', "joint: 'range' is given but 'limited' is not"),
        (
            "no autolimits for forces",
            'actuatorfrcrange="-1 1"',
            'autolimits="false"',
            "joint: 'actuatorfrcrange' is given but 'actuatorfrclimited' is not",
        ),
        ("zero axis", 'axis="0 0 0"', "", "joint: 'axis' is zero; it must be a direction"),
        ("springdamper", 'springdamper="1 0"', "", "joint: both numbers of 'springdamper' must be positive"),
        ("negative springdamper", 'springdamper="-1 1"', "", "joint: both numbers of 'springdamper' must be positive"),
    )
}
_GEOM = {
    f"geom {name}": (world(f"<body><joint/><geom size='.1'/><geom {attrs}/></body>", _ASSETS), words)
    for name, attrs, words in (
        ("without size", "", "geom: a sphere needs 1 positive size"),
        ("sphere size", 'size="0"', "geom: a sphere needs 1 positive size"),
        ("capsule size", 'type="capsule" size="1"', "geom: a capsule needs 2 positive sizes"),
        ("cylinder size", 'type="cylinder" size="1 -1"', "geom: a cylinder needs 2 positive sizes"),
        ("ellipsoid size", 'type="ellipsoid" size="1 1"', "geom: a ellipsoid needs 3 positive sizes"),
        ("box size", 'type="box" size="1 1 0"', "geom: a box needs 3 positive sizes"),
        (
            "plane moves",
            'type="plane" size="1 1 1"',
            "geom: a plane can only be in a body that is fixed to the world",
        ),
        ("condim", 'size=".1" condim="2"', "geom: 'condim' must be 1, 3, 4 or 6, not 2"),
        (
            "fromto sphere",
            'size=".1" fromto="0 0 0 1 1 1"',
            "geom: 'fromto' needs a capsule, cylinder, ellipsoid or box",
        ),
        ("fromto point", 'type="capsule" size=".1" fromto="1 0 0 1 0 0"', "geom: the points of 'fromto' are too close"),
        (
            "fromto and pos",
            'type="capsule" size=".1" fromto="0 0 0 1 0 0" pos="1 0 0"',
            "geom: 'pos' and 'fromto' cannot both be given",
        ),
        ("no mesh", 'type="mesh"', "geom: a mesh geom needs 'mesh'"),
        ("unknown mesh", 'type="mesh" mesh="j"', "geom: mesh names the mesh 'j', which does not exist"),
        ("no hfield", 'type="hfield"', "geom: a geom of type hfield needs 'hfield', and no other geom can have it"),
        (
            "hfield in a sphere",
            'size=".1" hfield="h"',
            "geom: a geom of type hfield needs 'hfield', and no other geom can have it",
        ),
        ("unknown hfield", 'type="hfield" hfield="i"', "geom: hfield names the hfield 'i', which does not exist"),
        ("unknown material", 'size=".1" material="m"', "geom: material names the material 'm', which does not exist"),
        (
            "fromto mesh",
            'type="capsule" size=".1" mesh="k" fromto="0 0 0 1 1 1"',
            "geom: 'fromto' cannot be used with a mesh",
        ),
        (
            "shell mesh",
            'type="mesh" mesh="k" shellinertia="true"',
            "geom: 'shellinertia' cannot be used with a mesh geom; write inertia='shell' in the mesh asset",
        ),
        ("axisangle", 'size=".1" axisangle="0 0 0 1"', "geom: the axis of axisangle is zero"),
        (
            "xyaxes",
            'size=".1" xyaxes="1 0 0 2 0 0"',
            "geom: the y axis of xyaxes is zero or parallel to the x axis",
        ),
        ("zaxis", 'size=".1" zaxis="0 0 0"', "geom: zaxis is zero"),
        ("nan size", 'size="nan"', "geom: a sphere needs 1 positive size"),
    )
}
_OTHER = {
    "plane size": (world('<geom type="plane" size="1 1 0"/>'), "geom: the third size of a plane must be positive"),
    "euler letters": (
        world('<body euler="1 2 3"/>', head=head('eulerseq="xya"')),
        "body: eulerseq may hold only x, y, z, X, Y and Z, not 'a'",
    ),
    "euler length": (
        world('<body euler="1 2 3"/>', head=head('eulerseq="xy"')),
        "compiler: eulerseq must be three letters",
    ),
    "global coordinates": (world("", head=head('coordinate="global"')), "compiler: coordinate must be local"),
    "site mesh": (world('<site type="mesh"/>'), "site: a site cannot be a mesh, a height field or a plane"),
    "site plane": (
        world('<site type="plane" size="1 1 1"/>'),
        "site: a site cannot be a mesh, a height field or a plane",
    ),
    "site size": (world('<site size="-1"/>'), "site: a sphere needs 1 positive size"),
    "camera target": (
        world('<camera target="nobody"/>'),
        "camera: target names the body 'nobody', which does not exist",
    ),
    "camera fovy": (world('<camera fovy="180"/>'), "camera: 'fovy' must be less than 180"),
    "camera focal": (world('<camera focal="1 1"/>'), "camera: focal and principal need 'sensorsize'"),
    "camera resolution": (
        world('<camera sensorsize="1 1" resolution="0 0"/>'),
        "camera: 'sensorsize' needs a positive 'resolution'",
    ),
    "light target": (world('<light target="nobody"/>'), "light: target names the body 'nobody', which does not exist"),
    "light direction": (world('<light dir="0 0 0"/>'), "light: 'dir' is zero"),
    "light texture": (
        world('<light texture="nothing"/>'),
        "light: texture names the texture 'nothing', which does not exist",
    ),
    "material texture": (
        world("", '<asset><material name="m" texture="nothing"/></asset>'),
        "material 'm': texture names the texture 'nothing', which does not exist",
    ),
    "nameless material": (world("", "<asset><material/></asset>"), "material: the attribute 'name' is missing"),
    "nameless mesh": (
        world("", '<asset><mesh vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>'),
        "mesh: the attribute 'name' is missing",
    ),
    "missing mesh file": (
        world("", '<asset><mesh file="nowhere.stl"/></asset>'),
        "mesh: cannot find the file 'nowhere.stl'",
    ),
    "missing texture file": (
        world("", '<asset><texture type="2d" file="nowhere.png"/></asset>'),
        "texture: cannot find the file 'nowhere.png'",
    ),
    "missing height field file": (
        world("", '<asset><hfield name="h" size="1 1 1 1" file="nowhere.png"/></asset>'),
        "hfield 'h': cannot find the file 'nowhere.png'",
    ),
    "extent": (world("", head='<statistic extent="0"/>'), "statistic: extent must be positive"),
    "memory and njmax": (world("", head='<size memory="1M" njmax="3"/>'), "size: memory and njmax exclude each other"),
    "nuser": (world("", head='<size nuser_geom="-2"/>'), "size: nuser_geom must be -1 or more"),
    "group disable": (
        world("", head='<option actuatorgroupdisable="31"/>'),
        "option: actuatorgroupdisable must be groups between 0 and 30",
    ),
}
_CONTACT = {
    "pair without geom": (world(ARM, '<contact><pair geom1="ga"/></contact>'), "pair: 'geom2' is missing"),
    "pair of unknown geoms": (
        world(ARM, '<contact><pair geom1="ga" geom2="gz"/></contact>'),
        "pair: geom2 names the geom 'gz', which does not exist",
    ),
    "pair condim": (
        world(ARM, '<contact><pair geom1="ga" geom2="gb" condim="5"/></contact>'),
        "pair: 'condim' must be 1, 3, 4 or 6, not 5",
    ),
    "exclude unknown body": (
        world(ARM, '<contact><exclude body1="a" body2="z"/></contact>'),
        "exclude: body2 names the body 'z', which does not exist",
    ),
}
_EQUALITY = {
    f"equality {name}": (world(ARM, f"<equality>{text}</equality>"), words)
    for name, text, words in (
        (
            "unknown body",
            '<connect body1="z" anchor="0 0 0"/>',
            "connect: body1 names the body 'z', which does not exist",
        ),
        ("no anchor", '<connect body1="a"/>', "connect: write either body1 and anchor"),
        ("mixed", '<connect body1="a" anchor="0 0 0" site1="s1"/>', "connect: site1 and body1 exclude each other"),
        ("one site", '<connect site1="s1"/>', "connect: write either body1 and anchor"),
        ("same body", '<weld body1="a" body2="a"/>', "weld: both sides of the constraint are the same body"),
        ("world alone", '<weld body1="world"/>', "weld: both sides of the constraint are the same body"),
        ("weld of nothing", '<weld anchor="0 0 0"/>', "weld: write either body1"),
        ("ball joint", '<joint joint1="j3"/>', "joint: only hinge and slide joints can be coupled"),
        (
            "unknown joint",
            '<joint joint1="j1" joint2="j9"/>',
            "joint: joint2 names the joint 'j9', which does not exist",
        ),
        ("same joint", '<joint joint1="j1" joint2="j1"/>', "joint: both sides of the constraint are the same joint"),
        ("unknown tendon", '<tendon tendon1="t"/>', "tendon: tendon1 names the tendon 't', which does not exist"),
    )
}
_TENDON = {
    f"tendon {name}": (tendon(text), words)
    for name, text, words in (
        ("empty", "<spatial/>", "spatial: the path is empty"),
        ("one site", '<spatial><site site="s1"/></spatial>', "spatial: the path of a spatial tendon needs two objects"),
        (
            "unknown site",
            '<spatial><site site="s1"/><site site="s9"/></spatial>',
            "site: site names the site 's9', which does not exist",
        ),
        (
            "repeated site",
            '<spatial><site site="s1"/><site site="s1"/></spatial>',
            "spatial: the site at 0 is repeated",
        ),
        (
            "ends with pulley",
            '<spatial><site site="s1"/><site site="s2"/><pulley divisor="1"/></spatial>',
            "spatial: the path ends with a pulley",
        ),
        (
            "two pulleys",
            '<spatial><site site="s1"/><site site="s2"/><pulley divisor="1"/><pulley divisor="1"/></spatial>',
            "spatial: two pulleys in a row at 3",
        ),
        (
            "lonely site",
            '<spatial><site site="s1"/><site site="s2"/><pulley divisor="1"/><site site="s1"/></spatial>',
            "spatial: the site at 3 needs a neighbour that is not a pulley",
        ),
        (
            "negative pulley",
            '<spatial><site site="s1"/><site site="s2"/><pulley divisor="-1"/><site site="s1"/>'
            '<site site="s2"/></spatial>',
            "pulley: 'divisor' cannot be negative",
        ),
        (
            "box",
            '<spatial><site site="s1"/><geom geom="gb"/><site site="s2"/></spatial>',
            "geom: a tendon wraps only spheres and cylinders",
        ),
        (
            "geom at the end",
            '<spatial><site site="s1"/><site site="s2"/><geom geom="gc"/></spatial>',
            "spatial: the geom at 2 must be between two sites",
        ),
        (
            "unknown side site",
            '<spatial><site site="s1"/><geom geom="gc" sidesite="q"/><site site="s2"/></spatial>',
            "geom: sidesite names the site 'q', which does not exist",
        ),
        (
            "wrap with armature",
            '<spatial armature="1"><site site="s1"/><geom geom="gc"/><site site="s2"/></spatial>',
            "spatial: a tendon with armature cannot wrap geoms",
        ),
        (
            "negative armature",
            '<spatial armature="-1"><site site="s1"/><site site="s2"/></spatial>',
            "spatial: 'armature' cannot be negative",
        ),
        (
            "width",
            '<spatial width="0"><site site="s1"/><site site="s2"/></spatial>',
            "spatial: 'width' must be positive",
        ),
        ("range", '<fixed limited="true" range="1 0"><joint joint="j1" coef="1"/></fixed>', "fixed: 'range' must rise"),
        (
            "force range",
            '<fixed actuatorfrclimited="true" actuatorfrcrange="1 2"><joint joint="j1" coef="1"/></fixed>',
            "fixed: 'actuatorfrcrange' must rise and contain zero",
        ),
        (
            "springlength",
            '<fixed springlength="2 1"><joint joint="j1" coef="1"/></fixed>',
            "fixed: the second number of 'springlength' cannot be less than the first",
        ),
        (
            "unknown joint",
            '<fixed><joint joint="j9" coef="1"/></fixed>',
            "joint: joint names the joint 'j9', which does not exist",
        ),
    )
}
_ACTUATOR = {
    f"actuator {name}": (actuator(text), words)
    for name, text, words in (
        ("without target", "<motor/>", "motor: no transmission target: name a joint, tendon, site or body"),
        ("unknown joint", '<motor joint="j9"/>', "motor: joint names the joint 'j9', which does not exist"),
        ("unknown tendon", '<motor tendon="u"/>', "motor: tendon names the tendon 'u', which does not exist"),
        (
            "two targets",
            '<motor joint="j1" tendon="t"/>',
            "motor: an actuator can have only one transmission target; it has joint and tendon",
        ),
        ("crank without slider", '<motor cranksite="s1" cranklength="1"/>', "motor: a slider-crank needs 'slidersite'"),
        ("crank length", '<motor cranksite="s1" slidersite="s2"/>', "motor: 'cranklength' must be positive"),
        (
            "unknown reference site",
            '<motor site="s1" refsite="s9"/>',
            "motor: refsite names the site 's9', which does not exist",
        ),
        ("damping of a site", '<motor site="s1" damping="1"/>', "motor: 'damping' needs a joint or tendon"),
        ("armature of a body", '<general body="a" armature="1"/>', "general: 'armature' needs a joint or tendon"),
        ("control range", '<motor joint="j1" ctrllimited="true" ctrlrange="1 0"/>', "motor: 'ctrlrange' must rise"),
        ("force range", '<motor joint="j1" forcelimited="true" forcerange="1 0"/>', "motor: 'forcerange' must rise"),
        (
            "activation range",
            '<general joint="j1" dyntype="integrator" actlimited="true" actrange="1 0"/>',
            "general: 'actrange' must rise",
        ),
        (
            "activation range of nothing",
            '<general joint="j1" actrange="0 1"/>',
            "general: 'actrange' is given, but 'dyntype' is 'none'",
        ),
        (
            "actdim",
            '<general joint="j1" dyntype="integrator" actdim="2"/>',
            "general: 'actdim' above 1 is only for dyntype 'user' and 'dcmotor'",
        ),
        ("actdim one", '<general joint="j1" actdim="1"/>', "general: 'actdim' is 1, but the actuator has no state"),
        (
            "actdim zero",
            '<general joint="j1" dyntype="integrator" actdim="0"/>',
            "general: 'actdim' is 0, but the actuator has a state",
        ),
        (
            "inheritrange without range",
            '<position tendon="t" inheritrange="1"/>',
            "position: 'inheritrange' is given, but 't' has no range",
        ),
        (
            "inheritrange of a ball",
            '<position joint="j3" inheritrange="1"/>',
            "position: 'inheritrange' needs a hinge or slide joint",
        ),
        (
            "inheritrange of a site",
            '<position site="s1" inheritrange="1"/>',
            "position: 'inheritrange' needs a joint or tendon",
        ),
        (
            "muscle range",
            '<muscle joint="j1" range="1 .5" lengthrange="0 1"/>',
            "muscle: 'range' of a muscle must rise",
        ),
        ("muscle lmin", '<muscle joint="j1" lmin="1.5" lengthrange="0 1"/>', "muscle: a muscle needs lmin < 1 < lmax"),
        (
            "muscle vmax",
            '<muscle joint="j1" vmax="0" lengthrange="0 1"/>',
            "muscle: scale, vmax, fpmax and fvmax of a muscle must be positive",
        ),
        ("delay", '<motor joint="j1" delay=".1"/>', "motor: 'delay' needs 'nsample', the size of its buffer"),
        ("samples", '<motor joint="j1" nsample="20000000"/>', "motor: 'nsample' is at most 16777216"),
    )
}
_SENSOR = {
    f"sensor {name}": (sensor(text), words)
    for name, text, words in (
        ("unknown site", '<gyro site="s9"/>', "gyro: site names the site 's9', which does not exist"),
        ("noise", '<gyro site="s1" noise="-1"/>', "gyro: 'noise' cannot be negative"),
        ("cutoff", '<gyro site="s1" cutoff="-1"/>', "gyro: 'cutoff' cannot be negative"),
        ("interval", '<gyro site="s1" interval="-1"/>', "gyro: the period in 'interval' cannot be negative"),
        (
            "phase",
            '<gyro site="s1" interval="1 1"/>',
            "gyro: the phase in 'interval' must be greater than minus the period and at most zero",
        ),
        (
            "late phase",
            '<gyro site="s1" interval="1 -1"/>',
            "gyro: the phase in 'interval' must be greater than minus the period and at most zero",
        ),
        ("delay", '<gyro site="s1" delay="1"/>', "gyro: 'delay' needs 'nsample', the size of its buffer"),
        ("ball position", '<jointpos joint="j3"/>', "jointpos: the joint must be a slide or hinge"),
        ("hinge quaternion", '<ballquat joint="j1"/>', "ballquat: the joint must be a ball"),
        (
            "unlimited joint",
            '<jointlimitpos joint="j4"/>',
            "jointlimitpos: the joint must have limits: give it a 'range'",
        ),
        (
            "unlimited tendon",
            '<tendonlimitpos tendon="t"/>',
            "tendonlimitpos: the tendon must have limits: give it a 'range'",
        ),
        (
            "frame of a joint",
            '<framepos objtype="joint" objname="j1"/>',
            "framepos: 'objtype' must be one of body, xbody, geom, site, camera",
        ),
        (
            "frame to a joint",
            '<framepos objtype="body" objname="a" reftype="joint" refname="j1"/>',
            "framepos: 'reftype' must be one of body, xbody, geom, site, camera",
        ),
        (
            "reference without a type",
            '<framepos objtype="body" objname="a" refname="b"/>',
            "framepos: refname is written but reftype is missing",
        ),
        (
            "cutoff of a quaternion",
            '<framequat objtype="body" objname="a" cutoff="1"/>',
            "framequat: 'cutoff' cannot be used on axes and quaternions",
        ),
        (
            "cutoff of an axis",
            '<framexaxis objtype="body" objname="a" cutoff="1"/>',
            "framexaxis: 'cutoff' cannot be used on axes and quaternions",
        ),
        ("distance to itself", '<distance geom1="ga" geom2="ga"/>', "distance: the two objects must be different"),
        (
            "distance of nothing",
            '<distance geom1="ga"/>',
            "distance: exactly one of geom2, body2 must be written, not 0",
        ),
        (
            "two firsts",
            '<distance geom1="ga" body1="b" geom2="gb"/>',
            "distance: exactly one of geom1, body1 must be written, not 2",
        ),
        ("contact number", '<contact num="0"/>', "contact: num must be positive"),
        (
            "contact order",
            '<contact data="force found"/>',
            "contact: the words of data must be in the order found, force, torque, dist, pos, normal, tangent",
        ),
        ("contact with two", '<contact geom1="ga" site="s1"/>', "contact: geom1 and site exclude each other"),
        (
            "ray of two",
            '<rangefinder site="s1" camera="cam"/>',
            "rangefinder: exactly one of site, camera must be written, not 2",
        ),
        (
            "ray order",
            '<rangefinder site="s1" data="dir dist"/>',
            "rangefinder: the words of data must be in the order dist, dir, origin, point, normal, depth",
        ),
        ("user dimension", '<user dim="-1"/>', "user: 'dim' cannot be negative"),
        ("user axis", '<user dim="2" datatype="axis"/>', "user: datatype 'axis' needs dim=3"),
        ("user quaternion", '<user dim="3" datatype="quaternion"/>', "user: datatype 'quaternion' needs dim=4"),
        ("user object", '<user dim="3" objtype="body"/>', "user: objtype is written but objname is missing"),
        (
            "unknown actuator",
            '<actuatorpos actuator="none"/>',
            "actuatorpos: actuator names the actuator 'none', which does not exist",
        ),
        ("user data", '<clock user="1 2 3"/>', "clock: 'user' has 3 numbers"),
    )
}
_CUSTOM = {
    "numeric too long": (
        world("", '<custom><numeric name="n" size="1" data="1 2"/></custom>'),
        "numeric 'n': data has 2 numbers",
    ),
    "numeric empty": (
        world("", '<custom><numeric name="n"/></custom>'),
        "numeric 'n': the size must be between 1 and 500",
    ),
    "numeric too large": (
        world("", '<custom><numeric name="n" size="501"/></custom>'),
        "numeric 'n': the size of a numeric must be between 1 and 500",
    ),
    "text empty": (
        world("", '<custom><text name="n" data=""/></custom>'),
        "text 'n': data must be a text that is not empty",
    ),
    "tuple empty": (world("", '<custom><tuple name="n"/></custom>'), "tuple 'n': the tuple is empty"),
    "tuple unknown": (
        world("", '<custom><tuple name="n"><element objtype="body" objname="z"/></tuple></custom>'),
        "element: objname names the body 'z', which does not exist",
    ),
    "key qpos": (world("", '<keyframe><key qpos="1"/></keyframe>'), "key: 'qpos' has 1 numbers"),
    "key qvel": (world("", '<keyframe><key qvel="1"/></keyframe>'), "key: 'qvel' has 1 numbers"),
    "key act": (world("", '<keyframe><key act="1"/></keyframe>'), "key: 'act' has 1 numbers"),
    "key ctrl": (world("", '<keyframe><key ctrl="1"/></keyframe>'), "key: 'ctrl' has 1 numbers"),
    "key mpos": (world("", '<keyframe><key mpos="1 2 3"/></keyframe>'), "key: 'mpos' has 3 numbers"),
    "key mquat": (world("", '<keyframe><key mquat="1 0 0 0"/></keyframe>'), "key: 'mquat' has 4 numbers"),
    "repeated key": (
        world("", '<keyframe><key name="a"/><key name="a"/></keyframe>'),
        "key 'a': the key name 'a' is taken",
    ),
}
CASES: dict[str, tuple[str, str]] = {
    **_BODY,
    **_JOINT,
    **_GEOM,
    **_OTHER,
    **_CONTACT,
    **_EQUALITY,
    **_TENDON,
    **_ACTUATOR,
    **_SENSOR,
    **_CUSTOM,
}
