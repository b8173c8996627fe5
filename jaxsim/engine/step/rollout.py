"""Rollouts: many steps in one loop, with a choice of checkpointing for their gradient."""

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.callbacks import Callbacks
from jaxsim.core.data import Data
from jaxsim.core.describe import count
from jaxsim.core.model import Model
from jaxsim.core.types import Backend
from jaxsim.engine.integrate.explicit import SAVED
from jaxsim.engine.step import forward
from jaxsim.engine.step.derived import carried, fields_read, from_carried, with_fields, without_derived
from jaxsim.interface.public import public
from jaxsim.math.safe import Array
from jaxsim.xla.loops import traced_once, without_unused

Outputs = Sequence[str] | Callable[[Data], Any]


def _of_any_length(given: dict[str, Any]) -> tuple[dict[str, Any], Callable[[Any], Any]]:
    """Return arguments of a program for up to a power of two of steps, and the function that cuts off later records."""
    rows, nstep = given.get("controls"), given.get("nstep")
    fits = isinstance(nstep, int) and nstep >= 0 if rows is None else nstep is None and np.ndim(rows) == 2
    special = {"length", "checkpoint", "step"} & given.keys() or callable(rows) or callable(given.get("outputs"))
    if special or not fits:
        return given, lambda result: result
    length: int = given["nstep"] if rows is None else len(given["controls"])
    most = 1 << max(length - 1, 0).bit_length()
    missing = (0, most - length), (0, 0)
    padded = {"nstep": most} if rows is None else {"controls": np.pad(given["controls"], missing)}

    def cut(result: tuple[Data, Any]) -> tuple[Data, Any]:
        return result[0], jax.tree.map(lambda x: x[:length], result[1])

    return {**given, **padded, "length": np.int32(length)}, cut


@public(static=("nstep", "outputs", "substeps", "checkpoint"), waits=True, shared=_of_any_length)
def rollout(
    m: Model,
    d: Data,
    controls: Array | Callable[[Array, Data], Array] | None = None,
    nstep: int | None = None,
    *,
    outputs: Outputs = ("qpos", "qvel"),
    substeps: int = 1,
    checkpoint: str | int = "step",
    step: Callable[[Model, Data], Data] | None = None,
    length: Array | int | None = None,
) -> tuple[Data, Any]:
    """Advance one world by `nstep` control steps; batch it with `jax.vmap`.

    Args:
        controls: (nstep, nu), or a policy (index of the control step, data) -> ctrl (nu,), or None to keep the controls
            of `d`. A policy sees the state before the step. Derived fields (xpos, sensordata) are from `forward` at
            that state, under the controls of the previous step; they are computed only if the policy reads one.
        nstep: number of control steps; needed unless `controls` is an array.
        outputs: records of every control step: names of fields of `Data` ("contact.dist" for a nested one), or a
            function of `Data` to a PyTree. Derived fields (sensordata, xpos) are computed by the step, at the
            state before its last sub-step, as after MuJoCo's `mj_step`.
        substeps: steps of `m.opt.timestep` for each control step.
        checkpoint: values that reverse mode stores. "none": all intermediate values of every step (fastest), or, if the
            step of a batch is one program, the values that its derivative needs. "step": the state before each step and
            the solver's solution. An integer k: the states at the start of every k steps, and within a chunk
            those before each step, for one more evaluation of the steps. "sqrt" takes k = sqrt(nstep), which is useful
            from some ten thousand steps.
        step: the step function, by default `jaxsim.step`.
        length: number of control steps to run, a traced value: one program for all lengths up to `nstep`.
            Later records are zero. Not for reverse mode, nor with `checkpoint` other than "step".

    Returns:
        The data after the last step and the records, a dict by name (or the result of the function) with a leading axis
        of length `nstep`. The state and the counters of the data are current, so that it can be stepped further. All
        derived fields are NaN (integers: -1), since they were not computed: call `forward` for them, or record them.

    Raises:
        ValueError: the arguments are inconsistent.
    """
    make_step = step or forward.step
    if isinstance(outputs, str):
        raise ValueError(f"outputs is {outputs!r}, wanted a sequence of names: ({outputs!r},)")
    nstep = None if nstep is None else count("nstep", nstep)
    nstep, policy, rows = _read_controls(m, controls, nstep)
    blank = jax.tree.map(jnp.zeros_like, d)
    read = frozenset() if rows is not None else fields_read(lambda d: policy(jnp.int32(0), d), d)

    @without_unused
    def advance(m: Model, state: dict[str, Any], index: Array, row: Array | None) -> tuple[dict[str, Any], Any]:
        d = blank.replace(**state)
        d = d.replace(ctrl=policy(index, with_fields(m, d, read)) if row is None else row)
        for_last = make_step(m, d) if substeps == 1 else _repeat(make_step, m, d, substeps)
        return carried(m, for_last), select(for_last, outputs)

    if length is not None:
        if checkpoint != "step":
            raise ValueError("length has no reverse mode and allows no checkpoint: leave out checkpoint")
        state, records = _loop(partial(advance, m), carried(m, d), nstep, rows, length)
        return without_derived(m, blank.replace(**state)), records
    if checkpoint != "none":
        advance = jax.checkpoint(advance, policy=SAVED)
    size = _chunk_size(checkpoint, nstep)
    scan = _scan if size is None else partial(_scan_chunks, size=size)
    state, records = scan(partial(advance, m), carried(m, d), nstep, rows)
    return without_derived(m, blank.replace(**state)), records


