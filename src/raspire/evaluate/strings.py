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
from raspire.given import elements, whole

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
    symbols, rows = _symbols(alphabet), whole("rows", rows)
    length, shortest = whole("length", length, 0), whole("shortest", shortest, 0)
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
    base = len(_symbols(alphabet))
    length, shortest = whole("length", length, 0), whole("shortest", shortest, 0)
    return sum(base**size for size in range(shortest, length + 1))


def random_strings(
    alphabet: Sequence[Any], length: int, count: int, *, seed: int | None = None, rows: int = ROWS
) -> Iterator[Array]:
    """``count`` random strings of one length, uniform and independent, in batches.

    >>> [part.shape for part in random_strings("ab", 5, 7, seed=1, rows=4)]
    [(4, 5), (3, 5)]
    """
    symbols, rng = _symbols(alphabet), np.random.default_rng(seed)
    length, count, rows = whole("length", length, 0), whole("count", count, 0), whole("rows", rows)
    for start in range(0, count, rows):
        yield symbols[rng.integers(0, len(symbols), (min(rows, count - start), length))]


def _symbols(alphabet: Sequence[Any]) -> Array:
    symbols = elements("an alphabet", alphabet)
    if not symbols:
        raise RaspValueError("an alphabet has at least one symbol", found="an empty alphabet")
    if len(set(symbols)) < len(symbols):
        raise RaspValueError(
            "the symbols of an alphabet differ from each other", found=repr(symbols)
        )
    return from_values(symbols).array()


def _digits(numbers: Array, base: int, size: int) -> Array:
    """The numbers in a base, first digit first, shape (B, size)."""
    found = np.empty((len(numbers), size), dtype=np.int64)
    for place in range(size - 1, -1, -1):
        found[:, place] = numbers % base
        numbers = numbers // base
    return found
