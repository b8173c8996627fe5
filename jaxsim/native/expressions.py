"""Translate JAX operations on single entries to expressions that are valid C99 and CUDA."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxsim.native.source_text import text

NUMBERS = text(Path(__file__).parent, "numbers.h")
PREAMBLE = f"""
#ifndef JAXSIM_NUMBERS
#define JAXSIM_NUMBERS
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
#ifndef WIDE /* for numbers; `wide.h` has them for vectors of worlds */
#define SELECT(test, a, b) ((test) ? (a) : (b))
#define CONVERT(type, x) ((type)(x))
#define WRAP(type, x) (x)
#define IS_FINITE(x) isfinite(x)
{NUMBERS}
#endif
#endif
"""
C_TYPES = {
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
    np.dtype(np.int8): "signed char",
    np.dtype(np.int32): "int",
    np.dtype(np.int64): "long long",
    np.dtype(np.uint32): "unsigned",
    np.dtype(np.bool_): "bool",
}

Index = int | str  # a number known at generation time, or an expression


class UnsupportedPrimitive(Exception):
    """The generator does not support a primitive."""


class TooLarge(UnsupportedPrimitive):
    """A kernel does not hold all arrays of a function: parts of it may fit."""


def c_type(dtype: Any) -> str:
    dtype = np.dtype(dtype) if isinstance(dtype, type) else dtype
    if dtype not in C_TYPES:
        raise UnsupportedPrimitive(f"numbers of type {dtype}")
    return C_TYPES[dtype]


def literal(x: Any, dtype: Any) -> str:
    x = np.asarray(x).astype(dtype)[()]
    if dtype == np.bool_:
        return "true" if x else "false"
    if not is_real(dtype):
        if x == np.iinfo(dtype).min and x < 0:  # C has no literal of it
            return f"({x + 1} - 1)"
        return f"({x}u)" if dtype == np.uint32 else f"({x}LL)" if abs(int(x)) > 2**31 - 1 else f"({x})"
    if not np.isfinite(x):  # C's macros are floats: of another type than numbers in double precision
        return f"(({c_type(dtype)}){'NAN' if np.isnan(x) else 'INFINITY' if x > 0 else '-INFINITY'})"
    text = np.format_float_scientific(x, unique=True)
    return f"({text}f)" if dtype == np.float32 else f"({text})"


def plus(a: Index, b: Index) -> Index:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return b if a == 0 else a if b == 0 else f"({a} + {b})"


def times(a: Index, b: int) -> Index:
    return a * b if isinstance(a, int) else a if b == 1 else f"{a} * {b}"


class TableIndex(str):
    """An index that a table of constants has: `numbers[at]`; `table` returns the name of a table of numbers."""

    numbers: np.ndarray
    at: "Index"
    table: Callable[[np.ndarray], str]

    def named(self, text: str) -> "TableIndex":
        """Return the same index as another expression."""
        return table_index(text, self.numbers, self.at, self.table)

    def with_numbers(self, numbers: np.ndarray) -> "TableIndex":
        """Return what a table of other numbers has at the same place."""
        numbers = np.asarray(numbers, np.int32)
        return table_index(f"AT({self.table(numbers)}, {self.at})", numbers, self.at, self.table)


def table_index(text: str, numbers: np.ndarray, at: "Index", table: Callable[[np.ndarray], str]) -> TableIndex:
    """Return an expression of `numbers[at]` as an index."""
    found = TableIndex(text)
    found.numbers, found.at, found.table = numbers, at, table
    return found


def in_table(i: "Index") -> TableIndex | None:
    """Return the table and the place of an index that is looked up in a table of constants, or a part of such."""
    if isinstance(i, Part) and isinstance(i.of, TableIndex):
        return table_index(i, i.of.numbers // i.divisor % i.length, i.of.at, i.of.table)
    return i if isinstance(i, TableIndex) else None


class Part(str):
    """The index of an axis of `length` entries: that part of a flat index `of`, which is (of / divisor) % length.

    A leading part needs no remainder.
    """

    of: str
    divisor: int
    length: int
    leading: bool

    def named(self, text: str) -> "Part":
        """Return the same index as another expression."""
        found = Part(text)
        found.__dict__ |= self.__dict__
        return found


def _part(of: str, divisor: int, length: int, leading: bool) -> Part:
    quotient = of if divisor == 1 else f"(({of}) / {divisor})"
    found = Part(quotient if leading else f"(({quotient}) % {length})")
    found.of, found.divisor, found.length, found.leading = of, divisor, length, leading
    return found


def linear(index: Sequence[Index], shape: Sequence[int]) -> Index:
    """Return the flat index of an entry. Neighbouring axes whose indices are parts of one flat index are one axis."""
    axes: list[tuple[Index, int]] = []
    for i, n in zip(index, shape, strict=True):
        before, length = axes[-1] if axes else (0, 1)
        if isinstance(i, Part) and isinstance(before, Part) and _follows(i, before, n):
            axes[-1] = _part(i.of, i.divisor, before.length * n, before.leading), length * n
        elif n != 1:
            axes.append((i, n))
    total, factor, offset = 0, 1, 0  # the sum so far is total * factor + offset
    for i, n in axes:
        factor, offset = factor * n, offset * n
        if isinstance(i, int):
            offset += i
        else:
            total, factor, offset = plus(plus(times(total, factor), offset), i), 1, 0
    return plus(times(total, factor), offset)


def _follows(i: Part, before: Part, length: int) -> bool:
    return (before.of, before.divisor, i.length) == (i.of, i.divisor * length, length)


def unravelled(i: Index, shape: Sequence[int]) -> list[Index]:
    """Unravel a flat index `i`, which must lie inside the array."""
    out: list[Index] = []
    first, step = next((d for d, n in enumerate(shape) if n != 1), -1), 1
    of, divisor, leading = i if isinstance(i, TableIndex) else str(i), 1, True
    if isinstance(i, Part) and i.length == math.prod(shape):  # else the index of an entry of a part of the array
        of, divisor, leading = i.of, i.divisor, i.leading
    for d in range(len(shape) - 1, -1, -1):
        n = shape[d]
        if isinstance(i, int):
            out.append(i // step % n)
        else:
            out.append(0 if n == 1 else _part(of, divisor * step, n, leading and d == first))
        step *= n
    return out[::-1]


def chosen(test: str, a: str, b: str) -> str:
    """Return an expression that selects `a` if the test holds, else `b`; both may be evaluated."""
    return f"SELECT({test}, {a}, {b})"


def is_real(dtype: Any) -> bool:
    return dtype.kind == "f" if isinstance(dtype, np.dtype) else np.issubdtype(dtype, np.floating)


def wrapped(expression: str, dtype: Any) -> str:
    """Wrap an integer expression around to the range of its type, since C may compute it in a wider type."""
    return expression if is_real(dtype) or dtype == np.bool_ else f"WRAP({c_type(dtype)}, {expression})"


def _binary(symbol: str) -> Callable[..., str]:
    return lambda a, b, *, out, **_: wrapped(f"({a} {symbol} {b})", out)


def _comparison(symbol: str) -> Callable[..., str]:
    def expression(a: str, b: str, *, dtype: Any, **_: Any) -> str:
        if dtype != np.bool_:
            return f"({a} {symbol} {b})"
        if symbol in ("==", "!="):  # in vectors of worlds a boolean may be a mask
            return chosen(a, b, f"!{b}") if symbol == "==" else chosen(a, f"!{b}", b)
        first, second = (a, b) if symbol in ("<", "<=") else (b, a)
        return f"(!{first} && {second})" if symbol in ("<", ">") else f"(!{first} || {second})"

    return expression


def _call(name: str) -> Callable[..., str]:
    def expression(*args: str, out: Any, **_: Any) -> str:
        return f"{name}{'f' if out == np.float32 else ''}({', '.join(args)})"

    return expression


def _of_integers(name: str, symbol: str = "", least: int = 1) -> Callable[..., str]:
    """Return a function of `numbers.h`, or C's operator if the second operand is a literal without special cases."""

    def expression(a: str, b: str, *, out: Any, **_: Any) -> str:
        known = b.strip("()")
        most = 10**9 if least else 8 * np.dtype(out).itemsize
        by_c = symbol and not (symbol == ">>" and out == np.uint32)
        if by_c and known.isdigit() and least <= int(known) < most:
            return wrapped(f"({a} {symbol} {b})", out)
        return f"{name}_{out}({a}, {b})"

    return expression


