"""Energy of flexes in free fall: what the integrator loses is what MuJoCo's loses."""

import jax
import mujoco
import numpy as np
import pytest

import jaxsim

BODIES = {
    "cloth": ('count="10 10 1" dim="2" mass=".2"', 'thickness="5e-3" elastic2d="stretch"'),
    "jelly": ('count="5 5 5" dim="3" mass=".5"', ""),
}
SECONDS, ROUND = 2, 250  # after 5 s the cloths, which are chaotic, differ by a hundredth of the drift


def strain_energy(model, position):
    """A quarter of the forms of the elements in the growth of their squared edges (`elastic.strain_force`)."""
    n, count = model.flex_elemnum[0], {2: 3, 3: 6}[model.flex_dim[0]]
    edge = model.flex_elemedge.reshape(n, count)
    upper = np.zeros((count, count), int)
    upper[np.triu_indices(count)] = np.arange(count * (count + 1) // 2)
    form = model.flex_stiffness.reshape(n, -1)[:, np.maximum(upper, upper.T)]
    step = position[model.flex_edge[:, 1]] - position[model.flex_edge[:, 0]]
    growth = ((step * step).sum(1) - model.flexedge_length0**2)[edge]
    return 0.25 * np.einsum("ni,nij,nj->", growth, form, growth)


def energy(model, qpos, qvel):
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(model, data)
    return data.energy.sum() + strain_energy(model, data.flexvert_xpos)


@pytest.mark.slow
@pytest.mark.parametrize("kind", BODIES)
def test_energy_drifts_no_more_than_in_mujoco(kind):
    shape, material = BODIES[kind]
    xml = f"""<mujoco><option timestep=".001" integrator="RK4"><flag energy="enable"/></option><worldbody>
      <flexcomp name="f" type="grid" spacing=".05 .05 .05" radius=".005" {shape}><edge equality="false"/>
      <contact contype="0" conaffinity="0" internal="false" selfcollide="none"/>
      <elasticity young="2e4" poisson=".2" {material}/></flexcomp></worldbody></mujoco>"""
    model, m = mujoco.MjModel.from_xml_string(xml), jaxsim.load_model(xml)
    data = mujoco.MjData(model)
    data.qvel[:] = 0.3 * np.random.default_rng(0).normal(size=model.nv)
    d = jaxsim.make_data(m).replace(qvel=data.qvel)
    run = jax.jit(lambda d: jax.lax.fori_loop(0, ROUND, lambda _, d: jaxsim.step(m, d), d))
    start, drift = energy(model, data.qpos, data.qvel), []
    for _ in range(int(SECONDS / model.opt.timestep / ROUND)):
        for _ in range(ROUND):
            mujoco.mj_step(model, data)
        d = run(d)
        drift.append([abs(energy(model, x.qpos, x.qvel) - start) for x in (d, data)])
    ours, theirs = np.max(drift, axis=0)
    assert 0 < ours < 1.01 * theirs  # trajectories part in the last digits
