"""Stable orders of natural numbers: by counting where few are distinct, else packed with places.

A program that sorts asks for the rank of every position and then looks values up at their ranks.
A :class:`Ranking` keeps the order from which both follow, so that neither is worked out twice.
"""

from __future__ import annotations

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
        found = _packed(ranks)
        self._packed = None if found is None else found[0]
        self._bits = 0 if found is None else found[1]

    def __len__(self) -> int:
        return len(self.ranks)

    @property
    def nbytes(self) -> int:
        """The bytes that it holds."""
        return int(self.ranks.nbytes + (0 if self._packed is None else self._packed.nbytes))

    @cached_property
    def places(self) -> Array:
        """The positions in this order."""
        if self._packed is None:
            return order_of(self.ranks)
        return _low_bits(self._packed, self._bits)

    def ascending(self) -> Array | None:
        """The ranks in this order, where they are at hand."""
        if self._packed is None:
            return None
        found = np.empty(len(self), dtype=self.ranks.dtype)
        for part in parts(len(self)):
            found[part] = self._packed[part] >> self._bits
        return found

    def inverse(self) -> Array:
        """At which place of this order every position is."""
        table = np.empty(len(self), dtype=integer_type(0, len(self)))
        number(table, self.places)
        return table


def order_of(codes: Array) -> Array:
    """The positions in a stable order of their codes, which are any integers."""
    packed = _packed(codes)
    if packed is not None:
        return _low_bits(*packed)
    most = int(codes.max(initial=0))
    if most >= 1 << 16 or int(codes.min(initial=0)) < 0:  # NumPy sorts two bytes by radix
        return _order_of_wide(codes.astype(np.int64, copy=False))
    if len(codes) > 4 * PART:
        present = np.flatnonzero(tally(codes, most + 1))
        if len(present) <= FEW:
            number_of = np.zeros(most + 1, dtype=np.int8)
            number_of[present] = np.arange(len(present))
            return _counted(looked_up(number_of, codes), len(present))
    return np.argsort(typed(codes, np.uint8 if most < 256 else np.uint16), kind="stable")


def _packed(codes: Array) -> tuple[Array, int] | None:
    """Every code with its position in its lower bits, sorted; and how many bits those are."""
    most = int(codes.max(initial=0))
    bits = max(1, (len(codes) - 1).bit_length())
    if most < RADIX or int(codes.min(initial=0)) < 0 or most.bit_length() + bits > 62:
        return None
    packed = np.empty(len(codes), dtype=np.int64)
    for part in parts(len(codes)):
        some = packed[part]
        np.left_shift(codes[part].astype(np.int64), bits, out=some)
        some |= np.arange(part.start, part.stop)
    packed.sort()
    return packed, bits


def _low_bits(packed: Array, bits: int) -> Array:
    places = np.empty(len(packed), dtype=integer_type(0, len(packed)))
    for part in parts(len(packed)):
        places[part] = packed[part] & ((1 << bits) - 1)
    return places


def _order_of_wide(keys: Array) -> Array:
    """A stable order of any int64: by their upper bits with their places, then ties by the rest."""
    least = int(keys.min(initial=0))
    above = keys.view(np.uint64) - np.uint64(least % (1 << 64))  # exact: it wraps back
    bits = max(1, (len(keys) - 1).bit_length())
    drop = np.uint64(max(0, int(above.max(initial=0)).bit_length() + bits - 63))
    packed = np.empty(len(keys), dtype=np.int64)
    for part in parts(len(keys)):
        packed[part] = (above[part] >> drop) << np.uint64(bits)
        packed[part] |= np.arange(part.start, part.stop)
    packed.sort()
    places = _low_bits(packed, bits)
    if drop:
        packed >>= bits
        tied = packed[1:] == packed[:-1]
        inside = np.flatnonzero(np.append(tied, False) | np.insert(tied, 0, False))
        if len(inside) * 2 > len(keys):
            return np.argsort(keys, kind="stable")
        members = places[inside]
        places[inside] = members[np.lexsort((above[members], packed[inside]))]
    return places


def as_integers(floats: Array) -> Array:
    """Integers in the order of floats (binary64, -0.0 before 0.0)."""

    def form(part: Array) -> Array:
        bits = part.view(np.int64)
        return np.where(bits < 0, bits ^ np.int64((1 << 63) - 1), bits)

    return in_parts(form, floats, dtype=np.int64)


def distinct(data: Array) -> tuple[Array, Array]:
    """Ascending distinct numbers, a NaN last, and which of them every number is."""
    if len(data) < SHORT or data.dtype.kind not in "if":
        values, codes = np.unique(data, return_inverse=True)
        return values, codes.reshape(-1)
    if data.dtype.kind == "f":
        data = data.astype(np.float64)
        data[data == 0] = 0.0  # both zeros are one number, and all NaN
        data[np.isnan(data)] = np.nan
        keys = as_integers(data)
    else:
        keys = data.astype(np.int64, copy=False)
    places = _order_of_wide(keys)
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