def _quotient(a: str, b: str, *, out: Any, **_: Any) -> str:
    return f"({a} / {b})" if is_real(out) else _of_integers("quotient", "/")(a, b, out=out)


def _remainder(a: str, b: str, *, out: Any, **_: Any) -> str:
    return _call("fmod")(a, b, out=out) if is_real(out) else _of_integers("remainder", "%")(a, b, out=out)


def _power(x: str, *, y: int, out: Any, **_: Any) -> str:
    product = wrapped("(" + " * ".join([x] * abs(y)) + ")", out) if y else literal(1, out)
    return product if y >= 0 else f"({literal(1, out)} / {product})"


def _pow(x: str, y: str, *, out: Any, dtype: Any, **_: Any) -> str:
    return _call("pow")(x, y if is_real(dtype) else f"CONVERT({c_type(out)}, {y})", out=out)


def _select(which: str, *cases: str, **_: Any) -> str:
    if len(cases) == 2:
        return chosen(which, cases[1], cases[0])
    chain = cases[-1]
    for k in range(len(cases) - 2, -1, -1):
        chain = chosen(f"{which} == {k}" if k else f"{which} <= 0", cases[k], chain)
    return chain


def _absolute(x: str, *, out: Any, **_: Any) -> str:
    return _call("fabs")(x, out=out) if is_real(out) else wrapped(chosen(f"{x} < 0", f"-{x}", x), out)


