"""Keys and queries of one comparison in one numbering: equal codes, or ranks in order.

A code of -1 marks a key or query that nothing can equal (a NaN, or a query that is no key).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from raspire.errors import RaspTypeError
from raspire.evaluate.columns import (
    EXACT_FLOAT,
    Column,
    comparable,
    distinct_integers,
    integers,
)
from raspire.evaluate.parts import counted_from, in_parts, integer_type, looked_up, tally, typed
from raspire.evaluate.positions import Array
from raspire.evaluate.ranking import distinct

GREATEST = (1 << 63) - 1
TABLE, ROOM = 4, 1024
"""Codes may reach this many for every key and query, and this many more, before they are packed."""


def whole_numbers(column: Column) -> Array | None:
    """The column as int64, -1 where it holds no natural number; None for text and the like.

    Addresses are compared by value, so 1.0 and True address position 1.
    """
    column = comparable(column)
    if column.kind in "bi":
        return typed(column.data, np.int64)
    if column.kind in "fm":
        data = column.data
        with np.errstate(invalid="ignore"):
            whole = (data == np.floor(data)) & (data >= 0) & (data < EXACT_FLOAT)
        return np.where(whole, data, -1).astype(np.int64)
    if column.kind == "c":
        assert column.vocabulary is not None
        table = [
            int(v) if isinstance(v, bool | int | float) and v == v and 0 <= v < EXACT_FLOAT
            and v == int(v) else -1
            for v in column.vocabulary
        ]  # fmt: skip
        return looked_up(np.array(table, dtype=np.int64), column.data)
    return None


def _integral(column: Column) -> bool:
    return column.kind in "bi"


def _comparable(keys: Column, queries: Column) -> tuple[Column, Column]:
    found = comparable(keys)
    return found, found if keys is queries else comparable(queries)


def numeric_pair(a: Column, b: Column) -> tuple[Array, Array] | None:
    """Both as arrays that NumPy compares as Python would, or None."""
    if not (a.kind in "bifm" and b.kind in "bifm"):
        return None
    if _integral(a) and _integral(b):
        return a.data, b.data
    for column in (a, b):
        if column.kind == "i":
            low, high = column.exact_bounds()
            if low < -EXACT_FLOAT or high > EXACT_FLOAT:
                return None
    return a.data, b.data


def equality_codes(keys: Column, queries: Column) -> tuple[Array, Array, int]:
    """Codes 0..G-1 that are equal where key and query are; G.

    Uniform columns give arrays of length 1.
    """
    keys, queries = _comparable(keys, queries)
    pair = numeric_pair(keys, queries)
    if pair is None:
        return _by_value(keys, queries)
    if _integral(keys) and _integral(queries):
        return _integer_codes(keys, queries)
    return _float_codes(*pair, same=keys is queries)


def _integer_codes(keys: Column, queries: Column) -> tuple[Array, Array, int]:
    """Integers near each other are their own codes, counted from the least key."""
    low, high = keys.exact_bounds()
    size = high - low + 1
    if size > TABLE * (len(keys.data) + len(queries.data)) + ROOM:
        codes, values = distinct_integers(keys)
        same = keys is queries
        return codes, codes if same else _found(values, queries.data), len(values)
    code = counted_from(low, integers(keys), low, high)
    if keys is queries:
        return code, code, size
    least, most = queries.bounds()
    if low <= least and most <= high:
        return code, counted_from(low, integers(queries), least, most), size

    def coded(part: Array) -> Array:
        wide = part.astype(np.int64)
        return np.where((wide >= low) & (wide <= high), wide - low, -1)

    return code, in_parts(coded, queries.data, dtype=integer_type(0, size)), size


def _found(values: Array, wanted: Array) -> Array:
    """Where each wanted value is among ascending values, -1 if it is not."""
    if len(values) == 0:
        return np.full(len(wanted), -1, dtype=np.int64)
    at = np.searchsorted(values, wanted)
    at[at == len(values)] = 0
    return np.where(values[at] == wanted, at, -1)


def _float_codes(k: Array, q: Array, *, same: bool) -> tuple[Array, Array, int]:
    # NaN equals nothing; -0.0 + 0.0 is 0.0, so that both zeros are one key.
    values, codes = distinct(k + 0.0)
    if len(values) and np.isnan(values[-1]):
        codes = np.where(np.isnan(k), -1, codes)
    return codes, codes if same else _found(values, q + 0.0), len(values)


def _by_value(keys: Column, queries: Column) -> tuple[Array, Array, int]:
    """By Python's own equality, through the distinct values of both."""
    k_codes, k_values = keys.coded()
    q_codes, q_values = queries.coded()
    number: dict[Any, int] = {}
    k_table = [number.setdefault(v, len(number)) if v == v else -1 for v in k_values]
    q_table = [number.get(v, -1) if v == v else -1 for v in q_values]
    k_map, q_map = np.array(k_table, dtype=np.int64), np.array(q_table, dtype=np.int64)
    size = max(1, len(number))
    if keys is queries and k_table == list(range(len(k_table))):
        return k_codes, k_codes, size
    k_map, q_map = (table.astype(integer_type(0, size)) for table in (k_map, q_map))
    return looked_up(k_map, k_codes), looked_up(q_map, q_codes), size


