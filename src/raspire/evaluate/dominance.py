"""Two inequalities at once: for every query the keys below it in two orders, without a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from raspire.evaluate.kernels import Order, Totals, running_sums, sort, spelt
from raspire.evaluate.positions import Array


def by_dominance(
    keys: Array | None,
    queries: Array | None,
    first: Order,
    second: Order,
    channels: Sequence[Array],
) -> Totals:
    """Two inequalities within groups: a merge tree over the first order, blocks of 1, 2, 4, ...
    keys, each sorted by the second; O(N log^2 N)."""
    found = sort(keys, queries, first)
    low, high = found.start.astype(np.int64), found.stop.astype(np.int64)
    size = 1 << max(0, (len(found.order) - 1).bit_length())
    rank = np.full(size, second.size, dtype=np.int64)
    rank[: len(found.order)] = spelt(second.keys)[found.order]
    padded = []
    for channel in channels:
        whole = np.zeros(size, dtype=channel.dtype)
        whole[: len(found.order)] = channel[found.order]
        padded.append(whole)
    wanted = spelt(second.queries) + (1 if second.inclusive else 0)
    counts = np.zeros(len(low), dtype=np.int64)
    sums = [np.zeros(len(low), dtype=_summed(channel)) for channel in channels]
    block = 1
    while block <= size:
        active = low < high
        if not active.any():
            break
        level = _Level(rank, block, second.size + 2, padded)
        left = np.flatnonzero(active & (low & 1 == 1))
        level.add(left, low[left], wanted, counts, sums)
        low[left] += 1
        right = np.flatnonzero((low < high) & (high & 1 == 1))
        high[right] -= 1
        level.add(right, high[right], wanted, counts, sums)
        low >>= 1
        high >>= 1
        block *= 2
    return Totals(counts, sums)


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
        place = np.argsort(cells, kind="stable") if block > 1 else np.arange(len(rank))
        self.cells = cells[place]
        self.running = [
            running_sums(channel[place].reshape(-1, block)).reshape(-1) for channel in channels
        ]

    def add(
        self, which: Array, blocks: Array, wanted: Array, counts: Array, sums: list[Array]
    ) -> None:
        """Add, for these queries, the keys of their block whose rank is below the wanted."""
        if len(which) == 0:
            return
        stop = np.searchsorted(self.cells, blocks * self.size + wanted[which])
        inside = stop - blocks * self.block
        counts[which] += inside
        some = inside > 0
        for total, running in zip(sums, self.running, strict=True):
            total[which[some]] += running[stop[some] - 1]
