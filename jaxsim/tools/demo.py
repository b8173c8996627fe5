"""Gallery of `jaxsim demo`: scenes of models that come with the package, simulated and written as one page."""

import dataclasses
import warnings
from collections.abc import Iterable

import jaxsim
from jaxsim.envs.base import model_path
from jaxsim.viewer import rollouts
from jaxsim.viewer.html import as_json, fill, render

FPS = 60  # of replays, in frames a second of simulated time
HOLD = 0.2  # seconds for which a random control is constant
COMPILE_FAST = {"xla_backend_optimization_level": 0}  # humanoid, no C compiler: compiles in 3.0 s, not 7.7


@dataclasses.dataclass(frozen=True)
class Scene:
    """A model `name` of the package, a description, and settings of its simulation."""

    name: str
    text: str
    seconds: float
    keyframe: str | None = None
    random: bool = True


SCENES = (
    Scene("humanoid", "27 degrees of freedom, random torques, contact with the floor", 4.0, "stand"),
    Scene("quadruped", "Position servos with random targets", 5.0, "stand"),
    Scene("double_pendulum", "Chaos without control", 6.0, "high", random=False),
)


def gallery(scenes: Iterable[Scene], seed: int = 0) -> str:
    """Make an HTML page of the scenes, each simulated in one world; controls are drawn from the seed."""
    pages = [{"name": s.name, "text": s.text, "page": replay(s, seed)} for s in scenes]
    return fill("gallery.html", {"TITLE": "jaxsim: simulated on this machine", "PAGES": as_json(pages)})


def replay(scene: Scene, seed: int) -> str:
    """Make an HTML page that replays a simulation of the scene."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jaxsim.CapacityWarning)  # what is dropped is reported below
        m = jaxsim.load_model(model_path(f"{scene.name}.xml"))
    dt = float(m.opt.timestep)
    plan = rollouts.RolloutPlan(
        nworld=1,
        nstep=round(scene.seconds / dt),
        every=max(1, round(1 / (FPS * dt))),
        hold=max(1, round(HOLD / dt)),
        poses=True,
    )
    controls = rollouts.random_controls(m, plan, seed) if scene.random else rollouts.held_controls
    d = jaxsim.make_data(m, scene.keyframe, nworld=1)
    result = rollouts.simulate(m, d, plan, controls, compiler_options=COMPILE_FAST)
    for line in rollouts.diagnostics(m, result.data):
        warnings.warn(f"{scene.name}: {line}", stacklevel=2)
    return render(m, result.poses)
