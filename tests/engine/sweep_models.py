"""Small models for what the one model of `sweep_cases` cannot hold: other forms of elements, words, flags, sensors."""

from itertools import product

import lxml.etree

from validation.models.dynamics import ACTUATED

FRAMES = {"body": "limb", "xbody": "limb", "geom": "box", "site": "eye", "camera": "cam"}
FRAME_SENSORS = ("framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel")
DIRECTIONS = ("framexaxis", "frameyaxis", "framezaxis", "framequat", "ballquat")  # not cut off: an error
SOLID_SITES = {"sphere": ".4", "capsule": ".3 .3", "ellipsoid": ".3 .4 .5", "cylinder": ".3 .4", "box": ".3 .4 .5"}

# two chains of a few bodies, with all that frame sensors can be asked about
BODIES = """
<body name="limb" pos="0 0 1" quat="1 .2 .1 0"><joint name="h" axis="0 1 .2" damping=".1"/>
  <inertial pos=".05 .02 .1" mass="1.3" diaginertia=".02 .03 .025" quat="1 .3 .1 0"/>
  <geom name="box" type="box" size=".1 .15 .2" pos=".1 0 .1" euler="10 20 30"/>
  <site name="eye" pos=".1 .2 .1" quat="1 0 .4 .1"/><camera name="cam" pos=".1 .1 .3" euler="20 10 5"/>
  <body name="hand" pos=".3 0 .2"><joint name="b" type="ball" damping=".05"/>
    <geom name="ball" size=".1" pos=".1 0 .05"/><site name="palm" pos=".05 .02 0" quat="1 .1 0 .3"/></body></body>
<body name="far" pos="1 .5 1"><freejoint/><geom name="pill" type="capsule" size=".1 .2"/>
  <site name="far" pos=".1 0 .1" quat="1 .2 .3 0"/></body>
"""
OFF = '<default><geom contype="0" conaffinity="0"/></default>'


def model(sections: str, option: str = "", bodies: str = BODIES) -> str:
    return f'<mujoco><option timestep=".005">{option}</option>{OFF}<worldbody>{bodies}</worldbody>{sections}</mujoco>'


def frame_sensors() -> str:
    """Every frame sensor of every object in the frame of every other."""
    out = [
        f'<{tag} objtype="{kind}" objname="{name}"/>'
        for tag, (kind, name) in product((*FRAME_SENSORS, "framelinacc", "frameangacc"), FRAMES.items())
    ]
    for tag, (kind, name) in product(FRAME_SENSORS, FRAMES.items()):
        out.append(f'<{tag} objtype="site" objname="far" reftype="{kind}" refname="{name}"/>')
    return f"<sensor>{''.join(out)}</sensor>"


def inside_sites() -> str:
    """Objects of all kinds near sites of all shapes."""
    sites = "".join(f'<site name="{t}" type="{t}" size="{s}" pos=".1 0 1"/>' for t, s in SOLID_SITES.items())
    asked = "".join(
        f'<insidesite site="{t}" objtype="{kind}" objname="{name}"/>'
        for t, (kind, name) in product(SOLID_SITES, FRAMES.items())
    )
    return model(f"<sensor>{asked}</sensor>", bodies=BODIES + sites)


def cut_off() -> str:
    """All sensors of a model with everything, cut off: real ones on both sides, positive ones above, others not."""
    root = lxml.etree.fromstring(ACTUATED)
    for i, sensor in enumerate(s for s in root.find("sensor") if s.tag not in DIRECTIONS):
        sensor.set("cutoff", (".02", ".3")[i % 2])
    return lxml.etree.tostring(root).decode()


PAIRS = [("geom1", "box", "geom2", "pill"), ("body1", "limb", "body2", "far"), ("geom1", "ball", "body2", "far")]
DISTANCES = "".join(
    f'<{tag} {a}="{x}" {b}="{y}" cutoff="2"/>' for tag in ("distance", "normal", "fromto") for a, x, b, y in PAIRS
)
CONTACTS = """
<geom type="plane" size="3 3 .1" pos="0 0 -.02"/>
<body name="low" pos="0 0 .2"><freejoint/><geom type="box" size=".1 .1 .1"/>
  <body pos=".15 0 0"><joint axis="0 1 0" damping=".1"/><geom type="mesh" mesh="wedge"/>
    <body pos=".12 0 0"><joint axis="0 0 1"/><geom type="capsule" size=".05 .1"/></body></body></body>
<body name="high" pos="0 0 .38"><freejoint/><geom type="mesh" mesh="wedge"/></body>
<body pos="1 0 .095"><freejoint/><geom type="cylinder" size=".1 .1"/></body>
<body pos="1 0 .275"><freejoint/><geom type="box" size=".1 .08 .09"/></body>
"""
WEDGE = '<asset><mesh name="wedge" vertex="-.1 -.1 -.1  .1 -.1 -.1  .1 .1 -.1  -.1 .1 -.1  -.1 0 .1  .1 0 .1"/></asset>'

