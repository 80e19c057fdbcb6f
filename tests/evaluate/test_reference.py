"""The reference against values computed by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from raspire import aggregate, full, hardmax, indices, length, select, selector_width, tokens, where
from raspire.errors import RaspTypeError, RaspValueError, RaspZeroDivisionError, UnsupportedError
from raspire.evaluate.reference import reference
from raspire.program.nodes import Aggregate

PREFIX = select(indices, indices, "<=")
SHIFT = select(indices, indices - 1, "==")


@pytest.mark.parametrize(
    ("program", "given", "expected"),
    [
        (aggregate(select(indices, length - 1 - indices, "=="), tokens), "abc", ["c", "b", "a"]),
        (selector_width(select(tokens, tokens, "==")), "hello", [1, 1, 2, 2, 1]),
        (aggregate(PREFIX, indices), "abcd", [0, 0.5, 1, 1.5]),
        (aggregate(SHIFT, tokens, "-"), "abc", ["-", "a", "b"]),
        (aggregate(SHIFT, tokens), "abc", [0, "a", "b"]),
        (aggregate(SHIFT, tokens, None), "ab", [None, "a"]),
        (aggregate(full, tokens), "aaa", ["a", "a", "a"]),
        (aggregate(full, tokens), [True, True], [True, True]),
        (aggregate(full, tokens), [True, False], [0.5, 0.5]),
        (aggregate(full, tokens), [1, 1.0], [1.0, 1.0]),
        (aggregate(full, tokens), [10**30, 10**30 + 2], [10**30 + 1] * 2),
        (aggregate(full, tokens), [1e16, 1.0, -1e16], [1 / 3] * 3),
        (aggregate(hardmax(tokens), indices), [3, 9, 4], [1, 1, 1]),
        (aggregate(hardmax(tokens, PREFIX), indices), [3, 3, 4], [0, 0.5, 2]),
        (hardmax(tokens, SHIFT), [3, 3], [[False, False], [True, False]]),
        (~SHIFT | PREFIX, "ab", [[True, True], [True, True]]),
        (where(tokens == "a", indices, -1), "aba", [0, -1, 2]),
        (length, "", []),
        (PREFIX, "", []),
    ],
)
def test_values(program, given, expected):
    found = reference(program, given)
    assert found == expected
    assert str(found) == str(expected)  # types too


def test_rasp_rule():
    def mean(selector, value, default=0):
        return Aggregate(selector, value, default, "rasp")

    assert str(reference(mean(PREFIX, indices), "abc")) == "[0, 0.5, 1.0]"
    assert reference(mean(SHIFT, tokens), "ab") == [0, "a"]
    for given in ("aa", [True, True]):
        with pytest.raises(RaspTypeError, match="no mean"):
            reference(mean(full, tokens), given)
    assert reference(mean(full, tokens), [True, 2]) == [1.5, 1.5]


def test_exact():
    third = aggregate(full, where(indices == 0, tokens, 0))
    assert reference(third, [1, 0, 0], "exact") == [Fraction(1, 3)] * 3
    assert reference(tokens / 2, [1, 4], "exact") == [Fraction(1, 2), 2]
    assert reference(tokens * 2, [0.5], "exact") == [1]
    assert reference(tokens, [Fraction(1, 2), Fraction(4, 2)]) == [0.5, 2]
    from raspire import exp

    with pytest.raises(UnsupportedError, match="exp"):
        reference(exp(tokens), [1], "exact")


def test_errors_name_place_and_values():
    with pytest.raises(RaspTypeError, match="no mean"):
        reference(aggregate(full, tokens), "ab")
    with pytest.raises(RaspZeroDivisionError):
        reference(1 / tokens, [1, 0])
    with pytest.raises(RaspValueError, match="failed: IndexError"):
        reference(select(tokens, tokens, lambda k, q: [][k]), [1, 0])
    with pytest.raises(RaspTypeError):
        reference(hardmax(tokens), [1, "a"])


def test_long_chains_need_no_recursion():
    program = tokens
    for _ in range(5000):
        program = program + 1
    assert reference(program, [1]) == [5001]
