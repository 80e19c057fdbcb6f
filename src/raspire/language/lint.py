"""Warnings about precedence: what reads one way to most people and means another in RASP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from raspire.language.dialect import every
from raspire.language.source import Source
from raspire.language.syntax import Syntax

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
LOGIC = ("and", "or")


def warnings(trees: list[Syntax], source: Source) -> list[dict[str, Any]]:
    """The warnings of some statements, each with line, column and message.

    >>> from raspire.language.statements import parse
    >>> source = Source("x = not 1 == 2;")
    >>> warnings(list(parse(source)), source)[0]["message"]
    "'not a == b' means '(not a) == b': write parentheses"
    """
    found = []
    for tree in every(trees):
        message = _warning(tree)
        if message:
            place = source.place(tree.at)
            found.append({"line": place.line, "column": place.column,
                          "message": f"{message}: write parentheses"})  # fmt: skip
    return sorted(found, key=lambda entry: (entry["line"], entry["column"]))


def _warning(tree: Syntax) -> str | None:
    if tree.kind == "ternary":
        if _open(tree.parts[0], "ternary"):
            return "'a if b else c if d else e' means '(a if b else c) if d else e'"
        return None
    if tree.kind != "binary":
        return None
    left, right = tree.parts
    return next((text for holds, text in _RULES if holds(tree.value, left, right)), None)


def _open(tree: Syntax, kind: str, *values: str) -> bool:
    """Whether an operand is of that kind, with one of these operators, without parentheses."""
    return tree.kind == kind and not tree.bracketed and (not values or tree.value in values)


_Rule = tuple[Callable[[str, Syntax, Syntax], bool], str]
_RULES: tuple[_Rule, ...] = (
    (
        lambda op, a, b: op in COMPARISONS and _open(a, "unary", "not"),
        "'not a == b' means '(not a) == b'",
    ),
    (
        lambda op, a, b: op == "in" and _open(a, "unary", "not"),
        "'not a in b' means '(not a) in b'",
    ),
    (
        lambda op, a, b: (
            op == "in" and any(_open(x, "ternary") or _open(x, "binary", *LOGIC) for x in (a, b))
        ),
        "'in' binds loosest: 'a and b in c' means '(a and b) in c'",
    ),
    (
        lambda op, a, b: op in LOGIC and a.value != op and _open(a, "binary", *LOGIC),
        "'and' and 'or' bind alike, from the left: 'a or b and c' means '(a or b) and c'",
    ),
    (
        lambda op, a, b: op in COMPARISONS and _open(a, "binary", *COMPARISONS),
        "'a < b < c' means '(a < b) < c'",
    ),
    (
        lambda op, a, b: op == "%" and _open(b, "binary", "*", "/", "//"),
        "'a % b * c' means 'a % (b * c)'",
    ),
    (lambda op, a, b: op == "^" and _open(a, "unary", "-"), "'-a ^ b' means '(-a) ^ b'"),
    (lambda op, a, b: op == "^" and _open(a, "binary", "^"), "'a ^ b ^ c' means '(a ^ b) ^ c'"),
)
