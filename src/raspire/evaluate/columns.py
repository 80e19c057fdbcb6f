"""Columns: the values of an s-op at many positions, stored by kind.

======  =====================================================================================
kind    storage
======  =====================================================================================
``b``   booleans
``i``   signed integers of 8 to 64 bits, never the least int64, so that every value has a negative;
        results that could leave 64 bits are promoted to ``c``, never wrapped
``f``   float64 (float32 in the arithmetic of that name)
``m``   numbers of several types: float64 values beside a tag (0 bool, 1 int, 2 float), so that
        ``[0, 0.5, 1.0]`` keeps its ints and floats apart; ints stay below 2^53
``c``   anything hashable: codes, in the narrowest signed type, into a vocabulary of values that
        differ in type or value
``o``   objects that must not be compared (balls)
``p``   elements of a prime field, as uint64
======  =====================================================================================

A *uniform* column stores one value for all its positions; a column of integers in equal *steps*,
or the inverse of a *ranking*, stores nothing until its data are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from raspire.errors import RaspTypeError, RaspValueError
from raspire.evaluate.parts import (
    counted_from,
    in_parts,
    integer_type,
    looked_up,
    parts,
    typed,
)
from raspire.evaluate.positions import Array
from raspire.evaluate.ranking import Ranking, distinct

EXACT_FLOAT = 1 << 53
"""Integers up to this size are exact in binary64."""

TABLE, ROOM = 4, 1024
"""Integers are numbered by a table of this many entries a position, and this many more."""

_NOTHING = np.empty(0, dtype=np.int8)

BOOL, INT, FLOAT = 0, 1, 2
_KIND_OF = "bif"


class Column:
    """Values at ``length`` positions; ``data`` has that length, or 1 if the column is uniform."""

    __slots__ = (
        "_bounds",
        "_coded",
        "_data",
        "_form",
        "kind",
        "length",
        "ranking",
        "steps",
        "tags",
        "vocabulary",
    )

    def __init__(
        self,
        kind: str,
        data: Array,
        *,
        length: int | None = None,
        tags: Array | None = None,
        vocabulary: list[Any] | None = None,
        bounds: tuple[int, int] | None = None,
    ) -> None:
        if kind == "c":
            assert vocabulary is not None
            dtype = integer_type(0, len(vocabulary))
            if data.dtype != dtype:
                refuse_foreign(data, vocabulary)
                data = typed(data, dtype)
        self.kind = kind
        self._data: Array | None = data
        self._form: Callable[[], Array] | None = None
        self.steps: tuple[int, int] | None = None
        self.ranking: Ranking | None = None
        self.length = len(data) if length is None else length
        self.tags = tags
        self.vocabulary = vocabulary
        self._bounds = bounds
        self._coded: tuple[Array, list[Any]] | None = None

    @staticmethod
    def stepping(start: int, step: int, length: int) -> Column:
        """The integers start, start + step, ...; step is not 0."""
        ends = start, start + step * max(0, length - 1)
        bounds = min(ends), max(ends)
        dtype = integer_type(min(*ends, ends[1] + step), max(*ends, ends[1] + step))
        column = Column("i", _NOTHING, length=length, bounds=bounds)
        column.steps = start, step
        column._later(lambda: np.arange(start, start + step * length, step, dtype=dtype))
        return column

    @staticmethod
    def inverse_of(ranking: Ranking) -> Column:
        """The place of every position in an order of all of them."""
        length = len(ranking)
        column = Column("i", _NOTHING, length=length, bounds=(0, max(0, length - 1)))
        column.ranking = ranking
        column._later(ranking.inverse)
        return column

    def _later(self, form: Callable[[], Array]) -> None:
        self._data, self._form = None, form

    def __len__(self) -> int:
        return self.length

    @property
    def data(self) -> Array:
        """The stored values: one for each position, or one for all."""
        if self._data is None:
            assert self._form is not None
            self._data = self._form()
        return self._data

    def __repr__(self) -> str:
        return f"Column({self.kind!r}, {self.take(slice(0, 8)).values()}, length={self.length})"

    @property
    def uniform(self) -> bool:
        """Whether one stored value stands for every position."""
        return (self.length if self._data is None else len(self._data)) == 1

    @property
    def nbytes(self) -> int:
        """The bytes of the stored arrays."""
        found = 0 if self._data is None else self._data.nbytes
        if self.tags is not None:
            found += self.tags.nbytes
        return found if self.ranking is None else found + self.ranking.nbytes

    def bounds(self) -> tuple[int, int]:
        """Bounds of a column of integers or booleans (the exact ones unless seeded)."""
        if self._bounds is None:
            self._bounds = self.exact_bounds()
        return self._bounds

    def exact_bounds(self) -> tuple[int, int]:
        """The least and greatest value of a column of integers or booleans."""
        if self.steps is not None or self.ranking is not None:
            return self.bounds()
        if len(self.data) == 0:
            return 0, 0
        if len(self.data) == 1:
            self._bounds = int(self.data[0]), int(self.data[0])
            return self._bounds
        data = self.data
        found = [(data[p].min(), data[p].max()) for p in parts(len(data))]
        self._bounds = int(min(low for low, _ in found)), int(max(high for _, high in found))
        return self._bounds

    def has_nan(self) -> bool:
        """Whether some value is a NaN."""
        if self.kind in "fm":
            return len(self.data) > 0 and bool(np.isnan(self.data.min()))
        if self.kind == "c" and self.vocabulary is not None:
            return any(v != v for v in self.vocabulary)
        return False

    def take(self, where: Array | slice) -> Column:
        """The column at these offsets (an index array or a slice)."""
        if self.uniform:
            if isinstance(where, slice):
                count = len(range(*where.indices(self.length)))
            else:
                count = int(np.count_nonzero(where)) if where.dtype == bool else len(where)
            if self.length != 1 or count > 0:
                return self.stretched(count)
        if self.steps is not None:
            return self._stepped(where)
        tags = None if self.tags is None else self.tags[where]
        if isinstance(where, slice) or where.dtype == bool:
            data = self.data[where]
        else:
            data = looked_up(self.data, where)
        found = Column(self.kind, data, tags=tags, vocabulary=self.vocabulary)
        found._bounds = self._bounds
        return found

    def in_order(self, ranking: Ranking) -> Column:
        """The values in an order of all positions."""
        ranks = ranking.ascending() if self is ranking.of else None
        if ranks is None:
            return self.take(ranking.places)
        base, down = ranking.base, ranking.descending

        def value(rank: Array) -> Array:
            wide = rank.astype(np.int64)
            return base - wide if down else wide + base

        return Column("i", in_parts(value, ranks, dtype=self.data.dtype), bounds=self._bounds)

    def _stepped(self, where: Array | slice) -> Column:
        """Offsets into equal steps need no table."""
        assert self.steps is not None
        start, step = self.steps
        if isinstance(where, slice):
            first, stop, by = where.indices(self.length)
            return Column.stepping(start + step * first, step * by, len(range(first, stop, by)))
        if where.dtype == bool:
            where = np.flatnonzero(where)
        low, high = self.bounds()
        dtype = integer_type(low, high)
        data = in_parts(lambda part: part.astype(np.int64) * step + start, where, dtype=dtype)
        return Column("i", data, bounds=self._bounds)

    def stretched(self, length: int) -> Column:
        """A uniform column over another number of positions."""
        data, tags = self.data, self.tags
        if length == 0:
            data, tags = data[:0], None if tags is None else tags[:0]
        return Column(
            self.kind,
            data,
            length=length,
            tags=tags,
            vocabulary=self.vocabulary,
            bounds=self._bounds,
        )

    def full(self) -> Column:
        """The same column with every position stored."""
        if not self.uniform or self.length == 1:
            return self
        tags = None if self.tags is None else np.repeat(self.tags, self.length)
        data = np.repeat(self.data, self.length)
        return Column(self.kind, data, tags=tags, vocabulary=self.vocabulary, bounds=self._bounds)

    def value(self, offset: int) -> Any:
        """One value, as a Python value."""
        return self.take(slice(offset, offset + 1)).values()[0]

    def values(self) -> list[Any]:
        """All values, as Python values."""
        if self.kind in "bif":
            found: list[Any] = self.data.tolist()
        elif self.kind == "m":
            assert self.tags is not None
            found = [(bool, int, float)[t](v) for v, t in zip(self.data, self.tags, strict=True)]
        elif self.kind == "c":
            assert self.vocabulary is not None
            found = [self.vocabulary[code] for code in self.data.tolist()]
        else:
            found = [int(v) if self.kind == "p" else v for v in self.data.tolist()]
        return found * self.length if self.uniform else found

    def array(self) -> Array:
        """All values as an array: numbers, booleans or text if they are of one kind."""
        whole = self.full()
        if whole.kind == "i":
            return typed(whole.data, np.int64)
        if whole.kind in "bfp":
            return whole.data
        if whole.kind == "m" and not np.any(whole.tags == BOOL):
            return whole.data
        codes, vocabulary = whole.coded()
        objects = np.empty(len(vocabulary), dtype=object)
        objects[:] = vocabulary
        if all(type(v) is str for v in vocabulary) and vocabulary:
            return looked_up(np.array(vocabulary), codes)
        return looked_up(objects, codes) if len(codes) else np.empty(0)

    def truth(self) -> Column:
        """Python's truth of every value."""
        if self.kind == "b":
            return self
        if self.kind == "c":
            assert self.vocabulary is not None
            table = np.array([bool(v) for v in self.vocabulary], dtype=np.bool_)
            return Column("b", looked_up(table, self.data), length=self.length)
        return Column("b", typed(self.data, np.bool_), length=self.length)

    def kinds(self) -> str:
        """The simple kinds that occur: for a mixed column those of its tags."""
        if self.kind != "m":
            return self.kind
        assert self.tags is not None
        counts = np.bincount(self.tags, minlength=3).tolist()
        return "".join(k for k, n in zip(_KIND_OF, counts, strict=False) if n)

    def part(self, kind: str, where: Array) -> Column:
        """The values of a mixed column at ``where``, all of which have this simple kind."""
        data = self.data[where]
        dtypes = {"b": np.bool_, "i": np.int64, "f": np.float64}
        return Column(kind, data.astype(dtypes[kind]))

    def coded(self) -> tuple[Array, list[Any]]:
        """Codes and the vocabulary of distinct values (of type and value) that they point to."""
        if self._coded is None:
            self._coded = _factorise(self)
        return self._coded


