"""C expressions of numbers: what an operation of JAX on single entries is in C99 and CUDA alike."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

PREAMBLE = """
#ifdef __CUDACC_RTC__
#define FUNCTION static __device__
#define TABLE static __device__ const
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#else
#include <math.h>
#include <stdbool.h>
#define FUNCTION static
#define TABLE static const
#endif
#ifndef SELECT /* for numbers; `tile/wide.h` has them for vectors of worlds */
#define SELECT(test, a, b) ((test) ? (a) : (b))
#define CONVERT(type, x) ((type)(x))
#endif
"""
C_TYPES = {
    "float32": "float",
    "float64": "double",
    "int8": "signed char",
    "int32": "int",
    "int64": "long long",
    "uint32": "unsigned",
    "bool": "bool",
}

Index = int | str  # known while the source is written, or an expression of it


class UnsupportedPrimitive(Exception):
    """A primitive that has no C source here."""


def c_type(dtype: Any) -> str:
    if str(dtype) not in C_TYPES:
        raise UnsupportedPrimitive(f"numbers of type {dtype}")
    return C_TYPES[str(dtype)]


def literal(x: Any, dtype: Any) -> str:
    x = np.asarray(x).astype(dtype)[()]
    if dtype == np.bool_:
        return "true" if x else "false"
    if not np.issubdtype(dtype, np.floating):
        return f"({x})"
    if np.isnan(x):
        return "NAN"
    if np.isinf(x):
        return "INFINITY" if x > 0 else "(-INFINITY)"
    return _real(x, dtype)


def _real(x: Any, dtype: Any) -> str:
    text = np.format_float_scientific(x, unique=True)
    return f"({text}f)" if dtype == np.float32 else f"({text})"


def plus(a: Index, b: Index) -> Index:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return b if a == 0 else a if b == 0 else f"({a} + {b})"


def times(a: Index, b: int) -> Index:
    return a * b if isinstance(a, int) else a if b == 1 else f"{a} * {b}"


def linear(index: Sequence[Index], shape: Sequence[int]) -> Index:
    total: Index = 0
    for i, n in zip(index, shape, strict=True):
        total = plus(times(total, n), 0 if n == 1 else i)
    return total


def unravelled(i: Index, shape: Sequence[int]) -> list[Index]:
    """The indices of entry `i` of an array, which is one of its entries."""
    out: list[Index] = []
    first = next((d for d, n in enumerate(shape) if n != 1), -1)
    for d in range(len(shape) - 1, -1, -1):
        n = shape[d]
        if isinstance(i, int):
            out.append(i % n)
            i = i // n
        elif d == first:
            out.append(i)
            i = 0
        else:
            out.append(0 if n == 1 else f"(({i}) % {n})")
            i = i if n == 1 else f"(({i}) / {n})"
    return out[::-1]


def chosen(test: str, a: str, b: str) -> str:
    """The expression of `a` where the test holds, else of `b`; both may be computed."""
    return f"SELECT({test}, {a}, {b})"


def _binary(symbol: str) -> Callable[..., str]:
    return lambda a, b, **_: f"({a} {symbol} {b})"


def _equal(symbol: str) -> Callable[..., str]:
    def expression(a: str, b: str, *, dtype: Any, **_: Any) -> str:
        if dtype == np.bool_:  # a mask may stand for truth
            return chosen(a, b, f"!{b}") if symbol == "==" else chosen(a, f"!{b}", b)
        return f"({a} {symbol} {b})"

    return expression


def _call(name: str) -> Callable[..., str]:
    def expression(*args: str, out: Any, **_: Any) -> str:
        return f"{name}{'f' if out == np.float32 else ''}({', '.join(args)})"

    return expression


def _power(x: str, *, y: int, out: Any, **_: Any) -> str:
    product = "(" + " * ".join([x] * abs(y)) + ")" if y else literal(1, out)
    return product if y >= 0 else f"({literal(1, out)} / {product})"


def _select(which: str, *cases: str, **_: Any) -> str:
    if len(cases) == 2:
        return chosen(which, cases[1], cases[0])
    chain = cases[-1]
    for k in range(len(cases) - 2, -1, -1):
        chain = chosen(f"{which} == {k}", cases[k], chain)
    return chain


def _absolute(x: str, *, out: Any, **_: Any) -> str:
    return _call("fabs")(x, out=out) if np.issubdtype(out, np.floating) else chosen(f"{x} < 0", f"-{x}", x)


def _remainder(a: str, b: str, *, out: Any, **_: Any) -> str:
    return _call("fmod")(a, b, out=out) if np.issubdtype(out, np.floating) else f"({a} % {b})"


def greater_of(symbol: str) -> Callable[..., str]:
    # a number that is not one wins, as in JAX
    return lambda a, b, **_: chosen(f"{a} {symbol} {b} || {a} != {a}", a, b)


def _converted(x: str, *, dtype: Any, out: Any, **_: Any) -> str:
    if out == np.bool_:
        return f"({x} != 0)"
    return chosen(x, literal(1, out), literal(0, out)) if dtype == np.bool_ else f"CONVERT({c_type(out)}, {x})"


def _shifted(a: str, b: str, *, out: Any, **_: Any) -> str:
    if np.dtype(out).itemsize != 4:
        raise UnsupportedPrimitive(f"shift_right_logical of {out}")
    return f"CONVERT({c_type(out)}, CONVERT(unsigned, {a}) >> {b})"


def _rounded(x: str, *, out: Any, rounding_method: Any = 0, **_: Any) -> str:
    return _call("rint" if int(rounding_method) == 1 else "round")(x, out=out)


def _in_total_order(symbol: str) -> Callable[..., str]:
    def expression(a: str, b: str, *, dtype: Any, **_: Any) -> str:
        if np.issubdtype(dtype, np.floating):  # where zeros have signs, and what is no number has a place
            raise UnsupportedPrimitive(f"the total order of {dtype}")
        return f"({a} {symbol} {b})"

    return expression


def bitwise(bits: str, logical: str) -> Callable[..., str]:
    return lambda a, b, *, out, **_: f"({a} {logical if out == np.bool_ else bits} {b})"


ELEMENTWISE: dict[str, Callable[..., str]] = {
    **{
        n: _binary(s)
        for n, s in {"add": "+", "sub": "-", "mul": "*", "div": "/", "shift_right_arithmetic": ">>"}.items()
    },
    **{n: _binary(s) for n, s in {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items()},
    **{
        n: _call(n)
        for n in ("sqrt", "floor", "ceil", "exp", "log", "sin", "cos", "tan", "tanh", "atan2", "pow", "cbrt")
    },
    **{n: _call(n) for n in ("asin", "acos", "atan")},
    "eq": _equal("=="),
    "ne": _equal("!="),
    "lt_to": _in_total_order("<"),
    "le_to": _in_total_order("<="),
    "add_any": _binary("+"),  # of derivatives
    "shift_left": _binary("<<"),
    "shift_right_logical": _shifted,
    "round": _rounded,
    "rsqrt": lambda x, *, out, **_: f"({literal(1, out)} / {_call('sqrt')(x, out=out)})",
    "square": lambda x, **_: f"({x} * {x})",
    "and": bitwise("&", "&&"),
    "or": bitwise("|", "||"),
    "xor": lambda a, b, *, out, **_: _equal("!=")(a, b, dtype=out) if out == np.bool_ else f"({a} ^ {b})",
    "not": lambda x, *, out, **_: f"({'!' if out == np.bool_ else '~'}{x})",
    "neg": lambda x, **_: f"(-{x})",
    "abs": _absolute,
    "max": greater_of(">"),
    "min": greater_of("<"),
    "sign": lambda x, *, out, **_: chosen(
        f"{x} > 0", literal(1, out), chosen(f"{x} < 0", literal(-1, out), literal(0, out))
    ),
    "is_finite": lambda x, **_: f"(isfinite({x}))",
    "rem": _remainder,
    "integer_pow": _power,
    "select_n": _select,
    "clamp": lambda low, x, high, **_: chosen(f"{x} < {low}", low, chosen(f"{x} > {high}", high, x)),
    "convert_element_type": _converted,
}
