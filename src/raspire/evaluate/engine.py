"""The engine: one program on one input, or on a batch of inputs of one length, by columns.

Demand has said where each s-op is wanted; here they are computed in that order, every one once,
and forgotten when their last reader has run. In a batch the positions of all inputs stand one
after another, and every selector carries one more equality: key and query are of one input.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np

from raspire.arithmetic import Arithmetic
from raspire.errors import BudgetError, RaspError
from raspire.evaluate import columns
from raspire.evaluate.blocks import by_blocks, matrix
from raspire.evaluate.codes import combined, equality_codes, ranks, whole_numbers
from raspire.evaluate.columns import Column, assemble
from raspire.evaluate.demand import BLOCK, Demand, index_column
from raspire.evaluate.elementwise import apply
from raspire.evaluate.kernels import (
    Order,
    Totals,
    added,
    by_dominance,
    by_group,
    by_order,
    sort,
)
from raspire.evaluate.payload import Payload, explained, payload
from raspire.evaluate.positions import (
    Array,
    Positions,
    Span,
    as_array,
    blocks,
    ends,
    offsets,
    same,
)
from raspire.evaluate.selectors import EQUAL, GREATER, SYMBOLS, Clause, clauses
from raspire.program.nodes import (
    COMPARISONS,
    Aggregate,
    Apply,
    Constant,
    Hardmax,
    Indices,
    Node,
    Selector,
    SOp,
    Tokens,
    Width,
)
from raspire.program.primitives import primitive
from raspire.program.walk import topological

Tick = Callable[[str, int, int], None]


class RowByRow(Exception):  # noqa: N818  (an answer, not an error)
    """The rows of this batch differ in type where the meaning depends on it."""


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


class Run:
    """One evaluation: the tokens, the demand, and the columns there are by now."""

    def __init__(
        self,
        demand: Demand,
        tokens: Column,
        arithmetic: Arithmetic,
        budget: int,
        tick: Tick | None = None,
    ) -> None:
        self.demand = demand
        self.tokens = tokens
        self.arithmetic = arithmetic
        self.budget = budget
        self.tick = tick or (lambda what, done, of: None)
        self.stored: dict[Node, Stored] = {}
        self.length, self.rows = demand.length, demand.rows
        self.plans: dict[Node, str] = {}
        self._last: tuple[tuple[Any, ...], tuple[Array | None, Array | None, int]] | None = None

    def value(self, program: SOp) -> Column:
        """The program at the positions that its demand was made for."""
        steps = [
            node
            for node in self.demand.order
            if isinstance(node, SOp) and node in self.demand.wanted
        ]
        readers = self._readers(steps)
        for step, node in enumerate(steps):
            self.tick("expressions", step, len(steps))
            self.compute(node)
            self._last = None
            for child in readers.pop(node, ()):
                self.stored.pop(child, None)
        return self.stored[program].column

    def compute(self, node: SOp) -> None:
        """Compute a node where it is wanted; an error gets the node's place."""
        wanted = self.demand.wanted[node]
        try:
            if node in self.demand.keys and node in self.demand.streams:
                assert isinstance(node, Aggregate)
                column = self._stream(node, wanted)
            elif node in self.demand.streams:
                column = self._in_parts(node, wanted)
            else:
                column = self._column(node, wanted, self.read)
        except RaspError as error:
            raise error.at(node.place) from None
        self.stored[node] = Stored(wanted, column)
        self._check(node)

    def _check(self, node: SOp) -> None:
        """Refuse, with the numbers, to hold more than the budget."""
        if self.stored[node].column.nbytes < self.budget >> 6:
            return
        held = sum(stored.column.nbytes for stored in self.stored.values())
        if held > self.budget:
            raise BudgetError(
                "this evaluation holds more than its budget",
                where=node.place,
                expected=f"at most {self.budget:,} bytes",
                found=f"{held:,} bytes in {len(self.stored)} s-ops of {self.length:,} positions",
                hint="read the program at fewer positions, or raise the budget",
            )

    def _in_parts(self, node: SOp, wanted: Positions) -> Column:
        """The program itself, read at very many positions: formed in blocks of them."""
        region = self.demand.streams[node]
        pieces: list[tuple[Any, Column]] = []
        done = 0
        for part in blocks(wanted, BLOCK):
            self.tick("positions", done, len(wanted))
            pieces.append((slice(done, done + len(part)), self._block(region, part)[node]))
            done += len(part)
        return assemble(len(wanted), pieces)

    def _readers(self, steps: Sequence[SOp]) -> dict[Node, list[Node]]:
        """For every step the nodes that are not read after it."""
        last: dict[Node, Node] = {}
        for node in steps:
            for child in self._inputs(node):
                last[child] = node
        freed: dict[Node, list[Node]] = {}
        for child, reader in last.items():
            freed.setdefault(reader, []).append(child)
        return freed

    def _inputs(self, node: SOp) -> list[Node]:
        if not isinstance(node, Aggregate | Width):
            return list(node.args)
        found = [child for child in topological(node.selector) if isinstance(child, Selector)]
        inputs = [child for s in found for child in s.args if isinstance(child, SOp)]
        if isinstance(node, Aggregate):
            inputs.append(node.value)
        for inner in self.demand.streams.get(node, ()):
            inputs += [a for a in inner.args if isinstance(a, SOp)]
            if isinstance(inner, Aggregate):
                inputs += [a for a in inner.selector.args if isinstance(a, SOp)]
        return list(inputs)

    def read(self, node: SOp, positions: Positions) -> Column:
        """A node that has been computed, or a leaf, at sorted positions."""
        stored = self.stored.get(node)
        if stored is not None and (node.args or same(stored.positions, positions)):
            return stored.at(positions)
        return self._leaf(node, positions)

    def _leaf(self, node: SOp, positions: Positions) -> Column:
        if isinstance(node, Tokens):
            return Stored(Span(0, self.demand.cells), self.tokens).at(positions)
        if isinstance(node, Indices):
            return index_column(positions, self.length)
        if isinstance(node, Constant):
            return columns.constant(self.arithmetic.constant(node.value), len(positions))
        raise AssertionError(f"{type(node).__name__} has not been computed")

    def _column(
        self, node: SOp, wanted: Positions, read: Callable[[SOp, Positions], Column]
    ) -> Column:
        if isinstance(node, Tokens | Indices | Constant):
            return self._leaf(node, wanted)
        if isinstance(node, Apply):
            if not len(wanted):
                return columns.from_values([])
            arguments = [read(child, wanted) for child in node.args]
            return apply(node.primitive, arguments, self.arithmetic)
        assert isinstance(node, Aggregate | Width)
        found = self.demand.clauses[node.selector]
        address = found[0].fetch if found is not None and len(found) == 1 else None
        if address is not None:
            return self._fetch(node, read(address, wanted), wanted)
        return self._joined(node, found, wanted)

    # ------------------------------------------------------------ look-ups

    def _fetch(self, node: Aggregate | Width, address: Column, wanted: Positions) -> Column:
        """``select(indices, address, "==")`` alone: at most one key, read where it is."""
        self.plans.setdefault(node, "look-up by address")
        count = len(wanted)
        at = whole_numbers(address)
        if at is None:
            at = np.full(1, -1, dtype=np.int64)
        low, high = (int(at.min()), int(at.max())) if len(at) else (0, 0)
        inside = None if low >= 0 and high < self.length else (at >= 0) & (at < self.length)
        if isinstance(node, Width):
            hits = np.ones(1, dtype=np.int64) if inside is None else inside.astype(np.int64)
            return Column("i", hits, length=count)
        if self.rows > 1:
            row = as_array(wanted) // self.length * self.length
            at, inside = at + row, None if inside is None else np.broadcast_to(inside, (count,))
        if inside is None:
            found = self._picked(node.value, at)
            return found if len(at) == count else found.stretched(count)
        default = self.arithmetic.constant(node.default)
        if not inside.any():
            return columns.constant(default, count)
        at, inside = (np.broadcast_to(a, (count,)) for a in (at, inside))
        on, off = np.flatnonzero(inside), np.flatnonzero(~inside)
        if len(off) == 0:
            return self._picked(node.value, at)
        pieces = [(on, self._picked(node.value, at[on])), (off, _default(default, len(off)))]
        return assemble(count, pieces)

    def _picked(self, node: SOp, at: Array) -> Column:
        if node.args:
            return self.stored[node].pick(at)
        if isinstance(node, Tokens):
            return Stored(Span(0, self.demand.cells), self.tokens).pick(at)
        if isinstance(node, Indices):
            return index_column(at, self.length)
        return self._leaf(node, at)

    # ------------------------------------------------------------ means

    def _joined(
        self, node: Aggregate | Width, found: list[Clause] | None, wanted: Positions
    ) -> Column:
        keys = self.demand.keys[node]
        if not len(wanted):
            return columns.from_values([])
        values = None
        if isinstance(node, Aggregate):
            values = self.read(node.value, keys)
            if values.length == 0:
                return columns.constant(self.arithmetic.constant(node.default), len(wanted))
        elif not len(keys):
            return columns.constant(0, len(wanted))
        if found is not None and values is not None and len(found) == 1:
            single = self._by_unique_key(node, found[0], keys, wanted, values)
            if single is not None:
                return single
        pay = None if values is None else self._payload(node, values)
        channels = [] if pay is None else pay.channels
        totals = self._totals(node, found, keys, wanted, channels)
        if pay is None:
            return _counts(totals, len(wanted))
        assert isinstance(node, Aggregate)
        return self._means(node, totals, pay, wanted)

    def _payload(self, node: Node, values: Column, *, snap: bool = True) -> Payload:
        assert isinstance(node, Aggregate)
        if self.rows > 1 and node.rule == "rasp" and values.kind in "mc":
            number = {self.arithmetic.number(v) and not isinstance(v, bool)
                      for v in values.coded()[1]}  # fmt: skip
            if len(number) > 1:
                raise RowByRow
        return payload(values, node.rule, self.arithmetic, snap=snap)

    def _totals(
        self,
        node: Aggregate | Width,
        found: list[Clause] | None,
        keys: Positions,
        wanted: Positions,
        channels: Sequence[Array],
    ) -> Totals:
        if found is None or any(self._has_nan(clause, keys, wanted) for clause in found):
            return self._in_blocks(node, keys, wanted, channels)
        if found and found[0].hardmax is not None:
            return self._hardmax(node, found[0].hardmax, keys, wanted, channels)
        if not found:
            zeros = np.zeros(1, dtype=np.int64)
            return Totals(zeros, [np.zeros(1, dtype=c.dtype) for c in channels],
                          np.zeros(len(wanted), dtype=np.int64))  # fmt: skip
        self.plans.setdefault(node, plans_of(found))
        pair = lexicographic(found)
        if pair is None:
            return added([self._clause(clause, keys, wanted, channels) for clause in found])
        first, second = pair
        rest = [clause for clause in found if clause is not first and clause is not second]
        both = self._lexicographic(first, second, keys, wanted, channels)
        return added([*both, *(self._clause(c, keys, wanted, channels) for c in rest)])

    def _has_nan(self, clause: Clause, keys: Positions, wanted: Positions) -> bool:
        """Complements of conditions are not conditions on a NaN: such selectors run as blocks."""
        pairs = [(test[0], test[1]) for test in clause.unequal]
        pairs += [(k, q) for k, q, _ in (*clause.key_filters, *clause.query_filters)]
        return any(self.read(k, keys).has_nan() or self.read(q, wanted).has_nan() for k, q in pairs)

    def _codes(
        self, clause: Clause, keys: Positions, wanted: Positions
    ) -> tuple[Array | None, Array | None, int]:
        """The groups of keys and queries; asked for twice by a clause, worked out once."""
        asked = (clause, keys, wanted)
        if self._last is None or any(a is not b for a, b in zip(asked, self._last[0],
                                                                strict=True)):  # fmt: skip
            self._last = asked, self._groups(clause, keys, wanted)
        return self._last[1]

    def _groups(
        self, clause: Clause, keys: Positions, wanted: Positions
    ) -> tuple[Array | None, Array | None, int]:
        parts = [equality_codes(self.read(k, keys), self.read(q, wanted)) for k, q in clause.equal]
        if self.rows > 1:
            rows = as_array(keys) // self.length
            wanted_rows = rows if same(keys, wanted) else as_array(wanted) // self.length
            parts.insert(0, (rows, wanted_rows, self.rows))
        k, q, groups = combined(parts, len(keys), len(wanted))
        for key, query, mask in clause.key_filters:
            holds = self._holds(self.read(key, keys), self.read(query, keys), mask)
            k = np.where(holds, 0 if k is None else k, -1)
            k = np.broadcast_to(k, (len(keys),))
        for key, query, mask in clause.query_filters:
            holds = self._holds(self.read(key, wanted), self.read(query, wanted), mask)
            q = np.broadcast_to(np.where(holds, 0 if q is None else q, -1), (len(wanted),))
        return k, q, groups

    def _holds(self, key: Column, query: Column, mask: int) -> Array:
        name = COMPARISONS[SYMBOLS[mask]].name
        return apply(primitive(name), [key, query], self.arithmetic).data

    def _clause(
        self, clause: Clause, keys: Positions, wanted: Positions, channels: Sequence[Array]
    ) -> Totals:
        k, q, groups = self._codes(clause, keys, wanted)
        if not clause.unequal:
            return by_group(k, q, groups, channels, len(keys))
        if (k is None) != (q is None):
            k = np.zeros(len(keys), dtype=np.int64) if k is None else k
            q = np.zeros(len(wanted), dtype=np.int64) if q is None else q
        orders = [self._order(*test, keys, wanted) for test in clause.unequal]
        if len(orders) == 1:
            return by_order(k, q, groups, orders[0], channels)
        return by_dominance(k, q, orders[0], orders[1], channels)

    def _lexicographic(
        self,
        first: Clause,
        second: Clause,
        keys: Positions,
        wanted: Positions,
        channels: Sequence[Array],
    ) -> list[Totals]:
        """``a < b or (a == b and c < d)``: one order, by a and then by c."""
        k, q, groups = self._codes(first, keys, wanted)
        major = self._order(*first.unequal[0], keys, wanted)
        alone = k is q and (k is None or int(k.min(initial=0)) >= 0)
        order = major.then(self._order(*second.unequal[0], keys, wanted), alone=alone)
        if order is None or (order.major is None and groups * order.size >= 1 << 62):
            return [self._clause(c, keys, wanted, channels) for c in (first, second)]
        if (k is None) != (q is None):
            k = np.zeros(len(keys), dtype=np.int64) if k is None else k
            q = np.zeros(len(wanted), dtype=np.int64) if q is None else q
        return [by_order(k, q, groups, order, channels)]

    def _order(
        self, key: SOp, query: SOp, mask: int, loose: bool, keys: Positions, wanted: Positions
    ) -> Order:
        k, q, size = ranks(self.read(key, keys), self.read(query, wanted), loose=loose)
        same = k is q and len(keys) == len(wanted)
        k = np.broadcast_to(k, (len(keys),)) if len(k) != len(keys) else k
        if not same:
            q = np.broadcast_to(q, (len(wanted),)) if len(q) != len(wanted) else q
        greater, inclusive = bool(mask & GREATER), bool(mask & EQUAL)
        return Order.of(k, k if same else q, size, greater=greater, inclusive=inclusive)

    def _by_unique_key(
        self,
        node: Node,
        clause: Clause,
        keys: Positions,
        wanted: Positions,
        values: Column,
    ) -> Column | None:
        """Equality with keys that differ all from each other: a copy."""
        if not clause.equal or clause.unequal or clause.hardmax is not None or values.uniform:
            return None
        k, q, groups = self._codes(clause, keys, wanted)
        if k is None or q is None or groups < np.count_nonzero(k >= 0):
            return None
        place = np.full(groups + 1, -1, dtype=np.int64)  # the last entry is that of no group
        place[k] = np.arange(len(keys))
        place[-1] = -1
        if np.count_nonzero(place >= 0) < np.count_nonzero(k >= 0):
            return None  # some key stands twice
        self.plans.setdefault(node, "copy by a unique key")
        at = place[q]
        missing = at < 0
        if not missing.any():
            return values.take(at)
        assert isinstance(node, Aggregate)
        on, off = np.flatnonzero(~missing), np.flatnonzero(missing)
        default = self.arithmetic.constant(node.default)
        return assemble(len(at), [(on, values.take(at[on])), (off, _default(default, len(off)))])

    def _means(self, node: Aggregate, totals: Totals, pay: Payload, wanted: Positions) -> Column:
        count = len(wanted)
        if totals.row is None and len(totals.counts) == 1 and count != 1:
            totals = Totals(totals.counts, totals.sums, None)
            means, bad = self._finished(node, totals, pay)
            if bad is not None and bad.any():
                raise self._explained(node, 0, wanted)
            return means.stretched(count)
        if totals.row is not None and len(totals.counts) > 2 * count:
            totals = totals.spread()
        if totals.row is None and bool((totals.counts > 0).all()):
            means, bad = pay.finish(totals.counts, totals.sums)
            if bad is not None and bad.any():
                raise self._explained(node, int(np.flatnonzero(bad)[0]), wanted)
            return means
        some = totals.counts > 0
        row = np.arange(count) if totals.row is None else totals.row
        filled = bool(some.all())
        missing = (row < 0) if filled else (row < 0) | ~some[row]
        on = None if not missing.any() else np.flatnonzero(~missing)
        default = self.arithmetic.constant(node.default)
        if on is not None and len(on) == 0:
            return columns.constant(default, count)
        kept = totals if filled else Totals(totals.counts[some], [s[some] for s in totals.sums])
        means, bad = pay.finish(kept.counts, kept.sums)
        used = row if on is None else row[on]
        if not filled:
            used = (np.cumsum(some) - 1)[used]
        if bad is not None and bad[used].any():
            first = int(np.flatnonzero(bad[used])[0])
            raise self._explained(node, first if on is None else int(on[first]), wanted)
        found = means.take(used)
        if on is None:
            return found
        off = np.flatnonzero(missing)
        return assemble(count, [(on, found), (off, _default(default, len(off)))])

    def _finished(
        self, node: Aggregate, totals: Totals, pay: Payload
    ) -> tuple[Column, Array | None]:
        if totals.counts[0] == 0:
            return columns.constant(self.arithmetic.constant(node.default), 1), None
        return pay.finish(totals.counts, totals.sums)

    def _explained(self, node: Aggregate, query: int, wanted: Positions) -> RaspError:
        """What went wrong at one query, found again by looking at its row alone."""
        keys = self.demand.keys[node]
        if node in self.demand.streams:
            return explained(self.tokens, np.arange(0), self.arithmetic)
        row = self._matrix(node.selector, keys, wanted)(slice(query, query + 1))[0]
        values = self.read(node.value, keys)
        return explained(values, np.flatnonzero(row), self.arithmetic)

    # ------------------------------------------------------------ hard maxima, blocks, matrices

    def _hardmax(
        self,
        node: Aggregate | Width,
        best: Hardmax,
        keys: Positions,
        wanted: Positions,
        channels: Sequence[Array],
    ) -> Totals:
        """Among whole groups a hard maximum is a filter on the keys."""
        inner = clauses(best.among)
        score = self.read(best.score, keys).full()
        if (
            not single_hardmax(inner)
            or score.kind not in "bifm"
            or score.has_nan()
            or self._has_nan(inner[0], keys, wanted)
        ):
            return self._in_blocks(node, keys, wanted, channels)
        if len(keys) == 0:
            return Totals(np.zeros(len(wanted), dtype=np.int64),
                          [np.zeros(len(wanted), dtype=c.dtype) for c in channels])  # fmt: skip
        words = "running maximum, " if inner[0].unequal else "maximum of each group, "
        self.plans.setdefault(node, words + plan_of(inner[0]))
        if inner[0].unequal:
            return self._running_maximum(inner[0], score, keys, wanted, channels)
        k, q, groups = self._codes(inner[0], keys, wanted)
        data = score.data.astype(np.int64) if score.kind == "b" else score.data
        if k is None:
            return by_group(np.where(data == data.max(), 0, -1), q, 1, channels, len(keys))
        order = np.argsort(k, kind="stable")
        grouped = k[order]
        starts = np.flatnonzero(np.concatenate([[True], grouped[1:] != grouped[:-1]]))
        best_of = np.maximum.reduceat(data[order], starts)
        table = np.empty(groups + 1, dtype=data.dtype)
        table[grouped[starts]] = best_of
        return by_group(np.where(table[k] == data, k, -1), q, groups, channels, len(keys))

    def _running_maximum(
        self,
        clause: Clause,
        score: Column,
        keys: Positions,
        wanted: Positions,
        channels: Sequence[Array],
    ) -> Totals:
        """Of the keys before the query, in its group, those that hold the greatest score there."""
        k, q, _ = self._codes(clause, keys, wanted)
        order = self._order(*clause.unequal[0], keys, wanted)
        k = np.zeros(len(keys), dtype=np.int64) if k is None else k
        q = np.zeros(len(wanted), dtype=np.int64) if q is None else q
        rank, _, size = ranks(score, score)
        found = sort(k, q, order)
        cell = np.where(k < 0, -1, k * size + rank)
        best = np.maximum.accumulate(cell[found.order])  # a later group has greater cells
        some = found.stop > found.start
        queried = np.where(some, best[found.stop - 1], -1)
        values, codes = np.unique(cell, return_inverse=True)
        at = np.searchsorted(values, queried)
        queried = np.where(some, at, -1)
        cells = np.where(cell < 0, -1, codes.reshape(-1))
        return by_order(cells, queried, len(values), order, channels)

    def _matrix(
        self, selector: Selector, keys: Positions, wanted: Positions
    ) -> Callable[[slice], Array]:
        same_row = None
        if self.rows > 1:
            key_rows = as_array(keys) // self.length
            query_rows = as_array(wanted) // self.length

            def same_row(part: slice) -> Array:
                return np.asarray(query_rows[part, None] == key_rows[None, :])

        return matrix(
            selector, lambda s: self.read(s, keys), lambda s: self.read(s, wanted), same_row
        )

    def _in_blocks(
        self,
        node: Aggregate | Width,
        keys: Positions,
        wanted: Positions,
        channels: Sequence[Array],
    ) -> Totals:
        self.plans[node] = "blocks"
        rows = self._matrix(node.selector, keys, wanted)
        return by_blocks(
            rows, len(wanted), len(keys), channels, self.budget,
            lambda done, of: self.tick("blocks", done, of),
        )  # fmt: skip

    def rows_of(self, selector: Selector) -> Array:
        """The selector's dense rows, N x N (for one input)."""
        cells = self.length * self.length
        if cells > self.budget:
            raise BudgetError(
                "the matrix of this selector does not fit",
                expected=f"at most {self.budget} bytes",
                found=f"{self.length} x {self.length} cells",
                hint="aggregate it, or raise the budget",
            )
        for node in self.demand.order:
            if isinstance(node, SOp) and node in self.demand.wanted:
                self.compute(node)
        whole = Span(0, self.length)
        rows = self._matrix(selector, whole, whole)
        return rows(slice(0, self.length))

    # ------------------------------------------------------------ streaming

    def _stream(self, node: Aggregate, wanted: Positions) -> Column:
        """A grouped mean whose values are formed in blocks of keys and never stored."""
        (clause,) = self._clauses(node.selector)
        self.plans[node] = "streamed, " + plan_of(clause)
        for mode in ("plain", "mixed", "whole"):
            found = self._streamed(node, clause, wanted, mode)
            if found is not None:
                return found
        raise AssertionError("a stream of one block always ends")

    def _streamed(
        self, node: Aggregate, clause: Clause, wanted: Positions, mode: str
    ) -> Column | None:
        """One attempt; None if the values of some block are of another kind than before."""
        keys, region = self.demand.keys[node], self.demand.streams[node]
        table = _Groups([self.read(q, wanted) for _, q in clause.equal])
        pay: Payload | None = None
        kind = None
        for done, part in enumerate(blocks(keys, len(keys) if mode == "whole" else BLOCK)):
            self.tick("keys", done * BLOCK, len(keys))
            known = self._block(region, part)
            codes = table.codes([known[k] for k, _ in clause.equal], len(part))
            for key, query, mask in clause.key_filters:
                filtered = self._leaf(query, part)
                codes = np.where(self._holds(known[key], filtered, mask), codes, -1)
            values = known[node.value]
            if mode == "mixed" and columns.exact_in_float(values):
                values = columns.mixed(values)
            if mode != "whole" and (values.kind == "c" or kind not in (None, values.kind)):
                return None
            kind = values.kind
            pay = self._payload(node, values, snap=False)
            table.add(codes, pay.channels)
        if pay is None:
            return columns.constant(self.arithmetic.constant(node.default), len(wanted))
        return self._means(node, table.totals(len(wanted)), pay, wanted)

    def _clauses(self, selector: Selector) -> list[Clause]:
        found = self.demand.clauses[selector]
        assert found is not None
        return found

    def _block(self, region: Sequence[SOp], part: Positions) -> dict[Node, Column]:
        known = _Lazy(self, part)
        for inner in region:
            if isinstance(inner, Aggregate):
                (found,) = self._clauses(inner.selector)
                assert found.fetch is not None
                known[inner] = self._fetch(inner, known[found.fetch], part)
            elif isinstance(inner, Apply):
                arguments = [known[child] for child in inner.args]
                known[inner] = apply(inner.primitive, arguments, self.arithmetic)
        return known


