"""Many inputs at once: those of one length run together, by the same array operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from raspire.arithmetic import Arithmetic, arithmetic_named
from raspire.errors import RaspError, RaspTypeError
from raspire.evaluate.assembly import assemble
from raspire.evaluate.columns import Column
from raspire.evaluate.engine import RowByRow, Run
from raspire.evaluate.fields import by_columns
from raspire.evaluate.inputs import column_of
from raspire.evaluate.plans import planned
from raspire.evaluate.positions import Array, Span
from raspire.given import elements, whole
from raspire.program.nodes import Node, SOp

CELLS = 1 << 19
"""Positions that run together: enough for whole arrays, few enough for the caches."""


def batch(
    program: Node,
    tokens: Any,
    *,
    arithmetic: str | Arithmetic = "float64",
    budget: int = 2 << 30,
    tick: Callable[[str, int, int], None] | None = None,
) -> Any:
    """The values on many inputs: an array (B, N) gives an array, a list of inputs a list.

    A list may hold sequences of many lengths; those of one length run together.

    >>> from raspire import indices, select, selector_width, tokens
    >>> width = selector_width(select(tokens, tokens, "=="))
    >>> batch(width, ["aab", "a", "bcb"])
    [[2, 2, 1], [1], [2, 1, 2]]
    >>> batch(width, np.array([[0, 0, 1], [5, 6, 7]])).tolist()
    [[2, 2, 1], [1, 1, 1]]
    """
    if not isinstance(program, SOp):
        raise RaspTypeError(
            "a batch runs s-ops", expected="an s-op", found="a selector",
            hint="evaluate a selector on one input at a time",
        )  # fmt: skip
    budget = whole("budget", budget)
    numbers = by_columns(arithmetic_named(arithmetic))
    run = _Batch(program, numbers, budget, tick or (lambda what, done, of: None))
    if isinstance(tokens, np.ndarray):
        return run.array(tokens)
    if isinstance(tokens, str):
        raise RaspTypeError(
            "a batch is many inputs", expected="a list of inputs", found="one text",
            hint="program(text) runs one input",
        )  # fmt: skip
    return run.ragged(elements("a batch", tokens))


class _Batch:
    def __init__(
        self,
        program: SOp,
        arithmetic: Arithmetic,
        budget: int,
        tick: Callable[[str, int, int], None],
    ) -> None:
        self.program, self.arithmetic = program, arithmetic
        self.budget, self.tick = budget, tick

    def array(self, tokens: Array) -> Array:
        """Rows of one length."""
        if tokens.ndim != 2:
            raise RaspTypeError(
                "a batch is an array of two dimensions",
                expected="an array of shape (B, N)",
                found=f"shape {tokens.shape}",
            )
        rows, length = tokens.shape
        if rows == 0 or length == 0:
            return np.empty((rows, length))
        size = max(1, CELLS // length)
        found = []
        for start in range(0, rows, size):
            part = np.ascontiguousarray(tokens[start : start + size])
            given = column_of(part.reshape(-1), self.arithmetic)
            found.append(self.columns(given, len(part), length).array().reshape(part.shape))
            self.tick("inputs", min(rows, start + size), rows)
        if len({part.dtype.kind for part in found}) > 1:
            found = _alike(found)
        return np.concatenate(found)

    def columns(self, given: Column, rows: int, length: int) -> Column:
        """One block of rows, as one column of all of their positions.

        What is an error in one row, or only looks like one because rows differ in type, is
        decided row by row.
        """
        try:
            return self._run(given, rows, length)
        except (RaspError, RowByRow):
            if rows == 1:
                raise
        found = [
            self._run(given.take(slice(row * length, (row + 1) * length)), 1, length)
            for row in range(rows)
        ]
        offsets = np.arange(length)
        return assemble(
            rows * length, [(offsets + row * length, part) for row, part in enumerate(found)]
        )

    def _run(self, given: Column, rows: int, length: int) -> Column:
        plan = planned(self.program, length, rows, Span(0, rows * length), self.arithmetic)
        assert isinstance(plan.program, SOp)
        with self.arithmetic.working():
            return Run(plan.demand, given, self.arithmetic, self.budget).value(plan.program)

    def ragged(self, inputs: Sequence[Any]) -> list[list[Any]]:
        """Sequences of many lengths, in buckets of one."""
        sequences = [
            i.tolist() if isinstance(i, np.ndarray) and i.ndim else elements("an input", i)
            for i in inputs
        ]
        buckets: dict[int, list[int]] = {}
        for at, sequence in enumerate(sequences):
            buckets.setdefault(len(sequence), []).append(at)
        found: list[list[Any]] = [[] for _ in sequences]
        done = 0
        for length, members in buckets.items():
            done += len(members)
            if not length:
                continue
            size = max(1, CELLS // length)
            for start in range(0, len(members), size):
                part = members[start : start + size]
                flat = [token for at in part for token in sequences[at]]
                given = column_of(flat, self.arithmetic)
                values = self.columns(given, len(part), length).values()
                for row, at in enumerate(part):
                    found[at] = values[row * length : (row + 1) * length]
            self.tick("inputs", done, len(sequences))
        return found


def _alike(parts: list[Array]) -> list[Array]:
    kinds = {part.dtype.kind for part in parts}
    if kinds <= set("if"):
        return [part.astype(np.float64) for part in parts]
    return [part.astype(object) for part in parts]
