"""Models that between them use every joint, force, transmission, actuator, tendon and smooth sensor of the language."""

# every joint type, actuator kind and most sensors; nothing collides
ACTUATED = """
<mujoco><option timestep="0.005" actuatorgroupdisable="3"/><option><flag energy="enable"/></option>
<default><geom contype="0" conaffinity="0"/></default>
<worldbody>
<body name="m" mocap="true" pos="1 1 1" quat="1 2 0 0"><geom size=".1"/></body>
<body pos="0 0 1"><joint name="b" type="ball" stiffness="3 1" damping=".1"/>
  <geom type="box" size=".1 .2 .3" pos=".1 .05 0"/>
<body name="gc" gravcomp="0.7" pos="0 0 .3">
  <joint name="h" axis="1 0 0" damping=".1" armature=".1" actuatorfrcrange="-1 1" actuatorgravcomp="true"/>
  <geom type="capsule" size=".05 .1" pos="0 .1 0"/><site name="s1" pos=".1 .2 .3" euler="10 20 30"/>
<body pos="0 0 .2" gravcomp="1">
  <joint name="sl" type="slide" axis="1 0 0.2" damping=".1" range="-.1 .1" limited="true"/>
  <geom type="capsule" size=".05 .2"/><site name="s2"/>
<body pos="0 .2 0"><joint name="h2" axis="0 1 0" armature=".01"/><geom size=".06" pos=".1 0 0"/>
  <camera name="c2" pos="0 0 .1"/></body>
 </body>
 </body></body>
<body name="fb" pos="1 0 3"><freejoint name="f"/><geom type="box" size=".1 .2 .3"/><site name="s3"/></body>
<body pos="1 0 3"><joint name="m1" axis="0 1 0"/><geom type="box" size=".1 .2 .3"/><body pos="0 0 -.4">
  <joint name="m2" axis="0 1 0" stiffness="2"/><geom size=".1"/></body></body>
<camera name="c" pos="0 -2 1" xyaxes="1 0 0 0 0 1"/>
  <camera name="ct" pos="0 -2 1" mode="targetbody" target="gc"/>
  <light name="l" mode="targetbodycom" target="gc" pos="1 1 3"/><light mode="trackcom" pos="1 1 3"/>
</worldbody>
<tendon>
  <fixed name="t" range="-1 1" stiffness="1 .1" damping=".1 .1" springlength="-.01 .02" actuatorfrcrange="-1 1"
    armature=".02">
  <joint joint="m1" coef="1"/><joint joint="m2" coef="-.5"/></fixed>
<fixed name="t2" damping=".2"><joint joint="sl" coef="1"/><joint joint="h" coef="-.5"/></fixed></tendon>
<actuator><motor name="a" joint="h" gear="2" ctrlrange="-1 1" ctrllimited="true"/>
  <position joint="h2" kp="10" dampratio=".7"/><velocity joint="sl" kv="3" forcerange="-.5 .5"/>
<intvelocity joint="h2" kp="4" actrange="-1 1"/>
  <general joint="h2" dyntype="filter" dynprm=".1" gainprm="2" biastype="affine" biasprm=".1 -.2 -.3" actearly="true"/>
<general joint="h2" dyntype="filterexact" dynprm=".1" gaintype="affine" gainprm="2 1 1"  biasprm=".1 -.2 -.3"/>
  <general joint="h2" dyntype="integrator" gainprm="2" group="3"/>
<muscle joint="h" lengthrange="-.7 1" ctrllimited="true" ctrlrange="0 1"/>
  <muscle joint="m1" lengthrange="-2 3" timeconst=".02 .1" tausmooth=".2"/>
<motor joint="b" gear="1 2 3"/><motor joint="f" gear="1 2 3 4 5 6"/><general jointinparent="b" gear="1 2 3"/>
  <general jointinparent="f" gear="1 2 3 4 5 6"/><motor tendon="t" gear="2" />
  <position tendon="t" kp="3" kv="1"/>
<general joint="sl" damping="1 .2" armature=".3" gear="1.5" gainprm="1"/>
  <general joint="sl" damping="1 .2" armature=".3" gear="1.2" gainprm="1"/>
  <general tendon="t" damping=".3" armature=".1" gear="1.2"/>
<damper joint="h" kv="2" ctrlrange="0 3"/><cylinder joint="sl" timeconst=".3" area=".5" bias="1 2 3"/>
</actuator>
<sensor><accelerometer site="s1"/><velocimeter site="s1"/><gyro site="s1"/><force site="s1"/><torque site="s1"/>
  <magnetometer site="s1"/><touch site="s1"/><camprojection site="s1" camera="c"/>
<jointpos joint="h"/><jointvel joint="h"/><tendonpos tendon="t"/><tendonvel tendon="t"/>
  <actuatorpos actuator="a"/><actuatorvel actuator="a"/><actuatorfrc actuator="a" cutoff=".5"/>
  <jointactuatorfrc joint="h"/><tendonactuatorfrc tendon="t"/><ballquat joint="b"/><ballangvel joint="b"/>
<jointlimitpos joint="sl"/><jointlimitvel joint="sl"/><jointlimitfrc joint="sl"/><tendonlimitpos tendon="t"/>
  <tendonlimitvel tendon="t"/><tendonlimitfrc tendon="t"/>
<framepos objtype="body" objname="gc"/><framepos objtype="site" objname="s2" reftype="body" refname="fb"/>
  <framequat objtype="camera" objname="c2"/>
  <framequat objtype="xbody" objname="gc" reftype="site" refname="s3"/>
<framexaxis objtype="site" objname="s1"/><frameyaxis objtype="site" objname="s1" reftype="body" refname="fb"/>
  <framezaxis objtype="xbody" objname="gc"/>
<framelinvel objtype="site" objname="s1"/><framelinvel objtype="site" objname="s1" reftype="body" refname="fb"/>
  <frameangvel objtype="body" objname="gc" reftype="body" refname="fb"/>
<framelinacc objtype="site" objname="s1"/><frameangacc objtype="body" objname="gc"/><subtreecom body="gc"/>
  <subtreelinvel body="gc"/><subtreeangmom body="gc"/><subtreeangmom body="world"/>
<insidesite site="s1" objtype="body" objname="gc"/><e_potential/><e_kinetic/><clock/><user dim="2"/></sensor>
</mujoco>
"""

