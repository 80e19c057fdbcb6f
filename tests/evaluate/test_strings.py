"""Exhaustive and random inputs, batches over them, progress and interruption."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from raspire import aggregate, full, indices, select, selector_width, tokens
from raspire.errors import RaspTypeError, RaspValueError
from raspire.evaluate import (
    all_strings,
    batch,
    count_strings,
    evaluate,
    random_strings,
    reference,
    shown,
)


def test_all_strings_are_all():
    for alphabet in ("ab", "abc", [0, 1], [True, 2.5]):
        found = [tuple(row) for part in all_strings(alphabet, 4, rows=7) for row in part.tolist()]
        expected = [
            string for size in range(5) for string in itertools.product(alphabet, repeat=size)
        ]
        assert found == expected
        assert len(found) == count_strings(alphabet, 4)


def test_batches_over_all_strings():
    program = selector_width(select(tokens, tokens, "==") & select(indices, indices, "<="))
    for part in all_strings("ab", 6, rows=50):
        found = batch(program, part)
        assert found.shape == part.shape
        for row, string in zip(found.tolist(), part.tolist(), strict=True):
            assert row == reference(program, string)


def test_random_strings():
    parts = list(random_strings("abc", 5, 100, seed=3, rows=64))
    assert [len(part) for part in parts] == [64, 36]
    again = list(random_strings("abc", 5, 100, seed=3, rows=64))
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))
    assert set(np.concatenate(parts).reshape(-1).tolist()) == set("abc")


def test_refusals():
    with pytest.raises(RaspValueError, match="differ"):
        next(all_strings("aa", 2))
    with pytest.raises(RaspValueError, match="at least one symbol"):
        next(random_strings("", 2, 1))
    with pytest.raises(RaspTypeError, match="two dimensions"):
        batch(tokens, np.zeros(3))
    with pytest.raises(RaspTypeError, match="s-ops"):
        batch(full, ["a"])


def test_ragged_batches():
    inputs = ["hello", "", "ab", "olleh", [1, 2]]
    reverse = aggregate(select(indices, 4 - indices, "=="), tokens, None)
    assert batch(reverse, inputs) == [reference(reverse, given) for given in inputs]
    assert batch(tokens, []) == []
    assert batch(tokens, np.zeros((0, 4))).shape == (0, 4)


def test_rows_that_differ_in_type_keep_their_own_meaning():
    prefix = aggregate(select(indices, indices, "<="), tokens)
    inputs = [[True, True], [1, 2], [0.5, 2], ["a", "a"]]
    assert str(batch(prefix, inputs)) == str([reference(prefix, given) for given in inputs])


def test_ticks_come_and_may_stop_the_run():
    seen = []
    program = aggregate(select(tokens, tokens, lambda k, q: k <= q), indices)
    evaluate(program, list(range(50)), tick=lambda what, done, of: seen.append(what))
    assert "blocks" in seen

    def stop(what, done, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(program, list(range(50)), tick=stop)
    with shown() as tick:
        assert batch(indices, ["ab"], tick=tick) == [[0, 1]]
