"""The programs that the compiler's tests share: each with its alphabet."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from raspire.library.formal_languages import dyck, dyck1, k_parity, majority, match2, parity
from raspire.library.languages import pair_balance, shuffle_dyck
from raspire.library.sequences import (
    count,
    double_histogram,
    first_occurrence,
    fraction_of_previous,
    histogram,
    palindrome,
    rank,
    reverse,
    sequence_length,
    shift,
    sort,
    sort_by_frequency,
)
from raspire.program.nodes import SOp

Program = tuple[SOp, Sequence[Any]]

PEERS: dict[str, Program] = {
    "length": (sequence_length(), "abc"),
    "reverse": (reverse(), "abcde"),
    "histogram": (histogram(), "abcde"),
    "sort": (sort(), [1, 2, 3, 4, 5]),
    "fraction of previous": (fraction_of_previous("a"), "abc"),
    "pair balance": (pair_balance(), "()"),
    "Dyck-3": (shuffle_dyck(), "()[]{}"),
}
LIBRARY: dict[str, Program] = {
    **PEERS,
    "sort letters": (sort(), "abc"),
    "rank": (rank(), "abc"),
    "sort by frequency": (sort_by_frequency(), "abc"),
    "shift": (shift(1, "_"), "abc"),
    "shift back": (shift(-2, "_"), "abc"),
    "count": (count("a"), "abc"),
    "first occurrence": (first_occurrence(), "abc"),
    "double histogram": (double_histogram(), "abc"),
    "palindrome": (palindrome(), "ab"),
    "dyck-1": (dyck1(), "()x"),
    "dyck-2": (dyck(), "()[]"),
    "parity": (parity(), [0, 1]),
    "k-parity": (k_parity([0, 2]), [0, 1]),
    "majority": (majority(), [0, 1]),
    "match2": (match2(5), range(5)),
}


def balanced(pairs: Sequence[str], length: int, seed: int) -> list[str]:
    """A balanced, nested word of an even length, drawn at random."""
    draw = random.Random(seed)
    word: list[str] = []
    open_now: list[str] = []
    for left in range(length, 0, -1):
        if open_now and (len(open_now) == left or draw.random() < 0.5):
            word.append(open_now.pop())
        else:
            opening, closing = draw.choice(pairs)
            word.append(opening)
            open_now.append(closing)
    return word
