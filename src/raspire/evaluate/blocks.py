"""Any selector at all, in blocks of rows: dense, but never more of it than the memory allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from raspire.errors import RaspError
from raspire.evaluate.codes import equality_codes, numeric_pair, ranks
from raspire.evaluate.columns import Column
from raspire.evaluate.elementwise import distinct_rows
from raspire.evaluate.kernels import Totals
from raspire.evaluate.positions import Array
from raspire.evaluate.reference import greatest, guarded
from raspire.program.nodes import Combine, Hardmax, Select, Selector, SOp
from raspire.program.walk import selectors_of

CELLS = 1 << 22
"""Cells of the matrix that are looked at together, if the budget allows."""

Read = Callable[[SOp], Column]
Rows = Callable[[slice], Array]


def matrix(
    selector: Selector, keys: Read, queries: Read, same_row: Rows | None = None
) -> Callable[[slice], Array]:
    """A function from a slice of queries to their rows of the selector's matrix.

    ``same_row`` tells, in a batch, which keys belong to the row's own input.
    """
    order = selectors_of(selector)
    tests: dict[int, Callable[[Any], Array]] = {}
    for node in order:
        if isinstance(node, Select):
            try:
                tests[id(node)] = _select(node, keys(node.keys), queries(node.queries))
            except RaspError as error:
                raise error.at(node.place) from None
        elif isinstance(node, Hardmax):
            tests[id(node)] = _scores(keys(node.score))

    def rows(part: slice) -> Array:
        known: dict[int, Array] = {}
        for node in order:
            if isinstance(node, Select):
                known[id(node)] = tests[id(node)](part)
            elif isinstance(node, Combine):
                parts = [known[id(child)] for child in node.args]
                known[id(node)] = _combine(node.op, parts)
            elif isinstance(node, Hardmax):
                among = known[id(node.among)]
                if same_row is not None:
                    among = among & same_row(part)
                known[id(node)] = tests[id(node)](among)
        found = known[id(selector)]
        return found if same_row is None else found & same_row(part)

    return rows


def _combine(op: str, parts: Sequence[Array]) -> Array:
    if op == "not":
        return ~parts[0]
    return parts[0] & parts[1] if op == "and" else parts[0] | parts[1]


def _scores(score: Column) -> Callable[[Any], Array]:
    """A function from the rows to choose among to the rows of greatest score."""
    if score.kind in "bifm":
        data = score.full().data
        return lambda among: _greatest(among, data)
    try:
        rank, _, _ = ranks(score, score)
    except RaspError:  # not all can be ordered, but those of one row perhaps can
        values = score.values()
        return lambda among: np.array([greatest(row, values) for row in among.tolist()])
    whole = np.broadcast_to(rank, (len(score),))
    return lambda among: _greatest(among, whole)


def _greatest(among: Array, score: Array) -> Array:
    if not among.any():
        return among
    if score.dtype.kind == "f":
        low: Any = -np.inf
        among = among & ~np.isnan(score)
    else:
        score = score.astype(np.int64, copy=False)
        low = np.iinfo(np.int64).min
    with np.errstate(invalid="ignore"):
        best = np.where(among, score, low).max(axis=1, keepdims=True)
        return np.asarray(among & (score == best))


def _select(node: Select, keys: Column, queries: Column) -> Rows:
    test = _test(node, keys, queries)
    count = len(keys)

    def rows(part: slice) -> Array:
        found = test(slice(0, 1) if queries.uniform else part)
        height = len(range(*part.indices(len(queries))))
        return np.broadcast_to(found, (height, count))

    return rows


def _test(node: Select, keys: Column, queries: Column) -> Rows:
    symbol = node.comparison.symbol
    if symbol is None:
        return _opaque(node, keys, queries)
    pair = numeric_pair(keys, queries)
    if pair is not None:
        compare = COMPARE[symbol]
        k, q = pair
        return lambda part: np.asarray(compare(k[None, :], q[part, None]))
    if symbol in ("==", "!="):
        codes, wanted, _ = equality_codes(keys, queries)
        if symbol == "==":
            return lambda part: (codes[None, :] == wanted[part, None]) & (codes >= 0)
        return lambda part: (codes[None, :] != wanted[part, None]) | (codes < 0)
    compare = COMPARE[symbol]
    k, q, _ = ranks(keys, queries)
    return lambda part: np.asarray(compare(k[None, :], q[part, None]))


COMPARE: dict[str, Callable[[Array, Array], Any]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _opaque(node: Select, keys: Column, queries: Column) -> Rows:
    """An opaque predicate is asked once for every distinct key and query."""
    holds = guarded(node.comparison.scalar, node.comparison.name)
    k_codes, k_values = distinct_rows([keys.coded()], len(keys.data))
    q_codes, q_values = distinct_rows([queries.coded()], len(queries.data))
    table = np.array(
        [[bool(holds(key, query)) for (key,) in k_values] for (query,) in q_values],
        dtype=np.bool_,
    ).reshape(len(q_values), len(k_values))
    return lambda part: table[q_codes[part][:, None], k_codes[None, :]]


def by_blocks(
    rows: Callable[[slice], Array],
    queries: int,
    keys: int,
    channels: Sequence[Array],
    budget: int,
    tick: Callable[[int, int], None],
) -> Totals:
    """Counts and sums over dense rows, a block of queries at a time."""
    counts = np.zeros(queries, dtype=np.int64)
    exact = [_summable(channel, keys) for channel in channels]
    sums = [np.zeros(queries, dtype=channel.dtype) for channel in exact]
    for part in slices(queries, keys, budget):
        cells = rows(part)
        counts[part] = np.count_nonzero(cells, axis=1)
        for total, channel in zip(sums, exact, strict=True):
            total[part] = np.where(cells, channel[None, :], 0).sum(axis=1)
        tick(part.stop, queries)
    return Totals(counts, sums)


def _summable(channel: Array, keys: int) -> Array:
    if channel.dtype.kind in "fO":
        return channel
    if len(channel) == 0:
        return channel.astype(np.int64)
    largest = max(-int(channel.min()), int(channel.max()))
    return channel.astype(object if largest * keys >= 1 << 63 else np.int64)


def slices(queries: int, keys: int, budget: int) -> Iterator[slice]:
    """The queries in slices whose dense rows fit the budget."""
    cells = max(1, min(CELLS, budget // 64))
    size = max(1, cells // max(1, keys))
    for start in range(0, queries, size):
        yield slice(start, min(queries, start + size))