class _Lazy(dict[Node, Column]):
    """The columns of one block; what is no part of the region is read where it is stored."""

    def __init__(self, run: Run, part: Positions) -> None:
        super().__init__()
        self._run, self._part = run, part

    def __missing__(self, node: Node) -> Column:
        assert isinstance(node, SOp)
        self[node] = self._run.read(node, self._part)
        return self[node]


class _Groups:
    """Tables of counts and sums that blocks of keys are added to, a row a group of queries."""

    def __init__(self, queries: list[Column]) -> None:
        self.queries = queries
        self.sizes: list[tuple[int, int]] = []
        self.total = 1
        for column in queries:
            low, high = column.exact_bounds() if column.kind in "bi" else (0, -1)
            self.sizes.append((low, high - low + 1))
            self.total *= high - low + 1
        self.counts = np.zeros(max(1, self.total), dtype=np.int64)
        self.sums: list[Array] | None = None
        self.lost: list[Array | None] = []

    def codes(self, keys: list[Column], size: int) -> Array:
        """The group of every key of a block, -1 for none."""
        code: Array = np.zeros(1, dtype=np.int64)
        inside: Array | None = None
        for column, (low, count) in zip(keys, self.sizes, strict=True):
            at = whole_numbers(column) if column.kind not in "bi" else column.data
            at = np.full(1, -1) if at is None else at.astype(np.int64, copy=False) - low
            if len(at) and (at.min() < 0 or at.max() >= count):
                within = (at >= 0) & (at < count)
                inside = within if inside is None else inside & within
            code = code * count + at
        if inside is not None:
            code = np.where(inside, code, -1)
        return np.broadcast_to(code, (size,))

    def add(self, codes: Array, channels: Sequence[Array]) -> None:
        """Add one block; the error of every float sum is kept beside it."""
        if len(codes) and codes.min() < 0:
            inside = codes >= 0
            codes, channels = codes[inside], [c[inside] for c in channels]
        if len(codes) == 0:
            return
        low, high = int(codes.min()), int(codes.max()) + 1
        part = by_group(codes - low, None, high - low, channels, len(codes))
        self.counts[low:high] += part.counts
        if self.sums is None:
            self.sums = [np.zeros(len(self.counts), dtype=s.dtype) for s in part.sums]
            self.lost = [
                np.zeros(len(self.counts)) if s.dtype.kind == "f" else None for s in part.sums
            ]
        for total, lost, new in zip(self.sums, self.lost, part.sums, strict=True):
            old = total[low:high]
            with np.errstate(invalid="ignore", over="ignore"):
                grown = old + new
                if lost is not None:
                    back = grown - old
                    error = (old - (grown - back)) + (new - back)
                    lost[low:high] += np.where(np.isfinite(error), error, 0)
            total[low:high] = grown

    def totals(self, count: int) -> Totals:
        """The table, with the row of every query."""
        sums = [
            total if lost is None else total + lost
            for total, lost in zip(self.sums or [], self.lost, strict=True)
        ]
        return Totals(self.counts, sums, self.codes(self.queries, count))


