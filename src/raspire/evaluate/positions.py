"""Sets of positions at which an s-op is wanted: a span, or a sorted array."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class Span:
    """The positions start, start+1, ..., stop-1; never materialised unless asked for."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


Positions: TypeAlias = Span | Array


def as_array(positions: Positions) -> Array:
    """The positions as a sorted int64 array.

    >>> as_array(Span(2, 5)).tolist()
    [2, 3, 4]
    """
    if isinstance(positions, Span):
        return np.arange(positions.start, positions.stop, dtype=np.int64)
    return positions


def same(a: Positions, b: Positions) -> bool:
    """Whether two sets are one object, or equal spans."""
    return a is b or (isinstance(a, Span) and isinstance(b, Span) and a == b)


def covers(whole: Positions, part: Positions) -> bool:
    """Whether a span holds every position of ``part``."""
    if whole is part:
        return True
    if not isinstance(whole, Span):
        return False
    if len(part) == 0:
        return True
    low, high = ends(part)
    return whole.start <= low and high < whole.stop


def ends(positions: Positions) -> tuple[int, int]:
    """The least and the greatest of at least one position."""
    if isinstance(positions, Span):
        return positions.start, positions.stop - 1
    return int(positions[0]), int(positions[-1])


def offsets(stored: Positions, wanted: Positions) -> Array | slice:
    """Where in ``stored`` the wanted positions, all of them stored, are."""
    if isinstance(stored, Span):
        if isinstance(wanted, Span):
            return slice(wanted.start - stored.start, wanted.stop - stored.start)
        return wanted - stored.start if stored.start else wanted
    if isinstance(wanted, Span):
        first = int(np.searchsorted(stored, wanted.start))
        return slice(first, first + len(wanted))
    return np.searchsorted(stored, wanted)


def union(sets: Iterable[Positions], length: int) -> Positions:
    """All positions of the sets together; a set that covers the rest is returned itself."""
    distinct: list[Positions] = []
    for positions in sets:
        if not any(positions is other for other in distinct):
            distinct.append(positions)
    distinct.sort(key=len, reverse=True)
    if not distinct:
        return Span(0, 0)
    largest = distinct[0]
    rest = [p for p in distinct[1:] if not covers(largest, p)]
    if not rest:
        return largest
    if all(isinstance(p, Span) for p in (largest, *rest)):
        bounds = [ends(p) for p in (largest, *rest)]
        return Span(min(a for a, _ in bounds), max(b for _, b in bounds) + 1)
    if sum(map(len, distinct)) * 16 < length:
        return compact(once_each(np.concatenate([as_array(p) for p in (largest, *rest)])))
    return marked((largest, *rest), length)


def once_each(numbers: Array) -> Array:
    """The distinct numbers, ascending: by sorting, which no pattern of them makes slow."""
    ordered = np.sort(numbers)
    new = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return np.asarray(ordered[new])


def marked(sets: Iterable[Positions], length: int) -> Positions:
    """The same by marking each position in a table of ``length`` bytes."""
    table = np.zeros(length, dtype=np.bool_)
    for positions in sets:
        if isinstance(positions, Span):
            table[positions.start : positions.stop] = True
        else:
            table[positions] = True
    return compact(np.flatnonzero(table))


def compact(positions: Array) -> Positions:
    """A sorted array without gaps becomes a span."""
    if len(positions) == 0:
        return Span(0, 0)
    low, high = int(positions[0]), int(positions[-1])
    return Span(low, high + 1) if high - low + 1 == len(positions) else positions


def blocks(positions: Positions, size: int) -> Iterator[Positions]:
    """The positions in order, in blocks of at most ``size``."""
    for start in range(0, len(positions), size):
        if isinstance(positions, Span):
            yield Span(positions.start + start, min(positions.start + start + size, positions.stop))
        else:
            yield positions[start : start + size]
