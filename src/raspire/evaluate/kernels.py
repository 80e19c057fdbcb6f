"""Sums over the selected keys of every query, without a matrix.

Every kernel answers the same question: for each query, how many keys are selected and what are
the sums of some *channels* (one number a key) over them. Channels of integers and of exact
objects are exact. Channels of floats are summed pairwise or with compensation, so that a mean is
within 2 eps log2(N) (mean of |v|) of the exact one; running sums are never subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from raspire.evaluate.parts import PART, growing, integer_type, looked_up, parts, tally
from raspire.evaluate.positions import Array
from raspire.evaluate.ranking import number, occurrences, order_of

EXACT_SUM = 1 << 53
NEVER_A_TABLE = 1 << 61
TABLE, ROOM = 4, 1024
"""A table may have this many entries for every key and query, and this many more."""


@dataclass
class Totals:
    """Counts and channel sums a row; ``row`` is the row of every query (None: its own)."""

    counts: Array
    sums: list[Array]
    row: Array | None = None

    def spread(self) -> Totals:
        """One row for each query."""
        if self.row is None:
            return self
        taken = [looked_up(table, self.row) for table in (self.counts, *self.sums)]
        if len(self.row) and self.row.min() < 0:
            lost = self.row < 0
            for table in taken:
                table[lost] = 0
        return Totals(taken[0], taken[1:])


def added(parts: Sequence[Totals]) -> Totals:
    """The totals of disjoint selections together."""
    if len(parts) == 1:
        return parts[0]
    first, *rest = (part.spread() for part in parts)
    counts, sums = first.counts, [_wide(table) for table in first.sums]
    for part in rest:
        counts = counts + part.counts
        sums = [a + b for a, b in zip(sums, part.sums, strict=True)]
    return Totals(counts, sums)


def _wide(data: Array) -> Array:
    """Integers as int64, before something is calculated with them."""
    return data.astype(np.int64, copy=False) if data.dtype.kind == "i" else data


def spelt(ranks: Array | range) -> Array:
    """Ranks as int64."""
    if isinstance(ranks, range):
        return np.arange(ranks.start, ranks.stop, ranks.step, dtype=np.int64)
    return _wide(ranks)


def group_sum(codes: Array, channel: Array, groups: int, counts: Array) -> Array:
    """The sum of a channel in each group; codes are 0..groups-1."""
    if channel.dtype == object:
        total = np.zeros(groups, dtype=object)
        np.add.at(total, codes, channel)
        return total
    largest = int(counts.max()) if groups else 0
    if channel.dtype.kind == "f":
        if largest <= 2 * math.log2(len(codes) + 2):
            return tally(codes, groups, channel)
        return _float_group_sum(codes, channel, groups, counts)
    low, high = (int(channel.min()), int(channel.max())) if len(channel) else (0, 0)
    if max(-low, high) * largest < EXACT_SUM:
        return tally(codes, groups, channel).astype(np.int64)
    if max(-low, high) * largest < 1 << 63:
        whole = np.zeros(groups, dtype=np.int64)
        np.add.at(whole, codes, channel)
        return whole
    return group_sum(codes, channel.astype(object), groups, counts)


def _float_group_sum(codes: Array, channel: Array, groups: int, counts: Array) -> Array:
    if groups == 1:
        return np.array([np.sum(channel)])
    total = np.zeros(groups)
    present = np.flatnonzero(counts)
    starts = np.cumsum(counts[present]) - counts[present]
    ordered = channel if growing(codes, strictly=False) else channel[order_of(codes)]
    if len(present):
        total[present] = np.add.reduceat(ordered, starts)
    return total


def by_group(
    keys: Array | None, queries: Array | None, groups: int, channels: Sequence[Array], size: int
) -> Totals:
    """Equality alone: one row a group. ``keys`` None is one group of ``size`` keys."""
    if keys is None:
        counts = np.array([size])
        sums = [_total(channel, counts) for channel in channels]
        return Totals(counts, sums, queries)
    if len(keys) and keys.min() < 0:
        inside = keys >= 0
        keys, channels = keys[inside], [channel[inside] for channel in channels]
    counts = tally(keys, groups)
    return Totals(counts, [group_sum(keys, c, groups, counts) for c in channels], queries)


def _total(channel: Array, counts: Array) -> Array:
    if channel.dtype.kind == "f":
        return np.array([np.sum(channel)])
    if channel.dtype != object and len(channel):
        largest = total = 0
        for part in parts(len(channel)):
            some = channel[part]
            largest = max(largest, -int(some.min()), int(some.max()))
            total += int(some.sum(dtype=np.int64))  # a sum that wraps is not used
        if largest * len(channel) < 1 << 63:
            return np.array([total])
    return group_sum(np.zeros(len(channel), dtype=np.int64), channel, 1, counts)


@dataclass
class Order:
    """One inequality: ranks of keys and queries, below ``size``; ``inclusive`` is ``<=``.

    Ranks that are the positions are a range. ``major`` is given where the ranks are those of a
    lexicographic order whose last part grows with the position: a stable order by ``major`` is
    their order, and no two are equal.
    """

    keys: Array | range
    queries: Array | range
    size: int
    inclusive: bool
    major: Array | None = None

    @property
    def own(self) -> bool:
        """Whether every key is its own query."""
        return self.queries is self.keys

    @staticmethod
    def of(
        keys: Array | range,
        queries: Array | range,
        size: int,
        *,
        greater: bool,
        inclusive: bool,
    ) -> Order:
        """``>`` and ``>=`` are ``<`` and ``<=`` of the reversed ranks."""
        if not greater:
            return Order(keys, queries, size, inclusive)
        back = _reversed(keys, size)
        return Order(back, back if keys is queries else _reversed(queries, size), size, inclusive)

    def then(self, second: Order, *, alone: bool) -> Order | None:
        """First by this order, ties by the second; None if the ranks would be too large.

        ``alone``: keys and queries have the same groups. If they also have the same ranks, and
        the second ranks grow, a stable order by the first is all that is needed.
        """
        size = self.size * second.size
        major = self.keys if growing(second.keys) else None
        if isinstance(major, range):
            major = spelt(major)
        if self.own and second.own and alone and major is not None:
            return Order(major, major, NEVER_A_TABLE, second.inclusive, major)
        if size >= 1 << 62:
            return None
        keys = spelt(self.keys) * second.size + spelt(second.keys)
        own = self.own and second.own
        queries = keys if own else spelt(self.queries) * second.size + spelt(second.queries)
        return Order(keys, queries, size, second.inclusive, major)


def _reversed(ranks: Array | range, size: int) -> Array | range:
    if isinstance(ranks, range):
        return range(size - 1 - ranks.start, size - 1 - ranks.stop, -ranks.step)
    return size - 1 - _wide(ranks)


def by_order(
    keys: Array | None,
    queries: Array | None,
    groups: int,
    order: Order,
    channels: Sequence[Array],
) -> Totals:
    """One inequality within groups: running sums in the order of the keys' ranks."""
    if order.own and order.major is None and growing(order.keys):
        if keys is None and isinstance(order.keys, range):
            return _prefixes(order, channels)
        if keys is not None and queries is keys and not channels and groups <= PART:
            return _earlier(keys, groups, order)
    count = len(order.keys) + len(order.queries)
    if groups * order.size <= TABLE * count + ROOM:
        return _by_table(keys, queries, groups, order, channels)
    return _by_sort(keys, queries, order, channels)


