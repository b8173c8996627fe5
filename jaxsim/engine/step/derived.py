"""Fields of `Data` that are derived from the state, computed only for user functions that read them.

A rollout passes only the state from step to step. Tracing a policy or a cost once finds the other fields that it reads.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxsim.core.data import Data
from jaxsim.core.model import Model
from jaxsim.engine.islands import sleep
from jaxsim.engine.kinematics.com import com_pos
from jaxsim.engine.kinematics.kinematics import camlight, kinematics
from jaxsim.engine.step import forward
from jaxsim.engine.structure.checks import STATE
from jaxsim.engine.tendon.tendon import tendon

COUNTERS = ("warning", "maxuse_con", "maxuse_efc", "overflow_contacts", "overflow_constraints")
CARRIED = (*STATE, *COUNTERS)  # fields that one step passes to the next
MOVED = ("time", "qpos", "qvel", "act", "history", "qacc_warmstart")  # those of the state that a step computes
# fields that the stages of positions set, up to tendons
POSES = frozenset(
    """xpos xquat xmat xipos ximat xanchor xaxis geom_xpos geom_xmat site_xpos site_xmat cam_xpos cam_xmat light_xpos
    light_xdir subtree_com cdof cinert ten_wrapadr ten_wrapnum ten_J ten_length wrap_obj wrap_xpos""".split()  # noqa: SIM905
)


def fields_read(function: Callable[..., Any], d: Data, *args: Any) -> frozenset[str]:
    """Return the names of the fields of `d` that `function(d, *args)` reads while it is traced.

    A field of a nested struct counts as the struct. A field passed to a compiled function counts as read, and so does a
    field whose value is not used.
    """
    leaves, tree = jax.tree_util.tree_flatten_with_path(d)
    names = [path[0].name for path, _ in leaves]

    def flat(values: list[Any], args: Any) -> Any:
        return function(jax.tree.unflatten(tree, values), *args)

    jaxpr = jax.make_jaxpr(flat)([x for _, x in leaves], args).jaxpr
    read = {v for eqn in jaxpr.eqns for v in eqn.invars if not hasattr(v, "val")}
    read |= {v for v in jaxpr.outvars if not hasattr(v, "val")}
    return frozenset(name for name, v in zip(names, jaxpr.invars[: len(names)], strict=True) if v in read)


def with_fields(m: Model, d: Data, names: frozenset[str]) -> Data:
    """Compute the fields of `d` with these names from its state: by `forward`, or from positions only."""
    derived = names.difference(CARRIED)
    if not derived:
        return d
    if derived <= POSES and not sleep.sleeps(m):
        return tendon(m, camlight(m, com_pos(m, kinematics(m, d))))
    return forward.forward(m, d)


def carried_names(m: Model) -> tuple[str, ...]:
    """Return the names of the fields that one step passes to the next; with sleep, also what sleeping trees keep."""
    return (*CARRIED, *sleep.kept_names(m)) if sleep.sleeps(m) else CARRIED


def carried(m: Model, d: Data) -> dict[str, Any]:
    """Return the fields of `d` that one step passes to the next, by name: the carry of a scan over steps."""
    return {name: getattr(d, name) for name in carried_names(m)}


def moved_names(m: Model) -> tuple[str, ...]:
    """Return the names of the fields of the state that `step` computes; with sleep, also what sleeping trees keep.

    Users set the others. A step changes these only where it resets a state that has diverged.
    """
    return (*MOVED, "tree_asleep", *sleep.kept_names(m)) if sleep.sleeps(m) else MOVED


def from_carried(d: Data, state: dict[str, Any]) -> Data:
    """Return data with the shapes of `d` and the fields `state`; all derived fields are zero."""
    return jax.tree.map(jax.numpy.zeros_like, d).replace(**state)


def without_derived(m: Model, d: Data) -> Data:
    """Return `d` with what a step passes on; other derived fields are NaN, integers -1 and booleans False."""
    return jax.tree.map(_absent, d).replace(**carried(m, d))


def _absent(x: Any) -> Any:
    kind = np.dtype(x.dtype).kind if x.dtype != jax.numpy.bfloat16 else "f"
    return jax.numpy.full_like(x, {"f": np.nan, "b": False}.get(kind, -1))
