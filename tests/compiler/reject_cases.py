"""Models that are wrong, by what is wrong with them; MuJoCo rejects every one."""

from tests.compiler.cases import ARM, head, world

_ASSETS = '<asset><mesh name="k" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>'
'<hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/></asset>'


def sensor(text: str) -> str:
    """A model with one sensor."""
    return world(ARM, f'<tendon><fixed name="t"><joint joint="j1" coef="1"/></fixed></tendon><sensor>{text}</sensor>')


def actuator(text: str) -> str:
    """A model with one actuator."""
    return world(
        ARM, f'<tendon><fixed name="t"><joint joint="j1" coef="1"/></fixed></tendon><actuator>{text}</actuator>'
    )


def tendon(text: str) -> str:
    """A model with one tendon."""
    return world(ARM, f"<tendon>{text}</tendon>")


_BODY = {
    "joint in the world": world('<joint/><geom size="1"/>'),
    "no mass": world("<body><joint/></body>"),
    "geom without mass": world('<body><joint/><geom size=".1" mass="0"/></body>'),
    "negative mass": world('<body><joint/><geom size=".1" mass="-1"/></body>'),
    "negative density": world('<body><joint/><geom size=".1" density="-1"/></body>'),
    "negative inertia": world('<body><joint/><inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/></body>'),
    "impossible inertia": world('<body><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/></body>'),
    "full and diagonal": world(
        '<body><inertial pos="0 0 0" mass="1" diaginertia="1 1 1" fullinertia="1 1 1 0 0 0"/></body>'
    ),
    "full and turned": world('<body><inertial pos="0 0 0" mass="1" euler="1 0 0" fullinertia="1 1 1 0 0 0"/></body>'),
    "full not positive": world('<body><inertial pos="0 0 0" mass="1" fullinertia="1 1 1 2 0 0"/></body>'),
    "seven dofs": world(
        '<body><joint type="slide"/><joint type="slide"/>' + "<joint/>" * 5 + '<geom size=".1"/></body>'
    ),
    "hinge after ball": world('<body><joint type="ball"/><joint/><geom size=".1"/></body>'),
    "two free joints": world('<body><freejoint/><joint/><geom size=".1"/></body>'),
    "free below": world('<body><body><freejoint/><geom size=".1"/></body></body>'),
    "full and diagonal in two inertials": world(
        '<body><joint/><frame><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></frame>'
        '<inertial pos="0 0 0" mass="1" fullinertia="1 2 2 .1 0 0"/></body>'
    ),
    "unknown element in a frame": world("<frame><foo/></frame>"),
    "unknown material of a used mesh": world(
        '<geom type="mesh" mesh="k"/>', '<asset><mesh name="k" vertex="0 0 0 1 0 0 0 1 0 0 0 1" material="no"/></asset>'
    ),
    "mocap with joint": world('<body mocap="true"><joint/><geom size=".1"/></body>'),
    "mocap below": world('<body><body mocap="true"><geom size=".1"/></body></body>'),
    "world with inertia": world('<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'),
    "user too long": world('<body user="1 2"/>', head='<size nuser_body="1"/>'),
    "sleep in a child": world(
        '<body><joint/><geom size=".1"/><body sleep="never"><joint/><geom size=".1"/></body></body>'
    ),
    "sleep in a static body": world('<body sleep="never"/>'),
    "repeated name": world('<body name="a"/><body name="a"/>'),
    "body called world": world('<body name="world"/>'),
}
_JOINT = {
    f"joint {name}": world(f'<body><joint {attrs}/><geom size=".1"/></body>', head=head(settings))
    for name, attrs, settings in (
        ("range falls", 'range="1 -1" limited="true"', ""),
        ("ball range", 'type="ball" range="1 2"', ""),
        ("force range falls", 'actuatorfrcrange="1 -1" actuatorfrclimited="true"', ""),
        ("no autolimits", 'range="-1 1"', 'autolimits="false"'),
        ("no autolimits for forces", 'actuatorfrcrange="-1 1"', 'autolimits="false"'),
        ("zero axis", 'axis="0 0 0"', ""),
        ("springdamper", 'springdamper="1 0"', ""),
        ("negative springdamper", 'springdamper="-1 1"', ""),
    )
}
_GEOM = {
    f"geom {name}": world(f"<body><joint/><geom size='.1'/><geom {attrs}/></body>", _ASSETS)
    for name, attrs in (
        ("without size", ""),
        ("sphere size", 'size="0"'),
        ("capsule size", 'type="capsule" size="1"'),
        ("cylinder size", 'type="cylinder" size="1 -1"'),
        ("ellipsoid size", 'type="ellipsoid" size="1 1"'),
        ("box size", 'type="box" size="1 1 0"'),
        ("plane moves", 'type="plane" size="1 1 1"'),
        ("condim", 'size=".1" condim="2"'),
        ("fromto sphere", 'size=".1" fromto="0 0 0 1 1 1"'),
        ("fromto point", 'type="capsule" size=".1" fromto="1 0 0 1 0 0"'),
        ("fromto and pos", 'type="capsule" size=".1" fromto="0 0 0 1 0 0" pos="1 0 0"'),
        ("no mesh", 'type="mesh"'),
        ("unknown mesh", 'type="mesh" mesh="j"'),
        ("no hfield", 'type="hfield"'),
        ("hfield in a sphere", 'size=".1" hfield="h"'),
        ("unknown hfield", 'type="hfield" hfield="i"'),
        ("unknown material", 'size=".1" material="m"'),
        ("fromto mesh", 'type="capsule" size=".1" mesh="k" fromto="0 0 0 1 1 1"'),
        ("shell mesh", 'type="mesh" mesh="k" shellinertia="true"'),
        ("axisangle", 'size=".1" axisangle="0 0 0 1"'),
        ("xyaxes", 'size=".1" xyaxes="1 0 0 2 0 0"'),
        ("zaxis", 'size=".1" zaxis="0 0 0"'),
        ("nan size", 'size="nan"'),
    )
}
_OTHER = {
    "plane size": world('<geom type="plane" size="1 1 0"/>'),
    "euler letters": world('<body euler="1 2 3"/>', head=head('eulerseq="xya"')),
    "euler length": world('<body euler="1 2 3"/>', head=head('eulerseq="xy"')),
    "global coordinates": world("", head=head('coordinate="global"')),
    "site mesh": world('<site type="mesh"/>'),
    "site plane": world('<site type="plane" size="1 1 1"/>'),
    "site size": world('<site size="-1"/>'),
    "camera target": world('<camera target="nobody"/>'),
    "camera fovy": world('<camera fovy="180"/>'),
    "camera focal": world('<camera focal="1 1"/>'),
    "camera resolution": world('<camera sensorsize="1 1" resolution="0 0"/>'),
    "light target": world('<light target="nobody"/>'),
    "light direction": world('<light dir="0 0 0"/>'),
    "light texture": world('<light texture="nothing"/>'),
    "material texture": world("", '<asset><material name="m" texture="nothing"/></asset>'),
    "nameless material": world("", "<asset><material/></asset>"),
    "nameless mesh": world("", '<asset><mesh vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>'),
    "missing mesh file": world("", '<asset><mesh file="nowhere.stl"/></asset>'),
    "missing texture file": world("", '<asset><texture type="2d" file="nowhere.png"/></asset>'),
    "missing height field file": world("", '<asset><hfield name="h" size="1 1 1 1" file="nowhere.png"/></asset>'),
    "extent": world("", head='<statistic extent="0"/>'),
    "memory and njmax": world("", head='<size memory="1M" njmax="3"/>'),
    "nuser": world("", head='<size nuser_geom="-2"/>'),
    "group disable": world("", head='<option actuatorgroupdisable="31"/>'),
}
_CONTACT = {
    "pair without geom": world(ARM, '<contact><pair geom1="ga"/></contact>'),
    "pair of unknown geoms": world(ARM, '<contact><pair geom1="ga" geom2="gz"/></contact>'),
    "pair condim": world(ARM, '<contact><pair geom1="ga" geom2="gb" condim="5"/></contact>'),
    "exclude unknown body": world(ARM, '<contact><exclude body1="a" body2="z"/></contact>'),
}
_EQUALITY = {
    f"equality {name}": world(ARM, f"<equality>{text}</equality>")
    for name, text in (
        ("unknown body", '<connect body1="z" anchor="0 0 0"/>'),
        ("no anchor", '<connect body1="a"/>'),
        ("mixed", '<connect body1="a" anchor="0 0 0" site1="s1"/>'),
        ("one site", '<connect site1="s1"/>'),
        ("same body", '<weld body1="a" body2="a"/>'),
        ("world alone", '<weld body1="world"/>'),
        ("weld of nothing", '<weld anchor="0 0 0"/>'),
        ("ball joint", '<joint joint1="j3"/>'),
        ("unknown joint", '<joint joint1="j1" joint2="j9"/>'),
        ("same joint", '<joint joint1="j1" joint2="j1"/>'),
        ("unknown tendon", '<tendon tendon1="t"/>'),
    )
}
_TENDON = {
    f"tendon {name}": tendon(text)
    for name, text in (
        ("empty", "<spatial/>"),
        ("one site", '<spatial><site site="s1"/></spatial>'),
        ("unknown site", '<spatial><site site="s1"/><site site="s9"/></spatial>'),
        ("repeated site", '<spatial><site site="s1"/><site site="s1"/></spatial>'),
        ("ends with pulley", '<spatial><site site="s1"/><site site="s2"/><pulley divisor="1"/></spatial>'),
        (
            "two pulleys",
            '<spatial><site site="s1"/><site site="s2"/><pulley divisor="1"/><pulley divisor="1"/></spatial>',
        ),
        ("lonely site", '<spatial><site site="s1"/><site site="s2"/><pulley divisor="1"/><site site="s1"/></spatial>'),
        (
            "negative pulley",
            '<spatial><site site="s1"/><site site="s2"/><pulley divisor="-1"/><site site="s1"/>'
            '<site site="s2"/></spatial>',
        ),
        ("box", '<spatial><site site="s1"/><geom geom="gb"/><site site="s2"/></spatial>'),
        ("geom at the end", '<spatial><site site="s1"/><site site="s2"/><geom geom="gc"/></spatial>'),
        ("unknown side site", '<spatial><site site="s1"/><geom geom="gc" sidesite="q"/><site site="s2"/></spatial>'),
        ("wrap with armature", '<spatial armature="1"><site site="s1"/><geom geom="gc"/><site site="s2"/></spatial>'),
        ("negative armature", '<spatial armature="-1"><site site="s1"/><site site="s2"/></spatial>'),
        ("width", '<spatial width="0"><site site="s1"/><site site="s2"/></spatial>'),
        ("range", '<fixed limited="true" range="1 0"><joint joint="j1" coef="1"/></fixed>'),
        ("force range", '<fixed actuatorfrclimited="true" actuatorfrcrange="1 2"><joint joint="j1" coef="1"/></fixed>'),
        ("springlength", '<fixed springlength="2 1"><joint joint="j1" coef="1"/></fixed>'),
        ("unknown joint", '<fixed><joint joint="j9" coef="1"/></fixed>'),
    )
}
_ACTUATOR = {
    f"actuator {name}": actuator(text)
    for name, text in (
        ("without target", "<motor/>"),
        ("unknown joint", '<motor joint="j9"/>'),
        ("unknown tendon", '<motor tendon="u"/>'),
        ("two targets", '<motor joint="j1" tendon="t"/>'),
        ("crank without slider", '<motor cranksite="s1" cranklength="1"/>'),
        ("crank length", '<motor cranksite="s1" slidersite="s2"/>'),
        ("unknown reference site", '<motor site="s1" refsite="s9"/>'),
        ("damping of a site", '<motor site="s1" damping="1"/>'),
        ("armature of a body", '<general body="a" armature="1"/>'),
        ("control range", '<motor joint="j1" ctrllimited="true" ctrlrange="1 0"/>'),
        ("force range", '<motor joint="j1" forcelimited="true" forcerange="1 0"/>'),
        ("activation range", '<general joint="j1" dyntype="integrator" actlimited="true" actrange="1 0"/>'),
        ("activation range of nothing", '<general joint="j1" actrange="0 1"/>'),
        ("actdim", '<general joint="j1" dyntype="integrator" actdim="2"/>'),
        ("actdim one", '<general joint="j1" actdim="1"/>'),
        ("actdim zero", '<general joint="j1" dyntype="integrator" actdim="0"/>'),
        ("inheritrange without range", '<position tendon="t" inheritrange="1"/>'),
        ("inheritrange of a ball", '<position joint="j3" inheritrange="1"/>'),
        ("inheritrange of a site", '<position site="s1" inheritrange="1"/>'),
        ("muscle range", '<muscle joint="j1" range="1 .5" lengthrange="0 1"/>'),
        ("muscle lmin", '<muscle joint="j1" lmin="1.5" lengthrange="0 1"/>'),
        ("muscle vmax", '<muscle joint="j1" vmax="0" lengthrange="0 1"/>'),
        ("delay", '<motor joint="j1" delay=".1"/>'),
        ("samples", '<motor joint="j1" nsample="20000000"/>'),
    )
}
_SENSOR = {
    f"sensor {name}": sensor(text)
    for name, text in (
        ("unknown site", '<gyro site="s9"/>'),
        ("noise", '<gyro site="s1" noise="-1"/>'),
        ("cutoff", '<gyro site="s1" cutoff="-1"/>'),
        ("interval", '<gyro site="s1" interval="-1"/>'),
        ("phase", '<gyro site="s1" interval="1 1"/>'),
        ("late phase", '<gyro site="s1" interval="1 -1"/>'),
        ("delay", '<gyro site="s1" delay="1"/>'),
        ("ball position", '<jointpos joint="j3"/>'),
        ("hinge quaternion", '<ballquat joint="j1"/>'),
        ("unlimited joint", '<jointlimitpos joint="j4"/>'),
        ("unlimited tendon", '<tendonlimitpos tendon="t"/>'),
        ("frame of a joint", '<framepos objtype="joint" objname="j1"/>'),
        ("frame to a joint", '<framepos objtype="body" objname="a" reftype="joint" refname="j1"/>'),
        ("reference without a type", '<framepos objtype="body" objname="a" refname="b"/>'),
        ("cutoff of a quaternion", '<framequat objtype="body" objname="a" cutoff="1"/>'),
        ("cutoff of an axis", '<framexaxis objtype="body" objname="a" cutoff="1"/>'),
        ("distance to itself", '<distance geom1="ga" geom2="ga"/>'),
        ("distance of nothing", '<distance geom1="ga"/>'),
        ("two firsts", '<distance geom1="ga" body1="b" geom2="gb"/>'),
        ("contact number", '<contact num="0"/>'),
        ("contact order", '<contact data="force found"/>'),
        ("contact with two", '<contact geom1="ga" site="s1"/>'),
        ("ray of two", '<rangefinder site="s1" camera="cam"/>'),
        ("ray order", '<rangefinder site="s1" data="dir dist"/>'),
        ("user dimension", '<user dim="-1"/>'),
        ("user axis", '<user dim="2" datatype="axis"/>'),
        ("user quaternion", '<user dim="3" datatype="quaternion"/>'),
        ("user object", '<user dim="3" objtype="body"/>'),
        ("unknown actuator", '<actuatorpos actuator="none"/>'),
        ("user data", '<clock user="1 2 3"/>'),
    )
}
_SENSOR["sensor user data"] = _SENSOR["sensor user data"].replace("<mujoco>", '<mujoco><size nuser_sensor="2"/>')
_CUSTOM = {
    "numeric too long": world("", '<custom><numeric name="n" size="1" data="1 2"/></custom>'),
    "numeric empty": world("", '<custom><numeric name="n"/></custom>'),
    "numeric too large": world("", '<custom><numeric name="n" size="501"/></custom>'),
    "text empty": world("", '<custom><text name="n" data=""/></custom>'),
    "tuple empty": world("", '<custom><tuple name="n"/></custom>'),
    "tuple unknown": world("", '<custom><tuple name="n"><element objtype="body" objname="z"/></tuple></custom>'),
    "key qpos": world("", '<keyframe><key qpos="1"/></keyframe>'),
    "key qvel": world("", '<keyframe><key qvel="1"/></keyframe>'),
    "key act": world("", '<keyframe><key act="1"/></keyframe>'),
    "key ctrl": world("", '<keyframe><key ctrl="1"/></keyframe>'),
    "key mpos": world("", '<keyframe><key mpos="1 2 3"/></keyframe>'),
    "key mquat": world("", '<keyframe><key mquat="1 0 0 0"/></keyframe>'),
    "repeated key": world("", '<keyframe><key name="a"/><key name="a"/></keyframe>'),
}
CASES: dict[str, str] = {
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
