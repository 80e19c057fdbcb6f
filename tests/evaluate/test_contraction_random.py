"""Random programs in, near and outside the class of contractions: never wrong, or not fired."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from raspire.errors import RaspError
from raspire.evaluate import contraction
from raspire.evaluate.reference import reference
from raspire.program.embedding import (
    aggregate,
    exp,
    hardmax,
    indices,
    length,
    minimum,
    select,
    tokens,
    where,
)

seen: Counter[str] = Counter()


class Blocks:
    """A random sequence of blocks, each with axes; its digits written as in real programs."""

    def __init__(self, draw):
        self.draw = draw
        self.count = 0
        self.blocks = []
        for _ in range(draw(st.integers(1, 3))):
            sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
            if self.count + math.prod(sizes) <= 64:
                self.blocks.append((self.count, sizes))
                self.count += math.prod(sizes)
        self.count += draw(st.integers(0, 3))

    def digit(self, block, place):
        base, sizes = block
        stride = math.prod(sizes[place + 1 :])
        size = sizes[place]
        if self.draw(st.integers(0, 12)) == 0:
            stride, size = self.draw(st.integers(1, 5)), self.draw(st.integers(1, 5))
        found = indices - base if base else indices
        found = found // stride if stride > 1 or self.draw(st.booleans()) else found
        if place == 0 and self.draw(st.booleans()):
            return found
        return found % size

    def digits(self, block):
        return [self.digit(block, place) for place in range(len(block[1]))]

    def address(self, digits, spans):
        """The address in some block of some of these digits."""
        base, sizes = self.draw(st.sampled_from(self.blocks))
        address = base
        for place, size in enumerate(sizes):
            stride = math.prod(sizes[place + 1 :])
            fitting = [d for d, span in zip(digits, spans, strict=True) if span <= size]
            kind = self.draw(st.integers(0, 9))
            if kind == 0 or not fitting:
                address = address + self.draw(st.integers(0, size - 1)) * stride
            else:
                digit = self.draw(st.sampled_from(fitting))
                digit = size - 1 - digit if kind == 1 else digit
                digit = (digit + 1) % size if kind == 2 else digit
                address = address + digit * stride
        kind = self.draw(st.integers(0, 15))
        if kind == 0:
            address = address - 1
        if kind == 1:
            address = where(digits[0] == 0, -1, address)
        if kind == 2:
            address = where(indices < self.draw(st.integers(0, 40)), address, 0)
        return address if not isinstance(address, int) else indices * 0 + address

    def fetch(self, value, digits, spans):
        selector = select(indices, self.address(digits, spans), "==")
        return aggregate(selector, value, default=self.draw(st.sampled_from([0, 1, 2.5])))

    def group(self, block, digits):
        """The selector of the keys that share some digits, often the honest way."""
        base, sizes = block
        kept = self.draw(st.sets(st.integers(0, len(sizes) - 1)))
        key = query = 0
        radix = 1
        for place in sorted(kept | {0}, reverse=True):
            stride = math.prod(sizes[place + 1 :])
            digit = (indices - base) // stride
            digit = digit % sizes[place] if place else digit
            key, query = key + digit * radix, query + digits[place] * radix
            radix *= sizes[place]
        if 0 not in kept:  # all rows: one number for the whole block
            inside = (base <= indices) & (indices < base + math.prod(sizes))
            key = where(inside, key % (radix // sizes[0]), -1)
            query = query % (radix // sizes[0])
        selector = select(key, query, "==")
        if self.draw(st.integers(0, 3)) == 0:
            selector = self.one_by_one(block, digits, kept)
        kind = self.draw(st.integers(0, 9))
        if kind == 0 and len(digits) > 1:
            selector = selector & select(digits[0] <= digits[1], True, "==")
        if kind == 1:
            selector = selector & select(digits[-1], digits[-1], "<=")
        if kind == 2:
            selector = selector & select(self.fetch(tokens, digits, sizes) > 0, True, "==")
        if kind == 4:
            selector = selector & ~select(digits[-1], digits[0], "==")
        if kind == 3:
            selector = hardmax(self.fetch(tokens, digits, sizes), among=selector)
        return selector

    def one_by_one(self, block, digits, kept):
        """The same group by an equality for each digit, in any order."""
        base, sizes = block
        found = None
        for place in self.draw(st.permutations(sorted(kept | {0}))):
            key = (indices - base) // math.prod(sizes[place + 1 :])
            key = key % sizes[place] if place else key
            part = select(key, digits[place], "==")
            found = part if found is None else found & part
        return found

    def layer(self, value):
        """A mean over a group of a product (or more) of look-ups."""
        block = self.draw(st.sampled_from(self.blocks))
        digits, sizes = self.digits(block), block[1]
        one, two, three = (self.fetch(value, digits, sizes) for _ in range(3))
        kind = self.draw(st.integers(0, 9))
        product = (one, one * 2.0, -one, one + two, exp(minimum(one, 2.0)), one / 2)[kind % 6]
        if kind > 1:
            product = product * two
        if kind > 6:
            product = product * three
        product = where(digits[0] < 1, product, 0.5) if kind == 4 else product
        mean = aggregate(self.group(block, digits), product, default=self.draw(st.integers(0, 1)))
        return mean * self.draw(st.integers(1, 3)), block


@st.composite
def programs(draw):
    blocks = Blocks(draw)
    value = tokens
    for _ in range(draw(st.integers(1, 3))):
        value, block = blocks.layer(value)
    if draw(st.integers(0, 3)) == 0:
        value = aggregate(select(indices, length - 1 - indices, "=="), value)
    kind = draw(st.integers(0, 3))
    base, sizes = block
    positions = (
        range(base, base + math.prod(sizes)),
        range(base, base + math.prod(sizes), sizes[-1]),
        range(blocks.count),
        np.array([draw(st.integers(0, blocks.count - 1))]),
    )[kind]
    return value, blocks.count, positions


def wild():
    """Any index expression at all."""
    number, step = st.integers(-6, 12), st.integers(1, 9)

    def grow(inner):
        return st.one_of(
            st.builds(lambda a, b: a + b, inner, inner),
            st.builds(lambda a, b: a - b, inner, inner),
            st.builds(lambda a, c: a * c, inner, number),
            st.builds(lambda a, c: a // c, inner, step),
            st.builds(lambda a, c: a % c, inner, step),
            st.builds(lambda a, c, x, y: where(a < c, x, y), inner, number, inner, inner),
            st.builds(lambda a, c, x: where(a == c, x, -1), inner, number, inner),
        )

    leaf = st.sampled_from([indices, indices - 3, length - 1 - indices, indices // 2, indices % 3])
    return st.recursive(leaf, grow, max_leaves=4)


WILD = wild()


@st.composite
def wild_programs(draw):
    count = draw(st.integers(1, 30))
    value = tokens
    for _ in range(draw(st.integers(1, 2))):
        one, two = (
            aggregate(select(draw(WILD), draw(WILD), "=="), value, draw(st.integers(0, 1)))
            for _ in range(2)
        )
        value = aggregate(
            select(draw(WILD), draw(WILD), "=="),
            draw(st.sampled_from([one, one * two, one * two * tokens, one + two])),
        )
    return value, count, range(count)


def check(case, seed):
    program, count, positions = case
    plan = contraction.plan(program, count, positions)
    seen["programs"] += 1
    if plan is None:
        return
    seen["plans"] += 1
    row = np.random.default_rng(seed).standard_normal(count)
    found = plan.run(row)
    if found is None:
        return
    try:
        values = reference(program, row.tolist())
    except RaspError:
        return
    seen["compared"] += 1
    expected = np.array([float(values[p]) for p in positions])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.integers(0, 99))
def test_random_programs_equal_the_reference_or_do_not_fire(case, seed):
    check(case, seed)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(wild_programs(), st.integers(0, 99))
def test_programs_outside_of_the_class_are_right_or_do_not_fire(case, seed):
    program, count, positions = case
    plan = contraction.plan(program, count, positions)
    event("not proved" if plan is None else "fired")
    if plan is not None:
        row = np.random.default_rng(seed).standard_normal(count)
        expected = [float(value) for value in reference(program, row.tolist())]
        np.testing.assert_allclose(plan.run(row), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.integers(0, 99))
def test_many_random_programs_equal_the_reference_or_do_not_fire(case, seed):
    check(case, seed)


def test_enough_of_them_fired():
    print(f"contractions: {dict(seen)}")
    assert seen["compared"] >= 0.2 * seen["programs"]
