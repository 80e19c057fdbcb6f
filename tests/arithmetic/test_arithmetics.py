"""One program on every arithmetic: the engine against the reference, and what each refuses."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raspire import aggregate, exp, full, indices, recip, select, tokens, where
from raspire.arithmetic import FLOAT32, arithmetic_named
from raspire.arithmetic.field import MERSENNE_61, PrimeField
from raspire.errors import RaspTypeError, RaspValueError, RaspZeroDivisionError, UnsupportedError
from raspire.evaluate import column, evaluate, reference
from raspire.evaluate.fields import FieldColumns, inverse, product, reduced

PREFIX = select(indices, indices, "<=")
GROUPS = select(indices % 3, indices % 3, "==")
RESIDUES = st.lists(st.integers(0, MERSENNE_61 - 1), min_size=1, max_size=20)


def as_uint64(values):
    return np.array(values, dtype=np.uint64)


@given(RESIDUES, st.randoms())
def test_products_of_limbs(values, rng):
    others = [rng.choice([0, 1, MERSENNE_61 - 1, rng.randrange(MERSENNE_61)]) for _ in values]
    found = product(as_uint64(values), as_uint64(others)).tolist()
    assert found == [a * b % MERSENNE_61 for a, b in zip(values, others, strict=True)]


@given(st.lists(st.integers(1, MERSENNE_61 - 1), min_size=1, max_size=5))
def test_inverses(values):
    assert product(as_uint64(values), inverse(as_uint64(values))).tolist() == [1] * len(values)


def test_reduction():
    edges = [0, 1, MERSENNE_61 - 1, MERSENNE_61, MERSENNE_61 + 1, 2**64 - 1]
    assert reduced(as_uint64(edges)).tolist() == [edge % MERSENNE_61 for edge in edges]


def by_address(address, value=tokens, default=0):
    return aggregate(select(indices, address, "=="), value, default)


PROGRAMS = [
    aggregate(PREFIX, tokens * tokens - 3),
    aggregate(GROUPS, tokens / (tokens + 5)),
    aggregate(GROUPS, by_address(indices // 2) * by_address(indices % 4)),
    by_address(indices - 1) + 2,
    where(indices % 2 == 0, tokens, -tokens) * recip(tokens + 1),
    aggregate(PREFIX, exp(tokens - 1)) / aggregate(full, tokens + 7),
    aggregate(PREFIX & ~GROUPS, exp(2 * tokens)),
    tokens * 0.3 + Fraction(1, 3),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_field_columns_equal_single_residues(program):
    rng = random.Random(1)
    field = PrimeField(seed=2)
    given_ = [field.element(rng.randrange(MERSENNE_61)) for _ in range(11)]
    expected = [v.value if hasattr(v, "value") else v for v in reference(program, given_, field)]
    found = evaluate(program, given_, arithmetic=field)
    assert [v.value if hasattr(v, "value") else v for v in found] == expected
    array = evaluate(program, as_uint64([v.value for v in given_]), arithmetic=FieldColumns(field))
    assert array.tolist() == expected


def test_field_refuses_comparisons_and_division_by_zero():
    given_ = as_uint64([1, 2, 3])
    for program in (
        tokens < 2,
        aggregate(select(tokens, tokens, "=="), tokens),
        by_address(tokens, indices),
        aggregate(select(tokens, indices, "<"), indices),
    ):
        with pytest.raises((RaspTypeError, UnsupportedError)):
            evaluate(program, given_, arithmetic="field")
    with pytest.raises(RaspZeroDivisionError):
        evaluate(1 / (tokens - 2), given_, arithmetic="field")
    with pytest.raises((UnsupportedError, RaspTypeError)):
        evaluate(tokens % 2, given_, arithmetic="field")


def test_integers_beside_residues_stay_addresses():
    field = PrimeField(seed=0)
    given_ = [field.element(5), field.element(6), 1, 0]
    flagged = by_address(2 + indices % 2) == 1
    program = where(flagged, by_address(indices % 2), 0)
    found = evaluate(program, given_, arithmetic=field)
    assert [getattr(v, "value", v) for v in found] == [5, 0, 5, 0]


@pytest.mark.parametrize("program", PROGRAMS)
def test_balls_contain_the_float_result(program):
    pytest.importorskip("flint", reason="needs the extra proof")
    balls = arithmetic_named("ball")
    given_ = [0.5, 1.25, -0.75, 2.0, 0.1, 3.5, -0.3]
    found = evaluate(program, given_, arithmetic=balls)
    floats = evaluate(program, given_)
    for ball, value in zip(found, floats, strict=True):
        distance = abs(balls.ball(ball) - balls.ball(value))
        assert bool(distance < 1e-12)


def test_ball_order_that_is_undecided_is_refused():
    pytest.importorskip("flint", reason="needs the extra proof")
    with pytest.raises(RaspValueError, match="undecided"):
        evaluate(exp(tokens) < exp(tokens), [1.0, 2.0], arithmetic="ball")
    with pytest.raises(RaspTypeError, match="cannot compare"):
        evaluate(aggregate(select(tokens, tokens, "<"), indices), [1.0], arithmetic="ball")


def test_float32():
    given_ = [0.1, 0.2, 0.3, 1e20]
    found = evaluate(tokens * 3, np.array(given_), arithmetic="float32")
    assert found.dtype == np.float32
    assert found.tolist() == (np.array(given_, dtype=np.float32) * np.float32(3)).tolist()
    assert evaluate(tokens * 3, given_, arithmetic="float32") == reference(
        tokens * 3, given_, FLOAT32
    )
    mean = evaluate(aggregate(full, tokens), [0.1] * 5 + [0.7], arithmetic="float32")
    assert mean[0] == pytest.approx(0.2, rel=1e-6)
    assert evaluate(indices * 2, given_, arithmetic="float32") == [0, 2, 4, 6]


def test_exact():
    third = aggregate(PREFIX, tokens) / 3
    assert evaluate(third, [1, 0, 0.5], arithmetic="exact") == [
        Fraction(1, 3), Fraction(1, 6), Fraction(1, 6),
    ]  # fmt: skip
    with pytest.raises(UnsupportedError, match="exp has no form in exact"):
        evaluate(exp(tokens), [1], arithmetic="exact")


def test_unknown_arithmetic():
    with pytest.raises(RaspValueError, match="no arithmetic 'decimal'"):
        evaluate(tokens, "a", arithmetic="decimal")


def test_a_column_is_read_again_and_again():
    numbers = column(np.arange(10.0))
    assert evaluate(aggregate(full, tokens), numbers).values() == [4.5] * 10
