"""One model in which every number of the dynamics matters, and a state of it in which everything acts."""

import mujoco
import numpy as np

from validation.stages import exact

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


def state() -> tuple[mujoco.MjModel, mujoco.MjData]:
    """MuJoCo's model and a state: limits and friction at work, contacts, tendons and equalities loaded."""
    model = exact(mujoco.MjModel.from_xml_string(BASE))
    state = mujoco.MjData(model)
    at = {"h": 0.12, "s": 0.06, "p": 0.2, "r": 0.3, "q": 0.1}
    for name, value in at.items():
        state.qpos[model.joint(name).qposadr] = value
    state.qpos[model.joint("b").qposadr + np.arange(4)] = np.array([0.97, 0.1, 0.2, 0.1]) / np.linalg.norm(
        [0.97, 0.1, 0.2, 0.1]
    )
    state.qvel[:] = 0.2 * np.random.default_rng(0).standard_normal(model.nv)
    for name, value in {"h": 2, "s": 1, "p": 0.3, "r": 0.3, "q": 1}.items():
        state.qvel[model.joint(name).dofadr] = value
    state.qvel[model.joint("b").dofadr + np.arange(3)] = 2, 4, 2
    state.act[:] = 0.1, 0.3, 0.4, 0.5
    state.ctrl[:] = 0.1 * np.arange(1, model.nu + 1)
    state.ctrl[:6] = 1.0, 1.0, 0.5, 0.45, 0.2, 0.4
    mujoco.mj_forward(model, state)
    state.qacc_warmstart[:] = state.qacc
    return model, state
