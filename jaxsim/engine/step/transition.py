"""Derivatives of a step by the state, the activations and the controls: the linearised system."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.core.data import Data
from jaxsim.core.describe import describe_struct
from jaxsim.core.model import Model
from jaxsim.engine.kinematics.positions import differentiate_pos, integrate_pos
from jaxsim.engine.step import forward
from jaxsim.interface.public import public
from jaxsim.math.safe import Array
from jaxsim.native.stage import keeping_residuals, stage, takes_directions
from jaxsim.xla.batching import depends
from jaxsim.xla.compat import dce_jaxpr, eval_jaxpr

CHUNK = 4  # directions propagated together; more do not fit the caches with a batch of worlds


class Transition(NamedTuple):
    """Matrices of dx' = A dx + B du and dy = C dx + D du, where x = (displacement, qvel, act) and y is sensordata.

    A (n, n), B (n, nu), C (nsensordata, n), D (nsensordata, nu) with n = 2 nv + na; mjd_transitionFD's layout.
    """

    A: Array
    B: Array
    C: Array
    D: Array

    __repr__ = describe_struct


@public(static=("mode",))
def transition_derivatives(
    m: Model, d: Data, step: Callable[[Model, Data], Data] | None = None, mode: str = "forward"
) -> Transition:
    """Compute the exact derivatives of one step at the state and controls of `d`; batch them with `jax.vmap`.

    Positions move along `integrate_pos`, so quaternions count three numbers. `mode` "forward" linearises the step once
    and propagates 2 nv + na + nu directions, "reverse" one for each output. `step` is the step function, by default
    `jaxsim.step`.
    """
    make_step = step or forward.step
    nv, na, nu = m.nv, m.na, m.nu
    one = jnp.ones((), d.qpos.dtype)

    def outcome(dq: Array, dv: Array, da: Array, du: Array) -> tuple[Array, Array]:
        qpos = integrate_pos(m, d.qpos, dq, one) if nv else d.qpos
        new = make_step(m, d.replace(qpos=qpos, qvel=d.qvel + dv, act=d.act + da, ctrl=d.ctrl + du))
        moved = differentiate_pos(m, jax.lax.stop_gradient(new.qpos), new.qpos)
        return (jnp.concatenate([moved, new.qvel, new.act]), new.sensordata), None

    at = tuple(jnp.zeros(n, d.qpos.dtype) for n in (nv, nv, na, nu))
    by_rows = jax.jacrev(outcome, argnums=(0, 1, 2, 3), has_aux=True)
    jacobian = {"forward": lambda *x: by_columns(outcome)(*x)[1], "reverse": lambda *x: by_rows(*x)[0]}[mode]
    (A, B), (C, D) = ((jnp.concatenate(parts[:3], axis=1), parts[3]) for parts in jacobian(*at))
    return Transition(A, B, C, D)


def by_columns(f: Callable[..., Any]) -> Callable[..., tuple[Any, list[tuple[Array, ...]]]]:
    """Compute auxiliary results and Jacobians as `columns_of` does, zeros in the place of None, as a stage of its own.

    A batch of worlds on a CPU is one native program, which keeps nothing between the step and its derivatives.
    """

    def jacobians(*at: Array) -> tuple[Any, list[tuple[Array, ...]]]:
        values, more, found = columns_of(f)(*at)
        return more, [
            tuple(jnp.zeros((*y.shape, len(x)), y.dtype) if j is None else j for j, x in zip(row, at, strict=True))
            for y, row in zip(values, found, strict=True)
        ]

    return stage(jacobians, "columns", "derivatives of a step")


def columns_of(f: Callable[..., Any]) -> Callable[..., tuple[Sequence[Array], Any, list[tuple[Array | None, ...]]]]:
    """Compute the outputs of `f`, its auxiliary results, and each output's Jacobian by each argument, by columns.

    `f` returns outputs and auxiliary results, like a function of `jax.linearize` with `has_aux`. Arguments and outputs
    are vectors. A Jacobian is None if the output does not depend on the argument.
    `f` is linearised once. The directions of one argument are then propagated only through operations that depend on
    it, since the derivative of a linear function omits zeros. Controls act only through actuators and the solver;
    velocities do not act through kinematics, collisions and Jacobians.
    """

    def jacobians(*at: Array) -> tuple[Sequence[Array], Any, list[tuple[Array | None, ...]]]:
        with keeping_residuals():
            values, linear, more = jax.linearize(f, *at, has_aux=True)
        blocks: list[list[Array | None]] = []
        for k, x in enumerate(at):
            alone = lambda t, k=k: linear(*at[:k], t, *at[k + 1 :])  # noqa: E731
            along = lambda t, alone=alone, x=x: jax.jvp(alone, (x,), (t,))[1]  # noqa: E731
            blocks.append(_columns(along, jnp.eye(x.size, dtype=x.dtype)) if x.size else [None for _ in values])
        return values, more, list(zip(*blocks, strict=True))

    return jacobians


def _columns(f: Callable[[Array], Any], directions: Array) -> list[Array | None]:
    """Apply `f` to each direction and stack each output as columns; without a native program `CHUNK` at a time.

    Native programs take all directions of a world, for which they compute once what these share. An output that does
    not depend on the direction is None.
    """
    n = len(directions)
    closed = jax.make_jaxpr(f)(directions[0])
    moves = depends(closed.jaxpr, [True])
    used, _ = dce_jaxpr(closed.jaxpr, moves, instantiate=True)  # also within loops
    along = partial(eval_jaxpr, used, closed.consts)
    rounds = 1 if n <= CHUNK or takes_directions(closed) else -(-n // CHUNK)
    if rounds < 2:
        found = jax.vmap(along, out_axes=1)(directions)
    else:
        size = -(-n // rounds)
        padded = jnp.pad(directions, ((0, rounds * size - n), (0, 0))).reshape(rounds, size, n)
        found = [x.reshape(rounds * size, -1)[:n].T for x in jax.lax.map(jax.vmap(along), padded)]
    rest = iter(found)
    return [next(rest) if m else None for m in moves]
