"""The engine: one program on one input, or on a batch of inputs of one length, by columns.

Demand has said where each s-op is wanted; here they are computed in that order, every one once,
and forgotten when their last reader has run. In a batch the positions of all inputs stand one
after another, and every selector carries one more equality: key and query are of one input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from raspire.arithmetic import Arithmetic
from raspire.errors import BudgetError, RaspError
from raspire.evaluate import columns
from raspire.evaluate.assembly import assemble, exact_in_float, mixed
from raspire.evaluate.codes import whole_numbers
from raspire.evaluate.columns import Column
from raspire.evaluate.demand import BLOCK, Demand
from raspire.evaluate.elementwise import apply, rounded
from raspire.evaluate.joins import Join, Tick
from raspire.evaluate.means import counts, filled_up, means
from raspire.evaluate.parts import integer_type, looked_up
from raspire.evaluate.payload import Payload, explained, payload
from raspire.evaluate.positions import Array, Positions, Span, as_array, blocks
from raspire.evaluate.ranking import number
from raspire.evaluate.selectors import Clause
from raspire.evaluate.store import Store
from raspire.evaluate.tables import Tables
from raspire.program.nodes import (
    Aggregate,
    Apply,
    Constant,
    Indices,
    Node,
    Selector,
    SOp,
    Tokens,
    Width,
)
from raspire.program.walk import selectors_of


class RowByRow(Exception):  # noqa: N818  (an answer, not an error)
    """The rows of this batch differ in type where the meaning depends on it."""


class Run:
    """One evaluation: the demand, and the store of the columns there are by now."""

    def __init__(
        self,
        demand: Demand,
        tokens: Column,
        arithmetic: Arithmetic,
        budget: int,
        tick: Tick | None = None,
    ) -> None:
        self.demand, self.arithmetic, self.budget = demand, arithmetic, budget
        self.tick = tick or (lambda what, done, of: None)
        self.store = Store(tokens, demand.length, demand.rows, arithmetic)

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
            self._compute(node)
            for child in readers.pop(node, ()):
                self.store.drop(child)
        return self.store.stored[program].column

    def rows_of(self, selector: Selector) -> Array:
        """The selector's dense rows, N x N (for one input)."""
        length = self.demand.length
        if length * length > self.budget:
            raise BudgetError(
                "the matrix of this selector does not fit",
                expected=f"at most {self.budget:,} bytes",
                found=f"{length} x {length} cells",
                hint="aggregate it, or raise the budget",
            )
        for node in self.demand.order:
            if isinstance(node, SOp) and node in self.demand.wanted:
                self._compute(node)
        whole = Span(0, length)
        return Join(self.store, selector, None, whole, whole).matrix()(slice(0, length))

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
        if isinstance(node, Aggregate | Width):
            found = selectors_of(node.selector)
            inputs = [child for s in found for child in s.args if isinstance(child, SOp)]
            inputs += [node.value] if isinstance(node, Aggregate) else []
        else:
            inputs = [child for child in node.args if isinstance(child, SOp)]
        for inner in self.demand.streams.get(node, ()):
            inputs += [a for a in inner.args if isinstance(a, SOp)]
            if isinstance(inner, Aggregate):
                inputs += [a for a in inner.selector.args if isinstance(a, SOp)]
        return list(inputs)

    def _compute(self, node: SOp) -> None:
        """Compute a node where it is wanted; an error gets the node's place."""
        wanted = self.demand.wanted[node]
        try:
            column = self._column(node, wanted)
        except RaspError as error:
            raise error.at(node.place) from None
        self.store.put(node, wanted, column)
        self.store.check(node, self.budget)

    def _column(self, node: SOp, wanted: Positions) -> Column:
        if isinstance(node, Tokens | Indices | Constant):
            return self.store.leaf(node, wanted)
        if node in self.demand.streams and node not in self.demand.keys:
            return self._in_parts(node, wanted)
        if isinstance(node, Apply):
            if not len(wanted):
                return columns.from_values([])
            arguments = [self.store.read(child, wanted) for child in node.args]
            return apply(node.primitive, arguments, self.arithmetic)
        assert isinstance(node, Aggregate | Width)
        found = self.demand.clauses[node.selector]
        address = found[0].fetch if found is not None and len(found) == 1 else None
        if address is not None:
            return self._fetch(node, self.store.read(address, wanted), wanted)
        if node in self.demand.streams:
            assert isinstance(node, Aggregate)
            return rounded(self._stream(node, wanted), self.arithmetic)
        return rounded(self._joined(node, found, wanted), self.arithmetic)

    def _default(self, node: Aggregate) -> Column:
        return columns.constant(self.arithmetic.constant(node.default), 1)

    # ------------------------------------------------------------ look-ups

    def _fetch(self, node: Aggregate | Width, address: Column, wanted: Positions) -> Column:
        """``select(indices, address, "==")`` alone: at most one key, read where it is."""
        count, length = len(wanted), self.demand.length
        if self.demand.rows == 1 and address.steps is not None:
            found = self._strided(node, address, wanted)
            if found is not None:
                return found
        at = address.data if address.kind == "i" else whole_numbers(address)
        if at is None:
            at = np.full(1, -1, dtype=np.int64)
        low, high = (int(at.min()), int(at.max())) if len(at) else (0, 0)
        inside = None if low >= 0 and high < length else (at >= 0) & (at < length)
        if isinstance(node, Width):
            hits = np.ones(1, dtype=np.int64) if inside is None else inside.astype(np.int64)
            return Column("i", hits, length=count)
        if self.demand.rows > 1:
            at = at + as_array(wanted) // length * length
        if inside is None:
            found = self.store.picked(node.value, at)
            return found if len(at) == count else found.stretched(count)
        at, inside = (np.broadcast_to(a, (count,)) for a in (at, inside))
        on, off = np.flatnonzero(inside), np.flatnonzero(~inside)
        if len(on) == 0:
            return self._default(node).stretched(count)
        if len(off) == 0:
            return self.store.picked(node.value, at)
        return filled_up(self.store.picked(node.value, at[on]), on, off, self._default(node))

    def _strided(
        self, node: Aggregate | Width, address: Column, wanted: Positions
    ) -> Column | None:
        """Addresses in equal steps: a slice, and the default where they are outside."""
        assert address.steps is not None
        (start, step), length, count = address.steps, self.demand.length, len(wanted)
        if isinstance(node, Width) or not count:
            return None
        edges = (-start, length - start) if step > 0 else (start - length + 1, start + 1)
        first, stop = (min(count, max(0, -(-edge // abs(step)))) for edge in edges)
        if first >= stop:
            return self._default(node).stretched(count)
        ends = sorted((start + step * first, start + step * (stop - 1)))
        whole = self.store.span(node.value, ends[0], ends[1] + 1)
        if whole is None:
            return None
        found = whole.take(slice(None, None, step))
        if len(found) == count:
            return found
        default = self._default(node)
        outside = [slice(0, first), slice(stop, count)]
        pieces = [(part, default.stretched(part.stop - part.start)) for part in outside]
        return assemble(count, [(slice(first, stop), found), *pieces])

    # ------------------------------------------------------------ means

    def _joined(
        self, node: Aggregate | Width, found: list[Clause] | None, wanted: Positions
    ) -> Column:
        keys, count = self.demand.keys[node], len(wanted)
        if not count:
            return columns.from_values([])
        join = Join(self.store, node.selector, found, keys, wanted)
        if isinstance(node, Width):
            if not len(keys):
                return columns.constant(0, count)
            ranking = join.ranking()
            if ranking is not None:
                return Column.inverse_of(ranking)
            return counts(join.totals([], self.budget, self.tick), count)
        values = self.store.read(node.value, keys)
        if values.length == 0:
            return self._default(node).stretched(count)
        if found is not None and len(found) == 1:
            ordered = self._in_order(join, found[0], values)
            if ordered is not None:
                return ordered
            single = self._by_unique_key(node, join, found[0], values)
            if single is not None:
                return single
        pay = self._payload(node, values)
        totals = join.totals(pay.channels, self.budget, self.tick)

        def explain(query: int) -> RaspError:
            row = join.matrix()(slice(query, query + 1))[0]
            return explained(values, np.flatnonzero(row), self.arithmetic)

        return means(totals, pay, count, self._default(node), explain)

    def _payload(self, node: Aggregate, values: Column, *, snap: bool = True) -> Payload:
        if self.demand.rows > 1 and node.rule == "rasp" and values.kind in "mc":
            numbers = {
                self.arithmetic.number(value) and not isinstance(value, bool)
                for value in values.coded()[1]
            }
            if len(numbers) > 1:
                raise RowByRow
        sign = snap and node in self.demand.signs
        return payload(values, node.rule, self.arithmetic, snap=snap, sign=sign)

    def _in_order(self, join: Join, clause: Clause, values: Column) -> Column | None:
        """Values looked up at their ranks: the values in that order."""
        if self.demand.rows > 1 or len(clause.equal) != 1 or not clause.only_equal:
            return None
        keys, queries = join.columns(*clause.equal[0])
        if keys.ranking is None or queries.steps != (0, 1) or len(queries) != len(keys):
            return None
        return values.in_order(keys.ranking)

    def _by_unique_key(
        self, node: Aggregate, join: Join, clause: Clause, values: Column
    ) -> Column | None:
        """Equality with keys that all differ from each other: a copy."""
        if not clause.equal or clause.unequal or clause.hardmax is not None or values.uniform:
            return None
        k, q, groups = join.groups(clause)
        if k is None or q is None or groups < (keys := np.count_nonzero(k >= 0)):
            return None
        dtype = integer_type(0, len(k))
        place = np.full(groups + 1, -1, dtype=dtype)  # the last entry is that of no group
        number(place, k)
        place[-1] = -1
        if np.count_nonzero(place >= 0) < keys:
            return None  # some key stands twice
        at = looked_up(place, q)
        missing = at < 0
        if not missing.any():
            return values.take(at)
        on, off = np.flatnonzero(~missing), np.flatnonzero(missing)
        return filled_up(values.take(at[on]), on, off, self._default(node))

    # ------------------------------------------------------------ block by block

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

    def _stream(self, node: Aggregate, wanted: Positions) -> Column:
        """A grouped mean whose values are formed in blocks of keys and never stored."""
        for mode in ("plain", "mixed", "whole"):
            found = self._streamed(node, wanted, mode)
            if found is not None:
                return found
        raise AssertionError("a stream of one block always ends")

    def _streamed(self, node: Aggregate, wanted: Positions, mode: str) -> Column | None:
        """One attempt; None if the values of some block are of another kind than before."""
        keys, (clause,) = self.demand.keys[node], self._clauses(node.selector)
        table = Tables([self.store.read(q, wanted) for _, q in clause.equal])
        kind, pay = None, None
        for done, part in enumerate(blocks(keys, len(keys) if mode == "whole" else BLOCK)):
            self.tick("keys", done * BLOCK, len(keys))
            known = self._block(self.demand.streams[node], part)
            codes = table.codes([known[k] for k, _ in clause.equal], len(part))
            join = Join(self.store, node.selector, [clause], part, part)
            for key, query, mask in clause.key_filters:
                kept = join.holds(known[key], self.store.leaf(query, part), mask)
                codes = np.where(kept, codes, -1)
            values = known[node.value]
            if mode == "mixed" and exact_in_float(values):
                values = mixed(values)
            if mode != "whole" and (values.kind == "c" or kind not in (None, values.kind)):
                return None
            kind, pay = values.kind, self._payload(node, values, snap=False)
            table.add(codes, pay.channels)
        if pay is None:
            return self._default(node).stretched(len(wanted))

        def explain(query: int) -> RaspError:
            return explained(self.store.tokens.column, np.arange(0), self.arithmetic)

        return means(table.totals(len(wanted)), pay, len(wanted), self._default(node), explain)

    def _clauses(self, selector: Selector) -> list[Clause]:
        found = self.demand.clauses[selector]
        assert found is not None
        return found

    def _block(self, region: Sequence[SOp], part: Positions) -> dict[Node, Column]:
        known = _Lazy(self.store, part)
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

    def __init__(self, store: Store, part: Positions) -> None:
        super().__init__()
        self._store, self._part = store, part

    def __missing__(self, node: Node) -> Column:
        assert isinstance(node, SOp)
        self[node] = self._store.read(node, self._part)
        return self[node]
