"""The meaning of a program: dense selectors, exact means, one rule a construct.

This is the shortest honest definition. It is quadratic, it runs on single Python values, and
everything fast is tested against it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from raspire.arithmetic import Arithmetic, arithmetic_named
from raspire.errors import RaspError, RaspTypeError, RaspValueError
from raspire.program.nodes import (
    Aggregate,
    Apply,
    Combine,
    Constant,
    Hardmax,
    Indices,
    Node,
    Select,
    Tokens,
    Width,
)
from raspire.program.walk import topological

Rows = list[list[bool]]
PLAIN = (bool, int, float, str, Fraction, tuple, type(None))
"""What can be compared for equality in every arithmetic."""


def reference(
    program: Node, tokens: Iterable[Any], arithmetic: str | Arithmetic = "float64"
) -> list[Any]:
    """The value of an s-op (a list of N values) or of a selector (N rows of N bools).

    Errors are RaspErrors that carry the place of the node in its source.

    >>> from raspire import indices, select, selector_width, tokens
    >>> reference(selector_width(select(tokens, tokens, "==")), "hello")
    [1, 1, 2, 2, 1]
    """
    return Evaluation(tokens, arithmetic).value(program)


class Evaluation:
    """One input and the values of every node computed on it so far."""

    def __init__(self, tokens: Iterable[Any], arithmetic: str | Arithmetic = "float64") -> None:
        self.arithmetic = arithmetic_named(arithmetic)
        self.tokens = [self.arithmetic.lift(token) for token in tokens]
        self.known: dict[Node, list[Any]] = {}

    def value(self, program: Node) -> list[Any]:
        """The value of the program, and on the way of every node below it."""
        for node in topological(program):
            if node not in self.known:
                try:
                    values = [self.known[child] for child in node.args]
                    self.known[node] = RULES[type(node)](self, node, *values)
                except RaspError as error:
                    raise error.at(node.place) from None
        return self.known[program]

    def _tokens(self, node: Tokens) -> list[Any]:
        return list(self.tokens)

    def _indices(self, node: Indices) -> list[Any]:
        return list(range(len(self.tokens)))

    def _constant(self, node: Constant) -> list[Any]:
        return [self.arithmetic.constant(node.value)] * len(self.tokens)

    def _apply(self, node: Apply, *columns: list[Any]) -> list[Any]:
        form = guarded(self.arithmetic.form(node.primitive), node.primitive.name)
        return [form(*values) for values in zip(*columns, strict=True)]

    def _select(self, node: Select, keys: list[Any], queries: list[Any]) -> Rows:
        holds = guarded(node.comparison.scalar, node.comparison.name)
        return [[bool(holds(key, query)) for key in keys] for query in queries]

    def _combine(self, node: Combine, *parts: Rows) -> Rows:
        if node.op == "not":
            return [[not cell for cell in row] for row in parts[0]]
        join = all if node.op == "and" else any
        return [
            [join(cells) for cells in zip(*rows, strict=True)] for rows in zip(*parts, strict=True)
        ]

    def _hardmax(self, node: Hardmax, among: Rows, score: list[Any]) -> Rows:
        return [greatest(row, score) for row in among]

    def _aggregate(self, node: Aggregate, selector: Rows, values: list[Any]) -> list[Any]:
        default = self.arithmetic.constant(node.default)
        mean = rasp_mean(values, self.arithmetic) if node.rule == "rasp" else exact_rule
        chosen = ([v for v, cell in zip(values, row, strict=True) if cell] for row in selector)
        return [mean(some, self.arithmetic) if some else default for some in chosen]

    def _width(self, node: Width, selector: Rows) -> list[Any]:
        return [sum(row) for row in selector]


RULES: dict[type[Node], Callable[..., Any]] = {
    Tokens: Evaluation._tokens,
    Indices: Evaluation._indices,
    Constant: Evaluation._constant,
    Apply: Evaluation._apply,
    Select: Evaluation._select,
    Combine: Evaluation._combine,
    Hardmax: Evaluation._hardmax,
    Aggregate: Evaluation._aggregate,
    Width: Evaluation._width,
}


def guarded(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function with whatever it raises turned into a RaspError that names it."""

    def call(*values: Any) -> Any:
        try:
            return function(*values)
        except RaspError:
            raise
        except Exception as error:
            raise RaspValueError(
                f"{name} failed: {type(error).__name__}: {error}",
                found=", ".join(map(repr, values)),
            ) from error

    return call


def greatest(row: list[bool], score: list[Any]) -> list[bool]:
    """Of the chosen cells of a row, those of greatest score; a NaN is never the greatest."""
    chosen = [s for s, cell in zip(score, row, strict=True) if cell and s == s]
    if not chosen:
        return [False] * len(row)
    try:
        best = max(chosen)
    except TypeError:
        raise not_ordered(chosen) from None
    return [cell and s == best for s, cell in zip(score, row, strict=True)]


def exact_rule(chosen: list[Any], arithmetic: Arithmetic) -> Any:
    """Equal values of one type stay that value; other numbers give their exact mean."""
    first = chosen[0]
    if len(chosen) == 1:
        return first
    if isinstance(first, PLAIN) and all(type(v) is type(first) and v == first for v in chosen):
        return first
    if not all(map(arithmetic.number, chosen)):
        raise not_numbers(chosen)
    return arithmetic.mean(chosen)


def rasp_mean(payload: list[Any], arithmetic: Arithmetic) -> Callable[..., Any]:
    """One value stays itself; several give a float if the payload as a whole is numeric."""
    numeric = all(map(arithmetic.number, payload)) and not all(isinstance(v, bool) for v in payload)

    def mean(chosen: list[Any], arithmetic: Arithmetic) -> Any:
        if len(chosen) == 1:
            return chosen[0]
        if not numeric:
            raise not_numbers(chosen, "one selected value, or numbers")
        result = arithmetic.mean(chosen)
        return arithmetic.inexact(result)

    return mean


def not_numbers(
    chosen: list[Any], expected: str = "one selected value, equal values, or numbers"
) -> RaspTypeError:
    """The error for a mean over values that have none."""
    return RaspTypeError(
        "several selected values that are not numbers have no mean",
        expected=expected,
        found=", ".join(repr(v) for v in chosen[:5]) + (", ..." if len(chosen) > 5 else ""),
        hint="select one position only, or turn the values into numbers",
    )


def not_ordered(chosen: list[Any]) -> RaspTypeError:
    """The error for a maximum over values that cannot be compared."""
    kinds = sorted({type(v).__name__ for v in chosen})
    return RaspTypeError(
        "a maximum needs values of one ordered kind", expected="numbers", found=" and ".join(kinds)
    )