def _default(value: Any, count: int) -> Column:
    return columns.constant(value, count)


def _counts(totals: Totals, count: int) -> Column:
    if totals.row is None and len(totals.counts) == 1 and count != 1:
        return Column("i", totals.counts, length=count)
    return Column("i", totals.spread().counts.astype(np.int64, copy=False))


def lexicographic(found: list[Clause]) -> tuple[Clause, Clause] | None:
    """Two clauses that together are one lexicographic order of two tests."""
    for first, second in itertools.permutations(found, 2):
        if len(first.unequal) != 1 or len(second.unequal) != 1 or first.unequal[0][2] & EQUAL:
            continue
        key, query = first.unequal[0][:2]
        more = [pair for pair in second.equal if not among(pair, first.equal)]
        if (
            len(second.equal) == len(first.equal) + 1
            and len(more) == 1
            and more[0][0] is key
            and more[0][1] is query
            and alike(first.key_filters, second.key_filters)
            and alike(first.query_filters, second.query_filters)
        ):
            return first, second
    return None


def among(pair: tuple[SOp, SOp], pairs: Sequence[tuple[SOp, SOp]]) -> bool:
    """Whether this very pair of s-ops is one of the pairs."""
    return any(pair[0] is k and pair[1] is q for k, q in pairs)


