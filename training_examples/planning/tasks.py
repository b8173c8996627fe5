"""Tasks for planners: a model, random starts, costs, and a condition of success that does not mention the method.

Success is judged on positions and velocities alone, so that a simulation by MuJoCo can be judged as well.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.optim import Costs, SmoothLength, Term, contacts_from_distance, smooth_impedance

MODELS = Path(__file__).resolve().parents[2] / "models"
OWN = Path(__file__).resolve().parent / "models"
AROUND = (partial(smooth_impedance, width=0.01),) * 2  # around places where contacts begin, to two more plans


@dataclass(frozen=True)
class Task:
    """A task: `start(key, d)` displaces the data, `success(qpos, qvel)` judges rows of all steps.

    `horizon` controls, each held for `substeps` steps. `soften`: functions from the model to softer ones, for methods
    with derivatives. `guess` (nu,): the first controls, to which
    `noise` is added. A controller in closed loop plans `ahead` controls at a time, for at most `limit` seconds.
    """

    name: str
    model: Any
    costs: Costs
    horizon: int
    substeps: int
    start: Callable[[jax.Array, Any], Any]
    success: Callable[[np.ndarray, np.ndarray], bool]
    keyframe: str | None = None
    soften: tuple[Callable[[Any], Any], ...] = ()
    noise: float = 0.1
    guess: tuple[float, ...] = field(default=())
    ahead: int = 40
    limit: float = 6.0


def wrapped(angle: Any) -> Any:
    """An angle between -pi and pi."""
    return np.arctan2(np.sin(angle), np.cos(angle))


def jitter(size: float) -> Callable[[jax.Array, Any], Any]:
    """Start whose positions are displaced at random."""
    return lambda key, d: d.replace(qpos=d.qpos + size * jax.random.normal(key, d.qpos.shape, d.qpos.dtype))


def lean(d: Any) -> jax.Array:
    """Half the sine of half the angle of the pole: its square goes as 1 - cos."""
    return jnp.sin(0.5 * d.qpos[1])


CARTPOLE = Task(
    "cart-pole swing-up",
    MODELS / "cartpole.xml",
    Costs(
        (
            Term(lean, 0.08),
            Term(lambda d: d.ctrl, 0.004),
            Term(lambda d: d.qpos[0], 0.004),
            Term(lambda d: d.qvel, 4e-4),
        ),
        (Term(lean, 80.0), Term(lambda d: d.qpos[0], 10.0), Term(lambda d: d.qvel, 2.0)),
    ),
    horizon=100,
    substeps=2,
    start=jitter(0.05),
    success=lambda q, v: abs(wrapped(q[-1, 1])) < 0.15 and abs(v[-1, 1]) < 0.5 and abs(v[-1, 0]) < 0.5,
    keyframe="hanging",
)

ACROBOT_XML = """<mujoco model="acrobot"><option timestep="0.01" integrator="implicitfast"/><worldbody>
<light pos="0 -2 3"/><body pos="0 0 2"><joint name="shoulder" axis="0 1 0" damping=".05"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.6" size=".03" mass="1" contype="0" conaffinity="0"/>
  <body pos="0 0 -.6"><joint name="elbow" axis="0 1 0" damping=".05"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.6" size=".03" mass="1" contype="0" conaffinity="0"/>
    <site name="tip" pos="0 0 -.6"/></body></body></worldbody>
<actuator><motor joint="elbow" gear="8" ctrlrange="-1 1"/></actuator></mujoco>"""

ACROBOT = Task(
    "acrobot swing-up",
    ACROBOT_XML,
    Costs(
        (Term(lambda d: d.ctrl, 0.01), Term(lambda d: d.qvel, 5e-4), Term(lambda d: d.site_xpos[0, 2] - 3.2, 0.02)),
        (Term(lambda d: d.site_xpos[0] - jnp.asarray([0.0, 0.0, 3.2]), 200.0), Term(lambda d: d.qvel, 1.0)),
    ),
    horizon=150,
    substeps=2,
    start=jitter(0.05),
    success=lambda q, v: np.cos(q[-1, 0]) < -0.97 and np.cos(q[-1, 0] + q[-1, 1]) < -0.97 and np.abs(v[-1]).max() < 1.0,
    noise=0.2,
)

PUSH_XML = """<mujoco model="push"><option timestep="0.01" integrator="implicitfast"/>
<default><geom contype="0" conaffinity="0"/><joint damping="2"/></default><worldbody><light pos="0 0 3"/>
<geom type="plane" size="2 2 .1" rgba=".9 .9 .9 1"/>
<body name="finger" pos="-.15 0 .05"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
  <geom type="sphere" size=".03" mass=".3" contype="1" condim="3" friction=".3"/></body>
