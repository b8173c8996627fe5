"""Models of our own that the table of gradients is made of, and those of dm_control's suite: name -> (XML, state)."""

import functools
import itertools
from importlib import resources

import mujoco
import numpy as np

from jaxsim.mjcf.reader import read
from validation.models import dynamics, everything, features, geoms, sdf

DEPTH = 0.02
SEARCHED = ("convex pairs", "height field", "SDF")  # asked of these: 1e-5
SHORT = ("pairs in closed form", "convex pairs", "height field", "SDF")  # states soon after the start
HEIGHTS = " ".join(f"{x:.4f}" for x in np.random.default_rng(0).uniform(0, 1, 42))
FIELD = f'<hfield name="field" nrow="6" ncol="7" size="1 .8 .3 .1" elevation="{HEIGHTS}"/>'
SHAPES = {**geoms.GEOMS, "field": 'type="hfield" hfield="field"'}
SIMPLE = ("plane", "sphere", "capsule")
CURVED = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "hull")
ANALYTIC = [
    *itertools.combinations_with_replacement(SIMPLE, 2),
    *(("plane", k) for k in ("ellipsoid", "cylinder", "box", "hull", "cube")),
    *(("sphere", "cylinder"), ("sphere", "box"), ("capsule", "box"), ("box", "box")),
][1:]
CONVEX = [p for p in itertools.combinations_with_replacement(CURVED, 2) if p not in ANALYTIC]
FIELDS = [("field", k) for k in CURVED]
SDFS = [p for p in sdf.PAIRS if "plane" not in p][:4]
SUITE = (  # all but lqr, whose file holds no body
    *("acrobot", "ball_in_cup", "cartpole", "cheetah", "finger", "fish", "hopper", "humanoid", "manipulator"),
    *("pendulum", "point_mass", "quadruped", "reacher", "stacker", "swimmer", "walker", "humanoid_CMU", "dog"),
)


def _place(pairs, seed):
    """Poses of the second geom of each pair, turned at random, that overlap the first by DEPTH along the normal."""
    rng, out = np.random.default_rng(seed), []
    for pair in pairs:
        kinds = [SHAPES[k] for k in pair]
        text = f"""<mujoco><asset>{geoms.ASSETS}{FIELD}</asset><worldbody><geom {kinds[0]}/>
          <body><freejoint/><geom {kinds[1]}/></body></worldbody></mujoco>"""
        model = mujoco.MjModel.from_xml_string(text)
        data, fromto = mujoco.MjData(model), np.zeros(6)
        data.qpos[:3] = rng.uniform(-0.15, 0.15, 3) + np.array([0, 0, 1.5])
        data.qpos[3:] = rng.standard_normal(4)
        data.qpos[3:] /= np.linalg.norm(data.qpos[3:])
        step = 1.0  # height fields have no distance in the reference: go down until they touch
        while pair[0] == "field" and step > 1e-3:
            data.qpos[2] -= step
            mujoco.mj_forward(model, data)
            if data.ncon:
                data.qpos[2] += step
                step /= 2
        for _ in range(3 if pair[0] != "field" else 0):
            mujoco.mj_forward(model, data)
            mujoco.mj_geomDistance(model, data, 0, 1, 10.0, fromto)
            data.qpos[:3] -= fromto[3:] - fromto[:3]
        data.qpos[:3] += DEPTH * np.array([0, 0, -1.0] if pair[0] in ("field", "plane") else -_out(model, data))
        out.append(data.qpos.copy())
    return out


def _out(model, data):
    """Direction that parts the geoms of two bodies, measured a little apart."""
    way = data.qpos[:3] / max(np.linalg.norm(data.qpos[:3]), 1e-9)
    keep, fromto = data.qpos.copy(), np.zeros(6)
    data.qpos[:3] += 0.05 * way
    mujoco.mj_forward(model, data)
    mujoco.mj_geomDistance(model, data, 0, 1, 10.0, fromto)
    data.qpos[:] = keep
    apart = fromto[3:] - fromto[:3]
    return apart / max(np.linalg.norm(apart), 1e-9)


