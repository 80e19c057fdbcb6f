"""What a check says of a text without running it: types, dialect, warnings."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raspire.errors import RaspError, RaspTypeError
from raspire.language.dialect import additions, attention
from raspire.language.interpreter import Interpreter, from_rasp
from raspire.language.lint import warnings
from raspire.language.source import Source
from raspire.language.statements import parse
from raspire.language.syntax import Syntax
from raspire.language.types import TypedInterpreter, type_of
from raspire.language.values import sequence_type
from raspire.library.sources import source_names, source_path, source_program


def trees(text: str) -> tuple[list[Syntax], Source]:
    source = Source(text)
    return [tree for tree in parse(source) if isinstance(tree, Syntax)], source


@pytest.mark.parametrize(
    ("text", "surprise"),
    [
        ("not 1 == 2;", "(not a) == b"),
        ("not 5 in [6];", "(not a) in b"),
        ("1 in [1, 2] and False;", "'in' binds loosest"),
        ("1 if True else 2 in [5];", "'in' binds loosest"),
        ("True or False and False;", "(a or b) and c"),
        ("1 < 2 < 3;", "(a < b) < c"),
        ("7 % 4 * 2;", "a % (b * c)"),
        ("-2 ^ 2;", "(-a) ^ b"),
        ("2 ^ 3 ^ 2;", "(a ^ b) ^ c"),
        ("1 if True else 2 if False else 3;", "(a if b else c) if d else e"),
    ],
)
def test_every_precedence_surprise_is_warned_of(text: str, surprise: str) -> None:
    found = warnings(*trees(text))
    assert len(found) == 1
    assert surprise in found[0]["message"]
    assert found[0]["line"] == 1


@pytest.mark.parametrize(
    "text",
    ["not (1 == 2);", "1 in ([1] and False);", "(a or b) and c;", "a or b or c;", "-(2 ^ 2);"],
)
def test_parentheses_silence_a_warning(text: str) -> None:
    assert warnings(*trees(text)) == []


@pytest.mark.parametrize("name", source_names())
def test_our_own_sources_have_no_surprises(name: str) -> None:
    assert warnings(*trees(source_path(name).read_text("utf-8"))) == []


def test_additions_are_named_with_their_line() -> None:
    text = (
        "a = 1 // 2;\nb = 'x';\nc = 1 != 2;\nñ = 3;\nd = exp(1);\ndef sin(x) { return x; }\nsin(1);"
    )
    assert additions(*trees(text)) == {
        "the operator //": 1,
        "single-quoted string": 2,
        "the operator !=": 3,
        "the Unicode name ñ": 4,
        "the function exp": 5,
    }


def test_the_attention_of_a_program() -> None:
    assert attention(source_program("dyck1"))["causal"]
    assert not attention(source_program("reverse"))["causal"]
    assert attention(source_program("sort"))["comparisons"] == ["<", "=="]
    both = from_rasp("aggregate(select(indices, indices, <) and select(tokens, 3, ==), indices);")
    either = from_rasp("aggregate(select(indices, indices, <) or select(tokens, 3, ==), indices);")
    assert attention(both)["causal"]
    assert not attention(either)["causal"]


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("tokens_str;", {"string"}),
        ("indices / 2;", {"float"}),
        ("indices + tokens_float;", {"float"}),
        ("tokens + 'a';", {"string"}),
        ("tokens * 2;", {"string"}),
        ("tokens == 3;", {"bool"}),
        ("aggregate(full_s, indices);", {"int", "float"}),
        ("aggregate(full_s, tokens, 'x');", {"string"}),
        ("{'a': 1, 'b': 2.5}[tokens];", {"int", "float"}),
        ("1 if indices else 0.5;", {"int", "float"}),
        ("round(tokens_float);", {"int"}),
        ("exp(indices);", {"float"}),
        ("selector_width(full_s) > 1;", {"bool"}),
    ],
)
def test_types(text: str, types: set[str]) -> None:
    sop: Any = from_rasp(text)
    assert type_of(sop) == types


@pytest.mark.parametrize(
    "text",
    [
        "tokens_str - 1;",
        "-tokens_str;",
        "tokens_str < indices;",
        "select(tokens_str, indices, <);",
        "round(tokens_str);",
        "exp(tokens_str);",
    ],
)
def test_what_has_no_type_on_any_input_is_an_error(text: str) -> None:
    errors = [outcome.error for outcome in TypedInterpreter().run(text) if outcome.error]
    assert len(errors) == 1
    assert isinstance(errors[0], RaspTypeError)
    assert errors[0].where is not None


EXPRESSIONS = st.recursive(
    st.sampled_from(["tokens", "tokens_int", "tokens_float", "indices", "2", "1.5", "'a'", "True"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "%", "==", "<", "and"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        inner.map(lambda e: f"aggregate(select(indices, indices, <=), {e})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        inner.map(lambda e: f"round({e})"),
    ),
    max_leaves=6,
)


@settings(max_examples=60)
@given(EXPRESSIONS, st.integers(0, 2**20))
def test_values_have_one_of_the_types_foretold(expression: str, seed: int) -> None:
    tokens = "".join(random.Random(seed).choices("0123", k=4))
    program = Interpreter(tokens)
    outcome = next(program.run(f"indices * 0 if False else {expression};"))
    if outcome.error is not None or not hasattr(outcome.value, "args"):
        return
    try:
        found = sequence_type(program.result(outcome.value))
    except RaspError:
        return
    assert found in type_of(outcome.value)