def ranks(keys: Column, queries: Column, *, loose: bool = False) -> tuple[Array, Array, int]:
    """Integers in the order of keys and queries, 0..R-1; equal values have equal ranks.

    Raises RaspTypeError where Python cannot order a key and a query; with ``loose`` any order of
    the distinct values will do. NaN is not allowed here.
    """
    keys, queries = _comparable(keys, queries)
    if _integral(keys) and _integral(queries):
        return _integer_ranks(keys, queries)
    pair = numeric_pair(keys, queries)
    if pair is not None:
        k, q = pair
        values, both = distinct(k if keys is queries else np.concatenate([k, q]))
        if keys is queries:
            return both, both, len(values)
        return both[: len(k)], both[len(k) :], len(values)
    return _ordered_by_value(keys, queries, loose)


def _integer_ranks(keys: Column, queries: Column) -> tuple[Array, Array, int]:
    low, high = keys.exact_bounds()
    k, q = integers(keys), integers(queries)
    if high - low >= (1 << 32):
        if keys is queries:
            values, codes = distinct(k)
            return codes, codes, len(values)
        values, codes = distinct(np.concatenate([k, q]))
        return codes[: len(k)], codes[len(k) :], len(values)
    if keys is queries:
        rank = counted_from(low, k, low, high)
        return rank, rank, high - low + 1
    # Two ranks more than there are keys: queries below and above all of them.
    size = high - low + 3

    def clipped(part: Array) -> Array:
        return np.clip(part.astype(np.int64), low - 1, min(high + 1, GREATEST)) - (low - 1)

    return (
        counted_from(low - 1, k, low, high),
        in_parts(clipped, q, dtype=integer_type(0, size)),
        size,
    )


def _ordered_by_value(keys: Column, queries: Column, loose: bool) -> tuple[Array, Array, int]:
    k_codes, k_values = keys.coded()
    q_codes, q_values = queries.coded()
    k_present = [k_values[i] for i in np.flatnonzero(tally(k_codes, len(k_values))).tolist()]
    q_present = [q_values[i] for i in np.flatnonzero(tally(q_codes, len(q_values))).tolist()]
    distinct = dict.fromkeys([*k_present, *q_present])
    try:
        if None in distinct and not loose:
            raise TypeError
        order = list(distinct) if loose else sorted(distinct)
    except TypeError:
        raise _unordered(k_present, q_present) from None
    number = {v: i for i, v in enumerate(order)}
    dtype = integer_type(0, len(order))
    k_map = np.array([number.get(v, -1) for v in k_values], dtype=dtype)
    q_map = np.array([number.get(v, -1) for v in q_values], dtype=dtype)
    k = looked_up(k_map, k_codes)
    return k, k if keys is queries else looked_up(q_map, q_codes), max(1, len(order))


def _unordered(keys: list[Any], queries: list[Any]) -> RaspTypeError:
    for key in keys:
        for query in queries:
            try:
                if key is None or query is None:
                    raise TypeError
                _ = key < query
            except TypeError:
                return RaspTypeError(
                    f"{type(key).__name__} and {type(query).__name__} have no order",
                    expected="a key and a query of one ordered type",
                    found=f"key {key!r}, query {query!r}",
                )
    return RaspTypeError("keys and queries have no order")


def combined(
    parts: list[tuple[Array, Array, int]], keys: int, queries: int
) -> tuple[Array | None, Array | None, int]:
    """Several codes as one: equal where all of them are; None stands for one group of all."""
    if not parts:
        return None, None, 1
    k, q, size = parts[0]
    if len(parts) > 1:
        same = k is q
        k = k.astype(np.int64, copy=False)
        q = k if same else q.astype(np.int64, copy=False)
    for k_next, q_next, size_next in parts[1:]:
        k_lost, q_lost = (k < 0) | (k_next < 0), (q < 0) | (q_next < 0)
        same = k is q and k_next is q_next
        k = np.where(k_lost, -1, k * size_next + k_next)
        q = k if same else np.where(q_lost, -1, q * size_next + q_next)
        size *= size_next
        if size > TABLE * (keys + queries) + 64 * ROOM:
            values, codes = distinct(k)
            k = np.where(k < 0, -1, codes).astype(np.int64)
            q = k if same else np.where(q < 0, -1, _found(values, q))
            size = len(values)
    return _stretched(k, keys), _stretched(q, queries), size


def _stretched(codes: Array, length: int) -> Array:
    return codes if len(codes) == length else np.broadcast_to(codes, (length,))