def greater_of(symbol: str) -> Callable[..., str]:
    def expression(a: str, b: str, *, out: Any, **_: Any) -> str:
        if out == np.bool_:
            return f"({a} {'||' if symbol == '>' else '&&'} {b})"
        nan = f" || {a} != {a}" if is_real(out) else ""  # NaN propagates, as in JAX
        return chosen(f"{a} {symbol} {b}{nan}", a, b)

    return expression


def _clamp(low: str, x: str, high: str, *, out: Any, **_: Any) -> str:
    """Return min(max(x, low), high), with JAX's result for NaN."""
    if is_real(out):
        nan = "" if _is_literal(low) and _is_literal(high) else f" || {low} != {low} || {high} != {high}"
        above = chosen(f"{x} > {high}", high, x)
        found = chosen(f"{x} < {low}", chosen(f"{low} > {high}", high, low), above)
        return chosen(nan[4:], f"({low} + {high})", found) if nan else found
    return chosen(f"{x} < {low}", chosen(f"{low} > {high}", high, low), chosen(f"{x} > {high}", high, x))


def _is_literal(x: str) -> bool:
    return x[0] == "(" and x[1:-1].replace("-", "").replace("+", "").replace(".", "").isalnum()


def _converted(x: str, *, dtype: Any, out: Any, **_: Any) -> str:
    if out == np.bool_:
        return x if dtype == np.bool_ else f"({x} != 0)"
    if dtype == np.bool_:
        return chosen(x, literal(1, out), literal(0, out))
    if is_real(dtype) and not is_real(out):
        return f"{out}_of_{dtype}({x})"
    if is_real(out) or is_real(dtype):
        return f"CONVERT({c_type(out)}, {x})"
    return wrapped(f"CONVERT({c_type(out)}, {x})", out)


def _rounded(x: str, *, out: Any, rounding_method: Any = 0, **_: Any) -> str:
    return _call("rint" if int(rounding_method) == 1 else "round")(x, out=out)


def _sign(x: str, *, out: Any, **_: Any) -> str:
    negative = chosen(f"{x} < 0", literal(-1, out), x) if is_real(out) or out == np.int32 or out == np.int64 else x
    return chosen(f"{x} > 0", literal(1, out), negative)


def _in_total_order(symbol: str) -> Callable[..., str]:
    def expression(a: str, b: str, *, dtype: Any, **_: Any) -> str:
        if is_real(dtype):  # where zeros have signs, and NaN has a place
            raise UnsupportedPrimitive(f"the total order of {dtype}")
        return f"({a} {symbol} {b})"

    return expression


def _count_bits(name: str) -> Callable[..., str]:
    def expression(x: str, *, out: Any, **_: Any) -> str:
        if str(out) not in ("int32", "uint32"):
            raise UnsupportedPrimitive(f"bits of {out}")
        return f"{name}_{out}({x})"

    return expression


def bitwise(bits: str, logical: str) -> Callable[..., str]:
    return lambda a, b, *, out, **_: f"({a} {logical if out == np.bool_ else bits} {b})"


MATH = ("sqrt", "floor", "ceil", "exp", "log", "sin", "cos", "tan", "tanh", "atan2", "cbrt", "asin", "acos", "atan")
MATH += ("log1p", "expm1", "sinh", "cosh", "exp2", "log2", "asinh", "acosh", "atanh", "erf")
ELEMENTWISE: dict[str, Callable[..., str]] = {
    **{n: _binary(s) for n, s in {"add": "+", "sub": "-", "mul": "*", "add_any": "+"}.items()},
    **{n: _comparison(s) for n, s in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items()},
    **{n: _call(n) for n in MATH},
    "logistic": _call("sigmoid"),
    "pow": _pow,
    "div": _quotient,
    "rem": _remainder,
    "lt_to": _in_total_order("<"),
    "le_to": _in_total_order("<="),
    "shift_left": _of_integers("left", "<<", 0),
    "shift_right_arithmetic": _of_integers("right", ">>", 0),
    "shift_right_logical": _of_integers("right_logical"),
    "round": _rounded,
    "rsqrt": lambda x, *, out, **_: f"({literal(1, out)} / {_call('sqrt')(x, out=out)})",
    "square": lambda x, *, out, **_: wrapped(f"({x} * {x})", out),
    "one_minus_square": lambda x, *, out, **_: wrapped(f"({literal(1, out)} - {x} * {x})", out),
    "and": bitwise("&", "&&"),
    "or": bitwise("|", "||"),
    "xor": lambda a, b, *, out, **_: _comparison("!=")(a, b, dtype=out) if out == np.bool_ else f"({a} ^ {b})",
    "not": lambda x, *, out, **_: f"(!{x})" if out == np.bool_ else wrapped(f"(~{x})", out),
    "neg": lambda x, *, out, **_: wrapped(f"(-{x})", out),
    "abs": _absolute,
    "max": greater_of(">"),
    "min": greater_of("<"),
    "sign": _sign,
    "is_finite": lambda x, **_: f"(IS_FINITE({x}))",
    "integer_pow": _power,
    "select_n": _select,
    "clamp": _clamp,
    "convert_element_type": _converted,
    "population_count": _count_bits("bits_of"),
    "clz": _count_bits("zeros_of"),
}
