"""MaxMin and sorting (Lemma 7), over reals and over finite alphabets.

What one head can select on real values: the maximum and the minimum (score x, or -x). What it
cannot: all keys smaller than the query among n *reals* needs a head dimension of at least n-1.
``select(x, x, "<")`` on reals is a RASP program of attention depth 1, but not one head of constant
width. So two constructions sort reals with heads that copy one token each; over a finite alphabet
a rank is a selector width, and ``sort`` (with ``rank``) is the program of every length.

Every sort is ascending and stable: ties keep the order of their positions.
"""

from __future__ import annotations

from raspire.errors import RaspValueError
from raspire.library.layout import Block, LaidOut, fetch, total
from raspire.library.sequences import rank, sort
from raspire.program.embedding import (
    aggregate,
    hardmax,
    indicator,
    indices,
    select,
    tokens,
    where,
)
from raspire.program.nodes import SOp

SOURCE = "Lemma 7"

__all__ = ["maximum", "maxmin", "minimum", "rank", "sort", "sort_pairs", "sort_wide"]


def maximum(value: SOp = tokens) -> SOp:
    """The largest value, at every position: one head with score x.

    >>> maximum()([3, 9, 4])
    [9, 9, 9]
    """
    return aggregate(hardmax(value), value)


def minimum(value: SOp = tokens) -> SOp:
    """The smallest value, at every position: one head with score -x.

    >>> minimum()([3, 9, 4])
    [3, 3, 3]
    """
    below = -value
    return -aggregate(hardmax(below), below)


def maxmin(n: int) -> LaidOut:
    """The maximum at the first of n >= 2 positions, the minimum elsewhere: a layer, two heads.

    >>> maxmin(3)([3, 9, 4])
    [9, 3]
    """
    _check_size(n, least=2)
    first = indicator(indices == 0)  # a query that selects nothing leaves 0: the sum is linear
    top = aggregate(hardmax(tokens, among=select(1, first, "==")), tokens)
    below = -tokens
    both = top - aggregate(hardmax(below, among=select(0, first, "==")), below)
    return LaidOut(f"maxmin {n}", both, {"x": Block(0, (n,))}, Block(0, (2,)), n, SOURCE)


def sort_pairs(n: int) -> LaidOut:
    """Sort n reals with a position for every pair: 3 layers, 2 + 1 + 1 heads, N = n + n².

    Copy both of a pair and compare; add up: the rank; copy by rank.

    >>> sort_pairs(3)([0.5, -1.0, 0.25])
    [-1.0, 0.25, 0.5]
    """
    _check_size(n)
    values, pairs = Block(0, (n,)), Block(n, (n, n))
    own, other = pairs.digits()
    mine, theirs = fetch(tokens, own), fetch(tokens, other)
    # The other value stands before mine if it is smaller, or equal and further left.
    left = indicator(other < own)
    before = where(theirs <= mine, left, 0) + where(theirs < mine, 1 - left, 0)
    in_pairs = indicator(pairs.holds())
    group = own * in_pairs + in_pairs - 1
    place = aggregate(select(group, indices % n, "=="), before) * n
    key = where(indices < n, place, -1)
    program = aggregate(select(key, indices, "=="), tokens)
    return LaidOut(f"sort {n}, pairs", program, {"x": values}, values, pairs.end, SOURCE)


def sort_wide(n: int) -> LaidOut:
    """Sort n reals without padding: n copies, all comparisons, then a choice by rank; 2 layers.

    >>> sort_wide(3)([0.5, -1.0, 0.25])
    [-1.0, 0.25, 0.5]
    """
    _check_size(n)
    copies = [fetch(tokens, k) for k in range(n)]
    pairs = [(k, l) for l in range(n) for k in range(l)]
    before = {(k, l): indicator(copies[k] <= copies[l]) for k, l in pairs}

    def place(l: int) -> SOp:
        smaller = [before[k, l] for k in range(l)] + [1 - before[l, k] for k in range(l + 1, n)]
        return total(smaller) if smaller else indices * 0

    chosen = [where(place(l) == indices, copies[l], 0) for l in range(n)]
    block = Block(0, (n,))
    return LaidOut(f"sort {n}, wide", total(chosen), {"x": block}, block, n, SOURCE)


def _check_size(n: int, least: int = 1) -> None:
    if not least <= n <= 4096:
        raise RaspValueError(
            "this many values are not offered", expected=f"{least} to 4096", found=str(n)
        )
