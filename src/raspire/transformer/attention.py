"""One attention head on projected rows: dense, or as a gather when it is a look-up.

Average-hard attention compares scores for exact equality, so scores of small heads are summed
column by column: equal rows then give equal bits. Both kinds divide by the weights' sum last;
a saturated softmax, whose exponentials are 0 and 1, is therefore the average-hard result bit for
bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_ELEMENTWISE = 8  # head dimensions up to this are summed column by column


def scores(query: Array, key: Array) -> Array:
    """Scores (batch, queries, keys) of projected rows (batch, positions, dk)."""
    if query.shape[2] > _ELEMENTWISE:
        product: Array = np.matmul(query, key.transpose(0, 2, 1))
        return product
    total: Array = np.zeros((query.shape[0], query.shape[1], key.shape[1]), dtype=query.dtype)
    for c in range(query.shape[2]):
        total += query[:, :, c, None] * key[:, None, :, c]
    return total


def weights(score: Array, allowed: Array, hard: bool, scale: float) -> tuple[Array, Array]:
    """Unnormalised weights and their sums; ``allowed`` is a mask that broadcasts to the scores.

    A row that may see nothing has weights 0 and the sum 1.
    """
    masked = score if allowed.all() else np.where(allowed, score, -np.inf)
    top = masked.max(axis=-1, keepdims=True, initial=-np.inf)
    nothing = np.isneginf(top)
    if hard:
        best = masked == top
        weight = (best & allowed if nothing.any() else best).astype(score.dtype)
    else:
        with np.errstate(under="ignore"):
            weight = np.exp((masked - np.where(nothing, 0, top)) * score.dtype.type(scale))
    total = weight.sum(axis=-1, keepdims=True)
    return weight, np.where(nothing, 1, total)


def dense(
    query: Array, key: Array, value: Array, allowed: Array, hard: bool, scale: float
) -> Array:
    """The head's output (batch, queries, dv) by the full matrix of scores."""
    weight, total = weights(scores(query, key), allowed, hard, scale)
    out: Array = np.matmul(weight, value) / total
    return out


def is_parabola(query: Array, key: Array) -> bool:
    """Whether rows (…, 2) are an address look-up: keys (j, j²), queries (2ca, -c), c > 0."""
    return bool(np.all(key[..., 1] == np.square(key[..., 0])) and np.all(query[..., 1] < 0))


def gather(query: Array, key: Array, value: Array, seen: Array) -> Array:
    """The same for scores ``c(2 a j - j²)``: the mean over the seen keys nearest to a.

    Rows are (queries, 2), (keys, 2), (keys, dv), (keys,); the answer is (queries, dv). Two groups
    of keys equally near are averaged together, as average-hard attention does.
    """
    subset = np.flatnonzero(seen)
    key = key[subset]
    if len(key) == 0:
        return np.zeros((len(query), value.shape[1]), dtype=value.dtype)
    address = query[:, 0] / (-2 * query[:, 1])
    places = key[:, 0]
    if np.array_equal(places, places[0] + np.arange(len(places))):
        inside = (address >= places[0]) & (address <= places[-1]) & (address == np.floor(address))
        if inside.all():
            copied: Array = value[subset[(address - places[0]).astype(np.int64)]]
            return copied
    order = np.argsort(key[:, 0], kind="stable")
    near, starts, counts = np.unique(key[order, 0], return_index=True, return_counts=True)
    right = np.searchsorted(near, address)
    left = np.clip(right - 1, 0, len(near) - 1)
    right = np.clip(right, 0, len(near) - 1)
    to_left, to_right = np.abs(address - near[left]), np.abs(near[right] - address)
    sums = value[subset[order]]
    if len(near) != len(key):
        sums = np.add.reduceat(sums, starts, axis=0)
    best = np.where(to_left < to_right, left, right)
    tie = (to_left == to_right) & (left != right)
    out: Array = sums[best] / counts[best, None]
    if tie.any():
        a, b = left[tie], right[tie]
        out[tie] = (sums[a] + sums[b]) / (counts[a] + counts[b])[:, None]
    return out