ASKED = '<sensor><contact subtree1="high" subtree2="low" data="found force dist" cutoff=".01" num="2"/></sensor>'


def touching(flag: str) -> str:
    return f"<mujoco><option><flag {flag}/></option>{WEDGE}<worldbody>{CONTACTS}</worldbody>{ASKED}</mujoco>"


SITE_FORMS = """<equality><connect site1="palm" site2="far" solref=".5 .9"/>
  <weld site1="eye" site2="far" torquescale=".4" solref=".4 1" solimp=".4 .5 .02 .4 3"/></equality>"""
SPATIAL = """<tendon>
  <spatial name="a" limited="true" range=".1 .7" margin=".3" frictionloss=".4" solreflimit=".03 .8" damping=".1"
    solimplimit=".8 .9 .01 .4 2" solreffriction=".04 .9" solimpfriction=".7 .9 .02 .3 2" stiffness="2"
    actuatorfrclimited="true" actuatorfrcrange="-.1 .1"><site site="palm"/><site site="far"/></spatial>
  <spatial name="b" limited="false" range=".1 .7" actuatorfrclimited="false">
    <site site="eye"/><site site="far"/></spatial>
  <fixed name="c" limited="false" range="-1 0" actuatorfrclimited="false"><joint joint="h" coef="1"/></fixed></tendon>
<actuator><motor tendon="a" gear="3"/><general tendon="b" gainprm="2"/><position tendon="c" kp="2"/></actuator>
<sensor><tendonactuatorfrc tendon="a"/><tendonlimitfrc tendon="a"/></sensor>"""
SHORTCUTS = """<tendon><fixed name="t"><joint joint="h" coef="1"/></fixed></tendon><actuator>
  <general joint="h" dyntype="muscle" gaintype="muscle" biastype="muscle" dynprm=".02 .05" lengthrange="-1 1"
    gainprm=".75 1.05 20 200 .5 1.6 1.5 1.3 1.2" biasprm=".75 1.05 20 200 .5 1.6 1.5 1.3 1.2"/>
  <position joint="h" kp="3" kv=".2" inheritrange="0" timeconst=".1"/><position joint="h" kp="3" dampratio=".7"/>
  <intvelocity joint="h" kp="3" kv=".3" actrange="-1 1"/><intvelocity joint="h" kp="2" dampratio=".5" actrange="-1 1"/>
  <cylinder joint="h" timeconst=".1" diameter=".3" bias=".1 .2 .1"/><damper joint="h" kv="2" ctrlrange="0 1"/>
  <velocity tendon="t" kv=".5"/><motor site="palm" refsite="eye" gear="1 0 0 0 1 0"/>
  <dcmotor joint="h" motorconst=".3 .3" resistance="1.5" input="voltage"/></actuator>"""
CAMERAS = """<sensor><framepos objtype="camera" objname="still"/><framequat objtype="camera" objname="follow"/>
  <framexaxis objtype="camera" objname="middle"/><framepos objtype="camera" objname="look"/>
  <framequat objtype="camera" objname="together"/><camprojection site="far" camera="sharp"/>
  <rangefinder site="palm" data="dist dir"/></sensor>"""
MODES = """<body pos="0 .2 1.5" quat="1 .2 0 .1"><joint axis="1 .3 0"/><geom size=".1"/>
  <camera name="still" mode="fixed" pos=".1 0 0" quat="1 .1 .2 .3"/><camera name="follow" mode="track" pos=".1 .2 .1"/>
  <camera name="middle" mode="trackcom" pos=".2 .2 .1"/>
  <camera name="look" mode="targetbody" target="far" pos=".2 0 0"/>
  <camera name="together" mode="targetbodycom" target="limb" pos="0 .1 .1"/>
  <camera name="sharp" fovy="50" resolution="300 200" pos="-1 0 .2" euler="0 -90 0"/></body>"""
USERS = '<sensor><user dim="3" needstage="pos" objtype="body" objname="limb"/><user dim="1" needstage="vel"/></sensor>'

# name -> model: one step of each equals the reference's
MODELS = {
    "frame sensors": model(frame_sensors()),
    "inside sites": inside_sites(),
    "cutoffs": cut_off(),
    "distances": model(f"<sensor>{DISTANCES}</sensor>"),
    "site forms of equalities": model(SITE_FORMS),
    "spatial tendons": model(SPATIAL),
    "actuator shortcuts": model(SHORTCUTS),
    "cameras": model(CAMERAS, bodies=BODIES + MODES),
    "user sensors": model(USERS),
    "touching": touching('contact="enable"'),
    "no parent filter": touching('filterparent="disable"'),
    "no midphase": touching('midphase="disable"'),
    "no multiccd": touching('multiccd="disable"'),
    "no island": touching('island="disable"'),
    "no nativeccd": touching('nativeccd="disable"'),
    "overridden": touching('override="enable"').replace(
        "<option>", '<option o_margin=".01" o_solref=".03 .8" o_solimp=".8 .9 .01 .4 2" o_friction=".5 .5 .01 .01 .01">'
    ),
}