def refuse_foreign(codes: Array, vocabulary: Sequence[Any]) -> None:
    """Refuse codes that point outside of their vocabulary."""
    low, high = (int(codes.min()), int(codes.max())) if len(codes) else (0, -1)
    if low < 0 or high >= len(vocabulary):
        raise RaspValueError(
            "a code is outside of its vocabulary",
            expected=f"codes of 0 to {len(vocabulary) - 1}",
            found=f"{low if low < 0 else high}",
        )


def comparable(column: Column) -> Column:
    """The column, if its values may be compared; integers among objects are taken out of them.

    Raises RaspTypeError for field elements and balls, whose order and equality say nothing.
    """
    if column.kind not in "op" or len(column.data) == 0:
        return column
    values = column.values()
    if column.kind == "o" and all(isinstance(v, bool | int | str) for v in values):
        return from_values(values)
    raise RaspTypeError(
        "a selector compares values that this arithmetic cannot compare",
        expected="integers, which addresses and counts are",
        found=f"{type(values[0]).__name__}: {values[0]}" if column.kind == "o" else "residues",
        hint="the order of real values says nothing about residues or overlapping balls",
    )


def constant(value: Any, length: int) -> Column:
    """A uniform column."""
    return from_values([value]).stretched(length) if length else from_values([])