<body name="box" pos="0 0 .05"><joint type="slide" axis="1 0 0" frictionloss="1"/>
  <joint type="slide" axis="0 1 0" frictionloss="1"/><joint axis="0 0 1" damping=".02" frictionloss=".03"/>
  <geom type="box" size=".06 .06 .05" mass=".5" conaffinity="1" condim="3" friction=".3"/></body></worldbody>
<actuator><motor joint="fx" gear="8" ctrlrange="-1 1"/><motor joint="fy" gear="8" ctrlrange="-1 1"/></actuator>
</mujoco>"""
PUSH_XML = PUSH_XML.replace('<joint type="slide" axis="1 0 0"/>', '<joint name="fx" type="slide" axis="1 0 0"/>')
PUSH_XML = PUSH_XML.replace('<joint type="slide" axis="0 1 0"/>', '<joint name="fy" type="slide" axis="0 1 0"/>')

PUSH = Task(
    "push a box 40 cm",
    PUSH_XML,
    Costs(
        (
            Term(lambda d: d.qpos[2:4] - jnp.asarray([0.4, 0.0]), 0.2),
            Term(lambda d: d.ctrl, 0.005),
            Term(lambda d: d.qpos[4], 0.05),
            Term(lambda d: d.xpos[1, :2] - d.xpos[2, :2], 0.02, SmoothLength(0.1)),
        ),
        (
            Term(lambda d: d.qpos[2:4] - jnp.asarray([0.4, 0.0]), 200.0),
            Term(lambda d: d.qpos[4], 20.0),
            Term(lambda d: d.qvel[2:], 1.0),
        ),
    ),
    horizon=75,
    substeps=2,
    start=lambda key, d: d.replace(qpos=d.qpos.at[:2].add(jax.random.uniform(key, (2,), minval=-0.02, maxval=0.02))),
    success=lambda q, v: (
        np.hypot(*(q[-1, 2:4] - [0.4, 0])) < 0.05 and abs(q[-1, 4]) < 0.3 and np.hypot(*v[-1, 2:4]) < 0.3
    ),
    soften=(partial(contacts_from_distance, width=0.15),),
)


STANDING, JUMP = 1.12, 0.6  # height of the hopper's trunk, and by how much it must rise (m)
CROUCH = np.asarray([-0.447, 0.8, -0.353])  # angles of the hopper's leg where it stands

HOPPER = Task(
    "hopper jumps 0.6 m and lands",
    OWN / "hopper.xml",
    Costs(
        (
            Term(lambda d: d.ctrl - CROUCH, 0.01),
            Term(lambda d: d.qpos[2], 0.5),
            Term(lambda d: d.qpos[0], 0.05),
            Term(lambda d: jnp.where((d.time > 0.7) & (d.time < 0.8), d.qpos[1] - STANDING - JUMP - 0.1, 0.0), 40.0),
        ),
        (
            Term(lambda d: d.qpos[1] - STANDING, 50.0),
            Term(lambda d: d.qpos[2], 50.0),
            Term(lambda d: d.qpos[3:] - CROUCH, 5.0),
            Term(lambda d: d.qvel[:3], 0.5),
        ),
    ),
    horizon=80,
    substeps=4,
    start=jitter(0.01),
    success=lambda q, v: (
        q[:, 1].max() > STANDING + JUMP and abs(q[-1, 2]) < 0.3 and 0.85 < q[-1, 1] < 1.3 and np.hypot(*v[-1, :2]) < 1.0
    ),
    keyframe="stand",
    soften=AROUND,
)

ABOVE = np.asarray([0.12, 0.04])  # joints of the finger less those of the box, where it is at the box's upper face

PIVOT = Task(
    "finger pivots a box by 90 degrees",
    OWN / "pivot.xml",
    Costs(
        (
            Term(lambda d: d.ctrl, 0.005),
            Term(lambda d: d.qpos[4] - 0.5 * jnp.pi, 0.05),
            Term(lambda d: d.qpos[:2] - d.qpos[2:4] - ABOVE, 0.1, SmoothLength(0.1)),
        ),
        (Term(lambda d: d.qpos[4] - 0.5 * jnp.pi, 20.0), Term(lambda d: d.qvel[2:], 0.3)),
    ),
    horizon=60,
    substeps=5,
    start=lambda key, d: d.replace(qpos=d.qpos.at[:2].add(jax.random.uniform(key, (2,), minval=-0.02, maxval=0.02))),
    success=lambda q, v: abs(q[-1, 4] - 0.5 * np.pi) < 0.15 and np.abs(v[-1, 2:]).max() < 0.3,
    soften=(partial(contacts_from_distance, width=0.05),),
)

BALL = np.asarray([-0.6, 0.638])  # where the ball starts; its positions are displacements from there
OVER, WITHIN = np.asarray([1.25, 0.4]), np.asarray([1.25, 0.05])  # points of the basket

THROW = Task(
    "arm throws a ball into a basket",
    OWN / "throw.xml",
    Costs(
        (
            Term(lambda d: d.ctrl, 0.005),
            Term(lambda d: jnp.where(jnp.abs(d.time - 1.15) < 0.02, d.qpos[2:4] + BALL - OVER, 0.0), 40.0),
        ),
        (Term(lambda d: d.qpos[2:4] + BALL - WITHIN, 60.0), Term(lambda d: d.qvel[:2], 0.01)),
    ),
    horizon=80,
    substeps=4,
    start=lambda key, d: d.replace(qpos=d.qpos.at[2].add(jax.random.uniform(key, (), minval=-0.01, maxval=0.01))),
    success=lambda q, v: 1.1 < q[-1, 2] - 0.6 < 1.4 and q[-1, 3] + 0.638 < 0.15,
    soften=AROUND,
)

FLIP = Task(
    "arm flips a box",
    OWN / "flip.xml",
    Costs(
        (
            Term(lambda d: d.ctrl, 0.005),
            Term(lambda d: d.qvel[:3], 1e-4),
        ),
        (
            Term(lambda d: d.qpos[5] - jnp.pi, 30.0),
            Term(lambda d: d.qpos[:3], 2.0),
            Term(lambda d: d.qpos[3], 50.0),
            Term(lambda d: d.qvel[3:], 1.0),
        ),
    ),
    horizon=60,
    substeps=4,
    start=lambda key, d: d.replace(qpos=d.qpos.at[3].add(jax.random.uniform(key, (), minval=-0.01, maxval=0.01))),
    success=lambda q, v: abs(abs(q[-1, 5]) - np.pi) < 0.2 and abs(q[-1, 3]) < 0.3 and np.abs(v[-1, 3:]).max() < 0.5,
    soften=AROUND,
)


def upright(d: Any) -> jax.Array:
    """Cosine of the angle between a free body's z-axis and the vertical, less one."""
    return -2.0 * (d.qpos[4] ** 2 + d.qpos[5] ** 2)


