"""Contact sensors of all kinds in one model, beside MuJoCo's."""

import itertools

import mujoco
import numpy as np

import jaxsim

FIELDS = ("found", "force", "torque", "dist", "pos", "normal", "tangent")
MATCHES = ("", 'geom1="ball"', 'geom2="ball"', 'body1="brick"', 'geom1="ball" body2="brick"', 'subtree1="brick"')
SCENE = """<mujoco><worldbody><geom name="floor" type="plane" size="3 3 .1"/>
<site name="zone" type="box" size=".4 .4 .4"/>
<body name="brick" pos="0 0 {height}"><freejoint/><geom type="box" size=".2 .2 .1"/>
  <body pos=".1 0 .1"><joint axis="0 1 0"/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/></body></body>
<body pos=".1 0 {above}"><freejoint/><geom name="ball" size=".1"/></body></worldbody>
<sensor>{sensors}</sensor></mujoco>"""


def sensors(count: int) -> str:
    """So many sensors, each with other fields, reduction, number of slots or objects."""
    chosen = [" ".join(c) for n in range(1, 8) for c in itertools.combinations(FIELDS, n)]
    kinds = itertools.cycle(itertools.product((*MATCHES, 'site="zone"'), ("none", "mindist", "maxforce", "netforce")))
    made = zip(itertools.cycle(chosen), itertools.cycle((1, 2, 3, 20)), kinds, strict=False)
    text = [f'<contact {match} data="{data}" num="{num}" reduce="{reduce}"/>' for data, num, (match, reduce) in
            itertools.islice(made, count)]  # fmt: skip
    return "".join(text)


def both(height: float, count: int = 56) -> tuple[np.ndarray, np.ndarray, int]:
    """Values here and MuJoCo's of a falling heap, and the number of contacts."""
    text = SCENE.format(height=height, above=height + 0.19, sensors=sensors(count))
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.tolerance = 1e-14
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(0).normal(0, 0.1, model.nv)
    mujoco.mj_forward(model, data)
    m = jaxsim.from_mujoco(model)
    d = jaxsim.forward(m, jaxsim.make_data(m).replace(qvel=data.qvel))
    return np.asarray(d.sensordata), data.sensordata, data.ncon


def test_sensors_of_all_kinds_are_mujocos():
    here, want, ncon = both(0.09)
    assert ncon >= 5 and len(want) > 1_000
    np.testing.assert_allclose(here, want, atol=1e-6, rtol=1e-6)


def test_without_contact():
    here, want, ncon = both(3.0)
    assert ncon <= 2
    np.testing.assert_allclose(here, want, atol=1e-6, rtol=1e-6)
    text = '<mujoco><worldbody><body><joint/><geom size=".1"/></body></worldbody><sensor>' + "".join(
        f'<contact data="found normal tangent" num="2" reduce="{reduce}"/>' for reduce in ("none", "netforce")
    )
    m = jaxsim.load_model(text + "</sensor></mujoco>")
    d = jaxsim.forward(m, jaxsim.make_data(m))
    np.testing.assert_array_equal(d.sensordata, [0.0] * 14 + [0, 1, 0, 0, 0, 1, 0] + [0] * 7)