def step_of_state(m: Model, d: Data) -> Data:
    """Return `step` of which reverse mode stores the state before it, and recomputes the rest.

    The derivative of a step that is one program does so by itself. Others have a checkpoint, which stores the solver's
    solution as well.
    """

    def from_state(state: dict[str, Any]) -> Data:
        return forward.step(m, from_carried(d, state))

    is_program = jax.default_backend() == "cpu" and m.opt.backend != Backend.XLA
    if not is_program or m.callbacks != Callbacks():
        from_state = jax.checkpoint(from_state, policy=SAVED)
    return from_state(carried(m, d))


def select(d: Data, outputs: Outputs) -> Any:
    """Return the fields of `d` with these names as a dict, or the function's value at `d`."""
    return outputs(d) if callable(outputs) else {name: attrgetter(name)(d) for name in outputs}


def _read_controls(m: Model, controls: Any, nstep: int | None) -> tuple[int, Callable, Array | None]:
    """Return the number of steps, the policy, and the rows of controls, which replace the policy if given."""
    if controls is None or callable(controls):
        if nstep is None:
            raise ValueError("rollout needs nstep unless controls is an array")
        return nstep, controls or _keep_controls, None
    rows = jnp.asarray(controls)
    if rows.ndim != 2 or rows.shape[1] != m.nu:
        hint = "" if rows.ndim else "; a number of steps is given as nstep="
        raise ValueError(f"controls have shape {rows.shape}; wanted (nstep, {m.nu}){hint}")
    if nstep is not None and nstep != len(rows):
        raise ValueError(f"nstep is {nstep}, but there are {len(rows)} rows of controls")
    return len(rows), _keep_controls, rows


def _keep_controls(_: Array, d: Data) -> Array:
    return d.ctrl


def _chunk_size(checkpoint: str | int, nstep: int) -> int | None:
    if checkpoint in ("none", "step"):
        return None
    if checkpoint == "sqrt":
        return max(1, round(nstep**0.5))
    if isinstance(checkpoint, int) and checkpoint > 0:
        return checkpoint
    raise ValueError(f'checkpoint is {checkpoint!r}; wanted "none", "step", "sqrt" or a number of steps')


def _repeat(step: Callable[[Model, Data], Data], m: Model, d: Data, times: int) -> Data:
    """Advance `d` by some steps; between them only the state is kept."""
    blank = jax.tree.map(jnp.zeros_like, d)

    def body(state: dict[str, Any], _: None) -> tuple[dict[str, Any], None]:
        return carried(m, step(m, blank.replace(**state))), None

    body = jax.checkpoint(body, policy=SAVED)
    state, _ = jax.lax.scan(body, carried(m, d), None, times - 1)
    return step(m, blank.replace(**state))


def _scan(advance: Callable, state: Any, nstep: int, rows: Array | None) -> tuple[Any, Any]:
    return jax.lax.scan(lambda s, x: advance(s, *x), state, (jnp.arange(nstep), rows))


def _loop(advance: Callable, state: Any, nstep: int, rows: Array | None, length: Array | int) -> tuple[Any, Any]:
    """Run the first `length` steps; the records of others are zero."""

    def one(i: Array, state: Any) -> tuple[Any, Any]:
        return advance(state, i, None if rows is None else rows[i])

    def body(i: Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        state, record = one(i, carry[0])
        return state, jax.tree.map(lambda x, new: x.at[i].set(new), carry[1], record)

    shapes = jax.eval_shape(lambda state: one(jnp.int32(0), state)[1], state)
    records = jax.tree.map(lambda x: jnp.zeros((nstep, *x.shape), x.dtype), shapes)
    return jax.lax.fori_loop(0, jnp.minimum(jnp.asarray(length, jnp.int32), nstep), body, (state, records))


def _scan_chunks(advance: Callable, state: Any, nstep: int, rows: Array | None, size: int) -> tuple[Any, Any]:
    """Scan in chunks, of which reverse mode keeps only the first states. The last chunk may be short."""
    chunks, one = -(-nstep // size), advance
    padded = chunks * size
    index = jnp.arange(padded).reshape(chunks, size)
    if rows is not None:
        rows = jnp.pad(rows, ((0, padded - nstep), (0, 0))).reshape(chunks, size, -1)
    if padded > nstep:
        full, (_, zeros) = traced_once(advance, state, jnp.int32(0), None if rows is None else rows[0, 0])

        def one(s: Any, i: Array, row: Array | None) -> tuple[Any, Any]:
            return jax.lax.cond(i < nstep, lambda s: full(s, i, row), lambda s: (s, zeros), s)

    @jax.checkpoint
    def chunk(state: Any, xs: Any) -> tuple[Any, Any]:
        return jax.lax.scan(lambda s, x: one(s, *x), state, xs)

    state, records = jax.lax.scan(chunk, state, (index, rows))
    return state, jax.tree.map(lambda x: x.reshape(padded, *x.shape[2:])[:nstep], records)
