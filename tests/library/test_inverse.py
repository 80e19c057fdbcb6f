"""Lemma 10 and past it: determinants, inverses, systems, powers; exact, bounded, and counted."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raspire.errors import RaspError, RaspValueError, RaspZeroDivisionError
from raspire.library.inverse import (
    determinant,
    faddeev_determinant,
    faddeev_leverrier,
    inverse_3x3,
    linear_system,
    matrix_power,
)
from raspire.library.layout import Block

Matrix = list[list[Fraction]]

rationals = st.fractions(min_value=-5, max_value=5, max_denominator=4)


def matrices(m: int) -> st.SearchStrategy[Matrix]:
    return st.lists(st.lists(rationals, min_size=m, max_size=m), min_size=m, max_size=m)


def product(a: Matrix, b: Matrix) -> Matrix:
    return [
        [sum(x * y for x, y in zip(r, c, strict=True)) for c in zip(*b, strict=True)] for r in a
    ]


def by_permutations(a: Matrix) -> Fraction:
    """The determinant by its first row, an oracle that shares nothing with the programs."""
    if not a:
        return Fraction(1)
    minors = ([row[:j] + row[j + 1 :] for row in a[1:]] for j in range(len(a)))
    return sum((-1) ** j * a[0][j] * by_permutations(m) for j, m in enumerate(minors))


def identity(m: int) -> Matrix:
    return [[Fraction(i == j) for j in range(m)] for i in range(m)]


# ------------------------------------------------------------------------------------- the costs


@pytest.mark.parametrize("m", range(2, 7))
def test_determinant_costs_one_attention_and_a_tree(m: int) -> None:
    cost = determinant(m).cost
    layers = ceil(log2(m))
    assert (cost.attention_depth, cost.layers) == (1, layers)
    assert cost.heads_per_layer == (m * m, *[0] * (layers - 1))
    assert cost.feed_forward == ("gated:identity",)


def test_inverse_of_three_rows_takes_three_layers() -> None:
    cost = inverse_3x3().cost
    assert (cost.attention_depth, cost.layers, cost.heads_per_layer) == (1, 3, (9, 0, 0))
    assert cost.feed_forward == ("gated:identity", "gated:recip")
    assert inverse_3x3().length == 9


@pytest.mark.parametrize("m", range(2, 6))
def test_faddeev_leverrier_costs_what_it_should(m: int) -> None:
    wide, long = faddeev_leverrier(m), faddeev_leverrier(m, "long")
    assert wide.cost.attention_depth == wide.cost.layers == m
    assert wide.cost.heads_per_layer == (2 * m + 1, *[m + 1] * (m - 2), 1)
    assert wide.length == m * m
    assert long.cost.attention_depth == long.cost.layers == 2 * m - 1
    row = (*[3, 1] * (m - 1), 1)
    assert sum(long.cost.heads_per_layer) <= sum(row)
    assert max(long.cost.heads_per_layer) <= 3
    assert long.length == m * m + m**3
    assert wide.cost.feed_forward == long.cost.feed_forward == ("gated:identity", "gated:recip")


@pytest.mark.parametrize("m", range(2, 5))
def test_a_linear_system_divides_in_a_layer_of_its_own(m: int) -> None:
    cost = linear_system(m).cost
    assert (cost.attention_depth, cost.layers) == (m, m + 1)


@pytest.mark.parametrize("exponent", range(2, 10))
def test_a_power_is_a_tree_of_products(exponent: int) -> None:
    depth = ceil(log2(exponent))
    assert matrix_power(3, exponent).cost.layers == depth
    assert matrix_power(3, exponent, "long").cost.layers == 2 * depth


# ------------------------------------------------------------------------- exact over the rationals


@pytest.mark.parametrize("m", range(1, 6))
def test_determinant_is_exact(m: int) -> None:
    rng = np.random.default_rng(m)
    for _ in range(5):
        a = [[Fraction(int(x), 3) for x in row] for row in rng.integers(-9, 9, (m, m))]
        truth = by_permutations(a)
        assert determinant(m)(a, arithmetic="exact") == truth
        assert faddeev_determinant(m)(a, arithmetic="exact") == truth


@given(matrices(3))
@settings(max_examples=25, deadline=None)
def test_three_rows_invert_exactly(a: Matrix) -> None:
    if by_permutations(a) == 0:
        with pytest.raises(RaspZeroDivisionError, match="the matrix is singular"):
            inverse_3x3()(a, arithmetic="exact")
    else:
        assert product(a, inverse_3x3()(a, arithmetic="exact")) == identity(3)


@pytest.mark.parametrize(
    ("m", "construction"),
    [(1, "wide"), (2, "wide"), (3, "wide"), (5, "wide"), (1, "long"), (3, "long")],
)
def test_any_size_inverts_exactly(m: int, construction: str) -> None:
    rng = np.random.default_rng(10 + m)
    program = faddeev_leverrier(m, construction)  # type: ignore[arg-type]
    for _ in range(4):
        a = [[Fraction(int(x), 4) for x in row] for row in rng.integers(-9, 10, (m, m))]
        if by_permutations(a):
            assert product(a, program(a, arithmetic="exact")) == identity(m)


def test_a_singular_matrix_is_a_clear_error_in_every_arithmetic() -> None:
    # the rows are dependent, and float64 rounds the determinant to something that is not 0
    a = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.5, 0.7, 0.9]]
    exactly = [[Fraction(int(10 * x + 0.5), 10) for x in row] for row in a]
    for program in (faddeev_leverrier(3), inverse_3x3()):
        with pytest.raises(RaspZeroDivisionError, match="singular"):
            program(exactly, arithmetic="exact")
    with pytest.raises(RaspError, match=r"singular|too few digits"):
        faddeev_leverrier(3)(a)
    with pytest.raises(RaspZeroDivisionError, match="singular"):
        faddeev_leverrier(2)([[1.0, 2.0], [2.0, 4.0]])
    flag = faddeev_leverrier(2).flag
    assert flag is not None
    assert flag([1, 2, 2, 4]) == [True] * 4
    assert flag([1, 2, 2, 5]) == [False] * 4


@pytest.mark.parametrize("m", [1, 2, 4])
def test_linear_systems_are_solved_exactly(m: int) -> None:
    rng = np.random.default_rng(20 + m)
    a = [[Fraction(int(x)) for x in row] for row in rng.integers(-9, 10, (m, m))]
    b = [[Fraction(int(x), 7) for x in row] for row in rng.integers(-9, 10, (m, 2))]
    assert by_permutations(a) != 0
    assert product(a, linear_system(m, 2)(a, b, arithmetic="exact")) == b


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7])
def test_powers_are_exact(exponent: int) -> None:
    a = [[1, 2, 0], [3, -1, 1], [0, 2, 5]]
    truth = np.linalg.matrix_power(np.array(a, dtype=object), exponent).tolist()
    assert matrix_power(3, exponent)(a) == truth
    assert matrix_power(3, exponent, "long")(a) == truth


# ----------------------------------------------------------------------------- in floating point


@pytest.mark.parametrize("arithmetic", ["float64", "float32"])
@pytest.mark.parametrize("m", [2, 3, 5])
def test_the_bound_holds_and_is_useful(m: int, arithmetic: str) -> None:
    rng = np.random.default_rng(30 + m)
    loose = 1e-6 if arithmetic == "float64" else 0.5
    a = rng.normal(size=(m, m)) + 3 * np.eye(m)
    exact = np.array(faddeev_leverrier(m)(a.tolist(), arithmetic="exact"), dtype=object)
    program = faddeev_leverrier(m, tolerance=loose)
    assert program.bound is not None
    bound = program.bound(a, arithmetic=arithmetic)
    found = program(a.tolist(), arithmetic=arithmetic)
    error = max(abs(Fraction(x) - y) for x, y in zip(np.ravel(found), exact.ravel(), strict=True))
    assert error <= bound
    assert bound < (1e-8 if arithmetic == "float64" else 1)


def test_the_bound_of_determinants_and_systems_holds() -> None:
    rng = np.random.default_rng(40)
    a, b = rng.normal(size=(4, 4)), rng.normal(size=(4, 1))
    for program, inputs in ((faddeev_determinant(4), (a,)), (linear_system(4), (a, b))):
        lists = [x.tolist() for x in inputs]
        assert program.bound is not None
        exact = np.array(program(*lists, arithmetic="exact"), dtype=float)
        assert np.max(np.abs(program(*inputs) - exact)) <= program.bound(*inputs) + 1e-16


def test_floating_point_is_refused_where_its_bound_is_useless() -> None:
    hilbert = [[1.0 / (i + j + 1) for j in range(8)] for i in range(8)]
    with pytest.raises(RaspValueError, match="floating point leaves too few digits") as error:
        faddeev_leverrier(8)(hilbert)
    assert 'run it with arithmetic="exact"' in str(error.value)


# -------------------------------------------------------------------------------------- messages


def test_messages() -> None:
    with pytest.raises(RaspValueError, match="the shape of A does not fit"):
        inverse_3x3()([[1, 2], [3, 4]])
    with pytest.raises(RaspValueError, match="the rows of a matrix differ in length"):
        inverse_3x3()([[1, 2], [3]])
    with pytest.raises(RaspValueError, match="wrong number of inputs"):
        linear_system(2)([[1, 2], [3, 4]])
    with pytest.raises(RaspValueError, match="natural exponent"):
        matrix_power(2, -1)
    with pytest.raises(RaspValueError, match="this size of a matrix"):
        determinant(9)


def test_blocks_follow_each_other() -> None:
    block = Block(4, (2, 3))
    assert list(block.positions()) == list(range(4, 10))
    assert block.digits()[0]([0] * 12)[4:10] == [0, 0, 0, 1, 1, 1]
    assert block.holds()([0] * 12) == [False] * 4 + [True] * 6 + [False] * 2


def test_what_overflows_is_refused() -> None:
    huge = [[1e300, 1.0], [1.0, 1e300]]
    for program in (faddeev_leverrier(2), faddeev_determinant(2)):
        with pytest.raises(RaspValueError, match="too few digits"):
            program(huge)
    with pytest.raises(RaspValueError, match="too few digits"):
        inverse_3x3()([[float("nan"), 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
