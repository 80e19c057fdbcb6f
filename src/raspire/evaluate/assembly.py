"""One column from pieces of several kinds, of the narrowest kind that keeps them all apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from raspire.arithmetic.field import MERSENNE_61
from raspire.evaluate.columns import BOOL, EXACT_FLOAT, FLOAT, INT, Column
from raspire.evaluate.parts import integer_type, looked_up
from raspire.evaluate.positions import Array

_TAG_OF = {"b": BOOL, "i": INT, "f": FLOAT}


def assemble(length: int, pieces: Sequence[tuple[Array | slice, Column]]) -> Column:
    """One column from pieces: pairs of offsets (or a mask, or a slice) and what goes there."""
    pieces = [(where, column) for where, column in pieces if len(column)]
    kinds = {column.kind for _, column in pieces}
    if "o" in kinds or ("p" in kinds and kinds - set("pbi")):
        return _assemble_objects(length, pieces)
    if "p" in kinds:
        pieces = [(where, _as_residues(column)) for where, column in pieces]
        kinds = {"p"}
    if len(kinds) == 1 and kinds <= set("bifp"):
        first = pieces[0][1]
        data = np.empty(length, dtype=np.result_type(*(column.data for _, column in pieces)))
        for where, column in pieces:
            data[where] = column.data
        return Column(first.kind, data)
    if kinds <= set("bifm") and all(exact_in_float(column) for _, column in pieces):
        return _assemble_mixed(length, pieces)
    return _assemble_coded(length, pieces)


def _as_residues(column: Column) -> Column:
    """Integers among residues; 2^61 - 1 is the only field that is stored so."""
    if column.kind == "p":
        return column
    data = np.mod(column.data.astype(np.int64), MERSENNE_61).astype(np.uint64)
    return Column("p", data, length=column.length)


def _assemble_objects(length: int, pieces: Sequence[tuple[Array | slice, Column]]) -> Column:
    data = np.empty(length, dtype=object)
    for where, column in pieces:
        whole = column.full()
        values = np.empty(len(whole), dtype=object)
        values[:] = whole.values()
        data[where] = values
    return Column("o", data)


def mixed(column: Column) -> Column:
    """A column of numbers as a mixed one; its integers must be exact as floats."""
    if column.kind == "m":
        return column
    whole = column.full()
    tags = np.full(len(whole), _TAG_OF[column.kind], dtype=np.uint8)
    return Column("m", whole.data.astype(np.float64), tags=tags)


def exact_in_float(column: Column) -> bool:
    """Whether all values are numbers that binary64 holds exactly."""
    if column.kind != "i":
        return column.kind in "bfm"
    low, high = column.bounds()
    if low >= -EXACT_FLOAT and high <= EXACT_FLOAT:
        return True
    low, high = column.exact_bounds()
    return low >= -EXACT_FLOAT and high <= EXACT_FLOAT


def _assemble_mixed(length: int, pieces: Sequence[tuple[Array | slice, Column]]) -> Column:
    data, tags = np.empty(length), np.empty(length, dtype=np.uint8)
    for where, column in pieces:
        data[where] = column.data
        tags[where] = column.tags if column.tags is not None else _TAG_OF[column.kind]
    return Column("m", data, tags=tags)


def _assemble_coded(length: int, pieces: Sequence[tuple[Array | slice, Column]]) -> Column:
    data = np.zeros(length, dtype=integer_type(0, sum(len(c.coded()[1]) for _, c in pieces)))
    code: dict[tuple[type, Any], int] = {}
    vocabulary: list[Any] = []
    for where, column in pieces:
        codes, values = column.coded()
        for value in values:
            if code.setdefault((type(value), value), len(vocabulary)) == len(vocabulary):
                vocabulary.append(value)
        table = np.array([code[type(v), v] for v in values], dtype=data.dtype)
        data[where] = looked_up(table, codes)
    return Column("c", data, vocabulary=vocabulary)
