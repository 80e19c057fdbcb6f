"""Programs written for Tracr: they run after one changed import, and compile where it refuses."""

from pathlib import Path

import pytest

from raspire.compat.tracr import (
    Aggregate,
    Comparison,
    Map,
    Select,
    SelectorWidth,
    SequenceMap,
    compile_rasp_to_model,
    compiling,
    indices,
    is_numerical,
    lib,
    numerical,
    rasp,
    tokens,
)
from raspire.errors import RaspTypeError, RaspValueError
from tests.run_cases import failures, load, tracr_program

FILE = Path(__file__).parent.parent / "data" / "cases" / "tracr.jsonl"
CASES = {case["id"]: case for case in load(FILE)}


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    assert list(failures(CASES[name])) == []


def test_there_are_eighty_six_cases():
    assert len(CASES) == 86


def test_a_wrong_expectation_is_noticed():
    case = dict(CASES["gather-oob"])
    case["expect"] = [[0 if v is None else v for v in row] for row in case["expect"]]
    assert list(failures(case))


def test_where_nothing_is_selected_the_model_says_none():
    shifted = Aggregate(Select(indices, indices, lambda k, q: k == q - 1), tokens)
    model = compile_rasp_to_model(shifted, {"a", "b"}, 5, compiler_bos="BOS")
    assert model.apply(["BOS", "a", "b"]).decoded == ["BOS", None, "a"]
    assert shifted(["a", "b"]) == [None, "a"]


def test_none_passes_through_maps_that_do_not_expect_it():
    shifted = Aggregate(Select(indices, indices, lambda k, q: k == q - 1), tokens)
    called = []
    loud = Map(lambda value: called.append(value) or value * 2, shifted)
    assert loud([1, 2]) == [None, 2]
    assert None not in called


def test_names_and_annotations():
    width = SelectorWidth(Select(tokens, tokens, Comparison.EQ)).named("hist")
    assert width.label == "hist"
    number = numerical(width)
    assert is_numerical(number)
    assert not is_numerical(width)
    assert rasp.tokens is tokens
    assert compiling.compile_rasp_to_model is compile_rasp_to_model


def test_labels_are_the_same_in_two_compiles():
    program = SelectorWidth(Select(tokens, tokens, Comparison.EQ))
    first, second = (compile_rasp_to_model(program, {"a", "b"}, 4) for _ in "ab")
    assert first.residual_labels == second.residual_labels


def test_comparing_two_sops_compares_their_values():
    assert (indices == tokens)([0, 5, 2]) == [True, False, True]


def test_an_sop_is_hashable_and_has_no_truth_value():
    assert len({tokens, indices}) == 2
    with pytest.raises(TypeError, match="no truth value"):
        bool(tokens == 1)


def test_wrong_arguments_are_named():
    with pytest.raises(RaspTypeError, match="Map was given something else"):
        Map(str, "tokens")
    with pytest.raises(RaspTypeError, match="SelectorWidth"):
        SelectorWidth(SequenceMap(max, tokens, tokens))


def test_apply_asks_for_the_beginning_of_sequence():
    model = compile_rasp_to_model(SelectorWidth(Select(tokens, tokens, Comparison.EQ)), {"a"}, 4)
    with pytest.raises(RaspValueError, match="beginning of sequence"):
        model.apply(["a"])


def test_apply_gives_what_tracr_users_look_at():
    model = compile_rasp_to_model(tracr_program(CASES["hist"]), set("abcd"), 6)
    out = model.apply(["compiler_bos", "a", "b", "a"])
    assert out.decoded == ["compiler_bos", 2, 1, 2]
    width = model.compiled.cost.width
    assert out.transformer_output.shape == out.input_embeddings.shape == (4, width)
    assert len(out.residuals) == 2 * model.compiled.cost.layers
    assert len(model.residual_labels) == width


LIBRARY = {
    "length": (lib.make_length(), "abc", 1, lambda n: 13 + 2 * n),
    "reverse": (lib.make_reverse(tokens), "abcde", 4, lambda n: 21 + 6 * n),
    "histogram": (lib.make_hist(), "abcde", 1, lambda n: 13 + 2 * n),
    "fraction of previous": (lib.make_frac_prevs(tokens == "a"), "abc", 2, lambda n: 13 + n),
    "pair balance": (lib.make_pair_balance(tokens, "(", ")"), "()", 2, lambda n: 12 + n),
    "Dyck-3": (lib.make_shuffle_dyck(["()", "[]", "{}"]), "()[]{}", 9, lambda n: 55 + 3 * n),
}


@pytest.mark.parametrize("length", [5, pytest.param(80, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [*LIBRARY, "sort"])
def test_its_own_library_compiles_smaller_and_exactly(name, length):
    if name == "sort":
        program = lib.make_sort(tokens, tokens, max_seq_len=length, min_key=1)
        alphabet, layers, width = [1, 2, 3, 4, 5], 3, lambda n: 21 + 10 * n
    else:
        program, alphabet, layers, width = LIBRARY[name]
    model = compile_rasp_to_model(program, set(alphabet), length)
    cost = model.compiled.cost
    assert cost.layers <= layers
    assert cost.width <= (width(length) if length == 5 else width(length) // 2)
    assert model.compiled.verify(most=100, samples=20).holds


@pytest.mark.parametrize(
    "program",
    [
        lib.make_sort_freq(6),
        lib.shift_by(2, tokens),
        lib.make_count(tokens, "a"),
        lib.detect_pattern(tokens, "abb"),
        lib.make_shuffle_dyck2(),
    ],
    ids=["sort_freq", "shift_by", "count", "detect_pattern", "shuffle_dyck2"],
)
def test_the_rest_of_its_library(program):
    alphabet = set("(){}") if program.label == "shuffle_dyck" else set("ab")
    model = compile_rasp_to_model(program, alphabet, 6)
    assert model.compiled.verify(most=200, samples=20).holds
