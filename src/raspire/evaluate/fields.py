"""GF(2^61 - 1) by columns: products of 61-bit residues from 32-bit limbs, in NumPy.

The meaning is :class:`raspire.arithmetic.field.PrimeField`, one residue at a time; here the ring
operations, the quotients and the means run on whole columns of uint64, and a named function is
asked once for every distinct argument. Columns with a residue beside integers become residues as
soon as they are calculated with, so that addresses stay integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from raspire.arithmetic import Arithmetic
from raspire.arithmetic.field import MERSENNE_61, PrimeField, Residue
from raspire.errors import RaspZeroDivisionError
from raspire.evaluate.columns import Column, from_values
from raspire.evaluate.positions import Array
from raspire.evaluate.ranking import distinct
from raspire.evaluate.reference import guarded

P = np.uint64(MERSENNE_61)
LOW = np.uint64(0xFFFFFFFF)
LIMBS = ((0, 21), (21, 20), (41, 20))
RING = {"add", "sub", "mul", "div", "neg", "pos", "recip", "to_float"}


def reduced(x: Array) -> Array:
    """Residues of numbers below 2^64."""
    x = (x & P) + (x >> np.uint64(61))
    return np.where(x >= P, x - P, x)


def product(a: Array, b: Array) -> Array:
    """a * b mod 2^61 - 1, for residues.

    >>> int(product(np.array([2**60], np.uint64), np.array([2**60], np.uint64))[0])
    576460752303423488
    """
    half = np.uint64(32)
    a_high, a_low, b_high, b_low = a >> half, a & LOW, b >> half, b & LOW
    cross = a_high * b_low + a_low * b_high  # below 2^62
    low = a_low * b_low
    # 2^64 is 8 and 2^61 is 1, so cross * 2^32 is its upper part plus the lower 29 bits shifted.
    total = (a_high * b_high << np.uint64(3)) + (cross >> np.uint64(29))
    total += (cross & np.uint64((1 << 29) - 1)) << half
    return reduced(total + (low & P) + (low >> np.uint64(61)))


def inverse(a: Array) -> Array:
    """1 / a, by a^(p - 2); RaspZeroDivisionError where a is 0."""
    if len(a) and not a.all():
        raise RaspZeroDivisionError(
            "a division by zero in the field", found="0", hint="draw other random elements"
        )
    result, power, exponent = np.ones_like(a), a, MERSENNE_61 - 2
    while exponent:
        if exponent & 1:
            result = product(result, power)
        power = product(power, power)
        exponent >>= 1
    return result


class FieldColumns(PrimeField):
    """GF(2^61 - 1) with its columns; random functions and constants are those of ``field``."""

    def __init__(self, field: PrimeField | None = None, seed: int | None = None) -> None:
        super().__init__(MERSENNE_61, seed)
        if field is not None:
            self.random, self.atoms = field.random, field.atoms

    # ------------------------------------------------------------ into columns and out of them

    def entering(self, column: Column) -> Column | None:
        """Residues of the input as a column of uint64."""
        if column.kind == "p":
            return column
        if column.kind != "o":
            return None
        if all(isinstance(v, Residue) for v in column.data.tolist()):
            return self._residues(column)
        return column

    def _residues(self, column: Column) -> Column:
        if column.kind == "p":
            return column
        if column.kind in "bi":
            data = np.mod(column.data.astype(np.int64), MERSENNE_61).astype(np.uint64)
        else:
            codes, values = column.coded()
            table = [(self.element(0) + self.constant(v)).value for v in values]
            data = np.array(table, dtype=np.uint64)[codes]
        return Column("p", data, length=column.length)

    def leaving(self, column: Column) -> list[Any]:
        """The values of a column of residues, one by one."""
        return [self.element(v) for v in column.values()]

    # ------------------------------------------------------------ primitives

    def columns(self, record: Any, columns: Sequence[Column]) -> Column | None:
        """Ring operations on whole columns; a named function once for every distinct argument."""
        if not any(self._touched(column) for column in columns):
            return None
        name, length = record.name, columns[0].length
        if name == "where":
            if self._touched(columns[0]):
                return None
            yes, no = map(self._residues, columns[1:])
            chosen = np.where(columns[0].truth().data, yes.data, no.data)
            return Column("p", chosen, length=length)
        if name in RING:
            arrays = [self._residues(column).data for column in columns]
            return Column("p", _ring(name, arrays), length=length)
        return self._single(record, [self._residues(column) for column in columns], length)

    def _touched(self, column: Column) -> bool:
        if column.kind == "o":
            return any(isinstance(v, Residue) for v in column.data.tolist())
        return column.kind == "p"

    def _single(self, record: Any, columns: Sequence[Column], length: int) -> Column:
        """The form on single residues, which refuses comparisons, once for every argument."""
        rows = np.stack(np.broadcast_arrays(*(column.data for column in columns)))
        unlike, back = np.unique(rows, axis=1, return_inverse=True)
        form, back = guarded(self.form(record), record.name), back.reshape(-1)
        values = [form(*map(self.element, row)) for row in unlike.T.tolist()]
        if not all(isinstance(value, Residue) for value in values):
            found = from_values(values).take(back)
        else:
            found = Column("p", np.array([v.value for v in values], dtype=np.uint64)[back])
        return found if len(back) == length else found.stretched(length)

    # ------------------------------------------------------------ means

    def payload(
        self, values: Column
    ) -> tuple[list[Array], Callable[[Array, list[Array]], tuple[Column, Array | None]]] | None:
        """Sums of three limbs, none of which can leave an int64; then one inverse a count."""
        if not self._touched(values):
            return None
        data = self._residues(values).full().data.astype(np.int64)
        channels = [(data >> at) & ((1 << bits) - 1) for at, bits in LIMBS]

        def finish(counts: Array, sums: list[Array]) -> tuple[Column, Array | None]:
            total = np.zeros(len(counts), dtype=np.uint64)
            for (at, _), limb in zip(LIMBS, sums, strict=True):
                weight = np.full(1, pow(2, at, MERSENNE_61), dtype=np.uint64)
                total = reduced(total + product(reduced(limb.astype(np.uint64)), weight))
            sizes, back = distinct(counts)
            table = np.array(
                [pow(int(n), -1, MERSENNE_61) for n in sizes.tolist()], dtype=np.uint64
            )
            return Column("p", product(total, table[back])), None

        return channels, finish

    def number(self, value: Any) -> bool:
        return isinstance(value, int | Fraction | Residue)


def _ring(name: str, arrays: Sequence[Array]) -> Array:
    a, b = arrays[0], arrays[-1]
    if name == "add":
        return reduced(a + b)
    if name == "sub":
        return reduced(a + (P - b))
    if name == "mul":
        return product(a, b)
    if name == "div":
        return product(a, inverse(b))
    if name == "recip":
        return inverse(a)
    return reduced(P - a) if name == "neg" else a


def by_columns(arithmetic: Arithmetic) -> Arithmetic:
    """The same arithmetic, with whole columns where it has them."""
    if isinstance(arithmetic, PrimeField) and not isinstance(arithmetic, FieldColumns):
        return FieldColumns(arithmetic) if arithmetic.prime == MERSENNE_61 else arithmetic
    return arithmetic
