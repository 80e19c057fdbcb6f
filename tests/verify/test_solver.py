"""Equivalence decided by a solver, for all reals: sorts, maxima, matching; and its own meaning."""

from __future__ import annotations

import importlib.util
import random
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raspire.errors import BudgetError, RaspError, RaspZeroDivisionError, UnsupportedError
from raspire.evaluate import reference
from raspire.library.formal_languages import k_parity, k_parity_product, majority, match2
from raspire.library.linear_algebra import row_softmax
from raspire.library.sorting import maximum, maxmin, minimum, sort, sort_pairs, sort_wide
from raspire.program.embedding import (
    aggregate,
    exp,
    full,
    hardmax,
    indices,
    log,
    select,
    selector_width,
    tokens,
    where,
)
from raspire.program.nodes import SOp
from raspire.verify.solver import Placed, Symbolic, solve

z3 = pytest.importorskip("z3", reason="needs the extra proof")


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_three_sorts_are_one_on_all_reals(n: int) -> None:
    wide, pairs = sort_wide(n), sort_pairs(n)
    assert solve("wide", wide.program, sort(), n).holds
    padded = Placed(pairs.program, pairs.length, range(n))
    assert solve("pairs", padded, sort(), n).holds


def test_extremes() -> None:
    top = where(tokens > 0, tokens, 0) - where(tokens < 0, -tokens, 0)
    assert solve("parts", top, tokens, 2).holds
    assert solve("minimum", minimum(), -aggregate(hardmax(-tokens), -tokens), 3).holds
    both = Placed(maxmin(3).program, 3, [0, 1])
    first = where(indices == 0, maximum(), minimum())
    assert solve("maxmin", both, Placed(first, 3, [0, 1]), 3).holds
    assert solve("sorted", Placed(sort(), 3, [2]), Placed(maximum(), 3, [2]), 3).holds


def test_counterexamples_are_given() -> None:
    found = solve("match", match2(3), match2(3, distinct=True), 2, kind="int", alphabet=range(3))
    assert not found.holds
    word = [int(x) for x in found.details["counterexample"]]
    assert match2(3)(word) != match2(3, distinct=True)(word)


def test_alphabets_and_languages() -> None:
    bits: dict[str, Any] = {"kind": "int", "alphabet": [0, 1]}
    assert solve("k", k_parity([0, 2]), k_parity_product([0, 2]), 4, **bits).holds
    assert not solve("k", k_parity([0, 2]), k_parity_product([0, 2]), 4, kind="int").holds
    count = selector_width(select(tokens, 1, "=="))
    assert solve("majority", majority(), 2 * count > selector_width(full), 5, **bits).holds
    assert solve("half", tokens, tokens + 0, 1, alphabet=[Fraction(1, 2)]).holds


def test_named_functions_are_uninterpreted() -> None:
    softmax = row_softmax(1, 2).program
    other = 1 / (aggregate(full, exp(tokens)) * 2 / exp(tokens))
    with pytest.raises(RaspZeroDivisionError, match="some input makes a program divide by zero"):
        solve("softmax", softmax, other, 2)  # an uninterpreted exp may be zero
    assert solve("exp", exp(tokens + tokens), exp(2 * tokens), 2).holds
    assert not solve("exp", exp(tokens), tokens, 1).holds


def test_refusals() -> None:
    with pytest.raises(RaspZeroDivisionError):
        solve("x", 1 / tokens, 1 / tokens, 1)
    assert solve("x", 1 / tokens, 1 / tokens, 1, alphabet=[1, 2]).holds
    with pytest.raises(UnsupportedError, match="log has no meaning on variables"):
        solve("x", log(tokens), tokens, 1)
    with pytest.raises(UnsupportedError, match="mod has no meaning on variables"):
        solve("x", tokens % 2, tokens, 1)
    with pytest.raises(UnsupportedError, match="a value that is no number"):
        solve("x", where(tokens > 0, "a", "b"), tokens, 1)
    with pytest.raises(UnsupportedError, match="a selector's own predicate"):
        solve("x", aggregate(select(tokens, tokens, lambda k, q: k == q), tokens), tokens, 2)
    product: SOp = tokens
    for _ in range(5):
        product = product * aggregate(select(tokens, tokens, "<"), product + tokens)
    with pytest.raises(BudgetError, match="did not decide in time"):
        solve("x", product, product * product + 1, 5, seconds=0.01)


# ------------------------------------------------------------- its meaning is the reference's


def generator() -> Any:
    path = Path(__file__).parent.parent / "evaluate" / "programs.py"
    spec = importlib.util.spec_from_file_location("random_programs_for_solver", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


programs = generator()


@given(st.integers(min_value=0, max_value=2**32))
@settings(max_examples=120)
def test_variables_have_the_meaning_of_values(seed: int) -> None:
    rng = random.Random(seed)
    program = programs.Generator(rng, exact=True).sop(3)
    word = [rng.choice((0, 1, 2, -1, 5)) for _ in range(rng.choice((1, 2, 3)))]
    try:
        expected = reference(program, word, "exact")
        names = [z3.Int(f"x{k}") for k in range(len(word))]
        found = Symbolic(list(names), z3).results(Placed(program, len(word)))
    except RaspError:
        return
    values = [(name, z3.IntVal(v)) for name, v in zip(names, word, strict=True)]
    for symbolic, truth in zip(found, expected, strict=True):
        if not isinstance(symbolic, z3.ExprRef):
            assert symbolic == truth
            continue
        value = z3.simplify(z3.substitute(symbolic, *values))
        if z3.is_bool(value):
            assert z3.is_true(value) == bool(truth)
        else:
            number = value.as_long() if z3.is_int_value(value) else value.as_fraction()
            assert number == truth
