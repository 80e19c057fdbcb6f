"""Two inequalities at once: for every query the keys below it in two orders, without a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from raspire.evaluate.kernels import Order, Sorted, Totals, running_sums, sort, spelt
from raspire.evaluate.parts import integer_type, looked_up
from raspire.evaluate.positions import Array
from raspire.evaluate.ranking import order_of


def by_dominance(
    keys: Array | None,
    queries: Array | None,
    first: Order,
    second: Order,
    channels: Sequence[Array],
) -> Totals:
    """Two inequalities within groups. In the first order the keys of every query are a range.

    Counts and exact sums go down the bits of the second rank (a wavelet matrix), in O(N log N).
    Sums of floats, of which none may be subtracted, go up a merge tree, in O(N log^2 N).
    """
    found = sort(keys, queries, first)
    rank = spelt(second.keys)[found.order]
    wanted = spelt(second.queries) + (1 if second.inclusive else 0)
    ordered = [channel[found.order] for channel in channels]
    exact = [channel for channel in ordered if channel.dtype.kind != "f"]
    floats = [channel for channel in ordered if channel.dtype.kind == "f"]
    counts, exact_sums = _by_bits(rank, found, wanted, exact)
    float_sums = _by_merging(rank, found, wanted, second.size, floats) if floats else []
    ways = iter(exact_sums), iter(float_sums)
    return Totals(counts, [next(ways[channel.dtype.kind == "f"]) for channel in ordered])


def _by_bits(
    rank: Array, found: Sorted, wanted: Array, channels: Sequence[Array]
) -> tuple[Array, list[Array]]:
    """Of the keys in each range, those whose rank is below the wanted: at every bit of the rank
    the keys with a 0 go before those with a 1, and a range of keys stays two ranges."""
    most = int(rank.max(initial=0)) + 1
    wanted = np.clip(wanted, 0, most)
    low, high = found.start.astype(np.int64), found.stop.astype(np.int64)
    counts = np.zeros(len(low), dtype=np.int64)
    channels = [channel.astype(_summed(channel), copy=False) for channel in channels]
    sums = [np.zeros(len(low), dtype=channel.dtype) for channel in channels]
    for bit in reversed(range(most.bit_length())):
        ones = (rank >> bit) & 1 == 1
        zeros_before = np.zeros(len(rank) + 1, dtype=integer_type(0, len(rank)))
        np.cumsum(~ones, out=zeros_before[1:])
        low_0, high_0 = looked_up(zeros_before, low), looked_up(zeros_before, high)
        rank = np.concatenate([rank[~ones], rank[ones]])
        channels = [np.concatenate([channel[~ones], channel[ones]]) for channel in channels]
        up = (wanted >> bit) & 1 == 1  # the keys with a 0 are below the wanted
        counts += np.where(up, high_0 - low_0, 0)
        for total, channel in zip(sums, channels, strict=True):
            running = np.zeros(len(channel) + 1, dtype=channel.dtype)
            np.cumsum(channel, out=running[1:])
            total += np.where(up, running[high_0] - running[low_0], 0)
        zeros = int(zeros_before[-1])
        low = np.where(up, zeros + low - low_0, low_0)
        high = np.where(up, zeros + high - high_0, high_0)
    return counts, sums


def _by_merging(
    rank: Array, found: Sorted, wanted: Array, ranks: int, channels: Sequence[Array]
) -> list[Array]:
    """Blocks of 1, 2, 4, ... keys of the first order, each sorted by rank; a range is few."""
    low, high = found.start.astype(np.int64), found.stop.astype(np.int64)
    size = 1 << max(0, (len(rank) - 1).bit_length())
    padding = size - len(rank)
    rank = np.concatenate([rank, np.full(padding, ranks, dtype=np.int64)])
    padded = [np.concatenate([channel, np.zeros(padding)]) for channel in channels]
    sums = [np.zeros(len(low), dtype=channel.dtype) for channel in padded]
    block = 1
    while block <= size:
        active = low < high
        if not active.any():
            break
        level = _Level(rank, block, ranks + 2, padded)
        left = np.flatnonzero(active & (low & 1 == 1))
        level.add(left, low[left], wanted, sums)
        low[left] += 1
        right = np.flatnonzero((low < high) & (high & 1 == 1))
        high[right] -= 1
        level.add(right, high[right], wanted, sums)
        low >>= 1
        high >>= 1
        block *= 2
    return sums


def _summed(channel: Array) -> np.dtype[Any]:
    if channel.dtype.kind in "fO":
        return channel.dtype
    largest = max(-int(channel.min()), int(channel.max())) if len(channel) else 0
    return np.dtype(object if largest * len(channel) >= 1 << 63 else np.int64)


class _Level:
    """The keys in blocks of one size, each block sorted by rank, with running sums inside."""

    def __init__(self, rank: Array, block: int, size: int, channels: Sequence[Array]) -> None:
        self.block, self.size = block, size
        cells = np.arange(len(rank)) // block * size + rank
        place = order_of(cells) if block > 1 else np.arange(len(rank))
        self.cells = cells[place]
        self.running = [
            running_sums(channel[place].reshape(-1, block)).reshape(-1) for channel in channels
        ]

    def add(self, which: Array, blocks: Array, wanted: Array, sums: list[Array]) -> None:
        """Add, for these queries, the keys of their block whose rank is below the wanted."""
        if len(which) == 0:
            return
        stop = np.searchsorted(self.cells, blocks * self.size + wanted[which])
        inside = stop - blocks * self.block
        some = inside > 0
        for total, running in zip(sums, self.running, strict=True):
            total[which[some]] += running[stop[some] - 1]