def heights_of_up(q: np.ndarray) -> np.ndarray:
    """The same cosine of rows of positions."""
    return 1 - 2 * (q[:, 4] ** 2 + q[:, 5] ** 2)


POSE = np.asarray([0.05, 0.75, -1.45] * 4)  # of a standing quadruped

BACK = Task(
    "quadruped stands up from its back",
    OWN / "quadruped.xml",
    Costs(
        (
            Term(upright, 0.2),
            Term(lambda d: d.qpos[2] - 0.32, 0.5),
            Term(lambda d: d.ctrl - POSE, 0.002),
            Term(lambda d: d.qvel, 5e-5),
        ),
        (
            Term(upright, 30.0),
            Term(lambda d: d.qpos[2] - 0.32, 200.0),
            Term(lambda d: d.qpos[7:] - POSE, 0.5),
            Term(lambda d: d.qvel[:6], 0.2),
        ),
    ),
    horizon=100,
    substeps=4,
    start=jitter(0.02),
    success=lambda q, v: heights_of_up(q[-1:])[0] > 0.9 and q[-1, 2] > 0.22 and np.abs(v[-1, :3]).max() < 0.5,
    keyframe="back",
    soften=AROUND,
)

HUMANOID = Task(
    "humanoid stands up",
    OWN / "humanoid.xml",
    Costs(
        (
            Term(lambda d: d.qpos[1] - 0.9, 2.0),
            Term(lambda d: d.qpos[2], 1.0),
            Term(lambda d: d.ctrl, 0.002),
            Term(lambda d: d.qvel, 2e-4),
            Term(lambda d: d.qpos[3:], 0.02),
        ),
        (
            Term(lambda d: d.qpos[1] - 0.9, 100.0),
            Term(lambda d: d.qpos[2], 40.0),
            Term(lambda d: d.qpos[3:], 5.0),
            Term(lambda d: d.qvel[:3], 2.0),
            Term(lambda d: d.qvel, 0.04),
        ),
    ),
    horizon=150,
    substeps=5,
    start=jitter(0.02),
    success=lambda q, v: q[-1, 1] > 0.8 and abs(q[-1, 2]) < 0.3 and np.abs(v[-1, :3]).max() < 0.5,
    keyframe="lying",
    ahead=30,
    soften=AROUND,
)

