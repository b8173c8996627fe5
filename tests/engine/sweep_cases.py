"""One model in which every number of the dynamics matters, and what to write into it, one attribute at a time."""

BASE = """
<mujoco><option timestep="0.004" cone="elliptic" impratio="1.5" density="1.2" viscosity=".02" wind=".3 .1 0"
  magnetic="0 -.5 .1"><flag energy="enable"/></option><compiler angle="radian"/>
<worldbody><geom name="floor" type="plane" size="5 5 1" solmix=".7"/>
  <body name="base" pos="0 0 .11" gravcomp=".2"><freejoint name="free"/>
    <geom name="ball" type="sphere" pos=".001 0 .001" size=".12" friction=".6 .02 .01" condim="6" solref=".03 .9"
      margin=".02" gap=".004"/>
    <site name="bs" pos=".05 0 .05" quat="1 .1 .2 0"/>
    <body name="arm" gravcomp=".5" pos=".1 0 .05" quat="1 .1 0 .2">
      <inertial pos=".1 .01 0" mass=".4" diaginertia=".002 .003 .0025" quat="1 .2 0 0"/>
      <joint name="h" axis="0 1 .1" pos=".01 0 0" range="-.1 .1" margin=".02" damping=".2 .1 .05" stiffness="2 .3 .1"
        springref=".1" ref=".05" armature=".02" frictionloss="200" actuatorfrcrange="-.3 .3" actuatorfrclimited="true"/>
      <geom name="wing" type="ellipsoid" size=".1 .04 .02" pos=".1 0 0" quat="1 .1 0 0" fluidshape="ellipsoid"
        fluidcoef=".5 .25 1.5 1 1" contype="0" conaffinity="0"/><site name="as" pos=".15 0 .02" quat="1 0 .1 0"/>
      <body name="fore" pos=".2 0 0"><joint name="s" type="slide" axis="1 0 .2" range="-.05 .05" damping=".5"
          stiffness="20" frictionloss=".1"/>
        <geom name="rod" type="capsule" fromto="0 0 0 .1 0 0" size=".02" contype="0" conaffinity="0" density="700"/>
        <body name="tip" gravcomp=".3" pos=".12 0 0">
          <joint name="b" type="ball" range="0 .1" damping=".02" stiffness=".5"/>
          <geom name="cube" type="box" size=".03 .02 .01" pos=".02 0 0" quat="1 0 .1 0" mass=".1"
            contype="0" conaffinity="0"/>
          <site name="ts" pos=".03 0 0"/></body></body></body></body>
  <body name="other" pos="1 0 .09"><freejoint/><geom name="disc" size=".1" friction=".9"/></body>
  <body name="post" pos="0 .5 .4"><joint name="p" axis="1 0 0" damping=".1"/><geom name="bob" size=".05" pos="0 0 -.2"
      contype="0" conaffinity="0"/><site name="ps" pos="0 0 -.2"/><site name="crank" pos="0 .05 -.1"/></body>
  <body name="pend" pos="0 -1 .5"><joint name="q" axis="0 1 0"/><geom size=".06" pos=".01 0 -.3"/></body>
  <body name="link" pos="0 .4 .4"><joint axis="1 0 .1"/>
    <geom size=".04" pos="0 0 -.1" contype="0" conaffinity="0"/></body>
  <body name="rail" pos="0 .6 .1"><joint name="r" type="slide" axis="0 0 1" damping="1"/><geom name="car" size=".04"
      contype="0" conaffinity="0"/><site name="slider"/></body>
</worldbody>
<tendon>
  <fixed name="tf" range="-.01 .01" margin=".01" stiffness="3 .5 .2" damping=".2 .1 .05" frictionloss="400"
    springlength="-.02 .02" armature=".01" actuatorfrcrange="-.5 .5" actuatorfrclimited="true" limited="true">
    <joint joint="q" coef="1"/><joint joint="p" coef="-.1"/></fixed>
  <fixed name="tg"><joint joint="p" coef="1"/><joint joint="r" coef=".5"/></fixed>
  <spatial name="ts" armature=".001" stiffness="5" damping=".3" springlength=".3"><site site="bs"/><site site="ps"/>
    <pulley divisor="2"/><site site="crank"/><site site="slider"/></spatial>
</tendon>
<contact><pair name="pair" geom1="floor" geom2="disc" condim="4" friction=".8 .7 .02 .01 .01" solref=".02 .8"
  solreffriction=".03 1.1" margin=".02" gap=".003"/></contact>
<equality><connect name="ec" body1="link" body2="post" anchor=".05 0 0" solref=".006 1"/>
  <weld name="ew" body1="base" body2="other" relpose="1 0 0 1 0 0 0" torquescale=".8" anchor=".1 0 0"/>
  <joint name="ej" joint1="s" joint2="r" polycoef=".01 .5 .1 .1 .1"/>
  <tendon name="et" tendon1="ts" tendon2="tg" polycoef=".2 .5 .1 .1 .1"/></equality>
<actuator>
  <general name="am" joint="h" gear="2" ctrlrange="-.4 .4" ctrllimited="true" forcerange="-.9 .9" forcelimited="true"
    gaintype="affine" gainprm="1 .2 .1" biastype="affine" biasprm=".1 -.5 -.2" damping=".1 .05 .02" armature=".01"/>
  <general name="af" joint="s" dyntype="filter" dynprm=".05" actrange="-.2 .17" actlimited="true" gainprm="3"/>
  <general name="ax" joint="p" dyntype="filterexact" dynprm=".04" gainprm="2" actearly="true"/>
  <muscle name="mu" joint="r" lengthrange="-.5 .5" timeconst=".02 .05" range=".7 1.1" force="20" scale="150"
    lmin=".4" lmax="1.7" vmax="1.4" fpmax="1.2" fvmax="1.3" tausmooth=".2"/>
  <muscle name="mv" joint="p" lengthrange="-.5 1" lmin=".6" range=".7 1.1" force="3"/>
  <general name="at" tendon="tf" gainprm="3"/><general name="asite" site="as" refsite="ps" gear=".1 .2 .3 .1 .2 .3"/>
  <general name="ac" cranksite="crank" slidersite="slider" cranklength=".35" gear=".4"/>
  <adhesion name="ad" body="base" gain="4" ctrlrange="0 1"/>
  <motor name="ab" joint="b" gear=".1 .2 .3"/><motor name="afree" joint="free" gear=".3 .2 .1 .1 .2 .3"/>
</actuator>
<sensor><magnetometer site="ts"/><accelerometer site="ts"/><force site="as"/><touch site="bs"/>
  <jointlimitpos joint="h"/><actuatorfrc actuator="am" cutoff=".5"/><framequat objtype="site" objname="ts"/></sensor>
</mujoco>
"""

