"""Repeated fits to made-up data of known truth: how often 95 % intervals hold the truth."""

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim import identify
from jaxsim.core.model import Model
from jaxsim.optim import smooth_impedance

ARM = """<mujoco><option timestep="0.01" integrator="implicitfast"><flag contact="disable"/></option><worldbody>
<body name="upper"><joint name="shoulder" axis="0 1 0" damping=".5" frictionloss=".3" armature=".05"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.4" size=".04" mass="2"/>
  <body name="lower" pos="0 0 -.4"><joint name="elbow" axis="0 1 0" damping=".2" frictionloss=".1" armature=".02"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03" mass="1"/></body></body></worldbody>
<actuator><motor joint="shoulder" gear="10"/><motor joint="elbow" gear="4"/></actuator>
<sensor><jointpos name="q1" joint="shoulder"/><jointpos name="q2" joint="elbow"/></sensor></mujoco>"""
BOX = """<mujoco><option timestep="0.0025" cone="elliptic"/><worldbody><geom type="plane" size="5 5 .1" friction=".1"/>
<body name="box" pos="0 0 .05"><freejoint/><geom name="box" type="box" size=".1 .07 .05" friction=".35" priority="1"/>
  <inertial pos=".01 .005 -.01" mass="1" diaginertia=".003 .004 .005"/></body></worldbody>
<sensor><framepos name="pos" objtype="xbody" objname="box"/><framequat name="quat" objtype="xbody" objname="box"/>
</sensor></mujoco>"""
MOTOR = """<mujoco><option timestep="0.01" integrator="implicitfast"/><worldbody>
<body><joint name="hinge" axis="0 0 1" damping=".4" armature=".02"/>
  <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1" contype="0" conaffinity="0"/></body></worldbody>
<actuator><motor name="motor" joint="hinge" gear="2"/></actuator>
<sensor><jointpos name="q" joint="hinge"/></sensor></mujoco>"""


@dataclasses.dataclass(frozen=True)
class Case:
    """A machine with true numbers, its records, and a fit that starts elsewhere."""

    m: Model
    parameters: list[identify.Parameter]
    truth: np.ndarray
    ctrl: np.ndarray
    qpos: np.ndarray
    qvel: np.ndarray
    sigma: dict[str, float]
    options: dict[str, Any]


def arm() -> Case:
    """Two links, two dampings and two dry frictions, from angles with a noise of 2 mrad."""
    m = jaxsim.load_model(ARM)
    rng = np.random.default_rng(1)
    t = 0.01 * np.arange(150)[:, None]
    ctrl = np.sin(rng.uniform(2, 9, (2, 1, 2)) * t + rng.uniform(0, 6, (2, 1, 2)))
    names = ["shoulder", "elbow"]
    guess = m.replace(dof_damping=1.3 * m.dof_damping, dof_frictionloss=0.8 * m.dof_frictionloss)
    parameters = [identify.parameter(guess, f, names, log=True) for f in ("dof_damping", "dof_frictionloss")]
    truth = np.concatenate([m.dof_damping, m.dof_frictionloss])
    return Case(guess, parameters, truth, ctrl, np.zeros((2, 2)), np.zeros((2, 2)), {"q1": 2e-3, "q2": 2e-3}, {})


