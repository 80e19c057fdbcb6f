"""The engine against the reference: random programs, random inputs, every arithmetic."""

from __future__ import annotations

import collections
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raspire import (
    aggregate,
    hardmax,
    indices,
    length,
    select,
    selector_width,
    tokens,
)
from raspire.errors import RaspError, RaspTypeError, RaspValueError
from raspire.evaluate import (
    batch,
    blocks,
    codes,
    column,
    columns,
    demand,
    elementwise,
    engine,
    evaluate,
    kernels,
    parts,
    ranking,
    reference,
)
from raspire.program.nodes import Aggregate, Selector, Width
from raspire.program.walk import topological
from tests.evaluate.programs import Generator, agree, depth, random_input

SEEDS = st.integers(min_value=0, max_value=2**32)


def selections(program, given, arithmetic="float64"):
    """Which kinds of rows occur in the program's selectors: empty, single, multiple."""
    kinds = set()
    for node in topological(program):
        if isinstance(node, Selector):
            for row in reference(node, given, arithmetic):
                kinds.add(("empty", "single", "multiple")[min(2, sum(row))])
    return kinds


class Tally:
    """What the random programs were like."""

    def __init__(self):
        self.counts = collections.Counter()

    def check(self, seed, arithmetic="float64", inputs=2):
        rng = random.Random(seed)
        program = Generator(rng, exact=arithmetic == "exact").sop(rng.randint(2, 5))
        self.counts["programs"] += 1
        self.counts["deep"] += depth(program) >= 2
        for _ in range(inputs):
            tokens_ = random_input(rng)
            try:
                expected = reference(program, tokens_, arithmetic)
            except RaspError:
                self.counts["errors"] += 1
                self.accepts_or_refuses(program, tokens_, arithmetic)
                continue
            found = evaluate(program, tokens_, arithmetic=arithmetic)
            assert agree(found, expected, 1.0), (seed, tokens_, found, expected)
            self.narrow(program, tokens_, arithmetic, expected)
            self.counts["equal"] += 1
            self.counts.update(selections(program, tokens_, arithmetic))

    def narrow(self, program, tokens_, arithmetic, expected):
        """The same integers in the narrowest type: nothing wraps."""
        if not tokens_ or any(type(v) is not int or abs(v) >= 2**62 for v in tokens_):
            return
        dtype = parts.integer_type(min(tokens_), max(tokens_))
        given = columns.Column("i", np.array(tokens_, dtype=dtype))
        found = evaluate(program, given, arithmetic=arithmetic)
        found = found.tolist() if isinstance(found, np.ndarray) else found.values()
        assert agree(found, expected, 1.0), (tokens_, dtype, found, expected)
        self.counts[str(dtype)] += 1

    def accepts_or_refuses(self, program, tokens_, arithmetic):
        """The reference looks at every position, the engine at those wanted: it may succeed."""
        try:
            evaluate(program, tokens_, arithmetic=arithmetic)
        except RaspError:
            self.counts["refused"] += 1

    def report(self):
        counts = self.counts
        print(
            f"\n{counts['programs']} programs, {counts['deep']} of depth 2 or more, "
            f"{counts['equal']} results equal, {counts['errors']} errors; programs with an empty "
            f"selection {counts['empty']}, single {counts['single']}, multiple {counts['multiple']}"
        )
        assert counts["deep"] >= 0.3 * counts["programs"]
        assert min(counts["empty"], counts["single"], counts["multiple"]) > 0


def cramp(monkeypatch, how="tables"):
    """No tables, tiny blocks and parts: what else only large inputs come to."""
    for module in (parts, kernels, ranking):
        monkeypatch.setattr(module, "PART", 2 if how == "tables" else 3)
    if how == "packed":
        monkeypatch.setattr(ranking, "RADIX", 2)
        monkeypatch.setattr(ranking, "SHORT", 0)
        return
    for module in (kernels, codes, elementwise, columns):
        monkeypatch.setattr(module, "TABLE", 0)
        monkeypatch.setattr(module, "ROOM", 0)
    monkeypatch.setattr(demand, "STREAM", 2)
    monkeypatch.setattr(demand, "READ", 4)
    monkeypatch.setattr(demand, "BLOCK", 3)
    monkeypatch.setattr(engine, "BLOCK", 3)
    monkeypatch.setattr(blocks, "CELLS", 8)


