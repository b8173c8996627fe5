"""How far small models move between two versions of MuJoCo: the figures of docs/newer_mujoco.md.

    OLD/bin/python ci/mujoco_versions.py old.npz; NEW/bin/python ci/mujoco_versions.py new.npz
    python ci/mujoco_versions.py old.npz new.npz

Prints, for each model, the largest difference of accelerations at the start, of positions at the end, and of sensors.
"""

import sys

import numpy as np

FLOOR = '<geom type="plane" size="5 5 1"/>'
LINK = '<geom type="capsule" fromto="0 0 0 .5 0 0" size=".04"/>'
HINGE = f'<body><joint name="a" axis="0 1 0" {{}}/>{LINK}</body>'
TUMBLING = '<body><freejoint/><geom type="box" size=".1 .2 .3"/></body>'
CUBE = '<mesh name="m" vertex="-.1 -.1 -.1 .1 -.1 -.1 .1 .1 -.1 -.1 .1 -.1 -.1 -.1 .1 .1 -.1 .1 .1 .1 .1 -.1 .1 .1"/>'
SPIN = {"qvel": [0, 0, 0, 1, 5, 2]}


def free(geom: str, pose: str) -> str:
    """Text of a free body."""
    return f"<body {pose}><freejoint/><geom {geom}/></body>"


def wrap(angle: float) -> tuple:
    """A tendon from (-.5, 0) to (.5, 0) turned by an angle, over a cylinder with its side site above."""
    body = '<body><joint axis="0 1 0"/><geom size=".01"/><site name="b" pos=".5 0 0"/></body>'
    geom = '<geom name="g" type="cylinder" size=".1 .1" euler="90 0 0"/>'
    sites = '<site name="a" pos="-.5 0 0"/><site name="side" pos="0 0 .15"/>'
    path = '<site site="a"/><geom geom="g" sidesite="side"/><site site="b"/>'
    end = f'<tendon><spatial name="t">{path}</spatial></tendon><sensor><tendonpos tendon="t"/></sensor>'
    return geom + sites + body, "", end, 1, {"qpos": [angle]}


SOFT = """<flexcomp name="c" type="grid" count="3 3 3" spacing=".1 .1 .1" dim="3" mass="1" radius=".01" pos="0 0 .2">
<elasticity young="1e4" poisson="{}" damping=".001"/></flexcomp>"""
WELD = """<body name="p"><joint type="ball"/><geom size=".05" pos=".2 0 0"/><body name="q" pos=".3 0 0"><joint
type="ball"/><geom size=".05" pos=".2 0 0"/><site name="s"/></body></body>"""
CHILD = '<geom size=".1"/><body pos="0 0 .15"><joint axis="0 1 0" type="slide"/><geom size=".1"/></body>'

