"""Stable orders of integers: by counting where few are distinct, else packed with their places.

A program that sorts asks for the rank of every position and then looks values up at their ranks.
A :class:`Ranking` keeps the order from which both follow, so that neither is worked out twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raspire.evaluate.parts import PART, in_parts, integer_type, looked_up, parts, tally, typed
from raspire.evaluate.positions import Array

FEW = 64
"""So many distinct codes are put in order by counting."""

RADIX = 1 << 16
"""Codes below this are sorted by radix, others packed with their places."""

SHORT = 4096
"""Fewer numbers than this are numbered by NumPy's own unique."""


class Ranking:
    """All positions in a stable order of their ranks, which are any integers.

    Where the ranks are the values of a column ``of`` of integers, counted up from ``base``, or down
    from it if they are ``descending``, that column is known in this order too.
    """

    def __init__(
        self, ranks: Array, *, of: object = None, base: int = 0, descending: bool = False
    ) -> None:
        self.ranks, self.of, self.base, self.descending = ranks, of, base, descending
        self._packed = None if _by_radix(ranks) else _pack(ranks)

    def __len__(self) -> int:
        return len(self.ranks)

    @property
    def nbytes(self) -> int:
        """The bytes that it holds."""
        sorted_ = 0 if self._packed is None else self._packed.keys.nbytes
        return int(self.ranks.nbytes + sorted_)

    @cached_property
    def places(self) -> Array:
        """The positions in this order."""
        return order_of(self.ranks) if self._packed is None else _places(self.ranks, self._packed)

    def ascending(self) -> Array | None:
        """The ranks in this order, where they are at hand."""
        packed = self._packed
        if packed is None or packed.dropped:
            return None
        found = np.empty(len(self), dtype=self.ranks.dtype)
        for part in parts(len(self)):
            found[part] = (packed.keys[part] >> packed.bits) + packed.least
        return found

    def inverse(self) -> Array:
        """At which place of this order every position is."""
        table = np.empty(len(self), dtype=integer_type(0, len(self)))
        number(table, self.places)
        return table


def order_of(codes: Array) -> Array:
    """The positions in a stable order of their codes, which are any integers."""
    if not _by_radix(codes):
        return _places(codes, _pack(codes))
    most = int(codes.max(initial=0))
    if len(codes) > 4 * PART:
        present = np.flatnonzero(tally(codes, most + 1))
        if len(present) <= FEW:
            number_of = np.zeros(most + 1, dtype=np.int8)
            number_of[present] = np.arange(len(present))
            return _counted(looked_up(number_of, codes), len(present))
    return np.argsort(typed(codes, np.uint8 if most < 256 else np.uint16), kind="stable")


def _by_radix(codes: Array) -> bool:
    """Whether codes are naturals of two bytes, which NumPy sorts by radix."""
    return int(codes.max(initial=0)) < RADIX and int(codes.min(initial=0)) >= 0


@dataclass(frozen=True)
class _Packed:
    """Sorted int64: above ``bits`` the integers, counted from the least, without their lowest
    ``dropped`` bits; below, the position of each."""

    keys: Array
    bits: int
    least: int
    dropped: int


def _pack(integers: Array) -> _Packed:
    least, most = int(integers.min()), int(integers.max())
    bits = max(1, (len(integers) - 1).bit_length())
    dropped = max(0, (most - least).bit_length() + bits - 63)
    keys = np.empty(len(integers), dtype=np.int64)
    for part in parts(len(integers)):
        unsigned = integers[part].astype(np.int64).view(np.uint64)
        unsigned -= np.uint64(least % (1 << 64))  # exact: what wraps wraps back
        keys[part] = (unsigned >> np.uint64(dropped)) << np.uint64(bits)
        keys[part] |= np.arange(part.start, part.stop)
    keys.sort()
    return _Packed(keys, bits, least, dropped)


def _places(integers: Array, packed: _Packed) -> Array:
    """The positions in order; where the bits that were dropped decide, they are looked at."""
    places = np.empty(len(integers), dtype=integer_type(0, len(integers)))
    for part in parts(len(places)):
        places[part] = packed.keys[part] & ((1 << packed.bits) - 1)
    if packed.dropped:
        upper = packed.keys >> packed.bits
        tied = upper[1:] == upper[:-1]
        inside = np.flatnonzero(np.append(tied, False) | np.insert(tied, 0, False))
        if len(inside) * 2 > len(integers):
            return np.argsort(integers, kind="stable")
        members = places[inside]
        places[inside] = members[np.lexsort((integers[members], upper[inside]))]
    return places


def as_integers(floats: Array) -> Array:
    """Integers in the order of floats (binary64, -0.0 before 0.0)."""

    def form(part: Array) -> Array:
        bits = part.view(np.int64)
        return np.where(bits < 0, bits ^ np.int64((1 << 63) - 1), bits)

    return in_parts(form, floats, dtype=np.int64)


def distinct(data: Array) -> tuple[Array, Array]:
    """Ascending distinct numbers, a NaN last, and which of them every number is."""
    if len(data) < max(1, SHORT) or data.dtype.kind not in "if":
        values, codes = np.unique(data, return_inverse=True)
        return values, codes.reshape(-1)
    if data.dtype.kind == "f":
        data = data.astype(np.float64)
        data[data == 0] = 0.0  # both zeros are one number, and all NaN
        data[np.isnan(data)] = np.nan
        keys = as_integers(data)
    else:
        keys = data.astype(np.int64, copy=False)
    places = _places(keys, _pack(keys))
    ordered = looked_up(keys, places)
    first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    codes = np.empty(len(data), dtype=integer_type(0, len(data)))
    codes[places] = np.cumsum(first, dtype=codes.dtype) - 1
    return data[places[first]], codes


def _counted(codes: Array, groups: int) -> Array:
    counts = tally(codes, groups)
    free = (np.cumsum(counts) - counts).tolist()
    places = np.empty(len(codes), dtype=integer_type(0, len(codes)))
    for part in parts(len(codes)):
        some = codes[part]
        order = np.argsort(some, kind="stable").astype(places.dtype)
        order += part.start
        taken = 0
        for group, size in enumerate(np.bincount(some, minlength=groups).tolist()):
            start = free[group]
            places[start : start + size] = order[taken : taken + size]
            free[group] += size
            taken += size
    return places


def occurrences(codes: Array, groups: int, first: int = 0) -> Array:
    """first, first + 1, ... within each group, in order of position; groups is at most PART."""
    found = np.empty(len(codes), dtype=integer_type(0, len(codes) + first))
    seen = np.full(groups, first, dtype=found.dtype)
    for part in parts(len(codes)):
        some = typed(codes[part], integer_type(0, groups))
        order = np.argsort(some, kind="stable")
        sizes = np.bincount(some, minlength=groups).astype(found.dtype)
        starts = np.cumsum(sizes, dtype=found.dtype) - sizes
        running = np.repeat(seen - starts, sizes)
        running += np.arange(len(some), dtype=found.dtype)
        found[part][order] = running
        seen += sizes
    return found


def number(table: Array, places: Array, first: int = 0) -> None:
    """Write first, first + 1, ... at the places, in parts whose numbers stay in the cache."""
    for part in parts(len(places)):
        table[places[part]] = np.arange(part.start + first, part.stop + first, dtype=table.dtype)
