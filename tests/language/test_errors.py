"""Errors teach: the place, what was expected, and how to mend it, by their texts."""

from __future__ import annotations

import pytest

from raspire.errors import RaspError, RaspTypeError
from raspire.language import from_rasp, to_rasp
from raspire.language.interpreter import Interpreter


def first_error(text: str, example: str = "ab") -> RaspError:
    interpreter = Interpreter(example)
    interpreter.drawer = lambda node, tokens: None
    for outcome in interpreter.run(text, "demo.rasp"):
        if outcome.error is not None:
            return outcome.error
    raise AssertionError(f"no error in {text!r}")


# program, category, line, column, words of the message
CASES = [
    ("a = 3\nb = 4;", "syntax", 1, 6, "';' is missing"),
    ("a = 1;\nl[0:1];", "syntax", 2, 4, "there are no slices"),
    ("quit;", "undefined", 1, 1, "a command takes no ';'"),
    ('set example "abc";', "syntax", 1, 18, "a command takes no ';'"),
    ("help select", "syntax", 1, 6, "help stands alone"),
    ("// no comment", "syntax", 1, 1, "a comment begins with #"),
    ("x = \u201ca\u201d;", "syntax", 1, 5, "write plain quotes"),
    ("x == 1 ? 2 : 3;", "syntax", 1, 8, "write: value if condition else other"),
    ("a += 1;", "syntax", 1, 4, "there is no +=; write x = x + ..."),
    ("max(1;", "syntax", 1, 6, "')' is missing"),
    ("[1, 2,];", "syntax", 1, 7, "no comma after the last element"),
    ("def f(x) { return x }", "syntax", 1, 21, "expected: ',' or ';'"),
    ("if 1 { a; }", "syntax", 1, 1, "value if condition else other"),
    ("a = b = 3;", "syntax", 1, 7, "to compare, write =="),
    ('"abc;', "syntax", 1, 1, "the string has no end"),
    ("a & b;", "syntax", 1, 3, "write 'and'"),
    ("select(1, 1, indices);", "syntax", 1, 14, "one of == != < > <= >="),
    ("tokens;;", "syntax", 1, 8, "an empty statement is not allowed"),
    ("indices +", "syntax", 1, 10, "the text ends in the middle of a statement"),
    ("9" * 5000 + ";", "syntax", 1, 1, "at most 4300 digits"),
    ("1;\n lenght;", "undefined", 2, 2, "did you mean length?"),
    ("agregate(full_s, 1);", "undefined", 1, 1, "did you mean aggregate?"),
    ("f = select;", "undefined", 1, 5, "write select(...)"),
    ("length = 3;", "reserved", 1, 1, "the name 'length' is reserved"),
    ("def f(len) { return len; }\nf(1);", "reserved", 2, 2, "my_len"),
    ("max(1);", "arity", 1, 4, "expected: 2"),
    ("tokens();", "arity", 1, 7, "expected: 1"),
    ('1 + "a";', "type", 1, 3, 'an int (1) and a string ("a")'),
    ("full_s + 1;", "type", 1, 8, "and, or, not"),
    ("full_s and tokens;", "type", 1, 8, "two selectors or two s-ops"),
    ("aggregate(tokens, 1);", "type", 1, 1, "expected: a selector"),
    ("indices if indices else 'a';", "type", 1, 9, "a sequence cannot mix types"),
    ("tokens < 3;", "type", 1, 8, "str and int"),
    ("aggregate(full_s, tokens);", "type", 1, 1, "select one position only"),
    ("'h' in tokens and 'z' in tokens;", "type", 1, 23, "write (x in l) and (y in l)"),
    ("[1](2);", "type", 1, 4, "a function, an s-op or a selector"),
    ("tokens(3);", "type", 1, 7, "a string, a list or a dictionary"),
    ("(-8) ^ 0.5;", "type", 1, 6, "no real value"),
    ('{"a": 1}["z"];', "value", 1, 9, "expected: one of 'a'"),
    ("[1, 2][2];", "value", 1, 7, "index 2 is out of range for a length of 2"),
    ("[1][indices];", "value", 1, 4, "index 1 is out of range"),
    ("tokens[indices];", "value", 1, 7, "load_from_location(seq, loc)"),
    ("tokens_int;", "value", 1, 1, "'a'"),
    ("1 / 0;", "zero-division", 1, 3, "/ divides by zero"),
    ("indices % 0;", "zero-division", 1, 9, "divides by zero"),
    ("10.0 ^ 400;", "overflow", 1, 6, "too large for a float"),
    ("9 ^ (9 ^ 9);", "overflow", 1, 3, "too many digits"),
    ('load "no/such";', "load", 1, 1, "cannot read no/such.rasp"),
    ("range(10 ^ 12);", "budget", 1, 1, "the range is too long"),
    ('"a" * 10 ^ 12;', "budget", 1, 5, "too long"),
    ("def f(x) { return f(x); }\nf(1);", "budget", 1, 20, "does the recursion end?"),
    ("set example 5", "type", 1, 1, "an example is a sequence"),
    ("set example", "syntax", 1, 1, "expected: an expression"),
]