# world, options, what follows the world, steps, and the state at the start
CASES: dict[str, tuple] = {
    "margin .05, gap .03, ball on a plane": (
        '<geom type="plane" size="5 5 1" margin=".05" gap=".03"/>' + free('size=".1"', 'pos="0 0 .3"'), "", "", 1000, {}
    ),
    "side site, less than half a turn": wrap(0.5),
    "side site, more than half a turn": wrap(1.75),
    "side site, clear of the geom": wrap(3.0),
    "implicitfast, servo at actuatorfrcrange": (
        HINGE.format('actuatorfrcrange="-2 2"'), '<option integrator="implicitfast"/>',
        '<actuator><position joint="a" kp="1000" kv="50"/></actuator>', 200, {"ctrl": [1]},
    ),
    "dampratio on two links": (
        f'<body><joint name="a" axis="0 1 0"/>{LINK}<body pos=".5 0 0"><joint name="b" axis="0 1 0"/>{LINK}</body>'
        "</body>", "",
        '<actuator><position joint="a" kp="100" dampratio="1"/><position joint="b" kp="100" dampratio="1"/></actuator>',
        200, {},
    ),
    "actuatorfrcrange of a tendon, without limited": (
        HINGE.format(""), "",
        '<tendon><fixed name="t" actuatorfrcrange="-1 1"><joint joint="a" coef="1"/></fixed></tendon>'
        '<actuator><motor tendon="t"/></actuator>', 100, {"ctrl": [10]},
    ),
    "servo of a ball joint, more than half a turn": (
        '<body><joint type="ball" name="a"/><geom type="box" size=".1 .2 .3" pos=".1 0 0"/></body>', "",
        '<actuator><position joint="a" gear="0 0 1" kp="10" kv="1"/></actuator>', 300, {"ctrl": [4]},
    ),
    "implicitfast, free body tumbling, 1 s": (
        TUMBLING, '<option integrator="implicitfast" timestep=".005" gravity="0 0 0"/>', "", 200, SPIN
    ),
    "RK4, free body tumbling, 1 s": (
        TUMBLING, '<option integrator="RK4" timestep=".01" gravity="0 0 0"/>', "", 100, SPIN
    ),
    "Euler, free body tumbling, 1 s": (TUMBLING, '<option timestep=".005" gravity="0 0 0"/>', "", 200, SPIN),
    "soft cube, poisson .3": (FLOOR + SOFT.format(0.3), '<option timestep=".001"/>', "", 300, {}),
    "soft cube, poisson 0": (FLOOR + SOFT.format(0), '<option timestep=".001"/>', "", 300, {}),
    "box within a thin box, deeper than its half-size": (
        '<geom type="box" size=".5 .5 .01"/>' + free('type="box" size=".1 .1 .1"', 'pos="0 0 .05" euler="3 0 0"'),
        "", "", 100, {},
    ),
    "stack of boxes": (
        FLOOR + "".join(free('type="box" size=".1 .1 .1"', f'pos="0 0 {0.1 + 0.2 * i}" euler="0 0 {7 * i}"')
                        for i in range(4)), "", "", 500, {},
    ),
    "mesh on a plane": (
        FLOOR + free('type="mesh" mesh="m"', 'pos="0 0 .12" euler="5 3 0"'), "", f"<asset>{CUBE}</asset>", 300, {}
    ),
    "mesh on a box": (
        '<geom type="box" size=".5 .5 .1"/>' + free('type="mesh" mesh="m"', 'pos="0 0 .22" euler="5 3 0"'), "",
        f"<asset>{CUBE}</asset>", 300, {},
    ),
    "cylinder standing on a box": (
        '<geom type="box" size=".5 .5 .1"/>' + free('type="cylinder" size=".1 .1"', 'pos="0 0 .2"'), "", "", 300, {}
    ),
    "ellipsoid on a box": (
        '<geom type="box" size=".5 .5 .1"/>'
        + free('type="ellipsoid" size=".1 .15 .2"', 'pos="0 0 .25" euler="20 30 0"'), "", "", 300, {},
    ),
    "child of a mocap body that touches it": (f'<body mocap="true">{CHILD}</body>', "", "", 100, {"qvel": [1]}),
    "accelerometer of the world": (
        '<site name="s"/>' + TUMBLING, "", '<sensor><accelerometer site="s"/></sensor>', 1, {}
    ),
    "torque sensor behind a weld": (
        WELD, "", '<equality><weld body1="q"/></equality><sensor><torque site="s"/></sensor>', 100, {}
    ),
    "force sensor behind a spatial tendon": (
        '<site name="t" pos="0 0 1"/><body><joint axis="0 1 0"/><geom size=".05" pos=".2 0 0"/><site name="s"/>'
        '<site name="u" pos=".2 0 0"/></body>', "",
        '<tendon><spatial stiffness="100" springlength=".5"><site site="t"/>'
        '<site site="u"/></spatial></tendon><sensor><force site="s"/></sensor>', 10, {},
    ),
}  # fmt: skip


def write(path: str) -> None:
    """Simulate all models in the installed MuJoCo."""
    import mujoco

    results = {}
    for name, (world, top, end, count, state) in CASES.items():
        m = mujoco.MjModel.from_xml_string(f"<mujoco>{top}<worldbody>{world}</worldbody>{end}</mujoco>")
        d = mujoco.MjData(m)
        for field, values in state.items():
            getattr(d, field)[: len(values)] = values
        mujoco.mj_forward(m, d)
        results[f"{name}|acceleration"] = d.qacc.copy()
        results[f"{name}|sensors"] = d.sensordata.copy()
        mujoco.mj_step(m, d, count)
        results[f"{name}|position"] = d.qpos.copy()
    np.savez(path, **results)


def compare(old: str, new: str) -> None:
    """Print the largest differences."""
    a, b = np.load(old), np.load(new)
    print("| model | acceleration at the start | position at the end | sensors |\n| --- | --- | --- | --- |")
    for name in CASES:
        keys = [f"{name}|{what}" for what in ("acceleration", "position", "sensors")]
        values = [np.abs(a[key] - b[key]).max(initial=0) for key in keys]
        print(f"| {name} | {' | '.join(f'{x:.2g}' if x > 1e-9 else '0' for x in values)} |")


if __name__ == "__main__":
    write(*sys.argv[1:]) if len(sys.argv) == 2 else compare(*sys.argv[1:])
