"""Transposition, product and row softmax against NumPy, exactly, and by their cost."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raspire import RaspError
from raspire.library.linear_algebra import matmul, row_softmax, transpose

sizes = st.integers(1, 4)


@given(sizes, sizes, st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_transposition_equals_numpy(rows, columns, seed):
    a = np.random.default_rng(seed).standard_normal((rows, columns))
    assert np.array_equal(transpose(rows, columns)(a), a.T)


@pytest.mark.parametrize("construction", ["wide", "long"])
@given(sizes, sizes, sizes, st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_the_product_equals_numpy(construction, rows, inner, columns, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((rows, inner)), rng.standard_normal((inner, columns))
    found = matmul(rows, inner, columns, construction)(a, b)
    assert np.abs(found - a @ b).max() <= 8e-16 * inner * (np.abs(a) @ np.abs(b)).max()


@pytest.mark.parametrize("construction", ["wide", "long"])
def test_the_product_is_exact_over_the_rationals(construction):
    a = [[Fraction(1, 3), Fraction(2, 7)], [Fraction(-5, 11), 4]]
    b = [[Fraction(3, 5)], [Fraction(1, 2)]]
    expected = [[sum(x * y[0] for x, y in zip(row, b, strict=True))] for row in a]
    assert matmul(2, 2, 1, construction)(a, b, arithmetic="exact") == expected


@pytest.mark.parametrize("stable", [False, True])
@given(sizes, sizes, st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_the_softmax_equals_numpy(stable, rows, columns, seed):
    a = 5 * np.random.default_rng(seed).standard_normal((rows, columns))
    weights = np.exp(a - a.max(axis=1, keepdims=True))
    expected = weights / weights.sum(axis=1, keepdims=True)
    found = row_softmax(rows, columns, stable)(a)
    assert np.abs(found - expected).max() < 1e-14
    assert np.abs(found.sum(axis=1) - 1).max() < 1e-14


def test_the_stable_softmax_takes_any_finite_entries():
    a = np.array([[1e4, 1e4 - 1, -1e4], [-1e5, -1e5, -2e5]])
    found = row_softmax(2, 3, stable=True)(a)
    assert np.abs(found[0] - np.array([1, np.exp(-1), 0]) / (1 + np.exp(-1))).max() < 1e-15
    assert found[1].tolist() == [0.5, 0.5, 0]


# constructions, section 4: attention depth, layers, heads per layer, N, feed-forward families
ROWS = [
    (transpose(3, 2), 1, 1, (1,), 6, ()),
    (matmul(3, 4, 2), 1, 1, (8,), 20, ("gated:identity",)),
    (matmul(9, 1, 9), 1, 1, (2,), 81, ("gated:identity",)),
    (matmul(3, 4, 2, "long"), 2, 2, (2, 1), 44, ("gated:identity",)),
    (row_softmax(2, 3), 1, 2, (0, 1), 6, ("gated:exp", "gated:recip")),
    (row_softmax(2, 3, stable=True), 2, 2, (1, 1), 6, ("gated:exp", "gated:recip")),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].name)
def test_the_cost_is_counted_on_the_program(row):
    made, depth, layers, heads, length, families = row
    assert (made.cost.attention_depth, made.cost.layers) == (depth, layers)
    assert made.cost.heads_per_layer == heads
    assert made.cost.feed_forward == families
    assert made.length == length


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(RaspError, match=r"the shape of B does not fit(?s:.*)\(2, 3\)"):
        matmul(2, 2, 3)([[1, 2], [3, 4]], [[1, 2], [3, 4]])
    with pytest.raises(RaspError, match="a matrix needs rows of 1 or more"):
        transpose(0, 3)
    with pytest.raises(RaspError, match="no such construction"):
        matmul(1, 1, 1, "tall")  # type: ignore[arg-type]
