"""Means from sums: what a kernel must add up for a column of values, and the mean that follows.

Equal values of any type stay that value. Equality is found from sums too: of numbered values c,
n of them are all equal exactly when n * sum(c^2) = (sum c)^2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from raspire.arithmetic import Arithmetic
from raspire.errors import RaspError
from raspire.evaluate.assembly import assemble
from raspire.evaluate.columns import (
    BOOL,
    EXACT_FLOAT,
    FLOAT,
    INT,
    Column,
    constant,
    from_values,
    integers,
)
from raspire.evaluate.parts import integer_type, looked_up, parts, tally, typed
from raspire.evaluate.positions import Array
from raspire.evaluate.reference import exact_rule, not_numbers

SQUARES = 1 << 62


@dataclass
class Payload:
    """Channels to add up, and how their sums become means.

    ``finish(counts, sums)`` gives the means of rows that selected something, and a mask of the
    rows that have none because their values are not numbers.
    """

    channels: list[Array]
    finish: Callable[[Array, list[Array]], tuple[Column, Array | None]]


def payload(
    values: Column, rule: str, arithmetic: Arithmetic, *, snap: bool = True, sign: bool = False
) -> Payload:
    """The payload of a column under a rule.

    ``snap`` lets equal floats stay exactly equal; without it the channels depend on the kind of
    the column alone, so that those of several blocks can be added. With ``sign`` any number of
    the sign of the mean will do.
    """
    rasp = rule == "rasp"
    own = arithmetic.payload(values)
    if own is not None:
        return Payload(*own)
    if values.uniform and not rasp and len(values) and snap:
        return _uniform(values)
    values = values.full()
    if sign and (values.kind == "i" or (values.kind == "b" and not rasp)):
        return Payload([integers(values)], lambda counts, sums: (whole_sums(sums[0]), None))
    if values.kind == "b":
        return _booleans(values, rasp, arithmetic)
    if values.kind == "i":
        return _integers(values, rasp, arithmetic)
    if values.kind == "f":
        return _floats(values, snap, arithmetic)
    if values.kind == "m" and arithmetic.name.startswith("float"):
        return _mixed(values, rasp, arithmetic)
    if values.kind == "o":
        return _objects(values, arithmetic)
    return _coded(values, rasp, arithmetic)


def _uniform(values: Column) -> Payload:
    return Payload([], lambda counts, sums: (values.stretched(len(counts)), None))


def _objects(values: Column, arithmetic: Arithmetic) -> Payload:
    def finish(counts: Array, sums: list[Array]) -> tuple[Column, Array | None]:
        means = [arithmetic.quotient(s, n) for s, n in zip(sums[0], counts.tolist(), strict=True)]
        return from_values(means), None

    return Payload([values.data], finish)


def _booleans(values: Column, rasp: bool, arithmetic: Arithmetic) -> Payload:
    def finish(counts: Array, sums: list[Array]) -> tuple[Column, Array | None]:
        total = sums[0]
        same = (total == 0) | (total == counts)
        if rasp:
            return Column("b", total > 0), counts > 1
        truth = Column("b", total > 0)
        if same.all():
            return truth, None
        apart = np.flatnonzero(~same)
        means = whole_means(total[apart], counts[apart], False, arithmetic)
        alike = np.flatnonzero(same)
        return assemble(len(total), [(alike, truth.take(alike)), (apart, means)]), None

    return Payload([integers(values)], finish)


def _integers(values: Column, rasp: bool, arithmetic: Arithmetic) -> Payload:
    def finish(counts: Array, sums: list[Array]) -> tuple[Column, Array | None]:
        return whole_means(sums[0], counts, rasp, arithmetic), None

    return Payload([values.data], finish)


def whole_sums(total: Array) -> Column:
    """Exact sums of integers, as they are."""
    return from_values(total.tolist()) if total.dtype == object else Column("i", total)


def whole_means(total: Array, counts: Array, rasp: bool, arithmetic: Arithmetic) -> Column:
    """Means of integer sums: ints where whole, else the nearest float or the fraction; the text
    language keeps one value and makes every other mean a float."""
    binary = arithmetic.name.startswith("float")
    if total.dtype == object or not binary:
        return _exact_means(total, counts, rasp, arithmetic)
    low, high = (int(total.min()), int(total.max())) if len(total) else (0, 0)
    if max(-low, high) >= EXACT_FLOAT:
        if not rasp and not (total % counts).any():
            return Column("i", total // counts)
        return _exact_means(total, counts, rasp, arithmetic)
    means = np.empty(len(total))
    tags = np.empty(len(total), dtype=np.uint8)
    for part in parts(len(total)):
        s, n, mean = total[part], counts[part], means[part]
        np.divide(s, n, out=mean)
        # Numbers this small are exact as floats: this finds what % would, at a third of the time.
        whole = n == 1 if rasp else np.rint(mean) * n == s
        np.subtract(FLOAT, whole, out=tags[part], casting="unsafe")
    most = int(tags.max(initial=INT))
    if most == INT:
        return Column("i", typed(means, integer_type(low, high)))
    if tags.min() == FLOAT:
        return Column("f", means)
    return Column("m", means, tags=tags)


def _exact_means(total: Array, counts: Array, rasp: bool, arithmetic: Arithmetic) -> Column:
    means = []
    for s, n in zip(total.tolist(), counts.tolist(), strict=True):
        mean = arithmetic.quotient(s, n)
        means.append(arithmetic.inexact(mean) if rasp and n > 1 else mean)
    return from_values(means)


def _floats(values: Column, snap: bool, arithmetic: Arithmetic) -> Payload:
    data = values.data
    if snap and len(data) and data[0] == data[-1] and np.all(data == data[0]):
        return _uniform(values.take(slice(0, 1)))
    wide = data.astype(np.float64, copy=False)
    scale = _scale(wide) if snap else 1.0
    channels = [wide * scale if scale != 1 else wide]
    distinct = None
    if snap and len(data) <= 1 << 22:
        codes, distinct = values.coded()
        if len(distinct) ** 2 * len(data) < SQUARES:
            codes = codes.astype(np.int64)
            channels += [codes, codes * codes]
        else:
            distinct = None

    def finish(counts: Array, sums: list[Array]) -> tuple[Column, Array | None]:
        with np.errstate(invalid="ignore", over="ignore"):
            mean = sums[0] / counts / scale
        if distinct is not None:
            equal = np.flatnonzero((counts > 1) & _equal(counts, sums[1], sums[2]))
            mean[equal] = np.array(distinct, dtype=np.float64)[sums[1][equal] // counts[equal]]
        return Column("f", mean.astype(data.dtype, copy=False)), None

    return Payload(channels, finish)


def _scale(data: Array) -> float:
    """A power of two that keeps sums of finite floats finite."""
    largest = float(np.abs(data).max()) if len(data) else 0.0
    return 2.0**-64 if np.isfinite(largest) and largest > 1e308 / max(1, len(data)) else 1.0


def _equal(counts: Array, codes: Array, squares: Array) -> Array:
    """Whether all selected codes are one: by the sum of codes and that of their squares."""
    codes, squares = (c.astype(np.int64) if c.dtype.kind == "i" else c for c in (codes, squares))
    code = codes // np.maximum(counts, 1)
    return np.asarray((code * counts == codes) & (squares == code * codes))


def _mixed(values: Column, rasp: bool, arithmetic: Arithmetic) -> Payload:
    assert values.tags is not None
    tags, data = values.tags, values.data
    bools_only = bool((tags == BOOL).all())
    whole = np.where(tags == FLOAT, 0, data).astype(np.int64)
    floats = (tags == FLOAT).astype(np.int64)
    bools = (tags == BOOL).astype(np.int64)

    def finish(counts: Array, sums: list[Array]) -> tuple[Column, Array | None]:
        total, ints, n_float, n_bool = sums
        means = Column("f", total / counts)
        pieces: list[tuple[Array, Column]] = []
        if rasp:
            one = counts == 1
            pieces.append((np.flatnonzero(~one), means.take(np.flatnonzero(~one))))
            inexact, truth, exact = one & (n_float > 0), one & (n_bool > 0), one
        else:
            inexact = n_float > 0
            truth = (n_bool == counts) & ((ints == 0) | (ints == counts))
            exact = np.ones(len(counts), dtype=np.bool_)
        exact = exact & ~inexact & ~truth
        at = np.flatnonzero(inexact)
        pieces.append((at, means.take(at)))
        at = np.flatnonzero(truth)
        pieces.append((at, Column("b", ints[at] > 0)))
        at = np.flatnonzero(exact)
        pieces.append((at, whole_means(ints[at], counts[at], rasp, arithmetic)))
        bad = counts > 1 if rasp and bools_only else None
        return assemble(len(counts), pieces), bad

    return Payload([data, whole, floats, bools], finish)


def _coded(values: Column, rasp: bool, arithmetic: Arithmetic) -> Payload:
    codes, vocabulary = values.coded()
    present = tally(codes, len(vocabulary)) > 0
    kept = [vocabulary[i] for i in np.flatnonzero(present).tolist()]
    codes = looked_up(np.cumsum(present) - 1, codes)
    number = np.array([arithmetic.number(v) for v in kept], dtype=np.bool_)
    exact = all(not isinstance(v, float) or np.isfinite(v) for v in kept)
    table = np.empty(len(kept), dtype=object)
    table[:] = [_summand(v, exact) if arithmetic.number(v) else 0 for v in kept]
    floats = np.array([isinstance(v, float) for v in kept], dtype=np.int8)
    squares = codes * codes
    if len(kept) ** 2 * len(codes) >= SQUARES:
        squares = squares.astype(object)
    channels = [codes, squares]
    if number.any():
        tables = (table, (~number).astype(np.int8), floats)
        channels += [looked_up(each, codes) for each in tables]

    def finish(counts: Array, sums: list[Array]) -> tuple[Column, Array | None]:
        one = counts == 1 if rasp else _equal(counts, sums[0], sums[1]).astype(np.bool_)
        at = np.flatnonzero(one)
        found = Column("c", sums[0][at] // counts[at], vocabulary=kept)
        if len(at) == len(counts):
            return found, None
        bad = ~one if not number.any() else ~one & (sums[3] > 0)
        if rasp and not number.all():
            bad = ~one
        rest = np.flatnonzero(~one & ~bad)
        means = []
        for s, n, f in zip(*(c[rest].tolist() for c in (sums[2], counts, sums[4])), strict=True) \
                if len(rest) else ():  # fmt: skip
            mean = arithmetic.quotient(s, n)
            means.append(arithmetic.inexact(mean) if f or rasp else mean)
        nothing = np.flatnonzero(bad)
        pieces = [(at, found), (rest, from_values(means)), (nothing, constant(0, len(nothing)))]
        return assemble(len(counts), pieces), bad if bad.any() else None

    return Payload(channels, finish)


def _summand(value: Any, exact: bool) -> Any:
    if isinstance(value, float):
        return Fraction(value) if exact else value
    return int(value) if isinstance(value, bool) else value


def explained(values: Column, chosen: Array, arithmetic: Arithmetic) -> RaspError:
    """The error for a row whose selected values, at ``chosen``, have no mean."""
    some = values.take(chosen).values()
    if not some:
        return not_numbers(some)
    try:
        exact_rule(some, arithmetic)
    except RaspError as error:
        return error
    return not_numbers(some, "one selected value, or numbers")
