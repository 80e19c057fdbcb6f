"""Compiled programs against the evaluator: every short input, random long ones, both attentions."""

import pytest

from raspire.compile import compile
from raspire.library.sources import source_program
from tests.compile.programs import LIBRARY, PEERS, balanced

# Tracr's layers and width at maximal length 80 (or the formula that its smaller sizes follow).
TRACR = {
    "length": (1, lambda n: 13 + 2 * n),
    "reverse": (4, lambda n: 21 + 6 * n),
    "histogram": (1, lambda n: 13 + 2 * n),
    "sort": (3, lambda n: 21 + 10 * n),
    "fraction of previous": (2, lambda n: 13 + n),
    "pair balance": (2, lambda n: 12 + n),
    "Dyck-3": (9, lambda n: 55 + 3 * n),
}


def both(compiled, **options):
    return (
        compiled.verify(**options),
        compiled.verify(network=compiled.softmax().batch, **options),
    )


@pytest.mark.parametrize("name", LIBRARY)
def test_a_compiled_program_is_the_program(name):
    program, alphabet = LIBRARY[name]
    compiled = compile(program, alphabet=alphabet, max_length=9)
    for report in both(compiled, most=400, samples=40):
        assert report.holds, report.wrong
        assert report.undefined == 0


@pytest.mark.slow
@pytest.mark.parametrize("length", [16, 40])
@pytest.mark.parametrize("name", LIBRARY)
def test_on_every_input_up_to_fifty_thousand(name, length):
    program, alphabet = LIBRARY[name]
    compiled = compile(program, alphabet=alphabet, max_length=length)
    most = 50_000 if length == 16 else 2_000
    for report in both(compiled, most=most, samples=2_000 if length == 16 else 300):
        assert report.holds, report.wrong


@pytest.mark.parametrize("name", ["Dyck-3", "dyck-1", "dyck-2"])
def test_brackets_on_inputs_half_of_which_are_balanced(name):
    program, alphabet = LIBRARY[name]
    kinds = [alphabet[i : i + 2] for i in range(0, len(alphabet) - 1, 2)]
    words = [balanced(kinds, 20 - 2 * (seed % 5), seed) for seed in range(60)]
    spoiled = [[*word[:-1], kinds[0][0]] for word in words]
    compiled = compile(program, alphabet=alphabet, max_length=20)
    assert all(all(values) for values in compiled.batch(words))
    assert not any(any(values) for values in compiled.batch(spoiled))
    for report in both(compiled, most=50, samples=10, inputs=words + spoiled):
        assert report.holds, report.wrong


@pytest.mark.parametrize("length", [5, pytest.param(80, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PEERS)
def test_no_deeper_and_no_wider_than_the_peers(name, length):
    program, alphabet = PEERS[name]
    compiled = compile(program, alphabet=alphabet, max_length=length)
    layers, width = TRACR[name]
    assert compiled.cost.layers <= layers
    assert compiled.cost.width <= width(length)
    if length == 80:
        assert 2 * compiled.cost.width <= width(length)


@pytest.mark.slow
@pytest.mark.parametrize("name", PEERS)
def test_no_wrong_position_at_length_eighty(name):
    program, alphabet = PEERS[name]
    compiled = compile(program, alphabet=alphabet, max_length=80)
    words = [balanced(["()", "[]", "{}"], 80, seed) for seed in range(20)]
    fitting = [w for w in words if set(w) <= set(map(str, alphabet))]
    for report in both(compiled, most=200, samples=300, inputs=fitting):
        assert report.holds, report.wrong


@pytest.mark.parametrize("symbols", [[f"w{i}" for i in range(256)], range(256)])
@pytest.mark.parametrize("name", ["histogram", "reverse", "sort"])
def test_large_vocabularies_are_sparse(name, symbols):
    program, _ = PEERS[name]
    compiled = compile(program, alphabet=symbols, max_length=8)
    cost = compiled.cost
    assert compiled.verify(most=300, samples=30).holds
    assert cost.nonzeros <= cost.parameters / 10
    assert cost.width <= 2 * len(symbols) + 30


@pytest.mark.slow
@pytest.mark.parametrize("name", ["histogram", "reverse", "sort"])
def test_a_thousand_symbols(name):
    program, _ = PEERS[name]
    compiled = compile(program, alphabet=[f"w{i}" for i in range(1024)], max_length=8)
    assert compiled.verify(most=1_100, samples=100).holds
    assert compiled.cost.nonzeros <= compiled.cost.parameters / 10


def test_unequal_lengths_in_one_batch_are_what_each_gives_alone():
    program, alphabet = LIBRARY["reverse"]
    compiled = compile(program, alphabet=alphabet, max_length=12)
    words = [list("abcde" * 2), ["a"], list("dcb"), [], list("edcba")]
    assert compiled.batch(words) == [compiled(word) for word in words]
    assert compiled.batch(words) == [word[::-1] for word in words]


def test_a_causal_model_sees_no_later_position():
    program, alphabet = LIBRARY["histogram"]
    compiled = compile(program, alphabet=alphabet, max_length=8, causal=True)
    assert compiled(list("abaa")) == [1, 1, 2, 3]
    assert compiled.verify(most=400, samples=20).holds
    assert all(head.mask.causal for _, _, head in compiled.transformer.heads())


SOURCES = {
    "addition": "0123456789+",
    "double_histogram": "abc",
    "dyck1": "()",
    "dyck2": "()[]",
    "histogram": "abc",
    "induction_head": "abc",
    "k_parity": "01",
    "length": "abc",
    "majority": "01",
    "match2": "0123456789",
    "most_frequent": "abc",
    "parity": "01",
    "reverse": "abc",
    "shuffle_dyck": "()[]{}",
    "sort": "abc",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SOURCES)
def test_a_source_program_compiles_exactly(name):
    compiled = compile(source_program(name), alphabet=SOURCES[name], max_length=8)
    for report in both(compiled, most=20_000, samples=500):
        assert report.holds, report.wrong
