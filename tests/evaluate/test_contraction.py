"""Contractions fire on what is one, whatever its layout, and give what NumPy gives."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raspire.evaluate import contraction, evaluate
from raspire.evaluate.contraction.boxes import Box, box_of, hull
from raspire.evaluate.contraction.kernels import dot, run_length
from raspire.program.embedding import (
    aggregate,
    exp,
    full,
    hardmax,
    indices,
    length,
    minimum,
    recip,
    select,
    sqrt,
    tokens,
    where,
)

EPSILON = 2.0**-52


def fetch(value, address, default=0):
    return aggregate(select(indices, address, "=="), value, default)


def digits(base, *sizes):
    """The coordinates of a position in a row-major block, wrapped outside of it."""
    strides = [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]
    return [(indices - base) // stride % size for stride, size in zip(strides, sizes, strict=True)]


def fired(program, count, positions, row):
    """The values by the plan of contractions, which there must be."""
    plan = contraction.plan(program, count, positions)
    assert plan is not None
    found = plan.run(row)
    assert found is not None
    return plan, found


def largest_array(plan):
    return max(step.size for step in plan.steps)


# ---------------------------------------------------------------- products of matrices


def product_program(rows, inner, columns, place_a, place_b):
    """One position a product A[i,l] B[l,j]; the mean over l. ``place_*`` says where entries lie."""
    base = rows * inner + inner * columns
    i, l, j = digits(base, rows, inner, columns)
    product = fetch(tokens, place_a(i, l)) * fetch(tokens, place_b(l, j))
    place = indices - base
    key = place // (inner * columns) * columns + place % columns
    mean = aggregate(select(key, i * columns + j, "=="), product)
    size = rows * inner * columns
    positions = base + np.add.outer(np.arange(rows) * inner * columns, np.arange(columns)).ravel()
    return mean * inner, base + size, positions


ROWS, INNER, COLUMNS = 5, 300, 7
LAYOUTS = {
    "row-major": (
        lambda i, l: i * INNER + l,
        lambda l, j: ROWS * INNER + l * COLUMNS + j,
    ),
    "column-major": (
        lambda i, l: l * ROWS + i,
        lambda l, j: ROWS * INNER + j * INNER + l,
    ),
    "backwards": (
        lambda i, l: (ROWS - 1 - i) * INNER + l,
        lambda l, j: ROWS * INNER + (INNER - 1 - l) * COLUMNS + j,
    ),
    "B before A": (
        lambda i, l: INNER * COLUMNS + i * INNER + l,
        lambda l, j: l * COLUMNS + j,
    ),
    "columns rotated": (
        lambda i, l: i * INNER + (l + 1) % INNER,
        lambda l, j: ROWS * INNER + l * COLUMNS + (j + 3) % COLUMNS,
    ),
    "columns of A in two halves": (
        lambda i, l: where(l < 100, i * 100 + l, 100 * ROWS + i * 200 + (l - 100)),
        lambda l, j: ROWS * INNER + l * COLUMNS + j,
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_product_of_matrices_is_a_contraction_in_any_layout(layout):
    place_a, place_b = LAYOUTS[layout]
    program, count, positions = product_program(ROWS, INNER, COLUMNS, place_a, place_b)
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((ROWS, INNER)), rng.standard_normal((INNER, COLUMNS))
    row = np.zeros(count)
    row[positions_of(place_a, ROWS, INNER)] = a
    row[positions_of(place_b, INNER, COLUMNS)] = b
    plan, found = fired(program, count, positions, row)
    np.testing.assert_allclose(found.reshape(ROWS, COLUMNS), a @ b, atol=1e-12)
    assert largest_array(plan) <= INNER * COLUMNS  # a factor at most, never the products
    assert any("contraction" in line for line in plan.lines())


def positions_of(place, rows, columns):
    """The addresses of a matrix's entries, by running the layout itself."""
    addresses = place(indices // columns, indices % columns)
    return np.array(addresses([0] * (rows * columns))).reshape(rows, columns)


def test_three_factors_that_have_nothing_to_do_with_attention():
    """Y[i,r] = sum over j, k of T[i,j,k] B[j,r] C[k,r], the matricised tensor product."""
    ni, nj, nk, nr = 4, 6, 5, 3
    base_b, base_c = ni * nj * nk, ni * nj * nk + nj * nr
    base = base_c + nk * nr
    i, j, k, r = digits(base, ni, nj, nk, nr)
    t = fetch(tokens, (i * nj + j) * nk + k)
    product = t * fetch(tokens, base_b + j * nr + r) * fetch(tokens, base_c + k * nr + r)
    place = indices - base
    key = place // (nj * nk * nr) * nr + place % nr
    program = aggregate(select(key, i * nr + r, "=="), product) * (nj * nk)
    rng = np.random.default_rng(2)
    tensor, b, c = (rng.standard_normal(s) for s in ((ni, nj, nk), (nj, nr), (nk, nr)))
    row = np.zeros(base + ni * nj * nk * nr)
    row[:base] = np.concatenate([tensor.ravel(), b.ravel(), c.ravel()])
    positions = base + np.add.outer(np.arange(ni) * nj * nk * nr, np.arange(nr)).ravel()
    plan, found = fired(program, len(row), positions, row)
    expected = np.einsum("ijk,jr,kr->ir", tensor, b, c)
    np.testing.assert_allclose(found.reshape(ni, nr), expected, atol=1e-12)
    assert largest_array(plan) < ni * nj * nk * nr
    np.testing.assert_allclose(
        found, evaluate(program, row, positions=positions, contract=False), atol=1e-12
    )


def test_a_bilinear_form_and_a_square():
    """The mean of x_i M_ij x_j over both axes, and of a square: one factor twice."""
    n = 6
    i, j = digits(n + n * n, n, n)
    x = np.arange(1.0, n + 1)
    m = np.random.default_rng(3).standard_normal((n, n))
    row = np.concatenate([x, m.ravel(), np.zeros(n * n)])
    inside = where(indices >= n + n * n, 1, 0)
    everything = select(inside, 1, "==")
    form = aggregate(everything, fetch(tokens, i) * fetch(tokens, n + i * n + j) * fetch(tokens, j))
    square = aggregate(everything, fetch(tokens, i) * fetch(tokens, i))
    _, found = fired(form, len(row), [0], row)
    np.testing.assert_allclose(found * n * n, x @ m @ x, rtol=1e-13)
    _, found = fired(square, len(row), [0], row)
    np.testing.assert_allclose(found * n, x @ x, rtol=1e-13)


# ---------------------------------------------------------------- copies


def test_copies_by_address_are_views():
    rows, columns = 6, 9
    i, j = digits(0, columns, rows)
    programs = {
        "transpose": fetch(tokens, j * columns + i),
        "reverse": aggregate(select(indices, length - 1 - indices, "=="), tokens),
    }
    row = np.random.default_rng(4).standard_normal(rows * columns)
    expected = {"transpose": row.reshape(rows, columns).T.ravel(), "reverse": row[::-1]}
    for name, program in programs.items():
        plan, found = fired(program, len(row), None, row)
        np.testing.assert_array_equal(found, expected[name])
        assert all(step.size == 0 for step in plan.steps), name


def test_a_shift_off_the_end_is_two_pieces():
    program = fetch(tokens, indices - 1, default=9)
    row = np.arange(1.0, 70)
    _, found = fired(program, len(row), None, row)
    np.testing.assert_array_equal(found, [9, *row[:-1]])


def test_only_addressed_positions_are_read():
    program = fetch(tokens, indices % 4) * 2.0
    row = np.full(1000, np.nan)
    row[:4] = 1, 2, 3, 4
    _, found = fired(program, len(row), range(996, 1000), row)
    np.testing.assert_array_equal(found, [2, 4, 6, 8])


# ---------------------------------------------------------------- attention, written here


def attention_program(n, d, mask, stable):
    """Softmax attention of one head with Q, K, V in the tokens, V by columns, K from the end."""
    q, k, v, seen = 0, n * d, 2 * n * d, 3 * n * d
    base = 3 * n * d + n
    i, j, a = digits(base, n, n, d)
    queries = fetch(tokens, q + i * d + a)
    keys = fetch(tokens, k + (n * d - 1) - (j * d + a))
    place = indices - base
    score = aggregate(
        select(place // d, place // d % (n * n), "=="), queries * keys
    ) * d / sqrt(d)  # fmt: skip
    visible = {
        "causal": select(j <= i, True, "=="),
        "padding": select(fetch(tokens, seen + j), 1, "=="),
    }.get(mask)

    def row_of(column):
        key = place // (n * d) * d + place % d
        rows = select(key, place // (n * d) % n * d + column, "==")
        return rows & visible if visible is not None else rows

    if stable:
        top = aggregate(hardmax(score, among=row_of(0)), score)
        score = minimum(score - top, 0)
    weight = fetch(exp(score), base + (i * n + j) * d)
    values = fetch(tokens, v + a * n + j)
    row = row_of(place % d)
    return aggregate(row, weight * values) / aggregate(row, weight), base + n * n * d, base


def attention(q, k, v, seen):
    scores = np.where(seen, q @ k.T / np.sqrt(q.shape[1]), -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ v


@pytest.mark.parametrize("mask", ["none", "causal", "padding"])
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 3), (5, 1), (4, 3), (12, 8)])
def test_attention_in_a_layout_of_its_own(n, d, mask, stable):
    program, count, base = attention_program(n, d, mask, stable)
    rng = np.random.default_rng(n * d)
    q, k, v = rng.standard_normal((3, n, d))
    flags = np.ones(n)
    flags[1 + n // 2 :] = 0
    row = np.zeros(count)
    row[:base] = np.concatenate([q.ravel(), k.ravel()[::-1], v.T.ravel(), flags])
    seen = {"none": np.ones((n, n), bool), "causal": np.tri(n, dtype=bool)}.get(
        mask, np.broadcast_to(flags == 1, (n, n))
    )
    positions = base + np.add.outer(np.arange(n) * n * d, np.arange(d)).ravel()
    plan, found = fired(program, count, positions, row)
    np.testing.assert_allclose(found.reshape(n, d), attention(q, k, v, seen), atol=1e-13)
    slow = evaluate(program, row, positions=positions, contract=False)
    np.testing.assert_allclose(found, slow, rtol=0, atol=1e-11)
    if n > 5:
        assert largest_array(plan) <= n * n


# ---------------------------------------------------------------- plans


def test_a_plan_is_kept_with_its_program_and_serves_other_tokens():
    program = aggregate(
        select(indices // 4, indices // 4, "=="), tokens * fetch(tokens, indices % 4)
    )
    first = contraction.plan(program, 100, range(0, 100, 4))
    assert first is not None
    assert contraction.plan(program, 100, np.arange(0, 100, 4)) is first
    assert contraction.plan(program, 104, range(0, 100, 4)) is not first
    for seed in range(2):
        row = np.random.default_rng(seed).standard_normal(100)
        expected = (row * np.tile(row[:4], 25)).reshape(25, 4).mean(axis=1)
        np.testing.assert_allclose(first.run(row), expected, rtol=1e-13)
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None


def test_a_plan_beyond_the_budget_is_not_used():
    program = aggregate(select(indices // 8, indices // 8, "=="), exp(tokens))
    assert contraction.plan(program, 8000, None) is not None
    assert contraction.plan(program, 8000, None, budget=1000) is None


@pytest.mark.parametrize(
    "program",
    [
        tokens + indices,  # nothing to contract
        aggregate(select(tokens, tokens, "=="), tokens),  # keys are values
        aggregate(select(indices, indices, "<="), tokens),  # no equality
        aggregate(select(indices // 3, indices // 3, "=="), tokens),  # the last group is cut off
        aggregate(select(indices * 3 % 7, indices % 7, "=="), tokens),  # not a mixed radix
        aggregate(select(indices // 2 + indices % 2, indices, "=="), tokens),  # keys collide
        aggregate(select(indices // 4, indices // 4, "=="), indices),  # an exact mean of ints
        aggregate(full, tokens) == 1,  # not a float
        where(aggregate(full, tokens) > 0, tokens, 1.0),  # a decision on a rounded sum
        aggregate(select(indices, indices, "=="), tokens // 1, None),
    ],
)
def test_what_is_not_proved_does_not_fire(program):
    plan = contraction.plan(program, 64, None)
    row = np.random.default_rng(5).standard_normal(64)
    assert plan is None or np.array_equal(plan.run(row), evaluate(program, row, contract=False))


def test_refusals_name_themselves_by_having_no_plan():
    for program in (
        aggregate(select(tokens, tokens, "=="), tokens),
        aggregate(select(indices // 3, indices // 3, "=="), tokens),
        aggregate(select(indices // 2 + indices % 2, indices, "=="), tokens),
        where(aggregate(full, tokens) > 0, tokens, 1.0),
    ):
        assert contraction.plan(program, 64, None) is None


def test_what_leaves_the_finite_numbers_is_left_to_the_general_engine():
    program = aggregate(select(indices // 4, indices // 4, "=="), exp(tokens))
    plan = contraction.plan(program, 64, None)
    assert plan is not None
    assert plan.run(np.full(64, 800.0)) is None
    assert plan.run(np.full(64, np.nan)) is None
    inverse = aggregate(select(indices, length - 1 - indices, "=="), recip(tokens))
    plan = contraction.plan(inverse, 3, None)
    assert plan is not None
    assert plan.run(np.array([1.0, 0.0, 2.0])) is None
    np.testing.assert_array_equal(plan.run(np.array([1.0, 4.0, 2.0])), [0.5, 0.25, 1.0])
    hidden = aggregate(
        select(indices // 4, indices // 4, "==") & select(indices % 4, 0, "=="), tokens
    )
    row = np.where(np.arange(64) % 4 == 0, 1.0, np.inf)
    found = contraction.plan(hidden, 64, None)
    assert found is None or found.run(row) is None or (found.run(row) == 1).all()


def test_lists_and_whole_numbers_stay_exact():
    program = aggregate(
        select(indices // 4, indices // 4, "=="), tokens * fetch(tokens, indices % 4)
    )
    assert evaluate(program, [1, 2, 3, 5] * 16)[:4] == [39 / 4] * 4
    big = 3**30
    assert evaluate(program, np.full(64, big)).tolist() == [big**2] * 64


# ---------------------------------------------------------------- accuracy


def test_a_huge_group_leaves_its_neighbour_alone():
    n = 64
    program = aggregate(select(indices // n, indices // n, "=="), tokens * fetch(tokens, indices))
    row = np.concatenate([np.full(n, 1e16), np.full(n, 1.0), -np.full(n, 1e16)])
    _, found = fired(program, len(row), None, row)
    np.testing.assert_array_equal(found[n : 2 * n], [1.0] * n)
    np.testing.assert_allclose(found[[0, -1]], 1e32, rtol=1e-14)


@pytest.mark.parametrize("terms", [2, 3, 7, 24, 385])
def test_a_mean_of_equal_values_is_that_value(terms):
    program = aggregate(select(indices // terms, indices // terms, "=="), tokens)
    row = np.repeat([0.1, 1 / 3, 1e300], terms)
    _, found = fired(program, len(row), None, row)
    np.testing.assert_array_equal(found, row)


@pytest.mark.parametrize("terms", [2, 3, 31, 64, 385, 5000])
def test_means_are_within_the_promised_error(terms):
    rng = np.random.default_rng(terms)
    rows = 3
    program = aggregate(
        select(indices // terms, indices // terms, "=="),
        tokens * fetch(tokens, (indices + terms) % (rows * terms)),
    )
    row = rng.standard_normal(rows * terms) * 10.0 ** rng.integers(-8, 9, rows * terms)
    _, found = fired(program, len(row), range(0, len(row), terms), row)
    for k in range(rows):
        one = row[k * terms : (k + 1) * terms]
        two = np.roll(row, -terms)[k * terms : (k + 1) * terms]
        products = [a * b for a, b in zip(one.tolist(), two.tolist(), strict=True)]
        bound = 2 * EPSILON * math.log2(len(row)) * math.fsum(map(abs, products)) / terms
        assert abs(found[k] - math.fsum(products) / terms) <= bound


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_runs_keep_the_bound(terms, extra):
    allowed = 4 * math.log2(max(terms + extra, 2))
    run = run_length(terms, allowed)
    assert run + math.ceil(math.log2(max(terms / run, 1))) <= max(allowed, 1)


def test_a_long_dot_product_is_added_in_runs():
    rng = np.random.default_rng(6)
    left, right = rng.standard_normal((2, 3, 1000)), rng.standard_normal((2, 1000, 4))
    for run in (1, 64, 999, 1000):
        np.testing.assert_allclose(dot(left, right, run), left @ right, atol=1e-11)
    np.testing.assert_array_equal(
        dot(np.ones((1, 1, 3)), np.array([[[1e16], [1.0], [-1e16]]]), 2), [[[0.0]]]
    )


# ---------------------------------------------------------------- boxes


@settings(deadline=None)
@given(st.integers(0, 9), st.lists(st.tuples(st.integers(2, 5), st.integers(-40, 40)), max_size=3))
def test_a_listed_box_is_recognised(base, axes):
    positions = Box(base, tuple(axes)).positions()
    found = box_of(positions, 100)
    assert found is None or np.array_equal(found.positions(), positions)
    if all(stride for _, stride in axes):
        strides = [abs(stride) for _, stride in axes]
        if strides == sorted(strides, reverse=True) and len(set(strides)) == len(strides):
            assert found is not None


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_hull_holds_both(data):
    radix = data.draw(st.sampled_from([(24, 6, 1), (32, 4), (60, 12, 3), (10, 1)]))
    boxes = []
    for _ in range(2):
        sizes = data.draw(st.tuples(*(st.integers(1, 6) for _ in radix)))
        axes = tuple((n, s) for n, s in zip(sizes, radix, strict=True) if n > 1)
        reach = [sum((n - 1) * s for n, s in axes[k + 1 :]) for k in range(len(axes))]
        if any(s <= r for (_, s), r in zip(axes, reach, strict=True)):
            return
        boxes.append(Box(data.draw(st.integers(0, 40)), axes))
    union = hull(*boxes)
    if union is not None:
        assert {*boxes[0].positions(), *boxes[1].positions()} <= {*union.positions()}
        assert union.volume <= boxes[0].volume + boxes[1].volume
