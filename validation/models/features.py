"""Models of one feature each: delays, plugins, and the sensors that measure distances, rays and touch."""

DELAYS = """
<mujoco><option timestep="0.01" integrator="{integrator}"><flag energy="enable"/></option>
<worldbody><body pos="0 0 1"><joint name="a" axis="0 1 0" damping=".3" range="-40 40"/>
  <geom type="capsule" size=".05 .2" pos="0 0 -.2"/>
  <body pos="0 0 -.4"><joint name="b" axis="0 1 0" damping=".1"/>
    <geom size=".1" pos=".05 0 -.1"/><site name="s"/></body>
</body></worldbody>
<actuator>
  <motor name="hold" joint="a" delay=".03" nsample="6"/>
  <position name="line" joint="b" kp="2" delay=".0234" nsample="6" interp="linear"/>
  <general name="cubic" joint="b" dyntype="filter" dynprm=".1" delay=".0271" nsample="6" interp="cubic"/>
  <motor name="record" joint="a" gear=".3" nsample="6"/><motor name="now" joint="b" gear=".2"/>
</actuator>
<sensor>
  <jointpos joint="a" delay=".025" nsample="6" interp="linear"/>
  <jointvel joint="b" delay=".0313" nsample="6" interp="cubic"/>
  <accelerometer site="s" delay=".04" nsample="6"/><framepos objtype="site" objname="s" nsample="6"/>
  <gyro site="s" interval=".035" nsample="6"/>
  <jointpos joint="b" interval=".025 -.01" delay=".05" nsample="6" interp="linear"/>
  <force site="s" interval=".03 -.005" delay=".031" nsample="6" interp="cubic" cutoff="3"/>
  <clock nsample="6" delay=".01"/>
  <subtreelinvel body="world" delay=".02" nsample="6"/><jointvel joint="a"/>
</sensor>
<keyframe><key name="k" time="1" qpos=".3 -.2" qvel="1 -1"/></keyframe></mujoco>
"""

CABLES = """
<mujoco><extension><plugin plugin="mujoco.elasticity.cable"/></extension>
<option timestep="0.002"/>
<worldbody>
  <composite type="cable" curve="0 s 0" count="6 1 1" size="1" offset="0 0 .6" initial="none" prefix="a">
    <plugin plugin="mujoco.elasticity.cable"><config key="twist" value="1e7"/><config key="bend" value="4e6"/></plugin>
    <joint kind="main" damping=".015"/><geom type="box" size=".1 .01 .005"/></composite>
  <composite type="cable" curve="cos(s) sin(s) 0" count="5 1 1" size="1 .5 .3" offset="1 0 .6"
    initial="ball" prefix="b">
    <plugin plugin="mujoco.elasticity.cable"><config key="twist" value="1e6"/><config key="bend" value="2e6"/>
      <config key="flat" value="true"/></plugin>
    <joint kind="main" damping=".01"/><geom type="capsule" size=".012"/></composite>
  <composite type="cable" curve="cos(s) s 0" count="4 1 1" size=".5 .5 .3" offset="2 0 .6" initial="free" prefix="c">
    <plugin plugin="mujoco.elasticity.cable"><config key="twist" value="1e6"/><config key="bend" value="3e6"/></plugin>
    <joint kind="main" damping=".01"/><geom type="cylinder" size=".01"/></composite>
</worldbody></mujoco>
"""

PIDS = """
<mujoco><extension><plugin plugin="mujoco.pid">
  <instance name="pd"><config key="kp" value="4"/><config key="kd" value=".5"/></instance>
  <instance name="pi"><config key="kp" value="3"/><config key="ki" value="20"/>
    <config key="imax" value=".3"/></instance>
  <instance name="all"><config key="kp" value="3"/><config key="ki" value="5"/><config key="kd" value=".2"/>
    <config key="slewmax" value="4"/></instance></plugin></extension>
<option timestep="0.01" actuatorgroupdisable="2"/>
<worldbody><body pos="0 0 1"><joint name="a" axis="0 1 0" damping=".3"/>
  <geom type="capsule" size=".05 .2" pos="0 0 -.2"/>
  <body pos="0 0 -.4"><joint name="b" axis="0 1 0" damping=".1"/>
    <geom size=".1" pos=".05 0 -.1" contype="0"/></body></body>
</worldbody>
<actuator>
  <plugin joint="a" plugin="mujoco.pid" instance="pd" ctrlrange="-.5 .5"/>
  <plugin joint="b" plugin="mujoco.pid" instance="pi" actdim="1" group="2"/>
  <plugin joint="b" plugin="mujoco.pid" instance="all" actdim="2" forcerange="-.7 .7"/>
  <plugin joint="a" plugin="mujoco.pid" instance="all" actdim="3" dyntype="filterexact" dynprm=".1" actearly="true"/>
  <plugin joint="b" plugin="mujoco.pid" instance="pd" actdim="1" dyntype="integrator" actrange="-.2 .2" gear=".7"/>
  <motor joint="b" gear=".1"/>
</actuator></mujoco>
"""

