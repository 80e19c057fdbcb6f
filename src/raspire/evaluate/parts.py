"""Long arrays in parts that the processor's cache holds, and integers no wider than they need be.

Eight million int64 leave every cache, and each new array of them is paid for page by page. So
integers and codes are stored in the narrowest type, and what is done to a long array is done part
by part. A type is chosen from bounds of the values, never from those that happen to come first:
nothing wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from raspire.evaluate.positions import Array

PART = 1 << 15
"""Values in a part: a few arrays of them fit the second cache of common processors."""

_INT8, _INT16, _INT32, _INT64 = map(np.dtype, ("int8", "int16", "int32", "int64"))


def parts(length: int) -> Iterator[slice]:
    """The slices of all parts of an array of this length."""
    if 0 < length <= PART:
        return iter((slice(0, length),))
    return (slice(start, min(start + PART, length)) for start in range(0, length, PART))


def integer_type(low: int, high: int) -> np.dtype[Any]:
    """The narrowest signed type of low..high that also holds -1 and the negative of each.

    >>> integer_type(0, 127), integer_type(-128, 0), integer_type(0, 1 << 20)
    (dtype('int8'), dtype('int16'), dtype('int32'))
    """
    most = max(-low, high)
    if most < 1 << 7:
        return _INT8
    if most < 1 << 15:
        return _INT16
    return _INT32 if most < 1 << 31 else _INT64


def in_parts(form: Callable[..., Any], *arrays: Array, dtype: Any = None) -> Array:
    """An elementwise function of arrays, each of one length or of length 1.

    ``dtype`` is the type of the result; without it, that of the function.
    """
    length = max(map(len, arrays))
    if length <= PART:
        whole = np.asarray(form(*arrays))
        return whole if dtype is None else whole.astype(dtype, copy=False)
    found: Array | None = None
    for part in parts(length):
        some = form(*(array if len(array) == 1 else array[part] for array in arrays))
        if found is None:
            found = np.empty(length, dtype=some.dtype if dtype is None else dtype)
        found[part] = some
    assert found is not None
    return found


def typed(data: Array, dtype: Any) -> Array:
    """The array in another type; itself if it has that type."""
    return data if data.dtype == dtype else in_parts(lambda part: part, data, dtype=dtype)


def counted_from(base: int, data: Array, low: int, high: int) -> Array:
    """``data - base``, for integers within low..high, in the narrowest type that this needs."""
    dtype = integer_type(low - base, high - base)
    if base == 0 and data.dtype.itemsize <= dtype.itemsize:
        return data
    return in_parts(lambda part: part.astype(np.int64) - base, data, dtype=dtype)


def looked_up(table: Array, codes: Array) -> Array:
    """``table[codes]``, never with indices as wide as addresses for all codes at once."""
    if len(codes) <= PART:
        return np.asarray(table[codes])
    return in_parts(table.take, codes, dtype=table.dtype)


def tally(codes: Array, groups: int, weights: Array | None = None) -> Array:
    """How often each of 0..groups-1 occurs among the codes, or the float sum of its weights."""
    if len(codes) <= PART or groups > PART:
        return np.bincount(codes, weights, groups)
    total = np.zeros(groups, dtype=np.int64 if weights is None else np.float64)
    for part in parts(len(codes)):
        total += np.bincount(codes[part], None if weights is None else weights[part], groups)
    return total


def growing(ranks: Array | range, *, strictly: bool = True) -> bool:
    """Whether every rank is greater than the one before (or, not strictly, as great)."""
    if isinstance(ranks, range):
        return ranks.step > 0
    grows = np.greater if strictly else np.greater_equal
    return all(
        bool(grows(ranks[part.start + 1 : part.stop + 1], ranks[part]).all())
        for part in parts(len(ranks) - 1)
    )