def _prefixes(order: Order, channels: Sequence[Array]) -> Totals:
    """The keys before each position, and perhaps its own."""
    count, first = len(order.keys), 1 if order.inclusive else 0
    counts = np.arange(first, first + count, dtype=integer_type(0, count + first))
    sums = [running_sums(channel) for channel in channels]
    if not order.inclusive:
        sums = [np.concatenate([np.zeros(1, dtype=s.dtype), s[:-1]]) for s in sums]
    return Totals(counts, sums)


def _earlier(keys: Array, groups: int, order: Order) -> Totals:
    """How many keys of its group are before each position; a group of -1 selects nothing."""
    first = 1 if order.inclusive else 0
    if int(keys.min(initial=0)) >= 0:
        return Totals(occurrences(keys, groups, first), [])
    inside = np.flatnonzero(keys >= 0)
    counts = np.zeros(len(keys), dtype=integer_type(0, len(keys) + 1))
    counts[inside] = occurrences(keys[inside], groups, first)
    return Totals(counts, [])


def _by_table(
    keys: Array | None,
    queries: Array | None,
    groups: int,
    order: Order,
    channels: Sequence[Array],
) -> Totals:
    size, wanted = order.size, spelt(order.queries)
    cells = spelt(order.keys) if keys is None else _wide(keys) * size + spelt(order.keys)
    if keys is not None and len(keys) and keys.min() < 0:
        inside = keys >= 0
        cells, channels = cells[inside], [channel[inside] for channel in channels]
    shape = (groups, size)
    distinct = len(cells) == groups * size and _counting(cells)
    column = wanted if order.inclusive else wanted - 1
    row = column if queries is None else np.where(queries < 0, 0, _wide(queries)) * size + column
    nothing = column < 0 if queries is None else (column < 0) | (queries < 0)
    some_nothing = bool(nothing.any())
    row = np.where(nothing, 0, row) if some_nothing else row
    whole = distinct and not some_nothing and len(row) == len(cells) and _counting(row)
    if distinct:
        counts = np.broadcast_to(np.arange(1, size + 1), shape).reshape(-1)
        running = [counts]
    else:
        counts = np.bincount(cells, minlength=groups * size)
        running = [np.cumsum(counts.reshape(shape), axis=1).reshape(-1)]
    for channel in channels:
        cell = channel if distinct else group_sum(cells, channel, groups * size, counts)
        running.append(running_sums(cell.reshape(shape)).reshape(-1))
    found = running if whole else [table[row] for table in running]
    if some_nothing:
        for table in found:
            table[nothing] = 0
    return Totals(found[0], found[1:])


