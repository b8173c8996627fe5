"""Contact frames against MuJoCo's, with and without a tangent for the second axis."""

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jaxsim.engine.collision.shapes import make_frame

XML = """<mujoco><worldbody><geom type="plane" size="1 1 1" quat="{}"/>
<body pos="0 0 .25"><freejoint/><geom type="capsule" size=".1 .2" quat="{}"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("plane", ["1 0 0 0", "1 .1 .2 .3", "1 .2 0 0"])
@pytest.mark.parametrize("capsule", ["1 0 0 0", "1 1e-13 0 0", "1 1e-17 0 0", "1 .3 .2 .1"])
def test_frames_of_a_capsule_on_a_plane_equal_mujocos(plane, capsule):
    model = mujoco.MjModel.from_xml_string(XML.format(plane, capsule))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon
    normal, axis = (data.geom_xmat[i].reshape(3, 3)[:, 2] for i in range(2))
    frame = make_frame(jnp.asarray(normal[None]), jnp.asarray(axis[None]))[0]
    # an axis that rounding decides is as good as another, as long as the frame is one
    rounding = 1e-15 < np.linalg.norm(np.cross(normal, axis)) < 1e-9
    np.testing.assert_allclose(frame, data.contact.frame[0], atol=1e-2 if rounding else 1e-12)


def test_an_upright_capsule_has_friction():
    up = jnp.array([[0.0, 0, 1]])
    np.testing.assert_array_equal(make_frame(up, up)[0], [0, 0, 1, 1, 0, 0, 0, 1, 0])
