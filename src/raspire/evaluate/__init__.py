"""Evaluation: a program and tokens give values.

The meaning is :mod:`raspire.evaluate.reference`; everything else here is a faster way to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from raspire.arithmetic import Arithmetic
from raspire.evaluate.inputs import array_of, is_array, positions_of, sequence_of
from raspire.evaluate.reference import reference
from raspire.program.nodes import Node

__all__ = ["BUDGET", "batch", "evaluate", "reference"]

BUDGET = 2 << 30
"""The bytes that one evaluation may hold at once, if nothing else is said."""


def evaluate(
    program: Node,
    tokens: Any,
    *,
    arithmetic: str | Arithmetic = "float64",
    budget: int = BUDGET,
    positions: Any = None,
) -> Any:
    """The values of a program on one input: N values, or N rows of N bools for a selector.

    Text and lists give a list, an array gives an array. ``positions`` reads the program at these
    positions alone, in this order. ``budget`` is in bytes.

    >>> from raspire import aggregate, indices, length, select, tokens
    >>> reverse = aggregate(select(indices, length - 1 - indices, "=="), tokens)
    >>> evaluate(reverse, "hello"), evaluate(reverse, "hello", positions=[4, 0])
    (['o', 'l', 'l', 'e', 'h'], ['h', 'o'])
    """
    sequence = sequence_of(tokens)
    values = reference(program, _plain(sequence), arithmetic)
    if positions is not None:
        values = [values[i] for i in positions_of(positions, len(sequence))]
    return array_of(values) if is_array(tokens) else values


def batch(program: Node, tokens: Any, **options: Any) -> Any:
    """The values on many inputs: an array (B, N) gives an array, a list of inputs a list."""
    if is_array(tokens):
        import numpy as np

        return np.stack([evaluate(program, row, **options) for row in tokens])
    return [evaluate(program, row, **options) for row in tokens]


def _plain(tokens: Sequence[Any]) -> list[Any]:
    return tokens.tolist() if is_array(tokens) else list(tokens)  # type: ignore[attr-defined]
