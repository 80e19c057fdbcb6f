"""Identity over GF(p): true identities pass, false ones fail, and the stated error is honest."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from raspire.arithmetic.field import PrimeField, Residue
from raspire.errors import RaspTypeError, RaspValueError, RaspZeroDivisionError, UnsupportedError
from raspire.library.inverse import (
    determinant,
    faddeev_determinant,
    faddeev_leverrier,
    inverse_3x3,
    matrix_power,
)
from raspire.library.layout import LaidOut
from raspire.library.linear_algebra import matmul, row_softmax
from raspire.program.embedding import (
    aggregate,
    exp,
    full,
    gelu,
    hardmax,
    indices,
    minimum,
    recip,
    select,
    tokens,
    where,
)
from raspire.program.nodes import SOp
from raspire.verify.certificate import Certificate
from raspire.verify.degrees import CONSTANT, VARIABLE, Degree
from raspire.verify.identity import FunctionSide, ProgramSide, identity, is_prime, random_prime


def same(left: SOp, right: SOp, length: int = 4, **options: int | float | None) -> Certificate:
    return identity("test", ProgramSide(left), ProgramSide(right), length, **options)  # type: ignore[arg-type]


def laid_out(program: LaidOut) -> ProgramSide:
    return ProgramSide(program.program, [int(p) for p in program.output.positions()])


def inputs(program: LaidOut, length: int) -> Callable[[PrimeField], list[object]]:
    """Random entries in the input blocks, zeros behind them."""
    end = max(block.end for block in program.inputs.values())
    return lambda field: [field.draw() if p < end else 0 for p in range(length)]


TRUE = {
    "ring": (tokens * tokens - 1, (tokens + 1) * (tokens - 1)),
    "quotient": (1 / (1 / tokens), tokens),
    "recip": (tokens * recip(tokens * tokens), 1 / tokens),
    "mean": (aggregate(full, tokens + 1), aggregate(full, tokens) + 1),
    "named": (gelu(tokens + tokens), gelu(2 * tokens)),
    "softmax": (
        exp(tokens) / aggregate(full, exp(tokens)),
        1 / (aggregate(full, exp(tokens)) / exp(tokens)),
    ),
    "choice by position": (where(indices > 1, tokens, 0) + where(indices > 1, 0, tokens), tokens),
}
FALSE = {
    "constant": (tokens, tokens + 1),
    "square": (tokens * tokens, tokens),
    "name": (exp(tokens), gelu(tokens)),
    "argument": (exp(tokens), exp(2 * tokens)),
    "mean of product": (
        aggregate(full, tokens * tokens),
        aggregate(full, tokens) * aggregate(full, tokens),
    ),
    "address": (
        aggregate(select(indices, indices, "=="), tokens),
        aggregate(select(indices, 3 - indices, "=="), tokens),
    ),
}


@pytest.mark.parametrize("name", TRUE)
def test_identities_pass(name: str) -> None:
    found = same(*TRUE[name])
    assert found.holds
    assert 0 < found.error_probability <= 1e-9


@pytest.mark.parametrize("name", FALSE)
def test_what_differs_is_rejected(name: str) -> None:
    found = same(*FALSE[name])
    assert not found.holds
    assert found.details["difference"].startswith("result ")


def test_a_law_of_a_named_function_is_not_used() -> None:
    assert not same(exp(tokens + 1), exp(tokens) * exp(tokens * 0 + 1)).holds


def test_the_stable_softmax_is_the_softmax() -> None:
    greatest = aggregate(hardmax(tokens), tokens)
    shifted = tokens - greatest
    plain = exp(tokens) / aggregate(full, exp(tokens))
    assert same(exp(shifted) / aggregate(full, exp(shifted)), plain).holds
    copied = aggregate(select(indices, indices, "=="), shifted)
    assert same(exp(copied) / aggregate(full, exp(copied)), plain).holds
    safe = exp(minimum(shifted, 0))
    assert same(safe / aggregate(full, safe), plain).holds
    assert not same(safe / aggregate(full, exp(tokens)), plain).holds
    other = aggregate(hardmax(-tokens), -tokens)  # a maximum of another set
    assert same(exp(tokens - other) / aggregate(full, exp(tokens - other)), plain).holds


def test_matrix_programs_agree_for_all_matrices() -> None:
    tree, recursion = determinant(4), faddeev_determinant(4)
    assert identity("det", laid_out(tree), laid_out(recursion), 16).holds
    cofactors, general = inverse_3x3(), faddeev_leverrier(3)
    assert identity("inverse", laid_out(cofactors), laid_out(general), 9).holds
    long = faddeev_leverrier(3, "long")
    draw = inputs(long, long.length)
    assert identity("long", laid_out(general), laid_out(long), draw).holds
    power = matrix_power(2, 5)
    assert identity("power", laid_out(power), laid_out(matrix_power(2, 5)), 4).holds
    wide, slow = matmul(2, 3, 2), matmul(2, 3, 2, "long")
    draw = inputs(slow, slow.length)
    assert identity("product", laid_out(wide), laid_out(slow), draw).holds
    other = LaidOut("", -tree.program, tree.inputs, tree.output, 16)
    assert not identity("wrong", laid_out(tree), laid_out(other), 16).holds
    plain, stable = row_softmax(2, 3), row_softmax(2, 3, stable=True)
    assert identity("softmax", laid_out(plain), laid_out(stable), 6).holds


def test_a_function_is_a_side_too() -> None:
    right = FunctionSide(lambda x, field: [v * v for v in x], Degree(2, 0))
    assert identity("square", ProgramSide(tokens * tokens), right, 3).holds


def test_the_error_bound_is_honest_in_a_small_field() -> None:
    # x^3 and 3x^2 - 2x agree for x in {0, 1, 2}: one trial passes with probability 3/p
    prime, passed, runs = 101, 0, 1500
    for seed in range(runs):
        found = same(
            tokens * tokens * tokens,
            3 * tokens * tokens - 2 * tokens,
            1,
            error=0.4,
            prime=prime,
            seed=seed,
        )
        passed += found.holds
    assert passed / runs <= 3 / prime * 1.7
    assert passed > 0


def test_random_primes() -> None:
    found = same(tokens + tokens, 2 * tokens, prime=None, error=1e-30)
    assert found.holds
    assert len(set(found.details["primes"])) == found.details["trials"] >= 2
    assert [p for p in range(60) if is_prime(p)] == [
        2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59,
    ]  # fmt: skip
    assert not is_prime(3215031751)  # passes for the witnesses 2, 3, 5, 7
    assert random_prime(61, random.Random(1)).bit_length() == 61


def test_refusals() -> None:
    with pytest.raises(UnsupportedError, match="gt has no meaning on field elements"):
        same(where(tokens > 0, tokens, 0), tokens)
    with pytest.raises(RaspTypeError, match="a comparison touches a field element"):
        same(where(tokens, tokens, 0), tokens)
    with pytest.raises(RaspTypeError, match="a selector compares a value that depends"):
        same(aggregate(select(tokens, tokens, "=="), tokens), tokens)
    with pytest.raises(UnsupportedError, match="which key has the greatest score is not known"):
        same(aggregate(hardmax(tokens), indices), tokens)
    with pytest.raises(UnsupportedError, match="has no meaning on field elements"):
        same(tokens % 2, tokens)
    with pytest.raises(RaspValueError, match="nearly every input has a zero denominator"):
        same(1 / (tokens - tokens), tokens)
    with pytest.raises(RaspValueError, match="the field is too small"):
        same(exp(tokens), exp(1 * tokens), prime=3)


def test_residues() -> None:
    a = Residue(5, 7)
    assert (a + 3).value == 1
    assert (3 - a).value == 5
    assert (a / 3).value == 4
    assert (1 / a * a).value == 1
    with pytest.raises(RaspTypeError, match="a comparison touches"):
        assert a == 5
    with pytest.raises(RaspZeroDivisionError):
        a / 7
    with pytest.raises(RaspTypeError, match="another arithmetic"):
        a + 0.5


def test_degrees() -> None:
    assert VARIABLE + VARIABLE.over(VARIABLE * VARIABLE) == Degree(3, 2)
    assert VARIABLE.over(VARIABLE).summed(3) == Degree(3, 3)
    assert CONSTANT.summed(5) == CONSTANT
    side = ProgramSide(aggregate(full, tokens * tokens) / tokens)
    side.run([Residue(k, 101) for k in (2, 3, 4)], PrimeField(101))
    assert side.degree()[0] == Degree(2, 1)


def test_a_constant_that_is_a_random_element_counts_as_a_variable() -> None:
    side = ProgramSide(tokens * 2**0.5 + 0.25)
    side.run([Residue(3, 101)], PrimeField(101))
    assert side.degree()[0] == Degree(2, 0)