TOP, EDGE = 0.15, 0.45  # height of the step and where it begins (m)


def above_the_ground(d: Any) -> jax.Array:
    """Height of the trunk less that of standing, on the floor or on the step."""
    return d.qpos[2] - 0.32 - TOP * jax.nn.sigmoid((d.qpos[0] - EDGE + 0.1) / 0.08)


def aside(d: Any) -> jax.Array:
    """Distance from the path, and sine of the heading."""
    return jnp.stack([d.qpos[1], 2 * (d.qpos[3] * d.qpos[6] + d.qpos[4] * d.qpos[5])])


STEP = Task(
    "quadruped climbs a step of 15 cm",
    OWN / "step.xml",
    Costs(
        (
            Term(lambda d: d.qpos[0] - 1.0, 1.0, SmoothLength(0.2)),
            Term(above_the_ground, 4.0),
            Term(upright, 1.0),
            Term(aside, 1.0),
            Term(lambda d: d.ctrl - POSE, 0.01),
            Term(lambda d: d.qvel, 1e-4),
        ),
        (
            Term(lambda d: d.qpos[0] - 1.0, 20.0, SmoothLength(0.2)),
            Term(above_the_ground, 50.0),
            Term(upright, 20.0),
            Term(lambda d: d.qpos[7:] - POSE, 0.5),
            Term(lambda d: d.qvel[:6], 0.2),
        ),
    ),
    horizon=150,
    substeps=4,
    start=jitter(0.01),
    success=lambda q, v: (
        heights_of_up(q[-1:])[0] > 0.9 and q[-1, 0] > 0.8 and q[-1, 2] > TOP + 0.22 and np.abs(v[-1, :3]).max() < 0.5
    ),
    keyframe="stand",
    guess=tuple(map(float, POSE)),
    soften=AROUND,
)

HOLD = np.asarray([0.0, 0.25, 0.35] * 4)  # controls of the hand that holds a cube
REST = np.asarray([0.0, 0.0, 0.345])  # where the cube lies


def left_to_turn(d: Any) -> jax.Array:
    """Rotation of the cube that is left until it is turned by 90 degrees about the vertical (rad, of small ones)."""
    w, x, y, z = d.qpos[15:19]
    c = jnp.sqrt(0.5)
    vector = 2 * c * jnp.stack([x + y, y - x, z - w])
    return jnp.where(w + z < 0, -vector, vector)