def _counting(codes: Array) -> bool:
    """Whether the codes are 0, 1, 2, ..."""
    if len(codes) and (codes[0] != 0 or codes[-1] != len(codes) - 1):
        return False
    return growing(codes)


def running_sums(rows: Array) -> Array:
    """Inclusive running sums along the last axis: exact for integers and objects, else
    compensated (each error of the running sum is known exactly, and summed beside it).

    Sums of integers have the narrowest type that cannot be left.
    """
    if rows.dtype == object:
        return np.asarray(np.cumsum(rows, axis=-1))
    if rows.dtype.kind != "f":
        return _whole_running_sums(rows)
    if not np.isfinite(rows).all():
        return _scan(rows)
    running = np.cumsum(rows, axis=-1)
    before = np.zeros_like(running)
    before[..., 1:] = running[..., :-1]
    grown = running - before
    error = (before - (running - grown)) + (rows - grown)
    return np.asarray(running + np.cumsum(error, axis=-1))


def _whole_running_sums(rows: Array) -> Array:
    low, high = (int(rows.min()), int(rows.max())) if rows.size else (0, 0)
    largest = max(-low, high) * max(1, rows.shape[-1])
    if largest >= 1 << 63:
        return np.asarray(np.cumsum(rows.astype(object), axis=-1))
    dtype = integer_type(-largest, largest)
    if rows.ndim > 1:
        return np.asarray(np.cumsum(rows, axis=-1, dtype=dtype))
    running = np.empty(len(rows), dtype=dtype)
    total = dtype.type(0)
    for part in parts(len(rows)):
        some = running[part]
        np.cumsum(rows[part], dtype=dtype, out=some)
        some += total
        total = some[-1]
    return running


def _scan(rows: Array) -> Array:
    """Running sums by doubling: nothing is ever subtracted, so infinities stay where they are."""
    total = rows.copy()
    step = 1
    with np.errstate(invalid="ignore", over="ignore"):
        while step < rows.shape[-1]:
            shifted = total[..., :-step].copy()
            total[..., step:] += shifted
            step *= 2
    return total


def segmented_sums(channel: Array, offset: Array) -> Array:
    """Running sums that start again where ``offset`` (the place in the segment) is 0."""
    total = channel.copy()
    longest = int(offset.max()) + 1 if len(offset) else 0
    step = 1
    with np.errstate(invalid="ignore", over="ignore"):
        while step < longest:
            shifted = np.where(offset[step:] >= step, total[:-step], 0)
            total[step:] += shifted
            step *= 2
    return total


