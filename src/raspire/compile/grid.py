"""Elementwise functions on listed values: a whole expression over a grid of its variables.

The meaning is the exact one (rationals stay rationals). A point where the expression has no value
(a division by zero, a type that does not fit) is undefined: no input reaches it without an error,
so it does not restrict the weights.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from raspire.arithmetic import EXACT
from raspire.compile.domain import UNDEFINED, simplest
from raspire.program.nodes import Apply, Constant, Node, SOp
from raspire.program.primitives import Primitive

LIMIT = 40_000
"""The most points of a grid."""


def lifted(value: Any) -> Any:
    """A constant as the exact arithmetic has it."""
    return EXACT.lift(value) if not isinstance(value, tuple) else value


def meaning(record: Primitive) -> Callable[..., Any]:
    """The exact form of a primitive, or its form on floats where it has none; never raises."""
    function = record.exact or record.scalar

    def call(*values: Any) -> Any:
        if any(v is UNDEFINED for v in values):
            return UNDEFINED
        try:
            result = simplest(function(*values))
        except Exception:
            return UNDEFINED
        if isinstance(result, float) and not math.isfinite(result):
            return UNDEFINED
        return result

    return call


def size_of(counts: Sequence[int]) -> int:
    """How many points the grid of so many values a variable has."""
    return math.prod(counts)


def grid(domains: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """The points of a grid, the last variable running fastest."""
    return list(itertools.product(*domains))


Columns: TypeAlias = dict[Node, Sequence[Any]]


def on_grid(node: SOp, columns: Columns) -> list[Any]:
    """The values of an elementwise expression where its variables take the given columns.

    The columns of everything on the way are added, so that a longer expression starts from them.
    """
    count = len(next(iter(columns.values()))) if columns else 1
    for part in _between(node, columns):
        if isinstance(part, Constant):
            columns[part] = [lifted(part.value)] * count
        else:
            assert isinstance(part, Apply)
            call = meaning(part.primitive)
            rows = zip(*(columns[a] for a in part.args), strict=True)
            columns[part] = [call(*row) for row in rows]
    return list(columns[node])


def _between(node: Node, stop: Mapping[Node, Any]) -> list[Node]:
    """The nodes from the variables up to ``node``, children first."""
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(node, False)]
    while stack:
        here, expanded = stack.pop()
        if expanded:
            order.append(here)
        elif here not in seen and here not in stop:
            seen.add(here)
            stack.append((here, True))
            stack.extend((child, False) for child in here.args)
    return order