def alike(a: Sequence[tuple[SOp, SOp, int]], b: Sequence[tuple[SOp, SOp, int]]) -> bool:
    """Whether two clauses have the very same filters."""
    return len(a) == len(b) and all(
        any(k is k2 and q is q2 and m == m2 for k2, q2, m2 in b) for k, q, m in a
    )


def plans_of(found: list[Clause]) -> str:
    """How the clauses of a selector run, in a few words."""
    pair = lexicographic(found)
    if pair is None:
        return " + ".join(map(plan_of, found))
    rest = [plan_of(clause) for clause in found if clause is not pair[0] and clause is not pair[1]]
    keys = plan_of(pair[0]).replace("in one order", "in one order of two keys")
    return " + ".join([keys, *rest])


def single_hardmax(found: list[Clause] | None) -> TypeGuard[list[Clause]]:
    """Whether a hard maximum among these clauses needs no matrix."""
    return (
        found is not None
        and len(found) == 1
        and found[0].hardmax is None
        and len(found[0].unequal) < 2
    )


def plan_of(clause: Clause) -> str:
    """How a clause runs, in a few words."""
    equal = len(clause.equal)
    keys = f"group by {equal} key{'s' if equal > 1 else ''}" if equal else ""
    if len(clause.unequal) == 1:
        found = "running sums" + (f" within {keys}" if keys else " in one order")
    elif clause.unequal:
        found = "two-way dominance" + (f" within {keys}" if keys else "")
    else:
        found = keys or "one mean of all keys"
    if clause.key_filters:
        found += ", filtered keys"
    if clause.query_filters:
        found += ", filtered queries"
    return found
