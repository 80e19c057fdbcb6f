"""Programs print as readable RASP."""

import pytest

from raspire import aggregate, exp, indices, length, lookup, select, selector_width, tokens, where


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (
            aggregate(select(indices, length - 1 - indices, "=="), tokens),
            "aggregate(select(indices, length - 1 - indices, ==), tokens)",
        ),
        (length, "round(1 / aggregate(full, indicator(indices == 0)))"),
        ((indices + 1) * 2, "(indices + 1) * 2"),
        (indices - (indices - 1), "indices - (indices - 1)"),
        ((indices * 2) % 3, "indices * 2 % 3"),
        (2 * (indices % 3), "2 * (indices % 3)"),
        ((indices**2) ** 3, "indices ^ 2 ^ 3"),
        (indices ** (indices**3), "indices ^ (indices ^ 3)"),
        (-(indices**2), "-(indices ^ 2)"),
        ((-indices) ** 2, "-indices ^ 2"),
        (~(indices == 1), "not (indices == 1)"),
        (where(indices == 1, "a", tokens), '"a" if indices == 1 else tokens'),
        (exp(-indices), "exp(-indices)"),
        (lookup([1, 2])(indices), "[1, 2][indices]"),
        (aggregate(select(indices, -1, "=="), tokens, "x"),
         'aggregate(select(indices, -1, ==), tokens, "x")'),
        (selector_width(~select(1, tokens, "<") | select(indices, 2, "!=")),
         "selector_width(not select(1, tokens, <) or select(indices, 2, !=))"),
    ],
)  # fmt: skip
def test_text(node, text):
    assert repr(node) == text


def test_text_of_a_graph_with_much_sharing_stays_short():
    node = indices
    for _ in range(200):
        node = node + node
    assert len(repr(node)) < 5000
