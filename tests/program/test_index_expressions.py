"""Index expressions: a normal form says what NumPy says; a preimage is the brute-force set."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from raspire.program.embedding import indices, length, tokens, where
from raspire.program.index_expressions import (
    Axis,
    Border,
    Form,
    NotProved,
    Space,
    index_nodes,
    preimage,
)
from raspire.program.nodes import Apply, Constant, Indices, Node
from raspire.program.walk import topological


def grid(sizes):
    """The digits of all points of a box, one flat array for each axis."""
    return [digit.reshape(-1) for digit in np.indices(sizes)] if sizes else []


def values(form, digits, count):
    """A form at points, given the values of the original axes."""
    result = np.full(count, form.const)
    for axis, coef in form.terms.items():
        result = result + coef * digits[axis]
    return result


def split_digits(space, digits):
    """Add the values of the digits that axes were split into."""
    found = dict(digits)
    for axis, form in space.splits.items():
        if axis not in found:
            continue  # a digit of a key's position
        rest = found[axis] - form.const
        for part, coef in sorted(form.terms.items(), key=lambda term: -term[1]):
            found[part] = rest // coef
            rest = rest % coef
    return found


def numbers(expression: Node, positions, count):
    """The expression at positions by NumPy, node by node."""
    found = {}
    for node in topological(expression):
        if isinstance(node, Indices):
            found[node] = positions
        elif isinstance(node, Constant):
            found[node] = np.full_like(positions, int(node.value))
        elif node is length:
            found[node] = np.full_like(positions, count)
        elif isinstance(node, Apply) and all(arg in found for arg in node.args):
            found[node] = np.asarray(node.primitive.numpy(*(found[arg] for arg in node.args)))
            found[node] = found[node].astype(np.int64)
    return found[expression]


small = st.integers(-6, 12)


def expressions():
    """Index expressions, most of them sums of digits."""
    step = st.integers(1, 12)

    def grow(inner):
        return st.one_of(
            st.builds(lambda a, b: a + b, inner, inner),
            st.builds(lambda a, b: a - b, inner, inner),
            st.builds(lambda a, c: a * c, inner, small),
            st.builds(lambda a, c: a // c, inner, step),
            st.builds(lambda a, c: a % c, inner, step),
            st.builds(lambda a, c, x, y: where(a < c, x, y), inner, small, inner, inner),
            st.builds(lambda a, c, x: where(a == c, x, -1), inner, small, inner),
            st.builds(
                lambda a, c, d, x: where((c <= a) & (a < d), x, 0), inner, small, small, inner
            ),
        )

    leaf = st.one_of(st.just(indices), st.just(indices - 3), st.just(length - 1 - indices))
    return st.recursive(leaf, grow, max_leaves=4)


@settings(max_examples=150, deadline=None)
@given(
    expressions(),
    st.lists(st.tuples(st.integers(2, 6), st.integers(-4, 24)), max_size=3),
    st.integers(0, 9),
)
def test_normal_form_says_what_numpy_says(expression, box, base):
    space = Space(60)
    axes = [Axis(size) for size, _ in box]
    form = Form(base, {axis: stride for axis, (_, stride) in zip(axes, box, strict=True)})
    digits = dict(zip(axes, grid([size for size, _ in box]), strict=True))
    count = math.prod(size for size, _ in box)
    positions = values(form, digits, count)
    expected = numbers(expression, positions, 60)
    try:
        found = space.normal(expression, form)
    except NotProved:
        event("not proved")
        return
    except Border as border:
        event("border")
        assert border.axis.low < border.at < border.axis.high  # noqa: PT017
        return
    event("proved")
    np.testing.assert_array_equal(values(found, split_digits(space, digits), count), expected)


@settings(max_examples=150, deadline=None)
@given(
    expressions(),
    expressions(),
    st.lists(st.tuples(st.integers(2, 4), st.integers(0, 12)), max_size=2),
    st.integers(0, 9),
    st.integers(1, 40),
)
def test_preimage_is_the_brute_force_set(key, query, box, base, count):
    space = Space(count)
    axes = [Axis(size) for size, _ in box]
    form = Form(base, {axis: stride for axis, (_, stride) in zip(axes, box, strict=True)})
    digits = dict(zip(axes, grid([size for size, _ in box]), strict=True))
    points = math.prod(size for size, _ in box)
    queries = numbers(query, values(form, digits, points), count)
    keys = numbers(key, np.arange(count), count)
    try:
        found = preimage(space, [(key, space.normal(query, form))])
    except (NotProved, Border):
        event("not proved")
        return
    event("empty" if found is None else f"{len(found.free)} free")
    known = split_digits(space, digits)
    for point, wanted in enumerate(queries):
        expected = np.flatnonzero(keys == wanted)
        if found is None:
            assert not expected.size
            continue
        sizes = [axis.size for axis in found.free]
        total = math.prod(sizes)
        here = {axis: np.full(total, value[point]) for axis, value in known.items()}
        here |= dict(zip(found.free, grid(sizes), strict=True))
        here = split_digits(space, here)
        selected = values(space.resolve(found.position), here, total)
        np.testing.assert_array_equal(np.sort(selected), expected)


def test_digits_of_a_block_become_the_axes():
    rows, columns, base = 3, 5, 7
    place = indices - base
    space = Space(base + 2 * rows * columns)
    i, j = Axis(rows), Axis(columns)
    form = Form(base, {i: columns, j: 1})
    assert space.normal((place // columns) % rows, form) == Form(0, {i: 1})
    assert space.normal(place % columns * rows + place // columns, form) == Form(0, {i: 1, j: 3})


def test_a_group_is_complete_or_not_proved():
    place = indices - 4
    group, asked = place // 5, (place // 5) % 3
    whole = preimage(Space(19), [(group, Space(19).normal(asked, Form(4)))])
    assert whole is not None
    assert [axis.size for axis in whole.free] == [5]
    with pytest.raises(NotProved):
        preimage(Space(8), [(group, Form(0))])  # positions 4 to 7: one of the five is missing


def test_equal_keys_elsewhere_are_not_overlooked():
    with pytest.raises(NotProved):
        preimage(Space(20), [(indices % 7, Form(6))])  # 6 and 13, but 20 is outside
    found = preimage(Space(20), [(indices % 7, Form(5))])
    assert found is not None
    assert found.position.range == (5, 19)


def test_idle_keys_do_not_meet_a_group():
    inside = (indices >= 6) & (indices < 12)
    key = where(inside, (indices - 6) // 2, -1)
    found = preimage(Space(20), [(key, Form(1))])
    assert found is not None
    assert found.position.range == (8, 9)
    with pytest.raises(NotProved):
        preimage(Space(20), [(key, Form(-1))])  # two ranges of positions


def test_what_reads_tokens_is_no_index_expression():
    order = topological(tokens + indices // 2)
    known = index_nodes(order)
    assert {node for node in order if id(node) not in known} == {order[-1], tokens}
