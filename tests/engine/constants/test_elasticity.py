"""From a material to stiffness: against the compiler, and derivatives against differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from tests.engine.flex.cases import CASES

MATERIAL = {"young": 300.0, "poisson": 0.2}
KINDS = {
    "stretching": ("stretch", 0.02),
    "bending": ("bend", 0.02),
    "both": ("both", 0.02),
    "curved cloth": ("both", 0.02),
    "solid": ("both", 0.0),
    "trilinear": ("both", 0.0),
    "quadratic cells": ("both", 0.0),
    "shell": ("both", 0.01),
    "bending shell": ("bend", 0.02),
    "quadratic shell": ("both", 0.01),
}


@pytest.mark.parametrize("case", KINDS)
def test_a_material_gives_the_stiffness_that_the_compiler_gives(case):
    m = jaxsim.load_model(CASES[case])
    kind, thickness = KINDS[case]
    other = m.replace(flex_stiffness=m.flex_stiffness * 3, flex_bending=m.flex_bending)
    found = jaxsim.flex_elasticity(other, **MATERIAL, thickness=thickness, elastic2d=kind)
    for name in ("flex_stiffness", "flex_bending"):
        want = np.asarray(getattr(m, name))
        scale = np.abs(want).max(initial=1e-12)
        np.testing.assert_allclose(getattr(found, name), want, atol=1e-9 * scale, rtol=0, err_msg=name)


@pytest.mark.parametrize("case", ["both", "solid", "quadratic shell"])
def test_derivatives_by_the_material_are_those_of_differences(case):
    m = jaxsim.load_model(CASES[case])

    def entries(x):
        new = jaxsim.flex_elasticity(m, x[0], x[1], x[2])
        return jnp.concatenate([new.flex_stiffness, new.flex_bending])

    x, eps = jnp.array([300.0, 0.2, 0.02]), 1e-5
    for k in range(3):
        v = np.eye(3)[k] * np.array([100, 1, 0.1])[k]
        slope = jax.jit(lambda x, v: jax.jvp(entries, (x,), (v,))[1])(x, jnp.asarray(v))
        wanted = (entries(x + eps * v) - entries(x - eps * v)) / (2 * eps)
        np.testing.assert_allclose(slope, wanted, atol=1e-8 * float(abs(wanted).max()) + 1e-12)


def test_words_are_checked():
    m = jaxsim.load_model(CASES["both"])
    with pytest.raises(ValueError, match="elastic2d is 'fold'"):
        jaxsim.flex_elasticity(m, 1.0, 0.1, elastic2d="fold")
