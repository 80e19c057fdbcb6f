"""Programs on sequences of symbols: the examples of RASP (Weiss et al. 2021), and their kin.

Each is a program of the Python embedding, answers at every position, and compiles to a small
transformer.
"""

from __future__ import annotations

from raspire.program.embedding import (
    aggregate,
    full,
    indicator,
    indices,
    length,
    select,
    selector_width,
    tokens,
)
from raspire.program.nodes import SOp


def sequence_length() -> SOp:
    """The length of the input: one head, one layer.

    >>> sequence_length()("abc")
    [3, 3, 3]
    """
    return length


def reverse(value: SOp = tokens) -> SOp:
    """The input backwards: two layers, one head each.

    >>> reverse()("abc")
    ['c', 'b', 'a']
    """
    return aggregate(select(indices, length - 1 - indices, "=="), value)


def shift(by: int, default: object = "", value: SOp = tokens) -> SOp:
    """The token ``by`` positions before (after, where ``by`` is negative), or the default.

    >>> shift(1, "_")("abc")
    ['_', 'a', 'b']
    """
    return aggregate(select(indices, indices - by, "=="), value, default)  # type: ignore[arg-type]


def histogram(value: SOp = tokens) -> SOp:
    """How often the token here occurs: one head, one layer.

    >>> histogram()("hello")
    [1, 1, 2, 2, 1]
    """
    return selector_width(select(value, value, "=="))


def rank(key: SOp = tokens) -> SOp:
    """The place of this position in ascending order; ties keep the order of positions.

    >>> rank()([3, 1, 3])
    [1, 0, 2]
    """
    before = select(key, key, "==") & select(indices, indices, "<")
    return selector_width(select(key, key, "<") | before)


def sort(value: SOp = tokens, key: SOp | None = None) -> SOp:
    """The values in ascending order of the key (of themselves if none is given), stable.

    >>> sort()([3, 1, 2, 1])
    [1, 1, 2, 3]
    """
    place = rank(value if key is None else key)
    return aggregate(select(place, indices, "=="), value)


def sort_by_frequency() -> SOp:
    """Tokens by how often they occur, the most frequent first; ties keep their order.

    >>> sort_by_frequency()("abbc")
    ['b', 'b', 'a', 'c']
    """
    return sort(tokens, -histogram())


def fraction_of_previous(symbol: object = "a") -> SOp:
    """The share of the positions up to here that hold the symbol: one head, one layer.

    >>> fraction_of_previous("a")("abaa")
    [1, 0.5, 0.6666666666666666, 0.75]
    """
    return aggregate(select(indices, indices, "<="), indicator(tokens == symbol))


def count(symbol: object) -> SOp:
    """How often a symbol occurs, at every position.

    >>> count("l")("hello")
    [2, 2, 2, 2, 2]
    """
    return selector_width(select(tokens, symbol, "=="))


def first_occurrence() -> SOp:
    """Whether the token has not occurred before.

    >>> first_occurrence()("abab")
    [True, True, False, False]
    """
    same = select(tokens, tokens, "==") & select(indices, indices, "<")
    return selector_width(same) == 0


def double_histogram() -> SOp:
    """How many tokens occur as often as the one here.

    >>> double_histogram()("abbc")
    [2, 1, 1, 2]
    """
    first = indicator(first_occurrence())
    same = select(histogram(), histogram(), "==") & select(first, 1, "==")
    return selector_width(same)


def palindrome() -> SOp:
    """Whether the input reads the same backwards, at every position.

    >>> palindrome()("abba"), palindrome()("ab")
    ([True, True, True, True], [False, False])
    """
    return aggregate(full, indicator(reverse() != tokens)) == 0