# transmissions that need sites or contacts
TRANSMISSIONS = """
<mujoco><option timestep="0.005" />
<worldbody><geom type="plane" size="3 3 .1"/>
<body pos="0 0 1"><joint name="b" type="ball" stiffness="3 1" damping=".1"/>
  <geom type="box" size=".1 .2 .3" pos=".1 .05 0" contype="0"/><site name="s0" pos=".1 .2 .3" euler="30 20 30"/>
<body name="gc" pos="0 0 .3"><joint name="h" axis="1 0 0" damping=".1" armature=".1"/>
  <geom type="capsule" size=".05 .1" pos="0 .1 0" contype="0"/><site name="s1" pos=".1 .2 .3" euler="10 20 30"/>
<body pos="0 0 .2"><joint name="sl" type="slide" axis="1 0 0.2" damping=".1"/>
  <geom type="capsule" size=".05 .2" contype="0"/><site name="s2" euler="30 0 0" pos=".1 0 0"/>
 </body></body></body>
<body name="fb" pos="1 0 .19"><freejoint name="f"/><geom type="box" size=".1 .2 .2"/>
  <site name="s3" euler="1 2 40"/></body>
<body name="fb2" pos="-1 0 .205"><freejoint/><geom type="sphere" size=".2" margin=".02" gap=".02"/></body>
<body pos="-2 0 1"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .1 0 0" size=".02"/>
  <site name="crank" pos=".1 0 0"/></body>
<body pos="-2 0 .7"><joint type="slide" axis="0 0 1"/><geom size=".02"/><site name="slider"/></body>
</worldbody>
<actuator><general site="s1" gear="1 2 3 .1 .2 .3"/><general site="s1" refsite="s3" gear="1 2 3 .1 .2 .3"/>
  <general site="s2" refsite="s0" gear="1 2 3 .1 .2 .3"/>
  <general cranksite="crank" slidersite="slider" cranklength=".32" gear="1.3"/>
  <general cranksite="crank" slidersite="slider" cranklength=".1"/>
<adhesion body="fb" gain="3" ctrlrange="0 1"/><adhesion body="fb2" gain="2" ctrlrange="0 1"/></actuator></mujoco>
"""

