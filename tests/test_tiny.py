"""A smoke test that reads like documentation: the whole idea in a few lines."""

import numpy as np

from raspire import aggregate, indices, length, select, selector_width, tokens


def test_reverse():
    flip = select(indices, length - 1 - indices, "==")
    reverse = aggregate(flip, tokens)
    assert reverse("hello") == ["o", "l", "l", "e", "h"]


def test_histogram():
    same = select(tokens, tokens, "==")
    assert selector_width(same)("hello") == [1, 1, 2, 2, 1]


def test_a_list_gives_a_list_and_an_array_an_array():
    twice = tokens * 2
    assert twice([1, 2, 3]) == [2, 4, 6]
    result = twice(np.array([1.0, 2.5]))
    assert isinstance(result, np.ndarray)
    assert result.tolist() == [2.0, 5.0]


def test_selectors_combine():
    before = select(indices, indices, "<")
    same = select(tokens, tokens, "==")
    seen_before = selector_width(before & same)
    assert seen_before("banana") == [0, 0, 0, 1, 1, 2]
    assert selector_width(~before | same)("aba") == [3, 2, 2]


def test_nothing_selected_gives_the_default():
    previous = select(indices, indices - 1, "==")
    assert aggregate(previous, tokens, default="-")("abc") == ["-", "a", "b"]
    assert aggregate(previous, indices)("abc") == [0, 0, 1]


def test_sort():
    earlier = select(indices, indices, "<") & select(tokens, tokens, "==")
    rank = selector_width(select(tokens, tokens, "<") | earlier)
    assert aggregate(select(rank, indices, "=="), tokens)("hello") == list("ehllo")
