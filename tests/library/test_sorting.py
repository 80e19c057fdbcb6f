"""Lemma 7: MaxMin and the three sorts, against Python's own, with their costs."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raspire.errors import RaspValueError
from raspire.library.layout import LaidOut
from raspire.library.sorting import (
    maximum,
    maxmin,
    minimum,
    rank,
    sort,
    sort_pairs,
    sort_wide,
)
from raspire.program.facts import cost

reals = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=7)


@given(reals)
@settings(max_examples=60, deadline=None)
def test_maximum_and_minimum(values: list[float]) -> None:
    assert maximum()(values) == [max(values)] * len(values)
    assert minimum()(values) == [min(values)] * len(values)


@given(reals)
@settings(max_examples=60, deadline=None)
def test_sorts_agree_with_python(values: list[float]) -> None:
    n = len(values)
    assert sort_wide(n)(values) == sorted(values)
    assert sort_pairs(n)(values) == sorted(values)
    assert sort()(values) == sorted(values)


def test_every_sort_is_right_on_every_short_input_with_ties() -> None:
    programs: list[LaidOut] = [sort_wide(4), sort_pairs(4)]
    for values in product(range(3), repeat=4):
        for program in programs:
            assert program(list(values)) == sorted(values), (program.name, values)


@given(st.lists(st.sampled_from("abc"), max_size=9))
@settings(max_examples=60, deadline=None)
def test_the_rank_is_stable(letters: list[str]) -> None:
    order = sorted(range(len(letters)), key=lambda i: letters[i])
    assert rank()(letters) == [order.index(i) for i in range(len(letters))]
    assert sort()(letters) == sorted(letters)


def test_costs() -> None:
    top = maxmin(5).cost
    assert (top.attention_depth, top.layers, top.heads_per_layer) == (1, 1, (2,))
    assert top.feed_forward == ()
    pairs = sort_pairs(5).cost
    assert (pairs.attention_depth, pairs.layers, pairs.heads_per_layer) == (3, 3, (2, 1, 1))
    assert pairs.feed_forward == ("gated:identity", "gated:step")
    assert sort_pairs(5).length == 30
    wide = sort_wide(5).cost
    assert (wide.attention_depth, wide.layers, wide.heads_per_layer) == (1, 2, (5, 0))
    assert wide.feed_forward == ("gated:step", "gated:zero")
    assert sort_wide(5).length == 5
    finite = cost(sort())
    assert (finite.attention_depth, finite.heads_per_layer[0]) == (2, 2)


def test_maxmin_and_its_limits() -> None:
    with pytest.raises(RaspValueError, match="this many values"):
        maxmin(1)
    assert maxmin(4)([4, -1, 7, 2]) == [7, -1]
    with pytest.raises(RaspValueError, match="this many values"):
        sort_wide(0)
