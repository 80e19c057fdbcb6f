"""Inputs by the thousand: all strings over an alphabet up to a length, or random ones, in batches.

A batch is an array (B, N) of rows of one length, ready for ``program.batch``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from raspire.errors import RaspValueError
from raspire.evaluate.columns import from_values
from raspire.evaluate.positions import Array

ROWS = 1 << 16
"""Rows of one batch, if nothing else is said."""


def all_strings(
    alphabet: Sequence[Any], length: int, *, shortest: int = 0, rows: int = ROWS
) -> Iterator[Array]:
    """Every string of ``shortest`` to ``length`` tokens, in batches of at most ``rows`` rows.

    The empty string is a batch of shape (1, 0).

    >>> [part.tolist() for part in all_strings("ab", 1)]
    [[[]], [['a'], ['b']]]
    >>> sum(len(part) for part in all_strings([0, 1], 10, shortest=10, rows=100))
    1024
    """
    symbols = _symbols(alphabet)
    for size in range(shortest, length + 1):
        total = len(symbols) ** size
        for start in range(0, total, rows):
            numbers = np.arange(start, min(total, start + rows), dtype=np.int64)
            yield symbols[_digits(numbers, len(symbols), size)]


def count_strings(alphabet: Sequence[Any], length: int, *, shortest: int = 0) -> int:
    """How many strings :func:`all_strings` gives.

    >>> count_strings("ab", 3)
    15
    """
    return sum(len(alphabet) ** size for size in range(shortest, length + 1))


def random_strings(
    alphabet: Sequence[Any], length: int, count: int, *, seed: int | None = None, rows: int = ROWS
) -> Iterator[Array]:
    """``count`` random strings of one length, uniform and independent, in batches.

    >>> [part.shape for part in random_strings("ab", 5, 7, seed=1, rows=4)]
    [(4, 5), (3, 5)]
    """
    symbols, rng = _symbols(alphabet), np.random.default_rng(seed)
    for start in range(0, count, rows):
        yield symbols[rng.integers(0, len(symbols), (min(rows, count - start), length))]


def _symbols(alphabet: Sequence[Any]) -> Array:
    if len(alphabet) == 0:
        raise RaspValueError("an alphabet has at least one symbol", found="an empty alphabet")
    if len(set(alphabet)) < len(alphabet):
        raise RaspValueError(
            "the symbols of an alphabet differ from each other", found=repr(list(alphabet))
        )
    return from_values(list(alphabet)).array()


def _digits(numbers: Array, base: int, size: int) -> Array:
    """The numbers in a base, first digit first, shape (B, size)."""
    found = np.empty((len(numbers), size), dtype=np.int64)
    for place in range(size - 1, -1, -1):
        found[:, place] = numbers % base
        numbers = numbers // base
    return found