@pytest.mark.parametrize(("text", "category", "line", "column", "words"), CASES)
def test_an_error_has_place_and_words(
    text: str, category: str, line: int, column: int, words: str
) -> None:
    error = first_error(text)
    assert error.where is not None
    assert (error.category, error.where.line, error.where.column) == (category, line, column)
    assert words in str(error)
    assert error.where.file == "demo.rasp"


def test_an_error_shows_its_line_with_a_caret() -> None:
    shown = str(first_error("a = 1;\n\tb = a + nosuch;"))
    assert shown.split("\n")[:3] == [
        "demo.rasp:2:10: the name 'nosuch' is not defined",
        "  \tb = a + nosuch;",
        "  \t        ^",
    ]


def test_an_error_in_a_long_line_shows_a_part_of_it() -> None:
    error = first_error("[" + "1, " * 5_000 + "nosuch];")
    assert error.where is not None
    assert error.where.column == 15_002
    assert len(str(error)) < 1000
    line, caret = str(error).split("\n")[1:3]
    assert line[caret.index("^") :].startswith("nosuch")


def test_an_error_in_a_function_names_it_and_its_caller() -> None:
    error = first_error("def f(x) {\n  return x + 'a';\n}\n\nf(1);")
    assert error.where is not None
    assert error.where.line == 2
    assert error.hint == "in f, called from line 5"


def test_an_error_in_the_library_blames_the_caller() -> None:
    error = first_error("1;\nmax(1, 'a');")
    assert error.where is not None
    assert (error.where.line, error.where.column) == (2, 4)
    assert error.hint == "in max, called from line 2"


def test_a_fault_leaves_the_statements_around_it_whole() -> None:
    text = "a = 1;\nb = 2 +;\nc = 3\nd = 4;\ne = a + d; f = nosuch;\nif x { }\ng = 5;"
    interpreter = Interpreter("ab")
    outcomes = list(interpreter.run(text))
    assert sum(outcome.error is not None for outcome in outcomes) == 4
    assert sorted(interpreter.scope.names) == ["a", "d", "e", "g"]


def test_equal_strings_have_no_mean_and_the_error_does_not_say_they_had() -> None:
    error = first_error("aggregate(full_s, tokens == tokens);")
    assert error.expected == "one selected value, or numbers"


def test_what_is_no_text_and_what_is_no_program() -> None:
    with pytest.raises(RaspTypeError, match="RASP is text"):
        from_rasp(5)  # type: ignore[arg-type]
    with pytest.raises(RaspTypeError, match="only a program can be written"):
        to_rasp(5)  # type: ignore[arg-type]