# spatial tendons with pulleys, spheres and cylinders, inside and outside
TENDONS = """
<mujoco><option timestep="0.005" />
<default><geom contype="0" conaffinity="0"/></default>
<worldbody><site name="w0" pos="0 .02 2"/><site name="w1" pos=".5 .1 2"/>
<geom name="cyl" type="cylinder" size=".08 .2" pos=".1 0 1.6" euler="90 0 0"/><site name="side1" pos=".25 0 1.6"/>
<geom name="sph" type="sphere" size=".1" pos=".5 .03 1.6"/>
<body pos="0 0 1"><joint name="b" type="ball" stiffness="3 1" damping=".1"/>
  <geom type="box" size=".1 .2 .3" pos=".1 .05 0"/><site name="s0" pos=".1 .2 .3"/>
<body name="gc" pos="0 0 .3"><joint name="h" axis="1 0 0" damping=".1" armature=".1"/>
  <geom type="capsule" size=".05 .1" pos="0 .1 0"/><site name="s1" pos=".1 .01 .1"/>
  <geom name="sph2" size=".1" pos="0 -.1 .2"/><site name="side2" pos="0.01 -.1 .2"/>
<body pos="0 0 .2"><joint name="sl" type="slide" axis="1 0 0.2" damping=".1"/>
  <geom type="capsule" size=".05 .2"/><site name="s2" pos=".1 -.3 .1"/>
 </body></body></body>
<body pos=".5 0 1.2"><joint type="slide" axis="0 0 1"/><joint type="hinge" axis="0 1 0" pos="0 .2 0"/>
  <geom size=".05"/><site name="m" pos="0 0 0.02"/></body>
</worldbody>
<tendon>
<spatial name="t0" range=".1 .5" stiffness="10" damping=".2" armature=".1"><site site="w0"/><site site="s1"/>
  <site site="m"/><pulley divisor="2"/><site site="s0"/><site site="w1"/></spatial>
<spatial name="t1" stiffness="10" damping=".2"><site site="w0"/><geom geom="cyl" sidesite="side1"/>
  <site site="s1"/></spatial>
<spatial name="t2" stiffness="10" damping=".2"><site site="w1"/><geom geom="sph"/><site site="m"/></spatial>
<spatial name="t3" stiffness="10" damping=".2"><site site="s0"/><geom geom="sph2" sidesite="side2"/>
  <site site="s2"/><pulley divisor="3"/><site site="m"/><geom geom="cyl"/><site site="w0"/></spatial>
<fixed name="t4" damping=".2"><joint joint="sl" coef="1"/><joint joint="h" coef="-.5"/></fixed></tendon>
<actuator><motor tendon="t1" gear="2"/><position tendon="t3" kp="3"/></actuator>
<sensor><tendonpos tendon="t3"/><tendonlimitpos tendon="t0"/><tendonlimitfrc tendon="t0"/></sensor>
</mujoco>
"""

# a fluid with wind: inertia boxes and ellipsoids
FLUID = """
<mujoco><option timestep="0.005" density="1.2" viscosity="0.02" wind="1 .5 0"/>
<default><geom contype="0" conaffinity="0"/></default><worldbody><body pos="0 0 3"><freejoint/>
  <geom type="box" size=".1 .2 .3" pos=".1 .05 0" euler="10 20 30"/>
<body pos="0 0 .3"><joint axis="1 0 0" damping=".1" stiffness="1 .2 .1"/>
  <joint axis="0 1 0"  damping=".1 .02 .01" stiffness="1" springref="20"/>
  <geom type="ellipsoid" size=".05 .1 .2" pos="0 0 .1" fluidshape="ellipsoid"/>
<body pos="0 0 .2"><joint type="slide" axis="1 0 0.2" damping=".1"/>
  <geom type="capsule" size=".05 .2" fluidshape="ellipsoid"/>
  <geom type="cylinder" pos=".1 0 0" size=".05 .1" fluidshape="ellipsoid" fluidcoef="0.4 0.3 1.2 0.9 1.1"/>
  </body>
 </body></body>
<body pos="1 0 3"><freejoint/><geom type="box" size=".1 .2 .3"/></body>
</worldbody></mujoco>
"""

