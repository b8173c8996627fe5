"""Tasks that come with jaxsim: their classes, configs and names in the registry."""

import math
from dataclasses import replace
from functools import partial

from jaxsim.envs.locomotion import LocomotionConfig, make_locomotion
from jaxsim.envs.registry import register
from jaxsim.envs.tasks.cartpole import Cartpole, CartpoleConfig, CartpoleVisionConfig
from jaxsim.envs.tasks.joystick import Joystick, JoystickConfig
from jaxsim.envs.tasks.legged import Legged, LeggedConfig
from jaxsim.envs.tasks.manipulation import ArmConfig, HandConfig, Pick, Reach, Reorient
from jaxsim.envs.tasks.planar import Planar, PlanarConfig
from jaxsim.envs.tasks.stub import Stub, StubConfig
from jaxsim.envs.tasks.tabletop import Push, PushConfig, Reacher, ReacherConfig
from jaxsim.envs.vision import make_vision

HUMANOID = LeggedConfig(
    model="humanoid.xml", ctrl_dt=0.025, height=0.88, torso=("pelvis", "chest"), posture=0.3, fail_height=0.55
)
TASKS = {
    "cartpole_balance": (Cartpole, CartpoleConfig()),
    "cartpole_swingup": (Cartpole, CartpoleConfig(swing_up=True, spread=0.3)),
    "cartpole_balance_vision": (partial(make_vision, Cartpole), CartpoleVisionConfig()),
    "cartpole_swingup_vision": (
        partial(make_vision, Cartpole),
        CartpoleVisionConfig(
            swing_up=True, spread=math.pi, episode_length=150, camera="side", reach=5.0, size=(32, 32), samples=2
        ),
    ),
    "hopper_stand": (
        Planar,
        PlanarConfig(model="hopper.xml", ctrl_dt=0.01, speed=0.0, height=1.0, fail_height=0.6),
    ),
    "hopper_hop": (
        Planar,
        PlanarConfig(model="hopper.xml", ctrl_dt=0.02, sim_dt=0.005, speed=3.0, height=0.95, fail_height=0.6),
    ),
    "walker_stand": (Planar, PlanarConfig(model="walker.xml", ctrl_dt=0.025, speed=0.0, height=1.2)),
    "walker_walk": (Planar, PlanarConfig(model="walker.xml", ctrl_dt=0.025, speed=1.0, height=1.2)),
    "walker_run": (Planar, PlanarConfig(model="walker.xml", ctrl_dt=0.025, speed=6.0, height=1.2)),
    "runner_run": (
        Planar,
        PlanarConfig(model="runner.xml", ctrl_dt=0.02, speed=6.0, height=0.45, upright=False),
    ),
    "ant_run": (
        Legged,
        LeggedConfig(
            model="ant.xml", ctrl_dt=0.025, sim_dt=0.025 / 3, speed=8.0, height=0.4, calm=0.1, fail_height=0.22
        ),
    ),
    "quadruped_joystick": (Joystick, JoystickConfig()),
    "quadruped_joystick_rough": (
        Joystick,
        JoystickConfig(model="quadruped_rough.xml", roughness=0.06),
    ),
    "quadruped_locomotion": (
        make_locomotion,
        LocomotionConfig(model="quadruped.xml", sim_dt=0.005, collisions="feet"),
    ),
    "quadruped_locomotion_rough": (
        make_locomotion,
        LocomotionConfig(model="quadruped.xml", sim_dt=0.005, collisions="feet", terrain=0.4, levels=10),
    ),
    "humanoid_stand": (Legged, replace(HUMANOID, speed=0.0)),
    "humanoid_walk": (Legged, HUMANOID),
    "humanoid_run": (Legged, replace(HUMANOID, speed=4.0)),
    "arm_reach": (Reach, ArmConfig()),
    "cube_pick": (Pick, ArmConfig(sim_dt=0.008, step_size=0.05, held=0.25)),
    "hand_reorient": (Reorient, HandConfig()),
    "reacher_vision": (partial(make_vision, Reacher), ReacherConfig()),
    "push_vision": (partial(make_vision, Push), PushConfig()),
    "stub": (Stub, StubConfig()),
}

for _name, (_make, _config) in TASKS.items():
    register(_name, _make, _config)
