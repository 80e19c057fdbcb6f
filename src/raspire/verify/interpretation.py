"""A program run in an arithmetic that proves something: GF(p), balls, rationals.

It is the reference's meaning with three differences. Selectors are lists of selected positions,
so that addresses cost N and not N². A selector never compares a value of the input. And where an
arithmetic cannot tell which of some values is greatest, the greatest score may still be read
through the head that found it: it is a function of the set of scores, whatever their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from raspire.arithmetic import Arithmetic
from raspire.errors import RaspError, RaspTypeError, UnsupportedError
from raspire.evaluate.reference import exact_rule, guarded, rasp_mean
from raspire.program.nodes import (
    Aggregate,
    Apply,
    Combine,
    Constant,
    Hardmax,
    Indices,
    Node,
    Select,
    Selector,
    SOp,
    Tokens,
    Width,
)
from raspire.program.walk import merge, topological

Rows = list[list[int]]
PLAIN = (bool, int, Fraction, str, tuple, type(None))


class Interpretation:
    """One input, and every node's values on it in one arithmetic."""

    def __init__(self, tokens: Sequence[Any], arithmetic: Arithmetic) -> None:
        self.arithmetic = arithmetic
        self.tokens = [arithmetic.lift(token) for token in tokens]
        self.known: dict[Node, list[Any]] = {}
        self.rows: dict[Node, Rows] = {}
        self.undecided: set[Node] = set()  # heads whose choice this arithmetic does not know

    def values(self, program: SOp) -> list[Any]:
        """The N values of an s-op; errors carry the place of the node in its source."""
        program = merge(program)
        for node in topological(program):
            try:
                if isinstance(node, Selector):
                    self.rows[node] = RULES[type(node)](self, node)
                else:
                    self.known[node] = RULES[type(node)](self, node)
            except RaspError as error:
                raise error.at(node.place) from None
        return self.known[program]

    @property
    def length(self) -> int:
        """N."""
        return len(self.tokens)

    # ------------------------------------------------------------------------------- s-ops

    def _tokens(self, node: Tokens) -> list[Any]:
        return self.tokens

    def _indices(self, node: Indices) -> list[Any]:
        return list(range(self.length))

    def _constant(self, node: Constant) -> list[Any]:
        constant = getattr(self.arithmetic, "constant", self.arithmetic.lift)
        return [constant(node.value)] * self.length

    def _apply(self, node: Apply) -> list[Any]:
        form = guarded(self.arithmetic.form(node.primitive), node.primitive.name)
        columns = (self.known[child] for child in node.args)
        return [form(*values) for values in zip(*columns, strict=True)]

    def _aggregate(self, node: Aggregate) -> list[Any]:
        values, rows = self.known[node.value], self.rows[node.selector]
        default = self.arithmetic.lift(node.default)
        mean: Callable[[list[Any]], Any] = self._mean
        if node.rule == "rasp" and all(isinstance(v, PLAIN) for v in values):
            text_rule = rasp_mean(values, self.arithmetic)
            mean = lambda chosen: text_rule(chosen, self.arithmetic)  # noqa: E731
        if node.selector in self.undecided:
            mean = self._greatest(node)
        shared: dict[int, Any] = {}  # queries of one group share their row, and so their mean
        for row in rows:
            if id(row) not in shared:
                shared[id(row)] = mean([values[j] for j in row]) if row else default
        return [shared[id(row)] for row in rows]

    def _mean(self, chosen: list[Any]) -> Any:
        if len(chosen) == 1:
            return chosen[0]
        if all(isinstance(v, PLAIN) for v in chosen):
            return exact_rule(chosen, self.arithmetic)
        return self.arithmetic.mean(chosen)

    def _greatest(self, node: Aggregate | Width) -> Callable[[list[Any]], Any]:
        if not is_greatest(node):
            raise UnsupportedError(
                "which key has the greatest score is not known in this arithmetic",
                expected="the greatest score itself, read through the head that finds it",
                found=repr(node)[:120],
            )
        return self.arithmetic.greatest  # type: ignore[attr-defined,no-any-return]

    def _width(self, node: Width) -> list[Any]:
        if node.selector in self.undecided:
            self._greatest(node)
        return [len(row) for row in self.rows[node.selector]]

    # --------------------------------------------------------------------------- selectors

    def _select(self, node: Select) -> Rows:
        keys, queries = self.known[node.keys], self.known[node.queries]
        for value in (*keys, *queries):
            if not isinstance(value, PLAIN):
                raise RaspTypeError(
                    "a selector compares a value that depends on the input's numbers",
                    expected="integers, which addresses and counts are",
                    found=repr(value),
                    hint="programs that order or match real values have no proof of this kind",
                )
        if node.comparison.symbol == "==":
            return _joined(keys, queries)
        holds = guarded(node.comparison.scalar, node.comparison.name)
        rows: dict[Any, list[int]] = {}
        kinds = [(type(query), query) for query in queries]  # a predicate may ask for the type
        for kind in kinds:
            if kind not in rows:
                rows[kind] = [j for j, key in enumerate(keys) if holds(key, kind[1])]
        return [rows[kind] for kind in kinds]

    def _combine(self, node: Combine) -> Rows:
        if self.undecided.intersection(node.args):
            self.undecided.add(node)
        parts = [self.rows[child] for child in node.args]
        made: dict[tuple[int, ...], list[int]] = {}
        result = []
        for rows in zip(*parts, strict=True):
            key = tuple(map(id, rows))
            if key not in made:
                made[key] = self._combined(node.op, [set(row) for row in rows])
            result.append(made[key])
        return result

    def _combined(self, op: str, rows: list[set[int]]) -> list[int]:
        if op == "not":
            return [j for j in range(self.length) if j not in rows[0]]
        joined = rows[0] & rows[1] if op == "and" else rows[0] | rows[1]
        return sorted(joined)

    def _hardmax(self, node: Hardmax) -> Rows:
        scores, among = self.known[node.score], self.rows[node.among]
        if any(not isinstance(s, PLAIN) for s in scores):
            self.undecided.add(node)
            return among
        made: dict[int, list[int]] = {}
        for row in among:
            if id(row) not in made:
                best = max((scores[j] for j in row), default=None)
                made[id(row)] = [j for j in row if scores[j] == best]
        return [made[id(row)] for row in among]


def _joined(keys: list[Any], queries: list[Any]) -> Rows:
    groups: dict[Any, list[int]] = {}
    for position, key in enumerate(keys):
        groups.setdefault(key, []).append(position)
    empty: list[int] = []
    return [groups.get(query, empty) for query in queries]


def is_greatest(node: Node) -> bool:
    """Whether the node reads the greatest score through the head that found it."""
    return (
        isinstance(node, Aggregate)
        and isinstance(node.selector, Hardmax)
        and node.selector.score is node.value
    )


RULES: dict[type[Node], Callable[..., Any]] = {
    Tokens: Interpretation._tokens,
    Indices: Interpretation._indices,
    Constant: Interpretation._constant,
    Apply: Interpretation._apply,
    Aggregate: Interpretation._aggregate,
    Width: Interpretation._width,
    Select: Interpretation._select,
    Combine: Interpretation._combine,
    Hardmax: Interpretation._hardmax,
}