def box() -> Case:
    """A box that slides and turns on a plane: sliding friction and the centre of mass, first velocities unknown.

    Impedance begins at zero, and the box at rest on its contacts: corners that jump make chaos of hard contacts.
    """
    m = smooth_impedance(jaxsim.with_full_inertia(jaxsim.load_model(BOX)), 0.004)
    still = jaxsim.jit(lambda d: jaxsim.rollout(m, d, nstep=800)[0].qpos)(jaxsim.make_data(m))
    guess = m.replace(
        geom_friction=m.geom_friction.at[1, 0].set(0.3), body_ipos=m.body_ipos.at[1].set(jnp.array([0.0, 0.0, 0.0]))
    )
    parameters = [
        identify.parameter(guess, "geom_friction", "box", 0, log=True),
        identify.parameter(guess, "body_ipos", "box", [0, 1, 2]),
    ]
    qpos = np.tile(np.asarray(still), (4, 1))
    qvel = np.array([[1.0, 0, 0, 0, 0, 4], [0, 0.8, 0, 0, 0, -5], [-0.7, 0.6, 0, 0, 0, 2], [0.9, 0.5, 0, 0, 0, -3]])
    truth = np.concatenate([m.geom_friction[1, :1], m.body_ipos[1]])
    options = {"initial": identify.Initial(qvel=np.array([0.05, 0.05, 0, 0, 0, 0.3]))}
    return Case(guess, parameters, truth, np.zeros((4, 100, 0)), qpos, qvel, {"pos": 1e-3, "quat": 5e-3}, options)


def motor() -> Case:
    """A motor whose controls are delayed by 23 ms: delay, gain and damping."""
    m = jaxsim.load_model(MOTOR)
    rng = np.random.default_rng(2)
    ctrl = np.repeat(rng.uniform(-1, 1, (2, 15, 1)), 10, 1)
    guess = m.replace(actuator_gainprm=m.actuator_gainprm.at[0, 0].set(0.8), dof_damping=1.4 * m.dof_damping)
    parameters = [
        identify.signal("ctrl_delay", "motor", 0.01, high=0.1),
        identify.parameter(guess, "actuator_gainprm", "motor", 0, log=True),
        identify.parameter(guess, "dof_damping", "hinge", log=True),
    ]
    truth = np.array([0.023, 1.0, 0.4])
    return Case(guess, parameters, truth, ctrl, np.zeros((2, 1)), np.zeros((2, 1)), {"q": 2e-3}, {})


CASES: dict[str, Callable[[], Case]] = {"arm": arm, "box": box, "motor": motor}


@dataclasses.dataclass(frozen=True)
class Coverage:
    """Shares (p,) of `repeats` in which intervals hold the truth, and errors over standard deviations (repeats, p)."""

    labels: tuple[str, ...]
    share: np.ndarray
    scores: np.ndarray
    converged: float


def coverage(case: Case, repeats: int, *, iterations: int = 15, seed: int = 0, **options: Any) -> Coverage:
    """Fit `repeats` records that differ in their noise, and in their first velocities where those are unknown."""
    rng = np.random.default_rng(seed)
    nothing = {name: np.zeros((*case.ctrl.shape[:2], _dim(case.m, name))) for name in case.sigma}
    blank = identify.recordings(case.m, case.ctrl, nothing, qpos=case.qpos, qvel=case.qvel, sigma=case.sigma)
    problem = identify.Problem(case.m, blank, case.parameters, initial=case.options.get("initial"))
    free = jnp.concatenate([p.to_free(jnp.asarray(x)) for p, x in zip(
        case.parameters, np.split(case.truth, np.cumsum(problem.sizes)[:-1]), strict=True)])  # fmt: skip
    held, scores, converged = [], [], 0
    for _ in range(repeats):
        shift = rng.standard_normal((problem.trajectories, problem.windows, problem.shifts))
        clean = np.asarray(problem.simulate(free, jnp.asarray(shift)))
        noisy = clean + blank.sigma * rng.standard_normal(clean.shape)
        data = dataclasses.replace(blank, measured=noisy)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = identify.identify(
                case.m,
                data,
                case.parameters,
                iterations=iterations,
                horizons=(),
                held_out=None,
                **case.options,
                **options,
            )
        held.append((fit.interval[:, 0] <= case.truth) & (case.truth <= fit.interval[:, 1]))
        scores.append((fit.values - case.truth) / fit.std)
        converged += fit.converged
    return Coverage(problem.labels, np.mean(held, 0), np.stack(scores), converged / repeats)


def _dim(m: Model, name: str) -> int:
    return int(m.sensor_dim[m.name2id("sensor", name)])
