"""The array operations of a contraction plan, on float64 arrays, each within its error bound.

A mean must be within ``2 eps log2(N)`` of the exact one, relative to the mean of the absolute
values, eps = 2^-52. A dot product of k terms in any order errs by at most k eps/2 relative to the
sum of absolute products, whatever the library; so long sums are cut into runs that are short
enough for the bound, and the runs are added in pairs.
"""

from __future__ import annotations

from math import ceil, log2
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

Array = NDArray[Any]


FEW = 8
"""So few terms are added one after the other; the error is within every bound."""


class NotFinite(Exception):  # noqa: N818  (an answer, not an error)
    """A value left the finite numbers: the general engine has to say what that means."""


def run_length(terms: int, allowed: float) -> int:
    """How many terms may be added in any order within an error of ``allowed * eps/2``.

    With c runs of r terms, added in pairs, the error is at most ``r + ceil(log2(c))`` halves of
    eps; with r = 1 that is the pairwise bound, less than ``4 log2(N)`` for every N >= terms.

    >>> run_length(385, 4 * 26.4), run_length(8, 4 * 3)
    (97, 8)
    """
    runs = max(1, ceil(terms / max(allowed, 1)))
    while runs < terms and ceil(terms / runs) + ceil(log2(runs)) > allowed:
        runs += 1
    return ceil(terms / max(runs, 1))


def view(array: Array, offsets: tuple[int, ...], shape: tuple[int, ...],
         steps: tuple[tuple[tuple[int, int], ...], ...]) -> Array:  # fmt: skip
    """A strided view; ``steps`` gives for every new axis its (old axis, coefficient) pairs."""
    start = array[tuple(slice(offset, None) for offset in offsets)]
    strides = [sum(start.strides[old] * coef for old, coef in step) for step in steps]
    return as_strided(start, shape, strides, writeable=False)


def aligned(array: Array, order: tuple[int, ...], spread: tuple[slice | None, ...]) -> Array:
    """The array with its axes permuted and new ones of size 1 put in, for broadcasting."""
    return array.transpose(order)[spread]


def dot(left: Array, right: Array, run: int) -> Array:
    """The products (..., m, k) x (..., k, n) by BLAS, runs of k added in pairs."""
    left, right = _ready(left), _ready(right)
    terms = left.shape[-1]
    if terms <= run:
        return np.matmul(left, right)  # type: ignore[no-any-return]
    waiting: list[tuple[int, Array]] = []
    for start in range(0, terms, run):
        part = np.matmul(left[..., start : start + run], right[..., start : start + run, :])
        level = 0
        while waiting and waiting[-1][0] == level:
            part += waiting.pop()[1]
            level += 1
        waiting.append((level, part))
    result = waiting.pop()[1]
    while waiting:
        result += waiting.pop()[1]
    return result


def _ready(array: Array) -> Array:
    """The array, copied if BLAS could not read its matrices in place."""
    item, (rows, columns), (down, across) = array.itemsize, array.shape[-2:], array.strides[-2:]
    by_rows = across == item and down >= item * columns
    by_columns = down == item and across >= item * rows
    return array if by_rows or by_columns else np.ascontiguousarray(array)


def total(array: Array, count: int) -> Array:
    """The sum over the last ``count`` axes, by NumPy's pairwise summation."""
    return _reduced(np.add, array, count)


def mean_or_value(mean: Array, values: Array, count: int) -> Array:
    """The mean, or where all values along the last ``count`` axes are equal, that value."""
    greatest = _reduced(np.maximum, values, count)
    return np.where(greatest == _reduced(np.minimum, values, count), greatest, mean)


def _reduced(ufunc: np.ufunc, array: Array, count: int) -> Array:
    """A reduction of the last ``count`` axes; of few terms slice by slice, which is faster."""
    rows = array.reshape(*array.shape[: array.ndim - count], -1)
    if rows.shape[-1] > FEW:
        return np.asarray(ufunc.reduce(np.ascontiguousarray(rows), axis=-1))
    result = rows[..., 0]
    for term in range(1, rows.shape[-1]):
        result = ufunc(result, rows[..., term])
    return result


def greatest(score: Array, count: int, mask: Array | None) -> Array:
    """The greatest score along the last ``count`` axes; -inf where the mask leaves none."""
    if not np.isfinite(np.sum(score)):
        raise NotFinite
    if mask is not None:
        score = np.where(mask, score, -np.inf)
    return score.max(axis=tuple(range(score.ndim - count, score.ndim)))  # type: ignore[no-any-return]


def quotient(sums: Array, counts: Array, default: float) -> Array:
    """The means from sums and counts; the default where nothing is counted."""
    if not np.isfinite(np.sum(sums)):
        raise NotFinite
    means = sums / np.maximum(counts, 1)
    return np.where(counts > 0, means, default)


def checked(array: Array) -> Array:
    """The array, if all of it is finite (a sum over infinities or NaN is not)."""
    if not np.isfinite(np.sum(array)):
        raise NotFinite
    return array