@pytest.mark.parametrize(
    ("arithmetic", "cramped"),
    [("float64", ""), ("exact", ""), ("float64", "tables"), ("float64", "packed")],
)
def test_random_programs(arithmetic, cramped, capsys, monkeypatch):
    tally = Tally()
    if cramped:
        cramp(monkeypatch, cramped)

    @settings(max_examples=200, deadline=None, derandomize=True, database=None)
    @given(SEEDS)
    def run(seed):
        tally.check(seed, arithmetic)

    run()
    with capsys.disabled():
        tally.report()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arithmetic", "cramped", "count"),
    [
        ("float64", "", 5000),
        ("exact", "", 2000),
        ("float64", "tables", 2000),
        ("float64", "packed", 2000),
    ],
)
def test_many_random_programs(arithmetic, cramped, count, capsys, monkeypatch):
    tally = Tally()
    if cramped:
        cramp(monkeypatch, cramped)
    for seed in range(count):
        tally.check(seed, arithmetic)
    with capsys.disabled():
        tally.report()


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(SEEDS)
def test_batches_equal_single_runs(seed):
    rng = random.Random(seed)
    program = Generator(rng).sop(rng.randint(1, 4))
    inputs = [random_input(rng, 4) for _ in range(5)]
    inputs += [inputs[0], inputs[1][::-1]]
    try:
        expected = [reference(program, tokens_) for tokens_ in inputs]
    except RaspError:
        return
    found = batch(program, inputs)
    assert all(agree(f, e, 1.0) for f, e in zip(found, expected, strict=True)), inputs


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(SEEDS)
def test_positions(seed):
    rng = random.Random(seed)
    program = Generator(rng).sop(rng.randint(1, 4))
    tokens_ = random_input(rng)
    wanted = [rng.randrange(len(tokens_)) for _ in range(3)] if tokens_ else []
    try:
        expected = [reference(program, tokens_)[i] for i in wanted]
    except RaspError:
        return
    assert agree(evaluate(program, tokens_, positions=wanted), expected, 1.0)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(SEEDS)
def test_selectors_are_rows(seed):
    rng = random.Random(seed)
    program, tokens_ = Generator(rng).selector(3), random_input(rng)
    try:
        expected = reference(program, tokens_)
    except RaspError:
        return
    assert evaluate(program, tokens_) == expected


def test_forms_of_input_and_output():
    doubled = tokens * 2
    assert doubled([1, 2]) == [2, 4]
    assert doubled((1.5,)) == [3.0]
    assert doubled("ab") == ["aa", "bb"]
    found = doubled(np.array([1, 2]))
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.int64
    assert tokens(np.array(["a", "bc"])).tolist() == ["a", "bc"]
    assert evaluate(doubled, column([1, 2])).values() == [2, 4]
    assert doubled("") == []
    assert evaluate(doubled, np.array([])).shape == (0,)
    with pytest.raises(RaspTypeError, match="no program"):
        evaluate(5, "abc")  # type: ignore[arg-type]
    with pytest.raises(RaspTypeError, match="an input is a sequence"):
        doubled(5)
    with pytest.raises(RaspValueError, match="flat array"):
        doubled(np.zeros((2, 2)))
    with pytest.raises(RaspValueError, match="outside the input"):
        evaluate(doubled, "abc", positions=[3])


def test_types_are_kept_apart():
    prefix = aggregate(select(indices, indices, "<="), indices)
    assert str(prefix("abc")) == "[0, 0.5, 1]"
    assert str((prefix * 2)("abc")) == "[0, 1.0, 2]"
    shifted = aggregate(select(indices, indices - 1, "=="), tokens)
    assert shifted("ab") == [0, "a"]
    assert str(shifted([0.5, True])) == "[0, 0.5]"


def test_integers_are_promoted_and_never_wrap():
    large = [2**62, 2**62, -(2**63)]
    for program in (tokens + tokens, tokens * tokens, -tokens, abs(tokens), tokens * indices):
        assert program(large) == reference(program, large)
    total = aggregate(select(indices, indices, "<="), tokens) * (indices + 1)
    assert total(large) == [2**62, 2**63, 0]
    back = tokens * 2**10 // 2**10
    assert evaluate(back, np.array([2**60])).tolist() == [2**60]


@pytest.mark.parametrize("comparison", ["<", "<=", "==", "!=", ">", ">="])
def test_the_least_int64_has_no_negative_and_is_summed_all_the_same(comparison):
    least = -(2**63)
    mean = aggregate(select(indices, indices, comparison), tokens, -1)
    window = select(indices, indices + 1, "<=") & select(indices, indices - 1, ">=")
    programs = (
        mean,
        aggregate(window, tokens),
        aggregate(select(indices, indices, "<=") & select(tokens, tokens, comparison), tokens),
        selector_width(select(tokens, length, comparison)),
    )
    for values in ([least], [least, least], [least, least, 2], [0, least, 1, least, least]):
        for program in programs:
            expected = reference(program, values)
            assert program(values) == expected
            assert program.batch([values, [1]])[0] == expected
            assert evaluate(program, np.array(values)).tolist() == expected


