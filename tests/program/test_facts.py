"""Depths, heads and layers against the numbers known for RASP programs."""

import pytest

from raspire import (
    aggregate,
    exp,
    full,
    hardmax,
    indices,
    length,
    select,
    selector_width,
    tokens,
)
from raspire.program.facts import attention_depth, cost, heads_by_depth

same = select(tokens, tokens, "==")
histogram = selector_width(same)
reverse = aggregate(select(indices, length - 1 - indices, "=="), tokens)


@pytest.mark.parametrize(
    ("program", "heads"),
    [
        (length, {1: 1}),
        (histogram, {1: 2}),
        (reverse, {1: 1, 2: 1}),
        (tokens + indices, {}),
    ],
)
def test_heads_as_the_original_draws_them(program, heads):
    assert {d: len(row) for d, row in heads_by_depth(program).items()} == heads


def test_one_selector_read_twice_is_one_head():
    both = aggregate(same, indices) + aggregate(same, indices * 2)
    assert len(heads_by_depth(both)[1]) == 1
    assert cost(both).heads_per_layer == (1,)


def test_cost_counts_after_merge_and_drawing_before():
    twice = aggregate(select(indices, 0, "=="), tokens) == aggregate(
        select(indices, 0, "=="), tokens
    )
    assert len(heads_by_depth(twice)[1]) == 2
    assert cost(twice).heads_per_layer == (1,)


def copies(address):
    return aggregate(select(indices, address, "=="), tokens)


def test_a_product_takes_the_feed_forward_part_of_its_layer():
    product = copies(indices // 2) * copies(indices % 2)
    assert cost(product).layers == 1
    assert cost(product).feed_forward == ("gated:identity",)
    assert cost(product * copies(indices)).layers == 2
    assert cost(3 * product + 1).layers == 1


def test_an_exponential_times_a_value_is_one_unit_and_a_quotient_is_another():
    score, value = copies(indices // 2), copies(indices % 2)
    fused = exp(score) * value
    assert cost(fused).layers == 1
    assert cost(fused).feed_forward == ("gated:exp",)
    assert cost(fused / (exp(score) + 1)).layers == 2
    assert cost(fused / (exp(score) + 1)).feed_forward == ("gated:exp", "gated:recip")


def test_elementwise_work_before_attention_takes_a_layer():
    row = select(indices // 3, indices // 3, "==")
    softmax = exp(tokens) / (3 * aggregate(row, exp(tokens)))
    found = cost(softmax)
    assert (found.attention_depth, found.layers, found.heads_per_layer) == (1, 2, (0, 1))


def test_heads_of_one_selector_meet_in_one_layer():
    row = select(indices // 3, indices // 3, "==")
    early = aggregate(row, tokens)
    late = aggregate(row, copies(indices) * copies(indices + 1))
    assert cost(late / early).heads_per_layer == (2, 1)


def test_what_depends_on_the_position_alone_is_free():
    address = (indices // 5) * (indices % 3) + 2
    assert cost(copies(address)).layers == 1
    assert cost(tokens + address).layers == 0


def test_hardmax_is_one_head():
    top = hardmax(tokens, select(indices // 3, indices // 3, "=="))
    stable = aggregate(top, tokens)
    assert cost(tokens - stable).heads_per_layer == (1,)
    assert attention_depth(aggregate(full, exp(tokens - stable))) == 2
