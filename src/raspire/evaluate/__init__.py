"""Evaluation: a program and tokens give values.

The meaning is :mod:`raspire.evaluate.reference`; everything else here is a faster way to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from raspire.arithmetic import Arithmetic, arithmetic_named
from raspire.errors import RaspTypeError
from raspire.evaluate import contraction
from raspire.evaluate.batches import batch
from raspire.evaluate.columns import Column
from raspire.evaluate.engine import Run
from raspire.evaluate.explain import explain
from raspire.evaluate.fields import by_columns
from raspire.evaluate.inputs import column_of, given_as, positions_of
from raspire.evaluate.joins import Tick
from raspire.evaluate.plans import planned
from raspire.evaluate.positions import Array, Positions, Span, compact
from raspire.evaluate.progress import shown
from raspire.evaluate.ranking import distinct
from raspire.evaluate.reference import Evaluation, reference
from raspire.evaluate.strings import all_strings, count_strings, random_strings
from raspire.given import whole
from raspire.program.nodes import Node, Selector, SOp

__all__ = [
    "BUDGET",
    "Column",
    "Evaluation",
    "all_strings",
    "batch",
    "column",
    "count_strings",
    "evaluate",
    "explain",
    "random_strings",
    "reference",
    "shown",
]

BUDGET = 2 << 30
"""The bytes that one evaluation may hold at once, if nothing else is said."""

CONTRACTION_LENGTH = 64
"""Shorter inputs are not worth the search for a contraction."""


def evaluate(
    program: Node,
    tokens: Any,
    *,
    arithmetic: str | Arithmetic = "float64",
    budget: int = BUDGET,
    positions: Any = None,
    tick: Tick | None = None,
    contract: bool = True,
) -> Any:
    """The values of a program on one input: N values, or N rows of N bools for a selector.

    Text and lists give a list, an array gives an array, a :class:`Column` a column.
    ``positions`` reads the program at these positions alone, in this order. ``budget`` is in
    bytes. ``tick(what, done, of)`` is called now and then. ``contract=False`` forms every
    product, even where a tensor contraction gives the same sums.

    >>> from raspire import aggregate, indices, length, select, tokens
    >>> reverse = aggregate(select(indices, length - 1 - indices, "=="), tokens)
    >>> evaluate(reverse, "hello"), evaluate(reverse, "hello", positions=[4, 0])
    (['o', 'l', 'l', 'e', 'h'], ['h', 'o'])
    """
    if not isinstance(program, SOp | Selector):
        raise RaspTypeError(
            "this is no program",
            expected="an s-op or a selector",
            found=type(program).__name__,
        )
    budget = whole("budget", budget)
    numbers = by_columns(arithmetic_named(arithmetic))
    given = column_of(tokens, numbers)
    length = len(given)
    if isinstance(program, Selector):
        return _rows(program, tokens, given, numbers, budget, positions)
    if length == 0:
        return given_as(given, tokens, numbers)
    wanted: Positions = Span(0, length)
    back: Array | None = None
    if positions is not None:
        wanted, back = _sorted(positions_of(positions, length))
        if len(wanted) == 0:
            return given_as(given.take(slice(0, 0)), tokens, numbers)
    if contract and numbers.name == "float64" and isinstance(tokens, np.ndarray):
        found = _contracted(program, given, positions, budget)
        if found is not None:
            return found
    plan = planned(program, length, 1, wanted, numbers)
    assert isinstance(plan.program, SOp)
    with numbers.working():
        result = Run(plan.demand, given, numbers, budget, tick).value(plan.program)
    return given_as(result if back is None else result.take(back), tokens, numbers)


def column(tokens: Any, arithmetic: str | Arithmetic = "float64") -> Column:
    """The tokens as a column, to be evaluated on many times without conversion.

    >>> from raspire import indices
    >>> evaluate(indices * 2, column("abc")).values()
    [0, 2, 4]
    """
    return column_of(tokens, arithmetic_named(arithmetic))


def _sorted(positions: Array) -> tuple[Positions, Array | None]:
    """Sorted positions, each once, and where in them every asked one is (None: as they are)."""
    if len(positions) < 2 or bool(np.all(positions[1:] > positions[:-1])):
        return compact(positions), None
    ascending, back = distinct(positions)
    return compact(ascending), back


def _contracted(program: SOp, tokens: Column, positions: Any, budget: int) -> Array | None:
    if tokens.kind != "f" or len(tokens) < CONTRACTION_LENGTH:
        return None
    plan = contraction.plan(program, len(tokens), positions, budget)
    return None if plan is None else plan.run(tokens.data)


def _rows(
    program: Selector,
    tokens: Any,
    given: Column,
    numbers: Arithmetic,
    budget: int,
    positions: Any,
) -> Any:
    length = len(given)
    if length:
        plan = planned(program, length, 1, Span(0, length), numbers)
        assert isinstance(plan.program, Selector)
        rows = Run(plan.demand, given, numbers, budget).rows_of(plan.program)
    else:
        rows = np.zeros((0, 0), dtype=np.bool_)
    if positions is not None:
        rows = rows[positions_of(positions, length)]
    return rows if isinstance(tokens, np.ndarray) else rows.tolist()