def test_nan_and_infinity():
    nan, inf = float("nan"), float("inf")
    given = [nan, 1.0, inf, nan, 2.0]
    for symbol in ("==", "!=", "<", "<=", ">", ">="):
        for selector in (select(tokens, tokens, symbol), ~select(tokens, tokens, symbol)):
            assert selector_width(selector)(given) == reference(selector_width(selector), given)
    prefix = aggregate(select(indices, indices, "<="), tokens)
    assert str(prefix([1.0, inf, 2.0])) == "[1.0, inf, inf]"
    assert str(prefix([-inf, inf])) == "[-inf, nan]"
    assert prefix([1.7e308] * 4) == [1.7e308] * 4


def bound(values, n):
    """Twice eps times log2 N times the mean absolute value."""
    return 2 * np.finfo(float).eps * np.log2(n) * float(np.mean(np.abs(values)))


def exact_mean(values):
    return sum(map(Fraction, values)) / len(values)


PLANS = {
    "groups": (select(indices % 3, indices % 3, "=="), lambda i, j: i % 3 == j % 3),
    "running": (select(indices, indices, "<="), lambda i, j: j <= i),
    "running down": (select(indices, indices, ">"), lambda i, j: j > i),
    "running in groups": (
        select(indices % 3, indices % 3, "==") & select(indices, indices, "<="),
        lambda i, j: j % 3 == i % 3 and j <= i,
    ),
    "dominance": (
        select(indices * 7 % 64, indices * 7 % 64, "<=") & select(indices, indices, "<="),
        lambda i, j: j * 7 % 64 <= i * 7 % 64 and j <= i,
    ),
    "blocks": (
        select(indices, indices, lambda key, query: (key + query) % 3 == 0),
        lambda i, j: (i + j) % 3 == 0,
    ),
}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("kind", ["adversarial", "random", "cancelling"])
@pytest.mark.parametrize("cramped", [False, True])
def test_means_of_floats_are_within_the_bound(plan, kind, cramped, monkeypatch):
    """1e16 in one group next to 1 in another: nothing may be subtracted."""
    if cramped:
        cramp(monkeypatch)
    n, rng = 200, np.random.default_rng(0)
    values = {
        "adversarial": np.where(np.arange(n) % 3 == 0, 1e16, 1.0) + np.arange(n) * 0.1,
        "random": rng.standard_normal(n),
        "cancelling": rng.standard_normal(n) * 10.0 ** rng.integers(-9, 9, n),
    }[kind]
    selector, holds = PLANS[plan]
    found = evaluate(aggregate(selector, tokens), values)
    for i in range(n):
        chosen = [values[j] for j in range(n) if holds(i, j)]
        if chosen:
            error = abs(Fraction(float(found[i])) - exact_mean(chosen))
            assert error <= bound(chosen, n), (i, float(error))


@pytest.mark.parametrize("plan", PLANS)
def test_every_plan_is_exact_on_integers_and_keeps_equal_values(plan):
    selector, _ = PLANS[plan]
    n = 90
    given = [(k * k) % 5 for k in range(n)]
    for values in (given, [2**61 + v for v in given], [0.1] * n, ["abc"] * n, [True] * n):
        program = aggregate(selector, tokens, None)
        assert agree(program(values), reference(program, values), 0.0)
    for program in (selector_width(selector), Aggregate(selector, indices, 0, "rasp")):
        assert agree(program(given), reference(program, given), 0.0)


def test_equal_floats_stay_equal():
    given = [0.1, 0.7, 0.1, 0.1, 0.7]
    same = aggregate(select(tokens, tokens, "=="), tokens)
    assert same(given) == given
    assert aggregate(select(tokens, tokens, "<="), tokens)([0.1] * 3) == [0.1] * 3