def indices(start: int, stop: int) -> Column:
    """The integers start, ..., stop-1."""
    return Column.stepping(start, 1, stop - start)


def _plain(values: Sequence[Any]) -> Sequence[Any]:
    """NumPy scalars become Python values."""
    return [v.item() if isinstance(v, np.generic) else v for v in values]


def from_values(values: Sequence[Any]) -> Column:
    """A column of Python values, of the narrowest kind that keeps types and values apart."""
    types = set(map(type, values))
    if not types:
        return Column("i", np.empty(0, dtype=np.int64))
    if any(issubclass(t, np.generic) for t in types):
        values = _plain(values)
        types = set(map(type, values))
    if types <= {bool, int, float}:
        found = _numeric(values, types)
        if found is not None:
            return found
    if any(t.__hash__ is None or t.__module__.startswith("flint") for t in types) and not (
        types & {list, dict, set}
    ):
        objects = np.empty(len(values), dtype=object)
        objects[:] = list(values)
        return Column("o", objects)
    if types == {str}:
        return _coded_by({v: v for v in dict.fromkeys(values)}, values)
    try:
        keys = [(type(v), v) for v in values]
        return _coded_by(dict(zip(keys, values, strict=True)), keys)
    except TypeError:
        kinds = ", ".join(sorted(t.__name__ for t in types))
        raise RaspTypeError(
            "these cannot be the values of an s-op",
            expected="booleans, numbers, strings, tuples or None",
            found=kinds,
        ) from None


