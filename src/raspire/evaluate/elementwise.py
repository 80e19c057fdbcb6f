"""Primitives on columns: NumPy where the record has a form, else the scalar form once for every
distinct combination of values.

Whatever NumPy would answer silently (a division by zero, an overflow) is asked again of the scalar
form, which raises or gives Python's answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from raspire.arithmetic import Arithmetic
from raspire.evaluate.assembly import assemble, exact_in_float
from raspire.evaluate.codes import equality_codes, numeric_pair
from raspire.evaluate.columns import (
    FLOAT,
    Column,
    compacted,
    constant,
    from_values,
    integers,
)
from raspire.evaluate.parts import in_parts, integer_type, looked_up, parts
from raspire.evaluate.positions import Array
from raspire.evaluate.ranking import distinct
from raspire.evaluate.reference import guarded
from raspire.program.primitives import Primitive

TABLE, ROOM = 4, 1024
"""Combinations are numbered by a table of this many entries a position, and this many more."""
INT64 = (-(1 << 63) + 1, (1 << 63) - 1)
COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}
LOGIC = {"and", "or", "not", "indicator", "to_bool"}
WHOLE = {"round", "floor", "ceil", "to_int"}
TOTAL = COMPARISONS | LOGIC | {"add", "sub", "mul", "neg", "pos", "abs", "relu", "to_float",
                               "maximum", "minimum", "where"}  # fmt: skip
"""Records whose NumPy form never hides an error of the scalar form."""


def apply(record: Primitive, columns: Sequence[Column], arithmetic: Arithmetic) -> Column:
    """The primitive position by position; all columns have one length, at least 1."""
    length = len(columns[0])
    if length == 0:
        return from_values([])
    own: Column | None = arithmetic.columns(record, columns)
    if own is not None:
        return own
    if all(column.uniform for column in columns):
        form = _form(record, arithmetic)
        return constant(form(*(column.value(0) for column in columns)), length)
    found = _fast(record, columns, arithmetic, length)
    if found is None:
        found = _by_distinct(record, columns, arithmetic, length)
    return rounded(found, arithmetic)


def rounded(column: Column, arithmetic: Arithmetic) -> Column:
    """The column with its floats rounded as the arithmetic rounds."""
    if arithmetic.name != "float32" or column.kind not in "fm":
        return column
    data = column.data.astype(np.float32)
    if column.kind == "f":
        return Column("f", data, length=column.length)
    assert column.tags is not None
    floats = np.where(column.tags == FLOAT, data, column.data)
    return Column("m", floats, length=column.length, tags=column.tags)


def _form(record: Primitive, arithmetic: Arithmetic) -> Callable[..., Any]:
    return guarded(arithmetic.form(record), record.name)


def _fast(
    record: Primitive, columns: Sequence[Column], arithmetic: Arithmetic, length: int
) -> Column | None:
    name = record.name
    if name in LOGIC:
        columns = [column.truth() for column in columns]
        if name == "indicator":
            return Column("i", integers(columns[0]), length=length, bounds=(0, 1))
    if name == "where":
        return _where(columns[0].truth(), columns[1], columns[2], length)
    if name in ("eq", "ne") and numeric_pair(*columns) is None:
        if any(column.kind in "op" for column in columns):
            return None
        coded, other = columns if columns[1].uniform else reversed(columns)
        if other.uniform and coded.kind == "c" and coded.vocabulary is not None:
            value = other.value(0)
            table = np.array([bool(v == value) for v in coded.vocabulary], dtype=np.bool_)
            return Column("b", _found_in(table, coded.data, name == "eq"), length=length)
        k, q, _ = equality_codes(*columns)
        equal = in_parts(lambda a, b: (a == b) & (a >= 0), k, q)
        return Column("b", equal if name == "eq" else ~equal, length=length)
    if record.numpy is None or any(column.kind not in "bifm" for column in columns):
        return None
    if arithmetic.name not in ("float64", "float32") and not _whole(record, columns):
        return None
    if name in COMPARISONS:
        pair = numeric_pair(*columns)
        return None if pair is None else Column("b", _compared(record, *pair), length=length)
    if name in ("maximum", "minimum") and len({c.kinds() for c in columns}) > 1:
        first = _fast_choice(columns, name == "maximum")
        return None if first is None else _where(first, columns[0], columns[1], length)
    return _by_kind(record, columns, arithmetic, length)


def _whole(record: Primitive, columns: Sequence[Column]) -> bool:
    kinds = [column.kind for column in columns]
    return record.name in COMPARISONS | LOGIC or (
        all(kind in "bi" for kind in kinds) and record.kind(*kinds) in "bi"
    )


def _fast_choice(columns: Sequence[Column], greatest: bool) -> Column | None:
    pair = numeric_pair(*columns)
    if pair is None:
        return None
    return Column("b", pair[0] > pair[1] if greatest else pair[0] < pair[1], length=len(columns[0]))


def _by_kind(
    record: Primitive, columns: Sequence[Column], arithmetic: Arithmetic, length: int
) -> Column | None:
    """Mixed columns are split by tag, unless every tag gives a float."""
    if not any(column.kind == "m" for column in columns):
        return _simple(record, columns, [c.kind for c in columns], arithmetic, length)
    choices = [column.kinds() for column in columns]
    results = {record.kind(*kinds) for kinds in product(*choices)}
    if results == {"f"}:
        floats = [Column("f", c.data, length=length) if c.kind == "m" else c for c in columns]
        return _simple(record, floats, [c.kind for c in floats], arithmetic, length)
    return _split(record, columns, arithmetic, length)


def _split(
    record: Primitive, columns: Sequence[Column], arithmetic: Arithmetic, length: int
) -> Column | None:
    groups = np.zeros(length, dtype=np.int64)
    for column in columns:
        groups *= 3
        if column.tags is not None:
            groups += column.tags
    pieces = []
    for group in np.flatnonzero(np.bincount(groups)).tolist():
        where = np.flatnonzero(groups == group)
        parts: list[Column] = []
        for column in reversed(columns):
            group, tag = divmod(group, 3)
            parts.insert(0, column.part("bif"[tag], where) if column.kind == "m"
                         else column.take(where))  # fmt: skip
        pieces.append((where, apply(record, parts, arithmetic)))
    return assemble(length, pieces)


def _simple(
    record: Primitive,
    columns: Sequence[Column],
    kinds: Sequence[str],
    arithmetic: Arithmetic,
    length: int,
) -> Column | None:
    result = record.kind(*kinds)
    name = record.name
    stepping = _steps(name, columns)
    if stepping is not None:
        return stepping
    if result == "i" and all(kind in "bi" for kind in kinds):
        seeded = _integer_bounds(name, columns)
        if seeded is None:
            return None
        arrays = [integers(c) for c in columns]
        if name in WHOLE:
            return Column("i", arrays[0], length=length, bounds=columns[0].bounds())
        if name in ("floordiv", "mod") and not arrays[1].all():
            _ask_again(record, columns, arithmetic, np.flatnonzero(arrays[1] == 0)[:1])
        dtype = _common_type([seeded, *(c.bounds() for c in columns)])
        data = _run(record, name, arrays, dtype, integer_type(*seeded))
        return Column("i", data, length=length, bounds=seeded if seeded != INT64 else None)
    if result == "f" or (result == "i" and name in WHOLE):
        arrays = []
        for column in columns:
            if not exact_in_float(column):
                return None
            arrays.append(column.data)
        if result == "i":
            limits = _whole_limits(arrays[0])
            if limits is None:
                return None
            data = _run(record, name, arrays, np.float64, integer_type(*limits))
            return Column("i", data, length=length, bounds=limits)
        data = _run(record, name, arrays, np.float64)
        if result == "f" and name not in TOTAL:
            data = _checked(record, columns, arrays, data, arithmetic)
        return Column(result, data, length=length)
    if result == "b":
        return Column("b", _run(record, name, [c.data for c in columns]), length=length)
    if result in "if" and all(kind == result for kind in kinds):
        return Column(result, _run(record, name, [c.data for c in columns]), length=length)
    return None


def _run(
    record: Primitive, name: str, arrays: Sequence[Array], taken_as: Any = None, dtype: Any = None
) -> Array:
    """The NumPy form, part by part; ``taken_as`` is a type of integers that no result leaves, or
    the float that integers become."""

    def form(*some: Array) -> Array:
        if taken_as is not None:
            some = tuple(a if a.dtype.kind == "f" else a.astype(taken_as, copy=False) for a in some)
        if name == "mod" and some[0].dtype.kind == "i" and some[1].shape == (1,):
            return _remainders(some[0], int(some[1][0]))
        assert record.numpy is not None
        return np.asarray(record.numpy(*some))

    with np.errstate(all="ignore"):
        return in_parts(form, *arrays, dtype=dtype)


def _remainders(data: Array, divisor: int) -> Array:
    """Dividing by one number is far faster than remainders."""
    if divisor > 0 and divisor & (divisor - 1) == 0:
        return np.asarray(data & (divisor - 1))
    quotient = data // divisor
    np.multiply(quotient, divisor, out=quotient)
    return np.asarray(np.subtract(data, quotient, out=quotient))


def _common_type(bounds: Sequence[tuple[int, int]]) -> np.dtype[Any]:
    return integer_type(min(low for low, _ in bounds), max(high for _, high in bounds))


def _compared(record: Primitive, a: Array, b: Array) -> Array:
    """A comparison; one number beside many narrow ones does not widen them all."""
    assert record.numpy is not None
    if a.dtype.kind == b.dtype.kind == "i" and len(a) != len(b):
        many, one = (a, b) if len(a) > len(b) else (b, a)
        limits = np.iinfo(many.dtype)
        if limits.min <= int(one[0]) <= limits.max:
            one = one.astype(many.dtype)
            a, b = (many, one) if len(a) > len(b) else (one, many)
            return np.asarray(record.numpy(a, b))
    return in_parts(record.numpy, a, b)


def _found_in(table: Array, codes: Array, wanted: bool) -> Array:
    """Where a table of truths, looked up, is as wanted."""
    found = np.flatnonzero(table)
    if len(found) == 1:
        code = codes.dtype.type(found[0])
        return np.asarray(codes == code if wanted else codes != code)
    return looked_up(table if wanted else ~table, codes)


def _steps(name: str, columns: Sequence[Column]) -> Column | None:
    """Sums and multiples of integers in equal steps are integers in equal steps."""
    if name not in ("add", "sub", "neg", "mul") or not any(c.steps for c in columns):
        return None
    length = columns[0].length
    known: list[tuple[int, int]] = []
    for column in columns:
        if column.steps is not None:
            known.append(column.steps)
        elif column.uniform and column.kind in "bi":
            known.append((int(column.data[0]), 0))
        else:
            return None
    (a, s), (b, t) = known[0], known[-1]
    if name == "neg":
        start, step = -a, -s
    elif name == "mul":
        if s and t:
            return None
        start, step = a * b, a * t + s * b
    else:
        sign = 1 if name == "add" else -1
        start, step = a + sign * b, s + sign * t
    if step == 0 or not _inside(
        (min(start, start + step * length), max(start, start + step * length))
    ):
        return None
    return Column.stepping(start, step, length)


def _integer_bounds(name: str, columns: Sequence[Column]) -> tuple[int, int] | None:
    """Bounds of the result; None if it could leave int64; INT64 if nothing is known."""
    found = _propagated(name, [column.bounds() for column in columns])
    if not _inside(found):
        found = _propagated(name, [column.exact_bounds() for column in columns])
    return found if _inside(found) else None


def _inside(bounds: tuple[int, int]) -> bool:
    return bounds[0] >= INT64[0] and bounds[1] <= INT64[1]


def _propagated(name: str, bounds: Sequence[tuple[int, int]]) -> tuple[int, int]:
    (a, b), (c, d) = bounds[0], bounds[-1]
    if name == "add":
        return a + c, b + d
    if name == "sub":
        return a - d, b - c
    if name == "mul":
        corners = (a * c, a * d, b * c, b * d)
        return min(corners), max(corners)
    if name == "neg":
        return -b, -a
    if name == "pos":
        return a, b
    if name == "mod" and c > 0:
        return 0, d - 1
    if name == "floordiv" and c > 0:
        return min(a // c, a // d), max(b // c, b // d)
    if name in ("indicator", "to_bool"):
        return 0, 1
    if name in ("maximum", "minimum"):
        best = max if name == "maximum" else min
        return best(a, c), best(b, d)
    if name == "relu":
        return max(a, 0), max(b, 0)
    if name in ("abs", "floordiv"):
        most = max(-a, b)
        return -most, most
    return INT64


def _whole_limits(data: Array) -> tuple[int, int] | None:
    """Bounds of the floats, rounded anyhow; None unless each then is an int64."""
    low = float(np.min([data[part].min() for part in parts(len(data))]))  # a NaN, if there is one
    high = float(np.max([data[part].max() for part in parts(len(data))]))
    if not (low > -(2.0**62) and high < 2.0**62):
        return None
    return math.floor(low), math.ceil(high)


def _checked(
    record: Primitive,
    columns: Sequence[Column],
    arrays: Sequence[Array],
    data: Array,
    arithmetic: Arithmetic,
) -> Array:
    if all(np.isfinite(data[part]).all() for part in parts(len(data))):
        return data
    nan_in = np.zeros(len(data), dtype=np.bool_)
    for array in arrays:
        nan_in = nan_in | np.isnan(array)
    suspects = np.flatnonzero(~np.isfinite(data) & ~nan_in)
    for at, value in zip(suspects, _ask_again(record, columns, arithmetic, suspects), strict=True):
        data[at] = value
    return data


def _ask_again(
    record: Primitive, columns: Sequence[Column], arithmetic: Arithmetic, where: Array
) -> list[Any]:
    form = _form(record, arithmetic)
    return [form(*values) for values in zip(*(c.take(where).values() for c in columns),
                                            strict=True)]  # fmt: skip


def _where(condition: Column, yes: Column, no: Column, length: int) -> Column:
    if condition.uniform:
        return yes if condition.data[0] else no
    if yes.kind == no.kind and yes.kind in "bifp":
        if yes.kind != "i":
            return Column(yes.kind, in_parts(np.where, condition.data, yes.data, no.data))
        ends = yes.bounds(), no.bounds()
        bounds = min(low for low, _ in ends), max(high for _, high in ends)
        data = in_parts(np.where, condition.data, yes.data, no.data, dtype=integer_type(*bounds))
        return Column("i", data, bounds=bounds)
    if yes.kind == no.kind == "c" and yes.vocabulary is no.vocabulary:
        data = in_parts(np.where, condition.data, yes.data, no.data)
        return Column("c", data, vocabulary=yes.vocabulary)
    on, off = np.flatnonzero(condition.data), np.flatnonzero(~condition.data)
    if len(on) == 0 or len(off) == 0:
        return yes if len(on) else no
    return assemble(length, [(on, yes.take(on)), (off, no.take(off))])


def _by_distinct(
    record: Primitive, columns: Sequence[Column], arithmetic: Arithmetic, length: int
) -> Column:
    form = _form(record, arithmetic)
    if any(column.kind == "o" for column in columns):
        lists = [column.values() for column in columns]
        return from_values([form(*values) for values in zip(*lists, strict=True)])
    inverse, chosen = distinct_rows([column.coded() for column in columns], length)
    return from_values([form(*values) for values in chosen]).take(inverse)


def distinct_rows(
    coded: Sequence[tuple[Array, list[Any]]], length: int
) -> tuple[Array, list[tuple[Any, ...]]]:
    """The distinct combinations of values, and for every position which one it has."""
    codes: Array = np.zeros(1, dtype=np.int64)
    picks: list[list[int]] = [[]]
    values: list[list[Any]] = []
    for column_codes, vocabulary in coded:
        size = max(1, len(vocabulary))
        total = len(picks) * size
        codes = in_parts(
            lambda a, b, size=size: a.astype(np.int64) * size + b,
            codes, column_codes, dtype=integer_type(0, total),
        )  # fmt: skip
        codes, kept = _distinct_codes(codes, total)
        picks = [[*picks[code // size], code % size] for code in kept]
        values.append(vocabulary)
    rows = [tuple(v[i] for v, i in zip(values, pick, strict=True)) for pick in picks]
    return (codes if len(codes) == length else np.repeat(codes, length)), rows


def _distinct_codes(codes: Array, size: int) -> tuple[Array, list[int]]:
    if size <= TABLE * len(codes) + ROOM:
        inverse, found = compacted(codes, size)
    else:
        found, inverse = distinct(codes)
    return inverse, found.tolist()
