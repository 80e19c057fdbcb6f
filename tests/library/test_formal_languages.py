"""k-PARITY, Match2, Match3, Dyck, majority: exhaustively against plain Python."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from math import ceil, log2
from typing import Any

import pytest

from raspire.errors import RaspValueError
from raspire.library import formal_languages as languages
from raspire.program.facts import cost
from raspire.program.nodes import SOp


def all_inputs(alphabet: Any, longest: int, shortest: int = 0) -> list[list[Any]]:
    lengths = range(shortest, longest + 1)
    return [list(word) for n in lengths for word in product(alphabet, repeat=n)]


def everywhere(program: SOp, inputs: list[list[Any]], oracle: Callable[[list[Any]], Any]) -> None:
    by_length: dict[int, list[list[Any]]] = {}
    for word in inputs:
        by_length.setdefault(len(word), []).append(word)
    for words in by_length.values():
        for word, found in zip(words, program.batch(words), strict=True):
            assert list(found) == [oracle(word)] * len(word), word


def test_parity_and_majority() -> None:
    bits = all_inputs((0, 1), 6)
    everywhere(languages.parity(), bits, lambda word: sum(word) % 2)
    everywhere(languages.majority(), bits, lambda word: sum(word) > len(word) / 2)


@pytest.mark.parametrize("k", range(5))
def test_k_parity_of_every_subset_at_every_length(k: int) -> None:
    bits = all_inputs((0, 1), 4)
    for subset in combinations(range(5), k):
        for program in (languages.k_parity(subset), languages.k_parity_product(subset)):
            everywhere(program, bits, lambda w, s=subset: sum(w[i] for i in s if i < len(w)) % 2)


@pytest.mark.parametrize("modulus", range(1, 6))
def test_match2_mod_any_number(modulus: int) -> None:
    for word in all_inputs(range(modulus), 3):
        truth = [int(any((x + y) % modulus == 0 for y in word)) for x in word]
        others = [
            int(any((x + y) % modulus == 0 for j, y in enumerate(word) if i != j))
            for i, x in enumerate(word)
        ]
        assert languages.match2(modulus)(word) == truth, word
        assert languages.match2(modulus, distinct=True)(word) == others, word


@pytest.mark.parametrize("modulus", [1, 2, 4])
def test_match3_both_ways(modulus: int) -> None:
    padded = languages.match3_pairs(modulus, 3)
    for word in all_inputs(range(modulus), 3):
        truth = [int(any((x + y + z) % modulus == 0 for y in word for z in word)) for x in word]
        assert languages.match3(modulus)(word) == truth, word
        if len(word) == 3:
            assert padded(word) == truth, word


def balanced(word: list[str], pairs: tuple[str, ...]) -> bool:
    stack: list[str] = []
    partner = {pair[1]: pair[0] for pair in pairs}
    for letter in word:
        if letter in partner.values():
            stack.append(letter)
        elif letter in partner and (not stack or stack.pop() != partner[letter]):
            return False
    return not stack


def test_dyck_of_one_kind() -> None:
    inputs = all_inputs("()x", 6)
    everywhere(languages.dyck1(), inputs, lambda word: balanced(word, ("()",)))


def test_dyck_of_two_kinds() -> None:
    pairs = ("()", "[]")
    everywhere(languages.dyck(pairs), all_inputs("()[]", 5), lambda word: balanced(word, pairs))
    with_letters = all_inputs("([)]x", 4, shortest=4)
    everywhere(languages.dyck(pairs), with_letters, lambda word: balanced(word, pairs))
    deep = list("([" * 6 + "])" * 6)
    assert languages.dyck(pairs)(deep) == [True] * 24


def test_costs() -> None:
    match2 = cost(languages.match2(7))
    assert (match2.attention_depth, match2.layers, match2.heads_per_layer) == (1, 1, (1,))
    match3 = cost(languages.match3(7))
    assert (match3.attention_depth, match3.heads_per_layer[0]) == (1, 7)
    pairs = languages.match3_pairs(7, 4)
    assert pairs.cost.attention_depth == 2
    assert pairs.length == 20
    for k in (2, 3, 5, 8):
        parity = cost(languages.k_parity_product(range(k)))
        assert (parity.attention_depth, parity.layers) == (1, ceil(log2(k)))
        assert parity.heads_per_layer[0] == k
    assert cost(languages.k_parity([1, 4])).heads_per_layer[0] == 2
    assert cost(languages.dyck1()).attention_depth == 2
    assert cost(languages.dyck()).attention_depth == 3


def test_messages() -> None:
    with pytest.raises(RaspValueError, match="the modulus must be positive"):
        languages.match2(0)
    with pytest.raises(RaspValueError, match="a position of the subset is negative"):
        languages.k_parity([-1])
    with pytest.raises(RaspValueError, match="a pair of brackets"):
        languages.dyck(["("])
