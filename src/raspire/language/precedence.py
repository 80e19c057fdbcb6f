"""RASP's seven levels of binary operators, all of them grouping to the left.

The levels are the original's, surprises included: ``in`` is loosest, ``and`` and ``or`` share one
level, ``%`` lies between sums and products, and ``^`` groups to the left like all the others.
"""

from __future__ import annotations

from raspire.language.syntax import Syntax

LEVELS = {
    "in": 1,
    "if": 2,
    **dict.fromkeys(("and", "or"), 3),
    **dict.fromkeys(("==", "!=", "<=", ">=", "<", ">"), 4),
    **dict.fromkeys(("+", "-"), 5),
    "%": 6,
    **dict.fromkeys(("*", "/", "//"), 7),
    "^": 8,
}

Operator = tuple[str, int, Syntax | None]
"""The operator, its offset, and the condition of a ternary."""


def group(operands: list[Syntax], operators: list[Operator]) -> Syntax:
    """The tree of ``operand (operator operand)*``: one more operand than operators."""
    output = [operands[0]]
    waiting: list[Operator] = []
    for operator, operand in zip(operators, operands[1:], strict=True):
        level = LEVELS[operator[0]]
        while waiting and LEVELS[waiting[-1][0]] >= level:
            _reduce(output, waiting.pop())
        waiting.append(operator)
        output.append(operand)
    while waiting:
        _reduce(output, waiting.pop())
    return output[0]


def _reduce(output: list[Syntax], operator: Operator) -> None:
    symbol, at, condition = operator
    right = output.pop()
    left = output.pop()
    if condition is None:
        output.append(Syntax("binary", at, (left, right), symbol))
    else:
        output.append(Syntax("ternary", at, (left, condition, right)))
