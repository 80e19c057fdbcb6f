"""The interpretation that proofs run on has the reference's meaning, on random programs."""

from __future__ import annotations

import importlib.util
import random
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from raspire.arithmetic import EXACT
from raspire.errors import RaspError
from raspire.evaluate import reference
from raspire.program.embedding import aggregate, hardmax, indices, select, selector_width, tokens
from raspire.verify.interpretation import Interpretation


def random_programs() -> ModuleType:
    """The generator of the evaluator's tests."""
    path = Path(__file__).parent.parent / "evaluate" / "programs.py"
    spec = importlib.util.spec_from_file_location("random_programs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


programs = random_programs()


@given(st.integers(min_value=0, max_value=2**32))
@example(2795)  # a predicate that tells True from 1
@example(458405)  # a mean by the rule of the text language
@settings(max_examples=150)
def test_it_agrees_with_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    program = programs.Generator(rng, exact=True).sop(4)
    given_tokens = programs.random_input(rng, 6)
    try:
        expected = reference(program, given_tokens, "exact")
    except RaspError:
        return
    found = Interpretation(given_tokens, EXACT).values(program)
    assert [(type(v), v) for v in found] == [(type(v), v) for v in expected]


def test_selectors_of_every_kind() -> None:
    word = [3, 1, 3, 2]
    half = Fraction(1, 2)
    for program, expected in (
        (aggregate(select(indices, indices, "<"), tokens), [0, 3, 2, Fraction(7, 3)]),
        (selector_width(~select(tokens, tokens, "==")), [2, 3, 2, 3]),
        (selector_width(select(tokens, 2, ">") | select(indices, 3, "==")), [3] * 4),
        (aggregate(hardmax(tokens), indices), [1] * 4),
        (aggregate(hardmax(tokens, select(indices, indices, "<")), indices, -1), [-1, 0, 0, 1]),
        (aggregate(select(indices, 1, "<="), tokens) / 4, [half] * 4),
    ):
        assert Interpretation(word, EXACT).values(program) == expected


@pytest.mark.parametrize("word", [[], [5]])
def test_short_inputs(word: list[int]) -> None:
    program = aggregate(select(indices, indices, "<="), tokens + 1)
    assert Interpretation(word, EXACT).values(program) == [t + 1 for t in word]