SOL = {"solref": "-300 -20", "solimp": ".8 .97 .01 .4 3"}
LIMIT = {"solreflimit": "-300 -20", "solimplimit": ".8 .97 .01 .4 3"}
FRICTION = {"solreffriction": ".03 .7", "solimpfriction": ".7 .9 .01 .3 1.5"}
# element -> attribute -> another value: the structure stays, so that one compiled program serves them all
NUMBERS = {
    "option": {
        "timestep": ".003",
        "impratio": "3",
        "gravity": ".5 -.3 -9",
        "wind": "1 -.5 .2",
        "magnetic": ".3 .2 .1",
        "density": "3",
        "viscosity": ".1",
    },
    "*[@name='h'][@axis]": {
        "pos": "0 .02 .01",
        "axis": "0 1 .5",
        "range": "-.05 .07",
        "margin": ".3",
        "damping": ".3 .2 .1",
        "stiffness": "3 .5 .4",
        "springref": ".3",
        "ref": ".1",
        "armature": ".05",
        "frictionloss": ".02",
        "actuatorfrcrange": "-.2 .25",
        **LIMIT,
        **FRICTION,
    },
    "*[@name='s'][@axis]": {
        "axis": "1 .2 0",
        "range": "-.02 .01",
        "stiffness": "30 2 1",
        "damping": "1",
        "springref": ".02",
    },
    "*[@name='b'][@type]": {
        "range": "0 .05",
        "stiffness": "1 .3 .2",
        "damping": ".04 .1 .1",
        "armature": ".01",
        **LIMIT,
    },
    "*[@name='ball']": {
        "pos": "0 0 .003",
        "friction": ".4 .04 .02",
        "solmix": "2",
        "margin": ".03",
        "gap": ".01",
        "density": "500",
        "shellinertia": "true",
        **SOL,
    },
    "*[@name='wing']": {"fluidcoef": ".7 .5 2 .5 .8", "size": ".12 .05 .02", "pos": ".12 .01 0", "quat": "1 .3 0 0"},
    "*[@name='rod']": {"density": "400", "size": ".03", "fromto": "0 0 0 .12 .01 0"},
    "*[@name='cube']": {"mass": ".2", "size": ".04 .02 .02", "quat": "1 .2 .1 0", "pos": ".03 .01 0"},
    "*[@name='base'][@pos]": {"gravcomp": ".6"},
    "*[@name='arm']": {"pos": ".12 .01 .05", "quat": "1 0 .1 .2"},
    "*[@name='arm']/inertial": {"pos": ".12 0 .01", "mass": ".6", "diaginertia": ".003 .003 .004", "quat": "1 0 .3 0"},
    "site[@name='as']": {"pos": ".1 .02 .02", "quat": "1 .2 .3 0"},
    "site[@name='crank']": {"pos": "0 .06 -.12"},
    "fixed[@name='tf']": {
        "range": "-.02 .001",
        "margin": ".2",
        "stiffness": "5 1 .3",
        "damping": ".3 .2 .1",
        "frictionloss": ".2",
        "springlength": "-.01 .005",
        "armature": ".03",
        "actuatorfrcrange": "-.1 .2",
        **LIMIT,
        **FRICTION,
    },
    "fixed[@name='tf']/joint[@joint='q']": {"coef": ".6"},
    "spatial": {"stiffness": "8 1 1", "damping": ".5 .2 .1", "springlength": ".1", "armature": ".02"},
    "pulley": {"divisor": "3"},
    "pair": {"friction": ".5 .6 .03 .01 .01", "solreffriction": "-200 -20", "margin": ".03", "gap": ".01", **SOL},
    "connect": {"anchor": ".03 .01 0", **SOL},
    "weld": {"relpose": ".9 .1 0 1 .1 0 0", "torquescale": ".3", "anchor": "0 .1 0", **SOL},
    "equality/joint": {"polycoef": ".02 .3 .2 .2 .3", **SOL},
    "equality/tendon": {"polycoef": ".1 .3 .2 .2 .3", **SOL},
    "*[@name='am']": {
        "gear": "1.5",
        "ctrlrange": "-.1 .2",
        "forcerange": "-.1 .2",
        "gainprm": "2 .3 .2",
        "biasprm": ".2 -.3 -.4",
        "damping": ".3 .1 .1",
        "armature": ".03",
    },
    "*[@name='af']": {"dynprm": ".1", "actrange": "-.05 .1", "gainprm": "2"},
    "*[@name='ax']": {"dynprm": ".08", "gainprm": "1"},
    "muscle[@name='mv']": {"lmin": ".3", "force": "-1"},
    "muscle[@name='mu']": {
        "timeconst": ".03 .08",
        "range": ".8 1.3",
        "force": "40",
        "lmax": "1.4",
        "vmax": ".7",
        "fpmax": "2",
        "fvmax": "1.9",
        "tausmooth": ".5",
        "lengthrange": "-.3 .4",
        "gear": "1.5",
    },
    "*[@name='at']": {"gear": "2", "gainprm": ".5"},
    "*[@name='asite']": {"gear": ".3 .1 .3 .2 .2 .1"},
    "*[@name='ac']": {"cranklength": ".4", "gear": ".8"},
    "adhesion": {"gain": "8"},
    "*[@name='ab']": {"gear": ".3 .1 .2"},
    "*[@name='afree']": {"gear": ".1 .2 .3 .3 .2 .1"},
    "actuatorfrc": {"cutoff": ".01"},
}
# attributes and words that change the program: a compilation each
WORDS = {
    "option": {
        "cone": ["pyramidal"],
        "integrator": ["RK4", "implicit", "implicitfast"],
        "solver": ["CG"],
        "jacobian": ["sparse", "dense"],
        "actuatorgroupdisable": ["0"],
        "noslip_iterations": ["3"],
    },
    "flag": {
        "constraint": ["disable"],
        "equality": ["disable"],
        "frictionloss": ["disable"],
        "limit": ["disable"],
        "contact": ["disable"],
        "spring": ["disable"],
        "damper": ["disable"],
        "gravity": ["disable"],
        "clampctrl": ["disable"],
        "warmstart": ["disable"],
        "actuation": ["disable"],
        "refsafe": ["disable"],
        "sensor": ["disable"],
        "eulerdamp": ["disable"],
        "override": ["enable"],
        "energy": ["disable"],
    },
    "*[@name='ball']": {"condim": ["1", "3", "4"], "priority": ["1"], "size": [".125"], "type": ["box", "ellipsoid"]},
    "*[@name='wing']": {"fluidshape": ["none"]},
    "pair": {"condim": ["1", "3", "6"]},
    "*[@name='s'][@axis]": {"limited": ["false"]},
    "*[@name='h'][@axis]": {"actuatorfrclimited": ["false"]},
    "*[@name='am']": {"ctrllimited": ["false"], "gaintype": ["fixed"], "biastype": ["none"]},
    "*[@name='af']": {
        "dyntype": ["integrator", "filterexact", "muscle"],
        "actlimited": ["false"],
        "actearly": ["true"],
    },
    "*[@name='ab']": {"jointinparent": ["b"]},
    "fixed[@name='tf']": {"limited": ["false"], "actuatorfrclimited": ["false"]},
    "spatial": {"range": ["0 .2"], "frictionloss": [".3"]},
    "*[@name='at']": {"forcerange": ["-.01 .02"]},
    "adhesion": {"forcerange": ["0 .5"]},
    "connect": {"active": ["false"]},
    "weld": {"active": ["false"]},
    "equality/joint": {"active": ["false"]},
    "equality/tendon": {"active": ["false"]},
}