ALL_OF_A_RAY = "dist dir origin point normal depth"

RAYS = f"""
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 1" pos="0 0 -1"/>
    <camera name="far" pos="0 -3 1" xyaxes="1 0 0 0 .3 1" resolution="5 4" fovy="40"/>
    <camera name="lens" pos="0 3 1" xyaxes="-1 0 0 0 -.3 1" resolution="4 3" focal=".01 .02" sensorsize=".02 .01"
      principal=".001 .002"/>
    <camera name="parallel" pos="0 -3 1" xyaxes="1 0 0 0 .3 1" resolution="4 3" projection="orthographic" fovy="2"/>
    <body pos=".2 0 .3" euler="20 30 10">
      <freejoint/>
      <geom type="capsule" size=".2 .4"/>
      <geom type="box" size=".1 .2 .3" pos="1 0 0" mass="9"/>
      <site name="up" pos="0 0 .1"/>
      <site name="down" pos=".2 0 .1" euler="180 0 20"/>
      <camera name="eye" pos="0 0 .5" resolution="3 2" euler="0 90 0"/>
    </body>
    <body pos="0 .5 1.5"><joint type="ball"/><geom type="ellipsoid" size=".3 .5 .2" pos=".3 0 0"/></body>
  </worldbody>
  <sensor>
    <rangefinder site="down"/>
    <rangefinder camera="far" data="{ALL_OF_A_RAY}"/>
    <rangefinder site="up" data="{ALL_OF_A_RAY}"/>
    <rangefinder camera="lens" data="depth"/>
    <rangefinder camera="parallel" data="dist origin normal depth"/>
    <rangefinder camera="eye" data="dist point" cutoff="1.5"/>
    <rangefinder site="down" data="point normal" cutoff=".5"/>
  </sensor>
</mujoco>
"""

DISTANCE_PAIRS = (
    'geom1="ball" geom2="tube"',
    'geom1="tube" geom2="ball"',
    'body1="many" body2="other"',
    'geom1="floor" body2="many"',
    'geom1="box" geom2="crate"',
    'body1="other" geom2="floor"',
)

DISTANCES = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 1" pos="0 0 -.5"/>
    <body name="many" pos="0 0 .2"><freejoint/>
      <geom name="ball" size=".1"/><geom name="box" type="box" size=".1 .2 .15" pos=".3 0 0"/>
    </body>
    <body name="other" pos=".1 .5 .3"><freejoint/>
      <geom name="tube" type="capsule" size=".1 .2"/>
      <geom name="crate" type="box" size=".1 .1 .1" pos="0 .2 .2" euler="10 20 30"/>
    </body>
  </worldbody>
  <sensor>
    {sensors}
  </sensor>
</mujoco>
"""

TOUCH_GRID = """
<mujoco>
  <extension><plugin plugin="mujoco.sensor.touch_grid"/></extension>
  <worldbody>
    <geom type="plane" size="2 2 1"/>
    <body pos="0 0 .2" euler="5 3 0">
      <freejoint/>
      <geom type="box" size=".2 .15 .1" mass="3"/>
      <site name="pad" pos="0 0 .05"/>
      <body pos="0 0 .25"><joint type="hinge" axis="1 0 0"/><geom size=".16" pos="0 .02 0"/></body>
    </body>
    <body pos=".05 .05 .65"><freejoint/><geom size=".05"/></body>
  </worldbody>
  <sensor>
    <plugin name="one" plugin="mujoco.sensor.touch_grid" objtype="site" objname="pad" cutoff="{cutoff}">
      <config key="size" value="6 5"/><config key="fov" value="170 80"/><config key="gamma" value="{gamma}"/>
      <config key="nchannel" value="{nchannel}"/>
    </plugin>
  </sensor>
</mujoco>
"""
