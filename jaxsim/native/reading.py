"""Read the statements that the generator writes, for a target that has no compiler of C: trees of tuples.

A statement is one of
    ("block", statements)
    ("for", name, first, test, step, body)      step is an expression of the next index
    ("each", name, first, end, body)            its turns may run in any order, or at once
    ("while", test, body)
    ("if", test, body, other)
    ("continue",) and ("break",)
    ("call", name, arguments)                   macros (LET, PUT, ...) too; types are ("name", type)
An expression is a number, ("name", x), ("call", name, arguments), or (operator, operands...).
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

TOKEN = re.compile(
    r"\s*(?:(0x[0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)(?:[fFuU]|LL)*"
    r"|([A-Za-z_]\w*)|(\+\+|--|&&|\|\||[<>=!]=|<<|>>|[-+*/%]=|[-+*/%<>=!&|^~?:,;(){}\[\]]))"
)
COMMENTS = re.compile(r"/\*.*?\*/|^[ \t]*#[^\n]*", re.DOTALL | re.MULTILINE)
TYPES = {"float", "double", "int", "unsigned", "bool", "REAL", "long", "char", "signed", "INDEX"}
# operators of two operands, from those that bind least
LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"))
LEVELS += (("*", "/", "%"),)
RANK = {op: k for k, ops in enumerate(LEVELS) for op in ops}

Tree = Any  # a number or a tuple


class _Reader:
    """Tokens of a text and the place of the next one."""

    def __init__(self, text: str) -> None:
        self.tokens = [m.groups() for m in TOKEN.finditer(text)]
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        """Return the next word or symbol, "" for a number and at the end."""
        i = self.at + ahead
        return (self.tokens[i][1] or self.tokens[i][2] or "") if i < len(self.tokens) else ""

    def take(self, wanted: str | None = None) -> str:
        found = self.peek()
        if wanted is not None and found != wanted:
            raise ValueError(f"'{wanted}' expected, not '{found}'")
        self.at += 1
        return found

    def has(self, wanted: str) -> bool:
        """Take the next symbol if it is this one."""
        if self.peek() != wanted:
            return False
        self.at += 1
        return True

    def expression(self, rank: int = 0) -> Tree:
        """Read an expression whose operators bind at least as much as `rank`."""
        left = self.operand()
        while (op := self.peek()) in RANK and RANK[op] >= rank:
            self.at += 1
            left = (op, left, self.expression(RANK[op] + 1))
        return left

    def operand(self) -> Tree:
        number, name, symbol = self.tokens[self.at]
        self.at += 1
        if number is not None:
            return float(number) if "." in number or ("e" in number and "x" not in number) else int(number, 0)
        if name is not None:
            return self.named(name)
        if symbol in ("-", "!", "~", "+"):
            return ("unary" + symbol, self.operand())
        if symbol != "(":
            raise ValueError(f"an operand expected, not '{symbol}'")
        if self.peek() in TYPES and self.peek(1) == ")":
            kind = self.take()
            self.take(")")
            return ("call", "CONVERT", [("name", kind), self.operand()])
        found = self.expression()
        self.take(")")
        return found

    def named(self, name: str) -> Tree:
        if name in ("true", "false"):
            return name == "true"
        return ("call", name, self.arguments()) if self.has("(") else ("name", name)

    def arguments(self) -> list[Tree]:
        found = []
        while not self.has(")"):
            found.append(self.expression())
            self.has(",")
        return found

    def statement(self) -> Tree:
        word = self.peek()
        if word == "{":
            return ("block", self.block())
        rule = _STATEMENTS.get(word)
        if rule is not None:
            self.at += 1
            return rule(self)
        if word in TYPES or word == "const":
            return self.declaration()
        name = self.take()
        if self.has("="):
            found = ("call", "ASSIGN", [("name", name), self.expression()])
        else:
            self.take("(")
            found = ("call", name, self.arguments())
        self.take(";")
        return found

    def declaration(self) -> Tree:
        """Read the declaration of a number that all worlds share."""
        is_constant = self.has("const")
        kind, name = self.take(), self.take()
        value = [self.expression()] if self.has("=") else []
        self.take(";")
        arguments = [("name", kind), ("name", name), *value]
        return ("call", "LET", arguments) if is_constant else ("call", "SHARED", arguments)

    def block(self) -> list[Tree]:
        self.take("{")
        found = []
        while not self.has("}"):
            found.append(self.statement())
        return found

    def body(self) -> list[Tree]:
        found = self.statement()
        return found[1] if found[0] == "block" else [found]


def _for(r: _Reader) -> Tree:
    r.take("(")
    r.take()  # its type
    name = r.take()
    r.take("=")
    first = r.expression()
    r.take(";")
    test = r.expression()
    r.take(";")
    if r.peek() in ("++", "--"):
        step = (r.take()[0], ("name", r.take()), 1)
    else:
        own, op = r.take(), r.take()
        step = (op[0], ("name", own), r.expression())
    r.take(")")
    return ("for", name, first, test, step, r.body())


def _each(r: _Reader, has_first: bool, beyond: int) -> Tree:
    """Read a loop whose turns do not depend on each other, to an end that is exclusive if `beyond` is zero."""
    r.take("(")
    name = r.take()
    r.take(",")
    first = r.expression() if has_first else 0
    if has_first:
        r.take(",")
    end = r.expression()
    r.take(")")
    return ("each", name, first, ("+", end, 1) if beyond else end, r.body())


def _if(r: _Reader) -> Tree:
    r.take("(")
    test = r.expression()
    r.take(")")
    body = r.body()
    return ("if", test, body, r.body() if r.has("else") else [])


def _while(r: _Reader) -> Tree:
    r.take("(")
    test = r.expression()
    r.take(")")
    return ("while", test, r.body())


def _word(r: _Reader, word: str) -> Tree:
    r.take(";")
    return (word,)


_STATEMENTS: dict[str, Callable[[_Reader], Tree]] = {
    "for": _for,
    "EACH": partial(_each, has_first=False, beyond=0),
    "UPTO": partial(_each, has_first=False, beyond=1),
    "RANGE": partial(_each, has_first=True, beyond=0),
    "if": _if,
    "while": _while,
    "continue": lambda r: _word(r, "continue"),
    "break": lambda r: _word(r, "break"),
}


def statements(lines: Sequence[str]) -> list[Tree]:
    """Return the statements of these lines."""
    r, found = _Reader("\n".join(lines)), []
    while r.at < len(r.tokens):
        found.append(r.statement())
    return found


def functions(text: str) -> dict[str, tuple[list[str], list[Tree]]]:
    """Return the names of parameters, and the statements, of each FUNCTION of a text."""
    found = {}
    for part in COMMENTS.sub("", text).split("FUNCTION void ")[1:]:
        name, rest = part.split("(", 1)
        parameters, body = rest.split(")", 1)
        names = [p.split()[-1].lstrip("*") for p in parameters.split(",")]
        found[name] = names, _Reader(body).block()
    return found