def is_turned(q: np.ndarray, v: np.ndarray) -> bool:
    """Whether the cube lies on the palm, turned by 90 degrees to within 0.2, at rest."""
    w, x, y, z = q[-1, 15:19]
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y**2 + z**2))
    lies = 1 - 2 * (x**2 + y**2) > 0.95 and np.hypot(*q[-1, 12:14]) < 0.03
    return abs(yaw - 0.5 * np.pi) < 0.2 and lies and np.abs(v[-1, 12:15]).max() < 0.1


CUBE = Task(
    "hand turns a cube by 90 degrees",
    MODELS / "hand.xml",
    Costs(
        (
            Term(left_to_turn, 1.0),
            Term(lambda d: d.qpos[12:15] - REST, 1000.0),
            Term(lambda d: d.ctrl - HOLD, 0.02),
            Term(lambda d: d.qvel, 1e-4),
        ),
        (
            Term(left_to_turn, 20.0),
            Term(lambda d: d.qpos[12:15] - REST, 10000.0),
            Term(lambda d: d.qvel[12:15], 0.2),
        ),
    ),
    horizon=100,
    substeps=4,
    start=jitter(0.002),
    success=is_turned,
    keyframe="hold",
    guess=tuple(map(float, HOLD)),
    ahead=30,
    soften=AROUND,
)

LINK = 0.06  # length of a link of the strip of cloth (m)


def strip(q: np.ndarray) -> np.ndarray:
    """Positions (9, 2) of the joints and ends of the strip in the x-z plane, from one row of positions."""
    angles = np.cumsum(q[4:])
    links = -LINK * np.stack([np.sin(angles), np.cos(angles)], axis=1)
    return np.array([q[2], 0.9 + q[3]]) + np.concatenate([np.zeros((1, 2)), np.cumsum(links, axis=0)])


def hangs_on_the_bar(q: np.ndarray, v: np.ndarray) -> bool:
    """Whether the strip lies on the bar at rest, an end on either side, more than 3 cm away from the gripper."""
    at = strip(q[-1])
    gripper = q[-1, :2] + [0.0, 0.92]
    ends = sorted([at[0], at[-1]], key=lambda x: x[0])
    over = ends[0][0] < 0.35 < ends[1][0] and max(ends[0][1], ends[1][1]) < 0.58 and at[:, 1].min() > 0.1
    return over and np.hypot(*(at - gripper).T).min() > 0.03 and np.abs(v[-1, 2:4]).max() < 0.3


CLOTH = Task(
    "gripper lays a strip of cloth over a bar",
    OWN / "cloth.xml",
    Costs(
        (
            Term(lambda d: d.sensordata[3:5] - jnp.asarray([0.35, 0.0]), 0.02),
            Term(lambda d: d.qvel[:2], 1e-3),
        ),
        (
            Term(lambda d: d.sensordata[3:6] - jnp.asarray([0.35, 0.0, 0.65]), 200.0),
            Term(lambda d: d.sensordata[:3] - jnp.asarray([0.40, 0.0, 0.44]), 40.0),
            Term(lambda d: d.sensordata[6:] - jnp.asarray([0.30, 0.0, 0.44]), 40.0),
            Term(lambda d: d.qpos[:2] - jnp.asarray([0.6, -0.3]), 20.0),
            Term(lambda d: d.qvel[:4], 0.5),
        ),
    ),
    horizon=75,
    substeps=8,
    start=lambda key, d: d.replace(qpos=d.qpos.at[4:].add(0.03 * jax.random.normal(key, (8,)))),
    success=hangs_on_the_bar,
    keyframe="hang",
    noise=0.05,
    soften=AROUND,
)

TASKS = {
    "cartpole": CARTPOLE,
    "acrobot": ACROBOT,
    "push": PUSH,
    "hopper": HOPPER,
    "pivot": PIVOT,
    "throw": THROW,
    "flip": FLIP,
    "back": BACK,
    "cloth": CLOTH,
    "humanoid": HUMANOID,
    "step": STEP,
    "cube": CUBE,
}