# free bodies, alone, touching the ground, and with a child
FREE = """
<mujoco><option timestep="0.01"/>
<worldbody><body pos="0 0 3"><freejoint/><geom type="box" size=".1 .2 .3" pos=".1 .05 0" euler="10 20 30"/></body>
<body pos="1 0 3"><freejoint/><geom type="box" size=".1 .2 .3"/></body>
<body pos="2 0 .2"><freejoint/><geom type="sphere" size=".25"/></body>
<body pos="4 0 3"><freejoint/><geom type="box" size=".1 .2 .3"/><body pos="0 0 .3">
  <joint type="ball" damping=".1"/><geom type="capsule" size=".05 .2"/></body></body>
<geom type="plane" size="5 5 1"/></worldbody></mujoco>
"""

# DC motors with all combinations of controllers and states
MOTORS = """
<mujoco><option timestep="0.005"/>
<default><geom contype="0" conaffinity="0" size=".1"/><joint armature=".02" damping=".01"/></default>
<worldbody>
<body><joint name="a" axis="0 1 0"/><geom pos=".1 0 0"/></body>
<body><joint name="b" axis="0 1 0"/><geom pos=".1 0 0"/></body>
<body><joint name="c" axis="0 1 0"/><geom pos=".1 0 0"/></body>
<body><joint name="d" axis="0 1 0"/><geom pos=".1 0 0"/></body>
<body><joint name="e" axis="0 1 0"/><geom pos=".1 0 0"/></body>
</worldbody>
<actuator>
  <dcmotor joint="a" motorconst=".3 .3" resistance="1.5"/>
  <dcmotor joint="b" motorconst=".3 .3" resistance="1.5" inductance=".01 .002" cogging=".02 7 .3"
    lugre="30 .3 .05 .08 .1"/>
  <dcmotor joint="c" motorconst=".3 .3" resistance="1.5" input="position" controller="3 .5 .2 20 .5 4"
    thermal="2 10 0 .004 25 25"/>
  <dcmotor joint="d" motorconst=".3 .3" resistance="1.5" inductance=".01 .002" input="velocity"
    controller="3 .5 0 0 0 4" saturation=".2 0 100"/>
</actuator></mujoco>
"""

# contact sensors of every reduction, object and field
CONTACT_SENSORS = """
<mujoco><option timestep="0.005"/>
<worldbody><geom name="floor" type="plane" size="3 3 .1"/><site name="zone" type="box" size=".5 .5 .3" pos="0 0 .2"/>
<body name="a" pos="0 0 .19"><freejoint/><geom name="ga" type="box" size=".1 .2 .2"/>
  <body pos="0 0 .3"><joint axis="1 0 0" damping="1"/><geom name="ga2" size=".09"/></body></body>
<body name="b" pos="0.28 0 .19"><freejoint/><geom name="gb" type="sphere" size=".2"/></body>
<body name="c" pos="0.1 0 .66"><freejoint/><geom name="gc" type="sphere" size=".2"/></body>
</worldbody>
<sensor>
<contact geom1="floor" num="3" data="found force torque dist pos normal tangent"/>
<contact body1="a" num="2" reduce="mindist" data="found force dist"/>
<contact body1="a" num="2" reduce="maxforce" data="found force normal"/>
<contact subtree1="a" body2="b" num="2" reduce="netforce" data="found force torque pos normal tangent"/>
<contact subtree1="a" num="2" data="force normal"/>
<contact body2="a" num="3" data="force normal tangent"/>
<contact geom1="gb" geom2="floor" data="found force normal"/>
<contact site="zone" num="8" data="found pos"/>
<contact num="12" data="dist"/>
<contact reduce="netforce" data="force torque pos"/>
</sensor></mujoco>
"""
