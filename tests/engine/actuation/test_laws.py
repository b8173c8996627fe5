"""The tables of laws: what they cover, and derivatives by velocity."""

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.types import BiasType, DynType, GainType
from jaxsim.engine.actuation import laws

MIXED = """<mujoco><worldbody><body><joint name="a"/><geom size=".1"/></body></worldbody><actuator>
<motor joint="a"/><general joint="a" dyntype="filter" gaintype="affine" gainprm="1 2 3" biastype="affine"
biasprm="4 5 6"/><muscle joint="a" lengthrange="-1 1"/></actuator></mujoco>"""


@pytest.mark.parametrize(
    ("table", "kind", "words"),
    [
        ("RATES", DynType.FILTER, "dyntype 2"),
        ("GAINS", GainType.AFFINE, "gaintype 1"),
        ("BIASES", BiasType.AFFINE, "bias"),
    ],
)
def test_a_law_without_a_row_is_refused(table, kind, words, monkeypatch):
    m = jaxsim.load_model(MIXED)
    monkeypatch.delitem(getattr(laws, table), kind)
    with pytest.raises(UnsupportedError, match=f"actuators with {words}"):
        jax.eval_shape(lambda m, d: jaxsim.step(m, d), m, jaxsim.make_data(m))


def test_laws_of_velocity_have_its_derivative_and_others_have_no_part():
    m = jaxsim.load_model(MIXED)
    d = jaxsim.forward(m, jaxsim.make_data(m).replace(qvel=np.array([-0.3])))
    biases, gains = (
        {ids.tolist()[0]: value for ids, value in laws.by_velocity(table, kinds, m, d)}
        for table, kinds in ((laws.BIASES, m.actuator_biastype), (laws.GAINS, m.actuator_gaintype))
    )
    assert biases == {1: 6} and gains.keys() == {1, 2} and gains[1] == 3
    step = 1e-6
    ends = [d.replace(actuator_velocity=d.actuator_velocity + s) for s in (step, -step)]
    high, low = (laws.GAINS[GainType.MUSCLE](m, end, np.array([2])) for end in ends)
    np.testing.assert_allclose(gains[2], (high - low) / (2 * step), rtol=1e-6)
    assert abs(gains[2][0]) > 0.1
