"""Rationals, balls, exhaustive comparison, and certificates as data."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from raspire.errors import (
    BudgetError,
    RaspLoadError,
    RaspTypeError,
    RaspValueError,
    RaspZeroDivisionError,
)
from raspire.library.formal_languages import dyck1, k_parity, k_parity_product, match2
from raspire.library.inverse import faddeev_leverrier
from raspire.library.sorting import sort
from raspire.program import embedding
from raspire.program.embedding import aggregate, apply, exp, full, indices, select, tokens, where
from raspire.program.nodes import SOp
from raspire.verify.certificate import Certificate
from raspire.verify.exhaustive import exhaustive, words
from raspire.verify.rational import rational


def test_rational_equality() -> None:
    inverse = faddeev_leverrier(2)

    def twice(a: list[list[Fraction]]) -> object:
        return inverse(inverse(a, arithmetic="exact"), arithmetic="exact")

    some = [[[Fraction(k), 1], [1, Fraction(1, k)]] for k in (2, 3, 5)]
    regular = [a for a in some if a[0][0] * a[1][1] != 1] + [[[2, 1], [1, 1]], [[0, 3], [1, 5]]]
    assert rational("inverse of the inverse", twice, lambda a: a, regular).holds
    wrong = rational("wrong", twice, lambda a: [[1, 0], [0, 1]], regular)
    assert not wrong.holds
    assert wrong.details["inputs"] == 1
    assert not rational("no input", twice, twice, []).holds


def test_exhaustive_comparison() -> None:
    subset = [0, 2]
    found = exhaustive("parity", k_parity(subset), k_parity_product(subset), (0, 1), 6)
    assert found.holds
    assert found.details["inputs"] == 2**7 - 1
    assert exhaustive("sort", sort(), sorted, "abc", 4).holds
    different = exhaustive("match", match2(3), match2(3, distinct=True), range(3), 2)
    assert not different.holds
    assert different.details["input"] == "[0]"
    with pytest.raises(BudgetError, match="more inputs than the budget"):
        exhaustive("dyck", dyck1(), dyck1(), "()", 40)
    assert len([*words("ab", 3, shortest=1)]) == 14


def test_an_error_on_one_side_is_a_difference() -> None:
    found = exhaustive("errors", 1 / tokens, tokens, (0, 1), 1, shortest=1)
    assert not found.holds
    assert "RaspZeroDivisionError" in found.details["left"]


def test_certificates_are_data(tmp_path: Path) -> None:
    made = exhaustive("a claim", tokens, tokens, "ab", 2)
    path = tmp_path / "claim.json"
    made.save(path)
    assert [*tmp_path.iterdir()] == [path]
    assert Certificate.from_json(path.read_text(encoding="utf-8")) == made
    assert json.loads(path.read_text(encoding="utf-8"))["method"] == "exhaustive"
    assert str(made) == "a claim: holds (exhaustive)"
    probable = Certificate("c", "identity over a finite field", True, 1e-12)
    assert str(probable) == "c: holds (identity over a finite field, error probability <= 1e-12)"
    for text in ("{}", "nonsense", '{"method": "belief", "claim": "", "holds": true}'):
        with pytest.raises(RaspLoadError, match="this is no certificate"):
            Certificate.from_json(text)


# ------------------------------------------------------------------------------- enclosures

flint = pytest.importorskip("flint", reason="needs the extra proof")

from raspire.arithmetic.ball import Balls  # noqa: E402
from raspire.verify.enclosure import enclosed, enclosure  # noqa: E402

FUNCTIONS = ["exp", "sin", "cos", "tanh", "erf", "sigmoid", "silu", "gelu", "relu", "sqrt", "log"]


@pytest.mark.parametrize("name", [*FUNCTIONS, "recip", "rsqrt", "abs"])
def test_balls_enclose_what_floats_compute(name: str) -> None:
    points = [0.25, 1.0, 2.5]
    program = apply(name, tokens)
    floats = program(points)
    for ball, value in zip(enclosed(program, points, Balls(200)), floats, strict=True):
        assert float(ball.rad()) < 1e-50
        assert abs(float(ball.mid()) - value) <= 4 * math.ulp(value)


def test_an_enclosure_compares_two_programs_and_floats() -> None:
    x = [0.5, -1.25, 3.0]
    softmax = exp(tokens) / (aggregate(full, exp(tokens)) * 3)
    tanh_form = 1 / (3 * aggregate(full, exp(tokens)) / exp(tokens))

    def side(program: SOp) -> object:
        return lambda values, balls: enclosed(program, values, balls)

    floats = np.exp(x) / np.exp(x).sum()
    good = enclosure("softmax", side(softmax), side(tanh_form), x, floats, within=1e-15)  # type: ignore[arg-type]
    assert good.holds
    assert good.details["largest radius"] < 1e-30
    far = enclosure("softmax", side(softmax), side(tanh_form), x, floats + 1e-9, within=1e-12)  # type: ignore[arg-type]
    assert not far.holds
    assert far.details["both sides overlap"]
    other = enclosure("softmax", side(softmax), side(exp(tokens)), x, floats, within=10.0)  # type: ignore[arg-type]
    assert not other.details["both sides overlap"]


def test_constants_that_round_a_real_are_not_taken_as_exact() -> None:
    root = enclosed(tokens / math.sqrt(2), [1.0], Balls())[0]
    assert root.overlaps(1 / Balls().ball(2).sqrt())
    assert 0 < float(root.rad()) < 1e-15
    assert float(enclosed(tokens / 4, [1.0], Balls())[0].rad()) == 0


def test_what_balls_cannot_decide_is_refused() -> None:
    third = tokens / 3
    with pytest.raises(RaspValueError, match="an order between balls that overlap is undecided"):
        enclosed(where(third + third + third < tokens, 1, 0), [1.0], Balls())
    assert enclosed(where(third < tokens, 1, 0), [1.0], Balls())[0] == 1
    with pytest.raises(RaspZeroDivisionError, match="a division by a ball that contains zero"):
        enclosed(1 / (third * 3 - tokens), [1.0], Balls())
    with pytest.raises(RaspTypeError, match="a selector compares a value that depends"):
        enclosed(aggregate(select(tokens, tokens, "<"), tokens), [1.5], Balls())
    with pytest.raises(RaspValueError, match="is not finite"):
        enclosed(embedding.log(third - third), [1.0], Balls())
    top = aggregate(embedding.hardmax(tokens), tokens)
    assert enclosed(top, [1.5, 2.5], Balls())[0] == 2.5
    assert enclosed(indices * 2, [1.5, 2.5], Balls())[1] == 2
