"""The table of solvers: what has no row, or no form for a model, is refused."""

import jax
import pytest

import jaxsim
from jaxsim.core.errors import UnsupportedError
from jaxsim.core.types import SolverType
from jaxsim.engine.constraint import solve

XML = """<mujoco><option solver="CG"/><worldbody><body><joint frictionloss="1"/><geom size=".1"/></body></worldbody>
</mujoco>"""


def trace(m):
    jax.eval_shape(lambda m, d: solve.fwd_constraint(m, d), m, jaxsim.make_data(m))  # a new function: traced each time


@pytest.fixture
def m():
    return jaxsim.load_model(XML)


def test_a_solver_without_a_row_is_refused(m, monkeypatch):
    trace(m)
    monkeypatch.delitem(solve.SOLVERS, SolverType.CG)
    with pytest.raises(UnsupportedError, match="the solver 1"):
        trace(m)


def test_a_solver_without_a_kernel_is_refused_where_one_is_demanded(m, monkeypatch):
    monkeypatch.setitem(solve.SOLVERS, SolverType.CG, solve.SOLVERS[SolverType.CG]._replace(native_id=None))
    trace(m)
    with pytest.raises(UnsupportedError, match="backend 'native' with this solver"):
        trace(m.replace(opt=m.opt.replace(backend="native")))
