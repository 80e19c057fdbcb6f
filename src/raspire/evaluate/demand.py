"""Demand: at which positions every s-op is wanted, computed from the reader down.

An s-op is computed only at positions that later selectors or the reader address. Addresses that
are index expressions (functions of the position alone) are worked out here; whatever depends on
the tokens wants its whole argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from raspire.arithmetic import FLOAT64
from raspire.errors import RaspError
from raspire.evaluate import columns
from raspire.evaluate.codes import whole_numbers
from raspire.evaluate.columns import Column
from raspire.evaluate.elementwise import COMPARISONS, apply
from raspire.evaluate.parts import in_parts, integer_type
from raspire.evaluate.positions import (
    Array,
    Positions,
    Span,
    as_array,
    blocks,
    compact,
    ends,
    union,
)
from raspire.evaluate.selectors import Clause, clauses
from raspire.program.nodes import (
    Aggregate,
    Apply,
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
from raspire.program.walk import consumers, selectors_of, topological

BLOCK = 1 << 15
"""Positions that stream through an expression together: a few arrays of them fit a cache."""

STREAM = 1 << 21
"""More keys than this stream into a grouped mean instead of being stored."""

READ = 1 << 23
"""A program read at more positions than this is formed in blocks of them."""


@dataclass
class Demand:
    """What one program needs on inputs of one length to be read at some positions."""

    order: list[Node]
    length: int
    rows: int
    wanted: dict[Node, Positions]
    keys: dict[Node, Positions] = field(default_factory=dict)
    clauses: dict[Selector, list[Clause] | None] = field(default_factory=dict)
    streams: dict[Node, list[SOp]] = field(default_factory=dict)
    signs: set[Node] = field(default_factory=set)
    """Means of which nothing is asked but their sign: the sum has it too."""

    @property
    def cells(self) -> int:
        """Positions of all inputs of the batch together."""
        return self.rows * self.length


def index_nodes(order: Iterable[Node]) -> set[Node]:
    """The nodes that are functions of the position alone, elementwise."""
    found: set[Node] = set()
    for node in order:
        if isinstance(node, Indices | Constant) or (
            isinstance(node, Apply)
            and not node.primitive.opaque
            and all(child in found for child in node.args)
        ):
            found.add(node)
    return found


def _signs(order: Sequence[Node], program: Node) -> set[Node]:
    """The means that are compared with 0 and read by nobody else."""
    readers = consumers(order)
    return {
        node
        for node in order
        if isinstance(node, Aggregate)
        and node is not program
        and all(_compares_with_zero(reader, node) for reader in readers[node])
    }


def _compares_with_zero(reader: Node, node: Node) -> bool:
    if not isinstance(reader, Apply) or reader.primitive.name not in COMPARISONS:
        return False
    others = [child for child in reader.args if child is not node]
    return len(others) == 1 and isinstance(others[0], Constant) and _is_zero(others[0].value)


def _is_zero(value: Any) -> bool:
    """Whether a constant is the number 0."""
    return isinstance(value, int | float) and value == 0


def index_column(positions: Positions, length: int) -> Column:
    """The index of each position within its own input."""
    if isinstance(positions, Span):
        if positions.start >= 0 and positions.stop <= length:
            return columns.indices(positions.start, positions.stop)
        return Column("i", _within(as_array(positions), length), bounds=(0, length - 1))
    if len(positions) and int(positions.max()) >= length:
        return Column("i", _within(positions, length), bounds=(0, length - 1))
    return Column("i", positions, bounds=(0, length - 1))


def _within(positions: Array, length: int) -> Array:
    dtype = integer_type(0, length)
    return in_parts(lambda part: part % length, positions, dtype=dtype)


def index_values(expressions: Sequence[SOp], positions: Positions, length: int) -> list[Column]:
    """Index expressions at some positions."""
    known: dict[Node, Column] = {}
    for node in topological(*expressions):
        if isinstance(node, Constant):
            known[node] = columns.constant(FLOAT64.lift(node.value), len(positions))
        elif isinstance(node, Indices):
            known[node] = index_column(positions, length)
        elif isinstance(node, Apply):
            known[node] = apply(node.primitive, [known[c] for c in node.args], FLOAT64)
    return [known[node] for node in expressions]


def demand(program: Node, positions: Positions, length: int, rows: int = 1) -> Demand:
    """The demand of a program read at some positions."""
    return _Builder(program, positions, length, rows).build()


class _Builder:
    def __init__(self, program: Node, positions: Positions, length: int, rows: int) -> None:
        self.program = program
        order = topological(program)
        self.index = index_nodes(order)
        self.found = Demand(order, length, rows, {}, signs=_signs(order, program))
        self.all = Span(0, rows * length)
        self.asked: dict[Node, list[Positions]] = {node: [] for node in order}
        self.asked[program].append(positions)

    def build(self) -> Demand:
        """Parents before children, so that whoever reads a node has been asked before it."""
        if isinstance(self.program, Selector):
            self._sides(self.program, self.all, self.all)
        for node in reversed(self.found.order):
            if isinstance(node, Selector) or not self.asked[node]:
                continue
            wanted = union(self.asked[node], self.found.cells)
            self.found.wanted[node] = wanted
            if node is self.program and self._read_in_blocks(node, wanted):
                continue
            if isinstance(node, Apply):
                for child in node.args:
                    self.asked[child].append(wanted)
            elif isinstance(node, Aggregate | Width):
                self._aggregate(node, wanted)
        return self.found

    def _read_in_blocks(self, node: Node, wanted: Positions) -> bool:
        """Whether the program itself, read at very many positions, is never formed at once."""
        if len(wanted) <= READ or self.found.rows > 1 or not isinstance(node, SOp):
            return False
        if self._streamed(node) is None:
            return False
        self.found.streams[node] = self._blockwise([node], wanted)
        return True

    def _blockwise(self, roots: Sequence[SOp], positions: Positions) -> list[SOp]:
        """What runs block by block below some roots, the rest being asked for before."""
        region, ends_ = self._region(roots)
        for end in ends_:
            self.asked[end].append(positions)
        for inner in region:
            if isinstance(inner, Aggregate):
                address = self.found.clauses[inner.selector][0].fetch  # type: ignore[index]
                assert address is not None
                self.asked[inner.value].append(self._addresses(inner, address, positions))
        return region

    def _aggregate(self, node: Aggregate | Width, wanted: Positions) -> None:
        selector = node.selector
        if selector not in self.found.clauses:
            self.found.clauses[selector] = clauses(selector)
        found = self.found.clauses[selector]
        address = found[0].fetch if found is not None and len(found) == 1 else None
        if address is not None:
            self.asked[address].append(wanted)
            if isinstance(node, Aggregate):
                self.asked[node.value].append(self._addresses(node, address, wanted))
            return
        keys = self._keys(node, found, wanted) if len(wanted) else Span(0, 0)
        self.found.keys[node] = keys
        if isinstance(node, Aggregate) and self._streams(node, found, keys, wanted):
            return
        self._sides(selector, keys, wanted)
        if isinstance(node, Aggregate):
            self.asked[node.value].append(keys)

    def _sides(self, selector: Selector, keys: Positions, queries: Positions) -> None:
        for node in selectors_of(selector):
            if isinstance(node, Select):
                self.asked[node.keys].append(keys)
                self.asked[node.queries].append(queries)
            elif isinstance(node, Hardmax):
                self.asked[node.score].append(keys)

    def _addresses(self, node: Aggregate, address: SOp, wanted: Positions) -> Positions:
        """Where the value of a look-up is read."""
        if node.rule == "rasp" or self.found.rows > 1 or address not in self.index:
            return self.all
        if isinstance(node.value, Tokens | Constant | Indices):
            return Span(0, 0)  # leaves are read where they are
        return self._read(address, wanted)

    def _read(self, address: SOp, wanted: Positions) -> Positions:
        length = self.found.length
        table = np.zeros(length, dtype=np.bool_)
        try:
            for part in blocks(wanted, BLOCK if len(wanted) > STREAM else 1 << 20):
                (column,) = index_values([address], part, length)
                at = whole_numbers(column)
                if at is None:
                    continue
                low, high = (int(at.min()), int(at.max())) if len(at) else (0, -1)
                if low < 0 or high >= length:
                    at = at[(at >= 0) & (at < length)]
                table[at] = True
        except RaspError:
            return self.all  # it is raised again, with its place, when it runs
        return compact(np.flatnonzero(table))

    def _keys(
        self, node: Aggregate | Width, found: list[Clause] | None, wanted: Positions
    ) -> Positions:
        """The keys that some query may select: all, unless index expressions tell fewer."""
        if found is None or len(found) != 1 or self.found.rows > 1:
            return self.all
        if (isinstance(node, Aggregate) and node.rule == "rasp") or len(wanted) == len(self.all):
            return self.all
        known = [
            (k, q) for k, q in found[0].equal if k in self.index and q in self.index
        ]  # fmt: skip
        if not known and found[0].hardmax is not None:
            inner = clauses(found[0].hardmax.among)
            if inner is not None and len(inner) == 1:
                known = [(k, q) for k, q in inner[0].equal if k in self.index and q in self.index]
        if not known:
            return self.all
        try:
            return _selected(known, wanted, self.found.length)
        except RaspError:
            return self.all

    def _streams(
        self, node: Aggregate, found: list[Clause] | None, keys: Positions, wanted: Positions
    ) -> bool:
        """Whether the values are formed in blocks of keys, and never stored."""
        if self.found.rows > 1 or len(keys) <= STREAM:
            return False  # in a batch the groups of every row are apart
        if found is None or len(found) != 1 or node.rule == "rasp":
            return False
        clause = found[0]
        if not clause.equal or clause.unequal or clause.hardmax is not None or clause.query_filters:
            return False
        if not self._small(clause, wanted):
            return False
        for queried in (q for _, q in clause.equal):
            self.asked[queried].append(wanted)
        roots = [k for k, _ in clause.equal] + [k for k, _, _ in clause.key_filters]
        self.found.streams[node] = self._blockwise([node.value, *roots], keys)
        return True

    def _small(self, clause: Clause, wanted: Positions) -> bool:
        """Whether the groups are index expressions with few values, so that a table holds them."""
        queries = [q for _, q in clause.equal]
        if any(node not in self.index for pair in clause.equal for node in pair):
            return False
        size = 1
        for column in index_values(queries, wanted, self.found.length):
            if column.kind not in "bi":
                return False
            low, high = column.exact_bounds()
            size *= high - low + 1
        return size <= 1 << 24

    def _region(self, roots: Sequence[SOp]) -> tuple[list[SOp], list[SOp]]:
        """What is computed block by block below the roots, and what must be there before."""
        region: list[SOp] = []
        ends_: list[SOp] = []
        seen: set[Node] = set()
        stack: list[tuple[SOp, bool]] = [(root, False) for root in roots]
        while stack:
            node, ready = stack.pop()
            if ready:
                region.append(node)
                continue
            if node in seen:
                continue
            seen.add(node)
            children = self._streamed(node)
            if children is None:
                ends_.append(node)
            else:
                stack.append((node, True))
                stack.extend((child, False) for child in children)
        return region, ends_

    def _streamed(self, node: SOp) -> Sequence[SOp] | None:
        """The arguments a node reads at its own positions, None if it cannot stream."""
        if isinstance(node, Tokens | Indices | Constant):
            return ()
        if isinstance(node, Apply):
            return node.args
        if isinstance(node, Aggregate):
            if node.selector not in self.found.clauses:
                self.found.clauses[node.selector] = clauses(node.selector)
            found = self.found.clauses[node.selector]
            if found is not None and len(found) == 1 and found[0].fetch is not None:
                return (found[0].fetch,)
        return None


def _selected(tests: list[tuple[SOp, SOp]], wanted: Positions, length: int) -> Positions:
    """The positions whose keys equal, in every test, the query of some wanted position."""
    queries = index_values([q for _, q in tests], wanted, length)
    tables: list[tuple[SOp, int, Array]] = []
    for (key, _), column in zip(tests, queries, strict=True):
        if column.kind not in "bi":
            return Span(0, length)
        low, high = column.exact_bounds()
        if high - low > 4 * length + 1024:
            return Span(0, length)
        table = np.zeros(high - low + 1, dtype=np.bool_)
        table[column.data.astype(np.int64, copy=False) - low] = True
        tables.append((key, low, table))
    pieces: list[Positions] = []
    walks = [topological(key) for key, _, _ in tables]
    waiting = [Span(0, -(-length // BLOCK) * BLOCK)]
    while waiting:
        part = waiting.pop()
        if any(
            _outside(walk, part.start, min(part.stop, length) - 1, low, low + len(table) - 1)
            for walk, (_, low, table) in zip(walks, tables, strict=True)
        ):
            continue
        if len(part) > BLOCK:
            middle = part.start + len(part) // BLOCK // 2 * BLOCK
            waiting += [Span(middle, part.stop), Span(part.start, middle)]
            continue
        keep = _kept(tables, Span(part.start, min(part.stop, length)), length)
        if len(keep):
            pieces.append(keep)
    return _joined(pieces)


def _kept(tables: list[tuple[SOp, int, Array]], part: Positions, length: int) -> Positions:
    keep = np.ones(len(part), dtype=np.bool_)
    for (_, low, table), column in zip(
        tables, index_values([key for key, _, _ in tables], part, length), strict=True
    ):
        if column.kind not in "bi":
            return part
        at = column.data.astype(np.int64, copy=False) - low
        inside = (at >= 0) & (at < len(table))
        keep &= inside & table[np.where(inside, at, 0)]
    if keep.all():
        return part
    return compact(as_array(part)[keep])


def _outside(walk: Sequence[Node], first: int, last: int, low: int, high: int) -> bool:
    """Whether a key, the last of its walk, is certainly not within low..high at first..last."""
    known: dict[Node, tuple[float, float]] = {}
    for node in walk:
        if isinstance(node, Indices):
            known[node] = first, last
        elif isinstance(node, Constant) and isinstance(node.value, int):
            known[node] = node.value, node.value
        elif isinstance(node, Apply) and node.primitive.range is not None:
            known[node] = node.primitive.range(*(known[child] for child in node.args))
        else:
            return False
    least, most = known[walk[-1]]
    return most < low or least > high


def _joined(pieces: list[Positions]) -> Positions:
    """Pieces in ascending order as one set; adjacent spans become one."""
    if not pieces:
        return Span(0, 0)
    if all(isinstance(p, Span) for p in pieces):
        bounds = [ends(p) for p in pieces]
        if all(a[1] + 1 == b[0] for a, b in pairwise(bounds)):
            return Span(bounds[0][0], bounds[-1][1] + 1)
    return compact(np.concatenate([as_array(p) for p in pieces]))
