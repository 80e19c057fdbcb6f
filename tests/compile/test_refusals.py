"""What does not compile says which expression stops it, what it can be, and what to do."""

import pytest

from raspire.compile import REALS, compile
from raspire.errors import RaspTypeError, RaspValueError, UnsupportedError
from raspire.library.sequences import reverse, sort
from raspire.program.embedding import (
    aggregate,
    elementwise,
    full,
    hardmax,
    indices,
    select,
    selector_width,
    tokens,
)


def refusal(program, **options):
    with pytest.raises(UnsupportedError) as caught:
        compile(program, **options)
    return str(caught.value)


def test_an_opaque_function_of_reals_is_named():
    def mystery(x):
        return x

    text = refusal(elementwise(mystery, tokens), alphabet=REALS, max_length=4)
    assert "mystery(tokens)" in text
    assert "named function" in text
    assert "reals in [-inf, inf]" in text


def test_a_selection_by_real_values_is_refused():
    text = refusal(selector_width(select(tokens, tokens, "<")), alphabet=REALS, max_length=4)
    assert "whose values cannot be listed" in text
    assert "hardmax" in text


def test_a_maximum_of_unbounded_reals_asks_for_bounds():
    text = refusal(aggregate(hardmax(tokens), tokens), alphabet=REALS, max_length=4)
    assert "Real(low, high)" in text


def test_too_long_for_the_precision_is_refused_before_any_model_exists():
    text = refusal(sort(), alphabet=[1, 2, 3], max_length=2_500, precision="float32")
    assert "too small for float32" in text
    assert "shorter maximal length" in text


def test_numbers_and_none_are_not_averaged():
    value = aggregate(select(indices, indices - 1, "=="), indices, default=None)
    text = refusal(aggregate(full, value), alphabet="ab", max_length=4)
    assert "may average numbers together with what is no number" in text


def test_a_selector_is_no_program():
    with pytest.raises(RaspTypeError, match="only an s-op can be compiled"):
        compile(full, alphabet="ab", max_length=4)


@pytest.mark.parametrize("options", [{"alphabet": ""}, {"alphabet": ["bos", "a"]}])
def test_alphabets(options):
    with pytest.raises(RaspValueError):
        compile(reverse(), max_length=4, **options)


def test_an_expression_without_a_value_on_some_symbols_is_noted():
    compiled = compile(6 / tokens, alphabet=[0, 1, 2, 3], max_length=4)
    assert compiled.undefined == ("6 / tokens",)
    assert compiled([1, 2, 3]) == [6, 3, 2]


def test_softmax_on_real_scores_is_refused():
    from raspire.compile import Real

    with pytest.raises(RaspValueError, match="no certified gap"):
        compile(aggregate(hardmax(tokens), tokens), alphabet=Real(0, 1), max_length=4,
                attention="softmax")  # fmt: skip


def test_stock_parts_have_softmax_and_no_gates():
    with pytest.raises(RaspValueError, match="stock parts have softmax"):
        compile(reverse(), alphabet="ab", max_length=4, stock=True)
    text = refusal(tokens * tokens, alphabet=REALS, max_length=4, attention="softmax", stock=True)
    assert "needs gated units" in text
    assert "relu_error" in text


def test_a_hardmax_with_a_condition_beside_it_is_no_head():
    last = hardmax(indices) & select(tokens, "a", "==")
    text = refusal(aggregate(last, indices), alphabet="ab", max_length=4)
    assert "among=condition" in text
    among = hardmax(indices, among=select(tokens, "a", "=="))
    compiled = compile(aggregate(among, indices), alphabet="ab", max_length=4)
    assert compiled(list("abab")) == [2, 2, 2, 2]


def test_an_output_too_rough_for_its_labels_is_refused_or_hardened():
    counts = selector_width(select(tokens, tokens, "=="))
    compiled = compile(counts * counts, alphabet="ab", max_length=60, precision="float32")
    assert compiled.verify(most=100, samples=20).holds


def test_numbers_that_are_one_float_are_refused():
    text = refusal(tokens + 0, alphabet=[2**60, 2**60 + 1], max_length=3)
    assert "the same float" in text
    same = selector_width(select(tokens, tokens, "=="))
    assert "the same float" in refusal(same, alphabet=[2**60, 2**60 + 1], max_length=3)


@pytest.mark.parametrize("error", [-1, 0, float("nan"), float("inf")])
def test_an_error_of_relu_that_cannot_be_asked_for_is_refused_at_once(error):
    with pytest.raises(RaspValueError, match="relu_error above 0"):
        compile(tokens * 2, alphabet=[1, 2], max_length=2, relu_error=error)


def test_a_rotation_has_no_negative_seed():
    with pytest.raises(RaspValueError, match="seed is not negative"):
        compile(tokens * 2, alphabet=[1, 2], max_length=2).rotate(-1)