def _coded_by(distinct: dict[Any, Any], keys: Sequence[Any]) -> Column:
    code = dict(zip(distinct, range(len(distinct)), strict=True))
    dtype = integer_type(0, len(code))
    data = np.fromiter(map(code.__getitem__, keys), dtype=dtype, count=len(keys))
    return Column("c", data, vocabulary=list(distinct.values()))


def _numeric(values: Sequence[Any], types: set[type]) -> Column | None:
    if types == {bool}:
        return Column("b", np.array(values, dtype=np.bool_))
    if types == {float}:
        return Column("f", np.array(values, dtype=np.float64))
    if types <= {int}:
        try:
            whole = np.array(values, dtype=np.int64)
        except OverflowError:
            return None
        return None if _has_least(whole) else Column("i", whole)
    if any(type(v) is int and abs(v) > EXACT_FLOAT for v in values):
        return None
    tag = {bool: BOOL, int: INT, float: FLOAT}
    tags = np.fromiter((tag[type(v)] for v in values), dtype=np.uint8, count=len(values))
    return Column("m", np.array(values, dtype=np.float64), tags=tags)


def _has_least(array: Array) -> bool:
    """Whether -2^63, which has no negative in int64, is among the integers."""
    return array.dtype == np.int64 and len(array) > 0 and int(array.min()) == -(1 << 63)


def from_array(array: Array) -> Column:
    """A flat NumPy array as a column; numbers are not copied.

    Raises RaspTypeError for an array of anything but booleans, numbers, text or objects.
    """
    if array.dtype.kind == "b":
        return Column("b", array)
    if array.dtype.kind == "i" or (array.dtype.kind == "u" and array.dtype.itemsize < 8):
        if _has_least(array):
            return from_values(array.tolist())
        if array.dtype.kind == "i" and array.dtype.isnative:
            return Column("i", array)
        return Column("i", array.astype(np.int64))
    if array.dtype.kind == "f":
        return Column("f", array.astype(np.float64, copy=False))
    if array.dtype.kind in "US":
        values, codes = np.unique(array, return_inverse=True)
        return Column("c", codes.reshape(-1), vocabulary=values.tolist())
    if array.dtype.kind in "Ou":
        return from_values(array.tolist())
    raise RaspTypeError(
        "an array of this type is no input",
        expected="booleans, integers, floats, text or objects",
        found=str(array.dtype),
    )


def _factorise(column: Column) -> tuple[Array, list[Any]]:
    data = column.data
    if column.kind == "c":
        assert column.vocabulary is not None
        return data, column.vocabulary
    if column.kind == "b":
        return data.view(np.int8), [False, True]
    if column.kind == "i":
        codes, values = distinct_integers(column)
        return codes, values.tolist()
    if column.kind == "f":
        bits, codes = distinct(data.astype(np.float64).view(np.int64))
        return codes, bits.view(np.float64).tolist()
    if column.kind == "m":
        assert column.tags is not None
        pairs = np.stack([column.tags.astype(np.int64), data.view(np.int64)])
        rows, codes = np.unique(pairs, axis=1, return_inverse=True)
        kinds = [(bool, int, float)[t] for t in rows[0]]
        numbers = rows[1].copy().view(np.float64)
        return codes.reshape(-1), [k(v) for k, v in zip(kinds, numbers, strict=True)]
    return np.arange(len(data)), list(data)


def integers(column: Column) -> Array:
    """The data of a column of integers or booleans, as signed integers."""
    return column.data.view(np.int8) if column.kind == "b" else column.data


def distinct_integers(column: Column) -> tuple[Array, Array]:
    """Codes and ascending distinct values of a column of integers or booleans."""
    low, high = column.exact_bounds()
    size = high - low + 1
    if size <= TABLE * len(column.data) + ROOM:
        codes, kept = compacted(counted_from(low, integers(column), low, high), size)
        return codes, kept + low
    values, codes = distinct(column.data)
    return codes, values.astype(np.int64)


def compacted(codes: Array, size: int) -> tuple[Array, Array]:
    """Codes below ``size``, numbered anew without gaps, and the ascending codes that occur."""
    present = np.zeros(size, dtype=np.bool_)
    for part in parts(len(codes)):
        present[codes[part]] = True
    kept = np.flatnonzero(present)
    return codes if len(kept) == size else looked_up(numbered(present), codes), kept


def numbered(present: Array) -> Array:
    """The number of each entry among those that are present, in the narrowest type."""
    return typed(np.cumsum(present) - 1, integer_type(0, len(present)))
