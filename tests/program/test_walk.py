"""Walks are iterative and merging shares exactly what is equal."""

from hypothesis import given
from hypothesis import strategies as st

from raspire import aggregate, full, indices, length, merge, select, tokens
from raspire.program.facts import cost, longest_chain
from raspire.program.walk import rewrite, topological

CHAIN = 5000


def test_chains_of_thousands_of_terms_work():
    total = indices
    for k in range(CHAIN):
        total = total + k
    assert longest_chain(total) == CHAIN
    assert len(topological(total)) == 2 * CHAIN + 1
    assert repr(total).endswith(f"+ {CHAIN - 1}")
    assert longest_chain(merge(total)) == CHAIN
    assert total([7, 7]) == [sum(range(CHAIN)), sum(range(CHAIN)) + 1]


def test_long_chains_of_attention_work():
    node = tokens
    for _ in range(1500):
        node = aggregate(select(indices, indices, "=="), node)
    assert cost(node).attention_depth == 1500
    assert node("ab") == ["a", "b"]


def test_children_come_before_parents_and_each_node_once():
    shared = indices + 1
    order = topological(shared * shared)
    assert [type(n).__name__ for n in order] == ["Indices", "Constant", "Apply", "Apply"]


def test_merge_keeps_types_of_constants_and_defaults_apart():
    assert len(topological(merge((indices + 1) * (indices + True)))) == 6
    both = aggregate(full, indices, 0) + aggregate(full, indices, False)
    assert cost(both).nodes == 6
    same = aggregate(full, indices, 0) + aggregate(full, indices, 0)
    assert cost(same).nodes == 5


def test_merge_keeps_labels():
    assert merge(length).label == "length"


@given(st.lists(st.sampled_from("+*c"), max_size=30), st.lists(st.integers(-9, 9), min_size=1))
def test_merge_and_rewrite_keep_the_meaning(steps, values):
    node = tokens
    for step in steps:
        node = {"+": node + 1, "*": node * node % 97, "c": aggregate(full, node % 7) + node}[step]
    expected = node(values)
    assert merge(node)(values) == expected
    assert rewrite(node, lambda n: n) is node
