"""Selectors as conditions on listed keys and queries, and those conditions as classes.

A selector is a conjunction of clauses; a clause is a truth table over the values of one key
expression and one query expression. Keys whose rows are equal are one class, and so are queries:
what a score has to tell apart is classes, not values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raspire.compile.domain import Domain, Finite, Vector, is_number
from raspire.compile.grid import lifted
from raspire.compile.lowering import negated, pair_of
from raspire.compile.naming import text_of
from raspire.errors import UnsupportedError
from raspire.program.nodes import Apply, Combine, Constant, Hardmax, Node, Select, Selector, SOp
from raspire.program.primitives import Primitive

Truth = NDArray[np.bool_]
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TABLE = 1 << 25
"""The most entries of a truth table."""


class Domains(Protocol):
    """Whoever knows the domain of a node."""

    def domain(self, node: SOp) -> Domain: ...


@dataclass(frozen=True, eq=False)
class Clause:
    """``table[k, q]``: whether key value k and query value q fulfil this condition."""

    keys: SOp
    queries: SOp
    table: Truth
    key_numbers: Vector | None = None
    query_numbers: Vector | None = None

    @cached_property
    def key_classes(self) -> tuple[Truth, NDArray[np.int64]]:
        """The distinct rows, and the class of every key value."""
        rows, of = np.unique(self.table, axis=0, return_inverse=True)
        return rows, of.reshape(-1)

    @cached_property
    def query_classes(self) -> tuple[Truth, NDArray[np.int64]]:
        """The distinct columns (one a row), and the class of every query value."""
        columns, of = np.unique(self.table.T, axis=0, return_inverse=True)
        return columns, of.reshape(-1)


def clauses(selector: Selector, domains: Domains) -> tuple[list[Clause], Hardmax | None]:
    """The conditions whose conjunction the selector is, and a hardmax among them if there is one.

    Conditions that always hold are left out.
    """
    factors, greatest = _factors(selector)
    merged: dict[tuple[int, int], Clause] = {}
    for factor in factors:
        clause = _clause(factor, domains)
        key = (id(clause.keys), id(clause.queries))
        if key in merged:
            clause = replace(clause, table=clause.table & merged[key].table)
        merged[key] = clause
    return [c for c in merged.values() if not c.table.all()], greatest


def _factors(selector: Selector) -> tuple[list[Selector], Hardmax | None]:
    """The conditions of a conjunction; of a hardmax, those of the keys that it chooses among."""
    found = _conjunction(selector)
    greatest = [part for part in found if isinstance(part, Hardmax)]
    if not greatest:
        return found, None
    if len(found) > 1:
        raise UnsupportedError(
            f"{text_of(selector)} is no one head: a hardmax chooses before other conditions hold",
            where=selector.place,
            hint="hardmax(score, among=condition) chooses among the keys of the condition",
        )
    among = _conjunction(greatest[0].among)
    if any(isinstance(part, Hardmax) for part in among):
        raise UnsupportedError("a hardmax among the keys of a hardmax is no one head")
    return among, greatest[0]


def _conjunction(selector: Selector) -> list[Selector]:
    found: list[Selector] = []
    stack: list[Any] = [selector]
    while stack:
        node = stack.pop()
        if isinstance(node, Combine) and pair_of(node) is None and node.op != "or":
            stack.extend(reversed(node.args) if node.op == "and" else [_pushed(node)])
        else:
            found.append(node)
    return found


def _pushed(node: Combine) -> Selector:
    inner: Any = node.args[0]
    if isinstance(inner, Hardmax):
        raise UnsupportedError("the negation of a hardmax is no head")
    return negated(inner)


def _clause(selector: Selector, domains: Domains) -> Clause:
    selects = _selects(selector)
    keys = _joint([s.keys for s in selects])
    queries = _joint([s.queries for s in selects])
    key_values = _listed(keys, domains, selector)
    query_values = _listed(queries, domains, selector)
    if len(key_values) * len(query_values) > _TABLE:
        raise UnsupportedError(
            f"the condition {text_of(selector)} has too many cases",
            where=selector.place,
            expected=f"at most {_TABLE} pairs of a key and a query value",
            found=f"{len(key_values)} key values and {len(query_values)} query values",
            hint="split it into a conjunction of conditions on one key and one query each",
        )
    table = _truth(selector, _Axis(keys, key_values), _Axis(queries, query_values))
    return Clause(keys, queries, table, _numbers(key_values), _numbers(query_values))


def _numbers(values: Sequence[Any]) -> Vector | None:
    return _array(values) if all(map(is_number, values)) else None


def _selects(selector: Selector) -> list[Select]:
    found: list[Select] = []
    stack: list[Node] = [selector]
    while stack:
        node = stack.pop()
        if isinstance(node, Select):
            found.append(node)
        elif isinstance(node, Hardmax):
            raise UnsupportedError("a hardmax under 'or' is no one head", where=node.place)
        else:
            stack.extend(reversed(node.args))
    return found


def _tuple(count: int) -> Primitive:
    def collect(*values: Any) -> Any:
        return values

    return Primitive("tuple", count, collect, exact=collect, kind=lambda *_: "?", family="opaque")


def _joint(nodes: Sequence[SOp]) -> SOp:
    """One expression that carries several: itself, or their tuple."""
    distinct = list(dict.fromkeys(n for n in nodes if not isinstance(n, Constant)))
    if not distinct:
        return nodes[0]
    return distinct[0] if len(distinct) == 1 else Apply(_tuple(len(distinct)), *distinct)


@dataclass(frozen=True)
class _Axis:
    node: SOp
    values: Sequence[Any]

    def column(self, part: SOp) -> Sequence[Any]:
        """The values of one part of a tuple, or of the whole."""
        if isinstance(part, Constant):
            return [lifted(part.value)] * len(self.values)
        if part is self.node:
            return self.values
        place = next(i for i, a in enumerate(self.node.args) if a is part)
        return [value[place] for value in self.values]


def _listed(node: SOp, domains: Domains, selector: Selector) -> Sequence[Any]:
    domain = domains.domain(node)
    if not isinstance(domain, Finite):
        raise UnsupportedError(
            f"{text_of(selector)} compares {text_of(node)}, whose values cannot be listed",
            where=selector.place,
            expected="a finite set of values on both sides",
            found=str(domain),
            hint="select on positions or on symbols; for a maximum use hardmax",
        )
    return domain.values


def _truth(selector: Node, keys: _Axis, queries: _Axis) -> Truth:
    if isinstance(selector, Select):
        return _compare(selector, keys.column(selector.keys), queries.column(selector.queries))
    assert isinstance(selector, Combine)
    parts = [_truth(a, keys, queries) for a in selector.args]
    if selector.op == "not":
        return ~parts[0]
    return parts[0] & parts[1] if selector.op == "and" else parts[0] | parts[1]


def _compare(select: Select, keys: Sequence[Any], queries: Sequence[Any]) -> Truth:
    known = _COMPARE.get(select.comparison.symbol or "")
    left, right = _array(keys), _array(queries)
    alike = left is not None and right is not None and left.dtype.kind == right.dtype.kind
    if known is not None and alike:
        table: Truth = known(left[:, None], right[None, :])  # type: ignore[index]
        return table
    holds = _total(select.comparison.scalar)
    return np.array([[holds(k, q) for q in queries] for k in keys], dtype=bool).reshape(
        len(keys), len(queries)
    )


def _array(values: Sequence[Any]) -> NDArray[Any] | None:
    """Numbers or texts as an array that NumPy compares as Python does, else None."""
    if all(map(is_number, values)):
        numbers = np.array([float(v) for v in values])
        return numbers if len(set(numbers.tolist())) == len(set(values)) else None
    if all(isinstance(v, str) and "\0" not in v for v in values):
        return np.array(values, dtype=str)
    return None


def _total(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    """A predicate that is false where it raises: no input reaches that pair without an error."""

    def call(key: Any, query: Any) -> bool:
        try:
            return bool(function(key, query))
        except Exception:
            return False

    return call
