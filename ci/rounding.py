"""How far results of a function of JAX move if its operations round otherwise.

A GPU's kernel joins products and sums, and adds in another order, so that it rounds in other places than JAX. Where
numbers cancel, or a tie decides which branch a search takes, results then differ by more than any fixed tolerance. What
a function may differ by follows from the function itself: each result of an operation that is not exact is moved to the
next number up or down, at random, and so are the terms of sums. What the results of several such runs differ by is
the rounding error of single precision, and a kernel that differs by as much says nothing new.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.native.jaxpr import HINTS, Flat, Var, flatten
from jaxsim.native.operations import VIEWS
from jaxsim.xla.compat import scan_lengths

RUNS = 32
CPU = "cpu"
ADDS = ("add", "sub", "add_any")
# operations that round their result, and those that also round on the way: sums of terms that may cancel
ROUNDING = {"add", "sub", "mul", "div", "sqrt", "rsqrt", "cbrt", "pow", "integer_pow", "square", "exp", "exp2"}
ROUNDING |= {"log", "log1p", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin", "acos", "atan", "atan2", "asinh"}
ROUNDING |= {"acosh", "atanh", "logistic", "erf", "erf_inv", "expm1", "add_any"}
SUMS = {"dot_general", "reduce_sum", "reduce_prod", "cumsum", "cumprod", "scatter-add", "scatter_add"}
SUMS |= {"cholesky", "triangular_solve", "lu", "qr", "eigh", "conv_general_dilated", "reduce_window_sum"}
MOVES = {*VIEWS, "neg", "gather", "select_n", "concatenate", "pad"}  # operations that leave numbers as they are
SHORT, POWER = 0xFFF, 0x7FFFFF  # trailing bits that are zero in numbers whose products are exact, in powers of two


def moved(function: Callable[..., Sequence[Any]], operands: Sequence[Any], runs: int = RUNS) -> list[list[np.ndarray]]:
    """Return the results of so many runs of a function of arrays, in single precision, that round otherwise."""
    flat = flatten(jax.make_jaxpr(function)(*operands), CPU)
    run = jax.jit(lambda salt, *x: _evaluated(flat, x, salt, map(_mixed, count())))
    return [list(map(np.array, run(_mixed(k), *operands))) for k in range(runs)]


def _mixed(k: int) -> np.uint32:
    return np.uint32(0x85EBCA6B * (k + 1) & 0xFFFFFFFF)


def _evaluated(flat: Flat, args: Sequence[Any], salt: Any, sites: Any) -> list[Any]:
    env = dict(zip(flat.inputs, args, strict=True))

    def read(v: Any) -> Any:
        return env[v] if isinstance(v, Var) else jnp.asarray(v)

    products: set[Var] = set()
    for op in flat.operations:
        given = [read(v) for v in op.inputs]
        of_products = [isinstance(v, Var) and v in products for v in op.inputs]
        if op.name in ADDS:  # a product that is joined with one of its sums is not rounded
            pairs = zip(given, of_products, strict=True)
            given = [_rounded(x, salt, next(sites), ~_ends_with(x, SHORT)) if of else x for x, of in pairs]
        if op.name == "mul" or (op.name in MOVES and any(of_products)):
            products |= {v for v in op.outputs if v.dtype == np.float32}
        env |= dict(zip(op.outputs, _of_operation(op, given, salt, sites), strict=True))
    return [read(v) for v in flat.outputs]


def _of_operation(op: Any, x: list[Any], salt: Any, sites: Any) -> Sequence[Any]:
    p = op.params
    if op.primitive in HINTS.values():
        return _within(p["jaxpr"], salt, sites)(*x)
    if op.name == "cond":
        return jax.lax.switch(x[0], [_within(b, salt, sites) for b in p["branches"]], *x[1:])
    if op.name == "while":
        return _loop(p, x, salt, sites)
    if op.name == "scan":
        return _scan(p, x, salt, sites)
    if op.name in SUMS:
        x = [_rounded(v, salt, next(sites), ~_ends_with(v, SHORT)) if _is_real(v) else v for v in x]
    found = op.primitive.bind(*x, **p)
    found = list(found) if op.primitive.multiple_results else [found]
    if op.name in ROUNDING or op.name in SUMS:
        found = [_rounded(y, salt, next(sites), _inexact(op.name, x, y)) if _is_real(y) else y for y in found]
    return found


def _within(closed: Any, salt: Any, sites: Any) -> Callable[..., list[Any]]:
    return lambda *x: _evaluated(flatten(closed, CPU), x, salt, sites)


def _loop(p: dict[str, Any], x: list[Any], salt: Any, sites: Any) -> list[Any]:
    first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    test, body = (_within(p[f"{name}_jaxpr"], salt, sites) for name in ("cond", "body"))
    go = lambda state: test(*x[:first], *state)[0]  # noqa: E731
    return jax.lax.while_loop(go, lambda state: body(*x[first:second], *state), x[second:])


def _scan(p: dict[str, Any], x: list[Any], salt: Any, sites: Any) -> list[Any]:
    consts, carried = scan_lengths(p, len(x))
    body = _within(p["jaxpr"], salt, sites)

    def turn(carry: list[Any], rows: list[Any]) -> tuple[list[Any], list[Any]]:
        found = body(*x[:consts], *carry, *rows)
        return found[:carried], found[carried:]

    start, rows = x[consts : consts + carried], x[consts + carried :]
    carry, out = jax.lax.scan(turn, start, rows, length=p["length"], reverse=p["reverse"])
    return [*carry, *out]


def _is_real(x: Any) -> bool:
    return x.dtype == jnp.float32


def _bits(x: Any) -> Any:
    return jax.lax.bitcast_convert_type(x, jnp.uint32)


def _ends_with(x: Any, zeros: int) -> Any:
    return (_bits(x) & zeros) == 0


@partial(jax.jit, static_argnums=0)
def _inexact(name: str, x: Sequence[Any], y: Any) -> Any:
    """Return which results of an operation are rounded."""
    if name in ADDS:
        a, b = x[0], -x[1] if name == "sub" else x[1]
        kept = y - a
        return (a - (y - kept)) + (b - kept) != 0
    if name in SUMS:
        return ~_ends_with(y, SHORT)
    short = jnp.stack([jnp.broadcast_to(_ends_with(v, SHORT), y.shape) for v in (*x, y) if _is_real(v)]).all(0)
    if name == "mul":
        return ~(short | _ends_with(x[0], POWER) | _ends_with(x[1], POWER))
    if name == "div":
        return ~(short | _ends_with(x[1], POWER) | (x[0] == x[1]) | (x[0] == -x[1]))
    return ~short


@jax.jit
def _rounded(x: Any, salt: Any, site: Any, which: Any) -> Any:
    """Return numbers of which those that are marked are the next ones, up or down as their bits say."""
    bits = _bits(x)
    mixed = (bits ^ salt ^ site) * np.uint32(0x9E3779B1)
    step = jax.lax.population_count(mixed ^ (mixed >> 15)) & 1
    other = jax.lax.bitcast_convert_type(bits + 2 * step - 1, x.dtype)
    return jnp.where(which & (x != 0) & jnp.isfinite(other), other, x)
