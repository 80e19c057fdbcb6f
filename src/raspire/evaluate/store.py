"""Where columns are kept while a program runs: every s-op at the positions it was wanted at."""

from __future__ import annotations

import numpy as np

from raspire.arithmetic import Arithmetic
from raspire.errors import BudgetError
from raspire.evaluate import columns
from raspire.evaluate.columns import Column
from raspire.evaluate.demand import index_column
from raspire.evaluate.positions import Array, Positions, Span, ends, offsets, same
from raspire.program.nodes import Constant, Indices, Node, SOp, Tokens


class Stored:
    """A column and the positions it is for."""

    def __init__(self, positions: Positions, column: Column) -> None:
        self.positions, self.column = positions, column
        self._table: Array | None = None

    def at(self, wanted: Positions) -> Column:
        """The column at sorted positions, all of them stored."""
        if same(wanted, self.positions):
            return self.column
        if self.column.uniform:
            return self.column.stretched(len(wanted))
        return self.column.take(offsets(self.positions, wanted))

    def pick(self, wanted: Array) -> Column:
        """The column at positions in any order, all of them stored."""
        if self.column.uniform and self.column.length > 0:
            return self.column.stretched(len(wanted))
        if isinstance(self.positions, Span):
            start = self.positions.start
            return self.column.take(wanted - start if start else wanted)
        low, high = ends(self.positions) if len(self.positions) else (0, 0)
        if len(wanted) < 4096 or high - low > max(16 * len(self.positions), 1 << 26):
            return self.column.take(np.searchsorted(self.positions, wanted))
        if self._table is None:
            self._table = np.zeros(high - low + 1, dtype=np.int32)
            self._table[self.positions - low] = np.arange(len(self.positions), dtype=np.int32)
        return self.column.take(self._table[wanted - low])


class Store:
    """The tokens, and the columns there are by now. In a batch the positions of all inputs stand
    one after another."""

    def __init__(self, tokens: Column, length: int, rows: int, arithmetic: Arithmetic) -> None:
        self.length, self.rows, self.arithmetic = length, rows, arithmetic
        self.tokens = Stored(Span(0, rows * length), tokens)
        self.stored: dict[Node, Stored] = {}

    def put(self, node: Node, positions: Positions, column: Column) -> None:
        """Keep a column."""
        self.stored[node] = Stored(positions, column)

    def drop(self, node: Node) -> None:
        """Forget a column, if it is there."""
        self.stored.pop(node, None)

    def read(self, node: SOp, positions: Positions) -> Column:
        """A node that has been computed, or a leaf, at sorted positions."""
        stored = self.stored.get(node)
        if stored is not None and (node.args or same(stored.positions, positions)):
            return stored.at(positions)
        return self.leaf(node, positions)

    def span(self, node: SOp, start: int, stop: int) -> Column | None:
        """A node at start, ..., stop-1, if it is stored for all positions from one to another."""
        stored = self.tokens if isinstance(node, Tokens) else self.stored.get(node)
        if stored is None:
            return self.leaf(node, Span(start, stop)) if not node.args else None
        if not isinstance(stored.positions, Span):
            return None
        first = stored.positions.start
        if start < first or stop > stored.positions.stop:
            return None
        return stored.column.take(slice(start - first, stop - first))

    def leaf(self, node: SOp, positions: Positions) -> Column:
        """The tokens, the indices or a constant at some positions."""
        if isinstance(node, Tokens):
            return self.tokens.at(positions)
        if isinstance(node, Indices):
            return index_column(positions, self.length)
        if isinstance(node, Constant):
            return columns.constant(self.arithmetic.constant(node.value), len(positions))
        raise AssertionError(f"{type(node).__name__} has not been computed")

    def picked(self, node: SOp, at: Array) -> Column:
        """A node at addresses in any order, at all of which it was wanted."""
        if node.args:
            return self.stored[node].pick(at)
        if isinstance(node, Tokens):
            return self.tokens.pick(at)
        if isinstance(node, Indices):
            return index_column(at, self.length)
        return self.leaf(node, at)

    def check(self, node: SOp, budget: int) -> None:
        """Refuse, with the numbers, to hold more than the budget."""
        if self.stored[node].column.nbytes < budget >> 6:
            return
        held = sum(stored.column.nbytes for stored in self.stored.values())
        if held > budget:
            raise BudgetError(
                "this evaluation holds more than its budget",
                where=node.place,
                expected=f"at most {budget:,} bytes",
                found=f"{held:,} bytes in {len(self.stored)} s-ops of {self.length:,} positions",
                hint="read the program at fewer positions, or raise the budget",
            )
