"""Derivatives of fluid forces by velocity against MuJoCo's, through both implicit integrators, and by sizes."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from validation.stages import load

# blunt, slender, angular, Kutta, Magnus: one each, then all; semiaxes from large to below what the floors resolve
COEFFICIENTS = ("1 0 0 0 0", "0 1 0 0 0", "0 0 1 0 0", "0 0 0 1 0", "0 0 0 0 1", ".5 .25 1.5 1 1")
SIZES = ("1 .4 .2", ".1 .04 .02", ".05 .05 .05", ".01 .004 .002", ".003 .001 .002")
BODY = '<body pos="{} {} 1"><freejoint/><geom type="{}" size="{}" {}/></body>'
BODIES = [
    BODY.format(4 * i, 4 * j, "ellipsoid", size, f'fluidshape="ellipsoid" fluidcoef="{c}" quat="1 .2 .1 .3"')
    for i, size in enumerate(SIZES)
    for j, c in enumerate(COEFFICIENTS)
]
BODIES += [BODY.format(-4, 4 * i, "box", size, "") for i, size in enumerate(SIZES)]
CHAIN = """<body pos="-9 0 1"><freejoint/><geom type="capsule" size=".05 .2" pos=".1 0 0" fluidshape="ellipsoid"/>
<body pos=".3 0 0"><joint axis="0 1 0"/><geom type="cylinder" size=".04 .1" pos=".1 .05 0"/>
<body pos=".3 0 0"><joint axis="0 0 1"/><geom type="box" size=".1 .08 .02" fluidshape="ellipsoid"/>
</body></body></body>"""
OPTION = """<option timestep=".005" density="900" viscosity=".3" wind=".2 .1 -.1">
<flag contact="disable"/></option>"""
XML = f"""<mujoco>{OPTION}
<worldbody>{"".join(BODIES)}{CHAIN}</worldbody></mujoco>"""


@pytest.mark.parametrize("integrator", ["IMPLICIT", "IMPLICITFAST"])
def test_slope_is_the_references_for_every_coefficient_and_size(integrator):
    model = load(XML, integrator=getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}"))
    # without this flag, free bodies turn by the midpoint rule
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_INVDISCRETE
    m = jaxsim.from_mujoco(model)
    step, d0 = jax.jit(jaxsim.step), jaxsim.make_data(m)
    rng = np.random.default_rng(0)
    for speed in (3.0, 1e-2, 1e-4):
        data = mujoco.MjData(model)
        data.qvel[:] = speed * rng.standard_normal(model.nv)
        qvel = data.qvel.copy()
        d = step(m, d0.replace(qvel=qvel))
        mujoco.mj_step(model, data)
        change = data.qvel - qvel
        np.testing.assert_allclose(np.asarray(d.qvel) - qvel, change, rtol=1e-7, atol=1e-9 * np.abs(change).max())


def test_derivative_by_sizes_equals_differences():
    m = jaxsim.load_model(f"<mujoco>{OPTION}<worldbody>{CHAIN}</worldbody></mujoco>")
    d = jaxsim.make_data(m).replace(qvel=jnp.sin(1 + jnp.arange(m.nv)))
    step = jax.jit(lambda size: jaxsim.step(m.replace(geom_size=size), d).qvel)
    size, direction = m.geom_size, m.geom_size * jnp.cos(jnp.arange(3.0))
    value, slope = jax.jit(lambda size: jax.jvp(step, (size,), (direction,)))(size)
    np.testing.assert_allclose(value, step(size), rtol=1e-12)
    change = (step(size + 1e-5 * direction) - step(size - 1e-5 * direction)) / 2e-5
    np.testing.assert_allclose(slope, change, rtol=1e-7, atol=1e-7 * np.abs(change).max())  # of the difference
