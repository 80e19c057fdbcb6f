"""Selectors as joins: counts and sums over the selected keys of every query of one s-op."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from raspire.evaluate.blocks import by_blocks, matrix
from raspire.evaluate.codes import combined, equality_codes, ranks
from raspire.evaluate.columns import Column
from raspire.evaluate.dominance import by_dominance
from raspire.evaluate.elementwise import apply
from raspire.evaluate.kernels import (
    Order,
    Sorted,
    Totals,
    added,
    by_group,
    by_order,
    sort,
)
from raspire.evaluate.parts import counted_from, growing, in_parts
from raspire.evaluate.positions import Array, Positions, as_array, same
from raspire.evaluate.ranking import Ranking, as_integers, distinct, order_of
from raspire.evaluate.selectors import (
    EQUAL,
    GREATER,
    SYMBOLS,
    Clause,
    clauses,
    lexicographic,
    ranking_tests,
    single_hardmax,
)
from raspire.evaluate.store import Store
from raspire.program.nodes import COMPARISONS, Selector, SOp
from raspire.program.primitives import primitive

Tick = Callable[[str, int, int], None]
Groups = tuple[Array | None, Array | None, int]


class Join:
    """One selector between the keys and the queries at some positions."""

    def __init__(
        self,
        store: Store,
        selector: Selector,
        found: list[Clause] | None,
        keys: Positions,
        wanted: Positions,
    ) -> None:
        self.store, self.selector, self.found = store, selector, found
        self.keys, self.wanted = keys, wanted
        self._known: dict[int, Groups] = {}
        self._keys_read: dict[int, Column] = {}

    def _key(self, node: SOp) -> Column:
        if id(node) not in self._keys_read:
            self._keys_read[id(node)] = self.store.read(node, self.keys)
        return self._keys_read[id(node)]

    def _query(self, node: SOp) -> Column:
        """The column of a query, the very column of the key where they are one."""
        if same(self.keys, self.wanted):
            return self._key(node)
        return self.store.read(node, self.wanted)

    def totals(self, channels: Sequence[Array], budget: int, tick: Tick) -> Totals:
        """Counts and channel sums, by the fastest kernel that the selector allows."""
        found = self.found
        if found is None or any(self._has_nan(clause) for clause in found):
            return self._in_blocks(channels, budget, tick)
        if not found:
            row = np.zeros(len(self.wanted), dtype=np.int64)
            return Totals(row[:1], [np.zeros(1, dtype=c.dtype) for c in channels], row)
        best = found[0].hardmax
        if best is not None:
            inner, score = clauses(best.among), self._key(best.score).full()
            simple = single_hardmax(inner) and score.kind in "bifm" and not score.has_nan()
            if inner is None or not simple or self._has_nan(inner[0]):
                return self._in_blocks(channels, budget, tick)
            return self._hardmax(inner[0], score, channels)
        pair = lexicographic(found)
        if pair is None:
            return added([self._clause(clause, channels) for clause in found])
        rest = [clause for clause in found if clause is not pair[0] and clause is not pair[1]]
        both = self._lexicographic(*pair, channels)
        return added([*both, *(self._clause(clause, channels) for clause in rest)])

    def _has_nan(self, clause: Clause) -> bool:
        """Complements of conditions are not conditions on a NaN: such selectors run as blocks."""
        pairs = [(test[0], test[1]) for test in clause.unequal]
        pairs += [(k, q) for k, q, _ in (*clause.key_filters, *clause.query_filters)]
        return any(self._key(k).has_nan() or self._query(q).has_nan() for k, q in pairs)

    def columns(self, keys: SOp, queries: SOp) -> tuple[Column, Column]:
        """What a test compares: a column of the keys, and one of the queries."""
        return self._key(keys), self._query(queries)

    # ------------------------------------------------------------ groups and orders

    def groups(self, clause: Clause) -> Groups:
        """Codes of keys and queries, equal where the equalities of the clause hold; -1 for none.

        None stands for one group of all. Asked for twice, they are worked out once.
        """
        if id(clause) not in self._known:
            self._known[id(clause)] = self._groups(clause)
        return self._known[id(clause)]

    def _groups(self, clause: Clause) -> Groups:
        parts = [equality_codes(self._key(k), self._query(q)) for k, q in clause.equal]
        if self.store.rows > 1:
            parts.insert(0, (*self._rows(), self.store.rows))
        k, q, groups = combined(parts, len(self.keys), len(self.wanted))
        for key, query, mask in clause.key_filters:
            kept = self.holds(self._key(key), self._key(query), mask)
            k = np.broadcast_to(_lost(kept, k), (len(self.keys),))
        for key, query, mask in clause.query_filters:
            kept = self.holds(self._query(key), self._query(query), mask)
            q = np.broadcast_to(_lost(kept, q), (len(self.wanted),))
        return k, q, groups

    def _rows(self) -> tuple[Array, Array]:
        """In a batch: of which input each key and each query is."""
        length = self.store.length
        rows = as_array(self.keys) // length
        return rows, rows if same(self.keys, self.wanted) else as_array(self.wanted) // length

    def holds(self, key: Column, query: Column, mask: int) -> Array:
        """Where a key and a constant compare in one of the outcomes of a mask."""
        name = COMPARISONS[SYMBOLS[mask]].name
        return apply(primitive(name), [key, query], self.store.arithmetic).data

    def _both(self, k: Array | None, q: Array | None) -> tuple[Array, Array]:
        """Groups of keys and queries, spelt out."""
        return (
            np.zeros(len(self.keys), dtype=np.int64) if k is None else k,
            np.zeros(len(self.wanted), dtype=np.int64) if q is None else q,
        )

    def _order(self, key: SOp, query: SOp, mask: int, loose: bool) -> Order:
        keys, queries = self._key(key), self._query(query)
        greater, inclusive = bool(mask & GREATER), bool(mask & EQUAL)
        if keys is queries and keys.steps is not None:
            places = range(len(keys)) if keys.steps[1] > 0 else range(len(keys) - 1, -1, -1)
            return Order.of(places, places, len(keys), greater=greater, inclusive=inclusive)
        k, q, size = ranks(keys, queries, loose=loose)
        own = k is q and len(self.keys) == len(self.wanted)
        k = np.broadcast_to(k, (len(self.keys),)) if len(k) != len(self.keys) else k
        if not own:
            q = np.broadcast_to(q, (len(self.wanted),)) if len(q) != len(self.wanted) else q
        return Order.of(k, k if own else q, size, greater=greater, inclusive=inclusive)

    # ------------------------------------------------------------ kernels

    def _clause(self, clause: Clause, channels: Sequence[Array]) -> Totals:
        k, q, groups = self.groups(clause)
        if not clause.unequal:
            return by_group(k, q, groups, channels, len(self.keys))
        if (k is None) != (q is None):
            k, q = self._both(k, q)
        orders = [self._order(*test) for test in clause.unequal]
        if len(orders) == 1:
            return by_order(k, q, groups, orders[0], channels)
        return by_dominance(k, q, orders[0], orders[1], channels)

    def _lexicographic(
        self, first: Clause, second: Clause, channels: Sequence[Array]
    ) -> list[Totals]:
        """``a < b or (a == b and c < d)``: one order, by a and then by c."""
        k, q, groups = self.groups(first)
        alone = k is q and (k is None or int(k.min(initial=0)) >= 0)
        order = self._order(*first.unequal[0]).then(self._order(*second.unequal[0]), alone=alone)
        if order is None or (order.major is None and groups * order.size >= 1 << 62):
            return [self._clause(clause, channels) for clause in (first, second)]
        if (k is None) != (q is None):
            k, q = self._both(k, q)
        return [by_order(k, q, groups, order, channels)]

    def _hardmax(self, inner: Clause, score: Column, channels: Sequence[Array]) -> Totals:
        """Among whole groups a hard maximum is a filter on the keys."""
        if len(self.keys) == 0:
            row = np.zeros(len(self.wanted), dtype=np.int64)
            return Totals(row, [np.zeros(len(row), dtype=c.dtype) for c in channels])
        if inner.unequal:
            return self._running_maximum(inner, score, channels)
        k, q, groups = self.groups(inner)
        data = score.data.astype(np.int64) if score.kind == "b" else score.data
        if k is None:
            k = np.where(data == data.max(), 0, -1)
            return by_group(k, q, 1, channels, len(self.keys))
        order = order_of(k)
        grouped = k[order]
        starts = np.flatnonzero(np.concatenate([[True], grouped[1:] != grouped[:-1]]))
        table = np.empty(groups + 1, dtype=data.dtype)  # the last entry is that of no group
        table[grouped[starts]] = np.maximum.reduceat(data[order], starts)
        best = np.where(table[k] == data, k, -1)
        return by_group(best, q, groups, channels, len(self.keys))

    def _running_maximum(self, clause: Clause, score: Column, channels: Sequence[Array]) -> Totals:
        """Of the keys before the query, in its group, those that hold the greatest score there."""
        k, q = self._both(*self.groups(clause)[:2])
        order = self._order(*clause.unequal[0])
        rank, _, size = ranks(score, score)
        found = sort(k, q, order)
        if growing(rank):
            return _last(rank, found, channels)
        cell = np.where(k < 0, -1, k.astype(np.int64) * size + rank)
        best = np.maximum.accumulate(cell[found.order])  # a later group has greater cells
        some = found.stop > found.start
        queried = np.where(some, best[found.stop - 1], -1)
        values, codes = distinct(cell)
        queried = np.where(some, np.searchsorted(values, queried), -1)
        cells = np.where(cell < 0, -1, codes)
        return by_order(cells, queried, len(values), order, channels)

    def ranking(self) -> Ranking | None:
        """The order in which every query's count is its own place, if this selector is one."""
        tests = ranking_tests(self.found)
        if self.found is None or tests is None or self.store.rows > 1:
            return None
        if any(self._has_nan(clause) for clause in self.found):
            return None
        (node, _, mask, loose), second = tests
        if not same(self.keys, self.wanted) or not growing(self._order(*second).keys):
            return None
        keys, descending, of = self._key(node), bool(mask & GREATER), None
        low, high = keys.bounds() if keys.kind == "i" else (0, 0)
        if keys.kind == "i" and not keys.uniform and high - low < 1 << 62:
            rank, size, of = counted_from(low, keys.data, low, high), high - low + 1, keys
        elif keys.kind == "f" and not keys.uniform:
            ordered = -keys.data if descending else keys.data
            return Ranking(as_integers(ordered.astype(np.float64) + 0.0))
        else:
            rank, _, size = ranks(keys, keys, loose=loose)
            rank = np.broadcast_to(rank, (len(keys),))
        if descending:
            rank = size - 1 - rank.astype(np.int64)
        return Ranking(rank, of=of, base=high if descending else low, descending=descending)

    # ------------------------------------------------------------ dense rows

    def matrix(self) -> Callable[[slice], Array]:
        """A function from a slice of the queries to their dense rows."""
        same_row = None
        if self.store.rows > 1:
            key_rows, query_rows = self._rows()

            def same_row(part: slice) -> Array:
                return np.asarray(query_rows[part, None] == key_rows[None, :])

        return matrix(self.selector, self._key, self._query, same_row)

    def _in_blocks(self, channels: Sequence[Array], budget: int, tick: Tick) -> Totals:
        return by_blocks(
            self.matrix(), len(self.wanted), len(self.keys), channels, budget,
            lambda done, of: tick("blocks", done, of),
        )  # fmt: skip


def _last(rank: Array, found: Sorted, channels: Sequence[Array]) -> Totals:
    """The greatest of ranks that all differ, among the keys that each query selects."""
    some = found.stop > found.start
    ordered = rank[found.order]
    segment = np.zeros(len(ordered) + 1, dtype=np.int64)
    segment[found.start[some]] = 1
    # A segment begins where a group does, so that its numbers grow along the order.
    cells = np.cumsum(segment[:-1]) * (int(rank.max(initial=0)) + 1) + ordered
    best = np.maximum.accumulate(cells)
    last = np.maximum.accumulate(np.where(cells == best, np.arange(len(cells)), 0))
    winner = found.order[last[np.where(some, found.stop - 1, 0)]] if len(cells) else last
    sums = [np.where(some, channel[winner], 0) for channel in channels]
    return Totals(some.astype(np.int8), sums)


def _lost(kept: Array, codes: Array | None) -> Array:
    """Codes (None: of one group of all), -1 where nothing is kept."""
    if codes is None:
        return kept.astype(np.int8) - np.int8(1)
    return in_parts(lambda k, c: np.where(k, c, c.dtype.type(-1)), kept, codes)
