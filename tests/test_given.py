"""Wrong types end in errors of ours, which say what was expected and what was found."""

from __future__ import annotations

import numpy as np
import pytest

from raspire import tokens
from raspire.compile import compile
from raspire.errors import RaspError, RaspTypeError, RaspValueError
from raspire.evaluate import all_strings, count_strings, evaluate, explain, random_strings
from raspire.given import elements, one_of, whole
from raspire.library.sequences import reverse
from raspire.simulator import UniversalSimulator

COMPILED = compile(reverse(), alphabet="ab", max_length=4)
U = UniversalSimulator(2, 4, 2, 2, 2)

WRONG = {
    "a float of heads": lambda: UniversalSimulator(2, 4, 2.0, 2, 2),
    "a text as n": lambda: UniversalSimulator("2", 4, 2, 2, 2),
    "an array as mask": lambda: UniversalSimulator(2, 4, 2, 2, 2, mask=np.ones((2, 2))),
    "a number as construction": lambda: UniversalSimulator(2, 4, 2, 2, 2, construction=3),
    "no target": lambda: U(3, np.ones((2, 4))),
    "a text as length": lambda: compile(reverse(), alphabet="ab", max_length="3"),
    "a float as length": lambda: compile(reverse(), alphabet="ab", max_length=3.0),
    "no precision": lambda: compile(reverse(), alphabet="ab", max_length=3, precision=64),
    "a number as input": lambda: COMPILED(3),
    "none as input": lambda: COMPILED(None),
    "a set as input": lambda: COMPILED({"a"}),
    "a number as batch": lambda: COMPILED.batch(3),
    "numbers as batch": lambda: COMPILED.batch([3]),
    "no component": lambda: COMPILED.circuit.upstream("nope"),
    "a number to a program": lambda: reverse()(3),
    "a set to a program": lambda: reverse()({1, 2}),
    "a mapping to a program": lambda: reverse()({1: 2}),
    "a number as a batch": lambda: tokens.batch(3),
    "numbers as a batch": lambda: tokens.batch([3]),
    "a text as a batch": lambda: tokens.batch("abc"),
    "a set in a batch": lambda: tokens.batch([{"a"}]),
    "an array without dimensions": lambda: tokens.batch([np.array(1)]),
    "a fraction of a length": lambda: explain(reverse(), 1.5),
    "no length": lambda: explain(reverse(), None),
    "no program to explain": lambda: explain(3, 4),
    "a text as budget": lambda: evaluate(reverse(), "ab", budget="1"),
    "no budget": lambda: evaluate(reverse(), "ab", budget=-1),
    "a number as alphabet": lambda: list(all_strings(3, 2)),
    "a text as size": lambda: list(all_strings("ab", "2")),
    "a size below none": lambda: count_strings("ab", -1),
    "a text as count": lambda: list(random_strings("ab", 2, "x")),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_types_are_errors_of_ours(what):
    with pytest.raises(RaspError) as caught:
        WRONG[what]()
    assert caught.value.expected
    assert caught.value.found


def test_what_is_right_goes_through():
    assert whole("n", np.int64(3)) == 3
    assert whole("n", 0, 0) == 0
    assert elements("an input", range(3)) == [0, 1, 2]
    assert elements("an input", (c for c in "ab")) == ["a", "b"]
    one_of("mask", "none", ("none", "causal"))
    assert COMPILED.batch([]) == tokens.batch([]) == []
    for value in (True, np.True_, 1.0, "1", None):
        with pytest.raises(RaspTypeError):
            whole("n", value)
    with pytest.raises(RaspValueError):
        whole("n", 0)
