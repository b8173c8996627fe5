"""Steps for PyTorch, beside JAX's own values and differences."""

import jax
import numpy as np
import pytest

import jaxsim

torch = pytest.importorskip("torch")
import jaxsim.torch  # noqa: E402

XML = """
<mujoco>
  <option><flag contact="disable"/></option>
  <worldbody>
    <body name="arm"><joint name="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
      <site name="tip" pos=".3 0 0"/></body>
  </worldbody>
  <actuator><motor joint="hinge" gear="2"/></actuator>
  <sensor><framepos objtype="site" objname="tip"/></sensor>
</mujoco>
"""


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(XML)


@pytest.fixture(scope="module")
def step(m):
    return jaxsim.torch.step(m, outputs=("sensordata",))


def test_values_are_those_of_the_step(m, step):
    state = step(step(step.initial(), torch.tensor([0.5])), torch.tensor([0.2]))
    d = jaxsim.make_data(m)
    for u in (0.5, 0.2):
        d = jax.jit(jaxsim.step)(m, d.replace(ctrl=[u]))
    for name in ("time", "qpos", "qvel", "ctrl", "sensordata"):
        np.testing.assert_allclose(state[name].numpy(), getattr(d, name), atol=1e-6, err_msg=name)


def test_gradients_agree_with_differences(m, step):
    start = step.initial(nworld=2)
    ctrl = torch.tensor([[0.5], [-0.5]], dtype=torch.float64, requires_grad=True)
    qvel = torch.tensor([[0.1], [0.3]], dtype=torch.float64, requires_grad=True)
    mass = torch.tensor(np.asarray(m.body_mass)).requires_grad_()

    def after_two(ctrl, qvel, mass):
        state = step(step({**start, "qvel": qvel}, ctrl, body_mass=mass), body_mass=mass)
        return state["qpos"], state["qvel"], state["sensordata"]

    assert torch.autograd.gradcheck(after_two, (ctrl, qvel, mass), eps=1e-5, rtol=1e-4, atol=1e-9)
    sum(x.sum() for x in after_two(ctrl, qvel, mass)).backward()
    assert all(x.grad.abs().max() > 0 for x in (ctrl, qvel, mass))


def test_tensors_that_were_given_may_be_written_over(step):
    start = step.initial()
    ctrl = torch.tensor([0.5], dtype=start["qpos"].dtype)
    before = step(start, ctrl)["qvel"].clone()
    after = step(start, ctrl)
    ctrl.fill_(-9)
    assert torch.equal(after["qvel"], before)


def test_what_does_not_fit_is_refused(m, step):
    with pytest.raises(ValueError, match=r"ctrl has shape \(2,\), wanted \(1,\)"):
        step(step.initial(), torch.zeros(2))
    with pytest.raises(ValueError, match=r"the state has no .*'time'"):
        step({"qpos": torch.zeros(m.nq)})
    with pytest.raises(AttributeError, match="did you mean 'sensordata'"):
        jaxsim.torch.step(m, outputs=("sensor_data",))
