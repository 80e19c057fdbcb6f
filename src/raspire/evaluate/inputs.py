"""What goes in and what comes out: text, lists and arrays; an array in gives an array out."""

from __future__ import annotations

from typing import Any

import numpy as np

from raspire.arithmetic import Arithmetic
from raspire.arithmetic.field import MERSENNE_61
from raspire.errors import RaspTypeError, RaspValueError
from raspire.evaluate.columns import Column, from_array, from_values, refuse_foreign
from raspire.evaluate.positions import Array
from raspire.given import elements


def column_of(tokens: Any, arithmetic: Arithmetic) -> Column:
    """The input as a column of values of an arithmetic.

    Raises RaspTypeError for what is no sequence, RaspValueError for an array that is not flat.
    """
    if isinstance(tokens, Column):
        found = tokens
        if found.vocabulary is not None:
            refuse_foreign(found.data, found.vocabulary)
    elif isinstance(tokens, np.ndarray):
        if tokens.ndim != 1:
            raise RaspValueError(
                "one input is a flat array",
                expected="an array of shape (N,)",
                found=f"shape {tokens.shape}",
                hint="give program.batch(...) an array of shape (B, N)",
            )
        residues = arithmetic.name == "field" and tokens.dtype == np.uint64
        found = Column("p", tokens % np.uint64(MERSENNE_61)) if residues else from_array(tokens)
    elif isinstance(tokens, str | list | tuple):
        found = from_values(tokens)
    else:
        found = from_values(elements("an input", tokens))
    return lifted(found, arithmetic)


def lifted(column: Column, arithmetic: Arithmetic) -> Column:
    """The column with every value taken into the arithmetic."""
    own: Column | None = arithmetic.entering(column)
    if own is not None:
        return own
    if column.kind in "bi" or (column.kind in "fm" and arithmetic.name == "float64"):
        return column
    if column.kind == "f" and arithmetic.name == "float32":
        return Column("f", column.data.astype(np.float32), length=column.length)
    codes, vocabulary = column.coded()
    if all(isinstance(value, str) for value in vocabulary):
        return column
    table = from_values([arithmetic.lift(value) for value in vocabulary])
    return table.take(codes) if len(codes) == column.length else table.stretched(column.length)


def given_as(result: Column, tokens: Any, arithmetic: Arithmetic) -> Any:
    """A result in the form of the input: a column, an array or a list."""
    if isinstance(tokens, Column):
        return result
    if isinstance(tokens, np.ndarray):
        found = result.array()
        return found.copy() if np.may_share_memory(found, tokens) else found
    return arithmetic.leaving(result) if result.kind == "p" else result.values()


def positions_of(positions: Any, length: int) -> Array:
    """Positions to read, as an int64 array; each must be in 0..N-1."""
    where = np.asarray(positions)
    if where.size == 0:
        where = where.astype(np.int64)
    if where.ndim != 1 or where.dtype.kind not in "iu":
        raise RaspTypeError(
            "positions are a flat sequence of integers",
            expected="integers",
            found=f"{where.dtype} of shape {where.shape}",
        )
    if where.size and (where.min() < 0 or where.max() >= length):
        raise RaspValueError(
            "a position is outside the input",
            expected=f"0 to {length - 1}",
            found=f"{where.min()} to {where.max()}",
        )
    return where.astype(np.int64, copy=False)
