"""Stage `fwd_constraint`: from rows and smooth force to `qacc` and constraint forces."""

import jax
import jax.numpy as jnp

from jaxsim.core.data import Data
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.model import Model
from jaxsim.core.types import DisableBit, SolverType
from jaxsim.engine.constraint.problem import make_problem, over_slots
from jaxsim.engine.islands.island import slot_labels
from jaxsim.engine.kinematics.contact_jacobian import contacts_in_buffer
from jaxsim.engine.solver import implicit_diff, noslip, primal, sparse
from jaxsim.engine.solver.problem import forces_and_states
from jaxsim.interface.public import public

NEWTON = primal.Solver(primal.newton_directions, primal.LS_NEWTON, native_id=0, sparse=sparse.solve)
# All solvers minimise one convex function. The projected Gauss-Seidel sweeps of MuJoCo visit rows in a pseudo-random
# order and stop early; under that name Newton's method computes their limit (`refusals.py` warns).
# It also warns of conjugate gradients on large models.
SOLVERS: dict[int, primal.Solver] = {
    SolverType.NEWTON: NEWTON,
    SolverType.CG: primal.Solver(primal.cg_directions, primal.LS_CG, native_id=1, sparse=sparse.solve),
    SolverType.PGS: NEWTON,
}


@public
def fwd_constraint(m: Model, d: Data) -> Data:
    """Solve for `qacc`; sets `qacc`, `qfrc_constraint`, `efc.b`, `efc.force`, `efc.state` and `solver_niter`."""
    layout, solver = d.efc.layout, SOLVERS.get(m.opt.solver)
    if solver is None:
        raise UnsupportedError(f"the solver {m.opt.solver!r} is not supported")
    if m.opt.disableflags & DisableBit.CONSTRAINT or layout.nslot == 0 or m.nv == 0:
        zero = jnp.zeros_like(d.qfrc_smooth)
        return d.replace(qacc=d.qacc_smooth, qfrc_constraint=zero, solver_niter=jnp.zeros_like(d.solver_niter))
    p = make_problem(m, d)
    limits = primal.IterationLimits(solver, m.opt.iterations, m.opt.ls_iterations, m.opt.backend)
    scale = 1 / (m.stat.meaninertia * max(1, m.nv))
    settings = primal.Tolerances(m.opt.tolerance, m.opt.ls_tolerance, scale)
    fixed = jax.lax.stop_gradient((p, d.qacc_smooth, d.qacc_warmstart, settings))
    warm = None if m.opt.disableflags & DisableBit.WARMSTART else fixed[2]
    if layout.sparse:
        if solver.sparse is None:
            raise UnsupportedError(f"the solver {m.opt.solver!r} on a large model is not supported")
        acc, niter = solver.sparse(layout, limits, p, fixed[3], primal.Guesses(fixed[1], warm))
        found = primal.solution(layout, p, acc, niter, d.qacc_smooth)
    else:
        found = implicit_diff.solve(layout, limits, p, fixed[3], primal.Guesses(d.qacc_smooth, warm))
    acc, niter, r, free, qfrc = found
    forces, state = forces_and_states(layout, p, contacts_in_buffer(d), r)
    if m.opt.noslip_iterations:
        label = jnp.zeros(layout.nslot, jnp.int32) if m.opt.disableflags & DisableBit.ISLAND else slot_labels(m, d)
        stop = (m.opt.noslip_iterations, m.opt.noslip_tolerance, scale)
        acc, forces, count = noslip.solve(layout, p, d.qacc_smooth, forces, d.efc.R, label, stop)
        state, niter = noslip.dual_state(layout, p, forces), niter + count.astype(niter.dtype)
        qfrc = p.J.transpose_times(forces)
    if not layout.sparse and not m.opt.noslip_iterations:
        qfrc = implicit_diff.balanced(qfrc, p, acc)
    b = over_slots(d, lambda active, x: jnp.where(active, x, 0), d.efc.active, free)
    efc = d.efc.replace(force=forces, state=state, b=b)
    return d.replace(
        qacc=acc,
        qfrc_constraint=qfrc,
        efc=efc,
        solver_niter=niter.astype(jnp.int32)[None],
    )
