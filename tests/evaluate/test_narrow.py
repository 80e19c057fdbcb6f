"""Integers are stored as narrowly as their bounds allow: whatever is done with them, none wraps."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest

from raspire import (
    aggregate,
    elementwise,
    full,
    hardmax,
    indicator,
    indices,
    length,
    select,
    selector_width,
    tokens,
)
from raspire.errors import RaspError
from raspire.evaluate import demand, engine, evaluate, kernels, parts, ranking, reference
from raspire.evaluate.columns import Column, from_values
from raspire.evaluate.ranking import Ranking, occurrences, order_of
from raspire.library.sequences import sort, sort_by_frequency
from raspire.program.embedding import ceil, floor
from tests.evaluate.programs import Generator, agree

N = 150
LETTERS = "".join(chr(0x100 + i) for i in range(120))

PREVIOUS = select(indices, indices - 1, "==")
TWO_KEYS = select(tokens, tokens, "==") & select(indices // 2, indices // 2, "==")
SAME_BEFORE = select(tokens, tokens, "==") & select(indices, indices, "<")
LARGER_BEFORE = select(tokens, tokens, ">") & select(indices, indices, "<")
PROGRAMS = {
    "two keys": selector_width(TWO_KEYS),
    "text, two keys": aggregate(TWO_KEYS, tokens, "none"),
    "pairs of values": selector_width(select(tokens, tokens, "==")) * 2 + indices,
    "a default that is wider": aggregate(PREVIOUS, indices % 100, 1000),
    "the last before, in each group": aggregate(
        hardmax(indices, among=SAME_BEFORE), indices * 3, -500
    ),
    "the last of each group": aggregate(
        hardmax(indices, among=select(tokens, tokens, "==")), indices * 300, -5
    ),
    "dominance": selector_width(LARGER_BEFORE),
    "sums before": aggregate(SAME_BEFORE, indices * 200, 0),
    "an opaque function of two": elementwise(lambda a, b: f"{a}, {b}", tokens, indices % 130),
    "products": (indices - 64) * (indices + 64) * (indices - 3),
    "remainders": (indices * 127) % 120 + (indices * 127) // 7,
    "greater": aggregate(select(indices, indices, ">"), indices % 128, 7),
    "steps": aggregate(select(indices, length - 1 - 2 * indices, "=="), tokens, 0),
    "windows": selector_width(
        select(indices, indices - 3, ">=") & select(indices, indices + 120, "<")
    ),
    "sort": sort(),
    "by frequency": sort_by_frequency(),
    "descending": aggregate(
        select(
            selector_width(
                select(tokens, tokens, ">")
                | (select(tokens, tokens, "==") & select(indices, indices, "<"))
            ),
            indices,
            "==",
        ),
        tokens,
    ),
}


def inputs():
    rng = random.Random(7)
    yield list(range(N))
    yield [(5 * i) % 128 for i in range(N)]
    yield [rng.choice((127, -127, 128, -128, 0, 1)) for _ in range(N)]
    yield [rng.randint(-60, 60) for _ in range(N)]
    yield [rng.choice((32767, -32768, 2**31, 0)) for _ in range(N)]
    yield list(LETTERS) + [rng.choice(LETTERS) for _ in range(N - 120)]


@cache
def cases(name):
    """Inputs, and what the reference makes of them."""
    found = []
    for given in inputs():
        try:
            found.append((given, reference(PROGRAMS[name], given)))
        except RaspError:  # text has no product
            assert not isinstance(given[0], int)
    return found


@pytest.mark.parametrize("part", [1 << 15, 7])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_equal_the_reference(name, part, monkeypatch):
    for module in (parts, kernels, ranking):
        monkeypatch.setattr(module, "PART", part)
    for given, expected in cases(name):
        assert agree(evaluate(PROGRAMS[name], given), expected, 1.0), given
        if isinstance(given[0], int):
            narrow = Column("i", np.array(given, dtype=parts.integer_type(min(given), max(given))))
            found = evaluate(PROGRAMS[name], narrow).values()
            assert agree(found, expected, 1.0), (narrow.data.dtype, given)
            array = evaluate(PROGRAMS[name], np.array(given))
            if array.dtype.kind == "f":
                assert np.allclose(array, expected, rtol=1e-12, atol=0), given
            else:
                assert agree(array.tolist(), expected, 1.0), given


@pytest.mark.slow
def test_random_programs_on_longer_inputs(monkeypatch):
    """Enough values for codes and counts beyond one byte."""
    equal = 0
    for seed in range(400):
        rng = random.Random(seed)
        program = Generator(rng).sop(rng.randint(2, 4))
        size = rng.randint(130, 170)
        pool = rng.choice((range(-64, 64), range(200), LETTERS, (0, 1), (-128, 127, 255, 3)))
        given = [rng.choice(list(pool)) for _ in range(size)]
        try:
            expected = reference(program, given)
        except RaspError:
            continue
        assert agree(evaluate(program, given), expected, 1.0), (seed, given)
        equal += 1
    assert equal > 150


def test_types_follow_bounds():
    assert column_type(evaluate(tokens + 0, Column("i", np.arange(100)))) == np.int8
    assert column_type(evaluate(tokens * 2, Column("i", np.arange(100)))) == np.int16
    assert column_type(evaluate(-tokens, Column("i", np.array([-128, 1], np.int8)))) == np.int16
    assert column_type(evaluate(indicator(tokens > 0), Column("i", np.arange(100)))) == np.int8
    assert column_type(from_values(list(LETTERS[:50]))) == np.int8
    assert column_type(from_values([chr(i) for i in range(0x100, 0x100 + 200)])) == np.int16


def column_type(column):
    return column.data.dtype


def test_arrays_come_back_as_int64_and_are_never_the_input():
    given = np.arange(50)
    for program in (tokens, +tokens, aggregate(PREVIOUS, tokens), tokens + 0):
        found = evaluate(program, given)
        assert found.dtype == np.int64
        assert not np.may_share_memory(found, given)
    reverse = evaluate(aggregate(select(indices, length - 1 - indices, "=="), tokens), given)
    assert reverse.tolist() == given[::-1].tolist()
    assert not np.may_share_memory(reverse, given)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
def test_arrays_of_narrow_integers(dtype):
    limits = np.iinfo(dtype)
    given = np.array([limits.min, limits.max, 1, limits.min, 0], dtype=dtype)
    listed = given.tolist()
    for program in (
        tokens * 2 - 1, -tokens, abs(tokens), sort(), aggregate(full, tokens),
        aggregate(select(indices, indices, "<="), tokens), tokens - indices * 100,
        selector_width(select(tokens, tokens, "<")),
    ):  # fmt: skip
        found, expected = evaluate(program, given), reference(program, listed)
        assert np.allclose(found, expected, rtol=1e-12, atol=0)


def test_the_ends_of_int64():
    most = 2**63 - 1
    for given in ([most, most - 1, 0], [-most, 5, -most], [most, -most, 1]):
        for program in (
            selector_width(select(tokens, tokens - 0, "<=")),
            selector_width(select(tokens, indices, "<")),
            selector_width(select(indices, tokens, "<")),
            selector_width(select(indices, tokens, "==")),
            sort(), -tokens, tokens + 1, tokens * tokens,
        ):  # fmt: skip
            assert evaluate(program, given) == reference(program, given), given


@pytest.mark.parametrize("size", [0, 1, 5, 1000, 200_000])
@pytest.mark.parametrize("most", [1, 30, 2000, 70_000, 2**40, 2**62])
def test_orders_are_stable(size, most):
    rng = np.random.default_rng(size)
    codes = rng.integers(0, most, size)
    codes[: size // 2] //= 7
    expected = np.argsort(codes, kind="stable")
    assert np.array_equal(order_of(codes), expected)
    found = Ranking(codes)
    assert np.array_equal(found.places, expected)
    assert np.array_equal(found.inverse()[expected], np.arange(size))
    if (ascending := found.ascending()) is not None:
        assert np.array_equal(ascending, np.sort(codes))


def numbers(kind, size):
    rng = np.random.default_rng(size)
    if kind == "normal":
        return np.round(rng.standard_normal(size), 3)
    if kind == "any bits":
        return rng.integers(-(2**63) + 1, 2**63 - 1, size).view(np.float64)
    if kind == "close":  # they differ in their last bits alone
        return 1.0 + rng.integers(0, 1 << 12, size) * 2.0**-52
    if kind == "special":
        return rng.choice([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 5e-324, -5e-324], size)
    whole = rng.integers(-(2**63) + 1, 2**63 - 1, size)
    return whole if kind == "whole" else np.where(rng.random(size) < 0.9, whole[:1], whole + 0)


@pytest.mark.parametrize("kind", ["normal", "any bits", "close", "special", "whole", "mostly one"])
@pytest.mark.parametrize("size", [1, 5000, 50_000])
def test_distinct_numbers_are_those_of_numpy(kind, size):
    data = numbers(kind, size)
    values, codes = ranking.distinct(data)
    expected, inverse = np.unique(data, return_inverse=True)
    assert np.array_equal(values, expected, equal_nan=True)
    assert np.array_equal(codes, inverse.reshape(-1))


@pytest.mark.parametrize("kind", ["normal", "close", "whole", "mostly one"])
def test_long_inputs_are_sorted_and_counted(kind):
    given = numbers(kind, 20_000)
    assert np.array_equal(evaluate(sort(), given), np.sort(given, kind="stable"))
    assert np.array_equal(evaluate(PROGRAMS["descending"], given), -np.sort(-given))
    same = evaluate(selector_width(select(tokens, tokens, "==")), given)
    _, inverse, counts = np.unique(given, return_inverse=True, return_counts=True)
    assert np.array_equal(same, counts[inverse])


@pytest.mark.parametrize("groups", [1, 7])
def test_dominance_at_length(groups):
    n, rng = 3000, np.random.default_rng(groups)
    x, y = rng.integers(0, 200, n), rng.permutation(n) % 1000
    given = x * 1000 + y
    key_x, key_y = tokens // 1000, tokens % 1000
    kind = indices % groups
    chosen = select(key_x, key_x, "<") & select(key_y, key_y, ">=") & select(kind, kind, "==")
    holds = (x[None] < x[:, None]) & (y[None] >= y[:, None])
    at = np.arange(n) % groups
    holds &= at[None] == at[:, None]
    counts = holds.sum(axis=1)
    assert np.array_equal(evaluate(selector_width(chosen), given), counts)
    whole = evaluate(aggregate(chosen, indices * 3, 0), given)
    assert np.allclose(whole, (holds * (3 * np.arange(n))).sum(axis=1) / np.maximum(counts, 1))
    floats = evaluate(aggregate(chosen, tokens / 8, 0.0), given)
    assert np.allclose(floats, (holds * (given / 8)).sum(axis=1) / np.maximum(counts, 1))


@pytest.mark.parametrize("size", [0, 1, 130, 100_000])
@pytest.mark.parametrize("groups", [1, 3, 127, 300])
def test_occurrences_count_within_groups(size, groups):
    codes = np.random.default_rng(size).integers(0, groups, size)
    found = occurrences(codes, groups, 1)
    seen = [0] * groups
    for code, number in zip(codes.tolist(), found.tolist(), strict=True):
        seen[code] += 1
        assert number == seen[code]


def test_steps_are_columns():
    for start, step, count in ((0, 1, 5), (4, -1, 5), (7, 3, 1), (-2, 5, 4), (0, 1, 0)):
        listed = [start + step * i for i in range(count)]
        column = Column.stepping(start, step, count)
        assert column.values() == listed
        assert column.take(slice(1, 3)).values() == listed[1:3]
        assert column.take(slice(None, None, -1)).values() == listed[::-1]
        if count > 2:
            assert column.take(np.array([2, 0])).values() == [listed[2], listed[0]]
            assert column.exact_bounds() == (min(listed), max(listed))


def test_sums_in_parts_are_those_of_python():
    values = np.arange(-3, 2 * parts.PART + 5)
    assert aggregate(full, tokens)(values)[0] == sum(map(int, values)) / len(values)
    large = np.full(parts.PART + 7, 2**62)
    large[0] += 2
    total = sum(map(int, large))
    assert aggregate(full, tokens)(large)[0] == total / len(large)


@pytest.mark.parametrize("arithmetic", ["float64", "exact"])
@pytest.mark.parametrize("kind", ["ints", "bools", "floats", "large"])
def test_the_sign_of_a_mean_is_that_of_the_mean(kind, arithmetic):
    """Only the sign of these means is asked for, so that nothing need be divided."""
    rng = random.Random(3)
    pool = {"ints": [-3, -1, 0, 1, 3], "bools": [True, False], "floats": [-0.5, 0.25, 0.0],
            "large": [2**62, -(2**62), 1, -1]}[kind]  # fmt: skip
    up_to_here = select(indices, indices, "<=")
    for selector in (up_to_here, select(tokens, tokens, "<"), select(indices, indices, "<")):
        mean = aggregate(selector, tokens, -1)
        for program in (
            mean < 0, mean <= 0, mean == 0, mean != 0, mean > 0, mean >= 0, mean >= False,
            (mean < 0) | (mean > 0), indicator(mean == 0) + mean, (mean < 0.0) & (mean < mean),
        ):  # fmt: skip
            for size in (1, 2, 30):
                given = [rng.choice(pool) for _ in range(size)]
                found = evaluate(program, given, arithmetic=arithmetic)
                expected = reference(program, given, arithmetic)
                assert agree(found, expected, 1.0), (program, given)


@pytest.mark.parametrize("span", [2**40, 2**62, 2**63 - 1])
def test_wide_integers_are_sorted(span):
    given = np.random.default_rng(0).integers(-span, span, 70_000)
    assert np.array_equal(evaluate(sort(), given), np.sort(given))
    assert np.array_equal(evaluate(PROGRAMS["descending"], given), np.sort(given)[::-1])


def test_the_ends_of_int64_are_sorted_by_packing(monkeypatch):
    monkeypatch.setattr(ranking, "RADIX", 2)
    for given in ([1, 0, 1, 2**63 - 1, 0], [-(2**62), 2**62, 0], [-(2**63) + 1, 2**63 - 1]):
        assert evaluate(sort(), given) == sorted(given)
        assert evaluate(PROGRAMS["descending"], given) == sorted(given)[::-1]


@pytest.mark.parametrize("size", [2000, 10_000, 50_000])
def test_the_mean_of_equal_floats_is_that_float(size):
    given = np.repeat(np.arange(1, size + 1) / 10, 3)
    same = select(tokens, tokens, "==")
    assert np.array_equal(evaluate(aggregate(same, tokens), given), given)
    up_to_here = same & select(indices, indices, "<=")
    assert np.array_equal(evaluate(aggregate(up_to_here, tokens), given), given)


@pytest.mark.parametrize("function", [round, floor, ceil])
@pytest.mark.parametrize("where", [0, 1, -1])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rounding_refuses_what_is_no_number_wherever_it_is(function, where, value):
    given = np.zeros(parts.PART + 500)
    given[where] = value
    with pytest.raises(RaspError):
        evaluate(function(tokens), given)


@pytest.mark.parametrize("large", [2**48, 2**61, 2**62])
@pytest.mark.parametrize("late", [False, True])
def test_streamed_sums_leave_int64_as_integers_of_python(large, late, monkeypatch):
    monkeypatch.setattr(demand, "STREAM", 16)
    monkeypatch.setattr(demand, "BLOCK", 7)
    monkeypatch.setattr(engine, "BLOCK", 7)
    program = aggregate(select(indices % 3, indices % 3, "=="), tokens)
    n = 200
    given = [large + i if not late or i > n // 2 else 1 for i in range(n)]
    for sign in (1, -1):
        signed = [sign * value for value in given]
        assert agree(evaluate(program, signed), reference(program, signed), 1.0)


def test_sums_at_the_edge_of_exact_floats():
    for total in (2**53 - 1, 2**53, 2**53 + 1, -(2**53)):
        for rest in (2, 6, 106, 254):
            given = [total] + [0] * rest
            mean = aggregate(full, tokens)
            assert evaluate(mean, given) == reference(mean, given)


def test_a_nan_is_never_the_greatest():
    for given in ([1.0, np.nan], [np.nan, 1.0, 1.0], [np.nan], [np.nan, -np.inf], [2, np.nan, "a"]):
        for among in (None, select(indices, indices, "<=")):
            program = selector_width(hardmax(tokens, among=among))
            try:
                expected = reference(program, given)
            except RaspError:
                continue
            assert evaluate(program, given) == expected
    assert selector_width(hardmax(tokens))([1.0, np.nan]) == [1, 1]
    assert selector_width(hardmax(tokens))([np.nan, np.nan]) == [0, 0]


def test_means_of_integers_in_float32():
    mean = aggregate(full, tokens)
    for program in (
        mean, mean == aggregate(full, tokens * 1.0), mean + 0,
        aggregate(select(indices, indices, "<="), tokens), aggregate(full, tokens > 1),
    ):  # fmt: skip
        for given in ([1, 1, 3], [1, 2, 2, 7], [2, 2]):
            found = evaluate(program, given, arithmetic="float32")
            assert found == reference(program, given, "float32")


def test_a_batch_does_not_stream(monkeypatch):
    monkeypatch.setattr(demand, "STREAM", 2)
    program = aggregate(select(indices % 2, indices % 2, "=="), tokens)
    rows = np.arange(24).reshape(4, 6) ** 2
    expected = [reference(program, row) for row in rows.tolist()]
    assert np.array_equal(program.batch(rows), expected)


@pytest.mark.parametrize("dtype", ["int8", "int64"])
@pytest.mark.parametrize("codes", [[0, -1], [2, 0], [0, 127]])
def test_codes_outside_of_their_vocabulary_are_refused(codes, dtype):
    with pytest.raises(RaspError, match="outside of its vocabulary"):
        evaluate(tokens, Column("c", np.array(codes, dtype), vocabulary=["a", "b"]))
    with pytest.raises(RaspError, match="outside of its vocabulary"):
        Column("c", np.array([256, 1]), vocabulary=["a", "b"])  # 256 is 0 in a byte


@pytest.mark.parametrize("part", [1 << 15, 50])
def test_a_ranking_is_read_in_other_ways(part, monkeypatch):
    for module in (parts, kernels, ranking):
        monkeypatch.setattr(module, "PART", part)
    rank = selector_width(
        select(tokens, tokens, "<") | (select(tokens, tokens, "==") & select(indices, indices, "<"))
    )
    at = select(rank, indices, "==")
    rng = random.Random(1)
    for given in ([rng.randint(0, 9) for _ in range(N)], [rng.random() for _ in range(N)]):
        for program in (
            rank * 2 + indices, aggregate(select(rank, length - 1 - indices, "=="), tokens),
            aggregate(select(rank, indices + 1, "=="), tokens, -1), aggregate(at, rank),
            aggregate(at & select(tokens, 3, ">"), tokens, -1), aggregate(at, tokens * 1.5),
            aggregate(select(indices, rank, "=="), tokens),
        ):  # fmt: skip
            expected = reference(program, given)
            assert agree(evaluate(program, given), expected, 1.0)
            some = [7, 3, 149, 0]
            found = evaluate(program, given, positions=some)
            assert agree(found, [expected[i] for i in some], 1.0)
