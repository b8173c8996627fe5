"""Parts of inverse dynamics: constraint forces of given accelerations, and the comparison with forward dynamics."""

import jax.numpy as jnp
from jax import lax

from jaxsim.core.data import Data
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.flags import disabled, enabled
from jaxsim.core.model import Model
from jaxsim.core.types import DisableBit, EnableBit, IntegratorType
from jaxsim.engine.constraint.problem import make_problem
from jaxsim.engine.dynamics.inertia import mul_m, mul_sparse, solve_m
from jaxsim.engine.dynamics.rne import rne, tendon_bias
from jaxsim.engine.integrate.implicit import full_blocks, symmetric_matrix
from jaxsim.engine.kinematics.contact_jacobian import contacts_in_buffer
from jaxsim.engine.kinematics.wrench import apply_wrench
from jaxsim.engine.solver.problem import forces_and_states, residual
from jaxsim.engine.structure import tables
from jaxsim.engine.structure.damping import dof_damping, is_damped, poly_force_derivative
from jaxsim.interface.public import public
from jaxsim.math.arrays import take
from jaxsim.math.safe import Array, norm


@public
def inv_constraint(m: Model, d: Data) -> Data:
    """Compute the constraint forces at the accelerations `qacc`: `efc.force`, `efc.state` and `qfrc_constraint`."""
    layout = d.efc.layout
    if disabled(m, DisableBit.CONSTRAINT) or layout.nslot == 0 or m.nv == 0:
        return d.replace(qfrc_constraint=jnp.zeros_like(d.qacc))
    problem = make_problem(m, d)
    r = residual(layout, problem, d.qacc)
    forces, states = forces_and_states(layout, problem, contacts_in_buffer(d), r)
    return d.replace(efc=d.efc.replace(force=forces, state=states), qfrc_constraint=problem.J.transpose_times(forces))


def inverse_force(m: Model, d: Data) -> Array:
    """Compute the force (nv,) that together with passive, bias and constraint forces gives `qacc`."""
    return rne(m, d) + tendon_bias(m, d) + mul_m(m, d, d.qacc) - d.qfrc_passive - d.qfrc_constraint


def continuous_qacc(m: Model, d: Data) -> Array:
    """Compute the continuous-time acceleration whose step by the integrator is `qacc`."""
    if m.opt.integrator not in (IntegratorType.EULER, IntegratorType.IMPLICIT, IntegratorType.IMPLICITFAST):
        raise UnsupportedError(
            f"the flag invdiscrete with the integrator {IntegratorType(m.opt.integrator).name} is not supported"
        )
    if m.opt.integrator == IntegratorType.EULER:
        if disabled(m, DisableBit.EULERDAMP):
            return d.qacc
        damping, poly = dof_damping(m)
        derivative = m.opt.timestep * poly_force_derivative(damping, poly, abs(d.qvel))
        # at its onset, damping already has its derivative
        derivative = jnp.where(is_damped(m, damping, poly), derivative, derivative - lax.stop_gradient(derivative))
        return d.qacc + solve_m(m, d, derivative * d.qacc)
    if m.opt.integrator == IntegratorType.IMPLICITFAST:
        return solve_m(m, d, mul_sparse(m, symmetric_matrix(m, d), d.qacc))
    parts = [
        (matrix * take(d.qacc, block.dofs)[:, None, :]).sum(-1).reshape(-1)
        for matrix, block in zip(full_blocks(m, d), tables.inertia_blocks(m), strict=True)
    ]
    return solve_m(m, d, take(jnp.concatenate(parts), tables.dof_order(m)))


@public
def compare_fwd_inv(m: Model, d: Data) -> Data:
    """Set solver_fwdinv: the differences in forces between the results of `forward` in `d` and `inverse`."""
    applied = d.qfrc_applied + d.qfrc_actuator
    applied = applied + apply_wrench(m, d, d.xfrc_applied[:, :3], d.xfrc_applied[:, 3:], d.xipos)
    back = inv_constraint(m, d.replace(qacc=continuous_qacc(m, d)) if enabled(m, EnableBit.INVDISCRETE) else d)
    gaps = (d.qfrc_constraint - back.qfrc_constraint, applied - inverse_force(m, back))
    return d.replace(solver_fwdinv=jnp.where(d.nefc > 0, jnp.stack([norm(gap) for gap in gaps]), 0))
