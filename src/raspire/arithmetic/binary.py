"""IEEE binary floating point: binary64 and binary32; integers stay integers of any size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from raspire.arithmetic.interface import Arithmetic, Record
from raspire.errors import RaspOverflowError


def exact_mean(values: Sequence[Any]) -> Any:
    """The mean of ints and floats, rounded once: an int where ints give one, else a float.

    Raises RaspOverflowError when it is too large for a float.

    >>> exact_mean([1, 2, 3]), exact_mean([1, 2]), exact_mean([1e16, 1.0, -1e16])
    (2, 1.5, 0.3333333333333333)
    """
    try:
        if not any(isinstance(v, float) for v in values):
            return _whole_or_float(sum(map(int, values)), len(values))
        if not all(math.isfinite(v) for v in values):
            return float(sum(values)) / len(values)
        return float(sum(map(Fraction, values)) / len(values))
    except OverflowError:
        raise RaspOverflowError(
            "the mean is too large for a float", found=f"{len(values)} values"
        ) from None


def _whole_or_float(total: int, count: int) -> int | float:
    quotient, rest = divmod(total, count)
    return total / count if rest else quotient


class Binary(Arithmetic):
    """Binary floats of 64 or 32 bits beside unbounded integers."""

    def __init__(self, name: str, rounding: Callable[[float], float]) -> None:
        self.name = name
        self._rounding = rounding

    def lift(self, value: Any) -> Any:
        if isinstance(value, Fraction):
            whole = value.denominator == 1
            return value.numerator if whole else self._rounding(float(value))
        return self._rounding(value) if isinstance(value, float) else value

    def form(self, record: Record) -> Callable[..., Any]:
        if self.name == "float64":
            return record.scalar
        return lambda *values: self.lift(record.scalar(*values))

    def mean(self, values: Sequence[Any]) -> Any:
        return self.lift(exact_mean(values))

    def number(self, value: Any) -> bool:
        return isinstance(value, int | float)

    def quotient(self, total: Any, count: int) -> Any:
        try:
            if isinstance(total, int):
                return self.lift(_whole_or_float(total, count))
            return self.lift(float(Fraction(total) / count) if isinstance(total, Fraction)
                             else total / count)  # fmt: skip
        except OverflowError:
            raise RaspOverflowError("the mean is too large for a float") from None

    def inexact(self, value: Any) -> Any:
        try:
            return self._rounding(float(value))
        except OverflowError:
            raise RaspOverflowError("the mean is too large for a float") from None


def _to_float32(value: float) -> float:
    import numpy

    with numpy.errstate(over="ignore"):
        return float(numpy.float32(value))


FLOAT64 = Binary("float64", float)
FLOAT32 = Binary("float32", _to_float32)
