"""The RASP sources of our own programs, each against an oracle that does not know RASP."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from raspire.evaluate.reference import reference
from raspire.language import from_rasp, to_rasp
from raspire.library.sources import source_names, source_path, source_program
from raspire.program.facts import heads_by_depth
from tests.language.rasp_graphs import same_graph

RANDOM = random.Random(20250618)


def run(name: str, tokens: Any, **shapes: int) -> list[Any]:
    return reference(source_program(name, **shapes), tokens)


def words(alphabet: str, count: int = 15, longest: int = 12) -> list[str]:
    return ["".join(RANDOM.choices(alphabet, k=RANDOM.randint(1, longest))) for _ in range(count)]


@pytest.mark.parametrize("name", source_names())
def test_a_source_opens_with_meaning_depth_and_heads(name: str) -> None:
    text = source_path(name).read_text()
    found = re.search(r"^# depth (\d+), heads ([\d ]+)", text, re.MULTILINE)
    assert text.startswith("# ")
    assert found
    heads = heads_by_depth(source_program(name))
    assert int(found[1]) == max(heads)
    assert [len(heads[d]) for d in range(1, max(heads) + 1)] == list(map(int, found[2].split()))


@pytest.mark.parametrize("name", source_names())
def test_source_to_program_to_source_is_the_identity(name: str) -> None:
    first = source_program(name)
    text = to_rasp(first)
    second = from_rasp(text)
    assert same_graph(first, second)
    assert to_rasp(second) == text


# ---------------------------------------------------------------------------- sequences


def double_histogram(word: str) -> list[int]:
    counts = Counter(word)
    return [sum(counts[d] == counts[c] for d in counts) for c in word]


def most_frequent(word: str) -> list[str]:
    ranked = [token for token, _ in Counter(word).most_common()]
    return ranked + ["-"] * (len(word) - len(ranked))


def induction(word: str) -> list[str]:
    out = []
    for i, token in enumerate(word):
        after = [j for j in range(1, i + 1) if word[j - 1] == token]
        out.append(word[after[-1]] if after else "?")
    return out


SEQUENCES: dict[str, Callable[[str], list[Any]]] = {
    "reverse": lambda w: list(reversed(w)),
    "length": lambda w: [len(w)] * len(w),
    "histogram": lambda w: [w.count(c) for c in w],
    "double_histogram": double_histogram,
    "sort": sorted,
    "most_frequent": most_frequent,
    "induction_head": induction,
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences(name: str) -> None:
    for word in [*words("abcd"), *words("ab", 10), "a"]:
        assert run(name, word) == SEQUENCES[name](word), word


# ---------------------------------------------------------------------------- languages


def bits(function: Callable[[list[int]], bool]) -> Callable[[str], list[bool]]:
    return lambda w: [function([int(c) for c in w])] * len(w)


BITS = {
    "parity": bits(lambda b: sum(b) % 2 == 1),
    "majority": bits(lambda b: 2 * sum(b) > len(b)),
    "k_parity": bits(lambda b: sum(b[i] for i in (0, 2, 3) if i < len(b)) % 2 == 1),
}


@pytest.mark.parametrize("name", BITS)
def test_bits(name: str) -> None:
    for word in [*words("01"), "0", "1"]:
        assert run(name, word) == BITS[name](word), word


def nested(prefix: str, pairs: list[str]) -> str:
    """T, P or F of one prefix, by a stack."""
    stack: list[str] = []
    for c in prefix:
        if any(c == pair[0] for pair in pairs):
            stack.append(c)
        elif not stack or stack.pop() + c not in pairs:
            return "F"
    return "P" if stack else "T"


def shuffled(prefix: str, pairs: list[str]) -> str:
    """T, P or F of one prefix, every kind of bracket for itself."""
    verdicts = [nested("".join(c for c in prefix if c in pair), [pair]) for pair in pairs]
    return "F" if "F" in verdicts else "P" if "P" in verdicts else "T"


BRACKETS = {
    "dyck1": (nested, ["()"]),
    "dyck2": (nested, ["()", "[]"]),
    "shuffle_dyck": (shuffled, ["()", "[]", "{}"]),
}


@pytest.mark.parametrize("name", BRACKETS)
def test_brackets(name: str) -> None:
    oracle, pairs = BRACKETS[name]
    balanced = ["()" * 3, "(())()", "(()", "())("]
    for word in [*words("".join(pairs), 60, 8), *balanced]:
        wanted = [oracle(word[: i + 1], pairs) for i in range(len(word))]
        assert run(name, word) == wanted, word


def test_match2() -> None:
    for _ in range(15):
        numbers = RANDOM.choices(range(30), k=RANDOM.randint(1, 6))
        wanted = [any((x + y) % 10 == 0 for y in numbers) for x in numbers]
        assert run("match2", numbers) == wanted


def test_addition() -> None:
    for _ in range(15):
        a, b = RANDOM.randrange(10 ** RANDOM.randint(1, 5)), RANDOM.randrange(10**4)
        text = f"{a:0{RANDOM.randint(1, 6)}d}+{b}"
        digits = run("addition", text)
        assert int("".join(map(str, digits))) == a + b, text


# ---------------------------------------------------------------------------- linear algebra


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(sum(shape))
    return rng.integers(-4, 5, shape).astype(float)


def close(found: list[Any], wanted: np.ndarray[Any, Any]) -> None:
    np.testing.assert_allclose(found[: wanted.size], wanted.ravel(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("rows", "columns"), [(2, 3), (3, 2), (1, 4), (3, 3)])
def test_transpose(rows: int, columns: int) -> None:
    a = numbers(rows, columns)
    close(run("transpose", a.ravel().tolist(), rows=rows, columns=columns), a.T)


def test_softmax() -> None:
    a = numbers(2, 3)
    wanted = np.exp(a) / np.exp(a).sum(axis=1, keepdims=True)
    close(run("softmax", a.ravel().tolist()), wanted)


@pytest.mark.parametrize(("rows", "inner", "columns"), [(2, 3, 2), (1, 2, 3), (3, 1, 2)])
def test_matmul(rows: int, inner: int, columns: int) -> None:
    a, b = numbers(rows, inner), numbers(inner, columns)
    tokens = [*a.ravel().tolist(), *b.ravel().tolist()]
    tokens += [0.0] * max(0, rows * columns - len(tokens))
    found = run("matmul", tokens, rows=rows, inner=inner, columns=columns)
    close(found, a @ b)


def test_maxmin() -> None:
    for size in (1, 2, 7):
        values = numbers(size).tolist()
        found = run("maxmin", values)
        assert found == [max(values)] + [min(values)] * (size - 1)


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_determinant(m: int) -> None:
    a = numbers(m, m)
    found = run("determinant", a.ravel().tolist(), m=m)
    np.testing.assert_allclose(found, np.linalg.det(a), rtol=1e-9, atol=1e-9)


def test_inverse3() -> None:
    a = np.array([[7.0, 8, 12], [10, 11, 9], [2, 4, 21]])
    close(run("inverse3", a.ravel().tolist()), np.linalg.inv(a))


def soft(scores: np.ndarray[Any, Any]) -> Any:
    weights = np.exp(scores)
    return weights / weights.sum(axis=-1, keepdims=True)


def test_attention() -> None:
    n, d, dk, dv = 3, 2, 2, 2
    x, w = numbers(n, d) / 4, numbers(d, 2 * dk + dv) / 4
    q, k, v = np.split(x @ w, [dk, 2 * dk], axis=1)
    tokens = [*x.ravel(), *w.ravel()]
    tokens += [0.0] * max(0, max(n * (2 * dk + dv), n * n) - len(tokens))
    close(run("attention", list(map(float, tokens))), soft(q @ k.T / np.sqrt(dk)) @ v)


def test_multi_head_attention() -> None:
    n, d, h, dk, dv = 2, 2, 2, 1, 2
    m = 2 * dk + dv
    x, w, o = numbers(n, d) / 4, numbers(d, h * m) / 4, numbers(h * dv, d) / 4
    heads = []
    for t in range(h):
        q, k, v = np.split(x @ w[:, t * m : (t + 1) * m], [dk, 2 * dk], axis=1)
        heads.append(soft(q @ k.T / np.sqrt(dk)) @ v)
    tokens = [*x.ravel(), *w.ravel(), *o.ravel()]
    tokens += [0.0] * max(0, max(n * h * m, h * n * n) - len(tokens))
    found = run("multi_head_attention", list(map(float, tokens)))
    close(found, np.concatenate(heads, axis=1) @ o)


def test_every_source_has_a_test_here() -> None:
    named = {*SEQUENCES, *BITS, *BRACKETS, "match2", "addition"}
    linear = {"transpose", "softmax", "matmul", "maxmin", "determinant", "inverse3"}
    assert set(source_names()) == named | linear | {"attention", "multi_head_attention"}
    assert all(a < b for a, b in pairwise(source_names()))
