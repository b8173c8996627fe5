"""Numbers of a program for a TPU: of Python, scalars that all worlds share, or registers of worlds.

Operations and functions of the generator's statements (`expressions.py`) on them, as JAX defines them.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math.safe import Array

REGISTER = (8, 128)  # worlds of a register
DTYPES = tuple(map(np.dtype, (np.float32, np.int32, np.uint32, np.bool_)))
Number = Any  # a number of Python, a traced scalar, or a register of worlds


def kept_type(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.int32) if dtype == np.bool_ else dtype


def is_wide(x: Number) -> bool:
    """Return whether a number is a register of worlds."""
    return getattr(x, "shape", ()) == REGISTER


def is_known(*x: Number) -> bool:
    return all(isinstance(v, int | float) for v in x)


def is_truth(x: Number) -> bool:
    return isinstance(x, bool) or getattr(x, "dtype", None) == np.bool_


def is_not_zero(x: Number) -> Number:
    return bool(x) if is_known(x) else x != 0


def as_number(x: Number) -> Number:
    """Return truth as an integer, and other numbers as they are."""
    return int(x) if isinstance(x, bool) else lax.select(x, *_likes(x, 1, 0)) if is_truth(x) else x


def _likes(x: Array, *values: int) -> Iterator[Array]:
    return (jnp.full(x.shape, v, jnp.int32) for v in values)


def converted(x: Number, dtype: np.dtype, wide: bool) -> Number:
    """Return a number as one of a type, and as a register if it is to be `wide`."""
    if dtype == np.bool_:
        return as_truth(x, wide)
    x = as_number(x)
    x = jnp.asarray(x, dtype) if is_known(x) else x.astype(dtype)
    return jnp.broadcast_to(x, REGISTER) if wide else x


def as_truth(x: Number, wide: bool = False) -> Number:
    x = x if is_truth(x) else is_not_zero(x)
    if wide and not is_wide(x):
        never = (1 - converted(x, np.dtype(np.int32), False)) * REGISTER[1]  # a compiler cannot make it a scalar again
        return lax.broadcasted_iota(jnp.int32, REGISTER, 1) >= jnp.broadcast_to(never, REGISTER)
    return x


def apart(x: Number) -> Number:
    """Return a register that a compiler does not know to be the same number in all worlds."""
    world = lax.broadcasted_iota(jnp.int32, REGISTER, 0) * REGISTER[1] + lax.broadcasted_iota(jnp.int32, REGISTER, 1)
    bits = lax.bitcast_convert_type(x, jnp.int32)
    return lax.bitcast_convert_type(lax.select(world >= 0, bits, ~bits), x.dtype)


def _common(*operands: Number) -> list[Number]:
    """Return operands of one type and one shape; numbers of Python stay as they are."""
    x = [as_number(v) for v in operands]
    types = [v.dtype for v in x if not is_known(v)]
    wide = any(map(is_wide, x))
    if not types:
        return x
    is_real = any(isinstance(v, float) for v in x) or any(np.issubdtype(t, np.floating) for t in types)
    dtype = np.dtype(np.float32) if is_real else types[0]
    return [converted(v, dtype, wide) for v in x]


def _by(known: Callable[..., Any], traced: Callable[..., Any]) -> Callable[..., Number]:
    """Return an operation of numbers, which Python computes if it knows all."""
    return lambda *x: known(*x) if is_known(*x) else traced(*_common(*x))


def _quotient(a: Number, b: Number) -> Number:
    if is_known(a, b):
        return a / b if isinstance(a, float) or isinstance(b, float) else int(a / b)
    return _of_vectors(lax.div)(a, b)


def _of_vectors(function: Callable[..., Array]) -> Callable[..., Number]:
    """Return a function of reals that the scalar unit does not have."""

    def of(*operands: Number) -> Number:
        x = _common(*operands)
        x = [jnp.asarray(v, jnp.float32) if is_known(v) else v for v in x]
        if any(map(is_wide, x)) or not jnp.issubdtype(x[0].dtype, jnp.floating):
            return function(*x)
        return jnp.max(function(*(jnp.broadcast_to(v, REGISTER) for v in x)))

    return of


def _logical(join: Callable[[Any, Any], Any], neutral: bool) -> Callable[[Number, Number], Number]:
    def of(a: Number, b: Number) -> Number:
        for x, y in ((a, b), (b, a)):
            if is_known(x):
                return y if bool(x) == neutral else not neutral
        wide = is_wide(a) or is_wide(b)
        return join(as_truth(a, wide), as_truth(b, wide))

    return of


def negated(x: Number) -> Number:
    return not x if is_known(x) else ~as_truth(x)


def selected(test: Number, a: Number, b: Number) -> Number:
    if is_known(test):
        return a if test else b
    wide = any(map(is_wide, (test, a, b)))
    test = as_truth(test, wide)
    if is_truth(a) and is_truth(b):
        return (test & as_truth(a, wide)) | (~test & as_truth(b, wide))
    x, y = _common(a, b)
    dtype = next((v.dtype for v in (x, y) if not is_known(v)), _type_of(x, y))
    return lax.select(test, converted(x, dtype, wide), converted(y, dtype, wide))


def _type_of(*x: Number) -> np.dtype:
    return np.dtype(np.float32 if any(isinstance(v, float) for v in x) else np.int32)


def any_of(x: Number) -> Number:
    """Return whether a test holds in any world."""
    return jnp.max(lax.select(x, *(jnp.full(REGISTER, v, jnp.float32) for v in (1, 0)))) > 0 if is_wide(x) else x


def _inside(i: Number, most: Number) -> Number:
    return jnp.clip(i, 0, most) if is_wide(i) else i


def wrapped_to(kind: str, x: Number) -> Number:
    if kind == "signed char":
        return (x << 24) >> 24
    return ((x + 2**31) % 2**32 - 2**31 if kind == "int" else x % 2**32) if is_known(x) else x


def _fitted(x: Array, dtype: Any) -> Array:
    """Return the nearest integers that fit; NaN is zero."""
    info = jnp.iinfo(dtype)
    most = np.nextafter(np.float32(info.max), np.float32(0))
    found = jnp.clip(jnp.where(x != x, 0, x), np.float32(info.min), most).astype(dtype)
    return jnp.where(x >= np.float32(info.max), np.array(info.max, dtype), found)


def _of_scalar(function: Callable[..., Array]) -> Callable[..., Number]:
    return lambda *x: function(*(jnp.asarray(v) for v in _common(*x)))


OPERATORS: dict[str, Callable[..., Number]] = {
    "+": _by(lambda a, b: a + b, lax.add),
    "-": _by(lambda a, b: a - b, lax.sub),
    "*": _by(lambda a, b: a * b, lax.mul),
    "/": _quotient,
    "%": _by(lambda a, b: int(math.fmod(a, b)), lax.rem),
    "<": _by(lambda a, b: a < b, lax.lt),
    "<=": _by(lambda a, b: a <= b, lax.le),
    ">": _by(lambda a, b: a > b, lax.gt),
    ">=": _by(lambda a, b: a >= b, lax.ge),
    "==": _by(lambda a, b: a == b, lax.eq),
    "!=": _by(lambda a, b: a != b, lax.ne),
    "<<": _by(lambda a, b: a << b, lax.shift_left),
    ">>": _by(lambda a, b: a >> b, lax.shift_right_arithmetic),
    "&": _by(lambda a, b: a & b, lax.bitwise_and),
    "|": _by(lambda a, b: a | b, lax.bitwise_or),
    "^": _by(lambda a, b: a ^ b, lax.bitwise_xor),
    "&&": _logical(lambda a, b: a & b, True),
    "||": _logical(lambda a, b: a | b, False),
    "unary-": _by(lambda a: -a, lax.neg),
    "unary+": lambda a: a,
    "unary!": negated,
    "unary~": _by(lambda a: ~a, lax.bitwise_not),
}
# cbrt, expm1, hyperbolic functions and their inverses do not exist there
_MATH = "sqrt floor ceil exp log sin cos tan tanh log1p exp2 erf atan2 pow abs"
_NAMES = {"abs": "fabs"}
_INTEGERS = {
    "quotient": lax.div,
    "remainder": lax.rem,
    "left": lax.shift_left,
    "right": lax.shift_right_arithmetic,
    "right_logical": lax.shift_right_logical,
}
FUNCTIONS: dict[str, Callable[..., Number]] = {
    **{f"{_NAMES.get(n, n)}f": _of_vectors(getattr(jnp, n, None) or getattr(lax, n)) for n in _MATH.split()},
    "asinf": _of_vectors(lambda x: lax.atan2(x, lax.sqrt((1 - x) * (1 + x)))),
    "acosf": _of_vectors(lambda x: lax.atan2(lax.sqrt((1 - x) * (1 + x)), x)),
    "atanf": _of_vectors(lambda x: lax.atan2(x, jnp.ones_like(x))),
    "SQRT": _of_vectors(jnp.sqrt),
    "log2f": _of_vectors(lambda x: lax.log(x) * np.float32(1 / math.log(2))),
    "rintf": _of_vectors(jnp.rint),
    "roundf": _of_vectors(partial(lax.round, rounding_method=lax.RoundingMethod.AWAY_FROM_ZERO)),
    "fmodf": _of_vectors(lax.rem),
    "sigmoidf": _of_vectors(lax.logistic),
    "SELECT": selected,
    "ANY": any_of,
    "INSIDE": _inside,
    "IS_FINITE": lambda x: abs(x) < jnp.inf,
    "number_of_32_bits": lambda x: lax.bitcast_convert_type(jnp.asarray(x, jnp.int32), jnp.float32),
    **{f"{k}_{t}": _of_scalar(f) for k, f in _INTEGERS.items() for t in ("int32", "uint32")},
    **{f"bits_of_{t}": _of_scalar(lax.population_count) for t in ("int32", "uint32")},
    **{f"zeros_of_{t}": _of_scalar(lax.clz) for t in ("int32", "uint32")},
    **{f"{t}_of_float32": partial(_fitted, dtype=np.dtype(t)) for t in ("int32", "uint32")},
}
JOINS: dict[str, Callable[[Number, Number], Number]] = {
    "set": lambda _, x: x,
    "add": OPERATORS["+"],
    "times": OPERATORS["*"],
    "greatest": _of_scalar(lax.max),
    "least": _of_scalar(lax.min),
}