def pairs_xml(pairs, seed=0, option=""):
    """One dof a pair: the second geom slides along a random axis, against the first, which is fixed."""
    rng = np.random.default_rng(seed)
    bodies, contacts = "", ""
    for i, (pair, q) in enumerate(zip(pairs, _place(pairs, seed), strict=True)):
        first, second = (f'name="{i}.{s}" {SHAPES[k]} contype="0" conaffinity="0"' for s, k in enumerate(pair))
        axis = " ".join(f"{x:.3f}" for x in [*rng.standard_normal(2), 2.0])
        pos, quat = " ".join(map(repr, map(float, q[:3]))), " ".join(map(repr, map(float, q[3:])))
        bodies += f"""<body pos="{4 * i} 0 0"><geom {first}/><body pos="{pos}" quat="{quat}">
          <joint type="slide" axis="{axis}" damping="10"/><geom {second}/></body></body>"""
        contacts += f'<pair geom1="{i}.0" geom2="{i}.1" condim="{(1, 3, 4, 6)[i % 4]}" margin=".001"/>'
    return f"""<mujoco><option {option}/><asset>{geoms.ASSETS}{FIELD}</asset>
      <worldbody>{bodies}</worldbody><contact>{contacts}</contact></mujoco>"""


def _sweep_state():
    data = everything.state()[1]
    return {n: np.array(getattr(data, n)) for n in ("qpos", "qvel", "act", "ctrl")}


def sweep(**options):
    text = everything.BASE.replace('cone="elliptic" ', "")
    words = " ".join(f'{k}="{v}"' for k, v in options.items())
    return text.replace("<option ", f"<option {words} "), _sweep_state


def option(text, **options):
    words = " ".join(f'{k}="{v}"' for k, v in options.items())
    return (
        text.replace("<option ", f"<option {words} ", 1)
        if "<option" in text
        else text.replace("<worldbody>", f"<option {words}/><worldbody>", 1)
    )


@functools.cache
def own():
    """name -> (XML, function that gives the start or None)."""
    models = {
        "everything": sweep(cone="elliptic"),
        "everything, pyramidal, implicit, CG": sweep(cone="pyramidal", integrator="implicit", solver="CG"),
        "everything, RK4": sweep(cone="elliptic", integrator="RK4"),
        "everything, noslip, implicitfast": sweep(cone="elliptic", integrator="implicitfast", noslip_iterations=3),
        "everything, PGS": sweep(cone="pyramidal", solver="PGS"),
        "joints, actuators, sensors": (option(dynamics.ACTUATED, integrator="implicitfast"), None),
        "transmissions": (dynamics.TRANSMISSIONS, None),
        "tendons": (dynamics.TENDONS, None),
        "fluid": (option(dynamics.FLUID, integrator="implicit"), None),
        "free bodies": (option(dynamics.FREE, integrator="implicit"), None),
        "DC motors": (dynamics.MOTORS, None),
        "contact sensors": (dynamics.CONTACT_SENSORS, None),
        "PID": (features.PIDS, None),
        "cables": (features.CABLES, None),
        "delays": (features.DELAYS.format(integrator="Euler"), None),
        "rays": (features.RAYS, None),
        "distances": (_distances(), None),
        "touch grid": (features.TOUCH_GRID.format(gamma=0.6, nchannel=6, cutoff=2), None),
        "pairs in closed form": (pairs_xml(ANALYTIC), None),
        "convex pairs": (pairs_xml(CONVEX, option='cone="elliptic"'), None),
        "height field": (pairs_xml(FIELDS), None),
        "SDF": (sdf.xml(SDFS, iterations=4, starts=4), None),
    }
    return models


def _distances():
    pairs, kinds = features.DISTANCE_PAIRS, ("distance", "normal", "fromto")
    sensors = "\n".join(f'<{kind} {pair} cutoff="10"/>' for pair in pairs for kind in kinds)
    return features.DISTANCES.format(sensors=sensors)


def suite(name):
    """What a model of dm_control's suite is loaded from; the quadruped walks on a plane, as in the suite's own task."""
    if name == "quadruped":
        from dm_control.suite import common, quadruped  # which has no wheels for every Python

        return read(quadruped.make_model(floor_size=10).decode(), common.ASSETS)
    return str(resources.files("dm_control.suite") / f"{name}.xml")