@dataclass
class Sorted:
    """Keys in order of group and rank; for each query the part [start, stop) it selects."""

    order: Array
    start: Array
    stop: Array


def sort(keys: Array | None, queries: Array | None, order: Order) -> Sorted:
    """Keys by group, then rank; queries as ranges of them."""
    own = queries is keys and order.own
    complete = keys is None or int(keys.min(initial=0)) >= 0
    if own and complete and (order.major is not None or growing(order.keys)):
        return _own_places(keys, order)
    size = order.size
    ranks = spelt(order.keys)
    keys, queries = (None if codes is None else _wide(codes) for codes in (keys, queries))
    cells = ranks if keys is None else np.where(keys < 0, -1, keys * size + ranks)
    if keys is not None and growing(ranks, strictly=False):
        place = order_of(keys)
    elif keys is None and order.major is not None:
        place = order_of(order.major)
    else:
        place = order_of(cells)
    ordered = cells[place]
    side: Literal["left", "right"] = "right" if order.inclusive else "left"
    if own:
        changes = np.flatnonzero(np.diff(ordered)) + 1
        runs = np.concatenate([[0], changes, [len(ordered)]])
        which = np.repeat(np.arange(len(runs) - 1), np.diff(runs))
        stop, start = np.empty_like(place), np.zeros_like(place)
        stop[place] = runs[which + 1] if side == "right" else runs[which]
        if keys is not None:
            start[place] = _group_starts(keys[place])
            lost = keys < 0
            if lost.any():
                stop[lost] = start[lost] = 0
        return Sorted(place, start, stop)
    wanted = spelt(order.queries)
    wanted = wanted if queries is None else queries * size + wanted
    stop = np.searchsorted(ordered, wanted, side=side)
    if queries is None:
        return Sorted(place, np.zeros_like(stop), stop)
    start = np.searchsorted(ordered, queries * size, side="left")
    lost = queries < 0
    if lost.any():
        stop[lost] = start[lost] = 0
    return Sorted(place, start, np.maximum(start, stop))


def _own_places(keys: Array | None, order: Order) -> Sorted:
    """Every key is its own query, and none equals another: its place is its count."""
    major = order.major
    if keys is None:
        place = np.arange(len(order.keys)) if major is None else order_of(major)
    elif major is None:
        place = order_of(keys)
    else:
        place = order_of(_wide(keys) * (int(major.max(initial=0)) + 1) + major)
    stop = np.empty(len(place), dtype=integer_type(0, len(place) + 1))
    number(stop, place, 1 if order.inclusive else 0)
    if keys is None:
        return Sorted(place, np.zeros_like(place), stop)
    sizes = tally(keys, int(keys.max(initial=-1)) + 1)
    return Sorted(place, looked_up((np.cumsum(sizes) - sizes).astype(stop.dtype), keys), stop)


def _group_starts(groups: Array) -> Array:
    first = np.concatenate([[True], groups[1:] != groups[:-1]]) if len(groups) else groups
    at = np.flatnonzero(first)
    return np.asarray(at[np.cumsum(first) - 1])


def _by_sort(
    keys: Array | None, queries: Array | None, order: Order, channels: Sequence[Array]
) -> Totals:
    found = sort(keys, queries, order)
    sums = []
    for channel in channels:
        ordered = channel[found.order]
        if channel.dtype.kind == "f":
            sums.append(_float_ranges(ordered, keys, found, order))
        else:
            running = running_sums(ordered)
            zero = np.zeros(1, dtype=running.dtype)
            running = np.concatenate([zero, running])
            sums.append(running[found.stop] - running[found.start])
    return Totals(found.stop - found.start, sums)


def _float_ranges(ordered: Array, keys: Array | None, found: Sorted, order: Order) -> Array:
    if keys is None:
        running = running_sums(ordered)
    else:
        starts = _group_starts(keys[found.order])
        running = segmented_sums(ordered, np.arange(len(ordered)) - starts)
    total = running[found.stop - 1] if len(running) else np.zeros(len(found.stop))
    return np.where(found.stop > found.start, total, 0.0)
