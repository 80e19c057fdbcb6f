"""Nothing that a user types ends in a Python traceback."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raspire.errors import RaspError
from raspire.language.interpreter import Interpreter
from raspire.language.report import fact, fault
from raspire.language.source import Source
from raspire.language.statements import unfinished
from raspire.library.sources import source_names, source_path
from raspire.session import printing

CASES = Path(__file__).parents[1] / "data" / "cases" / "rasp.jsonl"
PROGRAMS = [json.loads(line)["program"] for line in CASES.read_text("utf-8").splitlines()]
PROGRAMS += [source_path(name).read_text("utf-8") for name in source_names()]

VOCABULARY = """
def return for in if else not and or round indicator select aggregate range zip len tokens indices
length full_s tokens_int tokens_float True False out f g x y a max min sort has_focus
selector_width shift count exp hardmax exact_aggregate set show example examples on off draw help
s-op load s op 0 1 2 3 1.5 10 99999999999 "a" "" 'b' "hello" ( ) [ ] { } , ; : = + - * / // % ^
== != < > <= >= #
"""
WORDS = [*VOCABULARY.split(), "\n"]
SOUP = st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)
CHARACTERS = st.text(alphabet="abfx01.\"'()[]{},;:=+-*/%^<>!#& \n\té", max_size=60)


def survives(text: str) -> None:
    """Every outcome is a value that can be shown or an error with a place."""
    unfinished(Source(text))
    interpreter = Interpreter("abc")
    interpreter.drawer = lambda node, tokens: None
    interpreter._loading = ["no loading while fuzzing"] * 100
    for outcome in interpreter.run(text):
        if outcome.error is not None:
            assert outcome.error.where is not None
            assert outcome.error.where.line >= 1
            json.dumps(fault(outcome.error))
            assert str(outcome.error)
        elif outcome.kind == "value":
            shows(interpreter, outcome.value)


def shows(interpreter: Interpreter, value: Any) -> None:
    list(printing.lines("out", value, interpreter))
    with contextlib.suppress(RaspError):
        json.dumps(fact(value, interpreter))


def mutate(program: str, chance: random.Random) -> str:
    """A valid program with one to four words or characters changed."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(program) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            program = program[:at] + program[at + 1 :]
        elif kind == 1:
            program = program[:at] + chance.choice(WORDS) + program[at:]
        elif kind == 2:
            end = at + chance.randint(1, 8)
            program = program[:at] + program[end:]
        elif kind == 3:
            other = chance.choice(PROGRAMS)
            start = chance.randrange(len(other))
            program = program[:at] + other[start : start + 20] + program[at:]
        else:
            words = program.split(" ")
            words[chance.randrange(len(words))] = chance.choice(WORDS)
            program = " ".join(words)
    return program


@st.composite
def mutants(draw: Callable[..., Any]) -> str:
    return mutate(draw(st.sampled_from(PROGRAMS)), random.Random(draw(st.integers(0, 2**32))))


@settings(max_examples=25)
@given(st.one_of(SOUP, CHARACTERS, mutants()))
def test_nothing_typed_ends_in_a_traceback(text: str) -> None:
    survives(text)


@pytest.mark.slow
@settings(max_examples=7000)
@given(SOUP)
def test_token_soup(text: str) -> None:
    survives(text)


@pytest.mark.slow
@settings(max_examples=4000)
@given(CHARACTERS)
def test_character_soup(text: str) -> None:
    survives(text)


@pytest.mark.slow
@settings(max_examples=10000)
@given(mutants())
def test_mutated_programs(text: str) -> None:
    survives(text)