def test_hard_maximum_of_groups():
    best = aggregate(hardmax(tokens, select(indices // 3, indices // 3, "==")), indices)
    assert best([1, 5, 5, 2, 0, 1]) == [1.5, 1.5, 1.5, 3, 3, 3]
    assert best([1.5, 5, 5.0, 2, True, 1]) == reference(best, [1.5, 5, 5.0, 2, True, 1])


def test_streams_are_formed_in_blocks(monkeypatch):
    monkeypatch.setattr(demand, "STREAM", 16)
    monkeypatch.setattr(demand, "BLOCK", 7)
    monkeypatch.setattr(engine, "BLOCK", 7)
    n = 40
    left = aggregate(select(indices, indices % 4, "=="), tokens)
    right = aggregate(select(indices, 4 + indices // 20, "=="), tokens, 3)
    keys = select(indices // 10, indices % 6, "==")
    rng = random.Random(5)
    pools = ([1.5, -2.0, 0.25], [1, 2, 5], [1, 2.5, True], [2**62, 1], [True, False])
    for pool in pools:
        given = [rng.choice(pool) for _ in range(n)]
        for value in (left * right, right, left, where_even(left, right)):
            for selector in (keys, keys & select(tokens, 1, ">=")):
                program = aggregate(selector, value, -1)
                wanted = list(range(0, n, 7))
                expected = [reference(program, given)[i] for i in wanted]
                found = evaluate(program, given, positions=wanted)
                assert agree(found, expected, 2.0), (pool, found, expected)
    text = aggregate(keys, aggregate(select(indices, indices // 10, "=="), tokens))
    assert evaluate(text, "ab" * 20, positions=[1, 2]) == ["b", "a"]


def test_a_program_read_at_many_positions_is_formed_in_blocks(monkeypatch):
    monkeypatch.setattr(demand, "READ", 16)
    monkeypatch.setattr(engine, "BLOCK", 7)
    mean = aggregate(select(indices % 4, indices % 4, "=="), tokens)
    moved = aggregate(select(indices, indices - 3, "=="), mean, "none")
    for program in (moved, where_even(mean * 2, moved), tokens, indices + tokens):
        given = [0.5, 1.5, -2.0, 3.0] * 10
        assert agree(evaluate(program, given), reference(program, given), 2.0)
        given = list(range(41))
        assert agree(evaluate(program, given), reference(program, given), 2.0)


def test_a_budget_is_kept():
    from raspire.errors import BudgetError

    with pytest.raises(BudgetError, match="more than its budget") as caught:
        evaluate(tokens * indices + tokens, np.arange(10**5), budget=10**6)
    assert "1,000,000 bytes" in str(caught.value)
    with pytest.raises(BudgetError, match="matrix"):
        evaluate(select(indices, indices, "<"), "a" * 100, budget=1000)


def where_even(a, b):
    from raspire import where

    return where(indices % 2 == 0, a, b)


def test_positions_computed_are_few():
    from raspire import explain

    once = aggregate(select(indices, indices % 3, "=="), tokens * tokens)
    plan = explain(once, 1000, positions=[5, 6])
    assert dict(plan.computed)["indices"] == 2
    assert plan.positions < 20
    assert "look-up by address" in str(plan)


def test_plans_are_shown():
    from raspire import explain

    text = str(explain(selector_width(select(tokens, tokens, "!=")), 100))
    assert "running sums in one order + running sums in one order" in text
    both = select(tokens, tokens, "<") & select(indices, indices, "<")
    assert "two-way dominance" in str(explain(selector_width(both), 100))
    opaque = select(tokens, tokens, lambda k, q: k == q)
    assert "blocks" in str(explain(selector_width(opaque), 100))
    nothing = select(tokens, tokens, "<") & select(tokens, tokens, ">")
    assert "nothing is selected" in str(explain(selector_width(nothing), 100))
    assert explain(aggregate(select(indices, length - 1, "=="), tokens), 0).steps
    assert explain(tokens, "abc").length == 3
    everything = select(tokens, tokens, "<") | select(tokens, tokens, ">=")
    assert "one mean of all keys" in str(explain(aggregate(everything, tokens), 100))


def test_errors_have_a_place_and_no_traceback_of_ours():
    from raspire.errors import Place

    where = Place("p.rasp", 3, 7, "aggregate(full_s, tokens)")
    from raspire import full

    program = Aggregate(full, tokens).at(where)
    with pytest.raises(RaspTypeError) as caught:
        program("ab")
    assert str(caught.value).startswith("p.rasp:3:7: several selected values")
    assert "'a', 'b'" in str(caught.value)


def test_long_chains_and_wide_sums():
    chain = tokens
    for _ in range(5000):
        chain = chain + 1
    assert chain([1, 2.5]) == [5001, 5002.5]
    total = tokens
    for shift in range(60):
        total = total + aggregate(select(indices, indices - shift, "=="), tokens)
    given = list(range(50))
    assert total(given) == reference(total, given)


def test_length_is_a_constant_of_the_plan():
    assert length("abcd") == [4] * 4
    assert Width(select(length, 4, "=="))("abcd") == [4] * 4
