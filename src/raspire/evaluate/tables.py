"""Tables of counts and sums that blocks of keys are added to, for means whose values stream."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raspire.evaluate.codes import whole_numbers
from raspire.evaluate.columns import Column
from raspire.evaluate.kernels import Totals, by_group
from raspire.evaluate.positions import Array


class Tables:
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
        self.largest: list[int] = []

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
            self.largest = [0] * len(self.sums)
            self.lost = [
                np.zeros(len(self.counts)) if s.dtype.kind == "f" else None for s in part.sums
            ]
        for at, new in enumerate(part.sums):
            self._widen(at, new)
        for total, lost, new in zip(self.sums, self.lost, part.sums, strict=True):
            old = total[low:high]
            with np.errstate(invalid="ignore", over="ignore"):
                grown = old + new
                if lost is not None:
                    back = grown - old
                    error = (old - (grown - back)) + (new - back)
                    lost[low:high] += np.where(np.isfinite(error), error, 0)
            total[low:high] = grown

    def _widen(self, at: int, new: Array) -> None:
        """Sums of integers that could leave int64 become Python's."""
        assert self.sums is not None
        if self.sums[at].dtype.kind != "i":
            return
        self.largest[at] += max(-int(new.min(initial=0)), int(new.max(initial=0)))
        if new.dtype == object or self.largest[at] >= 1 << 63:
            self.sums[at] = self.sums[at].astype(object)

    def totals(self, count: int) -> Totals:
        """The table, with the row of every query."""
        sums = [
            total if lost is None else total + lost
            for total, lost in zip(self.sums or [], self.lost, strict=True)
        ]
        return Totals(self.counts, sums, self.codes(self.queries, count))
